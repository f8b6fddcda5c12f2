"""The report on the synthetic experiment."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from lawful.experiments._base import Options, Row
from lawful.experiments.paper import ERRATA
from lawful.experiments.synthetic import figures
from lawful.experiments.synthetic.cells import FROM, METHODS, NAMES, SELECTIONS, Cell, among, gather
from lawful.experiments.synthetic.claims import CLOSE, ENOUGH, claims
from lawful.experiments.synthetic.texts import DIFFERS, FIGURE
from lawful.experiments.synthetic.work import SETTINGS, SHOWN, truth
from lawful.report.blocks import Bullets, Figure, Grid, Section, Table, Text

MAIN = {"noise": "sd", "setting": "vector-valued"}  # the reading that comes first
PRINTED = ("STL", "MTRL", "NL-MTL")  # the methods of the paper's figure


def pages(rows: list[Row], seconds: dict[str, list[float]], options: Options, told: list[str]) -> list[Section]:
    cells = gather(rows)
    return [
        Section("What the paper claims", [Text(DECIDED), *claims(cells)]),
        Section("The figure of the paper", [Text(FIGURE), *[b for s in SELECTIONS for b in layout(rows, cells, s)]]),
        Section("The other laws, noises and settings", others(cells)),
        Section("Errors in numbers", [*tables(cells), overview(cells)]),
        Section("Where the time goes", [times(seconds)]),
        Section("What differs and why", [Bullets(differs(rows)), Text("Errata concerned:"), Bullets(errata())]),
    ]


DECIDED = (
    'The paper says that NL-MTL "consistently outperforms its two competitors". A cell is one curve, noise (0.05 as '
    "standard "
    f"deviation, 0.05 as variance), setting and n; the claim is tested in all cells with n >= {FROM} and holds if NL-MTL "
    "has the smaller test MSE in the median of the paired trials of every one of them. Where a cell has fewer than "
    f"{ENOUGH} trials the claim is left undecided. NL-MTL[R] and [P] are said to fall back on STL if they beat exact NL-MTL in "
    f"the median of every cell and the median of MSE / MSE of STL over all trials is at most {CLOSE:g}."
)


def errata() -> list[str]:
    return [f"**{e}** {ERRATA[e]}" for e in ("E1", "E3", "E4")]


def differs(rows: list[Row]) -> list[str]:
    worst = max(row["results"]["violation"] for row in rows)
    return [*DIFFERS, f"The largest violation of a law by a prediction of NL-MTL, over all rows and test points: {worst:.0e}."]


# -------------------------------------------------------------------------------------------------------------- figures


def layout(rows: list[Row], cells: list[Cell], selection: str) -> list[Any]:
    """Top row: sample predictions. Bottom row: boxplots."""
    top, bottom = [], []
    for law in ("circle", "lemniscate"):
        row = sampled(rows, law)
        if row is not None:
            top.append(
                Figure(
                    f"synthetic-{selection}-{law}-sample",
                    partial(figures.predictions, lines(row, selection), row["results"]["data"], truth(law)),
                    f"{NAMES[law].capitalize()}: predictions of one trial with {SHOWN} training points against the truth.",
                    f"STL, MTRL and NL-MTL, the training data and the true {NAMES[law]} in the plane of the outputs.",
                )
            )
        some = among(cells, law=law, selection=selection, **MAIN)
        if some:
            bottom.append(boxes(some, PRINTED, f"synthetic-{selection}-{law}-mse"))
    caption = f"The layout of the paper's figure, {SELECTIONS[selection]}: noise 0.05 as standard deviation, shared inputs."
    return [Grid([*top, *bottom], caption)] if bottom else []


def sampled(rows: list[Row], law: str) -> Row | None:
    wanted = {"curve": law, **MAIN}
    return next((r for r in rows if "sample" in r["results"] and all(r[key] == value for key, value in wanted.items())), None)


def lines(row: Row, selection: str) -> dict[str, Any]:
    sample = row["results"]["sample"]
    return sample["paper"] | sample["ridge"] if selection == "ridge" else sample[selection]


def boxes(cells: list[Cell], methods: tuple[str, ...], name: str) -> Figure:
    first, last = (f(cells, key=lambda c: c.n) for f in (min, max))
    return Figure(
        name,
        partial(figures.boxplots, cells, methods),
        f"{NAMES[first.law].capitalize()}: test MSE of {first.trials} trials; whiskers reach the extremes. "
        f"Errors above {figures.CEILING:g} are drawn there.",
        f"Boxplots of the error against n. Medians from n = {first.n} to n = {last.n}: "
        + "; ".join(f"{m} {first.median(m):.1e} to {last.median(m):.1e}" for m in methods)
        + ".",
    )


def others(cells: list[Cell]) -> list[Any]:
    """All five methods for every law: the main case with the paper's selection and ours, the other cases with ours."""
    found: list[Any] = [Text(OTHERS)]
    cases = [("paper", *MAIN.values()), ("default", *MAIN.values())]
    cases += [("default", n, s) for n in ("sd", "variance") for s in SETTINGS if (n, s) != tuple(MAIN.values())]
    for selection, noise, setting in cases:
        pictures = []
        for law in NAMES:
            some = among(cells, law=law, noise=noise, setting=setting, selection=selection)
            if some:
                pictures.append(boxes(some, METHODS, f"synthetic-{selection}-{noise}-{setting}-{law}"))
        if pictures:
            found.append(Grid(pictures, f"Noise 0.05 as {SPELLED[noise]}, {setting} setting; {SELECTIONS[selection]}."))
    return found


SPELLED = {"sd": "standard deviation", "variance": "variance"}
OTHERS = (
    "All five methods. In the vector-valued setting both outputs are seen at the same n inputs, in the multitask setting "
    "each at n inputs of its own. The tall lemniscate is the printed function with the equation that it does satisfy; "
    "the lemniscate is the printed equation with a function that satisfies it. The paper's selection is drawn for the "
    "first case only; its numbers for all cases are in the tables below."
)


# --------------------------------------------------------------------------------------------------------------- tables


def tables(cells: list[Cell]) -> list[Table]:
    """Medians by n for the main case, a table for each law."""
    found = []
    columns = ["n", "selection", *PRINTED, "NL-MTL / STL", "won"]
    for law, name in NAMES.items():
        some = sorted(among(cells, law=law, **MAIN), key=lambda c: (c.n, list(SELECTIONS).index(c.selection)))
        rows, bold = [], set()
        for i, c in enumerate(some):
            medians = [c.median(m) for m in PRINTED]
            bold.add((i, 2 + int(np.argmin(medians))))
            share = f"{c.ratio('NL-MTL', 'STL'):.2f}"
            rows.append(
                [str(c.n), c.selection, *(f"{v:.1e}" for v in medians), share, f"{c.wins('NL-MTL', 'STL')} of {c.trials}"]
            )
        if rows:
            caption = (
                f"{name.capitalize()}, noise 0.05 as standard deviation, shared inputs: median test MSE; median of the "
                "paired ratio, and trials in which NL-MTL beats STL."
            )
            found.append(Table(columns, rows, caption, frozenset(bold)))
    return found


def overview(cells: list[Cell]) -> Table:
    """Every case in one line: medians over all trials with n >= 50."""
    rows: list[list[str]] = []
    bold: set[tuple[int, int]] = set()
    large = [c for c in cells if c.n >= FROM]
    pairs = (("NL-MTL", "STL"), ("NL-MTL", "MTRL"), ("NL-MTL[R]", "STL"), ("NL-MTL[P]", "STL"), ("MTRL", "STL"))
    for law, name in NAMES.items():
        for c in among(large, law=law):
            case = f"{name}, {c.noise}, {c.setting}, {c.selection}"
            if any(row[0] == case for row in rows):
                continue
            some = among(large, law=law, noise=c.noise, setting=c.setting, selection=c.selection)
            ratios = [np.concatenate([s.ratios(*pair) for s in some]) for pair in pairs]
            values = [float(np.median(r)) for r in ratios]
            bold |= {(len(rows), 1 + j) for j, v in enumerate(values) if v < 1}
            rows.append([case, *(f"{v:.2f}" for v in values), f"{int((ratios[0] < 1).sum())} of {len(ratios[0])}"])
    columns = ["case", "NL-MTL / STL", "NL-MTL / MTRL", "[R] / STL", "[P] / STL", "MTRL / STL", "NL-MTL beats STL"]
    caption = f"All trials with n >= {FROM}: median of the paired ratio of test MSE, below 1 in bold, and paired wins."
    return Table(columns, rows, caption, frozenset(bold))


def times(seconds: dict[str, list[float]]) -> Table:
    rows = [[label, f"{np.median(s):.2f}", f"{max(s):.1f}", f"{sum(s):.0f}"] for label, s in sorted(seconds.items())]
    return Table(
        ["part", "median, s", "longest, s", "all rows, s"], rows, "One core. NL-MTL includes [R] and [P] and all laws."
    )

"""The report on rankings: claims, the paper's table beside ours, the few films on which MTRL runs, what differs and why."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from lawful.experiments._base import Options, Row
from lawful.experiments._paired import RULE, all_of, spread
from lawful.experiments.paper import RANKING as PAPER
from lawful.experiments.ranking import figures
from lawful.experiments.ranking.summary import OURS, PLAIN, Losses, chosen, collect, mean_of, paired, values
from lawful.experiments.ranking.systems import GRIDS
from lawful.experiments.ranking.words import CANDIDATES, FILMS, OMEGA, TASKS, differs, setting
from lawful.experiments.ranking.work import GENERATED
from lawful.report.blocks import Bullets, Claim, Figure, Grid, Section, Table, Text

# label, name in the rows, name in the paper's table
SYSTEMS: list[tuple[str, str, str | None]] = [
    ("NL-MTL, insertion", PLAIN, "NL-MTL"),
    ("NL-MTL, Eades", "NL-MTL, eades", "NL-MTL"),
    ("NL-MTL, our defaults, insertion", OURS, None),
    ("NL-MTL, our defaults, Eades", "NL-MTL+, eades", None),
    ("SELF, insertion", "SELF, insertion", "SELF"),
    ("SELF, Eades", "SELF, eades", "SELF"),
    ("Linear", "Linear", "Linear"),
    ("Hinge", "Hinge", "Hinge"),
    ("Logistic", "Logistic", "Logistic"),
    ("SVMStruct", "SVMStruct", "SVMStruct"),
    ("STL, SVM per pair", "STL, SVM, error", "STL"),
    ("STL, SVM, undecided = half", "STL, SVM, half", None),
    ("STL, ridge per pair", "STL, ridge, error", None),
    ("STL, ridge, undecided = half", "STL, ridge, half", None),
    ("MTRL", "MTRL", "MTRL"),
    ("matrix factorisation", "matrix factorisation", None),
    ("mean of three factorisations", "mean of three factorisations", None),
    ("the factor prior of our defaults", "factor prior alone", None),
    ("item bias", "item bias", None),
    ("popularity (mean rating)", "popularity", None),
    ("number of ratings", "number of ratings", None),
    ("random order", "random order", None),
]
FEW: list[tuple[str, str, str | None]] = [
    ("MTRL", "MTRL", "MTRL"),
    ("MTRL, then an order (insertion)", "MTRL, insertion", None),
    ("NL-MTL, insertion", PLAIN, "NL-MTL"),
    ("NL-MTL, Eades", "NL-MTL, eades", "NL-MTL"),
    ("SELF, insertion", "SELF, insertion", "SELF"),
    ("SELF, Eades", "SELF, eades", "SELF"),
    ("STL, SVM per pair", "STL, SVM", "STL"),
    ("STL, ridge per pair", "STL, ridge", None),
    ("popularity (mean rating)", "popularity", None),
]
RIVALS = ("Linear", "Hinge", "Logistic", "SVMStruct")
HIDDEN = ("STL, SVM, half", "STL, ridge, half", "number of ratings", "random order", "MTRL", "factor prior alone")


def pages(rows: list[Row], seconds: dict[str, list[float]], options: Options, told: list[str]) -> list[Section]:
    every = {protocol: collect(rows, protocol) for protocol in ("A", "B")}
    few = {protocol: collect(rows, protocol, few=True) for protocol in ("A", "B")}
    return [
        Section("Films for users: what was run", [*warning(rows), Bullets(setting(*size(rows)))]),
        Section("What the paper claims", claims(every, few, generated(rows))),
        Section("The table", table_blocks(every, rows)),
        Section("Trial by trial", [trial_figures(every)]),
        Section("MTRL, on the most rated films", few_blocks(few, rows, seconds)),
        Section("What differs and why", [Bullets(reasons(every, rows)), *times(seconds)]),
    ]


def size(rows: list[Row]) -> tuple[int, int, int, int]:
    first = rows[0]
    return first["train"], first["test"], first["films"], len({row["seed"] for row in rows})


def generated(rows: list[Row]) -> bool:
    """Whether these are the stand-in: its number of films is no other's."""
    return rows[0]["films"] == GENERATED["films"]


def warning(rows: list[Row]) -> list[Text]:
    if generated(rows):
        text = "**Generated ratings, not MovieLens: no number here says anything about the paper's claims.** Pass `--data`."
        return [Text(text)]
    if rows[0]["films"] < 1682:
        return [Text(f"**A quick look: only the {rows[0]['films']} most rated films of MovieLens 100k, and fewer users.**")]
    return []


# --------------------------------------------------------------------------------------------------------------- claims


def claims(every: dict[str, Losses], few: dict[str, Losses], stand_in: bool) -> list[Any]:
    blocks: list[Any] = [
        Text(
            "N1 of NL-MTL against N1 of the rival; in brackets the rival's less NL-MTL's on the same splits, mean ± standard "
            "error, and the trials in which NL-MTL is better. "
            f"{RULE} It must hold under both protocols, and fails if it fails under one. Where more than one comparison is "
            "told the first decides: the insertion decoder, and undecided pairs as errors."
        )
    ]
    for title, mine in (("NL-MTL", "NL-MTL"), ("NL-MTL with our defaults", "NL-MTL+")):
        best, eades = f"{mine}, insertion", f"{mine}, eades"
        compared = [
            (f"{title} beats SELF, both decoded by Eades", [("", eades, "SELF, eades")], every),
            (f"{title} beats SELF, both decoded by insertion", [("", best, "SELF, insertion")], every),
            *((f"{title} beats {name}", [("insertion", best, name), ("Eades", eades, name)], every) for name in RIVALS),
            *(
                (
                    f"{title} beats STL, one {machine} per pair",
                    [("", best, f"STL, {machine}, error"), ("undecided pairs as half errors", best, f"STL, {machine}, half")],
                    every,
                )
                for machine in ("SVM", "ridge")
            ),
        ]
        if mine == "NL-MTL":
            compared.append((f"{title} beats MTRL, on the most rated films", [("", best, "MTRL")], few))
        blocks += [claim(*c, stand_in) for c in compared]
    return blocks


def claim(text: str, pairs: list[tuple[str, str, str]], found: dict[str, Losses], stand_in: bool) -> Claim:
    """Decided by the first of `pairs` (decoder, mine, rival); the others are told beside it."""
    parts, verdicts = [], []
    for k, (decoder, mine, rival) in enumerate(pairs):
        for protocol, losses in found.items():
            d = paired(losses, rival, mine)
            if d is None:
                continue
            both = f"{mean_of(losses, mine):.4f} against {mean_of(losses, rival):.4f}"
            parts.append(f"{protocol}{', ' + decoder if decoder else ''}: {both} ({d}; {d.won} of {len(d.differences)} trials)")
            if k == 0:
                verdicts.append(d.verdict)
    holds = all_of(verdicts) if verdicts and not stand_in else None
    return Claim(text, holds, "; ".join(parts) or "not in these rows")


# --------------------------------------------------------------------------------------------------------------- tables


def table(
    found: Losses, systems: list[tuple[str, str, str | None]], references: dict[str, str], caption: str, digits: int = 4
) -> Table:
    """System, the paper's number, N1 ± deviation, N2 / N3, and N1 less that of the references."""
    lines, means = [], []
    for label, name, paper in systems:
        printed = f"{PAPER[paper][0]:.3f} ± {PAPER[paper][1]:.3f}" if paper else "-"
        if name not in found:
            lines.append([label, printed, "see below" if name == "MTRL" else "-", "-", *("-" for _ in references)])
            means.append(np.inf)
            continue
        less = [str(paired(found, name, mine)) if name != mine and mine in found else "-" for mine in references.values()]
        others = " / ".join(f"{mean_of(found, name, k):.3f}" for k in ("N2", "N3"))
        lines.append([label, printed, spread(values(found, name), digits), others, *less])
        means.append(mean_of(found, name))
    bold = frozenset({(int(np.argmin(means)), 2)}) if np.isfinite(means).any() else frozenset()
    return Table(["system", "paper", "N1", "N2 / N3", *references], lines, caption, bold)


def table_blocks(every: dict[str, Losses], rows: list[Row]) -> list[Any]:
    blocks: list[Any] = [
        Text(
            "The paper's column is on a scale that it does not state: compare within columns. N1 with its standard deviation "
            "over trials, which is mostly that of the splits; the last two columns are paired by split, mean ± standard error, "
            "above 0 where the system is worse than NL-MTL with the insertion decoder, the paper's and ours. Matrix "
            "factorisation has a dash under protocol B: without a profile it knows the item biases only, which have a line of "
            "their own."
        )
    ]
    pictures = []
    for protocol, found in every.items():
        if not found:
            continue
        what = "half of a test user's ratings are known" if protocol == "A" else "only demographics are known"
        blocks.append(table(found, SYSTEMS, {"less NL-MTL": PLAIN, "less our defaults": OURS}, f"Protocol {protocol}: {what}."))
        shown = [
            (label, values(found, name), PAPER[paper] if paper else None)
            for label, name, paper in SYSTEMS
            if name in found and name not in HIDDEN
        ]
        chance = mean_of(found, "random order") if "random order" in found else 0.5
        pictures.append(
            Figure(
                f"ranking-{protocol}",
                partial(figures.losses, shown, chance),
                f"Protocol {protocol}. Means and standard deviations over trials. The paper does not state its scale.",
                f"Rank loss N1 of {len(shown)} systems under protocol {protocol}, with the numbers of the paper beside them.",
            )
        )
    return [*blocks, Grid(pictures), *choices(rows)]


def choices(rows: list[Row]) -> list[Text]:
    """How often validation went to the end of a grid."""
    ends = []
    for name, grid in GRIDS.items():
        for protocol in ("A", "B"):
            found = chosen(rows, name, protocol)
            at = [f"{sum(c == end for c in found)} at {end:g}" for end in (grid[0], grid[-1]) if end in found]
            if at:
                ends.append(f"{name} ({protocol}) {' and '.join(at)} of {len(found)}")
    if not ends:
        return []
    return [Text(f"Choices at the end of a grid: {'; '.join(ends)}.")]


def trial_figures(every: dict[str, Losses]) -> Grid:
    pictures = []
    for mine, words in ((PLAIN, "NL-MTL"), (OURS, "NL-MTL, our defaults")):
        shown = []
        for label, name, _ in SYSTEMS:
            if name == mine or name in HIDDEN:
                continue
            d = {p: pair.differences for p, found in every.items() if (pair := paired(found, name, mine)) is not None}
            if d:
                shown.append((label, d))
        if shown:
            pictures.append(
                Figure(
                    f"ranking-paired-{'plain' if mine == PLAIN else 'defaults'}",
                    partial(figures.differences, shown, words),
                    f"Every system less {words}, on the same users in each trial.",
                    f"Differences in N1 between {len(shown)} systems and {words}, trial by trial, for protocols A and B.",
                )
            )
    return Grid(pictures)


def few_blocks(few: dict[str, Losses], rows: list[Row], seconds: dict[str, list[float]]) -> list[Any]:
    mine = [row["results"] for row in rows if row["part"] == "mtrl"]
    if not mine:
        return [Text("MTRL was not run.")]
    D, T = rows[0]["few"], mine[0]["tasks"]
    gap = max(result["gap of MTRL"] for result in mine)
    times = seconds.get("MTRL, few films", [])
    took = f" ({min(times):.2g} to {max(times):.2g} s a split here, choices included)" if times else ""
    text = (
        f"MTRL learns the covariance of its tasks. All {FILMS} films make T = {TASKS:,} tasks and a covariance of {OMEGA:.0f} "
        f"TB. Here it runs on the **{D} films that the training users rated most**, T = {T} tasks with a small covariance. "
        f"More films would fit into memory, and take longer, since T grows with their square{took}. {CANDIDATES} Every system "
        "here learns from and is evaluated on these films alone, with the same kernel between users. MTRL and STL are counted "
        f"pair by pair, without an order, as in the paper. Largest duality gap of MTRL: {gap:.1e} of its objective."
    )
    tables = [
        table(found, FEW, {"less NL-MTL": PLAIN, "less MTRL": "MTRL"}, f"Protocol {protocol}, {D} films.")
        for protocol, found in few.items()
        if found
    ]
    return [Text(text), *tables]


# ---------------------------------------------------------------------------------------------------------------- words


def reasons(every: dict[str, Losses], rows: list[Row]) -> list[str]:
    popularity = mean_of(every["A"], "popularity") if "popularity" in every["A"] else None
    told = (*RIVALS, PLAIN, OURS)
    scorers = {label: mean_of(every["A"], name) for label, name, _ in SYSTEMS if name in told and name in every["A"]}
    shares = [row["results"]["undecided"] for row in rows if row["part"] == "stl"]
    lowest = min(mean for mean, _ in PAPER.values())
    return differs(popularity, scorers, lowest, float(np.mean(shares)) if shares else None, generated(rows))


def times(seconds: dict[str, list[float]]) -> list[Any]:
    if not seconds:
        return []
    lines = [[label, f"{np.median(s):.2f}", f"{np.max(s):.2f}"] for label, s in seconds.items() if s]
    return [Table(["step", "median, s", "longest, s"], lines, "Seconds on one core, of one split, choices included.")]

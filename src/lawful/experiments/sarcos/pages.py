"""The report on Sarcos."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lawful.experiments._base import Options, Row
from lawful.experiments._paired import RULE
from lawful.experiments.paper import ERRATA, SARCOS
from lawful.experiments.sarcos import figures
from lawful.experiments.sarcos.claims import claims
from lawful.experiments.sarcos.summary import Variant, variants
from lawful.experiments.sarcos.systems import BY_NAME, SYSTEMS
from lawful.experiments.sarcos.work import ARM, CLOUD, N_TRAIN, PRINTED_GRID
from lawful.report.blocks import Bullets, Figure, Grid, Section, Table, Text

NAMES = [system.name for system in SYSTEMS]
IDENTITY = ", identity"  # rows in the paper's metric
SHOWN = ["STL", "MTRL", "FMTL", "NL-MTL", "NL-MTL[R]", "NL-MTL[P]", "Wiener", "posterior"]


def pages(rows: list[Row], seconds: dict[str, list[float]], options: Options, told: list[str]) -> list[Section]:
    found = variants(rows)
    main = next(iter(found.values()))
    tested = claims(found)
    stand_in = rows[0]["file"] == ARM
    if stand_in:  # nothing about Sarcos can be learned from another arm
        tested = [replace(claim, holds=None) for claim in tested]
    return [
        Section("What the paper claims", [*warning(stand_in), *tested, Text(decided(found))]),
        Section("The table", table_blocks(found, main, told)),
        Section("Inputs: standardised, raw, shared", input_blocks(found)),
        Section("Torques, and how far the law is relaxed", detail_blocks(found, main)),
        Section("Times and grids", grid_blocks(found, seconds)),
        Section(
            "What differs and why", [Bullets(differs(found, told, stand_in)), Text("Errata concerned:"), Bullets(errata())]
        ),
    ]


def warning(stand_in: bool) -> list[Any]:
    if not stand_in:
        return []
    return [
        Text(
            "**These rows are not Sarcos.** No data were given, so a planar arm with seven joints was generated in its place: "
            "what follows shows that the systems run, and says nothing about the paper's numbers."
        )
    ]


def decided(found: dict[str, Variant]) -> str:
    first, *others = found
    beside = f"; what {' and '.join(others)} inputs give is told beside them and decides nothing" if others else ""
    return (
        f"{RULE} A claim about several comparisons holds if all of them do and fails if one of them fails. Claims are decided "
        f"on the first kind of inputs, {first}{beside}. The order of the table holds if our means have the same one (tau = 1)."
    )


def printed(name: str) -> str:
    key = BY_NAME[name].paper
    return f"{SARCOS[key][0]:.1f} ± {SARCOS[key][1]:.1f}" if key else ""


def table_blocks(found: dict[str, Variant], main: Variant, told: list[str]) -> list[Any]:
    inputs = next(iter(found))
    best = max(NAMES, key=lambda name: main.ev(name).mean())
    rows = []
    for name in NAMES:
        d = main.against(name, "STL")
        gain = ["", ""] if name == "STL" else [str(d), f"{d.won} of {d.n}"]
        rows.append([figures.label(name), printed(name), main.spread(name), f"{main.pooled(name).mean():.1f}", *gain])
    bold = frozenset({(NAMES.index(best), 2)})
    caption = (
        f"Explained variance in per cent, {inputs} inputs, {len(main)} splits, {N_TRAIN} training rows a torque, {main.n_test} "
        f"test rows, a cloud of {CLOUD[main.rows[0]['size']]} outputs: mean over torques of "
        "1 - MSE/variance, ± standard deviation over splits; pooled: squared errors and variances added over torques first, in "
        "the units of the torques. Less STL: paired, ± standard error. † sees the extra outputs, which no other system does."
    )
    gains = [name for name in NAMES if name != "STL" and not name.startswith("FMTL[")]
    return [
        Text(" ".join(told)),
        Table(["system", "paper", "ours", "pooled", "less STL", "won"], rows, caption, bold),
        Bullets([f"`{system.name}`: {system.what}" for system in SYSTEMS]),
        Grid(
            [
                Figure(
                    "sarcos-differences",
                    partial(figures.differences, main, gains),
                    f"What each system gains over STL, {inputs} inputs: a dot for each split, diamonds for means with standard "
                    "errors. † sees the extra outputs.",
                    "Horizontal dot plot of paired differences to STL for every system; the numbers are those of the table.",
                ),
                Figure(
                    "sarcos-paper",
                    partial(figures.beside_paper, found),
                    "The paper's numbers and ours.",
                    "For each system of the paper's table its explained variance there and here, with standard deviations.",
                ),
            ]
        ),
    ]


def input_blocks(found: dict[str, Variant]) -> list[Any]:
    rows = [[figures.label(name), printed(name), *(v.spread(name) for v in found.values())] for name in NAMES]
    raw = found.get("raw")
    for key in PRINTED_GRID.values():
        if raw is not None and key in raw:
            cells = [raw.spread(key) if inputs == "raw" else "" for inputs in found]
            rows.append([key.replace("printed grid", "λ in [1e-9, 1]"), "", *cells])
    text = (
        f"Standardised: every torque has {N_TRAIN} rows of its own, inputs scaled to unit variance on the training rows. Raw: "
        f"the same rows as they are; accelerations, whose numbers are largest, then decide the kernel. Shared: {N_TRAIN} rows "
        "for all torques together (vector-valued regression), standardised. The paper does not say whether it scaled."
    )
    blocks: list[Any] = [Text(text), Table(["system", "paper", *found], rows, "Explained variance, mean ± standard deviation.")]
    if raw is not None and "standardised" in found:
        blocks.append(Text(scaling_remark(found)))
    return blocks


def scaling_remark(found: dict[str, Variant]) -> str:
    """Which treatment of the inputs is nearest to the paper's number, system by system."""
    near: dict[str, list[str]] = {"standardised": [], "raw": []}
    for system in SYSTEMS:
        if system.paper:
            gap = {v: abs(float(found[v].ev(system.name).mean()) - SARCOS[system.paper][0]) for v in near}
            near[min(gap, key=lambda v: gap[v])].append(
                f"{system.paper} (off by {min(gap.values()):.1f}, else {max(gap.values()):.1f})"
            )
    parts = [f"nearer to {v} inputs: {', '.join(names) or 'none'}" for v, names in near.items()]
    return (
        "Which inputs the paper's numbers look like, by the distance of the means: "
        + "; ".join(parts)
        + ". The numbers of the "
        "linear systems were quoted from two other papers, those of NL-MTL were not: scaling may differ between rows of "
        "the paper's table."
    )


def detail_blocks(found: dict[str, Variant], main: Variant) -> list[Any]:
    kept = []
    for inputs, v in found.items():
        exact = [sum(value is None for value in v.chosen(*pair)) for pair in (("NL-MTL[R]", "delta"), ("NL-MTL[P]", "mu"))]
        kept.append(f"{inputs}: [R] {exact[0]} and [P] {exact[1]} of {len(v)}")
    return [
        Grid(
            [
                Figure(
                    "sarcos-torques",
                    partial(figures.torques, main, SHOWN),
                    "Explained variance of each torque in per cent, mean over splits.",
                    f"Heat-map with one row for each of {len(SHOWN)} systems and one column for each torque; cells "
                    "carry the numbers.",
                ),
                Figure(
                    "sarcos-relaxations",
                    partial(figures.relaxations, found),
                    "δ and μ chosen by the folds from the paper's grid; shaded: the exact set was kept. Units: δ in those of "
                    "the objective (leave-one-out errors), μ as a price on the squared distance.",
                    "Dot plot of the chosen delta and mu of every split, by treatment of the inputs.",
                ),
            ]
        ),
        Text(f"Splits in which the folds kept the exact set: {'; '.join(kept)}."),
    ]


def grid_blocks(found: dict[str, Variant], seconds: dict[str, list[float]]) -> list[Any]:
    total = sum(len(v) for v in found.values())
    rows = []
    for name in NAMES:
        times = seconds.get(name, [])
        edge = sum(v.count(name, "edge") for v in found.values())
        unsolved = sum(v.count(name, "unsolved") for v in found.values())
        rows.append([figures.label(name), f"{np.median(times):.2f}" if times else "", f"{edge} of {total}", str(unsolved)])
    caption = (
        "Seconds to choose and fit (median over rows, one core); rows in which a penalty, δ or μ ended on the edge of its "
        "grid; fits that did not reach their duality gap (all folds and candidates). FMTL is the best of its three p."
    )
    return [Table(["system", "seconds", "on an edge", "unsolved"], rows, caption)]


def differs(found: dict[str, Variant], told: list[str], stand_in: bool) -> list[str]:
    main = next(iter(found.values()))
    lines = [
        f"**STL.** The table's 40.5 is an epsilon-SVR quoted from other work. Ours, same loss: {main.spread('STL-SVR')}; "
        f"ridge, the loss of NL-MTL: {main.spread('STL')}. Gains over STL should be read against the latter.",
        "**Extra outputs.** Systems marked † see the outputs of the cloud, which the others do not. `STL+mean` and `Wiener` "
        f"see the same and use no law: {main.against('STL+mean', 'STL')} and {main.against('Wiener', 'STL')} over STL. They "
        "belong beside NL-MTL.",
        "**Tuning.** Every system chooses by the same five folds from grids relative to the mean of k(x, x). The grids of "
        "MTL (mu) and MTRL (lam2 beside lam1) reach values that all but switch the coupling off, those of CMTL and MTFL values "
        "that weaken it; FMTL has only lam and p, and keeps its coupling. The quoted systems used three folds and coarser "
        "grids.",
        losses(main),
        *metric(main),
        "**Units of the outputs.** Divided by the standard deviations of the training labels for every system; linear "
        "multitask penalties depend on them (STL does not).",
        "**Tube.** δ is measured in the norm of the objective, and there the whole path costs one projection; with the default "
        "metric torques count in it by their leave-one-out errors. The paper's tube is Euclidean in units it does not state.",
        "**Intercepts.** Every torque has one, except with STL+mean, whose base is fixed: the mean of the cloud. Wiener, "
        "posterior and the rows with +mean choose between the two by the folds. The paper mentions none; without, a(x) may be "
        "zero or less (E4).",
    ]
    raw = found.get("raw")
    stl = PRINTED_GRID["STL"]
    if raw is not None and stl in raw:
        edge = raw.count(stl, "edge")
        lines.append(
            f"**λ.** The paper's grid [1e-9, 1] is too low for raw inputs: STL ends at λ = 1 in {edge} of {len(raw)} splits "
            f"and gets {raw.spread(stl)} instead of {raw.spread('STL')}."
        )
    if not stand_in:
        lines.append(f"**Data.** {told[-1]} The paper's own ten splits could not be found.")
    return lines


def losses(main: Variant) -> str:
    here = " and ".join(name for name in ("STL-SVR", "FMTL-SVR") if name in main)
    return (
        "**Losses.** MTL, CMTL, MTFL, MTRL and FMTL run with the square loss. The quoted numbers of STL, MTL, CMTL and MTFL "
        f"were obtained with the epsilon-insensitive loss, as far as their sources say; {here} have it here."
    )


def metric(main: Variant) -> list[str]:
    """What the rows in the paper's metric are, where there are any."""
    names = [name for name in NAMES if name.endswith(IDENTITY) and name in main]
    if not names:
        return []
    gains = ", ".join(f"{name} {main.against(name, name.removesuffix(IDENTITY))}" for name in names)
    return [
        "**Metric.** NL-MTL, [R] and [P] weigh torques by their leave-one-out errors, the library's default. The rows with "
        '"identity" are the printed estimator with an intercept: all torques count alike, in units of the standard deviations '
        "of their training labels, and a(x) = 1 because of the intercept, so that the tube is the Euclidean one. What the "
        f"printed metric changes: {gains}."
    ]


def errata() -> list[str]:
    return [f"**{e}** {ERRATA[e]}" for e in ("E2", "E3", "E4")]

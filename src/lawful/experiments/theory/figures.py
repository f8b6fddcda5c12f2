"""Figures of the theorems."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.experiments._figures import COLOURS, GREY, INK, legend_below, panel

LAWS = [COLOURS["NL-MTL"], COLOURS["STL"], COLOURS["NL-MTL[R]"], COLOURS["MTRL"]]
MARKS = "os^Dvp"
SHORT = {"box of the sphere's size, [-T^-1/2, T^-1/2]^T": "box, as small as the sphere", "curve (cos kx, sin kx)": "curve"}


def rates(curves: dict[str, dict[str, Any]]) -> Any:
    figure, axis = panel(3.5)
    for (law, c), colour, mark in zip(curves.items(), LAWS, MARKS):
        axis.loglog(c["n"], c["half"], mark + "-", color=colour, ms=4, lw=1.4, label=law)
    n = np.array(next(iter(curves.values()))["n"], dtype=float)
    top = max(c["half"][0] for c in curves.values())
    axis.loglog(n, top * 1.6 * (n / n[0]) ** -0.25, "--", color=GREY, lw=1.2, label="$n^{-1/4}$, proven")
    axis.set(xlabel="inputs of each task, n", ylabel="excess risk")
    legend_below(figure, axis)
    return figure


def comparison(pairs: list[tuple[str, float, float]]) -> Any:
    figure, axis = panel(3.5)
    laws = list(dict.fromkeys(law for law, _, _ in pairs))
    for law, colour, mark in zip(laws, LAWS, MARKS):
        points = np.array([(left, right) for name, left, right in pairs if name == law])
        axis.loglog(*points.T, mark, color=colour, ms=4, alpha=0.6, mew=0, label=law)
    values = np.array([(left, right) for _, left, right in pairs])
    ends = np.array([values.min(), values.max()])
    axis.loglog(ends, ends, "-", color=INK, lw=1, label="equality")
    axis.set(xlabel="left side: excess risk", ylabel="right side: the bound")
    legend_below(figure, axis)
    return figure


def constants(q: dict[str, Any]) -> Any:
    figure, axis = panel(3.8)
    colours = [*LAWS, COLOURS["NL-MTL[P]"], INK]
    shown = [(name, by_T) for name, by_T in q.items() if len(by_T) > 1]
    for (name, by_T), colour, mark in zip(shown, colours, MARKS):
        T = sorted(map(int, by_T))
        axis.loglog(T, [by_T[str(t)]["exact"] for t in T], "-", color=colour, lw=1.2)
        axis.loglog(T, [by_T[str(t)]["q"] for t in T], mark, color=colour, ms=5, mfc="none", label=SHORT.get(name, name))
    tasks = sorted({int(T) for _, by_T in shown for T in by_T})
    axis.set_xticks(tasks, map(str, tasks))
    axis.set_yticks([1, 2, 3, 4, 5], ["1", "2", "3", "4", "5"])
    axis.minorticks_off()
    axis.set(xlabel="tasks T", ylabel="q")
    legend_below(figure, axis, 2)
    return figure


def gains(cells: list[dict[str, Any]]) -> Any:
    figure, axis = panel(3.6)
    axis.plot([0, 1], [1, 0], "--", color=GREY, lw=1.2, label="1 - codim / T")
    for law, colour, mark in zip(dict.fromkeys(c["law"] for c in cells), [*LAWS, COLOURS["NL-MTL[P]"], INK], MARKS):
        members = [c for c in cells if c["law"] == law]
        low, middle, high = np.array([np.quantile(c["ratio"], [0.25, 0.5, 0.75]) for c in members]).T
        bars = [middle - low, high - middle]
        share = [c["share"] for c in members]
        axis.errorbar(share, middle, bars, fmt=mark, color=colour, ms=5, lw=1, capsize=2, label=law)
    axis.set(xlabel="codimension / T", ylabel="error with the law / without", xlim=(0, 1), ylim=(0, None))
    legend_below(figure, axis)
    return figure

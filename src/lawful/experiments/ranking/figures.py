"""Figures of the ranking table."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.experiments._figures import COLOURS, GREY, INK, legend_below, panel

OPEN = {"mfc": "white", "mew": 1.2}


def colour_of(name: str) -> str:
    for family in ("NL-MTL", "STL", "MTRL"):
        if name.startswith(family):
            return COLOURS[family]
    return GREY


def losses(systems: list[tuple[str, np.ndarray, tuple[float, float] | None]], chance: float) -> Any:
    """A dot with the standard deviation for each system (label, N1 by trial, the paper's mean and deviation), top to bottom."""
    figure, axis = panel(0.9 + 0.24 * len(systems))
    at = -np.arange(len(systems))
    for y, (name, v, paper) in zip(at, systems):
        spread = float(v.std(ddof=1)) if len(v) > 1 else 0.0
        mark = "s" if "defaults" in name else "o"
        axis.errorbar(v.mean(), y, xerr=spread, fmt=mark, color=colour_of(name), ms=5, lw=1.4, capsize=2)
        if paper is not None:
            axis.errorbar(paper[0], y, xerr=paper[1], fmt="D", color=INK, ms=4.5, lw=1, capsize=2, **OPEN)
    axis.plot([], [], "o", color=GREY, ms=5, label="here (N1)")
    axis.plot([], [], "D", color=INK, ms=4.5, label="paper", **OPEN)
    axis.axvline(chance, ls=":", color=GREY, lw=1.2, label="random order")
    axis.set_yticks(at, [name for name, _, _ in systems], fontsize=8)
    axis.set_ylim(at[-1] - 0.7, 0.7)
    axis.set_xlabel("rank loss")
    legend_below(figure, axis, 3)
    return figure


def differences(systems: list[tuple[str, dict[str, np.ndarray]]], mine: str) -> Any:
    """N1 of each system less that of `mine`, a dot per trial: protocol A above, B below."""
    figure, axis = panel(1.0 + 0.3 * len(systems))
    at = -np.arange(len(systems), dtype=float)
    for y, (name, by_protocol) in zip(at, systems):
        for protocol, d in by_protocol.items():
            height = y + (0.16 if protocol == "A" else -0.16)
            look = {} if protocol == "A" else OPEN
            axis.plot(d, np.full(len(d), height), "o", color=colour_of(name), ms=3.5, alpha=0.8, **look)
            axis.plot([d.mean()] * 2, [height - 0.13, height + 0.13], "-", color=INK, lw=1.6)
    axis.plot([], [], "o", color=GREY, ms=4, label="A, a trial")
    axis.plot([], [], "o", color=GREY, ms=4, label="B, a trial", **OPEN)
    axis.plot([], [], "-", color=INK, lw=1.6, label="mean")
    axis.axvline(0, color=INK, lw=0.8)
    axis.set_yticks(at, [name for name, _ in systems], fontsize=8)
    axis.set_ylim(at[-1] - 0.7, 0.7)
    axis.set_xlabel(f"N1 less that of {mine}\n(right of 0: worse than it)")
    legend_below(figure, axis, 3)
    return figure

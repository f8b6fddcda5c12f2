"""Figures of the Sarcos experiment."""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.experiments._figures import COLOURS, GREY, INK, PALE, panel
from lawful.experiments.paper import SARCOS
from lawful.experiments.sarcos.summary import Variant
from lawful.experiments.sarcos.systems import BY_NAME

FONT = 9


def colour(name: str) -> str:
    return COLOURS.get(name.removesuffix("+mean").removesuffix(", identity") if name.startswith("NL") else name, GREY)


def label(name: str) -> str:
    return name + (" †" if BY_NAME[name].cloud else "")


def _left(axis: Any, names: list[str]) -> None:
    """Names down the left side, the first on top."""
    axis.set_yticks(range(len(names)), [label(name) for name in names], fontsize=FONT)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.tick_params(labelsize=FONT)
    axis.grid(False, axis="y")


def differences(variant: Variant, names: list[str], base: str = "STL") -> Any:
    """Less STL: a dot for each split, mean with standard error."""
    figure, axis = panel(0.6 + 0.27 * len(names))
    axis.axvline(0, color=INK, lw=1)
    for i, name in enumerate(names):
        d = variant.ev(name) - variant.ev(base)
        axis.scatter(d, np.full(len(d), i + 0.25), s=12, color=colour(name), alpha=0.5, lw=0, zorder=2)
        error = d.std(ddof=1) / np.sqrt(len(d)) if len(d) > 1 else 0.0
        axis.errorbar(d.mean(), i, xerr=error, fmt="D", ms=5, color=colour(name), mec="white", mew=0.6, capsize=3, zorder=3)
    _left(axis, names)
    axis.set_xlabel(f"explained variance less {base}'s, points", fontsize=FONT)
    return figure


def beside_paper(found: dict[str, Variant]) -> Any:
    """The paper's number and ours for each system of its table."""
    systems = [s for s in BY_NAME.values() if s.paper]
    figure, axis = panel(0.95 + 0.36 * len(systems))
    shift = {"standardised": 0.0, "raw": 0.2}
    style = {"standardised": ("o", "ours, standardised inputs"), "raw": ("s", "ours, raw inputs")}
    shown = [v for v in style if v in found]
    for i, system in enumerate(systems):
        mean, sd = SARCOS[system.paper]
        axis.errorbar(mean, i - 0.2, xerr=sd, fmt="|", ms=9, mew=2, color=INK, elinewidth=1, label="paper" if i == 0 else None)
        for name in shown:
            values = found[name].ev(system.name)
            sd = values.std(ddof=1) if len(values) > 1 else 0.0
            marker, text = style[name]
            axis.errorbar(
                values.mean(),
                i + shift[name],
                xerr=sd,
                fmt=marker,
                ms=5,
                color=COLOURS["NL-MTL"] if name == "standardised" else COLOURS["STL"],
                elinewidth=1,
                label=text if i == 0 else None,
            )
    _left(axis, [system.name for system in systems])
    axis.set_xlabel("explained variance, %  (mean and standard deviation)", fontsize=FONT)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def torques(variant: Variant, names: list[str]) -> Any:
    """A heat-map: explained variance of each torque."""
    figure, axis = panel(0.75 + 0.3 * len(names))
    table = np.array([variant.each(name).mean(axis=0) for name in names])
    axis.grid(False)
    axis.imshow(np.clip(table, 0, 100), cmap="cividis", vmin=0, vmax=100, aspect="auto")
    for (i, t), value in np.ndenumerate(table):
        axis.text(t, i, f"{value:.0f}", ha="center", va="center", fontsize=FONT, color="black" if value > 55 else "white")
    axis.set_xticks(range(table.shape[1]), [str(t + 1) for t in range(table.shape[1])])
    axis.set_yticks(range(len(names)), [label(name) for name in names])
    axis.tick_params(labelsize=FONT, length=0)
    axis.spines[:].set_visible(False)
    axis.set_xlabel("torque", fontsize=FONT)
    return figure


def relaxations(found: dict[str, Variant]) -> Any:
    """delta and mu that the folds chose; where they kept the exact set, on the left."""
    figure, axis = panel(0.7 + 0.3 * 2 * len(found))
    lowest = 1e-7
    names: list[str] = []
    axis.axvspan(lowest / 4, 3e-6, color=PALE, alpha=0.5, lw=0)
    for inputs, variant in found.items():
        for system, key, symbol in (("NL-MTL[R]", "delta", "δ"), ("NL-MTL[P]", "mu", "μ")):
            values = np.array([lowest if v is None else v for v in variant.chosen(system, key)])
            offsets = np.linspace(-0.25, 0.25, len(values)) if len(values) > 1 else np.zeros(1)
            axis.scatter(values, len(names) + offsets, s=16, color=colour(system), alpha=0.8, lw=0)
            names.append(f"{symbol}, {inputs}")
    axis.set_xscale("log")
    axis.set_xlim(lowest / 4, 4e5)
    axis.set_xticks([lowest, 1e-4, 1e-2, 1, 1e2, 1e4], ["exact", "1e-4", "0.01", "1", "100", "1e4"])
    axis.minorticks_off()
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.grid(False, axis="y")
    axis.tick_params(labelsize=FONT)
    axis.set_xlabel("chosen value (one dot for each split)", fontsize=FONT)
    return figure

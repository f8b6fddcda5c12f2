"""What `doctor` found, in words, as a table, as a page and as a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from typing import Any

import numpy as np

from lawful._html import card, table
from lawful.report import html
from lawful.report.blocks import Bullets, Figure, Section, Table, Text
from lawful.report.pictures import need_matplotlib

ALARM, NOTE = "alarm", "note"
SHOWN = 12  # equations in a notebook


@dataclass(frozen=True)
class Finding:
    """level: "alarm" (something is wrong) or "note"; kind: one word; subject: an equation, an output or "data".

    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import Equations, doctor
    >>> d = doctor(X, Y + 0.01 * np.random.default_rng(0).standard_normal(Y.shape), Equations("y1**2 + y2**2 = 2"))
    >>> d.alarms[0].subject
    '`y1**2 + y2**2 = 2`'
    """

    level: str
    kind: str
    subject: str
    sentence: str
    numbers: dict[str, float] = field(default_factory=dict)
    rows: tuple[Any, ...] = ()  # labels of the rows concerned

    def __str__(self) -> str:
        return f"{self.subject}: {self.sentence}" if self.subject else self.sentence


@dataclass(frozen=True)
class Tested:
    """One equation or inequality at the labels."""

    name: str
    kind: str  # "=" or "<="
    n: int
    mean: float
    error: float
    noise: float
    p: float
    sigma: float
    active: float = np.nan  # share of rows at the border of an inequality


@dataclass
class Diagnosis:
    """What `doctor` found. `print` it, or look at `alarms`, `notes`, `equations` (a table) and `help` (is the law worth it).

    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import Equations, doctor
    >>> d = doctor(X, Y + 0.01 * np.random.default_rng(0).standard_normal(Y.shape), Equations("y1**2 + y2**2 = 1"))
    >>> d.alarms
    []
    """

    findings: list[Finding]
    equations: list[Tested]
    help: dict[str, float]
    untested: list[str]
    z: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # residuals in units of noise

    @property
    def alarms(self) -> list[Finding]:
        return [f for f in self.findings if f.level == ALARM]

    @property
    def notes(self) -> list[Finding]:
        return [f for f in self.findings if f.level == NOTE]

    @property
    def sound(self) -> bool:
        """Whether nothing was found that is wrong."""
        return not self.alarms

    def __str__(self) -> str:
        lines = ["No alarm." if self.sound else f"{len(self.alarms)} alarm{'s' * (len(self.alarms) > 1)}:"]
        lines += [f"  ! {finding}" for finding in self.alarms]
        if self.equations:
            width = max(len(e.name) for e in self.equations)
            lines += ["", f"{'at the labels':<{width}}  {'rows':>5} {'mean':>10} {'noise':>10} {'sigma':>6}"]
            lines += [f"{e.name:<{width}}  {e.n:>5} {e.mean:>+10.3g} {e.noise:>10.3g} {e.sigma:>6.1f}" for e in self.equations]
        lines += [""] * bool(self.notes) + [f"  - {finding}" for finding in self.notes]
        lines += [f"  ? not tested: {what}" for what in self.untested]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """For notebooks: alarms, the equations at the labels, notes."""
        said = [f"<div>! {escape(str(finding))}</div>" for finding in self.alarms]
        if self.equations:
            rows = [[e.name, e.n, f"{e.mean:+.3g}", f"{e.noise:.3g}", f"{e.sigma:.1f}"] for e in self.equations[:SHOWN]]
            said.append(table(["at the labels", "rows", "mean", "noise", "sigma"], rows))
            said += [f"<div>… and {len(self.equations) - SHOWN} more</div>"] * (len(self.equations) > SHOWN)
        said += [f"<div>{escape(str(finding))}</div>" for finding in self.notes]
        said += [f"<div>not tested: {escape(what)}</div>" for what in self.untested]
        return card(f"Diagnosis: {len(self.alarms) or 'no'} alarm{'s' * (len(self.alarms) > 1)}", "".join(said))

    def to_frame(self) -> Any:
        """The equations as a DataFrame, one row each."""
        import pandas as pd

        return pd.DataFrame([vars(e) for e in self.equations])

    def to_html(self) -> str:
        """A page of its own."""
        tested = Table(
            ["equation", "rows", "mean at labels", "noise", "sigma", "p"],
            [
                [f"`{e.name}`", str(e.n), f"{e.mean:+.3g}", f"{e.noise:.3g}", f"{e.sigma:.1f}", f"{e.p:.2g}"]
                for e in self.equations
            ],
        )
        summary = [Bullets([str(f) for f in self.alarms])] if self.alarms else [Text("No alarm.")]
        sections = [Section("Each equation at the labels", [tested])] if self.equations else []
        if self.z and find_spec("matplotlib") is not None:
            words = "Residuals of each equation at the labels in units of their noise; the line is what noise alone would give."
            sections.append(Section("Residuals", [Figure("residuals", self._page, words, f"histograms: {', '.join(self.z)}")]))
        if self.notes:
            sections.append(Section("Noted", [Bullets([str(f) for f in self.notes])]))
        if self.untested:
            sections.append(Section("Not tested", [Bullets(self.untested)]))
        return html.document("Does the law fit the data?", summary, sections)

    def plot(self, figure: Any = None) -> Any:
        """Residuals of each equation in units of their noise, beside what noise alone would give. A matplotlib figure."""
        need_matplotlib()
        import matplotlib.pyplot as plt

        shown = list(self.z.items())[:12]
        columns = min(3, max(1, len(shown)))
        rows = max(1, -(-len(shown) // columns))
        figure = plt.figure() if figure is None else figure
        figure.set_size_inches(max(4.5, 3.2 * columns), 2.8 * rows)
        figure.set_layout_engine("constrained")
        for k, (name, z) in enumerate(shown):
            ax = figure.add_subplot(rows, columns, k + 1)
            end = float(np.clip(1.15 * np.nanquantile(np.abs(z), 0.99), 4, 40)) if len(z) else 4.0
            grid = np.linspace(-end, end, 201)
            ax.hist(np.clip(z, -end, end), bins=31, range=(-end, end), density=True, color="#0072B2", alpha=0.7)
            ax.plot(grid, np.exp(-0.5 * grid**2) / np.sqrt(2 * np.pi), color="#D55E00", label="noise alone")
            ax.set_title(name if len(name) < 30 else name[:27] + "...", parse_math=False)  # a dollar is a dollar
            ax.set(yticks=[], xlabel="residual / noise")
            ax.spines[["top", "right", "left"]].set_visible(False)
        if shown:
            figure.legend(*ax.get_legend_handles_labels(), loc="outside upper right", frameon=False)
        return figure

    def _page(self) -> Any:
        """The picture, of which nobody but the page knows."""
        from matplotlib.figure import Figure as Canvas

        return self.plot(Canvas())

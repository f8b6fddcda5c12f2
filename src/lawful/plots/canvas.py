"""What all displays share: colours that everybody can tell apart, axes, and matplotlib loaded when something is drawn.

Colours are those of Okabe and Ito, which differ for eyes with any of the usual colour deficiencies, and in print by their
lightness. Each has one meaning throughout: the law is green, what obeys it blue, what does not vermilion. Text and data take
the ink of the current matplotlib style, so that a dark style draws on dark.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "DIVERGING",
    "LAW",
    "LAWFUL",
    "LAWLESS",
    "OKABE_ITO",
    "SEQUENTIAL",
    "STATUS_COLOURS",
    "Display",
    "bare",
    "ink",
    "law_of",
    "need",
    "new_figure",
    "output_names",
    "rows_of",
    "short",
]

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
LAWFUL = OKABE_ITO[0]
LAWLESS = OKABE_ITO[1]
LAW = OKABE_ITO[2]
SEQUENTIAL = "cividis"  # maps for the same eyes
DIVERGING = "PuOr"
STATUS_COLOURS = {
    "ok": OKABE_ITO[0],
    "averaged": OKABE_ITO[5],
    "low_confidence": OKABE_ITO[4],
    "not_converged": OKABE_ITO[3],
    "infeasible": OKABE_ITO[1],
}


def need(who: str) -> None:
    """Say what to install before anything is computed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{who} draws with matplotlib, which is not installed; pip install 'lawful[plot]' brings it"
        ) from error


def new_figure(*args: Any, **kwargs: Any) -> Any:
    """A figure that no window knows of."""
    need("lawful.plots")
    from matplotlib.figure import Figure

    return Figure(*args, **kwargs)


def ink() -> str:
    import matplotlib

    return str(matplotlib.rcParams["text.color"])


class Display:
    """Numbers that can be drawn. `plot(ax=None)` draws them, and then `ax_` and `figure_` are what they were drawn on."""

    ax_: Any
    figure_: Any

    def _axes(self, ax: Any, size: tuple[float, float] = (5.0, 4.0), projection: str | None = None) -> Any:
        """The given axes, or new ones; `ax_` and `figure_` are set."""
        need(type(self).__name__)
        if ax is None:
            import matplotlib.pyplot as plt

            figure = plt.figure(figsize=size, layout="constrained")
            ax = figure.add_subplot(projection=projection)
        elif projection is not None and ax.name != projection:
            ax = self._replaced(ax, projection)
        self.ax_, self.figure_ = ax, ax.figure
        if projection is None:
            bare(ax)
        return ax

    @staticmethod
    def _replaced(ax: Any, projection: str) -> Any:
        """Axes of another kind in the same place."""
        place, figure = ax.get_subplotspec(), ax.figure
        if place is None:
            raise ValueError("these axes are flat and have no place in a grid; give axes with projection='3d'")
        ax.remove()
        return figure.add_subplot(place, projection=projection)

    def _grid(self, ax: Any, rows: int, columns: int, size: tuple[float, float]) -> np.ndarray:
        """(rows, columns) axes in a new figure, or in the place of the given ones."""
        need(type(self).__name__)
        if ax is None:
            import matplotlib.pyplot as plt

            self.figure_ = plt.figure(figsize=size, layout="constrained")
            axes = self.figure_.subplots(rows, columns, squeeze=False)
        elif np.size(ax) == rows * columns:
            axes = np.asarray(ax, dtype=object).reshape(rows, columns)
            self.figure_ = axes[0, 0].figure
        else:
            if np.size(ax) != 1:
                raise ValueError(f"{type(self).__name__} needs {rows} x {columns} axes, or one to divide; got {np.size(ax)}")
            whole = np.asarray(ax, dtype=object).ravel()[0]
            whole.set_axis_off()
            self.figure_ = whole.figure
            axes = whole.get_subplotspec().subgridspec(rows, columns).subplots(squeeze=False)
        for one in axes.ravel():
            bare(one)
        self.ax_ = axes
        return axes


def bare(ax: Any) -> None:
    """Axes without clutter."""
    ax.spines[["top", "right"]].set_visible(False)


def output_names(names: Any, count: int) -> list[str]:
    return [f"y{t + 1}" for t in range(count)] if names is None else [str(name) for name in names]


def short(name: str, length: int = 28) -> str:
    """A name as a label: not too long, and a dollar sign in it begins no formula."""
    return (name if len(name) <= length else name[: length - 1] + "…").replace("$", r"\$")


def rows_of(values: Any) -> np.ndarray:
    """(m, T) floats from an array, a column or a table."""
    values = np.asarray(values, dtype=float)
    return values[:, None] if values.ndim == 1 else values


def law_of(estimator: Any) -> Any:
    """The fitted law of an estimator, without the tube or the penalty around it; None where it has none."""
    inner = getattr(estimator, "best_estimator_", estimator)
    law: Any = getattr(inner, "constraint_", None)
    while hasattr(law, "base_"):
        law = law.base_
    return law

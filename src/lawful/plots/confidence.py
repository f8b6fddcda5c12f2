"""Where in the space of inputs a model is sure of itself."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lawful._array import to_numpy
from lawful._checks import check_choice
from lawful.plots.canvas import LAWFUL, SEQUENTIAL, Display, ink, need, short

__all__ = ["ConfidenceDisplay"]

WHAT = {
    "margin": "margin to the second-best solution",
    "std": "standard deviation before the law",
    "value": "what the law cost (weighted squared distance)",
}


class ConfidenceDisplay(Display):
    """A map over one or two inputs, the others held at their medians: margin, standard deviation, or the work of the law.

    Parameters
    ----------
    grid : list of one or two (k,) arrays, the values of the inputs
    values : (k,) or (k2, k1) what is drawn
    what : "margin", "std" or "value"
    names : of the inputs
    points : (m, 1 or 2) where the data are, or None

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import ConstrainedRegressor, Sphere
    >>> from lawful.plots import ConfidenceDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (60, 2))
    >>> model = ConstrainedRegressor(Sphere()).fit(X, np.c_[np.cos(X[:, 0]), np.sin(X[:, 0])])
    >>> ConfidenceDisplay.from_estimator(model, X, what="std", resolution=8).values.shape
    (8, 8)
    """

    def __init__(self, grid: list[np.ndarray], values: np.ndarray, what: str, names: list[str], points: Any = None) -> None:
        self.grid, self.values, self.what, self.names, self.points = grid, values, what, names, points

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, what: str = "margin", features: Any = None, resolution: int = 60, ax: Any = None
    ) -> Self:
        """features: one or two columns of X, numbers or names (default: the first two)."""
        need(cls.__name__)
        check_choice(cls.__name__, "what", what, WHAT)
        columns = [str(name) for name in getattr(X, "columns", [f"x{j + 1}" for j in range(np.shape(X)[1])])]
        data = np.asarray(X, dtype=float)
        chosen = (
            list(range(min(2, len(columns))))
            if features is None
            else [_number(f, columns, cls.__name__) for f in ([features] if np.ndim(features) == 0 else features)]
        )
        if len(chosen) not in (1, 2):
            raise ValueError(f"{cls.__name__}: features={features!r} names {len(chosen)} inputs; one or two can be drawn")
        grid = [np.linspace(data[:, j].min(), data[:, j].max(), resolution) for j in chosen]
        rows = np.repeat(np.median(data, axis=0)[None], resolution ** len(chosen), axis=0)
        for j, values in zip(chosen, np.meshgrid(*grid)):
            rows[:, j] = values.ravel()
        given = rows if not hasattr(X, "columns") else type(X)(rows, columns=X.columns)
        values = cls._of(estimator, given, what).reshape([resolution] * len(chosen))
        return cls(grid, values, what, [columns[j] for j in chosen], data[:, chosen]).plot(ax=ax)

    @staticmethod
    def _of(estimator: Any, X: Any, what: str) -> np.ndarray:
        d = estimator.decode(X)
        if what != "std":
            return to_numpy(getattr(d, what))
        if d.std is None:
            raise ValueError("ConfidenceDisplay: this surrogate knows no standard deviation; what='margin' would do")
        return to_numpy(d.std).mean(axis=1)

    def plot(self, ax: Any = None) -> Self:
        ax = self._axes(ax, (5.4, 4.2))
        shown = np.where(np.isfinite(self.values), self.values, np.nan)
        if len(self.grid) == 1:
            ax.plot(self.grid[0], shown, color=LAWFUL)
            ax.plot(self.points[:, 0], np.full(len(self.points), np.nanmin(shown, initial=0.0)), "|", color=ink(), alpha=0.4)
            ax.set(xlabel=short(self.names[0]), ylabel=WHAT[self.what])
            return self
        if np.isfinite(shown).any():
            image = ax.pcolormesh(*self.grid, shown, cmap=SEQUENTIAL, shading="auto", rasterized=True)
            self.figure_.colorbar(image, ax=ax, label=WHAT[self.what])
        else:
            ax.set_title("one solution everywhere: there is no second one", fontsize="small")
        if self.points is not None:
            ax.plot(*self.points.T, ".", color="white", mec="black", mew=0.4, ms=4, alpha=0.8)
        ax.set(xlabel=short(self.names[0]), ylabel=short(self.names[1]))
        return self


def _number(feature: Any, columns: list[str], who: str) -> int:
    if str(feature) in columns:
        return columns.index(str(feature))
    try:
        number = int(feature)
        columns[number]
    except (ValueError, IndexError):
        raise ValueError(f"{who}: there is no input {feature!r}; choose from {', '.join(columns[:20])}") from None
    return number

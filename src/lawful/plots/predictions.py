"""Predictions and the law that they obey."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Self

import numpy as np

from lawful._array import to_numpy
from lawful.plots.canvas import LAW, LAWFUL, LAWLESS, Display, bare, ink, law_of, need, output_names, rows_of, short
from lawful.plots.laws import draw_law, sampled

__all__ = ["PredictionDisplay"]

LAWS = 5  # sets C(x) that are drawn where they depend on x
PAIRED = 6  # outputs whose pairs are drawn
MARGIN = 0.08  # of the range of the points, around them


class PredictionDisplay(Display):
    """Predictions with C drawn: curves for two outputs, surfaces for three, pairwise projections for more.

    Parameters
    ----------
    predictions : (m, T) what obeys the law; (0, T) for a picture of the labels alone
    constraint : a fitted set, or None
    unconstrained : (m, T) what was predicted before the law; lines lead from there to the predictions
    labels : (m, T) observed outputs, NaN where missing
    X : (m, d) inputs, for laws that depend on them
    names : of the outputs

    Attributes
    ----------
    ax_, figure_ : the matplotlib axes (an array of them for pairwise projections) and the figure

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import ConstrainedRegressor, Equations
    >>> from lawful.plots import PredictionDisplay
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> Y = np.c_[np.cos(x), np.sin(x)] + 0.1 * np.random.default_rng(0).standard_normal((60, 2))
    >>> model = ConstrainedRegressor(Equations("y1**2 + y2**2 = 1")).fit(x, Y)
    >>> display = PredictionDisplay.from_estimator(model, x, Y)
    >>> display.ax_.get_xlabel()
    'y1'
    """

    def __init__(
        self,
        predictions: Any,
        constraint: Any = None,
        *,
        unconstrained: Any = None,
        labels: Any = None,
        X: Any = None,
        names: Any = None,
    ) -> None:
        self.predictions = rows_of(predictions)
        self.constraint = constraint
        self.unconstrained = None if unconstrained is None else rows_of(unconstrained)
        self.labels = None if labels is None else rows_of(labels)
        self.X = X
        self.names = output_names(names, self.predictions.shape[1])

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, Y: Any = None, *, unconstrained: bool = True, ax: Any = None) -> Self:
        """Predict X with a fitted estimator and draw. Y: what was observed. unconstrained: draw also what the law moved."""
        need(cls.__name__)
        before = rows_of(to_numpy(estimator.objective(X).center)) if unconstrained and hasattr(estimator, "objective") else None
        return cls(
            estimator.predict(X),
            law_of(estimator),
            unconstrained=before,
            labels=Y,
            X=np.asarray(X, dtype=float) if np.ndim(X) == 2 else None,
            names=getattr(estimator, "output_names_", None),
        ).plot(ax=ax)

    @classmethod
    def from_predictions(cls, predictions: Any, constraint: Any = None, *, ax: Any = None, **parts: Any) -> Self:
        """Draw predictions (m, T) that somebody else made; further words as for the class."""
        need(cls.__name__)
        return cls(predictions, constraint, **parts).plot(ax=ax)

    # ------------------------------------------------------------------ drawing

    def plot(self, ax: Any = None) -> Self:
        """Draw into the given axes, or a new figure."""
        T = self.predictions.shape[1]
        if T == 1:
            self._against_input(self._axes(ax))
        elif T <= 3:
            self._together(self._axes(ax, (5.2, 5.0), None if T == 2 else "3d"))
        else:
            self._pairs(ax)
        return self

    def limits(self) -> np.ndarray:
        """(T, 2) from where to where the outputs are."""
        known = [part for part in (self.predictions, self.unconstrained, self.labels) if part is not None]
        points = np.concatenate(known)
        low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
        room = np.where(high > low, high - low, np.abs(high) + 1e-9) * MARGIN
        return np.c_[low - room, high + room]

    def _together(self, ax: Any) -> None:
        limits = self.limits()
        if self.constraint is not None:
            for k, x in enumerate(self._inputs_of_laws()):
                draw_law(ax, self.constraint, limits, x=x, label="law" if k == 0 else None)
        self._dots(ax, list(range(len(limits))))
        ax.set_xlim(*limits[0])
        ax.set_ylim(*limits[1])
        ax.set(xlabel=short(self.names[0]), ylabel=short(self.names[1]))
        if len(limits) == 3:
            ax.set_zlim(*limits[2])
            ax.set_zlabel(short(self.names[2]))
        if np.ptp(limits, axis=1).max() < 5 * np.ptp(limits, axis=1).min():
            ax.set_aspect("equal")
        # Above the axes: a law may run anywhere inside them.
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize="small", frameon=False)

    def _inputs_of_laws(self) -> list[Any]:
        """One None for a law that is the same everywhere; else the inputs of some rows."""
        if not self.constraint.depends_on_x:
            return [None]
        if self.X is None:
            return []
        rows = np.unique(np.linspace(0, len(self.X) - 1, min(LAWS, len(self.X))).astype(int))
        return [self.X[row] for row in rows]

    def _dots(self, ax: Any, outputs: list[int]) -> None:
        """Labels, unconstrained predictions, predictions, and the moves from the second to the third."""
        c = self.predictions[:, outputs]
        if self.labels is not None:
            ax.plot(*self.labels[:, outputs].T, ".", color=ink(), ms=4, alpha=0.35, zorder=2, label="observed")
        if self.unconstrained is not None:
            w = self.unconstrained[:, outputs]
            moves = np.stack([w, c, np.full_like(c, np.nan)], axis=1).reshape(-1, len(outputs))
            ax.plot(*moves.T, color=LAWLESS, lw=0.6, alpha=0.5, zorder=2)
            ax.plot(*w.T, "x", color=LAWLESS, ms=4, zorder=3, label="before the law")
        if len(c):
            ax.plot(*c.T, "o", color=LAWFUL, ms=3.5, zorder=4, label="prediction")

    def _pairs(self, ax: Any) -> None:
        """A triangle of axes: every output against every other."""
        T = min(self.predictions.shape[1], PAIRED)
        axes = self._grid(ax, T - 1, T - 1, (1.85 * (T - 1), 1.8 * (T - 1)))
        limits = self.limits()
        behind = None if self.constraint is None else self._points_of_law()
        for i, j in combinations(range(T), 2):
            one = axes[j - 1, i]
            if behind is not None:
                one.plot(*behind[:, [i, j]].T, ".", color=LAW, ms=2, alpha=0.3, zorder=1, label="law")
            self._dots(one, [i, j])
            one.set(xlim=limits[i], ylim=limits[j])
            one.set_xlabel(short(self.names[i], 14)) if j == T - 1 else one.set_xticklabels([])
            one.set_ylabel(short(self.names[j], 14)) if i == 0 else one.set_yticklabels([])
        for i, j in np.ndindex(T - 1, T - 1):
            if j > i:
                hidden: Any = axes[i, j]
                hidden.set_visible(False)
        where: Any = axes[0, 1]
        where.set_visible(True)
        where.set_axis_off()
        where.legend(*axes[0, 0].get_legend_handles_labels(), frameon=False, loc="center left", fontsize="small")

    def _points_of_law(self) -> np.ndarray | None:
        if not self.constraint.depends_on_x:
            return sampled(self.constraint)
        return None  # each row has a law of its own, and its prediction is a point of it

    def _against_input(self, ax: Any) -> None:
        bare(ax)
        known = self.predictions if len(self.predictions) else self.labels
        x = np.arange(0 if known is None else len(known)) if self.X is None else self.X[:, 0]
        order = np.argsort(x, kind="stable")
        if self.labels is not None:
            ax.plot(x, self.labels[:, 0], ".", color=ink(), ms=4, alpha=0.35, label="observed")
        for values, colour, label in (
            (self.unconstrained, LAWLESS, "before the law"),
            (self.predictions if len(self.predictions) else None, LAWFUL, "prediction"),
        ):
            if values is not None:
                ax.plot(x[order], values[order, 0], color=colour, lw=1.4, label=label)
        ax.set(xlabel="row" if self.X is None else "first input", ylabel=short(self.names[0]))
        ax.legend(frameon=False, fontsize="small")

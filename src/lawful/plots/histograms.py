"""How far from the law, and how sure of the branch: residuals and margins of many rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lawful._array import to_numpy
from lawful.plots.canvas import LAWFUL, LAWLESS, OKABE_ITO, STATUS_COLOURS, Display, ink, law_of, need, rows_of

__all__ = ["MarginDisplay", "ResidualDisplay"]

EXACT = 1e-17  # what is zero is drawn here
BINS = 40


class ResidualDisplay(Display):
    """Violations of the law, on a logarithmic axis: of predictions, of what was predicted before the law, of labels.

    Parameters
    ----------
    residuals : dict {name: (m,) violations in the law's units}; zeros are drawn at 1e-17

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import Sphere
    >>> from lawful.plots import ResidualDisplay
    >>> C = Sphere().fit(np.zeros((1, 2)))
    >>> points = np.random.default_rng(0).standard_normal((50, 2))
    >>> display = ResidualDisplay.from_predictions({"guess": points, "projected": C.nearest(points)}, C)
    >>> display.ax_.get_xlabel()
    'violation of the law'
    """

    def __init__(self, residuals: dict[str, np.ndarray]) -> None:
        self.residuals = residuals

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, Y: Any = None, *, ax: Any = None) -> Self:
        """Predictions of a fitted estimator before and after the law, and labels (rows without gaps)."""
        need(cls.__name__)
        C = law_of(estimator).at(np.asarray(X, dtype=float))
        found = {"before the law": C.residual(rows_of(to_numpy(estimator.objective(X).center)))}
        found["prediction"] = C.residual(rows_of(estimator.predict(X)))
        if Y is not None:
            Y = rows_of(Y)
            whole = np.flatnonzero(np.isfinite(Y).all(axis=1))
            found["observed"] = C.rows(whole).residual(Y[whole])
        return cls({name: to_numpy(values) for name, values in found.items()}).plot(ax=ax)

    @classmethod
    def from_predictions(cls, predictions: dict[str, Any], constraint: Any, X: Any = None, *, ax: Any = None) -> Self:
        """{name: (m, T)} under a fitted set; X: their inputs, where the law depends on them."""
        need(cls.__name__)
        C = constraint if X is None else constraint.at(np.asarray(X, dtype=float))
        return cls({name: to_numpy(C.residual(rows_of(c))) for name, c in predictions.items()}).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        ax = self._axes(ax, (5.6, 3.6))
        colours = {"before the law": LAWLESS, "prediction": LAWFUL, "observed": ink()}
        spare = iter(OKABE_ITO[3:] * 9)
        logs = {name: np.log10(np.maximum(r[np.isfinite(r)], EXACT)) for name, r in self.residuals.items()}
        every = np.concatenate([*logs.values(), np.zeros(0)])
        low, high = (every.min(), every.max()) if len(every) else (-17.0, 0.0)
        bins = np.logspace(low - 0.1, high + 0.1, BINS + 1)
        for name, values in logs.items():
            colour = colours.get(name) or next(spare)
            ax.hist(10.0**values, bins=bins, color=colour, alpha=0.45, label=f"{name} ({len(values)})")
            ax.hist(10.0**values, bins=bins, color=colour, histtype="step", lw=1.4)
        ax.set_xscale("log")
        ax.set(xlabel="violation of the law", ylabel="rows")
        ax.legend(frameon=False, fontsize="small")
        return self


class MarginDisplay(Display):
    """How much worse the second-best solution is: small margins are rows that could have gone to another branch.

    Parameters
    ----------
    margin : (m,) infinite where no second solution was seen; these are counted in the legend, not drawn
    status : (m,) of each row

    Examples
    --------
    >>> import numpy as np
    >>> from lawful.plots import MarginDisplay
    >>> display = MarginDisplay(np.array([0.1, 0.3, np.inf]), np.array(["ok", "ok", "ok"])).plot()
    >>> display.ax_.get_legend_handles_labels()[1]
    ['ok (2)', '1 with no other solution']
    """

    def __init__(self, margin: Any, status: Any) -> None:
        self.margin, self.status = np.asarray(margin, dtype=float), np.asarray(status)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Any = None) -> Self:
        """Of the decoding of X."""
        need(cls.__name__)
        return cls.from_predictions(estimator.decode(X), ax=ax)

    @classmethod
    def from_predictions(cls, decoding: Any, *, ax: Any = None) -> Self:
        """Of a `Decoding`, as `decode(X)` returns it."""
        need(cls.__name__)
        return cls(to_numpy(decoding.margin), decoding.status).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        ax = self._axes(ax, (5.6, 3.6))
        seen = np.isfinite(self.margin)
        size = np.maximum(np.abs(self.margin[seen]), EXACT)
        found = [(name, size[self.status[seen] == name]) for name in STATUS_COLOURS if (self.status[seen] == name).any()]
        if found:
            bins = np.logspace(np.log10(size.min()) - 0.1, np.log10(size.max()) + 0.1, BINS + 1)
            values, colours = [v for _, v in found], [STATUS_COLOURS[name] for name, _ in found]
            ax.hist(values, bins=bins, stacked=True, color=colours, label=[f"{name} ({len(v)})" for name, v in found])
            ax.set_xscale("log")
        else:
            ax.set(xticks=[], yticks=[])
        if alone := int((~seen).sum()):
            ax.plot([], [], " ", label=f"{alone} with no other solution")
        ax.set(xlabel="margin to the second-best solution", ylabel="rows")
        ax.legend(frameon=False, fontsize="small", loc="best" if found else "center")
        return self

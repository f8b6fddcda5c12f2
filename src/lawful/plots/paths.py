"""What a search saw: held-out error against lambda, delta or mu."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lawful._checks import check_choice
from lawful.plots.canvas import LAW, LAWFUL, OKABE_ITO, Display, need, output_names, short

__all__ = ["PathDisplay"]

LABELS = {"lam": "λ", "delta": "δ, radius of the tube around the law", "mu": "μ, price of breaking the law"}
LINES = 6  # outputs that have a line of their own


class PathDisplay(Display):
    """Held-out error against a hyper-parameter, what was chosen, and for delta and mu the exact law beside it.

    Parameters
    ----------
    parameter : "lam", "delta" or "mu"
    values : (L,), or (L, T) where every output has its own
    errors : (L, T) held-out error of each output
    chosen : (T,) or a number, or None where the exact law was chosen
    exact : error of the exact law, the mean over outputs; None for lam
    names : of the outputs

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import ConstrainedRegressorCV, Sphere
    >>> from lawful.plots import PathDisplay
    >>> x = np.linspace(-3, 3, 40)[:, None]
    >>> Y = np.c_[np.cos(x), np.sin(x)] + 0.1 * np.random.default_rng(0).standard_normal((40, 2))
    >>> search = ConstrainedRegressorCV(Sphere(), kernels=[1.0], lams=np.logspace(-6, 2, 9), mus=[0.1, 1.0, 10.0]).fit(x, Y)
    >>> PathDisplay.from_estimator(search, "mu").values
    array([ 0.1,  1. , 10. ])
    """

    def __init__(
        self, parameter: str, values: Any, errors: Any, chosen: Any = None, exact: Any = None, names: Any = None
    ) -> None:
        self.parameter, self.chosen, self.exact = parameter, chosen, exact
        self.values, self.errors = np.asarray(values, dtype=float), np.asarray(errors, dtype=float)
        self.names = output_names(names, self.errors.shape[1])

    @classmethod
    def from_estimator(cls, search: Any, parameter: str = "lam", *, ax: Any = None) -> Self:
        """Of a fitted `ConstrainedRegressorCV`."""
        need(cls.__name__)
        check_choice(cls.__name__, "parameter", parameter, LABELS)
        names = getattr(search, "output_names_", None)
        if parameter == "lam":
            if not hasattr(search, "lam_path_"):
                raise ValueError(f"{cls.__name__}: this search has no path of lambda; only ridges have one (surrogate=None)")
            path = search.lam_path_
            return cls("lam", path.lam, path.error, search.best_params_["lam"], names=names).plot(ax=ax)
        table = search.cv_results_
        rows = table["law"] == parameter
        if not rows.any():
            raise ValueError(f"{cls.__name__}: nothing was tried for {parameter}; give the search a grid, {parameter}s=[...]")
        outputs = list(dict.fromkeys(table["output"]))
        values = np.unique(table[parameter][rows])
        errors = [[_least(table, rows & (table[parameter] == v) & (table["output"] == o)) for o in outputs] for v in values]
        exact = float(np.mean([_least(table, (table["law"] == "exact") & (table["output"] == o)) for o in outputs]))
        return cls(parameter, values, errors, search.best_params_[parameter], exact, outputs).plot(ax=ax)

    @classmethod
    def from_predictions(cls, parameter: str, values: Any, errors: Any, *, ax: Any = None, **parts: Any) -> Self:
        """Draw a path that somebody else computed; further words as for the class."""
        need(cls.__name__)
        check_choice(cls.__name__, "parameter", parameter, LABELS)
        return cls(parameter, values, errors, **parts).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        ax = self._axes(ax, (5.4, 3.8))
        L, T = self.errors.shape
        values = np.broadcast_to(self.values.reshape(L, -1), (L, T))
        alone = T <= LINES
        for t in range(T):
            colour = OKABE_ITO[t % 6] if alone else "0.6"
            ax.plot(
                values[:, t],
                self.errors[:, t],
                color=colour,
                lw=1.3 if alone else 0.6,
                label=short(self.names[t], 18) if alone else None,
            )
        if T > 1 and (self.values.ndim == 1 or np.ptp(values, axis=1).max() == 0):
            ax.plot(values[:, 0], self.errors.mean(axis=1), color=LAWFUL if not alone else "0.5", lw=2.2, ls="--", label="mean")
        if self.exact is not None:
            ax.axhline(self.exact, color=LAW, lw=1.6, ls=":", label="exact law" + (" (chosen)" if self.chosen is None else ""))
        self._mark(ax, values)
        ax.set_xscale("log" if (self.values[np.isfinite(self.values)] > 0).all() else "symlog")
        ax.set_yscale("log")
        ax.set(xlabel=LABELS[self.parameter], ylabel="held-out error")
        ax.legend(frameon=False, fontsize="small", ncols=1 + (T > 3 and alone))
        return self

    def _mark(self, ax: Any, values: np.ndarray) -> None:
        """A dot at what was chosen."""
        if self.chosen is None:
            return
        chosen = np.broadcast_to(np.asarray(self.chosen, dtype=float), values.shape[1:])
        at = np.abs(np.log(np.maximum(values, 1e-300)) - np.log(np.maximum(chosen, 1e-300))).argmin(axis=0)
        outputs = np.arange(values.shape[1])
        ax.plot(
            values[at, outputs],
            self.errors[at, outputs],
            "o",
            color=LAWFUL,
            mec="white",
            mew=0.6,
            ms=6,
            zorder=5,
            label="chosen",
        )


def _least(table: dict[str, np.ndarray], rows: np.ndarray) -> float:
    """Of all candidates (kernels, intercepts, lambdas) that were tried with it, the best counts."""
    return float(np.nanmin(table["error"][rows], initial=np.inf))

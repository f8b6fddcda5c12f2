"""How the error falls with the number of rows, beside others."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit

from lawful._array import to_numpy
from lawful.metrics import normalized_mse
from lawful.plots.canvas import LAW, LAWFUL, LAWLESS, OKABE_ITO, Display, need, rows_of, short

__all__ = ["LearningCurveDisplay"]


class LearningCurveDisplay(Display):
    """Held-out error against the number of training rows, with rivals: the mean and its standard error over repetitions.

    Parameters
    ----------
    sizes : (S,) training rows
    errors : dict {name: (S, R) held-out errors}, R repetitions
    ylabel : what they are

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from lawful import ConstrainedRegressor, Sphere
    >>> from lawful.plots import LearningCurveDisplay
    >>> x = np.linspace(-3, 3, 80)[:, None]
    >>> Y = np.c_[np.cos(x), np.sin(x)] + 0.1 * np.random.default_rng(0).standard_normal((80, 2))
    >>> display = LearningCurveDisplay.from_estimator(
    ...     ConstrainedRegressor(Sphere()), x, Y, sizes=[10, 40], rivals={"linear": Ridge()}, repetitions=2
    ... )
    >>> list(display.errors)
    ['with the law', 'without the law', 'linear']
    """

    def __init__(self, sizes: Any, errors: dict[str, Any], ylabel: str = "held-out error over variance") -> None:
        self.sizes, self.ylabel = np.asarray(sizes), ylabel
        self.errors = {name: np.asarray(values, dtype=float) for name, values in errors.items()}

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        Y: Any,
        *,
        sizes: Any = None,
        rivals: dict[str, Any] | None = None,
        repetitions: int = 5,
        test_size: float = 0.25,
        random_state: Any = 0,
        ax: Any = None,
    ) -> Self:
        """Fit the estimator and its rivals on growing parts of the rows; the prediction before the law is a rival for free.

        sizes: training rows (default: five between 10 % and all that are not held out). rivals: {name: any regressor}.
        """
        need(cls.__name__)
        n = len(X)
        splits = list(ShuffleSplit(repetitions, test_size=test_size, random_state=random_state).split(np.arange(n)))
        most = len(splits[0][0])
        sizes = (
            np.unique(np.geomspace(max(5, 0.1 * most), most, 5).astype(int)) if sizes is None else np.asarray(sizes, dtype=int)
        )
        if sizes.max() > most or sizes.min() < 2:
            raise ValueError(
                f"{cls.__name__}: sizes={sizes.tolist()} will not do; of {n} rows, 2 to {most} can be learned from"
            )
        free = hasattr(estimator, "objective")
        models = {"with the law" if free else type(estimator).__name__: estimator, **(rivals or {})}
        found = {name: np.full((len(sizes), repetitions), np.nan) for name in models}
        if free:
            found = {"with the law": found["with the law"], "without the law": found["with the law"].copy(), **found}
        for r, (train, test) in enumerate(splits):
            for s, size in enumerate(sizes):
                for name, model in models.items():
                    fitted = clone(model).fit(_take(X, train[:size]), _take(Y, train[:size]))
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # rows that could not be certified count with their errors
                        found[name][s, r] = _error(_take(Y, test), fitted.predict(_take(X, test)))
                    if free and model is estimator:
                        before = to_numpy(fitted.objective(_take(X, test)).center)
                        found["without the law"][s, r] = _error(_take(Y, test), before)
        return cls(sizes, found).plot(ax=ax)

    @classmethod
    def from_predictions(cls, sizes: Any, errors: dict[str, Any], *, ylabel: str = "held-out error", ax: Any = None) -> Self:
        """Draw errors {name: (S, R)} that were measured elsewhere."""
        need(cls.__name__)
        return cls(sizes, errors, ylabel).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        ax = self._axes(ax, (5.4, 3.8))
        fixed = {"with the law": LAWFUL, "without the law": LAWLESS}
        spare = iter([c for c in OKABE_ITO if c not in (LAW, LAWFUL, LAWLESS)] * 9)
        marks = iter("osD^vP*Xh" * 9)
        for name, values in self.errors.items():
            colour, mean = fixed.get(name) or next(spare), values.mean(axis=1)
            error = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1]) if values.shape[1] > 1 else np.zeros(len(mean))
            ax.plot(self.sizes, mean, color=colour, marker=next(marks), ms=4, lw=1.6, label=short(name))
            ax.fill_between(self.sizes, np.maximum(mean - error, mean * 1e-3), mean + error, color=colour, alpha=0.18, lw=0)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(self.sizes, [str(s) for s in self.sizes])
        ax.minorticks_off()
        ax.set(xlabel="training rows", ylabel=self.ylabel)
        ax.legend(frameon=False, fontsize="small")
        return self


def _take(values: Any, rows: np.ndarray) -> Any:
    return values.iloc[rows] if hasattr(values, "iloc") else np.asarray(values)[rows]


def _error(Y: Any, c: Any) -> float:
    return float(normalized_mse(rows_of(Y), rows_of(c)))

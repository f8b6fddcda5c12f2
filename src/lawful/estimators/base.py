"""The only place where the three verbs meet: encode, regress, decode."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from lawful._array import as_given, to_numpy
from lawful._checks import choice
from lawful.decoders import (
    AVERAGED,
    INFEASIBLE,
    LOW_CONFIDENCE,
    NOT_CONVERGED,
    STATUS,
    Decoder,
    Decoding,
    decode,
    decode_sequence,
    named,
    stack,
)
from lawful.decoders.lagrange import interpreted
from lawful.estimators.judge import AfterDecode
from lawful.losses import Square
from lawful.metrics import r2
from lawful.saving.models import Savable, as_plain
from lawful.sets import Reals
from lawful.sets.typeset import LawShown
from lawful.surrogates import KernelRidge, Portfolio, RegressorSurrogate
from lawful.surrogates.portfolio import with_trees
from lawful.tasks import Tasks, read_inputs, rows_of

ON_FAILURE = ("warn", "raise", "nan", "unconstrained")
CELLS = 2**23  # numbers in the largest array of one batch of predictions


PARTS = {  # what each part must be able to do, and what to give instead
    "constraint": (("fit", "residual", "relative"), "give a set such as Equations('y1**2 + y2**2 = 1') or Sphere()"),
    "loss": (("encodings", "objective"), "give a loss such as Square() or Huber()"),
    "surrogate": (
        ("get_params",),
        'give KernelRidge(), "auto" or any scikit-learn regressor or pipeline, an instance, not the class',
    ),
}


class DecodingWarning(UserWarning):
    """Some rows could not be decoded to a certified answer.

    >>> import warnings
    >>> from lawful import DecodingWarning
    >>> warnings.simplefilter("error", DecodingWarning)  # as strict as on_failure="raise"
    >>> warnings.simplefilter("default", DecodingWarning)
    """


class DecodingError(ValueError):
    """Some rows could not be decoded, and on_failure="raise" asked for an error.

    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import ConstrainedRegressor, DecodingError, Equations
    >>> law = Equations(["y1 = 1", "y1 = x1"])  # can hold for x1 = 1 alone
    >>> model = ConstrainedRegressor(law, on_failure="raise")
    >>> try:
    ...     _ = model.fit(X, Y).predict(X[:2])
    ... except DecodingError as error:
    ...     print("infeasible" in str(error))
    True
    """


def fit_law(constraint: Any, tasks: Tasks) -> Any:
    """A set fitted on the rows on which anything was observed. Names are those the user gave, or None."""
    seen = tasks.seen
    return constraint.fit(tasks.Y[seen], tasks.X[seen], outputs=tasks.names, inputs=tasks.inputs)


def calibrate(loss: Any, tasks: Tasks, surrogate: Any, constraint: Any) -> None:
    """An output metric that the fitted law can use: a matrix only where that costs little more than weights do."""
    loss.calibrate(tasks, surrogate)
    while hasattr(constraint, "base_"):  # a tube or a penalty around a law
        constraint = constraint.base_
    composed = hasattr(constraint, "blocks_") or hasattr(constraint, "members_")
    closed = hasattr(constraint, "project") and not hasattr(constraint, "project_form")
    if hasattr(loss, "uncouple") and (composed or closed or not hasattr(constraint, "equality")):
        loss.uncouple(direct=not composed and bool(getattr(constraint, "polyhedral", False)))


def _std(surrogate: Any, X: Any, batches: list[slice]) -> np.ndarray:
    """(m, T) the standard deviations of a regression at inputs as it takes them, batch by batch."""
    return np.concatenate([to_numpy(surrogate.std(rows_of(X, batch))) for batch in batches or [slice(0, 0)]])


class LawfulEstimator(LawShown, Savable, RegressorMixin, BaseEstimator):
    """fit = encode + regress, predict = regress + decode. Subclasses set the parameters."""

    constraint: Any
    loss: Any
    surrogate: Any
    decoder: Any
    on_failure: str
    _defaults = {"constraint": Reals, "loss": Square, "surrogate": KernelRidge}

    def set_params(self, **params: Any) -> Self:
        """As in scikit-learn; a nested parameter of a part left at None (`surrogate__lam=...`) first makes that part."""
        for name, default in self._defaults.items():
            if getattr(self, name) is None and any(key.startswith(f"{name}__") for key in params) and name not in params:
                setattr(self, name, default())
        return super().set_params(**params)

    # ------------------------------------------------------------------ fit

    def _fit(self, X: Any, Y: Any, sample_weight: Any) -> Self:
        self._check()
        return self._learn(self._read(X, Y, sample_weight))

    def _check(self) -> None:
        if self.decoder is not None and not isinstance(named(self.decoder), Decoder):
            raise TypeError(f"{type(self).__name__}: decoder={self.decoder!r} will not do; give one such as Newton(), or None")
        choice(self, "on_failure", ON_FAILURE)

    def _learn(self, tasks: Tasks) -> Self:
        """From tasks that are read and not encoded yet; all rows, or a sample of rows that are `elsewhere`."""
        self.constraint_ = fit_law(self._part("constraint"), tasks)
        self.loss_ = self._part("loss")
        tasks = tasks.encoded(self.loss_)  # encode
        self.atoms_ = tasks.atoms
        self.surrogate_ = self._regress(tasks)
        calibrate(self.loss_, tasks, self.surrogate_, self.constraint_)
        self.constraint_.in_metric(getattr(self.loss_, "metric_", None))
        first = rows_of(tasks.inputs_of(self.surrogate_), slice(0, 1))
        with interpreted():  # compiling takes seconds, once on a machine, and one row is not worth it
            self._decode(tasks.X[:1], first)  # an impossible pair of loss and set fails here, not in predict
        self._first = first.copy() if isinstance(first, np.ndarray) else None  # the example of a saved model
        return self

    def _example(self) -> tuple[Any, Any] | None:
        return None if self._first is None else (self._first, self._repeat(self._first))

    def _repeat(self, inputs: Any) -> Any:
        return as_plain(self._decode(inputs, inputs)[1].c)

    def _rehearse(self, X: Any) -> None:
        self.predict(X)
        self.decode(X).std  # noqa: B018  computed when it is asked for

    def _regress(self, tasks: Tasks) -> Any:
        """A fitted surrogate; one that compares (`judged`) does so by what the decode makes of its predictions."""
        surrogate, constraint = self._surrogate(), self._part("constraint")
        if not getattr(surrogate, "judged", False) or not AfterDecode.matters(constraint, self.loss_):
            surrogate = surrogate.fit_tasks(tasks)
        else:
            judge = AfterDecode(tasks, constraint, self.loss_, self.decoder, fit_law, calibrate)
            surrogate = surrogate.fit_tasks(tasks, judge=judge)
        if self.surrogate is None and self.loss_.regresses_labels and tasks.elsewhere is None:
            surrogate = with_trees(surrogate, tasks)
        self.surrogate_choice_ = self._choice(surrogate)
        return surrogate

    def _read(self, X: Any, Y: Any, sample_weight: Any) -> Tasks:
        tasks = Tasks.read(self, X, Y, sample_weight, self._surrogate())
        self._single, self.n_outputs_, self.output_names_ = tasks.single, len(tasks), tasks.output_names
        return tasks

    def _part(self, name: str) -> Any:
        given = getattr(self, name)
        if given is None:
            return self._defaults[name]()
        if name == "surrogate" and isinstance(given, str) and given == "auto":
            return Portfolio()
        needs, advice = PARTS[name]
        if isinstance(given, type) or not all(hasattr(given, method) for method in needs):
            raise TypeError(f"{type(self).__name__}: {name}={given!r} will not do; {advice}")
        return clone(given)

    def _surrogate(self) -> Any:
        part = self._part("surrogate")
        return part if hasattr(part, "fit_tasks") else RegressorSurrogate(part)

    def _choice(self, surrogate: Any) -> str:
        how = getattr(surrogate, "choice_", None)
        said = [] if self.surrogate is None or isinstance(self.surrogate, str) else ["given"]
        return f"{type(surrogate).__name__}: " + "; ".join([*said, *([] if how is None else [how])])

    # ------------------------------------------------------------------ predict

    def _objective(self, X: Any) -> Any:
        """F_x at inputs as the surrogate takes them."""
        return self._objective_of(X, self.surrogate_.predict_tasks(X))

    def _objective_of(self, X: Any, scores: list[Any]) -> Any:
        variance = self.surrogate_.variance(X) if self.loss_.needs_variance else None
        return self.loss_.objective(scores, self.atoms_, variance)

    def _decode(self, X: np.ndarray, given: Any, sequence: bool = False) -> tuple[Any, Decoding]:
        """X for the law, floats; `given`, the same rows as the surrogate takes them."""
        F = self._objective(given)
        return F, (decode_sequence if sequence else decode)(F, self.constraint_.at(X), self.decoder)

    def _batches(self, n: int) -> list[slice]:
        width = max(self._width(), 1)
        size = max(256, CELLS // width)
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def _width(self) -> int:
        """Numbers held per predicted row: one score per atom and task. What a surrogate holds beside them is its own affair."""
        return sum(2 if a is None else len(a) for a in self.atoms_)

    def objective(self, X: Any) -> Any:
        """F_x for every row of X: what the decoder minimises (for a look inside; `decode` does the work)."""
        check_is_fitted(self)
        return self._objective(read_inputs(self, X, self.surrogate_)[1])

    def decode(self, X: Any, *, sequence: bool = False) -> Decoding:
        """Predictions with a certificate per row: c, value, residual, status, iterations, margin; and std, before the law.

        `std` is computed when it is first asked for. sequence: the rows follow each other (a trajectory): where several
        branches of the law fit about equally well, one is followed, with as few jumps as there can be. A margin is negative
        where another branch fits that row better.
        """
        X, d = self._decoded(X, sequence)
        return (
            d.with_(spread=partial(_std, self.surrogate_, X, self._batches(len(X)))) if hasattr(self.surrogate_, "std") else d
        )

    def _decoded(self, X: Any, sequence: bool = False) -> tuple[Any, Decoding]:
        """The inputs as the surrogate takes them, and what is predicted for them."""
        check_is_fitted(self)
        X, given = read_inputs(self, X, self.surrogate_)
        parts, doubtful = [], []
        for batch in [slice(0, len(X))] if sequence else self._batches(len(X)):
            F, d = self._decode(X[batch], rows_of(given, batch), sequence)
            doubtful.append(to_numpy(F.doubtful))
            if self.on_failure in ("nan", "unconstrained"):
                d = self._substitute(F, d, X[batch])
            parts.append(d)
        d = stack(parts).with_(names=tuple(self.output_names_))
        self._report(d, np.concatenate(doubtful) if doubtful else np.zeros(0, bool))
        return given, d

    def _substitute(self, F: Any, d: Decoding, X: np.ndarray) -> Decoding:
        failed = to_numpy(d.code) >= NOT_CONVERGED
        if not failed.any():
            return d
        # The certificate is that of the point that is returned, here too.
        new: dict[str, Any] = dict.fromkeys(("c", "value", "residual", "law_residual", "margin"), np.nan)
        code = to_numpy(d.code)
        if self.on_failure == "unconstrained":
            C, w = self.constraint_.at(X), F.center
            new |= {"c": w, "value": F.value(w), "residual": C.residual(w), "law_residual": C.law_residual(w)}
            code = np.where(failed & ~to_numpy(C.contains(w)), INFEASIBLE, code)

        def put(name: str) -> np.ndarray:
            old = to_numpy(getattr(d, name))
            return np.where(failed[:, None] if old.ndim == 2 else failed, to_numpy(new[name]), old)

        return d.with_(code=code, **{name: put(name) for name in new})

    def _report(self, d: Decoding, doubtful: np.ndarray) -> None:
        counts = {STATUS[k]: int((d.code == k).sum()) for k in (INFEASIBLE, NOT_CONVERGED, LOW_CONFIDENCE)}
        counts[STATUS[LOW_CONFIDENCE]] += int(((d.code == AVERAGED) & doubtful).sum())  # means may be doubtful too
        if not any(counts.values()):
            return
        found = ", ".join(f"{k} {name}" for name, k in counts.items() if k)
        worst = np.max(d.residual, initial=0.0, where=~np.isnan(d.residual))
        message = f"{found} of {len(d.code)} rows (largest violation {worst:.1e}); see decode(X).status"
        failed = counts[STATUS[INFEASIBLE]] + counts[STATUS[NOT_CONVERGED]]
        if failed and self.on_failure == "raise":
            raise DecodingError(message)
        if self.on_failure == "warn":
            warnings.warn(message, DecodingWarning, stacklevel=4)

    def predict(self, X: Any, return_std: bool = False, *, sequence: bool = False) -> Any:
        """Outputs that obey the law: (m, T), or (m,) when fitted on a single column; `sequence` as in `decode`.

        With `return_std` also the standard deviations of new observations, before the law (`decode(X).std`). For a tensor X a
        tensor, in double precision, where X is.
        """
        if return_std and not hasattr(self.surrogate_, "std"):
            raise ValueError(
                f"{type(self).__name__}.predict(return_std=True): {type(self.surrogate_).__name__} has no standard deviation "
                "here; surrogate=None would do"
            )
        d = self.decode(X, sequence=sequence) if return_std else self._decoded(X, sequence)[1]
        found = [np.asarray(d.c), np.asarray(d.std)] if return_std else [d.c]
        given = [as_given(v[:, 0] if self._single else v, X) for v in found]
        return tuple(given) if return_std else given[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2, the mean over outputs; outputs that are NaN in y are left out."""
        return float(r2(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        kernel = getattr(self.surrogate, "kernel", None)
        tags.input_tags.pairwise = type(kernel).__name__ == "Precomputed"
        if hasattr(self.surrogate, "get_params") or isinstance(self.surrogate, str):
            tags.input_tags.allow_nan = bool(getattr(self._surrogate(), "allow_nan", False))
        return tags

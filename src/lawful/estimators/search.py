"""ConstrainedRegressorCV: kernel, lambda, delta and mu, or a grid of any surrogate, chosen through the decode.

A ridge costs about one fit a kernel; any other surrogate is refitted for every setting and fold.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from lawful._checks import choice
from lawful._threads import blas_threads
from lawful.decoders import Decoding
from lawful.estimators.candidates import Choice, Grid, Ridges
from lawful.estimators.evaluate import Evaluator
from lawful.estimators.regressor import ConstrainedRegressor
from lawful.estimators.selection import HeldOutLoss, Results, check_grid, choose_law, warn_edges
from lawful.folds import make_folds
from lawful.kernels import Precomputed
from lawful.saving.models import Savable
from lawful.sets import Inflated, Penalized, Reals
from lawful.sets.typeset import LawShown
from lawful.surrogates import KernelRidge, NystromRidge
from lawful.tasks import Tasks
from lawful.uncertainty import Samples

FOLDS = 5  # where leave-one-out has no closed form
CHOICES = {
    "select_on": ("unconstrained", "constrained"),
    "rule": ("one_se", "best"),
    "lam_per_task": ("auto", True, False),
}


class ConstrainedRegressorCV(LawShown, Savable, RegressorMixin, BaseEstimator):
    """`ConstrainedRegressor` with its hyper-parameters chosen by cross-validation.

    First kernel, intercept and lambda (or the parameters of another surrogate), by the held-out error of the unconstrained
    prediction (or of the decoded one); then, if grids are given, delta (the law inflated to a tube) or mu (the law as a price),
    by the held-out error of the decoded prediction and a paired one-standard-error rule that prefers the exact law. A kernel
    costs one eigendecomposition per fold, a lambda one product, a delta or mu one line. No law is judged on labels that it was
    fitted on: sets that learn from labels are fitted anew without the held-out ones.

    Parameters
    ----------
    constraint : ConstraintSet, optional
        As in `ConstrainedRegressor`.
    surrogate : KernelRidge, another surrogate or any scikit-learn regressor, optional
        What learns the unconstrained part. None is `KernelRidge()`. Of a given ridge, kernel, lam and intercept are replaced by
        the best of `kernels`, `lams` and `intercepts` where these are given; everything else is kept.
    grid : dict or list of dicts, optional
        For any other surrogate: values of its parameters to try, as in GridSearchCV, each refitted for every fold.
    kernels : "auto", a kernel, a list of kernels, or a grid of numbers
        Numbers are bandwidths of `Gaussian`. "auto" is Gaussian with length scales tuned as `surrogate` says on all rows, as is
        every kernel of a list whose sigma is "auto".
    lams : "auto" or a grid
        "auto" is a grid relative to the mean of k(x, x), half a decade a step, refined around its best.
    intercepts : True, False, T numbers, or a list of these
        An unpenalised constant, none, or a fixed one for each output (the mean of a cloud of outputs, say).
    deltas, mus : grids, optional
        Radii of `Inflated(constraint, delta, norm)` and prices of `Penalized(constraint, mu)`; the exact law is always a
        candidate.
    cv : "auto", "loo", int, float, splitter or iterable of (train, test)
        Leave-one-out (in closed form for a ridge), a number of folds, a held-out fraction, or anything with split(X). "auto" is
        leave-one-out where it has a closed form, else five folds. Own folds are drawn so that every output keeps observations.
        Leave-one-out measures the output metric once, on all rows; sets that learn from labels are fitted without those of a
        fifth of the inputs at a time.
    select_on : {"unconstrained", "constrained"}
        What chooses kernel, intercept and lambda. "constrained" with grids of delta or mu searches them jointly, as the
        paper does.
    rule : {"one_se", "best"}
        How delta and mu are chosen. "one_se": the exact law, unless its error exceeds the smallest by more than one standard
        error of the paired difference; then, as for "best", the candidate with the smallest error.
    scoring : None, "r2", "neg_mean_squared_error", "neg_mean_absolute_error" or a function l(c, y)
        The held-out error: squared error over variance, averaged over outputs (None, "r2"), or what the name says.
    lam_per_task : "auto", True or False
        A lambda for each output or one for all. "auto" is True unless select_on="constrained", which can only share.
    norm : {"objective", "euclidean"}
        How the tube is measured: in the row's own weights (units of the leave-one-out error; the whole path costs one
        projection), or in the units of the outputs, as in the paper.
    loss, decoder, on_failure : as in `ConstrainedRegressor`
    random_state : draws own folds (and the rows on which length scales are tuned)
    n_jobs : kernels evaluated at the same time
    verbose : whether to show a progress bar

    Attributes
    ----------
    best_estimator_ : the `ConstrainedRegressor` fitted on all rows with the chosen values
    best_params_ : kernel (one, or one per output), lam and intercept, or the entries of `grid`; delta, mu (None where not used)
    best_error_ : its held-out error, by `scoring`
    cv_results_ : dict of columns, one row for each candidate and output; `pandas.DataFrame(model.cv_results_)` is a tidy table
    lam_path_ : lam (L, T) and error (L, T) of the chosen kernel (of a ridge only)

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import ConstrainedRegressorCV, Sphere
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-3, 3, (60, 1))
    >>> Y = np.c_[np.cos(X), np.sin(X)] + 0.05 * rng.standard_normal((60, 2))
    >>> model = ConstrainedRegressorCV(Sphere(), kernels=[0.5, 1, 2, 4, 8, 16], mus=[0.1, 1, 10], cv=5).fit(X, Y)
    >>> model.best_params_["mu"] is None  # the data do not contradict the circle
    True
    """

    def __init__(
        self,
        constraint: Any = None,
        *,
        surrogate: Any = None,
        grid: Any = None,
        kernels: Any = "auto",
        lams: Any = "auto",
        intercepts: Any = True,
        deltas: Any = None,
        mus: Any = None,
        cv: Any = "auto",
        select_on: str = "unconstrained",
        rule: str = "one_se",
        scoring: Any = None,
        lam_per_task: Any = "auto",
        norm: str = "objective",
        loss: Any = None,
        decoder: Any = None,
        on_failure: str = "warn",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.constraint = constraint
        self.surrogate = surrogate
        self.grid = grid
        self.kernels = kernels
        self.lams = lams
        self.intercepts = intercepts
        self.deltas = deltas
        self.mus = mus
        self.cv = cv
        self.select_on = select_on
        self.rule = rule
        self.scoring = scoring
        self.lam_per_task = lam_per_task
        self.norm = norm
        self.loss = loss
        self.decoder = decoder
        self.on_failure = on_failure
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose and refit. y (n, T) or (n,), NaN where not observed; sample_weight (n,) or (n, T)."""
        for name, allowed in CHOICES.items():
            choice(self, name, allowed)
        if self._per_task and self.select_on == "constrained":
            raise ValueError(
                'select_on="constrained" chooses one lambda for all outputs (their decoded errors depend on each other); '
                'give lam_per_task=False or select_on="unconstrained"'
            )
        template = ConstrainedRegressor(
            self.constraint, loss=self.loss, surrogate=self.surrogate, decoder=self.decoder, on_failure=self.on_failure
        )
        family = self._family(template)
        evaluator = self._evaluator(template, X, y, sample_weight)
        results = Results(evaluator.error)
        chosen = family.choose(evaluator, results, self._parallel)
        self.__dict__.pop("lam_path_", None)  # of an earlier fit
        if chosen.path is not None:
            self.lam_path_ = Bunch(lam=chosen.path[0], error=chosen.path[1])
        delta, mu = self._relax(evaluator, chosen, results)
        warn_edges(chosen.edges)
        self.cv_results_ = results.columns(evaluator.tasks.output_names)
        self._refit(template, X, y, sample_weight, chosen, delta, mu)
        return self

    @property
    def _per_task(self) -> bool:
        return self.select_on == "unconstrained" if self.lam_per_task == "auto" else bool(self.lam_per_task)

    def _family(self, template: ConstrainedRegressor) -> Ridges | Grid:
        surrogate, joint = template._surrogate(), self.select_on == "constrained"
        if isinstance(surrogate, KernelRidge) or (isinstance(surrogate, NystromRidge) and self.grid is None):
            if self.grid is not None:
                raise ValueError("grid is for surrogates other than KernelRidge; for a ridge give kernels, lams and intercepts")
            if self.surrogate is None:
                surrogate.random_state = self.random_state
            return Ridges(surrogate, *self._ridge_grids(surrogate), self._per_task, joint)
        defaults = {"kernels": "auto", "lams": "auto", "intercepts": True}
        given = [name for name, default in defaults.items() if not _same(getattr(self, name), default)]
        if given:
            raise ValueError(
                f"{' and '.join(given)} belong to a KernelRidge, and the surrogate is {self.surrogate!r}; give grid, a dict of "
                "its own parameters"
            )
        return Grid(surrogate, template._part("surrogate"), self.grid, joint)

    def _ridge_grids(self, ridge: KernelRidge) -> tuple[Any, Any, Any]:
        """Kernels, lambdas and intercepts to try: where they are left at their defaults, those of a given ridge."""
        kernels, lams, intercepts = self.kernels, self.lams, self.intercepts
        if _same(kernels, "auto") and ridge.kernel is not None:
            if isinstance(ridge.kernel, list | tuple):
                raise ValueError(
                    "ConstrainedRegressorCV tries one kernel after the other: give kernels, not a kernel per output"
                )
            kernels = [ridge.kernel]
        if _same(lams, "auto") and not _same(ridge.lam, "auto"):
            if np.ndim(ridge.lam) or isinstance(ridge.lam, str):
                raise ValueError(f"ConstrainedRegressorCV cannot search around lam={ridge.lam!r}; give lams, a grid of numbers")
            lams = [ridge.lam]
        if _same(intercepts, True) and not _same(ridge.intercept, True):
            intercepts = ridge.intercept
        return kernels, lams, intercepts

    def _evaluator(self, template: ConstrainedRegressor, X: Any, y: Any, sample_weight: Any) -> Evaluator:
        """Everything checked as `ConstrainedRegressor` would, and the folds drawn."""
        tasks = Tasks.read(self, X, y, sample_weight, template._surrogate())
        weight = tasks.weight
        cv = self.cv
        if isinstance(cv, str) and cv == "auto":
            cv = "loo" if template._surrogate().loo else min(FOLDS, len(tasks.seen))
        return Evaluator(
            tasks,
            template._part("constraint"),
            template._part("loss"),
            self.decoder,
            make_folds(cv, tasks.X, weight > 0, tasks.output_names, self.random_state),
            HeldOutLoss(self.scoring, tasks.Y, weight),
            np.empty(0) if self.deltas is None else check_grid(self.deltas, "deltas", 0.0, strict=False, unbounded=True),
            np.empty(0) if self.mus is None else check_grid(self.mus, "mus", 0.0, strict=False, unbounded=True),
            self.norm,
        )

    def _parallel(self, function: Any, arguments: list[tuple[Any, ...]]) -> list[Any]:
        jobs = min(effective_n_jobs(self.n_jobs), len(arguments))
        with blas_threads(1 if jobs > 1 else None):
            work = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")(delayed(function)(*a) for a in arguments)
            return list(tqdm(work, total=len(arguments), desc="kernels", disable=not self.verbose))

    def _relax(self, evaluator: Evaluator, chosen: Choice, results: Results) -> tuple[float | None, float | None]:
        """delta or mu, or neither for the exact law; two paths of lines, one decode."""
        losses, looseness, free = evaluator.relaxations(chosen.candidate)
        k = choose_law(evaluator.error.mean(losses), looseness, self.rule)
        results.add(chosen.candidate, losses.sum(axis=1)[None], evaluator.relaxed)
        self.best_error_ = float(evaluator.error.mean(losses[k].sum(axis=0)))
        delta, mu = evaluator.relaxed[k]
        # The end of a path that already is the unconstrained prediction is no edge.
        for name, grid, value in (("deltas", evaluator.deltas, delta), ("mus", evaluator.mus, mu)):
            if value is not None and grid.size > 2 and value == grid[-1] and looseness[k] < 0.99 * free:
                chosen.edges.append((name, f"{value:.3g}"))
        return delta, mu

    def _refit(
        self, template: ConstrainedRegressor, X: Any, y: Any, sample_weight: Any, chosen: Choice, delta: Any, mu: Any
    ) -> None:
        base = Reals() if self.constraint is None else self.constraint
        law = base if delta is None else Inflated(base, delta, self.norm)
        law = law if mu is None else Penalized(base, mu)
        self.best_params_ = chosen.parameters | {"delta": delta, "mu": mu}
        self.best_estimator_ = clone(template).set_params(constraint=law, surrogate=chosen.surrogate).fit(X, y, sample_weight)
        for name in ("n_features_in_", "feature_names_in_", "n_outputs_", "output_names_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))

    # ------------------------------------------------------------------ predict

    def _example(self) -> tuple[Any, Any] | None:
        return self.best_estimator_._example()

    def _repeat(self, inputs: Any) -> Any:
        return self.best_estimator_._repeat(inputs)

    def _rehearse(self, X: Any) -> None:
        self.best_estimator_._rehearse(X)

    def predict(self, X: Any, *, sequence: bool = False) -> np.ndarray:
        """Outputs that obey the law as far as the data wanted it: (m, T), or (m,) when fitted on a single column."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, sequence=sequence)

    def decode(self, X: Any, sample: int | None = None, random_state: Any = None, *, sequence: bool = False) -> Decoding:
        """Predictions with a certificate per row, as in `ConstrainedRegressor.decode`."""
        check_is_fitted(self)
        return self.best_estimator_.decode(X, sample, random_state, sequence=sequence)

    def sample(self, X: Any, n: int = 100, random_state: Any = None, thin: int = 3) -> Samples:
        """(m, n, T) draws from the prediction restricted to the law, as in `ConstrainedRegressor.sample`."""
        check_is_fitted(self)
        return self.best_estimator_.sample(X, n, random_state, thin)

    def objective(self, X: Any) -> Any:
        """F_x for every row; its `center` is the unconstrained prediction."""
        check_is_fitted(self)
        return self.best_estimator_.objective(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2, the mean over outputs; missing labels are left out."""
        check_is_fitted(self)
        return self.best_estimator_.score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.pairwise = isinstance(self.kernels, Precomputed)
        return tags


def _same(value: Any, default: Any) -> bool:
    """Whether a parameter was left at its default; arrays have no truth value."""
    return type(value) is type(default) and bool(value == default)

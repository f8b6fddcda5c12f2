"""ConstrainedRegressorCV: bandwidth, lambda, delta and mu, chosen through the decode at about the price of one fit a kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from lawful.decoders import Decoding
from lawful.estimators.base import fit_law
from lawful.estimators.evaluate import Candidate, Evaluator
from lawful.estimators.regressor import ConstrainedRegressor
from lawful.estimators.selection import (
    FREE,
    Error,
    Results,
    check_grid,
    check_intercepts,
    check_kernels,
    choose_lam,
    choose_law,
    is_auto,
    on_edge,
    warn_edges,
)
from lawful.folds import make_folds
from lawful.kernels import Precomputed
from lawful.sets import Inflated, Penalized, Reals
from lawful.surrogates import KernelRidge

AUTO_LAMS = 10.0 ** np.arange(-15, 2.01, 0.5)  # relative to the mean of k(x, x); below, rounding of K would be fitted
FINER = 10.0 ** np.linspace(-0.5, 0.5, 11)  # around the best of them

CHOICES = {
    "select_on": ("unconstrained", "constrained"),
    "rule": ("one_se", "best"),
    "lam_per_task": ("auto", True, False),
}


class ConstrainedRegressorCV(RegressorMixin, BaseEstimator):
    """`ConstrainedRegressor` with its hyper-parameters chosen by cross-validation.

    First kernel, intercept and lambda, by the held-out error of the unconstrained prediction (or of the decoded one); then, if
    grids are given, delta (the law inflated to a tube) or mu (the law as a price), by the held-out error of the decoded
    prediction and a paired one-standard-error rule that prefers the exact law. A kernel costs one eigendecomposition per fold,
    a lambda one product, a delta or mu one line.

    Parameters
    ----------
    constraint : ConstraintSet, optional
        As in `ConstrainedRegressor`.
    kernels : "auto", a kernel, a list of kernels, or a grid of numbers
        Numbers are bandwidths of `Gaussian`. "auto" is Gaussian with length scales tuned by leave-one-out on all rows, as is
        every kernel of a list whose sigma is "auto".
    lams : "auto" or a grid
        "auto" is a grid relative to the mean of k(x, x), half a decade a step, refined around its best.
    intercepts : True, False, T numbers, or a list of these
        An unpenalised constant, none, or a fixed one for each output (the mean of a cloud of outputs, say).
    deltas, mus : grids, optional
        Radii of `Inflated(constraint, delta, norm)` and prices of `Penalized(constraint, mu)`; the exact law is always a
        candidate.
    cv : "loo", int, float, splitter or list of (train, test)
        Leave-one-out in closed form, a number of folds, a held-out fraction, or anything with split(X). Own folds are drawn
        so that every output keeps observations. Leave-one-out measures the output metric once, on all rows.
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
    best_params_ : kernel (one, or one per output), lam, intercept, delta, mu (None where not used)
    best_error_ : its held-out error, by `scoring`
    cv_results_ : dict of columns, one row for each candidate and output; `pandas.DataFrame(model.cv_results_)` is a tidy table
    lam_path_ : lam (L, T) and error (L, T) of the chosen kernel

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
        kernels: Any = "auto",
        lams: Any = "auto",
        intercepts: Any = True,
        deltas: Any = None,
        mus: Any = None,
        cv: Any = "loo",
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
            if getattr(self, name) not in allowed:
                raise ValueError(f"unknown {name} {getattr(self, name)!r}; choose one of {', '.join(map(repr, allowed))}")
        if self._per_task and self.select_on == "constrained":
            raise ValueError(
                'select_on="constrained" chooses one lambda for all outputs (their decoded errors depend on each other); '
                'give lam_per_task=False or select_on="unconstrained"'
            )
        template = ConstrainedRegressor(self.constraint, loss=self.loss, decoder=self.decoder, on_failure=self.on_failure)
        evaluator = self._evaluator(template, X, y, sample_weight)
        results = Results(evaluator.error)
        chosen, edges = self._search(evaluator, results)
        delta, mu = self._relax(evaluator, chosen, results, edges)
        warn_edges(edges)
        self.cv_results_ = results.columns(template.output_names_)
        self._refit(template, X, y, sample_weight, chosen, delta, mu)
        return self

    @property
    def _per_task(self) -> bool:
        return self.select_on == "unconstrained" if self.lam_per_task == "auto" else bool(self.lam_per_task)

    def _evaluator(self, template: ConstrainedRegressor, X: Any, y: Any, sample_weight: Any) -> Evaluator:
        """Everything checked as `ConstrainedRegressor` would, and the folds drawn."""
        tasks = template._read(X, y, sample_weight)
        weight = tasks.weight
        return Evaluator(
            tasks,
            fit_law(template._part("constraint"), tasks),
            template._part("loss"),
            self.decoder,
            make_folds(self.cv, tasks.X, weight > 0, tasks.output_names, self.random_state),
            Error(self.scoring, tasks.Y, weight),
            np.empty(0) if self.deltas is None else check_grid(self.deltas, "deltas", 0.0, strict=False, unbounded=True),
            np.empty(0) if self.mus is None else check_grid(self.mus, "mus", 0.0, strict=False, unbounded=True),
            self.norm,
        )

    def _search(self, evaluator: Evaluator, results: Results) -> tuple[Candidate, list[tuple[str, str]]]:
        """Kernel, intercept and lambda, and what lies on the edge of its grid."""
        T = len(evaluator.tasks.y)
        lams = None if is_auto(self.lams) else check_grid(self.lams, "lams", 0.0, strict=True)
        joint = self.select_on == "constrained"
        kernels, numbers = check_kernels(self.kernels)
        pairs = [(kernel, intercept) for kernel in kernels for intercept in check_intercepts(self.intercepts)]

        def errors(candidate: Candidate) -> np.ndarray:
            """(L, k, T), k for the exact law and its relaxations, or 1 for no law."""
            return evaluator.constrained(candidate) if joint else evaluator.unconstrained(candidate)[:, None, :]

        def evaluate(kernel: Any, intercept: Any) -> tuple[Candidate, np.ndarray]:
            tuned = evaluator.tuned(kernel, intercept, self.random_state)
            grid = AUTO_LAMS[:, None] * evaluator.level(tuned) if lams is None else np.tile(lams[:, None], (1, T))
            candidate = Candidate(tuned, intercept, grid)
            return candidate, errors(candidate)

        found = self._parallel(evaluate, pairs)
        choices = [choose_lam(e, evaluator.error, self._per_task) for _, e in found]
        best = int(np.argmin([risk for _, risk in choices]))
        (winner, table), (at, _) = found[best], choices[best]
        for candidate, e in found:
            results.add(candidate, e, evaluator.relaxed if joint else FREE)
        self.lam_path_ = Bunch(lam=winner.lams, error=table[:, 0, :])
        edges = []
        if numbers is not None:
            position = best // (len(pairs) // len(kernels))
            risks = np.array([risk for _, risk in choices]).reshape(len(kernels), -1).min(axis=1)
            if on_edge(risks, position):
                edges.append(("kernels", f"sigma = {numbers[position]:.3g}"))
        lam = winner.lams[at, np.arange(T)]
        if lams is None:
            winner = Candidate(winner.kernels, winner.intercept, lam * FINER[:, None])
            finer = errors(winner)
            results.add(winner, finer, evaluator.relaxed if joint else FREE)
            lam = winner.lams[choose_lam(finer, evaluator.error, self._per_task)[0], np.arange(T)]
        else:
            risks = table[:, 0, :] if self._per_task else evaluator.error.mean(table).min(axis=1)[:, None]
            there = sorted({float(lam[t]) for t in range(risks.shape[1]) if on_edge(risks[:, t], int(at[t]))})
            edges += [("lams", ", ".join(f"{v:.3g}" for v in there))] if there else []
        return Candidate(winner.kernels, winner.intercept, lam[None, :]), edges

    def _parallel(self, function: Any, arguments: list[tuple[Any, ...]]) -> list[Any]:
        jobs = min(effective_n_jobs(self.n_jobs), len(arguments))
        # With several kernels at a time BLAS threads would only be in each other's way.
        with threadpool_limits(1 if jobs > 1 else None, user_api="blas"):
            work = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")(delayed(function)(*a) for a in arguments)
            return list(tqdm(work, total=len(arguments), desc="kernels", disable=not self.verbose))

    def _relax(
        self, evaluator: Evaluator, chosen: Candidate, results: Results, edges: list[tuple[str, str]]
    ) -> tuple[float | None, float | None]:
        """delta or mu, or neither for the exact law; two paths of lines, one decode."""
        losses, looseness, free = evaluator.relaxations(chosen)
        k = choose_law(evaluator.error.mean(losses), looseness, self.rule)
        results.add(chosen, losses.sum(axis=1)[None], evaluator.relaxed)
        self.best_error_ = float(evaluator.error.mean(losses[k].sum(axis=0)))
        delta, mu = evaluator.relaxed[k]
        # The end of a path that already is the unconstrained prediction is no edge.
        for name, grid, value in (("deltas", evaluator.deltas, delta), ("mus", evaluator.mus, mu)):
            if value is not None and grid.size > 2 and value == grid[-1] and looseness[k] < 0.99 * free:
                edges.append((name, f"{value:.3g}"))
        return delta, mu

    def _refit(
        self, template: ConstrainedRegressor, X: Any, y: Any, sample_weight: Any, chosen: Candidate, delta: Any, mu: Any
    ) -> None:
        kernel: Any = chosen.kernels
        if all(k is kernel[0] for k in kernel):
            kernel = kernel[0]
        lam: Any = chosen.lams[0]
        if np.all(lam == lam[0]):
            lam = float(lam[0])
        base = Reals() if self.constraint is None else self.constraint
        law = base if delta is None else Inflated(base, delta, self.norm)
        law = law if mu is None else Penalized(base, mu)
        surrogate = KernelRidge(kernel, lam=lam, intercept=chosen.intercept)
        self.best_params_ = {"kernel": kernel, "lam": lam, "intercept": chosen.intercept, "delta": delta, "mu": mu}
        self.best_estimator_ = clone(template).set_params(constraint=law, surrogate=surrogate).fit(X, y, sample_weight)
        for name in ("n_features_in_", "feature_names_in_", "n_outputs_", "output_names_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))

    # ------------------------------------------------------------------ predict

    def predict(self, X: Any) -> np.ndarray:
        """Outputs that obey the law as far as the data wanted it: (m, T), or (m,) when fitted on a single column."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def decode(self, X: Any) -> Decoding:
        """Predictions with a certificate per row, as in `ConstrainedRegressor.decode`."""
        check_is_fitted(self)
        return self.best_estimator_.decode(X)

    def objective(self, X: Any) -> Any:
        """F_x for every row; its `center` is the unconstrained prediction."""
        check_is_fitted(self)
        return self.best_estimator_.objective(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Explained variance, the mean over outputs; missing labels are left out."""
        check_is_fitted(self)
        return self.best_estimator_.score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.pairwise = isinstance(self.kernels, Precomputed)
        return tags

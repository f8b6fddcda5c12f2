"""Several surrogates, mixed by what their held-out predictions are worth: g_t(x) = sum_k w_tk g_tk(x).

Nobody knows beforehand whether kernels, trees or a straight line will do best; held-out errors do. With e_k the held-out
residuals of member k for one output and G the mean of e e', a mixture with weights that sum to one errs by

    w' G w,     w >= 0,  sum w = 1                                                   (stacking, Breiman 1996)

Members are fitted once, on all rows: each knows its own errors on rows that it has not seen (a kernel ridge by leave-one-out in
closed form, trees by the folds that chose how many there are). Where folds are given, members are refitted on these.

Few rows know G badly: the minimiser is averaged over bootstrap samples of the rows (bagging), which leaves it alone where the
data are clear and draws it towards the middle of what they allow where they are not. What all outputs say together counts as
60 rows more: members that suit one output of a table often suit the others. Averages of weights that cannot be
negative are never quite zero for a member that adds nothing, so they are sharpened, w^1.5, which draws them towards the best
member. The mixture is linear in its members' predictions, so it mixes every encoding of the labels alike, and scores that sum
to one still do.

Residuals are those of mixtures whose weights were found on other folds. The variance of an observation at x is that of its
members and their disagreement D(x) = sum_k w_k (g_k(x) - g(x))^2,

    c [sum_k w_k v_k(x) + D(x)],

v_k the variance that member k states (or its held-out error), and c such that held-out residuals agree in the mean.

`with_trees` is for who fits a kernel ridge: a mixture with boosted trees, for outputs whose held-out errors it clearly lessens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.optimize import nnls
from sklearn.base import RegressorMixin, clone
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lawful._array import to_numpy
from lawful.folds import make_folds
from lawful.surrogates.base import Fold, Surrogate
from lawful.surrogates.encoders import Numbers
from lawful.surrogates.regressor import RegressorSurrogate
from lawful.surrogates.ridge import KernelRidge
from lawful.surrogates.trees import Trees, probed
from lawful.tasks import Tasks, read_inputs, rows_of

__all__ = ["Portfolio", "with_trees"]

MANY = 200  # rows
SAMPLES = 30  # bootstrap samples
SHARPNESS = 1.5
POOLED = 60  # rows' worth of what all outputs say together
LARGEST = 1e4  # ratio of a member's squared error to the best one's that is still told apart
NEGLIGIBLE = 0.02  # smaller weights are not worth a fit
PROMISING = 1.5  # squared error of a first look at trees, relative to that of the kernel ridge: benchmarks/public_tables.py
LEAST = 150  # rows of an output for such a look
BETTER, SURE = 0.01, 0.5  # of the squared error, and standard errors: what a mixture must gain to take the place of the ridge
Judge = Callable[[list[Fold], np.ndarray, list[np.ndarray]], np.ndarray]


def linear() -> Surrogate:
    return RegressorSurrogate(make_pipeline(Numbers(), StandardScaler(), RidgeCV(np.logspace(-3, 4, 15))))


MEMBERS: dict[str, Callable[[], Surrogate]] = {"kernel": KernelRidge, "trees": Trees, "linear": linear}
DEFAULT = ["kernel", "trees"]  # which has straight lines among its kernels


class Portfolio(RegressorMixin, Surrogate):
    """A mixture of surrogates, with weights for each output from held-out predictions. See the module's docstring.

    Parameters
    ----------
    members : list of "kernel" (`KernelRidge()`), "trees" (`surrogates.Trees`, boosted), "linear" (ridge regression), other
        surrogates, and scikit-learn regressors or pipelines; None is the first two.
    cv : number of folds whose held-out predictions decide, or a splitter or list of (train, test), for which every member is
        refitted; "auto" takes what members know of their own errors.
    random_state : draws the folds.

    Attributes
    ----------
    names_ (K names), weights_ (T, K), held_out_mse_ (T, K) of each member, members_ (fitted; None for those without weight),
    choice_ (what was mixed, in words).

    Notes
    -----
    A DataFrame may have categories and gaps: trees, regressors and pipelines get it as it is, the kernel ridge with indicators
    for levels and gaps filled (`surrogates.encoders`).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from lawful.surrogates import Portfolio
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (200, 2))
    >>> Y = np.c_[X[:, 0] > 0, 3 * X[:, 1]] + 0.01 * rng.standard_normal((200, 2))
    >>> model = Portfolio(["linear", DecisionTreeRegressor(random_state=0)]).fit(X, Y)
    >>> model.names_
    ['linear', 'DecisionTreeRegressor']
    >>> [model.names_[k] for k in model.weights_.argmax(axis=1)]
    ['DecisionTreeRegressor', 'linear']
    """

    raw = True
    judged = True  # `fit_tasks` may be given a judge of held-out predictions

    def __init__(self, members: Any = None, cv: Any = "auto", random_state: Any = 0) -> None:
        self.members = members
        self.cv = cv
        self.random_state = random_state

    # ------------------------------------------------------------------ members

    def _members(self) -> tuple[list[str], list[Surrogate]]:
        given = DEFAULT if self.members is None else self.members
        if isinstance(given, str) or not isinstance(given, list | tuple) or not given:
            raise ValueError(f"Portfolio(members={given!r}) will not do; give a list such as ['kernel', 'trees', Ridge()]")
        names: list[str] = []
        parts: list[Surrogate] = []
        for member in given:
            if isinstance(member, str) and member not in MEMBERS:
                raise ValueError(
                    f"Portfolio: unknown member {member!r}; {', '.join(map(repr, MEMBERS))} or a regressor would do"
                )
            if isinstance(member, type) or not (isinstance(member, str) or hasattr(member, "get_params")):
                raise TypeError(f"Portfolio: member {member!r} will not do; give instances of surrogates or regressors")
            part = MEMBERS[member]() if isinstance(member, str) else clone(member)
            name = member if isinstance(member, str) else type(member).__name__
            names.append(name if name not in names else f"{name} {sum(n.split(' ')[0] == name for n in names) + 1}")
            parts.append(part if hasattr(part, "fit_tasks") else RegressorSurrogate(part))
        return names, parts

    @property
    def allow_nan(self) -> bool:
        return self.raw and all(not member.raw or bool(member.allow_nan) for member in self._members()[1])

    def _seen_by(self, member: Surrogate, tasks: Tasks) -> Tasks:
        """The same tasks with inputs that the member can read."""
        if self.encoder_ is None or member.raw:
            return tasks
        return replace(tasks, X=self.encoder_.transform(tasks.inputs_of(self)), frame=None)

    def _inputs(self, member: Surrogate, X: Any) -> Any:
        return X if self.encoder_ is None or member.raw else self.encoder_.transform(X)

    # ------------------------------------------------------------------ the surrogate protocol

    def fit_tasks(self, tasks: Tasks, judge: Judge | None = None) -> Self:
        """`judge(folds, predictions (n, T), residuals)` gives (n,) losses of held-out rows, NaN for others: what the mixture
        and its members alone are compared by, where given (after the decode, say)."""
        self.names_, members = self._members()
        return self._mixed(tasks, members, judge)

    def _mixed(self, tasks: Tasks, members: list[Surrogate], judge: Judge | None = None, sure: bool = False) -> Self:
        """The mixture of these members, of which some may be fitted already; `sure`: the first one alone unless others help."""
        given = tasks.inputs_of(self)
        plain = tasks.frame is None and not np.isnan(to_numpy(tasks.X)).any()
        self.encoder_ = None if plain else Numbers().fit(rows_of(given, tasks.seen))
        labels, folds = tasks.plain(), self._folds(tasks)
        if self._folded:
            P = self._held_out(members, labels, folds)
        else:
            members = [m if m.fitted else m.fit_tasks(self._seen_by(m, tasks)) for m in members]
            P = self._left_out(members, tasks)
        errors = errors_of(labels, P)
        self.held_out_mse_ = np.array([(e**2 * share[:, None]).sum(axis=0) for e, share in errors])
        self.weights_ = stack(errors)
        if judge is not None and folds:
            self.weights_ = self._judged(judge, labels, folds, P)
        for t, (e, share) in enumerate(errors if sure else []):
            gain = e[:, 0] ** 2 - (e @ self.weights_[t]) ** 2
            mean = share @ gain
            if mean < max(BETTER * (share @ e[:, 0] ** 2), SURE * np.sqrt((share**2) @ (gain - mean) ** 2)):
                self.weights_[t] = np.eye(len(members))[0]
        used = [bool(column.any()) for column in self.weights_.T]
        self.members_ = [
            None if not use else m if m.fitted else m.fit_tasks(self._seen_by(m, tasks)) for m, use in zip(members, used)
        ]
        self._calibrate(labels, folds, P)
        for member in self.members_:
            if isinstance(member, RegressorSurrogate):
                member.forget()  # residuals are those of the mixture
        self.choice_ = self._in_words()
        return self

    def _in_words(self) -> str:
        """The members with their shares, in the mean of the outputs, and how each was solved where it says so."""
        shares = self.weights_.mean(axis=0)
        said = []
        for k in np.argsort(-shares, kind="stable"):
            how = getattr(self.members_[k], "choice_", None)
            if self.members_[k] is not None:
                said.append(f"{shares[k]:.0%} {self.names_[k]}" + (f" ({how})" if how else ""))
        return " + ".join(said)

    @property
    def _folded(self) -> bool:
        """Whether members are refitted for folds."""
        return not (isinstance(self.cv, str) and self.cv == "auto")

    def _folds(self, tasks: Tasks) -> list[Fold]:
        """None of them where no output has two observations."""
        n = max(len(y) for y in tasks.y)
        cv = self.cv if self._folded else 10 if n < MANY else 5
        if isinstance(cv, bool | str | float) or (isinstance(cv, int | np.integer) and cv < 2):
            raise ValueError(f"Portfolio(cv={self.cv!r}) is no number of folds; give 2, 3, ..., 'auto', or folds of your own")
        if n < 2:
            return []
        seen, observed = tasks.seen, tasks.weight > 0
        if not isinstance(cv, int | np.integer):
            return make_folds(cv, tasks.X, observed, tasks.output_names) or []
        dealt = make_folds(min(int(cv), n), tasks.X[seen], observed[seen], tasks.output_names, self.random_state) or []
        return [(seen[train], seen[test]) for train, test in dealt]

    def _held_out(self, members: list[Surrogate], labels: Tasks, folds: list[Fold]) -> np.ndarray:
        """(n, T, K) predictions of every member without the row's labels; NaN on rows that no fold holds out."""
        P = np.full((labels.n_rows, len(labels), len(members)), np.nan)
        if len(members) == 1 and not folds:
            return P
        for k, member in enumerate(members):
            for part in member.held_out(self._seen_by(member, labels), folds):
                for t, scores in enumerate(part.scores):
                    P[part.rows, t, k] = scores[0][:, 0]
        return P

    def _left_out(self, members: list[Surrogate], tasks: Tasks) -> np.ndarray:
        """The same from what fitted members know of their own errors; rows without a label are predicted as new ones are."""
        P = np.full((tasks.n_rows, len(tasks), len(members)), np.nan)
        gaps = tasks.seen[np.isnan(tasks.Y[tasks.seen]).any(axis=1)]
        for k, member in enumerate(members):
            new = member.predict_tasks(rows_of(self._seen_by(member, tasks).inputs_of(member), gaps)) if len(gaps) else []
            for t, z in enumerate(new):
                P[gaps, t, k] = to_numpy(z)[:, -1]
            for t, (rows, y, left) in enumerate(zip(tasks.rows, tasks.y, member.residuals())):
                P[rows, t, k] = to_numpy(y) - to_numpy(left)
        return P

    def _judged(self, judge: Judge, labels: Tasks, folds: list[Fold], P: np.ndarray) -> np.ndarray:
        """The mixture, unless a member alone is better by more than a standard error of the paired difference."""
        K = P.shape[2]
        tables = [self.weights_, *(np.tile(np.eye(K)[k], (len(labels), 1)) for k in range(K))]
        losses = np.stack([judge(folds, mixed(P, table), residuals_of(labels, mixed(P, table))) for table in tables])
        losses = losses[:, np.isfinite(losses).all(axis=0)]
        if losses.shape[1] < 2:
            return self.weights_
        best = int(np.argmin(losses.mean(axis=1)))
        gain = losses[0] - losses[best]
        clear = gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain))
        return tables[best] if clear else self.weights_

    def _calibrate(self, labels: Tasks, folds: list[Fold], P: np.ndarray) -> None:
        """Residuals of mixtures found on the other folds, and how much they exceed what members state."""
        chosen, honest = self.weights_, np.full(P.shape[:2], np.nan)
        alone = chosen.max(axis=1) == 1
        for _, test in folds:
            others = P.copy()
            others[test] = np.nan
            table = chosen if alone.all() else np.where(alone[:, None], chosen, stack(errors_of(labels, others)))
            honest[test] = mixed(P[test], table)
        self._residuals = residuals_of(labels, honest)
        self._error = np.array([np.average(r**2, weights=w) for r, w in zip(self._residuals, labels.weights)])
        apart = disagreement(P, chosen)
        stated = (chosen * self.held_out_mse_).sum(axis=1)
        for t, (rows, w) in enumerate(zip(labels.rows, labels.weights)):
            known = np.isfinite(apart[rows, t])
            stated[t] += np.average(apart[rows, t][known], weights=w[known]) if known.any() else 0.0
        self._excess = np.where(stated > 0, self._error / np.where(stated > 0, stated, 1.0), 1.0)

    def predict_tasks(self, X: Any) -> list[np.ndarray]:
        return self._mix(self._predictions(X))

    def _predictions(self, X: Any) -> dict[int, list[np.ndarray]]:
        """What every member with a weight says, by its number."""
        check_is_fitted(self, "weights_")
        used = [(k, member) for k, member in enumerate(self.members_) if member is not None]
        return {k: [to_numpy(z) for z in member.predict_tasks(self._inputs(member, X))] for k, member in used}

    def _mix(self, parts: dict[int, list[np.ndarray]]) -> list[np.ndarray]:
        return [sum(self.weights_[t, k] * part[t] for k, part in parts.items()) for t in range(len(self.weights_))]

    def std(self, X: Any) -> np.ndarray:
        """(m, T): standard deviation of a new observation at x; see the module's docstring."""
        return self.predict_and_std(X)[1]

    def predict_and_std(self, X: Any) -> tuple[list[np.ndarray], np.ndarray]:
        """`predict_tasks(X)` and `std(X)`."""
        parts, T = self._predictions(X), len(self.weights_)
        out = np.zeros((X.shape[0], T))
        for k in parts:
            member: Any = self.members_[k]
            stated = self.held_out_mse_[:, k]
            if hasattr(member, "std"):
                stated = to_numpy(member.std(self._inputs(member, X))) ** 2
            out += self.weights_[:, k] * stated
        for t in range(T):
            if parts[min(parts)][t].shape[1] <= 2:  # other encodings than labels have no such spread
                P = np.stack([parts[k][t][:, -1] if k in parts else out[:, t] for k in range(len(self.names_))], axis=1)
                out[:, t] += disagreement(P[:, None], self.weights_[t : t + 1])[:, 0]
        return self._mix(parts), np.sqrt(self._excess * out)

    def variance(self, X: Any) -> np.ndarray:
        """(m, T) in units of the held-out error."""
        return np.where(self._error > 0, self.std(X) ** 2 / np.where(self._error > 0, self._error, 1.0), 1.0)

    @available_if(lambda self: any(hasattr(member, "noise_share") for member in getattr(self, "members_", [])))
    def noise_share(self) -> np.ndarray:
        """(T,) in [0, 1]: the share of noise in the held-out error, by the first member that knows the noise."""
        k = next(k for k, member in enumerate(self.members_) if hasattr(member, "noise_share"))
        noise = self.members_[k].noise_share() * self.held_out_mse_[:, k]  # type: ignore[union-attr]
        return np.clip(np.where(self._error > 0, noise / np.where(self._error > 0, self._error, 1.0), 1.0), 0.0, 1.0)

    def residuals(self) -> list[np.ndarray]:
        """Held-out residuals of y, one array per task."""
        check_is_fitted(self, "weights_")
        return list(self._residuals)

    # ------------------------------------------------------------------ alone, as a scikit-learn regressor

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """X (n, d), an array or a DataFrame; y (n,) or (n, T), NaN where an output was not observed."""
        tasks = Tasks.read(self, X, y, sample_weight, self)
        self._single = tasks.single
        return self.fit_tasks(tasks)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """(m,) or (m, T); with `return_std` also the standard deviation of a new observation."""
        check_is_fitted(self, "weights_")
        X = read_inputs(self, X, self)[1]
        scores, std = self.predict_and_std(X) if return_std else (self.predict_tasks(X), np.zeros((0, 1)))
        mean = np.concatenate([z[:, -1:] for z in scores], axis=1)
        mean, std = (mean[:, 0], std[:, 0]) if self._single else (mean, std)
        return (mean, std) if return_std else mean

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = self.allow_nan
        return tags


def with_trees(ridge: KernelRidge, tasks: Tasks) -> Surrogate:
    """A fitted kernel ridge; or its mixture with boosted trees, where a first look at these promises something and they clearly
    help."""
    X = to_numpy(tasks.X)
    for y, rows, w, left in zip(tasks.y, tasks.rows, tasks.weights, ridge.residuals()):
        y, w, left = (to_numpy(v) for v in (y, w, left))
        if len(y) >= LEAST and np.ptp(y) > 0 and probed(X[rows], y, w, left) < PROMISING:
            break
    else:
        return ridge
    mixture = Portfolio()
    mixture.raw = False  # inputs are read, and refused, as the ridge's
    mixture.names_, (_, trees) = mixture._members()
    mixture._mixed(tasks, [ridge, trees], sure=True)
    return mixture if mixture.weights_[:, 1].any() else ridge


# ---------------------------------------------------------------------- weights


def mixed(P: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, T) of predictions (n, T, K) and weights (T, K)."""
    return np.einsum("ntk,tk->nt", P, weights)


def disagreement(P: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n, T) weighted variance of the members' predictions (n, T, K)."""
    return np.einsum("ntk,tk->nt", (P - mixed(P, weights)[:, :, None]) ** 2, weights)


def residuals_of(labels: Tasks, predictions: np.ndarray) -> list[np.ndarray]:
    """y less its held-out prediction, task by task; less its mean on rows that were never held out."""
    out = []
    for t, (y, rows, w) in enumerate(zip(labels.y, labels.rows, labels.weights)):
        found = predictions[rows, t]
        out.append(y - np.where(np.isfinite(found), found, np.average(y, weights=w)))
    return out


def errors_of(labels: Tasks, P: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each task the held-out residuals (m, K) of all members, and the weights of those rows, which sum to one."""
    out = []
    for t, (y, rows, w) in enumerate(zip(labels.y, labels.rows, labels.weights)):
        known = np.isfinite(P[rows, t]).all(axis=1)
        out.append((y[known, None] - P[rows[known], t], w[known] / w[known].sum()))
    return out


def stack(errors: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """(T, K) weights of every output; those of an output with fewer than two held-out rows are the mean of the others."""
    K = errors[0][0].shape[1]
    known = np.array([len(e) > 1 for e, _ in errors])
    table = np.full((len(errors), K), 1 / K)
    moments = [moments_of(e, share) for (e, share), some in zip(errors, known) if some]
    common = np.mean([capped(G, 4.0) for G in moments], axis=0) if moments else None
    for t in np.flatnonzero(known):
        table[t] = bagged_weights(*errors[t], common)
    if known.any():
        table[~known] = table[known].mean(axis=0)
    return table


def moments_of(e: np.ndarray, share: np.ndarray) -> np.ndarray:
    """G (K, K), the mean of e e' over rows."""
    return (e * share[:, None]).T @ e / share.sum()


def bagged_weights(e: np.ndarray, share: np.ndarray, common: np.ndarray | None = None) -> np.ndarray:
    """(K,) mean over bootstrap samples of the weights that are best on each, sharpened, small ones dropped.

    `common` is the mean of G over the outputs, each in units of its best member: so many rows of it are added to each G.
    """
    n = len(e)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=SAMPLES) * share  # (B, n)
    counts = counts[counts.sum(axis=1) > 0]
    unit = float(np.diagonal(moments_of(e, share)).min())
    more = 0.0 if common is None else POOLED * unit * common
    found = np.mean([simplex_minimum((n * moments_of(e, c) + more) / (n + POOLED)) for c in counts], axis=0)
    found = found**SHARPNESS / (found**SHARPNESS).sum()
    found = np.where(found < NEGLIGIBLE, 0.0, found)
    return found / found.sum()


def capped(G: np.ndarray, largest: float) -> np.ndarray:
    """G in units of the best member's squared error, and no member's error above `largest` times that."""
    size = np.diagonal(G)
    known = np.where(size > 0, size, 1.0)
    scale = np.where(size > 0, np.sqrt(np.minimum(size / (size.min() or known.min()), largest) / known), 0.0)
    return G * np.outer(scale, scale)


def simplex_minimum(G: np.ndarray) -> np.ndarray:
    """The w of w' G w -> min, w >= 0, sum w = 1: non-negative least squares, |L' w|^2 and a heavy row for the sum."""
    size = np.diagonal(G).min()
    if not size > 0:  # a member without error
        exact = (np.diagonal(G) <= 0).astype(float)
        return exact / exact.sum()
    # A member whose error is huge has no weight, and a bound on it keeps the others visible in double precision.
    values, vectors = np.linalg.eigh(capped(G, LARGEST))
    heavy = 1e3 * np.sqrt(LARGEST)
    A = np.concatenate([np.sqrt(np.maximum(values, 0))[:, None] * vectors.T, np.full((1, len(G)), heavy)])
    w = nnls(A, np.concatenate([np.zeros(len(G)), [heavy]]))[0]
    return w / w.sum()

"""Boosted trees for every task, kept as arrays that a file can hold.

scikit-learn's HistGradientBoostingRegressor grows them, small steps and small trees where rows are few. How many are best is
read from rows held out: every fold grows `ROUNDS`, and errors are added up after each of them. Rows with equal inputs are held
out together, so that copies tell nothing. Words are replaced by the mean label of the rows that have them, those of few rows as
one word; gaps go where they predict best.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from lawful._threads import n_threads, on_threads
from lawful.surrogates.base import Surrogate
from lawful.surrogates.encoders import Numbers
from lawful.tasks import Tasks, rows_of

__all__ = ["Trees", "probed"]

ROUNDS, RATE = 500, 0.05
LEAF, LEAVES = 20, 31  # rows in a leaf, and leaves of a tree, where rows are many
PRIOR = 10.0  # rows that the mean label of a word counts as: benchmarks/public_tables.py
QUICK_ROUNDS, QUICK_RATE = 100, 0.1  # of a first look


class Trees(Surrogate):
    """Boosted trees, one sum of them for each column of the encoded labels. See the module's docstring.

    >>> import numpy as np
    >>> from lawful.surrogates import Trees
    >>> from lawful.tasks import Tasks
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> model = Trees().fit_tasks(Tasks.of(X, np.sign(X[:, 0])))
    >>> model.predict_tasks(X[[20, 180]])[0].round(1).ravel()
    array([-1.,  1.])
    """

    raw = True
    allow_nan = True

    def fit_tasks(self, tasks: Tasks) -> Self:
        given = tasks.inputs_of(self)
        self.encoder_ = Numbers(codes=True).fit(rows_of(given, tasks.seen))
        X = self.encoder_.transform(given)
        found = on_threads(lambda t: self._grown(X, tasks, t), range(len(tasks)), n_threads(None))
        self.words_, self.forests_, self._residuals = (list(part) for part in zip(*found))
        return self

    def _grown(self, X: np.ndarray, tasks: Tasks, t: int) -> tuple[dict[int, np.ndarray], list[Forest], np.ndarray]:
        """Means of words, the forest of every column of Z, and residuals of y held out."""
        from lawful.surrogates._forest import along

        rows, y, w, Z = tasks.rows[t], np.asarray(tasks.y[t]), np.asarray(tasks.weights[t]), np.asarray(tasks.Z[t])
        X = X[rows]
        folds = folded(X)
        held = np.zeros((ROUNDS, len(y)))
        for fold in np.unique(folds) if np.ptp(y) > 0 and np.ptp(folds) > 0 else []:
            learn, test = folds != fold, folds == fold
            words = self._means_of_words(X[learn], y[learn], w[learn])
            forest = grown(replaced(X[learn], words), y[learn], w[learn], ROUNDS, RATE)
            held[:, test] = along(replaced(X[test], words), ROUNDS, *forest)
        rounds = int(np.argmin((held - y) ** 2 @ w)) + 1 if held.any() else ROUNDS
        residuals = y - (held[rounds - 1] if held.any() else np.average(y, weights=w))
        words = self._means_of_words(X, y, w)
        X = replaced(X, words)
        return words, [grown(X, z, w, rounds, RATE) for z in Z.T], residuals

    def _means_of_words(self, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> dict[int, np.ndarray]:
        """For each column of words the mean label of each, drawn towards that of all."""
        mean, out = float(np.average(y, weights=w)), {}
        for j, count in self.encoder_.coded.items():
            seen = np.isfinite(X[:, j])
            code = X[seen, j].astype(int)
            sums, sizes = (np.bincount(code, weights=v, minlength=count) for v in (w[seen] * y[seen], w[seen]))
            out[j] = (sums + PRIOR * mean) / (sizes + PRIOR)
        return out

    def predict_tasks(self, X: Any) -> list[np.ndarray]:
        from lawful.surrogates._forest import summed

        self._check_fitted()
        X = self.encoder_.transform(X)
        out = []
        for words, forests in zip(self.words_, self.forests_):
            own = replaced(X, words)
            out.append(np.stack([summed(own, *forest) for forest in forests], axis=1))
        return out

    def residuals(self) -> list[np.ndarray]:
        self._check_fitted()
        return list(self._residuals)

    def _check_fitted(self) -> None:
        if not hasattr(self, "forests_"):
            raise NotFittedError("Trees is not fitted yet; call fit_tasks first")

    def state(self) -> dict[str, Any]:
        """Arrays, words and numbers; forests without what no prediction needs."""
        encoder = {"columns": self.encoder_.columns_, "n_features": self.encoder_.n_features_in_}
        words = [[[j, means] for j, means in known.items()] for known in self.words_]
        forests = [[list(forest) for forest in own] for own in self.forests_]
        return {"encoder": encoder, "words": words, "forests": forests, "residuals": self._residuals}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        out = cls()
        out.encoder_ = Numbers(codes=True)
        out.encoder_.columns_ = [(str(kind), known) for kind, known in state["encoder"]["columns"]]
        out.encoder_.n_features_in_ = int(state["encoder"]["n_features"])
        out.words_ = [{int(j): np.asarray(means, dtype=float) for j, means in known} for known in state["words"]]
        out.forests_ = [[checked(Forest(*parts), out.encoder_) for parts in own] for own in state["forests"]]
        for words in out.words_:
            if any(len(words[j]) != count for j, count in out.encoder_.coded.items()):
                raise ValueError("trees with words that are not those of their columns")
        out._residuals = state["residuals"]
        return out

    def _example(self) -> None:
        return None  # inputs are not kept


class Forest(NamedTuple):
    """A sum of trees: nodes in one table, each tree a part of it, and where these begin."""

    base: float
    roots: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray  # 0 for a leaf
    right: np.ndarray
    gaps_left: np.ndarray
    value: np.ndarray


def folded(X: np.ndarray) -> np.ndarray:
    """The fold of every row; rows with equal inputs have the same one."""
    n = len(X)
    same = np.unique(X, axis=0, return_inverse=True)[1].reshape(-1)
    count = min(5 if n < 5000 else 3, int(same.max()) + 1)
    return (np.random.default_rng(0).permutation(int(same.max()) + 1) % count)[same]


def boosted(X: np.ndarray, y: np.ndarray, w: np.ndarray, rounds: int, rate: float) -> HistGradientBoostingRegressor:
    n = len(y)
    with threadpool_limits(1, user_api="openmp"):  # of the thread that asks
        return HistGradientBoostingRegressor(
            learning_rate=rate,
            max_iter=rounds,
            max_leaf_nodes=int(np.clip(n // 30, 4, LEAVES)),
            min_samples_leaf=int(np.clip(n // 40, 3, LEAF)),
            l2_regularization=1.0,
            early_stopping=False,
            random_state=0,
        ).fit(X, y, None if np.ptp(w) == 0 else w)


def grown(X: np.ndarray, y: np.ndarray, w: np.ndarray, rounds: int, rate: float) -> Forest:
    if np.ptp(y) == 0:
        return planted([], float(y[0]))
    model = boosted(X, y, w, rounds, rate)
    return planted([tree.nodes for (tree,) in model._predictors], float(np.ravel(model._baseline_prediction)[0]))


def planted(trees: list[np.ndarray], base: float) -> Forest:
    sizes = np.array([len(tree) for tree in trees], dtype=np.int64)
    roots = np.cumsum(sizes) - sizes
    nodes = np.concatenate(trees) if trees else np.zeros(0, dtype=[])
    offset = np.repeat(roots, sizes)

    def part(name: str, kind: type) -> np.ndarray:
        return nodes[name].astype(kind) if trees else np.zeros(0, dtype=kind)

    inside = part("is_leaf", np.int64) == 0
    left, right = (np.where(inside, part(name, np.int64) + offset, 0).astype(np.int32) for name in ("left", "right"))
    gaps = part("missing_go_to_left", np.uint8)
    return Forest(
        base, roots, part("feature_idx", np.int32), part("num_threshold", float), left, right, gaps, part("value", float)
    )


def checked(forest: Forest, encoder: Numbers) -> Forest:
    """A forest from a file, of which compiled code will believe that children come after their parents and are there."""
    n, own = len(forest.value), np.arange(len(forest.value))
    inside = forest.left != 0
    ends = [np.asarray(child)[inside] for child in (forest.left, forest.right)]
    sound = all(len(part) == n for part in forest[2:]) and all(np.all((end > own[inside]) & (end < n)) for end in ends)
    inputs = np.asarray(forest.feature)[inside]
    if not sound or not np.all((forest.roots >= 0) & (forest.roots < n)) or np.any((inputs < 0) | (inputs >= encoder.width)):
        raise ValueError("trees whose nodes do not fit together")
    kinds = (np.int64, np.int32, float, np.int32, np.int32, np.uint8, float)
    return Forest(float(forest.base), *(np.ascontiguousarray(part, dtype=kind) for part, kind in zip(forest[1:], kinds)))


def replaced(X: np.ndarray, words: dict[int, np.ndarray]) -> np.ndarray:
    """X with the mean labels of its words in place of their codes."""
    if not words:
        return X
    X = X.copy()
    for j, means in words.items():
        seen = np.isfinite(X[:, j])
        X[seen, j] = means[X[seen, j].astype(int)]
    return X


def probed(X: np.ndarray, y: np.ndarray, w: np.ndarray, residuals: np.ndarray) -> float:
    """How large squared errors of quickly grown trees are on a fifth of the rows, relative to those of residuals there."""
    folds = folded(X)
    test = folds == 0
    if np.ptp(y[~test]) == 0:
        return np.inf
    own = (y[test] - boosted(X[~test], y[~test], w[~test], QUICK_ROUNDS, QUICK_RATE).predict(X[test])) ** 2
    return float(own @ w[test] / max(residuals[test] ** 2 @ w[test], 1e-300))

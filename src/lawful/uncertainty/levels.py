r"""Scores and ranks: which points of C(x) are in a conformal prediction set.

The score of an output y at x, by a model with the Gaussian prediction F_x(c) = (c - w)' S(x)^-1 (c - w), is how much worse y is
than the best point of the law, in standard deviations:

    s(x, y) = sqrt( F_x(y) - min over C(x) of F_x ),    y on C(x)

It is a level of the decode objective. F_x itself would be the level sets' other choice: but where w is off the law by more than
usual they would be empty, and where it is not they would be too wide. On a flat law of dimension d with Gaussian errors s^2 is
chi^2 with d degrees of freedom, F_x with T: as sets of C those of s are the smaller ones (on a line at 90 %: 1.64 standard
deviations to each side, against 1.87 on the average).

Labels need not lie on C. The score of one that does not is that of its *lawful part*, the point of C(x) nearest to it in the
metric of F_x; with outputs missing, the point of C(x) that agrees with those observed, nearest to the prediction. This is what
sets from such labels cover.

With calibration scores s_i, i = 1 ... n, y is in the set when

    #{i : s_i < s_{k(i)}(x, y)} < (1 - alpha)(n + 1)

where s_{k(i)} is the score by the model that has not seen row i. With one model (split conformal) that is s <= the
ceil((1 - alpha)(n + 1))-th smallest s_i, and coverage is at least 1 - alpha; with models by fold it is CV+ and jackknife+ of
Barber et al. (2021), at least 1 - 2 alpha in theory and about 1 - alpha in practice.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, chdtri

from lawful._array import to_numpy
from lawful.losses.quadratic import Quadratic, QuadraticForm
from lawful.uncertainty.target import Target, precision_of

PULL = 1e6  # of observed outputs over the prediction, where the others are filled in
LAWFUL = 1e-4  # of the law's own scale: labels closer to C than this, rounded ones, count as points of it
AGREES = 1e-2  # of a standard deviation: observed outputs are met when the point of C is so near

Decode = Callable[[Any, Any], Any]


class Level(NamedTuple):
    """One model at m inputs: its objective, its law, the best points and their values, and the scores it was calibrated on."""

    F: Any
    C: Any
    best: np.ndarray
    low: np.ndarray
    scores: np.ndarray  # sorted

    def rows(self, idx: np.ndarray) -> Level:
        return Level(self.F.rows(idx), self.C.rows(idx), self.best[idx], self.low[idx], self.scores)

    def score(self, c: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(np.asarray(to_numpy(self.F.value(c))) - self.low, 0.0))


def level_of(F: Any, C: Any, scores: np.ndarray, decode: Decode) -> Level:
    """What one model says of new rows: its best points, and the scores of its calibration rows in order.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Sphere
    >>> from lawful.decoders import decode
    >>> from lawful.uncertainty import level_of
    >>> level = level_of(F, Sphere().fit(np.ones((1, 2))), np.array([2.0, 1.0]), decode)
    >>> level.scores, level.best
    (array([1., 2.]), array([[0.6, 0.8]]))
    """
    d = decode(F, C)
    best = np.asarray(to_numpy(d.c), dtype=float)
    return Level(F, C, best, np.asarray(to_numpy(F.value(best)), dtype=float), np.sort(scores))


class Ranks:
    """The levels of all models, and the rank that decides.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Sphere
    >>> from lawful.decoders import decode
    >>> from lawful.uncertainty import Ranks, level_of
    >>> level = level_of(F, Sphere().fit(np.ones((1, 2))), np.array([0.5, 1.0, 2.0]), decode)
    >>> Ranks([level], alpha=0.5).inside(np.array([[0.6, 0.8]]))
    array([ True])
    """

    def __init__(self, levels: list[Level], alpha: float) -> None:
        self.levels, self.alpha = levels, alpha
        self.n = sum(len(level.scores) for level in levels)
        self.most = ceil((1 - alpha) * (self.n + 1) - 1e-9)  # counts below this are in

    def rows(self, idx: np.ndarray) -> Ranks:
        part = object.__new__(Ranks)
        part.__dict__.update(self.__dict__)
        part.levels = [level.rows(idx) for level in self.levels]
        return part

    def inside(self, c: np.ndarray) -> np.ndarray:
        """(m,) whether points of C, one a row, are in the sets."""
        return self._count(lambda level: level.score(c)) < self.most

    def inside_all(self, points: np.ndarray) -> np.ndarray:
        """(m, N) whether the points of a list are in each set."""

        def scores(level: Level) -> np.ndarray:
            cost = np.asarray(to_numpy(level.F.costs(points))) - level.low[:, None]
            cost = np.where(cost > 1e-9 * np.abs(level.low[:, None]), cost, 0.0)  # costs are sums of large terms that cancel
            return np.sqrt(cost)

        return self._count(scores) < self.most

    def _count(self, scores: Callable[[Level], np.ndarray]) -> np.ndarray:
        return sum(np.searchsorted(level.scores, scores(level), side="left") for level in self.levels)  # type: ignore[return-value]

    @property
    def whole(self) -> bool:
        """Whether there are so few calibration scores that every point of C is in."""
        return self.most > self.n

    def radii(self) -> list[float]:
        """r_k such that every point of a set has s_k <= r_k for some model k; with one model, exactly those points."""
        out = []
        for level in self.levels:
            place = ceil((1 - self.alpha) * (self.n + 1) * len(level.scores) / self.n - 1e-9) if self.n else 1
            out.append(float(level.scores[place - 1]) if place <= len(level.scores) else np.inf)
        return out


# ---------------------------------------------------------------------- labels


def lawful_parts(F: Any, C: Any, Y: np.ndarray, decode: Decode) -> tuple[np.ndarray, np.ndarray]:
    """The points of C that labels (m, T), NaN = missing, stand for, and whether the labels lie there themselves (m,).

    Rows without any observed output give NaN.
    """
    Y = np.asarray(Y, dtype=float)
    seen = np.isfinite(Y)
    out, on = np.full(Y.shape, np.nan), np.zeros(len(Y), bool)
    whole = np.flatnonzero(seen.all(axis=1))
    if len(whole):
        part, y = C.rows(whole), Y[whole]
        off = np.asarray(to_numpy(part.relative(y)))
        out[whole], on[whole] = y, off <= LAWFUL
        rest = whole[off > 1e-8]
        if len(rest):
            out[rest] = np.asarray(to_numpy(decode(F.rows(rest).recentred(Y[rest]), C.rows(rest)).c))
    some = np.flatnonzero(seen.any(axis=1) & ~seen.all(axis=1))
    if len(some):
        G, y, known = F.rows(some), np.where(seen[some], Y[some], 0.0), seen[some]
        c = np.asarray(to_numpy(decode(_pulled(G, y, known), C.rows(some)).c))
        size = np.sqrt(np.einsum("itt->it", precision_of(G)))
        out[some] = c
        on[some] = (np.where(known, np.abs(c - y) * size, 0.0) <= AGREES).all(axis=1)
    return out, on


def _pulled(F: Any, y: np.ndarray, known: np.ndarray) -> Any:
    """F with a strong pull of the known outputs towards y."""
    w = np.asarray(to_numpy(F.center))
    if isinstance(F, Quadratic):
        a = np.asarray(to_numpy(F.a))
        force = PULL * a * known
        return Quadratic.around((a * w + force * y) / (a + force), a + force)
    P = precision_of(F)
    force = PULL * np.einsum("itt->it", P) * known
    Q = P + force[:, :, None] * np.eye(P.shape[1])
    right = np.einsum("its,is->it", P, w) + force * y
    return QuadraticForm(Q, np.linalg.solve(Q, right[:, :, None])[:, :, 0])


def scores_of(F: Any, C: Any, Y: np.ndarray, decode: Decode) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(m,) s(x, y) of calibration labels, NaN where nothing was observed; whether they lie on the law; the best points (m, T).

    The score of a row whose observed outputs pin down only d_o of the d dimensions of C is made comparable with those of
    complete rows, as chi distributions of d_o and d degrees of freedom would be.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Sphere
    >>> from lawful.decoders import decode
    >>> from lawful.uncertainty import scores_of
    >>> scores, on_law, best = scores_of(F, Sphere().fit(np.ones((1, 2))), np.array([[0.6, 0.8]]), decode)
    >>> scores, on_law
    (array([0.]), array([ True]))
    """
    level = level_of(F, C, np.empty(0), decode)
    parts, on = lawful_parts(F, C, Y, decode)
    known = np.isfinite(parts).all(axis=1)
    s = np.where(known, level.score(np.where(known[:, None], parts, level.best)), np.nan)
    seen = np.isfinite(Y)
    gaps = np.flatnonzero(known & ~seen.all(axis=1))
    if len(gaps) and not (hasattr(C, "points_") or hasattr(C, "pairs")):
        pinned, d = _pinned(F.rows(gaps), C.rows(gaps), parts[gaps], seen[gaps])
        tail = chdtrc(np.maximum(pinned, 1), s[gaps] ** 2)
        s[gaps] = np.where((pinned < d) & (pinned > 0), np.sqrt(chdtri(d, tail)), s[gaps])
    return s, on, level.best


def _pinned(F: Any, C: Any, points: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, int]:
    """(m,) how many of the d dimensions of C the observed outputs determine, and d."""
    target = Target.of(F, C, points)
    B, _ = target.surface.bases(points / target.surface.scale)
    return np.linalg.matrix_rank(B * seen[:, :, None], tol=1e-6), target.surface.dimension

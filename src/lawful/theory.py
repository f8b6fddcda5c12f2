"""The constants of the paper's theorems, computed.

For a SELF loss l(c, y) = <psi(c), V psi(y)> the comparison inequality (`teo:comparison-inequality`) says

    E(f) - E(f*) <= q sqrt(1/T sum_t ||g_t - g*_t||^2),      q = 2 sup_{c in C} sqrt(1/T sum_t s_t(c_t)),
    s_t(c) = ||V* psi(c)||^2

so the law enters every rate through q alone: the smaller C, the smaller q. Losses are written as in the library,
l(c, y) = <V* psi(c), psi(y)> with psi(y) the encoding that is regressed:

* square loss: psi(y) = (y^2, y, 1) and V* psi(c) = (0, -2c, c^2), so s(c) = 4 c^2 + c^4 (with erratum E6);
* any other loss: psi(y) is the indicator of the label among `labels`, V* psi(c) = (l(c, y_k))_k, s(c) = sum_k l(c, y_k)^2.

**The supremum.** For every loss here but the 0-1 loss l(., y) is convex and nonnegative, so s is convex. Then for any step size
h > 0 and any closed set C, convex or not, the iteration c+ = P_C(c + h grad s(c)) never goes down: c is itself a point of C,
hence |c+ - c - h grad|^2 <= |h grad|^2, hence <grad, c+ - c> >= |c+ - c|^2 / 2h >= 0, and s(c+) >= s(c) + <grad, c+ - c>. Long
steps make it a linear oracle, which jumps between extreme points. It is started at many points, with growing steps; finite sets
are enumerated, intervals solved output by output, products block by block, unions member by member. What it finds is a lower
bound of the supremum, and on every set whose constant is known it is that constant (tests/test_theory.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from lawful.decoders import project
from lawful.losses import Hinge, Logistic, Loss, Mixed, Square, ZeroOne
from lawful.sets import ConstraintSet, Penalized, Product, Rankings, Reals, Union

__all__ = ["q_constant"]

FAR = 1e8  # an ascent that comes this far from where it began does not end
MOST = 1000  # outputs tried where the set itself tells their number
SIGNS = (Hinge, Logistic)


def q_constant(
    constraint: ConstraintSet,
    loss: Any = None,
    *,
    n_tasks: int | None = None,
    labels: Any = None,
    n_starts: int = 64,
    random_state: Any = 0,
    return_point: bool = False,
) -> Any:
    """q_{C,l,T} of the comparison inequality: how much a law shrinks the error bound.

    Parameters
    ----------
    constraint : ConstraintSet
        Any set of outputs that does not depend on inputs. An unbounded one has q = inf.
    loss : Loss, default Square()
        `Square` as in the paper (its metric is not used, unless it is an array of T weights); any other loss is encoded by
        `labels`.
    n_tasks : int, optional
        T, where neither a fitted constraint nor its parameters say it.
    labels : sequence of numbers, optional
        The values that labels take, for losses other than `Square`. Default {-1, 1} for `Hinge` and `Logistic`, {-1, 0, 1}
        for `ZeroOne`.
    n_starts, random_state : starts of the search for the supremum
    return_point : also return the point of C where it is attained (None if unbounded)

    Examples
    --------
    The sphere needs sqrt(T) times less than the box that it touches (lem:q-for-sphere):

    >>> from lawful import Box, Sphere
    >>> from lawful.theory import q_constant
    >>> round(q_constant(Box(-1, 1), n_tasks=16), 6), round(q_constant(Sphere(1.0), n_tasks=16), 6)
    (4.472136, 1.118034)
    >>> from lawful import Equations
    >>> round(q_constant(Equations("y1**4 = y1**2 - y2**2")), 6)  # the lemniscate: largest at its tips
    3.162278
    """
    T = count_tasks(constraint, n_tasks)
    C = constraint if getattr(constraint, "n_tasks_", None) == T else clone(constraint).fit(np.zeros((1, T)))
    sizes = Sizes.of(Square() if loss is None else loss, T, labels)
    value, point = supremum(C, sizes, n_starts, check_random_state(random_state))
    q = float(2 * np.sqrt(value / T))
    return (q, point) if return_point else q


def count_tasks(constraint: Any, n_tasks: int | None) -> int:
    """T: as told, as fitted, or the one number of outputs that the set accepts (equations: the outputs that they name)."""
    if n_tasks is not None:
        return int(n_tasks)
    if hasattr(constraint, "n_tasks_"):
        return int(constraint.n_tasks_)

    def accepts(T: int) -> bool:
        try:
            clone(constraint).fit(np.zeros((1, T)))
        except ValueError:
            return False
        return True

    found = next((T for T in range(1, MOST) if accepts(T)), None)
    named = getattr(constraint, "equations", None) is not None  # they accept outputs that no equation names
    if found is None or (not named and accepts(found + 1)):
        raise ValueError(f"q_constant: {type(constraint).__name__} does not say how many outputs there are; give n_tasks")
    return found


class Sizes:
    """s_t(c) = ||V* psi(c)||^2 for every task, and its derivative where there is one."""

    def __init__(self, values: list[Callable[..., Any]], slopes: list[Callable[..., Any] | None]) -> None:
        self.values, self.slopes = values, slopes

    @classmethod
    def of(cls, loss: Any, T: int, labels: Any) -> Sizes:
        losses = list(loss.losses) if isinstance(loss, Mixed) else [loss] * T
        if len(losses) != T:
            raise ValueError(f"q_constant: Mixed has {len(losses)} losses, but there are {T} outputs; give one for each")
        weights = loss.weights if isinstance(loss, Mixed) else getattr(loss, "metric", None)
        scale = np.ones(T) if weights is None or isinstance(weights, str) else np.asarray(weights, dtype=float)
        if scale.shape != (T,):
            raise ValueError(f"q_constant takes one weight for each of {T} outputs, got an array of shape {scale.shape}")
        return cls(*map(list, zip(*(_size(losses[t], float(scale[t]), labels) for t in range(T)))))

    def take(self, tasks: Sequence[int]) -> Sizes:
        return Sizes([self.values[t] for t in tasks], [self.slopes[t] for t in tasks])

    def __call__(self, c: np.ndarray) -> np.ndarray:
        return sum(np.asarray(value(c[:, t])) for t, value in enumerate(self.values))  # type: ignore[return-value]

    def gradient(self, c: np.ndarray) -> np.ndarray:
        return np.stack([slope(c[:, t]) for t, slope in enumerate(self.slopes) if slope is not None], axis=1)

    @property
    def smooth(self) -> bool:
        return all(slope is not None for slope in self.slopes)


def _size(loss: Loss, weight: float, labels: Any) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    w = weight**2
    if isinstance(loss, Square):
        return lambda c: w * (4 * c**2 + c**4), lambda c: w * (8 * c + 4 * c**3)
    if labels is None:
        if not isinstance(loss, (*SIGNS, ZeroOne)):
            raise ValueError(
                f"q_constant: the constant of {type(loss).__name__} depends on the values that labels take; give labels"
            )
        labels = (-1.0, 1.0) if isinstance(loss, SIGNS) else (-1.0, 0.0, 1.0)
    y = np.asarray(labels, dtype=float).ravel()

    def value(c: np.ndarray) -> np.ndarray:
        return w * np.sum(np.asarray(loss(c[:, None], y[None])) ** 2, axis=1)

    def slope(c: np.ndarray) -> np.ndarray:
        pairs = c[:, None], np.broadcast_to(y, (len(c), len(y)))
        return 2 * w * np.sum(np.asarray(loss(*pairs)) * np.asarray(loss.derivative(*pairs)), axis=1)  # type: ignore[attr-defined]

    return value, slope if hasattr(loss, "derivative") else None


Best = tuple[float, np.ndarray | None]


def supremum(C: Any, sizes: Sizes, n_starts: int, rng: Any) -> Best:
    """sup over C of sum_t s_t(c_t), and where; the kinds of sets in the order of how much they tell."""
    if hasattr(C, "points_"):
        values = sizes(C.points_)
        return float(values.max()), C.points_[values.argmax()]
    if isinstance(C, Product):
        parts = [(supremum(part, sizes.take(idx), n_starts, rng), idx) for part, idx in C.blocks_]
        if any(point is None for (_, point), _ in parts):
            return np.inf, None
        where = np.empty(C.n_tasks_)
        for (_, point), idx in parts:
            where[idx] = point
        return sum(value for (value, _), _ in parts), where
    if isinstance(C, Penalized):  # a price, not a wall: every output is possible
        return np.inf, None
    if isinstance(C, Union):
        return max((supremum(member, sizes, n_starts, rng) for member in C.members_), key=lambda best: best[0])
    if isinstance(C, Rankings):  # every comparison is -1 or 1, and an order and its reverse have all of them
        ends = C.sample(max(n_starts, 2), rng)
        values = sizes(np.concatenate([ends, -ends]))
        return float(values.max()), np.concatenate([ends, -ends])[values.argmax()]
    if hasattr(C, "interval") or isinstance(C, Reals):
        return _by_interval(C, sizes)
    if not sizes.smooth:
        raise ValueError("q_constant: a loss without a derivative is only possible on finite sets, boxes and their products")
    return _ascend(C, sizes, n_starts, rng)


def _by_interval(C: Any, sizes: Sizes) -> Best:
    """A convex s is largest at an end; the 0-1 loss anywhere but at a label, so a point between is tried as well."""
    where = np.empty(C.n_tasks_)
    value = 0.0
    for t in range(C.n_tasks_):
        low, high = (float(np.clip(end, -FAR, FAR)) for end in C.interval(t))
        tried = np.array([low, high, 0.5 * (low + high), 0.4123 * low + 0.5877 * high])
        values = sizes.values[t](tried)
        best = int(values.argmax())
        # An open end counts as infinite if s still grows there: a hinge does on one side and not on the other.
        if abs(tried[best]) == FAR and values[best] > 1.5 * sizes.values[t](tried[[best]] / 2)[0]:
            return np.inf, None
        where[t], value = tried[best], value + float(values[best])
    return value, where


def _ascend(C: Any, sizes: Sizes, n_starts: int, rng: Any, steps: int = 60) -> Best:
    T = C.n_tasks_
    spread = 10.0 ** rng.uniform(-1, 1, (n_starts, 1))
    c = np.asarray(project(np.concatenate([spread * rng.standard_normal((n_starts, T)), np.eye(T), -np.eye(T)]), C))
    begin, best, where = 1 + np.abs(c).max(), -np.inf, c[0]
    step, quiet = 0.1, 0
    for _ in range(steps):
        values = sizes(c)
        if values.max() > best * (1 + 1e-13) + 1e-300:
            best, where, quiet = float(values.max()), c[values.argmax()], 0
        else:
            quiet += 1
        if np.abs(c).max() > FAR * begin:
            return np.inf, None
        if quiet >= 8:
            break
        slope = sizes.gradient(c)
        length = np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-300)
        c = np.asarray(project(c + step * np.maximum(1.0, np.abs(c).max()) * slope / length, C))
        step *= 1.5
    return best, where

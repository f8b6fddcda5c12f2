"""`lawful.project`: the nearest points of a set, for anyone who has points and a law but nothing to learn."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import clone

from lawful._array import array_namespace, is_foreign, like, to_numpy
from lawful.decoders.base import Decoding
from lawful.decoders.dispatch import decode
from lawful.losses.quadratic import Quadratic, QuadraticForm
from lawful.sets.base import ConstraintSet
from lawful.sets.equations import Equations
from lawful.sets.names import highest_input

LARGEST = 1e100


def project(
    points: Any,
    constraint: ConstraintSet,
    weights: Any = None,
    X: Any = None,
    certificate: bool = False,
    metric: Any = None,
) -> np.ndarray | Decoding:
    """The point of `constraint` nearest to each row of `points` (m, T), in the metric sum_t weights_t (c_t - p_t)^2.

    Or, with `metric` Q, in (c - p)' Q (c - p): the inverse of a covariance of errors makes it generalised least squares.

    Parameters
    ----------
    points : (m, T) array; torch tensors, and arrays of other libraries of the array standard, stay what and where they are
    constraint : ConstraintSet
        One that was already fitted to T outputs is used as it is, unless `points` has column names of its own.
    weights : (T,) or (m, T) positive array, optional
    X : (m, d) array, when the constraint depends on inputs
    metric : (T, T) or (m, T, T) symmetric positive definite array, optional, instead of weights
    certificate : return the whole `Decoding` (residual, status, margin, ...) instead of the points

    Examples
    --------
    >>> from lawful import Sphere, project
    >>> project([[3.0, 4.0]], Sphere())
    array([[0.6, 0.8]])
    """
    frame_names = [str(c) for c in points.columns] if hasattr(points, "columns") else None
    if isinstance(constraint, type) or not hasattr(constraint, "relative"):
        raise TypeError(
            f"project: constraint={constraint!r} will not do; give a set such as Equations('y1 + y2 = 1') or Sphere()"
        )
    if np.ma.is_masked(points):
        raise ValueError(
            "project: points has masked entries; it needs all outputs of every row, so fill them or drop these rows"
        )
    p = points if is_foreign(points) else np.asarray(points, dtype=float)
    xp = array_namespace(p)
    if p.ndim != 2 or not bool(xp.all(xp.isfinite(p))):
        raise ValueError(f"project needs finite points of shape (m, T), got shape {tuple(p.shape)}")
    if p.shape[0] and p.shape[1] and float(xp.max(abs(p))) > LARGEST:
        raise ValueError(f"project: points beyond {LARGEST:g} have no squared distance in floating point; use other units")
    a = None if weights is None else like(weights if is_foreign(weights) else np.asarray(weights, dtype=float), p)
    if a is not None:
        if not bool(xp.all(xp.isfinite(a) & (a > 0))):
            raise ValueError("project needs positive weights of shape (T,) or (m, T)")
        a = xp.broadcast_to(a, tuple(p.shape))
    names = [str(c) for c in X.columns] if hasattr(X, "columns") else None
    if X is not None:
        X = X if is_foreign(X) else np.asarray(X, dtype=float)
        if X.ndim != 2 or len(X) != len(p):
            raise ValueError(f"project: X has shape {X.shape}, but there are {len(p)} points; give one row of inputs each")
    if getattr(constraint, "n_tasks_", None) == p.shape[1] and frame_names in (None, getattr(constraint, "outputs_", None)):
        C = constraint
    else:
        here, inputs = to_numpy(p), None if X is None else to_numpy(X)
        C = _kept(constraint, here, X, frame_names) or clone(constraint).fit(here, inputs, outputs=frame_names, inputs=names)
    if X is not None:
        C = C.at(like(X, p))
    F = Quadratic.around(p, a) if metric is None else QuadraticForm(like(_checked(metric, a, tuple(p.shape)), p), p)
    d = decode(F, C)
    return d if certificate else d.c


def _checked(metric: Any, weights: Any, shape: tuple[int, int]) -> np.ndarray:
    """A full metric, symmetric and positive definite."""
    Q = np.asarray(to_numpy(metric) if is_foreign(metric) else metric, dtype=float)
    if weights is not None:
        raise ValueError("project: weights and metric are two ways to say one thing; give one of them")
    if Q.shape not in ((shape[1],) * 2, (shape[0], shape[1], shape[1])) or not np.isfinite(Q).all():
        raise ValueError(f"project: metric of shape {Q.shape} will not do; give a finite ({shape[1]}, {shape[1]}) matrix")
    unit = np.sqrt(np.abs(np.diagonal(Q, axis1=-2, axis2=-1)))
    unit = np.where(unit > 0, unit, 1.0)
    free = Q / (unit[..., :, None] * unit[..., None, :])
    if not np.allclose(free, np.swapaxes(free, -1, -2), atol=1e-10) or not (np.linalg.eigvalsh(free) > 0).all():
        raise ValueError("project: metric must be symmetric and positive definite; the inverse of a covariance is")
    return (Q + np.swapaxes(Q, -1, -2)) / 2


def _kept(constraint: ConstraintSet, p: np.ndarray, X: Any, outputs: list[str] | None) -> ConstraintSet | None:
    """A law in words, fitted to points that lie about where these do; kept, so that its seeds are found once.

    Where the points are is rounded (their spread to a power of 4), so that what is kept does not depend on who came first. None
    for sets that need little to set up, or depend on inputs.
    """
    words = getattr(constraint, "equations", None)
    words = [words] if isinstance(words, str) else words
    if not (isinstance(constraint, Equations) and isinstance(words, list | tuple) and all(isinstance(w, str) for w in words)):
        return None
    if X is not None or not len(p):
        return None
    location, spread = p.mean(axis=0), p.std(axis=0)
    spread = np.where(spread > 1e-12 * np.abs(location), spread, np.abs(location))
    spread = 4.0 ** np.round(np.log(np.where(spread > 0, spread, 1.0)) / np.log(4.0))
    near = np.round(location / spread) * spread
    return _fitted(tuple(words), tuple(outputs or ()), tuple(near.tolist()), tuple(spread.tolist()))


@lru_cache(maxsize=32)
def _fitted(
    words: tuple[str, ...], outputs: tuple[str, ...], location: tuple[float, ...], spread: tuple[float, ...]
) -> ConstraintSet | None:
    T = len(location)
    around = np.random.default_rng(0).standard_normal((64, T))
    around = (around - around.mean(axis=0)) / around.std(axis=0)
    law = Equations(list(words))
    if highest_input(list(words)):
        return None
    return law.fit(np.array(location) + np.array(spread) * around, outputs=list(outputs) or None)

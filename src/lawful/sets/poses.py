r"""Orientations as unit quaternions, and poses of rigid bodies.

q and -q are the same rotation, so labels q must not be averaged: two nearly equal orientations may cancel to 0, and no choice
of signs is continuous over all rotations. What both have in common is the matrix q q', and that is what is learned here: ten
numbers (off-diagonal entries times sqrt 2, so that distances are those of matrices),

    |q q' - p p'|^2 = 2 - 2 (q.p)^2        nearest(M) = v v',  v the eigenvector of M with the largest eigenvalue,

which for an average of labels is the average quaternion of Markley et al. (2007). The nine entries of a rotation matrix are
linear functions of q q', and distances are half those between the matrices: `Rotations(3)` and `UnitQuaternions()` decode
alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lawful._array import Array, array_namespace, like
from lawful.sets.algebra import Product
from lawful.sets.base import ConstraintSet, check_width
from lawful.sets.elementary import Reals
from lawful.sets.manifolds import Rotations

UPPER = np.triu_indices(4)
BASIS = np.zeros((10, 4, 4))  # orthonormal, of the symmetric matrices
BASIS[np.arange(10), UPPER[0], UPPER[1]] = BASIS[np.arange(10), UPPER[1], UPPER[0]] = np.where(
    UPPER[0] == UPPER[1], 1.0, 0.5**0.5
)


def _matrix(c: Array) -> Array:
    xp = array_namespace(c)
    return xp.reshape(c @ like(BASIS.reshape(10, 16), c), (c.shape[0], 4, 4))


def _flat(M: Array) -> Array:
    xp = array_namespace(M)
    return xp.reshape(M, (M.shape[0], 16)) @ like(BASIS.reshape(10, 16).T, M)


class UnitQuaternions(ConstraintSet):
    """Rotations as q q', |q| = 1: ten outputs, made of quaternions by `embed` and made quaternions by `quaternions`.

    The sign of a label does not matter, and that of an answer is chosen: its first component is not negative.

    >>> import numpy as np
    >>> from lawful import UnitQuaternions, project
    >>> labels = np.array([[1.0, 0.1, 0.0, 0.0], [-1.0, 0.1, 0.0, 0.0]])  # nearly the same; as numbers, nearly opposite
    >>> mean = UnitQuaternions.embed(labels).mean(axis=0, keepdims=True)
    >>> UnitQuaternions.quaternions(project(mean, UnitQuaternions())).round(6) + 0.0
    array([[1., 0., 0., 0.]])
    """

    constant_norm = True

    def _learn(self, Y: Array) -> None:
        check_width("UnitQuaternions (the outputs of embed)", 10, self.n_tasks_)

    @staticmethod
    def embed(q: Any) -> np.ndarray:
        """(m, 10) outputs for quaternions (m, 4) of any sign and length; rows with NaN are missing."""
        q = np.asarray(q, dtype=np.float64)
        if q.ndim != 2 or q.shape[1] != 4 or np.isinf(q).any():
            raise ValueError(f"UnitQuaternions.embed: quaternions of shape {q.shape} will not do; give finite ones, (m, 4)")
        length = np.sqrt(np.sum(q**2, axis=1, keepdims=True))
        if (length == 0).any():
            raise ValueError("UnitQuaternions.embed: a quaternion is 0 and has no direction; give NaN where one is missing")
        q = q / length
        return q[:, UPPER[0]] * q[:, UPPER[1]] * np.where(UPPER[0] == UPPER[1], 1.0, 2**0.5)

    @staticmethod
    def quaternions(c: Any) -> np.ndarray:
        """(m, 4) unit quaternions of outputs (m, 10), the first component that is not 0 positive."""
        q = np.linalg.eigh(_matrix(np.asarray(c, dtype=np.float64)))[1][:, :, -1]
        first = np.argmax(np.abs(q) > 1e-12, axis=1)
        return q * np.sign(q[np.arange(len(q)), first])[:, None]

    def equality(self, c: Array) -> Array:
        """P P = P, which makes P a projector, and trace P = 1, which gives it one direction."""
        xp = array_namespace(c)
        P = _matrix(c)
        return xp.concat([_flat(P @ P - P), xp.sum(xp.linalg.diagonal(P), axis=1)[:, None] - 1], axis=1)

    def equality_jacobian(self, c: Array) -> Array:
        xp = array_namespace(c)
        P, E = _matrix(c)[:, None, :, :], like(BASIS, c)[None, :, :, :]
        moved = xp.reshape(P @ E + E @ P - E, (c.shape[0], 10, 16)) @ like(BASIS.reshape(10, 16).T, c)
        trace = like(np.trace(BASIS, axis1=1, axis2=2), c)[None, None, :] + 0 * c[:, None, :]
        return xp.concat([xp.matrix_transpose(moved), trace], axis=1)

    def scales(self, c: Array) -> Array:
        """Entries of P are at most 1."""
        return array_namespace(c).ones_like(self.equality(c))

    def _of_eigenvector(self, c: Array, k: int) -> Array:
        q = array_namespace(c).linalg.eigh(_matrix(c))[1][:, :, k]
        return _flat(q[:, :, None] * q[:, None, :])

    def nearest(self, c: Array) -> Array:
        return self._of_eigenvector(c, 3)

    def turned(self, c: Array) -> list[Array]:
        """The projectors on the other eigenvectors."""
        return [self._of_eigenvector(c, k) for k in (2, 1, 0)]

    def tangent(self, c: Array, v: Array) -> Array:
        """P V (I - P) + (I - P) V P."""
        xp = array_namespace(c)
        P, V = _matrix(c), _matrix(v)
        half = P @ V @ (like(np.eye(4), c)[None, :, :] - P)
        return _flat(half + xp.matrix_transpose(half))

    def retract(self, c: Array, v: Array) -> Array:
        return self.nearest(c + v)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Uniform."""
        return self.embed(check_random_state(random_state).standard_normal((n, 4)))


class SE3(Product):
    """Poses of rigid bodies: a rotation (nine outputs, row by row) and then a translation (three).

    `embed` makes outputs of 4 x 4 matrices, `matrices` makes these of outputs. Rotations and translations are decoded apart, so
    nothing has to be said about radians and metres unless a full metric couples them; `distance` needs a length for it.

    >>> import numpy as np
    >>> from lawful import SE3, project
    >>> turn = np.array([[0.0, -1.1, 0.0, 2.0], [1.1, 0.0, 0.0, 3.0], [0.0, 0.0, 1.1, 4.0], [0.0, 0.0, 0.0, 1.0]])
    >>> SE3.matrices(project(SE3.embed(turn[None]), SE3()))[0].round(6) + 0.0
    array([[ 0., -1.,  0.,  2.],
           [ 1.,  0.,  0.,  3.],
           [ 0.,  0.,  1.,  4.],
           [ 0.,  0.,  0.,  1.]])
    """

    def __init__(self) -> None:
        pass

    @property
    def blocks(self) -> list[tuple[ConstraintSet, list[int]]]:  # type: ignore[override]
        return [(Rotations(3), list(range(9))), (Reals(), [9, 10, 11])]

    def fit(self, Y: Array, X: Array | None = None, **names: Any) -> SE3:
        check_width("SE3", 12, int(Y.shape[1]))
        return super().fit(Y, X, **names)

    @staticmethod
    def embed(poses: Any) -> np.ndarray:
        """(m, 12) outputs of poses (m, 4, 4) or (m, 3, 4): [R | t], row by row, and 0 0 0 1 below it."""
        M = np.asarray(poses, dtype=np.float64)
        if M.ndim != 3 or M.shape[1:] not in ((4, 4), (3, 4)):
            raise ValueError(f"SE3.embed: poses of shape {M.shape} will not do; give (m, 4, 4) or (m, 3, 4)")
        return np.concatenate([M[:, :3, :3].reshape(-1, 9), M[:, :3, 3]], axis=1)

    @staticmethod
    def matrices(c: Any) -> np.ndarray:
        """(m, 4, 4) poses of outputs (m, 12)."""
        c = np.asarray(c, dtype=np.float64)
        M = np.tile(np.eye(4), (len(c), 1, 1))
        M[:, :3, :3], M[:, :3, 3] = c[:, :9].reshape(-1, 3, 3), c[:, 9:]
        return M

    @staticmethod
    def distance(a: Any, b: Any, length: float = 1.0) -> np.ndarray:
        """(m,) sqrt(angle^2 + (|translation| / length)^2) between poses (m, 12); `length` counts as much as a radian."""
        a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
        # |R - S| = 2 sqrt 2 sin(angle / 2), which keeps its digits where the trace of R'S does not
        half = np.sqrt(np.sum((a - b)[:, :9] ** 2, axis=1) / 8)
        return np.hypot(2 * np.arcsin(np.clip(half, 0.0, 1.0)), np.linalg.norm((a - b)[:, 9:], axis=1) / length)

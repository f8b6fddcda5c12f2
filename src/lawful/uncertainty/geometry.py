r"""C(x) as a surface: tangent and normal directions, and the way back along fixed normals.

With r independent equations gamma(c) = 0 the set is, locally, a surface of dimension d = T - r. At a point z an orthonormal
basis [B, N] of R^T has the tangent directions B (T, d) and the normal ones N (T, r), from the singular vectors of the Jacobian.
The *chart* at z takes u in R^d to the point z + B u + N v of C, v by Newton's method; u = B'(c - z) is read off c, so no two
u share a point. Its area element is

    dH(c) = du / |det(B' B_c)|,    B_c the tangent basis at c.

All is done in units z = c / s of the outputs (s: their predictive standard deviations), because a basis that mixes tonnes with
mole fractions is badly conditioned. The Hausdorff (surface) measure H is that of the outputs as they are given: a surface
element in the units of z is multiplied by sqrt(det(B_c' diag(s)^2 B_c)).

Linear equations of a set that has no `equality` are read from its cones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful.sets.base import TOL

RANK = 1e-9  # singular values below this fraction of the largest are dependent equations
STEPS = 30
STILL = 1e-12  # a Newton step so small, in predictive standard deviations or sizes of the point, is the last
NEARER = 0.1  # what is accepted as a zero: this fraction of the tolerance of the law


def mat(A: np.ndarray, v: np.ndarray) -> np.ndarray:
    """A_i v_i: (m, p, q), (m, q) -> (m, p)."""
    return (A @ v[:, :, None])[:, :, 0]


def transpose(A: np.ndarray) -> np.ndarray:
    return np.swapaxes(A, -1, -2)


class Surface:
    """The sets C(x_i) of m rows, in units `scale` (T,) of the outputs.

    rows(idx) is the same for some rows, or for rows repeated. `dimension` is d; 0 equations make it T.
    """

    def __init__(self, C: Any, points: np.ndarray, scale: np.ndarray) -> None:
        """`points` (m, T), in the outputs' own units, are points of C at which the rank of the equations is read."""
        self.C, self.scale = C, np.asarray(scale, dtype=float)
        self.linear = None
        if not hasattr(C, "equality") and hasattr(C, "cones"):
            flat = [cone for cone in C.cones() if cone.kind == "zero"]
            if flat:
                A = np.concatenate([to_numpy(cone.matrix) for cone in flat], axis=-2)
                self.linear = A, np.concatenate([to_numpy(cone.offset) for cone in flat], axis=-1)
        self.T = points.shape[1]
        self.rank = self._rank(points / self.scale) if len(points) else 0
        self.dimension = self.T - self.rank

    def rows(self, idx: np.ndarray) -> Surface:
        part = object.__new__(Surface)
        part.__dict__.update(self.__dict__)
        part.C = self.C.rows(idx)
        if self.linear is not None:
            A, b = self.linear
            part.linear = (A[idx] if A.ndim == 3 else A), (b[idx] if b.ndim == 2 else b)
        return part

    @property
    def curved(self) -> bool:
        return self.linear is None and hasattr(self.C, "equality")

    def _functions(self, z: np.ndarray, derivatives: bool = True) -> tuple[np.ndarray, Any]:
        """Equations (m, P) and their Jacobian in z (m, P, T)."""
        c = z * self.scale
        if self.linear is not None:
            A, b = self.linear
            A = np.broadcast_to(A, (len(z), *A.shape[-2:]))
            return mat(A, c) - b, A * self.scale
        if not hasattr(self.C, "equality"):
            return np.zeros((len(z), 0)), np.zeros((len(z), 0, self.T))
        g = np.asarray(to_numpy(self.C.equality(c)), dtype=float)
        J = np.asarray(to_numpy(self.C.equality_jacobian(c)), dtype=float) * self.scale if derivatives else None
        return g, J

    def _rank(self, z: np.ndarray) -> int:
        _, J = self._functions(z[: min(len(z), 200)])
        if J.shape[1] == 0:
            return 0
        values = np.linalg.svd(_even(J)[0], compute_uv=False)
        return int(np.median((values > RANK * values[:, :1]).sum(axis=1)))

    def bases(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tangent (m, T, d) and normal (m, T, r) directions at z, orthonormal."""
        m, T, r = len(z), self.T, self.rank
        if r == 0:
            return np.broadcast_to(np.eye(T), (m, T, T)), np.zeros((m, T, 0))
        _, J = self._functions(z)
        J = np.where(np.isfinite(J), J, 0.0)
        if T == 2 and r == 1 and J.shape[1] == 1:  # by far the most usual, and a singular value decomposition is slow
            n = J[:, 0, :]
            size = np.sqrt((n**2).sum(axis=1, keepdims=True))
            n = np.where(size > 0, n, [1.0, 0.0]) / np.where(size > 0, size, 1.0)
            return np.stack([-n[:, 1], n[:, 0]], axis=1)[:, :, None], n[:, :, None]
        V = transpose(np.linalg.svd(_even(J)[0], full_matrices=True)[2])
        return V[:, :, r:], V[:, :, :r]

    @np.errstate(all="ignore")
    def back(self, z: np.ndarray, N: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """z + N v on the equations, and whether Newton's method found it."""
        if self.rank == 0:
            return z, np.ones(len(z), bool)
        z = z.copy()
        size = 1 + np.abs(z).max(axis=1)
        found = np.zeros(len(z), bool)
        active, part = np.arange(len(z)), self
        for _ in range(STEPS):
            g, J = part._functions(z[active])
            J, g = _even(J, g)
            M = J @ N[active]
            v = _solve(M, -g)
            step = mat(N[active], v)
            long = np.abs(step).max(axis=1)
            good = np.isfinite(long) & (long < 1e3 * size[active])
            z[active[good]] += step[good]
            done = good & (long <= STILL * size[active])
            found[active[done]] = True
            going = good & ~done
            if not going.any():
                break
            active = active[going]
            part = self.rows(active)
        else:
            found[active] = self.rows(active).on_law(z[active])
        return z, found & np.isfinite(z).all(axis=1)

    def on_law(self, z: np.ndarray) -> np.ndarray:
        """(m,) whether z obeys the whole law, equations and inequalities."""
        with np.errstate(all="ignore"):
            return np.asarray(to_numpy(self.C.relative(z * self.scale))) <= NEARER * TOL

    def allowed(self, z: np.ndarray) -> np.ndarray:
        """(m,) whether a point of the equations obeys the rest of the law too."""
        if self.curved and not hasattr(self.C, "inequality") and type(self.C).__name__ != "Rotations":
            return np.ones(len(z), bool)
        return self.on_law(z)

    def log_element(self, B: np.ndarray) -> np.ndarray:
        """(m,) log of the surface element of the outputs as given, per surface element in the units of z."""
        if B.shape[2] in (0, self.T):
            return np.full(len(B), np.log(self.scale).sum() if B.shape[2] else 0.0)
        # Largest rows first: a factorisation keeps the digits of the small ones, which a product B'B would lose.
        largest = np.argsort(-self.scale)
        R = np.linalg.qr(B[:, largest] * self.scale[largest, None], mode="r")
        with np.errstate(divide="ignore"):
            return np.log(np.abs(np.einsum("itt->it", R))).sum(axis=1)


def _even(J: np.ndarray, g: np.ndarray | None = None) -> tuple[np.ndarray, Any]:
    """Equations scaled to gradients of length 1."""
    size = np.sqrt((J**2).sum(axis=2))
    size = np.where(size > 0, size, 1.0)
    return J / size[:, :, None], None if g is None else g / size


def _solve(M: np.ndarray, g: np.ndarray) -> np.ndarray:
    """M_i v_i = g_i for square M, in the sense of least squares otherwise: (m, P, r), (m, P) -> (m, r)."""
    if M.shape[1:] == (1, 1):
        return g / M[:, 0]
    if M.shape[1] != M.shape[2]:
        g, M = mat(transpose(M), g), transpose(M) @ M
    bad = ~np.isfinite(M).all(axis=(1, 2))
    M = np.where(bad[:, None, None], np.eye(M.shape[1]), M)
    try:
        v = np.linalg.solve(M, g[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        v = mat(np.linalg.pinv(M), g)
    return np.where(bad[:, None], np.nan, v)

"""A cloud as a surface: flat discs, one at each point, fitted to its neighbours by moving least squares.

Around point p the k nearest points are weighted by (1 - (distance / reach)^2)^2. Principal directions of the weighted
neighbours split space into d tangent and T - d normal coordinates (u, h); a weighted quadratic h(u) is fitted, and the disc
is its tangent plane over p: centre c + U u + V h(u), directions U + V dh/du, radius the distance to the 2 d-th nearest point.
The union of the discs is a closed set that ends where the points end. Minimising a quadratic over one disc,

    min over |v| <= r of  v' Q v - 2 l' v,      v = (Q + nu)^-1 l,

is a secular equation for nu >= max(0, -smallest eigenvalue of Q). Discs that a lower bound rules out are not visited:
sqrt(F_i) >= |w - m_i|_a - r_i sqrt(max a), for weights a > 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

BATCH = 16  # discs that are visited together
BISECTIONS = 80


@dataclass(frozen=True)
class Patches:
    """Centres (N, T), orthonormal directions (N, T, d), radii (N,)."""

    centre: np.ndarray
    basis: np.ndarray
    radius: np.ndarray

    def points(self, which: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.centre[which] + np.einsum("ntd,nd->nt", self.basis[which], v)

    def minimise(self, b: np.ndarray, a: np.ndarray) -> np.ndarray:
        """argmin over all discs of c . a c - 2 b . c, row by row; weights a (m, T) of any sign, or forms (m, T, T)."""
        m, N = len(b), len(self.centre)
        best, answer = np.full(m, np.inf), np.zeros((m, self.centre.shape[1]))
        if m == 0:
            return answer
        bound = self._bounds(b, a)
        order = np.argsort(bound, axis=1, kind="stable")
        active = np.arange(m)
        for start in range(0, N, BATCH):
            which = order[active, start : start + BATCH]
            lowest = np.take_along_axis(bound[active], which, axis=1)
            active, which = (x[lowest[:, 0] < best[active]] for x in (active, which))
            if len(active) == 0:
                break
            k = which.shape[1]
            rows, flat = np.repeat(active, k), which.ravel()
            c = self._in_disc(flat, b[rows], a[rows])
            value = np.sum(c * (_times(a[rows], c) - 2 * b[rows]), axis=1).reshape(-1, k)
            first = np.argmin(value, axis=1)
            gain = value[np.arange(len(active)), first]
            better = gain < best[active]
            best[active[better]] = gain[better]
            answer[active[better]] = c.reshape(len(active), k, -1)[np.arange(len(active)), first][better]
        return answer

    def _bounds(self, b: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(m, N) below the least value of each disc; minus infinity in rows whose weights are not positive."""
        if a.ndim == 2:
            good = np.asarray((a > 0).all(axis=1))
            safe = np.where(good[:, None], a, 1.0)
            lowest, steep = np.sum(b**2 / safe, axis=1), safe.max(axis=1)
            centres = safe @ (self.centre**2).T
        else:
            values, V = np.linalg.eigh(a)
            good = np.asarray(values[:, 0] > 1e-12 * values[:, -1])
            along = np.einsum("mts,mt->ms", V, b)
            lowest, steep = np.sum(along**2 / np.where(good[:, None], values, 1.0), axis=1), np.abs(values[:, -1])
            centres = np.sum((self.centre @ a) * self.centre, axis=2)
        squared = lowest[:, None] - 2 * b @ self.centre.T + centres
        away = np.sqrt(np.maximum(squared, 0.0)) - self.radius * np.sqrt(steep)[:, None]
        slack = 1e-9 * (1 + np.abs(squared))
        return np.where(good[:, None], np.maximum(away, 0.0) ** 2 - lowest[:, None] - slack, -np.inf)

    def _in_disc(self, which: np.ndarray, b: np.ndarray, a: np.ndarray) -> np.ndarray:
        U, r = self.basis[which], self.radius[which]
        Q = U.transpose(0, 2, 1) @ (a[:, :, None] * U if a.ndim == 2 else a @ U)
        linear = np.einsum("ntd,nt->nd", U, b - _times(a, self.centre[which]))
        w, E = np.linalg.eigh(Q)
        beta = np.einsum("nde,nd->ne", E, linear)
        size = np.maximum(np.abs(w).max(axis=1), 1e-300)
        low = np.maximum(0.0, -w[:, 0])
        length = np.linalg.norm(beta, axis=1)
        high = low + length / np.maximum(r, 1e-300) + size
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = (w[:, 0] > 1e-14 * size) & (np.linalg.norm(beta / w, axis=1) <= r)
            for _ in range(BISECTIONS):
                middle = (low + high) / 2
                far = ~(np.linalg.norm(beta / (w + middle[:, None]), axis=1) <= r)
                low, high = np.where(far, middle, low), np.where(far, high, middle)
            nu = np.where(inside, 0.0, high)
            v = beta / (w + nu[:, None])
        v = np.where(np.isfinite(v), v, 0.0)
        # The hard case: nothing pulls along the direction of least curvature, and the border is reached along it.
        short = ~inside & (w[:, 0] < 0) & (np.linalg.norm(v, axis=1) < r * (1 - 1e-9))
        rest = np.where(short, np.sqrt(np.maximum(r**2 - np.sum(v[:, 1:] ** 2, axis=1), 0.0)), v[:, 0])
        v[:, 0] = np.where(short, np.copysign(rest, np.where(beta[:, 0] < 0, -1.0, 1.0)), v[:, 0])
        return self.points(which, np.einsum("nde,ne->nd", E, v))


def _times(a: np.ndarray, c: np.ndarray) -> np.ndarray:
    return a * c if a.ndim == 2 else np.einsum("nts,ns->nt", a, c)


def fitted(cloud: np.ndarray, centres: np.ndarray, dimension: int, neighbours: int) -> Patches:
    """Discs at these points of (or near) the cloud."""
    k = min(neighbours, len(cloud))
    tree = cKDTree(cloud)
    distance, index = tree.query(centres, k=k)
    distance, index = distance.reshape(len(centres), k), index.reshape(len(centres), k)
    reach = 1.1 * distance[:, -1:] + 1e-300
    weight = (1 - (distance / reach) ** 2) ** 2
    near = cloud[index]
    mean = np.einsum("nk,nkt->nt", weight, near) / weight.sum(axis=1, keepdims=True)
    apart = near - mean[:, None]
    _, _, Vt = np.linalg.svd(apart * np.sqrt(weight)[:, :, None], full_matrices=True)
    U, V = Vt[:, :dimension].transpose(0, 2, 1), Vt[:, dimension:].transpose(0, 2, 1)
    u, h = apart @ U, apart @ V
    i, j = np.triu_indices(dimension)
    curved = k >= 2 * (1 + dimension + len(i))
    unit = np.maximum(np.sqrt(np.mean(u**2, axis=(1, 2))), 1e-300)[:, None]
    A, at = _quadratic(u / unit[:, :, None], i, j, curved), np.einsum("ntd,nt->nd", U, centres - mean) / unit
    root = np.sqrt(weight)[:, :, None]
    gram = (A * root).transpose(0, 2, 1) @ (A * root)
    gram += 1e-9 * np.trace(gram, axis1=1, axis2=2)[:, None, None] * np.eye(A.shape[2])
    coefficients = np.linalg.solve(gram, (A * root).transpose(0, 2, 1) @ (h * root))
    here = _quadratic(at[:, None, :], i, j, curved)
    height = (here @ coefficients)[:, 0]
    slope = coefficients[:, 1 : 1 + dimension].copy()
    if curved:
        for c, (p, q) in enumerate(zip(i, j)):
            second = coefficients[:, 1 + dimension + c]
            slope[:, p] += second * at[:, q][:, None]
            slope[:, q] += second * at[:, p][:, None]
    centre = mean + np.einsum("ntd,nd->nt", U, at * unit) + np.einsum("nts,ns->nt", V, height)
    basis = np.linalg.qr(U + V @ (slope / unit[:, :, None]).transpose(0, 2, 1))[0]
    steps = np.sort(np.linalg.norm(apart - (centres - mean)[:, None], axis=2), axis=1)
    return Patches(centre, basis, steps[:, min(2 * dimension, k - 1)])


def _quadratic(u: np.ndarray, i: np.ndarray, j: np.ndarray, curved: bool) -> np.ndarray:
    parts = [np.ones_like(u[:, :, :1]), u]
    return np.concatenate(parts + ([u[:, :, i] * u[:, :, j]] if curved else []), axis=2)

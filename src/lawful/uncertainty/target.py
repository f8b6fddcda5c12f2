r"""The Gaussian prediction times C: density proportional to exp(-F(c)/2) on C(x), F(c) = (c - w)' P (c - w), and its modes.

The measure is the Hausdorff measure on C(x) in the outputs' own units: arc length on curves, area on surfaces, counting on
finite sets, volume where the law has no equations. (A probability conditioned on gamma(c) = 0 by letting a tube |gamma| < eps
shrink would have another density, by the factor 1/sqrt(det J J'), and would depend on how the law is written.)

A `Chart` at a point z of C is also a proposal: with H = B'P B the Gaussian restricted to the tangent plane has precision H and
mean u0 = H^-1 B'P(w - z); a Student distribution of that place and size, brought onto C along the normals, is the target up to
the curvature of C.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

from lawful._array import to_numpy
from lawful.uncertainty.geometry import Surface, mat, transpose

DOF = 8.0  # of the Student proposal: its tails are heavier than those of the Gaussian, whichever way C bends
DESCENT = 25
SAME = 0.05  # modes closer than this, in standard deviations, are one
FAR = 40.0  # of F above the lowest: exp(-20) of the density, which no sample will visit


class Target:
    """The density of m rows on their surfaces, all in units `scale` of the outputs."""

    def __init__(self, surface: Surface, P: np.ndarray, w: np.ndarray) -> None:
        self.surface, self.P, self.w = surface, P, w

    @classmethod
    def of(cls, F: Any, C: Any, points: np.ndarray) -> Target:
        """From an objective (m rows) and the set bound to them; `points` are points of C, one a row."""
        precision, w = precision_of(F), np.asarray(to_numpy(F.center), dtype=float)
        scale = scale_of(precision)
        return cls(Surface(C, points, scale), precision * np.outer(scale, scale), w / scale)

    def rows(self, idx: np.ndarray) -> Target:
        return Target(self.surface.rows(idx), self.P[idx], self.w[idx])

    def energy(self, z: np.ndarray) -> np.ndarray:
        """F, up to its unit: the squared distance from the prediction in standard deviations."""
        r = z - self.w
        return np.einsum("it,its,is->i", r, self.P, r)

    def log_density(self, z: np.ndarray, B: np.ndarray) -> np.ndarray:
        """With respect to the surface measure in units of z; B the tangents at z."""
        return -self.energy(z) / 2 + self.surface.log_element(B)


def precision_of(F: Any) -> np.ndarray:
    """(m, T, T) P of F(c) = (c - w)' P (c - w)."""
    return np.asarray(to_numpy(F.hessian(F.center)), dtype=float) / 2


def scale_of(precision: np.ndarray) -> np.ndarray:
    """(T,) units in which the precision of a middle row has a diagonal of ones."""
    diagonal = np.median(np.einsum("itt->it", precision), axis=0)
    return 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))


class Chart:
    """The chart at z (m, T), and the proposal through it."""

    def __init__(self, target: Target, z: np.ndarray) -> None:
        self.target, self.z = target, z
        self.B, self.N = target.surface.bases(z)
        Bt = transpose(self.B)
        self.H = Bt @ target.P @ self.B
        d = self.B.shape[2]
        floor = 1e-12 * np.trace(self.H, axis1=1, axis2=2)[:, None, None] * np.eye(d) if d else 0.0
        self.L = np.linalg.cholesky(self.H + floor + 1e-300 * np.eye(d))
        pull = mat(Bt, mat(target.P, target.w - z))
        self.u0 = np.linalg.solve(self.H + floor, pull[:, :, None])[:, :, 0]

    def rows(self, idx: np.ndarray) -> Chart:
        part = object.__new__(Chart)
        part.target = self.target.rows(idx)
        for name in ("z", "B", "N", "H", "L", "u0"):
            setattr(part, name, getattr(self, name)[idx])
        return part

    def point(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The point of C over u, and whether there is one."""
        return self.target.surface.back(self.z + mat(self.B, u), self.N)

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        m, d = self.u0.shape
        xi = rng.standard_normal((m, d)) * np.sqrt(DOF / rng.chisquare(DOF, (m, 1)))
        return self.u0 + np.linalg.solve(transpose(self.L), xi[:, :, None])[:, :, 0]

    def log_proposal(self, c: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Of points c over their u, with respect to the surface measure; whether c *is* the point over u is asked elsewhere."""
        d = self.u0.shape[1]
        u = mat(transpose(self.B), c - self.z) - self.u0
        q = (mat(transpose(self.L), u) ** 2).sum(axis=1)
        log = gammaln((DOF + d) / 2) - gammaln(DOF / 2) - d / 2 * np.log(np.pi * DOF) - (DOF + d) / 2 * np.log1p(q / DOF)
        log += np.log(np.einsum("itt->it", self.L)).sum(axis=1)
        return log + (np.linalg.slogdet(transpose(self.B) @ B)[1] if 0 < d < self.z.shape[1] else 0.0)

    def holds(self, c: np.ndarray) -> np.ndarray:
        """(m,) whether c is the point of this chart over its u, and not on another sheet of C."""
        again, found = self.point(mat(transpose(self.B), c - self.z))
        return found & (np.abs(again - c).max(axis=1) <= 1e-6 * (1 + np.abs(c).max(axis=1)))


def descend(target: Target, z: np.ndarray) -> np.ndarray:
    """A local minimum of F on C near each z: Gauss-Newton steps in the chart of the moment, halved until they help."""
    z = z.copy()
    active = np.arange(len(z))
    for _ in range(DESCENT):
        part = target.rows(active)
        chart = Chart(part, z[active])
        before, done = part.energy(z[active]), np.zeros(len(active), bool)
        for shrink in (1.0, 0.5, 0.2, 0.05):
            todo = np.flatnonzero(~done)
            if not len(todo):
                break
            sub = chart.rows(todo)
            trial, found = sub.point(shrink * sub.u0)
            found &= sub.target.surface.allowed(trial)
            better = found & (sub.target.energy(trial) < before[todo] - 1e-10 * (1 + before[todo]))
            z[active[todo[better]]] = trial[better]
            done[todo[better]] = True
        active = active[done]
        if not len(active):
            break
    return z


def scattered(target: Target, best: np.ndarray, rng: np.random.Generator, count: int) -> np.ndarray:
    """(m, count, T) points of C about the prediction: draws from it, ever wider, moved to C; `best` where that fails."""
    m, T = best.shape
    rows = np.repeat(np.arange(m), count)
    width = np.tile(np.linspace(1.0, 3.0, count), m)[:, None]
    again = target.rows(rows)
    root = np.linalg.cholesky(target.P + 1e-12 * np.eye(T) * np.trace(target.P, axis1=1, axis2=2)[:, None, None])
    noise = np.linalg.solve(transpose(root[rows]), rng.standard_normal((len(rows), T, 1)))[:, :, 0]
    begin = again.w + width * noise
    begin[::count] = 2 * target.w - best  # through the prediction, to the far side of a closed surface
    _, N = again.surface.bases(begin)
    z, found = again.surface.back(begin, N)
    found &= again.surface.allowed(z)
    return np.where(found[:, None], z, best[rows]).reshape(m, count, T)


def modes(target: Target, best: np.ndarray, points: np.ndarray, most: int = 3) -> list[np.ndarray]:
    """Points (m, T) at local minima of F on C: `best` first, then those found from `points`, NaN where there is none.

    Minima so high that no draw would visit them are left out.
    """
    m, count, T = points.shape
    again = target.rows(np.repeat(np.arange(m), count))
    z = descend(again, points.reshape(-1, T))
    energy = again.energy(z).reshape(m, count)
    z, lowest = z.reshape(points.shape), target.energy(best)
    energy = np.where(energy <= lowest[:, None] + FAR, energy, np.inf)
    out = [best]
    for _ in range(most - 1):
        away = z - out[-1][:, None, :]
        close = np.einsum("ijt,its,ijs->ij", away, target.P, away) <= SAME**2  # NaN is close to nothing
        energy = np.where(close, np.inf, energy)
        pick = np.argmin(energy, axis=1)
        there = np.isfinite(energy[np.arange(m), pick])
        if not there.any():
            break
        out.append(np.where(there[:, None], z[np.arange(m), pick], np.nan))
    return out


def beyond(target: Target, charts: list[Chart], points: np.ndarray, most: int = 2) -> list[np.ndarray]:
    """Points (m, T) that no chart shows, the most likely first, NaN where there is none: the far side of a closed surface."""
    m, count, T = points.shape
    flat = points.reshape(-1, T)
    rows = np.repeat(np.arange(m), count)
    energy = target.rows(rows).energy(flat)
    lowest = energy.reshape(m, count).min(axis=1)
    open_ = energy <= lowest[rows] + FAR
    out: list[np.ndarray] = []
    for _ in range(most):
        for chart in charts:
            open_ &= ~chart.rows(rows).holds(flat)
        value = np.where(open_, energy, np.inf).reshape(m, count)
        pick = np.argmin(value, axis=1)
        there = np.isfinite(value[np.arange(m), pick])
        if not there.any():
            break
        z = np.where(there[:, None], points[np.arange(m), pick], points[:, 0])
        chart = Chart(target, z)
        chart.u0 = np.zeros_like(chart.u0)
        charts = [chart]
        out.append(np.where(there[:, None], z, np.nan))
    return out

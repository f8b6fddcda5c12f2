r"""Level sets on surfaces of dimension 2 and more: volume, uniform points, and the bounds of each output.

In the chart at the best point z of a row, {c in C : F(c) <= L} is close to the ellipsoid (u - u0)' H (u - u0) <= L - min F of
the tangent plane. On an affine law it is that ellipsoid, and everything has a closed form. Elsewhere

    volume = vol(E) * mean over u uniform in E of 1{c(u) in the set} * element(c(u)) / |det(B' B_c)|

with E the ellipsoid made wider until the set does not reach its border. A set that bends away from its chart (|det| below
`STEEP`) is not seen whole: there the part that is seen is divided by the share of uniform draws that fall into it.

The largest value of an output, max c_t over the set, is found by maximising it over the ellipsoid of the tangent plane, going
to C, and again; where that does not settle, the bound of the whole ellipsoid {F <= L} in R^T is taken, which always holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln
from scipy.stats import norm, qmc

from lawful.uncertainty.geometry import mat, transpose
from lawful.uncertainty.target import Chart, Target
from lawful.uncertainty.walk import walk

Inside = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (rows, points in the outputs' units) -> bool
WIDER = 1.4
STEEP = 0.3
ROUNDS = 12
SETTLED = 1e-4  # of the width of the set: bounds that move less are final


def flat(target: Target) -> bool:
    """Whether the sets are ellipsoids: affine equations and no inequalities."""
    C = target.surface.C
    return bool(getattr(C, "polyhedral", False)) and all(cone.kind == "zero" for cone in C.cones())


def ball(d: int) -> float:
    """log of the volume of the unit ball in R^d."""
    return d / 2 * np.log(np.pi) - float(gammaln(d / 2 + 1))


def ellipsoid_volume(chart: Chart, radius: np.ndarray) -> np.ndarray:
    d = chart.u0.shape[1]
    log = ball(d) + d * np.log(radius) - np.log(np.einsum("itt->it", chart.L)).sum(axis=1)
    return np.exp(log + chart.target.surface.log_element(chart.B))


def ball_points(d: int, n: int) -> np.ndarray:
    """(n, d) evenly spread points of the unit ball, the same for every row."""
    u = np.clip(qmc.Sobol(d + 1, scramble=True, seed=0).random(n), 1e-12, 1 - 1e-12)
    g = norm.ppf(u[:, :d])
    return g / np.linalg.norm(g, axis=1, keepdims=True) * u[:, d:] ** (1 / d)


def volumes(
    target: Target, best: np.ndarray, radius: np.ndarray, inside: Inside, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(m,) surface volume of the sets, and the standard error of it. `best` and the target in units of the surface."""
    m, T = best.shape
    chart = Chart(target, best)
    if target.surface.dimension == 0:
        return np.ones(m), np.zeros(m)
    if flat(target):
        return ellipsoid_volume(chart, radius), np.zeros(m)
    d = target.surface.dimension
    n = 1 << max(int(n - 1).bit_length(), 6)
    points = ball_points(d, n)
    out, error, steep = np.zeros(m), np.zeros(m), np.zeros(m, bool)
    wide, active = WIDER * radius, np.arange(m)
    for _ in range(5):
        reach = np.zeros(len(active))
        for start in range(0, len(active), max(1, 2**16 // n)):
            some = active[start : start + max(1, 2**16 // n)]
            rows = np.repeat(some, n)
            part = chart.rows(rows)
            y = np.tile(points, (len(some), 1)) * wide[rows, None]
            u = part.u0 + np.linalg.solve(transpose(part.L), y[:, :, None])[:, :, 0]
            z, found = part.point(u)
            found &= part.target.surface.allowed(z)
            z = np.where(found[:, None], z, part.z)
            found &= inside(rows, z * target.surface.scale)
            Bc, _ = part.target.surface.bases(z)
            log = np.linalg.slogdet(transpose(part.B) @ Bc)[1] if d < T else np.zeros(len(z))
            element = part.target.surface.log_element(Bc) - target.surface.log_element(chart.B)[rows]
            weight = np.where(found, np.exp(element - log), 0.0).reshape(len(some), n)
            whole = ellipsoid_volume(chart.rows(some), wide[some])
            out[some], error[some] = whole * weight.mean(axis=1), whole * weight.std(axis=1) / np.sqrt(n)
            steep[some] = (found & (log < np.log(STEEP))).reshape(len(some), n).any(axis=1)
            far = np.where(found, np.linalg.norm(y, axis=1) / wide[rows], 0.0).reshape(len(some), n)
            reach[start : start + len(some)] = far.max(axis=1)
        active = active[(reach > 0.93) & ~steep[active]]
        if not len(active):
            break
        wide[active] *= 1.5
    bent = np.flatnonzero(steep)
    if len(bent):
        part = chart.rows(bent)
        out[bent], error[bent] = _bent(part, best[bent], radius[bent], bent, inside, rng)
    return out, error


def _bent(
    chart: Chart, best: np.ndarray, radius: np.ndarray, names: np.ndarray, inside: Inside, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Volume of a cap around the best point over the share of uniform draws that lie in it."""
    n, d = 512, chart.u0.shape[1]
    points = ball_points(d, n)
    surface = chart.target.surface
    draws = uniform_points(chart.target, best, radius, lambda rows, c: inside(names[rows], c), n, rng)
    rows = np.repeat(np.arange(len(best)), n)
    z = draws.reshape(-1, best.shape[1]) / surface.scale
    wide = chart.rows(rows)
    away = np.linalg.norm(mat(transpose(wide.B), z - wide.z), axis=1).reshape(len(best), n)
    cap = np.quantile(np.where(wide.holds(z).reshape(len(best), n), away, np.inf), 0.4, axis=1)
    cap = np.minimum(cap, 0.8 * np.max(np.where(np.isfinite(away), away, 0), axis=1))
    share = (wide.holds(z).reshape(len(best), n) & (away <= cap[:, None])).mean(axis=1)
    c, found = wide.point(np.tile(points, (len(best), 1)) * cap[rows, None])
    found &= surface.rows(rows).allowed(c) & inside(names[rows], np.where(found[:, None], c, wide.z) * surface.scale)
    Bc, _ = surface.rows(rows).bases(np.where(found[:, None], c, wide.z))
    log = np.linalg.slogdet(transpose(wide.B) @ Bc)[1] if d < best.shape[1] else np.zeros(len(c))
    weight = np.where(found, np.exp(surface.log_element(Bc) - log), 0.0).reshape(len(best), n).mean(axis=1)
    area = np.exp(ball(d) + d * np.log(cap)) * weight
    value = area / np.maximum(share, 1 / n)
    return value, value * np.sqrt((1 - share) / np.maximum(share, 1 / n) / n)


class _Uniform(Target):
    """The surface measure on the sets themselves; P only shapes the proposals."""

    inside: Inside
    names: np.ndarray

    def rows(self, idx: np.ndarray) -> _Uniform:
        part = _Uniform(self.surface.rows(idx), self.P[idx], self.w[idx])
        part.inside, part.names = self.inside, self.names[idx]
        return part

    def log_density(self, z: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.where(self.inside(self.names, z * self.surface.scale), self.surface.log_element(B), -np.inf)


def uniform_points(
    target: Target, best: np.ndarray, radius: np.ndarray, inside: Inside, n: int, rng: np.random.Generator
) -> np.ndarray:
    """(m, n, T) points of the sets, uniform in the surface measure, in the outputs' own units."""
    m = len(best)
    d = target.surface.dimension
    if d == 0:
        return np.repeat((best * target.surface.scale)[:, None, :], n, axis=1)
    if flat(target):
        chart = Chart(target, best)
        g = rng.standard_normal((m, n, d))
        y = g / np.linalg.norm(g, axis=2, keepdims=True) * rng.random((m, n, 1)) ** (1 / d) * radius[:, None, None]
        u = chart.u0[:, None, :] + np.swapaxes(np.linalg.solve(transpose(chart.L), np.swapaxes(y, 1, 2)), 1, 2)
        return (chart.z[:, None, :] + u @ transpose(chart.B)) * target.surface.scale
    shaped = _Uniform(target.surface, target.P * ((d + 2) / radius**2)[:, None, None], target.w)
    shaped.inside, shaped.names = inside, np.arange(m)
    return np.asarray(walk(shaped, best, n, rng, 3))


def bounds(target: Target, best: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """(m, T, 2) the smallest and largest value of each output on {c in C : F(c) <= limit}, in the outputs' own units.

    Inequalities of the law are not looked at: they can only make the set smaller.
    """
    m, T = best.shape
    S = np.linalg.inv(target.P)
    reach = np.sqrt(np.maximum(limit, 0.0)[:, None] * np.einsum("itt->it", S))
    scale = target.surface.scale
    outer = np.stack([target.w - reach, target.w + reach], axis=2)
    sides = [(t, side) for t in range(T) for side in (0, 1)]
    found = [_extreme(target, best, limit, t, 2.0 * side - 1) for t, side in sides]
    ends = np.stack([z for z, _, _ in found])  # (2 T, m, T)
    for (t, side), (_, value, settled) in zip(sides, found):
        sign = 2.0 * side - 1
        # From the best point an output may see no way up (the height on a cap); the ends of other outputs then do.
        pick = np.argmax(sign * ends[:, :, t], axis=0)
        start = ends[pick, np.arange(m)]
        again = np.flatnonzero(sign * (start[:, t] - value) > 1e-12 * (1 + np.abs(value)))
        if len(again):
            _, value[again], settled[again] = _extreme(target.rows(again), start[again], limit[again], t, sign)
        outer[:, t, side] = np.where(settled, value, outer[:, t, side])
    return outer * scale[None, :, None]


def _extreme(
    target: Target, best: np.ndarray, limit: np.ndarray, t: int, sign: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The point where output t is largest (sign 1) or smallest (-1), the bound, and whether it has settled."""
    z, value = best.copy(), best[:, t].copy()
    settled, active = np.zeros(len(z), bool), np.arange(len(z))
    for _ in range(ROUNDS):
        part = target.rows(active)
        chart = Chart(part, z[active])
        if chart.u0.shape[1] == 0:
            return z, value, np.ones(len(z), bool)
        # Of the ellipsoid in this tangent plane: its radius, and the point farthest in the direction of the output.
        low = part.energy(z[active]) - np.einsum("id,ide,ie->i", chart.u0, chart.H, chart.u0)
        e = sign * chart.B[:, t, :]
        y = np.linalg.solve(chart.L, e[:, :, None])[:, :, 0]
        size = np.linalg.norm(y, axis=1, keepdims=True)
        y = y / np.where(size > 0, size, 1.0) * np.sqrt(np.maximum(limit[active] - low, 0.0))[:, None]
        new, found = chart.point(chart.u0 + np.linalg.solve(transpose(chart.L), y[:, :, None])[:, :, 0])
        width = np.sqrt(np.maximum(limit[active] - low, 0.0)) * size[:, 0]
        change = np.abs(new[:, t] - value[active])
        z[active[found]], value[active[found]] = new[found], new[found, t]
        done = found & (change <= SETTLED * width + 1e-13 * np.abs(value[active]))
        value[active[done]] += sign * SETTLED * width[done]  # what is left of the way, and a little
        settled[active[done]] = True
        active = active[found & ~done]
        if not len(active):
            break
    return z, value, settled

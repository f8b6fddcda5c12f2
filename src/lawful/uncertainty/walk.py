r"""Markov chains on C(x): random walks on the surface, and jumps through charts at its modes.

The walk is that of Zappa, Holmes-Cerfon and Goodman (2018): from c a tangent step v, back to C along the normals at c, and the
reverse step must find c again, or the proposal is refused. Steps are Gaussian with the precision H of the target in the tangent
plane. Every second proposal is independent of c: a mode is drawn, then a point through its chart (`target`). Where C is nearly
flat over the width of the prediction, nine of ten such jumps are taken and draws are almost independent; and they are what
carries chains from one mode to another, however far apart. Both kinds leave exp(-F/2) on the surface measure invariant, points
that violate an inequality are refused, and every state obeys the law.
"""

from __future__ import annotations

import numpy as np

from lawful.uncertainty.geometry import mat, transpose
from lawful.uncertainty.samples import Samples, diagnostics
from lawful.uncertainty.target import Chart, Target, beyond, modes, scattered

CHAINS = 4  # at least
TOGETHER = 256  # chains that are worth a batch: few rows get more chains, which are then shorter
BURN_IN = 60
PILOTS = 8
STARTS = 8
WANTED = 0.3  # of the steps of a walk are taken, where their length is right
RETURN = 1e-6  # how exactly the reverse step must find its way


class _Jumps:
    """Independent proposals: a mixture over the charts of a row, weighed by the mass of the Gaussian in each tangent plane."""

    def __init__(
        self, target: Target, found: list[np.ndarray], points: np.ndarray, rows: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Charts at the modes `found`, and where `points` of C lie beyond those."""
        charts = [Chart(target, np.where(np.isfinite(z), z, found[0])) for z in found]
        if target.surface.rank and points.shape[1]:
            found = [*found, *beyond(target, charts, points)]
            for z in found[len(charts) :]:
                charts.append(Chart(target, np.where(np.isfinite(z), z, found[0])))
                charts[-1].u0 = np.zeros_like(charts[-1].u0)
        there = np.stack([np.isfinite(z).all(axis=1) for z in found], axis=1)
        mass = np.stack([_mass(chart) for chart in charts], axis=1)
        for chart in charts:
            _narrow(chart, rng)
        mass = np.where(there, mass, -np.inf)
        weight = np.exp(mass - mass.max(axis=1, keepdims=True))
        # No mode is so unlikely that chains may not try it: charts only see the tangent plane.
        weight = np.where(there, np.maximum(weight / weight.sum(axis=1, keepdims=True), 0.05), 0.0)
        self.weight = (weight / weight.sum(axis=1, keepdims=True))[rows]
        self.charts = [chart.rows(rows) for chart in charts]

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        which = (rng.random((len(self.weight), 1)) > np.cumsum(self.weight, axis=1)).sum(axis=1)
        which = np.minimum(which, self.weight.shape[1] - 1)
        out, found = np.empty_like(self.charts[0].z), np.zeros(len(which), bool)
        for k, chart in enumerate(self.charts):
            mine = np.flatnonzero(which == k)
            if len(mine):
                part = chart.rows(mine)
                out[mine], found[mine] = part.point(part.draw(rng))
        return out, found

    def log_density(self, c: np.ndarray, B: np.ndarray) -> np.ndarray:
        parts = np.full((len(c), len(self.charts)), -np.inf)
        for k, chart in enumerate(self.charts):
            rows = np.flatnonzero(self.weight[:, k] > 0)
            part = chart.rows(rows)
            held = part.holds(c[rows])
            log = part.log_proposal(c[rows], B[rows]) + np.log(self.weight[rows, k])
            parts[rows, k] = np.where(held, log, -np.inf)
        return np.logaddexp.reduce(parts, axis=1)


def _narrow(chart: Chart, rng: np.random.Generator) -> None:
    """Proposals narrowed where C ends or bends away before they do: over half of them must have a point of C."""
    if not chart.target.surface.rank:
        return
    again = np.repeat(np.arange(len(chart.z)), PILOTS)
    for _ in range(6):
        part = chart.rows(again)
        met = part.point(part.draw(rng))[1].reshape(-1, PILOTS).mean(axis=1)
        if (met > 0.5).all():
            break
        chart.L = np.where((met > 0.5)[:, None, None], chart.L, 1.5 * chart.L)


def _mass(chart: Chart) -> np.ndarray:
    lowest = chart.target.energy(chart.z) - np.einsum("id,ide,ie->i", chart.u0, chart.H, chart.u0)
    return -lowest / 2 - np.log(np.einsum("itt->it", chart.L)).sum(axis=1) + chart.target.surface.log_element(chart.B)


def walk(target: Target, best: np.ndarray, n: int, rng: np.random.Generator, thin: int, burn_in: int = BURN_IN) -> Samples:
    """n draws for each row from several chains, in the outputs' own units; `best` (m, T) points of C in the target's."""
    m, T = best.shape
    curved = target.surface.curved and target.surface.dimension > 0
    points = scattered(target, best, rng, STARTS) if curved else best[:, None][:, :0]
    found = modes(target, best, points) if curved else [best]
    chains_of_row = max(CHAINS, min(TOGETHER // m, n // 32))
    rows = np.repeat(np.arange(m), chains_of_row)
    jumps, target = _Jumps(target, found, points, rows, rng), target.rows(rows)
    z = best[rows]
    for k in range(1, len(found)):  # later chains start at other modes
        other = found[k][rows]
        use = (np.arange(len(rows)) % chains_of_row == k) & np.isfinite(other).all(axis=1)
        z = np.where(use[:, None], other, z)
    state = _State(target, z)
    length = -(-n // chains_of_row)
    kept, taken = [], np.zeros(len(rows))
    for t in range(burn_in + length * thin):
        a = state.jump(jumps, rng)
        b = state.step(rng)
        if t < burn_in:
            rate = b.reshape(m, chains_of_row).mean(axis=1)  # the chains of a row learn together
            state.size *= np.repeat(np.exp((rate - WANTED) / (1 + t) ** 0.5), chains_of_row)
        else:
            kept.append(state.z)
            taken += (a + b) / 2
    chains = (np.stack(kept, axis=1) * target.surface.scale).reshape(m, chains_of_row, length * thin, T)
    share, rhat = diagnostics(chains)
    draws = chains[:, :, thin - 1 :: thin].transpose(0, 2, 1, 3).reshape(m, length * chains_of_row, T)[:, :n]
    ess = np.minimum(share * length * thin * chains_of_row, n)
    acceptance = (taken / (length * thin)).reshape(m, chains_of_row).mean(axis=1)
    return Samples.of(draws, acceptance, ess, rhat)


class _State:
    """Where the chains are, with what every proposal asks about it."""

    def __init__(self, target: Target, z: np.ndarray) -> None:
        self.target = target
        self.z = z
        self.B, self.N = target.surface.bases(z)
        self.log = target.log_density(z, self.B)
        self.size = np.full(len(z), 1.6 / max(target.surface.dimension, 1) ** 0.5)  # of steps; burn-in makes it right

    def _move(self, taken: np.ndarray, z: np.ndarray, B: np.ndarray, N: np.ndarray, log: np.ndarray) -> np.ndarray:
        three = taken[:, None, None]
        self.z = np.where(taken[:, None], z, self.z)
        self.B, self.N = np.where(three, B, self.B), np.where(three, N, self.N)
        self.log = np.where(taken, log, self.log)
        return taken

    @np.errstate(all="ignore")
    def jump(self, jumps: _Jumps, rng: np.random.Generator) -> np.ndarray:
        new, found = jumps.draw(rng)
        found &= self.target.surface.allowed(new)
        new = np.where(found[:, None], new, self.z)
        B, N = self.target.surface.bases(new)
        log = self.target.log_density(new, B)
        ratio = log - self.log + jumps.log_density(self.z, self.B) - jumps.log_density(new, B)
        taken = found & (np.log(rng.random(len(new))) < ratio)
        return self._move(taken, new, B, N, log)

    @np.errstate(all="ignore")
    def step(self, rng: np.random.Generator) -> np.ndarray:
        surface, d = self.target.surface, self.B.shape[2]
        if d == 0:
            return np.ones(len(self.z), bool)
        L = self._root(self.B)
        xi = rng.standard_normal((len(self.z), d))
        u = self.size[:, None] * np.linalg.solve(transpose(L), xi[:, :, None])[:, :, 0]
        new, found = surface.back(self.z + mat(self.B, u), self.N)
        found &= surface.allowed(new)
        new = np.where(found[:, None], new, self.z)
        B, N = surface.bases(new)
        v = mat(transpose(B), self.z - new)
        if surface.rank:  # the way back must exist, and lead here
            again, there = surface.back(new + mat(B, v), N)
            found &= there & (np.abs(again - self.z).max(axis=1) <= RETURN * (1 + np.abs(self.z).max(axis=1)))
        log, M = self.target.log_density(new, B), self._root(B)
        forth = self._log_step(L, u)
        ratio = log - self.log + self._log_step(M, v) - forth
        taken = found & (np.log(rng.random(len(new))) < ratio)
        return self._move(taken, new, B, N, log)

    def _root(self, B: np.ndarray) -> np.ndarray:
        H = transpose(B) @ self.target.P @ B
        return np.linalg.cholesky(H + 1e-12 * np.trace(H, axis1=1, axis2=2)[:, None, None] * np.eye(H.shape[1]))

    def _log_step(self, L: np.ndarray, u: np.ndarray) -> np.ndarray:
        q = (mat(transpose(L), u) ** 2).sum(axis=1)
        return np.log(np.einsum("itt->it", L)).sum(axis=1) - q / (2 * self.size**2)

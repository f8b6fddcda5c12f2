r"""Coefficients of a law that nobody knows, from labels that are noisy and may have gaps: errors in variables.

The labels are y_i = c_i + e_i with c_i in C_theta(x_i) and noise of covariance S_i. With f_i the foot point of y_i on the law,
nearest in the metric of S_i^-1, and g, J, D the law and its derivatives in the outputs and in theta there,

    z_i = g + J (y_i - f_i) - b_i,     W_i = (J S_i J')^-1,     b_i = tr(B (S_i - S_i J' W_i J S_i)) / 2   for each equation

and theta is where the score U = sum_i D_i' W_i z_i is 0, by Gauss-Newton steps -(sum D' W D)^-1 U. Without b this is maximum
likelihood, which puts the radius of a circle at r + s^2 / (2 r): noise along a law that bends by B moves labels to its outer
side, by b on average. Foot points feel the noise along the law, z the noise across it, and those are uncorrelated in the metric
of S: what is left of the bias is of order s^4. The weights are those of an efficient estimate where the true outputs are a
smooth function of x, of which nothing else is known.

*Noise.* With inputs, S is the covariance of what a smooth regression on x leaves (`lawful._smooth`), in b no larger than what z
says; without, it is in proportion to the spread of each output (or what `noise` says), with the size that z says:
s^2 = sum z' W z / (number of equations and rows - number of coefficients).

*Gaps.* With inputs, a missing label is what the regression says, with the variance of that, s_t^2 sum_j w_ij^2 for weights w_ij
of the labels. Without, it has no say: its variance is infinite.

*Standard errors* are those of the sandwich A^-1 (sum_j q_j q_j') A^-1, A = sum D' W D, in which q_j is the share of the labels
of row j in U: D' W z, and what they add to other rows through the regression where labels are missing there; divided by
1 - h_j, h = tr(W D A^-1 D'), as the labels of a row draw the law towards themselves. Noise may thus be of unequal size and of
any distribution.

*Starts.* A law that is linear in theta has one; others are begun at several places, by the Sampson distance (f_i = y_i).

*Profile.* With one coefficient fixed and the others solved for, U^2 / sum q^2 of what is left of its score has a chi-square
distribution with one degree of freedom where the fixed value is true.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from lawful.sets.names import Unknown
from lawful.sets.noisy_labels import Evidence, OpenLaw, Parts, evidence, parts_of, shares
from lawful.sets.systems import CompiledSystem

SEARCHED = 300  # rows of the search for a start
STARTS, STEPS = 24, 60
AGREED, SAME = 3, 1e-2  # so many other starts end where the best one did: enough
ROUNDS = 30
WEAK = 3.0  # spreads of the outputs by which one standard error of a coefficient moves the law
SINGULAR = 1e-12  # of the scaled information: not a number that data can tell


@dataclass(frozen=True)
class Estimate:
    """theta with its covariance; `fixed`: coefficients at a bound. `scale` is the size of z^2 in units of its variance."""

    theta: np.ndarray
    covariance: np.ndarray
    fixed: np.ndarray
    scale: float
    converged: bool

    @property
    def std(self) -> np.ndarray:
        return np.where(self.fixed, np.nan, np.sqrt(np.clip(np.diag(self.covariance), 0, None)))


@dataclass(frozen=True)
class Profile:
    """How well each value of a coefficient agrees with the labels, the others solved for.

    value (k,), statistic (k,) (chi-square with one degree of freedom where the value is true), others {name: (k,)}.
    """

    name: str
    value: np.ndarray
    statistic: np.ndarray
    others: dict[str, np.ndarray]

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The values around the best whose statistic is below the quantile; infinite where the table ends before."""
        limit = float(stats.chi2.ppf(level, 1))
        best = int(np.argmin(self.statistic))
        ends = []
        for side, beyond in ((slice(best, None, -1), -np.inf), (slice(best, None), np.inf)):
            value, statistic = self.value[side], self.statistic[side]
            over = np.flatnonzero(statistic > limit)
            if not len(over):
                ends.append(beyond)
                continue
            k = over[0]
            share = (limit - statistic[k - 1]) / (statistic[k] - statistic[k - 1])
            ends.append(float(value[k - 1] + share * (value[k] - value[k - 1])))
        return ends[0], ends[1]

    def to_frame(self) -> Any:
        """A DataFrame: the coefficient, the statistic, the other coefficients. Needs pandas."""
        import pandas as pd

        return pd.DataFrame({self.name: self.value, "statistic": self.statistic, **self.others})


def estimate(
    law: OpenLaw, data: Evidence, box: Unknown, free: np.ndarray | None = None, start: np.ndarray | None = None
) -> Estimate:
    """Where the score is 0, within the bounds; `free` (K,): the others stay at `start`."""
    theta = search(law, data, box) if start is None else start.copy()
    K = len(theta)
    free = np.ones(K, bool) if free is None else free
    scale = _scale(parts_of(law, theta, data, 0.0), data, K)
    parts = parts_of(law, theta, data, _for_bends(scale, data))
    converged, damping = False, 1.0
    active = free.copy()
    size = np.inf
    for _ in range(ROUNDS):
        U, A = parts.score(), parts.information()
        step, active = _step(theta, U, A, free, box)
        new_size = float(np.sqrt(max(-step @ U, 0.0)))  # in standard errors, about
        damping = 1.0 if new_size <= size else max(damping / 2, 1 / 16)
        size = new_size
        if size <= 1e-7 * np.sqrt(scale) or np.all(np.abs(step) <= 1e-9 * np.abs(theta)):
            converged = True
            break
        theta = np.clip(theta + damping * step, box.low, box.high)
        parts = parts_of(law, theta, data, _for_bends(scale, data))
        scale = _scale(parts, data, K)
    converged |= size <= 1e-3 * np.sqrt(scale)
    covariance = np.zeros((K, K))
    if active.any():
        A = parts.information()[np.ix_(active, active)]
        _identified(A, [name for name, on in zip(box.names, active) if on])
        bread = np.linalg.inv(A)
        D = parts.D[:, :, active]
        leverage = np.einsum("npk,kl,nql,nqp->n", D, bread, D, parts.W)
        q = shares(parts, data)[:, active] / np.maximum(1 - leverage, 0.1)[:, None]
        covariance[np.ix_(active, active)] = bread @ (q.T @ q) @ bread
    return Estimate(theta, covariance, ~active, scale, converged)


def _step(theta: np.ndarray, U: np.ndarray, A: np.ndarray, free: np.ndarray, box: Unknown) -> tuple[np.ndarray, np.ndarray]:
    """The Gauss-Newton step of the coefficients that are free and not held at a bound; and which those are."""
    active = free & ~((theta <= box.low) & (U > 0)) & ~((theta >= box.high) & (U < 0))
    step = np.zeros(len(theta))
    if active.any():
        step[active] = -_solve(A[np.ix_(active, active)], U[active])
    return step, active


def _solve(A: np.ndarray, U: np.ndarray) -> np.ndarray:
    unit = np.sqrt(np.maximum(np.diag(A), 1e-300))
    scaled = A / unit[:, None] / unit
    return np.linalg.lstsq(scaled, U / unit, rcond=SINGULAR)[0] / unit


def _scale(parts: Parts, data: Evidence, K: int) -> float:
    return parts.misfit() / max(data.equations - K, 1.0)


def _for_bends(scale: float, data: Evidence) -> float:
    """The share of S that bends are corrected for: a regression that is biased makes S too large, never too small."""
    return scale if data.scaled else min(scale, 1.0)


def _identified(A: np.ndarray, names: list[str]) -> None:
    unit = np.sqrt(np.diag(A))
    silent = [name for name, u in zip(names, unit) if not u > 0]
    if silent:
        raise ValueError(
            f"Equations: the data say nothing about {' and '.join(silent)}; give it a number, or rows in which it matters"
        )
    values, V = np.linalg.eigh(A / unit[:, None] / unit)
    if values[0] < SINGULAR * values[-1]:
        mixed = [name for name, v in zip(names, V[:, 0]) if abs(v) > 0.1]
        raise ValueError(
            f"Equations: {' and '.join(mixed)} cannot be told apart: other values of them together give the same law "
            "on these data; give one of them a number"
        )


# ---------------------------------------------------------------------- where to begin


def search(law: OpenLaw, data: Evidence, box: Unknown) -> np.ndarray:
    """The coefficients of least Sampson distance over several starts, on some of the rows."""
    rng = np.random.default_rng(0)
    best, least = np.clip(np.nan_to_num(box.start, nan=1.0), box.low, box.high), np.inf
    whole = np.flatnonzero(~data.blank)
    part = data.on(np.sort(rng.permutation(whole if len(whole) >= 2 * len(best) else np.arange(len(data.Y)))[:SEARCHED]))
    starts = _starts(box, rng)
    D = [law.slopes(theta, part.Y, part.X) for theta in starts[:2]]
    linear = np.array_equal(D[0], D[1], equal_nan=True)
    starts = [_algebraic(law, theta, part, box) for theta in (starts[:1] if linear else starts)]
    again = 0
    for theta in sorted(starts, key=lambda theta: _misfit(law, theta, part)):  # the most promising first
        found, misfit = _descend(law, theta, part, box)
        again = again + 1 if abs(misfit - least) <= SAME * least else 0 if misfit < least else again
        if misfit < least:
            best, least = found, misfit
        if again >= AGREED:
            break
    return best


def _starts(box: Unknown, rng: np.random.Generator) -> list[np.ndarray]:
    K = len(box.names)
    bounded = np.isfinite(box.low) & np.isfinite(box.high)
    middle = np.where(bounded, (np.where(bounded, box.low, 0) + np.where(bounded, box.high, 0)) / 2, 1.0)
    out = [np.where(np.isnan(box.start), np.clip(middle, box.low, box.high), box.start)]
    for k in range(STARTS - 1):
        wide = rng.choice([-1.0, 1.0], K) * 10.0 ** rng.uniform(-2, 0.5 + 2.5 * (k % 2), K)
        inside = np.where(
            bounded, np.where(bounded, box.low, 0) + rng.uniform(0, 1, K) * np.where(bounded, box.high - box.low, 0), wide
        )
        mirrored = np.where((inside < box.low) | (inside > box.high), -inside, inside)
        given = box.start * np.exp(0.3 * rng.standard_normal(K))
        out.append(np.clip(np.where(np.isnan(box.start), mirrored, given), box.low, box.high))
    return out


def _algebraic(law: OpenLaw, theta: np.ndarray, data: Evidence, box: Unknown) -> np.ndarray:
    """One step of least squares of the equations as they are written: the solution, where they are linear in theta."""
    g, J = law.at(theta, data.X)(data.Y)
    D = law.slopes(theta, data.Y, data.X)
    unit = np.sqrt(np.einsum("npt,nts,nps->np", J, data.S, J))
    good = np.isfinite(g) & np.isfinite(D).all(axis=2) & (unit > 0) & np.isfinite(unit)
    if good.sum() < len(theta):
        return theta
    w = 1 / np.median(unit[good])
    step = np.linalg.lstsq(D[good] * w, -g[good] * w, rcond=1e-12)[0]
    new = np.clip(theta + step, box.low, box.high)
    return new if np.isfinite(new).all() and _misfit(law, new, data) < _misfit(law, theta, data) else theta


def _misfit(law: OpenLaw, theta: np.ndarray, data: Evidence) -> float:
    """Mean Sampson distance; rows outside the domain count as far away."""
    parts = parts_of(law, theta, data, 0.0, geometric=False)
    lost = float(np.mean(~np.any(parts.W != 0, axis=(1, 2))))
    return parts.misfit() / len(data.Y) + 1e6 * lost if lost < 1 else np.inf


def _descend(law: OpenLaw, theta: np.ndarray, data: Evidence, box: Unknown) -> tuple[np.ndarray, float]:
    """Damped Gauss-Newton on the Sampson distance."""
    misfit, damping = _misfit(law, theta, data), 1e-3
    if not np.isfinite(misfit):
        return theta, np.inf
    for _ in range(STEPS):
        parts = parts_of(law, theta, data, 0.0, geometric=False)
        U, A = parts.score(), parts.information()
        gain = 0.0
        for _ in range(8):
            step, _ = _step(theta, U, A + damping * np.diag(np.diag(A)), np.ones(len(theta), bool), box)
            trial = np.clip(theta + step, box.low, box.high)
            new = _misfit(law, trial, data)
            if new < misfit:
                gain, theta, misfit, damping = misfit - new, trial, new, damping / 10
                break
            damping *= 5
        if gain <= 1e-9 * misfit:
            break
    return theta, misfit


def _warn_of_weak(law: OpenLaw, found: Estimate, data: Evidence, spread: np.ndarray, names: list[str]) -> None:
    """Warn of coefficients so uncertain that one standard error moves the law by as much as the outputs spread."""
    parts = parts_of(law, found.theta, data, 0.0)
    size = np.sqrt(np.einsum("npt,t->np", parts.J**2, spread**2))
    moved = np.abs(parts.D) * np.nan_to_num(found.std) / np.maximum(size, 1e-300)[:, :, None]
    far = np.sqrt(np.mean(np.max(moved, axis=1) ** 2, axis=0))
    for name, value, std in (t[:3] for t in zip(names, found.theta, found.std, far) if t[3] > WEAK):
        warnings.warn(
            f"Equations: the labels hardly determine {name} ({value:.3g} +- {std:.2g}); give it bounds or a number",
            stacklevel=4,
        )


def _profile(law: OpenLaw, data: Evidence, box: Unknown, found: Estimate, k: int, values: np.ndarray) -> Profile:
    """The score statistic of coefficient k at these values, walking outwards from the estimate."""
    order = np.argsort(np.abs(values - found.theta[k]))
    free = ~found.fixed & (np.arange(len(box.names)) != k)
    statistic, thetas = np.empty(len(values)), np.empty((len(values), len(box.names)))
    near = {True: found.theta, False: found.theta}  # the last solution above and below
    for i in order:
        theta = near[bool(values[i] > found.theta[k])].copy()
        theta[k] = values[i]
        if free.any():
            theta = estimate(law, data, box, free, theta).theta
        near[bool(values[i] > found.theta[k])] = thetas[i] = theta
        parts = parts_of(law, theta, data, _for_bends(found.scale, data))
        q, A = shares(parts, data), parts.information()
        if free.any():
            q = q[:, k] - q[:, free] @ _solve(A[np.ix_(free, free)], A[free, k])
            U = parts.score()[k] - parts.score()[free] @ _solve(A[np.ix_(free, free)], A[free, k])
        else:
            q, U = q[:, k], parts.score()[k]
        spread = float(np.sum((q - q.mean()) ** 2)) * len(q) / max(len(q) - len(box.names), 1)
        statistic[i] = float(U) ** 2 / max(spread, 1e-300)
    others = {name: thetas[:, j] for j, name in enumerate(box.names) if j != k}
    return Profile(box.names[k], values, statistic, others)


@dataclass(frozen=True)
class Estimation:
    """An estimate with what it came from."""

    law: OpenLaw
    data: Evidence
    unknown: Unknown
    found: Estimate

    @classmethod
    def of(
        cls,
        system: CompiledSystem,
        unknown: Unknown,
        Y: np.ndarray,
        X: np.ndarray | None,
        noise: Any,
        location: np.ndarray,
        spread: np.ndarray,
    ) -> Estimation:
        """`system` has the unknown coefficients as its last outputs; labels Y (n, T), NaN = missing; inputs X (n, d)."""
        T, K = Y.shape[1], len(unknown.names)
        # equations that no coefficient reaches, through whatever outputs, have nothing to say
        tied = sorted(p for block in system.blocks if max(block.outputs) >= T for p in block.relations["="])
        said = {t for p in tied for t in system.outputs["="][p]}
        silent = [name for k, name in enumerate(unknown.names) if T + k not in said]
        if silent:
            raise ValueError(
                f"Equations: {' and '.join(silent)} stands in no equality, and inequalities do not tell what it is; "
                "give it a number"
            )
        if X is None and system.depends_on_x:
            raise ValueError("Equations: the law has inputs, and its unknown coefficients need them; give X to fit as well")
        law = OpenLaw(CompiledSystem(system.graph, [(system.roots["="][p], "=") for p in tied], T + K, system.n_inputs), T)
        rows = np.isfinite(Y).any(axis=1) & (True if X is None else np.isfinite(X).all(axis=1))
        if rows.sum() <= K:
            raise ValueError(f"Equations: {int(rows.sum())} rows are too few for {K} unknown coefficients; give more of them")
        used = sorted(t for t in said if t < T)
        data = evidence(law, Y[rows], None if X is None else X[rows], noise, location, spread, used)
        found = estimate(law, data, unknown)
        _warn_of_weak(law, found, data, spread, unknown.names)
        if not found.converged:
            warnings.warn(
                f"Equations: the search for {', '.join(unknown.names)} did not come to an end; "
                "give bounds, or numbers to begin with",
                stacklevel=6,
            )
        return cls(law, data, unknown, found)

    def profile(self, name: str, values: Any, points: int) -> Profile:
        unknown, found = self.unknown, self.found
        if name not in unknown.names:
            raise ValueError(f"Equations.profile: {name!r} is not unknown here; choose one of {', '.join(unknown.names)}")
        k = unknown.names.index(name)
        if values is None:
            std = found.std[k] if np.isfinite(found.std[k]) and found.std[k] > 0 else 0.1 * (abs(found.theta[k]) or 1.0)
            values = np.unique(np.clip(found.theta[k] + std * np.linspace(-5, 5, points), unknown.low[k], unknown.high[k]))
        return _profile(self.law, self.data, unknown, found, k, np.asarray(values, np.float64))

"""What noisy labels with gaps say about a law with unknown coefficients; `coefficients` has the formulas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lawful._smooth import ROWS, Noise, noise_of
from lawful.sets.feet import Law, feet, weights
from lawful.sets.systems import CompiledSystem

FEW_ROWS = 400  # for the noise, where no labels are missing
CLEAN = 1e-9  # of the spread of an output: noise at least
FREE = 1e4  # spreads: what nobody knows about an output


class OpenLaw:
    """The equations of a law whose unknown coefficients are further outputs of one system, T + 1, ..., T + K."""

    def __init__(self, system: CompiledSystem, n_outputs: int) -> None:
        self.system, self.T = system, n_outputs

    def _whole(self, theta: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.concatenate([c, np.broadcast_to(theta, (len(c), len(theta)))], axis=1)

    def at(self, theta: np.ndarray, X: np.ndarray | None) -> Law:
        """g (n, P) and J (n, P, T) at outputs, for these coefficients."""

        def law(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            whole = self._whole(theta, c)
            with np.errstate(all="ignore"):
                return self.system.values("=", whole, X), self.system.jacobian("=", whole, X)[:, :, : self.T]

        return law

    def slopes(self, theta: np.ndarray, c: np.ndarray, X: np.ndarray | None) -> np.ndarray:
        """D (n, P, K)."""
        with np.errstate(all="ignore"):
            return np.array(self.system.jacobian("=", self._whole(theta, c), X)[:, :, self.T :])

    def bends(self, theta: np.ndarray, c: np.ndarray, X: np.ndarray | None) -> np.ndarray:
        """B (n, P, T, T)."""
        whole, P = self._whole(theta, c), self.system.count("=")
        with np.errstate(all="ignore"):
            parts = [self.system.hessian("=", whole, X, np.tile(row, (len(c), 1))) for row in np.eye(P)]
        return np.stack([part[:, : self.T, : self.T] for part in parts], axis=1)


@dataclass(frozen=True)
class Evidence:
    """Labels as they enter: gaps filled, covariance of each row, and which labels each filled one came from."""

    Y: np.ndarray  # (n, T)
    X: np.ndarray | None
    S: np.ndarray  # (n, T, T)
    filled: np.ndarray  # (n, T) from the regression
    blank: np.ndarray  # (n,) some output of the row is not known at all
    equations: float  # number of equations that the rows can speak about
    scaled: bool  # whether S is known only up to a factor
    noise: Noise | None

    def on(self, rows: np.ndarray) -> Evidence:
        X = None if self.X is None else self.X[rows]
        parts = {name: getattr(self, name)[rows] for name in ("Y", "S", "filled", "blank")}
        return replace(self, X=X, **parts)


def evidence(
    law: OpenLaw, Y: np.ndarray, X: np.ndarray | None, noise: Any, location: np.ndarray, spread: np.ndarray, used: list[int]
) -> Evidence:
    """What the labels say; rows and outputs that no equation with a coefficient speaks of need not be known."""
    n, T = Y.shape
    gap = np.isnan(Y)
    least = (CLEAN * spread) ** 2
    smooth: Noise | None = None
    if X is not None and n >= 8 and (noise is None or gap[:, used].any()):
        smooth = noise_of(X, Y, most=ROWS if gap[:, used].any() else FEW_ROWS)
    if noise is not None:
        given = np.asarray(noise, np.float64)
        if given.shape not in ((), (T,), (T, T)) or not np.isfinite(given).all():
            raise ValueError(f"Equations: noise={noise!r} will not do; give a number, {T} of them or a ({T}, {T}) covariance")
        S = given if given.ndim == 2 else np.diag(np.broadcast_to(given, (T,)) ** 2)
    else:
        S = np.diag(spread**2) if smooth is None else smooth.S
    S = S + np.diag(least)
    rows = np.broadcast_to(S, (n, T, T)).copy()
    # a row says nothing about an equation unless it has a label in it
    filled = gap & (np.zeros(T, bool) if smooth is None else np.isin(np.arange(T), used))
    blank = gap & ~filled
    full = np.where(gap, location if smooth is None else np.where(filled, smooth.smooth, location), Y)
    for i, t in np.argwhere(gap):
        rows[i, t], rows[i, :, t] = 0.0, 0.0
        rows[i, t, t] = (FREE * spread[t]) ** 2
    for t in np.flatnonzero(filled.any(axis=0)):
        assert smooth is not None
        where = np.flatnonzero(filled[:, t])
        w = smooth.smoothers[t].weights(where)
        rows[where, t, t] = S[t, t] * np.sum(w**2, axis=1) + least[t]
    P = law.system.count("=")
    said = np.clip(P - blank[:, used].sum(axis=1), 0, P)
    known = noise is None and smooth is not None
    return Evidence(full, X, rows, filled, blank[:, used].any(axis=1), float(said.sum()), not known, smooth)


class Parts(NamedTuple):
    """At theta: z (n, P), W (n, P, P), D (n, P, K), J (n, P, T); rows outside the domain have W = 0."""

    z: np.ndarray
    W: np.ndarray
    D: np.ndarray
    J: np.ndarray

    def score(self) -> np.ndarray:
        return np.einsum("npk,npq,nq->k", self.D, self.W, self.z)

    def information(self) -> np.ndarray:
        return np.einsum("npk,npq,nql->kl", self.D, self.W, self.D)

    def misfit(self) -> float:
        return float(np.einsum("np,npq,nq->", self.z, self.W, self.z))


def parts_of(law: OpenLaw, theta: np.ndarray, data: Evidence, scale: float, geometric: bool = True) -> Parts:
    """z, W, D, J at foot points, or at the labels (Sampson). `scale` times S is the noise that bends are corrected for."""
    at = law.at(theta, data.X)
    f, _, foot = feet(at, data.Y, data.S) if geometric else (data.Y, None, np.zeros(len(data.Y), bool))
    g, J = at(f)
    D = law.slopes(theta, f, data.X)
    z = g + np.einsum("npt,nt->np", J, data.Y - f)
    W = weights(J, data.S)
    if geometric and scale > 0:
        JS = J @ data.S
        along = data.S - np.where(foot[:, None, None], np.swapaxes(JS, 1, 2) @ W @ JS, 0.0)
        b = np.einsum("npts,nst->np", law.bends(theta, f, data.X), along) / 2
        z = z - np.where(data.blank[:, None], 0.0, scale * b)
    good = np.isfinite(z).all(axis=1) & np.isfinite(W).all(axis=(1, 2)) & np.isfinite(D).all(axis=(1, 2))
    z, W, D, J = (np.where(good.reshape(-1, *[1] * (a.ndim - 1)), a, 0.0) for a in (z, W, D, J))
    return Parts(z, W, D, J)


def shares(parts: Parts, data: Evidence) -> np.ndarray:
    """q (n, K): what the labels of each row add to the score."""
    DW = np.einsum("npk,npq->nkq", parts.D, parts.W)
    q = np.einsum("nkp,np->nk", DW, parts.z)
    if data.noise is None or not data.filled.any():
        return q
    error = np.nan_to_num(data.noise.error)
    gaps = data.filled.any(axis=1)
    G = DW @ parts.J  # (n, K, T): the weight of each label in the score
    q[gaps] = np.einsum("nkt,nt->nk", G[gaps], error[gaps])
    for t in np.flatnonzero(data.filled.any(axis=0)):
        where = np.flatnonzero(data.filled[:, t])
        smoother = data.noise.smoothers[t]
        q[smoother.rows] += (smoother.weights(where).T @ G[where, :, t]) * error[smoother.rows, t][:, None]
    return q

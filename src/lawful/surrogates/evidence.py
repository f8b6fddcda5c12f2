"""The evidence of length scales and noise: how likely they make the labels of one task.

A ridge with n lambda = g is the posterior mean of a Gaussian process with variance s2, noise s2 g and a constant of which
nothing is known. For p distinct inputs with weights w, labels averaged to y, R = k(x_i, x_j) with k(x, x) = 1 and
A = R + g W^-1,

    f = (n - 1)/2 log s2 + 1/2 log|A| + 1/2 log(1' A^-1 1) + (n - p)/2 log g        constant integrated out (REML)
    f = n/2 log s2 + 1/2 log|A| + (n - p)/2 log g                                   no constant, or a known one

is minus the log of the likelihood of the labels, with s2 at its maximum,

    s2 = (y' P y + q / g) / (n - 1),    P = A^-1 - A^-1 1 1' A^-1 / (1' A^-1 1)     (n and P = A^-1 without constant)

Here q is the weighted sum of squares of labels around the mean of their input, and n the number of distinct (input, label)
pairs; weights are scaled to sum to n. So weight 2 is a row repeated twice, and a common factor of the weights is nothing. With
a = P y,

    df/dA = 1/2 (P - a a' / s2),     df/dlog g = <df/dA, g W^-1> + (n - p)/2 - q / (2 g s2)

and derivatives with respect to the parameters of the kernel are <df/dA, dR/dtheta_j> (`geometry`).

The curvature that a descent and Laplace's method need is the expected one, Fisher's information with s2 at its maximum,

    F_ij = 1/2 [tr(P A_i P A_j) - tr(P A_i) tr(P A_j) / (n - 1)],    A_i = dA / d(theta_i or log g)

estimated with a few random vectors z: for P = C C', V_i = C' A_i C z less its part along z, F_ij = mean of V_i' V_j / 2. That
is never indefinite and costs O(n^2 d) for each vector, where differences of gradients would cost d inverses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dtrtrs

from lawful._array import to_numpy
from lawful._lapack import cholesky, inverse_of_triangle, triangle_squared
from lawful.surrogates.geometry import Geometry, Groups, Symmetric

__all__ = ["Evidence", "Labels", "evidence", "leave_one_out", "noise_path", "noise_terms", "vertex"]

PROBES = 2  # random vectors for Fisher's information


@dataclass(frozen=True)
class Labels:
    """One task: p inputs in units of their own, weights that sum to n, mean labels, and what is lost by averaging them."""

    X: np.ndarray  # (p, d)
    w: np.ndarray  # (p,)
    y: np.ndarray  # (p,)
    within: float
    n: int
    intercept: bool
    device: Any = None  # of torch, where evidence is computed

    @property
    def free(self) -> int:
        """Degrees of freedom of s2."""
        return self.n - self.intercept

    def take(self, some: np.ndarray) -> Labels:
        """Some of the inputs; what repeated labels say about the noise is shared out among them."""
        share = len(some) / len(self.w)
        w = self.w[some]
        n = max(len(some), round(self.n * share))
        return replace(self, X=self.X[some], w=w * n / w.sum(), y=self.y[some], within=self.within * share, n=n)


class Evidence(NamedTuple):
    """f, its gradient in (theta, log g), the information of groups of them (None unless asked for), and s2."""

    value: float
    slope: np.ndarray | None
    information: np.ndarray | None
    s2: float


def evidence(
    labels: Labels, geometry: Any, log_g: float, *, slope: bool = True, groups: Groups | None = None
) -> Evidence | None:
    """f at the kernel of `geometry` and noise g; None where A is singular in double precision.

    With `groups` of inputs also the information of their length scales, of what else the kernel has, and of log g.
    """
    g, w, n, p = float(np.exp(log_g)), labels.w, labels.n, len(labels.w)
    if not isinstance(geometry, Geometry):
        found = geometry.evidence(labels, log_g, slope, groups, None if groups is None else _normal(p))
        return None if found is None else Evidence(*found)
    L = _factor(labels, geometry, log_g)
    if L is None:
        return None
    half = dtrtrs(L, np.stack([labels.y, np.ones(p)], axis=1), lower=1)[0]  # L^-1 [y, 1]
    log_det = 2 * float(np.log(L.diagonal()).sum())
    code = half[:, 0]
    height = 0.0
    if labels.intercept:
        v = half[:, 1]
        height = float(v @ v)
        code = code - v * (float(v @ code) / height)
    quadratic = float(code @ code)
    s2 = max((quadratic + labels.within / g) / labels.free, 1e-300)
    value = 0.5 * (labels.free * np.log(s2) + log_det + (n - p) * log_g)
    if labels.intercept:
        value += 0.5 * np.log(height)
    grad = fisher = None
    if slope or groups is not None:
        back = dtrtrs(L, np.stack([code, half[:, 1]], axis=1), lower=1, trans=1)[0]
        a, b = back.T  # P y, A^-1 1
        v = half[:, 1] / np.sqrt(height) if labels.intercept else None
        z = np.zeros((p, 0)) if groups is None else _probes(p, v)
        inverse_of_triangle(L.T)
        root = L
        V = dtrmm(1.0, root, z, lower=1, trans_a=1)
        low = root
        if groups is not None:
            low = geometry.room("inverse", p).T
            np.copyto(low, root)
        triangle_squared(low.T)
        low *= 0.5
        outer = [a / np.sqrt(2 * s2)] + ([b / np.sqrt(2 * height)] if labels.intercept else [])
        W = Symmetric(low, np.stack(outer))
        noise = float(W.diagonal() @ (g / w)) + 0.5 * (n - p) - 0.5 * labels.within / (g * s2)
        contracted, moved = geometry.both(W, V, [] if groups is None else groups)
        grad = np.append(contracted, noise)
        if groups is not None:
            fisher = _information(labels, root, z, [*moved, (g / w)[:, None] * V], v)
    return Evidence(float(value), grad, fisher, s2)


def noise_path(tasks: list[Labels], geometry: Any, log_g: np.ndarray) -> np.ndarray:
    """f for tasks on the same inputs and all values of the noise, (len(log_g), T), from one set of eigenvectors."""
    penalty, quadratic = noise_terms(tasks, to_numpy(geometry.R), log_g)
    free = tasks[0].free
    return penalty + 0.5 * free * np.log(np.maximum(quadratic / free, 1e-300))


def noise_terms(tasks: list[Labels], R: np.ndarray, log_g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What f is made of for tasks on the same inputs and all values of the noise: all but s2, and y' P y + q / g.

    (G, 1) and (G, T). With W^1/2 R W^1/2 = U diag(s) U', A^-1 = W^1/2 U (s + g)^-1 U' W^1/2.
    """
    one = tasks[0]
    root = np.sqrt(one.w)
    s, U = eigh(root[:, None] * R * root[None, :], check_finite=False)
    s = np.maximum(s, 0.0)
    code = U.T @ (root[:, None] * np.stack([labels.y for labels in tasks], axis=1))  # (p, T)
    unit = U.T @ root
    within = np.array([labels.within for labels in tasks])
    g = np.exp(log_g)
    inverse = 1 / (s[None, :] + g[:, None])  # (G, p)
    quadratic = inverse @ code**2
    penalty = 0.5 * (-np.log(inverse).sum(axis=1) - np.log(one.w).sum() + (one.n - len(s)) * log_g)[:, None]
    if one.intercept:
        height = inverse @ unit**2
        quadratic = quadratic - (inverse @ (unit[:, None] * code)) ** 2 / height[:, None]
        penalty = penalty + 0.5 * np.log(height)[:, None]
    return penalty, quadratic + within / g[:, None]


def leave_one_out(labels: Labels, geometry: Any, log_g: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Leave-one-out residuals (P y)_i / P_ii and their expected sizes sqrt(s2 / P_ii)."""
    if not isinstance(geometry, Geometry):
        return geometry.leave_one_out(labels, log_g)
    L = _factor(labels, geometry, log_g)
    if L is None:
        return None
    inverse_of_triangle(L.T)
    triangle_squared(L.T)
    low = L
    P = Symmetric(low, np.zeros((0, len(low))))
    if labels.intercept:
        b = P.times(np.ones((len(low), 1)))
        P = Symmetric(low, b.T / np.sqrt(b.sum()))
    a = P.times(labels.y[:, None])[:, 0]
    s2 = (float(labels.y @ a) + labels.within / float(np.exp(log_g))) / labels.free
    diagonal = np.maximum(P.diagonal(), 1e-300)
    return a / diagonal, np.sqrt(max(s2, 1e-300) / diagonal)


def _factor(labels: Labels, geometry: Any, log_g: float) -> np.ndarray | None:
    """L of A = L L', in the room of the geometry; None where A is singular."""
    A = geometry.room("A", len(labels.w))
    np.copyto(A, geometry.R)
    np.einsum("ii->i", A)[...] += float(np.exp(log_g)) / labels.w
    found = cholesky(A, clean=True)
    return None if found is None else found.T


def vertex(x: np.ndarray, f: np.ndarray) -> float:
    """Where f, known on a grid, is least: that of the parabola through the least value and its neighbours, if it has both."""
    at = int(np.argmin(f))
    if not 0 < at < len(x) - 1 or not np.isfinite(f[at - 1 : at + 2]).all():
        return float(x[at])
    left, mid, right = f[at - 1 : at + 2]
    bend = left - 2 * mid + right
    return float(x[at] + (0.5 * (left - right) / bend * (x[at + 1] - x[at]) if bend > 1e-12 else 0.0))


def _probes(p: int, v: np.ndarray | None) -> np.ndarray:
    """Random vectors z, the same ones every time, orthogonal to the constant's direction v."""
    z = _normal(p)
    return z if v is None else z - v[:, None] * (v @ z)


def _normal(p: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((p, PROBES))


def _information(labels: Labels, root: np.ndarray, z: np.ndarray, moved: list[np.ndarray], v: np.ndarray | None) -> np.ndarray:
    """Fisher's information of (theta, log g), from dA / d(theta_i or log g) L^-T z; `root`: L^-1."""
    p = len(labels.w)
    out = dtrmm(1.0, root, np.asfortranarray(np.concatenate(moved, axis=1)), lower=1, overwrite_b=1)
    if v is not None:
        out -= v[:, None] * (v @ out)
    size = float(np.sum(z * z))
    columns = []
    for part in np.split(out, len(moved), axis=1):
        columns.append((part - z * (float(np.sum(z * part)) / size)).ravel())
    stacked = np.stack(columns)
    F = stacked @ stacked.T * (0.5 * (p - labels.intercept) / size)
    F[-1, -1] += 0.5 * (labels.n - p)  # what repeated labels say about the noise
    return F

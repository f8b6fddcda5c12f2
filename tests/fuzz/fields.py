"""The laws of other fields once more, in plain numpy: see `laws`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .laws import ROUNDING, Law, Named, beyond
from .source import New

NAMES = {6: "Correlations", 9: "Correlations", 10: "Quaternions", 12: "SE3"}


def linear(
    new: New, T: int, name: str, A: np.ndarray, b: np.ndarray, G: np.ndarray, h: np.ndarray, middle: Any, size: Any
) -> Named:
    """{A c = b, G c <= h}, each row relative to the size of the law's numbers; the way there is a few rounds of projections."""
    sides, matrix = np.r_[b, h], np.concatenate([A, G])
    pinv = np.linalg.pinv(A) if len(A) else np.zeros((T, 0))

    def rule(c):
        exact = c.astype(np.longdouble)
        wrong = np.concatenate([np.abs(exact @ A.T - b), np.maximum(exact @ G.T - h, 0)], axis=1).astype(float)
        scale = np.abs(c).max(axis=1, keepdims=True) * np.abs(matrix).sum(axis=1) + np.abs(sides)
        scale = np.where(scale > 0, scale, 1.0)
        off = np.max(beyond(wrong, scale, ROUNDING * scale), axis=1, initial=0.0)
        return np.where(np.isfinite(c).all(axis=1), off, np.inf)

    def way(z):
        for _ in range(60):
            for g, bound in zip(G, h):
                z = z - np.maximum(z @ g - bound, 0)[:, None] * g / (g @ g)
            z = z - (z @ A.T - b) @ pinv.T
        return z

    return Named(new, T, np.broadcast_to(middle, T) * 1.0, np.broadcast_to(size, T) * 1.0, name, rule=rule, way=way)


def monotone(T: int, increasing: bool, gap: float, size: float) -> Named:
    sign = 1.0 if increasing else -1.0
    G = sign * (np.eye(T)[:-1] - np.eye(T)[1:])
    new = New("lawful.Monotone", increasing, gap)
    return linear(
        new, T, "Monotone", np.zeros((0, T)), np.zeros(0), G, np.full(T - 1, -gap), sign * gap * np.arange(T), size + gap
    )


def convex_shape(positions: np.ndarray, concave: bool, size: float) -> Named:
    T, step = len(positions), np.diff(positions)
    left = (step[1:] / (step[:-1] + step[1:]))[:, None]
    G = (-1.0 if concave else 1.0) * (np.eye(T)[1:-1] - left * np.eye(T)[:-2] - (1 - left) * np.eye(T)[2:])
    new = New("lawful.ConvexShape", positions, concave)
    return linear(new, T, "ConvexShape", np.zeros((0, T)), np.zeros(0), G, np.zeros(T - 2), 0.0, size)


def hierarchy(S: np.ndarray, nonnegative: bool, size: float) -> Named:
    """S ends with the identity: bottom series come last."""
    T, n = S.shape
    A = np.concatenate([np.eye(T - n), -S[: T - n]], axis=1)
    G = -np.eye(T) if nonnegative else np.zeros((0, T))
    new = New("lawful.Hierarchy", S, nonnegative)
    return linear(new, T, "Hierarchy", A, np.zeros(len(A)), G, np.zeros(len(G)), 0.0, size)


def margins(I: int, J: int, table: np.ndarray, columns: bool) -> Named:
    cells = np.arange(I * J).reshape(I, J)
    lines = [*cells, *cells.T] if columns else [*cells]
    A = np.array([np.isin(np.arange(I * J), line) for line in lines], float)
    rows, across = table.sum(axis=1), table.sum(axis=0)
    new = New("lawful.Margins", (I, J), rows, across if columns else None)
    b = np.r_[rows, across] if columns else rows
    return linear(new, I * J, "Margins", A, b, -np.eye(I * J), np.zeros(I * J), table.reshape(-1), max(table.max(), 1e-300))


def flow(edges: list[tuple[int, int]], f: np.ndarray, capacity: np.ndarray) -> Named:
    """A network with a flow f that obeys: what it takes in at every node is the supply."""
    T, nodes = len(edges), sorted({v for edge in edges for v in edge})
    N = np.array([[float(a == v) - float(b == v) for a, b in edges] for v in nodes])
    supply = N @ f
    new = New("lawful.Flow", edges, {v: float(x) for v, x in zip(nodes, supply)}, capacity)
    G, h = np.concatenate([-np.eye(T), np.eye(T)]), np.r_[np.zeros(T), capacity]
    return linear(new, T, "Flow", N, supply, G, h, f, max(float(capacity.max()), 1e-300))


def correlations(n: int, packed: bool) -> Named:
    i, j = np.triu_indices(n, 1)
    T = len(i) if packed else n * n

    def matrix(c):
        if not packed:
            return c.reshape(-1, n, n)
        M = np.tile(np.eye(n), (len(c), 1, 1))
        M[:, i, j] = M[:, j, i] = c
        return M

    def rule(c):
        M = np.where(np.isfinite(matrix(c)), matrix(c), 0.0)
        skew = np.abs(M - M.transpose(0, 2, 1)).max(axis=(1, 2))
        ones = np.abs(np.einsum("mii->mi", M) - 1).max(axis=1)
        low = -np.linalg.eigvalsh((M + M.transpose(0, 2, 1)) / 2)[:, 0]
        return np.where(np.isfinite(c).all(axis=1), np.max([skew, ones, low], axis=0).clip(0), np.inf)

    def way(z):
        M = matrix(np.clip(z, -1e3, 1e3))
        for _ in range(200):
            values, V = np.linalg.eigh((M + M.transpose(0, 2, 1)) / 2)
            M = (V * np.maximum(values, 0)[:, None, :]) @ V.transpose(0, 2, 1)
            d = np.sqrt(np.maximum(np.einsum("mii->mi", M), 1e-300))
            M = M / (d[:, :, None] * d[:, None, :])
        return M[:, i, j] if packed else M.reshape(len(M), T)

    new = New("lawful.CorrelationMatrices", n, packed)
    return Named(new, T, np.zeros(T), np.ones(T), "CorrelationMatrices", rule=rule, way=way)


def quaternions() -> Named:
    i, j = np.triu_indices(4)
    root = np.where(i == j, 1.0, 2**0.5)

    def matrix(c):
        M = np.zeros((len(c), 4, 4))
        M[:, i, j] = M[:, j, i] = c / root
        return M

    def rule(c):
        P = np.where(np.isfinite(matrix(c)), matrix(c), 0.0)
        off = np.maximum(np.abs(P @ P - P).max(axis=(1, 2)), np.abs(np.einsum("mii->m", P) - 1))
        return np.where(np.isfinite(c).all(axis=1), off, np.inf)

    def way(z):
        q = np.linalg.eigh(matrix(z))[1][:, :, -1]
        return q[:, i] * q[:, j] * root

    return Named(New("lawful.UnitQuaternions"), 10, np.zeros(10), np.ones(10), "UnitQuaternions", rule=rule, way=way)


def poses() -> Named:
    def rule(c):
        R = np.where(np.isfinite(c[:, :9]), c[:, :9], 0.0).reshape(-1, 3, 3)
        wrong = np.abs(R.transpose(0, 2, 1) @ R - np.eye(3)).max(axis=(1, 2))
        return np.where(np.isfinite(c).all(axis=1) & (np.linalg.det(R) > 0), wrong, np.inf)

    def way(z):
        U, _, V = np.linalg.svd(z[:, :9].reshape(-1, 3, 3))
        U[:, :, -1] *= np.sign(np.linalg.det(U @ V))[:, None]
        return np.c_[(U @ V).reshape(-1, 9), z[:, 9:]]

    return Named(New("lawful.SE3"), 12, np.zeros(12), np.ones(12), "SE3", rule=rule, way=way)


def logic(rng: np.random.Generator, T: int) -> Named:
    """Implications and counts, judged by hand."""
    a, b = rng.permutation(T)[:2] + 1
    most = int(rng.integers(1, T))
    new = New("lawful.Logic", [f"y{a} -> y{b}", f"at_most({most}, {', '.join(f'y{t + 1}' for t in range(T))})"])

    def rule(c):
        fine = np.isin(c, (0.0, 1.0)).all(axis=1) & (c[:, a - 1] <= c[:, b - 1]) & (c.sum(axis=1) <= most)
        return np.where(fine, 0.0, np.inf)

    points = np.array(np.meshgrid(*[[0.0, 1.0]] * T)).reshape(T, -1).T
    points = points[rule(points) == 0]
    nearest = lambda z: points[((z[:, None] - points[None]) ** 2).sum(axis=2).argmin(axis=1)]  # noqa: E731
    return Named(new, T, np.full(T, 0.5), np.ones(T), "Logic", finite=True, rule=rule, way=nearest)


def draw_field(rng: np.random.Generator, T: int, s: float) -> Law | None:
    """A law of T outputs of size s; None where no field has one."""
    kinds = ["Hierarchy"] if T >= 2 else []
    kinds += ["Monotone", "Flow", "Logic"] if T >= 2 else []
    kinds += ["ConvexShape"] if T >= 3 else []
    kinds += ["Margins"] if T in (4, 6, 8, 9) else []
    kinds += [kind for kind in [NAMES.get(T), "Correlations" if T in (1, 3, 4) else None] if kind]
    if not kinds:
        return None
    kind = str(rng.choice(kinds))
    if kind == "Hierarchy":
        n = int(rng.integers(1, T))
        S = np.concatenate([(rng.random((T - n, n)) < 0.6).astype(float), np.eye(n)])
        return hierarchy(S, bool(rng.random() < 0.4), s)
    if kind == "Monotone":
        return monotone(T, bool(rng.random() < 0.7), float(rng.choice([0.0, 0.0, 0.1])) * s, s)
    if kind == "ConvexShape":
        return convex_shape(np.cumsum(rng.uniform(0.2, 2, T)).round(3), bool(rng.random() < 0.4), s)
    if kind == "Margins":
        I, J = {4: (2, 2), 6: (2, 3), 8: (2, 4), 9: (3, 3)}[T]
        return margins(I, J, s * rng.uniform(0, 1, (I, J)), bool(rng.random() < 0.7))
    if kind == "Flow":
        edges = [(int(k), int(k) + 1 + int(rng.integers(0, 2))) for k in rng.integers(0, max(T // 2, 1), T)]
        f = s * rng.uniform(0, 1, T)
        return flow(edges, f, f * rng.uniform(1, 2, T))
    if kind == "Correlations":
        return correlations({1: 2, 3: 3, 4: 2, 6: 4, 9: 3}[T], T in (1, 3, 6))
    if kind == "Logic":
        return logic(rng, T)
    return quaternions() if kind == "Quaternions" else poses()

"""Laws for `laws.py`: strings for the library, and the same functions in plain arrays for its peers.

`functions(xp)` gives g(c, x) and its Jacobian in numpy, torch or jax.numpy; the outputs are the last axis, any batch comes
before it (in numpy, slopes are asked for at one point). Every law holds at `center` (the grid's at other loads too), and the
points to be projected lie around it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lawful.datasets import load_power_grid

Array = np.ndarray


class Law(NamedTuple):
    texts: list[str]
    center: Array
    functions: Callable[[Any], tuple[Callable[..., Any], Callable[..., Any]]]
    noise: float | Array = 0.3
    bounds: tuple[float, float] | None = None
    matrix: tuple[Array, Array] | None = None  # of an affine law A c = b
    inputs: Callable[[int, np.random.Generator], Array] | None = None  # rows of inputs, when the law depends on them

    @property
    def convex(self) -> bool:
        return self.matrix is not None

    def points(self, n: int, rng: np.random.Generator) -> Array:
        return self.center + self.noise * rng.standard_normal((n, len(self.center)))


def name(t: int) -> str:
    return f"y{t + 1}"


def affine(T: int, P: int, rng: np.random.Generator) -> Law:
    """Three terms in each equation."""
    A = np.zeros((P, T))
    for p in range(P):
        A[p, rng.choice(T, min(T, 3), replace=False)] = np.round(rng.uniform(-2, 2, min(T, 3)), 3)
    center = rng.uniform(0.5, 2.5, T)
    b = A @ center
    texts = [" + ".join(f"{float(A[p, t])!r}*{name(t)}" for t in np.flatnonzero(A[p]).tolist()) for p in range(P)]

    def functions(xp: Any) -> Any:
        M, level = xp.asarray(A), xp.asarray(b)
        return (lambda c, x: c @ M.T - level), (lambda c, x: M)

    return Law([f"{text} = {float(b[p])!r}" for p, text in enumerate(texts)], center, functions, matrix=(A, b))


def bounded(T: int, P: int, rng: np.random.Generator) -> Law:
    """The same, with bounds on every output."""
    law = affine(T, P, rng)
    return law._replace(texts=law.texts + [f"0 <= {name(t)} <= 3" for t in range(T)], bounds=(0.0, 3.0))


def bilinear(T: int, P: int, rng: np.random.Generator) -> Law:
    """Three products and an output in each equation."""
    i, j = rng.integers(0, T, (2, P, 3))
    w = np.round(rng.uniform(-1, 1, (P, 3)), 3)
    own = np.arange(P) % T
    center = rng.uniform(0.5, 1.5, T)
    level = (w * center[i] * center[j]).sum(1) + center[own]
    rows = np.arange(P)[:, None] * T
    place = np.concatenate([rows + i, rows + j], axis=1).ravel()  # of the derivatives in the flat Jacobian
    other, factor = np.concatenate([j, i], axis=1).ravel(), np.concatenate([w, w], axis=1).ravel()
    constant = np.zeros(P * T)
    constant[rows[:, 0] + own] = 1.0

    def functions(xp: Any) -> Any:
        I, J, W, O, L, place_, other_, factor_, constant_ = map(
            xp.asarray, (i, j, w, own, level, place, other, factor, constant)
        )

        def g(c: Any, x: Any) -> Any:
            return (W * c[..., I] * c[..., J]).sum(-1) + c[..., O] - L

        def slope(c: Any, x: Any) -> Any:
            entries = factor_ * c[..., other_]
            if xp is np:
                return (np.bincount(place, entries, minlength=P * T) + constant).reshape(P, T)
            return constant_.repeat(len(c), 1).index_add_(1, place_, entries).reshape(-1, P, T)

        return g, slope

    texts = [
        " + ".join(f"{float(w[p, k])!r}*{name(i[p, k])}*{name(j[p, k])}" for k in range(3))
        + f" + {name(own[p])} = {float(level[p])!r}"
        for p in range(P)
    ]
    return Law(texts, center, functions)


def dense(T: int, P: int, rng: np.random.Generator) -> Law:
    """Every equation has every output, inside a sine and a square."""
    A, B, D = (np.round(rng.normal(0, s / np.sqrt(T), (P, T)), 3) for s in (2.0, 1.0, 1.0))
    center = rng.uniform(0.5, 1.5, T)
    level = A @ center + 0.3 * np.sin(B @ center) + 0.1 * (D @ center) ** 2

    def functions(xp: Any) -> Any:
        a, b, d, L = map(xp.asarray, (A, B, D, level))

        def g(c: Any, x: Any) -> Any:
            return c @ a.T + 0.3 * xp.sin(c @ b.T) + 0.1 * (c @ d.T) ** 2 - L

        def slope(c: Any, x: Any) -> Any:
            return a + 0.3 * xp.cos(c @ b.T)[..., None] * b + 0.2 * (c @ d.T)[..., None] * d

        return g, slope

    def linear(row: Array) -> str:
        return " + ".join(f"{w!r}*{name(t)}" for t, w in enumerate(row.tolist()))

    texts = [f"{linear(A[p])} + 0.3*sin({linear(B[p])}) + 0.1*({linear(D[p])})**2 = {float(level[p])!r}" for p in range(P)]
    return Law(texts, center, functions)


def circle() -> Law:
    def functions(xp: Any) -> Any:
        return (lambda c, x: (c**2).sum(-1)[..., None] - 1.0), (lambda c, x: 2 * c[..., None, :])

    return Law(["y1**2 + y2**2 = 1"], np.array([0.6, 0.8]), functions)


def lemniscate() -> Law:
    """y1^4 = y1^2 - y2^2, with points all around it."""

    def functions(xp: Any) -> Any:
        def g(c: Any, x: Any) -> Any:
            return (c[..., 0] ** 4 - c[..., 0] ** 2 + c[..., 1] ** 2)[..., None]

        def slope(c: Any, x: Any) -> Any:
            return xp.stack([4 * c[..., 0] ** 3 - 2 * c[..., 0], 2 * c[..., 1]], -1)[..., None, :]

        return g, slope

    return Law(["y1**4 = y1**2 - y2**2"], np.zeros(2), functions, noise=0.6)


def power_flow() -> Law:
    """The IEEE 30-bus grid: 30 magnitudes, 30 angles; the loads of the 24 buses without generator are 48 inputs."""
    grid = load_power_grid(30)
    n, free = grid.size, grid.free
    k = len(free)
    v, a = [name(t) for t in range(n)], [name(n + t) for t in range(n)]
    p, q = ({int(i): f"-x{s + begin}" for s, i in enumerate(free)} for begin in (1, k + 1))
    texts = [*grid.flow_equations(v, a, p, q), f"{a[0]} = 0"]
    center = np.concatenate(grid.solve(grid.load[None]), axis=1)[0]

    def functions(xp: Any) -> Any:
        G, B, eye, F = map(xp.asarray, (grid.admittance.real, grid.admittance.imag, np.eye(n), free))
        first = xp.asarray(np.eye(2 * n)[n : n + 1])

        def parts(c: Any) -> Any:
            v, a = c[..., :n], c[..., n:]
            angle = a[..., :, None] - a[..., None, :]
            cos, sin = xp.cos(angle), xp.sin(angle)
            W, Z = G * cos + B * sin, G * sin - B * cos
            return v, W, Z, (W * v[..., None, :]).sum(-1), (Z * v[..., None, :]).sum(-1)

        def g(c: Any, x: Any) -> Any:
            v, _, _, active, reactive = parts(c)
            return xp.concatenate(
                [(v * active)[..., F] + x[..., :k], (v * reactive)[..., F] + x[..., k:], c[..., n : n + 1]], -1
            )

        def slope(c: Any, x: Any) -> Any:
            v, W, Z, active, reactive = parts(c)
            by = v[..., :, None]
            both = by * v[..., None, :]
            rows = [
                xp.concatenate([by * W + eye * active[..., None], both * Z - eye * (v * reactive)[..., None]], -1),
                xp.concatenate([by * Z + eye * reactive[..., None], -both * W + eye * (v * active)[..., None]], -1),
            ]
            last = first if len(c.shape) == 1 else first.repeat(len(c), 1, 1)
            return xp.concatenate([rows[0][..., F, :], rows[1][..., F, :], last], -2)

        return g, slope

    def inputs(m: int, rng: np.random.Generator) -> Array:
        load = grid.load[free] * rng.uniform(0.6, 1.2, (m, k))
        return np.concatenate([load.real, load.imag], axis=1)

    return Law(texts, center, functions, noise=np.repeat([0.02, 0.03], n), inputs=inputs)


KINDS: dict[str, Callable[[int, int, np.random.Generator], Law]] = {
    "affine": affine,
    "bounded": bounded,
    "bilinear": bilinear,
    "dense": dense,
}
REAL: dict[str, Callable[[], Law]] = {"circle": circle, "lemniscate": lemniscate, "grid30": power_flow}

r"""Nearest points of laws, found without the library: brute force on dense samples, or a long multi-start.

    python tests/nearest.py --scale 5 --seed 1        a table of wrong answers, law by law

A *case* draws rows to be projected, and knows for each the value of the best point that it can find: the smallest
sum_t a_t (c_t - w_t)^2 over points of the law. What it finds lies on the law, so that its value is never below the true
minimum, and an answer of the library above it by more than 1e-6 of it is wrong; so is an answer that is not `ok`. "behind"
counts the rows on which the library is below it by as much: where that is many, the search should be longer.

The multi-start descends on {g = 0} from many starts, all rows at once: tangent step d = -(I - J'(JJ')^+ J)(c - w), back to the
law by Gauss-Newton, steps halved until the objective falls. It is slow and simple, and shares no code with the library.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import brentq, minimize
from scipy.spatial import cKDTree

from lawful.datasets import PowerGrid, column_outputs, load_power_grid, make_column, make_flow_sheet

Array = np.ndarray
TOL = 1e-6


class Rows(NamedTuple):
    """Points to be projected, what the law needs, and the best values known (inf: no point of the law was found)."""

    law: list[str]
    w: Array
    best: Array
    X: Array | None = None
    weights: Array | None = None


Case = Callable[[int, np.random.Generator], Rows]


# ------------------------------------------------------------------ descent from many starts


class Functions(NamedTuple):
    """g (m, P) and its Jacobian (m, P, T) at c (m, T), with inputs x (m, d) or None."""

    g: Callable[[Array, Any], Array]
    slope: Callable[[Array, Any], Array]


def normal(J: Array, r: Array) -> Array:
    """(JJ')^+ r, row by row; redundant equations do no harm."""
    S = J @ J.transpose(0, 2, 1)
    size = np.trace(S, axis1=1, axis2=2)[:, None, None] + 1e-300
    return np.linalg.solve(S + 1e-13 * size * np.eye(S.shape[1]), r[..., None])[..., 0]


def back(f: Functions, c: Array, x: Array | None, steps: int) -> tuple[Array, Array]:
    """c put on the law by Gauss-Newton, and what is left of g."""
    for _ in range(steps):
        left = f.g(c, x)
        if np.abs(left).max(initial=0.0) < 1e-12:
            break
        J = f.slope(c, x)
        c = c - (J.transpose(0, 2, 1) @ normal(J, left)[..., None])[..., 0]
    return c, np.abs(f.g(c, x)).max(axis=1)


def descend(f: Functions, w: Array, c: Array, x: Array | None, steps: int = 80) -> tuple[Array, Array]:
    """A local minimum of |c - w|^2 on the law from each start: points, and values (inf where the law was not reached)."""

    def part(rows: Array) -> Array | None:
        return None if x is None else x[rows]

    with np.errstate(all="ignore"):
        c, left = back(f, c, x, 40)
        value = np.where(left <= 1e-9, ((c - w) ** 2).sum(axis=1), np.inf)
        live = np.flatnonzero(np.isfinite(value))
        length = np.ones(len(c))
        for _ in range(steps):
            if not len(live):
                break
            J, r = f.slope(c[live], part(live)), c[live] - w[live]
            d = (J.transpose(0, 2, 1) @ normal(J, (J @ r[..., None])[..., 0])[..., None])[..., 0] - r
            trial, left = back(f, c[live] + length[live, None] * d, part(live), 6)
            new = ((trial - w[live]) ** 2).sum(axis=1)
            falls = (left <= 1e-10) & (new < value[live])
            now = live[falls]
            c[now], value[now] = trial[falls], new[falls]
            length[live] = np.where(falls, np.minimum(1.0, 2 * length[live]), length[live] / 2)
            moving = ((d**2).sum(axis=1) > 1e-12 * (1e-12 + value[live])) & (length[live] > 1e-9)
            live = live[moving]
    return c, value


def multistart(f: Functions, w: Array, starts: Array, x: Array | None = None) -> Array:
    """(m,) the smallest value over the law from starts (m, k, T)."""
    m, k, T = starts.shape
    repeat = np.repeat(np.arange(m), k)
    _, value = descend(f, w[repeat], starts.reshape(m * k, T).copy(), None if x is None else x[repeat])
    return value.reshape(m, k).min(axis=1)


def around(w: Array, center: Array, noise: float | Array, k: int, rng: np.random.Generator) -> Array:
    """(m, k, T) starts: the points themselves, and points around `center` at three widths."""
    width = rng.choice([0.5, 1.5, 4.0], (len(w), k, 1)) * noise
    starts = center + width * rng.standard_normal((len(w), k, len(center)))
    starts[:, 0] = w
    return starts


# ------------------------------------------------------------------ curves, surfaces and regions: dense samples

S = np.linspace(-np.pi, np.pi, 200_001)
LINE = np.linspace(-6, 6, 200_001)
CURVES: dict[str, tuple[str, Array]] = {
    "circle": ("y1**2 + y2**2 = 1", np.c_[np.cos(S), np.sin(S)]),
    "ellipse": ("y1**2/9 + 4*y2**2 = 1", np.c_[3 * np.cos(S), np.sin(S) / 2]),
    "lemniscate": ("y1**4 = y1**2 - y2**2", np.c_[np.sin(S), np.sin(2 * S) / 2]),
    "sine": ("y2 = sin(3*y1)", np.c_[LINE, np.sin(3 * LINE)]),
    "hyperbola": ("y1*y2 = 1", np.concatenate([np.c_[np.exp(LINE), np.exp(-LINE)], -np.c_[np.exp(LINE), np.exp(-LINE)]])),
    "clover": ("(y1**2 + y2**2)**2 = y1*(y1**2 - 3*y2**2)", np.c_[np.cos(3 * S) * np.cos(S), np.cos(3 * S) * np.sin(S)]),
    "cubic": ("y2 = y1**3 - 2*y1", np.c_[LINE, LINE**3 - 2 * LINE]),
}


def curve(name: str) -> Case:
    def draw(n: int, rng: np.random.Generator) -> Rows:
        text, points = CURVES[name]
        w = 1.2 * rng.standard_normal((n, 2))
        return Rows([text], w, cKDTree(points).query(w)[0] ** 2)

    return draw


def weighted_curve(n: int, rng: np.random.Generator) -> Rows:
    """The lemniscate in a metric that counts one output ten times as much."""
    text, points = CURVES["lemniscate"]
    a = np.array([0.3, 3.0])
    w = 0.8 * rng.standard_normal((n, 2))
    return Rows([text], w, cKDTree(np.sqrt(a) * points).query(np.sqrt(a) * w)[0] ** 2, weights=a)


def inside(*tests: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda c: np.all([test(c) <= 1e-11 for test in tests], axis=0)


def crossing(s: float) -> float:
    """Zero where the lemniscate meets y1 + y2 = 0.1."""
    return np.sin(s) + np.sin(2 * s) / 2 - 0.1


CROSSINGS = np.array([brentq(crossing, a, b, xtol=1e-15) for a, b in ((-1.0, 1.0), (1.0, 3.0))])
CIRCLE, LEMNISCATE = CURVES["circle"][1], CURVES["lemniscate"][1]
REGIONS: dict[str, tuple[list[str], Callable[[Array], Array], list[Array]]] = {  # law, membership, boundaries
    "ring": (
        ["1 <= y1**2 + y2**2 <= 2"],
        inside(lambda c: 1 - (c**2).sum(1), lambda c: (c**2).sum(1) - 2),
        [(1 + 1e-13) * CIRCLE, np.sqrt(2) * (1 - 1e-13) * CIRCLE],
    ),
    "crescent": (
        ["y1**2 + y2**2 <= 1", "(y1 - 0.5)**2 + y2**2 >= 0.49"],
        inside(lambda c: (c**2).sum(1) - 1, lambda c: 0.49 - (c[:, 0] - 0.5) ** 2 - c[:, 1] ** 2),
        [
            (1 - 1e-13) * CIRCLE,
            0.7 * (1 + 1e-13) * CIRCLE + [0.5, 0.0],
            np.array([[0.76, np.sqrt(1 - 0.76**2)]]) * [[1, 1], [1, -1]],
        ],
    ),
    "half lemniscate": (
        ["y1**4 = y1**2 - y2**2", "y1 + y2 >= 0.1"],
        lambda c: (np.abs(c[:, 0] ** 4 - c[:, 0] ** 2 + c[:, 1] ** 2) <= 1e-14) & (c.sum(axis=1) >= 0.1 - 1e-14),
        [LEMNISCATE, np.c_[np.sin(CROSSINGS), np.sin(2 * CROSSINGS) / 2]],
    ),
}


def region(name: str) -> Case:
    law, contains, boundaries = REGIONS[name]

    def draw(n: int, rng: np.random.Generator) -> Rows:
        edge = np.concatenate(boundaries)
        w = 1.2 * rng.standard_normal((n, 2))
        best = cKDTree(edge[contains(edge)]).query(w)[0] ** 2
        return Rows(law, w, np.where(contains(w), 0.0, best))

    return draw


def torus(n: int, rng: np.random.Generator) -> Rows:
    """In closed form: the tube of radius 1 around the circle of radius 2."""
    w = 1.5 * rng.standard_normal((n, 3))
    off = np.hypot(np.hypot(w[:, 0], w[:, 1]) - 2, w[:, 2]) - 1
    return Rows(["(y1**2 + y2**2 + y3**2 + 3)**2 = 16*(y1**2 + y2**2)"], w, off**2)


def saddle(n: int, rng: np.random.Generator) -> Rows:
    """y3 = y1 y2: the cheapest points of a grid, then descent."""
    f = Functions(
        lambda c, x: (c[:, 0] * c[:, 1] - c[:, 2])[:, None],
        lambda c, x: np.stack([c[:, 1], c[:, 0], np.full(len(c), -1.0)], axis=1)[:, None, :],
    )
    u, v = (g.ravel() for g in np.meshgrid(np.linspace(-5, 5, 301), np.linspace(-5, 5, 301)))
    cloud = np.c_[u, v, u * v]
    w = 1.5 * rng.standard_normal((n, 3))
    _, near = cKDTree(cloud).query(w, k=3)
    return Rows(["y3 = y1*y2"], w, multistart(f, w, cloud[near]))


# ------------------------------------------------------------------ equations among many outputs


def affine(T: int, P: int) -> Case:
    def draw(n: int, rng: np.random.Generator) -> Rows:
        A, b = np.round(rng.normal(size=(P, T)), 2), np.round(rng.normal(size=P), 2)
        w = 2 * rng.standard_normal((n, T))
        c = w - (np.linalg.pinv(A) @ (A @ w.T - b[:, None])).T
        return Rows(linear(A, b), w, ((c - w) ** 2).sum(axis=1))

    return draw


def linear(A: Array, b: Array) -> list[str]:
    return [" + ".join(f"{v!r}*y{t + 1}" for t, v in enumerate(row.tolist())) + f" = {float(r)!r}" for row, r in zip(A, b)]


def redundant(n: int, rng: np.random.Generator) -> Rows:
    """Six equations of rank four."""
    A = np.round(rng.normal(size=(4, 10)), 2)
    A = np.concatenate([A, [A[0] + A[1], 2 * A[2]]])
    b = A @ np.round(rng.normal(size=10), 2)
    w = 2 * rng.standard_normal((n, 10))
    return Rows(linear(A, b), w, ((np.linalg.pinv(A) @ (A @ w.T - b[:, None])) ** 2).sum(axis=0))


def affine_by_inputs(n: int, rng: np.random.Generator) -> Rows:
    """x1 y1 + y2 - y3 = x2, y3 + x2 y4 = 1: coefficients and right-hand sides are inputs."""
    X, w = rng.uniform(0.5, 2, (n, 2)), rng.standard_normal((n, 4))
    zero, one = np.zeros(n), np.ones(n)
    A = np.stack([np.c_[X[:, 0], one, -one, zero], np.c_[zero, zero, one, X[:, 1]]], axis=1)
    left = (A @ w[..., None])[..., 0] - np.c_[X[:, 1], one]
    step = np.linalg.pinv(A) @ left[..., None]
    return Rows(["x1*y1 + y2 - y3 = x2", "y3 + x2*y4 = 1"], w, (step[..., 0] ** 2).sum(axis=1), X)


def slsqp(w: Array, starts: Array, g: Any = None, J: Any = None, h: Any = None, K: Any = None, bounds: Any = None) -> Array:
    """(m,) smallest value over {g = 0, h >= 0, bounds} that SLSQP finds from starts (m, k, T)."""
    best = np.full(len(w), np.inf)
    constraints = [{"type": kind, "fun": f, "jac": df} for kind, f, df in (("eq", g, J), ("ineq", h, K)) if f is not None]
    for i, target in enumerate(w):
        for start in starts[i]:
            c = minimize(
                lambda c, target=target: np.sum((c - target) ** 2),
                start,
                jac=lambda c, target=target: 2 * (c - target),
                bounds=bounds,
                constraints=constraints,
                method="SLSQP",
                options={"ftol": 1e-13, "maxiter": 200},
            ).x
            c = c if bounds is None else np.clip(c, *np.transpose(bounds))
            off = max(np.abs(g(c)).max() if g is not None else 0.0, -h(c).min() if h is not None else 0.0)
            if off <= 1e-10:
                best[i] = min(best[i], np.sum((c - target) ** 2))
    return best


def bounded(T: int, P: int) -> Case:
    """Affine with bounds: convex, so that one local solution is the nearest point."""

    def draw(n: int, rng: np.random.Generator) -> Rows:
        A = np.round(rng.normal(size=(P, T)), 2)
        b = A @ rng.uniform(0.5, 2.5, T)
        w = 1.5 + 1.5 * rng.standard_normal((n, T))
        best = slsqp(w, w[:, None], lambda c: A @ c - b, lambda c: A, bounds=[(0.0, 3.0)] * T)
        return Rows(linear(A, b) + [f"0 <= y{t + 1} <= 3" for t in range(T)], w, best)

    return draw


def polytope(n: int, rng: np.random.Generator) -> Rows:
    """Ten affine inequalities on six outputs, and one equation."""
    A = np.round(rng.normal(size=(11, 6)), 2)
    b = A @ np.ones(6) + np.r_[0.0, rng.uniform(0.2, 1, 10)]
    w = 1 + 1.5 * rng.standard_normal((n, 6))
    best = slsqp(w, w[:, None], lambda c: A[:1] @ c - b[:1], lambda c: A[:1], lambda c: b[1:] - A[1:] @ c, lambda c: -A[1:])
    texts = linear(A, b)
    return Rows(texts[:1] + [text.replace(" = ", " <= ") for text in texts[1:]], w, best)


def pooling(n: int, rng: np.random.Generator) -> Rows:
    """Two streams with a quality each meet: a mass balance, a bilinear balance, and bounds on all six outputs."""
    w = np.array([1.0, 1.5, 2.5, 0.5, 0.3, 0.4]) + rng.standard_normal((n, 6))

    def g(c: Array) -> Array:
        return np.array([c[0] + c[1] - c[2], c[0] * c[3] + c[1] * c[4] - c[2] * c[5]])

    def J(c: Array) -> Array:
        return np.array([[1, 1, -1, 0, 0, 0], [c[3], c[4], -c[5], c[0], c[1], -c[2]]])

    low, high = np.zeros(6), np.array([3.0, 3.0, 4.0, 1.0, 1.0, 1.0])
    starts = rng.uniform(low, high, (n, 10, 6))
    starts[:, 0] = np.clip(w, low, high)
    best = slsqp(w, starts, g, J, bounds=list(zip(low, high)))
    texts = ["y1 + y2 = y3", "y1*y4 + y2*y5 = y3*y6", *(f"0 <= y{t + 1} <= {high[t]:g}" for t in range(6))]
    return Rows(texts, w, best)


def blocks(n: int, rng: np.random.Generator) -> Rows:
    """Three laws that share no output: a circle, a lemniscate, a line."""
    w = rng.standard_normal((n, 6))
    best = (np.hypot(w[:, 0], w[:, 3]) - 1) ** 2 + cKDTree(LEMNISCATE).query(w[:, [1, 4]])[0] ** 2
    best += (w[:, 2] + 2 * w[:, 5] - 1) ** 2 / 5
    return Rows(["y1**2 + y4**2 = 1", "y2**4 = y2**2 - y5**2", "y3 + 2*y6 = 1"], w, best)


def product(n: int, rng: np.random.Generator) -> Rows:
    """y1 y2 y3 = 1: four sheets."""
    f = Functions(
        lambda c, x: (c[:, 0] * c[:, 1] * c[:, 2] - 1)[:, None],
        lambda c, x: np.stack([c[:, 1] * c[:, 2], c[:, 0] * c[:, 2], c[:, 0] * c[:, 1]], axis=1)[:, None, :],
    )
    w = 1.5 * rng.standard_normal((n, 3))
    signs = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    starts = np.concatenate([signs[None] * np.exp(rng.normal(0, s, (n, 4, 3))) for s in (0.0, 0.7, 0.7, 1.4)], axis=1)
    return Rows(["y1*y2*y3 = 1"], w, multistart(f, w, starts))


def quadratic(T: int, P: int, noise: float, starts: int, sparse: bool) -> Case:
    """Equations c'Qc + l'c = r through a common point: a few products each (bilinear), or all of them."""

    def draw(n: int, rng: np.random.Generator) -> Rows:
        Q = np.round(rng.normal(0, 1 / np.sqrt(T), (P, T, T)), 2)
        if sparse:
            Q = np.where(rng.uniform(size=Q.shape) < 3 / T**2, np.round(rng.uniform(-1, 1, Q.shape), 2), 0.0)
        L = np.where(np.arange(T) == (np.arange(P) % T)[:, None], 1.0, 0.0)
        center = rng.uniform(0.5, 1.5, T)
        level = np.einsum("pst,s,t->p", Q, center, center) + L @ center
        both = Q + Q.transpose(0, 2, 1)
        f = Functions(
            lambda c, x: np.einsum("pst,ms,mt->mp", Q, c, c, optimize=True) + c @ L.T - level,
            lambda c, x: np.einsum("pst,mt->mps", both, c) + L,
        )
        texts = []
        for p in range(P):
            terms = [f"{float(Q[p, s, t])!r}*y{s + 1}*y{t + 1}" for s, t in np.argwhere(Q[p]).tolist()]
            texts.append(" + ".join([*terms, f"y{p % T + 1}"]) + f" = {float(level[p])!r}")
        w = center + noise * rng.standard_normal((n, T))
        return Rows(texts, w, multistart(f, w, around(w, center, noise, starts, rng)))

    return draw


def waves(T: int, P: int) -> Case:
    """Every output in every equation, inside a sine."""

    def draw(n: int, rng: np.random.Generator) -> Rows:
        A, B = (np.round(rng.normal(0, s / np.sqrt(T), (P, T)), 2) for s in (1.5, 2.0))
        center = rng.uniform(0.5, 1.5, T)
        level = A @ center + 0.5 * np.sin(B @ center)
        f = Functions(
            lambda c, x: c @ A.T + 0.5 * np.sin(c @ B.T) - level,
            lambda c, x: A + 0.5 * np.cos(c @ B.T)[..., None] * B,
        )

        def total(row: Array) -> str:
            return " + ".join(f"{v!r}*y{t + 1}" for t, v in enumerate(row.tolist()))

        texts = [f"{total(A[p])} + 0.5*sin({total(B[p])}) = {float(level[p])!r}" for p in range(P)]
        w = center + 0.8 * rng.standard_normal((n, T))
        return Rows(texts, w, multistart(f, w, around(w, center, 0.8, 20, rng)))

    return draw


def scaled(f: Functions, unit: Array) -> Functions:
    """The functions of u = c / unit."""
    return Functions(lambda u, x: f.g(u * unit, x), lambda u, x: f.slope(u * unit, x) * unit)


def distillation(law: list[str], column: Callable[[Array], Array]) -> Case:
    """Balances in which the feeds are inputs; weights 1 / variance."""
    share = np.array([0.697616946, 0.302383054])

    def g(c: Array, x: Array) -> Array:
        feeds = np.c_[share[0] * x[:, 0], share[1] * x[:, 0], x[:, 1]]
        balance = feeds - c[:, :1] * c[:, 2:5] - c[:, 1:2] * c[:, 5:8]
        return np.c_[x[:, 0] + x[:, 1] - c[:, 0] - c[:, 1], balance, c[:, 2:5].sum(1) - 1, c[:, 5:8].sum(1) - 1]

    def slope(c: Array, x: Array) -> Array:
        J = np.zeros((len(c), 6, 9))
        J[:, 0, :2] = -1
        for k in range(3):
            J[:, 1 + k, 0], J[:, 1 + k, 1] = -c[:, 2 + k], -c[:, 5 + k]
            J[:, 1 + k, 2 + k], J[:, 1 + k, 5 + k] = -c[:, 0], -c[:, 1]
        J[:, 4, 2:5] = J[:, 5, 5:8] = 1
        return J

    def draw(n: int, rng: np.random.Generator) -> Rows:
        X = rng.uniform([80, 60, 0.5], [120, 140, 3], (n, 3))
        truth = column(X)
        unit = column(rng.uniform([80, 60, 0.5], [120, 140, 3], (500, 3))).std(axis=0)
        w = truth + 0.5 * unit * rng.standard_normal(truth.shape)
        starts = truth[:, None] / unit + rng.choice([0.0, 0.5, 2.0], (n, 8, 1)) * rng.standard_normal((n, 8, 9))
        starts[:, 0] = w / unit
        best = multistart(scaled(Functions(g, slope), unit), w / unit, starts, X)
        return Rows(law, w, best, X, 1 / unit**2)

    return draw


def power_flow(law: list[str], grid: PowerGrid, states: Callable[[Array], Array]) -> Case:
    """Voltages and powers of a grid, as its meters see them; weights 1 / variance of the meters."""
    n = grid.size
    unit = np.repeat([0.01, 0.01, 0.03, 0.03], n)

    def g(c: Array, x: Any) -> Array:
        V = c[:, :n] * np.exp(1j * c[:, n : 2 * n])
        P = V * np.conj(V @ grid.admittance.T)
        flow = c[:, 2 * n :] - np.c_[P.real, P.imag]
        return np.c_[flow, c[:, 2 * n + 6], c[:, 3 * n + 6], c[:, n]]

    def slope(c: Array, x: Any) -> Array:
        by_angle, by_size = grid.sensitivities(c[:, :n], c[:, n : 2 * n])
        J = np.zeros((len(c), 2 * n + 3, 4 * n))
        J[:, :n, :n], J[:, :n, n : 2 * n] = -by_size.real, -by_angle.real
        J[:, n : 2 * n, :n], J[:, n : 2 * n, n : 2 * n] = -by_size.imag, -by_angle.imag
        J[:, np.arange(2 * n), 2 * n + np.arange(2 * n)] = 1
        J[:, 2 * n, 2 * n + 6] = J[:, 2 * n + 1, 3 * n + 6] = J[:, 2 * n + 2, n] = 1
        return J

    def draw(m: int, rng: np.random.Generator) -> Rows:
        truth = states(rng.uniform([0.5, 0.5, 0.6], [1.3, 1.3, 1.4], (m, 3)))
        w = truth + unit * rng.standard_normal(truth.shape)
        starts = truth[:, None] / unit + rng.choice([0.0, 1.0, 5.0], (m, 4, 1)) * rng.standard_normal((m, 4, 4 * n))
        starts[:, 0] = w / unit
        return Rows(law, w, multistart(scaled(Functions(g, slope), unit), w / unit, starts), None, 1 / unit**2)

    return draw


def flow_sheet(law: list[str], balances: Array, flows: Callable[[Array], Array]) -> Case:
    """Balances and non-negative flows: a convex quadratic programme, by an interior-point method."""
    units, S = balances.shape
    rows = sparse.csc_matrix(np.concatenate([balances, -np.eye(S)]))
    cones = [clarabel.ZeroConeT(units), clarabel.NonnegativeConeT(S)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10

    def draw(n: int, rng: np.random.Generator) -> Rows:
        truth = flows(rng.uniform(-1, 1, (n, 3)))
        w = truth + 0.5 * rng.standard_normal(truth.shape)
        best = np.full(n, np.inf)
        for i in range(n):
            r = clarabel.DefaultSolver(
                sparse.identity(S, format="csc"), -w[i], rows, np.zeros(units + S), cones, settings
            ).solve()
            c = np.array(r.x)
            if max(np.abs(balances @ c).max(), -c.min()) <= 1e-8:
                best[i] = np.sum((c - w[i]) ** 2)
        return Rows(law, w, best)

    return draw


# ------------------------------------------------------------------ the table

CASES: dict[str, tuple[Case, int]] = {  # and how many rows a short run takes
    **{name: (curve(name), 300) for name in CURVES},
    "weighted lemniscate": (weighted_curve, 300),
    **{name: (region(name), 200) for name in REGIONS},
    "torus": (torus, 200),
    "saddle": (saddle, 200),
    "affine 20, 8": (affine(20, 8), 200),
    "redundant": (redundant, 100),
    "affine by inputs": (affine_by_inputs, 200),
    "bounded 8, 3": (bounded(8, 3), 100),
    "polytope": (polytope, 100),
    "pooling": (pooling, 30),
    "blocks": (blocks, 200),
    "product": (product, 200),
    "bilinear 10, 4": (quadratic(10, 4, 0.5, 20, sparse=True), 50),
    "bilinear 10, 8": (quadratic(10, 8, 0.5, 20, sparse=True), 30),
    "bilinear 30, 15": (quadratic(30, 15, 0.3, 5, sparse=True), 20),
    "quadrics 3, 2": (quadratic(3, 2, 1.0, 40, sparse=False), 100),
    "quadrics 5, 3": (quadratic(5, 3, 1.0, 40, sparse=False), 50),
    "quadrics 8, 4": (quadratic(8, 4, 1.5, 40, sparse=False), 30),
    "quadrics 4, 1": (quadratic(4, 1, 1.0, 40, sparse=False), 50),
    "waves 6, 3": (waves(6, 3), 50),
}


def field_cases() -> dict[str, tuple[Case, int]]:
    """Laws of the fields for which `lawful.datasets` generates data."""
    grid = load_power_grid(14)
    sheet = make_flow_sheet(200, random_state=0)

    def states(X: Array) -> Array:
        level = X[:, [0] * 5 + [1] * 9]
        return grid.states(level * (grid.load.real + 1j * grid.load.imag * X[:, 2:]))

    return {
        "distillation": (distillation(make_column(2).equations, column_outputs), 200),
        "power flow": (power_flow(grid.equations, grid, states), 20),
        "flow sheet": (flow_sheet(sheet.equations, sheet.units, sheet.flows), 20),
    }


def wrong(rows: Rows, d: Any) -> Array:
    """(m,) which answers are wrong: above the best known point, or not certified although there is one."""
    return np.isfinite(rows.best) & ((d.status != "ok") | (d.value > rows.best + TOL * (1e-12 + rows.best) + 1e-12))


def main() -> None:
    from lawful import Equations, project

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="how many times the rows of a short run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args()
    total = np.zeros(2, dtype=int)
    print(f"{'case':<22}{'rows':>6}{'wrong':>7}{'not ok':>8}{'behind':>8}{'worst':>10}{'known s':>9}{'ours s':>8}")
    for name, (case, n) in (CASES | field_cases()).items():
        if options.only not in name:
            continue
        start = time.perf_counter()
        rows = case(int(n * options.scale), np.random.default_rng(options.seed))
        drawn = time.perf_counter()
        d = project(rows.w, Equations(rows.law), weights=rows.weights, X=rows.X, certificate=True)
        done = time.perf_counter()
        bad = wrong(rows, d)
        above = np.where(np.isfinite(rows.best), d.value / (rows.best + 1e-12) - 1, -np.inf).max()
        behind = rows.best > d.value + TOL * (1e-12 + d.value) + 1e-12
        total += (len(rows.w), bad.sum())
        print(
            f"{name:<22}{len(rows.w):>6}{bad.sum():>7}{np.sum(d.status != 'ok'):>8}{behind.sum():>8}{above:>10.1e}"
            f"{drawn - start:>9.1f}{done - drawn:>8.1f}",
            flush=True,
        )
    print(f"{total[1]} of {total[0]} rows are wrong")


if __name__ == "__main__":
    main()

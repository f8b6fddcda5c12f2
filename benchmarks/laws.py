"""Projection onto laws of any size: set-up in seconds, microseconds per row, against scipy's SLSQP in the same run.

    python benchmarks/laws.py --outputs 2 10 40 --seconds 20

Kinds: affine (three terms in each equation), affine with bounds on every output, bilinear (three products and an output),
dense (every equation has every output, inside a sine and a square). Every law holds at a point y0, and the points to be
projected lie around it. SLSQP starts at the point itself and has exact derivatives, written in plain numpy. "worse" is the
share of rows on which the library ends above SLSQP by more than 1e-6 of the objective, or does not say ok where SLSQP
found a point of the law.

"reading" is the time from strings to the first values and derivatives; "first" that of the first call of `project`, for one
row, which also prepares starts; both are paid once for a law. A line is left out (-) when it would take longer than
`--seconds`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from lawful import Equations, project

Array = np.ndarray


class Law(NamedTuple):
    """Strings, and the same equations g(c) = 0 with their Jacobian in plain numpy; bounds or None."""

    texts: list[str]
    g: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    center: Array
    bounds: tuple[float, float] | None = None


def name(t: int) -> str:
    return f"y{t + 1}"


def affine(T: int, P: int, rng: np.random.Generator) -> Law:
    A = np.zeros((P, T))
    for p in range(P):
        A[p, rng.choice(T, min(T, 3), replace=False)] = np.round(rng.uniform(-2, 2, min(T, 3)), 3)
    center = rng.uniform(0.5, 2.5, T)
    b = A @ center
    texts = [" + ".join(f"{float(A[p, t])!r}*{name(t)}" for t in np.flatnonzero(A[p]).tolist()) for p in range(P)]
    texts = [f"{text} = {float(b[p])!r}" for p, text in enumerate(texts)]
    return Law(texts, lambda c: A @ c - b, lambda c: A, center)


def bounded(T: int, P: int, rng: np.random.Generator) -> Law:
    law = affine(T, P, rng)
    return law._replace(texts=law.texts + [f"0 <= {name(t)} <= 3" for t in range(T)], bounds=(0.0, 3.0))


def bilinear(T: int, P: int, rng: np.random.Generator) -> Law:
    i, j = rng.integers(0, T, (2, P, 3))
    w = np.round(rng.uniform(-1, 1, (P, 3)), 3)
    own = np.arange(P) % T
    center = rng.uniform(0.5, 1.5, T)
    rows = np.arange(P)

    def g(c: Array) -> Array:
        return (w * c[i] * c[j]).sum(1) + c[own] - level

    def slope(c: Array) -> Array:
        J = np.zeros((P, T))
        for k in range(3):
            np.add.at(J, (rows, i[:, k]), w[:, k] * c[j[:, k]])
            np.add.at(J, (rows, j[:, k]), w[:, k] * c[i[:, k]])
        J[rows, own] += 1.0
        return J

    level = np.zeros(P)
    level = g(center)
    texts = [
        " + ".join(f"{float(w[p, k])!r}*{name(i[p, k])}*{name(j[p, k])}" for k in range(3))
        + f" + {name(own[p])} = {float(level[p])!r}"
        for p in range(P)
    ]
    return Law(texts, g, slope, center)


def dense(T: int, P: int, rng: np.random.Generator) -> Law:
    A, B, D = (np.round(rng.normal(0, s / np.sqrt(T), (P, T)), 3) for s in (2.0, 1.0, 1.0))
    center = rng.uniform(0.5, 1.5, T)

    def g(c: Array) -> Array:
        return A @ c + 0.3 * np.sin(B @ c) + 0.1 * (D @ c) ** 2 - level

    def slope(c: Array) -> Array:
        return A + 0.3 * np.cos(B @ c)[:, None] * B + 0.2 * (D @ c)[:, None] * D

    def linear(row: Array) -> str:
        return " + ".join(f"{w!r}*{name(t)}" for t, w in enumerate(row.tolist()))

    level = np.zeros(P)
    level = g(center)
    texts = [f"{linear(A[p])} + 0.3*sin({linear(B[p])}) + 0.1*({linear(D[p])})**2 = {float(level[p])!r}" for p in range(P)]
    return Law(texts, g, slope, center)


KINDS = {"affine": affine, "bounded": bounded, "bilinear": bilinear, "dense": dense}


def slsqp(law: Law, w: Array) -> Array:
    return minimize(
        lambda c: np.sum((c - w) ** 2),
        w,
        jac=lambda c: 2 * (c - w),
        constraints=[{"type": "eq", "fun": law.g, "jac": law.slope}],
        bounds=None if law.bounds is None else [law.bounds] * len(w),
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 200},
    ).x


def reading(law: Law, T: int) -> float:
    """Seconds from strings to the first values, slopes and curvature."""
    start = time.perf_counter()
    C = Equations(law.texts).fit(law.center[None, :])
    c = law.center[None, :]
    for kind in ("=", "<="):
        if P := C.system_.count(kind):
            C.system_.values(kind, c, None)
            C.system_.jacobian(kind, c, None)
            C.system_.hessian(kind, c, None, np.ones((1, P)))
    return time.perf_counter() - start


def timed(call: Callable[[Array], object], rows: Array, seconds: float) -> tuple[float, int, object]:
    """Seconds per row, from as many of the rows as the time allows, their number, and the last result."""
    n = 1
    while True:
        start = time.perf_counter()
        result = call(rows[:n])
        spent = time.perf_counter() - start
        if n >= len(rows) or spent * 8 > seconds:
            return spent / n, n, result
        n = min(len(rows), 8 * n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outputs", type=int, nargs="+", default=[2, 10, 40, 100, 300])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=10.0, help="for one side of one line")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"up to {options.rows} rows for the library, and as many for SLSQP as the time allows")
    header = f"{'kind':<10}{'T':>4}{'P':>5}{'reading s':>11}{'first s':>9}"
    print(header + f"{'us/row':>10}{'SLSQP':>10}{'ratio':>8}{'worse':>8}{'not ok':>8}")
    for kind in options.kinds:
        for T in options.outputs:
            for P in sorted({1, max(1, T // 2), max(1, int(0.8 * T))}):
                line(kind, T, P, options)


def line(kind: str, T: int, P: int, options: argparse.Namespace) -> None:
    rng = np.random.default_rng(options.seed)
    law = KINDS[kind](T, P, rng)
    w = law.center + 0.3 * rng.standard_normal((options.rows, T))
    read = reading(law, T)
    fitted = Equations(law.texts).fit(law.center + 0.3 * rng.standard_normal((100, T)))
    start = time.perf_counter()
    project(w[:1], fitted)
    first = time.perf_counter() - start
    head = f"{kind:<10}{T:>4}{P:>5}{read:>11.3f}{first:>9.2f}"
    if first > options.seconds:
        print(f"{head}{'-':>10}", flush=True)
        return
    mine, n, d = timed(lambda rows: project(rows, fitted, certificate=True), w, options.seconds)
    slow, k, theirs = timed(lambda rows: np.array([slsqp(law, row) for row in rows]), w[: min(n, 200)], options.seconds)
    k = min(k, n)
    found = np.array([np.abs(law.g(c)).max() < 1e-6 for c in theirs[:k]])
    best = ((theirs[:k] - w[:k]) ** 2).sum(1)
    ok = d.status[:k] == "ok"
    worse = np.mean(found & (~ok | (d.value[:k] > best + 1e-6 * (1 + best))))
    print(
        f"{head}{mine * 1e6:>10.1f}{slow * 1e6:>10.0f}{slow / mine:>8.1f}{worse:>8.1%}{np.mean(d.status != 'ok'):>8.1%}",
        flush=True,
    )


if __name__ == "__main__":
    main()

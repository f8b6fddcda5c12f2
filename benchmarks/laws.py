"""Projection onto laws of any size: set-up in seconds, microseconds per row, against its peers in the same run.

    python benchmarks/laws.py                        every kind and size: about a quarter of an hour
    python benchmarks/laws.py --quick                small sizes and few rows
    python benchmarks/laws.py --outputs 40 --kinds bilinear --seconds 20

Kinds: affine (three terms in each equation), bounded (the same, and bounds on every output), bilinear (three products and an
output), dense (every equation has every output, inside a sine and a square); and the circle, the lemniscate and the power flow
of the IEEE 30-bus grid, where 48 loads are inputs. T outputs, P equations.

    set-up   seconds of the first `project` of one row, from strings
    again    what a second call with the same strings takes beyond one with a fitted law
    us/row   of the library, in batches; the columns after it say how many times that the peers take:
             SLSQP (scipy, one start, exact derivatives, row by row), products (the matrix products W A', (W A' - b) K that the
             closed form of an affine law consists of: below 1 means that the library takes longer), QP (the fastest of
             clarabel, piqp and proxqp, row by row, as far as installed), ENF and KKT (the projection layers of ENFORCE and
             KKT-HardNet, batched, as far as installed). In brackets: the share of rows on which that peer is off, by 1e-6 in
             the law or above the best known point.
    wrong    rows on which the library ends above the best known point by more than 1e-6 of the objective, or does not say ok:
             against SLSQP, and for `--checked` rows of laws that are not convex against SLSQP from `--starts` starts
    goal     the factors asked for, and whether they are reached; * is a goal that is missed

Times are CPU seconds of this process (for KKT-HardNet, of all its threads), so that other work on the machine counts little.
Set OMP_NUM_THREADS=1. A dash is what would take longer than `--seconds`. Peers are installed by
`pip install torch enforce-nn kkt-hardnet piqp proxsuite`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from law_cases import KINDS, REAL, Array, Law  # benchmarks/law_cases.py, beside this script
from law_peers import PEERS, Peer, slsqp  # benchmarks/law_peers.py

from lawful import Equations, project

OFF = 1e-6
CONVEX_SOLVERS = ("clarabel", "piqp", "proxqp")
HEAD = f"{'kind':<11}{'T':>4}{'P':>5}{'set-up':>8}{'again':>8}{'us/row':>9}{'SLSQP':>8}{'products':>9}"
HEAD += f"{'QP':>15}{'ENF':>13}{'KKT':>14}"


class Line(NamedTuple):
    """What was measured for one law; NaN is what was not."""

    setup: float
    again: float
    ours: float
    slsqp: float
    products: float
    wrong: int


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def rows_in(call: Callable[[int], Any], most: int, limit: float) -> int:
    """How many rows a side gets: as many as take about a third of the limit, for it is called three times."""
    call(1)  # what is prepared once is no part of it
    for n in (8, 64, 512, most):
        spent, _ = seconds(lambda n=n: call(min(n, most)))
        if n >= most or spent * 8 * 3 > limit:
            return min(n, most) if spent <= limit else 0
    return most


def times(ratio: float) -> str:
    """A ratio with two or three digits."""
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}" if ratio >= 1 else f"{ratio:.2g}"


def objective(c: Array, w: Array) -> Array:
    return ((c - w) ** 2).sum(axis=1)


def violation(law: Law, c: Array, X: Array | None) -> Array:
    g, _ = law.functions(np)
    off = np.array([np.abs(g(row, None if X is None else X[i])).max() for i, row in enumerate(c)])
    if law.bounds is not None:
        low, high = law.bounds
        off = np.maximum(off, np.maximum(low - c, c - high).max(axis=1))
    return off


def best_known(law: Law, w: Array, X: Array | None, first: Array, checked: int, starts: int, rng: Any) -> Array:
    """(k,) the smallest objective over the law that SLSQP found: from the point, and for a few rows from many starts."""
    value = np.where(violation(law, first, X) <= OFF / 10, objective(first, w), np.inf)
    if law.convex:
        return value
    solve = slsqp(law)
    for i in range(min(checked, len(w))):
        here = None if X is None else np.repeat(X[i : i + 1], starts, axis=0)
        wide = law.center + 2 * np.asarray(law.noise) * rng.standard_normal((starts, len(law.center)))
        tries = solve(np.repeat(w[i : i + 1], starts, axis=0), here, wide)
        fits = violation(law, tries, here) <= OFF / 10
        value[i] = min(value[i], objective(tries, w[i])[fits].min(initial=np.inf))
    return value


def products(law: Law, w: Array) -> Callable[[], Array]:
    """c = w - (w A' - b) K with K = (A A')^+ A: the two products of the closed form."""
    assert law.matrix is not None
    A, b = law.matrix
    K = np.linalg.pinv(A @ A.T) @ A
    return lambda: w - (w @ A.T - b) @ K


def peer_column(peer: Peer | None, law: Law, w: Array, X: Array | None, best: Array, ours: float, limit: float) -> str:
    """How many times the library's time a peer takes, and the share of rows on which it is off."""
    if peer is None:
        return ""
    k = len(best)

    def call(n: int) -> Array:
        return peer(w[:n], None if X is None else X[:n])

    first, _ = seconds(lambda: call(min(8, k)))
    if first > 4 * limit:
        return "-"
    n = rows_in(call, len(w), limit) or min(8, k)
    spent, found = min((seconds(lambda: call(n)) for _ in range(2)), key=lambda pair: pair[0])
    k = min(k, n)
    part = None if X is None else X[:k]
    above = objective(found[:k], w[:k]) > best[:k] + OFF * (1 + best[:k])
    off = np.mean(above | ~(violation(law, found[:k], part) <= OFF))
    return f"{times(spent / n / ours)} ({off:.0%})"


def goals(kind: str, T: int, P: int, line: Line) -> str:
    """The goals that are set for this law; a star marks one that is missed."""
    found = [("set-up", line.setup <= (0.3 if T <= 40 else 1.0)), ("again", line.again <= max(0.01, 0.1 * line.setup))]
    ratio = line.slsqp / line.ours
    factor = (
        50 if kind == "affine" else 5 if kind == "grid30" else {(10, 4): 20, (40, 20): 5}.get((T, P), 0) * (kind == "bilinear")
    )
    factor = max(factor, 100) if T == 2 else factor
    if factor:
        found.append((f"{factor}x", ratio >= factor))
    if kind == "affine":
        found.append(("products", line.products * 3 >= line.ours))
    found.append(("wrong", line.wrong == 0))
    return " ".join(label if met else f"{label}*" for label, met in found)


def measure(kind: str, law: Law, options: argparse.Namespace) -> bool:
    """One line of the table; whether all its goals are met."""
    rng = np.random.default_rng(options.seed + 1)
    T, P = len(law.center), sum(" = " in text for text in law.texts)
    w = law.points(options.rows, rng)
    X = None if law.inputs is None else law.inputs(options.rows, rng)
    setup, _ = seconds(lambda: project(w[:1], Equations(law.texts), X=None if X is None else X[:1]))
    again, _ = seconds(lambda: project(w[:1], Equations(law.texts), X=None if X is None else X[:1]))
    fitted = Equations(law.texts).fit(law.points(100, rng), None if X is None else X[:100])
    project(w[:1], fitted, X=None if X is None else X[:1])
    bare, _ = seconds(lambda: project(w[:1], fitted, X=None if X is None else X[:1]))
    again = max(0.0, again - bare)
    head = f"{kind:<11}{T:>4}{P:>5}{setup:>8.3f}{again:>8.3f}"

    def ours(n: int) -> Any:
        return project(w[:n], fitted, X=None if X is None else X[:n], certificate=True)

    theirs = slsqp(law)
    n = 0 if setup > 4 * options.seconds else rows_in(ours, options.rows, options.seconds)
    if not n:
        print(f"{head}{'-':>9}  time*", flush=True)
        return False
    k = min(n, rows_in(lambda k: theirs(w[:k], None if X is None else X[:k]), min(n, 200), options.seconds) or 8)
    # Sides take turns, and the best of three counts: other work on the machine slows both alike, or not at all.
    mine, peer, plain = [], [], []
    closed = products(law, w[:n]) if kind == "affine" else None
    for _ in range(3):
        spent, d = seconds(lambda: ours(n))
        mine.append(spent / n)
        spent, found = seconds(lambda: theirs(w[:k], None if X is None else X[:k]))
        peer.append(spent / k)
        if closed is not None:
            plain.append(seconds(closed)[0] / n)
    best = best_known(law, w[:k], None if X is None else X[:k], found, options.checked, options.starts, rng)
    wrong = int(np.sum(np.isfinite(best) & ((d.status[:k] != "ok") | (d.value[:k] > best + OFF * (1 + best)))))
    line = Line(setup, again, min(mine), min(peer), min(plain, default=np.nan), wrong)
    best = np.minimum(best, np.where(d.status[:k] == "ok", d.value[:k], np.inf))
    others = {
        name: peer_column(make(law), law, w[:n], X if X is None else X[:n], best, line.ours, options.seconds)
        for name, make in PEERS.items()
        if name in options.peers
    }
    solvers = {name: others[name] for name in CONVEX_SOLVERS if others.get(name, "")}
    fastest = min(solvers, key=lambda name: float(solvers[name].split()[0]) if solvers[name] != "-" else np.inf, default="")
    quadratic = f"{fastest} {solvers[fastest].split()[0]}" if fastest else ""
    verdict = goals(kind, T, P, line)
    product = f"{line.products / line.ours:.2g}" if plain else ""
    print(
        f"{head}{line.ours * 1e6:>9.1f}{times(line.slsqp / line.ours):>8}{product:>9}{quadratic:>15}"
        f"{others.get('ENFORCE', ''):>13}{others.get('KKT-HN', ''):>14}"
        f"{f'{wrong}/{k}':>9}{np.mean(d.status != 'ok'):>8.1%}  {verdict}",
        flush=True,
    )
    return "*" not in verdict


def long_law(terms: int = 1000) -> None:
    """A sum of many terms, linear and not: seconds from the string to values and derivatives."""
    for text, label in (
        (" + ".join(f"{t + 1}*y{t % 50 + 1}" for t in range(terms)), "linear"),
        (" + ".join(f"{t + 1}*y{t % 50 + 1}*y{(7 * t + 3) % 50 + 1}" for t in range(terms)), "products"),
        (" + ".join(f"sin({t + 1}*y{t % 50 + 1})" for t in range(terms)), "sines"),
        (" + ".join(f"y{t % 50 + 1}/({t + 2} + y{(3 * t + 1) % 50 + 1}**2)" for t in range(terms)), "quotients"),
    ):
        c = np.ones((1, 50))

        def compiled(text: str = text, c: Array = c) -> None:
            system = Equations(f"{text} = 1").fit(c).system_
            system.values("=", c, None)
            system.jacobian("=", c, None)
            system.hessian("=", c, None, np.ones((1, 1)))

        spent, _ = seconds(compiled)
        print(f"a law of {terms} {label + ',':<11} values and two derivatives: {spent:.3f} s{'' if spent <= 0.2 else ' *'}")


def warm_up() -> None:
    """Imports and compiled kernels are no part of setting up a law."""
    for texts in (["y1 + y2 = 1"], ["y1 + y2 = 1", "0 <= y1 <= 1"], ["y1*y2 + y3 = 1"], ["sin(y1) <= y2"]):
        project(np.random.default_rng(0).normal(size=(20, 3)), Equations(texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outputs", type=int, nargs="+", default=[2, 10, 40, 100, 300])
    parser.add_argument("--kinds", nargs="+", default=[*REAL, *KINDS], choices=[*REAL, *KINDS])
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=6.0, help="for one side of one line")
    parser.add_argument("--checked", type=int, default=10, help="rows that are solved from many starts")
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="sizes up to 40, 500 rows, short limits")
    options = parser.parse_args()
    if options.quick:
        options.outputs = [T for T in options.outputs if T <= 40]
        options.rows, options.seconds, options.checked = min(options.rows, 500), min(options.seconds, 1.5), 3
    warm_up()
    long_law()
    print(f"\nup to {options.rows} rows; a peer's column says how many times the library's time it takes")
    print(f"{HEAD}{'wrong':>9}{'not ok':>8}  goals (* missed)", flush=True)
    met = []
    for kind in options.kinds:
        if kind in REAL:
            met.append(measure(kind, REAL[kind](), options))
            continue
        for T in options.outputs:
            for P in sorted({1, max(1, T // 2), max(1, int(0.8 * T))} | ({4} if (kind, T) == ("bilinear", 10) else set())):
                met.append(measure(kind, KINDS[kind](T, P, np.random.default_rng(options.seed)), options))
    print(f"{sum(met)} of {len(met)} lines meet all their goals")


if __name__ == "__main__":
    main()

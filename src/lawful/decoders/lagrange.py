r"""Newton from the prediction for a law that is given by a graph: sparse, compiled, all rows in one call.

What `newton` does with dense arrays and a line search from several starts, without either: most rows of most laws need neither.
The pattern of the matrix, an order of elimination with little fill-in (minimum degree) and the list of multiplications of its
factor are made once for a law. Rows that do not converge, or for which there may be another answer, are left to `newton`.
Compiling takes seconds, once on a machine; a single row is not worth it (`interpreted`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

from lawful.sets.laws.tape import Tape
from lawful.sets.systems import CompiledSystem

MOST = 3_000_000  # multiplications in one factor: beyond, dense algebra is better
PROBES = 4
VARY = 0.5  # of the curvature of F: what the Hessian of L may change between the points where it is looked at


@dataclass(frozen=True)
class Factor:
    """A symmetric matrix of known pattern: where its entries are stored, and the multiplications that factorise it."""

    place: np.ndarray  # (n,) position of each variable in the order of elimination
    column: np.ndarray  # (n + 1,) where the entries below the diagonal of each column begin
    row: np.ndarray
    target: np.ndarray
    where: np.ndarray  # (n, n) where entry (i, j), i >= j in the order of elimination, is stored

    @property
    def size(self) -> int:
        return int(self.column[-1])

    def at(self, i: int, j: int) -> int:
        """Where entry (i, j) is stored."""
        p, q = sorted((int(self.place[i]), int(self.place[j])))
        return int(self.where[q, p])


def symbolic(n: int, pairs: set[tuple[int, int]]) -> Factor | None:
    """The factor of an n x n matrix with entries at these pairs, in an order of small fill-in; None if that is too long."""
    place = _order(n, pairs)
    below: list[set[int]] = [set() for _ in range(n)]
    for i, j in pairs:
        p, q = sorted((int(place[i]), int(place[j])))
        if p != q:
            below[p].add(q)
    count = 0
    for j in range(n):  # the first below inherits the rest
        count += len(below[j]) * (len(below[j]) + 1) // 2
        if count > MOST:
            return None
        if below[j]:
            parent = min(below[j])
            below[parent] |= below[j] - {parent}
    columns = [np.array(sorted(rows), dtype=np.int64) for rows in below]
    begin = np.concatenate([[n], n + np.cumsum([len(rows) for rows in columns])])
    where = np.full((n, n), -1, dtype=np.int32)
    where[np.arange(n), np.arange(n)] = np.arange(n)
    for j, rows in enumerate(columns):
        where[rows, j] = np.arange(begin[j], begin[j + 1])
    target = []
    for rows in columns:
        later, first = np.tril_indices(len(rows))
        order = np.lexsort((later, first))
        target.append(where[rows[later[order]], rows[first[order]]])
    return Factor(
        place, begin, np.concatenate([*columns, []]).astype(np.int32), np.concatenate([*target, []]).astype(np.int32), where
    )


def _order(n: int, pairs: set[tuple[int, int]]) -> np.ndarray:
    """Minimum degree, by the sparse solver that everyone has; a positive definite matrix of this pattern is made up for it."""
    i, j = np.array(sorted(pairs) or np.zeros((0, 2), int)).T
    both = coo_array((np.ones(2 * len(i)), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(n, n)).tocsc()
    both.data[:] = 0.5 / n
    both.setdiag(2.0)
    # Column i goes to place perm_c[i].
    return splu(both.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).perm_c.astype(
        np.int64
    )


@dataclass(frozen=True)
class Plan:
    """All that the compiled code needs to know about a law, for a diagonal or a full output metric."""

    tape: Tape
    n_equal: int
    q_at: np.ndarray
    whole: Factor
    own: Factor
    places: tuple[np.ndarray, ...]
    own_places: tuple[np.ndarray, ...]
    quadratic: bool


_interpreted = ContextVar("interpreted", default=False)


@contextmanager
def interpreted() -> Iterator[None]:
    """A block in which nothing is compiled: `newton` does all the work."""
    token = _interpreted.set(True)
    try:
        yield
    finally:
        _interpreted.reset(token)


_plans: WeakKeyDictionary[CompiledSystem, dict[bool, Plan | None]] = WeakKeyDictionary()


def plan_of(system: CompiledSystem, full: bool) -> Plan | None:
    """Made once for every law (equal laws are one object); None for laws whose derivatives are long and dense."""
    if _interpreted.get():
        return None
    kept = _plans.setdefault(system, {})
    if full not in kept:
        kept[full] = _plan(system, full)
    return kept[full]


def _plan(system: CompiledSystem, full: bool) -> Plan | None:
    tape = system.tape
    if tape is None:
        return None
    T, R = system.n_outputs, len(tape.values)
    q_at = [(t, s) for t in range(T) for s in range(t + 1)] if full else [(t, t) for t in range(T)]
    inner = set(q_at) | {(int(t), int(s)) for t, s, _ in tape.bends} | {(t, t) for t in range(T)}
    outer = {(T + int(p), int(t)) for p, t, _ in tape.slopes} | {(T + p, T + p) for p in range(R)}
    whole, own = symbolic(T + R, inner | outer), symbolic(T, inner)
    if whole is None or own is None:
        return None
    numbers = lambda found: np.array(list(found), dtype=np.int64)  # noqa: E731
    places = (
        whole.place[:T],
        whole.place[T:],
        numbers(whole.at(t, s) for t, s in q_at),
        numbers(whole.at(T + p, t) for p, t, _ in tape.slopes),
        numbers(whole.at(t, s) for t, s, _ in tape.bends),
    )
    own_places = numbers(own.at(t, s) for t, s in q_at), numbers(own.at(t, s) for t, s, _ in tape.bends)
    return Plan(tape, system.count("="), np.array(q_at, np.int64), whole, own, places, own_places, system.quadratic)


def solve(
    plan: Plan, start: np.ndarray, w: np.ndarray, X: np.ndarray | None, Q: np.ndarray, tol: float, landing: int, max_iter: int
) -> tuple[np.ndarray, ...]:
    """(c, nu, converged, iterations, one basin). Q (m, T) or (m, T, T): F = (c - w)' Q (c - w)."""
    from lawful.decoders._lagrange import local  # compiled

    tape, whole, own = plan.tape, plan.whole, plan.own
    T = w.shape[1]
    q = 2.0 * (Q if Q.ndim == 2 else Q[:, plan.q_at[:, 0], plan.q_at[:, 1]])
    inputs = np.zeros((len(w), 0)) if X is None else np.ascontiguousarray(X[:, tape.inputs], dtype=np.float64)
    aside = np.random.default_rng(0).standard_normal((PROBES, T))
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    arguments: Any = (
        np.ascontiguousarray(start), np.ascontiguousarray(w), inputs, np.ascontiguousarray(q), plan.q_at, plan.n_equal,
        tape.op, tape.a, tape.b, tape.const, tape.term, tape.weight, tape.first, tape.values, tape.slopes, tape.bends,
        whole.size, whole.column, whole.row, whole.target, *plan.places,
        own.size, own.column, own.target, *plan.own_places, aside, VARY, plan.quadratic, tol, landing, max_iter,
    )  # fmt: skip
    return local(*arguments)

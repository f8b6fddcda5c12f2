"""Equalities and inequalities as vectorised functions with derivatives: from a graph of expressions, or a Python callable.

A system offers, for outputs c (m, T) and inputs X (m, d) or None:

    values(kind, c, X)        (m, P)       kind is "=" (gamma) or "<=" (slack)
    jacobian(kind, c, X)      (m, P, T)
    hessian(kind, c, X, nu)   (m, T, T)    sum_p nu_p times the Hessian of function p
    scales(kind, c, X)        (m, P)       the size of the terms of each function
    count(kind)               P
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, device_of, like, to_numpy
from lawful.sets.base import HIDDEN, ROUNDING
from lawful.sets.laws.derivatives import TooLong, directional, hessian, jacobian, lagrangian
from lawful.sets.laws.graph import Graph, Sum
from lawful.sets.laws.program import Directions, Program
from lawful.sets.laws.sizes import sizes
from lawful.sets.laws.structure import Block, connected, fingerprints, restricted, variables
from lawful.sets.laws.tape import Tape, tape_of
from lawful.sets.restore import roundoff

KINDS = ("=", "<=")
TERMS = 3  # the order of a program that gives no derivative, but the size of the terms
STEEP = 10.0  # in units of TOL: no more of a law's reach than this is forgiven as rounding


class CompiledSystem:
    """Expressions on a graph. Programs for values and derivatives are made when they are first asked for."""

    def __init__(self, graph: Graph, relations: list[tuple[Sum, str]], n_outputs: int, n_inputs: int) -> None:
        self.graph, self.n_outputs, self.n_inputs = graph, n_outputs, n_inputs
        self.roots = {kind: [root for root, k in relations if k == kind] for kind in KINDS}
        self.depends_on_x = any(variables(graph, root, "x") for root, _ in relations)

    def count(self, kind: str) -> int:
        return len(self.roots[kind])

    # ------------------------------------------------------------------ structure

    @cached_property
    def affine(self) -> dict[str, np.ndarray]:
        """For each kind, which relations are affine in the outputs; coefficients may depend on the inputs."""
        degree = self.graph.degree
        return {k: np.array([max(degree[i] for i in r.terms) <= 1 for r in self.roots[k]], dtype=bool) for k in KINDS}

    @cached_property
    def quadratic(self) -> bool:
        """Whether no relation has a degree beyond 2 in the outputs."""
        return all(self.graph.degree[i] <= 2 for kind in KINDS for root in self.roots[kind] for i in root.terms)

    @cached_property
    def outputs(self) -> dict[str, list[list[int]]]:
        """For each kind, the outputs that each relation mentions."""
        return {kind: [variables(self.graph, root, "y") for root in self.roots[kind]] for kind in KINDS}

    @cached_property
    def blocks(self) -> list[Block]:
        """Outputs that no relation ties to others, directly or through a third, are different blocks."""
        return connected(self.outputs, self.n_outputs)

    @cached_property
    def pins(self) -> Pins | None:
        """The affine relations that speak of a single output: fixed values and bounds."""
        chosen = [
            (root, kind, outputs[0])
            for kind in KINDS
            for root, affine, outputs in zip(self.roots[kind], self.affine[kind], self.outputs[kind])
            if affine and len(outputs) == 1
        ]
        if not chosen:
            return None
        system = CompiledSystem(self.graph, [(root, kind) for root, kind, _ in chosen], self.n_outputs, self.n_inputs)
        return Pins(system, {kind: [t for _, k, t in chosen if k == kind] for kind in KINDS})

    def block(self, block: Block) -> CompiledSystem:
        """The relations of one block as a law of its outputs alone."""
        pairs = [(self.roots[kind][p], kind) for kind in KINDS for p in block.relations[kind]]
        graph, roots = restricted(self.graph, [root for root, _ in pairs], block.outputs)
        kinds = [kind for _, kind in pairs]
        return CompiledSystem(graph, list(zip(roots, kinds)), len(block.outputs), self.n_inputs)

    @cached_property
    def tape(self) -> Tape | None:
        """All relations, equalities first, with their derivatives, for compiled code; None where that would be very long."""
        return tape_of(self.graph, [root for kind in KINDS for root in self.roots[kind]], self.n_outputs)

    @cached_property
    def key(self) -> bytes:
        """Equal for laws that say the same in the same order, whatever the names they were written with."""
        sizes = f"{self.n_outputs} {self.n_inputs} {[self.count(kind) for kind in KINDS]}".encode()
        return sizes + b"".join(fingerprints(self.graph, [root for kind in KINDS for root in self.roots[kind]]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompiledSystem) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def affine_part(self, kind: str, X: Array | None = None) -> tuple[Array, Array]:
        """(A, b), where the affine relations of this kind, in their order, are A c + b = 0 (or <= 0).

        A (k, T) and b (k,) are plain where the inputs do not enter, else A (m, k, T) and b (m, k) have a row for each of X.
        """
        roots = [root for root, affine in zip(self.roots[kind], self.affine[kind]) if affine]
        parts = []
        for order in (1, 0):
            program = self._program(kind, order, roots)
            if program.uses("x") and X is not None:
                parts.append(program(like(np.zeros((X.shape[0], self.n_outputs)), X), X))
            else:
                parts.append(
                    program(np.zeros((1, self.n_outputs)), None)[0, ...].copy()
                )  # a constant is a view that nobody may write
        return parts[0], parts[1]

    # ------------------------------------------------------------------ values and derivatives

    def values(self, kind: str, c: Array, X: Array | None) -> Array:
        if type(c) is np.ndarray and self._plain is not None and c.dtype.kind == "f" and np.isfinite(c).all():
            A, b, _, _ = self._plain[kind]
            return c @ A.astype(c.dtype, copy=False) + b.astype(c.dtype, copy=False)
        return self._program(kind, 0)(c, X)

    def jacobian(self, kind: str, c: Array, X: Array | None) -> Array:
        return self._program(kind, 1)(c, X)

    def hessian(self, kind: str, c: Array, X: Array | None, nu: Array) -> Array:
        return self._program(kind, 2)(c, X, nu)

    def terms(self, kind: str, c: Array, X: Array | None) -> Array:
        """(m, P) the terms of each relation at c, which are the larger part of `scales` and quickly known."""
        if self._plain is not None:
            _, _, A, b = self._plain[kind]
            return abs(c) @ like(A, c) + like(b, c)
        return self._program(kind, TERMS)(c, X)

    def measured(self, c: Array) -> tuple[np.ndarray, np.ndarray] | None:
        """(m,), (m,): the largest violation of a plain law as a fraction of its terms, and as it is; None for any other.

        Relations in rows and points in columns: the largest over relations is then a comparison of whole rows.
        """
        if type(c) is not np.ndarray or c.dtype.kind != "f" or self._plain is None:
            return None
        worst, residual = np.zeros((2, len(c)), c.dtype)
        size = np.abs(c.T)
        for kind, (A, b, A_abs, b_abs) in self._plain.items():
            off = A.T.astype(c.dtype, copy=False) @ c.T
            off += b.astype(c.dtype, copy=False)[:, None]
            off = np.abs(off, out=off) if kind == "=" else np.maximum(off, 0, out=off)
            np.maximum(residual, off.max(axis=0), out=residual)
            terms = A_abs.T.astype(c.dtype, copy=False) @ size
            terms += b_abs.astype(c.dtype, copy=False)[:, None]
            np.maximum(worst, np.divide(off, terms, out=off).max(axis=0), out=worst)
        return worst, residual

    @cached_property
    def _plain(self) -> dict[str, tuple[np.ndarray, ...]] | None:
        """A', b, |A|', |b| of a law that is affine, and free of inputs, throughout; None for any other."""
        if self.depends_on_x or not all(affine.all() for affine in self.affine.values()):
            return None
        parts = {kind: self.affine_part(kind) for kind in KINDS if self.count(kind)}
        return {kind: (A.T.copy(), b, np.abs(A).T.copy(), np.abs(b)) for kind, (A, b) in parts.items()}

    def scales(self, kind: str, c: Array, X: Array | None) -> Array:
        """(m, P) the size of the terms of each relation at c: see `laws.sizes`."""
        xp = array_namespace(c)
        size, rounding, reach = sizes(self.graph, self.roots[kind], c, X)
        allowed = xp.minimum(ROUNDING * rounding, STEEP * reach)
        return size + xp.where(xp.isfinite(allowed), allowed, xp.zeros_like(allowed))

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_programs"}  # they are made again when needed

    def _program(self, kind: str, order: int, roots: list[Sum] | None = None) -> Program | Directions:
        """The program for all relations of a kind, or for the affine ones alone, which are `roots`."""
        programs = self.__dict__.setdefault("_programs", {})
        key = (kind, order, roots is None)
        if key not in programs:
            make = (self._of_values, self._of_jacobian, self._of_hessian, self._of_terms)[order]
            programs[key] = make(self.roots[kind] if roots is None else roots)
        return programs[key]

    def _of_values(self, roots: list[Sum]) -> Program:
        return Program(self.graph, dict(enumerate(roots)), (len(roots),))

    def _of_terms(self, roots: list[Sum]) -> Program:
        graph = self.graph.for_derivatives()
        sizes = [Sum(abs(r.const), {graph.node("abs", i): abs(w) for i, w in r.terms.items()}) for r in roots]
        return Program(graph, dict(enumerate(sizes)), (len(roots),))

    def _of_jacobian(self, roots: list[Sum]) -> Program | Directions:
        T, graph = self.n_outputs, self.graph.for_derivatives()
        try:
            rows = jacobian(graph, roots)
        except TooLong:
            graph = self.graph.for_derivatives()
            return Directions(graph, directional(graph, roots))
        return Program(graph, {p * T + t: entry for p, row in enumerate(rows) for t, entry in row.items()}, (len(roots), T))

    def _of_hessian(self, roots: list[Sum]) -> Program | Directions:
        T, graph = self.n_outputs, self.graph.for_derivatives()
        slopes = lagrangian(graph, roots)
        try:
            entries = hessian(graph, slopes)
        except TooLong:
            graph = self.graph.for_derivatives()
            slopes = lagrangian(graph, roots)
            return Directions(graph, directional(graph, [slopes.get(t, Sum()) for t in range(T)]))
        columns = {t * T + s: entry for (t, s), entry in entries.items()}
        return Program(graph, columns, (T, T), mirror={t * T + s: s * T + t for t, s in entries})


class Pins:
    """a(x) y_t + b(x) = 0, or <= 0: outputs that a law fixes, or bounds, one by one."""

    def __init__(self, system: CompiledSystem, outputs: dict[str, list[int]]) -> None:
        self.system, self.outputs = system, outputs
        self._fixed: dict[str, tuple[Array, Array]] = {}

    def _parts(self, kind: str, X: Array | None) -> tuple[Array, Array]:
        if self.system.depends_on_x:
            return self.system.affine_part(kind, X)
        if kind not in self._fixed:
            self._fixed[kind] = self.system.affine_part(kind)
        return self._fixed[kind]

    def snap(self, c: Array, X: Array | None, reach: Array) -> Array:
        """c with the outputs that are within `reach` (m,) of where they are fixed, or of a bound that they violate, put there.

        A relation such as y7 = 0 has no scale but its own: 1e-17 would violate it as much as 1.
        """
        xp = array_namespace(c)
        columns = None
        for kind in KINDS:
            if not self.outputs[kind]:
                continue
            A, b = (like(part, c) for part in self._parts(kind, X))
            for p, t in enumerate(self.outputs[kind]):
                slope = A[..., p, t]
                level = -b[..., p] / xp.where(slope != 0, slope, xp.ones_like(slope))
                now = c[:, t] if columns is None else columns[t]
                move = (slope != 0) & (now != level) & (abs(now - level) <= reach)
                if kind == "<=":
                    move = move & ((now - level) * slope > 0)
                if bool(xp.any(move)):
                    columns = [c[:, s] for s in range(c.shape[1])] if columns is None else columns
                    columns[t] = xp.where(move, level + 0 * now, now)
        return c if columns is None else xp.stack(columns, axis=1)


class CallableSystem:
    """gamma(c) or gamma(c, X), vectorised over rows, with an optional Jacobian; checked against differences."""

    def __init__(
        self,
        functions: dict[str, Callable[..., Any] | None],
        jacobians: dict[str, Callable[..., Any] | None],
        unit: np.ndarray,
    ) -> None:
        self.functions, self.jacobians = functions, jacobians
        self.unit = unit  # (T,) how far the outputs vary: steps of differences follow it
        self.sizes = dict.fromkeys(KINDS, 0)
        self.takes_x = {f: _takes_x(f) for f in (*functions.values(), *jacobians.values()) if f is not None}
        self.depends_on_x = any(self.takes_x[f] for f in functions.values() if f is not None)

    def measured(self, c: Array) -> None:
        """Nothing is known of a callable beforehand."""
        return None

    def count(self, kind: str) -> int:
        return self.sizes[kind]

    @np.errstate(all="ignore")  # far outside its domain a function may be infinite
    def check(self, c: np.ndarray, X: np.ndarray | None) -> None:
        """Run once on a few points: shapes, finiteness, and the Jacobian against central differences."""
        for kind in KINDS:
            if self.functions[kind] is None:
                continue
            value = self._call(self.functions[kind], c, X)
            if value.ndim != 2 or value.shape[0] != c.shape[0]:
                raise ValueError(
                    f"Equations: the callable returned shape {tuple(value.shape)} for {c.shape[0]} rows; "
                    "return (m,) or (m, P), one row of values for each row of c"
                )
            self.sizes[kind] = value.shape[1]
            numeric = self._differences(kind, c, X, 1.0)
            flat = 1e-6 * np.abs(to_numpy(value)).max(axis=1, initial=0.0) / np.min(self.unit) + 1e-300
            scale = flat + np.abs(numeric).max(axis=(1, 2), initial=0.0)
            if self.jacobians[kind] is None:
                wider = [np.abs(numeric - self._differences(kind, c, X, factor)) for factor in (2.7, 7.3)]
                rough = np.max(wider, axis=(0, 2, 3), initial=0.0) / scale
                if np.mean(rough > 1e-3) > 0.25:  # a jump is not met at every point; one kink, at a few, is no fault
                    raise ValueError(
                        "Equations: the numerical Jacobian of the callable does not settle (is it smooth, deterministic and "
                        "vectorised over rows?); give jacobian=..., or write the equations as strings"
                    )
                continue
            given = to_numpy(self.jacobian(kind, c, X))
            if given.shape != numeric.shape:
                raise ValueError(
                    f"Equations: jacobian has shape {given.shape}, expected {numeric.shape} (rows, equations, outputs)"
                )
            if np.median(np.abs(given - numeric).max(axis=(1, 2)) / scale) > 1e-3:
                raise ValueError("Equations: the given jacobian disagrees with finite differences of gamma; check its formula")

    def _call(self, function: Any, c: Array, X: Array | None) -> Array:
        with np.errstate(all="ignore"):
            value = function(c, X) if self.takes_x[function] else function(c)
        value = value if hasattr(value, "ndim") else np.asarray(value)
        return like(value, c)[:, None] if value.ndim == 1 else like(value, c)

    def _differences(self, kind: str, c: Array, X: Array | None, factor: float) -> Array:
        """Central differences with step eps^(1/3): error about eps^(2/3) relative."""
        xp = array_namespace(c)
        step = factor * 6e-6 * xp.maximum(abs(c), like(self.unit, c) + 0 * c)
        columns = []
        for t in range(c.shape[1]):
            unit = xp.asarray([1.0 if s == t else 0.0 for s in range(c.shape[1])], dtype=c.dtype, device=device_of(c))
            ahead = self._call(self.functions[kind], c + step * unit, X)
            behind = self._call(self.functions[kind], c - step * unit, X)
            columns.append((ahead - behind) / (2 * step[:, t, None]))
        return xp.stack(columns, axis=2)

    def values(self, kind: str, c: Array, X: Array | None) -> Array:
        return self._call(self.functions[kind], c, X)

    def jacobian(self, kind: str, c: Array, X: Array | None) -> Array:
        function = self.jacobians[kind]
        if function is None:
            return self._differences(kind, c, X, 1.0)
        value = function(c, X) if self.takes_x[function] else function(c)
        value = like(value, c)
        return value[:, None, :] if value.ndim == 2 else value

    def terms(self, kind: str, c: Array, X: Array | None) -> Array:
        return self.scales(kind, c, X)

    def scales(self, kind: str, c: Array, X: Array | None) -> Array:
        return HIDDEN * roundoff(self.jacobian(kind, c, X), c)

    def hessian(self, kind: str, c: Array, X: Array | None, nu: Array) -> Array:
        """Differences of J' nu; from a numerical Jacobian the step must be larger."""
        xp = array_namespace(c)
        step = (6e-6 if self.jacobians[kind] is not None else 1e-4) * xp.maximum(abs(c), like(self.unit, c) + 0 * c)
        columns = []
        for t in range(c.shape[1]):
            unit = xp.asarray([1.0 if s == t else 0.0 for s in range(c.shape[1])], dtype=c.dtype, device=device_of(c))
            ahead = self.jacobian(kind, c + step * unit, X)
            behind = self.jacobian(kind, c - step * unit, X)
            change = xp.sum((ahead - behind) * nu[:, :, None], axis=1)
            columns.append(change / (2 * step[:, t, None]))
        H = xp.stack(columns, axis=2)
        return (H + xp.matrix_transpose(H)) / 2


def _takes_x(function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return len(positional) >= 2

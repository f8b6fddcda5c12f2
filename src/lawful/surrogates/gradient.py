"""Ridges on M centres by preconditioned conjugate gradients, where n M^2 operations for a Gram matrix are too many.

The system (A + n lambda I) c = r of `normal` is applied without forming A: with V = L^-T c,

    A c = L^-1 [K' W (K V) - n m (m.V)],     m = K' w / n

in blocks of rows, all tasks and lambdas at once, each with its own gaps and weights. The preconditioner is that of Falkon
(Rudi, Carratino & Rosasco 2017): where centres are drawn from the rows, A is near (n / M) L' L, and one Cholesky factorisation
for each lambda makes the condition number a small constant. Statistics in single precision serve the same purpose where they
are at hand: iterations in double precision then make up for what they lost.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tqdm import tqdm

from lawful._array import Array, array_namespace, like, solve_lower, to_numpy
from lawful.surrogates.blocks import Blocks, slices
from lawful.surrogates.normal import EPS, Whitening, cholesky, inverse_trace
from lawful.surrogates.statistics import places_of, take
from lawful.tasks import Tasks

__all__ = ["Columns", "Passes", "Systems", "conjugate_gradient", "falkon"]

Factors = list[tuple[Array, list[int]]]


class Columns:
    """Columns of encoded labels on rows of X, each with the weights of its task (0 where that was not observed)."""

    def __init__(self, tasks: Tasks, rows: np.ndarray | None, columns: list[tuple[int, int]]) -> None:
        """columns: (task, column of its Z); one may occur several times, for several lambdas."""
        self.rows, self.columns = rows, columns
        self.n = tasks.n_rows if rows is None else len(rows)
        self.places, self.Z = places_of(tasks), [to_numpy(z) for z in tasks.Z]
        self.own = [to_numpy(w) for w in tasks.weights]
        self.full = [len(w) == tasks.n_rows and bool(np.all(w == 1)) for w in self.own]
        self.seen = [self._seen(tasks, t) for t in range(len(tasks))]

    def _seen(self, tasks: Tasks, t: int) -> np.ndarray | None:
        if self.full[t]:
            return None
        mask = np.zeros(tasks.n_rows, dtype=bool)
        mask[to_numpy(tasks.rows[t])] = True
        return mask

    @property
    def plain(self) -> bool:
        """Whether all weights are 1."""
        return all(self.full[t] for t, _ in self.columns)

    def at(self, part: slice) -> tuple[np.ndarray, np.ndarray]:
        """Values and weights (b, q) of a part of the rows."""
        rows = part if self.rows is None else self.rows[part]
        values, weights = (np.empty((part.stop - part.start, len(self.columns))) for _ in range(2))
        for i, (t, j) in enumerate(self.columns):
            there = self.places[t][rows]
            values[:, i] = self.Z[t][there, j]
            seen = self.seen[t]
            weights[:, i] = 1.0 if seen is None else np.where(seen[rows], self.own[t][there], 0.0)
        return values, weights


class Passes:
    """Products with the kernel matrix of all rows, block by block."""

    def __init__(self, blocks: Blocks, X: Array, columns: Columns, size: int) -> None:
        self.blocks, self.X, self.columns, self.size = blocks, X, columns, size

    def over(self, function: Callable[[slice, Array], None]) -> None:
        """function(part, K of its rows), for parts of all rows."""
        where, rows, n = self.blocks.where, self.columns.rows, self.columns.n
        buffer = where.empty(min(self.size, max(n, 1)), self.blocks.M)
        for part in slices(n, self.size):
            K = buffer[: part.stop - part.start]
            self.blocks.fill(take(self.X, part if rows is None else rows[part], where), K, plain=True)
            function(part, K)

    def moments(self) -> tuple[Array, Array, np.ndarray, np.ndarray, np.ndarray]:
        """K' (W o Z) and K' W (M, q), and the sums of weights, of W o Z and of W o Z^2."""
        where, q = self.blocks.where, len(self.columns.columns)
        sums = where.zeros(self.blocks.M, 2 * q)
        n, total, square = np.zeros(q), np.zeros(q), np.zeros(q)

        def add(part: slice, K: Array) -> None:
            nonlocal sums, n, total, square
            Z, W = self.columns.at(part)
            sums += K.T @ where.array(np.concatenate([W * Z, W], axis=1))
            n, total, square = n + W.sum(axis=0), total + (W * Z).sum(axis=0), square + (W * Z**2).sum(axis=0)

        self.over(add)
        return sums[:, :q], sums[:, q:], n, total, square

    def normal(self, V: Array) -> Array:
        """K' (W o (K V)) for V (M, q)."""
        where = self.blocks.where
        out = where.zeros(*V.shape)

        def add(part: slice, K: Array) -> None:
            nonlocal out
            found = K @ V
            if not self.columns.plain:
                found = found * where.array(self.columns.at(part)[1])
            out += K.T @ found

        self.over(add)
        return out


def conjugate_gradient(
    apply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    R: Array,
    start: Array | None,
    tol: float,
    max_iter: int,
    bar: tqdm | None = None,
) -> tuple[Array, int, float]:
    """Columns of c with apply(c) = R, each for itself; how many steps, and the largest relative residual that is left."""
    xp = array_namespace(R)
    c = xp.zeros_like(R) if start is None else start
    r = R if start is None else R - apply(c)
    size = xp.sqrt(xp.sum(precondition(R) * R, axis=0))
    size = xp.where(size > 0, size, xp.ones_like(size))
    z = precondition(r)
    p, rz = z, xp.sum(r * z, axis=0)
    left = float(xp.max(xp.sqrt(xp.abs(rz)) / size)) if R.shape[1] else 0.0
    steps = 0
    while left > tol and steps < max_iter:
        Ap = apply(p)
        bend = xp.sum(p * Ap, axis=0)
        step = xp.where(bend > 0, rz / xp.where(bend > 0, bend, xp.ones_like(bend)), xp.zeros_like(bend))
        c, r = c + step[None, :] * p, r - step[None, :] * Ap
        z = precondition(r)
        new = xp.sum(r * z, axis=0)
        p = z + xp.where(rz > 0, new / xp.where(rz > 0, rz, xp.ones_like(rz)), xp.zeros_like(rz))[None, :] * p
        rz = new
        left = float(xp.max(xp.sqrt(xp.abs(rz)) / size))
        steps += 1
        if bar is not None:
            bar.set_postfix_str(f"residual {left:.1e}")
            bar.update(1)
    return c, steps, left


class Systems:
    """The systems of several columns, each with its weights, lambda and preconditioner."""

    def __init__(
        self, passes: Passes, whitening: Whitening, lam: np.ndarray, intercept: bool, make: Callable[..., Factors]
    ) -> None:
        """lam (q,); make(n, lam): lower factors of preconditioners, and the columns that they are for."""
        self.passes, self.whitening = passes, whitening
        right, total, self.n, labels, squares = passes.moments()
        self.z_mean = labels / self.n if intercept else 0 * labels
        self.z_square = np.maximum(squares - self.n * self.z_mean**2, 0.0)
        self.mean = total / like(self.n, total)[None, :] if intercept else 0 * total  # of k, for each column
        self.R = whitening.from_kernel(right - total * like(self.z_mean, total)[None, :])
        self.nu, self.factors = like(self.n * lam, self.R), make(self.n, lam)

    def apply(self, c: Array) -> Array:
        xp = array_namespace(c)
        V = self.whitening.to_kernel(c)
        found = self.passes.normal(V)
        found = found - self.mean * (like(self.n, V) * xp.sum(self.mean * V, axis=0))[None, :]
        return self.whitening.from_kernel(found) + self.nu[None, :] * c

    def precondition(self, r: Array) -> Array:
        xp = array_namespace(r)
        parts: list[Array] = [None] * r.shape[1]
        for C, columns in self.factors:
            found = solve_lower(C, solve_lower(C, r[:, columns]), transpose=True)
            for i, column in enumerate(columns):
                parts[column] = found[:, i]
        return xp.stack(parts, axis=1)

    def left(self, c: Array) -> np.ndarray:
        """Residual sums of squares."""
        xp = array_namespace(c)
        fitted = to_numpy(xp.sum(self.R * c, axis=0) + self.nu * xp.sum(c * c, axis=0))
        return np.maximum(self.z_square - fitted, EPS * self.z_square)

    def freedom(self) -> np.ndarray:
        """Degrees of freedom, as the preconditioner sees them."""
        out, nu = np.zeros(len(self.n)), to_numpy(self.nu)
        for C, columns in self.factors:
            out[columns] = C.shape[0] - nu[columns] * inverse_trace(C)
        return out

    def beta(self, V: Array) -> np.ndarray:
        """Constants, for coefficients V of k."""
        return self.z_mean - to_numpy(array_namespace(V).sum(self.mean * V, axis=0))


def falkon(whitening: Whitening, n: np.ndarray, lam: np.ndarray) -> Factors:
    """Preconditioners (n / M) L' L + n lambda I: a factor for each (n, lambda) among the columns."""
    product = whitening.product()
    out: Factors = []
    pairs = np.stack([n, lam], axis=1)
    for pair in np.unique(pairs, axis=0):
        columns = np.flatnonzero((pairs == pair).all(axis=1)).tolist()
        C = cholesky(product * (pair[0] / whitening.M), float(pair[0] * pair[1]))
        if C is None:  # rounding: the preconditioner may be a little larger
            C = cholesky(product * (pair[0] / whitening.M), float(pair[0] * pair[1] + 1e-12 * pair[0] * whitening.M))
        out.append((C, columns))
    return out

r"""Affine equalities and inequalities, {A c = b, G c <= h}, with a convex quadratic objective: exact, one start, in batches.

With Q = R'R the objective is |u - u_w|^2 in u = R c. Equalities first: with S the Gram matrix of the rows of A R^-1,

    u0 = u_w - (A R^-1)' S^-1 (A c_w - b),     and what is left of the inequalities on {A c = b} is N = G R^-1 (I - P_A)

(P_A the projector on those rows). Then u = u0 - N' lam, where lam >= 0 solves the dual problem with M = N N' and the violations
v = G c0 - h (`_active_set`). If all rows have the same weights up to a factor, and A and G do not depend on x, everything but v
and lam is computed once, and a batch costs two matrix products for the equalities and two for the inequalities.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lawful._array import Array, array_namespace, device_of, like, put_rows, take_rows, to_numpy
from lawful._small import add_diagonal, dot, mat_vec, peak, positive_definite, solve_many, vec_mat
from lawful.decoders.base import FIELDS, Decode, Decoder, Decoding, certified, finish, stack
from lawful.decoders.conic import Conic, NewtonConic
from lawful.decoders.seeds import known
from lawful.losses.quadratic import SAME, QuadraticForm

CELLS = 2**17  # numbers in the arrays of one chunk of rows: they stay in the processor's cache
KEPT = 8  # factors for different weights
NEAR, PROXIMAL = 1e-9, 20  # weight of proximal steps for metrics that are singular, and how many there are
STEEP, FLAT = 1e-8, 1e-13  # curvature below such a fraction of the largest asks for more care; counts as none


class Polyhedral(Decoder):
    """Sets whose `cones` are linear, with a quadratic objective. Rows without a unique minimum go to the general decoders.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Equations
    >>> from lawful.decoders import Polyhedral, decode
    >>> C = Equations(["y1 + y2 = 1", "y1 >= 0.3"]).fit(np.ones((1, 2)))
    >>> decode(F, C, Polyhedral()).c.round(6)
    array([[0.3, 0.7]])
    """

    needs_objective = ("softened", "center")
    needs_set = ("cones",)

    def __init__(self, max_iter: int = 10_000) -> None:
        self.max_iter = max_iter

    def missing(self, F: Any, C: Any) -> list[str]:
        lacks = super().missing(F, C)
        if not C.polyhedral:
            lacks.append(f"{type(C).__name__} is not given by affine equalities and inequalities")
        return lacks

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        xp = array_namespace(F.center)
        m = F.shape[0]
        if m == 0:
            return finish(F, C, F.center)
        weights, convex, same = _weights(F)
        if bool(xp.all(convex)):
            d = self._convex(F, C, weights, same)
        else:
            rows, others = xp.nonzero(convex)[0], xp.nonzero(~convex)[0]
            d = self._flat(F.rows(others), C.rows(others), decode)
            if rows.shape[0] == 0:
                return d
            part = self._convex(F.rows(rows), C.rows(rows), take_rows(weights, rows), same)
            d = _joined([(rows, part), (others, d)], m)
        return _completed(d, ~certified(d) & convex, F, C, decode)

    def _convex(self, F: Any, C: Any, weights: Array, same: bool) -> Decoding:
        w = F.center
        m, T = w.shape
        law = _Law.of(C, w)
        shared = _shared(C, law, weights[0, ...]) if same and law.A.ndim == law.G.ndim == 2 else None
        R = law.G.shape[-2]
        cells = 2 * (R + T) if shared else 8 * (R**2 + 3 * (law.A.shape[-2] + R) * T + T * T)
        chunk = max(64, CELLS // cells)
        found = []
        for begin in range(0, m, chunk):
            idx = slice(begin, min(begin + chunk, m))
            some, part = (law, w) if m <= chunk else (law.rows(idx), take_rows(w, idx))
            if shared:
                c, solved, steps = shared.solve(part, some, self.max_iter)
            else:
                c, lam, solved, steps = _each(some, take_rows(weights, idx), part, self.max_iter)
                c = _snapped(c, lam, some)
            part_F, part_C = (F, C) if m <= chunk else (F.rows(idx), C.rows(idx))
            found.append(finish(part_F, part_C, c, proven=solved, iterations=steps))
        return stack(found)

    def _flat(self, F: Any, C: Any, decode: Decode) -> Decoding:
        r"""Metrics that are singular, or nearly: equalities are eliminated first, c = c_0 + Z t, which needs no metric.

        Where Z'QZ is singular too, proximal steps, t_+ = argmin F(t) + (t - t_k)' P (t - t_k). P is a small fraction of the
        diagonal of Z'QZ, and outputs have been divided by their weights, so the scale of an output is nothing. As F is convex,
        t_+ is above its minimum by no more than 2 |t_+ - t_k|_P times the way to a minimiser, which is of the length of what
        was gone.
        """
        if not isinstance(F, QuadraticForm):
            return _general(F, C, decode)
        xp = array_namespace(F.w)
        law = _Law.of(C, F.w)
        scale = xp.sqrt(abs(xp.linalg.diagonal(F.Q)))
        top = xp.max(scale, axis=1, keepdims=True)
        scale = xp.where(scale > 0, scale, xp.where(top > 0, top, xp.ones_like(top)))
        w, Q = F.w * scale, F.Q / (scale[:, :, None] * scale[:, None, :])
        A, b, G, h = law.spread(F.shape[0])
        (A, b), (G, h) = _unit_rows(A / scale[:, None, :], b), _unit_rows(G / scale[:, None, :], h)
        u, Z, rank = _eliminated(A, b, w)
        if not bool(xp.all(rank == rank[0])):
            some, others = xp.nonzero(rank == rank[0])[0], xp.nonzero(rank != rank[0])[0]
            parts = [(rows, self._flat(F.rows(rows), C.rows(rows), decode)) for rows in (some, others)]
            return _joined(parts, F.shape[0])
        steps, done = xp.zeros(F.shape[0], dtype=xp.int64, device=device_of(w)), xp.ones_like(F.doubtful)
        lam = xp.zeros_like(h)
        if Z.shape[2]:
            t, lam, done, steps = self._free(_congruent(Z, Q), vec_mat(mat_vec(Q, u - w), Z), G @ Z, h - mat_vec(G, u), peak(u))
            u = u + mat_vec(Z, t)
        c = _snapped(u / scale, lam, law)
        d = finish(F, C, c, proven=done, iterations=steps)
        return _completed(d, ~certified(d), F, C, decode)

    def _free(self, H: Array, g: Array, G: Array, h: Array, size: Array) -> tuple[Array, Array, Array, Array]:
        """min t'Ht + 2 g.t subject to G t <= h: t, multipliers, whether that is the minimum, and steps."""
        xp = array_namespace(H)
        diagonal = abs(xp.linalg.diagonal(H))
        top = xp.max(diagonal, axis=1, keepdims=True)
        singular = ~_definite(H, FLAT)
        P = NEAR * xp.where(diagonal > 0, diagonal, xp.where(top > 0, top, xp.ones_like(top)))
        P = xp.where(singular[:, None], P, xp.zeros_like(P))
        H = add_diagonal(H, P)
        none = _Law(G[:, :0, :], h[:, :0], G, h)
        t, steps, done = xp.zeros_like(g), xp.zeros(g.shape[0], dtype=xp.int64, device=device_of(g)), ~singular
        if not bool(xp.all(positive_definite(H))):
            return t, xp.zeros_like(h), xp.zeros_like(done), steps
        for _ in range(PROXIMAL):
            center = solve_many(H, (P * t - g)[:, :, None])[:, :, 0]
            new, lam, solved, count = _each(none, H, center, self.max_iter, size)
            step, way = (xp.sqrt(xp.sum(P * (new - x) ** 2, axis=1)) for x in (t, 0 * t))
            t, steps = new, steps + count
            value = dot(t, mat_vec(H, t)) + 2 * dot(g, t)
            done = ~singular | (2 * step * way <= 1e-10 * abs(value) + 1e-15 * xp.sum(diagonal * t**2, axis=1))
            if bool(xp.all(done)):
                break
        return t, lam, solved & done, steps


def _eliminated(A: Array, b: Array, w: Array) -> tuple[Array, Array, Array]:
    """The point of {A u = b} nearest to w, an orthonormal basis Z (m, T, k) of the directions in it, and the ranks of A."""
    xp = array_namespace(w)
    m, P, T = A.shape
    if P == 0:
        one = xp.eye(T, dtype=w.dtype, device=device_of(w))
        return w, xp.broadcast_to(one, (m, T, T)), xp.zeros(m, dtype=xp.int64, device=device_of(w))
    U, s, V = xp.linalg.svd(A, full_matrices=True)
    k = s.shape[1]
    used = s > max(P, T) * xp.finfo(w.dtype).eps * s[:, :1]
    inverse = xp.where(used, 1 / xp.where(used, s, xp.ones_like(s)), xp.zeros_like(s))
    rank = xp.sum(xp.astype(used, xp.int64), axis=1)
    level = vec_mat(b, U[:, :, :k]) * inverse
    W = xp.where(used[:, :, None], V[:, :k, :], xp.zeros_like(V[:, :k, :]))
    u = w - vec_mat(mat_vec(W, w) - level, W)
    return u, xp.matrix_transpose(V[:, int(rank[0]) :, :]), rank


def _congruent(Z: Array, Q: Array) -> Array:
    """Z'QZ, symmetric."""
    xp = array_namespace(Z)
    H = xp.matrix_transpose(Z) @ (Q @ Z)
    return (H + xp.matrix_transpose(H)) / 2


def _joined(parts: list[tuple[Array, Decoding]], m: int) -> Decoding:
    """Decodings of some rows each, as one of all."""
    fields = {}
    for name in FIELDS:
        some = getattr(parts[0][1], name)
        xp = array_namespace(some)
        whole = xp.zeros((m, *some.shape[1:]), dtype=some.dtype, device=device_of(some))
        for rows, d in parts:
            whole = put_rows(whole, rows, getattr(d, name))
        fields[name] = whole
    return Decoding(**fields)


def _completed(d: Decoding, open_: Array, F: Any, C: Any, decode: Decode) -> Decoding:
    """Empty, or degenerate beyond what an active set can tell: the general decoders say which."""
    rest = array_namespace(d.c).nonzero(open_)[0]
    if rest.shape[0] == 0:
        return d
    more = _general(F.rows(rest), C.rows(rest), decode)
    better = certified(more) | (more.residual < take_rows(d.residual, rest))
    return d.with_(**{name: put_rows(getattr(d, name), rest[better], getattr(more, name)[better]) for name in FIELDS})


def _general(F: Any, C: Any, decode: Decode) -> Decoding:
    """By the decoders for convex sets of all kinds, and for objectives that are not."""
    solver = Conic() if NewtonConic().missing(F, C) else NewtonConic()
    return solver.solve(F, C, decode)


def _weights(F: Any) -> tuple[Array, Array, bool]:
    """Weights (m, T) or (m, T, T) up to a factor of the row, where they are safely positive, and if all are the same.

    Outputs have units of their own: what is flat, or the same, is judged relative to the weight of each.
    """
    if isinstance(F, QuadraticForm):
        xp = array_namespace(F.w)
        given = F.Q if F.shared is None else F.shared[None, ...]
        diagonal = xp.linalg.diagonal(given)
        top = xp.max(abs(diagonal), axis=1)
        top = xp.where(top > 0, top, xp.ones_like(top))
        Q, root = given / top[:, None, None], xp.sqrt(abs(diagonal) / top[:, None])
        same = F.shared is not None or bool(xp.all(abs(Q - Q[:1, ...]) <= SAME * root[:1, :, None] * root[:1, None, :]))
        convex = _definite(Q[: 1 if same else None, ...], STEEP)
        return xp.broadcast_to(Q, (F.shape[0], *Q.shape[1:])), xp.broadcast_to(convex, F.shape[:1]), same
    xp = array_namespace(F.a)
    if bool(xp.all(F.a[:1, :] > 0)) and bool(xp.all(F.a == F.a[:1, :])):
        return xp.broadcast_to(F.a[:1, :] / xp.max(F.a[:1, :]), F.shape), xp.ones_like(F.doubtful), True
    top = xp.max(F.a, axis=1)
    a = F.a / xp.where(top > 0, top, xp.ones_like(top))[:, None]
    return a, xp.all(a > 0, axis=1), bool(xp.all(abs(a - a[:1, :]) <= SAME * abs(a[:1, :])))


class _Law(NamedTuple):
    """A c = b and G c <= h; each with a leading axis for the rows where the inputs enter."""

    A: Array
    b: Array
    G: Array
    h: Array

    @classmethod
    def of(cls, C: Any, w: Array) -> _Law:
        xp = array_namespace(w)
        cones = C.cones()
        found: list[Array] = []
        for kind in ("zero", "nonnegative"):
            some = [cone for cone in cones if cone.kind == kind]
            for name, rank in (("matrix", 2), ("offset", 1)):
                parts = [like(getattr(cone, name), w) for cone in some]
                if not parts:
                    parts = [xp.zeros((0, w.shape[1])[:rank], dtype=w.dtype, device=device_of(w))]
                if any(part.ndim > rank for part in parts):
                    parts = [xp.broadcast_to(part, (w.shape[0], *part.shape[-rank:])) for part in parts]
                found.append(parts[0] if len(parts) == 1 else xp.concat(parts, axis=-rank))
        return cls(*found)

    def spread(self, m: int) -> tuple[Array, Array, Array, Array]:
        """All four with a leading axis for m rows."""
        xp = array_namespace(self.A)
        A, b, G, h = (xp.broadcast_to(v, (m, *v.shape)) if v.ndim < rank else v for v, rank in zip(self, (3, 2, 3, 2)))
        return A, b, G, h

    def rows(self, idx: Array) -> _Law:
        return _Law(*(take_rows(v, idx) if v.ndim == rank else v for v, rank in zip(self, (3, 2, 3, 2))))


def _shared(C: Any, law: _Law, weights: Array) -> _Shared:
    """Kept for the next batch, as long as the set is fitted as it is and the weights are the same."""
    if C.depends_on_x:
        return _Shared(law, weights)
    kept = known(C, "shared", lambda C: {})
    key = to_numpy(weights).astype(np.float64).tobytes()
    if key not in kept:
        if len(kept) >= KEPT:
            kept.clear()
        kept[key] = _Shared(law, weights)
    return kept[key]


class _Shared:
    """All that depends on the law and on weights which all rows have in common; numpy, once."""

    def __init__(self, law: _Law, weights: Array) -> None:
        A, G, Q = (to_numpy(v).astype(np.float64) for v in (law.A, law.G, weights))
        R = np.diag(np.sqrt(Q)) if Q.ndim == 1 else np.linalg.cholesky(Q).T
        E = np.diag(1 / np.sqrt(Q)) if Q.ndim == 1 else np.linalg.inv(R)
        A, self.length = _normalised(A @ E)
        U, s, V = np.linalg.svd(A, full_matrices=False)
        rank = int(np.sum(s > max(A.shape) * np.finfo(float).eps * s[0])) if len(s) else 0
        W = V[:rank]
        self.of_w, self.to_c = (W @ R).T, W @ E.T
        self.of_b = U[:, :rank] / s[:rank]
        N, self.norm = _normalised(G @ E)
        N = N - (N @ W.T) @ W
        self.M, self.of_lam = N @ N.T, N @ E.T
        self.G, self.R = G, R
        only = np.count_nonzero(G, axis=1) == 1
        self.bounds = np.flatnonzero(only)
        self.output = np.argmax(G[only] != 0, axis=1) if len(G) else np.zeros(0, np.int64)

    def solve(self, w: Array, law: _Law, max_iter: int) -> tuple[Array, Array, Array]:
        xp = array_namespace(w)
        m = w.shape[0]
        of_w, to_c = like(self.of_w, w), like(self.to_c, w)
        level = (law.b / like(self.length, w)) @ like(self.of_b, w)
        c = w - (w @ of_w - level) @ to_c
        good = xp.ones(m, dtype=xp.bool, device=device_of(w))
        if not len(self.norm):
            return c, good, xp.zeros(m, dtype=xp.int64, device=device_of(w))
        h = law.h / like(self.norm, w)
        v = c @ like((self.G / self.norm[:, None]).T, w) - h
        size = peak(c) * float(np.abs(self.R).max()) + 0 * v[:, 0]
        lam, solved, steps = _dual(self.M[None, ...], v, h if h.ndim == 2 else h[None, :], size, max_iter)
        c = c - lam @ like(self.of_lam, w)
        return _snap(c, lam, law, self.bounds, self.output), solved, steps


def _normalised(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm 1, and what they were divided by."""
    norm = np.sqrt(np.sum(A**2, axis=1))
    norm = np.where(norm > 0, norm, 1.0)
    return A / norm[:, None], norm


def _each(law: _Law, Q: Array, w: Array, max_iter: int, floor: Array | None = None) -> tuple[Array, Array, Array, Array]:
    """The same with matrices of its own for every row; `floor` (m,) is what rounding is measured by, at least."""
    xp = array_namespace(w)
    m, T = w.shape
    A, b, G, h = law.spread(m)
    if Q.ndim == 2:
        root = xp.sqrt(Q)
        divided = lambda B: B / root[:, None, :]  # noqa: E731
    else:
        lower = xp.linalg.cholesky(Q)
        divided = lambda B: xp.matrix_transpose(solve_many(lower, xp.matrix_transpose(B)))  # noqa: E731
    A, G = divided(A), divided(G)
    (A, b), (N, h) = _unit_rows(A, b), _unit_rows(G, h)
    u = w * root if Q.ndim == 2 else vec_mat(w, lower)
    size = peak(u) if floor is None else xp.maximum(peak(u), floor)
    if A.shape[1]:
        S = add_diagonal(A @ xp.matrix_transpose(A), 1e-14 + 0 * b)
        both = solve_many(S, xp.concat([A, mat_vec(A, u)[:, :, None] - b[:, :, None]], axis=2))
        solved_A = both[:, :, :T]
        u = u - vec_mat(both[:, :, T], A)
        for _ in range(2):  # refinement, which the ridge for redundant equations makes necessary
            u = u - vec_mat(mat_vec(A, u) - b, solved_A)
    else:
        solved_A = A
    good = xp.ones(m, dtype=xp.bool, device=device_of(w))
    steps = xp.zeros(m, dtype=xp.int64, device=device_of(w))
    lam = xp.zeros_like(h)
    if N.shape[1]:
        v = mat_vec(N, u) - h
        if A.shape[1]:
            N = N - (N @ xp.matrix_transpose(A)) @ solved_A
        lam, good, steps = _dual(N @ xp.matrix_transpose(N), v, h, xp.maximum(size, peak(u)), max_iter)
        u = u - vec_mat(lam, N)
    c = u / root if Q.ndim == 2 else solve_many(xp.matrix_transpose(lower), u[:, :, None])[:, :, 0]
    return c, lam, good, steps


def _unit_rows(A: Array, b: Array) -> tuple[Array, Array]:
    xp = array_namespace(A)
    norm = xp.sqrt(xp.sum(A**2, axis=2))
    norm = xp.where(norm > 0, norm, xp.ones_like(norm))
    return A / norm[:, :, None], b / norm


def _dual(M: Any, v: Array, h: Array, size: Array, max_iter: int) -> tuple[Array, Array, Array]:
    from lawful.decoders._active_set import nonnegative  # compiled, and most sets need none

    xp = array_namespace(v)
    arguments: Any = (*(np.ascontiguousarray(to_numpy(x), dtype=np.float64) for x in (M, v, h, size)), max_iter)
    lam, solved, steps = nonnegative(*arguments)
    return like(lam, v), xp.asarray(solved, device=device_of(v)), xp.asarray(steps, device=device_of(v))


def _snapped(c: Array, lam: Array, law: _Law) -> Array:
    if law.G.ndim > 2 or not law.G.shape[0]:
        return c
    G = to_numpy(law.G)
    bounds = np.flatnonzero(np.count_nonzero(G, axis=1) == 1)
    return _snap(c, lam, law, bounds, np.argmax(G[bounds] != 0, axis=1))


def _definite(H: Array, least: float) -> Array:
    """(m,) whether the smallest eigenvalue is above this fraction of the largest, whatever the scales of the outputs."""
    xp = array_namespace(H)
    root = xp.sqrt(abs(xp.linalg.diagonal(H)))
    root = xp.where(root > 0, root, xp.ones_like(root))
    values = xp.linalg.eigvalsh(H / (root[:, :, None] * root[:, None, :]))
    return (values[:, 0] > least * values[:, -1]) & (values[:, 0] > 0)


def _snap(c: Array, lam: Array, law: _Law, bounds: np.ndarray, output: np.ndarray) -> Array:
    """Outputs that end at a bound are there exactly: 0 is to be 0, not 1e-17 on the wrong side."""
    if not len(bounds):
        return c
    xp = array_namespace(c)
    columns = [c[:, t] for t in range(c.shape[1])]
    G = to_numpy(law.G)
    for p, t in zip(bounds.tolist(), output.tolist()):
        at = law.h[..., p] / float(G[p, t])
        columns[t] = xp.where(lam[:, p] > 0, at + 0 * columns[t], columns[t])
    return xp.stack(columns, axis=1)

"""The way back to C: batched Levenberg-Marquardt on the violation of equalities and inequalities.

For residuals v = (gamma(c), max(slack(c), 0)) with Jacobian A (inactive rows zero) the step is the least-norm solution

    d = - s A's' (A' A'^T + mu I)^{-1} v,   A' = A diag(s),

in units s of the outputs. Rows of A' are scaled to norm 1 first, so equations in tonnes and in mole fractions count
alike, and mu > 0 lets redundant (rank-deficient but consistent) equations pass. mu falls after a good step and grows after
a bad one, row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, device_of, put_rows, take_rows
from lawful._small import add_diagonal, mat_vec, peak, product, solve_small, squares, total, vec_mat


def constraints(C: Any, c: Array) -> tuple[Array, Array, int]:
    """All functions of C stacked, equalities first: values (m, R), Jacobian (m, R, T), number of equalities."""
    xp = array_namespace(c)
    values, jacobians, n_equal = [], [], 0
    if hasattr(C, "equality"):
        values.append(C.equality(c))
        jacobians.append(C.equality_jacobian(c))
        n_equal = values[0].shape[1]
    if hasattr(C, "inequality"):
        values.append(C.inequality(c))
        jacobians.append(C.inequality_jacobian(c))
    if len(values) == 1:
        return values[0], jacobians[0], n_equal
    return xp.concat(values, axis=1), xp.concat(jacobians, axis=1), n_equal


def functions(C: Any, c: Array) -> Array:
    """(m, R) the values alone."""
    if not hasattr(C, "inequality"):
        return C.equality(c)
    if not hasattr(C, "equality"):
        return C.inequality(c)
    return array_namespace(c).concat([C.equality(c), C.inequality(c)], axis=1)


def positive(g: Array, n_equal: int) -> Array:
    """How much each function is violated: |g| for the equalities, which come first, max(g, 0) for the inequalities."""
    if n_equal == g.shape[1]:
        return abs(g)
    xp = array_namespace(g)
    equal = (xp.arange(g.shape[1], device=device_of(g)) < n_equal)[None, :]
    return xp.where(~equal & (g <= 0), xp.zeros_like(g), abs(g))


def violation(C: Any, c: Array) -> Array:
    """(m, R) |equality| and max(inequality, 0); infinite where a function has no finite value, which is outside its domain."""
    xp = array_namespace(c)
    parts = []
    if hasattr(C, "equality"):
        g = C.equality(c)
        parts.append(positive(g, g.shape[1]))
    if hasattr(C, "inequality"):
        g = C.inequality(c)
        parts.append(xp.where(xp.isfinite(g), positive(g, 0), xp.full_like(g, xp.inf)))
    v = parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)
    return xp.where(xp.isnan(v), xp.full_like(v, xp.inf), v)


def roundoff(jacobian: Array, c: Array) -> Array:
    """(m, R) |J| |c|, the size of the terms of each function: it cannot be asked to fall below eps times this."""
    return mat_vec(abs(jacobian), abs(c))


def snapped(C: Any, c: Array) -> Array:
    """c with outputs that C fixes, or bounds, exactly there where that is a matter of rounding."""
    return C.snap(c) if hasattr(C, "snap") else c


@np.errstate(all="ignore")  # a trial may leave the domain of an equation; it is then rejected
def restore(C: Any, c: Array, scale: Array, tol: float = 1e-13, max_iter: int = 100) -> tuple[Array, Array]:
    """Points of C near c (moves measured in units of `scale`), and the number of iterations of each row.

    Where C(x) is empty the row ends at a local minimum of the violation: the caller reads it off `C.residual`.
    """
    xp = array_namespace(c)
    m, T = c.shape
    scale = xp.broadcast_to(scale, (m, T))
    iterations = xp.zeros(m, dtype=xp.int64, device=device_of(c))
    active = xp.arange(m, device=device_of(c))
    mu = xp.full((m,), 1e-14, dtype=c.dtype, device=device_of(c))
    for _ in range(max_iter):
        if active.shape[0] == 0:
            break
        now, units, damping, part = (
            take_rows(c, active),
            take_rows(scale, active),
            take_rows(mu, active),
            C.rows(active),
        )
        g, A, n_equal = constraints(part, now)
        if n_equal < g.shape[1]:
            is_equal = xp.arange(g.shape[1], device=device_of(g)) < n_equal
            live = is_equal[None, :] | (g > 0)
            g = xp.where(live, g, xp.zeros_like(g))
            A = xp.where(live[:, :, None], A, xp.zeros_like(A))
        size = xp.maximum(roundoff(A, now), abs(g))
        before = peak(g / xp.where(size > 0, size, xp.ones_like(size)))
        A = A * units[:, None, :]
        norm = xp.sqrt(squares(A))
        norm = xp.where(norm > 0, norm, xp.ones_like(norm))
        A, g = A / norm[:, :, None], g / norm
        merit = total(g**2)
        S = add_diagonal(product(A, A), damping[:, None])
        d = -units * vec_mat(solve_small(S, g), A)
        trial = snapped(part, now + xp.where(xp.isfinite(d), d, xp.zeros_like(d)))
        after = total((violation(part, trial) / norm) ** 2)
        better = (after < merit) & xp.all(xp.isfinite(d), axis=1)
        c = put_rows(c, active, xp.where(better[:, None], trial, now))
        # Far from a law of another size only a tiny part of Newton's step is any good.
        harder = damping * xp.where(damping > 1, xp.full_like(damping, 1e4), xp.full_like(damping, 1e2))
        damping = xp.where(better, xp.maximum(damping / 100, xp.full_like(damping, 1e-14)), harder)
        mu = put_rows(mu, active, damping)
        iterations = put_rows(iterations, active, take_rows(iterations, active) + 1)
        going = (before > tol) & (damping < 1e24)
        active = active[going]
    return c, iterations


@np.errstate(all="ignore")
def settle(C: Any, target: Array, scale: Array, rounds: int = 30) -> Array:
    """The point of C locally nearest to `target`, in units of `scale`: onto C, along its tangent towards the target, and again.

    Gradient projection on the distance; it contracts by curvature times distance, and a row stops when it no longer gains.
    """
    xp = array_namespace(target)
    scale = xp.broadcast_to(scale, target.shape)
    c, _ = restore(C, target, scale)
    for _ in range(rounds):
        g, A, n_equal = constraints(C, c)
        pull = (target - c) / scale
        A = A * scale[:, None, :]
        equal = (xp.arange(g.shape[1], device=device_of(c)) < n_equal)[None, :]
        # An inequality holds the point back only on its border, and only against a pull outwards.
        live = equal | ((g >= -1e-9 * roundoff(A, c / scale)) & (mat_vec(A, pull) > 0))
        A = xp.where(live[:, :, None], A, xp.zeros_like(A))
        size = xp.sqrt(xp.sum(A**2, axis=2))
        A = A / xp.where(size > 0, size, xp.ones_like(size))[:, :, None]
        normal = vec_mat(solve_small(add_diagonal(product(A, A), 1e-13 + 0 * g), mat_vec(A, pull)), A)
        new, _ = restore(C, c + scale * (pull - normal), scale)
        before, after = total(pull**2), total(((target - new) / scale) ** 2)
        better = (after < before * (1 - 1e-12)) & C.contains(new)
        if not bool(xp.any(better)):
            break
        c = xp.where(better[:, None], new, c)
    return c

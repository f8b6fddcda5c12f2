r"""Batched sequential quadratic programming: local minima of F over {equality = 0, inequality <= 0}, all rows at once.

In units s_t = 1/sqrt(curvature_t / 2), where the square loss is |u - w|^2 whatever the output metric, one step solves

    min_d  1/2 d'H d + grad F . d   subject to   g_p + A_p d = 0 for the active p           (rows of A scaled to norm 1)

by its Schur complement, (A H^{-1} A' + eps I) nu = g - A H^{-1} grad F, d = -H^{-1}(grad F + A' nu); eps lets redundant
equations pass. An inequality is active when its linearisation is violated or its multiplier is positive (primal-dual
active set). H is the Hessian of the Lagrangian, H_F + sum nu_p Hess g_p, when the step it gives has positive curvature
(Newton: quadratic convergence), else H_F alone, which always is positive. A second-order correction along the normals and
shorter steps where needed keep the merit F + rho |violation|_1 from growing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lawful._array import Array, array_namespace, device_of, put_rows, take_rows
from lawful._small import add_diagonal, dot, largest, mat_vec, peak, product, solve_rows, solve_small, squares, total, vec_mat
from lawful.losses.quadratic import QuadraticForm
from lawful.sets.restore import constraints, functions, positive, restore

EPS = 1e-13  # relative ridge on the Schur complement; single precision needs a larger one
FAR = 1e6  # where the search ends, relative to where it began and to the unconstrained prediction


class Local(NamedTuple):
    """Local solutions: points, whether the search converged, its iterations, and the multipliers nu of C's functions."""

    c: Array
    converged: Array
    iterations: Array
    nu: Array


def sequential_quadratic(F: Any, C: Any, c: Array, scale: Array, max_iter: int, reach: float = 4.0, tol: float = 1e-8) -> Local:
    """Local solutions from the starts c, one per row of F.

    A row whose merit cannot be lowered is put back on C, which changes the merit's balance, and tries again, twice. No step
    is longer than `reach`, relative to the point: small values stay in the basin of the start. A full step shorter than `tol`,
    relative to the point, ends the search (after Newton the error is about its square).
    """
    xp = array_namespace(c)
    n = c.shape[0]
    converged = xp.zeros(n, dtype=xp.bool, device=device_of(c))
    iterations = xp.zeros(n, dtype=xp.int64, device=device_of(c))
    multipliers: list[tuple[Array, Array]] = []
    active, part_F, part_C, now, s = xp.arange(n, device=device_of(c)), F, C, c, scale
    rho = xp.zeros_like(c[:, 0])
    lives = xp.full((n,), 2, dtype=xp.int64, device=device_of(c))
    far = FAR * (peak(c / scale) + peak(F.center / scale) + 1e-300)
    for k in range(max_iter):
        if active.shape[0] == 0:
            break
        new, step, rho, nu = one_step(part_F, part_C, now, s, rho, reach)
        # An objective that falls for ever has no minimum: the search ends where it no longer makes sense, still near C.
        away = ~(peak(new / s) <= far)
        new = xp.where(away[:, None], now, new)
        reached = (step <= tol) & ~away
        stuck = xp.isnan(step)
        done = reached | away | (stuck & (lives == 0))
        again = xp.arange(active.shape[0], device=device_of(c))[stuck & ~done]
        if again.shape[0]:
            back, _ = restore(part_C.rows(again), take_rows(new, again), take_rows(s, again), tol=1e-9, max_iter=20)
            new = put_rows(new, again, back)
            lives = put_rows(lives, again, take_rows(lives, again) - 1)
        finished = active[done]
        c = put_rows(c, finished, new[done])
        converged = put_rows(converged, finished, reached[done])
        iterations = put_rows(iterations, finished, xp.full_like(finished, k + 1))
        if finished.shape[0]:
            multipliers.append((finished, nu[done]))
            keep = xp.arange(active.shape[0], device=device_of(c))[~done]
            active = active[~done]
            now, s, rho, lives, far = (take_rows(v, keep) for v in (new, s, rho, lives, far))
            part_F, part_C = part_F.rows(keep), part_C.rows(keep)
        else:
            now = new
    if active.shape[0]:
        c = put_rows(c, active, now)
        iterations = put_rows(iterations, active, xp.full_like(active, max_iter))
        if max_iter:
            multipliers.append((active, nu[~done]))
    if not multipliers:
        return Local(c, converged, iterations, c[:, :0])
    rows = xp.concat([rows for rows, _ in multipliers])
    return Local(c, converged, iterations, take_rows(xp.concat([nu for _, nu in multipliers]), xp.argsort(rows)))


class Linearised(NamedTuple):
    """The functions of C at a point, in units of the outputs and with gradients of norm 1."""

    g: Array  # (k, R) values over the norm of their gradient
    A: Array  # (k, R, T) unit gradients
    norm: Array  # (k, R)
    n_equal: int


def ridge_of(x: Array) -> tuple[float, float]:
    """A ridge that rounding does not swallow: relative to a matrix of the precision of x, and for one that is zero."""
    limits = array_namespace(x).finfo(x.dtype)
    return max(EPS, 8 * float(limits.eps)), max(1e-300, float(limits.smallest_normal))


def linearise(C: Any, c: Array, s: Array) -> Linearised:
    xp = array_namespace(c)
    g, A, n_equal = constraints(C, c)
    A = A * s[:, None, :]
    norm = xp.sqrt(squares(A))
    norm = xp.where(norm > 1e-300, norm, xp.ones_like(norm))
    return Linearised(g / norm, A / norm[:, :, None], norm, n_equal)


def one_step(F: Any, C: Any, c: Array, s: Array, rho: Array, reach: float) -> tuple[Array, Array, Array, Array]:
    """One step from c: the new point, the length of the full step in units of s (NaN: dead end), the price of violations,
    the multipliers."""
    xp = array_namespace(c)
    L = linearise(C, c, s)
    gradient = F.gradient(c) * s
    curvature = F.curvature(c) * s**2
    # Where F is flat or concave (scores that do not sum to something positive) a unit curvature keeps steps finite.
    diagonal = xp.where(curvature > 1e-12, curvature, xp.full_like(curvature, 2.0))
    full = None
    if isinstance(F, QuadraticForm):
        full = add_diagonal(F.hessian(c) * s[:, :, None] * s[:, None, :], 1e-10 * peak(diagonal)[:, None])
    S = add_diagonal(product(L.A, L.A), xp.full_like(L.g, ridge_of(L.g)[0]))
    if not hasattr(C, "curvature"):
        d, nu = quadratic_step(diagonal, full, gradient, L)
    else:
        # Multipliers first: they bend the Hessian. With equations alone least squares gives them.
        if L.n_equal == L.g.shape[1]:
            d, nu = None, -solve_small(S, mat_vec(L.A, gradient))
        else:
            d, nu = quadratic_step(diagonal, full, gradient, L)
        bend = C.curvature(c, nu / L.norm) * s[:, :, None] * s[:, None, :]
        exact = F.second(c) * s**2 if hasattr(F, "second") else curvature  # a majoriser bends more than F does
        H = add_diagonal(bend, exact) if full is None else full + bend
        d, nu = newton_step(diagonal, full, H, gradient, L, S, d, nu)
    d = xp.where(xp.isfinite(d), d, xp.zeros_like(d))
    size = peak(c / s) + 1e-8 * peak(F.center / s) + 1e-300
    # Whether a step is short is measured by how far the point is from the prediction: outputs may be far from 0.
    near = peak((c - F.center) / s) + 1e-3 * size
    length = peak(d)
    step, leap = length / near, length / size
    # No step may leave the region where the linearisation means something.
    d = d * xp.where(leap > reach, reach / xp.where(leap > 0, leap, xp.ones_like(leap)), xp.ones_like(leap))[:, None]
    rho = xp.maximum(rho, 2 * peak(nu) + 1e-3 * peak(diagonal) * size)  # never cheaper again, else steps undo each other
    before = F.value(c) + rho * total(positive(L.g, L.n_equal))
    point, merit, stuck = line_search(
        F, C, c, s, d, L, S, rho, before + 1e-10 * abs(before) + 1e-13 * near**2 + 1e-15 * rho * size
    )
    # No descent at any length: rounding when the full step was tiny, else a dead end that ends the search.
    step = xp.where(stuck, xp.where(step < 1e-6, xp.zeros_like(step), xp.full_like(step, xp.nan)), step)
    # A flat minimum (w on the evolute of C) is reached slowly; when F no longer changes the point is as good as any.
    flat = (step < 1e-4) & (abs(merit - before) <= 1e-15 * near**2)
    return point, xp.where(flat, xp.zeros_like(step), step), rho, nu / L.norm


def quadratic_step(diagonal: Array, full: Array | None, gradient: Array, L: Linearised) -> tuple[Array, Array]:
    """Step and multipliers of the quadratic program, inequalities by the primal-dual active set."""
    xp = array_namespace(gradient)
    g, A, R = L.g, L.A, L.g.shape[1]
    if full is None:
        free, AHi = -gradient / diagonal, A / diagonal[:, None, :]
    else:
        both = solve_rows(full, xp.concat([A, gradient[:, None, :]], axis=1))
        AHi, free = both[:, :R, :], -both[:, R, :]
    S = product(A, AHi)
    rhs = g + mat_vec(A, free)
    ridge = (ridge_of(S)[0] * (1 + largest(S)))[:, None]
    if L.n_equal == R:
        nu = solve_small(add_diagonal(S, ridge), rhs)
        return free - vec_mat(nu, AHi), nu
    nu = multipliers(S, rhs, ridge, L.n_equal)
    return free - vec_mat(nu, AHi), nu


def multipliers(S: Array, rhs: Array, ridge: Array, n_equal: int) -> Array:
    """argmin 1/2 nu'S nu - rhs.nu over nu_p >= 0 for the inequalities p (the dual of the quadratic program).

    Primal-dual active set: a guess of the active inequalities, one linear solve, and a new guess from the signs; a few
    rounds are nearly always enough. Where it cycles, Gauss-Seidel sweeps on the dual (Hildreth), which cannot, give the
    active set, and one more solve the digits.
    """
    xp = array_namespace(S)
    k, R = rhs.shape
    equal = xp.broadcast_to((xp.arange(R, device=device_of(S)) < n_equal)[None, :], (k, R))

    def solve(live: Array, S: Array, rhs: Array, ridge: Array) -> Array:
        M = xp.where(live[:, :, None] & live[:, None, :], S, xp.zeros_like(S))
        M = add_diagonal(M, xp.where(live, xp.broadcast_to(ridge, live.shape), xp.ones_like(rhs)))
        return solve_small(M, xp.where(live, rhs, xp.zeros_like(rhs)))

    live = equal | (rhs > 0)
    for _ in range(8):
        nu = solve(live, S, rhs, ridge)
        left = rhs - mat_vec(S, nu)  # g + A d
        new = equal | (live & (nu > 0)) | (~live & (left > 1e-12 * peak(rhs)[:, None]))
        unsettled = xp.any(new != live, axis=1)
        if not bool(xp.any(unsettled)):
            return nu
        live = new
    rows = xp.arange(k, device=device_of(S))[unsettled]
    part_S, part_rhs, part_ridge, part_equal = (take_rows(v, rows) for v in (S, rhs, ridge, equal))
    swept = xp.zeros_like(part_rhs)
    diagonal = xp.linalg.diagonal(part_S) + part_ridge
    one = xp.eye(R, dtype=rhs.dtype, device=device_of(rhs))
    for _ in range(40):
        before = swept
        for p in range(R):
            left = part_rhs[:, p] - part_ridge[:, 0] * swept[:, p] - dot(part_S[:, p, :], swept)
            value = swept[:, p] + left / diagonal[:, p]
            value = value if p < n_equal else xp.where(value > 0, value, xp.zeros_like(value))
            swept = swept + (value - swept[:, p])[:, None] * one[p, :]
        if not bool(xp.any(peak(swept - before) > 1e-9 * peak(swept))):
            break
    exact = solve(part_equal | (swept > 1e-9 * peak(swept)[:, None]), part_S, part_rhs, part_ridge)
    valid = xp.all(part_equal | (exact >= -1e-9 * peak(exact)[:, None]), axis=1)
    return put_rows(nu, rows, xp.where(valid[:, None], exact, swept))


def newton_step(
    diagonal: Array,
    full: Array | None,
    H: Array,
    gradient: Array,
    L: Linearised,
    S: Array,
    plain: Array | None,
    nu: Array,
) -> tuple[Array, Array]:
    """The step with the Lagrangian's Hessian H where that is convex along it, else a plain one.

    Adding rho A'A to the Hessian changes nothing on {A d = -g} but the multipliers, and makes it positive definite when
    the Hessian is positive on the tangent space. Inequalities: the active set of the plain step is kept.
    """
    xp = array_namespace(gradient)
    g, A, R = L.g, L.A, L.g.shape[1]
    idle = xp.zeros_like(g)
    if L.n_equal < R:
        live = (xp.arange(R, device=device_of(g)) < L.n_equal)[None, :] | (nu > 0)
        A = xp.where(live[:, :, None], A, xp.zeros_like(A))
        g = xp.where(live, g, xp.zeros_like(g))
        idle = xp.where(live, idle, xp.ones_like(idle))
    big = largest(H)
    At = xp.matrix_transpose(A)
    augmented = add_diagonal(H + 10 * big[:, None, None] * product(At, At), 1e-14 * big[:, None])
    both = solve_rows(augmented, xp.concat([A, gradient[:, None, :]], axis=1))
    AHi, free = both[:, :R, :], -both[:, R, :]
    M = product(A, AHi)
    relative, least = ridge_of(M)
    z = solve_small(add_diagonal(M, idle + (relative * largest(M) + least)[:, None]), g + mat_vec(A, free))
    curved = free - vec_mat(z, AHi)
    new_nu = z - 10 * big[:, None] * g  # undo the shift that the augmentation made
    convex = dot(curved, mat_vec(H, curved)) >= 1e-4 * dot(diagonal * curved, curved)
    fine = convex & xp.isfinite(peak(curved))
    if bool(xp.all(fine)):
        return curved, new_nu
    # Near a saddle the gradient is small and plain steps crawl away from it: go ten times as far along the tangent (the line
    # search takes it back if that is too much).
    d, plain_nu = quadratic_step(diagonal, full, gradient, L) if plain is None else (plain, nu)
    back = vec_mat(solve_small(S, L.g), L.A)
    d = xp.where(convex[:, None], d, 10 * (d + back) - back) if L.n_equal == R else d
    return xp.where(fine[:, None], curved, d), xp.where(fine[:, None], new_nu, plain_nu)


class _Search(NamedTuple):
    """What one trial of the line search needs, row by row."""

    c: Array
    s: Array
    d: Array
    A: Array
    S: Array
    norm: Array
    rho: Array
    bound: Array


def line_search(
    F: Any, C: Any, c: Array, s: Array, d: Array, L: Linearised, S: Array, rho: Array, bound: Array
) -> tuple[Array, Array, Array]:
    """c + t d with t = 1, 1/3, 1/9, ... until the merit is under the bound: points, merits, rows that never got there."""
    xp = array_namespace(c)
    search = _Search(c, s, d, L.A, S, L.norm, rho, bound)
    point, merit = trial(1.0, F, C, search, L.n_equal)
    worse = xp.arange(c.shape[0], device=device_of(c))[merit > bound]
    for k in range(1, 8):
        if worse.shape[0] == 0:
            break
        some = _Search(*(take_rows(v, worse) for v in search))
        retry, cost = trial(3.0**-k, F.rows(worse), C.rows(worse), some, L.n_equal)
        point, merit = put_rows(point, worse, retry), put_rows(merit, worse, cost)
        worse = worse[cost > some.bound]
    point = put_rows(point, worse, take_rows(c, worse))
    return (
        point,
        merit,
        put_rows(xp.zeros(c.shape[0], dtype=xp.bool, device=device_of(c)), worse, xp.ones_like(worse, dtype=xp.bool)),
    )


def trial(t: float, F: Any, C: Any, q: _Search, n_equal: int) -> tuple[Array, Array]:
    """c + t d corrected along the normals (without it curved constraints reject full steps), and its merit."""
    xp = array_namespace(q.c)
    step = t * q.d
    point = q.c + step * q.s
    left = positive_part(functions(C, point), n_equal) / q.norm
    back = vec_mat(solve_small(q.S, left), q.A)
    fits = (peak(back) <= 0.5 * peak(step))[:, None]  # else far outside the linearisation, NaN included: no correction
    point = point - xp.where(fits, back, xp.zeros_like(back)) * q.s
    merit = F.value(point) + q.rho * total(positive(functions(C, point), n_equal) / q.norm)
    return point, xp.where(xp.isnan(merit), xp.full_like(merit, xp.inf), merit)


def positive_part(g: Array, n_equal: int) -> Array:
    """g with satisfied inequalities counted as 0."""
    if n_equal == g.shape[1]:
        return g
    xp = array_namespace(g)
    equal = (xp.arange(g.shape[1], device=device_of(g)) < n_equal)[None, :]
    return xp.where(equal | (g > 0), g, xp.zeros_like(g))

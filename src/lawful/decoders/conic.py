r"""Convex problems, by an interior-point method that finishes (Clarabel), row by row.

    min  1/2 u'P u + q.u + sum_t tau_t    subject to   offset - matrix (sigma u) in the cones of C,   c = sigma u

Quadratic objectives are P and q. A piecewise linear loss that is convex in the row's scores is the maximum of its pieces:
tau_t >= slope_j c_t + intercept_j for each of them. `sigma` and a factor of the objective make the problem free of units. Rows
that are not convex (scores may be negative) go to the decoder for general sets.
"""

from __future__ import annotations

from typing import Any

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from lawful._array import Array, array_namespace, device_of, like, put_rows, to_numpy
from lawful._small import graded_eigh
from lawful.decoders.base import FIELDS, INFEASIBLE, Decode, Decoder, Decoding, certified, finish, way_back
from lawful.decoders.newton import Newton
from lawful.decoders.seeds import known
from lawful.losses.quadratic import Quadratic, QuadraticForm
from lawful.sets.cones import Cone

CLEAR = 1e-6  # how far a plane must lie between sets, relative to them, to prove that they have no point in common
WIDE, LIGHTEST = 1e3, 1e-14  # weights that differ by more than this ask for a second solution; what counts as none
SMALL, RESOLVED = 1e-3, 3  # an answer of this fraction of its unit is small; it is found again so often, at most


class Conic(Decoder):
    """Sets that know their `cones`, with a quadratic objective or piecewise linear losses.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Ball
    >>> from lawful.decoders import Conic, decode
    >>> C = Ball().fit(np.ones((1, 2)))
    >>> decode(F, C, Conic()).c.round(6)
    array([[0.6, 0.8]])
    """

    needs_objective: tuple[str, ...] = ("center",)
    needs_set = ("cones",)

    def __init__(self, tol: float = 1e-11, max_iter: int = 100) -> None:
        self.tol = tol
        self.max_iter = max_iter

    def missing(self, F: Any, C: Any) -> list[str]:
        lacks = super().missing(F, C)
        if not C.convex:
            lacks.append(f"{type(C).__name__} is not convex")
        if not (hasattr(F, "softened") or _piecewise(F)):
            lacks.append("a quadratic objective or piecewise linear losses")
        return lacks

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        center = F.center
        xp = array_namespace(center)
        problems = _quadratics(F) if hasattr(F, "softened") else _pieces(F)
        convex = [problem is not None for problem in problems]
        cones, w = C.cones(), to_numpy(center).astype(np.float64)
        c, done, count = w.copy(), np.zeros(len(w), bool), np.zeros(len(w), np.int64)
        for i, problem in enumerate(problems):
            if problem is not None:
                c[i], done[i], count[i] = self._row(
                    problem, [cone.row(i) for cone in cones], w[i], np.abs(C.location_) + C.spread_
                )
        c = like(c, center)
        if hasattr(C, "nearest"):
            c = C.nearest(c)
        proven, iterations = (xp.asarray(v, device=device_of(center)) for v in (done, count))
        others = np.flatnonzero(~np.array(convex, bool))
        if len(others):
            rows = xp.asarray(others, device=device_of(center))
            d = self._general(F.rows(rows), C.rows(rows), decode)
            c, proven = put_rows(c, rows, d.c), put_rows(proven, rows, certified(d))
            iterations = put_rows(iterations, rows, d.iterations)
        return finish(F, C, c, proven=proven, iterations=iterations)

    def _general(self, F: Any, C: Any, decode: Decode) -> Decoding:
        """Rows that are not convex: without equations to descend on, the point of C nearest to the prediction, unproven."""
        if not Newton().missing(F, C):
            return Newton().solve(F, C, decode)
        xp = array_namespace(F.center)
        near = way_back(C, F.center)
        if not hasattr(C, "nearest"):
            near = self.solve(Quadratic(xp.ones_like(near), near), C, decode).c
        return finish(F, C, near, proven=xp.zeros_like(F.doubtful))

    def _row(self, problem: Any, cones: list[Cone], w: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, bool, int]:
        """The answer of one row, in units of the prediction or, where these do not suit the set, of the labels, or its own."""
        units = [float(np.max(np.abs(w))), float(np.max(size)), _size_of(cones)]
        total = 0
        c, solved = w, False
        for sigma in [unit for unit in units if unit > 0]:
            found, status, count = self._scaled(problem, cones, sigma, len(w))
            total += count
            solved = status == "Solved" and bool(np.isfinite(found).all())
            if solved or (c is w and np.isfinite(found).all()):
                c = found
            if solved:
                break
        # Digits are those of the unit: an answer that is small beside it is found once more in its own.
        for _ in range(RESOLVED):
            if not solved or not 0 < float(np.max(np.abs(c))) < SMALL * sigma:
                break
            sigma = float(np.max(np.abs(c)))
            found, status, count = self._scaled(problem, cones, sigma, len(w))
            total += count
            if status != "Solved" or not np.isfinite(found).all():
                break
            c = found
        return (self._sharper(problem, cones, c) if solved else c), solved, total

    def _sharper(self, problem: Any, cones: list[Cone], c: np.ndarray) -> np.ndarray:
        """The same once more around c, in units in which all directions weigh the same: light ones are lost else."""
        P, q, pieces = problem
        weight, axes = (found[0] for found in graded_eigh(P[None]))
        weight = np.maximum(weight, LIGHTEST * weight[-1])
        if pieces or not (weight[0] > 0 and weight[-1] > WIDE * weight[0]):
            return c
        unit = axes * np.sqrt(weight[0] / weight)
        moved = [cone._replace(matrix=cone.matrix @ unit, offset=cone.offset - cone.matrix @ c) for cone in cones]
        H = unit.T @ P @ unit
        step, status, _ = self._scaled(((H + H.T) / 2, unit.T @ (P @ c + q), pieces), moved, _size(c), len(c))
        move = unit @ step
        gain = 0.5 * move @ P @ move + (P @ c + q) @ move
        return c + move if status == "Solved" and np.isfinite(move).all() and gain <= 0 else c

    def _scaled(self, problem: Any, cones: list[Cone], sigma: float, T: int) -> tuple[np.ndarray, str, int]:
        P, q, pieces = problem
        extra = len(pieces)
        blocks = [(cone.kind, np.pad(cone.matrix * sigma, ((0, 0), (0, extra))), cone.offset) for cone in cones]
        for k, (t, slope, intercept) in enumerate(pieces):
            matrix = np.zeros((len(slope), T + extra))
            matrix[:, t], matrix[:, T + k] = slope * sigma, -1.0
            blocks.append(("nonnegative", matrix, -intercept))
        P, q = P * sigma**2, q * sigma
        top = max(float(np.abs(P).max(initial=0.0)), float(np.abs(q).max(initial=0.0))) or 1.0
        full = np.zeros((T + extra, T + extra))
        full[:T, :T] = P / top
        linear = np.concatenate([q / top, np.full(extra, 1.0)])
        # Each block on its own scale: cones are cones.
        scaled = [(kind, M / s, b / s) for kind, M, b in blocks for s in [np.abs(np.c_[M, b]).max(initial=0.0) or 1.0]]
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.max_iter = False, self.max_iter
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = self.tol
        solver = clarabel.DefaultSolver(
            sparse.csc_matrix(np.triu(full)),
            linear,
            sparse.csc_matrix(np.concatenate([M for _, M, _ in scaled] or [np.zeros((0, T + extra))])),
            np.concatenate([b for _, _, b in scaled] or [np.zeros(0)]),
            [_cone(kind, len(b)) for kind, _, b in scaled],
            settings,
        )
        found = solver.solve()
        status, b, z = str(found.status), np.concatenate([b for _, _, b in scaled] or [np.zeros(0)]), np.asarray(found.z)
        if status == "PrimalInfeasible" and not -b @ z > CLEAR * (np.abs(b) @ np.abs(z)):
            status = "Unclear"  # sets that touch, up to rounding
        return sigma * np.asarray(found.x)[:T], status, int(found.iterations)


class PiecewiseConic(Conic):
    """The same for piecewise linear losses alone, which have nothing better; quadratic ones are solved in batches elsewhere."""

    needs_objective = ("center", "losses")


class NewtonConic(Conic):
    """Quadratic objectives over convex sets with equations: by `Newton`, and one by one where that does not finish."""

    needs_objective = ("softened", "gradient", "curvature", "costs", "center")

    def missing(self, F: Any, C: Any) -> list[str]:
        return super().missing(F, C) + Newton().missing(F, C)

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        xp = array_namespace(F.center)
        if not C.depends_on_x and known(C, "empty", self._empty):
            c = way_back(C, F.center)
            if C.polyhedral:
                least = like(known(C, "least violated", self._least), c)[None, :] + 0 * c
                c = xp.where((C.residual(least) < C.residual(c))[:, None], least, c)
            return finish(F, C, c, lost=xp.ones_like(F.doubtful))
        each = _convex(F)
        convex = bool(xp.all(each))
        d = Newton().once(F, C) if convex else Newton().solve(F, C, decode)
        # Each for what the one before left open; a search from many starts only where an interior point finds nothing.
        for solve in (super().solve, Newton().solve) if convex else (super().solve,):
            rest = xp.nonzero(~certified(d) & each)[0]
            if rest.shape[0] == 0:
                break
            more, value = solve(F.rows(rest), C.rows(rest), decode), d.value[rest]
            # What is proven in a convex problem is the minimum; a lower value is then only a law that is met less well.
            better = (d.code[rest] == INFEASIBLE) | (more.value <= value + 1e-9 * abs(value)) | convex
            better = xp.where(certified(more), better, more.residual < d.residual[rest])
            rows = rest[better]
            d = d.with_(**{name: put_rows(getattr(d, name), rows, getattr(more, name)[better]) for name in FIELDS})
        return d

    def _empty(self, C: Any) -> bool:
        """Whether no point obeys C, which one plane between its parts proves: there is nothing to search for, then."""
        cones, T = C.cones(), C.n_tasks_
        # In the units of the labels, and in those of the set, which may be far from them: it is empty in both or not at all.
        sizes = {size for size in (float(np.max(np.abs(C.location_) + C.spread_)), _size_of(cones)) if size > 0}
        problem: Any = (np.eye(T), np.zeros(T), [])
        return all(self._scaled(problem, cones, size, T)[1] == "PrimalInfeasible" for size in sizes)

    def _least(self, C: Any) -> np.ndarray:
        """A point at which the largest violation of affine relations is as small as it can be: a linear programme."""
        cones = [cone.row(0) for cone in C.cones()]
        upper = [(cone.matrix, cone.offset) for cone in cones] + [(-c.matrix, -c.offset) for c in cones if c.kind == "zero"]
        A, b = (np.concatenate(parts) for parts in zip(*upper))
        T = A.shape[1]
        found = linprog(
            np.r_[np.zeros(T), 1.0], np.c_[A, -np.ones(len(A))], b, bounds=[(None, None)] * T + [(0, None)], method="highs"
        )
        return found.x[:T] if found.status == 0 else C.location_


def _size(c: np.ndarray) -> float:
    return float(np.max(np.abs(c))) or 1.0


def _size_of(cones: list[Cone]) -> float:
    """How large the points of a set are, as far as its cones tell."""
    own = [float(np.abs(c.offset).max(initial=0.0)) / (float(np.abs(c.matrix).max(initial=0.0)) or 1.0) for c in cones]
    return max(own, default=0.0)


def _cone(kind: str, size: int) -> Any:
    if kind == "semidefinite":
        return clarabel.PSDTriangleConeT(round((np.sqrt(8 * size + 1) - 1) / 2))
    kinds = {"zero": clarabel.ZeroConeT, "nonnegative": clarabel.NonnegativeConeT, "second_order": clarabel.SecondOrderConeT}
    return kinds[kind](size)


def _convex(F: Any) -> Array:
    """Rows of a quadratic that are convex; a metric always is, though an eigenvalue of 0 may come out below it."""
    xp = array_namespace(F.center)
    return xp.ones_like(F.doubtful) if isinstance(F, QuadraticForm) else xp.all(F.a >= 0, axis=1)


def _quadratics(F: Any) -> list[Any]:
    """(P, q, no pieces) of every row of a quadratic; None where it is not convex."""
    w = F.center
    H, g = to_numpy(F.hessian(w)).astype(np.float64), to_numpy(F.gradient(0 * w)).astype(np.float64)
    return [(P, q, []) if convex else None for P, q, convex in zip(H, g, to_numpy(_convex(F)))]


def _piecewise(F: Any) -> bool:
    return hasattr(F, "losses") and all(hasattr(loss, "corner") for loss in F.losses)


def _pieces(F: Any) -> list[Any]:
    """The linear pieces of every task, row by row, scaled to slopes of about 1; None where one is not convex."""
    m, T = F.shape
    tasks = []
    for t in range(T):
        corners = np.unique(to_numpy(F.losses[t].breakpoints(F.atoms[t])).astype(np.float64))
        width = float(np.ptp(corners)) or float(np.abs(corners).max()) or 1.0
        v = np.concatenate([[corners[0] - width], corners, [corners[-1] + width]])
        f = to_numpy(F.table(t, like(v, F.center))).astype(np.float64)
        slope = np.diff(f, axis=1) / np.diff(v)
        tasks.append((slope, f[:, :-1] - slope * v[:-1]))
    top = np.max([np.abs(slope).max(axis=1) for slope, _ in tasks], axis=0)
    top = np.where(top > 0, top, 1.0)
    found: list[Any] = []
    for i in range(m):
        rising = all(np.diff(slope[i]).min(initial=0.0) >= -1e-12 * top[i] for slope, _ in tasks)
        pieces = [(t, slope[i] / top[i], icpt[i] / top[i]) for t, (slope, icpt) in enumerate(tasks)]
        found.append((np.zeros((T, T)), np.zeros(T), pieces) if rising else None)
    return found

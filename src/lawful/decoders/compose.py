"""Decoders of composed sets; each hands its parts to `decode`, which it receives as an argument."""

from __future__ import annotations

import operator
from copy import copy
from functools import reduce
from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, device_of, like, put_rows, take_rows
from lawful._small import peak
from lawful.decoders.base import (
    AVERAGED,
    FIELDS,
    INFEASIBLE,
    NOT_CONVERGED,
    Decode,
    Decoder,
    Decoding,
    certified,
    finish,
    in_law,
    stack,
)
from lawful.decoders.enumeration import row_chunks
from lawful.decoders.seeds import known
from lawful.losses.quadratic import Quadratic, QuadraticForm
from lawful.sets.relaxed import Inflated
from lawful.sets.round import Ball

CLOSE = 1e-8  # to delta, of it: near enough to go on by alternation
SAME_POINT = 1e-7  # searches that begin so near to each other, relative to their size, are one


class Blocks(Decoder):
    """Product of sets: blocks of outputs are decoded on their own, because the objective is separable."""

    needs_objective = ("tasks",)
    needs_set = ("blocks_",)

    def missing(self, F: Any, C: Any) -> list[str]:
        lacks = super().missing(F, C)
        if not lacks and isinstance(F, QuadraticForm) and any(F.couples(idx) for _, idx in self._blocks(C)):
            lacks.append("an output metric that does not couple the blocks (metric='residual' is diagonal)")
        return lacks

    def _blocks(self, C: Any) -> list[tuple[Any, list[int]]]:
        return C.blocks_

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        xp = array_namespace(F.center)
        parts = [(decode(F.tasks(idx), part), idx) for part, idx in self._blocks(C)]
        order = [t for _, idx in parts for t in idx]
        places = xp.asarray([order.index(t) for t in range(F.shape[1])], device=device_of(F.center))
        found = [d for d, _ in parts]
        return finish(
            F,
            C,
            xp.take(xp.concat([d.c for d in found], axis=1), places, axis=1),
            value=reduce(operator.add, [d.value for d in found]),  # with the prices that blocks may have paid
            proven=reduce(operator.and_, [d.code < NOT_CONVERGED for d in found]),
            averaged=reduce(operator.or_, [d.code == AVERAGED for d in found]),
            lost=reduce(operator.or_, [d.code == INFEASIBLE for d in found]),
            iterations=reduce(xp.maximum, [d.iterations for d in found]),
            margin=reduce(xp.minimum, [d.margin for d in found]),  # the cheapest change of branch is in one block
            # Every block was measured at the point that it returned.
            measured=(
                reduce(xp.maximum, [xp.where(in_law(d), xp.zeros_like(d.value), xp.inf) for d in found]),
                reduce(xp.maximum, [d.residual for d in found]),
            ),
        )


class LawBlocks(Blocks):
    """A law that falls apart: equations that share no output, directly or through a third, are decoded on their own."""

    needs_set = ("separate",)

    def missing(self, F: Any, C: Any) -> list[str]:
        if hasattr(C, "separate") and len(self._blocks(C)) < 2:
            return [f"{type(C).__name__} is one block"]
        return super().missing(F, C)

    def _blocks(self, C: Any) -> list[tuple[Any, list[int]]]:
        return [(C.bound_as(part), idx) for part, idx in known(C, "blocks", lambda C: C.separate())]


class BestMember(Decoder):
    """Union of sets: decode over each member, keep the cheapest answer that lies in its member, proven minimal or not."""

    needs_set = ("members_", "is_union")

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        xp = array_namespace(F.center)
        best = decode(F, C.members_[0])
        for member in C.members_[1:]:
            other = decode(F, member)
            lost, late = best.code == INFEASIBLE, other.code == INFEASIBLE
            better = xp.where(lost & late, other.residual < best.residual, ~late & (lost | (other.value < best.value)))
            same = xp.max(abs(other.c - best.c), axis=1) <= 1e-9 * (peak(best.c) + peak(other.c))
            gap = xp.where(same | lost | late, xp.full_like(best.value, xp.inf), abs(other.value - best.value))
            margin = xp.minimum(xp.where(better, other.margin, best.margin), gap)
            iterations = xp.maximum(best.iterations, other.iterations)
            pick = lambda mine, theirs, better=better: xp.where(  # noqa: E731
                better if mine.ndim == 1 else better[:, None], mine, theirs
            )
            fields = {name: pick(getattr(other, name), getattr(best, name)) for name in FIELDS}
            best = Decoding(**fields | {"margin": margin, "iterations": iterations})
        return best if C.relaxed else best.with_(residual=C.residual(best.c), law_residual=C.law_residual(best.c))


def not_quadratic(F: Any) -> list[str]:
    """What a relaxation lacks when the objective is not a quadratic."""
    return [] if hasattr(F, "softened") else [f"a quadratic objective ({type(F).__name__} is not; use the Square loss)"]


class Penalty(Decoder):
    """l_mu of the paper (last Example of the Appendix, corrected): one reweighted decode, then a convex combination."""

    needs_set = ("base_", "mu")

    def missing(self, F: Any, C: Any) -> list[str]:
        return super().missing(F, C) + not_quadratic(F)

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        if C.mu == 0:
            return decode(F, C.base_)
        xp = array_namespace(F.center)
        if C.mu == xp.inf:
            return finish(F, C, F.center)
        soft, back, exists = F.softened(F.price(C.mu))
        inner = decode(soft, C.base_)
        z = xp.where(exists[:, None], back(inner.c), inner.c)
        # inner.value: min over c of the softened form = F(z) + kappa |z - c|^2 up to the row's constant
        return finish(
            F,
            C,
            z,
            proven=exists & certified(inner),
            lost=inner.code == INFEASIBLE,
            iterations=inner.iterations,
            margin=inner.margin,
            value=inner.value,
        )


def clip(F: Any, c: Array, delta: float, euclidean: bool = False) -> Array:
    """c + r min(1, delta / |r|) with r = w - c, the answer over C_delta when c is the answer over C (ex:ls-and-perturbations).

    Exact in the norm of the objective, |r|^2 = F(c), and in the Euclidean one where all weights of a row are equal. Rows with a
    weight <= 0 have no norm and no unconstrained minimum: they stay in C.
    """
    xp = array_namespace(c)
    r = F.center - c
    square = xp.sum(r**2, axis=1) if euclidean else F.value(c)
    length = xp.sqrt(xp.where(square > 0, square, xp.zeros_like(square)))
    share = xp.where(length > delta, delta / xp.where(length > 0, length, 1.0), xp.ones_like(length))
    sound = xp.all(F.curvature(c) > 0, axis=1)
    return c + xp.where(sound, share, xp.zeros_like(share))[:, None] * r


class Inflation(Decoder):
    r"""C_delta, exactly, also when the tasks have different weights.

    min over c in C, |r| <= delta of F(c + r) has the Lagrangian F(c + r) + nu (|r|^2 - delta^2), which for each nu is the
    penalised problem that `softened` solves; |r(nu)| falls as nu grows. So: if the nearest point of C to the unconstrained
    prediction w is within delta, w is the answer; else bisect on log nu until |r| = delta. Over a nonconvex C |r(nu)| may jump
    past delta; alternating minimisation over c and r (each step exact) from both ends of the bracket finishes the work. Equal
    weights need no search: the residual is clipped (ex:ls-and-perturbations).
    """

    needs_set = ("base_", "delta")
    needs_objective = ("rows",)

    def missing(self, F: Any, C: Any) -> list[str]:
        return super().missing(F, C) + not_quadratic(F)

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        xp = array_namespace(F.center)
        if C.delta == xp.inf:
            return finish(F, C, F.center)
        if isinstance(C.base_, Inflated) and C.base_.norm == C.norm:  # a tube around a tube of the same norm is one tube
            whole = copy(C)
            whole.base_, whole.delta = C.base_.base_, C.delta + C.base_.delta
            return self.solve(F, whole, decode)
        if hasattr(C.base_, "points_") and C.norm == "euclidean":
            width = C.base_.points_.shape[0] * (F.shape[1] if isinstance(F, QuadraticForm) else 1)
            chunks = row_chunks(F.shape[0], width, F.center)
            if len(chunks) > 1:
                return stack([self.solve(F.rows(rows), C.rows(rows), decode) for rows in chunks])
        exact = decode(F, C.base_)
        if C.delta == 0:
            return exact
        equal = C.norm == "euclidean" and bool(xp.all(F.isotropic()))
        if C.norm == "objective" or equal:
            return self._finish(F, C, exact, clip(F, exact.c, C.delta, equal), exact.c)
        if hasattr(C.base_, "points_"):
            return self._cloud(F, C, exact)
        return self._tube(F, C, exact, decode)

    def _cloud(self, F: Any, C: Any, exact: Decoding) -> Decoding:
        """A finite base set: best first. |w - c|_A - sqrt(a_max) delta bounds the cost of c + r from below."""
        xp = array_namespace(exact.c)
        points = like(C.base_.points_, exact.c)
        cost = F.costs(points)
        if isinstance(F, Quadratic) and bool(xp.all(F.a > 0)):
            reach = C.delta * xp.sqrt(xp.max(F.a, axis=1))
            bound = xp.sqrt(xp.where(cost > 0, cost, xp.zeros_like(cost))) - reach[:, None]
            bound = xp.where(bound > 0, bound, xp.zeros_like(bound)) ** 2
        else:  # no bound: every point is tried
            bound = xp.full_like(cost, -xp.inf)
        z, near, value = exact.c, exact.c, exact.value
        columns = xp.arange(cost.shape[1], device=device_of(cost))
        active = xp.arange(F.shape[0], device=device_of(cost))
        while active.shape[0]:
            table = take_rows(bound, active)
            j = xp.argmin(table, axis=1)
            part, c = F.rows(active), take_rows(points, j)
            candidate = c + best_shift(part, c, C.delta)
            cost_of = part.value(candidate)
            old, old_value = take_rows(z, active), take_rows(value, active)
            wins = cost_of < old_value
            z = put_rows(z, active, xp.where(wins[:, None], candidate, old))
            near = put_rows(near, active, xp.where(wins[:, None], c, take_rows(near, active)))
            value = put_rows(value, active, xp.where(wins, cost_of, old_value))
            table = xp.where(columns[None, :] == j[:, None], xp.full_like(table, xp.inf), table)
            bound = put_rows(bound, active, table)
            active = active[xp.min(table, axis=1) < xp.minimum(cost_of, old_value)]
        return self._finish(F, C, exact, z, near)

    def _finish(self, F: Any, C: Any, exact: Decoding, z: Array, near: Array) -> Decoding:
        """z in the tube, because `near` is in the base set and not farther than delta."""
        xp = array_namespace(z)

        def length(r: Array) -> Array:
            square = xp.sum(r * (r if C.norm == "euclidean" else F.weigh(r)), axis=1)
            return xp.sqrt(xp.where(square > 0, square, xp.zeros_like(square)))

        off, residual = C.measure(length(z - near), length(z))
        off = xp.maximum(off, C.base_.relative(near))
        return finish(
            F,
            C,
            z,
            proven=certified(exact),
            lost=exact.code == INFEASIBLE,
            iterations=exact.iterations,
            margin=exact.margin,
            measured=(off, residual),
        )

    def _tube(self, F: Any, C: Any, exact: Decoding, decode: Decode) -> Decoding:
        xp = array_namespace(exact.c)
        w = F.center
        weights = F.curvature(w) / 2
        sound = xp.all(weights > 0, axis=1)
        # The nearest point of C in equal weights tells whether w itself is in the tube: nothing left to do there.
        top = xp.max(xp.where(weights > 0, weights, xp.ones_like(weights)), axis=1)
        soft, _, _ = F.softened(1e-13 * top[:, None] * xp.ones_like(w))
        near = decode(soft, C.base_).c
        inside = sound & (xp.sqrt(xp.sum((w - near) ** 2, axis=1)) <= C.delta)
        # Where even the best point of C is not known for sure, a step from the one that was found is all that is worth it.
        known = certified(exact)
        z = xp.where(inside[:, None], w, exact.c + best_shift(F, exact.c, C.delta))
        c = xp.where(inside[:, None], near, exact.c)
        # A tube that is thinner than the rounding of its points is the set itself.
        thin = C.delta <= xp.finfo(w.dtype).eps * peak(exact.c)
        z = xp.where((thin & ~inside)[:, None], exact.c, z)
        rest = xp.arange(F.shape[0], device=device_of(w))[~inside & known & ~thin]
        if rest.shape[0]:
            part_F, part_C = F.rows(rest), C.rows(rest)
            begins = [take_rows(exact.c, rest), take_rows(near, rest)]
            if bool(xp.any(sound)):
                begins += self._bracket(part_F, part_C, begins[0], take_rows(sound, rest), take_rows(top, rest), decode)
            best, best_c = self._cheapest(part_F, part_C, begins, decode)
            z, c = put_rows(z, rest, best), put_rows(c, rest, best_c)
        return self._finish(F, C, exact, z, c)

    @np.errstate(divide="ignore", invalid="ignore")
    def _bracket(self, F: Any, C: Any, exact: Array, sound: Array, top: Array, decode: Decode) -> list[Array]:
        """The points of C at both ends of a narrow bracket of nu around |r(nu)| = delta."""
        xp = array_namespace(exact)
        low, high = xp.exp(xp.log(top) - 30.0), xp.exp(xp.log(top) + 30.0)
        c_low = c_high = exact
        r_low = r_high = xp.zeros_like(top)  # 0: not known yet
        live = xp.nonzero(sound)[0]
        for k in range(18):
            if live.shape[0] == 0:
                break
            a, b, r_a, r_b = (take_rows(v, live) for v in (low, high, r_low, r_high))
            # 1 / |r(nu)| is nearly affine in nu; while an end is unknown, or too long unmoved, the middle of log nu.
            known = (r_a > 0) & (r_b > 0) & (k % 4 != 3)
            guess = a + (1 / C.delta - 1 / r_a) * (b - a) / (1 / r_b - 1 / r_a)
            known = known & (guess > a) & (guess < b)
            nu = xp.where(known, guess, xp.sqrt(a) * xp.sqrt(b))
            soft, back, _ = F.rows(live).softened(nu[:, None] * xp.ones_like(take_rows(exact, live)))
            c = decode(soft, C.rows(live).base_).c
            r = xp.sqrt(xp.sum((back(c) - c) ** 2, axis=1))
            short = r <= C.delta
            low, high = put_rows(low, live, xp.where(short, a, nu)), put_rows(high, live, xp.where(short, nu, b))
            r_low, r_high = put_rows(r_low, live, xp.where(short, r_a, r)), put_rows(r_high, live, xp.where(short, r, r_b))
            c_high = put_rows(c_high, live, xp.where(short[:, None], c, take_rows(c_high, live)))
            c_low = put_rows(c_low, live, xp.where(short[:, None], take_rows(c_low, live), c))
            # Alternation from both ends finds the last digits.
            narrow = take_rows(high, live) - take_rows(low, live) <= 1e-9 * take_rows(high, live)
            live = take_rows(live, xp.nonzero(~((abs(r - C.delta) <= CLOSE * C.delta) | narrow))[0])
        return [c_high, c_low]

    def _cheapest(self, F: Any, C: Any, begins: list[Array], decode: Decode) -> tuple[Array, Array]:
        """The best (c + r, c) that alternating minimisation reaches from the given points of C."""
        xp = array_namespace(begins[0])
        best = best_c = begins[0]
        best_value = xp.full_like(F.value(best), xp.inf)
        for k, begin in enumerate(begins):
            apart = xp.ones_like(F.doubtful)
            for other in begins[:k]:
                apart = apart & (peak(begin - other) > SAME_POINT * peak(begin))
            rows = xp.nonzero(apart)[0]
            if rows.shape[0] == 0:
                continue
            part = F.rows(rows)
            z, c = self._alternate(part, C.rows(rows), take_rows(begin, rows), decode)
            value = part.value(z)
            old, old_c, old_value = (take_rows(v, rows) for v in (best, best_c, best_value))
            wins = value < old_value
            best = put_rows(best, rows, xp.where(wins[:, None], z, old))
            best_c = put_rows(best_c, rows, xp.where(wins[:, None], c, old_c))
            best_value = put_rows(best_value, rows, xp.where(wins, value, old_value))
        return best, best_c

    def _alternate(self, F: Any, C: Any, c: Array, decode: Decode, rounds: int = 8) -> tuple[Array, Array]:
        """Exact steps in r and in c by turns, both of which lower F(c + r), of the rows that they still help."""
        xp = array_namespace(c)
        z = c + best_shift(F, c, C.delta)
        live = xp.arange(c.shape[0], device=device_of(c))
        for _ in range(rounds):
            part_F, old = F.rows(live), take_rows(z, live)
            new = decode(part_F.shifted(old - take_rows(c, live)), C.rows(live).base_).c
            candidate = new + best_shift(part_F, new, C.delta)
            before = part_F.value(old)
            better = part_F.value(candidate) < before - 1e-15 * (1 + abs(before))
            if not bool(xp.any(better)):
                break
            some = xp.nonzero(better)[0]
            live = take_rows(live, some)
            z, c = put_rows(z, live, take_rows(candidate, some)), put_rows(c, live, take_rows(new, some))
        return z, c


def best_shift(F: Any, c: Array, delta: float) -> Array:
    """argmin over |r| <= delta of F(c + r): a ball, so a secular equation; any sign of the weights."""
    return F.shifted(c).over(Ball(radius=delta).fit(c))

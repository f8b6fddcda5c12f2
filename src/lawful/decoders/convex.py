"""Convex sets: accelerated projected gradient, row by row.

    c+ = nearest(y - grad F(y) / (L h)),     y+ = c+ + beta (c+ - c),     L = max_t curvature_t(y) / h_t

h = 1, or the weights in which a set projects in one step (`natural`).
`F.curvature` majorises F from where it is taken, so a plain step (y = c) never increases F; momentum is dropped
whenever it points uphill (O'Donoghue and Candes) or raises F. If the majoriser should fail L is doubled.
"""

from __future__ import annotations

from typing import Any

from lawful._array import Array, array_namespace, like, put_rows, take_rows
from lawful.decoders._descent import State, iterate, norm
from lawful.decoders.base import Decode, Decoder, Decoding, certified, finish
from lawful.decoders.conic import Conic

PATIENCE = 200  # steps before the interior-point method takes over


class ConvexDescent(Decoder):
    """FISTA with adaptive restart on a convex set that knows its Euclidean projection.

    Rows with equal positive weights are `nearest(center)`, with no iteration. The objective is convex when its
    scores are; otherwise (a doubtful row) the answer is a stationary point.

    >>> import numpy as np
    >>> from lawful import Ball, Huber
    >>> from lawful.decoders import ConvexDescent, decode
    >>> from lawful.losses import SmoothObjective
    >>> F = SmoothObjective([Huber(), Huber()], [np.ones((1, 1))] * 2, [np.array([3.0]), np.array([4.0])])
    >>> decode(F, Ball().fit(np.ones((1, 2))), ConvexDescent()).c.round(4)
    array([[0.7071, 0.7071]])
    """

    needs_objective = ("gradient", "curvature", "center")
    needs_set = ("nearest",)

    def __init__(self, tol: float = 1e-13, max_iter: int = 2000) -> None:
        self.tol = tol
        self.max_iter = max_iter

    def missing(self, F: Any, C: Any) -> list[str]:
        lacking = super().missing(F, C)
        if not C.convex:
            lacking.append(f"{type(C).__name__} is not convex")
        if getattr(F, "kinked", False) and any(hasattr(C, name) for name in ("equality", "inequality", "cones")):
            lacking.append("an objective without corners")  # others do better, if there are others
        return lacking

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        center = F.center
        xp = array_namespace(center)
        c = C.nearest(center)
        easy = F.isotropic() if hasattr(F, "isotropic") else xp.zeros_like(F.doubtful)
        rest = xp.nonzero(~easy)[0]
        if rest.shape[0] == 0:
            return finish(F, C, c)
        start = take_rows(c, rest)
        size = norm(start) + norm(take_rows(center, rest))
        state = {
            "c": start,
            "y": start,
            "t": xp.ones_like(size),
            "caution": xp.ones_like(size),
            "size": size,
            "done": size < 0,
        }
        # A wide metric makes a gradient crawl; an interior-point method, where there is one, does not mind.
        finishes = self.max_iter > PATIENCE and hasattr(F, "softened") and not Conic().missing(F, C)
        state = iterate(F.rows(rest), C.rows(rest), state, self._step, PATIENCE if finishes else self.max_iter)
        iterations = put_rows(xp.zeros_like(xp.astype(easy, xp.int64)), rest, state["iterations"])
        proven = put_rows(xp.ones_like(easy), rest, state["done"] & (not getattr(F, "kinked", False)))
        c = put_rows(c, rest, state["c"])
        slow = xp.nonzero(~proven)[0]
        if slow.shape[0] and finishes:
            d = Conic().solve(F.rows(slow), C.rows(slow), decode)
            c, proven = put_rows(c, slow, d.c), put_rows(proven, slow, certified(d))
            iterations = put_rows(iterations, slow, take_rows(iterations, slow) + d.iterations)
        return finish(F, C, c, proven=proven, iterations=iterations)

    def _step(self, F: Any, C: Any, s: State) -> State:
        c, y, t = s["c"], s["y"], s["t"]
        xp = array_namespace(c)
        gradient = F.gradient(y)
        # A flat objective has no curvature to scale its step: bound the step by 1e8 units instead.
        h = like(C.natural, y)[None, :] if hasattr(C, "natural") else xp.ones_like(y[:1, :])
        L = xp.maximum(xp.max(xp.abs(F.curvature(y)) / h, axis=1), 1e-8 * norm(gradient)) * s["caution"]
        L = xp.where(L > 0, L, xp.ones_like(L))
        new = y - gradient / (L[:, None] * h)
        new = C.naturally_nearest(new) if hasattr(C, "natural") else C.nearest(new)

        settled = self._settled(new, y, s["size"])
        before, after = F.value(c), F.value(new)
        worse = after > before + 1e-12 * (xp.abs(before) + xp.abs(after))
        plain = xp.all(y == c, axis=1)
        uphill = worse | (xp.sum(h * (y - new) * (new - c), axis=1) > 0)
        new = xp.where(worse[:, None], c, new)
        t_next = xp.where(uphill, xp.ones_like(t), (1 + xp.sqrt(1 + 4 * t**2)) / 2)
        momentum = xp.where(uphill, xp.zeros_like(t), (t - 1) / t_next)
        return {
            "c": new,
            "y": new + momentum[:, None] * (new - c),
            "t": t_next,
            "caution": xp.where(worse & plain, 2 * s["caution"], s["caution"]),
            "done": settled,
        }

    def _settled(self, new: Array, y: Array, size: Array) -> Array:
        """y is a fixed point of the projected gradient step: the optimality condition of a convex problem."""
        tolerance = max(self.tol, 8 * float(array_namespace(y).finfo(y.dtype).eps))
        return norm(new - y) <= tolerance * (size + norm(new))

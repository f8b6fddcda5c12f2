"""Smooth manifolds: Riemannian gradient descent from several starts.

    g = tangent(c, grad F(c)),     c+ = retract(c, -alpha g),     alpha = |s| / |y|   (Barzilai-Borwein)

with s = c+ - c and y the change of g, and the nonmonotone Armijo rule of Zhang and Hager. The manifold is not
convex, so descent runs from nearest(center) and from the best few of a fixed set of sampled points; the best end
wins, and its distance in F to the second-best different end is the margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, device_of, like, put_rows, take_rows
from lawful.decoders._descent import State, iterate, norm
from lawful.decoders.base import Decode, Decoder, Decoding, finish
from lawful.decoders.enumeration import row_chunks
from lawful.losses.quadratic import Quadratic

MEMORY = 0.85  # weight of the past in the nonmonotone reference value


class Riemannian(Decoder):
    """Batched multistart gradient descent on a manifold that knows `tangent`, `retract` and `nearest`.

    Rows of equal positive weights are `nearest(center)`, with no iteration; on a manifold of constant norm
    (`C.constant_norm`) a|c|^2 is a constant and `nearest(b)` is exact for equal weights of any sign (erratum E4).

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import Sphere
    >>> from lawful.decoders import Riemannian, decode
    >>> C = Sphere().fit(np.ones((1, 2)))
    >>> decode(F, C, Riemannian()).c.round(6)
    array([[0.6, 0.8]])
    """

    needs_objective = ("gradient", "center", "value")
    needs_set = ("tangent", "retract", "nearest")

    def __init__(self, tol: float = 1e-9, max_iter: int = 1000, n_starts: int = 12, n_samples: int = 256) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.n_samples = n_samples

    def missing(self, F: Any, C: Any) -> list[str]:
        corners = getattr(F, "kinked", False)
        return super().missing(F, C) + ([f"{type(F).__name__} without corners"] if corners else [])

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        center = F.center
        xp = array_namespace(center)
        spherical = getattr(C, "constant_norm", False)
        easy = F.isotropic(any_sign=spherical) if hasattr(F, "isotropic") else xp.zeros_like(F.doubtful)
        c = C.nearest(F.b if spherical and isinstance(F, Quadratic) else center)
        rest = xp.nonzero(~easy)[0]
        if rest.shape[0] == 0:
            return finish(F, C, c)
        chunks = [take_rows(rest, k) for k in row_chunks(rest.shape[0], self.n_samples * F.shape[1], center)]
        parts = [self._search(F.rows(rows), C.rows(rows)) for rows in chunks]
        found, proven, iterations, margin = (xp.concat([part[k] for part in parts], axis=0) for k in range(4))
        zero = xp.zeros_like(xp.astype(easy, xp.int64))
        return finish(
            F,
            C,
            put_rows(c, rest, found),
            proven=put_rows(xp.ones_like(easy), rest, proven),
            iterations=put_rows(zero, rest, iterations),
            margin=put_rows(xp.full_like(c[:, 0], xp.inf), rest, margin),
        )

    def _starts(self, F: Any, C: Any) -> list[Array]:
        center = F.center
        xp = array_namespace(center)
        starts = [C.nearest(center)]
        if self.n_starts > 1 and hasattr(F, "costs"):
            points = like(C.sample(self.n_samples, random_state=0), center)
            order = xp.argsort(F.costs(points), axis=1)
            starts += [take_rows(points, order[:, k]) for k in range(min(self.n_starts - 1, points.shape[0]))]
        if hasattr(C, "turned"):  # where unequal weights have their other minima
            starts += C.turned(center)
        return starts

    def _search(self, F: Any, C: Any) -> tuple[Array, Array, Array, Array]:
        starts = self._starts(F, C)
        xp = array_namespace(starts[0])
        S, (m, T) = len(starts), starts[0].shape
        again = xp.asarray(np.tile(np.arange(m), S), device=device_of(starts[0]))
        F, C, c = F.rows(again), C.rows(again), xp.concat(starts, axis=0)
        full = F.gradient(c)
        g, f = C.tangent(c, full), F.value(c)
        steep = xp.max(xp.reshape(norm(full), (S, m)), axis=0)  # one yardstick for all starts of a row
        size = norm(g)
        enough = max(self.tol, 100 * float(xp.finfo(c.dtype).eps)) * xp.tile(steep, (S,))
        state: State = {
            "c": c,
            "g": g,
            "f": f,
            "reference": f,
            "weight": xp.ones_like(f),
            "alpha": 0.1 * norm(c) / xp.where(size > 0, size, xp.ones_like(f)),
            "enough": enough,
            "done": size <= enough,
        }
        state = iterate(F, C, state, self._step, self.max_iter)
        return self._best(state, S, m, T)

    def _step(self, F: Any, C: Any, s: State) -> State:
        c, g, alpha = s["c"], s["g"], s["alpha"]
        xp = array_namespace(c)
        new = C.retract(c, -alpha[:, None] * g)
        f = F.value(new)
        noise = 50 * xp.finfo(c.dtype).eps * (xp.abs(f) + xp.abs(s["f"]))
        accept = f <= s["reference"] - 1e-4 * alpha * xp.sum(g**2, axis=1) + noise
        g_new = C.tangent(new, F.gradient(new))
        moved, turned = norm(new - c), norm(g_new - C.tangent(new, g))
        usable = (moved > 0) & (turned > 0)
        spectral = xp.where(usable, moved / xp.where(usable, turned, xp.ones_like(turned)), alpha)
        weight = MEMORY * s["weight"] + 1
        reference = (MEMORY * s["weight"] * s["reference"] + f) / weight
        keep = accept[:, None]
        return {
            "c": xp.where(keep, new, c),
            "g": xp.where(keep, g_new, g),
            "f": xp.where(accept, f, s["f"]),
            "reference": xp.where(accept, reference, s["reference"]),
            "weight": xp.where(accept, weight, s["weight"]),
            "alpha": xp.where(accept, spectral, alpha / 4),
            "done": accept & (norm(g_new) <= s["enough"]),
        }

    def _best(self, state: State, S: int, m: int, T: int) -> tuple[Array, Array, Array, Array]:
        c = state["c"]
        xp = array_namespace(c)
        f, ends = xp.reshape(state["f"], (S, m)), xp.reshape(c, (S, m, T))
        best = xp.argmin(f, axis=0)
        flat = best * m + xp.arange(m, device=device_of(c))
        chosen, lowest = take_rows(c, flat), take_rows(state["f"], flat)
        apart = xp.sqrt(xp.sum((ends - chosen[None, :, :]) ** 2, axis=2)) > 1e-5 * norm(chosen)[None, :]
        done = xp.reshape(state["done"], (S, m))
        rivals = xp.where(apart & done, f, xp.full_like(f, xp.inf))
        iterations = xp.sum(xp.reshape(state["iterations"], (S, m)), axis=0)
        return chosen, take_rows(state["done"], flat), iterations, xp.min(rivals, axis=0) - lowest

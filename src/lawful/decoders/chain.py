r"""Outputs in order with piecewise linear losses: dynamic programming over the corners, exact whatever the signs of the scores.

    min  sum_t f_t(c_t)    subject to    u_1 <= u_2 <= ... <= u_T,    u_t = sign (c_t - steps_t)

Each f_t is linear between its corners. Where it is bounded below, a best chain has all u_t at corners (of some f_s, s in the
same run of equal u), so over the union v_1 < ... < v_K of all of them, shifted by their steps,

    V_t(k) = f_t(v_k) + min over j <= k of V_{t-1}(j)

is the least cost of a chain that ends at v_k: a running minimum, T K operations a row. With scores that are not negative it
finds what pooling neighbours finds, medians and quantiles of pooled labels; with negative ones the global minimum all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful._array import array_namespace, device_of, like, to_numpy
from lawful.decoders.base import Decode, Decoder, Decoding, finish
from lawful.decoders.enumeration import row_chunks

__all__ = ["Chain"]


class Chain(Decoder):
    """Sets whose outputs form one chain (`C.chain()`), with losses that have corners (`Absolute`, `Pinball`, `Hinge`).

    Of equal minima the one with the lowest outputs is taken. Negative scores may leave F unbounded below: an answer beyond all
    corners is reported as not_converged.

    >>> import numpy as np
    >>> from lawful import Absolute, ConstrainedRegressor, KernelRidge, Monotone
    >>> from lawful.kernels import Linear
    >>> X = np.linspace(0.0, 1.0, 12)[:, None]
    >>> Y = np.hstack([X, X + 0.1])  # two outputs in order
    >>> model = ConstrainedRegressor(Monotone(), loss=Absolute(), surrogate=KernelRidge(Linear(), lam=1e-3)).fit(X, Y)
    >>> bool((np.diff(model.predict(X), axis=1) >= 0).all())
    True
    """

    needs_objective = ("table", "atoms")
    needs_set = ("chain",)

    def missing(self, F: Any, C: Any) -> list[str]:
        lacks = super().missing(F, C)
        if not (hasattr(F, "losses") and all(hasattr(loss, "corner") for loss in F.losses)):
            lacks.append("piecewise linear losses")
        return lacks

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        center = F.center
        xp = array_namespace(center)
        sign, steps = C.chain()
        corners = [
            sign * (to_numpy(loss.breakpoints(y)).astype(np.float64).reshape(-1) - steps[t])
            for t, (loss, y) in enumerate(zip(F.losses, F.atoms))
        ]
        u = np.unique(np.concatenate(corners))
        width = float(np.ptp(u)) or float(np.abs(u).max()) or 1.0
        u = np.concatenate([[u[0] - width], u, [u[-1] + width]])  # beyond all corners: F falls without end there, or never
        m, T = F.shape
        place = np.empty((m, T), np.int64)
        for rows in row_chunks(m, 2 * T * len(u), center):
            part = F if rows.shape[0] == m else F.rows(rows)
            tables = [_with_ends(to_numpy(part.table(t, like(sign * u + steps[t], center)))) for t in range(T)]
            place[to_numpy(rows)] = cheapest_chains(tables)
        inside = ((place > 0) & (place < len(u) - 1)).all(axis=1)
        c = like(sign * u[place] + steps, center)
        return finish(F, C, c, proven=xp.asarray(inside, device=device_of(center)))


def _with_ends(table: np.ndarray) -> np.ndarray:
    """The costs of both ends a little higher: where F is flat beyond all corners, a corner will do."""
    least = 8 * np.finfo(table.dtype).eps * np.abs(table).max(axis=1, keepdims=True)
    higher = table.copy()  # what other libraries hand over may not be written to
    higher[:, [0, -1]] += least
    return higher


def cheapest_chains(tables: list[np.ndarray]) -> np.ndarray:
    """(m, T) rising places k_1 <= ... <= k_T of least sum_t tables[t][:, k_t], tables[t] (m, K)."""
    m, K = tables[0].shape
    cost, behind = tables[0], []
    for table in tables[1:]:
        least = np.minimum.accumulate(cost, axis=1)
        first = np.ones(cost.shape, bool)
        first[:, 1:] = least[:, 1:] < least[:, :-1]
        behind.append(np.maximum.accumulate(np.where(first, np.arange(K), 0), axis=1))
        cost = table + least
    k = cost.argmin(axis=1)
    places = [k]
    for back in reversed(behind):
        k = back[np.arange(m), k]
        places.append(k)
    return np.stack(places[::-1], axis=1)

"""What comes back from a ranker, and how well it ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lawful.decoders.orders import METHODS, Ordering, fast_insertion, order, summary

__all__ = ["RankingDecoding", "solver"]


@dataclass(frozen=True)
class RankingDecoding:
    """One entry per query: a consistent order and what is known about it.

    order      (m, d) item numbers, best first
    positions  (m, D) place of each item, 0 = best; -1 for items that were not candidates
    value      (m,)   sum of |S_pq(x)| over the pairs that the order respects
    objective  (m,)   sum of |S_pq(x)| over the pairs that it violates: what was minimised
    bound      (m,)   no order violates less
    gap        (m,)   (objective - bound) / objective
    status     (m,)   "optimal", "heuristic" or "time_limit"
    names      names of the items, for `to_frame`
    """

    order: np.ndarray
    positions: np.ndarray
    value: np.ndarray
    objective: np.ndarray
    bound: np.ndarray
    gap: np.ndarray
    status: np.ndarray
    names: tuple[Any, ...] | None = None

    def to_frame(self, k: int = 5) -> Any:
        """A pandas DataFrame, one row per query: the k best items, then value, objective, bound, gap and status."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("RankingDecoding.to_frame needs pandas: pip install 'lawful[frame]'") from error
        best = self.order[:, :k]
        if self.names is not None:
            best = np.asarray(self.names, dtype=object)[best]
        frame = pd.DataFrame(best, columns=[f"best{j + 1}" for j in range(best.shape[1])])
        for field in ("value", "objective", "bound", "gap", "status"):
            frame[field] = getattr(self, field)
        return frame


def collect(found: list[Ordering], items: np.ndarray, n_items: int, names: tuple[Any, ...] | None) -> RankingDecoding:
    """Orders of the candidates `items`, one per query, as one decoding over all items."""
    m = len(found)
    best = items[np.array([d.order for d in found], dtype=np.int64).reshape(m, len(items))]
    positions = np.full((m, n_items), -1, dtype=np.int64)
    np.put_along_axis(positions, best, np.broadcast_to(np.arange(len(items)), best.shape), axis=1)
    fields = ("value", "objective", "bound", "gap")
    numbers = {field: np.array([getattr(d, field) for d in found], dtype=float) for field in fields}
    status = np.array([d.status for d in found], dtype=str)
    return RankingDecoding(order=best, positions=positions, status=status, names=names, **numbers)


def solver(
    decoder: Any, *, sweeps: int, time_limit: float | None, bound: bool, seeds: np.ndarray
) -> Callable[[int, np.ndarray], Ordering]:
    """(number of the query, S) -> Ordering, from the name of a method or a function S -> order."""
    if isinstance(decoder, str) and decoder in METHODS:
        if decoder == "insertion" and time_limit is None and not bound:
            return lambda i, S: fast_insertion(S, sweeps)
        return lambda i, S: order(S, decoder, time_limit=time_limit, random_state=int(seeds[i]), bound=bound, sweeps=sweeps)
    if callable(decoder):
        return lambda i, S: summary(S, check_order(decoder(S.copy()), len(S)), "function")
    raise ValueError(
        f"ConstrainedRanker: decoder={decoder!r} is unknown; choose one of {', '.join(METHODS)}, or give a function of "
        "S (D, D) that returns the items in order, best first"
    )


def check_order(found: Any, D: int) -> np.ndarray:
    found = np.asarray(found)
    if found.shape != (D,) or not np.array_equal(np.sort(found), np.arange(D)):
        raise ValueError(f"the decoder did not return an order of the {D} items; each number 0 .. {D - 1} must occur once")
    return found.astype(np.int64)

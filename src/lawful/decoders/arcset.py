"""Rankings, decoded: the costs of a row become one skew matrix S, an order of it is found, and the order is the answer.

With pair variables c_pq the answer is read off the order. A ranker with a million pairs has no use for them: its objective
hands over the matrices themselves, query by query (`skews`), and `ArcSet.orders` returns the orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from tqdm import tqdm

from lawful._array import Array, array_namespace, device_of, like, to_numpy
from lawful._checks import count, number
from lawful._html import card, table
from lawful._threads import Threads
from lawful.decoders import orders  # loads its compiled kernels on first use
from lawful.decoders.base import MANY, Decode, Decoder, Decoding, finish

__all__ = ["ArcSet", "RankingDecoding", "net_costs"]

PROVE = 30  # items up to which the decoder proves its answer, unless it is told how to find it


@dataclass(frozen=True)
class RankingDecoding:
    """One entry per query: a consistent order and what is known about it.

    order      (m, d) item numbers, best first; -1 after the last where queries have candidates of their own
    positions  (m, D) place of each item, 0 = best; -1 for items that were not candidates
    value      (m,)   sum of |S_pq(x)| over the pairs that the order respects
    objective  (m,)   sum of |S_pq(x)| over the pairs that it violates: what was minimised
    bound      (m,)   no order violates less
    gap        (m,)   (objective - bound) / objective
    status     (m,)   "optimal", "heuristic" or "time_limit"
    names      names of the items, for `to_frame`

    >>> import numpy as np
    >>> from lawful import ConstrainedRanker
    >>> X, R = np.eye(4), np.array([[3.0, 2.0, 1.0]] * 4)
    >>> d = ConstrainedRanker(prior=None).fit(X, R).decode(X[:1])
    >>> d.order.tolist(), d.positions.tolist(), float(d.objective[0])
    ([[0, 1, 2]], [[0, 1, 2]], 0.0)
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
        best: Any = self.order[:, :k]
        if self.names is not None:
            best = np.where(best < 0, None, np.asarray(self.names, dtype=object)[best])
        frame = pd.DataFrame(best, columns=[f"best{j + 1}" for j in range(best.shape[1])])
        for field in ("value", "objective", "bound", "gap", "status"):
            frame[field] = getattr(self, field)
        return frame

    def _repr_html_(self) -> str:
        """For notebooks: how many queries have each status, and the best items of the first of them."""
        names = np.arange(self.positions.shape[1]) if self.names is None else np.asarray(self.names, dtype=object)
        best = names[self.order[:MANY, :5]]
        rows = [[*items, f"{gap:.2g}", status] for items, gap, status in zip(best, self.gap, self.status)]
        kinds, counts = np.unique(self.status, return_counts=True)
        said = ", ".join(f"{k} {kind}" for kind, k in zip(kinds, counts)) or "no queries"
        more = f"<div>… and {len(self.order) - MANY} more queries</div>" if len(self.order) > MANY else ""
        return card(f"Rankings: {said}", table([*(f"best{j + 1}" for j in range(best.shape[1])), "gap", "status"], rows) + more)


def net_costs(after: Array, tie: Array, before: Array) -> Array:
    """S' for comparisons that may be left open, from the costs of c_pq = -1, 0 and +1 (arrays of any one shape).

    Whatever the order, a pair that p leads may be given +1 or 0, whichever is cheaper, and one that q leads -1 or 0. So the
    literal DAG(D) is total orders with S'_pq = min(cost(-1), cost(0)) - min(cost(+1), cost(0)); S alone is not enough.
    """
    xp = array_namespace(after, tie, before)
    return xp.minimum(after, tie) - xp.minimum(before, tie)


class ArcSet(Decoder):
    """Rankings over pair variables: each row's costs become a matrix S, `order` orders it, the pairs are read off.

    Parameters
    ----------
    method : "auto" (proven for up to 30 items, else insertion), "insertion", "exact", "eades", "borda", or a function of
        S (D, D) that returns the items in order, best first
    sweeps, time_limit : as in `lawful.decoders.order`; the time is for each row
    random_state : of a search with a time limit
    verbose : 1 shows progress

    Notes
    -----
    Rows whose order is proven optimal are ok; the others obey the law too, and are reported as not_converged.

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import ConstrainedRanker
    >>> from lawful.decoders import ArcSet
    >>> X, R = np.eye(4), np.array([[3.0, 2.0, 1.0]] * 4)
    >>> ConstrainedRanker(prior=None, decoder=ArcSet("exact")).fit(X, R).decode(X[:1]).status.tolist()
    ['optimal']
    """

    needs_objective = ("table",)
    needs_set = ("pairs",)

    def __init__(
        self,
        method: Any = "auto",
        *,
        sweeps: int | None = None,
        time_limit: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.sweeps = sweeps
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose

    def orders(self, F: Any, C: Any, *, bound: bool = True) -> RankingDecoding:
        """An order of the candidates `F.items` for every query, over the items of the set C; F offers `threads` and `skews`.

        Where queries have candidates of their own, `F.items` is (m, c), padded by -1, and so is the order. What F says follows
        the candidates of a query in any case, `F.tail(i)`, comes after them.
        """
        found = self._each(F, bound)
        m, items = len(found), F.items
        positions = np.full((m, C.n_items_), -1, dtype=np.int64)
        if items.ndim == 1:
            best = items[np.array([d.order for d in found], dtype=np.int64).reshape(m, len(items))]
            np.put_along_axis(positions, best, np.broadcast_to(np.arange(len(items)), best.shape), axis=1)
        else:
            rows = [np.concatenate([F.candidates(i)[d.order], F.tail(i)]) for i, d in enumerate(found)]
            best = np.full((m, max((len(row) for row in rows), default=0)), -1, dtype=np.int64)
            for i, row in enumerate(rows):
                best[i, : len(row)], positions[i, row] = row, np.arange(len(row))
        fields = ("value", "objective", "bound", "gap")
        numbers: Any = {field: np.array([getattr(d, field) for d in found], dtype=float) for field in fields}
        status = np.array([d.status for d in found], dtype=str)
        return RankingDecoding(order=best, positions=positions, status=status, **numbers)

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        p, q = C.pairs().T
        T = F.shape[1]
        reference = F.center
        values = like(np.array([-1.0, 0.0, 1.0]), reference)
        cost = np.stack([to_numpy(F.table(t, values)) for t in range(T)], axis=1).astype(np.float64)  # (m, T, 3)
        after, tie, before = cost[:, :, 0], cost[:, :, 1], cost[:, :, 2]
        found = self._each(PairCosts(net_costs(after, tie, before) if C.ties else after - before, C), bound=True)
        positions = np.array([d.positions for d in found], dtype=np.int64).reshape(len(found), C.n_items_)
        ahead = positions[:, p] < positions[:, q]
        c = np.where(ahead, 1.0, -1.0)
        if C.ties:  # an arc that costs more than none is not drawn
            c = np.where(tie < np.where(ahead, before, after), 0.0, c)
        proven = np.array([d.status == "optimal" for d in found], dtype=bool)
        xp = array_namespace(reference)
        return finish(F, C, like(c, reference), proven=xp.asarray(proven, device=device_of(reference)))

    # ------------------------------------------------------------------ one order after the other

    def _each(self, F: Any, bound: bool) -> list[Any]:
        """An `Ordering` for every row of F."""
        solve = self.solver(len(F), bound)
        found: list[Any] = [None] * len(F)
        with tqdm(total=len(F), desc="decode", disable=not self.verbose) as bar, F.threads() as threads:
            for rows, skew in F.skews(threads):

                def work(i: int, skew: Callable[[int], np.ndarray] = skew) -> Any:
                    one = solve(i, skew(i))
                    bar.update()
                    return one

                for i, one in zip(rows, threads.map(work, rows)):
                    found[i] = one
        return found

    def solver(self, m: int, bound: bool) -> Callable[[int, np.ndarray], Any]:
        """(number of the row, S) -> `Ordering`; an error that says what would do when a parameter will not."""
        method = self.method
        if callable(method):
            return lambda i, S: orders.summary(S, check_order(method(S.copy()), len(S)), "function")
        if not (isinstance(method, str) and method in ("auto", *orders.METHODS)):
            raise ValueError(
                f"ArcSet: method={method!r} is unknown; choose one of auto, {', '.join(orders.METHODS)}, or give a function of "
                "S (D, D) that returns the items in order, best first"
            )
        sweeps = None if self.sweeps is None else count(self, "sweeps", 0)
        limit = None if self.time_limit is None else number(self, "time_limit", zero=True, infinite=True)
        if method == "insertion" and sweeps is not None and limit is None and not bound:
            return lambda i, S: orders.fast_insertion(S, sweeps)
        seeds = np.zeros(m, np.int64)
        if self.random_state is not None:
            seeds = check_random_state(self.random_state).randint(2**31 - 1, size=m)

        def solve(i: int, S: np.ndarray) -> Any:
            way = method if method != "auto" else "exact" if len(S) <= PROVE else "insertion"
            return orders.order(S, way, time_limit=limit, random_state=int(seeds[i]), bound=bound, sweeps=sweeps)

        return solve


class PairCosts:
    """The rows of what putting p before q gains (m, T) as skew matrices, one at a time."""

    def __init__(self, gain: np.ndarray, C: Any) -> None:
        self.gain, self.pairs, self.n_items = gain, C.pairs().T, C.n_items_

    def __len__(self) -> int:
        return len(self.gain)

    def threads(self) -> Threads:
        return Threads(1)

    def skews(self, threads: Threads) -> Iterator[tuple[Sequence[int], Callable[[int], np.ndarray]]]:
        p, q = self.pairs

        def skew(i: int) -> np.ndarray:
            S = np.zeros((self.n_items, self.n_items))
            S[p, q], S[q, p] = self.gain[i], -self.gain[i]
            return S

        yield range(len(self)), skew


def check_order(found: Any, D: int) -> np.ndarray:
    found = np.asarray(found)
    if found.shape != (D,) or not np.array_equal(np.sort(found), np.arange(D)):
        raise ValueError(f"the decoder did not return an order of the {D} items; each number 0 .. {D - 1} must occur once")
    return found.astype(np.int64)

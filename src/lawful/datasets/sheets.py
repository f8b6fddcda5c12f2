"""A flow sheet, drawn at random as a plant that grew: every unit gives out what it takes in, and no flow is negative.

Each unit takes one to three open streams (a mixer, or a vessel) and splits what it gets into two or three, some of which go
back to earlier units. Shares follow the inputs, and a share of 0 is a closed valve.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["FlowSheet", "make_flow_sheet"]


class FlowSheet(NamedTuple):
    """A plant: its balances, and the flows that belong to settings of it; see `make_flow_sheet`.

    Attributes
    ----------
    units : (u, streams), +1 for what flows in, -1 for what flows out
    source : (streams,) the unit that a stream leaves, -1 for feeds
    swing : (streams, 3) how a stream's share of its unit follows the inputs
    lean : (streams,) the share in the middle

    Examples
    --------
    >>> from lawful.datasets import make_flow_sheet
    >>> sheet = make_flow_sheet(12, random_state=0)
    >>> len(sheet.equations) == len(sheet.units) + 12  # a balance for each unit, a bound for each stream
    True
    """

    units: np.ndarray
    source: np.ndarray
    swing: np.ndarray
    lean: np.ndarray

    @property
    def equations(self) -> list[str]:
        """Balances and bounds, as they would be written by hand."""
        texts = []
        for row in self.units:
            inflow, outflow = (" + ".join(f"y{s + 1}" for s in np.flatnonzero(row == sign)) for sign in (1, -1))
            texts.append(f"{inflow} = {outflow}")
        return texts + [f"y{s + 1} >= 0" for s in range(self.units.shape[1])]

    def flows(self, X: Any) -> np.ndarray:
        """(m, streams) true flows for inputs X (m, 3) in [-1, 1]."""
        X = np.asarray(X, dtype=float)
        m, S = len(X), self.units.shape[1]
        share = np.maximum(self.lean + 0.25 * X @ self.swing.T, 0.0)
        feeds = np.flatnonzero(self.source < 0)
        Y = np.zeros((m, S))
        Y[:, feeds] = 5 + np.tanh(X @ self.swing[feeds].T)
        # Each stream is its share of what its unit gets: a linear system for all flows at once, recycles included.
        A = np.tile(np.eye(S), (m, 1, 1))
        for unit, row in enumerate(self.units):
            out = np.flatnonzero(self.source == unit)
            part = share[:, out]
            part[:, -1] += 0.2  # never are all valves closed
            A[:, out[:, None], np.flatnonzero(row > 0)[None, :]] -= (part / part.sum(axis=1, keepdims=True))[:, :, None]
        return np.linalg.solve(A, Y[..., None])[..., 0]


def make_flow_sheet(n_streams: int = 200, *, n_feeds: int = 6, random_state: Any = None) -> FlowSheet:
    """A random plant with so many streams.

    Parameters
    ----------
    n_streams : outputs
    n_feeds : streams that come from outside
    random_state : int, RandomState or None

    Returns
    -------
    FlowSheet : its `equations`, and `flows(X)` for inputs (m, 3)

    Examples
    --------
    >>> import numpy as np
    >>> from lawful.datasets import make_flow_sheet
    >>> sheet = make_flow_sheet(30, random_state=0)
    >>> Y = sheet.flows(np.zeros((1, 3)))
    >>> Y.shape, bool(abs(sheet.units @ Y[0]).max() < 1e-9), bool(Y.min() >= 0)
    ((1, 30), True, True)
    """
    rng = check_random_state(random_state)
    source, target = [-1] * n_feeds, [-1] * n_feeds
    units = 0
    while len(source) < n_streams:
        idle = [s for s, end in enumerate(target) if end < 0]
        for s in rng.choice(idle, min(len(idle) - 1, int(rng.randint(1, 4))), replace=False):
            target[s] = units
        for _ in range(min(n_streams - len(source), int(rng.randint(2, 4)))):
            source.append(units)
            recycled = units > 3 and rng.uniform() < 0.1
            target.append(int(rng.randint(max(0, units - 4), units)) if recycled else -1)
        if all(target[s] >= 0 for s, begin in enumerate(source) if begin == units):  # something must go on
            target[-1] = -1
        units += 1
    balance = np.zeros((units, n_streams))
    for s, (begin, end) in enumerate(zip(source, target)):
        if begin >= 0:
            balance[begin, s] -= 1
        if end >= 0:
            balance[end, s] += 1
    return FlowSheet(balance, np.array(source), rng.normal(0, 1, (n_streams, 3)), rng.normal(0.3, 0.7, n_streams))

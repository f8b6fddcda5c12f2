"""A flow sheet, drawn at random: every unit gives out what it takes in, and no flow is negative (see plot_flow_sheet.py).

Units are drawn at random, as a plant that grew: each takes one to three open streams (a mixer, or a vessel) and splits what it
gets into two or three, some of which go back to earlier units. The law has a mass balance for each unit and a bound for each
stream. Some streams are closed for some settings of the plant, and measured flows of closed streams are often negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Plant(NamedTuple):
    """units (u, streams): +1 for what flows in, -1 for what flows out; source: the unit a stream leaves, -1 for feeds."""

    units: np.ndarray
    source: np.ndarray
    swing: np.ndarray  # (streams, d) how a stream's share of its unit follows the inputs
    lean: np.ndarray  # (streams,)


def make_plant(streams: int, seed: int, feeds: int = 6) -> Plant:
    rng = np.random.default_rng(seed)
    source, target = [-1] * feeds, [-1] * feeds
    units = 0
    while len(source) < streams:
        idle = [s for s, end in enumerate(target) if end < 0]
        for s in rng.choice(idle, min(len(idle) - 1, int(rng.integers(1, 4))), replace=False):
            target[s] = units
        for _ in range(min(streams - len(source), int(rng.integers(2, 4)))):
            source.append(units)
            recycled = units > 3 and rng.uniform() < 0.1
            target.append(int(rng.integers(max(0, units - 4), units)) if recycled else -1)
        if all(target[s] >= 0 for s, begin in enumerate(source) if begin == units):  # something must go on
            target[-1] = -1
        units += 1
    balance = np.zeros((units, streams))
    for s, (begin, end) in enumerate(zip(source, target)):
        if begin >= 0:
            balance[begin, s] -= 1
        if end >= 0:
            balance[end, s] += 1
    return Plant(balance, np.array(source), rng.normal(0, 1, (streams, 3)), rng.normal(0.3, 0.7, streams))


def law(plant: Plant) -> list[str]:
    """Balances and bounds, as they would be written by hand."""
    texts = []
    for row in plant.units:
        inflow, outflow = (" + ".join(f"y{s + 1}" for s in np.flatnonzero(row == sign)) for sign in (1, -1))
        texts.append(f"{inflow} = {outflow}")
    return texts + [f"y{s + 1} >= 0" for s in range(plant.units.shape[1])]


def flows(plant: Plant, X: np.ndarray) -> np.ndarray:
    """(m, streams) true flows: feeds follow the inputs, units split what they get in shares that follow them too."""
    m, S = len(X), plant.units.shape[1]
    share = np.maximum(plant.lean + 0.25 * X @ plant.swing.T, 0.0)  # a share of 0 is a closed valve
    feeds = np.flatnonzero(plant.source < 0)
    Y = np.zeros((m, S))
    Y[:, feeds] = 5 + np.tanh(X @ plant.swing[feeds].T)
    # Each stream is its share of what its unit gets: a linear system for all flows at once, recycles included.
    A = np.tile(np.eye(S), (m, 1, 1))
    for unit, row in enumerate(plant.units):
        out = np.flatnonzero(plant.source == unit)
        part = share[:, out]
        part[:, -1] += 0.2  # never are all valves closed
        A[:, out[:, None], np.flatnonzero(row > 0)[None, :]] -= (part / part.sum(axis=1, keepdims=True))[:, :, None]
    return np.linalg.solve(A, Y[..., None])[..., 0]

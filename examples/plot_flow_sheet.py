"""
A flow sheet: 200 streams, balances and bounds
==============================================

A plant has 200 streams. Every unit gives out what it takes in, and no flow is negative. Some streams are closed for
some settings of the plant, and what a meter says about a closed stream is often below zero. The law has a mass balance
for each unit and a bound for each stream.
"""

# %%
# Units are drawn at random, as a plant that grew: each takes one to three open streams (a mixer, or a vessel) and
# splits what it gets into two or three, some of which go back to earlier units.
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from lawful import ConstrainedRegressor, Equations
from lawful.metrics import constraint_violation


class Plant(NamedTuple):
    """units (u, streams): +1 for what flows in, -1 for what flows out; source: the unit a stream leaves, -1 for feeds."""

    units: np.ndarray
    source: np.ndarray
    swing: np.ndarray  # (streams, d) how a stream's share of its unit follows the inputs
    lean: np.ndarray  # (streams,)


def make_plant(streams, seed, feeds=6):
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


def law(plant):
    """Balances and bounds, as they would be written by hand."""
    texts = []
    for row in plant.units:
        inflow, outflow = (" + ".join(f"y{s + 1}" for s in np.flatnonzero(row == sign)) for sign in (1, -1))
        texts.append(f"{inflow} = {outflow}")
    return texts + [f"y{s + 1} >= 0" for s in range(plant.units.shape[1])]


def flows(plant, X):
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


# %%
# Eighty noisy rows to learn from, 200 to judge by. The law is a list of sentences, as they would be written by hand.
rng = np.random.default_rng(0)
plant = make_plant(200, 0)
X, X_test = (rng.uniform(-1, 1, (rows, 3)) for rows in (80, 200))
Y, Y_test = flows(plant, X), flows(plant, X_test)
Y = Y + 0.2 * rng.standard_normal(Y.shape)
sentences = law(plant)
print(f"{len(plant.units)} units; {sentences[0]!r}, {sentences[1]!r}, ..., {sentences[-1]!r}")

model = ConstrainedRegressor(Equations(sentences)).fit(X, Y)
decoding = model.decode(X_test)
free = model.objective(X_test).center  # before the law
results = {}
for name, c in (("without the law", free), ("with the law", decoding.c)):
    rmse = float(np.sqrt(np.mean((c - Y_test) ** 2)))
    results[name] = rmse, constraint_violation(model.constraint_, c), float(np.mean(c < -1e-9))
    print("{:<16} RMSE {:.4f}   largest violation {:.0e}   negative flows {:.1%}".format(name, *results[name]))
print(f"closed streams: {np.mean(decoding.c < 1e-9):.1%}; certified: {np.mean(decoding.status == 'ok'):.0%}")

# %%
# A stream that is closed for some settings: the law keeps it at zero there.
stream = int(np.argmax(((Y_test == 0).mean(axis=0) > 0.3) & (Y_test.max(axis=0) > 0.5)))
order = np.argsort(Y_test[:, stream])
figure, axis = plt.subplots(figsize=(8, 3.4), layout="constrained")
axis.plot(Y_test[order, stream], color="#b9c4cf", lw=6, label="truth")
axis.plot(free[order, stream], ".", color="#d1603d", ms=4, label="without the law")
axis.plot(decoding.c[order, stream], ".", color="#1f6f8b", ms=4, label="with the law")
axis.axhline(0, color="#444444", lw=0.8)
axis.set(xlabel="test rows, by the true flow", ylabel=f"flow of stream {stream + 1}")
axis.legend(frameon=False)

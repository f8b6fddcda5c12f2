"""Flows in a network from noisy meters: nothing is lost at a node, no pipe carries more than it can.

    python examples/network_flow.py

Data are simulated: twelve pipes between a source, five junctions and a sink, whose flows depend on demand and two valves.
The usual tool, data reconciliation by weighted least squares, knows the balances, but not the bounds; clipping to these
breaks the balances again.
"""

from __future__ import annotations

import numpy as np
from columns import show  # examples/columns.py, beside this script

from lawful import Affine, ConstrainedRegressor, Flow, KernelRidge, project
from lawful.kernels import Gaussian

EDGES = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 4), (2, 4), (2, 5), (3, 2), (3, 5), (4, 6), (5, 4), (5, 6)]
CAPACITY = np.array([3.0, 3.0, 3.0, 1.0, 2.5, 2.0, 2.0, 1.0, 2.5, 5.0, 1.0, 5.0])
LAW = Flow(EDGES, supply={0: None, 6: None}, capacity=CAPACITY)


def flows(X: np.ndarray) -> np.ndarray:
    """(m, 12) flows for inputs X (m, 3), near what each pipe would like: many are shut or full."""
    wish = 1.5 + np.stack([np.sin(k + X @ [2.0, 1.0 + k / 6, -1.0]) * 2.2 for k in range(12)], axis=1)
    return project(wish, LAW)


def run(seed: int = 0, rows: int = 60, noise: float = 0.3) -> dict[str, tuple[float, float]]:
    rng = np.random.default_rng(seed)
    X, new = rng.uniform(-1, 1, (rows, 3)), rng.uniform(-1, 1, (300, 3))
    truth = flows(new)
    Y = flows(X) + noise * rng.standard_normal((rows, 12))
    model = ConstrainedRegressor(LAW, surrogate=KernelRidge(Gaussian(1.0), tune="loo")).fit(X, Y)
    base = model.objective(new).center
    law = model.constraint_
    Q = model.loss_.metric_
    balances = Affine(law.A_, law.b_)
    reconciled = project(base, balances, weights=Q) if Q.ndim == 1 else project(base, balances, metric=Q)
    ways = {
        "meter by meter (no law)": base,
        "reconciled by least squares": reconciled,
        "reconciled and clipped": np.clip(reconciled, 0, CAPACITY),
        "lawful: Flow": model.predict(new),
    }
    return {name: (float(np.sqrt(np.mean((c - truth) ** 2))), float(law.residual(c).max())) for name, c in ways.items()}


if __name__ == "__main__":
    show("flows of 12 pipes, 300 test rows, 60 learned from", run())

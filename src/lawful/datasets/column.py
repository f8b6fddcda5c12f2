"""An extractive distillation column, generated: the balances of `load_distillation` without its files.

Inputs are the feed, the solvent and the reflux ratio. Outputs are distillate and bottoms (y1, y2), their compositions
(y3 to y5, y6 to y8) and the duty of the boiler (y9), which no balance ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from lawful.datasets.files import DISTILLATION_LAW

__all__ = ["column_outputs", "make_column"]

LIGHT, HEAVY = 0.697616946, 0.302383054  # shares of the two components in the feed
LOW, HIGH = (80.0, 60.0, 0.5), (120.0, 140.0, 3.0)  # feed, solvent, reflux


def column_outputs(X: Any) -> np.ndarray:
    """(m, 9) outputs for settings X (m, 3) of a column that recovers a smooth share of each component at the top.

    >>> from lawful.datasets import column_outputs
    >>> y = column_outputs([[100.0, 100.0, 2.0]])
    >>> y.shape, bool(abs(y[0, :2].sum() - 200) < 1e-9)  # what flows in flows out
    ((1, 9), True)
    """
    feed, solvent, reflux = np.asarray(X, dtype=float).T
    flows = LIGHT * feed, HEAVY * feed, solvent
    sharp = 1 - np.exp(-1.5 * reflux)
    shares = (0.90 + 0.09 * sharp, 0.15 - 0.12 * sharp * np.tanh(solvent / feed), 0.02 + 0.02 / (1 + reflux))
    top = np.stack([share * flow for share, flow in zip(shares, flows)], axis=1)
    bottom = np.stack(flows, axis=1) - top
    D, B = top.sum(axis=1), bottom.sum(axis=1)
    return np.column_stack([D, B, top / D[:, None], bottom / B[:, None], D * (1 + reflux) * (30 + solvent / feed)])


def make_column(n_samples: int = 60, *, noise: float = 0.0, n_test: int = 500, random_state: Any = None) -> Bunch:
    """Random settings of a distillation column, what is measured there, and the six balances that hold.

    Parameters
    ----------
    n_samples : rows to learn from
    noise : of the measurements Y, in standard deviations of each output
    n_test : further rows without noise
    random_state : int, RandomState or None

    Returns
    -------
    Bunch : X (n, 3), Y (n, 9), X_test, Y_test, equations

    Examples
    --------
    >>> from lawful import Equations
    >>> from lawful.datasets import make_column
    >>> data = make_column(40, noise=0.05, random_state=0)
    >>> law = Equations(data.equations).fit(data.Y, data.X)
    >>> bool(law.at(data.X_test).residual(data.Y_test).max() < 1e-9)
    True
    """
    rng = check_random_state(random_state)
    X, X_test = (rng.uniform(LOW, HIGH, (rows, 3)) for rows in (n_samples, n_test))
    Y = column_outputs(X)
    Y = Y + noise * Y.std(axis=0) * rng.standard_normal(Y.shape)
    return Bunch(X=X, Y=Y, X_test=X_test, Y_test=column_outputs(X_test), equations=list(DISTILLATION_LAW))

"""Generated data whose law is known exactly: the curves of the paper's synthetic experiment."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

# The paper prints (sin x, sin 2x) with y1^4 = y1^2 - y2^2, which do not agree (erratum E1); both consistent pairs are here.
CURVES: dict[str, tuple[Any, str]] = {
    "circle": (lambda x: np.c_[np.cos(x), np.sin(x)], "y1**2 + y2**2 = 1"),
    "lemniscate": (lambda x: np.c_[np.sin(x), np.sin(2 * x) / 2], "y1**4 = y1**2 - y2**2"),
    "lemniscate_tall": (lambda x: np.c_[np.sin(x), np.sin(2 * x)], "y1**4 = y1**2 - y2**2 / 4"),
    "lemniscate_printed": (lambda x: np.c_[np.sin(x), np.sin(2 * x)], "y1**4 = y1**2 - y2**2"),
}


def make_curve(
    curve: str = "circle",
    n_samples: int = 100,
    *,
    noise: float = 0.05,
    n_test: int = 1000,
    missing: float = 0.0,
    random_state: Any = None,
) -> Bunch:
    """Noisy observations of a curve in the plane, x uniform on [-pi, pi] (the paper's synthetic experiment).

    Parameters
    ----------
    curve : {"circle", "lemniscate", "lemniscate_tall", "lemniscate_printed"}
        The last one is the pair printed in the paper, whose function violates its own equation by up to 0.75.
    noise : standard deviation of the Gaussian noise
    missing : fraction of the training labels set to NaN, at random (every task keeps at least one)

    Returns
    -------
    Bunch with X, Y (noisy), X_test, Y_test (noise-free), equation (a string for `Equations`)

    Examples
    --------
    >>> data = make_curve("circle", 5, random_state=0)
    >>> data.Y.shape, data.equation
    ((5, 2), 'y1**2 + y2**2 = 1')
    """
    if curve not in CURVES:
        raise ValueError(f"unknown curve {curve!r}; choose one of {', '.join(CURVES)}")
    truth, equation = CURVES[curve]
    rng = check_random_state(random_state)
    x, x_test = rng.uniform(-np.pi, np.pi, n_samples), rng.uniform(-np.pi, np.pi, n_test)
    Y = truth(x) + noise * rng.standard_normal((n_samples, 2))
    gaps = rng.uniform(size=Y.shape) < missing
    gaps[0] = False
    Y[gaps] = np.nan
    return Bunch(X=x[:, None], Y=Y, X_test=x_test[:, None], Y_test=truth(x_test), equation=equation)

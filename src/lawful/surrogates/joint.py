r"""Linear log-odds of all labels, learned together under a logic.

Classifiers that are fitted label by label know P(c_t | x) each, and the logic is counted twice when it is then put on top: what
the labels share is in every one of them. Together they are the conditional random field

    log P(c | x) = sum_t s_t(x) c_t - log Z(s(x)),      Z(s) = sum over c that obey of exp(sum_t s_t c_t),

whose likelihood is concave in the coefficients, with the marginals of `law.sums` in its slope. Its maximum near the
coefficients W0 of separate fits (`strength` times half the squared distance is taken off) is what `refine` returns. Labels
that are not known are summed over: of a row with gaps the likelihood is Z with the known labels held, over Z.

Marginals that are learned so are more honest than those of separate classifiers, which are too sure of themselves: a label is
above 1/2 in fewer rows, and a rare one in none, to which F1 is harsher than to false alarms. `as_often` says at which
probability a label is to be predicted so that it is predicted as often as by its classifier alone, in rows better chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

__all__ = ["as_often", "refine", "surprise"]

HELD = 1e4  # log-odds of a label that is known
MAX_ITER = 50
CELLS = 2**24  # rows times sums: so many rows are used
FREE = 1e-3  # the strength for intercepts
LEAST, MOST = 0.2, 0.5  # a label below the one is never predicted, and one above the other always is


def refine(W0: np.ndarray, U: np.ndarray, Y: np.ndarray, weights: np.ndarray, law: Any, strength: Any) -> np.ndarray:
    """Coefficients (T, d + 1), intercept last, from those of separate fits; U (n, d), Y (n, T) with NaN, weights (n,),
    strength a number or (d,).

    Rows whose labels contradict the logic say nothing about it and are left out.
    """
    rows = np.flatnonzero(weights > 0)
    known, (held, offset) = np.isfinite(Y), _held(Y)
    possible = law.sums(held[rows])[0] - offset[rows] > -HELD / 2
    rows = rows[possible]
    rows = _some(rows, law)
    if not len(rows):
        return W0
    Z = np.hstack([U[rows], np.ones((len(rows), 1))])
    Y, held, offset, w = np.nan_to_num(Y[rows]), held[rows], offset[rows], weights[rows]
    gaps = np.flatnonzero(~known[rows].all(axis=1))
    price = np.append(np.broadcast_to(np.asarray(strength, float), W0.shape[1] - 1), FREE)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = flat.reshape(W0.shape)
        s = Z @ W.T
        total, q = law.sums(s)
        seen, expected = (s * Y).sum(axis=1), Y
        if len(gaps):
            expected = Y.copy()
            inside, expected[gaps] = law.sums(s[gaps] + held[gaps])
            seen[gaps] = inside - offset[gaps]
        away = W - W0
        slope = ((q - expected) * w[:, None]).T @ Z + price * away
        return float(w @ (total - seen) + 0.5 * (price * away**2).sum()), slope.ravel()

    found = minimize(loss, W0.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITER})
    return np.asarray(found.x).reshape(W0.shape) if np.isfinite(found.x).all() else W0


def surprise(s: np.ndarray, Y: np.ndarray, law: Any) -> np.ndarray:
    """(n,) -log P(known labels | log-odds s) under the law; 0 where the labels contradict it."""
    held, offset = _held(Y)
    inside = law.sums(s + held)[0] - offset
    return np.where(inside > -HELD / 2, law.sums(s)[0] - inside, 0.0)


def _held(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds (n, T) that hold known labels where they are, and what they add to the sums of rows that may have them (n,)."""
    known, true = np.isfinite(Y), np.nan_to_num(Y)
    return np.where(known, HELD * (2 * true - 1), 0.0), HELD * np.where(known, true, 0.0).sum(axis=1)


def as_often(s: np.ndarray, said: np.ndarray, weights: np.ndarray, law: Any) -> np.ndarray:
    """(T,) probabilities in [0.2, 0.5] at which labels with log-odds s (n, T) are predicted as often as `said` (n, T)."""
    rows = _some(np.flatnonzero(weights > 0), law)
    q, said, w = law.marginals(s[rows]), said[rows], weights[rows]
    share = w @ said / w.sum()
    out = np.full(s.shape[1], MOST)
    for t in range(len(out)):
        values, which = np.unique(-q[:, t], return_inverse=True)  # the most probable first
        above = np.cumsum(np.bincount(which.ravel(), w)) / w.sum()
        k = int(np.searchsorted(above, share[t] * (1 + 1e-9), side="right"))  # so many values are above the threshold
        ends = np.r_[-1.0, values, 0.0]
        out[t] = -(ends[k] + ends[k + 1]) / 2
    return np.clip(out, LEAST, MOST)


def _some(rows: np.ndarray, law: Any) -> np.ndarray:
    """As many rows as sums over the logic can be afforded for."""
    most = max(1, CELLS // law.size_)
    return rows if len(rows) <= most else np.sort(np.random.default_rng(0).permutation(rows)[:most])

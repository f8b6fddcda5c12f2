r"""Log-odds of all labels in a kernel, and whether labels are likelier so than by linear scores.

    s_t(x) = b_t + sum_j a_tj k(x, c_j),      k(x, c) = exp(-sum_i v_i^2 (x_i - c_i)^2 / (d length^2)) + TREND x . c / d

on standardised inputs, with centres c_j drawn from the rows and penalty / 2 |s_t|^2 in the space of the kernel. How much each
input matters, v_i, is the root mean square of the slope of the scores along it (of mean square 1): a fit with all v_i = 1 finds
it, and the next one uses it (Radhakrishnan, Beaglehole, Pandit & Belkin 2024). Length, penalty and the number of such steps are
the same for all labels, those of least log loss on held-out rows; rows with equal inputs are held out together.

Scores are learned on features that span the kernel on its centres, each of such a size that the likelihood bends alike along
all: L-BFGS then takes some dozen steps, for all labels at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from lawful.kernels import Gaussian

__all__ = ["Choice", "Counts", "Setting", "Span", "chosen", "scores_of", "span"]

TREND = 0.1  # of the kernel is linear; log loss on emotions was .419, without it .428 (benchmarks/labels.py)
LENGTHS, PENALTIES, STEPS = (2.0, 1.0, 0.7, 0.5, 0.25), (0.003, 0.01, 0.03, 0.1, 0.3, 1.0), (0, 1, 2)
FOLDS, LEAST_ROWS, MOST_ROWS, MOST_LABELS, MOST_CENTERS = 3, 50, 1000, 20, 400  # where settings are compared
CLEAR = 2.0  # standard errors by which held-out rows must be likelier than by linear scores
CENTERS, FEW = 1000, 100  # centres, and so few that linear scores are kept
WORK = 4e10  # rows times centres times labels times `PASSES`: some ten seconds
PASSES = 240  # operations for each of these: four for each step
BENT = 1 / 6  # of a label that is neither rare nor sure, p (1 - p)
OPTIONS = {"maxiter": 100, "gtol": 1e-3, "ftol": 1e-7}
CUT, FREE, LEAST = 1e-9, 1e-3, 1e-3  # of eigenvalues, the penalty of intercepts, the least weight of an input


class Setting(NamedTuple):
    """Length scale (times the root of the number of inputs), penalty, and how often the inputs' weights were learned."""

    length: float
    penalty: float
    steps: int


Choice = tuple[Setting, int]  # and how many centres


class Counts(NamedTuple):
    """Of the distinct inputs U (n, d): how often each label was true (n, T), and known (n, T); or of classes, which exclude."""

    U: np.ndarray
    true: np.ndarray
    known: np.ndarray
    exclusive: bool = False

    def take(self, rows: np.ndarray) -> Counts:
        return self._replace(U=self.U[rows], true=self.true[rows], known=self.known[rows])

    def loss(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n,) minus the log likelihood of each row, and its slope (n, T)."""
        if self.exclusive:
            total, p = self.known[:, 0] * logsumexp(s, axis=1), softmax(s, axis=1)
        else:
            total, p = np.sum(self.known * np.logaddexp(0, s), axis=1), expit(s)
        return total - np.sum(s * self.true, axis=1), self.known * p - self.true


class Span(NamedTuple):
    """Features z(x) = k(x, centres) back; `price` (r,) is the penalty of each."""

    kernel: Gaussian
    centers: np.ndarray
    back: np.ndarray
    price: np.ndarray

    def features(self, U: np.ndarray) -> np.ndarray:
        return _cross(self.kernel, U, self.centers) @ self.back

    def linear(self, dual: np.ndarray) -> np.ndarray:
        """(T, d) coefficients of the inputs in scores with coefficients (T, M) of the centres."""
        return TREND / self.centers.shape[1] * dual @ self.centers

    def slopes(self, U: np.ndarray, W: np.ndarray) -> np.ndarray:
        """(d,) root mean squares of the scores' slopes along each input, over rows and labels."""
        K, unit = self.kernel(U, self.centers), 2 / self.kernel.scales(U.shape[1]) ** 2
        squares = np.zeros(U.shape[1])
        dual = W[:, :-1] @ self.back.T
        for a, linear in zip(dual, self.linear(dual)):
            part = K * a
            slope = unit * (part @ self.centers - part.sum(axis=1)[:, None] * U) + linear
            squares += np.mean(slope**2, axis=0)
        return np.sqrt(squares)


def _cross(kernel: Gaussian, U: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return np.asarray(kernel(U, centers)) + TREND / U.shape[1] * U @ centers.T


def scores_of(Z: np.ndarray, price: np.ndarray, counts: Counts) -> np.ndarray:
    """(T, r + 1) coefficients of largest penalised likelihood of features Z (n, r), intercept last."""
    T, root = counts.true.shape[1], np.sqrt(BENT * len(Z))
    Z, price = np.hstack([Z, np.full((len(Z), 1), 1 / root)]), np.r_[price, FREE / root**2]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        W = flat.reshape(T, -1)
        values, slope = counts.loss(Z @ W.T)
        return float(values.sum() + 0.5 * np.sum(price * W**2)), (slope.T @ Z + price * W).ravel()

    found = minimize(loss, np.zeros(T * Z.shape[1]), jac=True, method="L-BFGS-B", options=OPTIONS)
    W = found.x.reshape(T, -1)
    W[:, -1] /= root
    if not counts.exclusive:
        k, n = counts.true.sum(axis=0), counts.known.sum(axis=0)
        never = (k == 0) | (k == n)  # varies: its frequency is all that is known, as in `constant_log_odds`
        W[never], W[never, -1] = 0.0, np.log((k + 1) / (n - k + 1))[never]
    return W


def span(counts: Counts, setting: Setting, most: int) -> Span:
    """The features of a setting, its inputs' weights learned from these rows."""
    n, d = counts.U.shape
    centers = counts.U[np.sort(np.random.default_rng(0).permutation(n)[:most])]
    weight = np.ones(d)
    for step in range(setting.steps + 1):
        kernel = Gaussian(setting.length * np.sqrt(d) / weight)
        s, V = np.linalg.eigh(_cross(kernel, centers, centers))
        keep = s > CUT * s[-1]
        back = V[:, keep] / np.sqrt(s[keep])
        Z = _cross(kernel, counts.U, centers) @ back
        s, V = np.linalg.eigh(Z.T @ (Z * counts.known.mean(axis=1)[:, None]))
        size = np.sqrt(BENT * np.maximum(s, 0) + setting.penalty)
        found = Span(kernel, centers, back @ (V / size), setting.penalty / size**2)
        if step < setting.steps:
            slopes = found.slopes(counts.U, scores_of(Z @ (V / size), found.price, counts))
            weight = np.maximum(slopes / np.sqrt(np.mean(slopes**2)), LEAST) if slopes.any() else weight
    return found


def chosen(counts: Counts, penalties: Sequence[float]) -> Choice | None:
    """The setting of least held-out log loss and how many centres are affordable; None: linear scores, with the better of
    these penalties, are as good."""
    n, T = counts.true.shape
    most = int(min(CENTERS, n, WORK / (PASSES * n * T)))
    if n < LEAST_ROWS or most < min(FEW, n):
        return None
    rng = np.random.default_rng(0)
    part = counts.take(np.sort(rng.permutation(n)[:MOST_ROWS]))
    if T > MOST_LABELS and not counts.exclusive:  # from the rarest to the most frequent
        some = np.argsort(part.true.sum(axis=0), kind="stable")[np.linspace(0, T - 1, MOST_LABELS).astype(int)]
        part = part._replace(true=part.true[:, some], known=part.known[:, some])
    fold = rng.permutation(len(part.U)) % FOLDS

    def held_out(setting: Setting | float) -> np.ndarray:
        out = np.empty(len(fold))
        for k in range(FOLDS):
            train, test = part.take(np.flatnonzero(fold != k)), part.take(np.flatnonzero(fold == k))
            if isinstance(setting, Setting):
                basis = span(train, setting, min(most, MOST_CENTERS))
                Z, new, price = basis.features(train.U), basis.features(test.U), basis.price
            else:
                Z, new, price = train.U, test.U, np.full(part.U.shape[1], setting)
            W = scores_of(Z, price, train)
            out[fold == k] = test.loss(new @ W[:, :-1].T + W[:, -1])[0]
        return out

    linear = min((held_out(penalty) for penalty in penalties), key=lambda loss: float(loss.sum()))
    best = Setting(1.0, 0.1, 0)
    losses = {best: held_out(best)}
    for name, values in (("length", LENGTHS), ("penalty", PENALTIES), ("steps", STEPS), ("penalty", PENALTIES)):
        for value in values:
            other = Setting(**{**best._asdict(), name: value})
            losses[other] = losses[other] if other in losses else held_out(other)
        best = min(losses, key=lambda setting: float(losses[setting].sum()))
        gain = linear - losses[best]
        if name == "penalty" and gain.mean() <= CLEAR * gain.std() / np.sqrt(len(gain)):
            return None
    return best, most

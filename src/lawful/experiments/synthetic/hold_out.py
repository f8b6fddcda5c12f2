"""The paper's selection: sigma, lambda (and delta or mu) jointly, by the error on 30 % of the rows after decoding.

A table of 900 ridge regressions gives a_t(x) and b_t(x) at the held-out rows. STL takes the pair with the least error of b.
NL-MTL takes the least error after projection, its variants jointly with delta or mu. The paper does not say whether sigma and
lambda are chosen before or after the projection, so both readings are kept.

Where a_t(x) <= 1e-8 at a held-out input the printed b/a is rounding noise; such candidates are not decoded. With different
weights of the outputs the projection under l_mu is another one for each mu; the search uses that of the exact law for all (the
weights differ little), and the answer for the chosen mu is decoded exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lawful.experiments.synthetic._curves import STEPS, relaxed_errors
from lawful.experiments.synthetic.draw import Trial
from lawful.experiments.synthetic.kernel import gaussian
from lawful.folds import Fold, make_folds
from lawful.losses import Square
from lawful.losses.quadratic import TINY
from lawful.surrogates import KernelRidge

SIGMAS, LAMS = np.logspace(-2, 2, 30), np.logspace(-9, 0, 30)
RELAXED = np.logspace(-5, 5, 30)  # delta and mu
METHODS = ("NL-MTL", "NL-MTL[R]", "NL-MTL[P]")
SHAPES = {  # (u, v, s, h) of the curve that a law describes, in the notation of `_curves`
    "circle": np.array([0.0, 1.0, 1.0, 0.0]),
    "lemniscate": np.array([1.0, 0.0, 0.0, 0.5]),
    "lemniscate_tall": np.array([1.0, 0.0, 0.0, 1.0]),
    "lemniscate_printed": np.array([1.0, 0.0, 0.0, 0.5]),  # the printed equation is that of `lemniscate`
}


@dataclass(frozen=True)
class Table:
    """Scores a, b (900, m, 2) of the held-out rows, sigma after sigma; their labels y (m, 2), zero where not `seen`."""

    a: np.ndarray
    b: np.ndarray
    y: np.ndarray
    seen: np.ndarray
    fold: Fold

    def pair(self, k: int) -> tuple[float, float]:
        """(sigma, lambda) of candidate k."""
        return float(SIGMAS[k // len(LAMS)]), float(LAMS[k % len(LAMS)])

    def free(self) -> np.ndarray:
        """(900,) held-out errors of plain ridge regression: STL takes the least."""
        return (np.where(self.seen, self.b - self.y, 0.0) ** 2).sum(axis=(1, 2))


def table(trial: Trial) -> Table:
    seen = ~np.isnan(trial.Y)
    fold = make_folds(0.3, trial.X, seen, ["y1", "y2"], trial.seed)[0]  # type: ignore[index]
    tasks = trial.tasks.encoded(Square())
    lams = np.tile(LAMS[:, None], (1, 2))
    parts = []
    for sigma in SIGMAS:
        (held,) = KernelRidge(gaussian(sigma), intercept=False).held_out(tasks, [fold], lams=lams)
        parts.append(np.stack(held.scores, axis=2))  # (lambda, row, task, encoding)
    scores = np.concatenate(parts)
    at = fold[1]
    return Table(scores[..., 0], scores[..., 1], np.where(seen, trial.Y, 0.0)[at], seen[at], fold)


@dataclass(frozen=True)
class Choice:
    """A candidate of the table and the delta or mu that goes with it (None: the exact law)."""

    candidate: int
    relaxed: float | None = None


def search(held: Table, law: str, norm: str) -> dict[str, dict[str, Choice]]:
    """Choices of NL-MTL, NL-MTL[R] and NL-MTL[P]; the first of equals, and the strictest.

    "paper": sigma and lambda by the error after decoding, jointly with delta or mu. "ridge": sigma and lambda by the error
    before decoding, which are those of STL, then delta or mu by the error after it.
    """
    usable = np.flatnonzero((held.a > TINY).all(axis=(1, 2)))
    shape = SHAPES[law]
    t = 2 * np.pi * np.arange(STEPS) / STEPS
    grid = np.c_[shape[0] * np.sin(t) + shape[1] * np.cos(t), shape[2] * np.sin(t) + shape[3] * np.sin(2 * t)]
    seen = held.seen.astype(float)
    sums = relaxed_errors(held.a[usable], held.b[usable], held.y, seen, shape, grid, RELAXED, norm == "euclidean")
    families = dict(zip(METHODS, np.split(sums, [1, 1 + len(RELAXED)], axis=1)))
    alone = int(np.argmin(held.free()[usable]))
    found: dict[str, dict[str, Choice]] = {"paper": {}, "ridge": {}}
    for name, part in families.items():
        joint = np.unravel_index(int(np.argmin(part)), part.shape)
        for selection, (k, r) in {"paper": joint, "ridge": (alone, np.argmin(part[alone]))}.items():
            found[selection][name] = Choice(int(usable[k]), None if name == "NL-MTL" else float(RELAXED[r]))
    return found

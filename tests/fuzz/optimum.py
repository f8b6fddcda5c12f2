"""Is there a better point? A random search on the law, which proves that an answer is not the best one and never that it is.

For up to three outputs and a quadratic objective whose value is known without the library: points of the law are made by
`law.snap` around the answer and over the law as a whole, checked by `law.off`, and the best of them is improved by ever smaller
steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ON = 1e-9  # a rival must obey the law this well
BETTER = 1e-4  # and cost less than the answer by this, relatively
POPULATION, ROUNDS = 48, 12


def improved(call: Any, c: np.ndarray, status: np.ndarray, verdict: Any, rng: np.random.Generator) -> None:
    """Note answers that are not optimal, and laws that are called infeasible although a point was found."""
    if call.law.T > 3 or call.law.free or call.law.tube or call.law.ambiguous or call.value(c) is None or rng.random() > 0.1:
        return
    if getattr(call, "decoder", None) is not None:  # averages mean something else
        return
    row = int(rng.integers(len(c)))
    if not np.isfinite(c[row]).all() or status[row] in ("low_confidence", "averaged"):
        return
    best, lowest = search(call, c, row, rng)
    if best is None:
        return
    if status[row] == "infeasible":
        verdict.notes.append(("missed", f"row {row} is called infeasible, but {best.tolist()} obeys the law"))
        return
    mine = call.value(c)[row]
    slack = 1e-9 * _size(call, c, row)
    if mine > lowest + BETTER * abs(lowest) + slack:  # values of doubtful rows may be negative
        kind = "not optimal" if status[row] == "ok" else f"not optimal, and {status[row]}"
        verdict.notes.append((kind, f"row {row} has value {mine:.6g}, but {best.tolist()} has {lowest:.6g}"))


def _size(call, c, row):
    w = call.weights()[row]
    at = np.abs(c[row]) + call.law.size
    return float(np.sum(w * at**2) if w.ndim == 1 else at @ np.abs(w) @ at)


def search(call: Any, c: np.ndarray, row: int, rng: np.random.Generator) -> tuple[np.ndarray | None, float]:
    law, T = call.law, call.law.T
    X = None if call.X is None else np.repeat(call.X[row][None], POPULATION, axis=0)
    spread = np.maximum(law.size, 1e-3 * np.abs(c[row]))
    start = np.concatenate([c[row] + 0.3 * spread * rng.standard_normal((POPULATION // 3, T)),
                            law.middle + 2 * law.size * rng.standard_normal((POPULATION - POPULATION // 3, T))])  # fmt: skip
    best, lowest = None, np.inf
    step, rows = 1.0, np.full(POPULATION, row)
    for _ in range(ROUNDS):
        found = law.snap(start, X, rng)
        obeys = np.isfinite(found).all(axis=1)
        found = np.where(obeys[:, None], found, 0.0)
        obeys &= law.off(found, X) <= ON
        values = np.where(obeys, call.value(found, rows), np.inf)
        if values.min() < lowest:
            best, lowest = found[values.argmin()], float(values.min())
        if best is None:
            return None, np.inf
        step *= 0.45
        start = best + step * spread * rng.standard_normal((POPULATION, T))
    return best, lowest

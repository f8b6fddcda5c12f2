"""Which rows are held out, so that every task keeps observations to learn from."""

from __future__ import annotations

from typing import Any

import numpy as np

Fold = tuple[np.ndarray, np.ndarray]  # rows to learn from, rows held out

ADVICE = "give 'loo', a number of folds, a fraction between 0 and 1, a splitter with split(X), or a list of (train, test)"


def make_folds(cv: Any, X: np.ndarray, observed: np.ndarray, names: list[str], random_state: Any = None) -> list[Fold] | None:
    """None for leave-one-out, else (train, held out) row numbers; `observed` (n, T) says which labels there are.

    Own folds are dealt in the order of the pattern of observed outputs, ties at random, so each has its share of every
    pattern; a row with the only observation of a task is never held out. Given folds are checked.
    """
    n = len(observed)
    if isinstance(cv, str):
        if cv == "loo":
            return None
        raise ValueError(f"unknown cv {cv!r}; {ADVICE}")
    rng = np.random.default_rng(0 if random_state is None else random_state)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= n:
            raise ValueError(f"cannot make cv={cv} folds of {n} samples: n_samples={n} would need 2 <= cv <= {n}")
        fold = deal(observed, np.arange(n) % int(cv), rng)
        folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(int(cv))]
        folds = [f for f in folds if f[1].size]
    elif isinstance(cv, float | np.floating):
        if not 0 < cv < 1:
            raise ValueError(f"cv={cv} holds out no usable fraction; {ADVICE}")
        # 1 at round(cv * n) evenly spaced places
        places = (np.floor((np.arange(n) + 1) * cv + 0.5) - np.floor(np.arange(n) * cv + 0.5)).astype(int)
        held = deal(observed, places, rng, spare=0)
        folds = [(np.flatnonzero(held == 0), np.flatnonzero(held == 1))] if held.any() else []
    elif hasattr(cv, "split") or np.iterable(cv):
        try:
            pairs = list(cv.split(X, np.zeros(n)) if hasattr(cv, "split") else cv)
        except (TypeError, ValueError) as error:
            raise ValueError(f"cv={cv!r} will not do ({error}); {ADVICE}") from error
        if not pairs:
            raise ValueError(f"cv={cv!r} gives no folds (an iterator gives them only once: pass a list); {ADVICE}")
        folds = [as_fold(pair, k, n) for k, pair in enumerate(pairs)]
    else:
        raise ValueError(f"cv={cv!r} will not do; {ADVICE}")
    if not folds:
        raise ValueError(f"cv={cv!r} holds out nothing of {n} samples: n_samples={n} is too few; {ADVICE}")
    check_folds(folds, observed, names)
    return folds


def as_fold(pair: Any, k: int, n: int) -> Fold:
    """(train, test) as row numbers; masks of n truth values become the rows they choose."""
    try:
        parts = [] if isinstance(pair, str) else [np.asarray(part) for part in pair]
    except (TypeError, ValueError) as error:
        raise ValueError(f"fold {k} of cv is no pair of row numbers ({error}); {ADVICE}") from error
    if len(parts) != 2:
        raise ValueError(f"fold {k} of cv, {pair!r:.60}, is no pair (train, test); {ADVICE}")
    out = []
    for part in parts:
        if part.ndim == 1 and part.size == 0:
            part = part.astype(int)
        if part.ndim != 1 or part.dtype.kind not in "biu":
            raise ValueError(
                f"fold {k} of cv names its rows by an array of shape {part.shape} and type {part.dtype}; "
                f"give row numbers, or a mask of {n} truth values"
            )
        if part.dtype.kind == "b":
            if part.size != n:
                raise ValueError(f"fold {k} of cv has a mask of {part.size} truth values for {n} rows; give one for each")
            part = np.flatnonzero(part)
        out.append(part.astype(int))
    return out[0], out[1]


def deal(observed: np.ndarray, labels: np.ndarray, rng: np.random.Generator, spare: int = -1) -> np.ndarray:
    """`labels` given to the rows sorted by their pattern; the label `spare` for those that no fold may hold out.

    A task all of whose rows have the same label would vanish when that label is held out: one of them becomes spare.
    """
    n = len(observed)
    order = np.lexsort((rng.permutation(n), *observed.T[::-1]))
    fold = np.empty(n, dtype=int)
    fold[order] = labels
    for t in range(observed.shape[1]):
        rows = np.flatnonzero(observed[:, t])
        if rows.size and np.all(fold[rows] == fold[rows[0]]):
            fold[rows[0]] = spare
    return fold


def check_folds(folds: list[Fold], observed: np.ndarray, names: list[str]) -> None:
    n = len(observed)
    for k, (train, test) in enumerate(folds):
        if train.size == 0 or test.size == 0:
            raise ValueError(f"fold {k} has {train.size} rows to learn from and {test.size} held out; both need at least one")
        if min(train.min(), test.min()) < 0 or max(train.max(), test.max()) >= n:
            raise ValueError(f"fold {k} names rows outside 0 ... {n - 1}; the data have {n} rows")
        if np.intersect1d(train, test).size:
            raise ValueError(f"fold {k} holds out rows it learns from; the two parts must be disjoint")
        lost = [names[t] for t in np.flatnonzero(~observed[train].any(axis=0))]
        if lost:
            raise ValueError(
                f"fold {k} leaves output {', '.join(map(repr, lost))} without any observation to learn from; "
                "give an integer cv (its folds are drawn so that every output keeps some) or other folds"
            )
    if not any(observed[test].any() for _, test in folds):
        raise ValueError("no held-out row has an observed output; there is nothing to choose by")

"""The first pass over a table: how much was observed, in what patterns of gaps, and a sample of the rows.

The sample is uniform and without replacement: every row draws a key, and those with the smallest keys are kept, which parts of
the table can do before they are merged. A partition's keys follow from its number alone. An output that is rarely observed
keeps the smallest keys among its own rows too, so that none is left without labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lawful.scale.tables import Form, Rows, read
from lawful.surrogates.statistics import PATTERNS

__all__ = ["Look", "look", "merge"]


@dataclass
class Look:
    """Sums over rows, and a sample of at most `size` (twice as many where outputs are rare)."""

    size: int
    n_seen: int
    counts: np.ndarray  # (T,) observations
    weights: np.ndarray  # (T,) their weights
    together: tuple[int, ...]  # (T,) tasks with the same number have the same rows and weights
    level: bool  # the tasks observed on a row have the same weight there
    patterns: frozenset[bytes] | None  # which tasks are observed together; None: too many to tell
    keys: np.ndarray
    rows: Rows

    @property
    def groups(self) -> list[list[int]]:
        return [[t for t, g in enumerate(self.together) if g == k] for k in sorted(set(self.together))]

    @property
    def cells(self) -> int:
        """How many Gram matrices sums need."""
        groups = len(self.groups)
        return groups if groups == 1 or not self.most else len(self.patterns or ())

    @property
    def most(self) -> int:
        """`most` of `statistics.layers`: by patterns of gaps, or by groups (0)."""
        return PATTERNS if self.level and self.patterns is not None else 0


def look(at: int, x: Any, y: Any, w: Any, form: Form, size: int, seed: int) -> Look:
    """At one partition."""
    rows = read(at, x, y, w, form)
    seen = np.flatnonzero(rows.W.any(axis=1))
    X, Y, W = rows.X[seen], rows.Y[seen], rows.W[seen]
    found = frozenset(row.tobytes() for row in np.unique(np.packbits(W > 0, axis=1), axis=0))
    level = bool(np.all((W == 0) | (W.max(axis=1, initial=0.0)[:, None] == W)))
    together = _numbered([column.tobytes() for column in np.ascontiguousarray(W.T)])
    keys = np.random.default_rng([seed, at]).random(len(rows.X))[seen]
    counts = (W > 0).sum(axis=0).astype(float)
    return _thinned(Look(size, len(seen), counts, W.sum(axis=0), together, level, _few(found), keys, Rows(X, Y, W)))


def merge(parts: list[Look]) -> Look:
    """The look at all of these, in their order."""
    known = [part.patterns for part in parts]
    rows = Rows(*(np.concatenate([getattr(part.rows, name) for part in parts]) for name in ("X", "Y", "W")))
    return _thinned(
        Look(
            parts[0].size,
            sum(part.n_seen for part in parts),
            np.sum([part.counts for part in parts], axis=0),
            np.sum([part.weights for part in parts], axis=0),
            _numbered(list(zip(*(part.together for part in parts)))),
            all(part.level for part in parts),
            None if None in known else _few(frozenset().union(*(part.patterns or () for part in parts))),
            np.concatenate([part.keys for part in parts]),
            rows,
        )
    )


def _numbered(labels: list[Any]) -> tuple[int, ...]:
    """Equal labels get equal numbers."""
    known: dict[Any, int] = {}
    return tuple(known.setdefault(label, len(known)) for label in labels)


def _few(patterns: frozenset[bytes]) -> frozenset[bytes] | None:
    return patterns if len(patterns) <= PATTERNS else None


def _thinned(found: Look) -> Look:
    """The same with as few rows as the sample needs, in the order of the table."""
    T, kept = found.rows.Y.shape[1], np.zeros(len(found.keys), dtype=bool)
    order = np.argsort(found.keys)
    kept[order[: found.size]] = True
    for t in range(T):
        own = order[found.rows.W[order, t] > 0]
        kept[own[: max(found.size // T, 1)]] = True
    found.keys = found.keys[kept]
    found.rows = Rows(found.rows.X[kept], found.rows.Y[kept], found.rows.W[kept])
    return found

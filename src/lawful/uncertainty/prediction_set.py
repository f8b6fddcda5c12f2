"""PredictionSet: the points of the law that a conformal model does not exclude, one set for each input."""

from __future__ import annotations

from functools import cached_property
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np

from lawful._array import to_numpy
from lawful._checks import check_count
from lawful._html import card, table
from lawful.uncertainty.curves import Arc, hulls
from lawful.uncertainty.drawing import arcs_through
from lawful.uncertainty.levels import Decode, Level, Ranks, lawful_parts
from lawful.uncertainty.patches import bounds, uniform_points, volumes
from lawful.uncertainty.target import Target, modes, scattered

CELLS = 2**22  # numbers in the largest array of one batch
STEP = 1 / 24  # of the half width of a set along a curve
ENUMERATE = 7  # items whose orders are listed: 5040
MANY = 8  # rows and outputs that a notebook shows


class PredictionSet:
    """{c in C(x) : c is not among the alpha least likely}, for m inputs. Made by `ConformalRegressor.predict_set`.

    A set is an arc or several on a curve, a patch on a surface, a list of points of a finite set, some of the orders of a few
    items. `alpha`, `center` (m, T), the decoded predictions, and `shape` (m, T) are plain attributes; `kind` says what the sets
    are: "points", "orders", "curves" or "surfaces".

    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> Y = np.c_[np.cos(X), np.sin(X)]
    >>> from lawful import ConformalRegressor, ConstrainedRegressor, KernelRidge, Sphere
    >>> base = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(lam=1e-3))
    >>> sets = ConformalRegressor(base, alpha=0.2, random_state=0).fit(X, Y).predict_set(X[:3])
    >>> sets.contains(Y[:3]).shape, sets.volume().shape, sets.intervals().shape
    ((3,), (3,), (3, 2, 2))
    """

    def __init__(self, X: np.ndarray, C: Any, ranks: Ranks, center: np.ndarray, decode: Decode, strict: bool, names: list[str]):
        self.X, self.C, self.ranks, self.center, self.names = X, C, ranks, center, names
        self._decode, self._strict = decode, strict
        self.alpha, self.shape = ranks.alpha, center.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{len(self)} prediction sets ({self.kind}), alpha={self.alpha:g}>"

    def _repr_html_(self) -> str:
        """For notebooks: what the sets are, and of the first of them the bounds of each output."""
        few = np.arange(min(len(self), MANY))
        first = PredictionSet(
            self.X[few], self.C.rows(few), self.ranks.rows(few), self.center[few], self._decode, self._strict, self.names
        )
        said = f"{len(self)} prediction sets ({self.kind}) that hold all outputs together with probability {1 - self.alpha:.4g}"
        note = f"{self.ranks.n} calibration rows are too few for that: each set is the whole law" if self.ranks.whole else ""
        if self.kind == "orders":
            D = self.C.n_items_
            columns, rows = ["certain pairs"], [[f"{k} of {D * (D - 1) // 2}"] for k in first.order().sum(axis=(1, 2))]
        else:
            shown = len(self.names) if len(self.names) <= MANY else MANY - 1
            cut = ["…"] * (shown < len(self.names))
            ends = first.intervals()[:, :shown]
            columns = [*self.names[:shown], *cut]
            rows = [[*(f"{low:.4g} to {high:.4g}" for low, high in row), *cut] for row in ends]
        more = f"<div>… and {len(self) - MANY} more rows</div>" if len(self) > MANY else ""
        return card(said, f"<div>{note}</div>" * bool(note) + table(columns, rows) + more)

    @cached_property
    def kind(self) -> str:
        if hasattr(self.C, "pairs"):
            return "orders"
        if hasattr(self.C, "points_"):
            return "points"
        return "curves" if self._target.surface.dimension == 1 and self._target.surface.curved else "surfaces"

    # ------------------------------------------------------------------ membership

    def contains(self, X: Any, Y: Any = None) -> np.ndarray:
        """(m,) one bool a row: whether the label Y of each row is in its set; X, the inputs of the sets, may be left out.

        NaN in Y: whether some point of the set agrees with the observed outputs (a row without any is contained). Labels off
        the law are not in the set; where the calibration labels did not obey the law either (`ConformalRegressor.labels_` is
        "noisy"), it is asked of their lawful part, the point of C(x) nearest to them.
        """
        if Y is None:
            Y = X
        elif np.shape(X) != np.shape(self.X) or not np.array_equal(np.asarray(X, dtype=float), self.X, equal_nan=True):
            raise ValueError("PredictionSet.contains: these are sets of other inputs; call predict_set(X), or leave X out")
        Y = np.asarray(Y, dtype=float)
        Y = Y[:, None] if Y.ndim == 1 and self.shape[1] == 1 else Y
        if Y.shape != self.shape:
            raise ValueError(f"PredictionSet.contains: labels of shape {Y.shape} will not do; give {self.shape}")
        level = self.ranks.levels[0]
        points, on = lawful_parts(level.F, self.C, Y, self._decode)
        known = np.isfinite(points).all(axis=1)
        inside = self.ranks.inside(np.where(known[:, None], points, self.center))
        return np.where(known, inside & (on | (not self._strict)), ~np.isfinite(Y).any(axis=1))

    # ------------------------------------------------------------------ size and shape

    def volume(self, return_error: bool = False, n: int = 256, random_state: Any = 0) -> Any:
        """(m,) the size of each set in the outputs' own units: number of points, arc length, area, volume.

        With `return_error` also its standard error: 0 where it is counted, in closed form or measured along curves; elsewhere
        `n` points a row are used. Where calibration rows are too few for alpha, the set is the whole law, and its size infinite
        unless it is counted, whatever that of the law is; bounds then are those that the law gives to single outputs.
        """
        if self.kind in ("points", "orders"):
            value, error = self._members_of(lambda mask: mask.sum(axis=1)).astype(float), np.zeros(len(self))
        elif self.ranks.whole:
            value, error = np.full(len(self), np.inf), np.zeros(len(self))
        elif self.kind == "curves":
            value = np.array([sum(arc.length for arc in arcs) for arcs in self.arcs])
            error = np.zeros(len(self))
        else:
            rng = np.random.default_rng(random_state)
            value, error = volumes(self._target, self._best, self._radius, self._inside, check_count("volume", "n", n), rng)
        return (value, error) if return_error else value

    def intervals(self) -> np.ndarray:
        """(m, T, 2) the smallest and largest value of each output in the set: bounds that hold for all outputs together.

        Where the law has inequalities besides equations these only clip single outputs: the bounds hold, but can be wide.
        """
        if self.kind in ("points", "orders"):
            return self._members_of(self._hull)
        if self.ranks.whole:
            out = np.stack([np.full(self.shape, -np.inf), np.full(self.shape, np.inf)], axis=2)
        elif self.kind == "curves":
            out = self._hull_of_arcs()
        else:
            out = self._hull_of_levels()
        low, high = self._limits()
        return np.clip(out, low[:, None], high[:, None])

    def sample_set(self, n: int = 100, random_state: Any = None) -> np.ndarray:
        """(m, n, T) points of each set, uniform in the measure of `volume`. They show its shape; they carry no probability."""
        n, rng = check_count("sample_set", "n", n), np.random.default_rng(random_state)
        if self.kind in ("points", "orders"):
            pick = self._members_of(lambda mask: np.array([rng.choice(np.flatnonzero(row), n) for row in mask]))
            return self._points[pick]
        if self.ranks.whole:
            raise ValueError(
                f"sample_set: {self.ranks.n} calibration scores are too few for alpha={self.alpha:g}, so the set is all of the "
                f"law; {int(np.ceil(1 / self.alpha)) - 1} would do, or a larger alpha"
            )
        if self.kind == "curves":
            return self._on_arcs(n, rng)
        return uniform_points(self._target, self._best, self._radius, self._inside, n, rng)

    # ------------------------------------------------------------------ finite sets and orders

    @cached_property
    def _points(self) -> np.ndarray:
        if self.kind == "points":
            return np.asarray(to_numpy(self.C.points_), dtype=float)
        D = self.C.n_items_
        if D > ENUMERATE:
            raise TypeError(
                f"PredictionSet: {D} items have {factorial(D):.1e} orders, too many to list; `order()` gives the pairs that "
                "are certain, and `contains` asks about single orders"
            )
        return self.C.encode(np.array(list(permutations(range(D)))))

    def _members_of(self, use: Any) -> np.ndarray:
        """What `use` makes of the masks (rows, N) of points in the sets, batch by batch."""
        size = max(1, CELLS // (len(self._points) * self.shape[1]))
        parts = []
        for start in range(0, len(self), size):
            rows = np.arange(start, min(start + size, len(self)))
            parts.append(use(self.members(rows)))
        return np.concatenate(parts) if parts else np.empty(0)

    def members(self, rows: Any = None) -> np.ndarray:
        """(m, N) which of the points of a finite set (`C.points_`), or of the orders of a few items, are in each set.

        rows: numbers of some of the sets; None: all.
        """
        rows = np.arange(len(self)) if rows is None else np.atleast_1d(rows)
        mask = self.ranks.rows(rows).inside_all(self._points)
        if len(self.ranks.levels) == 1:  # the best point is in, whatever rounding says
            cost = np.asarray(to_numpy(self.ranks.levels[0].rows(rows).F.costs(self._points)))
            mask[np.arange(len(rows)), np.argmin(cost, axis=1)] = True
        return mask

    def _hull(self, mask: np.ndarray) -> np.ndarray:
        low = np.where(mask[:, :, None], self._points, np.inf).min(axis=1)
        high = np.where(mask[:, :, None], self._points, -np.inf).max(axis=1)
        return np.stack([low, high], axis=2)

    def order(self) -> np.ndarray:
        """(m, D, D) of sets of orders: True where item p comes before item q in all of them, a partial order.

        Exact for up to 7 items. For more, a pair is certain when even comparisons that need not agree with each other could
        not reverse it within the set: what is said is true, but there may be more.
        """
        if self.kind != "orders":
            raise TypeError(f"PredictionSet.order: these are sets of {self.kind}, not of orders; see intervals()")
        D, (p, q) = self.C.n_items_, self.C.pairs().T
        out = np.zeros((len(self), D, D), bool)
        if D <= ENUMERATE:
            hull = self.intervals()
            sign = np.where(hull[:, :, 0] == hull[:, :, 1], hull[:, :, 0], 0.0)
        else:
            sign = self._certain_pairs()
        out[:, p, q], out[:, q, p] = sign > 0, sign < 0
        for k in range(D):  # what follows from it
            out |= out[:, :, k, None] & out[:, None, k, :]
        return out

    def _certain_pairs(self) -> np.ndarray:
        level, radius = self.ranks.levels[0], self.ranks.radii()[0]
        if len(self.ranks.levels) > 1 or not np.isfinite(radius):
            return np.zeros(self.shape)
        values = np.array([-1.0, 0.0, 1.0]) if getattr(self.C, "ties", False) else np.array([-1.0, 1.0])
        cost = np.stack([np.asarray(to_numpy(level.F.table(t, values))) for t in range(self.shape[1])], axis=1)
        least = cost.min(axis=2)
        total = least.sum(axis=1, keepdims=True)
        out = np.zeros(self.shape)
        for sign, ahead in ((1.0, -1), (-1.0, 0)):
            others = np.delete(cost, ahead, axis=2).min(axis=2)  # the pair is not in this order
            out = np.where(total - least + others - level.low[:, None] > radius**2, sign, out)
        return out

    # ------------------------------------------------------------------ curves and surfaces

    @cached_property
    def _target(self) -> Target:
        return Target.of(self.ranks.levels[0].F, self.C, self.center)

    @cached_property
    def _best(self) -> np.ndarray:
        return self.center / self._target.surface.scale

    @cached_property
    def _radius(self) -> np.ndarray:
        """(m,) how far the sets reach from the prediction of the first model, in its standard deviations."""
        radius = np.zeros(len(self))
        first = self.ranks.levels[0]
        for level, r in zip(self.ranks.levels, self.ranks.radii()):
            away = first.score(level.best)
            radius = np.maximum(radius, r + away)
        return np.where(np.isfinite(radius) & (radius > 0), radius, 1e-12)

    def _inside(self, rows: np.ndarray, c: np.ndarray) -> np.ndarray:
        return self.ranks.rows(rows).inside(c)

    @cached_property
    def arcs(self) -> list[list[Arc]]:
        """For sets on curves: the arcs of each row. `arc.z` are points in units of the surface; see `curve_points`."""
        target, surface = self._target, self._target.surface
        rng = np.random.default_rng(0)
        found = modes(target, self._best, scattered(target, self._best, rng, 4))
        starts = [*found, *(level.best / surface.scale for level in self.ranks.levels[1:])]
        t = surface.bases(self._best)[0][:, :, 0]
        width = self._radius / np.sqrt(np.einsum("it,its,is->i", t, target.P, t))
        return arcs_through(target, starts, STEP * width, lambda rows, z: ~self._inside(rows, z * surface.scale), 14, len(self))

    def curve_points(self, row: int) -> list[np.ndarray]:
        """The arcs of one row as lists of points (J, T), for plots."""
        return [arc.z * self._target.surface.scale for arc in self.arcs[row]]

    def _on_arcs(self, n: int, rng: np.random.Generator) -> np.ndarray:
        m, T = self.shape
        z = np.repeat(self._best[:, None, :], n, axis=1)
        for i, arcs in enumerate(self.arcs):
            lengths = np.cumsum([arc.length for arc in arcs]) if arcs else np.zeros(1)
            if not lengths[-1] > 0:
                continue
            place = rng.random(n) * lengths[-1]
            which = np.minimum(np.searchsorted(lengths, place, side="right"), len(arcs) - 1)
            for k, arc in enumerate(arcs):
                mine = which == k
                s = place[mine] - (lengths[k - 1] if k else 0.0)
                z[i, mine] = np.stack([np.interp(s, arc.s, arc.z[:, t]) for t in range(T)], axis=1)
        surface = self._target.surface.rows(np.repeat(np.arange(m), n))
        near = z.reshape(-1, T)
        c, found = surface.back(near, surface.bases(near)[1])
        rows = np.repeat(np.arange(m), n)
        found &= self._inside(rows, np.where(found[:, None], c, self._best[rows]) * surface.scale)
        return (np.where(found[:, None], c, self._best[rows]) * surface.scale).reshape(m, n, T)

    def _hull_of_arcs(self) -> np.ndarray:
        low, high = self.center.copy(), self.center.copy()
        arcs = [arc for arcs in self.arcs for arc in arcs]
        if arcs:
            rows, (least, most) = np.array([arc.row for arc in arcs]), hulls(arcs, self._target.surface.scale)
            np.minimum.at(low, rows, least)
            np.maximum.at(high, rows, most)
        return np.stack([low, high], axis=2)

    def _hull_of_levels(self) -> np.ndarray:
        """The union of the level sets of all models holds the set."""
        out = None
        for level, radius in zip(self.ranks.levels, self.ranks.radii()):
            found = self._hull_of(level, radius)
            out = found if out is None else np.stack([np.minimum(out, found)[..., 0], np.maximum(out, found)[..., 1]], axis=2)
        assert out is not None
        return out

    def _hull_of(self, level: Level, radius: float) -> np.ndarray:
        if not np.isfinite(radius):
            return np.stack([np.full(self.shape, -np.inf), np.full(self.shape, np.inf)], axis=2)
        target = Target.of(level.F, level.C, level.best)
        return bounds(target, level.best / target.surface.scale, level.low + radius**2)

    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        """(T,), (T,) what the law says about single outputs, whatever the others do."""
        T = self.shape[1]
        if hasattr(self.C, "interval"):
            ends = np.array([self.C.interval(t) for t in range(T)])
            return ends[:, 0], ends[:, 1]
        if type(self.C).__name__ == "Simplex":
            return np.zeros(T), np.full(T, float(self.C.total))
        return np.full(T, -np.inf), np.full(T, np.inf)

r"""Series that add up, {y = S b}: forecasts of regions and of the country, of products and of the shop.

b are the bottom series and S (T, n) says which of them each series sums. With w the base forecasts and Q = W^{-1}, W the
covariance of their errors, the nearest point of the set is generalised least squares of w on S,

    y = S (S' Q S)^{-1} S' Q w,

which is MinT (Wickramasuriya, Athanasopoulos & Hyndman 2019): the decode of the square loss with that metric. b is found in
units in which S'QS has a unit diagonal, so that a series of millions beside one of units costs no digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from lawful._array import Array, array_namespace, like
from lawful._correlations import shrunk_correlation
from lawful.sets.base import check_width
from lawful.sets.elementary import Affine
from lawful.sets.polyhedra import Polyhedron

FLAT = 1e-13  # curvature below this fraction of the largest, in units of the series, is none
METHODS = ("ols", "wls_struct", "wls_var", "shrink")


def _linear(hierarchy: Hierarchy) -> bool:
    return not hierarchy.nonnegative


class Hierarchy(Polyhedron):
    """{y = S b}: outputs that are sums of bottom series; with `nonnegative`, of bottom series that are never negative.

    Parameters
    ----------
    S : (T, n) summing matrix, one row for each output and one column for each bottom series
    nonnegative : whether every output is >= 0 (with S >= 0 that is: every bottom series)

    Notes
    -----
    `Hierarchy.from_groups` writes S. With Square(metric=W^-1) the decode is MinT, for any covariance W; `covariance` estimates
    the usual ones from residuals, and Square("residual_full") needs none of them.

    Examples
    --------
    >>> import numpy as np
    >>> from lawful import Hierarchy, project
    >>> law = Hierarchy([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])  # total, north, south
    >>> project([[10.0, 4.0, 3.0]], law)
    array([[9., 5., 4.]])
    """

    def __init__(self, S: Any, nonnegative: bool = False) -> None:
        self.S, self.nonnegative = S, nonnegative

    @classmethod
    def from_groups(cls, groups: Mapping[Any, Sequence[Any]], outputs: Sequence[Any], nonnegative: bool = False) -> Hierarchy:
        """From the members of every sum. Members may be sums themselves; outputs that are no sum are bottom series.

        >>> Hierarchy.from_groups({"all": ["north", "south"], "north": ["a", "b"]}, ["all", "north", "south", "a", "b"]).S
        array([[1., 1., 1.],
               [0., 1., 1.],
               [1., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
        """
        if unknown := sorted({str(m) for g, ms in groups.items() for m in (g, *ms)} - {str(o) for o in outputs}):
            raise ValueError(f"Hierarchy.from_groups: {unknown} are not among the outputs; list every sum and every member")
        bottom = [o for o in outputs if o not in groups]
        rows = {o: np.eye(len(bottom))[k] for k, o in enumerate(bottom)}
        left = [g for g in outputs if g in groups]
        while left:
            ready = [g for g in left if all(m in rows for m in groups[g])]
            if not ready:
                raise ValueError(f"Hierarchy.from_groups: {left} are sums of each other in a circle; break it")
            rows |= {g: np.sum([rows[m] for m in groups[g]], axis=0) for g in ready}
            left = [g for g in left if g not in rows]
        return cls(np.array([rows[o] for o in outputs]), nonnegative)

    def _matrix(self) -> np.ndarray:
        S = np.asarray(self.S, dtype=np.float64)
        if S.ndim != 2 or not S.size or not np.isfinite(S).all():
            raise ValueError(f"Hierarchy: S of shape {S.shape} will not do; give a finite (outputs, bottom series) matrix")
        return S

    def _learn(self, Y: Array) -> None:
        S = self._matrix()
        T = len(S)
        check_width("Hierarchy", T, self.n_tasks_)
        # Bottom rows: those of a single series first, so that equations read "total = sum of parts" whenever they can.
        single = np.count_nonzero(S, axis=1) == 1
        order = np.concatenate([np.flatnonzero(single), np.flatnonzero(~single)])
        bottom: list[int] = []
        basis = np.zeros((0, S.shape[1]))
        for t in order:
            rest = S[t] - (S[t] @ basis.T) @ basis
            rest = rest - (rest @ basis.T) @ basis
            if np.linalg.norm(rest) > 1e-10 * np.linalg.norm(S[t]):
                bottom.append(int(t))
                basis = np.concatenate([basis, rest[None] / np.linalg.norm(rest)])
        if len(bottom) == T:
            raise ValueError("Hierarchy: no output is a sum of others; Reals() has no law, Box(lower=0) only bounds")
        upper = [t for t in range(T) if t not in bottom]
        self.basis_ = np.zeros((T, len(bottom)))  # y = basis_ y_bottom
        self.basis_[bottom, np.arange(len(bottom))] = 1.0
        plain = single[bottom].all() and (S[bottom].max(axis=1) == 1).all()
        parts = S[upper][:, np.argmax(S[bottom] != 0, axis=1)] if plain else linalg.lstsq(S[bottom].T, S[upper].T)[0].T
        self.basis_[upper] = parts
        self.A_, self.b_ = np.zeros((len(upper), T)), np.zeros(len(upper))
        self.A_[np.arange(len(upper)), upper] = 1.0
        self.A_[:, bottom] -= parts
        bounded = T if self.nonnegative else 0
        self.G_, self.h_ = -np.eye(T)[:bounded], np.zeros(bounded)
        self.affine_ = Affine(self.A_, 0.0).fit(Y)

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        return True

    @available_if(_linear)
    def nearest(self, c: Array) -> Array:
        return self.affine_.nearest(c)

    @available_if(_linear)
    def project(self, b: Array, a: Array) -> Array:
        return self.affine_.project(b, a)

    @available_if(_linear)
    def project_form(self, Q: Array, w: Array) -> Array:
        """Generalised least squares; directions that Q ignores stay at nearest(w)."""
        xp = array_namespace(Q, w)
        start, S = self.nearest(w), like(self.basis_, w)
        H = xp.matrix_transpose(S) @ (Q @ S)
        unit = xp.sqrt(abs(xp.linalg.diagonal(H)))
        unit = xp.where(unit > 0, unit, xp.ones_like(unit))
        H = (H + xp.matrix_transpose(H)) / 2 / (unit[..., :, None] * unit[..., None, :])
        values, V = xp.linalg.eigh(H)
        curved = values > FLAT * values[..., -1:]
        inverse = xp.where(curved, 1 / xp.where(curved, values, xp.ones_like(values)), xp.zeros_like(values))
        U = (S / unit[..., None, :]) @ V  # the series of each eigenvector
        c = start
        for _ in range(2):  # the second pass is iterative refinement
            if Q.ndim == 2:
                c = c + (((w - c) @ Q) @ U * inverse) @ xp.matrix_transpose(U)
            else:
                force = xp.matrix_transpose(U) @ (Q @ (w - c)[:, :, None])
                c = c + (U @ (inverse[:, :, None] * force))[:, :, 0]
        return c

    def covariance(self, residuals: Any = None, method: str = "shrink") -> np.ndarray:
        """(T, T) covariance W of base forecasts, as the literature on reconciliation has it; Square(metric=inv(W)) takes it.

        "ols": the identity. "wls_struct": a series varies as the number of its parts. "wls_var": mean squared residuals
        (n, T), NaN = missing. "shrink": the same with correlations, shrunk towards 0 (Schaefer & Strimmer 2005).

        >>> law = Hierarchy([[1, 1], [1, 0], [0, 1]])
        >>> law.covariance(method="wls_struct").diagonal()
        array([2., 1., 1.])
        """
        S = self._matrix()
        if method not in METHODS:
            raise ValueError(f"Hierarchy.covariance: unknown method {method!r}; choose one of {', '.join(METHODS)}")
        if method == "ols":
            return np.eye(len(S))
        if method == "wls_struct":
            return np.diag(np.abs(S).sum(axis=1))
        R = np.asarray(residuals if residuals is not None else np.zeros((0, 0)), dtype=np.float64)
        if R.ndim != 2 or R.shape[1] != len(S) or (np.isfinite(R).sum(axis=0) < 2).any():
            raise ValueError(
                f"Hierarchy.covariance: residuals of shape {R.shape} will not do for {method!r}; give (n, {len(S)}), "
                "at least two of each output"
            )
        variance = np.nanmean(R**2, axis=0)
        if method == "wls_var":
            return np.diag(variance)
        rows = [np.flatnonzero(np.isfinite(column)) for column in R.T]
        shrunk = shrunk_correlation([column[idx] for column, idx in zip(R.T, rows)], rows, len(R))
        return shrunk * np.sqrt(np.outer(variance, variance))

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Normal bottom series, or nonnegative ones, summed."""
        if self.nonnegative and (self.basis_ < 0).any():
            return super().sample(n, random_state)
        b = check_random_state(random_state).standard_normal((n, self.basis_.shape[1]))
        return (np.abs(b) if self.nonnegative else b) @ self.basis_.T

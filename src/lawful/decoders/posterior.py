"""Averages over C instead of its best point: the posterior mean, and its linear version, Wiener's filter.

The law as a prior: c is a point of C, the point c_j with probability prior_j, and the unconstrained prediction is
w(x) = c + error, the error with covariance Sigma(x). Then the expected output given w, which no other guess beats in mean
squared error, is

    f(x) = sum_j p_j c_j,    p_j proportional to prior_j L(w(x) - c_j)^(1/temperature)
    L(e) = exp(-q/2), q = e' Sigma(x)^-1 e,    or Student's  (1 + q/dof)^(-(dof + T)/2)

The objective of the square loss is q: F_x(c) = (w - c)' A(x) (w - c). With metric="residual" or "residual_full" A(x) is the
inverse of the leave-one-out error covariance, followed through x as far as `confidence` says. Any other metric is taken at
its word: it *is* Sigma^-1 ("identity" says that every error has variance 1). Outputs with a_t(x) <= 0 say nothing and are
left out.

A finite set lists its points. Others are sampled, and the point of C nearest to w joins the samples, so that an error smaller
than the gaps between them leads to the projection and not to some sample. Points may have a width: atoms N(c_j, h G), G the
covariance of the cloud. Then Sigma + h G replaces Sigma and every c_j moves to c_j + h G (h G + Sigma)^-1 (w - c_j), its own
posterior mean. One atom at the mean mu of the cloud, h = 1, is Wiener's filter f = mu + G (G + Sigma)^-1 (w - mu).

Means of points of C need not be in C: `residual` says how far off they are, and project=True goes back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lawful._array import Array, array_namespace, device_of, like, to_numpy
from lawful.decoders.atoms import Atoms, covariance, density, filter_gain, positive_part, unbounded
from lawful.decoders.base import INFEASIBLE, Decode, Decoder, Decoding, finish, stack
from lawful.decoders.compose import not_quadratic
from lawful.decoders.enumeration import row_chunks
from lawful.losses.quadratic import QuadraticForm
from lawful.sets.elementary import Reals
from lawful.sets.relaxed import Penalized
from lawful.sets.restore import restore

FEW = 200  # clouds with fewer points than this are too thin to stand for their distribution: atoms get a width
WIDTH = 0.1


class _Average(Decoder):
    """What posterior mean and Wiener's filter share: the points, the rows in pieces, the way back to C."""

    needs_objective = ("rows", "hessian")
    needs_set = ("sample",)
    whole = True  # unions and tubes are averaged over as a whole, not part by part

    n_samples: int
    random_state: Any
    project: bool

    def missing(self, F: Any, C: Any) -> list[str]:
        lacks = super().missing(F, C) + not_quadratic(F)
        if isinstance(C, Penalized):
            lacks.append("a set (Penalized allows every output: use its base set; temperature and width soften an average)")
        elif not isinstance(C, Reals) and (part := unbounded(C)) is not None:
            lacks.append(f"a bounded set ({type(part).__name__} has no end; the default decoder projects onto it)")
        return lacks

    def solve(self, F: Any, C: Any, decode: Decode) -> Decoding:
        self._check()
        if isinstance(C, Reals):  # no law: nothing but w
            return finish(F, C, F.center)
        G = positive_part(F)
        if hasattr(C, "points_") or not getattr(C, "depends_on_x", False):
            atoms = self._atoms(C, F.center)
            width = atoms.points.shape[0] * (F.shape[1] if isinstance(F, QuadraticForm) else 2)
        else:
            atoms, width = None, 3 * self.n_samples * F.shape[1]
        parts = []
        for rows in row_chunks(F.shape[0], width, F.center) or [slice(0, 0)]:
            part_F, part_C = (G.rows(rows), C.rows(rows)) if F.shape[0] else (G, C)
            parts.append(self._solve(part_F, part_C, atoms or self._atoms_of_rows(part_C, part_F.center), decode))
        d = stack(parts)
        return d.with_(value=F.value(d.c))

    def _solve(self, F: Any, C: Any, atoms: Atoms, decode: Decode) -> Decoding:
        nearest = decode(F, C) if atoms.sampled else None
        mean = self._mean(F, atoms, nearest)
        if self.project:
            return back_to(F, C, mean, decode)
        return averaged(F, C, mean, None if nearest is None else nearest.code == INFEASIBLE)

    def _check(self) -> None:
        n = self.n_samples
        if not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"{type(self).__name__}: n_samples={n!r} will not do; give a number of points such as 1000")

    def _mean(self, F: Any, atoms: Atoms, nearest: Decoding | None) -> Array:
        raise NotImplementedError

    def _atoms(self, C: Any, reference: Array) -> Atoms:
        if hasattr(C, "points_"):
            points = to_numpy(C.points_)
            cloud = getattr(C, "cloud_", C)
            return Atoms(like(points, reference), like(self._prior(cloud, points), reference), False)
        points = C.sample(self.n_samples, self.random_state)
        return Atoms(like(points, reference), like(np.full(len(points), 1 / len(points)), reference), True)

    def _prior(self, C: Any, points: np.ndarray) -> np.ndarray:
        """Each given point counts once, repeated ones as often as they were given."""
        counts = np.asarray(getattr(C, "counts_", np.ones(len(points))), dtype=float)
        return counts / counts.sum()

    def _atoms_of_rows(self, C: Any, reference: Array) -> Atoms:
        """Samples of C(x) for each row; those that did not reach C have no weight."""
        m, T = reference.shape
        n = self.n_samples
        repeated = C.rows(array_namespace(reference).asarray(np.repeat(np.arange(m), n), device=device_of(reference)))
        if not (hasattr(C, "equality") or hasattr(C, "inequality")):
            raise TypeError(
                f"{type(self).__name__} cannot sample {type(C).__name__} for each input (it has no equations); Equations can "
                "be, and the default decoder needs no samples"
            )
        # The same starts for every row, so that no row depends on its company.
        wide = check_random_state(self.random_state).uniform(-2.5, 2.5, (n, T))
        starts = like(np.tile(C.location_ + C.spread_ * wide, (m, 1)), reference)
        points = to_numpy(restore(repeated, starts, like(C.spread_, reference))[0])
        inside = to_numpy(repeated.contains(like(points, reference)))
        return Atoms(like(points.reshape(m, n, T), reference), like(inside.reshape(m, n) / n, reference), True)


class Posterior(_Average):
    """The posterior mean over C: decoder="posterior". See the module's docstring for the formulas.

    Parameters
    ----------
    dof : float, default 15
        Degrees of freedom of Student's likelihood: errors larger than estimated happen. inf is Gaussian.
    temperature : float, default 1
        Below 1 trusts w more, towards the nearest point of C; above 1 less, towards the mean of C.
    prior : None, "density" or array
        Weights of the points of a finite set. None: all equal. "density": a kernel density estimate at each point, which
        favours the crowded parts of a cloud. An array: one weight for each given point.
    width : "auto" or float
        h, the width of the atoms of a finite set in units of its covariance; "auto" is 0.1 below 200 points, else 0.
    project : bool, default False
        Return the point of C nearest to the mean, in the output metric. The mean itself has the smaller squared error; the
        projection obeys the law.
    n_samples, random_state
        For sets that are not finite: so many points of C are drawn, by `C.sample` (C(x) for each row where it depends on x).

    Notes
    -----
    The decoder is at its best with Square(confidence=0.5): the error variance half constant, half following x.

    Examples
    --------
    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import PointCloud, Posterior
    >>> from lawful.decoders import decode
    >>> cloud = PointCloud([[2.0, 4.0], [4.0, 4.0], [9.0, 9.0]]).fit(np.ones((1, 2)))
    >>> decode(F, cloud, Posterior(width=0.0)).c.round(3)  # between the two points that explain (3, 4) equally well
    array([[3., 4.]])
    """

    def __init__(
        self,
        dof: float = 15.0,
        temperature: float = 1.0,
        prior: Any = None,
        width: Any = "auto",
        project: bool = False,
        n_samples: int = 1000,
        random_state: Any = 0,
    ) -> None:
        self.dof = dof
        self.temperature = temperature
        self.prior = prior
        self.width = width
        self.project = project
        self.n_samples = n_samples
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        for name in ("dof", "temperature"):
            if not getattr(self, name) > 0:
                raise ValueError(f"Posterior: {name}={getattr(self, name)!r} will not do; give a number above 0, or inf")
        if self.width != "auto" and not (not isinstance(self.width, str) and 0 <= self.width < np.inf):
            raise ValueError(f'Posterior: width={self.width!r} will not do; give "auto" or a number such as 0.1 or 0')
        if isinstance(self.prior, str) and self.prior != "density":
            raise ValueError(f'Posterior: unknown prior {self.prior!r}; choose None, "density" or one weight for each point')

    def _prior(self, C: Any, points: np.ndarray) -> np.ndarray:
        counts = super()._prior(C, points)
        if self.prior is None:
            return counts
        if isinstance(self.prior, str):
            weights = counts * density(points, counts)
            return weights / weights.sum()
        weights = np.asarray(to_numpy(self.prior), dtype=float)
        which = getattr(C, "which_", np.arange(len(points)))
        if weights.shape != which.shape or not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise ValueError(
                f"Posterior: prior of shape {weights.shape} will not do; give one weight >= 0 for each of the {len(which)} "
                "points, not all 0"
            )
        return np.bincount(which, weights, len(points)) / weights.sum()

    def _mean(self, F: Any, atoms: Atoms, nearest: Decoding | None) -> Array:
        xp = array_namespace(F.center)
        points, prior = atoms.points, atoms.prior
        h = (WIDTH if points.shape[0] < FEW and not atoms.sampled else 0.0) if self.width == "auto" else float(self.width)
        gain = None
        if h and not atoms.sampled:
            spread = h * covariance(points, prior)[1]
            A = F.hessian(F.center) / 2
            gain = filter_gain(A, spread)  # h G (h G + Sigma)^-1
            eye = xp.eye(F.shape[1], dtype=A.dtype, device=device_of(A))
            softer = A @ (eye[None, :, :] - gain)  # (Sigma + h G)^-1
            F = QuadraticForm((softer + xp.matrix_transpose(softer)) / 2, F.center, F.doubtful)
        if points.ndim == 2:
            costs = F.costs(points)
        else:
            m, n, T = points.shape
            again = xp.asarray(np.repeat(np.arange(m), n), device=device_of(points))
            costs = xp.reshape(F.rows(again).value(xp.reshape(points, (m * n, T))), (m, n))
        if nearest is not None:  # one more sample, the one that an error of any size finds
            costs = xp.concat([costs, F.value(nearest.c)[:, None]], axis=1)
            weight = like(to_numpy(nearest.code) != INFEASIBLE, costs)[:, None] / self.n_samples
            prior = xp.concat([xp.broadcast_to(prior, (costs.shape[0], costs.shape[1] - 1)), weight], axis=1)
        p = self._weights(costs, prior, F.shape[1])
        if nearest is None:
            mean = p @ points
        else:
            some, last = p[:, :-1], p[:, -1:]
            mean = (some @ points if points.ndim == 2 else xp.sum(some[:, :, None] * points, axis=1)) + last * nearest.c
        if gain is None:
            return mean
        return mean + (gain @ (F.center - mean)[:, :, None])[:, :, 0]

    def _weights(self, costs: Array, prior: Array, T: int) -> Array:
        """(m, P) probabilities; the largest is taken out before exp, so that nothing under- or overflows."""
        xp = array_namespace(costs)
        q = xp.where(costs > 0, costs, xp.zeros_like(costs))
        log = -q / 2 if self.dof == np.inf else -(self.dof + T) / 2 * xp.log1p(q / self.dof)
        log = log / self.temperature
        barred = prior <= 0
        log = xp.where(barred, xp.full_like(log, -xp.inf), log)
        top = xp.max(log, axis=1, keepdims=True)
        p = prior * xp.exp(log - xp.where(top > -xp.inf, top, xp.zeros_like(top)))
        total = xp.sum(p, axis=1, keepdims=True)
        none = total <= 0  # no point of C was found: the row is infeasible, and its best attempt the last column
        last = xp.arange(p.shape[1], device=device_of(p))[None, :] == p.shape[1] - 1
        return xp.where(none, like(last, p), p / xp.where(none, xp.ones_like(total), total))


class Wiener(_Average):
    """f = mu + G (G + Sigma(x))^-1 (w - mu), mu and G mean and covariance of C: decoder="wiener".

    The best linear use of a cloud: it sees the same points as a projection onto them but only their first two moments. It
    belongs beside every result that a cloud has improved. For sets that are not finite, mu and G are those of `n_samples`
    points.

    >>> import numpy as np
    >>> from lawful.losses import Quadratic
    >>> F = Quadratic.around(np.array([[3.0, 4.0]]))  # |c - (3, 4)|^2
    >>> from lawful import PointCloud, Wiener
    >>> from lawful.decoders import decode
    >>> cloud = PointCloud([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]).fit(np.ones((1, 2)))
    >>> decode(F, cloud, Wiener()).c.round(3)  # towards the mean of the cloud
    array([[1.   , 1.333]])
    """

    def __init__(self, project: bool = False, n_samples: int = 1000, random_state: Any = 0) -> None:
        self.project = project
        self.n_samples = n_samples
        self.random_state = random_state

    def _mean(self, F: Any, atoms: Atoms, nearest: Decoding | None) -> Array:
        mu, G = covariance(atoms.points, atoms.prior)
        gap = F.center - mu
        return mu + (filter_gain(F.hessian(F.center) / 2, G) @ gap[:, :, None])[:, :, 0]

    def _solve(self, F: Any, C: Any, atoms: Atoms, decode: Decode) -> Decoding:
        xp = array_namespace(F.center)
        mean = self._mean(F, atoms, None)
        if atoms.prior.ndim == 1:
            return back_to(F, C, mean, decode) if self.project else averaged(F, C, mean, None)
        none = xp.sum(atoms.prior, axis=1) <= 0  # not one point of C(x) was found
        mean = xp.where(none[:, None], F.center, mean)
        if self.project:
            return back_to(F, C, mean, decode)
        return averaged(F, C, mean, none)


def back_to(F: Any, C: Any, mean: Array, decode: Decode) -> Decoding:
    """The point of C nearest to `mean` in the metric of F."""
    return decode(F.recentred(mean), C)


def averaged(F: Any, C: Any, mean: Array, lost: Array | None) -> Decoding:
    """A mean over C, `lost` where no point of C was found: it asks for no proof that anything is nearest."""
    xp = array_namespace(mean)
    return finish(F, C, mean, averaged=xp.ones(mean.shape[0], dtype=xp.bool, device=device_of(mean)), lost=lost)

"""Where outputs were seen often enough: a level set of a kernel density.

    C = {c : log p(c) >= log level},      p(c) = mean_j exp(-|c - p_j|^2 / (2 h^2))      (outputs in units of their spread)

h maximises the leave-one-out likelihood of the points, and the level is the one that a share `coverage` of them reach when they
are left out. With weights w_j of the points at c, the slack -log p + log level has gradient (c - mean_w) / h^2 and Hessian
I / h^2 - cov_w / h^4, so that far from the cloud it points to the nearest of its points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from lawful._array import Array, like, to_numpy
from lawful.sets.base import ConstraintSet
from lawful.sets.learned.observed import observed

WIDTHS = 2.0 ** np.arange(-5, 2.01, 0.25)  # of the bandwidth that a Gaussian cloud would want


class KernelSet(ConstraintSet):
    """Outputs at which a kernel density of the cloud is at least a level that most held-out points reach.

    It has an inside, unlike `PointCloud` and `LocalTangent`: predictions within the cloud are left as they are, those outside
    come to its border. For clouds that fill space, or whose law nobody knows.

    Parameters
    ----------
    points : (N, T) array, optional
        The cloud; None: the complete rows of the training outputs.
    coverage : float, default 0.95
        Share of points that are in the set when they are left out of it.
    bandwidth : "auto" or float, default "auto"
        In units of the spread of the outputs; "auto": by leave-one-out likelihood.
    max_points : int, default 1000
        Points of the density, drawn at random where there are more.
    extra : (m, T) array, optional
        More outputs, for which there are no inputs: points of the cloud beside those of the training outputs.

    Attributes
    ----------
    bandwidth_, log_level_ : float

    Examples
    --------
    >>> import numpy as np
    >>> C = KernelSet().fit(np.random.default_rng(0).standard_normal((300, 2)))
    >>> C.contains(np.array([[0.0, 0.0], [5.0, 5.0]]))
    array([ True, False])
    """

    def __init__(
        self,
        points: Any = None,
        coverage: float = 0.95,
        bandwidth: Any = "auto",
        max_points: int = 1000,
        *,
        extra: Any = None,
    ) -> None:
        self.points = points
        self.coverage = coverage
        self.bandwidth = bandwidth
        self.max_points = max_points
        self.extra = extra

    def _learn(self, Y: Array) -> None:
        cloud = observed("KernelSet", self.points, self.extra, Y, self.n_tasks_)
        if len(cloud) < 3 or not np.isfinite(cloud).all():
            raise ValueError(f"KernelSet needs at least 3 finite points, got {len(cloud)}; give more of them")
        if not 0 < self.coverage <= 1:
            raise ValueError(f"KernelSet: coverage={self.coverage!r} will not do; give a share between 0 and 1")
        if self.bandwidth != "auto" and not self.bandwidth > 0:
            raise ValueError(f"KernelSet: bandwidth={self.bandwidth!r} will not do; give 'auto' or a positive number")
        spread = cloud.std(axis=0)
        self.unit_ = np.where(spread > 1e-12 * np.abs(cloud).max(axis=0), spread, 1.0)
        keep = np.sort(np.random.default_rng(0).permutation(len(cloud))[: int(self.max_points)])
        self.cloud_ = cloud[keep] / self.unit_
        squared = cdist(self.cloud_, self.cloud_, "sqeuclidean")
        np.fill_diagonal(squared, np.inf)
        n, T = self.cloud_.shape
        # Equal points would make a bandwidth of 0 likely: no width below the smallest distance between different ones is tried.
        apart = np.sqrt(np.min(np.where(squared > 0, squared, np.inf), initial=np.inf))
        usual = n ** (-1 / (T + 4))
        widths = (
            np.maximum(WIDTHS * usual, apart if np.isfinite(apart) else 1.0) if self.bandwidth == "auto" else [self.bandwidth]
        )
        left_out = [logsumexp(-squared / (2 * h**2), axis=1) - np.log(n - 1) for h in widths]
        likelihood = [np.mean(one) - T * np.log(h) for one, h in zip(left_out, widths)]
        best = int(np.argmax(likelihood))
        self.bandwidth_ = float(widths[best])
        share = np.floor((1 - self.coverage) * n) / n
        self.log_level_ = float(np.quantile(left_out[best], share, method="lower"))

    def _weights(self, c: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scaled points (m, T), shares (m, N) of the points of the cloud, log p (m,)."""
        scaled = np.asarray(to_numpy(c), np.float64) / self.unit_
        safe = np.where(np.isfinite(scaled), scaled, 0.0)
        exponent = -cdist(safe, self.cloud_, "sqeuclidean") / (2 * self.bandwidth_**2)
        total = logsumexp(exponent, axis=1)
        log_p = np.where(np.isfinite(scaled).all(axis=1), total - np.log(len(self.cloud_)), -np.inf)
        return safe, np.exp(exponent - total[:, None]), log_p

    def inequality(self, c: Array) -> Array:
        """(m, 1) log level - log p."""
        return like((self.log_level_ - self._weights(c)[2])[:, None], c)

    def inequality_jacobian(self, c: Array) -> Array:
        z, w, _ = self._weights(c)
        return like(((z - w @ self.cloud_) / (self.bandwidth_**2 * self.unit_))[:, None, :], c)

    def curvature(self, c: Array, nu: Array) -> Array:
        _, w, _ = self._weights(c)
        mean = w @ self.cloud_
        second = np.einsum("mn,nt,ns->mts", w, self.cloud_, self.cloud_) - mean[:, :, None] * mean[:, None, :]
        h2 = self.bandwidth_**2
        hessian = (np.eye(self.n_tasks_) / h2 - second / h2**2) / np.outer(self.unit_, self.unit_)
        return like(np.asarray(to_numpy(nu), np.float64)[:, :1, None] * hessian, c)

    def scales(self, c: Array) -> Array:
        """Logarithms are compared: their size, at least 1."""
        return like(np.full((len(np.asarray(to_numpy(c))), 1), 1 + abs(self.log_level_)), c)

    def sample(self, n: int, random_state: Any = None) -> np.ndarray:
        """Draws from the density that are in the set."""
        rng = check_random_state(random_state)
        found: list[np.ndarray] = []
        for _ in range(100):
            centre = self.cloud_[rng.randint(len(self.cloud_), size=2 * n)]
            some = (centre + self.bandwidth_ * rng.standard_normal(centre.shape)) * self.unit_
            found.append(some[self.contains(some)])
            if sum(map(len, found)) >= n:
                break
        return np.concatenate(found)[:n]

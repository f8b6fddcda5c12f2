"""What every kernel does, what kernels with length scales share, and what a kernel matrix must look like."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator

from lawful._array import Array, array_namespace, device_of, is_numpy_namespace, like, take_rows

SYMMETRIC = 1e-8  # relative to the largest entry
ENTRIES = 2**19  # of a kernel matrix computed at once, small enough for the caches of a processor
EXPLICIT_INPUTS = 32  # up to here differences are formed input by input: exact where |x|^2 + |z|^2 - 2 x.z cancels


class Kernel(BaseEstimator):
    """k(X, Z) for whole batches, and for the chosen rows of a training array (see `Precomputed` for why).

    >>> import numpy as np
    >>> from lawful.kernels import Gaussian
    >>> k = Gaussian(sigma=1.0)
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> k.diag(X), k.gram(X, np.array([0, 2])).shape
    (array([1., 1., 1.]), (2, 2))
    """

    def __call__(self, X: Array, Z: Array) -> Array:
        raise NotImplementedError

    def diag(self, X: Array) -> Array:
        """k(x, x) for each row, without the matrix."""
        raise NotImplementedError

    trusted = False  # whether its matrices are known to be what they should be, so that nobody has to look

    def gram(self, X: Array, rows: Array) -> Array:
        """The kernel matrix of the chosen rows of X."""
        points = take_rows(X, rows)
        K = self(points, points)
        return K if self.trusted else checked_gram(K, repr(self))

    def cross(self, Xnew: Array, X: Array, rows: Array) -> Array:
        """k between new inputs and the chosen rows of X."""
        K = self(Xnew, take_rows(X, rows))
        return K if self.trusted else checked_values(K, repr(self))


class Stationary(Kernel):
    """f(q), q = sum_j |(x_j - z_j) / sigma_j|^p. Subclasses give p, f (`profile`) and -f' (`decay`).

    >>> import numpy as np
    >>> from lawful.kernels import Gaussian
    >>> Gaussian(sigma=[1.0, 10.0]).distance(np.array([[0.0, 0.0]]), np.array([[1.0, 10.0]]))  # q
    array([[2.]])
    """

    power = 2
    trusted = True
    extra = 0  # parameters that evidence tunes beside the length scales
    smooth = True  # whether f' is finite at 0, so that a small error of q is a small error of f

    def __init__(self, sigma: Any = "auto") -> None:
        self.sigma = sigma

    def profile(self, q: Array) -> Array:
        raise NotImplementedError

    def decay(self, q: Array) -> Array:
        raise NotImplementedError

    def profile_and_decay(self, q: Array) -> tuple[Array, Array]:
        """Both at once, for who needs both."""
        return self.profile(q), self.decay(q)

    def scales(self, d: int) -> np.ndarray:
        """One positive length scale for each of the d inputs."""
        name = type(self).__name__
        if isinstance(self.sigma, str):
            raise ValueError(
                f"{name}(sigma={self.sigma!r}) has no length scale yet; a surrogate such as KernelRidge tunes it, "
                "or give one number or one per input"
            )
        sigma = np.asarray(self.sigma, dtype=float)
        if sigma.shape not in ((), (1,), (d,)):
            raise ValueError(
                f"{name} has length scales of shape {sigma.shape} but the inputs have {d} columns; "
                f"one number or {d} numbers would do"
            )
        if not np.all(sigma > 0):
            raise ValueError(f"{name} needs length scales above zero, got {sigma}; one positive number would do")
        return np.broadcast_to(sigma, (d,))

    def distance(self, X: Array, Z: Array) -> Array:
        """q(x, z), (n, m)."""
        xp = array_namespace(X, Z)
        d = X.shape[1]
        sigma = self.scales(d)
        if self.power == 2 and self.smooth and d > EXPLICIT_INPUTS:
            scale = like(sigma, X)
            center = xp.mean(Z, axis=0)  # shorter vectors, less cancellation
            U, V = (X - center) / scale, (Z - center) / scale
            q = xp.sum(U**2, axis=1)[:, None] + xp.sum(V**2, axis=1)[None, :] - 2 * (U @ V.T)
            return xp.where(q > 0, q, xp.zeros_like(q))
        if type(X) is type(Z) is np.ndarray and X.dtype == Z.dtype == np.float64 and Z.shape[0]:
            with np.errstate(over="ignore", invalid="ignore"):
                center = Z.mean(axis=0)  # so that differences of inputs far from 0 keep their digits
                U, V = (X - center) / sigma, (Z - center) / sigma
            if np.isfinite(U).all() and np.isfinite(V).all():
                return cdist(U, V, "sqeuclidean" if self.power == 2 else "cityblock")  # differences too, but in one pass
        q = xp.zeros((X.shape[0], Z.shape[0]), dtype=X.dtype, device=device_of(X))
        with np.errstate(over="ignore"):  # infinitely far is far
            for j in range(d):
                gap = (X[:, j][:, None] - Z[:, j][None, :]) / float(sigma[j])
                q = q + (gap * gap if self.power == 2 else xp.abs(gap))
        return q

    def __call__(self, X: Array, Z: Array) -> Array:
        rows = max(1, ENTRIES // max(Z.shape[0], 1))
        if X.shape[0] <= rows or not is_numpy_namespace(array_namespace(X, Z)):
            return self.values(X, Z)
        out = np.empty((X.shape[0], Z.shape[0]), dtype=X.dtype)  # piece by piece: what is computed on the way stays small
        for i in range(0, X.shape[0], rows):
            out[i : i + rows] = self.values(X[i : i + rows], Z)
        return out

    def values(self, X: Array, Z: Array) -> Array:
        """k(x, z), (n, m), all at once."""
        return self.profile(self.distance(X, Z))

    def diag(self, X: Array) -> Array:
        return array_namespace(X).ones(X.shape[0], dtype=X.dtype, device=device_of(X))

    def contract(self, W: Array, X: Array) -> np.ndarray:
        """sum_ab W_ab dK_ab / dlog sigma_j for every j: O(n^2 d) time, O(n^2) memory.

        dK/dlog sigma_j = -f'(q) p |(x_j - z_j) / sigma_j|^p.
        """
        xp = array_namespace(W, X)
        d = X.shape[1]
        sigma = self.scales(d)
        M = W * self.decay(self.distance(X, X))
        if self.power == 2 and self.smooth and d > EXPLICIT_INPUTS:
            U = (X - xp.mean(X, axis=0)) / like(sigma, X)
            M = M + M.T
            spread = xp.sum(M, axis=1) @ U**2 - xp.sum(U * (M @ U), axis=0)
            return 2 * np.asarray([float(v) for v in spread])
        out = np.empty(d)
        for j in range(d):
            gap = (X[:, j][:, None] - X[:, j][None, :]) / float(sigma[j])
            out[j] = self.power * float(xp.sum(M * (gap * gap if self.power == 2 else xp.abs(gap))))
        return out


def checked_values(K: Array, who: str) -> Array:
    """`K`, all of whose entries must be finite."""
    xp = array_namespace(K)
    if not bool(xp.all(xp.isfinite(K))):
        raise ValueError(f"{who} has entries that are NaN or infinite; every k(x, x') must be a finite number")
    return K


def checked_gram(K: Array, who: str) -> Array:
    """`K`, which must look like a kernel matrix: finite, symmetric, its diagonal not negative."""
    xp = array_namespace(checked_values(K, who))
    if K.shape[0] == 0:
        return K
    size = float(xp.max(xp.abs(K)))
    apart = float(xp.max(xp.abs(K - K.T)))
    if apart > SYMMETRIC * size:
        raise ValueError(
            f"{who} is not symmetric: k(x, x') and k(x', x) differ by up to {apart:.1e} in a matrix of size {size:.1e}; "
            "use (K + K.T) / 2 if that is what you mean"
        )
    low = float(xp.min(xp.linalg.diagonal(K)))
    if low < -SYMMETRIC * size:
        raise ValueError(
            f"{who} has k(x, x) = {low:.1e} for some x, and a kernel is never negative there; "
            "a positive semidefinite matrix, such as that of Gaussian(), would do"
        )
    return K

"""Reproducing kernels k(x, x') on the inputs.

    Gaussian     exp(-|x - x'|^2 / sigma^2)                       (the paper's; no factor 2)
    Laplacian    exp(-|x - x'|_1 / sigma)
    Matern       exp(-r)                                          nu = 0.5, r = |x - x'| / sigma
                 (1 + r sqrt 3) exp(-r sqrt 3)                    nu = 1.5
                 (1 + r sqrt 5 + 5 r^2 / 3) exp(-r sqrt 5)        nu = 2.5
    Polynomial   (gamma x.x' + coef0)^degree
    Linear       x.x' + bias^2                                    explicit features [x, bias]
    Precomputed  the caller's own Gram matrix

The first three are f(q) of q = sum_j |(x_j - x'_j) / sigma_j|^p with p = 1 or 2; `sigma` is one number, one length
scale per input, or "auto", which a surrogate replaces by length scales tuned on the data. A plain function
k(X, Z) -> (n, m) is accepted wherever a kernel is (`as_kernel`).

Written against the array API: NumPy, torch and any other conforming library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from lawful._array import Array, array_namespace, device_of, is_numpy_namespace, like, take_rows, to_numpy

__all__ = [
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "Stationary",
    "as_kernel",
    "kernel_from_state",
    "kernel_state",
]

FAR = 1e6  # squared distance in length scales from which on a kernel is zero to the last bit
SYMMETRIC = 1e-8  # relative to the largest entry
ENTRIES = 2**19  # of a kernel matrix computed at once, small enough for the caches of a processor
EXPLICIT_INPUTS = 32  # up to here differences are formed input by input: exact where |x|^2 + |z|^2 - 2 x.z cancels


class Kernel(BaseEstimator):
    """k(X, Z) for whole batches, and for the chosen rows of a training array (see `Precomputed` for why)."""

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
    """f(q), q = sum_j |(x_j - z_j) / sigma_j|^p. Subclasses give p, f (`profile`) and -f' (`decay`)."""

    power = 2
    trusted = True
    parts: tuple = ()
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
        q = xp.zeros((X.shape[0], Z.shape[0]), dtype=X.dtype, device=device_of(X))
        with np.errstate(over="ignore"):  # infinitely far is far
            for j in range(d):
                gap = (X[:, j][:, None] - Z[:, j][None, :]) / float(sigma[j])
                q = q + (gap * gap if self.power == 2 else xp.abs(gap))
        return q

    def __call__(self, X: Array, Z: Array) -> Array:
        rows = max(1, ENTRIES // max(Z.shape[0], 1))
        if X.shape[0] <= rows or not is_numpy_namespace(array_namespace(X, Z)):
            return self.profile(self.distance(X, Z))
        out = np.empty((X.shape[0], Z.shape[0]), dtype=X.dtype)  # piece by piece: what is computed on the way stays small
        for i in range(0, X.shape[0], rows):
            out[i : i + rows] = self.profile(self.distance(X[i : i + rows], Z))
        return out

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


class Gaussian(Stationary):
    """exp(-|x - x'|^2 / sigma^2)."""

    def profile(self, q: Array) -> Array:
        return array_namespace(q).exp(-q)

    decay = profile

    def profile_and_decay(self, q: Array) -> tuple[Array, Array]:
        f = self.profile(q)
        return f, f


class Anova(Stationary):
    def __init__(self, sigma: Any = "auto", parts=(), shares=None, center=0.0, unit=1.0) -> None:
        self.sigma, self.parts, self.shares, self.center, self.unit = sigma, parts, shares, center, unit

    def profile(self, q: Array) -> Array:
        return array_namespace(q).exp(-q)

    decay = profile

    def profile_and_decay(self, q):
        f = self.profile(q)
        return f, f

    def __call__(self, X, Z):
        K = self.shares[0] * self.profile(self.distance(X, Z))
        sigma = self.scales(X.shape[1])
        d = X.shape[1]
        for s, kind in zip(self.shares[1:], self.parts):
            if kind == "linear":
                K = K + s / d * ((X - self.center) / self.unit) @ ((Z - self.center) / self.unit).T
            else:
                for j in range(d):
                    K = K + s / d * np.exp(-((X[:, j][:, None] - Z[:, j][None, :]) / sigma[j]) ** 2)
        return K

    def diag(self, X):
        out = np.full(X.shape[0], 1.0)
        if "linear" in self.parts:
            s = self.shares[1 + self.parts.index("linear")]
            out = 1 - s + s / X.shape[1] * np.sum(((X - self.center) / self.unit) ** 2, axis=1)
        return out


class Trend(Stationary):
    def __init__(self, sigma: Any = "auto", center=0.0) -> None:
        self.sigma, self.center = sigma, center

    def __call__(self, X, Z):
        s = self.scales(X.shape[1])
        return 2 * ((X - self.center) / s) @ ((Z - self.center) / s).T

    def diag(self, X):
        return 2 * np.sum(((X - self.center) / self.scales(X.shape[1])) ** 2, axis=1)


class Laplacian(Stationary):
    """exp(-|x - x'|_1 / sigma)."""

    power = 1

    def profile(self, q: Array) -> Array:
        return array_namespace(q).exp(-q)

    decay = profile


class Matern(Stationary):
    """Matern kernel of smoothness nu = 0.5 (continuous functions), 1.5 (once differentiable) or 2.5 (twice)."""

    def __init__(self, nu: float = 1.5, sigma: Any = "auto") -> None:
        self.nu = nu
        self.sigma = sigma

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.nu > 1

    def _radius(self, q: Array) -> Array:
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"Matern(nu={self.nu!r}) has no closed form here; nu = 0.5, nu = 1.5 or nu = 2.5 would do")
        xp = array_namespace(q)  # infinity times exp(-infinity) is no number
        near = np.fmin(q, FAR) if is_numpy_namespace(xp) else xp.where(q < FAR, q, xp.ones_like(q) * FAR)
        return xp.sqrt(2 * self.nu * near)

    def profile(self, q: Array) -> Array:
        r = self._radius(q)
        return self._polynomial(r) * array_namespace(q).exp(-r)

    def decay(self, q: Array) -> Array:
        r = self._radius(q)
        return self._slope(r) * array_namespace(q).exp(-r)

    def profile_and_decay(self, q: Array) -> tuple[Array, Array]:
        r = self._radius(q)
        e = array_namespace(q).exp(-r)
        return self._polynomial(r) * e, self._slope(r) * e

    def _polynomial(self, r: Array) -> Any:
        return {0.5: lambda: 1.0, 1.5: lambda: 1 + r, 2.5: lambda: 1 + r + r * r / 3}[self.nu]()

    def _slope(self, r: Array) -> Any:
        """-f' / exp(-r); for nu = 0.5 that is 1 / 2r, where no difference of inputs makes it matter at r = 0."""
        if self.nu == 0.5:
            xp = array_namespace(r)
            return 0.5 / xp.where(r > 0, r, xp.ones_like(r))
        return 1.5 if self.nu == 1.5 else (5 / 6) * (1 + r)


class Polynomial(Kernel):
    """(gamma x.x' + coef0)^degree."""

    trusted = True

    def __init__(self, degree: int = 2, gamma: float = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def __call__(self, X: Array, Z: Array) -> Array:
        return (self.gamma * (X @ Z.T) + self.coef0) ** self.degree

    def diag(self, X: Array) -> Array:
        return (self.gamma * array_namespace(X).sum(X * X, axis=1) + self.coef0) ** self.degree


class Linear(Kernel):
    """x.x' + bias^2; the constant feature keeps a_t(x) positive where there is no intercept."""

    trusted = True

    def __init__(self, bias: float = 1.0) -> None:
        self.bias = bias

    def __call__(self, X: Array, Z: Array) -> Array:
        return X @ Z.T + self.bias**2

    def diag(self, X: Array) -> Array:
        return array_namespace(X).sum(X * X, axis=1) + self.bias**2

    def features(self, X: Array) -> Array:
        """phi(x) = [x, bias], so that k(x, x') = phi(x).phi(x')."""
        xp = array_namespace(X)
        constant = xp.full((X.shape[0], 1), float(self.bias), dtype=X.dtype, device=device_of(X))
        return xp.concat([X, constant], axis=1)


class Precomputed(Kernel):
    """X is the (n, n) Gram matrix itself, and new inputs are (m, n) matrices of k(x_new, x_train).

    Choosing rows of the data then means choosing columns too, which is why surrogates ask for `gram(X, rows)` and
    `cross(Xnew, X, rows)` rather than slice X themselves.
    """

    def __call__(self, X: Array, Z: Array) -> Array:
        raise TypeError(
            "Precomputed cannot evaluate k on pairs of inputs: it only reads matrices; use gram and cross, or a "
            "kernel such as Gaussian"
        )

    def diag(self, X: Array) -> Array:
        raise TypeError(
            "Precomputed lacks k(x, x) of new inputs, so no predictive variance; a kernel such as Gaussian would do"
        )

    def gram(self, X: Array, rows: Array) -> Array:
        if X.ndim != 2 or X.shape[0] != X.shape[1]:
            raise ValueError(f"Precomputed needs a square Gram matrix, got {tuple(X.shape)}; pass k(X, X)")
        return checked_gram(array_namespace(X).take(take_rows(X, rows), rows, axis=1), "Precomputed()")

    def cross(self, Xnew: Array, X: Array, rows: Array) -> Array:
        if Xnew.shape[1] != X.shape[0]:
            raise ValueError(
                f"Precomputed needs one column per training row ({X.shape[0]}), got {Xnew.shape[1]}; pass k(X_new, X_train)"
            )
        return array_namespace(Xnew).take(Xnew, rows, axis=1)


class FunctionKernel(Kernel):
    """A plain vectorised function k(X, Z) -> (n, m)."""

    def __init__(self, function: Callable[[Array, Array], Array]) -> None:
        self.function = function

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"the kernel function {getattr(self.function, '__name__', self.function)!r}"

    def __call__(self, X: Array, Z: Array) -> Array:
        K = self.function(X, Z)
        if is_numpy_namespace(array_namespace(X)):
            K = np.asarray(K)
            if K.dtype.kind not in "biuf":
                raise ValueError(f"{self!r} returned entries of type {K.dtype}; it must return an array of real numbers")
            K = K.astype(np.float64, copy=False)
        shape, expected = tuple(np.shape(K)), (X.shape[0], Z.shape[0])
        if shape != expected:
            raise ValueError(
                f"{self!r} returned shape {shape} "
                f"for inputs of {expected[0]} and {expected[1]} rows; it must be vectorised, k(X, Z) -> {expected}"
            )
        return K

    def diag(self, X: Array) -> Array:
        xp = array_namespace(X)
        if X.shape[0] == 0:
            return xp.zeros(0, dtype=X.dtype, device=device_of(X))
        return xp.concat([xp.reshape(self(X[i : i + 1, :], X[i : i + 1, :]), (1,)) for i in range(X.shape[0])])


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


def as_kernel(kernel: Any) -> Kernel:
    """A `Kernel` from None (Gaussian, tuned), a kernel or a vectorised function."""
    if kernel is None:
        return Gaussian()
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type):
        raise TypeError(f"{kernel.__name__} is a class, not a kernel; an instance such as {kernel.__name__}() would do")
    if callable(kernel):
        return FunctionKernel(kernel)
    raise TypeError(
        f"{kernel!r} is not a kernel: it cannot be called; lawful.kernels.Gaussian() or a function k(X, Z) -> (n, m) would do"
    )


SAVED: dict[str, type[Kernel]] = {
    kind.__name__: kind for kind in (Gaussian, Laplacian, Matern, Polynomial, Linear, Precomputed)
}


def kernel_state(kernel: Kernel) -> dict[str, Any]:
    """A kernel as its name and its parameters."""
    name = type(kernel).__name__
    if SAVED.get(name) is not type(kernel):
        raise TypeError(
            f"the kernel {kernel!r} is code of the user's, which no state can hold; one of {', '.join(SAVED)} would do"
        )
    return {"kind": name} | {key: _plain_number(value) for key, value in kernel.get_params().items()}


def kernel_from_state(state: dict[str, Any]) -> Kernel:
    """The kernel that `kernel_state` described."""
    parameters = {key: value for key, value in state.items() if key != "kind"}
    return SAVED[state["kind"]](**parameters)


def _plain_number(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else to_numpy(value)

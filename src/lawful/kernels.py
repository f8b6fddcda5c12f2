"""Reproducing kernels k(x, x') on the inputs.

    Gaussian     exp(-|x - x'|^2 / sigma^2)                       (the paper's; no factor 2)
    Laplacian    exp(-|x - x'|_1 / sigma)
    Matern       exp(-r)                                          nu = 0.5, r = |x - x'| / sigma
                 (1 + r sqrt 3) exp(-r sqrt 3)                    nu = 1.5
                 (1 + r sqrt 5 + 5 r^2 / 3) exp(-r sqrt 5)        nu = 2.5
    Additive     (1 - share) exp(-|x - x'|^2 / sigma^2) + share mean_j exp(-(x_j - x'_j)^2 / sigma_j^2)
    Trend        2 sum_j (x_j - c_j) (x'_j - c_j) / sigma_j^2
    Polynomial   (gamma x.x' + coef0)^degree
    Linear       x.x' + bias^2                                    explicit features [x, bias]
    Precomputed  the caller's own Gram matrix

The first three are f(q) of q = sum_j |(x_j - x'_j) / sigma_j|^p with p = 1 or 2; `sigma` is one number, one length
scale per input, or "auto", which a surrogate replaces by length scales tuned on the data, as for the next two. A plain function
k(X, Z) -> (n, m) is accepted wherever a kernel is (`as_kernel`).

Written against the array API: NumPy, torch and any other conforming library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, device_of, is_numpy_namespace, like, take_rows, to_numpy
from lawful._kernel_bases import Kernel, Stationary, checked_gram

__all__ = [
    "Additive",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "Stationary",
    "Trend",
    "as_kernel",
    "kernel_from_state",
    "kernel_state",
]

FAR = 1e6  # squared distance in length scales from which on a kernel is zero to the last bit


class Gaussian(Stationary):
    """exp(-|x - x'|^2 / sigma^2).

    >>> import numpy as np
    >>> from lawful.kernels import Gaussian
    >>> Gaussian(sigma=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.3679]])
    """

    def profile(self, q: Array) -> Array:
        return array_namespace(q).exp(-q)

    decay = profile

    def profile_and_decay(self, q: Array) -> tuple[Array, Array]:
        f = self.profile(q)
        return f, f


class Additive(Gaussian):
    """(1 - share) exp(-sum_j q_j) + share mean_j exp(-q_j), q_j = (x_j - x'_j)^2 / sigma_j^2.

    Functions of single inputs, summed, and what is left to interactions: sums are learned from far fewer rows.

    >>> import numpy as np
    >>> from lawful.kernels import Additive
    >>> Additive(sigma=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.3679]])
    """

    extra = 1

    def __init__(self, sigma: Any = "auto", share: float = 0.5) -> None:
        self.sigma = sigma
        self.share = share

    def values(self, X: Array, Z: Array) -> Array:
        xp, sigma = array_namespace(X, Z), self.scales(X.shape[1])
        alone = xp.zeros((X.shape[0], Z.shape[0]), dtype=X.dtype, device=device_of(X))
        for j in range(X.shape[1]):
            alone = alone + xp.exp(-(((X[:, j][:, None] - Z[:, j][None, :]) / float(sigma[j])) ** 2))
        return (1 - self.share) * super().values(X, Z) + (self.share / X.shape[1]) * alone

    def contract(self, W: Array, X: Array) -> np.ndarray:
        xp, sigma = array_namespace(W, X), self.scales(X.shape[1])
        out = (1 - self.share) * super().contract(W, X)
        for j in range(X.shape[1]):
            q = ((X[:, j][:, None] - X[:, j][None, :]) / float(sigma[j])) ** 2
            out[j] += 2 * self.share / X.shape[1] * float(xp.sum(W * q * xp.exp(-q)))
        return out


class Trend(Stationary):
    """2 sum_j (x_j - c_j) (x'_j - c_j) / sigma_j^2: what a Gaussian tends to as its length scales grow, up to a constant.

    Linear functions, with a length scale for each input where `Linear` has one for all. It is not stationary; that it has
    length scales to tune is what it shares with the others. Wherever there is an intercept the center c is of no consequence
    but for rounding.

    >>> import numpy as np
    >>> from lawful.kernels import Trend
    >>> Trend(sigma=1.0)(np.array([[2.0]]), np.array([[3.0]]))
    array([[12.]])
    """

    def __init__(self, sigma: Any = "auto", center: Any = 0.0) -> None:
        self.sigma = sigma
        self.center = center

    def features(self, X: Array) -> Array:
        """phi(x), so that k(x, x') = phi(x).phi(x')."""
        d = X.shape[1]
        center = like(np.broadcast_to(np.asarray(self.center, dtype=float), (d,)).copy(), X)
        return (X - center) * like(np.sqrt(2) / self.scales(d), X)

    def values(self, X: Array, Z: Array) -> Array:
        return self.features(X) @ self.features(Z).T

    def diag(self, X: Array) -> Array:
        return array_namespace(X).sum(self.features(X) ** 2, axis=1)

    def contract(self, W: Array, X: Array) -> np.ndarray:
        phi = self.features(X)
        return -2 * np.asarray([float(v) for v in array_namespace(W, X).sum(phi * (W @ phi), axis=0)])


class Laplacian(Stationary):
    """exp(-|x - x'|_1 / sigma).

    >>> import numpy as np
    >>> from lawful.kernels import Laplacian
    >>> Laplacian(sigma=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.3679]])
    """

    power = 1

    def profile(self, q: Array) -> Array:
        return array_namespace(q).exp(-q)

    decay = profile


class Matern(Stationary):
    """Matern kernel of smoothness nu = 0.5 (continuous functions), 1.5 (once differentiable) or 2.5 (twice).

    >>> import numpy as np
    >>> from lawful.kernels import Matern
    >>> Matern(nu=2.5, sigma=1.0)(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(4)
    array([[1.   , 0.524]])
    """

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
    """(gamma x.x' + coef0)^degree.

    >>> import numpy as np
    >>> from lawful.kernels import Polynomial
    >>> Polynomial(degree=3)(np.array([[2.0]]), np.array([[1.0]]))
    array([[27.]])
    """

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
    """x.x' + bias^2; the constant feature keeps a_t(x) positive where there is no intercept.

    >>> import numpy as np
    >>> from lawful.kernels import Linear
    >>> Linear()(np.array([[2.0, 0.0]]), np.array([[3.0, 1.0]]))
    array([[7.]])
    """

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

    >>> import numpy as np
    >>> from lawful import KernelRidge
    >>> from lawful.kernels import Gaussian, Precomputed
    >>> X, X_new = np.linspace(0, 1, 9)[:, None], np.array([[0.5]])
    >>> k = Gaussian(sigma=0.5)
    >>> model = KernelRidge(Precomputed(), lam=1e-6).fit(k(X, X), X[:, 0] ** 2)
    >>> model.predict(k(X_new, X)).round(3)
    array([0.25])
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


def as_kernel(kernel: Any) -> Kernel:
    """A `Kernel` from None (Gaussian, tuned), a kernel or a vectorised function.

    >>> import numpy as np
    >>> from lawful.kernels import as_kernel
    >>> as_kernel(lambda X, Z: X @ Z.T)(np.array([[2.0]]), np.array([[3.0]]))
    array([[6.]])
    """
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
    kind.__name__: kind for kind in (Gaussian, Additive, Trend, Laplacian, Matern, Polynomial, Linear, Precomputed)
}


def kernel_state(kernel: Kernel) -> dict[str, Any]:
    """A kernel as its name and its parameters.

    >>> from lawful.kernels import Gaussian, kernel_state
    >>> kernel_state(Gaussian(sigma=2.0))
    {'kind': 'Gaussian', 'sigma': 2.0}
    """
    name = type(kernel).__name__
    if SAVED.get(name) is not type(kernel):
        raise TypeError(
            f"the kernel {kernel!r} is code of the user's, which no state can hold; one of {', '.join(SAVED)} would do"
        )
    return {"kind": name} | {key: _plain_number(value) for key, value in kernel.get_params().items()}


def kernel_from_state(state: dict[str, Any]) -> Kernel:
    """The kernel that `kernel_state` described.

    >>> from lawful.kernels import Gaussian, kernel_from_state, kernel_state
    >>> kernel_from_state(kernel_state(Gaussian(sigma=2.0)))
    Gaussian(sigma=2.0)
    """
    parameters = {key: value for key, value in state.items() if key != "kind"}
    return SAVED[state["kind"]](**parameters)


def _plain_number(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else to_numpy(value)

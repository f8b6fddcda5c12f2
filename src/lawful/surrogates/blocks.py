"""Kernel values between blocks of inputs and M centres, on the host or on a device of torch, and sums of products of them.

The features of an input x are psi(x) = T^-1 k(x), k(x) = [k(x, c_1), ..., k(x, c_M)], with

    T = [ L_pp  0 ]        K_MM = L L',   the first p centres in the order of a pivoted Cholesky factorisation:
        [ L_rp  I ]        psi = [ L_pp^-1 k_p(x);  k_r(x) - L_rp L_pp^-1 k_p(x) ]

so that what a smooth kernel has in common everywhere (constants, linear and quadratic functions) is in p orthonormal features,
and the other M - p hold only what is left. A Gram matrix of k itself loses every direction below 1e-8 of the largest, because
its eigenvalues are squared; that of psi loses those below 1e-8 of the largest *residual*, for p (2M - p) operations a row
beside the M^2 of the Gram matrix. Rough kernels need none of it: p = 0 and psi = k.

Gaussian and Matern kernels are a product of matrices, exponents = [u, 1, |u|^2] [2v, -|v|^2, -1]', and a function in place.
That is exact enough while inputs are not many length scales from the centres (`FAR`); rows that are go the kernel's own way.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsyrk, ssyrk
from threadpoolctl import ThreadpoolController

from lawful._array import Array, array_namespace, device_of, is_torch_array, to_numpy
from lawful._threads import n_threads
from lawful.kernels import Gaussian, Kernel, Matern

__all__ = ["SETTLED", "SMALLEST", "Blocks", "Host", "Pivots", "Torch", "hardware", "pivots"]

FAR = 1e6  # squared length scales from the middle of the centres: beyond, the expanded square loses more than ten digits
PIECE = 2**19  # numbers that one thread turns into kernel values at a time: small enough for its cache
SETTLED = 1e-3  # of the largest k(c, c): pivots are taken until no residual is above it, where lambda is not known
SMALLEST = 1e6  # times lambda otherwise: directions of size M lambda are then above 1e-8 of what is left
MOST_PIVOTS = 0.25  # of the centres
PANELS = 6  # in which a symmetric product without a routine of its own is computed: (1 + 1/6) / 2 of the operations
BYTES = {"float64": 8, "float32": 4, "tf32": 4}


class Pivots:
    """The first p rows of a pivoted Cholesky factorisation of K_MM: which centres come first, and L of them."""

    def __init__(self, order: np.ndarray, L: np.ndarray, left: float = 1.0) -> None:
        self.order, self.L = order, L  # (M,) and (M, p), rows in the new order
        self.left = left  # the largest residual, of the largest k(c, c)

    @property
    def p(self) -> int:
        return int(self.L.shape[1])


def pivots(kernel: Kernel, centers: np.ndarray, settled: float = SETTLED, where: Host | Torch | None = None) -> Pivots:
    """Greedy: the centre with the largest residual k(c, c) is next, until none is above `settled` of the largest k(c, c).

    Every step reads all of L, so it is done where the memory is fast: at M = 10,000 the host takes as long as all sums of a
    million rows on a GPU.
    """
    C = np.asarray(centers, dtype=float) if where is None else where.array(centers, True)
    xp, M = array_namespace(C), len(centers)
    left, K = 1.0 * kernel.diag(C), kernel(C, C)
    first, most = float(xp.max(left)) if M else 0.0, int(MOST_PIVOTS * M)
    rows = xp.zeros((most, M), dtype=C.dtype, device=device_of(C))  # L'
    free = xp.ones(M, dtype=C.dtype, device=device_of(C))  # 0 for those that are chosen
    chosen: list[int] = []
    top = first
    while len(chosen) < most and top > settled * first:
        i, p = int(xp.argmax(left)), len(chosen)
        rows[p, :] = free * (K[i, :] - rows[:p, i] @ rows[:p, :]) / top**0.5
        free[i] = 0.0
        left = xp.where(left > rows[p, :] ** 2, left - rows[p, :] ** 2, xp.zeros_like(left)) * free
        top = float(xp.max(left))
        chosen.append(i)
    order = np.concatenate([np.array(chosen, dtype=np.intp), np.setdiff1d(np.arange(M), chosen)])
    L = np.ascontiguousarray(to_numpy(rows[: len(chosen), :]).T[order])
    return Pivots(order, L, top / first if first > 0 else 1.0)


@cache
def controller() -> ThreadpoolController:
    """Of the libraries that are loaded: finding them takes milliseconds, limiting them none."""
    return ThreadpoolController()


class Host:
    """NumPy arrays, BLAS, and a thread for each core."""

    torch: Any = None

    def __init__(self, dtype: str = "float64") -> None:
        self.dtype = np.dtype(np.float64 if dtype == "float64" else np.float32)
        self.threads = n_threads(None)

    def array(self, values: Any, double: bool = False) -> np.ndarray:
        return np.ascontiguousarray(to_numpy(values), dtype=np.float64 if double else self.dtype)

    def empty(self, *shape: int) -> np.ndarray:
        return np.empty(shape, dtype=self.dtype)

    def zeros(self, *shape: int) -> np.ndarray:
        return np.zeros(shape, order="F")

    def gram(self, A: np.ndarray, S: np.ndarray) -> None:
        """S += A' A, its lower triangle; single precision is summed in double."""
        if self.dtype == np.float64:
            dsyrk(1.0, A.T, beta=1.0, c=S, overwrite_c=1, lower=1)
        else:
            S += ssyrk(1.0, A.T, lower=1)

    def symmetric(self, S: np.ndarray) -> np.ndarray:
        """The whole of a matrix of which `gram` made the lower triangle."""
        lower = np.tril(S)
        return lower + np.tril(S, -1).T

    def pieces(self, function: Any, n: int, width: int) -> None:
        """function(slice) for slices of n rows, on all threads, BLAS on one."""
        size = max(16, PIECE // max(width, 1))
        slices = [slice(i, min(i + size, n)) for i in range(0, n, size)]
        if self.threads == 1 or len(slices) == 1:
            for one in slices:
                function(one)
            return
        with controller().limit(limits=1, user_api="blas"), ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(function, slices))


class Torch:
    """Tensors on a device of torch. Everything is double precision, or single with Gram matrices summed in double."""

    def __init__(self, device: Any, dtype: str = "float64") -> None:
        torch = self.torch
        self.device = torch.device(device)
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"NystromRidge(device={str(device)!r}): torch sees no such device here; device=None would do")
        self.dtype = torch.float64 if dtype == "float64" else torch.float32
        self.tf32 = dtype == "tf32"

    @property
    def torch(self) -> Any:
        import torch  # not kept: a module cannot be pickled

        return torch

    def array(self, values: Any, double: bool = False) -> Any:
        dtype = self.torch.float64 if double else self.dtype
        tensor = values if is_torch_array(values) else self.torch.from_numpy(np.ascontiguousarray(values))
        return tensor.to(device=self.device, dtype=dtype)

    def empty(self, *shape: int) -> Any:
        return self.torch.empty(shape, dtype=self.dtype, device=self.device)

    def zeros(self, *shape: int) -> Any:
        return self.torch.zeros(shape, dtype=self.torch.float64, device=self.device)

    def gram(self, A: Any, S: Any) -> None:
        """S += A' A, the blocks on and below its diagonal: torch has no symmetric product of its own."""
        matmul = self.torch.backends.cuda.matmul
        before = matmul.allow_tf32
        matmul.allow_tf32 = self.tf32
        M = A.shape[1]
        cuts = np.linspace(0, M, (PANELS if M >= 64 * PANELS else 1) + 1).round().astype(int)
        for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist()):
            right = A[:, start:end]
            if self.dtype == self.torch.float64:
                S[start:, start:end].addmm_(A[:, start:].T, right)
            else:
                S[start:, start:end] += A[:, start:].T @ right
        matmul.allow_tf32 = before

    def symmetric(self, S: Any) -> Any:
        lower = self.torch.tril(S)
        return lower + self.torch.tril(S, -1).T


def hardware(device: Any, dtype: str, X: Array) -> Host | Torch:
    """Where the work is done: on `device`, on that of X if it is a tensor, else on the host."""
    if device is None and is_torch_array(X):
        return Torch(X.device, dtype)
    return Host(dtype) if device is None else Torch(device, dtype)


class Blocks:
    """psi(x) for blocks of inputs, and k(x) where `plain` is asked for; see the module's docstring.

    `centers` are in the order of `found`.
    """

    def __init__(self, kernel: Kernel, centers: np.ndarray, found: Pivots, where: Host | Torch) -> None:
        self.kernel, self.centers, self.where = kernel, centers, where
        self.M, self.p = len(centers), found.p
        self.fast = type(kernel) is Gaussian or (type(kernel) is Matern and kernel.nu in (1.5, 2.5))
        if self.fast:
            scale = kernel.scales(centers.shape[1])  # type: ignore[attr-defined]
            self.middle, self.scale = centers.mean(axis=0), np.array(scale)
            V = (centers - self.middle) / self.scale
            right = np.concatenate([2 * V, -np.sum(V**2, axis=1)[:, None], -np.ones((self.M, 1))], axis=1)
            self.right = where.array(np.ascontiguousarray(right.T))
            self.shift, self.unit = where.array(self.middle, True), where.array(1 / self.scale, True)
        if self.p:
            whiten = solve_triangular(found.L[: self.p], np.eye(self.p), lower=True)
            self.whiten, self.rest = where.array(whiten.T.copy()), where.array(found.L[self.p :].T.copy())

    def rows(self, budget: float) -> int:
        """So many rows fill a block of `budget` bytes."""
        size = 8 if self.where.dtype in (np.float64, getattr(self.where.torch, "float64", None)) else 4
        return int(max(64, budget // (size * (self.M + 1))))

    def fill(self, X: Array, out: Array, root: Array | None = None, plain: bool = False) -> None:
        """out (b, M) = psi(X), each row times an entry of `root`."""
        if isinstance(self.where, Host):
            values, k = to_numpy(X), self.M

            def piece(part: slice) -> None:
                self._host(values[part], out[part], plain)
                if root is not None:
                    out[part] *= root[part, None]

            self.where.pieces(piece, len(values), k)
            return
        self._torch(self.where.array(X, True), out, plain)
        if root is not None:
            out *= self.where.array(root)[:, None]

    def _host(self, X: np.ndarray, out: np.ndarray, plain: bool) -> None:
        slow: Any = slice(None)
        if self.fast:
            with np.errstate(over="ignore"):  # infinitely far goes the kernel's own way too
                U = (X - self.middle) / self.scale
                square = np.einsum("ij,ij->i", U, U)
            slow = np.flatnonzero(~(square < FAR))
            left = np.empty((len(X), self.right.shape[0]), dtype=out.dtype)
            left[:, :-2], left[:, -2], left[:, -1] = U, 1.0, square
            left[slow] = 0.0
            np.matmul(left, self.right, out=out)
            _profile(self.kernel, out)
        if not self.fast or slow.size:
            out[slow] = to_numpy(self.kernel(X[slow], self.centers))
        if self.p and not plain:
            out[:, : self.p] = out[:, : self.p] @ self.whiten
            out[:, self.p :] -= out[:, : self.p] @ self.rest

    def _torch(self, X: Any, out: Any, plain: bool) -> None:
        torch = self.where.torch
        if not self.fast:
            out.copy_(self.kernel(X, self.where.array(self.centers, True)))
        else:
            U = (X - self.shift) * self.unit
            square = torch.sum(U * U, dim=1)
            left = torch.cat([U, torch.ones_like(square)[:, None], square[:, None]], dim=1).to(out.dtype)
            torch.mm(left, self.right, out=out)
            _torch_profile(self.kernel, out, torch)
            far = torch.nonzero(~(square < FAR))[:, 0]
            if far.numel():
                out[far] = self.kernel(X[far], self.where.array(self.centers, True)).to(out.dtype)
        if self.p and not plain:
            out[:, : self.p] = out[:, : self.p] @ self.whiten
            out[:, self.p :].addmm_(out[:, : self.p], self.rest, alpha=-1.0)


def slices(n: int, size: int) -> Iterator[slice]:
    """0 ... n in parts of at most `size`."""
    return (slice(i, min(i + size, n)) for i in range(0, n, size))


def _profile(kernel: Kernel, out: np.ndarray) -> None:
    """From minus the squared distances to kernel values, in place."""
    if isinstance(kernel, Gaussian):
        np.exp(out, out=out)
        return
    nu = kernel.nu  # type: ignore[attr-defined]
    np.minimum(out, 0.0, out=out)
    out *= -2 * nu
    np.sqrt(out, out=out)
    values = np.exp(-out)
    if nu == 2.5:
        values *= 1 + out + out * out / 3
    elif nu == 1.5:
        values *= 1 + out
    out[...] = values


def _torch_profile(kernel: Kernel, out: Any, torch: Any) -> None:
    if isinstance(kernel, Gaussian):
        out.exp_()
        return
    nu = kernel.nu  # type: ignore[attr-defined]
    out.clamp_(max=0.0).mul_(-2 * nu).sqrt_()
    values = torch.exp(-out)
    if nu == 2.5:
        values *= 1 + out + out * out / 3
    elif nu == 1.5:
        values *= 1 + out
    out.copy_(values)

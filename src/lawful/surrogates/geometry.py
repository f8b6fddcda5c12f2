"""Kernel matrices of a sample and their slopes, for the parameters that evidence tunes.

theta is t_j = log of the length scale of every input and, for `Additive`, the log of share / (1 - share). For a symmetric W

    contract(W)_j = sum_ab W_ab dR_ab / dtheta_j,      slopes(V)_g = sum of dR/dtheta_j V over the parameters j of group g

For k = f(q) the d of them are two products of an n x n matrix with an n x d one, because
sum_ab M_ab (u_aj - u_bj)^2 = 2 (M1)' u_j^2 - 2 u_j' M u_j for M = W o (-f') and inputs u in length scales.

W comes as it is computed, a lower triangle and a few outer products (`Symmetric`), and matrices that only pass are made in
blocks that stay in the cache: memory is slower than arithmetic here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lawful.kernels import Additive, Gaussian, Matern, Stationary, Trend
from lawful.surrogates.device import DeviceGeometry

__all__ = ["AdditiveGeometry", "Geometry", "Groups", "Room", "Symmetric", "TrendGeometry", "geometry"]

BLOCK = 2**15  # numbers that stay in the cache
KEPT = 2**23  # numbers of matrices of single inputs that are kept and not made again
SINGLE = 1e-4  # g above which those may be in single precision
Groups = list[np.ndarray]  # inputs whose length scales move together


class Room:
    """Matrices (n, n) that are used again: fresh memory costs more than what is computed in it.

    Each name is one piece of memory, so whoever asks for it a second time is done with the first.
    """

    def __init__(self, device: Any = None) -> None:
        self.device = device  # of torch, where matrices are made there
        self.made: dict[str, np.ndarray] = {}
        self.dtype: type = np.float64  # of matrices that are sums of many
        self.tied: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def squares(self, X: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Squared distances over the inputs g, which have one length scale: the same matrix for all values of it."""
        if self.tied is None or self.tied[0] is not X or self.tied[1] is not g:
            self.tied = (X, g, squares(X[:, g]))
        return self.tied[2]

    def __call__(self, name: str, n: int) -> np.ndarray:
        return self.space(name, (n, n), np.float64)

    def space(self, name: str, shape: tuple[int, ...], dtype: type) -> np.ndarray:
        size = int(np.prod(shape))
        if name not in self.made or self.made[name].size < size or self.made[name].dtype != dtype:
            self.made[name] = np.empty(size, dtype=dtype)
        return self.made[name][:size].reshape(shape)


class Symmetric(NamedTuple):
    """low + low' - diag(low) - sum_k outer[k] outer[k]'; `low` is lower triangular, and whoever reads it may overwrite it."""

    low: np.ndarray  # (n, n), columns contiguous
    outer: np.ndarray  # (k, n)

    def times(self, right: np.ndarray) -> np.ndarray:
        out = self.low @ right + self.low.T @ right - self.low.diagonal()[:, None] * right
        return out - self.outer.T @ (self.outer @ right)

    def full(self) -> np.ndarray:
        return self.low + self.low.T - np.diag(self.low.diagonal()) - self.outer.T @ self.outer

    def diagonal(self) -> np.ndarray:
        return self.low.diagonal() - (self.outer**2).sum(axis=0)


def geometry(
    kernel: Stationary, X: np.ndarray, theta: np.ndarray, room: Room | None = None, groups: Groups | None = None
) -> Any:
    """The one that suits a kernel; its matrices are in `room`, where one is given. `groups`: inputs that move together."""
    if room is not None and room.device is not None and kernel.power == 2 and kernel.smooth:
        return DeviceGeometry(kernel, X, theta, room)
    kind = TrendGeometry if isinstance(kernel, Trend) else AdditiveGeometry if isinstance(kernel, Additive) else Geometry
    return kind(kernel, X, theta, Room() if room is None else room, groups)


class Geometry:
    """k = f(q) between the inputs: what tasks on the same inputs share."""

    def __init__(self, kernel: Stationary, X: np.ndarray, theta: np.ndarray, room: Room, groups: Groups | None = None) -> None:
        self.power, self.room, n = kernel.power, room, len(X)
        self.U = (X - X.mean(axis=0)) / np.exp(theta[: X.shape[1]])
        many = [g for g in groups or [] if len(g) > 1 and np.ptp(theta[g]) == 0]
        self.tied: np.ndarray | None = many[0] if len(many) == 1 and kernel.power == 2 and kernel.smooth else None
        self.free = np.setdiff1d(np.arange(X.shape[1]), [] if self.tied is None else self.tied)
        if self.tied is not None:
            self.apart_tied = room.squares(X, self.tied)
            self.reach = float(np.exp(-2 * theta[self.tied[0]]))
        if kernel.power == 2 and kernel.smooth:
            q = squares(self.U[:, self.free], room("q", n))
            if self.tied is not None:
                for rows in blocks(n, n):
                    q[rows] += self.reach * self.apart_tied[rows]
        else:
            q = type(kernel)(**(kernel.get_params() | {"sigma": 1.0})).distance(self.U, self.U)
        self.R, self.decay = room("R", n), room("decay", n)
        for rows in blocks(len(q), len(q)):
            profile_and_decay(kernel, q[rows], self.R[rows], self.decay[rows])

    def _contract(self, W: Symmetric) -> np.ndarray:
        if self.power != 2:
            M = W.full() * self.decay
            return np.array([float(np.sum(M * np.abs(u[:, None] - u[None, :]))) for u in self.U.T])
        U, out = self.U[:, self.free], np.zeros(self.U.shape[1])
        right = np.concatenate([np.ones((len(U), 1)), U], axis=1)
        M = np.multiply(W.low, self.decay.T, out=W.low)
        got = M @ right + M.T @ right - M.diagonal()[:, None] * right
        for v in W.outer:
            got -= v[:, None] * (self.decay @ (v[:, None] * right))
        out[self.free] = 4 * (got[:, 0] @ U**2 - np.einsum("ij,ij->j", U, got[:, 1:]))
        if self.tied is not None:  # all of the group's slope at one of its inputs
            weighed = self.decay * self.apart_tied
            total = 2 * np.vdot(M.T, self.apart_tied) - sum(float(v @ (weighed @ v)) for v in W.outer)
            out[self.tied[0]] = 2 * self.reach * total
        return out

    def both(self, W: Symmetric, V: np.ndarray, groups: Groups) -> tuple[np.ndarray, list[np.ndarray]]:
        """contract(W), and the sum of dR/dtheta_j V over the inputs j of each group."""
        return self._contract(W), self._slopes(V, groups) if V.shape[1] else []

    def _slopes(self, V: np.ndarray, groups: Groups) -> list[np.ndarray]:
        if self.power != 2:
            return [(self.decay * np.abs(self.U[:, None, g] - self.U[None, :, g]).sum(axis=2)) @ V for g in groups]
        (n, k), alone = V.shape, np.array([g[0] for g in groups if len(g) == 1], dtype=int)
        u = self.U[:, alone].T[:, :, None]  # (inputs, n, 1)
        stacked = np.concatenate([V[None], u * V, u**2 * V])
        moved = (self.decay @ stacked.transpose(1, 0, 2).reshape(n, -1)).reshape(n, -1, k).transpose(1, 0, 2)
        a = len(alone)
        each = iter(2 * (u**2 * moved[0] - 2 * u * moved[1 : 1 + a] + moved[1 + a :]))
        return [next(each) if len(g) == 1 else 2 * self._apart(g) @ V for g in groups]

    def _apart(self, g: np.ndarray) -> np.ndarray:
        return self.decay * (self.reach * self.apart_tied if g is self.tied else squares(self.U[:, g]))


class AdditiveGeometry(Geometry):
    """R = (1 - share) product + share mean_j E_j, E_j = exp(-(u_j - u_j')^2)."""

    def __init__(self, kernel: Additive, X: np.ndarray, theta: np.ndarray, room: Room, groups: Groups | None = None) -> None:
        super().__init__(kernel, X, theta, room)
        n, d = X.shape
        self.share = float(1 / (1 + np.exp(-theta[d])))
        self.apart = self.R  # the product
        self.alone, self.R = room("alone", n), room("sum", n)
        self.kept: list[tuple[slice, np.ndarray]] | None = [] if n * n * d <= KEPT else None
        for rows, E in self._each():
            np.divide(E.sum(axis=0), d, out=self.alone[rows])
        for rows in blocks(n, n):
            np.multiply(self.apart[rows], 1 - self.share, out=self.R[rows])
            self.R[rows] += self.share * self.alone[rows]
            self.decay[rows] *= 1 - self.share

    def _each(self) -> Iterator[tuple[slice, np.ndarray]]:
        """(rows, those of all E_j), made again whenever they are needed where they are too many to keep."""
        if self.kept:
            yield from self.kept
            return
        (n, d), dtype = self.U.shape, self.room.dtype
        U: np.ndarray = np.ascontiguousarray(self.U.T, dtype=dtype)
        memory = self.room.space("each", (d * n * n if self.kept is not None else 8 * BLOCK,), dtype)
        for rows in blocks(n, d * n // 8):
            m = d * n * (rows.stop - rows.start)
            begin = d * n * rows.start if self.kept is not None else 0
            memory = memory if len(memory) >= begin + m else np.empty(m, dtype=dtype)
            E = memory[begin : begin + m].reshape(d, -1, n)
            np.subtract(U[:, rows, None], U[:, None, :], out=E)
            np.multiply(E, E, out=E)
            np.negative(E, out=E)
            np.exp(E, out=E)
            if self.kept is not None:
                self.kept.append((rows, E))
            yield rows, E

    def both(self, W: Symmetric, V: np.ndarray, groups: Groups) -> tuple[np.ndarray, list[np.ndarray]]:
        (n, d), k, low, outer, U = self.U.shape, V.shape[1], W.low, W.outer, self.U.T[:, :, None]
        share = 2 * (np.vdot(low.T, self.alone) - np.vdot(low.T, self.apart))  # their diagonals are equal
        share -= float(np.sum(outer * (outer @ self.alone - outer @ self.apart)))
        whole = np.matmul(outer.T, -outer, out=self.room("q", n))
        for rows in blocks(n, n):
            whole[rows] += low[rows]
            whole[rows] += low[:, rows].T
        np.einsum("ii->i", whole)[...] -= low.diagonal()
        contracted, moved = super().both(W, V, groups)
        dtype, each = self.room.dtype, self.share / d
        right: np.ndarray = np.concatenate([np.broadcast_to(V, (d, n, k)), U * V, U**2 * V], axis=2).astype(dtype)
        ends: np.ndarray = np.concatenate([np.ones((d, n, 1)), U], axis=2).astype(dtype)
        slope, pushed = np.zeros(d), np.zeros((d, n, k))
        for rows, E in self._each():
            u = U[:, rows]
            if k:
                got = E @ right
                pushed[:, rows] = u**2 * got[:, :, :k] - 2 * u * got[:, :, k : 2 * k] + got[:, :, 2 * k :]
            weighed = np.multiply(E, whole[rows].astype(dtype), out=self.room.space("weighed", E.shape, dtype))
            sums = weighed @ ends
            slope += 4 * each * np.einsum("jai,jai->j", u, u * sums[:, :, :1] - sums[:, :, 1:])
        for g, total in zip(groups, moved):
            total += 2 * each * pushed[g].sum(axis=0)
        bend = self.share * (1 - self.share)  # dshare / dlogit
        return np.append(contracted + slope, bend * share), [*moved, bend * (self.alone @ V - self.apart @ V)]


class TrendGeometry(Geometry):
    """R = 2 U U'."""

    def __init__(self, kernel: Trend, X: np.ndarray, theta: np.ndarray, room: Room, groups: Groups | None = None) -> None:
        self.room, self.U = room, (X - X.mean(axis=0)) / np.exp(theta)
        self.R = np.matmul(2 * self.U, self.U.T, out=room("R", len(X)))

    def _contract(self, W: Symmetric) -> np.ndarray:
        return -4 * np.einsum("ij,ij->j", self.U, W.times(self.U))

    def _slopes(self, V: np.ndarray, groups: Groups) -> list[np.ndarray]:
        return [-4 * (self.U[:, g] @ (self.U[:, g].T @ V)) for g in groups]


def profile_and_decay(kernel: Stationary, q: np.ndarray, f: np.ndarray, decay: np.ndarray) -> None:
    """f and -f' at q, without a matrix beside the three; q is overwritten."""
    if type(kernel) not in (Gaussian, Additive, Matern) or getattr(kernel, "nu", 2.5) == 0.5:
        f[...], decay[...] = kernel.profile_and_decay(q)
        return
    if not isinstance(kernel, Matern):
        np.negative(q, out=q)
        np.exp(q, out=f)
        decay[...] = f
        return
    q *= 2 * kernel.nu
    r = np.sqrt(q, out=q)
    np.negative(r, out=f)
    np.exp(f, out=f)
    if kernel.nu == 1.5:
        np.multiply(f, 1.5, out=decay)
        r += 1
        f *= r
        return
    np.add(r, 1, out=decay)
    decay *= f
    r *= r
    r *= 1 / 3
    f *= r
    f += decay
    decay *= 5 / 6


def squares(U: np.ndarray, q: np.ndarray | None = None) -> np.ndarray:
    """(n, n) squared distances between the rows, in `q` where that is given."""
    size = np.einsum("ij,ij->i", U, U)
    q = np.matmul(-2 * U, U.T, out=q)  # of two arrays: for U @ U.T NumPy copies a triangle, slowly
    for rows in blocks(len(q), len(q)):
        q[rows] += size[rows, None]
        q[rows] += size[None, :]
        np.maximum(q[rows], 0.0, out=q[rows])
    np.fill_diagonal(q, 0.0)
    return q


def blocks(n: int, width: int) -> Iterator[slice]:
    """0 ... n in parts of which matrices of so many columns stay in the cache."""
    size = max(1, BLOCK // max(width, 1))
    return (slice(i, min(i + size, n)) for i in range(0, n, size))

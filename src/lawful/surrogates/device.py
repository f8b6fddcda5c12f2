"""Evidence on a device of torch: the formulas of `evidence` and `geometry` once more, in whole matrices.

On the host matrices are made in blocks that stay in the cache and in memory that is used again; on a device they are best left
whole. Numbers are the same to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lawful.kernels import Additive, Stationary, Trend

__all__ = ["DeviceGeometry", "device_of_choice"]


def device_of_choice(device: Any, given: Any) -> Any:
    """The device of torch that a ridge works on, None for the host: `device` as in `KernelRidge`, `given` that of the data."""
    if device is None or (isinstance(device, str) and device == "auto"):
        return given
    if str(device) == "cpu":
        return None
    try:
        import torch

        found = torch.device(device)
    except ImportError as error:
        raise ImportError(f"KernelRidge(device={device!r}) needs torch; install it, or give device='cpu'") from error
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"KernelRidge(device={device!r}) will not do; give 'auto', 'cpu', 'cuda' or 'cuda:1'") from error
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"KernelRidge(device={device!r}): torch sees no such device here; device='auto' would do")
    return found


class DeviceGeometry:
    """R = k(X, X) and its slopes, as `Geometry` on the host; and the evidence of labels there."""

    def __init__(self, kernel: Stationary, X: np.ndarray, theta: np.ndarray, room: Any) -> None:
        import torch

        self.torch, self.kernel, self.room, d = torch, kernel, room, X.shape[1]
        self.U = self.tensor((X - X.mean(axis=0)) / np.exp(theta[:d]))
        if isinstance(kernel, Trend):
            self.R = 2 * self.U @ self.U.T
            return
        size = (self.U * self.U).sum(1)
        q = (size[:, None] + size[None, :] - 2 * self.U @ self.U.T).clamp_(min=0.0)
        q.fill_diagonal_(0.0)
        self.R, self.decay = kernel.profile_and_decay(q)
        if isinstance(kernel, Additive):
            self.share = float(1 / (1 + np.exp(-theta[d])))
            self.alone, self.apart = sum(self._each(j) for j in range(d)) / d, self.R
            self.R = (1 - self.share) * self.apart + self.share * self.alone
            self.decay = (1 - self.share) * self.decay

    def tensor(self, a: Any) -> Any:
        return self.torch.as_tensor(np.ascontiguousarray(a, dtype=float), device=self.room.device)

    def _each(self, j: int) -> Any:
        u = self.U[:, j]
        return self.torch.exp(-((u[:, None] - u[None, :]) ** 2))

    # ------------------------------------------------------------------ slopes

    def contract(self, W: Any) -> np.ndarray:
        """sum_ab W_ab dR_ab / dtheta_j."""
        U = self.U
        if isinstance(self.kernel, Trend):
            return (-4 * (U * (W @ U)).sum(0)).cpu().numpy()

        def of(M: Any, V: Any) -> Any:
            return 4 * ((V * V * M.sum(1)[:, None]).sum(0) - (V * (M @ V)).sum(0))

        out = of(W * self.decay, U)
        if not isinstance(self.kernel, Additive):
            return out.cpu().numpy()
        d, s = U.shape[1], self.share
        out = out + s / d * self.torch.cat([of(W * self._each(j), U[:, j : j + 1]) for j in range(d)])
        return np.append(out.cpu().numpy(), s * (1 - s) * float((W * (self.alone - self.apart)).sum()))

    def slopes(self, V: Any, groups: list[np.ndarray]) -> list[Any]:
        """The sum of dR/dtheta_j V over the inputs j of each group, and that of the share."""
        U = self.U
        if isinstance(self.kernel, Trend):
            return [-4 * (U[:, g] @ (U[:, g].T @ V)) for g in groups]

        def of(M: Any, u: Any) -> Any:
            return 2 * (u * u * (M @ V) - 2 * u * (M @ (u * V)) + M @ (u * u * V))

        out = [sum(of(self.decay, U[:, j : j + 1]) for j in g) for g in groups]
        if isinstance(self.kernel, Additive):
            d, s = U.shape[1], self.share
            own = [s / d * of(self._each(j), U[:, j : j + 1]) for j in range(d)]
            out = [part + sum(own[j] for j in g) for part, g in zip(out, groups)]
            out.append(s * (1 - s) * (self.alone @ V - self.apart @ V))
        return out

    # ------------------------------------------------------------------ labels

    def factor(self, labels: Any, log_g: float) -> tuple[Any, Any] | None:
        """L of A = R + g W^-1, and g / w; None where A is singular."""
        noise = self.tensor(float(np.exp(log_g)) / labels.w)
        A = self.R.clone()
        A.diagonal().add_(noise)
        L, failed = self.torch.linalg.cholesky_ex(A)
        return None if int(failed) else (L, noise)

    def evidence(
        self, labels: Any, log_g: float, slope: bool, groups: list[np.ndarray] | None, z: np.ndarray | None
    ) -> tuple[float, np.ndarray | None, np.ndarray | None, float] | None:
        """(f, its gradient, the information of groups, s2) as in `evidence.evidence`."""
        torch, g, n, p = self.torch, float(np.exp(log_g)), labels.n, len(labels.w)
        found = self.factor(labels, log_g)
        if found is None:
            return None
        L, noise = found
        half = torch.linalg.solve_triangular(L, self.tensor(np.stack([labels.y, np.ones(p)], axis=1)), upper=False)
        code, v = half[:, 0], half[:, 1]
        height = float(v @ v) if labels.intercept else 1.0
        if labels.intercept:
            code = code - v * (float(v @ code) / height)
        s2 = max((float(code @ code) + labels.within / g) / labels.free, 1e-300)
        value = 0.5 * (labels.free * np.log(s2) + 2 * float(torch.log(L.diagonal()).sum()) + (n - p) * log_g)
        value += 0.5 * np.log(height)
        if not slope and groups is None:
            return float(value), None, None, s2
        a, b = torch.linalg.solve_triangular(L.T, torch.stack([code, v], dim=1), upper=True).T
        W = 0.5 * torch.cholesky_inverse(L)
        W -= a[:, None] * (a / (2 * s2))[None, :]
        if labels.intercept:
            W -= b[:, None] * (b / (2 * height))[None, :]
        last = float(W.diagonal() @ noise) + 0.5 * (n - p) - 0.5 * labels.within / (g * s2)
        gradient = np.append(self.contract(W), last)
        if groups is None:
            return float(value), gradient, None, s2
        v = v / height**0.5 if labels.intercept else None
        Z = self.tensor(z)
        Z = Z if v is None else Z - v[:, None] * (v @ Z)[None, :]
        V = torch.linalg.solve_triangular(L.T, Z, upper=True)
        size, columns = float((Z * Z).sum()), []
        for moved in [*self.slopes(V, groups), noise[:, None] * V]:
            part = torch.linalg.solve_triangular(L, moved, upper=False)
            part = part if v is None else part - v[:, None] * (v @ part)[None, :]
            columns.append((part - Z * (float((Z * part).sum()) / size)).ravel())
        stacked = torch.stack(columns)
        F = (stacked @ stacked.T).cpu().numpy() * (0.5 * (p - labels.intercept) / size)
        F[-1, -1] += 0.5 * (n - p)
        return float(value), gradient, F, s2

    def leave_one_out(self, labels: Any, log_g: float) -> tuple[np.ndarray, np.ndarray] | None:
        """As `evidence.leave_one_out`."""
        found = self.factor(labels, log_g)
        if found is None:
            return None
        P, y = self.torch.cholesky_inverse(found[0]), self.tensor(labels.y)
        a, diagonal = P @ y, P.diagonal()
        if labels.intercept:
            b = P.sum(1)
            a, diagonal = a - b * (float(b @ y) / float(b.sum())), diagonal - b * b / float(b.sum())
        s2 = (float(y @ a) + labels.within / float(np.exp(log_g))) / labels.free
        diagonal = diagonal.clamp(min=1e-300)
        return (a / diagonal).cpu().numpy(), (max(s2, 1e-300) / diagonal).sqrt().cpu().numpy()

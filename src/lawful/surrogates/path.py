"""Exact kernel ridges for a path of lambdas on a device: one kernel matrix, one Cholesky factorisation for each lambda.

    (H K H + n lambda I) c = H z,      H = I - 1 1' / n with an intercept, else I;      beta = mean(z - K c)

Eigenvectors would serve every lambda at once, but on a device they cost as much as a hundred Cholesky factorisations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lawful._array import Array, array_namespace, is_torch_array, solve_lower, to_numpy
from lawful._memory import require_memory
from lawful.kernels import Kernel
from lawful.surrogates.blocks import Blocks, Host, Pivots, hardware
from lawful.surrogates.exact import EPS, TOO_SMALL
from lawful.surrogates.normal import cholesky

__all__ = ["exact_path"]


def exact_path(
    kernel: Kernel, X: Array, Z: Array, lams: Sequence[float], *, intercept: bool = True, device: Any = None
) -> tuple[Array, Array]:
    """coef (L, n, k) and beta (L, k): predictions are k(x, X) coef[l] + beta[l]. X (n, d) distinct rows, Z (n, k).

    `device` as in `NystromRidge`. Tensors give tensors, NumPy arrays NumPy arrays.
    """
    where = hardware(device, "float64", X)
    n = X.shape[0]
    if isinstance(where, Host):
        require_memory("exact_path", 8.0 * n * n * 2, f"two kernel matrices of {n} rows", "NystromRidge() would do")
    points = np.asarray(to_numpy(X), dtype=float)
    K = where.empty(n, n)
    Blocks(kernel, points, Pivots(np.arange(n), np.zeros((n, 0))), where).fill(points, K, plain=True)
    xp = array_namespace(K)
    labels = where.array(Z, True)
    mean = xp.mean(K, axis=0)
    level = float(xp.mean(mean))
    if intercept:
        K -= mean[:, None]
        K -= mean[None, :]
        K += level
    z_mean = xp.mean(labels, axis=0) if intercept else 0 * labels[0]
    coefs, betas = [], []
    for lam in lams:
        C = cholesky(K, n * float(lam))
        if C is None:
            raise ValueError(TOO_SMALL.format(lam=float(lam), least=EPS * n))
        c = solve_lower(C, solve_lower(C, labels - z_mean[None, :]), transpose=True)
        del C
        coefs.append(c)
        betas.append(z_mean - mean @ c if intercept else z_mean)
    coef, beta = xp.stack(coefs), xp.stack(betas)
    return (coef, beta) if is_torch_array(X) else (to_numpy(coef), to_numpy(beta))

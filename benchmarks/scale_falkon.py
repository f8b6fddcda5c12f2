"""Falkon (Rudi, Carratino & Rosasco 2017) as published, in plain torch: for `benchmarks/scale.py --part falkon`.

    T = chol(K_MM),  A = chol(T T' / M + lambda I),  conjugate gradients on  A^-T T^-T (K_nM' K_nM / n + lambda K_MM) T^-1 A^-1

in double precision, kernel values in blocks of rows, made again in every step. It stops by an oracle: at the first step whose
test error is that of ours within 1 %; the time of looking at the test rows is not counted.
"""

from __future__ import annotations

import time

import numpy as np
import torch

BLOCK, MOST = 4096, 100


class Clock:
    """Seconds of the wall clock and of the processor while it runs."""

    def __init__(self) -> None:
        self.spent = np.zeros(2)

    def __enter__(self) -> None:
        self.start = np.array([time.perf_counter(), time.process_time()])

    def __exit__(self, *_: object) -> None:
        self.spent += np.array([time.perf_counter(), time.process_time()]) - self.start


def falkon(X: np.ndarray, Y: np.ndarray, C: np.ndarray, scales: np.ndarray, lam: float, test, aim: float):
    """(wall, CPU) seconds, the error, the steps; scales: k(x, z) = exp(-|(x - z) / scales|^2)."""
    clock = Clock()
    with clock:
        n, M = len(X), len(C)
        inputs, mean = torch.from_numpy(X / scales), Y.mean(axis=0)
        labels = torch.from_numpy((Y - mean) / n)
        V = torch.from_numpy(C / scales)
        norms = (V**2).sum(dim=1)
        blocks = [slice(i, min(i + BLOCK, n)) for i in range(0, n, BLOCK)]

        def values(U: torch.Tensor) -> torch.Tensor:
            K = torch.addmm(norms[None, :], U, V.T, alpha=-2.0)
            return K.add_((U**2).sum(dim=1)[:, None]).clamp_(min=0).neg_().exp_()

        eye = torch.eye(M, dtype=torch.float64)
        T = torch.linalg.cholesky(values(V) + 1e-12 * M * eye, upper=True)
        A = torch.linalg.cholesky(T @ T.T / M + lam * eye, upper=True)

        def down(u: torch.Tensor) -> torch.Tensor:
            u = torch.linalg.solve_triangular(A, u, upper=True)
            return torch.linalg.solve_triangular(T, u, upper=True)

        def up(v: torch.Tensor) -> torch.Tensor:
            v = torch.linalg.solve_triangular(T.T, v, upper=False)
            return torch.linalg.solve_triangular(A.T, v, upper=False)

        def product(u: torch.Tensor) -> torch.Tensor:
            total = torch.zeros_like(u)
            for rows in blocks:
                K = values(inputs[rows])
                total += K.T @ (K @ u)
            return total / n

        right = torch.zeros((M, Y.shape[1]), dtype=torch.float64)
        for rows in blocks:
            right += values(inputs[rows]).T @ labels[rows]
        r = up(right)
        beta = torch.zeros_like(r)
        p, rs = r, (r * r).sum(dim=0)
    for step in range(1, MOST + 1):  # noqa: B007
        with clock:
            inner = torch.linalg.solve_triangular(A, p, upper=True)
            w = up(product(torch.linalg.solve_triangular(T, inner, upper=True)))
            w += lam * torch.linalg.solve_triangular(A.T, inner, upper=False)
            a = rs / (p * w).sum(dim=0)
            beta, r = beta + a * p, r - a * w
            new = (r * r).sum(dim=0)
            p, rs = r + new / rs * p, new
        coef = down(beta)
        error = test.error(lambda B: (values(torch.from_numpy(B / scales)) @ coef).numpy() + mean)  # noqa: B023
        if error <= aim:
            break
    return clock.spent, error, step

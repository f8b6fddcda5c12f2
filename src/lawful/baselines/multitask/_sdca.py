"""Kernels of stochastic dual coordinate ascent for output kernel learning, on plain arrays.

Maximise over alpha, q = p/(p-1) even, M_rs = <V_r, V_s>, V_s = sum_{j in s} alpha_j phi_j:

    D(alpha) = sum_i h_i(alpha_i) - (lam/q) sum_rs M_rs^q
    h(x) = 2 lam y x - lam^2 x^2 / omega                  square loss
           2 lam y x - 2 lam eps |x|,  |x| <= omega/(2 lam)    epsilon-insensitive loss

One coordinate i of task r moves by delta:  M_rr -> M_rr + 2 b_r delta + a delta^2,  M_rs -> M_rs + b_s delta, with a =
|phi_i|^2 and b_s = <phi_i, V_s>. What is left is convex in delta with an increasing derivative: Newton's method inside a
bracket.
"""

from __future__ import annotations

import numpy as np
from numba import njit

STEPS = 60


@njit(cache=True, nogil=True)
def slope(delta, r, a, b, M, lam, q):
    """First and second derivative of (lam/q) sum_rs M_rs^q at a move by delta."""
    first = 0.0
    second = 0.0
    for s in range(b.size):
        if s == r:
            u = max(M[r, r] + (2 * b[r] + a * delta) * delta, 0.0)
            du = 2 * (b[r] + a * delta)
            low = u ** (q - 2)
            first += low * u * du
            second += (q - 1) * low * du * du + low * u * 2 * a
        else:
            u = M[r, s] + b[s] * delta
            low = u ** (q - 2)
            first += 2 * low * u * b[s]
            second += 2 * (q - 1) * low * b[s] * b[s]
    return lam * first, lam * second


@njit(cache=True, nogil=True)
def move(x, y, omega, eps, tube, r, a, b, M, lam, q):
    """The best new value of the coordinate that is now x."""
    low, high = -np.inf, np.inf
    quadratic = 0.0
    shift = -2 * lam * y
    if tube:
        bound = omega / (2 * lam)
        at_zero = slope(-x, r, a, b, M, lam, q)[0] + shift
        if abs(at_zero) <= 2 * lam * eps:
            return 0.0
        if at_zero < 0:  # the answer is positive
            low, high = 0.0, bound
            shift += 2 * lam * eps
        else:
            low, high = -bound, 0.0
            shift -= 2 * lam * eps
        end = bound if at_zero < 0 else -bound
        if (slope(end - x, r, a, b, M, lam, q)[0] + shift) * end <= 0:
            return end
        z = min(max(x, low), high)
    else:
        quadratic = 2 * lam * lam / omega
        z = x
    for _ in range(STEPS):
        first, second = slope(z - x, r, a, b, M, lam, q)
        first += shift + quadratic * z
        second += quadratic
        if first > 0:
            high = z
        else:
            low = z
        new = z - first / second if second > 0 else np.nan
        if not (low <= new <= high):
            open_ended = np.isinf(low) or np.isinf(high)
            new = z - np.sign(first) * max(1.0, 2 * abs(z)) if open_ended else 0.5 * (low + high)
        if abs(new - z) <= 1e-13 * (abs(new) + abs(z)):
            return new
        z = new
    return z


@njit(cache=True, nogil=True)
def epoch_features(order, phi, task, y, omega, eps, tube, lam, q, alpha, V, M):
    """One pass with explicit features phi (N, d), centred by task; alpha (N,), V (T, d) and M (T, T) are updated."""
    T, d = V.shape
    b = np.empty(T)
    for i in order:
        r = task[i]
        a = 0.0
        for j in range(d):
            a += phi[i, j] * phi[i, j]
        for s in range(T):
            total = 0.0
            for j in range(d):
                total += phi[i, j] * V[s, j]
            b[s] = total
        x = move(alpha[i], y[i], omega[i], eps[i], tube, r, a, b, M, lam, q)
        delta = x - alpha[i]
        if delta != 0.0:
            alpha[i] = x
            for j in range(d):
                V[r, j] += delta * phi[i, j]
            update(r, delta, a, b, M)


@njit(cache=True, nogil=True)
def epoch_gram(order, K, row, task, y, omega, eps, tube, lam, q, alpha, Q, mean_Q, mean_K, mean_KK, M):
    """One pass with a kernel matrix K (p, p). Q[s, i] = <phi_i, V_s>, mean_Q[s, t] = <mean of phi in t, V_s>.

    mean_K[t] = <phi_i, mean of phi in t>, mean_KK[t, s] = <mean in t, mean in s>: features are centred by task.
    """
    T, p = Q.shape
    b = np.empty(T)
    for i in order:
        r, at = task[i], row[i]
        a = max(K[at, at] - 2 * mean_K[r, at] + mean_KK[r, r], 0.0)
        for s in range(T):
            b[s] = Q[s, at] - mean_Q[s, r]
        x = move(alpha[i], y[i], omega[i], eps[i], tube, r, a, b, M, lam, q)
        delta = x - alpha[i]
        if delta != 0.0:
            alpha[i] = x
            for j in range(p):
                Q[r, j] += delta * (K[at, j] - mean_K[r, j])
            for t in range(T):
                mean_Q[r, t] += delta * (mean_K[t, at] - mean_KK[t, r])
            update(r, delta, a, b, M)


@njit(cache=True, nogil=True)
def update(r, delta, a, b, M):
    for s in range(b.size):
        if s == r:
            M[r, r] = max(M[r, r] + (2 * b[r] + a * delta) * delta, 0.0)
        else:
            M[r, s] += b[s] * delta
            M[s, r] = M[r, s]

"""Draws on the law against references that share no code with them: mean, covariance, law, speed.

    python benchmarks/samples.py --data FOLDER        (FOLDER holds distillation/; without it the first three)

A model is fitted on noisy rows, and `sample(X, n)` is compared at several inputs with the same density, exp(-F/2) on the
surface measure of C(x), computed in another way:

    circle         quadrature over 20,000 angles
    sphere         quadrature, 400 Gauss-Legendre heights times 800 longitudes
    simplex        a million uniform points, weighted
    distillation   a long random walk in four free outputs, from which the balances give the other five, with the area element

z is (mean - reference) / its standard error, over all inputs, outputs and entries of the covariance; the largest of k values of
a standard normal is what it may be compared with.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from lawful import ConstrainedRegressor, Equations, KernelRidge, Simplex
from lawful.datasets import load_distillation


def weighted(F, points, area):
    """Mean and covariance of each row of F over weighted points, and how many points these are worth (infinitely many)."""
    cost = F.costs(points)
    p = area * np.exp(-(cost - cost.min(axis=1, keepdims=True)) / 2)
    p /= p.sum(axis=1, keepdims=True)
    mean = p @ points
    away = points[None] - mean[:, None]
    return mean, np.einsum("ij,ijt,ijs->its", p, away, away), 1 / (p**2).sum(axis=1)


def circle(F, X):
    angle = np.linspace(0, 2 * np.pi, 20_001)[:-1]
    mean, covariance, _ = weighted(F, np.c_[np.cos(angle), np.sin(angle)], 1.0)
    return mean, covariance, np.inf


def sphere(F, X):
    height, weight = np.polynomial.legendre.leggauss(400)
    angle = np.linspace(0, 2 * np.pi, 801)[:-1]
    z, a = (v.ravel() for v in np.meshgrid(height, angle, indexing="ij"))
    r = np.sqrt(1 - z**2)
    parts = [weighted(F.rows([i]), np.c_[r * np.cos(a), r * np.sin(a), z], np.repeat(weight, 800)) for i in range(len(X))]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), np.inf


def simplex(F, X):
    points = np.random.default_rng(1).dirichlet(np.ones(F.shape[1]), 1_000_000)
    parts = [weighted(F.rows([i]), points, 1.0) for i in range(len(X))]
    return tuple(np.concatenate([p[k] for p in parts]) for k in range(3))


def column(free, x):
    """The nine outputs (k, 9) and their derivatives (k, 9, 4) in the free ones y1, y3, y5, y9, at one input."""
    y1, y3, y5, y9 = free.T
    y2, y4 = x[0] + x[1] - y1, 1 - y3 - y5
    given, top = (0.697616946 * x[0], 0.302383054 * x[0], x[1]), (y3, y4, y5)
    y6, y7, y8 = ((a - y1 * b) / y2 for a, b in zip(given, top))
    c = np.stack([y1, y2, y3, y4, y5, y6, y7, y8, y9], axis=1)
    G = np.zeros((len(free), 9, 4))
    G[:, [0, 2, 4, 8], [0, 1, 2, 3]], G[:, 1, 0], G[:, 3, 1:3] = 1.0, -1.0, -1.0
    for row, (a, b, down) in enumerate(zip(given, top, ((1, 0), (-1, -1), (0, 1)))):
        G[:, 5 + row, 0] = (a - y1 * b) / y2**2 - b / y2
        G[:, 5 + row, 1], G[:, 5 + row, 2] = -y1 / y2 * down[0], -y1 / y2 * down[1]
    return c, G


def distillation(F, X, chains=300, steps=6000, burn_in=1000, thin=10):
    """A random walk in the free outputs, many chains at once, for each input."""
    rng = np.random.default_rng(5)
    means, covariances, worth = [], [], []
    for i, x in enumerate(X):
        P, w = F.hessian(F.center)[i] / 2, np.asarray(F.center)[i]

        def log_density(free, x=x, P=P, w=w):
            c, G = column(free, x)
            r = c - w
            # The columns of G are of like size, whatever that of the outputs' errors.
            return -np.einsum("kt,ts,ks->k", r, P, r) / 2 + 0.5 * np.linalg.slogdet(np.swapaxes(G, 1, 2) @ G)[1], c

        free = w[[0, 2, 4, 8]][None]
        for _ in range(20):  # Gauss-Newton to the mode
            c, G = column(free, x)
            H = G[0].T @ P @ G[0]
            free = free - np.linalg.solve(H, G[0].T @ P @ (c[0] - w))
        root = np.linalg.inv(np.linalg.cholesky(H)).T
        free = np.repeat(free, chains, axis=0) + rng.standard_normal((chains, 4)) @ root.T
        log, c = log_density(free)
        kept = []
        for step in range(burn_in + steps):
            trial = free + 1.2 * rng.standard_normal((chains, 4)) @ root.T
            new, there = log_density(trial)
            taken = np.log(rng.random(chains)) < new - log
            free, log, c = np.where(taken[:, None], trial, free), np.where(taken, new, log), np.where(taken[:, None], there, c)
            if step >= burn_in and step % thin == 0:
                kept.append(c)
        kept = np.stack(kept, axis=1)  # (chains, draws, 9)
        means.append(kept.mean(axis=(0, 1)))
        away = (kept - means[-1]).reshape(-1, 9)
        covariances.append(away.T @ away / len(away))
        # Chains are independent: the spread of their means says what all draws together are worth.
        between = kept.mean(axis=1).var(axis=0) / chains
        worth.append(np.min(kept.var(axis=(0, 1))[[0, 2, 8]] / between[[0, 2, 8]]))
    return np.array(means), np.array(covariances), np.array(worth)


def compare(name, model, X, n, reference, law):
    start = time.perf_counter()
    draws = model.sample(X, n, random_state=7)
    seconds = time.perf_counter() - start
    mean, covariance, worth = reference(model.predictive(X), X)
    found = np.asarray(draws)
    away = found - found.mean(axis=1, keepdims=True)
    products = np.einsum("int,ins->ints", away, away)
    size = 1 / draws.ess + 1 / np.broadcast_to(worth, draws.ess.shape)
    # An output that the law fixes in terms of rounding has no variance to speak of.
    spread, quartic = found.std(axis=1), products.std(axis=1)
    used = spread > 1e-9 * np.abs(found).max(axis=(0, 1))
    z = ((found.mean(axis=1) - mean) / np.where(used, spread, 1.0) / np.sqrt(size)[:, None])[used]
    both = used[:, :, None] & used[:, None, :]
    zz = ((products.mean(axis=1) - covariance) / np.where(both, quartic, 1.0) / np.sqrt(size)[:, None, None])[both]
    rows = np.repeat(np.arange(len(X)), n)
    off = law.at(X[rows]).relative(found.reshape(-1, found.shape[2])).max()
    print(
        f"{name:<14}{len(X):>5}{n:>8}{off:>10.1e}{np.abs(z).max():>8.2f} of {z.size:<4}{np.abs(zz).max():>8.2f} of {zz.size:<5}"
        f"{draws.acceptance.min():>8.2f}{draws.ess.min():>8.0f}{draws.rhat.max():>7.3f}{seconds:>9.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder that holds distillation/")
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    print(
        f"{'law':<14}{'rows':>5}{'draws':>8}{'off law':>10}{'mean |z|':>16}{'covariance |z|':>16}{'accept':>9}{'ess':>8}",
        end="",
    )
    print(f"{'R-hat':>7}{'seconds':>9}")
    x = rng.uniform(-3, 3, (40, 1))
    Y = np.c_[np.cos(x), np.sin(x)] + 0.3 * rng.standard_normal((40, 2))
    model = ConstrainedRegressor(Equations("y1**2 + y2**2 = 1")).fit(x, Y)
    compare("circle", model, rng.uniform(-3, 3, (10, 1)), options.n, circle, model.constraint_)

    x = rng.uniform(-1, 1, (60, 2))
    Y = np.c_[x, np.ones(60)] / np.sqrt(1 + (x**2).sum(axis=1, keepdims=True)) + 0.3 * rng.standard_normal((60, 3))
    model = ConstrainedRegressor(Equations("y1**2 + y2**2 + y3**2 = 1")).fit(x, Y)
    compare("sphere", model, rng.uniform(-1, 1, (5, 2)), options.n, sphere, model.constraint_)

    share = np.exp(np.c_[x, -x])
    Y = share / share.sum(axis=1, keepdims=True) + 0.15 * rng.standard_normal((60, 4))
    model = ConstrainedRegressor(Simplex()).fit(x, Y)
    compare("simplex", model, rng.uniform(-1, 1, (5, 2)), options.n, simplex, model.constraint_)
    if not options.data:
        return
    data = load_distillation(Path(options.data) / "distillation")
    pick = rng.permutation(len(data.X))[:100]
    Y = data.Y[pick] + 0.1 * data.Y.std(axis=0) * rng.standard_normal((100, data.Y.shape[1]))
    model = ConstrainedRegressor(Equations(data.equations), surrogate=KernelRidge(random_state=0)).fit(data.X[pick], Y)
    compare("distillation", model, data.X_test[:5], options.n, distillation, model.constraint_)


if __name__ == "__main__":
    main()

"""What is measured for the theorems.

rate   (teo:universality, teo:bound, teo:comparison-inequality) T tasks with n inputs of their own, labels f(x) + uniform noise
       on [-1/2, 1/2] (bounded, as the theorems want), Gaussian kernel, and the paper's estimator with lambda = n^{-1/2}
       (the rate) and n^{-1/4} (consistency): its excess risk

           E(f) - E(f*) = 1/T E[ |f(x) - m(x)|^2 - |f*(x) - m(x)|^2 ],     m(x) = E[y | x] = f*(x) here,

       and the other side of the comparison inequality, q sqrt(1/T sum_t ||g_t - g*_t||^2) with g*_t(x) = E psi(y_t) known:
       psi(y) = (y^2, y, 1), E y^2 = m^2 + 1/12.
gain   the library's defaults with and without the law, 100 inputs shared by all outputs, Gaussian noise 0.1: ratio of the mean
       squared errors. Projecting an isotropic error on the tangent space leaves 1 - codimension / T of it.
q      q_{C,l,T} for sets whose constant is known, and for those of "rate" and "gain".
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from lawful.datasets.synthetic import CURVES
from lawful.estimators import ConstrainedRegressor, DecodingWarning
from lawful.experiments._base import Clock, Options
from lawful.experiments.theory.worlds import world
from lawful.kernels import Gaussian
from lawful.losses import Square
from lawful.sets import Box, Equations, Reals, Rotations, Simplex, Sphere
from lawful.surrogates import KernelRidge
from lawful.tasks import stack_tasks
from lawful.theory import q_constant

NOISE = 0.5  # half the width of the uniform noise of "rate"
LAWS = [("circle", 2), ("sphere", 8), ("curve", 6), ("box", 8)]
SIZES = [10, 20, 50, 100, 200, 500, 1000]
GAIN = [("sphere", T, 1) for T in (2, 3, 5, 10, 20)] + [("curve", T, 1) for T in (2, 4, 6, 8, 10)]
GAIN += [("tori", T, 1) for T in (4, 8)] + [("affine", 8, k) for k in (1, 2, 4, 6, 7)] + [("rotations", 9, 1)]


def configurations(options: Options) -> list[dict[str, Any]]:
    laws, sizes, gain = (LAWS, SIZES, GAIN)
    if options.quick:
        laws, sizes = LAWS[:2], [10, 50, 200]
        gain = [("sphere", 2, 1), ("sphere", 10, 1), ("curve", 6, 1), ("affine", 8, 6)]
    found: list[dict[str, Any]] = [{"kind": "q"}]
    for trial in range(options.trials):
        seed = {"trial": trial, "seed": options.seed + trial}
        found += [{"kind": "rate", "law": law, "T": T, "n": n, **seed} for law, T in laws for n in sizes]
        found += [{"kind": "gain", "law": law, "T": T, "k": k, **seed} for law, T, k in gain]
    return found


def load(options: Options) -> None:
    """Nothing to read."""


def describe(data: None) -> list[str]:
    return ["generated data, laws and truths known"]


def fields(configuration: dict[str, Any]) -> tuple[str, ...]:
    return {"rate": ("q", "quarter", "half"), "gain": ("codimension", "free", "law"), "q": ()}[configuration["kind"]]


def cost(configuration: dict[str, Any]) -> float:
    if configuration["kind"] == "rate":
        return 0.2 + configuration["T"] * (configuration["n"] / 1000) ** 2.5 / 4
    return 1.0


def run(configuration: dict[str, Any], data: None, clock: Clock) -> dict[str, Any]:
    kind = configuration.pop("kind")
    with clock(kind), warnings.catch_warnings():
        warnings.simplefilter("ignore", DecodingWarning)  # few inputs: a_t(x) may vanish between them
        kinds: dict[str, Any] = {"rate": rate, "gain": gain, "q": q_table}
        return kinds[kind](**configuration)


def psi(y: np.ndarray) -> np.ndarray:
    return np.stack([y**2, y, np.ones_like(y)], axis=-1)


def rate(law: str, T: int, n: int, trial: int, seed: int) -> dict[str, Any]:
    w, rng = world(law, T), np.random.default_rng([seed, n])
    x = rng.uniform(-np.pi, np.pi, (T, n))
    Y = np.stack([w.truth(x[t])[:, t] for t in range(T)]) + rng.uniform(-NOISE, NOISE, (T, n))
    grid = np.linspace(-np.pi, np.pi, 501)[:, None]
    m = w.truth(grid[:, 0])
    g_star = psi(m)
    g_star[..., 0] += NOISE**2 / 3
    q = q_constant(w.constraint, n_tasks=T)
    found: dict[str, Any] = {"q": q}
    for name, lam in (("quarter", n**-0.25), ("half", n**-0.5)):

        def ridge(lam: float = lam) -> KernelRidge:
            return KernelRidge(Gaussian(1.0), lam=lam, intercept=False)

        X_mtl, Y_mtl = stack_tasks([(x[t][:, None], Y[t]) for t in range(T)])
        model = ConstrainedRegressor(w.constraint, loss=Square("identity", "scores"), surrogate=ridge())
        f = model.fit(X_mtl, Y_mtl).predict(grid)
        g = np.stack([ridge().fit(x[t][:, None], psi(Y[t])).predict(grid) for t in range(T)], axis=1)
        square = (g - g_star) ** 2
        bound, tight = (float(q * np.sqrt(np.mean(np.sum(part, axis=-1)))) for part in (square, square[..., 1:]))
        found[name] = {"excess": float(np.mean((f - m) ** 2)), "bound": bound, "tight": tight}
    return found


def gain(law: str, T: int, k: int, trial: int, seed: int) -> dict[str, Any]:
    w, rng = world(law, T, k), np.random.default_rng([seed, T, k])
    x, grid = rng.uniform(-np.pi, np.pi, 100), np.linspace(-np.pi, np.pi, 401)
    Y = w.truth(x) + 0.1 * rng.standard_normal((100, T))
    truth = w.truth(grid)
    laws = {"free": Reals(), "law": w.constraint}
    errors = {
        name: float(np.mean((ConstrainedRegressor(C).fit(x[:, None], Y).predict(grid[:, None]) - truth) ** 2))
        for name, C in laws.items()
    }
    return {**errors, "codimension": w.codimension}


def q_table() -> dict[str, Any]:
    """name -> {T: q}; `exact` where mathematics gives the value (B = 1: lem:q-for-sphere and short arguments)."""
    tasks = (2, 4, 8, 16, 32)
    found: dict[str, Any] = {}
    for T in tasks:
        B = T**-0.5
        cases = {
            "box [-1, 1]^T": (Box(-1.0, 1.0), 2 * np.sqrt(5.0)),
            "sphere of radius 1": (Sphere(1.0), 2 * np.sqrt(5.0 / T)),
            "box of the sphere's size, [-T^-1/2, T^-1/2]^T": (Box(-B, B), 2 * np.sqrt(4 * B**2 + B**4)),
            "simplex": (Simplex(), 2 * np.sqrt(5.0 / T)),
            "T/2 circles": (world("tori", T).constraint, 2 * np.sqrt(2.5)),
        }
        if T <= 8:
            cases["curve (cos kx, sin kx)"] = (world("curve", T).constraint, 2 * np.sqrt(2.5))
        for name, (constraint, exact) in cases.items():
            found.setdefault(name, {})[str(T)] = {"q": q_constant(constraint, n_tasks=T), "exact": float(exact)}
    # |R_ij| <= 1 and the squares add up to 3, so the fourth powers add up to 3 at most: at permutation matrices
    found["rotations of space"] = {"9": {"q": q_constant(Rotations(3)), "exact": float(2 * np.sqrt((4 * 3 + 3) / 9))}}
    for name in ("lemniscate", "lemniscate_tall"):
        truth, equation = CURVES[name]
        found[name.replace("_", ", ")] = {"2": {"q": q_constant(Equations(equation)), "exact": along(truth)}}
    return found


def along(truth: Any) -> float:
    """q of a curve in the plane from its parametrisation: a search in one variable."""

    def s(x: Any) -> Any:
        y = truth(np.atleast_1d(x))
        return np.sum(4 * y**2 + y**4, axis=1)

    x = np.linspace(-np.pi, np.pi, 2001)
    top = x[s(x).argmax()]
    best = minimize_scalar(lambda z: -s(z)[0], bounds=(top - 0.01, top + 0.01), method="bounded", options={"xatol": 1e-12})
    return float(2 * np.sqrt(-best.fun / 2))

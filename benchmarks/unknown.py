"""Unknown coefficients of a law: are the standard errors right, and how accurate and quick are the estimates beside peers?

    python benchmarks/unknown.py [--draws 200] [--seed 5000] [--profiles 20] [--kkt 3]

1. Three laws, each drawn many times: how often the interval of 1.96 standard errors covers the truth, root mean square error of
   each coefficient, that of scipy's `odr` (told the ratio of the noises; complete rows alone) and, for the explicit law, of
   `curve_fit` (which takes one output as exact).
2. With --kkt DRAWS, where `kkt-hardnet` is installed: the example of its own documentation, estimated by both.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import curve_fit

from lawful import ConstrainedRegressor, Equations

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        from scipy import odr
    except ImportError:
        odr = None


class Problem(NamedTuple):
    """A law with its true coefficients, a draw of (X, Y), and the same problem for the peers: theta from complete rows."""

    name: str
    law: Any
    unknown: dict[str, Any]
    truth: dict[str, float]
    draw: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
    by_odr: Callable[[np.ndarray, np.ndarray], np.ndarray]
    by_curve_fit: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None


def noisy(Y: np.ndarray, sigma: Any, rng: np.random.Generator) -> np.ndarray:
    return Y + np.asarray(sigma) * rng.standard_normal(Y.shape)


# ---------------------------------------------------------------------- an ellipse

AXES = {"u": 0.6, "v": -0.4, "p": 1.5, "q": 0.8}
ELLIPSE_NOISE = (0.03, 0.06)


def draw_ellipse(rng: np.random.Generator, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(0, 1, (n, 1))
    Y = np.c_[0.6 + 1.5 * np.cos(6 * x), -0.4 + 0.8 * np.sin(6 * x)]
    return x, noisy(Y, ELLIPSE_NOISE, rng)


def odr_ellipse(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    def law(b: np.ndarray, y: np.ndarray) -> np.ndarray:
        return ((y[0] - b[0]) / b[2]) ** 2 + ((y[1] - b[1]) / b[3]) ** 2 - 1

    data = odr.Data(Y.T, 1, wd=1 / np.square(ELLIPSE_NOISE))
    return odr.ODR(data, odr.Model(law, implicit=True), beta0=list(AXES.values())).run().beta


# ---------------------------------------------------------------------- a balance with inputs, and gaps

BALANCE = {"a": 0.7, "b": 1.3}
BALANCE_NOISE = (0.02, 0.02, 0.04)


def draw_balance(rng: np.random.Generator, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """a x1 = y1 y2 + b y3, with a sixth of the labels missing."""
    x = rng.uniform([1, 0], [2, 1], (n, 2))
    y1, y2 = 0.6 + 0.2 * np.sin(4 * x[:, 1]), 0.8 + 0.3 * np.cos(3 * x[:, 0])
    Y = np.c_[y1, y2, (BALANCE["a"] * x[:, 0] - y1 * y2) / BALANCE["b"]]
    Y = noisy(Y, BALANCE_NOISE, rng)
    return x, np.where(rng.random(Y.shape) < 1 / 6, np.nan, Y)


def odr_balance(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    whole = ~np.isnan(Y).any(axis=1)
    X, Y = X[whole], Y[whole]

    def y3(b: np.ndarray, z: np.ndarray) -> np.ndarray:
        return (b[0] * X[:, 0] - z[0] * z[1]) / b[1]

    s = np.square(BALANCE_NOISE)
    data = odr.Data(Y[:, :2].T, Y[:, 2], wd=1 / s[:2], we=1 / s[2])
    return odr.ODR(data, odr.Model(y3), beta0=list(BALANCE.values())).run().beta


# ---------------------------------------------------------------------- vapour pressure

ANTOINE = {"A": 4.0, "B": 8.0, "C": 2.3}  # y1 = exp(A - B / (C + y2)), y2 in hundreds of degrees
ANTOINE_NOISE = (0.05, 0.01)


def draw_antoine(rng: np.random.Generator, n: int = 250) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(0, 1, (n, 1))
    y2 = 0.2 + 2.6 * x[:, 0] + 0.2 * np.sin(5 * x[:, 0])
    return x, noisy(np.c_[pressure(y2, **ANTOINE), y2], ANTOINE_NOISE, rng)


def pressure(y2: np.ndarray, A: float, B: float, C: float) -> np.ndarray:
    return np.exp(A - B / (C + y2))


def odr_antoine(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    s = np.square(ANTOINE_NOISE)
    data = odr.Data(Y[:, 1], Y[:, 0], wd=1 / s[1], we=1 / s[0])
    return odr.ODR(data, odr.Model(lambda b, z: pressure(z, *b)), beta0=list(ANTOINE.values())).run().beta


def fit_antoine(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return curve_fit(pressure, Y[:, 1], Y[:, 0], p0=list(ANTOINE.values()), maxfev=10_000)[0]


POSITIVE = (0, None)
PROBLEMS = [
    Problem(
        "ellipse: centre and axes, unequal noise",
        "((y1 - u)/p)**2 + ((y2 - v)/q)**2 = 1",
        {"u": None, "v": None, "p": POSITIVE, "q": POSITIVE},
        AXES, draw_ellipse, odr_ellipse,
    ),
    Problem("balance with inputs, gaps", "a*x1 = y1*y2 + b*y3", {"a": None, "b": None}, BALANCE, draw_balance, odr_balance),
    Problem(
        "vapour pressure (Antoine)", "y1 = exp(A - B/(C + y2))", {"A": None, "B": POSITIVE, "C": (0.5, 10)},
        ANTOINE, draw_antoine, odr_antoine, fit_antoine,
    ),
]  # fmt: skip


def calibration(draws: int, seed: int, profiles: int) -> None:
    for problem in PROBLEMS:
        truth = np.array(list(problem.truth.values()))
        ours, covered, scores, peers, took = [], [], [], {"odr": [], "curve_fit": []}, [0.0, 0.0, 0.0]
        for k in range(draws):
            X, Y = problem.draw(np.random.default_rng(seed + k))
            begin = time.perf_counter()
            C = Equations(problem.law, unknown=problem.unknown).fit(Y, X)
            took[0] += time.perf_counter() - begin
            theta, std = (np.array([d[name] for name in problem.truth]) for d in (C.unknown_, C.unknown_std_))
            ours.append(theta - truth)
            covered.append(np.abs(theta - truth) <= 1.96 * std)
            if k < profiles:
                scores.append([low <= t <= high for n, t in problem.truth.items() for low, high in [C.profile(n).interval()]])
            for at, (name, peer) in enumerate((("odr", problem.by_odr), ("curve_fit", problem.by_curve_fit)), start=1):
                if peer is None or (name == "odr" and odr is None):
                    continue
                begin = time.perf_counter()
                peers[name].append(peer(X, Y) - truth)
                took[at] += time.perf_counter() - begin
        print(f"\n{problem.name}: {draws} draws, {1000 * took[0] / draws:.0f} ms a fit")
        rows = {"rmse": rms(ours)} | {f"{name} rmse": rms(e) for name, e in peers.items() if e}
        print(f"  {'':<22}" + "".join(f"{name:>10}" for name in problem.truth))
        print(f"  {'covered by 95 %':<22}" + "".join(f"{share:>10.1%}" for share in np.mean(covered, axis=0)))
        print(
            f"  {'  by the profile':<22}"
            + "".join(f"{s:>10.1%}" for s in np.mean(scores, axis=0))
            + f"   ({len(scores)} draws)"
        )
        print(f"  {'bias / sd':<22}" + "".join(f"{b:>10.2f}" for b in np.mean(ours, axis=0) / np.std(ours, axis=0)))
        for name, values in rows.items():
            print(f"  {name:<22}" + "".join(f"{v:>10.2g}" for v in values), flush=True)


def rms(errors: list[np.ndarray]) -> np.ndarray:
    return np.sqrt(np.mean(np.square(errors), axis=0))


# ---------------------------------------------------------------------- KKT-HardNet's own example


def documented(rng: np.random.Generator, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """a0 y1 + y2 = x1, y2 - a1 y3 = x2 with a0 = 2, a1 = -1.5: its documentation gives the laws, not the data."""
    x1, x2 = rng.uniform(0.5, 1.5, n), rng.uniform(-0.5, 0.5, n)
    y2 = 0.3 * x1 + 0.2 * x2
    return np.c_[x1, x2], np.c_[(x1 - y2) / 2.0, y2, (y2 - x2) / -1.5] + 0.01 * rng.standard_normal((n, 3))


def timed(work: Callable[..., Any], *data: np.ndarray) -> tuple[Any, np.ndarray]:
    """What it returns; seconds of the clock and of the processors."""
    begin = np.array([time.perf_counter(), time.process_time()])
    found = work(*data)
    return found, np.array([time.perf_counter(), time.process_time()]) - begin


def kkt(seed: int, draws: int) -> None:
    law = ["a0*y1 + y2 = x1", "y2 - a1*y3 = x2", "y1**2 + y3**2 <= 2", "y1 >= 0"]
    start = {"a0": 10.0, "a1": -10.0}
    ways: dict[str, Callable[[np.ndarray, np.ndarray], dict[str, float]]] = {
        "lawful, the coefficients": lambda X, Y: Equations(law, unknown=start).fit(Y, X).unknown_,
        "lawful, with the regression": lambda X, Y: (
            ConstrainedRegressor(Equations(law, unknown=start)).fit(X, Y).constraint_.unknown_
        ),
        "KKT-HardNet": by_kkt,
    }
    print(
        f"\nthe example of KKT-HardNet's documentation (truth 2, -1.5; all begin at 10, -10), {draws} draws; the first is cold"
    )
    errors: dict[str, list[Any]] = {name: [] for name in ways}
    spent: dict[str, list[Any]] = {name: [] for name in ways}
    for k in range(draws):
        X, Y = documented(np.random.default_rng(seed + k))
        for name, way in ways.items():
            found, seconds = timed(way, X, Y)
            errors[name].append([found["a0"] - 2.0, found["a1"] + 1.5])
            spent[name].append(seconds)
            print(f"  {name:<28}{seconds[0]:8.2f} s, {seconds[1]:8.2f} s of processors   {found}", flush=True)
    theirs = np.sum(spent["KKT-HardNet"], axis=0)
    for name in ways:
        own = np.sum(spent[name], axis=0)
        print(
            f"  {name:<28}rmse {rms(errors[name])[0]:.4f} {rms(errors[name])[1]:.4f};"
            f" KKT-HardNet takes {theirs[0] / own[0]:.0f} times as long ({theirs[1] / own[1]:.0f} times the processors' time)"
        )


def by_kkt(X: np.ndarray, Y: np.ndarray) -> dict[str, float]:
    from kkthn import KKTHardNet  # pip install kkt-hardnet

    # The settings of its documentation, and epoch_mlp, which it asks for.
    train = {
        "epochs": 1200, "batch_size": 32, "learning_rate": 1e-3, "train_frac": 0.8, "hidden_size": 64, "hidden_layers": 2,
        "seed": 42, "dtype": "float64", "print_every": 400, "newton_step_length": 0.5, "newton_tol": 1e-6,
        "newton_reg_factor": 1e-3, "max_newton_iter": 30, "max_backtrack_iter": 10, "epoch_mlp": 100,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        np.savetxt(Path(folder) / "parameters.csv", X, delimiter=",", header="x1,x2", comments="")
        np.savetxt(Path(folder) / "variables.csv", Y, delimiter=",", header="y1,y2,y3", comments="")
        peer = KKTHardNet(name=str(Path(folder) / "demo"), train=train)
        x = peer.add_parameter(["x1", "x2"])
        theta = peer.add_inverse_parameter(["a0", "a1"], init_value=[10.0, -10.0])
        y = peer.add_variable(["y1", "y2", "y3"])
        peer.constraints.add(
            theta.a0 * y.y1 + y.y2 - x.x1 == 0, y.y2 - theta.a1 * y.y3 - x.x2 == 0, y.y1**2 + y.y3**2 <= 2.0, y.y1 >= 0
        )  # fmt: skip
        peer.dataset(parameters=str(Path(folder) / "parameters.csv"), variables=str(Path(folder) / "variables.csv"))
        return {row["name"]: row["estimated"] for row in peer.estimate()["inverse_parameters"]["comparison"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=5000)
    parser.add_argument("--kkt", type=int, default=0, metavar="DRAWS")
    parser.add_argument("--profiles", type=int, default=0, help="draws whose profile intervals are checked too; 0: a tenth")
    options = parser.parse_args()
    if options.draws:
        calibration(options.draws, options.seed, options.profiles or options.draws // 10)
    if options.kkt:
        kkt(options.seed, options.kkt)


if __name__ == "__main__":
    main()

"""How time and memory grow, one size at a time: for `benchmarks/scale.py --part growth`.

n, M, T         rows, centres and outputs of `NystromRidge`; also outputs whose gaps are scattered
equations       laws y_1^2 + y_2^2 = 1, y_3^2 + y_4^2 = 1, ... on the first of 16 outputs, decoded by `ConstrainedRegressor`
D               items that 300 queries ranked, all of them: `ConstrainedRanker`

Times are of the processor (all threads together), which other jobs on the machine hardly change; memory is the most that the
process took above what it had before the fit. Exponents are slopes of a straight line through the logarithms, without the
smallest size, which is mostly overhead.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from pathlib import Path

import numpy as np

from lawful._memory import in_words
from lawful.datasets.arm import make_arm
from lawful.estimators import ConstrainedRegressor
from lawful.estimators.ranker import ConstrainedRanker
from lawful.kernels import Gaussian
from lawful.sets import Equations
from lawful.surrogates.nystrom import NystromRidge

SIZES = {
    "n": [10_000, 20_000, 40_000, 80_000, 160_000],
    "M": [500, 1000, 2000, 3000, 4000],
    "T": [4, 16, 64, 256, 1024],
    "T with gaps": [1, 2, 4, 8, 16],
    "equations": [1, 2, 4, 8],
    "D": [20, 40, 80, 160, 320],
}
MEASURES = ("fit", "predict", "memory of the fit")


def status(field: str) -> float:
    """Bytes, from Linux."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return float(line.split()[1]) * 1024
    return float("nan")


def measured(name: str, size: int, seed: int) -> tuple[float, float, float]:
    """Processor seconds of the fit and of a prediction (the quickest of three), and the memory of the fit."""
    fit, predict = case(name, size, seed)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before, start = status("VmRSS:"), time.process_time()
    model = fit()
    took, memory = time.process_time() - start, status("VmHWM:") - before
    predictions = []
    for _ in range(3):
        start = time.process_time()
        predict(model)
        predictions.append(time.process_time() - start)
    return took, min(predictions), memory


def apart(*args) -> tuple[float, float, float]:
    """`measured` in a process of its own, which begins with all that is loaded here, and with memory that nobody gave back."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=lambda: there.send(measured(*args)))
    process.start()
    there.close()
    found = here.recv()
    process.join()
    return found


def ridge_case(n: int, M: int, T: int, gaps: bool, seed: int):
    data = make_arm(n, 7, noise=0.05, random_state=seed)
    X, Y = data.X, np.tile(data.Y, (1, -(-T // 7)))[:, :T]
    if gaps:
        Y = np.where(np.random.default_rng(seed).uniform(size=Y.shape) < 0.3, np.nan, Y)
    ridge = NystromRidge(Gaussian(8.0 * X.std(axis=0)), lam=1e-7, n_centers=M)
    return lambda: ridge.fit(X, Y), lambda model: model.predict(X)


def law_case(equations: int, seed: int):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (20_000, 4))
    angles = X @ rng.standard_normal((4, 8)) * 2
    Y = np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(len(X), 16) + 0.1 * rng.standard_normal((len(X), 16))
    law = Equations([f"y{2 * k + 1}**2 + y{2 * k + 2}**2 = 1" for k in range(equations)])
    ridge = NystromRidge(Gaussian(np.full(4, 1.5)), lam=1e-5, n_centers=200)
    return lambda: ConstrainedRegressor(law, surrogate=ridge).fit(X[:4000], Y[:4000]), lambda model: model.predict(X)


def ranking_case(D: int, seed: int):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 5))
    R = X @ rng.standard_normal((5, D)) + rng.standard_normal(D) + 2.0 * rng.standard_normal((600, D))
    return lambda: ConstrainedRanker().fit(X[:300], R[:300]), lambda model: model.predict(X[300:])


def case(name: str, size: int, seed: int):
    if name == "D":
        return ranking_case(size, seed)
    if name == "equations":
        return law_case(size, seed)
    n, M, T = {"n": (size, 1000, 7), "M": (20_000, size, 7)}.get(name, (10_000, 500, size))
    return ridge_case(n, M, T, "gaps" in name, seed)


def growth(seed: int, quick: bool, out: str | None) -> None:
    for name in ("T", "equations", "D"):
        measured(name, 5, seed)  # loads and compiles
    found: dict[str, np.ndarray] = {}
    for name, sizes in SIZES.items():
        rows = []
        for size in sizes[:3] if quick else sizes:
            rows.append((size, *apart(name, size, seed)))
            _, fit, predict, memory = rows[-1]
            print(
                f"{name:>12} = {size:>7}: fit {fit:7.2f} s, predict {predict:6.2f} s, {in_words(max(memory, 0.0)):>8}",
                flush=True,
            )
        found[name] = np.array(rows)
    print("\n| exponent in | fit | predict | memory of the fit |\n|---|---|---|---|")
    slopes = {name: exponents(rows) for name, rows in found.items()}
    for name, values in slopes.items():
        print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in values) + " |")
    if out is not None:
        picture(found, slopes, out)


def exponents(rows: np.ndarray) -> list[float]:
    table = np.log(np.maximum(rows[1:], 1e-9))
    return [float(np.polyfit(table[:, 0], table[:, j], 1)[0]) for j in (1, 2, 3)]


def picture(found: dict[str, np.ndarray], slopes: dict[str, list[float]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for j, (axis, title) in enumerate(zip(axes, MEASURES)):
        for name, rows in found.items():
            label = f"{name}: {slopes[name][j]:.1f}"
            axis.loglog(rows[:, 0], rows[:, j + 1] / (1e6 if j == 2 else 1), "o-", label=label, ms=3, lw=1)
        axis.set(title=title, xlabel="size", ylabel="MB" if j == 2 else "processor seconds")
        axis.legend(fontsize=7, title="exponent", title_fontsize=7)
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")

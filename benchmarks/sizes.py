"""The default along sizes: error, processor seconds and coverage as rows double, beside a plain GP and boosted trees.

    python benchmarks/sizes.py --data FOLDER --seed 7 --rows results.jsonl --out docs/sizes.png
                               [--n 200 400 ... 25600] [--only mixed12 friedman ...] [--peers gp trees] [--limit 1200]

ours    `ConstrainedRegressor(Reals())`, nothing set.
gp      an exact Gaussian process for each output: a length scale for each input, Gaussian or Matern 5/2, whichever has more
        evidence, a constant mean with a flat prior (REML), log-normal prior on the length scales. L-BFGS on 500 rows from a
        short and a long start, then from the better on 2000; solved by Cholesky on all rows. On a GPU where torch sees one.
trees   scikit-learn's HistGradientBoostingRegressor for each output: 500 rounds of rate .05, stopped early beyond 1000 rows.

mixed12   12 inputs in [-1, 1]; H = sin(2 X W) + .3 cos(5 X[:, :4]), W drawn with the seed; a, b, c, e = 1.5 + .4 H; the outputs
          are a, b, a b and c e + a; noise .05
friedman  10 inputs in [0, 1], Friedman's first function, noise .2
borehole  8 inputs, the flow through a borehole, standardised, noise .02
jump      4 inputs in [-1, 1], sign(x1 - x2) + .5 sin(3 x3), noise .1
two       3 inputs in [-2, 2], sin(4 x1) cos(x2) and x2 + .3 x3, noise .1
sarcos    sarcos_inv_test.mat in FOLDER/sarcos: 21 inputs, 7 torques; at most 3200 rows to learn from
kin40k, protein   FOLDER/uci/NAME.csv.gz, the last column is the output; 4/9 of the rows to learn from, 3/9 to be judged on

Rows are nested: those of n are the first of those of 2n, and the rows to be judged on (at most 2000) are always the same. A
size beyond what the data hold is replaced by all there are. An error is the root of the mean nMSE of the outputs, against the
truth where it is known; "output" is the largest ratio of a single output, ours / GP. Coverage is that of labels with noise, by
90 % intervals. Seconds are CPU seconds of the fit alone (BLAS on one thread, or `--threads`).

`--rows FILE` gets a line of JSON for each cell, and cells that are there with the same seed are not run again; `--again ours`
runs them anyway (the last line counts). `--peers none` leaves the peers out, `--limit` stops a peer at larger n once a fit took
so many seconds. `--skip-ours` measures the peers alone, on a machine with a GPU for instance.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import scale  # isort: skip  # benchmarks/*.py, beside this script; it finds lawful where that is not installed

import numpy as np
import problems
from scipy.linalg import cholesky, lapack, solve_triangular
from scipy.optimize import minimize
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from lawful._memory import available_memory
from lawful.datasets import load_sarcos

Array = np.ndarray
SIZES = [200 * 2**k for k in range(8)]
N_TEST = 2000
LARGE = 10_000
SARCOS_ROWS = 3200
SLACK = 1.02  # how much an error may grow with n and still count as falling
PEERS = ["gp", "trees"]
COLORS = {"ours": "C3", "gp": "C0", "trees": "C2"}

# ---------------------------------------------------------------------- problems


def mixed12(x: Array, seed: int) -> Array:
    W = np.random.default_rng([seed, 3]).standard_normal((12, 4)) / np.sqrt(12)
    a, b, c, e = (1.5 + 0.4 * (np.sin(2 * x @ W) + 0.3 * np.cos(5 * x[:, :4]))).T
    return np.c_[a, b, a * b, c * e + a]


def jump(x: Array) -> Array:
    return (np.sign(x[:, 0] - x[:, 1]) + 0.5 * np.sin(3 * x[:, 2]))[:, None]


def two(x: Array) -> Array:
    return np.c_[np.sin(4 * x[:, 0]) * np.cos(x[:, 1]), x[:, 1] + 0.3 * x[:, 2]]


class Made(NamedTuple):
    """Inputs uniform in a cube, a truth f(x, seed) and normal noise."""

    d: int
    truth: Callable[[Array, int], Array]
    noise: float
    low: float = -1.0
    high: float = 1.0
    standardised: bool = False

    def available(self, n: int) -> int:
        return n

    def draw(self, n: int, seed: int) -> problems.Problem:
        rng = np.random.default_rng([seed, 0])
        X_test = rng.uniform(self.low, self.high, (N_TEST, self.d))
        X = np.random.default_rng([seed, 1]).uniform(self.low, self.high, (n, self.d))
        truth, test = self.truth(X, seed), self.truth(X_test, seed)
        if self.standardised:
            center, unit = test.mean(axis=0), test.std(axis=0)
            truth, test = (truth - center) / unit, (test - center) / unit
        Y = truth + self.noise * np.random.default_rng([seed, 2]).standard_normal(truth.shape)
        return problems.Problem(X, Y, X_test, test, test + self.noise * rng.standard_normal(test.shape))


class Kept(NamedTuple):
    """Rows of a table, in an order drawn with the seed: the first `pool` to learn from, the next to be judged on."""

    X: Array
    Y: Array
    pool: int

    def available(self, n: int) -> int:
        return min(n, self.pool)

    def draw(self, n: int, seed: int) -> problems.Problem:
        order = np.random.default_rng(seed).permutation(len(self.X))
        learn, test = order[:n], order[self.pool : self.pool + N_TEST]
        X, Y = ((A - A[order[: self.pool]].mean(axis=0)) / A[order[: self.pool]].std(axis=0) for A in (self.X, self.Y))
        return problems.Problem(X[learn], Y[learn], X[test], Y[test], Y[test])


@cache
def kept(folder: Path, name: str) -> Kept:
    if name == "sarcos":
        data = load_sarcos(folder / "sarcos", files="test")
        return Kept(data.X, data.Y, SARCOS_ROWS)
    table = np.loadtxt(folder / "uci" / f"{name}.csv.gz", delimiter=",")
    return Kept(table[:, :-1], table[:, -1:], 4 * len(table) // 9)


MADE = {
    "mixed12": Made(12, mixed12, 0.05),
    "friedman": Made(10, lambda x, seed: problems.friedman1(2 * x - 1), 0.2, low=0.0),
    "borehole": Made(8, lambda x, seed: problems.borehole(x), 0.02, standardised=True),
    "jump": Made(4, lambda x, seed: jump(x), 0.1),
    "two": Made(3, lambda x, seed: two(x), 0.1, -2.0, 2.0),
}
KEPT = ["sarcos", "kin40k", "protein"]


# ---------------------------------------------------------------------- the plain Gaussian process


class Host:
    """What the process needs of NumPy and SciPy. Large matrices are factored and solved in place."""

    device = "cpu"
    exp, sqrt, log = np.exp, np.sqrt, np.log

    def array(self, a: Any) -> Array:
        return np.asarray(a, dtype=float)

    def numpy(self, a: Array) -> Array:
        return np.asarray(a)

    def empty(self, n: int) -> Array:
        return np.empty((n, n), order="F")

    def lift(self, K: Array, value: float) -> None:
        np.einsum("ii->i", K)[...] += value

    def cholesky(self, K: Array) -> Array:
        return cholesky(K, lower=True, overwrite_a=True, check_finite=False)

    def inverse(self, L: Array) -> Array:
        half, info = lapack.dpotri(L, lower=1)
        if info:
            raise np.linalg.LinAlgError("singular")
        whole = np.tril(half)
        return whole + np.tril(half, -1).T

    def solve(self, L: Array, B: Array, transposed: bool = False) -> Array:
        return solve_triangular(L, B, lower=True, trans=1 if transposed else 0, check_finite=False)


class Device:
    """The same by torch."""

    def __init__(self, device: str) -> None:
        import torch

        self.torch, self.device = torch, device
        self.exp, self.sqrt, self.log = torch.exp, torch.sqrt, torch.log

    def array(self, a: Any) -> Any:
        return self.torch.as_tensor(np.ascontiguousarray(a, dtype=float), device=self.device)

    def numpy(self, a: Any) -> Array:
        return a.cpu().numpy()

    def empty(self, n: int) -> Any:
        return self.torch.empty((n, n), dtype=self.torch.float64, device=self.device)

    def lift(self, K: Any, value: float) -> None:
        K.diagonal().add_(value)

    def cholesky(self, K: Any) -> Any:
        L, info = self.torch.linalg.cholesky_ex(K)
        if int(info):
            raise np.linalg.LinAlgError("not positive definite")
        return L

    def inverse(self, L: Any) -> Any:
        return self.torch.cholesky_inverse(L)

    def solve(self, L: Any, B: Any, transposed: bool = False) -> Any:
        columns = B if B.ndim == 2 else B[:, None]
        found = self.torch.linalg.solve_triangular(L.T if transposed else L, columns, upper=transposed)
        return found if B.ndim == 2 else found[:, 0]


def backend(name: str) -> Host | Device:
    """ "auto" is a GPU where torch sees one, else NumPy; "numpy", or a device of torch."""
    if name == "auto":
        if not scale._there("torch"):
            return Host()
        import torch

        name = "cuda" if torch.cuda.is_available() else "numpy"
    return Host() if name == "numpy" else Device(name)


class Process:
    """One output, already with mean 0 and spread 1, on inputs with mean 0 and spread 1.

    Parameters are logarithms: a length for each input, the variance of the function, that of the noise.
    """

    FIRST, MOST, BLOCK, JITTER = 500, 2000, 2048, 1e-8
    SHORT, LONG = 0.3, 3.0  # the starts, times the root of the number of inputs
    MEDIAN, WIDTH = 2.0, 1.5  # of the prior of the lengths, times that root; standard deviation of the logarithm

    def __init__(self, X: Array, y: Array, xp: Host | Device) -> None:
        self.xp, self.X, self.y = xp, xp.array(X), xp.array(y)
        self.d = X.shape[1]
        self.center = float(np.log(self.MEDIAN * np.sqrt(self.d)))

    # ------------------------------------------------------------------ kernel

    def distances(self, A: Any, B: Any) -> Any:
        squared = (A * A).sum(1)[:, None] + (B * B).sum(1)[None, :] - 2 * A @ B.T
        return squared.clip(min=0.0)

    def kernel(self, kind: str, Q: Any) -> tuple[Any, Any]:
        """Correlations at squared distances Q, and what their derivative in the log length of an input is, divided by that
        input's share of Q."""
        if kind == "gaussian":
            k = self.xp.exp(-0.5 * Q)
            return k, k
        r = self.xp.sqrt(5.0 * Q)
        e = self.xp.exp(-r)
        return (1 + r + r * r / 3) * e, (5.0 / 3.0) * (1 + r) * e

    # ------------------------------------------------------------------ evidence

    def loss(self, theta: Array, kind: str, n: int) -> tuple[float, Array]:
        """Minus the log evidence of the first n rows and the prior, and its gradient."""
        d, y = self.d, self.y[:n]
        amplitude, noise = np.exp(theta[d:])
        S = self.X[:n] / self.xp.array(np.exp(theta[:d]))
        k, slope = self.kernel(kind, self.distances(S, S))
        K = amplitude * k
        self.xp.lift(K, noise + self.JITTER * amplitude)
        try:
            L = self.xp.cholesky(K)
            inverse = self.xp.inverse(L)
        except np.linalg.LinAlgError:
            return 1e25, np.zeros_like(theta)
        u = inverse.sum(1)  # the constant's share: the mean has a flat prior
        total = float(u.sum())
        alpha = inverse @ y - u * (float(u @ y) / total)
        value = -0.5 * float(y @ alpha) - float(self.xp.log(L.diagonal()).sum()) - 0.5 * np.log(total)
        W = alpha[:, None] * alpha[None, :] - inverse + u[:, None] * (u / total)[None, :]
        M = (0.5 * amplitude) * W * slope
        lengths = 2.0 * (((S * S) * M.sum(1)[:, None]).sum(0) - (S * (M @ S)).sum(0))
        trace = float(W.diagonal().sum())
        function = 0.5 * amplitude * (float((W * k).sum()) + self.JITTER * trace)
        away = (theta[:d] - self.center) / self.WIDTH
        gradient = np.r_[self.xp.numpy(lengths) - away / self.WIDTH, function, 0.5 * noise * trace]
        return -(value - 0.5 * float(away @ away)), -gradient

    def tuned(self, kind: str) -> tuple[float, Array]:
        """Loss and parameters on at most 2000 rows."""
        small, large = min(self.FIRST, len(self.y)), min(self.MOST, len(self.y))
        bounds = [(np.log(1e-2), np.log(1e4))] * self.d + [(np.log(1e-3), np.log(1e4)), (np.log(1e-7), np.log(10.0))]

        def search(start: Array, n: int, steps: int) -> Any:
            options = {"maxiter": steps, "ftol": 1e-9}
            return minimize(self.loss, start, (kind, n), "L-BFGS-B", jac=True, bounds=bounds, options=options)

        root = np.sqrt(self.d)
        starts = [np.r_[np.full(self.d, np.log(s * root)), 0.0, np.log(0.1)] for s in (self.SHORT, self.LONG)]
        best = min((search(start, small, 200) for start in starts), key=lambda found: found.fun)
        if large > small:
            best = search(best.x, large, 100)
        return float(best.fun), best.x

    # ------------------------------------------------------------------ all rows

    def fit(self) -> Process:
        found = {kind: self.tuned(kind) for kind in ("gaussian", "matern52")}
        self.kind = min(found, key=lambda kind: found[kind][0])
        theta = found[self.kind][1]
        self.length = self.xp.array(np.exp(theta[: self.d]))
        self.amplitude, self.noise = (float(v) for v in np.exp(theta[self.d :]))
        S, n = self.X / self.length, len(self.y)
        K = self.xp.empty(n)
        for i in range(0, n, self.BLOCK):  # in parts: nothing beside K is that large
            K[:, i : i + self.BLOCK] = self.amplitude * self.kernel(self.kind, self.distances(S, S[i : i + self.BLOCK]))[0]
        self.xp.lift(K, self.noise + self.JITTER * self.amplitude)
        self.L, self.S = self.xp.cholesky(K), S
        del K
        ones = self.xp.array(np.ones(n))
        self.u = self.xp.solve(self.L, self.xp.solve(self.L, ones), transposed=True)
        self.total = float(self.u.sum())
        self.mean = float(self.u @ self.y) / self.total
        self.coef = self.xp.solve(self.L, self.xp.solve(self.L, self.y - self.mean), transposed=True)
        float(self.coef.sum())  # a GPU has finished
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean, and standard deviation of a label."""
        A = self.xp.array(X) / self.length
        K = self.amplitude * self.kernel(self.kind, self.distances(self.S, A))[0]
        mean, rest = self.mean + self.coef @ K, 1.0 - self.u @ K
        V = self.xp.solve(self.L, K)
        variance = self.amplitude - (V * V).sum(0) + rest * rest / self.total
        return self.xp.numpy(mean), np.sqrt(self.xp.numpy(variance).clip(min=0.0) + self.noise)


# ---------------------------------------------------------------------- methods: (problem, clock) -> predictions, std or None


class Clock:
    """CPU and wall seconds inside `with`, added up."""

    def __init__(self) -> None:
        self.spent = np.zeros(2)

    def __enter__(self) -> None:
        self.begin = np.array([time.process_time(), time.perf_counter()])

    def __exit__(self, *_: object) -> None:
        self.spent += np.array([time.process_time(), time.perf_counter()]) - self.begin


def ours(problem: problems.Problem, clock: Clock) -> tuple[Array, Array | None]:
    from lawful import ConstrainedRegressor
    from lawful.sets import Reals

    with clock:
        model = ConstrainedRegressor(Reals()).fit(problem.X, problem.Y)
    decoded = model.decode(problem.X_test)
    return np.asarray(decoded.c), None if decoded.std is None else np.asarray(decoded.std)


def gp(problem: problems.Problem, clock: Clock, xp: Host | Device) -> tuple[Array, Array]:
    center, unit = problem.X.mean(axis=0), problem.X.std(axis=0)
    means, stds = [], []
    for y in problem.Y.T:  # one at a time: a factor of 25,600 rows takes 5 GB
        with clock:
            process = Process((problem.X - center) / unit, (y - y.mean()) / y.std(), xp).fit()
        mean, std = process.predict((problem.X_test - center) / unit)
        means.append(y.mean() + y.std() * mean)
        stds.append(y.std() * std)
        del process
    return np.stack(means, axis=1), np.stack(stds, axis=1)


def trees(problem: problems.Problem, clock: Clock) -> tuple[Array, None]:
    from sklearn.ensemble import HistGradientBoostingRegressor

    means = []
    for y in problem.Y.T:
        model = HistGradientBoostingRegressor(max_iter=500, learning_rate=0.05, early_stopping=len(y) > 1000, random_state=0)
        with clock:
            model.fit(problem.X, y)
        means.append(model.predict(problem.X_test))
    return np.stack(means, axis=1), None


# ---------------------------------------------------------------------- cells and tables


def geometric(values: Any) -> float:
    return float(np.exp(np.mean(np.log(values))))


def figure(value: float | None, form: str, width: int) -> str:
    return f"{'-' if value is None else format(value, form):>{width}}"


class Bench:
    """Measures cells, or finds them in the file of rows; a cell is a dict, as in that file."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.known, self.warm = options, {}, False
        self.peers = [] if "none" in options.peers else list(dict.fromkeys(options.peers))
        self.methods = ([] if options.skip_ours else ["ours"]) + self.peers
        self.xp = backend(options.device) if "gp" in self.peers else None
        if options.rows and options.rows.exists():
            for line in options.rows.read_text(encoding="utf-8").splitlines():
                cell = json.loads(line)
                if cell["seed"] == options.seed and cell["method"] not in options.again:
                    self.known[cell["problem"], cell["n"], cell["method"]] = cell

    def measure(self, name: str, n: int, method: str, problem: problems.Problem) -> dict:
        if method == "ours" and not self.warm:  # loads and compiles
            ours(MADE["two"].draw(40, 0), Clock())
            self.warm = True
        clock = Clock()
        if method == "gp":
            mean, std = gp(problem, clock, self.xp)
        else:
            mean, std = {"ours": ours, "trees": trees}[method](problem, clock)
        nmse = ((mean - problem.Y_test) ** 2).mean(axis=0) / problem.Y_test.var(axis=0)
        inside = None if std is None else float(np.mean(np.abs(problem.Y_seen - mean) <= norm.ppf(0.95) * std))
        cell = {
            "problem": name,
            "n": n,
            "seed": self.options.seed,
            "method": method,
            "error": float(np.sqrt(nmse.mean())),
            "nmse": nmse.tolist(),
            "cpu": round(float(clock.spent[0]), 3),
            "wall": round(float(clock.spent[1]), 3),
            "covered": inside,
            "device": self.xp.device if method == "gp" else "cpu",
        }
        if self.options.rows:
            with self.options.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(cell) + "\n")
        return cell

    def cells(self, name: str, n: int, draw: Callable[[], problems.Problem], last: dict[str, dict]) -> dict[str, dict]:
        """Method -> cell. A peer is left out where it was too slow at the size before, or K would not fit in memory."""
        found: dict[str, dict] = {}
        problem = None
        for method in ["ours", *PEERS]:
            cell = self.known.get((name, n, method))
            if cell is None and method in self.methods:
                slow = method in self.peers and method in last and last[method]["cpu"] > self.options.limit
                large = method == "gp" and self.xp.device == "cpu" and 1.3 * 8 * n * n > available_memory()
                if slow or large:
                    continue
                problem = draw() if problem is None else problem
                cell = self.measure(name, n, method, problem)
            if cell is not None and (method == "ours" or method in self.peers):
                found[method] = cell
        return found

    def table(self, name: str, problem: Made | Kept) -> dict[int, dict[str, dict]]:
        """Prints a line for each size."""
        print(f"\n--- {name}, seed {self.options.seed}")
        print(
            f"{'n':>6}{'ours':>10}{'gp':>10}{'trees':>10}{'/ gp':>8}{'output':>8}{'/ trees':>9}"
            f"{'CPU s':>9}{'gp s':>9}{'trees s':>9}{'90 %':>7}{'gp':>6}"
        )
        rows: dict[int, dict[str, dict]] = {}
        last: dict[str, dict] = {}
        for n in sorted({problem.available(n) for n in self.options.n}):
            found = self.cells(name, n, lambda n=n: problem.draw(n, self.options.seed), last)
            last |= found
            rows[n] = found
            errors = [found[m]["error"] if m in found else None for m in COLORS]
            seconds = [found[m]["cpu"] if m in found else None for m in COLORS]
            covered = [
                100 * found[m]["covered"] if m in found and found[m]["covered"] is not None else None for m in ("ours", "gp")
            ]
            print(
                f"{n:>6}"
                + "".join(figure(e, ".4f", 10) for e in errors)
                + figure(ratio(found, "gp"), ".3f", 8)
                + figure(worst_output(found), ".3f", 8)
                + figure(ratio(found, "trees"), ".3f", 9)
                + "".join(figure(s, ".1f", 9) for s in seconds)
                + figure(covered[0], ".1f", 7)
                + figure(covered[1], ".1f", 6),
                flush=True,
            )
        print(falls(rows))
        return rows


def ratio(found: dict[str, dict], peer: str) -> float | None:
    return found["ours"]["error"] / found[peer]["error"] if {"ours", peer} <= set(found) else None


def worst_output(found: dict[str, dict]) -> float | None:
    """The largest ratio of root nMSEs of a single output, ours / GP."""
    if not {"ours", "gp"} <= set(found):
        return None
    return float(np.sqrt(np.max(np.array(found["ours"]["nmse"]) / np.array(found["gp"]["nmse"]))))


def rises(rows: dict[int, dict[str, dict]]) -> list[tuple[int, float]]:
    """(n, error / that of the size before), where ours grew by more than 2 %."""
    errors = [(n, found["ours"]["error"]) for n, found in sorted(rows.items()) if "ours" in found]
    steps = [(n, after / before) for (_, before), (n, after) in pairwise(errors)]
    return [(n, step) for n, step in steps if step > SLACK]


def falls(rows: dict[int, dict[str, dict]]) -> str:
    if sum("ours" in found for found in rows.values()) < 2:
        return "ours: fewer than two sizes"
    grown = [f"{100 * (step - 1):.1f} % at n = {n}" for n, step in rises(rows)]
    return f"ours falls with n (within {100 * (SLACK - 1):.0f} %)" if not grown else "ours rises: " + ", ".join(grown)


def summary(found: dict[str, dict[int, dict[str, dict]]]) -> None:
    print()
    for peer in PEERS:
        cells = [(name, n, ratio(row, peer)) for name, rows in found.items() for n, row in rows.items()]
        cells = [cell for cell in cells if cell[2] is not None]
        for words, part in ((f"n >= {LARGE:,}", [c for c in cells if c[1] >= LARGE]), ("all sizes", cells)):
            if part:
                name, n, most = max(part, key=lambda cell: cell[2])
                mean = geometric([c[2] for c in part])
                print(
                    f"ours / {peer}, {words}: geometric mean {mean:.3f} of {len(part)} cells, "
                    f"worst {most:.3f} ({name}, n = {n})"
                )
            else:
                print(f"ours / {peer}, {words}: no cells")
    judged = [name for name, rows in found.items() if sum("ours" in row for row in rows.values()) > 1]
    grown = [name for name in judged if rises(found[name])]
    if judged:
        words = f"not on {', '.join(grown)}" if grown else f"on all {len(judged)} problems"
        print(f"ours falls with n within {100 * (SLACK - 1):.0f} %: {words}")
    devices = {cell["device"] for rows in found.values() for row in rows.values() for cell in row.values()} - {"cpu"}
    if devices:
        print(f"the GP ran on {', '.join(sorted(devices))}; its CPU seconds are those of the host")


def picture(found: dict[str, dict[int, dict[str, dict]]], path: Path, across: int = 4) -> None:
    """For each problem errors and, below them, seconds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    across = min(across, len(found))
    bands = -(-len(found) // across)
    page, axes = plt.subplots(2 * bands, across, figsize=(3.1 * across, 4.8 * bands), layout="constrained", squeeze=False)
    for k, (name, rows) in enumerate(found.items()):
        for j, (key, words) in enumerate((("error", "root of nMSE"), ("cpu", "CPU seconds of the fit"))):
            axis = axes[2 * (k // across) + j, k % across]
            for method, color in COLORS.items():
                points = [(n, row[method][key]) for n, row in sorted(rows.items()) if method in row]
                if points:
                    axis.loglog(*zip(*points), "o-", color=color, label=method, ms=3, lw=1.2)
            sizes = sorted(rows)[::2]
            axis.set_xticks(sizes, [f"{n:,}" for n in sizes], fontsize=7)
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.tick_params(axis="y", which="both", labelsize=7)
            axis.grid(alpha=0.25, which="major")
            axis.set_xlabel("rows", fontsize=8)
            axis.set_ylabel(words, fontsize=8)
            if j == 0:
                axis.set_title(name, fontsize=10)
                axis.legend(fontsize=7)
    for k in range(len(found), bands * across):
        for j in range(2):
            axes[2 * (k // across) + j, k % across].axis("off")
    page.savefig(path, dpi=110)
    plt.close(page)
    print(f"picture: {path}")


def main() -> None:
    names = [*MADE, *KEPT]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder that holds sarcos/ and uci/; without it, generated problems only")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--n", type=int, nargs="+", default=SIZES)
    parser.add_argument("--only", nargs="+", choices=names, help="names of problems")
    parser.add_argument("--peers", nargs="+", choices=[*PEERS, "none"], default=PEERS)
    parser.add_argument("--limit", type=float, default=1200, help="CPU seconds of a fit beyond which a peer stops growing")
    parser.add_argument("--rows", type=Path, help="file of JSON lines, read and appended to")
    parser.add_argument("--again", nargs="+", choices=["ours", *PEERS], default=[], help="measured anew even if in the file")
    parser.add_argument("--skip-ours", action="store_true", help="measure the peers only")
    parser.add_argument("--device", default="auto", help="of the GP: auto, numpy, or a device of torch")
    parser.add_argument("--threads", type=int, default=1, help="of BLAS and of the trees")
    parser.add_argument("--out", type=Path, help="where the picture goes")
    options = parser.parse_args()
    chosen = options.only or [name for name in names if options.data or name in MADE]
    if options.data is None and (lacking := [name for name in chosen if name in KEPT]):
        parser.error(f"{', '.join(lacking)}: --data must name the folder")
    bench = Bench(options)
    with threadpool_limits(options.threads):
        found = {name: bench.table(name, MADE[name] if name in MADE else kept(options.data, name)) for name in chosen}
    summary(found)
    if options.out:
        picture(found, options.out)


if __name__ == "__main__":
    main()

"""The regress step beside what else one would use, on one core.

    python benchmarks/regress.py --part suite --seed 1 [--n 50 100 300 800] [--draws 1] [--data FOLDER]

suite        22 problems (`problems.py`): error of `KernelRidge()` / that of the better of scikit-learn's Gaussian process and
             an isotropic ridge tuned by 5 folds (`peers.py`); errors are mean nMSE, against the truth where it is known.
heavy        the same on three problems with Student-t noise (2 and 3 degrees of freedom) and with 2 % gross outliers.
metrics      14 laws with correlated and unequal noise (`noisy_laws.py`), and without noise: error of the lawful prediction with
             each output metric of `Square` / that of the same fit without the law; and what a full metric costs. The default
             ridge, or another: `--settings '{"tune": "evidence"}'`.
calibration  how often 90 % intervals of `KernelRidge().predict(X, return_std=True)` cover labels that were not seen.
portfolio    tables with kinks, categories and gaps (`tables.py`): error of `surrogate="auto"` / that of its best member.
noise        six outputs seen with the same noise: error of `KernelRidge(noise="shared")` / that of the default, and coverage.
speed        CPU seconds and peak memory at n = 300 ... 10,000, T = 2 and 7, with and without gaps, each in its own process,
             beside scikit-learn's GP, GPyTorch's exact GP and himalaya where they can be imported.

Figures of several draws are geometric means. FOLDER holds sarcos/ and distillation/. CPU seconds are those of the process
(BLAS on one thread). `--settings '{"kernel": "Gaussian", "scales": "shared"}'` gives parameters of `KernelRidge`;
`--peers FILE` keeps the peers' figures in a file and reads them from there, so that only ours are computed again.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import noisy_laws
import numpy as np
import peers  # benchmarks/*.py, beside this script
import problems
import tables
from metrics import with_loss
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from lawful import Affine, Ball, Box, ConstrainedRegressor, Simplex, Sphere, Square, kernels
from lawful.decoders import decode
from lawful.surrogates import KernelRidge, Portfolio

PARTS = ["suite", "heavy", "metrics", "calibration", "portfolio", "noise", "speed"]
SIZES = [50, 100, 300, 800]
SPEED_SIZES = [300, 1000, 3000, 10000]
HEAVY = {"t2": "t, 2 degrees", "t3": "t, 3 degrees", "outliers": "2 % outliers"}


def nmse(problem: problems.Problem, prediction: np.ndarray) -> float:
    return float(np.mean(((prediction - problem.Y_test) ** 2).mean(axis=0) / problem.Y_test.var(axis=0)))


def geometric(values) -> float:
    return float(np.exp(np.mean(np.log(values))))


class Bench:
    """Fits ours and the peers; the peers' figures may come from a file."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.cache = Path(options.peers) if options.peers else None
        self.known = json.loads(self.cache.read_text()) if self.cache and self.cache.exists() else {}

    def ridge(self) -> KernelRidge:
        return KernelRidge(**self.options.settings)

    def ours(self, X: np.ndarray, Y: np.ndarray):
        return self.ridge().fit(X, Y).predict

    def timed(self, fit, problem: problems.Problem) -> tuple[float, float]:
        """nMSE and CPU seconds of fit and prediction."""
        begin = time.process_time()
        prediction = fit(problem.X, problem.Y)(problem.X_test)
        return nmse(problem, prediction), time.process_time() - begin

    def peer(self, name: str, key: str, problem: problems.Problem) -> tuple[float, float]:
        key = f"{name} {key}"
        if key not in self.known:
            self.known[key] = self.timed(getattr(peers, name), problem)
            if self.cache:
                self.cache.write_text(json.dumps(self.known, indent=0))
        return tuple(self.known[key])

    def cell(self, draw, label: str) -> np.ndarray | None:
        """(3, 2): error and seconds of ours, the GP and the isotropic ridge, geometric means over draws; None without data."""
        rows = []
        for k in range(self.options.draws):
            seed = self.options.seed + k
            problem = draw(seed)
            if problem is None:
                return None
            peers_ = [self.peer(name, f"{label} {seed}", problem) for name in ("gp", "isotropic")]
            rows.append([self.timed(self.ours, problem), *peers_])
        return np.exp(np.mean(np.log(np.maximum(rows, 1e-300)), axis=0))

    def table(self, cells) -> np.ndarray:
        """Prints a line for each (title, n, draw); returns the ratios to the better peer and to the isotropic ridge."""
        print(
            f"{'problem':<26}{'n':>5}{'ours':>11}{'GP':>11}{'isotropic':>11}{'ratio':>8}{'/ GP':>8}{'/ iso':>8}"
            f"{'CPU s':>9}{'GP s':>9}{'iso s':>8}"
        )
        ratios, seconds = [], []
        for title, n, draw in cells:
            cell = self.cell(draw, f"{title} {n}")
            if cell is None:
                continue
            (error, gp, iso), spent = cell.T
            ratios.append((error / min(gp, iso), error / gp, error / iso))
            seconds.append(spent)
            print(
                f"{title:<26}{n:>5}{error:>11.3g}{gp:>11.3g}{iso:>11.3g}"
                + "".join(f"{r:>8.3f}" for r in ratios[-1])
                + f"{spent[0]:>9.2f}{spent[1]:>9.2f}{spent[2]:>8.2f}",
                flush=True,
            )
        table, total = np.array(ratios), np.sum(seconds, axis=0)
        means = [geometric(column) for column in table.T]
        print(f"{'geometric mean':<64}" + "".join(f"{r:>8.3f}" for r in means))
        print(f"{'worst':<64}" + "".join(f"{r:>8.3f}" for r in table.max(axis=0)))
        print(f"{'CPU seconds':<88}{total[0]:>9.1f}{total[1]:>9.1f}{total[2]:>8.1f}   ours / GP {total[0] / total[1]:.2f}\n")
        return table

    # ------------------------------------------------------------------ parts

    def chosen(self) -> dict:
        every = problems.suite(self.options.data)
        return {name: draw for name, draw in every.items() if not self.options.only or name in self.options.only}

    def suite(self) -> None:
        every = self.chosen()
        self.table((name, n, lambda s, d=draw, n=n: d(n, s)) for n in self.options.n or SIZES for name, draw in every.items())

    def heavy(self) -> None:
        cells = [
            (f"{name}, {words}", n, lambda s, m=problems.MADE[name], n=n, t=tails: m.draw(n, s, t))
            for n in self.options.n or [50, 100, 300]
            for name in ("friedman1", "smooth", "dense")
            for tails, words in HEAVY.items()
        ]
        table = self.table(cells)
        print(f"worse than the isotropic ridge in {int((table[:, 2] > 1).sum())} of {len(table)} cells\n")

    def metrics(self) -> None:
        """One fit for each draw, decoded in every metric. The ridge is `KernelRidge()` or that of `--settings`."""
        names = ["identity", "variance", "residual", "residual_full", "shrunk", "auto"]
        print(
            f"{'law':<26}{'n':>5}{'noise':>7}{'no law':>9}" + "".join(f"{m:>15}" for m in names) + f"{'default / others':>17}"
        )
        default, rows = Square().metric, []
        for law in self.options.only or noisy_laws.LAWS:
            for n, noise in [(n, noise) for n in self.options.n or [40, 150] for noise in (0.2, 0.0)]:
                found = [self.decoded(law, n, noise, k, names) for k in range(self.options.draws)]
                mean = np.exp(np.mean(np.log(found), axis=0))
                best = mean[names.index(default) + 1] / min(e for m, e in zip(names, mean[1:]) if m != default)
                rows.append([*mean[1:], best, noise])
                print(
                    f"{law:<26}{n:>5}{noise:>7.1f}{mean[0]:>9.1e}"
                    + "".join(f"{e:>15.3f}" for e in mean[1:])
                    + f"{best:>17.3f}",
                    flush=True,
                )
        table = np.array(rows)
        for words, part in (("with noise", table[table[:, -1] > 0]), ("without noise", table[table[:, -1] == 0])):
            print(f"{'geometric mean, ' + words:<47}" + "".join(f"{geometric(c):>15.3f}" for c in part[:, : len(names)].T))
            worst = (part[:, : len(names)] / part[:, : len(names)].min(axis=1, keepdims=True)).max(axis=0)
            print(f"{'largest ratio to the best, ' + words:<47}" + "".join(f"{c:>15.3f}" for c in worst))
            print(
                f"{'largest ratio to no law, ' + words:<47}" + "".join(f"{c:>15.3f}" for c in part[:, : len(names)].max(axis=0))
            )
        print(f"the default is {default!r}\n")
        self.metric_speed()

    def metric_speed(self) -> None:
        """20,000 rows of seven outputs on laws with closed forms: milliseconds with weights and with a full metric."""
        rng, m, T = np.random.default_rng(0), 20_000, 7
        w, root = 0.15 + 0.2 * rng.standard_normal((m, T)), rng.standard_normal((T, T))
        scores, full = (
            list(np.stack([np.ones((m, T)), w], axis=-1).swapaxes(0, 1)),
            np.linalg.inv(np.eye(T) + root @ root.T / T),
        )
        for law in (Affine(noisy_laws.SUMS), Simplex(), Box(0, 0.3), Sphere(), Ball(0.3)):
            C, spent = law.fit(w), np.full(2, np.inf)
            for _ in range(7):
                for k, metric in enumerate((np.diagonal(full).copy(), full)):
                    loss = Square(metric)
                    loss.metric_ = metric
                    begin = time.perf_counter()
                    decode(loss.objective(scores, [None] * T), C)
                    spent[k] = min(spent[k], time.perf_counter() - begin)
            print(f"{type(law).__name__:<10} weights {1e3 * spent[0]:6.1f} ms, full metric {1e3 * spent[1]:6.1f} ms, "
                  f"ratio {spent[1] / spent[0]:.2f}")  # fmt: skip

    def decoded(self, law: str, n: int, noise: float, k: int, names: list[str]) -> list[float]:
        """nMSE without the law, and that with the law / without it in every metric."""
        C, X, Y, X_test, truth = noisy_laws.draw(law, n, self.options.seed + k, noise)
        model = ConstrainedRegressor(C, surrogate=self.ridge(), on_failure="unconstrained").fit(X, Y)
        problem = problems.Problem(X, Y, X_test, truth, truth)
        free = nmse(problem, model.objective(X_test).center)
        return [free, *(nmse(problem, with_loss(model, Square(m), X, Y).predict(X_test)) / free for m in names)]

    def calibration(self) -> None:
        """90 % intervals of single outputs, over labels with noise, and over the truth where it is known."""
        sizes = self.options.n or [50, 100, 300]
        z = norm.ppf(0.95)
        print(f"{'problem':<18}" + "".join(f"{f'n = {n}':>12}" for n in sizes) + "   coverage of labels, %")
        covered: dict[int, list[float]] = {n: [] for n in sizes}
        for name, draw in self.chosen().items():
            line = f"{name:<18}"
            for n in sizes:
                shares = []
                for k in range(self.options.draws):
                    problem = draw(n, self.options.seed + k)
                    if problem is None:
                        continue
                    mean, std = self.ridge().fit(problem.X, problem.Y).predict(problem.X_test, return_std=True)
                    shares.append(float(np.mean(np.abs(problem.Y_seen - mean) <= z * std)))
                covered[n] += shares
                line += f"{100 * np.mean(shares):>12.1f}" if shares else f"{'-':>12}"
            print(line, flush=True)
        print(f"{'mean':<18}" + "".join(f"{100 * np.mean(covered[n]):>12.1f}" for n in sizes))
        print(f"over everything: {100 * np.mean([c for n in sizes for c in covered[n]]):.1f} %\n")

    def portfolio(self) -> None:
        """Every member alone (in a portfolio of one, so that it is given the same table) and all together."""
        sizes, members = self.options.n or [60, 200], ["kernel", "trees", "linear"]
        print(f"{'table':<18}{'n':>5}" + "".join(f"{m:>11}" for m in [*members, "auto"]) + f"{'/ best':>9}   weights")
        rows = []
        for name, draw in tables.tables().items():
            for n in sizes:
                if (self.options.only and name not in self.options.only) or draw(n, 0) is None:
                    continue
                errors, weights = [], []
                for k in range(self.options.draws):
                    X, Y, X_test, Y_test = draw(n, self.options.seed + k)
                    models = [Portfolio([m], cv=2) for m in members] + [Portfolio()]
                    found = [ConstrainedRegressor(surrogate=m).fit(X, Y) for m in models]
                    problem = problems.Problem(X, Y, X_test, Y_test, Y_test)
                    errors.append([nmse(problem, m.predict(X_test)) for m in found])
                    weights.append(found[-1].surrogate_.weights_.mean(axis=0))
                mean = np.exp(np.mean(np.log(errors), axis=0))
                rows.append(mean)
                print(
                    f"{name:<18}{n:>5}"
                    + "".join(f"{e:>11.3g}" for e in mean)
                    + f"{mean[-1] / mean[:-1].min():>9.3f}   "
                    + " ".join(f"{w:.2f}" for w in np.mean(weights, axis=0)),
                    flush=True,
                )
        table = np.array(rows)
        ratios = table[:, -1:] / table[:, :-1]
        print(f"{'auto / member, geometric mean':<23}" + "".join(f"{geometric(r):>11.3f}" for r in ratios.T))
        worst = (table[:, -1] / table[:, :-1].min(axis=1)).max()
        print(f"auto / best member: geometric mean {geometric(ratios.max(axis=1)):.3f}, worst {worst:.3f}\n")

    def noise(self) -> None:
        """Where outputs share a noise level, and where they do not and are told that they do."""
        print(f"{'outputs':<34}{'own':>10}{'shared':>10}{'ratio':>8}{'90 % own':>11}{'shared':>8}")
        for words, n, apart, few, unequal in (
            ("15 rows each", 15, True, False, False),
            ("40 rows each", 40, True, False, False),
            ("30 rows, the same", 30, False, False, False),
            ("40 rows each, half of them 8", 40, True, True, False),
            ("40 rows each, unequal noise", 40, True, False, True),
        ):
            found = np.array([self.shared(n, apart, few, unequal, self.options.seed + k) for k in range(self.options.draws)])
            error, covered = np.exp(np.log(found[:, 0]).mean(axis=0)), 100 * found[:, 1].mean(axis=0)
            figures = f"{error[0]:>10.4f}{error[1]:>10.4f}{error[1] / error[0]:>8.3f}{covered[0]:>11.1f}{covered[1]:>8.1f}"
            print(f"{words:<34}{figures}", flush=True)

    def shared(self, n: int, apart: bool, few: bool, unequal: bool, seed: int) -> np.ndarray:
        """(2, 2): nMSE (geometric mean of the outputs) and coverage of new labels; own noise and shared."""
        rng, T = np.random.default_rng(seed), 6
        W, phase, height = 1.5 * rng.standard_normal((2, T)), rng.uniform(0, 6, T), np.exp(0.7 * rng.standard_normal(T))
        X, X_test = rng.uniform(-1, 1, (n * T if apart else n, 2)), rng.uniform(-1, 1, (300, 2))
        level = 0.2 * (np.exp(0.7 * rng.standard_normal(T)) if unequal else np.ones(T))
        truth, test = (height * np.sin(x @ W + phase) for x in (X, X_test))
        Y, seen = (f + level * rng.standard_normal(f.shape) for f in (truth, test))
        if apart:
            Y[np.arange(T)[None, :] != np.repeat(np.arange(T), n)[:, None]] = np.nan
        if few:
            for t in range(T // 2):
                Y[np.flatnonzero(np.isfinite(Y[:, t]))[8:], t] = np.nan
        out = []
        for noise in ("own", "shared"):
            mean, std = KernelRidge(noise=noise, **self.options.settings).fit(X, Y).predict(X_test, return_std=True)
            covered = np.mean(np.abs(seen - mean) <= norm.ppf(0.95) * std)
            out.append([geometric(((mean - test) ** 2).mean(axis=0) / test.var(axis=0)), covered])
        return np.array(out).T

    def speed(self) -> None:
        methods = ["ours", "gp", "gpytorch", "himalaya"]
        print(f"CPU seconds (peak memory, GB; nMSE); '-' above {self.options.limit:g} s, 'x' where the peer does not do it")
        print(f"{'n':>6}{'T':>3}{'gaps':>6}" + "".join(f"{m:>26}" for m in methods))
        for n in self.options.n or SPEED_SIZES:
            for T in (2, 7):
                for gaps in (0.0, 0.3):
                    print(f"{n:>6}{T:>3}{'30 %' if gaps else '':>6}", end="")
                    for method in methods:
                        print(f"{self.apart(method, n, T, gaps):>26}", end="", flush=True)
                    print()
        self.own_kernels()

    def apart(self, method: str, n: int, T: int, gaps: float) -> str:
        """One fit and prediction in a process of its own."""
        task = json.dumps({"method": method, "n": n, "T": T, "gaps": gaps, "seed": self.options.seed})
        command = [sys.executable, __file__, "--cell", task, "--settings", json.dumps(self.options.settings)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.options.limit, check=True)
        except subprocess.TimeoutExpired:
            return "-"
        except subprocess.CalledProcessError as error:
            words = error.stderr.strip().splitlines()[-1] if error.stderr else ""
            return "not installed" if "ModuleNotFoundError" in words else "x" if "gaps" in words else "failed"
        got = json.loads(done.stdout.splitlines()[-1])
        return f"{got['seconds']:.1f} ({got['memory']:.2f}; {got['error']:.1e})"

    def own_kernels(self) -> None:
        """Predicting 10,000 rows for seven tasks with kernels of their own, against the kernel products alone."""
        n, problem = 1000, many(1000, 7, 0.0, self.options.seed)
        model = KernelRidge(scales="task", lam=1e-3, **self.options.settings).fit(problem.X, problem.Y)
        X = np.random.default_rng(1).uniform(-1, 1, (10000, problem.X.shape[1]))
        begin = time.process_time()
        model.predict(X)
        spent = time.process_time() - begin
        begin = time.process_time()
        for members in model.members_:
            for member in members:
                member.kernel(X, problem.X) @ np.ones(n)
        alone = time.process_time() - begin
        print(f"\n10,000 rows, 7 tasks with kernels of their own, n = {n}: {spent:.2f} s, kernel products alone {alone:.2f} s, "
              f"ratio {spent / alone:.2f}\n")  # fmt: skip


def many(n: int, T: int, gaps: float, seed: int) -> problems.Problem:
    """T smooth outputs of 5 inputs, with 10 % noise."""
    rng = np.random.default_rng(seed)
    X, W, b = rng.uniform(-1, 1, (n + 1000, 5)), 2 * rng.standard_normal((5, 4, T)), rng.uniform(0, 6, (4, T))
    truth = np.sin(np.einsum("nd,dkt->nkt", X, W) + b).sum(axis=1)
    noisy = truth + 0.1 * truth.std(axis=0) * rng.standard_normal(truth.shape)
    Y = noisy[:n].copy()
    Y[rng.uniform(size=Y.shape) < gaps] = np.nan
    return problems.Problem(X[:n], Y, X[n:], truth[n:], noisy[n:])


def alone(bench: Bench, task: dict) -> None:
    """What `Bench.apart` runs: prints seconds, memory and error."""
    problem = many(task["n"], task["T"], task["gaps"], task["seed"])
    fit = bench.ours if task["method"] == "ours" else getattr(peers, task["method"])
    error, seconds = bench.timed(fit, problem)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": seconds, "memory": memory, "error": error}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", nargs="+", default=["suite"], choices=PARTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n", type=int, nargs="+", help="numbers of rows; each part has its own default")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--data", type=Path, help="folder that holds sarcos/ and distillation/")
    parser.add_argument("--only", nargs="+", help="names of problems of the suite")
    parser.add_argument("--settings", type=json.loads, default={}, help="parameters of KernelRidge, as JSON")
    parser.add_argument("--peers", help="file in which the peers' figures are kept")
    parser.add_argument("--limit", type=float, default=600, help="seconds for a cell of the speed table")
    parser.add_argument("--cell", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if "kernel" in options.settings:
        options.settings["kernel"] = getattr(kernels, options.settings["kernel"])()
    bench = Bench(options)
    with threadpool_limits(1):
        if options.cell:
            alone(bench, options.cell)
            return
        for part in options.part:
            print(f"--- {part}, seed {options.seed}, {options.draws} draw(s), KernelRidge({options.settings or ''})")
            getattr(bench, part)()


if __name__ == "__main__":
    main()

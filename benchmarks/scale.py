"""`NystromRidge` beside what else one would use, and how its cost grows.

    python benchmarks/scale.py --part cpu exact falkon growth [--n 1000000] [--centers 2000] [--seed 1] [--quick]
    python benchmarks/scale.py --part gpu          (needs a GPU; NumPy, SciPy, scikit-learn and torch are enough)

The problem is generated: states of an arm with seven joints (21 inputs) and the seven torques that belong to them by the
equations of Lagrange, with 5 % noise (`lawful.datasets.make_arm`). Errors are the mean squared error over the variance of
each torque, averaged, on 5000 states without noise. Times of one run, in one process; peers are timed in it.

cpu      n rows, M centres: seconds, peak memory, and the rate of the fit as a share of the measured rate of a matrix product;
         then scikit-learn's Nystroem + Ridge on as many rows as it can hold, with the same centres, kernel and lambda.
exact    KernelRidge() and NystromRidge() at n = 1000 ... 10,000.
falkon   Falkon as published (Rudi, Carratino & Rosasco 2017) in plain torch: seconds until it has our error within 1 %; the
         same kernel, centres and lambda.
growth   seconds and memory of fit and predict against n, M, T, the number of equations and of items: fitted exponents, and a
         picture (--out docs/growth.png).
gpu      exact ridges of 44,000 rows for 30 lambdas; 1e6 rows on 1e4 centres beside the plain products, in double precision and
         in TF32; 1e7 rows from host memory.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import sys
import time
from pathlib import Path

import numpy as np


def _there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


if not _there("array_api_compat"):  # a machine where nothing can be installed: scikit-learn brings a copy
    from sklearn.externals import array_api_compat

    sys.modules["array_api_compat"] = array_api_compat
if not _there("lawful"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from lawful._memory import available_memory, in_words  # noqa: E402
from lawful.datasets.arm import make_arm  # noqa: E402
from lawful.kernels import Gaussian  # noqa: E402
from lawful.surrogates.nystrom import NystromRidge  # noqa: E402
from lawful.surrogates.path import exact_path  # noqa: E402
from lawful.surrogates.ridge import KernelRidge  # noqa: E402

PARTS = ["cpu", "exact", "falkon", "growth", "gpu"]
JOINTS, NOISE, CHUNK = 7, 0.05, 50_000


def arm(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """n states and torques, made in parts: the arm's equations take more memory than its states."""
    X, Y = np.empty((n, 3 * JOINTS)), np.empty((n, JOINTS))
    for i in range(0, n, CHUNK):
        size = min(CHUNK, n - i)
        data = make_arm(size, JOINTS, noise=NOISE, random_state=1000 * seed + i // CHUNK)
        X[i : i + size], Y[i : i + size] = data.X, data.Y
    return X, Y


class Test:
    """5000 states without noise."""

    def __init__(self, seed: int) -> None:
        data = make_arm(5000, JOINTS, random_state=999_983 + seed)
        self.X, self.Y = data.X, data.Y

    def error(self, predict) -> float:
        return float(np.mean(((predict(self.X) - self.Y) ** 2).mean(axis=0) / self.Y.var(axis=0)))


def timed(function, *args, **kwargs):
    start = time.perf_counter()
    found = function(*args, **kwargs)
    return found, time.perf_counter() - start


def product_rate(M: int, rows: int = 4096) -> float:
    """Operations a second of a plain product (M, rows) (rows, M): the best of five."""
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((rows, M)), rng.standard_normal((rows, M))
    A.T @ B
    return 2.0 * rows * M * M / min(timed(np.matmul, A.T, B)[1] for _ in range(5))


class Peak:
    """Peak memory of this process from here on, where Linux lets us start it anew."""

    def __init__(self) -> None:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")

    def bytes(self) -> float:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) * 1024
        return float("nan")


def work(ridge: NystromRidge, n: int) -> float:
    """Operations of the sums: kernel values (d + 2 products and an exponential, as 20), pivots, the symmetric product."""
    M, d, p = ridge.n_centers_, ridge.centers_.shape[1], ridge._engine.found.p
    return n * (M * (2 * (d + 2) + 20) + 2.0 * p * p + 2.0 * p * (M - p) + M * (M + 1))


def cpu(args: argparse.Namespace) -> None:
    test = Test(args.seed)
    rate = product_rate(args.centers)
    print(f"matrix product: {rate / 1e9:.1f} Gflop/s")
    sizes = [n for n in (10_000, 100_000, 1_000_000) if n < args.n] + [args.n]
    kernel = None
    print(f"{'n':>9} {'seconds':>8} {'of it sums':>10} {'peak':>8} {'of product rate':>15} {'plain count':>11} {'error':>9}")
    for n in sizes:
        X, Y = arm(n, args.seed)
        peak = Peak()
        ridge = NystromRidge(Gaussian() if kernel is None else kernel, n_centers=args.centers, verbose=args.verbose)
        model, seconds = timed(ridge.fit, X, Y)
        memory = peak.bytes()
        kernel = model.kernel_
        _, sums = timed(model._engine.statistics, model._tasks, None)
        done = work(model, n) / seconds / rate
        plain = 2.0 * n * args.centers**2 / seconds / rate
        error = test.error(model.predict)
        print(f"{n:>9} {seconds:>8.1f} {sums:>10.1f} {in_words(memory):>8} {done:>14.0%} {plain:>11.0%} {error:>10.6f}")
    print(f"after: matrix product {product_rate(args.centers) / 1e9:.1f} Gflop/s; p = {model._engine.found.p} pivots")
    lam = float(np.median(model.lam_))
    del X, Y
    n = args.peer_n or int(min(args.n, 0.55 * available_memory() / (8 * args.centers * 2.6)))
    versus_sklearn(args, n, kernel, lam * args.n / n, test)


def versus_sklearn(args: argparse.Namespace, n: int, kernel: Gaussian, lam: float, test: Test) -> None:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge

    X, Y = arm(n, args.seed)
    scale = kernel.scales(X.shape[1])
    features = Nystroem(gamma=1.0, n_components=args.centers, random_state=args.seed)
    peak = Peak()
    start = time.perf_counter()
    ridge = Ridge(alpha=lam * n).fit(features.fit_transform(X / scale), Y)
    theirs, memory = time.perf_counter() - start, peak.bytes()
    their_error = test.error(lambda A: ridge.predict(features.transform(A / scale)))
    centers = features.components_ * scale
    peak = Peak()
    model, ours = timed(NystromRidge(kernel, lam=lam, centers=centers).fit, X, Y)
    print(f"\nn = {n}, the same {args.centers} centres, kernel and lambda = {lam:.1e}")
    print(f"  scikit-learn Nystroem + Ridge {theirs:8.1f} s  {in_words(memory):>8}  error {their_error:.6f}")
    print(f"  NystromRidge                  {ours:8.1f} s  {in_words(peak.bytes()):>8}  error {test.error(model.predict):.6f}")
    print(f"  {theirs / ours:.2f} times as fast")


def exact(args: argparse.Namespace) -> None:
    test = Test(args.seed)
    X, Y = arm(10_000, args.seed)
    print(f"{'n':>6} {'exact s':>8} {'error':>9} {'centres s':>9} {'error':>9} {'times as fast':>13} {'error ratio':>11}")
    for n in (1000, 3000, 5000, 10_000):
        full, slow = timed(KernelRidge().fit, X[:n], Y[:n])
        model, fast = timed(NystromRidge(n_centers=min(args.centers, n)).fit, X[:n], Y[:n])
        a, b = test.error(full.predict), test.error(model.predict)
        print(f"{n:>6} {slow:>8.1f} {a:>9.6f} {fast:>9.1f} {b:>9.6f} {slow / fast:>13.1f} {b / a:>11.3f}", flush=True)
        if n == 10_000:
            same = KernelRidge(model.kernel_, lam=float(np.median(model.lam_))).fit(X, Y)
            print(f"       exact with the kernel and the lambda of the centres: error {test.error(same.predict):.6f}")


def falkon(args: argparse.Namespace) -> None:
    import torch  # the peer needs it
    from scale_falkon import Clock
    from scale_falkon import falkon as published

    n = args.falkon_n
    test = Test(args.seed)
    X, Y = arm(n, args.seed)
    first = NystromRidge(Gaussian(), n_centers=args.centers).fit(X[:10_000], Y[:10_000])
    kernel, lam = first.kernel_, float(np.median(first.lam_)) * 10_000 / n
    print(f"{n} rows, {args.centers} centres, lambda {lam:.1e}; torch has {torch.get_num_threads()} threads", flush=True)
    print(f"{'':>30} {'wall s':>7} {'CPU s':>7} {'error':>9} {'steps':>5}")
    aim = np.inf
    centers = first.centers_
    published(X[:5000], Y[:5000], centers[:200], kernel.scales(X.shape[1]), lam, test, np.inf)  # libraries are loaded
    for _ in range(args.repeats):
        for solver in ("direct", "cg"):
            clock = Clock()
            with clock:
                model = NystromRidge(kernel, lam=lam, centers=centers, solver=solver, tol=1e-5).fit(X, Y)
            error = test.error(model.predict)
            aim = error if solver == "direct" else aim
            _line(f"NystromRidge, {solver}", clock.spent, error, model.n_iter_)
        spent, error, steps = published(X, Y, centers, kernel.scales(X.shape[1]), lam, test, 1.01 * aim)
        _line("Falkon, published, torch", spent, error, steps)


def _line(name: str, spent: np.ndarray, error: float, steps: int) -> None:
    print(f"{name:>30} {spent[0]:>7.1f} {spent[1]:>7.1f} {error:>9.6f} {steps:>5}", flush=True)


def growth(args: argparse.Namespace) -> None:
    from scale_growth import growth as grown  # rankings bring a compiler, which a GPU machine may lack

    grown(args.seed, args.quick, args.out)


def gpu(args: argparse.Namespace) -> None:
    import torch

    device = args.device
    sync = torch.cuda.synchronize if device.startswith("cuda") else (lambda: None)

    def clocked(function):
        sync()
        start = time.perf_counter()
        found = function()
        sync()
        return found, time.perf_counter() - start

    small = args.quick
    test = Test(args.seed)
    n, M = (3000, 500) if small else (44_000, 10_000)
    X, Y = arm(n, args.seed)
    spread = X.std(axis=0)
    kernel = Gaussian(8.0 * spread)
    lams = 10.0 ** np.linspace(-10, -3, 30)
    exact_path(kernel, X[:500], Y[:500], lams[-1:], device=device)  # libraries are loaded
    (coef, beta), seconds = clocked(lambda: exact_path(kernel, X, Y, lams, device=device))
    errors = [test.error(lambda A: kernel(A, X) @ coef[l] + beta[l]) for l in (0, 10, 20, 29)]  # noqa: B023
    print(
        f"exact ridge, n = {n}, float64, 30 lambdas: {seconds:.1f} s; errors of four of them {np.round(errors, 6)}", flush=True
    )
    gpytorch_exact(torch, device, kernel, X, Y, lams[10], test, clocked)
    big = 20_000 if small else 1_000_000
    X, Y = arm(big, args.seed)
    for dtype in ("float64", "tf32"):
        products = plain_products(torch, device, big, M, dtype, clocked)
        NystromRidge(kernel, lam=1e-5, n_centers=300, device=device, dtype=dtype).fit(X[:5000], Y[:5000])
        ridge = NystromRidge(kernel, lam=1e-9, n_centers=M, device=device, dtype=dtype, tol=1e-5, max_iter=40)
        model, seconds = clocked(lambda: ridge.fit(X, Y))  # noqa: B023
        print(
            f"Nystrom, n = {big}, M = {M}, {dtype}: {seconds:.2f} s; plain products {products:.2f} s, {seconds / products:.2f} "
            f"times; error {test.error(model.predict):.6f}, {model.n_iter_} iterations, p = {model._engine.found.p}",
            flush=True,
        )
    huge = 50_000 if small else args.huge
    (X, Y), made = timed(arm, huge, args.seed)
    model, seconds = clocked(lambda: NystromRidge(kernel, lam=1e-9, n_centers=M, device=device).fit(X, Y))
    _, predicted = clocked(lambda: model.predict(X[:big]))
    print(
        f"Nystrom, n = {huge} from the host, M = {M}: {seconds:.1f} s; error {test.error(model.predict):.6f} "
        f"(made in {made:.0f} s)"
    )
    print(f"predict of {big} rows: {predicted:.2f} s")


def gpytorch_exact(torch, device: str, kernel: Gaussian, X: np.ndarray, Y: np.ndarray, lam: float, test: Test, clocked) -> None:
    """GPyTorch's exact process with the same kernel and noise, its solver on its own settings: one torque, one lambda."""
    if not _there("gpytorch"):
        print("GPyTorch is not installed here")
        return
    import gpytorch

    A, y, new = (torch.as_tensor(v, device=device) for v in (X, Y[:, 0] - Y[:, 0].mean(), test.X))
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device).double()

    class Process(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            super().__init__(A, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.RBFKernel(ard_num_dims=A.shape[1])

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    process = Process().to(device).double()
    process.covar_module.lengthscale = torch.as_tensor(kernel.scales(X.shape[1]) / 2**0.5, device=device)
    likelihood.noise = max(lam * len(X), 1.01e-4)  # its lower bound
    process.eval()
    with torch.no_grad(), gpytorch.settings.skip_posterior_variances():
        found, seconds = clocked(lambda: process(new).mean.cpu().numpy() + Y[:, 0].mean())
    error = float(((found - test.Y[:, 0]) ** 2).mean() / test.Y[:, 0].var())
    print(
        f"GPyTorch, exact, n = {len(X)}, float64, one torque, one lambda: {seconds:.1f} s; error of it {error:.6f}", flush=True
    )


def plain_products(torch, device: str, n: int, M: int, dtype: str, clocked) -> float:
    """Seconds of the products A' A of blocks with n rows in all, nothing else."""
    rows = min(n, 20_000)
    kind = torch.float64 if dtype == "float64" else torch.float32
    A, S = torch.randn(rows, M, device=device, dtype=kind), torch.zeros(M, M, device=device, dtype=kind)
    before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, dtype == "tf32"

    def run():
        for _ in range(n // rows):
            S.addmm_(A.T, A)

    S.addmm_(A.T, A)
    seconds = clocked(run)[1]
    torch.backends.cuda.matmul.allow_tf32 = before
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS[:4])
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--centers", type=int, default=2000)
    parser.add_argument("--peer-n", type=int, default=None, help="rows for scikit-learn; by default as many as it can hold")
    parser.add_argument("--falkon-n", type=int, default=100_000, help="rows beside Falkon")
    parser.add_argument("--repeats", type=int, default=1, help="of the fits beside Falkon")
    parser.add_argument("--huge", type=int, default=10_000_000, help="rows of the last fit on the GPU")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default=None, help="where the picture of the growth goes")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    for part in args.part:
        print(f"\n--- {part}", flush=True)
        {"cpu": cpu, "exact": exact, "falkon": falkon, "growth": growth, "gpu": gpu}[part](args)


if __name__ == "__main__":
    main()

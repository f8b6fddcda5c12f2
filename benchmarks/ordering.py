"""Orders: linear-ordering instances against their best known values, exactness for few items, planted orders, time per decode.

    python benchmarks/ordering.py --data FOLDER

FOLDER holds `lolib/` (instances and best_known.txt). Without --data the other parts run alone. Compiling is not timed.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from lawful.decoders.orders import order
from lawful.rankings import linear_ordering


def instances(folder: Path) -> list[tuple[str, np.ndarray, float]]:
    found = []
    for line in (folder / "best_known.txt").read_text(encoding="utf-8").splitlines():
        name, best = line.split()
        numbers = np.array((folder / name).read_text(encoding="utf-8").split(), float)
        found.append((name, numbers[1:].reshape(int(numbers[0]), -1), float(best)))
    return found


def timed(function, *arguments, **options):
    begin = time.perf_counter()
    result = function(*arguments, **options)
    return result, time.perf_counter() - begin


def linear_ordering_instances(folder: Path, limits: list[float], seed: int) -> None:
    print("\nLinear-ordering instances: gap to the best known value, %; bound: how far the certificate is from it, %")
    print(f"{'limit, s':>9}{'mean gap':>10}{'worst':>9}{'reached':>9}{'mean s':>9}{'longest s':>11}{'bound':>8}")
    data = instances(folder)
    for limit in limits:
        gaps, seconds, bounds = [], [], []
        for _, W, best in data:
            found, took = timed(linear_ordering, W, time_limit=limit, random_state=seed)
            gaps.append(100 * (1 - found.value / best))
            bounds.append(100 * (found.bound / best - 1))
            seconds.append(took)
        reached = sum(gap <= 1e-9 for gap in gaps)
        print(
            f"{limit:>9g}{np.mean(gaps):>10.4f}{max(gaps):>9.4f}{reached:>6d}/{len(gaps)}"
            f"{np.mean(seconds):>9.3f}{max(seconds):>11.3f}{np.mean(bounds):>8.2f}"
        )


def noisy_order(D: int, noise: float, rng: np.random.Generator, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """A skew matrix with A[p, q] = 1 + noise for p before q in a hidden order, and the order."""
    planted = rng.permutation(D)
    A = np.zeros((D, D))
    A[np.ix_(planted, planted)] = np.triu(1 + noise * rng.standard_normal((D, D)), 1)
    return (A - A.T).astype(dtype), planted


def against_exact(seed: int) -> None:
    print("\nAgainst the proven optimum: mean violated weight over the optimum's - 1, %; 20 matrices each")
    print(f"{'items':>6}{'noise':>7}{'insertion':>11}{'eades':>8}{'borda':>8}{'0.1 s':>8}{'proven':>8}", end="")
    print(f"{'exact, s':>10}{'triangles':>11}")
    rng = np.random.default_rng(seed)
    for D, noise in ((10, 3.0), (20, 2.0), (40, 1.5), (60, 1.2)):
        rows, proven = [], 0
        for _ in range(20):
            A, _ = noisy_order(D, noise, rng)
            exact, took = timed(order, A, "exact", time_limit=20)
            proven += exact.status == "optimal"
            base = max(exact.objective, 1e-12)
            others = [order(A, m, bound=False).objective for m in ("insertion", "eades", "borda")]
            searched = order(A, time_limit=0.1, random_state=seed)
            bound = order(A, bound="tight").bound
            rows.append([*(100 * (x / base - 1) for x in (*others, searched.objective)), took, 100 * (bound / base - 1)])
        i, e, b, s, t, low = np.mean(rows, axis=0)
        print(f"{D:>6d}{noise:>7g}{i:>11.2f}{e:>8.2f}{b:>8.2f}{s:>8.2f}{proven:>5d}/20{t:>10.3f}{low:>11.1f}")


def planted_orders(seed: int) -> None:
    print("\nPlanted orders: violated weight over that of the hidden order, and mean displacement in places")
    print(f"{'items':>6}{'noise':>7}{'violated':>10}{'displaced':>11}{'Borda':>8}{'Eades':>8}{'gap':>7}{'ms':>8}")
    rng = np.random.default_rng(seed)
    for D in (500, 1500):
        for noise in (0.0, 1.0, 3.0):
            A, planted = noisy_order(D, noise, rng)
            found, took = timed(order, A)
            hidden = np.empty(D, np.int64)
            hidden[planted] = np.arange(D)
            ahead = hidden[:, None] < hidden[None, :]
            base = float(np.maximum(-A[ahead], 0).sum())
            ratio = [
                f"{order(A, m, bound=False).objective / base:.4f}" if base else "-" for m in ("insertion", "borda", "eades")
            ]
            moved = np.abs(found.positions - hidden).mean()
            print(
                f"{D:>6d}{noise:>7g}{ratio[0]:>10}{moved:>11.2f}{ratio[1]:>8}{ratio[2]:>8}{found.gap:>7.3f}{1000 * took:>8.1f}"
            )


def decode_times(seed: int) -> None:
    print("\nTime per decode, ms (median of 9): Borda and 3 insertion sweeps, without and with the lower bound; Eades")
    print(f"{'items':>6}{'type':>9}{'order':>8}{'+ bound':>9}{'tight':>8}{'Eades':>8}{'gap':>8}{'gap, tight':>12}")
    rng = np.random.default_rng(seed)
    for D in (100, 500, 1682):
        for dtype in (np.float64, np.float32):
            A, _ = noisy_order(D, 1.5, rng, dtype)
            A[np.abs(A) < 0.6] = 0  # as if many pairs had never been compared
            calls = [("insertion", False), ("insertion", True), ("insertion", "tight"), ("eades", False)]
            times = [1000 * np.median([timed(order, A, m, bound=b, sweeps=3)[1] for _ in range(9)]) for m, b in calls]
            gaps = [order(A, bound=b, sweeps=3).gap for b in (True, "tight")]
            print(f"{D:>6d}{dtype.__name__:>9}" + "".join(f"{t:>{w}.1f}" for t, w in zip(times, (8, 9, 8, 8))), end="")
            print(f"{gaps[0]:>8.2f}{gaps[1]:>12.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder that holds lolib/")
    parser.add_argument("--limits", type=float, nargs="+", default=[0.2, 1.0, 5.0])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for dtype in (np.float64, np.float32):  # compile everything
        A, _ = noisy_order(20, 1.0, np.random.default_rng(0), dtype)
        for method in ("insertion", "eades", "borda", "exact"):
            order(A, method, time_limit=0.02)
    if options.data:
        linear_ordering_instances(options.data / "lolib", options.limits, options.seed)
    decode_times(options.seed)
    planted_orders(options.seed)
    against_exact(options.seed)


if __name__ == "__main__":
    main()

"""`lawful.scale` on a cluster of this machine, and what that says about larger ones.

    python benchmarks/cluster.py --part same kill memory speed model [--centers 1000] [--rows 200000] [--seed 1]

same     two worker processes and one process without dask: the largest difference of coefficients.
kill     a worker is killed (SIGKILL) while sums are made; the ridge is that of an undisturbed run.
memory   a Parquet folder three times as large as the memory limit of its only worker: the fit ends, and how much it took.
speed    one and two workers, interleaved: wall time, and processor time of the busiest worker, which other jobs hardly change;
         then the simulation, up to 16 workers.
model    seconds, memory and traffic up to 1e9 rows, from times that are measured here; and what breaks first.

The simulation deals partitions to workers in order, and adds sums up in the tree of `lawful.scale.graphs.tree`; its times (of a
row, an addition, a transfer, a task) are measured in the same run. Needs `pip install "lawful[dask]"`.
"""

from __future__ import annotations

import argparse
import heapq
import os
import signal
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster, wait

from lawful import NystromRidge, scale
from lawful._memory import in_words
from lawful.kernels import Matern
from lawful.scale.graphs import FAN
from lawful.scale.looking import look
from lawful.scale.spreading import alone
from lawful.scale.tables import Form
from lawful.surrogates.statistics import accumulate, layers, places_of
from lawful.tasks import Tasks

PARTS = ["same", "kill", "memory", "speed", "model"]
D, T, CHUNK = 21, 7, 20_000
LIMIT = 500e6  # bytes a worker may take in `memory`; some 250 MB are its interpreter and packages


def block(at: int, n: int, d: int, seed: int) -> np.ndarray:
    """(n, d + T): inputs, and outputs that are smooth functions of them, with noise; made anew wherever it is asked for."""
    rng = np.random.default_rng([seed, at])
    mix = np.random.default_rng(seed).standard_normal((d, T)) / np.sqrt(d)
    X = rng.standard_normal((n, d))
    return np.concatenate([X, np.sin(X @ mix) + 0.1 * rng.standard_normal((n, T))], axis=1)


def table(rows: int, seed: int, d: int = D, chunk: int = CHUNK) -> tuple[da.Array, da.Array]:
    make = dask.delayed(block)
    parts = [da.from_delayed(make(i, chunk, d, seed), (chunk, d + T), float) for i in range(rows // chunk)]
    both = da.concatenate(parts)
    return both[:, :d], both[:, d:]


def ridge(M: int, seed: int, d: int = D) -> NystromRidge:
    return NystromRidge(kernel=Matern(2.5, np.sqrt(d)), lam=1e-6, centers=block(10**6, M, d, seed)[:, :d])


def cluster(workers: int, limit: float | None = None) -> LocalCluster:
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=limit)


def warmed(client: Client, seed: int) -> None:
    """Every worker has loaded what it will need."""
    client.wait_for_workers(len(client.cluster.workers))
    scale.fit(ridge(20, seed), *table(4000, seed, chunk=500), sample=500)


def off(one: NystromRidge, other: NystromRidge) -> float:
    """The largest difference of coefficients, relative to the largest of them."""
    a, b = (np.concatenate([np.asarray(r._solution.coef), r._solution.beta[None]]) for r in (one, other))
    return float(np.abs(a - b).max() / np.abs(b).max())


# ---------------------------------------------------------------------- same, kill, memory


def same(args: argparse.Namespace) -> None:
    X, Y = table(args.rows // 2, args.seed, chunk=CHUNK // 10)
    with cluster(2) as two, Client(two):
        spread = scale.fit(ridge(args.centers // 2, args.seed), X, Y, sample=5000)
    usual = ridge(args.centers // 2, args.seed).fit(X.compute(), Y.compute())
    print(f"same: {X.shape[0]} rows, {usual.n_centers_} centres, two workers and one process: {off(spread, usual):.1e}")


def kill(args: argparse.Namespace) -> None:
    X, Y = table(args.rows, args.seed)
    with cluster(2) as two, Client(two) as client:
        warmed(client, args.seed)
        start = time.perf_counter()
        usual = scale.fit(ridge(args.centers, args.seed), X, Y, sample=5000)
        whole = time.perf_counter() - start
        pids, killed = client.run(os.getpid), []

        def murder() -> None:
            while sum("sums_of" in key for key in client.run_on_scheduler(summed)) < 2:
                time.sleep(0.05)
            victim = next(iter(pids.values()))
            os.kill(victim, signal.SIGKILL)
            killed.append(time.perf_counter() - start)

        thread = threading.Thread(target=murder)
        start = time.perf_counter()
        thread.start()
        again = scale.fit(ridge(args.centers, args.seed), X, Y, sample=5000)
        took = time.perf_counter() - start
        thread.join()
    print(
        f"kill: a worker of two killed after {killed[0]:.1f} s, when two partitions were summed; the fit ended after "
        f"{took:.1f} s (undisturbed {whole:.1f} s); coefficients differ by {off(again, usual):.1e}"
    )


def summed(dask_scheduler) -> list[str]:
    """Sums that are in the memory of a worker."""
    return [str(key) for key, task in dask_scheduler.tasks.items() if task.state == "memory"]


def memory(args: argparse.Namespace) -> None:
    d, chunk = 200, CHUNK // 4
    rows = int(3.05 * LIMIT / (8 * (d + T)) // chunk) * chunk
    with tempfile.TemporaryDirectory() as folder:
        names = [f"x{j}" for j in range(d)] + [f"y{t}" for t in range(T)]
        for i in range(rows // chunk):
            frame = pd.DataFrame(block(i, chunk, d, args.seed), columns=names)
            frame.to_parquet(Path(folder) / f"part{i:04d}.parquet", compression=None)
        on_disk = sum(path.stat().st_size for path in Path(folder).iterdir())
        with cluster(1, LIMIT) as one, Client(one) as client:
            start = time.perf_counter()
            model = scale.fit(ridge(50, args.seed, d), folder, names[d:], sample=1000)
            took = time.perf_counter() - start
            finite = bool(np.isfinite(scale.predict(model, folder).partitions[0].compute()).all().all())
            (peak,) = client.run(high_water).values()
            alive = len(client.scheduler_info()["workers"])
    print(
        f"memory: {rows} rows, {in_words(on_disk)} of Parquet, a worker of {in_words(LIMIT)}: fit in {took:.0f} s, peak of the "
        f"worker {in_words(peak)}, {alive} worker alive, {model.n_seen_} rows learned from, predictions finite: {finite}"
    )


def high_water() -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) * 1024
    return float("nan")


# ---------------------------------------------------------------------- what things cost


@dataclass
class Costs:
    """Seconds, measured. Sums of M centres are 8 M^2 bytes."""

    square: float  # of one row and one pair of centres
    value: float  # of one row and one centre
    read: float  # of one row: making or reading, and looking at it
    send: float  # of one byte from worker to worker
    add: float  # of one byte
    task: float  # of the scheduler
    cube: float  # of solving for one lambda, over M^3

    def leaf(self, rows: float, M: float) -> float:
        return rows * (self.square * M * M + self.value * M + self.read)

    def sums(self, M: float) -> float:
        return 8.0 * M * M


def measured(seed: int, client: Client) -> Costs:
    n = 4000
    data = block(0, n, D, seed)
    form = Form(None, None, False, False, None)
    start = time.process_time()
    for _ in range(3):
        look(0, data[:, :D], data[:, D:], None, form, 5000, 0)
        block(0, n, D, seed)
    read = (time.process_time() - start) / (3 * n)
    tasks = Tasks.of(data[:, :D], data[:, D:])
    times = []
    for M in (500, 1000, 1500):
        engine = alone(ridge(M, seed).fit(data[:, :D], data[:, D:])._engine)
        start = time.process_time()
        for _ in range(2):
            accumulate(engine.blocks, tasks.X, tasks.Z, layers(tasks), places_of(tasks), engine.size)
        times.append((M, (time.process_time() - start) / (2 * n)))
    A = np.array([[M * M, M] for M, _ in times], dtype=float)
    square, value = np.linalg.lstsq(A / A[:, :1], np.array([t for _, t in times]) / A[:, 0], rcond=None)[0]
    M = 1500
    G = np.ones((M, M))
    start = time.process_time()
    for _ in range(5):
        G = G + G
    add = (time.process_time() - start) / (5 * G.nbytes)
    model = ridge(M, seed).fit(data[:, :D], data[:, D:])
    start = time.process_time()
    model._normals = None
    model._solve(model.lam_)
    cube = (time.process_time() - start) / M**3
    # From one worker to the other: a matrix that one made, and the other looks at; on a busy machine the quickest counts.
    workers = list(client.scheduler_info()["workers"])
    sends, tasks_ = [], []
    for k in range(10):
        made = client.submit(np.full, (M, M), float(k), workers=[workers[0]], pure=False)
        wait(made)
        start = time.perf_counter()
        client.submit(np.shape, made, workers=[workers[1]], pure=False).result()
        sends.append(time.perf_counter() - start)
        start = time.perf_counter()
        client.gather(client.map(abs, range(50), pure=False))
        tasks_.append((time.perf_counter() - start) / 50)
    send, task = min(sends) / (8 * M * M), min(tasks_)
    return Costs(max(square, 0.0), max(value, 0.0), read, send, add, task, cube)


def simulated(costs: Costs, rows: float, M: int, workers: int, chunk: float = CHUNK) -> float:
    """Seconds of the pass that sums: whoever is free adds sums that are complete, or else takes the next partition."""
    leaves = max(int(rows // chunk), 1)
    children: dict[int, list[int]] = {}
    level = list(range(leaves))
    while len(level) > 1:
        groups = [level[i : i + FAN] for i in range(0, len(level), FAN)]
        level = [leaves + len(children) + i for i in range(len(groups))]
        children |= dict(zip(level, groups))
    parent = {child: node for node, group in children.items() for child in group}
    waiting = {node: len(group) for node, group in children.items()}
    todo, ready, idle, where = list(range(leaves))[::-1], [], set(range(workers)), {}
    running: list[tuple[float, int, int]] = []
    now = 0.0
    while todo or ready or running:
        while idle and (ready or todo):
            if ready:
                node = ready.pop()
                near = idle & {where[child] for child in children[node]}
                worker = min(near or idle)
                far = sum(where[child] != worker for child in children[node])
                cost = costs.sums(M) * (far * costs.send + (len(children[node]) - 1) * costs.add)
            else:
                node, worker, cost = todo.pop(), min(idle), costs.leaf(chunk, M)
            idle.remove(worker)
            where[node] = worker
            heapq.heappush(running, (now + cost + costs.task, worker, node))
        now, worker, node = heapq.heappop(running)
        idle.add(worker)
        if node in parent:
            waiting[parent[node]] -= 1
            if not waiting[parent[node]]:
                ready.append(parent[node])
    return now


def speed(args: argparse.Namespace, costs: Costs) -> None:
    X, Y = table(args.rows, args.seed)
    took: dict[int, list[float]] = {1: [], 2: []}
    busy: dict[int, list[float]] = {1: [], 2: []}
    load = os.getloadavg()[0]
    for _ in range(args.repeats):
        for workers in took:
            with cluster(workers) as some, Client(some) as client:
                warmed(client, args.seed)
                before, start = client.run(time.process_time), time.perf_counter()
                scale.fit(ridge(args.centers, args.seed), X, Y, sample=5000)
                took[workers].append(time.perf_counter() - start)
                busy[workers].append(max(spent - before[who] for who, spent in client.run(time.process_time).items()))
    print(
        f"speed: {args.rows} rows, {args.centers} centres, partitions of {CHUNK} rows; load of the machine {load:.1f} before, "
        f"{os.getloadavg()[0]:.1f} after"
    )
    for what, found in (("wall time of the fit", took), ("processor time of the busiest worker", busy)):
        for workers, seconds in found.items():
            print(f"  {workers} workers, {what}: {', '.join(f'{s:.1f}' for s in seconds)} s")
        ratios = [one / two for one, two in zip(found[1], found[2])]
        print(f"    two workers are {', '.join(f'{r:.2f}' for r in ratios)} times as fast as one")
    print("\n| workers | rows | simulated s | times as fast | share of ideal |\n|---|---|---|---|---|")
    for rows in (args.rows, 10_000_000):
        one = simulated(costs, rows, args.centers, 1)
        for workers in (1, 2, 4, 8, 16):
            s = simulated(costs, rows, args.centers, workers)
            print(f"| {workers} | {rows:,} | {s:.1f} | {one / s:.2f} | {one / s / workers:.0%} |")


def model(args: argparse.Namespace, costs: Costs) -> None:
    """Tables of time and memory; nothing of it is run, all of it follows from `Costs`."""
    print(
        f"costs of one core: a row {costs.square:.1e} M^2 + {costs.value:.1e} M + {costs.read:.1e} s, a byte "
        f"sent {costs.send:.1e} s, added {costs.add:.1e} s, a task {costs.task:.1e} s, solving {costs.cube:.1e} M^3 s a lambda"
    )
    print(f"sending sums is a tenth of the work in partitions of {10 * 8 * costs.send / costs.square:,.0f} rows, whatever M is")
    print("\n| rows | centres | rows on disk | sums, 16 workers | a worker sends | it holds | solving | the client holds |")
    print("|---|---|---|---|---|---|---|---|")
    for rows, M in ((1e6, 2000), (1e7, 2000), (1e8, 2000), (1e8, 10_000), (1e9, 2000), (1e9, 10_000), (1e9, 32_000)):
        chunk = max(CHUNK, rows / 10_000)  # at most 10,000 partitions
        seconds = simulated(costs, rows, M, 16, chunk)
        traffic = costs.sums(M) * (rows / chunk) / 16
        holds = costs.sums(M) * (FAN + 1) + 8 * chunk * (D + T) * 2
        solving = 10 * costs.cube * M**3
        print(
            f"| {rows:.0e} | {M:,} | {in_words(8 * rows * (D + T))} | {duration(seconds)} | {in_words(traffic)} "
            f"| {in_words(holds)} | {duration(solving)} | {in_words(7 * costs.sums(M))} |"
        )
    print("\n| items | weights of all pairs, for one query | of 1000 candidates | factors of rank 50 |\n|---|---|---|---|")
    for items in (1e4, 1e5, 1e6):
        print(f"| {items:.0e} | {in_words(8 * items**2)} | {in_words(8e6)} | {in_words(8 * 50 * items)} |")


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--centers", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for name, part in (("same", same), ("kill", kill), ("memory", memory)):
        if name in args.part:
            part(args)
    if {"speed", "model"} & set(args.part):
        with cluster(2) as two, Client(two) as client:
            warmed(client, args.seed)
            costs = measured(args.seed, client)
        for name, chosen in (("speed", speed), ("model", model)):
            if name in args.part:
                chosen(args, costs)


if __name__ == "__main__":
    main()

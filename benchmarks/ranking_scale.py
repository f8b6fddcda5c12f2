"""Rankings at scale, and complete rankings: each with its peer, in the same run.

    python benchmarks/ranking_scale.py --part scale                        100,000 queries, 20,000 items, 10 million ratings
    python benchmarks/ranking_scale.py --part scale --shrink 10            a tenth of each
    python benchmarks/ranking_scale.py --part complete --seed 1 2 3        2000 queries that ranked everything, cold start

scale     a tenth of every query's ratings is held out; the model is fitted to the others, and held-out ratings are ordered by
          it and by ALS (alternating least squares with biases; its size and ridge are those of least rank loss on a tenth of
          the training ratings). Like for like: once with the attributes of the queries, which ALS has as a ridge regression of
          every item in the same rounds, and once with the ratings alone. Rank loss N1 over `--judged` queries. Wall time, CPU
          time and the peak memory of the process until the end of the fit.
complete  2000 training queries and 1000 new ones without ratings, 10, 20 and 50 items, X is demographics. The default, the
          other settings of the same estimator, and kernel ridge on ranks (linear and Gaussian, its ridge and width by 5-fold
          cross-validation). Kendall's tau of every seed, and the least time of a fit among them.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

import numpy as np
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from lawful._threads import on_threads
from lawful.estimators.ranker import ConstrainedRanker
from lawful.metrics import rank_loss
from lawful.surrogates.pairs.wide_factors import WideFactorization, WideFactors

ALS_GRID = [(8, 0.3), (8, 0.6), (8, 1.2), (12, 0.6), (12, 1.2), (16, 0.6), (16, 1.2), (16, 2.4)]  # factors, lam


def clocks():
    """Wall time, CPU time of the process."""
    return np.array([time.perf_counter(), time.process_time()])


def peak_gb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # kilobytes on Linux


# --------------------------------------------------------------------------------------------------------------- scale


def make_large(n, D, per_query, seed, n_factors=8, d=6):
    """X and ratings 1 to 5: items differ in quality, X tells a little, tastes more, and people rate what they may like."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal((n, d - 2)), rng.integers(2, size=(n, 2))])
    quality, likes = rng.normal(0, 0.5, D), rng.normal(0, 0.12, (d, D))
    tastes, kinds = rng.standard_normal((n, n_factors)), rng.standard_normal((n_factors, D)) * (0.6 / np.sqrt(n_factors))
    chance = np.cumsum((1.0 + np.arange(D)) ** -0.7)
    places = rng.permutation(D)
    rows, columns, values = [], [], []
    for start in range(0, n, 2000):
        m = min(2000, n - start)
        count = np.clip(np.exp(rng.normal(np.log(per_query) - 0.18, 0.6, m)), 8, D / 10).astype(int)
        users = np.repeat(np.arange(start, start + m), (count * 2.2).astype(int))
        items = places[np.searchsorted(chance, rng.uniform(0, chance[-1], users.size)).clip(max=D - 1)]
        key = np.unique(users * D + items)
        users, items = key // D, key % D
        score = 3.5 + quality[items] + np.sum(X[users] * likes[:, items].T, axis=1)
        score += np.sum(tastes[users] * kinds[:, items].T, axis=1) + rng.normal(0, 0.8, users.size)
        kept = rng.uniform(size=users.size) < 1 / (1 + np.exp(-0.7 * (score - 3.5)))  # of the items met, about half are rated
        rows.append(users[kept])
        columns.append(items[kept])
        values.append(np.clip(np.round(score[kept]), 1, 5))
    return X, sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows).astype(np.int32), np.concatenate(columns).astype(np.int32))),
        shape=(n, D),
    )


def held_out(R, seed, share=0.1):
    """The ratings in two: those to learn from, and those to be ordered."""
    out = np.random.default_rng(seed).uniform(size=R.nnz) < share
    users = np.repeat(np.arange(R.shape[0]), np.diff(R.indptr))
    return [sparse.csr_array((R.data[m], (users[m], R.indices[m])), shape=R.shape) for m in (~out, out)]


def rows_of_items(T):
    """(m, c) the items of every row, padded by -1."""
    count = np.diff(T.indptr)
    out = np.full((T.shape[0], max(count.max(), 1)), -1, dtype=np.int64)
    out[np.repeat(np.arange(len(count)), count), np.arange(T.nnz) - np.repeat(T.indptr[:-1], count)] = T.indices
    return out


def tuned_als(train, Z, seed, jobs, judged):
    """ALS with biases, z_u . g_i beside them; size and ridge by the rank loss of a tenth of the training ratings."""
    known, asked = held_out(train, seed + 1)
    rows = np.sort(np.random.default_rng(seed + 1).permutation(train.shape[0])[:judged])

    def loss(cell):
        model = WideFactors(WideFactorization(*cell), 1, seed, 1).fit(known, Z)
        parts = (rows[start : start + 500] for start in range(0, len(rows), 500))
        found = [rank_loss(asked[r], scores=model.scorer(known[r], Z[r]).all(slice(None)), per_query=True) for r in parts]
        return np.nanmean(np.concatenate(found))

    losses = on_threads(loss, ALS_GRID, jobs)
    best = ALS_GRID[int(np.argmin(losses))]
    print("    " + ", ".join(f"{k} factors, lam {lam}: {value:.4f}" for (k, lam), value in zip(ALS_GRID, losses)))
    return WideFactors(WideFactorization(*best), 1, seed, jobs).fit(train, Z), best


def scale(seed, shrink, judged, jobs):
    n, D, per_query = 100_000 // shrink, max(20_000 // shrink, 200), 100
    X, R = make_large(n, D, per_query, seed)
    train, test = held_out(R, seed)
    del R
    print(f"{n} queries, {D} items, {train.nnz} ratings to learn from, {test.nnz} held out; {jobs} threads")
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}", flush=True)
    ConstrainedRanker(pairs="frequent", n_jobs=jobs).fit(X[:200], train[:200])  # compiles
    attributes = np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0) / np.sqrt(X.shape[1]))
    kinds = {"ratings and attributes": (X, attributes), "ratings alone": (None, np.zeros((n, 0)))}
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[:judged])
    chosen = chosen[np.diff(test.indptr)[chosen] > 1]
    for kind, (A, Z) in kinds.items():
        print(kind)
        before, memory = clocks(), peak_gb()
        model = ConstrainedRanker(pairs="frequent" if shrink > 1 else "auto", n_jobs=jobs).fit(A, train)
        wall, cpu = clocks() - before
        found = model.surrogate_
        print(f"  {model.surrogate_choice_}")
        print(f"  fit {wall:.0f} s wall, {cpu:.0f} s CPU, peak {peak_gb():.2f} GB ({memory:.2f} before)   (bars: 600 s, 4 GB)")
        print(
            f"  chosen: {found.factors_}, kappa {found.kappa_:.3g}; {found.n_tasks_} pairs with {found.least_} queries or more"
        )
        before = clocks()
        als, best = tuned_als(train, Z, seed, jobs, judged)
        print(f"  ALS: {best[0]} factors, lam {best[1]}; {clocks()[1] - before[1]:.0f} s CPU with its selection", flush=True)
        losses = {"ConstrainedRanker": [], "its factor prior, sorted": [], "ALS": []}
        before = clocks()
        for start in range(0, len(chosen), 500):
            rows = chosen[start : start + 500]
            T, profile, B = test[rows], train[rows], None if A is None else A[rows]
            orders = model.decode(B, profile, items=rows_of_items(T), bound=False)
            losses["ConstrainedRanker"].append(rank_loss(T, orders.positions, per_query=True))
            F = found._inputs(B, profile)[1]
            losses["its factor prior, sorted"].append(rank_loss(T, scores=F.all(slice(None)), per_query=True))
            F = als.scorer(profile, Z[rows])
            losses["ALS"].append(rank_loss(T, scores=F.all(slice(None)), per_query=True))
        spent = clocks()[1] - before[1]
        print(f"  {len(chosen)} queries ordered and judged in {spent:.0f} s CPU; rank loss N1 of held-out ratings:")
        reference = np.concatenate(losses["ALS"])
        for name, values in losses.items():
            values = np.concatenate(values)
            more = values - reference
            spread = np.nanstd(more) / np.sqrt(np.isfinite(more).sum())
            print(f"    {name:<28}{np.nanmean(values):.4f}   less ALS {np.nanmean(more):+.4f} +- {spread:.4f}", flush=True)
        del model, found, als


# ------------------------------------------------------------------------------------------------------------ complete


def make_complete(n, D, seed):
    """Complete rankings (larger is better) whose utilities X explains in part, not all of it linearly."""
    rng = np.random.default_rng(seed)
    age, income, sex, region = (
        rng.standard_normal((n, 1)),
        rng.standard_normal((n, 1)),
        rng.integers(2, size=(n, 1)),
        rng.integers(5, size=n),
    )
    X = np.hstack([age, income, sex, np.eye(5)[region]])
    utility = rng.standard_normal(D) + X @ rng.normal(0, 0.5, (X.shape[1], D))
    utility += 0.3 * np.tanh(age * income) * rng.standard_normal(D)
    utility += rng.standard_normal((n, 2)) @ rng.standard_normal((2, D)) + 2.0 * rng.standard_normal((n, D))
    return X, np.argsort(np.argsort(utility, axis=1), axis=1).astype(float)


def kendall(R, better):
    """Mean Kendall tau of scores, larger is better, with complete rankings."""
    D, total = R.shape[1], 0.0
    for i in range(len(R)):
        total += np.sum(np.sign(np.subtract.outer(R[i], R[i])) * np.sign(np.subtract.outer(better[i], better[i])))
    return total / (len(R) * D * (D - 1))


def ridge_on_ranks(X, R, X_new):
    """Kernel ridge of the centred ranks on standardised X, kernel and ridge by 5-fold cross-validation."""
    mean, std, level = X.mean(axis=0), X.std(axis=0), R.mean(axis=0)
    grid = [
        {"kernel": ["linear"], "alpha": [1.0, 10.0, 100.0]},
        {"kernel": ["rbf"], "gamma": [0.01, 0.05], "alpha": [0.3, 3.0]},
    ]
    search = GridSearchCV(KernelRidge(), grid, cv=5, scoring="neg_mean_squared_error").fit((X - mean) / std, R - level)
    return search.predict((X_new - mean) / std) + level


SETTINGS = {
    "default": {},
    "similarity=30, factors": {"similarity": 30.0},
    "similarity=0, factors": {"similarity": 0.0},
    "similarity=0, item bias": {"similarity": 0.0, "prior": "item_bias"},
    "similarity=0, no prior": {"similarity": 0.0, "prior": None},
}


def complete(seeds, sizes, jobs):
    peer = "kernel ridge on ranks"
    for D in sizes:
        print(f"{D} items ranked by 2000 queries, 1000 new queries without ratings; load {os.getloadavg()[0]:.1f}")
        taus = {name: [] for name in [*SETTINGS, peer]}
        clock = {name: [] for name in SETTINGS}
        for seed in seeds:
            X, R = make_complete(3000, D, seed)
            ConstrainedRanker(n_jobs=jobs).fit(X[:80], R[:80])  # compiles
            for name, options in SETTINGS.items():
                before = clocks()
                model = ConstrainedRanker(n_jobs=jobs, **options).fit(X[:2000], R[:2000])
                clock[name].append(clocks() - before)
                taus[name].append(kendall(R[2000:], -model.predict(X[2000:])))
            taus[peer].append(kendall(R[2000:], ridge_on_ranks(X[:2000], R[:2000], X[2000:])))
        for name, values in taus.items():
            fit = "   fit wall {:.2f}, CPU {:.2f} s".format(*np.min(clock[name], axis=0)) if name in clock else ""
            print(f"  {name:<28}tau {np.mean(values):.4f}  ({', '.join(f'{v:.4f}' for v in values)}){fit}", flush=True)
        best = np.max([taus[name] for name in SETTINGS], axis=0)
        behind = 100 * (1 - np.array(taus["default"]) / best)
        more = np.array(taus["default"]) - taus[peer]
        print(f"  the default is at most {behind.max():.2f} % behind the best of its settings (bar 1)")
        print(f"  default less {peer}: {more.mean():+.4f} ({', '.join(f'{v:+.4f}' for v in more)})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["scale", "complete"], required=True)
    parser.add_argument("--seed", type=int, nargs="+", default=[4000], help="complete: one or several")
    parser.add_argument("--shrink", type=int, default=1, help="scale: divide queries, items and ratings by so much")
    parser.add_argument("--judged", type=int, default=5000, help="scale: queries whose held-out ratings are ordered")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 50], help="complete: numbers of items")
    parser.add_argument("--jobs", type=int, default=2, help="threads")
    a = parser.parse_args()
    if a.part == "scale":
        scale(a.seed[0], a.shrink, a.judged, a.jobs)
    else:
        complete(a.seed, a.sizes, a.jobs)


if __name__ == "__main__":
    main()

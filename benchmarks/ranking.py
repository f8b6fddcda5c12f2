"""Ranking films for users: MovieLens 100k, every figure with its peers in the same run.

    python benchmarks/ranking.py --data FOLDER        (FOLDER holds ml-100k/, or is it)

1. Time and memory: the fit of all observed pairs of films, 200 users scored and decoded, scikit-learn's KernelRidge pair by
   pair, igraph's Eades, Lin and Smyth. Peak memory is that of a child process.
2. Rank loss on fresh random splits (--seeds, --seed), protocol A: 643 training users, 300 test users; a random half of their
   ratings is the profile and the other half is evaluated. N1, N2, N3 are the denominators of `lawful.metrics.rank_loss`.
3. --large: 5000 generated items and queries.

python-igraph (GPL) is needed for its own row only: pip install igraph.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge

from lawful.datasets import fetch_movielens_100k, movielens_protocol
from lawful.decoders.orders import order
from lawful.estimators.ranker import ConstrainedRanker
from lawful.metrics import rank_loss
from lawful.surrogates.pairs.factorisation import AveragedFactorization, ItemBias, Popularity, select_factorization

DENOMINATORS = ("N1", "N2", "N3")
# The paper's estimator, and its vector-valued predecessor in which an unseen comparison is a tie (SELF).
# Their lam was chosen on other splits (seeds 105 and 106), over 0.03 to 1 and 0.1 to 10.
PAPER = {"prior": None, "ridge": "n_lambda", "lam": 1.0, "targets": "difference", "pair_weight": None}
SELF = {**PAPER, "missing": "zero", "lam": 10.0}
MAIN = "NL-MTL, factor prior (default)"


def clock(function, repeats=3):
    """The result and the median time of some calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return result, float(np.median(times))


def peak_gb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # kilobytes on Linux


# ---------------------------------------------------------------------------------------------------------------- time


def small(split, users=60, items=200):
    """A corner of the data on which everything is compiled before it is timed."""
    return split.X_train[:users], split.R_train[:users][:, :items]


def child_speed(folder, seed):
    """Fit, score and decode in a process of its own; times and peak memory as JSON."""
    split = movielens_protocol(fetch_movielens_100k(folder=folder), "A", random_state=seed)
    X, R, start = split.X_train, split.R_train, peak_gb()
    for prior in (None, "factors"):
        warm = ConstrainedRanker(prior).fit(*small(split))
        warm.predict(split.X_test[:2], split.profile_test[:2, :200])
    plain, fit_plain = clock(lambda: ConstrainedRanker(None).fit(X, R))
    many, decode_plain = clock(lambda: plain.predict(split.X_test[:200], split.profile_test[:200]))
    full, fit_full = clock(lambda: ConstrainedRanker().fit(X, R))
    _, decode_full = clock(lambda: full.predict(split.X_test[:200], split.profile_test[:200]))
    figures = {
        "tasks": int(plain.n_tasks_), "items": many.shape[1], "fit": fit_plain, "decode": decode_plain, "fit_full": fit_full,
        "decode_full": decode_full, "peak": peak_gb(), "start": start,
    }  # fmt: skip
    print(json.dumps(figures))


def sklearn_pairs(split, sample, kappa, seed):
    """Seconds per pair of a loop that fits scikit-learn's KernelRidge to `sample` random pairs that somebody rated."""
    dense = np.full(split.R_train.shape, np.nan)
    rows = np.repeat(np.arange(dense.shape[0]), np.diff(split.R_train.indptr))
    dense[rows, split.R_train.indices] = split.R_train.data
    seen = ~np.isnan(dense)
    together = np.triu(seen.T.astype(np.float32) @ seen.astype(np.float32), 1)
    pairs = np.argwhere(together > 0)
    chosen = pairs[np.random.default_rng(seed).choice(len(pairs), sample, replace=False)]
    K = 1 + split.X_train @ split.X_train.T
    KernelRidge(kernel="precomputed", alpha=kappa).fit(K[:5, :5], np.arange(5.0))
    start = time.perf_counter()
    for p, q in chosen:
        users = np.flatnonzero(seen[:, p] & seen[:, q])
        KernelRidge(kernel="precomputed", alpha=kappa).fit(K[np.ix_(users, users)], dense[users, p] - dense[users, q])
    return (time.perf_counter() - start) / sample, len(pairs)


def igraph_decodes(split, queries):
    """Seconds and violated weight of igraph's Eades and of our decoders on the skew matrices of some test users."""
    try:
        import igraph
    except ImportError:
        print("  igraph is not installed; its row is left out (pip install igraph)")
        return
    model = ConstrainedRanker(**PAPER).fit(split.X_train, split.R_train)
    rows: dict[str, list] = {name: [] for name in ("igraph eades", "igraph, call alone", "insertion", "eades", "borda")}
    for u in range(queries):
        S = model.surrogate_.skew(split.X_test[[u]], split.profile_test[[u]])
        total = float(np.abs(np.triu(S, 1)).sum(dtype=float))
        # Its quickest way from a matrix to a graph; both parts are needed by whoever has S and wants an order.
        graph, building = clock(lambda S=S: igraph.Graph.Weighted_Adjacency(np.maximum(S, 0)), 1)
        arcs, calling = clock(lambda g=graph: g.feedback_arc_set(weights="weight", method="eades"))
        share = np.asarray(graph.es["weight"])[arcs].sum() / total
        rows["igraph eades"].append((building + calling, share))
        rows["igraph, call alone"].append((calling, share))
        for method in ("insertion", "eades", "borda"):
            found, seconds = clock(lambda S=S, m=method: order(S, m, bound=False))
            rows[method].append((seconds, found.objective / total))
    base, call = np.mean(rows["igraph eades"], axis=0), np.mean(rows["igraph, call alone"], axis=0)
    print(
        f"  from S(x) to an order (D = {len(S)}, plain NL-MTL, mean of {queries} users; bars: 50 x igraph, 25 % less violated)"
    )
    for name, values in rows.items():
        seconds, share = np.mean(values, axis=0)
        print(
            f"    {name:<20}{1e3 * seconds:>8.1f} ms   violated weight {share:.4f} ({100 * (1 - share / base[1]):>4.1f} % less)"
            f"   {base[0] / seconds:>6.1f} x igraph's speed, {call[0] / seconds:>5.1f} x that of its call alone"
        )


def child(*arguments):
    """The JSON that this script prints in a process of its own."""
    done = subprocess.run([sys.executable, __file__, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def speed(folder, seed, sample, queries):
    f = child("--data", folder, "--seed", seed, "--child", "speed")
    split = movielens_protocol(fetch_movielens_100k(folder=folder), "A", random_state=seed)
    print("1. time and memory (after compilation, medians of 3; insertion decoder, constant feature, similarity kernel)")
    print(f"  fit of {f['tasks']} observed pairs of {f['items']} films, no prior   {f['fit']:8.2f} s     (bar 1.5)")
    print(f"  200 test users scored and decoded, no prior        {f['decode']:8.2f} s     (bar 4)")
    print(f"  fit with the factor prior                          {f['fit_full']:8.2f} s")
    print(f"  200 test users, factor prior                       {f['decode_full']:8.2f} s     (bar 4)")
    print(
        f"  peak memory of the process                         {f['peak']:8.2f} GB    (bar 1; {f['start']:.2f} before the fit)"
    )
    per_pair, pairs = sklearn_pairs(split, sample, 40.0, seed)
    print(
        f"  scikit-learn KernelRidge, pair by pair             {per_pair * pairs:8.0f} s     extrapolated: "
        f"{1e6 * per_pair:.0f} us x {pairs} pairs, timed on {sample}; {per_pair * pairs / f['fit']:.0f} x ours (bar 300)"
    )
    igraph_decodes(split, queries)


# ------------------------------------------------------------------------------------------------------------- quality


def per_movie_ridge(model, split):
    """Scores w F_i(x) + kernel ridge, film by film, of what the prior of a fitted ranker leaves; its kernel, its ridge."""
    surrogate, R = model.surrogate_, split.R_train
    users, count = np.repeat(np.arange(R.shape[0]), np.diff(R.indptr)), np.diff(R.indptr)
    F = surrogate.prior_.training_scores().data

    def centred(v):
        return v - (np.bincount(users, v, R.shape[0]) / count)[users]

    f, y = centred(F), centred(R.data)
    w = (count[users] * f * y).sum() / (count[users] * f * f).sum()
    rest = sparse.csc_array(sparse.csr_array((y - w * f, R.indices, R.indptr), shape=R.shape))
    K = surrogate.kernel_.gram()
    cross = surrogate.kernel_.cross(split.X_test, split.profile_test, split.X_test.shape[0])
    scores = w * surrogate.prior_.scores(ratings=split.profile_test, X=split.X_test)
    for i in range(R.shape[1]):
        raters = rest.indices[rest.indptr[i] : rest.indptr[i + 1]]
        if raters.size:
            A = K[np.ix_(raters, raters)] + model.surrogate_.kappa_ * np.eye(raters.size)
            scores[:, i] += cross[:, raters] @ np.linalg.solve(A, rest.data[rest.indptr[i] : rest.indptr[i + 1]])
    return scores


def one_split(data, seed):
    """Every method's rank losses on one split: name -> (N1, N2, N3); and what validation chose."""
    split = movielens_protocol(data, "A", random_state=seed)
    X, R, profile, truth = split.X_train, split.R_train, split.profile_test, split.R_eval
    rows = {}

    def note(name, **prediction):
        rows[name] = [rank_loss(truth, denominator=d, **prediction) for d in DENOMINATORS]

    def ranker(name, model):
        note(name, positions=model.predict(split.X_test, profile))
        model.set_params(decoder="eades")
        note(f"{name}, Eades", positions=model.predict(split.X_test, profile))

    main = ConstrainedRanker().fit(X, R)
    ranker(MAIN, main)
    note("per-movie kernel ridge on the same prior", scores=per_movie_ridge(main, split))
    note("the factor prior alone, sorted", scores=main.surrogate_.prior_.scores(ratings=profile, X=split.X_test))
    biased = ConstrainedRanker("item_bias").fit(X, R)
    note("NL-MTL, item-bias prior", positions=biased.predict(split.X_test, profile))
    ranker("NL-MTL, plain (the paper's)", ConstrainedRanker(**PAPER).fit(X, R))
    ranker("SELF (missing = tie)", ConstrainedRanker(**SELF).fit(X, R))
    als = select_factorization(R, loss=lambda T, s: rank_loss(T, scores=s), random_state=seed)
    note("ALS, validation-selected", scores=als.fold_in(profile))
    chosen = {name: als.get_params()[name] for name in ("n_factors", "lam", "count_power")}
    note("average of three ALS, as selected", scores=AveragedFactorization(als, random_state=seed).fit(R).fold_in(profile))
    note("average of three ALS, default", scores=AveragedFactorization(random_state=seed).fit(R).fold_in(profile))
    note("item bias", scores=ItemBias().fit(R).fold_in(profile))
    note("popularity", scores=Popularity().fit(R).fold_in(profile))
    note("random order", scores=np.random.default_rng(seed).uniform(size=truth.shape))
    return rows, chosen


def quality(folder, seeds, first):
    data = fetch_movielens_100k(folder=folder)
    print(f"\n2. rank loss, protocol A, seeds {first} to {first + seeds - 1}, 643 / 300 users, all 1682 films ordered")
    print(
        "  decoder: insertion (3 sweeps) unless Eades is named; scores are sorted; kernel: constant + demographics + similarity"
    )
    found = []
    for seed in range(first, first + seeds):
        rows, chosen = one_split(data, seed)
        found.append(rows)
        short = "  ".join(f"{rows[name][0]:.4f}" for name in (MAIN, *RIVALS))
        print(f"  seed {seed}: N1 of default, {', '.join(RIVALS)}: {short}   (selected: {chosen})", flush=True)
    print(f"  {'method':<46}{'N1':>8}{'N2':>8}{'N3':>8}   N1 less that of the default (mean, seeds in which it is worse)")
    mine = np.array([rows[MAIN][0] for rows in found])
    for name in found[0]:
        values = np.array([rows[name] for rows in found])
        more = values[:, 0] - mine
        beside = "" if name == MAIN else f"   {more.mean():+.4f}   {(more > 0).sum()} of {len(more)}"
        print(f"  {name:<46}{values[:, 0].mean():>8.4f}{values[:, 1].mean():>8.4f}{values[:, 2].mean():>8.4f}{beside}")


RIVALS = ("ALS, validation-selected", "average of three ALS, as selected", "average of three ALS, default")


# --------------------------------------------------------------------------------------------------------------- large


def child_large(size, per_query, queries, seed):
    """Fit `size` generated items rated by `size` queries, decode some of them; times and peak memory as JSON."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((size, 10))
    chance = 1 / (1 + np.arange(size)) ** 0.7
    items = np.concatenate([rng.choice(size, per_query, replace=False, p=chance / chance.sum()) for _ in range(size)])
    users = np.repeat(np.arange(size), per_query)
    taste = np.sum(X[users] * rng.standard_normal((size, 10))[items], axis=1) / 3
    R = sparse.csr_array((np.clip(np.round(3 + taste + rng.standard_normal(users.size)), 1, 5), (users, items)), (size, size))
    start = time.perf_counter()
    model = ConstrainedRanker().fit(X, R)
    fitted = time.perf_counter()
    model.predict(X[:queries], R[:queries])
    done = time.perf_counter()
    figures = {"tasks": int(model.n_tasks_), "fit": fitted - start, "decode": done - fitted, "peak": peak_gb()}
    print(json.dumps(figures))


def large(folder, seed, size, per_query, queries):
    f = child("--data", folder, "--seed", seed, "--child", "large", "--size", size, "--rated", per_query, "--queries", queries)
    print(f"\n3. {size} generated items, {size} queries with {per_query} ratings each, factor prior, compilation included")
    print(f"  fit of {f['tasks']} observed pairs {f['fit']:.0f} s, {queries} queries decoded in {f['decode']:.0f} s")
    print(f"  together {(f['fit'] + f['decode']) / 60:.1f} minutes (bar 10), peak memory {f['peak']:.1f} GB (bar 12)")
    every = f["fit"] + f["decode"] * size / queries
    print(f"  extrapolated: the fit and all {size} queries {every / 60:.1f} minutes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with MovieLens 100k, or that holds ml-100k/")
    parser.add_argument("--seeds", type=int, default=10, help="number of splits; 0 leaves part 2 out")
    parser.add_argument("--seed", type=int, default=2000, help="the first of them")
    parser.add_argument("--pairs", type=int, default=4000, help="pairs on which scikit-learn is timed; 0 leaves part 1 out")
    parser.add_argument("--large", action="store_true", help="part 3")
    parser.add_argument("--size", type=int, default=5000, help="items and queries of part 3")
    parser.add_argument("--rated", type=int, default=60, help="ratings of a query in part 3")
    parser.add_argument("--queries", type=int, default=500, help="queries decoded in part 3")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    a = parser.parse_args()
    folder = Path(a.data)
    if a.child == "speed":
        return child_speed(folder, a.seed)
    if a.child == "large":
        return child_large(a.size, a.rated, a.queries, a.seed)
    if a.pairs:
        speed(folder, a.seed, a.pairs, 5)
    if a.seeds:
        quality(folder, a.seeds, a.seed)
    if a.large:
        large(folder, a.seed, a.size, a.rated, a.queries)
    return None


if __name__ == "__main__":
    main()

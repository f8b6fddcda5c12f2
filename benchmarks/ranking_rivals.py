"""The rivals of the ranking table on MovieLens 100k, beside ConstrainedRanker: rank loss and time in the same run.

    python benchmarks/ranking_rivals.py --data FOLDER [--seeds N] [--seed FIRST]        (FOLDER holds ml-100k/, or is it)

Protocol A: 643 training users, 300 test users; a random half of a test user's ratings is the profile, which everyone may use,
and the other half is evaluated. All 1682 films are ordered. N1, N2, N3 are the denominators of `lawful.metrics.rank_loss`. All
methods see the same X (demographics) and ratings; the joint features also see genres. "fit" and "predict" are seconds after
compilation, medians over the splits; "gap" is the largest certified distance from the minimum, as a share of the objective. The
parameters are the defaults, except that --cv chooses lam of the four rivals by validation on the training users.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sklearn.base import clone

from lawful.baselines.ranking import MatrixFactorizationRanker, PairwiseRanker, Popularity, StructuralRanker
from lawful.datasets import fetch_movielens_100k, movielens_protocol
from lawful.estimators.ranker import ConstrainedRanker
from lawful.metrics import rank_loss
from lawful.surrogates.factors import split_profiles

DENOMINATORS = ("N1", "N2", "N3")
# The paper's estimator, and its predecessor in which an unseen comparison is a tie (SELF); as in benchmarks/ranking.py.
PAPER = {"prior": None, "ridge": "n_lambda", "lam": 0.1, "targets": "difference", "pair_weight": None}
MODELS = {
    "NL-MTL, factor prior (default)": ConstrainedRanker(),
    "NL-MTL, the paper's": ConstrainedRanker(**PAPER),
    "NL-MTL, the paper's, Eades": ConstrainedRanker(**PAPER, decoder="eades"),
    "SELF": ConstrainedRanker(**PAPER, missing="zero"),
    "SELF, Eades": ConstrainedRanker(**PAPER, missing="zero", decoder="eades"),
    "Linear (Duchi et al.)": PairwiseRanker("linear"),
    "Hinge (Herbrich et al.)": PairwiseRanker("hinge"),
    "Logistic (Dekel et al.)": PairwiseRanker("logistic"),
    "SVMStruct, Newton": StructuralRanker(),
    "SVMStruct, cutting planes": StructuralRanker(solver="cutting_plane"),
    "Logistic, queries equal": PairwiseRanker("logistic", weights="queries"),
    "Logistic, X alone (no profiles)": PairwiseRanker("logistic", n_parts=1),
    "matrix factorisation": MatrixFactorizationRanker(),
    "mean of three factorisations": MatrixFactorizationRanker(n_models=3),
    "item bias": Popularity("bias"),
    "popularity (shrunk mean)": Popularity(),
    "number of ratings": Popularity("count"),
}
TUNED = ("Linear (Duchi et al.)", "Hinge (Herbrich et al.)", "Logistic (Dekel et al.)", "SVMStruct, Newton")
GRID = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
WITHOUT_PROFILE = ("Logistic, X alone (no profiles)",)


def fit(model, X, R, genres):
    """Fitted; seconds."""
    start = time.perf_counter()
    if isinstance(model, ConstrainedRanker):
        model.fit(X, R)
    else:
        model.fit(X, R, item_features=genres)
    return time.perf_counter() - start


def choose(model, X, R, genres, seed, held=0.2):
    """The lam with the least rank loss on a share of the training users, half of whose ratings is their profile."""
    order = np.random.default_rng(seed).permutation(R.shape[0])
    out = round(held * R.shape[0])
    profile, rest = split_profiles(R[order[:out]], random_state=seed)
    losses = []
    for lam in GRID:
        candidate = clone(model).set_params(lam=lam)
        fit(candidate, X[order[out:]], R[order[out:]], genres)
        losses.append(rank_loss(rest, candidate.predict(X[order[:out]], profile)))
    return GRID[int(np.argmin(losses))]


def one_split(data, seed, names, cv):
    split = movielens_protocol(data, "A", random_state=seed)
    X, R, genres = split.X_train, split.R_train, data.movies.genres.astype(float)
    rows = {}
    for name in names:
        model = clone(MODELS[name])
        if cv and name in TUNED:
            model.set_params(lam=choose(model, X, R, genres, seed))
        fitting = fit(model, X, R, genres)
        start = time.perf_counter()
        positions = model.predict(split.X_test, None if name in WITHOUT_PROFILE else split.profile_test)
        predicting = time.perf_counter() - start
        losses = [rank_loss(split.R_eval, positions, denominator=d) for d in DENOMINATORS]
        gap = model.gap_ / abs(model.objective_) if hasattr(model, "gap_") else np.nan
        rows[name] = [*losses, fitting, predicting, gap]
        chosen = f"  lam {model.lam:g}" if cv and name in TUNED else ""
        print(f"  seed {seed}  {name:<34}{losses[0]:.4f}  {fitting:.2f} s, {predicting:.2f} s{chosen}", flush=True)
    chance = np.random.default_rng(seed).uniform(size=split.R_eval.shape)
    rows["random order"] = [*(rank_loss(split.R_eval, scores=chance, denominator=d) for d in DENOMINATORS), 0.0, 0.0, np.nan]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder with MovieLens 100k, or that holds ml-100k/")
    parser.add_argument("--seeds", type=int, default=2, help="number of splits")
    parser.add_argument("--seed", type=int, default=2000, help="the first of them")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="WORD", help="only methods whose name holds one of these words"
    )
    parser.add_argument("--cv", action="store_true", help="choose lam of the rivals by validation on the training users")
    a = parser.parse_args()
    data = fetch_movielens_100k(folder=Path(a.data))
    names = [name for name in MODELS if not a.only or any(word.lower() in name.lower() for word in a.only)]
    if not names or a.seeds < 1:
        raise SystemExit(f"nothing to run; methods: {'; '.join(MODELS)}")
    small = movielens_protocol(data, "A", n_train=60, n_test=2, random_state=0)
    for name in names:  # compile
        model = clone(MODELS[name])
        if "tol" in model.get_params():
            model.set_params(tol=1e-2)
        fit(model, small.X_train, small.R_train[:, :200], data.movies.genres[:200].astype(float))
        model.predict(small.X_test, small.profile_test[:, :200])
    found = [one_split(data, seed, names, a.cv) for seed in range(a.seed, a.seed + a.seeds)]
    print(f"\nMovieLens 100k, protocol A, 643 / 300 users, seeds {a.seed} to {a.seed + a.seeds - 1}; means, times are medians")
    print(f"{'method':<36}{'N1':>8}{'N2':>8}{'N3':>8}{'fit s':>9}{'predict s':>11}{'gap':>10}")
    for name in found[0]:
        table = np.array([rows[name] for rows in found])
        n1, n2, n3 = table[:, :3].mean(axis=0)
        gap = "" if np.isnan(table[:, 5]).all() else f"{table[:, 5].max():.0e}"
        print(f"{name:<36}{n1:>8.4f}{n2:>8.4f}{n3:>8.4f}{np.median(table[:, 3]):>9.2f}{np.median(table[:, 4]):>11.2f}{gap:>10}")


if __name__ == "__main__":
    main()

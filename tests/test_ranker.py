"""ConstrainedRanker: orders against brute force, what it accepts, what it refuses, and its manners as an estimator."""

import itertools
import os
import pickle
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge as Reference
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_get_params_invariance,
    check_no_attributes_set_in_init,
    check_parameters_default_constructible,
    check_set_params,
)

from lawful.decoders import ArcSet
from lawful.estimators.base import LawfulEstimator
from lawful.estimators.ranker import ConstrainedRanker
from lawful.kernels import Gaussian, Precomputed
from lawful.metrics import rank_loss
from lawful.ratings import as_ratings
from lawful.surrogates import Surrogate

PAPER = {"prior": None, "similarity": 0, "ridge": "n_lambda", "targets": "difference", "pair_weight": None}


def draw(n=60, D=6, rated=0.6, seed=0, noise=0.3):
    """Ratings that X explains, most of them missing."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + 20, 3))
    R = X @ rng.standard_normal((3, D)) + rng.standard_normal(D) + noise * rng.standard_normal((n + 20, D))
    R[rng.uniform(size=R.shape) > rated] = np.nan
    return X[:n], R[:n], X[n:], R[n:]


def violated(S, order):
    """Weight of the pairs that the order puts the wrong way round."""
    ranked = S[np.ix_(order, order)]
    return -np.minimum(np.triu(ranked, 1), 0).sum()


# ---------------------------------------------------------------------------------------------- the order


@pytest.mark.parametrize("options", [PAPER, {"prior": "item_bias", "kappa": 2.0}, {**PAPER, "missing": "zero"}])
def test_exact_decode_is_the_brute_force_minimum(options):
    X, R, X_new, _ = draw(seed=1, noise=2.0)
    ranker = ConstrainedRanker(decoder="exact", **options).fit(X, R)
    d = ranker.decode(X_new)
    orders = list(itertools.permutations(range(6)))
    for i, x in enumerate(X_new):
        S = ranker.surrogate_.skew(x[None])
        best = min(violated(S, o) for o in orders)
        assert d.objective[i] == pytest.approx(best, abs=1e-9)
        assert violated(S, d.order[i]) == pytest.approx(best, abs=1e-9)
        assert d.value[i] + d.objective[i] == pytest.approx(np.abs(S).sum() / 2)
    assert (d.status == "optimal").all() and np.allclose(d.gap, 0)


def test_bounds_are_bounds_and_positions_invert_orders():
    X, R, X_new, _ = draw(D=12, seed=2, noise=2.0)
    ranker = ConstrainedRanker(**PAPER).fit(X, R)
    exact = ranker.set_params(decoder="exact").decode(X_new)
    for decoder in ("insertion", "eades", "borda"):
        d = ranker.set_params(decoder=decoder).decode(X_new)
        assert (d.bound <= exact.objective + 1e-9).all() and (exact.objective <= d.objective + 1e-9).all()
        assert np.array_equal(np.take_along_axis(d.positions, d.order, axis=1), np.tile(np.arange(12), (20, 1)))
        loose = ranker.decode(X_new, bound=False)
        assert np.array_equal(loose.order, d.order) and np.allclose(loose.objective, d.objective)
        assert np.array_equal(ranker.predict(X_new), d.positions)
    insertion = ranker.set_params(decoder="insertion").decode(X_new)
    # what a local search may miss, as a share of the weight of all pairs
    missed = (insertion.objective - exact.objective) / (exact.objective + exact.value)
    assert missed.mean() <= 5e-4


def test_a_decoder_of_ones_own():
    X, R, X_new, _ = draw(seed=3)
    by_name = ConstrainedRanker(**PAPER, decoder="borda").fit(X, R)
    own = ConstrainedRanker(**PAPER, decoder=lambda S: np.argsort(-S.sum(axis=1), kind="stable")).fit(X, R)
    assert np.array_equal(by_name.predict(X_new), own.predict(X_new))
    with pytest.raises(ValueError, match="did not return an order"):
        ConstrainedRanker(**PAPER, decoder=lambda S: [0] * len(S)).fit(X, R).predict(X_new)


def test_learns_what_x_explains():
    X, R, X_new, R_new = draw(n=200, D=15, rated=0.5, seed=4)
    popularity = 1 - rank_loss(R_new, np.tile(np.argsort(np.argsort(-np.nanmean(R, axis=0))), (20, 1)))
    plain = ConstrainedRanker(**PAPER, lam=0.01).fit(X, R).score(X_new, R_new)
    prior = ConstrainedRanker("item_bias", kappa=1.0).fit(X, R).score(X_new, R_new)
    assert plain > 0.9 > popularity + 0.1
    assert prior > 0.9


def test_profiles_of_new_queries_help():
    """Two tastes that X does not know: ratings of a few items tell them apart."""
    rng = np.random.default_rng(5)
    taste = rng.integers(2, size=140)
    R = np.where(taste[:, None] == 1, 1.0, -1.0) * np.linspace(-1, 1, 20) + 0.3 * rng.standard_normal((140, 20))
    R[rng.uniform(size=R.shape) > 0.6] = np.nan
    X = rng.standard_normal((140, 1))
    profile, rest = R[100:].copy(), R[100:].copy()
    profile[:, ::2], rest[:, 1::2] = np.nan, np.nan
    ranker = ConstrainedRanker("item_bias", kappa=5.0).fit(X[:100], R[:100])
    assert ranker.score(X[100:], rest) < 0.65
    assert ranker.score(X[100:], rest, ratings=profile) > 0.85
    without_x = ConstrainedRanker("item_bias", kappa=5.0).fit(None, R[:100])
    assert without_x.score(None, rest, ratings=sparse.csr_array(as_ratings(profile))) > 0.85


def test_items_and_queries_may_be_renamed():
    X, R, X_new, _ = draw(seed=6)
    rng = np.random.default_rng(0)
    items, queries = rng.permutation(6), rng.permutation(60)
    expected = ConstrainedRanker("item_bias").fit(X, R).predict(X_new)
    assert np.array_equal(ConstrainedRanker("item_bias").fit(X, R[:, items]).predict(X_new), expected[:, items])
    assert np.array_equal(ConstrainedRanker("item_bias").fit(X[queries], R[queries]).predict(X_new), expected)


def test_the_default_with_factors():
    X, R, X_new, R_new = draw(n=150, D=12, seed=7)
    ranker = ConstrainedRanker(random_state=0).fit(X, R)
    assert ranker.score(X_new, R_new, ratings=R_new) > 0.7
    assert np.array_equal(np.sort(ranker.predict(X_new), axis=1), np.tile(np.arange(12), (20, 1)))


# ---------------------------------------------------------------------------------------------- what it offers


def test_recommend():
    X, R, X_new, R_new = draw(seed=8)
    ranker = ConstrainedRanker("item_bias").fit(X, R)
    order = ranker.decode(X_new).order
    assert np.array_equal(ranker.recommend(X_new, k=3), order[:, :3])
    seen = ~np.isnan(R_new)
    for exclude in (R_new, as_ratings(R_new), seen):
        best = ranker.recommend(X_new, k=6, exclude=exclude)
        for i in range(20):
            left = [p for p in order[i] if not seen[i, p]]
            assert best[i].tolist() == left + [-1] * (6 - len(left))
    assert set(ranker.recommend(X_new, k=2, items=[1, 4, 5]).ravel()) <= {1, 4, 5}
    with pytest.raises(ValueError, match="k=0"):
        ranker.recommend(X_new, k=0)
    with pytest.raises(ValueError, match="exclude has 3 rows"):
        ranker.recommend(X_new, exclude=seen[:3])


def test_candidates_are_decoded_alone():
    X, R, X_new, _ = draw(D=10, seed=9, noise=2.0)
    items = [7, 2, 3, 9]
    ranker = ConstrainedRanker(**PAPER, decoder="exact").fit(X, R)
    alone = ConstrainedRanker(**PAPER, decoder="exact").fit(X, R[:, sorted(items)])
    d, e = ranker.decode(X_new, items=items), alone.decode(X_new)
    assert np.array_equal(d.order, np.array(sorted(items))[e.order])
    assert np.allclose(d.objective, e.objective)
    assert (d.positions[:, [0, 1, 4, 5, 6, 8]] == -1).all() and np.array_equal(d.positions[:, sorted(items)], e.positions)


def test_pair_scores_of_one_query_or_many():
    X, R, X_new, _ = draw(seed=10)
    ranker = ConstrainedRanker("item_bias").fit(X, R)
    S = ranker.surrogate_.skew(X_new[:1])
    pairs = [(0, 3), (3, 0), (5, 5)]
    assert np.allclose(ranker.pair_scores(X_new[0], pairs), [S[0, 3], -S[0, 3], 0])
    assert ranker.pair_scores(X_new, pairs).shape == (20, 3)


def test_frame_and_names():
    X, R, X_new, _ = draw(seed=11)
    names = ["tea", "coffee", "milk", "juice", "water", "beer"]
    frame_X = pd.DataFrame(X, columns=["a", "b", "c"])
    ranker = ConstrainedRanker("item_bias").fit(frame_X, pd.DataFrame(R, columns=names))
    d = ranker.decode(pd.DataFrame(X_new, columns=["a", "b", "c"]))
    frame = d.to_frame(k=2)
    assert list(frame.columns) == ["best1", "best2", "value", "objective", "bound", "gap", "status"]
    assert frame["best1"].tolist() == [names[p] for p in d.order[:, 0]]
    bare = ConstrainedRanker("item_bias").fit(X, R).decode(X_new)
    assert bare.to_frame()["best1"].tolist() == d.order[:, 0].tolist()


def test_comparisons_learn_an_order():
    X = np.zeros((3, 1))
    told = [(0, 2, 0, 1.0), (1, 2, 1, 1.0), (1, 0, 1, 2.0), (2, 1, 2, 0.5), (2, 0, 1, 1.0)]
    ranker = ConstrainedRanker(**PAPER).fit(X, comparisons=told)
    assert ranker.predict(X[:1]).tolist() == [[1, 2, 0]]
    assert ranker.n_unobserved_ == 0
    assert ConstrainedRanker(**PAPER).fit(X, comparisons=told, n_items=5).n_unobserved_ == 7


def test_cyclic_comparisons_give_the_order_that_violates_least():
    cycle = [(0, 0, 1, 3.0), (0, 1, 2, 2.0), (0, 2, 0, 1.0)]
    d = ConstrainedRanker(**PAPER).fit(np.zeros((1, 1)), comparisons=cycle).decode(np.zeros((1, 1)))
    assert d.order.tolist() == [[0, 1, 2]]
    assert d.objective[0] / (d.value[0] + d.objective[0]) == pytest.approx(1 / 6)


def test_score_is_one_minus_the_normalised_loss():
    X, R, X_new, R_new = draw(seed=12)
    ranker = ConstrainedRanker("item_bias").fit(X, R)
    positions = ranker.predict(X_new)
    losses = []
    for u in range(20):
        lost = total = 0.0
        for p, q in itertools.permutations(range(6), 2):
            gain = R_new[u, p] - R_new[u, q]
            if gain > 0:
                total += gain
                lost += gain * (positions[u, p] > positions[u, q])
        if total:
            losses.append(lost / total)
    assert ranker.score(X_new, R_new) == pytest.approx(1 - np.mean(losses))
    for truth in (np.full((20, 6), 3.0), np.full((20, 6), np.nan)):  # nothing but ties, nothing at all: no loss to speak of
        with pytest.raises(ValueError, match="nothing to order"):
            ranker.score(X_new, truth)


# ---------------------------------------------------------------------------------------------- what it is made of


def test_a_surrogate_a_set_and_a_decoder():
    X, R, X_new, _ = draw(seed=20)
    ranker = ConstrainedRanker("item_bias").fit(X, R)
    assert isinstance(ranker, LawfulEstimator) and isinstance(ranker.surrogate_, Surrogate)
    assert ranker.constraint_.n_items_ == 6 and len(ranker.constraint_.pairs()) == 15
    d = ranker.decode(X_new)
    assert ranker.constraint_.contains(ranker.constraint_.encode(d.order)).all()
    F = ranker.objective(X_new)
    assert F.shape == (20, 15) and len(F) == 20
    again = ArcSet("insertion", sweeps=3).orders(F, ranker.constraint_)
    assert np.array_equal(again.order, d.order) and np.array_equal(again.bound, d.bound)
    scores = ranker.surrogate_.predict_tasks(X_new)
    p, q = ranker.constraint_.pairs().T
    assert np.allclose(np.concatenate(scores, axis=1), ranker.pair_scores(X_new, np.stack([p, q], axis=1)))
    S = ranker.surrogate_.skew(X_new[:1])
    assert np.allclose([s[0, 0] for s in scores], S[p, q])


@pytest.mark.parametrize("method", ["auto", "exact", "eades"])
def test_a_decoder_with_parameters_of_its_own(method):
    X, R, X_new, _ = draw(seed=21, noise=2.0)
    ranker = ConstrainedRanker(**PAPER, decoder=ArcSet(method)).fit(X, R)
    named = ConstrainedRanker(**PAPER, decoder="exact" if method == "auto" else method).fit(X, R)
    assert np.array_equal(ranker.predict(X_new), named.predict(X_new))
    assert clone(ranker).get_params()["decoder__method"] == method
    with pytest.raises(ValueError, match="method='magic' is unknown"):
        ConstrainedRanker(**PAPER, decoder=ArcSet("magic")).fit(X, R)
    with pytest.raises(ValueError, match="time_limit=-1 will not do"):
        ConstrainedRanker(**PAPER, time_limit=-1).fit(X, R)


# ---------------------------------------------------------------------------------------------- odd but right


def test_a_query_without_ratings_and_an_item_without_any():
    X, R, X_new, _ = draw(seed=13)
    R[3], R[:, 4] = np.nan, np.nan
    for options in (PAPER, {"prior": "item_bias"}, {**PAPER, "missing": "zero"}):
        ranker = ConstrainedRanker(**options).fit(X, R)
        assert ranker.n_unobserved_ >= 5
        assert np.array_equal(np.sort(ranker.predict(X_new), axis=1), np.tile(np.arange(6), (20, 1)))
    rest = [0, 1, 2, 3, 5]
    without = ConstrainedRanker(**PAPER, decoder="exact").fit(np.delete(X, 3, axis=0), np.delete(R, 3, axis=0)[:, rest])
    candidates = ConstrainedRanker(**PAPER, decoder="exact").fit(np.delete(X, 3, axis=0), np.delete(R, 3, axis=0))
    assert np.array_equal(without.predict(X_new), candidates.decode(X_new, items=rest).positions[:, rest])


@pytest.mark.parametrize("prior", [None, "item_bias", "factors"])
def test_ratings_that_all_tie(prior):
    X = np.random.default_rng(0).standard_normal((30, 2))
    R = np.full((30, 5), 3.0)
    R[::2, 1] = np.nan
    ranker = ConstrainedRanker(prior).fit(X, R)
    d = ranker.decode(X[:4])
    assert np.allclose(ranker.pair_scores(X[:4], [(0, 1), (2, 4)]), 0, atol=1e-9)
    assert np.array_equal(np.sort(d.positions, axis=1), np.tile(np.arange(5), (4, 1)))
    assert np.allclose(d.objective, 0, atol=1e-9)


def test_one_item_and_one_query():
    X = np.ones((4, 1))
    ranker = ConstrainedRanker(None).fit(X, np.ones((4, 1)))
    d = ranker.decode(X)
    assert ranker.predict(X).tolist() == [[0]] * 4 and d.objective.tolist() == [0.0] * 4
    assert ranker.recommend(X, k=2).tolist() == [[0, -1]] * 4
    one = ConstrainedRanker(None).fit([[0.0, 1.0]], [[1.0, 3.0, 2.0]])
    assert one.predict([[0.0, 1.0]]).tolist() == [[2, 0, 1]]


def test_integers_lists_and_stored_zeros():
    ranker = ConstrainedRanker(None).fit([[0], [1], [2]], [[5, 0, 3], [4, 1, 2], [5, 0, 1]])
    assert ranker.predict([[1]]).tolist() == [[0, 2, 1]]
    R = sparse.csr_array(([5.0, 0.0, 3.0], ([0, 0, 0], [0, 1, 2])), shape=(1, 3))
    assert ConstrainedRanker(None).fit([[0]], R).predict([[1]]).tolist() == [[0, 2, 1]]


# ---------------------------------------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("X", "R", "message"),
    [
        (np.zeros((3, 2)), np.ones((4, 2)), "inconsistent numbers of queries"),
        (np.array([[np.nan], [1.0]]), np.ones((2, 2)), "NaN"),
        (np.zeros((2, 1)), np.array([[1.0, np.inf], [1.0, 2.0]]), "finite"),
        (np.zeros((2, 1)), np.full((2, 3), np.nan), "nothing is rated"),
        (np.zeros((2, 1)), np.zeros((2, 0)), "at least one query and one item"),
        (np.zeros((2, 1)), np.ones(2), "shape"),
        (np.zeros(3), np.ones((3, 2)), "2D"),
        (np.zeros((2, 1)), [[1.0, np.nan], [np.nan, 2.0]], "no query rated two items"),
        (np.zeros((2, 1)), [["good", "bad"], ["bad", "good"]], "could not convert"),
        (np.zeros((2, 1)), None, "either ratings R or comparisons"),
    ],
)
def test_data_that_will_not_do(X, R, message):
    with pytest.raises(ValueError, match=message):
        ConstrainedRanker(None).fit(X, R)


def test_comparisons_that_will_not_do():
    X = np.zeros((2, 1))
    for rows, message in (([(0, 1, 0, -2.0)], "swap"), ([(5, 1, 0)], "query 5"), ([(0, 1, 1)], "with itself")):
        with pytest.raises(ValueError, match=message):
            ConstrainedRanker(None).fit(X, comparisons=rows)
    with pytest.raises(ValueError, match="either"):
        ConstrainedRanker(None).fit(X, np.ones((2, 2)), comparisons=[(0, 1, 0)])
    with pytest.raises(ValueError, match="comparisons need X"):
        ConstrainedRanker(None).fit(None, comparisons=[(0, 1, 0)])


def test_new_queries_that_will_not_do():
    X, R, X_new, R_new = draw(seed=14)
    ranker = ConstrainedRanker("item_bias").fit(X, R)
    for bad, message in ((X_new[:, :2], "2 features"), (X_new[0], "2D"), (np.full((1, 3), np.nan), "NaN")):
        with pytest.raises(ValueError, match=message):
            ranker.predict(bad)
    with pytest.raises(ValueError, match="one row for each"):
        ranker.predict(X_new, ratings=R_new[:3])
    with pytest.raises(ValueError, match="items"):
        ranker.predict(X_new, ratings=R_new[:, :3])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        ranker.score(X_new, R_new[:3])
    with pytest.raises(ValueError, match="need X too"):
        ranker.predict(None, ratings=R_new)
    for items in ([], [0.5], [[1, 2]], [6], [-1]):
        with pytest.raises(ValueError, match="items"):
            ranker.decode(X_new, items=items)
    with pytest.raises(ValueError, match="fitted without X"):
        ConstrainedRanker("item_bias").fit(None, R).predict(X_new)


def test_not_fitted():
    for call in ("predict", "decode", "recommend"):
        with pytest.raises(NotFittedError):
            getattr(ConstrainedRanker(), call)(np.zeros((1, 2)))
    with pytest.raises(NotFittedError):
        ConstrainedRanker().pair_scores(np.zeros(2), [(0, 1)])
    with pytest.raises(NotFittedError):
        ConstrainedRanker().score(np.zeros((1, 2)), np.ones((1, 3)))


@pytest.mark.parametrize("options", [{"decoder": "magic"}, {"sweeps": -1}, {"sweeps": 1.5}, {"ridge": "x"}, {"kappa": 0}])
def test_parameters_that_will_not_do(options):
    X, R, _, _ = draw(seed=15)
    with pytest.raises(ValueError, match=next(iter(options))):
        ConstrainedRanker(None).set_params(**options).fit(X, R)


# ---------------------------------------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize(
    "check",
    [
        check_parameters_default_constructible,
        check_no_attributes_set_in_init,
        check_get_params_invariance,
        check_set_params,
    ],
)
def test_scikit_learn_checks_that_apply(check):
    """The others hand `fit` a vector y, which is no table of ratings."""
    check("ConstrainedRanker", ConstrainedRanker())


def test_clone_pickle_repr_and_nested_parameters():
    X, R, X_new, _ = draw(seed=16)
    ranker = ConstrainedRanker("item_bias", kernel=Gaussian(sigma=1.0), kappa=3.0)
    copy = clone(ranker).set_params(kernel__sigma=2.0)
    assert (copy.kernel.sigma, ranker.kernel.sigma) == (2.0, 1.0)
    assert "kappa=3.0" in repr(ranker)
    fitted = ranker.fit(X, R)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(X_new), fitted.predict(X_new))
    assert clone(fitted).get_params()["kappa"] == 3.0 and not hasattr(clone(fitted), "surrogate_")


def test_grid_search_pipeline_and_precomputed():
    X, R, X_new, R_new = draw(n=90, seed=17)
    search = GridSearchCV(ConstrainedRanker(**PAPER), {"lam": [1e-3, 1e3]}, cv=3).fit(X, R)
    assert search.best_params_ == {"lam": 1e-3}
    piped = make_pipeline(StandardScaler(), ConstrainedRanker(**PAPER)).fit(X, R)
    assert piped.score(X_new, R_new) > 0.75
    flat = ConstrainedRanker(**PAPER, kernel=lambda A, B: A @ B.T).fit(X, R)
    given = ConstrainedRanker(**PAPER, kernel=Precomputed()).fit(X @ X.T, R)
    assert np.array_equal(given.predict(X_new @ X.T), flat.predict(X_new))
    assert given.__sklearn_tags__().input_tags.pairwise and not flat.__sklearn_tags__().input_tags.pairwise


def test_verbose_shows_progress(capsys):
    X, R, X_new, _ = draw(seed=18)
    quiet = ConstrainedRanker(None).fit(X, R)
    quiet.predict(X_new)
    assert capsys.readouterr().err == ""
    loud = ConstrainedRanker(None, verbose=1).fit(X, R)
    assert np.array_equal(loud.predict(X_new), quiet.predict(X_new))
    assert "decode" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------- at full size


@pytest.mark.slow
def test_five_thousand_items_and_queries():
    """About 25 million observations of 7 million pairs: fitted and decoded on two cores."""
    rng = np.random.default_rng(0)
    n = D = 5000
    popularity = -0.8 * np.log(np.arange(1, D + 1) + 20.0)
    taste, kind = rng.standard_normal((n, 4)), rng.standard_normal((4, D))
    columns = np.array([np.sort(np.argpartition(-(popularity + rng.gumbel(size=D)), 100)[:100]) for _ in range(n)])
    values = np.round(np.clip(3 + (taste @ kind)[np.arange(n)[:, None], columns] / 2 + rng.standard_normal((n, 100)), 1, 5))
    R = sparse.csr_array((values.ravel(), columns.ravel(), np.arange(0, 100 * n + 1, 100)), shape=(n, D))
    start = time.perf_counter()
    ranker = ConstrainedRanker("item_bias").fit(taste[:-10], R[:-10])
    assert ranker.surrogate_.n_observations_ > 24e6
    assert ranker.score(taste[-10:], R[-10:]) > 0.6
    assert time.perf_counter() - start < 600


@pytest.mark.data
def test_movielens_is_fast():
    """Against a loop of scikit-learn's KernelRidge over a sample of the pairs: the same numbers, 300 times faster."""
    data = np.loadtxt(Path(os.environ["LAWFUL_DATA"]) / "ml-100k" / "u.data", dtype=int)
    R = sparse.csr_array((data[:, 2].astype(float), (data[:, 0] - 1, data[:, 1] - 1)), shape=(943, 1682))
    rng = np.random.default_rng(0)
    users = rng.permutation(943)
    R, X = R[users[:643]], rng.standard_normal((643, 10))
    ranker = ConstrainedRanker(**PAPER, kernel=lambda A, B: A @ B.T, lam=0.1)
    ranker.fit(X, R)  # compiles
    start = time.perf_counter()
    ranker.fit(X, R)
    ours = time.perf_counter() - start
    x = rng.standard_normal((1, 10))
    dense = R.toarray()
    table = ranker.surrogate_.table_
    tasks = rng.choice(table.n_tasks, 400, replace=False)
    low = np.searchsorted(table.pair_start, tasks, side="right") - 1
    high = table.partner[tasks]
    K, k = X @ X.T + 1, x @ X.T + 1
    start = time.perf_counter()
    expected = []
    for p, q in zip(low, high):
        both = np.flatnonzero((dense[:, p] > 0) & (dense[:, q] > 0))
        model = Reference(alpha=0.1 * len(both), kernel="precomputed").fit(
            K[np.ix_(both, both)], dense[both, p] - dense[both, q]
        )
        expected.append(model.predict(k[:, both])[0])
    loop = (time.perf_counter() - start) / 400 * table.n_tasks
    assert np.abs(ranker.pair_scores(x, np.c_[low, high])[0] - expected).max() < 1e-8
    assert ranker.n_tasks_ > 8e5 and loop / ours > 300

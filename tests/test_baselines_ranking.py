"""Ranking baselines: what they learn, that features do not leak, what they accept and refuse, their manners as estimators."""

import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import (
    check_get_params_invariance,
    check_no_attributes_set_in_init,
    check_parameters_default_constructible,
    check_set_params,
)

from lawful.baselines.ranking import MatrixFactorizationRanker, PairwiseRanker, Popularity, RankingFeatures, StructuralRanker
from lawful.baselines.ranking.features import training_features
from lawful.datasets import fetch_movielens_100k, movielens_protocol
from lawful.metrics import rank_loss
from lawful.ratings import as_ratings, split_profiles

ITEMS = np.random.default_rng(99).standard_normal((25, 4))
JOINT = {
    "linear": lambda **options: PairwiseRanker("linear", **options),
    "hinge": lambda **options: PairwiseRanker("hinge", **options),
    "logistic": lambda **options: PairwiseRanker("logistic", **options),
    "structural": lambda **options: StructuralRanker(**options),
}
SIMPLE = {
    "popularity": lambda **options: Popularity(**options),
    "bias": lambda **options: Popularity("bias", **options),
    "count": lambda **options: Popularity("count", **options),
    "factors": lambda **options: MatrixFactorizationRanker(n_factors=3, n_iter=4, n_jobs=1, **options),
}
ALL = {**JOINT, **SIMPLE}
every = pytest.mark.parametrize("name", ALL)


def joint(X, profile, rows, items):
    return X[rows] * ITEMS[items]


def scorer_data(seed, n=50, noise=1.0, rated=0.4):
    """Ratings 1 to 5 from a linear scorer of joint features; two thirds of the queries to learn from."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    s = X * rng.standard_normal(4) @ ITEMS.T + noise * rng.standard_normal((n, 25))
    R = np.clip(np.round(3 + s), 1, 5)
    R[rng.uniform(size=R.shape) > rated] = np.nan
    cut = 2 * n // 3
    return X[:cut], R[:cut], X[cut:], R[cut:]


def film_data(seed=0, n=60, D=30):
    """Ratings with item quality, taste for genres, and missing entries."""
    rng = np.random.default_rng(seed)
    genres = (rng.uniform(size=(D, 4)) < 0.4).astype(float)
    taste = rng.standard_normal((n, 4))
    s = rng.standard_normal(D) + taste @ genres.T + rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((n, D))
    R = np.clip(np.round(3 + s), 1, 5)
    R[rng.uniform(size=R.shape) > 0.6] = np.nan
    return rng.standard_normal((n, 2)), R, genres


# ------------------------------------------------------------------------------------------------------ what is learned


@pytest.mark.parametrize("name", JOINT)
def test_a_linear_scorer_is_learned(name):
    """On data of its own kind it ranks better than popularity and chance in 18 of 20 seeds at least."""
    wins = 0
    for seed in range(20):
        X, R, X_new, R_new = scorer_data(seed)
        mine = JOINT[name](features=joint, n_parts=1).fit(X, R).score(X_new, R_new)
        popular = Popularity().fit(X, R).score(X_new, R_new)
        chance = 1 - rank_loss(R_new, scores=np.random.default_rng(seed).uniform(size=R_new.shape))
        wins += mine > max(popular, chance)
    assert wins >= 18


@pytest.mark.parametrize("name", ["linear", "logistic", "hinge", "structural"])
def test_default_features_find_tastes(name):
    """With a profile the features know what genres a new query likes; popularity cannot."""
    wins = 0
    for seed in range(3):
        X, R, genres = film_data(seed, n=90)
        profile, rest = split_profiles(R[60:], random_state=seed)
        model = JOINT[name](tol=1e-4).fit(X[:60], R[:60], item_features=genres)
        assert "taste" in model.features_.feature_names_ and len(model.coef_) == len(model.features_.feature_names_)
        wins += model.score(X[60:], rest, profile) > Popularity().fit(X[:60], R[:60]).score(X[60:], rest) + 0.02
        cold = model.predict(X[60:])
        assert np.array_equal(np.sort(cold, axis=1), np.tile(np.arange(30), (30, 1)))
    assert wins == 3


def test_factors_and_popularity_learn_their_own_kind():
    wins = np.zeros(2, dtype=int)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        quality = rng.standard_normal(25)
        tastes = rng.standard_normal((75, 2)) @ rng.standard_normal((2, 25))
        for k, s in enumerate((quality + np.zeros((75, 1)), quality + 1.5 * tastes)):
            R = s + rng.standard_normal(s.shape)
            R[rng.uniform(size=R.shape) > 0.6] = np.nan
            profile, rest = split_profiles(R[50:], random_state=seed)
            popular = Popularity().fit(None, R[:50]).score(None, rest, profile)
            if k == 0:
                wins[0] += popular > 1 - rank_loss(rest, scores=rng.uniform(size=rest.shape))
            else:
                wins[1] += MatrixFactorizationRanker(4, n_jobs=1).fit(None, R[:50]).score(None, rest, profile) > popular
    assert (wins >= 18).all()


def test_popularity_is_the_shrunk_mean():
    R = np.array([[5.0, 1.0, np.nan], [3.0, np.nan, np.nan]])
    assert Popularity(damping=0).fit(None, R).item_scores_ == pytest.approx([4.0, 1.0, 3.0])
    assert Popularity(damping=1).fit(None, R).item_scores_ == pytest.approx([11 / 3, 2.0, 3.0])
    assert Popularity("count").fit(None, R).predict(None, R).tolist() == [[0, 1, 2]] * 2


def test_equal_scores_keep_the_order_of_the_items():
    R = np.array([[1.0, 2.0, np.nan, np.nan]])
    assert Popularity("count").fit(None, R).predict(None, R).tolist() == [[0, 1, 2, 3]]


def test_weights_of_queries():
    """A query with many ratings outweighs the others only where every pair counts."""
    rng = np.random.default_rng(0)
    X = np.repeat([[1.0], [-1.0]], [1, 6], axis=0)
    quality = np.linspace(-1, 1, 40)
    R = X * quality + 0.1 * rng.standard_normal((7, 40))
    R[1:, np.arange(40) % 5 > 0] = np.nan  # six queries of another mind, with few ratings

    def phi(X, profile, rows, items):
        return quality[items][:, None]

    by_pairs, by_queries = (PairwiseRanker(features=phi, n_parts=1, weights=w).fit(X, R).coef_[0] for w in ("pairs", "queries"))
    assert by_pairs > 0 > by_queries


# -------------------------------------------------------------------------------------------------------------- features


@pytest.mark.parametrize("products", [False, True])
def test_features_do_not_see_the_ratings_they_explain(products):
    """Ratings of one part of a training query are exchanged among themselves: features at that part stay as they are."""
    X, R, genres = film_data(3)
    R = as_ratings(R)
    Phi, query = training_features(RankingFeatures(products=products).fit(X, R, genres), X, R, 2, 0)
    for u in (0, 7, 31):
        part = np.flatnonzero(query == 2 * u)
        other = R.copy()
        other.data[part] = R.data[part][::-1]
        assert not np.array_equal(other.data, R.data)
        Psi, _ = training_features(RankingFeatures(products=products).fit(X, other, genres), X, other, 2, 0)
        assert np.allclose(Psi[part], Phi[part], atol=1e-12)
        rest = np.flatnonzero(query == 2 * u + 1)
        assert not np.allclose(Psi[rest], Phi[rest])  # the profile of the other part did change


def test_training_features_are_those_of_a_new_query():
    """Where it can be checked exactly: a map that never saw the query gives the same numbers."""
    _, R, genres = film_data(4)
    R = as_ratings(R)
    full = RankingFeatures().fit(None, R, genres)
    Phi, query = training_features(full, None, R, 2, 0)
    u = 11
    keep = np.arange(R.shape[0]) != u
    without = RankingFeatures().fit(None, R[keep], genres)
    without.similarity_damping_ = full.similarity_damping_  # one number, of all ratings
    without.profiles_ = full.profiles_[keep]
    for k in (0, 1):
        e, rest = np.flatnonzero(query == 2 * u + k), np.flatnonzero(query == 2 * u + 1 - k)
        profile = sparse.csr_array((R.data[rest], (np.zeros(len(rest), int), R.indices[rest])), shape=(1, R.shape[1]))
        assert np.allclose(without.transform(None, profile, np.zeros(len(e), int), R.indices[e]), Phi[e], atol=1e-12)


def test_pure_noise_is_not_explained():
    """Leaking features would predict ratings that nothing explains; held-out scores stay at chance and so does the fit."""
    rng = np.random.default_rng(5)
    R = rng.integers(1, 6, (120, 40)).astype(float)
    R[rng.uniform(size=R.shape) > 0.5] = np.nan
    model = PairwiseRanker("logistic", lam=1e-3).fit(None, R)
    Phi, query = training_features(model.features_, None, as_ratings(R), 2, 0)
    s = ((Phi - model.center_) / model.spread_) @ model.coef_
    table = sparse.csr_array((as_ratings(R).data, (query, as_ratings(R).indices)), shape=(240, 40))
    scores = np.zeros((240, 40))
    scores[query, as_ratings(R).indices] = s
    assert rank_loss(table, scores=scores) > 0.46


def test_blocks_do_not_matter(monkeypatch):
    X, R, genres = film_data(6)
    model = PairwiseRanker("linear").fit(X, R, item_features=genres)
    whole = model.scores(X, R)
    monkeypatch.setattr("lawful.baselines.ranking.scorers.ENTRIES", 100)
    monkeypatch.setattr("lawful.baselines.ranking.features.BLOCK", 100)
    assert np.allclose(model.scores(X, R), whole)
    assert np.allclose(PairwiseRanker("linear").fit(X, R, item_features=genres).coef_, model.coef_)


class Shifted(RankingFeatures):
    """A feature map of one's own: the default one and a column."""

    def transform(self, X, profile, rows, items, users=None):
        return np.c_[super().transform(X, profile, rows, items, users), np.asarray(items) % 2]


def test_a_feature_map_of_ones_own():
    X, R, genres = film_data(7)
    own = Shifted(damping=2.0)
    model = PairwiseRanker("linear", features=own).fit(X, R, item_features=genres)
    assert len(model.coef_) == len(model.features_.feature_names_) + 1
    assert model.features_ is not own and not hasattr(own, "bias_")
    assert np.isfinite(model.scores(X, R)).all()


def test_constant_features_count_for_nothing():
    X, R, *_ = scorer_data(8)

    def phi(X, profile, rows, items):
        return np.c_[joint(X, profile, rows, items), np.full(len(rows), 3.0)]

    for name in JOINT:
        model = JOINT[name](features=phi, n_parts=1).fit(X, R)
        assert model.coef_[-1] == pytest.approx(0.0, abs=1e-12) and np.isfinite(model.scores(X)).all()


# ------------------------------------------------------------------------------------------------------------- interface


@every
def test_interface(name):
    X, R, genres = film_data(9)
    before = R.copy(), X.copy(), genres.copy()
    model = ALL[name]()
    assert model.fit(X[:40], R[:40], item_features=genres) is model
    profile, rest = split_profiles(R[40:], random_state=0)
    positions = model.predict(X[40:], profile)
    assert positions.shape == (20, 30) and positions.dtype == np.int64
    assert np.array_equal(np.sort(positions, axis=1), np.tile(np.arange(30), (20, 1)))
    assert model.score(X[40:], rest, profile) == pytest.approx(1 - rank_loss(rest, positions))
    top = model.recommend(X[40:], 5, profile)
    assert np.array_equal(np.take_along_axis(positions, top, axis=1), np.tile(np.arange(5), (20, 1)))
    new = model.recommend(X[40:], 30, profile, exclude=profile, items=[3, 4, 5, 6])
    seen = [set(profile.indices[a:b]) for a, b in zip(profile.indptr[:-1], profile.indptr[1:])]
    for row, gone in zip(new, seen):
        assert set(row[row >= 0]) == {3, 4, 5, 6} - gone and (row[4:] == -1).all()
    sparse_fit = ALL[name]().fit(X[:40], as_ratings(R[:40]), item_features=genres)
    assert np.array_equal(sparse_fit.predict(X[40:], profile.toarray() * np.nan), model.predict(X[40:]))
    assert np.array_equal(sparse_fit.predict(X[40:], profile), positions)
    for old, now in zip(before, (R, X, genres)):
        assert np.array_equal(old, now, equal_nan=True)


@every
def test_estimator_manners(name):
    X, R, genres = film_data(10)
    model = ALL[name]()
    check_parameters_default_constructible(name, type(model)())
    check_no_attributes_set_in_init(name, type(model)())
    check_get_params_invariance(name, type(model)())
    check_set_params(name, type(model)())
    assert type(model).__name__ in repr(model)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, R, item_features=genres)
    other = clone(model)
    assert other.get_params() == model.get_params() and not hasattr(other, "n_items_")
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X, R), model.predict(X, R))
    assert np.array_equal(other.fit(X, R, item_features=genres).predict(X, R), model.predict(X, R))


@every
def test_frames_and_no_x(name):
    X, R, _ = film_data(11)
    frame = pd.DataFrame(R, columns=[f"film {i}" for i in range(30)])
    model = ALL[name]().fit(pd.DataFrame(X, columns=["a", "b"]), frame)
    assert model.item_names_[:2] == ("film 0", "film 1") and list(model.feature_names_in_) == ["a", "b"]
    bare = model.fit(None, R)
    assert not hasattr(bare, "n_features_in_") and bare.item_names_ is None
    assert bare.predict(None, R[:3]).shape == (3, 30)
    with pytest.raises(ValueError, match="fitted without X"):
        bare.predict(X, R)
    with pytest.raises(ValueError, match="neither X nor ratings"):
        bare.predict(None)


@every
def test_bad_data(name):
    X, R, _ = film_data(12)
    model = ALL[name]()
    with pytest.raises(ValueError, match="y is None"):
        model.fit(X)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.fit(X[:5], R)
    with pytest.raises(ValueError, match="shape"):
        model.fit(X, R[0])
    with pytest.raises(ValueError, match="empty"):
        model.fit(X, np.full_like(R, np.nan))
    with pytest.raises(ValueError, match="finite"):
        model.fit(X, np.where(np.isnan(R), np.inf, R))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 1, np.nan, X), R)
    model.fit(X, R)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :1])
    with pytest.raises(ValueError, match="30"):
        model.predict(X, R[:, :5])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.predict(X, R[:5])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.score(X, R[:5])
    with pytest.raises(ValueError, match="k must be 1 or more"):
        model.recommend(X, 0)


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (PairwiseRanker("square"), "loss='square' is unknown"),
        (PairwiseRanker(lam=0), "number above 0"),
        (PairwiseRanker(lam="small"), "number above 0"),
        (PairwiseRanker("linear", theta=-1.0), "0 or above"),
        (PairwiseRanker(max_iter=1.5), "whole number"),
        (PairwiseRanker(tol=np.nan), "number above 0"),
        (PairwiseRanker(n_parts=0), "whole number"),
        (PairwiseRanker(weights="users"), "weights='users' is unknown"),
        (PairwiseRanker(features=RankingFeatures(damping=0)), "damping"),
        (StructuralRanker(lam=-1), "number above 0"),
        (Popularity("median"), "statistic='median' is unknown"),
        (Popularity(damping=-1), "0 or above"),
        (Popularity("bias", damping=0), "number above 0"),
        (MatrixFactorizationRanker(0), "whole number"),
        (MatrixFactorizationRanker(lam=True), "number above 0"),
        (MatrixFactorizationRanker(n_models=0), "whole number"),
    ],
    ids=str,
)
def test_bad_parameters(model, match):
    X, R, _ = film_data(13)
    with pytest.raises(ValueError, match=match):
        model.fit(X, R)


def test_bad_features():
    X, R, genres = film_data(14)
    with pytest.raises(TypeError, match="no feature map"):
        PairwiseRanker(features="genres").fit(X, R)
    with pytest.raises(TypeError, match="no feature map"):
        PairwiseRanker(features=RankingFeatures).fit(X, R)
    with pytest.raises(ValueError, match="feature map gave"):
        PairwiseRanker(features=lambda X, profile, rows, items: np.zeros(len(rows))).fit(X, R)
    with pytest.raises(ValueError, match="feature map gave"):
        PairwiseRanker(features=lambda X, profile, rows, items: np.full((len(rows), 2), np.nan)).fit(X, R)
    with pytest.raises(ValueError, match="one row for each of the 30 items"):
        PairwiseRanker().fit(X, R, item_features=genres[:5])
    with pytest.raises(ValueError, match="NaN or infinity"):
        PairwiseRanker().fit(X, R, item_features=np.where(genres > 0, np.nan, 0))
    with pytest.raises(ValueError, match="does not see item_features"):
        PairwiseRanker(features=joint).fit(X, R, item_features=genres)
    with pytest.raises(ValueError, match="coef_init"):
        PairwiseRanker().fit(X, R, coef_init=np.zeros(2))
    with pytest.raises(ValueError, match="nothing to learn an order from"):
        PairwiseRanker().fit(X, np.where(np.isnan(R), np.nan, 3.0))
    two = np.full_like(R, np.nan)
    two[:, :2] = [1.0, 5.0]  # dealt into two parts, nothing is left to compare
    with pytest.raises(ValueError, match="n_parts=1 compares all"):
        PairwiseRanker().fit(X, two)
    assert (PairwiseRanker("linear", n_parts=1).fit(X, two).predict(X)[:, 1] < 29).all()


def test_progress_is_shown(capsys):
    X, R, *_ = scorer_data(15)
    for model in (PairwiseRanker("hinge"), StructuralRanker(), StructuralRanker(lam=1e-3)):
        model.set_params(verbose=1, features=joint, n_parts=1).fit(X, R)
        assert "gap" in capsys.readouterr().err
        model.set_params(verbose=0).fit(X, R)
        assert capsys.readouterr().err == ""


def test_grid_search():
    X, R, X_new, R_new = scorer_data(16)
    search = GridSearchCV(PairwiseRanker(features=joint, n_parts=1), {"lam": [1e-5, 1e-2]}, cv=3).fit(X, R)
    assert search.best_params_["lam"] in (1e-5, 1e-2) and search.score(X_new, R_new) > 0.6


@pytest.mark.data
def test_movielens():
    """Protocol A, two splits: all rivals rank better than the popular order, and about as measured before."""
    data = fetch_movielens_100k(folder=Path(os.environ["LAWFUL_DATA"]))
    genres = data.movies.genres.astype(float)
    losses = {name: [] for name in (*JOINT, "popularity", "factors")}
    for seed in (2000, 2001):
        split = movielens_protocol(data, "A", random_state=seed)
        for name in losses:
            model = MatrixFactorizationRanker() if name == "factors" else ALL[name]()
            model.fit(split.X_train, split.R_train, item_features=genres)
            losses[name].append(rank_loss(split.R_eval, model.predict(split.X_test, split.profile_test)))
    mean = {name: np.mean(values) for name, values in losses.items()}
    assert all(mean[name] < mean["popularity"] - 0.01 for name in losses if name != "popularity")
    assert max(mean[name] for name in JOINT) < 0.3

"""Rankings with odd inputs: weights of any scale, too many items for the time, numbers that are no items, gaps."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from lawful import ConstrainedRanker
from lawful.baselines import MatrixFactorizationRanker, PairwiseClassifiers, PairwiseRanker, Popularity, StructuralRanker
from lawful.metrics import rank_loss
from lawful.rankings import linear_ordering, minimum_feedback_arc_set, order

PAPER = {"prior": None, "similarity": 0, "ridge": "n_lambda", "targets": "difference", "pair_weight": None}
RANKERS = [
    ConstrainedRanker(**PAPER),
    ConstrainedRanker(),
    PairwiseRanker("linear", n_parts=1),
    PairwiseRanker("logistic"),
    StructuralRanker(),
    Popularity(),
    MatrixFactorizationRanker(n_factors=2),
]


def name(model):
    return f"{type(model).__name__}-{getattr(model, 'loss', '')}"


def draw(n=40, D=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    R = X @ rng.standard_normal((3, D)) + 0.3 * rng.standard_normal((n, D))
    R[rng.uniform(size=R.shape) < 0.4] = np.nan
    return X, R


# ---------------------------------------------------------------------------------------------- the time that is given


@pytest.fixture(scope="module")
def compiled():
    linear_ordering(np.random.default_rng(0).standard_normal((16, 16)), method="exact", time_limit=1.0)


@pytest.mark.parametrize("D", [100, 400, 800, 1500])
def test_exact_keeps_its_time_limit(D, compiled):
    W = np.random.default_rng(D).standard_normal((D, D))
    begin = time.perf_counter()
    found = linear_ordering(W, method="exact", time_limit=1.0)
    assert time.perf_counter() - begin < 6.0  # about 1 on an idle machine; it was minutes
    assert found.status == "time_limit" and np.array_equal(np.sort(found.order), np.arange(D))
    assert found.value == pytest.approx(np.triu(W[np.ix_(found.order, found.order)], 1).sum())
    assert found.value >= 0.97 * linear_ordering(W, bound=False).value
    assert found.value < found.bound < np.maximum(W, W.T)[np.triu_indices(D, 1)].sum()


@pytest.mark.parametrize("method", ["insertion", "exact"])
@pytest.mark.parametrize("D", [1, 2, 3, 14, 120])
def test_no_time_at_all(D, method):
    W = np.random.default_rng(D).standard_normal((D, D))
    found = linear_ordering(W, 0.0, method=method)
    assert np.array_equal(np.sort(found.order), np.arange(D)) and found.value <= found.bound


# ---------------------------------------------------------------------------------------------- weights of any scale


@pytest.mark.parametrize("scale", [2.0**1000, 2.0**-1000, 2.0**-1030])
@pytest.mark.parametrize("method", ["insertion", "exact", "eades", "borda"])
def test_the_scale_of_weights_changes_nothing(method, scale):
    for D in (3, 9, 30):
        f = np.random.default_rng(D).standard_normal(D)
        W = np.maximum(f[:, None] - f + np.random.default_rng(D + 1).standard_normal((D, D)), 0.0)
        plain, scaled = (linear_ordering(s * W, method=method) for s in (1.0, scale))
        assert np.array_equal(plain.order, scaled.order) and plain.status == scaled.status
        assert scaled.value / scale == pytest.approx(plain.value, rel=1e-7)
        assert scaled.bound / scale == pytest.approx(plain.bound, rel=1e-7)
        cut, other = (minimum_feedback_arc_set(s * W, method) for s in (1.0, scale))
        assert np.array_equal(cut.arcs, other.arcs) and other.weight / scale == pytest.approx(cut.weight, rel=1e-7)
        skewed = order(scale * (W - W.T), method)
        assert skewed.objective / scale == pytest.approx(order(W - W.T, method).objective, rel=1e-7)


def test_weights_as_large_as_numbers_go():
    found = linear_ordering([[0.0, 1.7e308], [-1.7e308, 0.0]])
    assert (found.order.tolist(), found.value, found.bound, found.status) == ([0, 1], 1.7e308, 1.7e308, "optimal")
    W = np.triu(np.full((20, 20), 1.7e308), 1)
    for method in ("insertion", "exact"):
        found = linear_ordering(W, method=method)
        assert found.status == "optimal" and found.gap == 0.0
        assert found.order.tolist() == list(range(20)) and found.value == np.inf  # the sum has no number


def test_weights_of_mixed_scales():
    W = np.diag([1e300, 1.0, 1e-300], 1)
    found = linear_ordering(W, method="exact")
    assert found.order.tolist() == [0, 1, 2, 3] and found.value == 1e300


# ---------------------------------------------------------------------------------------------- items and gaps


@pytest.mark.parametrize("item", [10**9, 10**15, 2.0**60, 1e300])
def test_an_item_number_that_is_none_asks_for_no_memory(item):
    X = np.zeros((2, 1))
    with pytest.raises(ValueError, match="number them 0, 1, 2"):
        ConstrainedRanker(**PAPER).fit(X, comparisons=[(0, item, 1), (1, 0, 1)])
    with pytest.raises(ValueError, match="number them"):
        ConstrainedRanker(**PAPER).fit(X, comparisons=[(0, 0, 1)], n_items=10**12)
    for n_items in (0, -3, 2.5, "many"):
        with pytest.raises(ValueError, match=r"n_items=.* will not do"):
            ConstrainedRanker(**PAPER).fit(X, comparisons=[(0, 0, 1)], n_items=n_items)


def test_more_items_than_can_be_ordered_at_once():
    wide = ConstrainedRanker(**PAPER).fit(np.zeros((1, 1)), comparisons=[(0, 7, 100_000), (0, 3, 7)])
    with pytest.raises(ValueError, match="name candidates"):
        wide.predict(np.zeros((1, 1)))
    assert wide.decode(np.zeros((1, 1)), items=[3, 7, 100_000]).order.tolist() == [[3, 7, 100_000]]


def test_positions_of_candidates_only():
    """-1 is no rank: pairs with such an item are left out, and never is it the best."""
    R = np.array([[5.0, 3.0, 1.0, 4.0]])
    assert rank_loss(R, [[0, 1, 2, -1]]) == 0.0
    assert rank_loss(R, [[-1, 0, 1, 2]]) == rank_loss(R[:, 1:], [[0, 1, 2]]) == pytest.approx(4 / 6)
    X, R = draw()
    ranker = ConstrainedRanker(**PAPER).fit(X, R)
    some = [0, 2, 3, 7]
    left = rank_loss(R[:, some], ranker.decode(X, items=some).positions[:, some])
    assert rank_loss(R, ranker.decode(X, items=some).positions) == pytest.approx(left)
    with pytest.raises(ValueError, match="nothing to order"):
        rank_loss([[1.0, 2.0]], [[0, -1]])
    with pytest.raises(ValueError, match="below 0"):
        rank_loss([[1.0, 2.0]], [[0, -2]])


@pytest.mark.parametrize("model", [*RANKERS, PairwiseClassifiers()], ids=name)
def test_a_score_of_nothing_is_an_error_everywhere(model):
    X, R = draw()
    model.fit(X, R)
    for truth in (np.full(R.shape, np.nan), np.full(R.shape, 2.0), sparse.csr_array(R.shape)):
        with pytest.raises(ValueError, match="nothing to"):
            model.score(X, truth)


@pytest.mark.parametrize("model", RANKERS, ids=name)
def test_masked_and_missing_ratings_are_unrated(model):
    X, R = draw()
    gaps = np.isnan(R)
    expected = model.fit(X, R).predict(X)
    hidden = np.ma.masked_array(np.where(gaps, 99.0, R), gaps)
    assert np.array_equal(model.fit(X, hidden).predict(X), expected)
    table = pd.DataFrame(R).astype("Float64")
    assert np.array_equal(model.fit(X, table.where(~gaps, pd.NA)).predict(X), expected)
    truth = hidden
    assert model.score(X, truth) == pytest.approx(model.score(X, R))
    with pytest.raises(ValueError, match="masked"):
        model.fit(np.ma.masked_array(X, X > 1), R)


# ---------------------------------------------------------------------------------------------- what cannot be computed with


@pytest.mark.parametrize("model", [*RANKERS, PairwiseClassifiers(similarity=0.0)], ids=name)
@pytest.mark.parametrize("scale", [1e160, 1e-160, 1e300])
def test_inputs_and_ratings_that_leave_the_range_of_numbers(model, scale):
    X, R = draw()
    with pytest.raises(ValueError, match=r"X has values of size .* rescale it"):
        model.fit(scale * np.clip(X, -1, 1), R)
    with pytest.raises(ValueError, match=r"ratings has values of size .* rescale it"):
        model.fit(X, scale * np.clip(R, -1, 1))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_ridge_that_is_nothing_beside_a_singular_kernel(n):
    """Without a constant and with equal inputs: n examples of each pair, and a kernel matrix of rank 1 or 0."""
    R = np.arange(3.0 * n).reshape(n, 3) ** 2
    for X in (np.zeros((n, 1)), np.ones((n, 1))):
        model = ConstrainedRanker(**PAPER, constant=False, lam=1e-300, kernel=lambda A, B: A @ B.T)
        if n == 1 and X.any():
            assert model.fit(X, R).predict(X).tolist() == [[2, 1, 0]]
            continue
        for missing in ("skip", "zero"):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    positions = model.set_params(missing=missing).fit(X, R).predict(X)
                except ValueError as error:
                    assert "not positive definite" in str(error)
                else:
                    assert (np.sort(positions, axis=1) == np.arange(3)).all()
        square = PairwiseClassifiers("square", constant=False, lam=1e-300, similarity=0.0, kernel=lambda A, B: A @ B.T)
        if n == 2:
            with pytest.raises(ValueError, match="not positive definite"):
                square.fit(X, R).predict_pairs(X, [[0, 0, 1]])


def test_factors_without_a_ridge():
    X, R = draw()
    for parameters in ({"lam": 1e-300}, {"lam": 1e300}, {"damping": 1e300, "count_power": 0, "lam": 1e-300}):
        try:
            found = MatrixFactorizationRanker(8, n_iter=30, **parameters).fit(X, R).scores(X)
        except ValueError as error:
            assert "scale the data" in str(error)
        else:
            assert np.isfinite(found).all()


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_numbers_of_threads_that_are_none(n_jobs):
    X, R = draw()
    for model in (ConstrainedRanker(n_jobs=n_jobs), MatrixFactorizationRanker(n_jobs=n_jobs)):
        with pytest.raises(ValueError, match="no number of threads; give 1"):
            model.fit(X, R)

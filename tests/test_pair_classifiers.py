"""One classifier per pair: the machines against scikit-learn, their answers, and the loss of answers without an order."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from lawful import ConstrainedRanker
from lawful.baselines.ranking._machines import hinge_dual
from lawful.baselines.ranking.classifiers import PairwiseClassifiers, pair_loss, rated_pairs
from lawful.datasets import movielens_protocol
from lawful.datasets.ratings import make_ratings
from lawful.metrics import rank_loss


@pytest.fixture(scope="module")
def split():
    return movielens_protocol(make_ratings(160, 40, n_ratings=18, random_state=3), "A", n_train=120, n_test=40, random_state=0)


def examples(split, p, q):
    """Users who rated p and q differently, and the difference."""
    dense = split.R_train.toarray()
    users = np.flatnonzero((dense[:, p] > 0) & (dense[:, q] > 0) & (dense[:, p] != dense[:, q]))
    return users, dense[users, p] - dense[users, q]


@pytest.mark.parametrize("C", [0.003, 0.1, 1.0])
def test_machines_are_those_of_sklearn(split, C):
    """SVC has a free bias. With every example mirrored, (-phi, -s), a bias of 0 is optimal by symmetry and C counts twice.

    (Where all examples are at their bounds other biases are optimal too, never another f: so the bias is taken off.)
    """
    model = PairwiseClassifiers(C=C, tol=1e-9, max_iter=100_000).fit(split.X_train, split.R_train)
    cross = model.kernel_.cross(split.X_test, split.profile_test, 40)
    pairs = [(p, q) for p in range(0, 40, 6) for q in range(p + 1, 40, 7) if len(examples(split, p, q)[0]) > 2]
    assert len(pairs) > 10
    for p, q in pairs:
        users, y = examples(split, p, q)
        K = model.gram_[np.ix_(users, users)]
        svc = SVC(C=C / 2, kernel="precomputed", tol=1e-8)
        svc.fit(np.block([[K, -K], [-K, K]]), np.r_[np.sign(y), -np.sign(y)], sample_weight=np.abs(np.r_[y, y]))
        expected = svc.decision_function(np.hstack([cross[:, users], -cross[:, users]])) - svc.intercept_
        found = model.decision_function(split.X_test, [(u, p, q) for u in range(40)], split.profile_test)
        np.testing.assert_allclose(found, expected, atol=1e-5 * max(1.0, np.abs(expected).max()))
    assert model.gap_ <= 1e-9


def test_gap_bounds_the_distance_to_the_optimum():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 4))
    Q, box = A @ A.T, rng.uniform(0.1, 2.0, 30)

    def objectives(alpha):
        norm = alpha @ Q @ alpha
        return norm / 2 + box @ np.maximum(0, 1 - Q @ alpha), alpha.sum() - norm / 2

    best = box.copy()
    assert hinge_dual(Q, box, best, np.empty(30), 1e-12, 100_000)[0] <= 1e-12
    primal, dual = objectives(best)
    assert primal - dual <= 1e-11 * primal
    for sweeps in (0, 1, 3, 10):
        alpha = box.copy()
        share, done = hinge_dual(Q, box, alpha, np.empty(30), 1e-12, sweeps)
        now, below = objectives(alpha)
        assert done <= sweeps
        assert np.isclose(share, (now - below) / now, rtol=1e-9, atol=1e-12)
        assert now >= primal - 1e-9 and below <= primal + 1e-9
        assert ((alpha >= 0) & (alpha <= box)).all()


def test_square_machines_are_the_tasks_of_the_ranker(split):
    pairs = [(u, p, q) for u in range(0, 40, 9) for p in range(40) for q in range(40) if p != q]
    model = PairwiseClassifiers("square", lam=0.7).fit(split.X_train, split.R_train)
    found = model.decision_function(split.X_test, pairs, split.profile_test)
    ranker = ConstrainedRanker(None, ridge="n_lambda", lam=0.7, targets="difference", pair_weight=None)
    S = ranker.fit(split.X_train, split.R_train).pair_scores(
        split.X_test, [(p, q) for p in range(40) for q in range(40) if p != q], split.profile_test
    )
    np.testing.assert_allclose(found, S[::9].ravel(), atol=1e-10)


@pytest.mark.parametrize("loss", ["hinge", "square"])
def test_answers(split, loss):
    R = split.R_train.toarray()
    R[R == 0] = np.nan
    R[:, 7] = np.nan  # nobody rated film 7
    R[:, 9] = R[:, 8]  # all who rated 8 rated 9 the same
    before = R.copy()
    model = PairwiseClassifiers(loss).fit(split.X_train, R)
    asked = np.array([[0, 7, 2], [3, 8, 9], [1, 4, 5], [1, 5, 4], [2, 4, 5], [1, 4, 5]])
    values = model.decision_function(split.X_test, asked, split.profile_test)
    assert values[0] == values[1] == 0.0
    assert values[2] == -values[3] == values[5] != 0
    np.testing.assert_array_equal(np.sign(values), model.predict_pairs(split.X_test, asked, split.profile_test))
    np.testing.assert_array_equal(R, before)
    alone = clone(model).fit(split.X_train, R).decision_function(split.X_test, asked[4:5], split.profile_test)
    np.testing.assert_allclose(alone, values[4], rtol=1e-12)
    assert model.decision_function(split.X_test, np.empty((0, 3), dtype=int)).shape == (0,)


def test_they_learn(split):
    chance = np.random.default_rng(0).standard_normal(len(rated_pairs(split.R_eval)[0]))
    assert abs(pair_loss(split.R_eval, chance) - 0.5) < 0.05
    for loss in ("hinge", "square"):
        model = PairwiseClassifiers(loss).fit(split.X_train, split.R_train)
        assert model.rank_loss(split.X_test, split.R_eval, split.profile_test) < 0.42
        assert model.score(split.X_test, split.R_eval, split.profile_test) > 0.58
        assert (
            PairwiseClassifiers(loss, kernel=lambda X, Z: X @ Z.T)
            .fit(None, split.R_train)
            .rank_loss(None, split.R_eval, split.profile_test)
            < 0.45
        )  # from ratings alone


@pytest.mark.parametrize("denominator", ["N1", "N2", "N3"])
@pytest.mark.parametrize(("undecided", "ties"), [("error", "error"), ("half", "half")])
def test_loss_of_an_order_is_the_rank_loss(split, denominator, undecided, ties):
    scores = np.random.default_rng(1).integers(0, 6, split.R_eval.shape).astype(float)
    pairs, gap = rated_pairs(split.R_eval)
    answers = scores[pairs[:, 0], pairs[:, 1]] - scores[pairs[:, 0], pairs[:, 2]]
    assert (answers == 0).any() and (gap != 0).all()
    options = {"denominator": denominator, "per_query": True}
    np.testing.assert_allclose(
        pair_loss(split.R_eval, answers, undecided=undecided, **options),
        rank_loss(split.R_eval, scores=scores, ties=ties, **options),
        rtol=1e-12,
    )
    assert np.isclose(
        pair_loss(split.R_eval, answers, undecided=undecided, denominator=denominator),
        rank_loss(split.R_eval, scores=scores, ties=ties, denominator=denominator),
    )


def test_loss_by_hand():
    R = [[5.0, 3.0, np.nan, 3.0], [1.0, np.nan, 1.0, np.nan], [2.0, 4.0, np.nan, 1.0]]
    pairs, gap = rated_pairs(R)
    assert pairs.tolist() == [[0, 0, 1], [0, 0, 3], [2, 0, 1], [2, 0, 3], [2, 1, 3]]
    assert gap.tolist() == [2, 2, -2, 1, 3]
    answers = [1.0, -0.1, -2.0, 0.0, 0.0]
    assert pair_loss(R, answers) == pytest.approx((2 / 4 + 4 / 6) / 2)
    assert pair_loss(R, answers, undecided="half") == pytest.approx((2 / 4 + 2 / 6) / 2)
    assert pair_loss(R, answers, denominator="N2") == pytest.approx((2 / 3 + 4 / 3) / 2)
    assert pair_loss(R, answers, denominator="N3") == pytest.approx((2 / 2 + 4 / 3) / 2)
    assert np.isnan(pair_loss(R, answers, per_query=True)[1])


def test_a_gap_that_is_not_reached_is_said(split):
    model = PairwiseClassifiers(C=10.0, tol=1e-8, max_iter=2).fit(split.X_train, split.R_train)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model.rank_loss(split.X_test, split.R_eval, split.profile_test)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PairwiseClassifiers().fit(split.X_train, split.R_train).rank_loss(split.X_test, split.R_eval, split.profile_test)


def test_errors(split):
    X, R = split.X_train, split.R_train
    for parameters, words in (({"loss": "cubic"}, "unknown"), ({"C": 0}, "C=0"), ({"lam": -1.0}, "lam"), ({"tol": "x"}, "tol")):
        with pytest.raises(ValueError, match=words):
            PairwiseClassifiers(**parameters).fit(X, R)
    with pytest.raises(ValueError, match="inconsistent"):
        PairwiseClassifiers().fit(X[:5], R)
    with pytest.raises(ValueError, match="empty"):
        PairwiseClassifiers().fit(X, sparse.csr_array(R.shape))
    with pytest.raises(ValueError, match="target y is None"):
        PairwiseClassifiers().fit(X)
    model = PairwiseClassifiers().fit(X, R)
    for pairs, words in (([[0, 1]], "rows"), ([[0, 1, 99]], "outside"), ([[99, 1, 2]], "outside"), ([[0, 3, 3]], "itself")):
        with pytest.raises(ValueError, match=words):
            model.predict_pairs(split.X_test, pairs)
    with pytest.raises(ValueError, match="neither"):
        model.predict_pairs(None, [[0, 1, 2]])
    with pytest.raises(ValueError, match="inconsistent"):
        model.predict_pairs(split.X_test, [[0, 1, 2]], split.profile_test[:3])
    with pytest.raises(ValueError, match="fitted with X"):
        model.predict_pairs(None, [[0, 1, 2]], split.profile_test)
    with pytest.raises(ValueError, match="fitted without X"):
        clone(model).fit(None, R).predict_pairs(split.X_test, [[0, 1, 2]])
    with pytest.raises(ValueError, match="denominator"):
        pair_loss(R, [], denominator="N4")
    with pytest.raises(ValueError, match="undecided"):
        pair_loss(R, [], undecided="never")
    with pytest.raises(ValueError, match="finite numbers"):
        pair_loss(R, [1.0])
    with pytest.raises(ValueError, match="nothing to compare"):
        pair_loss([[3.0, 3.0]], [])
    with pytest.raises(ValueError, match="not positive definite"):
        odd = PairwiseClassifiers("square", kernel=lambda X, Z: 3.0 - 50 * np.abs(X[:, :1] - Z[:, :1].T), similarity=0.0)
        odd.fit(X, R).predict_pairs(X[:1], [[0, 1, 2]])


def test_generated_ratings():
    data = make_ratings(200, 60, n_ratings=20, random_state=5)
    again = make_ratings(200, 60, n_ratings=20, random_state=5)
    assert (data.ratings != again.ratings).nnz == 0
    assert set(np.unique(data.ratings.data)) == {1.0, 2.0, 3.0, 4.0, 5.0}
    per_user = np.diff(data.ratings.indptr)
    assert per_user.min() >= 8 and abs(per_user.mean() - 20) < 3
    count = np.bincount(data.ratings.indices, minlength=60)
    assert count.max() > 0.6 * 200 and np.median(count) < 0.4 * 200  # a few films are rated by most
    assert data.movies.genres.any(axis=1).all() and data.movies.genres.shape == (60, len(data.genres))
    mean = [make_ratings(400, 60, selection=s, n_ratings=20, random_state=1).ratings.data.mean() for s in (0.0, 1.0)]
    assert mean[1] > mean[0] + 0.2  # people rate what they like
    part = movielens_protocol(data, "B", n_train=150, n_test=None, random_state=0)
    assert part.X_train.shape[0] == 150 and part.profile_test.nnz == 0 and part.R_eval.nnz > 0
    with pytest.raises(ValueError, match="8 items"):
        make_ratings(10, 5)
    with pytest.raises(ValueError, match="n_ratings"):
        make_ratings(10, 20, n_ratings=21)

"""Popularity, item bias and ALS against the formulas written out; selection by validation."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from lawful.surrogates.pairs.factorisation import (
    AveragedFactorization,
    ItemBias,
    MatrixFactorization,
    Popularity,
    as_ratings,
    select_factorization,
    split_profiles,
)


def ratings(n=60, D=25, k=2, seed=0, density=0.4, noise=0.3):
    """Low-rank tastes plus biases, observed here and there; user 0 and item 0 have no rating, some ratings are 0."""
    rng = np.random.default_rng(seed)
    truth = (
        3 + rng.standard_normal((n, 1)) / 2 + rng.standard_normal(D) + rng.standard_normal((n, k)) @ rng.standard_normal((k, D))
    )
    seen = rng.uniform(size=(n, D)) < density
    seen[0], seen[:, 0] = False, False
    rows, columns = np.nonzero(seen)
    values = truth[rows, columns] + noise * rng.standard_normal(rows.size)
    values[:3] = 0.0
    return sparse.csr_array((values, (rows, columns)), shape=(n, D)), truth


def users_of(R):
    return np.repeat(np.arange(R.shape[0]), np.diff(R.indptr))


def without(R, keep):
    return sparse.csr_array((R.data[keep], (users_of(R)[keep], R.indices[keep])), shape=R.shape)


# ------------------------------------------------------------------------------------------------------------ input


def test_a_stored_zero_is_a_rating_and_the_input_is_left_alone():
    columns = [2, 0, 1]
    given = sparse.csr_matrix(([1.0, 0.0, 4.0], columns, [0, 2, 3]), shape=(2, 3))
    R = as_ratings(given)
    assert R.indices.tolist() == [0, 2, 1] and R.data.tolist() == [0.0, 1.0, 4.0]
    dense = np.array([[0.0, np.nan, 1.0], [np.nan, 4.0, np.nan]])
    same = as_ratings(dense)
    assert same.nnz == 3 and (same.toarray() == np.nan_to_num(dense)).all()
    assert given.indices.tolist() == columns


@pytest.mark.parametrize("bad", [np.zeros(3), sparse.csr_array(np.array([[np.nan, 1.0]])), np.array([[np.inf, 1.0]])])
def test_bad_ratings_are_refused(bad):
    with pytest.raises(ValueError, match="rating"):
        as_ratings(bad)


def test_repeated_entries_are_refused():
    twice = sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
    with pytest.raises(ValueError, match="twice"):
        as_ratings(sparse.csr_array((twice.data, twice.col, [0, 2, 2]), shape=(2, 2)))
    with pytest.raises(ValueError, match="the fit had 3"):
        as_ratings(np.ones((1, 2)), n_items=3)


def test_profiles_and_the_rest_are_the_ratings():
    R, _ = ratings()
    first, rest = split_profiles(R, 0.3, random_state=1)
    assert ((first + rest) != R).nnz == 0 and first.nnz + rest.nnz == R.nnz
    assert np.array_equal(np.diff(first.indptr), np.floor(0.3 * np.diff(R.indptr)))
    again, _ = split_profiles(sparse.csr_array((R.data**2, R.indices, R.indptr), shape=R.shape), 0.3, random_state=1)
    assert np.array_equal(again.indices, first.indices)  # what was rated decides, not how


# ------------------------------------------------------------------------------------------------------------ biases


def test_popularity_is_the_shrunk_mean():
    R, _ = ratings()
    scores = Popularity(damping=5).fit(R).fold_in(R[:2])
    mean = R.data.mean()
    for i in (0, 1, 7):
        r = R.data[R.indices == i]
        assert np.allclose(scores[:, i], (r.sum() + 5 * mean) / (r.size + 5))


def item_bias(R, d_user, d_item):
    """The formula, user by user and item by item."""
    users, mean = users_of(R), R.data.mean()
    b_u = np.array([(R.data[users == u] - mean).sum() / ((users == u).sum() + d_user) for u in range(R.shape[0])])
    rest = R.data - mean - b_u[users]
    return mean + np.array([rest[R.indices == i].sum() / ((R.indices == i).sum() + d_item) for i in range(R.shape[1])])


def test_item_bias_and_its_leave_one_user_out():
    R, _ = ratings(n=15, D=8)
    model = ItemBias(3.0, 7.0).fit(R)
    assert np.allclose(model.item_scores_, item_bias(R, 3.0, 7.0))
    out = model.training_scores()
    assert np.array_equal(out.indices, R.indices) and np.array_equal(out.indptr, R.indptr)
    for u in range(R.shape[0]):
        left = item_bias(without(R, users_of(R) != u), 3.0, 7.0)
        here = slice(R.indptr[u], R.indptr[u + 1])
        assert np.allclose(out.data[here], left[R.indices[here]], atol=1e-12)
    with pytest.raises(ValueError, match="above 0"):
        ItemBias(0.0).fit(R)


# --------------------------------------------------------------------------------------------------------------- ALS


def fold_in(model, items, r):
    """Ridge regression on the item factors and a constant, by dense algebra."""
    k = model.n_factors
    Z = np.c_[model.item_factors_[items], np.ones(len(items))]
    ridge = np.diag([model.lam * len(items) ** model.count_power] * k + [model.damping])
    return np.linalg.solve(Z.T @ Z + ridge, Z.T @ (r - model.mean_ - model.item_bias_[items]))[:k]


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_fold_in_is_a_ridge_regression(power):
    R, _ = ratings()
    model = MatrixFactorization(3, 0.5, count_power=power).fit(R[:40])
    scores = model.fold_in(R[40:])
    for u in range(40, 60):
        here = slice(R.indptr[u], R.indptr[u + 1])
        p = fold_in(model, R.indices[here], R.data[here])
        assert np.allclose(scores[u - 40], model.mean_ + model.item_bias_ + model.item_factors_ @ p, atol=1e-9)
    empty = sparse.csr_array((2, 25))
    assert np.allclose(model.fold_in(empty), model.scores(X=np.zeros((2, 1)))) and model.scores().shape == (1, 25)


def test_leave_one_out_is_the_fold_in_without_the_rating():
    R, _ = ratings()
    model = MatrixFactorization(3, 0.7, count_power=0.0).fit(R[:40])  # the ridge then does not depend on the count
    out = model.leave_one_out(R[40:])
    for u in range(40, 60):
        items, r = R.indices[R.indptr[u] : R.indptr[u + 1]], R.data[R.indptr[u] : R.indptr[u + 1]]
        for e in range(len(items)):
            p = fold_in(model, np.delete(items, e), np.delete(r, e))
            expected = model.mean_ + model.item_bias_[items[e]] + model.item_factors_[items[e]] @ p
            assert out[[u - 40], [items[e]]][0] == pytest.approx(expected, abs=1e-9)


def test_als_lowers_its_objective_and_finds_the_tastes():
    R, _ = ratings(n=200, D=40, noise=0.1)

    def objective(model):
        P, Q, n_u, n_i = model.user_factors_, model.item_factors_, np.diff(R.indptr), np.bincount(R.indices, minlength=40)
        users, b_u, b_i = users_of(R), model.user_bias_, model.item_bias_
        rest = R.data - model.mean_ - b_u[users] - b_i[R.indices] - (P @ Q.T)[users, R.indices]
        ridge = 0.05 * ((n_u @ P**2).sum() + (n_i @ Q**2).sum()) + 5.0 * (b_u @ b_u + b_i @ b_i)
        return (rest**2).sum() + ridge

    values = [objective(MatrixFactorization(2, 0.05, count_power=1.0, n_iter=i).fit(R)) for i in (1, 3, 10, 40)]
    assert all(np.diff(values) < 0)
    model = MatrixFactorization(2, 0.3, n_iter=20).fit(R[:150])
    profile, rest = split_profiles(R[150:], 0.7)
    users = users_of(rest)

    def error(scores):
        e = rest.data - scores[users, rest.indices]
        return np.var(e - (np.bincount(users, e, 50) / np.maximum(np.diff(rest.indptr), 1))[users])

    assert error(model.fold_in(profile)) < 0.35 * error(ItemBias().fit(R[:150]).fold_in(profile))


def test_als_is_a_function_of_data_and_seed():
    R, _ = ratings()
    a, b, c = (MatrixFactorization(2, random_state=s).fit(R) for s in (3, 3, 4))
    assert np.array_equal(a.item_factors_, b.item_factors_) and not np.allclose(a.item_factors_, c.item_factors_)
    assert clone(a).get_params() == a.get_params()
    with pytest.raises(ValueError, match="above 0"):
        MatrixFactorization(lam=0.0).fit(R)


def test_average_is_the_mean_of_its_models():
    R, _ = ratings()
    model = AveragedFactorization(MatrixFactorization(2, 0.5), n_models=3, random_state=5).fit(R)
    seeds = [m.random_state for m in model.models_]
    assert len(set(seeds)) == 3
    single = [MatrixFactorization(2, 0.5, random_state=s).fit(R).fold_in(R) for s in seeds]
    assert np.allclose(model.fold_in(R), np.mean(single, axis=0))


def test_selection_prefers_what_validates():
    R, _ = ratings(n=150, D=30, noise=0.1)
    grid = {"n_factors": [2], "lam": [0.1, 1000.0]}
    model = select_factorization(R, grid, random_state=0)
    assert model.lam == 0.1 and len(model.validation_loss_) == 2
    assert model.validation_loss_[0][1] < model.validation_loss_[1][1]
    upside_down = select_factorization(R, grid, loss=lambda T, s: -float(np.var(s)), random_state=0)
    assert upside_down.lam == 0.1  # the loss given is the one that counts: here, spread-out scores
    flat = select_factorization(R, grid, loss=lambda T, s: float(np.var(s - s.mean(axis=0))), random_state=0)
    assert flat.lam == 1000.0
    with pytest.raises(ValueError, match="none"):
        select_factorization(R, grid, validation=1.0)

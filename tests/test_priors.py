"""Priors: the training scores are out of sample, new queries are scored from profiles and attributes."""

import numpy as np
import pytest
from scipy import sparse

from lawful.surrogates.pairs.factorisation import AveragedFactorization, ItemBias, MatrixFactorization
from lawful.surrogates.pairs.priors import CrossFitted, FactorPrior, Prior, make_prior


def problem(n=50, D=14, seed=0, density=0.5):
    """Ratings that depend on an attribute that the user has (column 0 of X), on two hidden tastes and on noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    tastes = rng.standard_normal((n, 2)) @ rng.standard_normal((2, D)) / 2
    truth = 3 + rng.standard_normal(D) + np.outer(X[:, 0], rng.standard_normal(D)) + tastes
    rows, columns = np.nonzero(rng.uniform(size=(n, D)) < density)
    R = sparse.csr_array((truth[rows, columns] + 0.2 * rng.standard_normal(rows.size), (rows, columns)), shape=(n, D))
    return R, X, truth


def small_factors(**changes):
    return FactorPrior(MatrixFactorization(2, 0.5), n_folds=3, n_components=10, **changes)


def row_means(R, profile):
    """A scoring function for `CrossFitted`: item means of R plus the mean of the profile."""
    mean = R.sum(axis=0) / np.maximum(np.bincount(R.indices, minlength=R.shape[1]), 1)
    own = profile.sum(axis=1) / np.maximum(np.diff(profile.indptr), 1)
    return mean[None, :] + 0.3 * own[:, None]


PRIORS = {
    "item_bias": lambda: make_prior("item_bias"),
    "factors": small_factors,
    "function": lambda: CrossFitted(row_means, n_folds=4, n_parts=3),
}


@pytest.mark.parametrize("with_x", [False, True])
@pytest.mark.parametrize("name", PRIORS)
def test_training_scores_never_saw_their_own_rating(name, with_x):
    R, X, _ = problem()
    X = X if with_x else None
    scores = PRIORS[name]().fit(R, X).training_scores()
    assert np.array_equal(scores.indices, R.indices) and np.array_equal(scores.indptr, R.indptr)
    changed = 0
    for e in (0, 57, 130, R.nnz - 1):
        other = R.copy()
        other.data[e] += 3.0
        again = PRIORS[name]().fit(other, X).training_scores()
        assert abs(again.data[e] - scores.data[e]) <= 1e-10
        changed += np.abs(again.data - scores.data).max() > 1e-3
    assert changed == 4  # others' scores do depend on it


def test_factor_scores_come_from_item_factors_fitted_without_the_user():
    """All ratings of a user change, one by one: what leaks could only come through other users."""
    R, X, _ = problem(n=30)
    here = slice(R.indptr[4], R.indptr[5])
    base = small_factors().fit(R, X)
    one = R.copy()
    one.data[here.start] += 5.0
    moved = small_factors().fit(one, X).training_scores().data - base.training_scores().data
    assert abs(moved[here.start]) <= 1e-10 and np.abs(moved[here][1:]).max() > 1e-6
    # A user with a single rating has no other from which to be folded in: its score must be that of an empty profile.
    users = np.repeat(np.arange(30), np.diff(R.indptr))
    keep = (users != 4) | (np.arange(R.nnz) == here.start)
    single = sparse.csr_array((R.data[keep], (users[keep], R.indices[keep])), shape=R.shape)
    prior = small_factors(weight=0.0).fit(single)
    other = single.copy()
    other.data[single.indptr[4]] = -20.0
    again = small_factors(weight=0.0).fit(other)
    item = single.indices[single.indptr[4]]
    assert prior.training_scores()[[4], [item]][0] == pytest.approx(again.training_scores()[[4], [item]][0], abs=1e-10)


def test_factor_prior_without_attributes_is_the_averaged_factorisation():
    R, X, _ = problem()
    prior = FactorPrior(MatrixFactorization(2, 0.5), random_state=7).fit(R)
    average = AveragedFactorization(MatrixFactorization(2, 0.5), random_state=np.random.RandomState(7)).fit(R)
    assert np.allclose(prior.scores(R[:5]), average.fold_in(R[:5]))
    assert np.allclose(prior.scores(R[:5], X[:5]), prior.scores(R[:5]))  # fitted without X, it has no use for X


def test_attributes_help_those_who_rated_nothing():
    R, X, truth = problem(n=400, D=20)
    prior = FactorPrior(MatrixFactorization(2, 0.5), kappa=2.0).fit(R[:300], X[:300])

    def agreement(scores):
        return np.mean([np.corrcoef(s, t)[0, 1] for s, t in zip(scores, truth[300:])])

    blind = prior.scores(X=None, ratings=sparse.csr_array((100, 20)))
    assert agreement(prior.scores(X=X[300:])) > agreement(blind) + 0.05
    assert np.allclose(blind, blind[0]) and prior.scores().shape == (1, 20)
    both = prior.scores(R[300:], X[300:])
    assert both.shape == (100, 20) and agreement(both) > agreement(prior.scores(X=X[300:]))
    # and the training scores, out of sample as they are, agree with the ratings too
    assert np.corrcoef(prior.training_scores().data, R[:300].data)[0, 1] > 0.8


def test_priors_do_not_change_their_inputs_and_repeat():
    R, X, _ = problem()
    data, indices, features = R.data.copy(), R.indices.copy(), X.copy()
    a, b = small_factors(n_jobs=1).fit(R, X), small_factors(n_jobs=2).fit(R, X)
    assert np.array_equal(a.training_scores().data, b.training_scores().data)
    assert np.array_equal(a.scores(R, X), b.scores(R, X))
    assert np.array_equal(R.data, data) and np.array_equal(R.indices, indices) and np.array_equal(X, features)


def test_cross_fitted_scores_are_the_function_on_the_parts():
    R, _, _ = problem(n=12, D=6)
    prior = CrossFitted(row_means, n_folds=3, n_parts=2, random_state=1).fit(R)
    rng = np.random.RandomState(1)
    fold, part = rng.permutation(12) % 3, rng.randint(2, size=R.nnz)
    users = np.repeat(np.arange(12), np.diff(R.indptr))
    for e in range(R.nnz):
        u, i = users[e], R.indices[e]
        keep = (users == u) & (part != part[e])
        profile = sparse.csr_array((R.data[keep], (users[keep], R.indices[keep])), shape=R.shape)[[u]]
        assert prior.training_scores().data[e] == pytest.approx(row_means(R[fold != fold[u]], profile)[0, i], abs=1e-12)
    assert np.allclose(prior.scores(R[:3]), row_means(R, R[:3])) and prior.scores(X=np.zeros((4, 1))).shape == (4, 6)


def test_make_prior():
    assert make_prior(None) is None
    assert isinstance(make_prior("item_bias"), ItemBias) and isinstance(make_prior("factors"), FactorPrior)
    given = small_factors()
    copy = make_prior(given)
    assert copy is not given and copy.get_params(deep=False)["n_folds"] == 3 and isinstance(copy, Prior)
    assert isinstance(make_prior(row_means), CrossFitted)

    class Own:
        def fit(self, R, X=None):
            return self

        def training_scores(self):
            return None

        def scores(self, ratings=None, X=None):
            return None

    own = Own()
    assert make_prior(own) is own
    with pytest.raises(ValueError, match="item_bias"):
        make_prior("popularity!")
    with pytest.raises(TypeError, match="training_scores"):
        make_prior(3)
    with pytest.raises(TypeError, match="not a prior"):
        make_prior(FactorPrior)


def test_what_cannot_be_done_is_said():
    R, _, _ = problem(n=5)
    with pytest.raises(ValueError, match="two users"):
        FactorPrior().fit(R[:1])
    with pytest.raises(ValueError, match="at least one"):
        FactorPrior(n_models=0).fit(R)
    with pytest.raises(ValueError, match="scores of shape"):
        CrossFitted(lambda R, profile: np.zeros(3)).fit(R)

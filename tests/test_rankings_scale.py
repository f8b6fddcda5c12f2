"""Rankings at scale against the exact surrogate; complete rankings; candidates of each query."""

import numpy as np
import pytest
from scipy import sparse

import lawful
from lawful.estimators.ranker import ConstrainedRanker
from lawful.metrics import rank_loss
from lawful.ratings import as_ratings, split_profiles
from lawful.surrogates.pairs import FrequentPairRidge, PairTasks, PairwiseRidge, large
from lawful.surrogates.pairs._als import half_step, leave_one_out
from lawful.surrogates.pairs._table import solve_shared
from lawful.surrogates.pairs._targets import prior_loss
from lawful.surrogates.pairs.priors import ColdPrior, FactorPrior
from lawful.surrogates.pairs.wide_factors import WideFactorization


def draw(n=120, D=30, rated=0.5, seed=0, noise=1.0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    R = X @ rng.standard_normal((d, D)) + rng.standard_normal(D) + noise * rng.standard_normal((n, D))
    R[rng.uniform(size=R.shape) > rated] = np.nan
    return X, R


# ---------------------------------------------------------------------------------------------- frequent pairs


@pytest.mark.parametrize(
    "options",
    [{"kappa": 3.0}, {"ridge": "n_lambda", "lam": 0.1, "targets": "sign"}, {"pair_weight": None, "targets": "difference"}],
)
def test_frequent_pairs_have_the_scores_of_the_exact_surrogate(options):
    X, R = draw()
    options = {"ridge": "kappa", "targets": "scaled", "pair_weight": "counts", "kappa": 2.0, **options}
    exact = PairwiseRidge(None, similarity=0.0, **options).fit(X, R)
    quick = FrequentPairRidge(None, max_pairs=100, **options).fit(X, R)
    rows = np.repeat(np.arange(30), np.diff(quick.start_))
    pairs = np.stack([rows, quick.partner_], axis=1)
    assert 50 < quick.n_tasks_ <= 100 and quick.least_ > large.LEAST
    both = ~np.isnan(R)
    counts = both.astype(int).T @ both.astype(int)
    assert np.array_equal(quick.sizes_, counts[pairs[:, 0], pairs[:, 1]])
    assert (np.triu(counts, 1) >= quick.least_).sum() == quick.n_tasks_  # none is left out
    turned = np.concatenate([pairs, pairs[:, ::-1]])
    assert np.allclose(quick.pair_scores(X[:7], turned), exact.pair_scores(X[:7], turned), atol=1e-10)
    rare = np.argwhere(np.triu(counts < quick.least_, 1))[:10]
    assert np.array_equal(quick.pair_scores(X[:7], rare), np.zeros((7, len(rare))))  # what the prior says, here nothing


def test_wide_factors_are_ridge_regressions_and_leave_one_out():
    X, R = draw(n=40, D=12)
    R = as_ratings(R)
    model = WideFactorization(3, 0.7, count_power=0.0).fit(R, X)
    q, g, b = model.item_factors_, model.item_weights_, model.item_bias_
    P, out = model.user_factors(R, X), model.leave_one_out(R, X)
    ridge = np.diag([0.7, 0.7, 0.7, 5.0])
    for u in range(5):
        at = np.arange(R.indptr[u], R.indptr[u + 1])

        def fold_in(e, u=u):
            i = R.indices[e]
            Z = np.column_stack([q[i], np.ones(len(i))])
            return np.linalg.solve(Z.T @ Z + ridge, Z.T @ (R.data[e] - model.mean_ - b[i] - g[i] @ X[u]))[:3]

        assert np.allclose(P[u], fold_in(at), atol=1e-9)
        for e in at:
            i = R.indices[e]
            assert out[e] == pytest.approx(model.mean_ + b[i] + q[i] @ fold_in(at[at != e]) + g[i] @ X[u], abs=1e-9)


def ratings(n=400, D=60, seed=3):
    """Hidden tastes, and what X explains."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    score = rng.standard_normal(D) + 0.5 * X @ rng.standard_normal((2, D))
    score = score + rng.standard_normal((n, 3)) @ rng.standard_normal((3, D)) / 2 + 0.5 * rng.standard_normal((n, D))
    score[rng.uniform(size=score.shape) > 0.4] = np.nan
    return X, as_ratings(score)


def test_the_size_chooses_the_surrogate_and_says_so():
    X, R = ratings()
    small = ConstrainedRanker().fit(X, R)
    assert isinstance(small.surrogate_, PairwiseRidge) and "400 queries and 60 items" in small.surrogate_choice_
    wide = ConstrainedRanker(max_memory=1e6).fit(X[:300], R[:300])
    assert isinstance(wide.surrogate_, PairwiseRidge)  # 8 x 300^2 bytes still fit
    wide = ConstrainedRanker(max_memory=5e5).fit(X[:300], R[:300])
    assert isinstance(wide.surrogate_, FrequentPairRidge) and wide.surrogate_choice_.startswith("FrequentPairRidge: matrices")
    profile, rest = split_profiles(R[300:])
    popular = np.asarray(R[:300].sum(axis=0)) / np.maximum(np.diff(R[:300].tocsc().indptr), 1)
    by_mean = 1 - rank_loss(rest, scores=np.tile(popular, (100, 1)))
    cold, warm = wide.score(X[300:], rest), wide.score(X[300:], rest, ratings=profile)
    assert warm > cold + 0.02 > by_mean + 0.04
    with pytest.raises(ValueError, match="pairs='frequent' cannot do with this prior, similarity"):
        ConstrainedRanker("item_bias", similarity=3.0, pairs="frequent").fit(X, R)
    with pytest.raises(ValueError, match="pairs="):
        ConstrainedRanker(pairs="some").fit(X, R)
    with pytest.raises(ValueError, match="give ratings R"):
        FrequentPairRidge().fit_tasks(PairTasks.read(X, comparisons=[(0, 1, 2)]))


def test_all_items_are_ordered_by_the_factors_and_the_best_by_their_pairs(monkeypatch):
    X, R = ratings()
    model = ConstrainedRanker(pairs="frequent", decoder="exact").fit(X, R)
    whole = model.decode(X[:4], R[:4])
    monkeypatch.setattr(large, "TOP", 8)
    some = model.decode(X[:4], R[:4])
    assert np.array_equal(np.sort(some.order, axis=1), np.tile(np.arange(60), (4, 1)))
    assert np.array_equal(np.take_along_axis(some.positions, some.order, axis=1), np.tile(np.arange(60), (4, 1)))
    F = model.surrogate_._inputs(X[:4], R[:4])[1].all(slice(None))
    for i in range(4):
        by_factors = np.argsort(-F[i], kind="stable")
        assert np.array_equal(some.order[i, 8:], by_factors[8:]) and set(some.order[i, :8]) == set(by_factors[:8])
        candidates = model.decode(X[[i]], R[[i]], items=by_factors[:8])
        assert np.array_equal(candidates.order[0], some.order[i, :8])
    assert whole.order.shape == some.order.shape
    assert np.array_equal(model.recommend(X[:4], 3, R[:4]), some.order[:, :3])


def test_a_saved_model_of_frequent_pairs(tmp_path):
    X, R = ratings(n=150)
    model = ConstrainedRanker(pairs="frequent").fit(X, R)
    model.save(tmp_path / "ranker.lawful")
    again = lawful.load(tmp_path / "ranker.lawful")
    assert np.array_equal(again.predict(X[:5], R[:5]), model.predict(X[:5], R[:5]))


# ---------------------------------------------------------------------------------------------- candidates of each query


@pytest.mark.parametrize("options", [{"prior": "item_bias"}, {"pairs": "frequent"}])
def test_every_query_may_have_its_own_candidates(options):
    X, R = draw(n=100, D=12, noise=2.0)
    model = ConstrainedRanker(decoder="exact", **options).fit(X, R)
    items = [[7, 2, 3, 9], [4, -1, 1, 4], [0, 1, 2, 3]]
    d = model.decode(X[:3], R[:3], items=items)
    for i, mine in enumerate(items):
        mine = sorted(set(mine) - {-1})
        alone = model.decode(X[[i]], R[[i]], items=mine)
        assert d.order[i].tolist() == alone.order[0].tolist() + [-1] * (4 - len(mine))
        assert np.array_equal(d.positions[i], alone.positions[0]) and d.objective[i] == pytest.approx(alone.objective[0])
    assert model.recommend(X[:3], 2, R[:3], items=items).tolist() == [row[:2].tolist() for row in d.order]
    for bad in ([[1, 2]], [[-1], [2], [3]], [[1], [2], [12]], [[0.5], [1.0], [2.0]]):
        with pytest.raises(ValueError, match="items"):
            model.decode(X[:3], R[:3], items=bad)


# ---------------------------------------------------------------------------------------------- complete rankings


def complete(n=260, D=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    utility = rng.standard_normal(D) + X @ rng.standard_normal((3, D)) + 2 * rng.standard_normal((n, D))
    return X, np.argsort(np.argsort(utility, axis=1), axis=1).astype(float)


@pytest.mark.parametrize("targets", ["scaled", "sign"])
def test_pairs_on_the_same_queries_share_a_factorisation(targets):
    X, R = complete(n=90)
    model = PairwiseRidge(None, ridge="kappa", kappa=5.0, targets="difference" if targets == "scaled" else "sign").fit(X, R)
    K = model.kernel_.gram() + 5.0 * np.eye(90)
    for p in range(7):
        for t in range(model.table_.pair_start[p], model.table_.pair_start[p + 1]):
            y = R[:, p] - R[:, model.table_.partner[t]]
            y = np.sign(y) if targets == "sign" else y
            assert np.allclose(model.table_.coef[model.table_.ptr[t] : model.table_.ptr[t + 1]], np.linalg.solve(K, y))
    done = solve_shared(model.table_, K, np.array([1.0, 0.0]), 1, additive=False)
    assert done.all()  # not one was left for the loop


def test_groups_of_items_that_different_queries_ranked():
    X, R = complete(n=200)
    R[:100, 4:], R[100:, :2] = np.nan, np.nan  # pairs among 0..3, among 2..6, and (2, 3) by all
    model = PairwiseRidge(None, ridge="kappa", kappa=5.0).fit(X, R)
    K = model.kernel_.gram()
    for p, q, rows in ((0, 1, slice(0, 100)), (0, 3, slice(0, 100)), (2, 3, slice(0, 200)), (4, 6, slice(100, 200))):
        y = R[rows, p] - R[rows, q]
        c = np.linalg.solve(K[rows, rows] + 5.0 * np.eye(len(y)), y)
        assert np.allclose(model.pair_scores(X[:5], [(p, q)])[:, 0], K[:5, rows] @ c)


def test_rows_with_the_same_columns_share_their_regression():
    rng = np.random.default_rng(0)
    F, y = rng.standard_normal((9, 3)), rng.standard_normal(4 * 9)
    whole = np.arange(0, 37, 9), np.tile(np.arange(9), 4)
    ridge = np.full(3, 0.5), np.full(3, 0.5), 2.0
    together, bias = np.zeros((4, 3)), np.zeros(4)
    half_step(*whole, y, F, *ridge, together, bias)
    left = np.zeros(36)
    leave_one_out(*whole, y, F, *ridge, True, left)
    Z = np.column_stack([F, np.ones(9)])
    penalty = np.diag([0.5 * 3.0] * 3 + [2.0])  # 0.5 sqrt(9)
    for u in range(4):
        v = y[9 * u : 9 * u + 9]
        w = np.linalg.solve(Z.T @ Z + penalty, Z.T @ v)
        assert np.allclose(together[u], w[:3]) and bias[u] == pytest.approx(w[3])
        for e in range(9):
            keep = np.arange(9) != e
            w = np.linalg.solve(Z[keep].T @ Z[keep] + penalty, Z[keep].T @ v[keep])
            assert left[9 * u + e] == pytest.approx(Z[e] @ w)


def test_queries_without_ratings_have_a_fit_of_their_own():
    """With the similarity of training ratings in their coefficients, cold queries were ranked worse than without."""
    X, R = complete(n=900, D=8, seed=1)
    X, R, X_new, R_new = X[:300], R[:300], X[300:], R[300:]
    scores = {}
    for name, options in {
        "default": {},
        "one fit": {"similarity": 30.0},
        "factors": {"similarity": 0.0},
        "item bias": {"similarity": 0.0, "prior": "item_bias"},
        "nothing": {"similarity": 0.0, "prior": None},
    }.items():
        scores[name] = ConstrainedRanker(**options).fit(X, R).score(X_new, R_new)
    assert scores["default"] > scores["one fit"] + 0.005
    assert scores["default"] >= 0.99 * max(scores.values())
    model = ConstrainedRanker().fit(X, R)
    assert model.surrogate_.cold_.similarity == 0 and model.surrogate_.similarity_ == 30
    # a batch of both kinds is what each kind is alone
    profile = sparse.lil_array((5, 8))
    profile[1, [0, 3]], profile[4, [2, 5]] = [1.0, 5.0], [4.0, 2.0]
    profile = sparse.csr_array(profile)
    mixed = model.decode(X_new[:5], profile)
    cold, warm = model.decode(X_new[[0, 2, 3]]), model.decode(X_new[[1, 4]], profile[[1, 4]])
    assert np.array_equal(mixed.order[[0, 2, 3]], cold.order) and np.array_equal(mixed.order[[1, 4]], warm.order)
    S = model.pair_scores(X_new[:5], [(0, 1), (6, 2)], profile)
    assert np.allclose(S[[1, 4]], model.pair_scores(X_new[[1, 4]], [(0, 1), (6, 2)], profile[[1, 4]]))
    assert np.allclose(S[[0, 2, 3]], model.pair_scores(X_new[[0, 2, 3]], [(0, 1), (6, 2)]))


@pytest.mark.parametrize("prior", [None, "item_bias"])
def test_priors_of_complete_rankings_are_compared_by_the_loss_of_all_pairs(prior):
    """The held-out loss is that of refits without each query in turn, over all pairs; so is the error that chooses kappa."""
    X, R = draw(n=40, D=26, rated=1.0, noise=2.0)
    model = PairwiseRidge(prior, ridge="kappa", targets="scaled")
    kappa, loss = model._held_out_loss(PairTasks.read(X, R))
    pairs = np.stack(np.triu_indices(26, 1), axis=1)
    f = np.zeros(R.shape) if prior is None else model.slope_ * model.prior_.training_scores().toarray()
    values = R / np.sqrt((np.square(R - R.mean(1, keepdims=True)).sum(1) + 10 * np.mean(R.var(1))) / 36)[:, None]
    K = model.kernel_.gram()
    y, g = (v[:, pairs[:, 0]] - v[:, pairs[:, 1]] for v in (values, f))

    def held_out(kappa):
        out = np.empty(y.shape)
        for i in range(len(X)):
            rest = np.delete(np.arange(len(X)), i)
            alpha = np.linalg.solve(K[np.ix_(rest, rest)] + kappa * np.eye(len(rest)), K[rest, i])
            out[i] = g[i] + alpha @ (y - g)[rest]
        return out

    errors = [np.sum((y - held_out(k)) ** 2) for k in (kappa * 10**-0.25, kappa, kappa * 10**0.25)]
    assert errors[1] == min(errors)
    wrong = np.where(y * held_out(kappa) < 0, np.abs(y), 0.0)  # |y| over the spread of a query: its share does not change
    assert loss.mean() == pytest.approx(np.mean(wrong.sum(1) / np.abs(y).sum(1)), rel=1e-9)


def test_the_cold_prior_leaves_the_user_out():
    """Its training scores err more than those of a prior that has seen the user, and it ignores ratings."""
    X, R = draw(n=80, D=10, rated=0.7)
    R = as_ratings(R)
    cold = FactorPrior(n_models=1).fit(R, X).cold_
    assert isinstance(cold, ColdPrior) and cold.fit(R, X) is cold
    assert np.array_equal(cold.scores(R[:3], X[:3]), cold.scores(X=X[:3])) and cold.scores(ratings=R[:4]).shape == (4, 10)
    out, seen = cold.training_scores(), cold.scores(X=X)
    errors = [(np.var(R[[u]].data - out[[u]].data), np.var(R[[u]].data - seen[u, R[[u]].indices])) for u in range(80)]
    assert np.mean(errors, axis=0)[0] > 1.02 * np.mean(errors, axis=0)[1]


def test_the_loss_of_a_prior_is_that_of_its_orders():
    rng = np.random.default_rng(3)
    R = sparse.random_array((30, 12), density=0.6, rng=rng, format="csr")
    R.data = rng.integers(1, 6, R.nnz).astype(float)
    g = rng.standard_normal(R.nnz)
    losses = []
    for u in range(30):
        own = slice(R.indptr[u], R.indptr[u + 1])
        y, s = np.subtract.outer(R.data[own], R.data[own]), np.subtract.outer(g[own], g[own])
        if np.abs(y).sum() > 0:
            losses.append(np.abs(y)[y * s < 0].sum() / np.abs(y).sum())
    assert prior_loss(sparse.csr_array(R), g).mean() == pytest.approx(np.mean(losses))

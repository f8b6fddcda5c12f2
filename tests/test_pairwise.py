"""The pairwise surrogate against literal references: scikit-learn one pair at a time, loops, and itself in other words."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.kernel_ridge import KernelRidge as Reference
from sklearn.metrics.pairwise import rbf_kernel

from lawful.kernels import Gaussian, Linear, Precomputed
from lawful.ratings import as_ratings
from lawful.surrogates.pairs import _table, objective
from lawful.surrogates.pairs._table import cut
from lawful.surrogates.pairs._targets import net, spread
from lawful.surrogates.pairs.comparisons import potentials, read_comparisons
from lawful.surrogates.pairs.pairwise import PairwiseRidge


def linear(A, B):
    return A @ B.T


def gauss(A, B):
    return rbf_kernel(A, B, gamma=0.3)


def draw(n=40, D=9, rated=0.5, seed=0, d=3):
    rng = np.random.default_rng(seed)
    R = rng.integers(1, 6, (n, D)).astype(float)
    R[rng.uniform(size=R.shape) > rated] = np.nan
    return rng.standard_normal((n, d)), R, rng.standard_normal((11, d))


def all_pairs(D):
    return np.array(list(itertools.product(range(D), repeat=2)))


def literal(X, R, X_new, kernel, ridge, constant=1.0, target=lambda y: y, shift=None):
    """S (m, D, D) by a loop of scikit-learn's KernelRidge over the pairs; shift (n, D) is subtracted from the ratings."""
    n, D = R.shape
    S = np.zeros((len(X_new), D, D))
    shift = np.zeros((n, D)) if shift is None else shift
    for p, q in itertools.permutations(range(D), 2):
        both = ~np.isnan(R[:, p]) & ~np.isnan(R[:, q])
        if both.any():
            model = Reference(alpha=ridge(both.sum()), kernel="precomputed")
            y = target(R[both, p] - R[both, q]) - (shift[both, p] - shift[both, q])
            model.fit(kernel(X[both], X[both]) + constant, y)
            S[:, p, q] = model.predict(kernel(X_new, X[both]) + constant)
    return S


def skews(model, X, **options):
    F, found = model.objective(X, **options), []
    with F.threads() as threads:
        for rows, skew in F.skews(threads):
            found += threads.map(lambda i, skew=skew: skew(i).copy(), rows)
    return np.array(found)


class Shifts:
    """A prior that says what it is told: scores `train` (n, D) of the training queries and `new` (m, D) of the others."""

    def __init__(self, train, new):
        self.train, self.new = train, new

    def fit(self, R, X=None):
        self.pattern = sparse.csr_array(R)
        return self

    def training_scores(self):
        R = self.pattern
        rows = np.repeat(np.arange(R.shape[0]), np.diff(R.indptr))
        return sparse.csr_array((self.train[rows, R.indices], R.indices, R.indptr), shape=R.shape)

    def scores(self, ratings=None, X=None):
        return self.new


# ---------------------------------------------------------------------------------------------- against the literal loop


@pytest.mark.parametrize("kernel", [linear, gauss])
@pytest.mark.parametrize("rule", [{"ridge": "n_lambda", "lam": 0.03}, {"ridge": "kappa", "kappa": 2.0}])
@pytest.mark.parametrize("constant", [True, False])
def test_equals_a_loop_of_kernel_ridge(kernel, rule, constant):
    X, R, X_new = draw()
    model = PairwiseRidge(kernel=kernel, constant=constant, **rule).fit(X, R)
    ridge = (lambda n: 0.03 * n) if "lam" in rule else (lambda n: 2.0)
    expected = literal(X, R, X_new, kernel, ridge, constant=float(constant))
    assert np.abs(skews(model, X_new) - expected).max() < 1e-8
    assert np.abs(model.pair_scores(X_new, all_pairs(9)) - expected.reshape(11, -1)).max() < 1e-8


def test_large_tasks_equal_kernel_ridge():
    """Tasks of many sizes, up to all 150 queries: every branch of the solver."""
    X, R, X_new = draw(n=150, D=7, rated=0.97, seed=3)
    R[:, 5] = np.nan
    R[:1, 5], R[:2, 6], R[2:, 6] = 4.0, 2.0, np.nan
    R[:2, :5] = np.arange(1, 6)  # tasks of one query, of two, and of nearly all
    model = PairwiseRidge(kernel=gauss, lam=1e-3).fit(X, R)
    assert set(np.diff(model.table_.ptr)) >= {1, 2} and np.diff(model.table_.ptr).max() > 140
    assert np.abs(skews(model, X_new) - literal(X, R, X_new, gauss, lambda n: 1e-3 * n)).max() < 1e-8


def test_sign_targets_and_ties():
    X, R, X_new = draw(seed=5)
    model = PairwiseRidge(kernel=linear, targets="sign", lam=0.1).fit(X, R)
    expected = literal(X, R, X_new, linear, lambda n: 0.1 * n, target=np.sign)
    assert np.abs(skews(model, X_new) - expected).max() < 1e-8
    assert np.isclose(R, np.roll(R, 1, axis=1)).any()  # there are ties, and they entered K_t


def test_scaled_targets():
    X, R, X_new = draw(seed=6)
    u = spread(as_ratings(R))
    model = PairwiseRidge(kernel=linear, targets="scaled", ridge="kappa", kappa=3.0).fit(X, R)
    assert np.abs(skews(model, X_new) - literal(X, R / u[:, None], X_new, linear, lambda n: 3.0)).max() < 1e-8
    residuals = [R[i][~np.isnan(R[i])] for i in range(len(R))]
    squares = np.array([((r - r.mean()) ** 2).sum() if len(r) else 0.0 for r in residuals])
    k = np.array([len(r) for r in residuals])
    assert np.allclose(u, np.sqrt((squares + 10 * squares.sum() / k.sum()) / (k + 10)))


@pytest.mark.parametrize("targets", ["difference", "sign"])
def test_prior_mean_and_its_slope(targets):
    X, R, X_new = draw(seed=7)
    rng = np.random.default_rng(1)
    F, F_new = np.nan_to_num(R) + rng.standard_normal(R.shape), rng.standard_normal((11, 9))
    model = PairwiseRidge(Shifts(F, F_new), kernel=linear, ridge="kappa", kappa=2.0, targets=targets).fit(X, R)
    dy, df = [], []
    for p, q in itertools.combinations(range(9), 2):
        both = ~np.isnan(R[:, p] - R[:, q])
        dy.append(R[both, p] - R[both, q])
        df.append(F[both, p] - F[both, q])
    dy, df = np.concatenate(dy), np.concatenate(df)
    target = np.sign if targets == "sign" else (lambda y: y)
    assert model.slope_ == pytest.approx((target(dy) @ df) / (df @ df), rel=1e-10)
    w = model.slope_
    expected = literal(X, R, X_new, linear, lambda n: 2.0, target=target, shift=w * F)
    expected += w * (F_new[:, :, None] - F_new[:, None, :])
    assert np.abs(skews(model, X_new) - expected).max() < 1e-8


def test_pairs_weighted_by_counts():
    X, R, X_new = draw(seed=8)
    rng = np.random.default_rng(2)
    R[:, 4] = np.where(np.arange(40) < 3, R[:, 4], np.nan)
    prior = Shifts(rng.standard_normal(R.shape), rng.standard_normal((11, 9)))
    seen = ~np.isnan(R)
    counts = seen.T.astype(int) @ seen
    plain = PairwiseRidge(prior, kernel=linear).fit(X, R)
    weighted = PairwiseRidge(prior, kernel=linear, pair_weight="counts").fit(X, R)
    assert np.abs(skews(weighted, X_new) - (counts + 1) * skews(plain, X_new)).max() < 1e-8
    pairs = all_pairs(9)
    assert np.allclose(weighted.pair_scores(X_new, pairs), skews(weighted, X_new).reshape(11, -1), atol=1e-10)


def test_zero_filling_is_the_vector_valued_estimator():
    """SELF: one alpha from all queries; as lam grows it becomes n_t times the estimator that skips."""
    X, R, X_new = draw(seed=9)
    model = PairwiseRidge(kernel=linear, missing="zero", lam=0.05).fit(X, R)
    alpha = (linear(X_new, X) + 1) @ np.linalg.inv(linear(X, X) + 1 + 0.05 * 40 * np.eye(40))
    Y = np.nan_to_num(R[:, :, None] - R[:, None, :])
    assert np.abs(skews(model, X_new) - np.einsum("mn,npq->mpq", alpha, Y)).max() < 1e-10
    far = 1e7
    zero = PairwiseRidge(kernel=linear, missing="zero", ridge="n_lambda", lam=far).fit(X, R)
    skip = PairwiseRidge(kernel=linear, missing="skip", ridge="n_lambda", lam=far).fit(X, R)
    seen = ~np.isnan(R)
    counts = seen.T.astype(int) @ seen
    assert np.allclose(skews(zero, X_new) * 40 * far, counts * skews(skip, X_new) * far, rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------------------------------------- the same in other words


def test_sparse_is_dense():
    X, R, X_new = draw(seed=10)
    R[0, 1] = 0.0  # a stored zero is a rating
    rows, columns = np.nonzero(~np.isnan(R))
    shuffled = np.random.default_rng(0).permutation(len(rows))
    S = sparse.coo_array((R[rows, columns][shuffled], (rows[shuffled], columns[shuffled])), shape=R.shape)
    expected = skews(PairwiseRidge("item_bias", similarity=2.0).fit(X, R), X_new)
    for form in (S.tocsr(), S.tocsc(), sparse.csr_matrix(S)):
        assert np.abs(skews(PairwiseRidge("item_bias", similarity=2.0).fit(X, form), X_new) - expected).max() < 1e-12


def test_streamed_is_stored():
    X, R, X_new = draw(n=60, D=30, rated=0.4, seed=11)
    pairs = all_pairs(30)
    items = np.array([2, 3, 7, 11, 28])
    for options in ({}, {"missing": "zero"}, {"targets": "sign"}, {"prior": "item_bias", "pair_weight": "counts"}):
        stored = PairwiseRidge(kernel=gauss, **options).fit(X, R)
        streamed = PairwiseRidge(kernel=gauss, max_memory=2000.0, **options).fit(X, R)
        assert streamed.streamed_ and not stored.streamed_
        assert len(streamed.table_.ranges()) > 5
        assert not hasattr(streamed.table_, "coef") and max(np.diff(streamed.table_.obs_start)) < stored.n_observations_ / 5
        assert np.array_equal(skews(stored, X_new), skews(streamed, X_new))
        assert np.array_equal(stored.pair_scores(X_new, pairs), streamed.pair_scores(X_new, pairs))
        part = skews(stored, X_new)[:, items][:, :, items]
        assert np.allclose(skews(stored, X_new, items=items), part, atol=1e-12)
        assert np.allclose(skews(streamed, X_new, items=items), part, atol=1e-12)


def test_threads_change_nothing(monkeypatch):
    X, R, X_new = draw(n=60, D=40, seed=12)
    monkeypatch.setattr(objective, "SMALL", 0)
    one = PairwiseRidge("item_bias", n_jobs=1).fit(X, R)
    four = PairwiseRidge("item_bias", n_jobs=4).fit(X, R)
    assert np.array_equal(one.table_.coef, four.table_.coef)
    assert np.array_equal(skews(one, X_new), skews(four, X_new))
    assert np.allclose(four.skew(X_new[:1]), skews(one, X_new)[0], atol=1e-12)


def test_many_items_are_held_in_single_precision():
    rng = np.random.default_rng(13)
    R = sparse.random_array((30, 600), density=0.05, rng=rng, format="csr")
    X = rng.standard_normal((30, 2))
    model = PairwiseRidge().fit(X, R)
    S = model.skew(X[:1])
    assert S.dtype == np.float32 and np.array_equal(S, -S.T)
    pairs = rng.integers(600, size=(500, 2))
    exact = model.pair_scores(X[:1], pairs)[0]
    assert np.allclose(S[pairs[:, 0], pairs[:, 1]], exact, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("options", [{}, {"prior": "item_bias"}, {"missing": "zero"}, {"targets": "sign", "similarity": 1.0}])
def test_items_and_queries_may_be_renamed(options):
    X, R, X_new = draw(seed=14)
    rng = np.random.default_rng(3)
    items, queries = rng.permutation(9), rng.permutation(40)
    expected = skews(PairwiseRidge(**options).fit(X, R), X_new)
    by_item = skews(PairwiseRidge(**options).fit(X, R[:, items]), X_new)
    assert np.allclose(by_item, expected[:, items][:, :, items], atol=1e-9)
    assert np.allclose(skews(PairwiseRidge(**options).fit(X[queries], R[queries]), X_new), expected, atol=1e-9)


def comparisons_of(R):
    out = []
    for u, row in enumerate(R):
        rated = np.flatnonzero(~np.isnan(row))
        for p, q in itertools.combinations(rated, 2):
            out.append((u, p, q, row[p] - row[q]) if row[p] >= row[q] else (u, q, p, row[q] - row[p]))
    return out


@pytest.mark.parametrize("targets", ["difference", "scaled", "sign"])
@pytest.mark.parametrize("missing", ["skip", "zero"])
def test_comparisons_that_say_what_ratings_say(targets, missing):
    X, R, X_new = draw(rated=0.6, seed=15)
    given = comparisons_of(R)
    np.random.default_rng(0).shuffle(given)
    a = PairwiseRidge(kernel=linear, targets=targets, missing=missing).fit(X, R)
    b = PairwiseRidge(kernel=linear, targets=targets, missing=missing).fit(X, comparisons=given, n_items=9)
    assert np.allclose(skews(a, X_new), skews(b, X_new), atol=1e-10)


def test_comparisons_with_a_prior():
    """Potentials stand in for the ratings; with all items rated by all, nothing differs from ratings less their mean."""
    X, R, X_new = draw(rated=2.0, seed=16)
    centred = R - R.mean(axis=1, keepdims=True)
    options = {"prior": "item_bias", "similarity": 1.5, "targets": "scaled"}
    a = PairwiseRidge(**options).fit(X, centred)
    b = PairwiseRidge(**options).fit(X, comparisons=comparisons_of(R))
    assert a.slope_ == pytest.approx(b.slope_, rel=1e-8)
    assert np.allclose(skews(a, X_new, ratings=centred[:11]), skews(b, X_new, ratings=centred[:11]), atol=1e-8)


def test_comparisons_add_up_and_may_contradict():
    X = np.zeros((2, 1))
    cycle = [(0, 0, 1, 2.0), (0, 1, 2, 1.0), (0, 2, 0, 3.0), (0, 1, 0, 0.5), (0, 0, 1, 0.25), (1, 2, 1, 4.0), (1, 1, 2, 4.0)]
    seen, D = read_comparisons(cycle, 2)
    assert D == 3
    told = {(u, p, q): y for u, p, q, y in zip(seen.users, seen.low, seen.high, seen.y)}
    assert told == {(0, 0, 1): 1.75, (0, 1, 2): 1.0, (0, 0, 2): -3.0, (1, 1, 2): 0.0}
    S = PairwiseRidge(kernel=linear, lam=1.0).fit(X, comparisons=cycle).skew(X[:1])
    # the pair (1, 2) has two queries, one of them a tie: (K + 2 I) c = (1, 0) with K all ones, S = c_1 + c_2 = 1 / 4
    assert np.allclose(S, [[0, 1.75 / 2, -1.5], [-1.75 / 2, 0, 0.25], [1.5, -0.25, 0]])


def test_potentials_are_least_squares():
    rng = np.random.default_rng(4)
    rows = [(0, *rng.choice(6, 2, replace=False), rng.uniform(0, 3)) for _ in range(9)] + [(2, 7, 8, 1.0), (2, 3, 4, 5.0)]
    seen, D = read_comparisons(rows, 3)
    P = potentials(seen, 3, D).toarray()
    first = seen.users == 0
    A = np.zeros((first.sum(), 9))
    A[np.arange(first.sum()), seen.low[first]] = 1
    A[np.arange(first.sum()), seen.high[first]] = -1
    assert np.allclose(P[0], np.linalg.lstsq(A, seen.y[first], rcond=None)[0])
    assert np.allclose(P[1], 0)
    assert np.allclose(P[2], [0, 0, 0, 2.5, -2.5, 0, 0, 0.5, -0.5])


def test_net_wins():
    R = as_ratings(np.array([[1.0, 3.0, 3.0, np.nan, 0.0], [np.nan, 2.0, 5.0, 2.0, np.nan]]))
    for sign in (False, True):
        expected = []
        for u in range(2):
            r = R.data[R.indptr[u] : R.indptr[u + 1]]
            gaps = r[:, None] - r[None, :]
            expected.append((np.sign(gaps) if sign else gaps).sum(axis=1))
        assert np.allclose(net(R, sign), np.concatenate(expected))


# ---------------------------------------------------------------------------------------------- kernels, counts, limits


def test_kernels_of_the_library():
    X, R, X_new = draw(seed=17)
    G, G_new = gauss(X, X), gauss(X_new, X)
    expected = skews(PairwiseRidge(kernel=gauss).fit(X, R), X_new)
    assert np.allclose(skews(PairwiseRidge(kernel=Gaussian(sigma=0.3**-0.5)).fit(X, R), X_new), expected, atol=1e-10)
    assert np.allclose(skews(PairwiseRidge(kernel=Precomputed()).fit(G, R), G_new), expected, atol=1e-10)
    a = skews(PairwiseRidge(kernel=Linear(bias=1.0), constant=False).fit(X, R), X_new)
    assert np.allclose(a, skews(PairwiseRidge(kernel=linear).fit(X, R), X_new), atol=1e-10)


def test_default_kernel_is_standardised_and_has_unit_scale():
    X, R, X_new = draw(seed=18)
    X = X * [1.0, 100.0, 1e-3] + [5.0, -3.0, 0.0]
    X_new = X_new * [1.0, 100.0, 1e-3] + [5.0, -3.0, 0.0]
    Z, Z_new = (X - X.mean(axis=0)) / X.std(axis=0), (X_new - X.mean(axis=0)) / X.std(axis=0)
    a = PairwiseRidge().fit(X, R)
    b = PairwiseRidge(kernel=lambda A, B: A @ B.T / 3).fit(Z, R)
    assert np.allclose(skews(a, X_new), skews(b, Z_new), atol=1e-9)
    constant_column = np.c_[X, np.full(40, 7.0)]
    assert np.isfinite(skews(PairwiseRidge().fit(constant_column, R), np.c_[X_new, np.full(11, 7.0)])).all()


def test_similarity_of_ratings_is_part_of_the_kernel():
    X, R, X_new = draw(seed=19)
    profile = draw(n=11, seed=20)[1]

    def phi(Q):
        c = Q - np.nanmean(Q, axis=1, keepdims=True)
        return np.nan_to_num(c / np.sqrt(np.nansum(c**2, axis=1, keepdims=True) + damping))

    rated = ~np.isnan(R)
    damping = 10 * np.nanmean((R - np.nanmean(R, axis=1, keepdims=True))[rated] ** 2)
    model = PairwiseRidge(kernel=linear, similarity=2.5, lam=0.2).fit(X, R)
    wide, wide_new = np.c_[X, np.sqrt(2.5) * phi(R)], np.c_[X_new, np.sqrt(2.5) * phi(profile)]
    by_hand = PairwiseRidge(kernel=linear, lam=0.2).fit(wide, R)
    assert np.allclose(skews(model, X_new, ratings=profile), skews(by_hand, wide_new), atol=1e-9)
    nothing = np.full((11, 9), np.nan)
    assert np.allclose(skews(model, X_new), skews(model, X_new, ratings=nothing))


def test_without_x():
    _, R, _ = draw(seed=21)
    model = PairwiseRidge("item_bias", similarity=1.0).fit(None, R)
    assert model.skew(None, ratings=R[:1]).shape == (9, 9)
    with pytest.raises(ValueError, match="X or ratings"):
        model.skew(None)


def test_unobserved_pairs_are_counted_and_score_zero():
    X, R, X_new = draw(D=6, seed=22)
    R[:20, 3:] = np.nan
    R[20:, :3] = np.nan
    model = PairwiseRidge().fit(X, R)
    assert (model.n_tasks_, model.n_unobserved_) == (6, 9)
    assert model.n_observations_ == sum(
        int((~np.isnan(R[:, p] - R[:, q])).sum()) for p, q in itertools.combinations(range(6), 2)
    )
    assert not skews(model, X_new)[:, :3, 3:].any()


def test_memory_is_that_of_the_observations():
    X, R, _ = draw(n=50, D=60, rated=0.1, seed=23)
    table = PairwiseRidge().fit(X, R).table_
    assert table.users.dtype == np.uint16
    assert table.nbytes <= 10 * table.n_observations + 12 * table.n_tasks + 8 * 62


@pytest.mark.slow
def test_more_queries_than_short_integers_can_count(monkeypatch):
    """The same kernels, compiled for wide indices."""
    X, R, X_new = draw(seed=28)
    narrow = PairwiseRidge("item_bias").fit(X, R)
    monkeypatch.setattr(_table, "user_type", lambda n: np.int32)
    wide = PairwiseRidge("item_bias").fit(X, R)
    assert (narrow.table_.users.dtype, wide.table_.users.dtype) == (np.uint16, np.int32)
    assert np.array_equal(skews(narrow, X_new), skews(wide, X_new))
    assert np.array_equal(narrow.pair_scores(X_new, all_pairs(9)), wide.pair_scores(X_new, all_pairs(9)))


def test_cut_covers_every_row_once():
    for counts in ([0, 0, 0], [5, 0, 100, 1, 1, 0, 7], [1] * 50):
        start = np.concatenate([[0], np.cumsum(counts)])
        for pieces, largest in ((1, np.inf), (4, np.inf), (1, 3.0)):
            ranges = cut(start, pieces, largest)
            assert [r for a, b in ranges for r in range(a, b)] == list(range(len(counts)))


def test_inputs_are_not_changed():
    X, R, X_new = draw(seed=24)
    S = as_ratings(R)
    before = X.copy(), R.copy(), S.data.copy(), X_new.copy()
    PairwiseRidge("item_bias", targets="scaled", similarity=1.0).fit(X, R).skew(X_new[:1])
    PairwiseRidge("item_bias", targets="scaled", similarity=1.0).fit(X, S).skew(X_new[:1], ratings=S[:1])
    for old, new in zip(before, (X, R, S.data, X_new)):
        assert np.array_equal(old, new, equal_nan=True)


# ---------------------------------------------------------------------------------------------- what cannot be done


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ridge": "auto"}, "ridge='auto' is unknown"),
        ({"targets": "ratio"}, "targets='ratio' is unknown"),
        ({"missing": None}, "missing=None is unknown"),
        ({"pair_weight": "n"}, "pair_weight='n' is unknown"),
        ({"lam": 0.0}, "lam=0.0 will not do"),
        ({"kappa": -1.0}, "kappa=-1.0 will not do"),
        ({"kappa": np.nan}, "kappa=nan will not do"),
        ({"similarity": "much"}, "similarity='much' will not do"),
        ({"prior": "oracle"}, "prior"),
        ({"kernel": lambda A, B: 3.0 - 5 * np.abs(A[:, :1] - B[:, :1].T), "constant": False}, "not positive definite"),
        ({"kernel": lambda A, B: -100 * A @ B.T, "constant": False}, "never negative"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "NaN or infinite"),
        ({"kernel": Gaussian()}, "no length scale"),
    ],
)
def test_parameters_that_will_not_do(options, message):
    X, R, _ = draw(seed=25)
    with pytest.raises(ValueError, match=message):
        PairwiseRidge(**options).fit(X, R)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "empty"),
        ([(0, 1)], "shape"),
        ([(0, 1, 2, 1.0), (0, 1, 2)], "not a table of numbers"),
        ([(0, 1, 2, -1.0)], "swap winner and loser"),
        ([(0, 1, 1, 1.0)], "with itself"),
        ([(3, 0, 1, 1.0)], "has query 3; it must be in 0 .. 2"),
        ([(0, -1, 1, 1.0)], "has winner -1"),
        ([(0, 0, 9, 1.0)], "has loser 9; it must be in 0 .. 4"),
        ([(0, 0, 1, np.nan)], "NaN"),
        ([(0, 0.5, 1, 1.0)], "whole numbers"),
    ],
)
def test_comparisons_that_will_not_do(rows, message):
    with pytest.raises(ValueError, match=message):
        PairwiseRidge().fit(np.zeros((3, 1)), comparisons=rows, n_items=5)


def test_priors_that_will_not_do():
    X, R, X_new = draw(seed=26)

    class OtherPattern(Shifts):
        def training_scores(self):
            return super().training_scores()[:, ::-1]

    with pytest.raises(ValueError, match="another pattern"):
        PairwiseRidge(OtherPattern(R, R)).fit(X, R)
    with pytest.raises(ValueError, match="returned scores of shape"):
        PairwiseRidge(Shifts(np.nan_to_num(R), np.zeros((2, 2)))).fit(X, R).skew(X_new[:1])
    with pytest.raises(TypeError):
        PairwiseRidge(prior=3).fit(X, R)


def test_pairs_that_will_not_do():
    X, R, X_new = draw(seed=27)
    model = PairwiseRidge().fit(X, R)
    for pairs in ([[0.5, 1.0]], [[0, 1, 2]], [[0, 9]], [[-1, 2]]):
        with pytest.raises(ValueError, match="pairs"):
            model.pair_scores(X_new, pairs)
    assert model.pair_scores(X_new, (3, 3)).tolist() == [[0.0]] * 11


def test_automatic_kappa_is_the_best_by_leave_one_out():
    """Against refits without each query; and it follows the noise of the comparisons."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 2))
    signal = X @ rng.standard_normal((2, 5))
    found = []
    for noise in (0.5, 6.0):
        R = signal + noise * rng.standard_normal(signal.shape)
        ridge = PairwiseRidge(ridge="kappa", kernel=Linear(bias=0.0)).fit(X, R)
        found.append(ridge.kappa_)
        K = X @ X.T + 1
        errors = {}
        for kappa in (ridge.kappa_ / 10, ridge.kappa_, ridge.kappa_ * 10):
            total = 0.0
            for p in range(5):
                for q in range(p + 1, 5):
                    y = R[:, p] - R[:, q]
                    for i in range(40):
                        keep = np.arange(40) != i
                        c = np.linalg.solve(K[np.ix_(keep, keep)] + kappa * np.eye(39), y[keep])
                        total += (y[i] - K[i, keep] @ c) ** 2
            errors[kappa] = total
        assert min(errors, key=errors.get) == ridge.kappa_
    assert found[1] > 3 * found[0]
    assert PairwiseRidge(ridge="kappa", similarity=1.0).fit(X, R).kappa_ == 100.0

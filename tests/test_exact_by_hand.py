"""Kernel ridge from one factorisation, against the normal equations solved anew for every question."""

from __future__ import annotations

import numpy as np
import pytest

from lawful.kernels import Gaussian, Linear, Precomputed
from lawful.surrogates import exact
from lawful.surrogates.exact import CholeskyFactor, SpectralFactor, distinct

rng = np.random.default_rng(0)
KERNEL = Gaussian(0.8)
X = rng.standard_normal((9, 2))
X = X[[0, 1, 2, 3, 4, 5, 6, 7, 8, 2, 5, 5]]  # two inputs are there again
N = len(X)
W = rng.uniform(0.5, 2.0, N)
Z = rng.standard_normal((N, 3))
NEW = rng.standard_normal((5, 2))
LAM = 0.03


def ridge(X, Z, w, lam, intercept, new, n=None):
    """argmin sum_i w_i (z_i - f(x_i) - beta)^2 + n lambda |f|^2 by its linear system, all rows apart; at `new`."""
    K, n = KERNEL(X, X), w.sum() if n is None else n
    one = np.ones(len(X)) if intercept else np.zeros(len(X))
    size = len(X)
    system = np.zeros((size + 1, size + 1))
    system[:size, :size] = K + n * lam * np.diag(1 / w)
    system[:size, size], system[size, :size] = one, one
    system[size, size] = 0.0 if intercept else 1.0
    solution = np.linalg.solve(system, np.vstack([Z, np.zeros((1, Z.shape[1]))]))
    return KERNEL(new, X) @ solution[:size] + one[0] * solution[size]


def factor_of(kind, intercept, lam=LAM, X=X, w=W):
    sample = distinct(X, np.arange(len(X)), w, KERNEL)
    return SpectralFactor(KERNEL, sample, intercept) if kind == "spectral" else CholeskyFactor(KERNEL, sample, lam, intercept)


WAYS = {
    "whole": {},
    "in place": {"LARGE": 1, "PIECE": 4},
    "by pieces": {"MANY": 1, "PIECE": 4},
    "one piece": {"MANY": 1, "LARGE": 1},
}


@pytest.fixture(
    params=[(kind, intercept, way) for kind in ("spectral", "cholesky") for intercept in (True, False) for way in WAYS], ids=str
)
def factor(request, monkeypatch):
    kind, intercept, way = request.param
    for name, value in WAYS[way].items():
        monkeypatch.setattr(exact, name, value)
    return factor_of(kind, intercept)


def test_predictions(factor):
    expected = ridge(X, Z, W, LAM, factor.intercept, NEW)
    np.testing.assert_allclose(factor.predict(NEW, factor.solve(Z, LAM)), expected, rtol=1e-8, atol=1e-10)
    solution = factor.solve(Z, LAM)
    assert solution.coef.shape == (9, 3) and solution.beta.shape == (3,)
    assert factor.intercept or not solution.beta.any()


def test_scores_are_the_weights_of_the_labels(factor):
    alpha = factor.scores(NEW, LAM)
    assert alpha.shape == (5, N)
    np.testing.assert_allclose(alpha, ridge(X, np.eye(N), W, LAM, factor.intercept, NEW), rtol=1e-8, atol=1e-10)
    if factor.intercept:
        np.testing.assert_allclose(alpha.sum(axis=1), 1.0)


def without(factor, i):
    """The prediction at x_i from the other inputs; n lambda is held fixed."""
    others = ~(X[i] == X).all(axis=1)
    return ridge(X[others], Z[others], W[others], LAM, factor.intercept, X[[i]], n=W.sum())[0]


def test_leaving_an_input_out(factor):
    left = np.array([without(factor, i) for i in range(N)])
    np.testing.assert_allclose(factor.loo(Z, LAM), Z - left, rtol=1e-7, atol=1e-9)
    mse = (W[:, None] * (Z - left) ** 2).sum(axis=0) / W.sum()
    np.testing.assert_allclose(factor.loo_mse(Z, np.full((1, 3), LAM)), [mse], rtol=1e-7)
    means = factor.sample.average(Z)
    np.testing.assert_allclose(factor.sample.spread(factor.left_out(means, LAM)), left, rtol=1e-7, atol=1e-9)


def test_variances(factor):
    """k(x, x) - 2 alpha.k(x) + alpha' (K + n lambda W^-1) alpha."""
    K = KERNEL(X, X) + W.sum() * LAM * np.diag(1 / W)
    alpha, k = ridge(X, np.eye(N), W, LAM, factor.intercept, NEW), KERNEL(NEW, X)
    expected = 1 - 2 * (alpha * k).sum(axis=1) + np.einsum("mi,ij,mj->m", alpha, K, alpha)
    np.testing.assert_allclose(factor.variance(NEW, LAM), expected[:, None], rtol=1e-7)
    assert factor.variance(NEW, [LAM, LAM]).shape == (5, 2)


def test_the_inverse_that_both_need(factor):
    """P_ii of the merged inputs, and the mean of 1 / P_ii."""
    w, inputs = factor.sample.weights, X[factor.sample.points]
    G = np.linalg.inv(KERNEL(inputs, inputs) + w.sum() * LAM * np.diag(1 / w))
    P = G - np.outer(G.sum(axis=1), G.sum(axis=0)) / G.sum() if factor.intercept else G
    nu = factor.nu(LAM, 2)
    np.testing.assert_allclose(nu, W.sum() * LAM)
    np.testing.assert_allclose(factor.diagonal(nu), np.c_[np.diag(P), np.diag(P)], rtol=1e-8)
    np.testing.assert_allclose(factor.spread_of_loo(LAM, 2), np.mean(1 / np.diag(P)), rtol=1e-8)
    means = factor.sample.average(Z)
    np.testing.assert_allclose(factor.apply(factor.code(means), factor.nu(LAM, 3)), P @ means, rtol=1e-7, atol=1e-10)


def test_weight_two_is_a_row_twice(factor):
    twice = np.r_[np.arange(N), 3]
    w = W.copy()
    w[3] *= 2
    kind = "spectral" if isinstance(factor, SpectralFactor) else "cholesky"
    heavy = factor_of(kind, factor.intercept, w=w)
    repeated = factor_of(kind, factor.intercept, X=X[twice], w=W[twice])
    one, two = heavy.predict(NEW, heavy.solve(Z, LAM)), repeated.predict(NEW, repeated.solve(Z[twice], LAM))
    np.testing.assert_allclose(one, two, rtol=1e-9)
    assert heavy.n == pytest.approx(repeated.n) and heavy.p == repeated.p == 9
    grid = np.full((1, 3), LAM)
    np.testing.assert_allclose(heavy.loo_mse(Z, grid), repeated.loo_mse(Z[twice], grid), rtol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
def test_many_lambdas_at_once(intercept):
    factor = factor_of("spectral", intercept)
    grid = np.array([[0.01, 0.3, 0.02], [1.0, 0.05, 0.3]])
    table = factor.loo_mse(Z, grid)
    for (i, j), lam in np.ndenumerate(grid):
        assert table[i, j] == pytest.approx(factor.loo_mse(Z[:, [j]], np.array([[lam]]))[0, 0], rel=1e-10)
    shared = factor.loo_mse(Z, np.array([[0.01], [1.0]]))  # one column of lambdas for all
    np.testing.assert_allclose(shared[:, 0], [table[0, 0], table[1, 0]])
    assert shared.shape == (2, 3)
    each = factor.predict(NEW, factor.solve(Z, grid[0]))
    for j in range(3):
        np.testing.assert_allclose(each[:, j], factor.predict(NEW, factor.solve(Z[:, [j]], grid[0, j]))[:, 0], rtol=1e-9)
    np.testing.assert_allclose(
        factor.variance(NEW, grid[0]), np.hstack([factor.variance(NEW, lam) for lam in grid[0]]), rtol=1e-10
    )


def test_scatter_of_labels_at_equal_inputs():
    factor = factor_of("spectral", True)
    expected = np.zeros(3)
    for group in ([2, 9], [5, 10, 11]):
        mean = np.average(Z[group], axis=0, weights=W[group])
        expected += (W[group, None] * (Z[group] - mean) ** 2).sum(axis=0)
    np.testing.assert_allclose(factor.within(Z), expected)
    alone = factor_of("spectral", True, X=X[:9], w=W[:9])
    assert alone.within(Z[:9]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("kind", ["spectral", "cholesky"])
def test_one_input_alone(kind):
    """Nothing is left when it is left out: its mean stands for it, and 0 without an intercept."""
    x, z, w = np.ones((2, 1)), np.array([[1.0], [4.0]]), np.array([1.0, 2.0])
    kernel = Gaussian(1.0)
    for intercept, expected in ((True, [[-2.0], [1.0]]), (False, [[1.0], [4.0]])):
        sample = distinct(x, np.arange(2), w, kernel)
        factor = (
            SpectralFactor(kernel, sample, intercept) if kind == "spectral" else CholeskyFactor(kernel, sample, 0.1, intercept)
        )
        np.testing.assert_allclose(factor.loo(z, 0.1), expected, atol=1e-12)
        assert factor.predict(x[:1], factor.solve(z, 0.1))[0, 0] == pytest.approx(3.0 if intercept else 3 / 1.1)


def test_what_is_no_kernel_is_refused():
    K = np.array([[1.0, 1.5, 0.0], [1.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    sample = distinct(K, np.arange(3), np.ones(3), Precomputed())
    for make in (
        lambda: SpectralFactor(Precomputed(), sample, False),
        lambda: CholeskyFactor(Precomputed(), sample, 0.01, False),
    ):
        with pytest.raises(
            ValueError, match=r"not positive semidefinite: its matrix has eigenvalues from -5\.0e-01 to 2\.5e\+00"
        ):
            make()
    rounding = np.array([[1.0, 1 + 2e-6, 0.0], [1 + 2e-6, 1.0, 0.0], [0.0, 0.0, 1.0]])  # as of single precision
    factor = SpectralFactor(Precomputed(), distinct(rounding, np.arange(3), np.ones(3), Precomputed()), False)
    assert factor.s.min() == 0.0 and factor.s.max() == pytest.approx(2.0, rel=1e-5)


def test_inputs_that_leave_double_precision():
    with pytest.raises(ValueError, match="is infinite at these inputs"):
        SpectralFactor(Linear(), distinct(np.array([[1e200], [2e200]]), np.arange(2), np.ones(2), Linear()))


def test_a_lambda_that_cholesky_cannot_see():
    X = np.ones((4, 1)) + 1e-9 * np.arange(4.0)[:, None]
    sample = distinct(X, np.arange(4), np.ones(4), Gaussian(1.0))
    with pytest.raises(ValueError, match=r"lam = 1\.0e-30 is lost .* lam of at least 2\.2e-16"):
        CholeskyFactor(Gaussian(1.0), sample, 1e-30, intercept=False)
    CholeskyFactor(Gaussian(1.0), sample, 1e-12, intercept=False)


@pytest.mark.parametrize("kind", ["spectral", "cholesky"])
def test_a_slim_factor_forgets_what_only_fitting_needs(kind):
    kept, bare = factor_of(kind, True), factor_of(kind, True)
    solution = kept.solve(Z, LAM)
    expected = kept.predict(NEW, solution), kept.scores(NEW, LAM)
    kept.slim(), bare.slim(keep=False)
    np.testing.assert_array_equal(kept.scores(NEW, LAM), expected[1])
    np.testing.assert_array_equal(bare.predict(NEW, solution), expected[0])
    name = "U" if kind == "spectral" else "L"
    assert hasattr(kept, name) and not hasattr(bare, name) and not hasattr(kept, "K") and not hasattr(kept, "U2")


def test_variances_are_never_negative():
    factor = SpectralFactor(KERNEL, distinct(X[:4], np.arange(4), np.ones(4), KERNEL), intercept=False)
    assert (factor.variance(X[:4], 1e-15) >= 0).all() and factor.variance(X[:4], 1e-15).max() < 1e-6


@pytest.mark.parametrize("kind", ["spectral", "cholesky"])
def test_large_matrices_are_kept_once(kind, monkeypatch):
    """Beyond LARGE inputs the kernel matrix is overwritten; at LARGE it is still there."""
    for large, kept in ((8, False), (9, True), (10, True)):
        monkeypatch.setattr(exact, "LARGE", large)
        assert (factor_of(kind, True).K is not None) == kept


def test_the_diagonal_of_a_large_inverse_goes_piece_by_piece(monkeypatch):
    seen = []
    whole = CholeskyFactor._inverse_squares
    monkeypatch.setattr(CholeskyFactor, "_inverse_squares", lambda self: seen.append(self.p) or whole(self))
    for many, times in ((8, 1), (9, 0), (10, 0)):
        monkeypatch.setattr(exact, "MANY", many)
        factor = factor_of("cholesky", True)
        factor.diagonal(factor.nu(LAM, 1)), factor.diagonal(factor.nu(LAM, 2))
        assert len(seen) == times, "once, and then it is known"
        seen.clear()


@pytest.mark.parametrize("intercept", [True, False])
def test_variances_that_rounding_makes_negative_are_zero(intercept):
    X = 1e3 * np.random.default_rng(0).standard_normal((12, 1))
    factor = SpectralFactor(Linear(), distinct(X, np.arange(12), np.ones(12), Linear()), intercept)
    found = factor.variance(X, 1e-12)
    assert found.min() == 0.0, "in exact arithmetic it is 1e-12 at most"


def test_an_intercept_is_there_unless_it_is_refused():
    sample = distinct(X, np.arange(N), W, KERNEL)
    for factor in (SpectralFactor(KERNEL, sample), CholeskyFactor(KERNEL, sample, LAM)):
        assert factor.intercept
        np.testing.assert_allclose(factor.predict(NEW, factor.solve(Z + 100, LAM)), ridge(X, Z, W, LAM, True, NEW) + 100)
        factor.slim()
        assert factor.scores(NEW, LAM).shape == (5, N), "slim keeps what scores need"

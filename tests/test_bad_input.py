"""What goes wrong in the data, in kernels, folds and scorers: a right answer or an error that says what would do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import get_scorer, make_scorer, mean_squared_error
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold

from lawful import (
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    Equations,
    Huber,
    KernelRidge,
    Mixed,
    Pinball,
    Product,
    Reals,
    Sphere,
    stack_tasks,
)
from lawful.baselines import (
    ClusteredMTL,
    LatentTaskStructure,
    LinearRelations,
    MeanRegularized,
    OutputKernelLearning,
    ParametrizedRegressor,
    RelationshipLearning,
    SingleTask,
    WienerShrinkage,
)
from lawful.kernels import Gaussian, Kernel, Laplacian, Linear, Matern, Polynomial, Precomputed
from lawful.metrics import mean_squared_error as error_of
from lawful.metrics import r2

N = 40
RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (N, 2))
Y = np.c_[np.cos(X[:, 0]), np.sin(X[:, 0]) + X[:, 1]] + 0.05 * RNG.standard_normal((N, 2))
GAPS = RNG.uniform(size=Y.shape) < 0.2
HOLES = np.where(GAPS, np.nan, Y)
KERNEL = Gaussian(2.0)

ESTIMATORS = {
    "ridge": KernelRidge(KERNEL, lam=1e-3),
    "regressor": ConstrainedRegressor(surrogate=KernelRidge(KERNEL, lam=1e-3)),
    "any surrogate": ConstrainedRegressor(surrogate=Ridge()),
    "search": ConstrainedRegressorCV(kernels=[KERNEL], lams=[1e-3], cv=3),
    "baseline": SingleTask(1e-3, kernel=KERNEL),
    "coupled baseline": MeanRegularized(1e-3, kernel=KERNEL),
}
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())

# ---------------------------------------------------------------------- gaps


def nullable(values):
    frame = pd.DataFrame(values, columns=["a", "b"])
    return frame.astype("Float64")


GAPPED = {
    "masked": np.ma.array(np.where(GAPS, 1e6, Y), mask=GAPS),
    "masked, NaN below": np.ma.array(np.where(GAPS, np.inf, Y), mask=GAPS),
    "None": np.where(GAPS, None, Y.astype(object)),
    "NA": np.where(GAPS, pd.NA, Y.astype(object)),
    "nullable frame": nullable(HOLES),
    "object frame": nullable(HOLES).astype(object),
}


@each_estimator
@pytest.mark.parametrize("gapped", GAPPED.values(), ids=GAPPED.keys())
def test_whatever_is_missing_in_y_is_not_learned_from(estimator, gapped):
    expected = estimator.fit(X, HOLES).predict(X)
    np.testing.assert_array_equal(estimator.fit(X, gapped).predict(X), expected)


def test_one_masked_column():
    y = np.ma.array(Y[:, 0], mask=GAPS[:, 0])
    ridge = KernelRidge(KERNEL, lam=1e-3)
    np.testing.assert_array_equal(ridge.fit(X, y).predict(X), ridge.fit(X, HOLES[:, 0]).predict(X))
    np.testing.assert_array_equal(stack_tasks([(X, y), (X, Y[:, 1])])[1][:N, 0], HOLES[:, 0])


@each_estimator
def test_masked_inputs_are_refused(estimator):
    masked = np.ma.array(X, mask=X > 2.5)
    with pytest.raises(ValueError, match=r"X has \d+ masked entries, and inputs must be complete; fill them"):
        estimator.fit(masked, Y)
    fitted = estimator.fit(np.ma.array(X, mask=False), Y)  # nothing hidden
    with pytest.raises(ValueError, match="masked entries"):
        fitted.predict(masked)
    with pytest.raises(ValueError, match="sample_weight has masked entries"):
        estimator.fit(X, Y, sample_weight=np.ma.array(np.ones(N), mask=X[:, 0] > 0))
    with pytest.raises(ValueError, match="X of task 0 has masked entries"):
        stack_tasks([(masked, Y[:, 0])])


@pytest.mark.parametrize("dtype", ["Float64", object])
def test_na_in_x_is_refused(dtype):
    frame = pd.DataFrame(X, columns=["u", "v"]).astype("Float64")
    frame.iloc[3, 0] = pd.NA
    with pytest.raises(ValueError, match="NaN"):
        ConstrainedRegressor(surrogate=Ridge()).fit(frame.astype(dtype), Y)


@pytest.mark.parametrize("gapped", GAPPED.values(), ids=GAPPED.keys())
def test_metrics_leave_out_whatever_is_missing(gapped):
    P = Y + 0.1
    for metric in (error_of, r2):
        assert metric(gapped, P) == metric(HOLES, P)


def test_an_output_may_be_called_x1():
    """With unnamed inputs nothing else is."""
    frame = pd.DataFrame(np.c_[np.cos(X[:, 0]), np.sin(X[:, 0])], columns=["x1", "b"])
    model = ConstrainedRegressor(Equations("x1**2 + b**2 = 1"), surrogate=Ridge()).fit(X, frame)
    np.testing.assert_allclose((model.predict(X) ** 2).sum(axis=1), 1.0)


# ---------------------------------------------------------------------- scales

SCALES = [1e-12, 1e-6, 0.37, 1e6, 1e12]


@pytest.mark.parametrize("seed", range(3))
def test_tuning_does_not_depend_on_the_units_of_the_outputs(seed):
    rng = np.random.default_rng(seed)
    n, d = [(60, 1), (50, 4), (120, 2)][seed]
    X = rng.uniform(-3, 3, (n, d))
    Y = np.c_[np.cos(X[:, 0]), np.sin(X[:, 0]) + X[:, -1] ** 2] + [0.0, 0.1, 0.02][seed] * rng.standard_normal((n, 2))
    one = KernelRidge().fit(X, Y)
    for scale in SCALES:
        other = KernelRidge().fit(X, scale * Y)
        for here, there in zip(one.kernels_, other.kernels_):
            np.testing.assert_array_equal(there.sigma, here.sigma)
        np.testing.assert_array_equal(other.lam_, one.lam_)
        # without noise the ridge all but interpolates, and the rounding of the labels themselves shows
        tolerance = [1e-6, 1e-8, 1e-8][seed] * np.abs(Y).max()
        np.testing.assert_allclose(other.predict(X) / scale, one.predict(X), rtol=0, atol=tolerance)
        np.testing.assert_allclose(other.loo_mse_ / scale**2, one.loo_mse_, rtol=1e-5)


@pytest.mark.parametrize("scale", SCALES)
def test_estimators_follow_the_units_of_the_outputs(scale):
    for name in ("regressor", "any surrogate", "search"):
        estimator = ESTIMATORS[name]
        expected = estimator.fit(X, Y).predict(X)
        np.testing.assert_allclose(estimator.fit(X, scale * Y).predict(X) / scale, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-160, 1e160, 1e300, 1e-300])
@each_estimator
def test_outputs_whose_squares_cannot_be_represented_are_refused(estimator, scale):
    with pytest.raises(ValueError, match=r"output 'y1' has values of size .* rescale it"):
        estimator.fit(X, scale * Y)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-12, 1e12, 1e160, 1e300])
@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), Matern(2.5)], ids=repr)
def test_tuning_does_not_depend_on_the_units_of_the_inputs(kernel, scale):
    one, other = KernelRidge(kernel).fit(X, Y), KernelRidge(kernel).fit(scale * X, Y)
    np.testing.assert_allclose(other.predict(scale * X), one.predict(X), atol=1e-8)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-12, 1e12, 1e160, 1e300])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplacian(1.0), Matern(1.5, 1.0), Linear(), Polynomial()], ids=repr)
def test_inputs_of_any_size(kernel, scale):
    ridge = KernelRidge(kernel)
    if scale >= 1e160 and isinstance(kernel, Linear | Polynomial):
        with pytest.raises(ValueError, match="rescale the inputs"):
            ridge.fit(scale * X, Y)
        return
    assert np.isfinite(ridge.fit(scale * X, Y).predict(scale * X)).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # its own
def test_huge_inputs_of_another_regressor():
    with pytest.raises(ValueError, match=r"Ridge cannot be fitted to inputs of size .* rescale them"):
        ConstrainedRegressor(surrogate=Ridge()).fit(1e160 * X, Y)


LINEAR = [  # with x.x' as their kernel
    SingleTask(),
    MeanRegularized(),
    ClusteredMTL(),
    RelationshipLearning(),
    OutputKernelLearning(),
    LatentTaskStructure(),
    ParametrizedRegressor(),
    WienerShrinkage(),
    LinearRelations(),
]
each_baseline = pytest.mark.parametrize("baseline", LINEAR, ids=lambda baseline: type(baseline).__name__)


@each_baseline
def test_baselines_and_the_size_of_inputs(baseline):
    tiny = baseline.fit(1e-160 * X, Y).predict(1e-160 * X)
    np.testing.assert_allclose(tiny, np.tile(Y.mean(axis=0), (N, 1)), atol=1e-6)  # beside lam there is nothing to learn from
    with pytest.raises(ValueError, match="rescale the inputs"):
        baseline.fit(1e160 * X, Y)


@each_baseline
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_baselines_follow_the_units_of_the_outputs(baseline, scale):
    one, other = baseline.fit(X, Y).predict(X), baseline.fit(X, scale * Y).predict(X) / scale
    np.testing.assert_allclose(other, one, atol=1e-4 * np.abs(Y).max())


@pytest.mark.parametrize("rounds", [0, -1, 2.5, "many"])
def test_a_number_of_rounds_is_at_least_one(rounds):
    with pytest.raises(ValueError, match=r"max_iter=.* will not do; give a whole number, 1 or above"):
        LatentTaskStructure(max_iter=rounds).fit(X, Y)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Gaussian(100.0), Linear(), None], ids=repr)
def test_extreme_lambdas(kernel):
    """1e300 is the mean; 1e-300 interpolates where the kernel matrix can be inverted and is refused where it cannot."""
    np.testing.assert_allclose(KernelRidge(kernel, lam=1e300).fit(X, Y).predict(X), np.tile(Y.mean(axis=0), (N, 1)))
    for lam in (1e-300, [1.0, 1e-300]):
        ridge = KernelRidge(kernel, lam=lam)
        if isinstance(kernel, Linear):
            expected = Ridge(1e-12).fit(X, Y).predict(X)[:, 1]
            np.testing.assert_allclose(ridge.fit(X, Y).predict(X)[:, 1], expected, atol=1e-8)
            assert np.isfinite(ridge.loo_mse_).all()
        elif kernel is None or kernel.sigma == 1.0:  # evidence chooses kernels that interpolate
            np.testing.assert_allclose(ridge.fit(X, Y).predict(X)[:, 1], Y[:, 1], atol=1e-6)
        else:
            with pytest.raises(ValueError, match=r"lam = 1.0e-300 is lost beside the kernel matrix.* would do"):
                ridge.fit(X, Y)
    for lam in (1e308, np.inf, -1.0, np.nan):
        with pytest.raises(ValueError, match="lam above zero and finite"):
            KernelRidge(kernel, lam=lam).fit(X, Y)


def test_the_search_refuses_lost_lambdas():
    for lams in ([1e-300], [1e-300, 1e-3]):
        with pytest.raises(ValueError, match="is lost beside the kernel matrix"):
            ConstrainedRegressorCV(kernels=[100.0], lams=lams, cv=3).fit(X, Y)


# ---------------------------------------------------------------------- kernels

K = KERNEL(X, X)
MATRICES = {
    "negative": (-K, "is never negative"),
    "indefinite": (K - 2 * (K - np.diag(np.diag(K))), "not positive semidefinite"),
    "asymmetric": (K + np.triu(np.ones((N, N)), 1), "not symmetric"),
    "rectangular": (K[:, :5], "square Gram matrix"),
    "infinite": (np.where(K > 0.9, 1e308, K), "is infinite at these inputs|not positive semidefinite"),
}


@pytest.mark.parametrize("lam", ["auto", 1e-6])
@pytest.mark.parametrize(("matrix", "words"), MATRICES.values(), ids=MATRICES.keys())
def test_matrices_that_are_no_kernel_are_refused(matrix, words, lam):
    with pytest.raises(ValueError, match=words):
        KernelRidge(Precomputed(), lam=lam).fit(matrix, Y)
    with pytest.raises(ValueError, match=words):
        ConstrainedRegressorCV(Reals(), kernels=Precomputed(), lams=lam if lam == "auto" else [lam], cv=3).fit(matrix, Y)


class Mine(Kernel):
    """A kernel of the user's own."""

    def __call__(self, X, Z):
        return X @ (0 * Z + 1).T

    def diag(self, X):
        return X.sum(axis=1)


FUNCTIONS = {
    "NaN": (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN or infinite"),
    "infinity": (lambda A, B: np.full((len(A), len(B)), np.inf), "NaN or infinite"),
    "negative": (lambda A, B: -KERNEL(A, B), "is never negative"),
    "asymmetric": (lambda A, B: A @ (0 * B + 1).T, "not symmetric"),
    "a vector": (lambda A, B: np.ones(3), "returned shape"),
    "a number": (lambda A, B: 1.0, "returned shape"),
    "nothing": (lambda A, B: None, "must return an array of real numbers"),
    "strings": (lambda A, B: np.full((len(A), len(B)), "a"), "must return an array of real numbers"),
    "complex": (lambda A, B: 1j * KERNEL(A, B), "must return an array of real numbers"),
    "a class of the user's": (Mine(), "not symmetric"),
}


@pytest.mark.parametrize("lam", ["auto", 1e-6])
@pytest.mark.parametrize(("function", "words"), FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_functions_that_are_no_kernel_are_refused(function, words, lam):
    with pytest.raises(ValueError, match=words):
        KernelRidge(function, lam=lam).fit(X, Y)
    with pytest.raises(ValueError, match=words):
        ConstrainedRegressorCV(Reals(), kernels=function, lams=lam if lam == "auto" else [lam], cv=3).fit(X, Y)


@pytest.mark.parametrize("lam", ["auto", 1e-3])
def test_a_kernel_that_knows_nothing_predicts_the_mean(lam):
    mean = np.tile(Y.mean(axis=0), (N, 1))
    for kernel in (lambda A, B: np.zeros((len(A), len(B))), lambda A, B: np.ones((len(A), len(B)), dtype=int)):
        np.testing.assert_allclose(KernelRidge(kernel, lam=lam).fit(X, Y).predict(X), mean, atol=1e-10)
    np.testing.assert_allclose(KernelRidge(Precomputed(), lam=lam).fit(0 * K, Y).predict(0 * K), mean, atol=1e-10)


def test_functions_may_return_lists_and_smaller_types():
    expected = KernelRidge(KERNEL).fit(X, Y).predict(X)
    np.testing.assert_allclose(KernelRidge(lambda A, B: KERNEL(A, B).tolist()).fit(X, Y).predict(X), expected, atol=1e-8)
    single = KernelRidge(Precomputed(), lam=1e-3).fit(K.astype(np.float32), Y).predict(K.astype(np.float32))
    np.testing.assert_allclose(single, KernelRidge(KERNEL, lam=1e-3).fit(X, Y).predict(X), atol=1e-3)


def test_a_kernel_that_fails_on_new_inputs_says_so():
    ridge = KernelRidge(lambda A, B: np.where(A[:, :1] > 5, np.nan, KERNEL(A, B)), lam=1e-3).fit(X, Y)
    with pytest.raises(ValueError, match="NaN or infinite"):
        ridge.predict(X + 10)


def test_a_class_is_no_kernel():
    for kernel in (Gaussian, Precomputed):
        with pytest.raises(TypeError, match=r"is a class, not a kernel; an instance such as .*\(\) would do"):
            KernelRidge(kernel).fit(X, Y)


# ---------------------------------------------------------------------- folds and scorers

ROWS = np.arange(N)


def search(**options):
    return ConstrainedRegressorCV(Sphere(), **{"kernels": [2.0], "lams": [1e-3, 1e-2], "cv": 3} | options)


SPLIT = [(ROWS[:30], ROWS[30:]), (ROWS[10:], ROWS[:10])]
SAME = {
    "generator": lambda: (pair for pair in SPLIT),
    "iterator": lambda: iter(SPLIT),
    "masks": lambda: [(np.isin(ROWS, train), np.isin(ROWS, test)) for train, test in SPLIT],
    "lists": lambda: [(train.tolist(), test.tolist()) for train, test in SPLIT],
    "unsigned": lambda: [(train.astype(np.uint8), test.astype(np.int16)) for train, test in SPLIT],
    "pandas": lambda: [(pd.Index(train), pd.Series(test)) for train, test in SPLIT],
    "array": lambda: np.array(SPLIT, dtype=object),
}


@pytest.mark.filterwarnings("ignore::lawful.GridEdgeWarning")
@pytest.mark.parametrize("make", SAME.values(), ids=SAME.keys())
def test_folds_in_any_form(make):
    expected = search(cv=SPLIT).fit(X, Y)
    found = search(cv=make()).fit(X, Y)
    np.testing.assert_array_equal(found.cv_results_["error"], expected.cv_results_["error"])


@pytest.mark.filterwarnings("ignore::lawful.GridEdgeWarning")
def test_repeated_and_overlapping_folds():
    once = search(cv=KFold(4)).fit(X, Y)
    twice = search(cv=[fold for fold in KFold(4).split(X) for _ in range(2)]).fit(X, Y)
    np.testing.assert_allclose(twice.best_error_, once.best_error_)
    assert np.isfinite(search(cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)).fit(X, Y).best_error_)
    # a row that is drawn twice counts twice, as weight 2 does
    drawn = np.r_[ROWS[:30], ROWS[:10]]
    double = search(cv=[(drawn, ROWS[30:])], kernels=[KERNEL], lams=[1e-3]).fit(X, Y)
    ridge = KernelRidge(KERNEL, lam=1e-3).fit(X[drawn], Y[drawn])
    free = double.cv_results_["error"][double.cv_results_["law"] == "none"]
    np.testing.assert_allclose(free, np.mean((ridge.predict(X[30:]) - Y[30:]) ** 2, axis=0) / np.var(Y, axis=0))


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        ([], "gives no folds"),
        (iter([]), "gives no folds .an iterator gives them only once"),
        ([(ROWS, [])], "both need at least one"),
        ([(ROWS[:30], ROWS[20:])], "disjoint"),
        ([(ROWS[:30], [99])], "names rows outside"),
        ([(ROWS[:30], [-1])], "names rows outside"),
        ([(ROWS[:30] < 15, ROWS >= 30)], "a mask of 30 truth values for 40 rows"),
        ([(ROWS[:30] * 1.0, ROWS[30:] * 1.0)], "give row numbers"),
        ([([[1, 2]], [3])], "give row numbers"),
        ([(ROWS[:10], ROWS[10:20], ROWS[20:])], "is no pair"),
        (["ab"], "is no pair"),
        ({1: 2}, "is no pair"),
        ([([[1], [2, 3]], [4])], "is no pair"),
        (GroupKFold(3), "'groups' parameter"),
        (None, "will not do"),
        (True, "will not do"),
        (np.nan, "no usable fraction"),
        (0, "cannot make cv=0 folds"),
    ],
)
def test_folds_that_will_not_do(cv, words):
    with pytest.raises(ValueError, match=words):
        search(cv=cv).fit(X, Y)


@pytest.mark.parametrize(
    ("scoring", "words"),
    [
        (lambda c, y: 1.0, r"returned float64 of shape \(\).*give a function"),
        (lambda c, y: abs(c - y).sum(-1), "returned float64 of shape"),
        (lambda c, y: c * np.nan, "NaN or infinite"),
        (lambda c, y: np.log(0 * c), "NaN or infinite"),
        (lambda c, y: "good", "returned <U4"),
        (lambda c, y: None, "returned object"),
        (lambda c: c, "takes 1 positional argument"),
        (mean_squared_error, "fails on arrays"),
        (make_scorer(mean_squared_error), "scores estimators"),
        (get_scorer("r2"), "scores estimators"),
        (Huber, "scores estimators"),
        ("neg_root_mean_squared_error", "unknown scoring"),
        ("explained_variance", "unknown scoring"),
        (3, "unknown scoring"),
        (["r2"], "unknown scoring"),
    ],
)
@pytest.mark.parametrize("select_on", ["unconstrained", "constrained"])
def test_scorers_that_will_not_do(scoring, words, select_on):
    with pytest.raises(ValueError, match=words):
        search(scoring=scoring, select_on=select_on).fit(X, Y)


@pytest.mark.parametrize(
    ("kernels", "words"),
    [
        ([1.0, Gaussian(1.0)], "not a grid of numbers"),
        (None, "kernels holds"),
        ("rbf", "no rule"),
        (Gaussian(np.nan), "length scales above zero"),
        (Gaussian([1.0, 2.0, 3.0]), "length scales of shape"),
        ([np.inf], "kernels holds"),
    ],
)
def test_kernels_that_will_not_do(kernels, words):
    with pytest.raises(ValueError, match=words):
        search(kernels=kernels).fit(X, Y)


@pytest.mark.parametrize("blocks", [[(Sphere(), 3)], [(Sphere(), "y1")], [Sphere()], [("sphere", [0, 1])]])
def test_a_product_of_what_is_no_pair(blocks):
    with pytest.raises(ValueError, match=r"Product takes pairs of a set and its outputs"):
        Product(blocks).fit(Y)


@pytest.mark.parametrize("loss", [Pinball, Huber])
@pytest.mark.parametrize("parameter", [None, "a", np.nan, 0.0, -1.0, [0.1, 0.9], np.inf])
def test_parameters_of_losses(loss, parameter):
    """A quantile of 1.5, or a NaN, was taken without a word."""
    for one in (loss(parameter), Mixed([loss(), loss(parameter)])):
        with pytest.raises(ValueError, match=rf"{loss.__name__}: (quantile|delta)=.* will not do; give a number above 0"):
            ConstrainedRegressor(loss=one).fit(X, Y)
    if loss is Pinball:
        with pytest.raises(ValueError, match=r"quantile=1.5 will not do.*Mixed\(\[Pinball"):
            ConstrainedRegressor(loss=Pinball(1.5)).fit(X, Y)

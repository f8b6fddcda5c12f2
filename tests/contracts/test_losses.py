"""Every loss: the objective is exactly sum_i alpha_i(x) loss(c, y_i), and its derivatives and bounds are right."""

import numpy as np
import pytest
from sklearn.base import clone

from lawful.losses import Absolute, Hinge, Huber, Logistic, Mixed, Pinball, Square, ZeroOne
from lawful.losses.square import inverse_covariance
from lawful.tasks import Tasks

REAL = [Square(confidence="scores"), Absolute(), Huber(0.7), Pinball(0.3)]
BINARY = [Hinge(), Logistic(), ZeroOne()]
LOSSES = [(loss, "real") for loss in REAL] + [(loss, "sign") for loss in BINARY]
SMOOTH = [(loss, kind) for loss, kind in LOSSES if hasattr(loss, "derivative")]


def labels(kind, rng, n=25, T=3):
    Y = rng.standard_normal((n, T))
    return Y if kind == "real" else np.sign(Y)


def objective_of(loss, alpha, Y):
    """The loss trick by hand: regressed encodings are alpha @ Z."""
    Z, atoms = loss.encodings([Y[:, t] for t in range(Y.shape[1])])
    if isinstance(loss, Square):
        loss.metric_ = None
    return loss.objective([alpha @ z for z in Z], atoms)


def name(value):
    return repr(value)


@pytest.mark.parametrize(("loss", "kind"), LOSSES, ids=name)
def test_objective_is_the_weighted_sum_of_losses(loss, kind):
    rng = np.random.default_rng(0)
    Y, alpha = labels(kind, rng), rng.standard_normal((11, 25))
    F = objective_of(loss, alpha, Y)
    c1, c2 = labels(kind, rng, 11), labels(kind, rng, 11)
    brute = [sum((alpha * loss(c[:, [t]], Y[None, :, t])).sum(1) for t in range(3)) for c in (c1, c2)]
    # The square loss is known up to a constant of the row, so differences are compared.
    np.testing.assert_allclose(F.value(c1) - F.value(c2), brute[0] - brute[1], atol=1e-10)


@pytest.mark.parametrize(("loss", "kind"), LOSSES, ids=name)
def test_costs_and_table_agree_with_value(loss, kind):
    rng = np.random.default_rng(1)
    Y, alpha = labels(kind, rng), rng.uniform(0, 1, (6, 25))
    F = objective_of(loss, alpha, Y)
    points = labels(kind, rng, 6)
    np.testing.assert_allclose(np.diag(F.costs(points)), F.value(points), atol=1e-9)
    by_task = sum(np.diag(F.table(t, points[:, t])) for t in range(3))
    np.testing.assert_allclose(by_task, F.value(points), atol=1e-9)


@pytest.mark.parametrize(("loss", "kind"), LOSSES, ids=name)
def test_rows_and_tasks_select(loss, kind):
    rng = np.random.default_rng(2)
    Y, alpha = labels(kind, rng), rng.uniform(0, 1, (6, 25))
    F, c = objective_of(loss, alpha, Y), labels(kind, rng, 6)
    np.testing.assert_allclose(F.rows(np.array([4, 1])).value(c[[4, 1]]), F.value(c)[[4, 1]])
    parts = F.tasks([2]).value(c[:, [2]]) + F.tasks([0, 1]).value(c[:, :2])
    np.testing.assert_allclose(parts, F.value(c), atol=1e-10)


@pytest.mark.parametrize(("loss", "kind"), SMOOTH, ids=name)
def test_gradient_matches_differences(loss, kind):
    rng = np.random.default_rng(3)
    F = objective_of(loss, rng.standard_normal((6, 25)), labels(kind, rng))
    c = rng.standard_normal((6, 3))
    step = 1e-6 * np.eye(3)
    numeric = np.stack([(F.value(c + s) - F.value(c - s)) / 2e-6 for s in step], axis=1)
    np.testing.assert_allclose(F.gradient(c), numeric, atol=1e-5)


@pytest.mark.parametrize(("loss", "kind"), SMOOTH, ids=name)
def test_curvature_majorises(loss, kind):
    """l(d) <= l(c) + l'(c)(d - c) + curvature(c)/2 (d - c)^2 for every d."""
    rng = np.random.default_rng(4)
    y = np.array([1.0, -1.0]) if kind == "sign" else rng.standard_normal(5)
    c, d = np.linspace(-3, 3, 41)[:, None, None] + 0.013, np.linspace(-4, 4, 61)[None, :, None]
    bound = loss(c, y) + loss.derivative(c, y) * (d - c) + loss.curvature(c, y) / 2 * (d - c) ** 2
    assert (loss(d, y) <= bound + 1e-9).all()


@pytest.mark.parametrize("loss", [Absolute(), Pinball(0.3), Pinball(0.9), Hinge()], ids=name)
def test_rounded_corners(loss):
    """Above the loss by at most a width, with the derivatives of its own values, under its own majoriser."""
    width, h = 0.2, 1e-4
    soft = loss.rounded(width)
    y, c = np.array([1.0, -1.0])[:, None], np.linspace(-3, 3, 61)[None, :] + 0.013
    over = soft(c, y) - loss(c, y)
    assert over.min() > 0 and over.max() <= width
    np.testing.assert_allclose(soft.derivative(c, y), (soft(c + h, y) - soft(c - h, y)) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(soft.second(c, y), (soft.derivative(c + h, y) - soft.derivative(c - h, y)) / (2 * h), atol=1e-5)
    d = np.linspace(-4, 4, 41)[:, None, None]
    bound = soft(c, y) + soft.derivative(c, y) * (d - c) + soft.curvature(c, y) / 2 * (d - c) ** 2
    assert (soft(d + 0 * c, y) <= bound + 1e-12).all()


@pytest.mark.parametrize(("loss", "kind"), LOSSES, ids=name)
def test_is_a_parameter_object(loss, kind):
    assert clone(loss).get_params() == loss.get_params()
    assert type(loss).__name__ in repr(loss)


def test_mixture_is_the_sum_of_its_parts():
    rng = np.random.default_rng(5)
    Y, alpha, c = labels("real", rng), rng.standard_normal((7, 25)), rng.standard_normal((7, 3))
    parts = [Square(), Absolute(), Huber(0.5)]
    weights = [1.0, 2.0, 0.5]
    F = objective_of(Mixed(parts, weights), alpha, Y)
    brute = sum(w * (alpha * loss(c[:, [t]], Y[None, :, t])).sum(1) for t, (loss, w) in enumerate(zip(parts, weights)))
    np.testing.assert_allclose(F.value(c), brute, atol=1e-10)


def test_mixture_checks_its_length_and_weights():
    with pytest.raises(ValueError, match="2 losses, but there are 3 outputs"):
        Mixed([Square(), Square()]).encodings([np.ones(2)] * 3)
    with pytest.raises(ValueError, match="positive weight"):
        Mixed([Square(), Square()], weights=[1.0, -1.0]).encodings([np.ones(2)] * 2)


def test_few_distinct_labels_need_few_columns():
    Z, atoms = ZeroOne().encode(np.array([1.0, -1.0, 0.0, 1.0, -1.0]))
    assert Z.shape == (5, 3)
    np.testing.assert_array_equal(atoms, [-1, 0, 1])


class Residuals:
    """A surrogate whose out-of-sample residuals are given."""

    def __init__(self, residuals):
        self._residuals = residuals

    def residuals(self):
        return self._residuals


class TestMetric:
    y = list(np.random.default_rng(6).standard_normal((3, 50)) * [[1.0], [10.0], [0.1]])
    rows = [np.arange(50)] * 3

    def fitted(self, metric, residuals=None, **options):
        loss = Square(metric=metric, **options)
        tasks = Tasks(np.zeros((50, 1)), self.y, self.rows, [np.ones(50)] * 3)
        loss.calibrate(tasks, Residuals(residuals))
        return loss.metric_

    def test_identity_is_the_paper(self):
        assert self.fitted("identity") is None

    def test_variance(self):
        np.testing.assert_allclose(self.fitted("variance"), [1 / v.var() for v in self.y])

    def test_residual(self):
        r = [0.1 * v for v in self.y]
        np.testing.assert_allclose(self.fitted("residual", r), [1 / np.mean(v**2) for v in r])

    def test_full_metric_finds_correlated_errors(self):
        """With many rows the shrunk inverse approaches the true one."""
        rng = np.random.default_rng(7)
        S = np.array([[1.0, 0.6, 0.0], [0.6, 2.0, 0.3], [0.0, 0.3, 0.5]])
        R = rng.multivariate_normal(np.zeros(3), S, 20000)
        errors = (R**2).mean(0)
        M = inverse_covariance([R[:, t] for t in range(3)], [np.arange(20000)] * 3, 20000, errors)
        np.testing.assert_allclose(M, np.linalg.inv(S), atol=0.05)

    def test_full_metric_with_missing_residuals(self):
        rng = np.random.default_rng(8)
        S = np.array([[1.0, 0.7], [0.7, 1.0]])
        R = rng.multivariate_normal(np.zeros(2), S, 6000)
        seen = rng.uniform(size=R.shape) < 0.5
        rows = [np.flatnonzero(seen[:, t]) for t in range(2)]
        errors = np.array([np.mean(R[rows[t], t] ** 2) for t in range(2)])
        M = inverse_covariance([R[rows[t], t] for t in range(2)], rows, 6000, errors)
        np.testing.assert_allclose(M, np.linalg.inv(S), atol=0.25)

    def test_full_metric_without_common_rows_is_diagonal(self):
        rng = np.random.default_rng(9)
        residuals = [rng.standard_normal(20), 3 * rng.standard_normal(30)]
        rows = [np.arange(20), np.arange(20, 50)]
        errors = np.array([np.mean(r**2) for r in residuals])
        M = inverse_covariance(residuals, rows, 50, errors)
        np.testing.assert_allclose(M, np.diag(1 / errors))

    def test_few_rows_are_shrunk_and_stay_positive(self):
        rng = np.random.default_rng(10)
        R = rng.standard_normal((4, 12))
        errors = (R**2).mean(0)
        M = inverse_covariance(list(R.T), [np.arange(4)] * 12, 4, errors)
        scaled = M * np.sqrt(np.outer(errors, errors))
        assert np.linalg.eigvalsh(scaled).min() > 0
        assert np.linalg.eigvalsh(scaled).max() <= 20 + 1e-9  # smallest eigenvalue of the correlation kept at 0.05

    def test_constant_labels_get_a_finite_weight(self):
        loss = Square(metric="variance")
        Y = np.c_[np.full(5, 3.0), np.zeros(5), np.arange(5.0)]
        loss.calibrate(Tasks.of(Y, Y), None)
        assert np.isfinite(loss.metric_).all()
        assert loss.metric_[0] > loss.metric_[2]

    @pytest.mark.parametrize("metric", [np.ones(2), np.array([1.0, 1.0, -1.0]), np.eye(2), np.diag([1.0, 1.0, 0.0])])
    def test_bad_arrays_are_refused(self, metric):
        with pytest.raises(ValueError, match="3 positive weights"):
            self.fitted(metric)

    def test_unknown_words_are_refused(self):
        with pytest.raises(ValueError, match="unknown metric 'mahalanobis'"):
            self.fitted("mahalanobis")
        with pytest.raises(ValueError, match="unknown confidence 'high'"):
            self.fitted("identity", confidence="high")
        with pytest.raises(ValueError, match="predictive variance"):
            self.fitted("identity", confidence="variance")

    def test_diagonal_and_full_metric_give_the_same_objective(self):
        rng = np.random.default_rng(11)
        scores = [np.c_[rng.uniform(0.5, 1, 4), rng.standard_normal(4)] for _ in range(3)]
        weights, c = np.array([1.0, 4.0, 0.25]), rng.standard_normal((4, 3))
        diagonal, full = (Square(m, "scores") for m in (weights, np.diag(weights)))
        diagonal.metric_, full.metric_ = weights, np.diag(weights)
        F, G = diagonal.objective(scores, [None] * 3), full.objective(scores, [None] * 3)
        np.testing.assert_allclose(F.value(c), G.value(c))
        np.testing.assert_allclose(F.gradient(c), G.gradient(c))
        np.testing.assert_allclose(F.costs(c), G.costs(c))

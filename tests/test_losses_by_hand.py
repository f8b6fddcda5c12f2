"""Losses and their objectives against their formulas, written out a number at a time."""

from __future__ import annotations

from math import exp, log, sqrt
from types import SimpleNamespace

import numpy as np
import pytest

from lawful import Absolute, Hinge, Huber, Logistic, Pinball, Square, ZeroOne
from lawful._correlations import shrunk_correlation
from lawful.losses import Mixed
from lawful.losses.base import Loss, separable_objective
from lawful.losses.objective import Objective, SmoothObjective
from lawful.losses.quadratic import Quadratic, QuadraticForm, positive_part_center
from lawful.losses.square import scale_of, shrunk_variances
from lawful.tasks import Tasks

rng = np.random.default_rng(0)
FORMULAS = {  # l(c, y), dl/dc and the curvature of the tightest parabola above that touches at c
    "square": (Square(), lambda c, y: (c - y) ** 2, lambda c, y: 2 * (c - y), lambda c, y: 2.0),
    "absolute": (Absolute(), lambda c, y: abs(c - y), lambda c, y: 1.0 if c > y else -1.0, lambda c, y: 1 / abs(c - y)),
    "huber": (
        Huber(0.7),
        lambda c, y: (c - y) ** 2 / 2 if abs(c - y) <= 0.7 else 0.7 * abs(c - y) - 0.245,
        lambda c, y: max(-0.7, min(0.7, c - y)),
        lambda c, y: min(1.0, 0.7 / abs(c - y)),
    ),
    "pinball": (
        Pinball(0.3),
        lambda c, y: 0.3 * (y - c) if y > c else 0.7 * (c - y),
        lambda c, y: -0.3 if y > c else 0.7,
        lambda c, y: 0.5 / abs(c - y),
    ),
    "hinge": (
        Hinge(),
        lambda c, y: max(0.0, 1 - y * c),
        lambda c, y: -y if y * c < 1 else 0.0,
        lambda c, y: y**2 / (2 * abs(1 - y * c)),
    ),
    "logistic": (
        Logistic(),
        lambda c, y: log(1 + exp(-y * c)),
        lambda c, y: -y / (1 + exp(y * c)),
        lambda c, y: y * (1 / (1 + exp(-y * c)) - 0.5) / c,
    ),
}
VALUES = [-2.7, -1.3, -0.4, 0.2, 0.9, 1.6, 3.1]
LABELS = [-1.0, 0.5, 1.0, 2.0]


@pytest.mark.parametrize("name", FORMULAS)
def test_a_loss_is_its_formula(name):
    loss, *formulas = FORMULAS[name]
    for of, formula in zip((loss, loss.derivative, loss.curvature), formulas):
        found = of(np.array(VALUES)[:, None], np.array(LABELS)[None, :])
        np.testing.assert_allclose(found, [[formula(c, y) for y in LABELS] for c in VALUES], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", [Absolute(), Pinball(0.3), Hinge()], ids=repr)
def test_the_bound_at_a_corner_is_steep_and_finite(loss):
    """Where no parabola touches, one as steep as 1e-9 away from the corner is taken, at either side of it."""
    c = 1 + np.array([0.0, 1e-12, -1e-12])
    steep = (1.0 if isinstance(loss, Absolute) else 0.5) * 1e9
    np.testing.assert_allclose(loss.curvature(c, np.ones(3)), steep, rtol=1e-6)
    np.testing.assert_allclose(loss.curvature(1 + 1e-6 * np.array([1, -1]), np.ones(2)), steep / 1000, rtol=1e-6)


def test_labels_without_a_sign_cost_one_whatever_is_said():
    np.testing.assert_array_equal(Hinge()(np.array([-3.0, 0.0, 2.0]), np.zeros(3)), 1.0)
    np.testing.assert_array_equal(Hinge().derivative(np.array([-3.0, 2.0]), np.zeros(2)), 0.0)
    np.testing.assert_array_equal(Hinge().breakpoints(np.array([-2.0, 0.0, 4.0])), [-0.5, 0.25])


def test_where_huber_bends():
    np.testing.assert_allclose(np.sort(Huber(0.7).breakpoints(np.array([1.0, -2.0]))), [-2.7, -2, -1.3, 0.3, 1, 1.7])
    assert Huber(2.0).curvature(np.array([0.0, 5.0]), np.zeros(2)).tolist() == [1.0, 0.4]


@pytest.mark.parametrize(
    ("loss", "height", "tilt", "slope"), [(Absolute(), 1, 0, 1), (Pinball(0.3), 0.5, 0.2, 1), (Hinge(), 0.5, 0.5, -2)]
)
def test_a_corner_is_rounded_by_a_hyperbola(loss, height, tilt, slope):
    """height sqrt(u^2 + w^2) + tilt u, u what the corner is at zero of."""
    y, w = 2.0, 0.3
    soft = loss.rounded(w)
    for c in (-1.5, 0.3, 0.55, 2.0, 4.0):
        u = 1 - y * c if isinstance(loss, Hinge) else c - y
        length = sqrt(u**2 + w**2)
        at = (np.array(c), np.array(y))
        assert soft(*at) == pytest.approx(height * length + tilt * u)
        assert soft.derivative(*at) == pytest.approx((height * u / length + tilt) * slope)
        assert soft.curvature(*at) == pytest.approx(height * slope**2 / length)
        assert soft.second(*at) == pytest.approx(height * slope**2 * w**2 / length**3)


# ---------------------------------------------------------------------- objectives of scores


ATOMS = [np.array([-1.0, 0.5, 2.0]), np.array([3.0, 4.0])]
SCORES = [np.array([[0.5, 0.3, 0.4], [0.1, -0.2, 0.4]]), np.array([[0.6, 0.4], [1.5, -0.7]])]


def smooth(*losses):
    return separable_objective(list(losses), SCORES, ATOMS)


def by_hand(c, what):
    """(m, T) sums over the atoms."""
    parts = [[sum(s * what(c[i, t], y) for s, y in zip(SCORES[t][i], ATOMS[t])) for t in range(2)] for i in range(2)]
    return np.array(parts)


def test_values_and_slopes_are_sums_over_the_labels():
    F, c = smooth(Huber(0.7), Huber(0.7)), np.array([[0.3, 2.0], [-4.0, 3.6]])
    _, value, slope, curvature = FORMULAS["huber"]
    assert type(F) is SmoothObjective and not F.kinked and F.shape == (2, 2)
    np.testing.assert_allclose(F.value(c), by_hand(c, value).sum(axis=1))
    np.testing.assert_allclose(F.gradient(c), by_hand(c, slope))
    positive = [
        [sum(max(s, 0) * curvature(c[i, t], y) for s, y in zip(SCORES[t][i], ATOMS[t])) for t in range(2)] for i in (0, 1)
    ]
    np.testing.assert_allclose(F.curvature(c), positive)
    np.testing.assert_allclose(F.second(c), by_hand(c, lambda c, y: float(abs(c - y) < 0.7)), atol=1e-6)


def test_a_loss_without_a_bound_is_differenced():
    class Quartic(Loss):
        def __call__(self, c, y):
            return (c - y) ** 4

        def derivative(self, c, y):
            return 4 * (c - y) ** 3

    F, c = smooth(Quartic(), Quartic()), np.array([[0.3, 2.0], [-4.0, 3.6]])
    np.testing.assert_allclose(F.second(c), by_hand(c, lambda c, y: 12 * (c - y) ** 2), rtol=1e-6)
    flat = separable_objective([Quartic()], [np.array([[2.0]])], [np.array([3.0])])  # labels of the size 3
    np.testing.assert_allclose(flat.curvature(np.array([[3.0]])), [[2 * 1e-6 / 9]])
    np.testing.assert_allclose(flat.curvature(np.array([[4.0]])), [[24.0]], rtol=1e-6)


def test_corners_make_an_objective_kinked_until_they_are_rounded():
    F, c = smooth(Absolute(), Huber(0.7)), np.array([[0.3, 2.0], [-4.0, 3.6]])
    assert F.kinked and not SmoothObjective([Huber()], SCORES[:1], ATOMS[:1]).kinked
    soft = F.rounded(0.1)  # of the range of the labels, 3
    np.testing.assert_allclose(
        soft.value(c),
        by_hand(c, lambda c, y: sqrt((c - y) ** 2 + 0.09))[:, 0] + by_hand(c, FORMULAS["huber"][1])[:, 1],
    )
    assert soft.losses[1] is F.losses[1] and soft.doubtful is F.doubtful


def test_without_derivatives_an_objective_is_a_table():
    F = smooth(ZeroOne(), ZeroOne())
    assert type(F) is Objective and not hasattr(F, "gradient")
    np.testing.assert_allclose(F.table(0, np.array([0.5, 7.0])), [[0.9, 1.2], [0.5, 0.3]])
    np.testing.assert_allclose(F.costs(np.array([[0.5, 4.0], [7.0, 3.0]])), [[1.5, 1.6], [2.0, -0.4]])


def test_the_start_is_the_mean_of_the_labels_no_farther_than_they_are_wide():
    F = separable_objective(
        [Huber()] * 2,
        [np.array([[0.5, 1.0], [-3.0, 4.0], [3.0, -2.0], [-1.0, 0.5]]), np.ones((4, 1))],
        [np.array([1.0, 3.0]), np.array([-5.0])],
    )
    np.testing.assert_allclose(F.center[:, 0], [3.5 / 1.5, 5.0, -1.0, 0.0])  # 9 and -3 are cut off; no mean: 0
    np.testing.assert_allclose(F.center[:, 1], -5.0)


@pytest.mark.parametrize(
    ("scores", "doubtful"),
    [
        ([0.5, 0.5], False),
        ([1e-7, 0.0], False),
        ([1e-9, 0.0], True),
        ([-1.0, 0.5], True),
        ([1e9, 1 - 1e9], True),
        ([50, -49], False),
        ([0.75 + 6e-9, 6e-9 - 0.75], True),
        ([0.4 + 6e-9, 6e-9 - 0.4], False),
    ],
)
def test_rows_whose_scores_carry_nothing_are_doubtful(scores, doubtful):
    """Their sum is next to nothing: beside 1, or beside scores that cancel."""
    F = Objective([Huber()] * 2, [np.array([scores]), np.array([[1.0, 1.0]])], [np.arange(2.0)] * 2)
    assert F.doubtful.tolist() == [doubtful]
    swapped = Objective([Huber()] * 2, F.scores[::-1], F.atoms)
    assert swapped.doubtful.tolist() == [doubtful] and swapped.rows(np.array([0])).doubtful.tolist() == [doubtful]


def test_a_mixture_without_weights_weighs_all_alike():
    F = Mixed([Absolute(), Huber(0.7)]).objective(SCORES, ATOMS)
    c = np.array([[0.3, 2.0], [-4.0, 3.6]])
    np.testing.assert_allclose(F.value(c), by_hand(c, lambda c, y: abs(c - y))[:, 0] + by_hand(c, FORMULAS["huber"][1])[:, 1])
    for wrong in ([1.0], [1.0, 0.0], [[1.0, 1.0]]):
        with pytest.raises(ValueError, match=r"one positive weight per output \(2\)"):
            Mixed([Absolute(), Huber()], wrong).encodings([np.ones(2)] * 2)
    Z, atoms = Mixed([Square(), Huber()], [0.1, 2.0]).encodings([np.array([1.0, 2.0]), np.array([5.0, 5.0])])
    assert [z.shape for z in Z] == [(2, 2), (2, 1)] and atoms[1].tolist() == [5.0]


# ---------------------------------------------------------------------- the square loss


def scores_of(a, b):
    return [np.c_[a[:, t], b[:, t]] for t in range(a.shape[1])]


A = np.array([[1.0, 0.5, 2.0], [0.8, 1e-9, 1.0], [0.6, -0.5, 1.2]])
B = np.array([[0.5, -1.0, 3.0], [0.1, 2.0, -1.0], [0.7, 1.5, -2.0]])
VARIANCE = np.array([[1.0, 2.0, 0.5], [0.2, 4.0, 1.0], [3.0, 1.0, 0.0]])
WEIGHTS = np.array([2.0, 0.5, 1.0])
FULL = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 0.5]])
C = rng.standard_normal((3, 3))


def square(metric, confidence):
    loss = Square(metric, confidence)
    loss.metric_ = None if isinstance(metric, str) else np.asarray(metric)
    return loss


@pytest.mark.parametrize("metric", ["identity", WEIGHTS, FULL], ids=["identity", "weights", "matrix"])
@pytest.mark.parametrize("confidence", ["scores", "none", "variance", 0.25])
def test_the_objective_of_the_square_loss(metric, confidence):
    """(c - w)' sqrt(a) M sqrt(a) (c - w); w = b/a or b, a by scores, 1, or 1 / ((1 - s) + s variance)."""
    M = np.eye(3) if isinstance(metric, str) else np.diag(metric) if metric.ndim == 1 else metric
    F = square(metric, confidence).objective(
        scores_of(A, B), [None] * 3, VARIANCE if confidence not in ("scores", "none") else None
    )
    assert F.doubtful.tolist() == [False, True, True]
    for i in range(2 if confidence == "scores" else 3):
        if confidence == "scores":
            a, w = np.where(A[i] > 0, A[i], 0), np.where(A[i] > 0, B[i] / A[i], 0)
        else:
            s = {"none": 0.0, "variance": 1.0}.get(confidence, confidence)
            a, w = 1 / np.maximum((1 - s) + s * VARIANCE[i], 3e-12 * (i == 2)), B[i]
        root = np.diag(np.sqrt(a))
        r = C[i] - w
        assert F.value(C)[i] == pytest.approx(r @ root @ M @ root @ r, rel=1e-9)
        assert F.mass[i] == pytest.approx(a.sum())
    np.testing.assert_allclose(F.unit, np.ones(3) if isinstance(metric, str) else metric)
    assert isinstance(F, QuadraticForm if np.ndim(F.unit) == 2 else Quadratic)


def test_negative_scores_of_the_square_loss():
    """a c^2 - 2 b c, whose constant is that of the outputs with a minimum alone."""
    F = square("identity", "scores").objective(scores_of(A, B), [None] * 3)
    i, c = 2, C[2]
    expected = sum(a * (x - b / a) ** 2 if a > 0 else a * x**2 - 2 * b * x for a, b, x in zip(A[i], B[i], c))
    assert F.value(C)[i] == pytest.approx(expected)
    np.testing.assert_allclose(np.diag(F.costs(C)), F.value(C))
    np.testing.assert_allclose(F.table(1, C[:, 1])[2, 2], -0.5 * c[1] ** 2 - 3 * c[1])
    np.testing.assert_allclose(positive_part_center(A, B)[2], [0.7 / 0.6, 0.0, -2 / 1.2])
    np.testing.assert_allclose(positive_part_center(np.array([[0.0]]), np.array([[1.0]])), [[0.0]])


def test_a_variance_of_zero_is_rounding():
    """Nothing is surer than 1e12 times the least sure output of its row; a row of zeros counts as it is."""
    spread = square("identity", "variance")._spread(np.array([[4.0, 0.0], [0.0, 0.0], [1.0, 1e-11]]))
    np.testing.assert_allclose(spread, [[4.0, 4e-12], [1.0, 1.0], [1.0, 1e-11]])
    np.testing.assert_allclose(square("identity", 0.25)._spread(np.array([[2.0, 0.0]])), [[1.25, 0.75]])


@pytest.mark.parametrize(
    ("confidence", "variance", "labels"),
    [
        ("scores", False, False),
        ("none", False, True),
        ("variance", True, True),
        (0.5, True, True),
        (0, False, True),
        (1.0, True, True),
    ],
)
def test_what_the_square_loss_asks_for(confidence, variance, labels):
    loss = Square(confidence=confidence)
    assert loss.needs_variance is variance and loss.regresses_labels is labels
    expected = B if labels else positive_part_center(A, B)
    np.testing.assert_allclose(loss.center(scores_of(A, B), [None] * 3), expected)
    tasks = Tasks.of(np.arange(4.0)[:, None], rng.standard_normal((4, 2)))
    surrogate = SimpleNamespace(residuals=lambda: [np.ones(4)] * 2)
    if variance:
        with pytest.raises(ValueError, match="needs a predictive variance, which SimpleNamespace does not"):
            Square("identity", confidence).calibrate(tasks, surrogate)
    else:
        Square("identity", confidence).calibrate(tasks, surrogate)


@pytest.mark.parametrize("confidence", [-0.1, 1.1, "sure", None, [0.5]])
def test_confidences_that_are_none(confidence):
    with pytest.raises(ValueError, match="unknown confidence"):
        Square("identity", confidence).calibrate(None, None)


def test_encodings_of_the_square_loss():
    Z, atoms = Square().encode(np.array([3.0, -1.0]))
    assert Z.tolist() == [[1.0, 3.0], [1.0, -1.0]] and atoms is None


# ---------------------------------------------------------------------- the metric


ROWS = 40
R = rng.standard_normal((ROWS, 2)) @ np.array([[1.0, 0.6], [0.0, 0.5]])
Y = 3 * R + 1


def calibrated(metric, **offers):
    loss = Square(metric)
    surrogate = SimpleNamespace(residuals=lambda: list(R.T), **offers)
    loss.calibrate(Tasks.of(np.arange(float(ROWS))[:, None], Y), surrogate)
    return loss.metric_


def precision(extra, errors):
    correlation = shrunk_correlation(list(R.T), [np.arange(ROWS)] * 2, ROWS, extra)
    return np.linalg.inv(correlation * np.sqrt(np.outer(errors, errors)))


def test_every_metric_by_its_definition():
    errors = (R**2).mean(axis=0)
    shrunk = shrunk_variances(list(R.T), errors)
    assert calibrated("identity") is None
    np.testing.assert_allclose(calibrated("variance"), 1 / Y.var(axis=0))
    np.testing.assert_allclose(calibrated("residual"), 1 / errors)
    np.testing.assert_allclose(calibrated("residual_full"), precision(0.0, errors), rtol=1e-9)
    np.testing.assert_allclose(calibrated("shrunk"), precision(0.4, shrunk), rtol=1e-9)
    np.testing.assert_allclose(calibrated("auto"), precision(0.4, shrunk), rtol=1e-9)
    share = np.array([0.5, 0.9])
    noisy = calibrated("auto", noise_share=lambda: share)
    np.testing.assert_allclose(noisy, precision(1 - 0.8 * np.sqrt(np.outer(share, share)), shrunk), rtol=1e-9)
    np.testing.assert_allclose(calibrated("auto", noise_share=lambda: np.array([0.02, 0.02])), 1 / shrunk)
    assert calibrated("auto", noise_share=lambda: np.array([0.03, 0.03])).ndim == 2
    np.testing.assert_allclose(calibrated("shrunk", noise_share=lambda: np.zeros(2)), precision(0.4, shrunk), rtol=1e-9)
    np.testing.assert_array_equal(calibrated([1.0, 2.0]), [1.0, 2.0])
    with pytest.raises(ValueError, match="unknown metric 'residuals'"):
        calibrated("residuals")


def test_variances_are_shrunk_by_what_is_not_known_of_them():
    """Towards the geometric mean, by (T - 1) times the sampling variance of a logarithm over the spread of the logarithms."""
    draws = np.random.default_rng(1)
    residuals = [s * draws.standard_normal(n) for s, n in ((1.0, 12), (1.6, 20), (2.2, 15))]
    errors = np.array([np.mean(r**2) for r in residuals])
    logs = [log(e) for e in errors]
    mean = sum(logs) / 3
    doubt = sum((max(np.mean(r**4) / np.mean(r**2) ** 2, 1.5) - 1) / len(r) for r in residuals) / 3
    factor = 2 * doubt / sum((one - mean) ** 2 for one in logs)
    assert 0.02 < factor < 0.9
    np.testing.assert_allclose(shrunk_variances(residuals, errors), [exp(mean + (1 - factor) * (one - mean)) for one in logs])
    flat = [np.array([1.0, -1.0, 1.0]), np.array([2.0, -2.0, 2.0])]  # a kurtosis of 1 counts as 1.5
    factor = (0.5 / 3) / (2 * log(2) ** 2)
    np.testing.assert_allclose(shrunk_variances(flat, np.array([1.0, 4.0])), 2 * 4.0 ** (np.array([-0.5, 0.5]) * (1 - factor)))


def test_variances_that_say_nothing_stay():
    errors = np.array([1.0, 4.0])
    assert shrunk_variances([np.zeros(5), np.ones(1)], errors) is errors, "no residuals to judge by"
    same = np.array([2.0, 2.0])
    assert shrunk_variances([np.ones(3), np.ones(3)], same) is same
    one_known = shrunk_variances([np.zeros(5), np.array([1.0, -2.0, 1.5])], errors)
    assert one_known[0] > 1 and one_known[1] < 4


def test_the_scale_of_labels():
    assert scale_of(np.array([1.0, 3.0]), np.ones(2)) == pytest.approx(1.0)
    assert scale_of(np.array([1.0, 3.0, 3.0]), np.array([2.0, 1.0, 1.0])) == pytest.approx(1.0)
    assert scale_of(np.array([0.0, 4.0]), np.array([3.0, 1.0])) == pytest.approx(sqrt(3))
    assert scale_of(np.full(3, -5.0), np.ones(3)) == pytest.approx(5e-6)
    assert scale_of(np.zeros(3), np.ones(3)) == 1.0


# ---------------------------------------------------------------------- details of the quadratic


def test_a_quadratic_knows_whether_it_is_convex_and_what_it_was_told():
    w = np.array([[3.0, 4.0], [0.1, -2.0]])
    F = Quadratic.around(w, np.array([[3.0, 1e-9], [1.0, 1.0]]))
    assert F.center is w and not F.doubtful.any(), "b/a would round"
    part = F.rows(np.array([1]))
    np.testing.assert_array_equal(part.center, w[[1]])
    assert part.doubtful.tolist() == [False] and "_convex" in part.__dict__
    flat = Quadratic(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]]))
    assert flat.doubtful.tolist() == [True] and not flat._convex
    assert flat.value(np.array([[3.0, 5.0]])) == pytest.approx(4 - 10)
    assert "_convex" not in flat.rows(np.array([0])).__dict__
    np.testing.assert_array_equal(flat.unit, [1.0, 1.0])


def test_weights_that_are_equal_but_for_rounding():
    a = np.array([[1.0, 1 + 1e-14], [1.0, 1 + 1e-12], [-2.0, -2.0], [0.0, 0.0]])
    F = Quadratic(a, a)
    assert F.isotropic().tolist() == [True, False, False, False]
    assert F.isotropic(True).tolist() == [True, False, True, True]
    Q = np.array([[[1.0, 1e-14], [1e-14, 1.0]], [[1.0, 1e-12], [1e-12, 1.0]], [[2.0, 0.0], [0.0, 2.0 + 1e-11]]])
    assert QuadraticForm(Q, np.zeros((3, 2))).isotropic().tolist() == [True, False, False]


def test_the_bound_of_a_form_does_not_depend_on_units():
    """Gershgorin's, of the correlations: in other units it is the same bound; an output that counts nothing has none."""
    Q = np.array([[[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]])
    bound = QuadraticForm(Q, np.zeros((1, 3))).curvature(np.zeros((1, 3)))
    np.testing.assert_allclose(bound, [[2 * 4 * 1.5, 2 * 1 * 1.5, 0.0]])


def test_a_shared_form_is_m_matrices_for_those_who_ask():
    w = rng.standard_normal((4, 2))
    shared, apart = QuadraticForm(FULL[:2, :2], w), QuadraticForm(np.broadcast_to(FULL[:2, :2], (4, 2, 2)), w)
    assert shared.Q.shape == (4, 2, 2) and shared.form.shape == (2, 2) and apart.form.shape == (4, 2, 2)
    assert shared.shared is not None and apart.shared is None
    assert shared.rows(np.array([0, 3])).form.shape == (2, 2) and shared.recentred(w + 1).form.shape == (2, 2)
    np.testing.assert_allclose(shared.mass, 2.0)
    np.testing.assert_array_equal(shared.unit, np.eye(2))
    assert not shared.doubtful.any() and shared.doubtful.shape == (4,)


def test_singular_forms_are_softened_where_they_are_flat():
    """What Q leaves free stays free: the minimum is where c is."""
    Q = np.array([[[1.0, 1.0], [1.0, 1.0]]])
    soft, back, exists = QuadraticForm(Q, np.zeros((1, 2))).softened(np.full((1, 2), 1e-9))
    np.testing.assert_allclose(back(np.array([[5.0, -5.0]])), [[5.0, -5.0]], rtol=1e-9)
    np.testing.assert_allclose(soft.value(np.array([[5.0, -5.0]])), 0.0, atol=1e-12)
    np.testing.assert_allclose(back(np.array([[1.0, 1.0]])), [[0.0, 0.0]], atol=1e-8)
    assert exists.tolist() == [True]


def test_only_the_square_loss_asks_for_more_than_scores():
    """A variance that nobody needs costs n^2 operations for each predicted row."""
    for loss in (Absolute(), Huber(), Hinge(), Logistic(), Pinball(), ZeroOne()):
        assert not loss.needs_variance and not loss.regresses_labels
    for confidence, needed, direct in (
        ("scores", False, False),
        ("none", False, True),
        ("variance", True, True),
        (0.5, True, True),
    ):
        loss = Square(confidence=confidence)
        assert loss.needs_variance == needed and loss.regresses_labels == direct

"""Every kind of loss on every kind of set, through the estimator, against brute force over dense points of the set."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from lawful import (
    Absolute,
    Box,
    ConstrainedRegressor,
    DecodingWarning,
    Equations,
    Hinge,
    Huber,
    Inflated,
    Intersection,
    KernelRidge,
    Logistic,
    Mixed,
    Penalized,
    Pinball,
    PointCloud,
    Product,
    Reals,
    Sphere,
    Square,
    Union,
    ZeroOne,
)  # fmt: skip
from lawful.kernels import Gaussian

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (40, 1))
Y = np.hstack([np.cos(X), np.sin(X)]) + 0.05 * RNG.standard_normal((40, 2))
LABELS = np.where(Y > 0, 1.0, -1.0)
NEW = np.linspace(-3, 3, 25)[:, None]
RIDGE = KernelRidge(Gaussian(1.0), lam=1e-2)
ANGLES = np.linspace(0, 2 * np.pi, 20001)
CIRCLE = np.c_[np.cos(ANGLES), np.sin(ANGLES)]
SQUARE = np.stack(np.meshgrid(*[np.linspace(-0.9, 0.9, 121)] * 2), axis=-1).reshape(-1, 2)
CLOUD = np.random.default_rng(1).standard_normal((300, 2))

SETS = {
    "equations": (Equations("y1**2 + y2**2 = 1"), CIRCLE),
    "sphere": (Sphere(), CIRCLE),
    "box": (Box(-0.9, 0.9), SQUARE),
    "cloud": (PointCloud(CLOUD), CLOUD),
    "product": (Product([(Box(-0.9, 0.9), [0]), (Box(-0.9, 0.9), [1])]), SQUARE),
    "union": (Union([Sphere(), PointCloud(CLOUD)]), np.concatenate([CIRCLE, CLOUD])),
}
SMOOTH = {
    "huber": (Huber(0.3), Y),
    "logistic": (Logistic(), LABELS),
    "mixed": (Mixed([Huber(0.3), Square()], [2.0, 1.0]), Y),
    "mixed kinds": (Mixed([Logistic(), Huber(0.2)]), np.c_[LABELS[:, 0], Y[:, 1]]),
}
KINKED = {"absolute": (Absolute(), Y), "pinball": (Pinball(0.3), Y), "hinge": (Hinge(), LABELS)}
each_set = pytest.mark.parametrize("C, points", SETS.values(), ids=SETS.keys())


def excess(C, points, loss, labels):
    """How much more each answer costs than the best of the points; and the decoding."""
    model = ConstrainedRegressor(C, loss=loss, surrogate=RIDGE).fit(X, labels)
    d = model.decode(NEW)
    assert d.residual.max() <= 1e-8
    np.testing.assert_allclose(d.value, model.objective(NEW).value(d.c), atol=1e-12)
    return d.value - model.objective(NEW).costs(points).min(axis=1), d


@each_set
@pytest.mark.parametrize("loss, labels", SMOOTH.values(), ids=SMOOTH.keys())
def test_smooth_losses_beat_brute_force(loss, labels, C, points):
    worse, d = excess(C, points, loss, labels)
    assert worse.max() <= 1e-7 and (d.status == "ok").all()


@each_set
@pytest.mark.parametrize("loss, labels", KINKED.values(), ids=KINKED.keys())
def test_losses_with_kinks_beat_brute_force(loss, labels, C, points):
    """A minimum at a kink has no small gradient, so a curved set may say not_converged there; the answer is good."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecodingWarning)
        worse, d = excess(C, points, loss, labels)
    assert worse.max() <= (2e-3 if isinstance(C, Equations) else 1e-6)
    assert set(d.status) <= {"ok", "not_converged"}


def test_zero_one_loss_on_a_finite_set():
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    worse, d = excess(PointCloud(corners), corners, ZeroOne(), LABELS)
    assert worse.max() <= 1e-12 and (d.status == "ok").all() and {tuple(c) for c in d.c} <= {tuple(c) for c in corners}


def test_absolute_loss_without_a_constraint_is_the_weighted_median():
    model = ConstrainedRegressor(Reals(), loss=Absolute(), surrogate=RIDGE).fit(X, Y)
    F = model.objective(NEW)
    c = model.predict(NEW)
    for t in range(2):
        costs = F.table(t, Y[:, t])
        np.testing.assert_allclose(F.table(t, c[:, t]).diagonal(), costs.min(axis=1), atol=1e-12)


IMPOSSIBLE = {
    "zero-one on a curve": (
        ZeroOne(),
        Equations("y1**2 + y2**2 = 1"),
        r"the ZeroOne loss over Equations: .*Enumeration would need Equations\.points_",
    ),
    "zero-one on a sphere": (ZeroOne(), Sphere(), r"the ZeroOne loss over Sphere: .*Enumeration would need Sphere\.points_"),
    "absolute in a tube": (Absolute(), Inflated(Sphere()), "Inflation would need a quadratic objective .*use the Square loss"),
    "huber with a price": (Huber(), Penalized(Sphere()), "Penalty would need a quadratic objective .*use the Square loss"),
    "zero-one on an intersection": (ZeroOne(), Intersection([Sphere(), Box(0, 1)]), r"Intersection\.points_"),
    "coupled blocks": (Square([[2.0, 1.0], [1.0, 2.0]]), Product([(Sphere(), [0]), (PointCloud([[1.0]]), [1])]), "couple"),
}


@pytest.mark.parametrize("loss, C, message", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_impossible_pairs_fail_in_fit_and_say_what_is_lacking(loss, C, message):
    with pytest.raises(TypeError, match=message):
        ConstrainedRegressor(C, loss=loss, surrogate=RIDGE).fit(X, LABELS)

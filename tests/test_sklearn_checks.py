"""scikit-learn's own checks of what an estimator must do (those of `KernelRidge` are in `contracts/test_surrogates.py`)."""

from __future__ import annotations

import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from lawful import ConformalRegressor, ConstrainedClassifier, ConstrainedRegressor, ConstrainedRegressorCV, KernelRidge, Reals
from lawful.kernels import Gaussian

ESTIMATORS = [
    ConstrainedRegressor(),
    ConstrainedRegressor(Reals(), surrogate=KernelRidge(Gaussian(2.0), lam=0.003)),
    ConstrainedRegressorCV(),
    ConstrainedClassifier(),
    ConstrainedClassifier(loss="hamming", surrogate=LogisticRegression(solver="newton-cg", tol=1e-10)),
    ConformalRegressor(ConstrainedRegressor(surrogate=KernelRidge(Gaussian(2.0), lam=0.003)), alpha=0.4),
    ConformalRegressor(LinearRegression(), alpha=0.4, method="cv+", cv=3),
    ConstrainedRegressorCV(kernels=[0.5, 2.0], mus=[0.1, 1.0], cv=2, select_on="constrained"),
]


def expected_to_fail(estimator):
    """Which rows are set aside to calibrate on is drawn: a row twice is not a row of weight 2."""
    split = isinstance(estimator, ConformalRegressor) and estimator.method == "split"
    return {"check_sample_weight_equivalence_on_dense_data": "rows to calibrate on are drawn"} if split else {}


@pytest.mark.filterwarnings("ignore:ConformalRegressor. 60 calibration rows are too few for alpha=0.01")  # a check's own alpha
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_to_fail)
def test_scikit_learn_estimator(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it the check of array API input skips itself
    check(estimator)

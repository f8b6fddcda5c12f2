"""scikit-learn's own checks of what an estimator must do (those of `KernelRidge` are in `contracts/test_surrogates.py`)."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from lawful import ConstrainedClassifier, ConstrainedRegressor, ConstrainedRegressorCV, KernelRidge, Reals
from lawful.kernels import Gaussian

ESTIMATORS = [
    ConstrainedRegressor(),
    ConstrainedRegressor(Reals(), surrogate=KernelRidge(Gaussian(2.0), lam=0.003)),
    ConstrainedRegressorCV(),
    ConstrainedClassifier(),
    ConstrainedClassifier(loss="hamming", surrogate=LogisticRegression(solver="newton-cg", tol=1e-10)),
    ConstrainedRegressorCV(kernels=[0.5, 2.0], mus=[0.1, 1.0], cv=2, select_on="constrained"),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_estimator(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it the check of array API input skips itself
    check(estimator)

"""scikit-learn's own checks of what an estimator must do (those of `KernelRidge` are in `contracts/test_surrogates.py`)."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from lawful import ConstrainedRegressor, KernelRidge, Reals


@parametrize_with_checks([ConstrainedRegressor(), ConstrainedRegressor(Reals(), surrogate=KernelRidge(lam=0.003))])
def test_scikit_learn_estimator(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it the check of array API input skips itself
    check(estimator)

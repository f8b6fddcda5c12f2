"""skops saves every model, also those with scikit-learn's regressors inside."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

from lawful import (
    ConstrainedRanker,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    Equations,
    LocalTangent,
    NystromRidge,
    PointCloud,
    Portfolio,
    Sphere,
    Square,
)

pytestmark = pytest.mark.skops
rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (40, 1))
Y = np.c_[np.cos(X), np.sin(X)]
MODELS = [
    ConstrainedRegressor(Equations("y1**2 + y2**2 = 1 + 0*x1")),
    ConstrainedRegressor(PointCloud()),
    ConstrainedRegressor(LocalTangent()),
    ConstrainedRegressor(Sphere(), surrogate=NystromRidge(lam=1e-3, n_centers=10)),
    ConstrainedRegressor(Sphere(), surrogate=RandomForestRegressor(5, random_state=0)),
    ConstrainedRegressor(Sphere(), surrogate=Portfolio(["trees", "linear"])),
    ConstrainedRegressorCV(Equations("y1**2 + y2**2 = 1")),
    ConstrainedRanker(),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_there_and_back(model):
    import skops.io as skops

    model.fit(X, X @ rng.standard_normal((1, 6)) if isinstance(model, ConstrainedRanker) else Y)
    data = skops.dumps(model)
    types = skops.get_untrusted_types(data=data)
    assert all(name.partition(".")[0] in ("lawful", "sklearn", "numpy", "scipy") for name in types)
    again = skops.loads(data, trusted=types)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("loss", [Square(), Square("identity")], ids=str)
@pytest.mark.parametrize("surrogate", [RandomForestRegressor(5, random_state=0), Portfolio(["trees", "linear"])], ids=str)
def test_fitted_on_a_table(surrogate, loss):
    """The table, which skops cannot write, is not part of the model."""
    import skops.io as skops

    table = pd.DataFrame(X, columns=["angle"])
    model = ConstrainedRegressor(Sphere(), loss=loss, surrogate=surrogate).fit(table, Y)
    data = skops.dumps(model)
    again = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    for one, other in zip(again.surrogate_.residuals(), model.surrogate_.residuals()):
        np.testing.assert_array_equal(one, other)

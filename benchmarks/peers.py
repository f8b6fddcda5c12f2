"""What else one would regress with, each as (X, Y) -> predict(X) for Y (n, T) with NaN where not observed.

gp          scikit-learn's GaussianProcessRegressor, one for each output: a length scale per input, noise, marginal likelihood,
            one run of its own optimiser, standardised inputs and outputs.
isotropic   Gaussian kernel ridge, a bandwidth and a penalty for each output by 5-fold cross-validation, standardised inputs.
gpytorch    exact GP on the CPU, the same model as `gp`, 100 steps of Adam; needs gpytorch.
himalaya    KernelRidgeCV with the bandwidth 1/d and a penalty for each output by 5 folds; needs himalaya, takes no gaps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

Array = np.ndarray
Predict = Callable[[Array], Array]

GAMMAS = np.logspace(-3, 1.5, 10)  # times 1/d
ALPHAS = np.logspace(-7, 2, 19)


def each_output(fit: Callable[[Array, Array], Predict]) -> Callable[[Array, Array], Predict]:
    """A regression of one output, for every column of Y on the rows where it was observed."""

    def fit_all(X: Array, Y: Array) -> Predict:
        ones = [fit(X[seen], y[seen]) for y in Y.T for seen in [~np.isnan(y)]]
        return lambda x: np.stack([one(x) for one in ones], axis=1)

    return fit_all


@each_output
def gp(X: Array, y: Array) -> Predict:
    scaler = StandardScaler().fit(X)
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(scaler.transform(X), y)
    return lambda x: model.predict(scaler.transform(x))


@each_output
def isotropic(X: Array, y: Array) -> Predict:
    scaler = StandardScaler().fit(X)
    S, mean = scaler.transform(X), float(y.mean())
    D = euclidean_distances(S, squared=True) / X.shape[1]
    folds = list(KFold(min(5, len(y)), shuffle=True, random_state=0).split(S))
    errors = np.zeros((len(GAMMAS), len(ALPHAS)))
    for i, gamma in enumerate(GAMMAS):
        K = np.exp(-gamma * D)
        for train, test in folds:
            center = y[train].mean()
            values, vectors = np.linalg.eigh(K[np.ix_(train, train)])
            path = (vectors.T @ (y[train] - center))[:, None] / (np.maximum(values, 0)[:, None] + ALPHAS)
            found = center + K[np.ix_(test, train)] @ (vectors @ path)
            errors[i] += ((y[test][:, None] - found) ** 2).sum(axis=0)
    i, j = np.unravel_index(np.argmin(errors), errors.shape)
    gamma = GAMMAS[i] / X.shape[1]
    coef = np.linalg.solve(np.exp(-GAMMAS[i] * D) + ALPHAS[j] * np.eye(len(y)), y - mean)
    return lambda x: mean + np.exp(-gamma * euclidean_distances(scaler.transform(x), S, squared=True)) @ coef


@each_output
def gpytorch(X: Array, y: Array) -> Predict:
    import gpytorch as gpt
    import torch

    torch.set_num_threads(1)
    scaler, mean, unit = StandardScaler().fit(X), y.mean(), y.std() or 1.0
    S, v = torch.tensor(scaler.transform(X)), torch.tensor((y - mean) / unit)

    class Model(gpt.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(S, v, likelihood)
            self.mean = gpt.means.ConstantMean()
            self.kernel = gpt.kernels.ScaleKernel(gpt.kernels.RBFKernel(ard_num_dims=S.shape[1]))

        def forward(self, x):
            return gpt.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    likelihood = gpt.likelihoods.GaussianLikelihood()
    model = Model(likelihood).double()
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    evidence = gpt.mlls.ExactMarginalLogLikelihood(likelihood, model)
    for _ in range(100):
        optimizer.zero_grad()
        loss = -evidence(model(S), v)
        loss.backward()
        optimizer.step()
    model.eval()

    def predict(x: Array) -> Array:
        with torch.no_grad(), gpt.settings.fast_pred_var():
            return model(torch.tensor(scaler.transform(x))).mean.numpy() * unit + mean

    return predict


def himalaya(X: Array, Y: Array) -> Predict:
    from himalaya.kernel_ridge import KernelRidgeCV

    if np.isnan(Y).any():
        raise ValueError("himalaya takes no gaps")
    scaler, mean = StandardScaler().fit(X), Y.mean(axis=0)
    model = KernelRidgeCV(ALPHAS, kernel="rbf", kernel_params={"gamma": 1 / X.shape[1]}, cv=5)
    model.fit(scaler.transform(X), Y - mean)
    return lambda x: np.asarray(model.predict(scaler.transform(x))) + mean

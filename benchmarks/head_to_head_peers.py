"""One system of `head_to_head.py`, run by it in an environment of the system's own; lawful is not needed here.

    python head_to_head_peers.py SYSTEM problem.npz answer.npz

The problem holds X, Y, X_test, law ("circle" or "distillation") and epochs (0: the package's own default). The answer holds the
prediction, and the seconds of processor time to fit and to predict. Inputs and outputs are standardised for whoever does not do
it himself; networks have the settings of their packages: two hidden layers of 64 (ENFORCE: one beyond the first), Adam, and for
KKT-HardNet 80 % of the rows to learn from, the others to watch.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Fitted = Any  # X -> (m, T)


def law(name: str, x: Any, y: Any, stack: Any) -> Any:
    """The equations, for rows of any array library: (..., P), zero where they hold."""
    if name == "circle":
        return stack([y[..., 0] ** 2 + y[..., 1] ** 2 - 1])
    u, v, (y1, y2, y3, y4, y5, y6, y7, y8) = x[..., 0], x[..., 1], (y[..., t] for t in range(8))
    balances = [u + v - y1 - y2, 0.697616946 * u - y1 * y3 - y2 * y6, 0.302383054 * u - y1 * y4 - y2 * y7]
    # The balance of the third component follows from the others: the packages need independent equations.
    return stack([*balances, y3 + y4 + y5 - 1, y6 + y7 + y8 - 1])


def enforce(problem: Any) -> Fitted:
    import torch
    from enforce.core.config import ENFORCEConfig
    from enforce.core.model import ENFORCE
    from enforce.engines.train import Trainer, TrainingConfig

    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    X, Y = (torch.as_tensor(problem[name]) for name in ("X", "Y"))
    center, spread = (X.mean(0), X.std(0)), (Y.mean(0), Y.std(0).clamp(min=2e-5))
    config = ENFORCEConfig(input_neurons=X.shape[1], output_neurons=Y.shape[1], inference_tolerance=1e-9)
    name = str(problem["law"])
    model = ENFORCE(
        center, spread, lambda x, y: law(name, x, y, lambda parts: torch.stack(parts, -1)), config, weighting_option=1
    )
    model = model.double()
    for attribute in ("mean_input", "std_input", "mean_output", "std_output"):
        setattr(model, attribute, getattr(model, attribute).double())
    epochs = int(problem["epochs"]) or TrainingConfig.epochs
    Trainer(model, TrainingConfig(epochs=epochs)).fit((X - center[0]) / center[1], (Y - spread[0]) / spread[1])
    model.eval()

    def predict(new: np.ndarray) -> np.ndarray:
        x = (torch.as_tensor(new) - center[0]) / center[1]
        return (model.predict(x)[0] * spread[1] + spread[0]).detach().numpy()

    return predict


def hardnet(problem: Any) -> Fitted:
    import jax
    import jax.numpy as jnp
    from jaxmodel import HighLevelNLPBuilder
    from kkthn.backbone import make_batched_mlp_apply
    from kkthn.projection import make_projection_layer
    from kkthn.training import KKTTrainConfig, train_kkt_hardnet

    jax.config.update("jax_enable_x64", True)
    X, Y, name = problem["X"], problem["Y"], str(problem["law"])
    mean, scale = X.mean(axis=0), X.std(axis=0)

    def equations(parameters: Any, variables: Any) -> Any:
        return law(name, parameters["x"] * scale + mean, variables["y"], lambda parts: jnp.stack(parts, -1))

    model = (
        HighLevelNLPBuilder(dtype=jnp.float64)
        .add_parameter("x", X.shape[1])
        .add_variable("y", Y.shape[1])
        .set_objective(lambda parameters, variables: jnp.sum(variables["y"] ** 2))
        .add_nonlinear_equality(equations, name="law")
        .build(example_params={"x": jnp.zeros((X.shape[1],))}, jit_compile=True)
    )
    epochs = int(problem["epochs"]) or KKTTrainConfig.epochs
    # It must be told when the projection begins, and its documentation does not say: the first half without, then through it.
    config = KKTTrainConfig(epochs=epochs, epoch_mlp=epochs // 2)
    with tempfile.TemporaryDirectory() as folder:
        train_kkt_hardnet(model=model, X=(X - mean) / scale, Y=Y, cfg=config, output_dir=Path(folder))
        found = next(path for path in Path(folder).rglob("*.npz") if "layer_0_W" in np.load(path).files)
        with np.load(found) as arrays:
            depth = sum(key.endswith("_W") for key in arrays.files)
            parameters = [
                {"W": jnp.asarray(arrays[f"layer_{k}_W"]), "b": jnp.asarray(arrays[f"layer_{k}_b"])} for k in range(depth)
            ]
    network, layer = make_batched_mlp_apply(), make_projection_layer(model)

    def predict(new: np.ndarray) -> np.ndarray:
        x = jnp.asarray((new - mean) / scale)
        return np.asarray(layer.project(x, network(parameters, x)))

    return predict


def gpytorch(problem: Any, steps: int = 100) -> Fitted:
    """A multitask GP: one kernel over inputs with a length scale each, a full covariance of outputs, 100 steps of Adam.

    Noise for each output and none beside it: with both, as by default, the package forms the covariance of all values (over
    15 GB for 1600 rows of 9 outputs) and not its Kronecker factors. Variances are left out of predictions.
    """
    import gpytorch as gpt
    import torch

    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    X, Y = (torch.as_tensor(problem[name]) for name in ("X", "Y"))
    center, scale, mean, unit = X.mean(0), X.std(0), Y.mean(0), Y.std(0).clamp(min=1e-12)
    S, V, T = (X - center) / scale, (Y - mean) / unit, Y.shape[1]

    class Model(gpt.models.ExactGP):
        def __init__(self, likelihood: Any) -> None:
            super().__init__(S, V, likelihood)
            self.mean = gpt.means.MultitaskMean(gpt.means.ConstantMean(), num_tasks=T)
            inner = gpt.kernels.RBFKernel(ard_num_dims=S.shape[1])
            self.kernel = gpt.kernels.MultitaskKernel(inner, num_tasks=T, rank=min(T, 4))

        def forward(self, x: Any) -> Any:
            return gpt.distributions.MultitaskMultivariateNormal(self.mean(x), self.kernel(x))

    likelihood = gpt.likelihoods.MultitaskGaussianLikelihood(num_tasks=T, has_global_noise=False)
    model = Model(likelihood)
    model.train(), likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    evidence = gpt.mlls.ExactMarginalLogLikelihood(likelihood, model)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -evidence(model(S), V)
        loss.backward()
        optimizer.step()
    model.eval(), likelihood.eval()

    def predict(new: np.ndarray) -> np.ndarray:
        with torch.no_grad(), gpt.settings.skip_posterior_variances():
            return (model((torch.as_tensor(new) - center) / scale).mean * unit + mean).numpy()

    return predict


SYSTEMS = {"ENFORCE": enforce, "KKT-HardNet": hardnet, "GPyTorch multitask": gpytorch}
LOADED = {  # before the clock starts
    "ENFORCE": ("torch", "enforce.core.model", "enforce.engines.train"),
    "KKT-HardNet": ("jax.numpy", "jaxmodel", "kkthn.backbone", "kkthn.projection", "kkthn.training"),
    "GPyTorch multitask": ("torch", "gpytorch"),
}


def main() -> None:
    name, problem_file, answer_file = sys.argv[1:]
    with np.load(problem_file) as file:
        problem = dict(file)
    for module in LOADED[name]:
        import_module(module)
    start = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        predict = SYSTEMS[name](problem)
    fitted = time.process_time()
    predict(problem["X_test"][:2])  # whoever compiles does it here
    begin = time.process_time()
    prediction = predict(problem["X_test"])
    np.savez(answer_file, prediction=prediction, fit=fitted - start, predict=time.process_time() - begin)


if __name__ == "__main__":
    main()

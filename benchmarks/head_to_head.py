"""Head to head on a circle and on the distillation column: error, violation of the law, seconds to fit and to predict.

    python benchmarks/head_to_head.py [--data FOLDER]      (FOLDER holds distillation/; without it the circle alone)

ENFORCE, KKT-HardNet and GPyTorch's multitask GP are installed from the package index into environments of their own, under
`--envs`; `--python "ENFORCE=path/to/python"` uses one that is there. scikit-learn's kernel ridge (grid search), Gaussian
process and multi-layer perceptron run beside us. All get the same rows; errors are mean nMSE against the truth. Seconds are
of processor time, libraries loaded: a busy machine tells the same, and whoever uses several threads pays for each. Our first
fit in a process also loads compiled code; both are shown.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from pathlib import Path

import numpy as np
from distillation import scaled_grid_ridge  # benchmarks/distillation.py, beside this script
from metrics import VARIED
from peers import gp
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lawful as library
from lawful import ConstrainedRegressor, Equations
from lawful.datasets import load_distillation, make_curve
from lawful.metrics import constraint_violation, normalized_mse

PACKAGES = {
    "ENFORCE": ["enforce-nn", "torch"],
    "KKT-HardNet": ["kkt-hardnet"],
    "GPyTorch multitask": ["gpytorch", "torch"],
}
PEERS = Path(__file__).with_name("head_to_head_peers.py")


def lawful(X, Y, law):
    return ConstrainedRegressor(Equations(law)).fit(X, Y).predict


def ridge(X, Y, law):
    scale = Y.std(axis=0)
    search = scaled_grid_ridge(0).fit(X, Y / scale)
    return lambda x: search.predict(x) * scale


def perceptron(X, Y, law):
    mean, scale = Y.mean(axis=0), Y.std(axis=0)
    network = make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(64, 64), max_iter=2000, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(X, (Y - mean) / scale)
    return lambda x: network.predict(x) * scale + mean


HERE = {
    "lawful, first fit": lawful,  # loads what was compiled; the second does not
    "lawful": lawful,
    "scikit-learn KernelRidge": ridge,
    "scikit-learn GP": lambda X, Y, law: gp(X, Y),
    "scikit-learn MLP": perceptron,
}


def here(fit, problem):
    start = time.process_time()
    predict = fit(problem["X"], problem["Y"], problem["equations"])
    fitted = time.process_time()
    predict(problem["X_test"][:2])
    begin = time.process_time()
    return predict(problem["X_test"]), fitted - start, time.process_time() - begin


def python_of(name, envs, given):
    """The interpreter of a peer's environment, made and filled when it is not there."""
    if name in given:
        return given[name]
    folder = envs / name.replace(" ", "-")
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES[name]], check=True)
    return python


def there(name, problem, epochs, limit, envs, given):
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder) / "problem.npz", Path(folder) / "answer.npz"
        arrays = {key: problem[key] for key in ("X", "Y", "X_test")}
        np.savez(asked, **arrays, law=problem["law"], epochs=epochs)
        words = [str(python_of(name, envs, given)), str(PEERS), name, str(asked), str(answer)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no answer")
        with np.load(answer) as found:
            return found["prediction"], float(found["fit"]), float(found["predict"])


def circle(seed):
    data = make_curve("circle", 100, noise=0.05, random_state=seed)
    return {**data, "law": "circle", "equations": data.equation, "scored": slice(None)}


def column(folder):
    data = load_distillation(Path(folder) / "distillation")
    return {**data, "X": data.X[:1600], "Y": data.Y[:1600], "law": "distillation", "scored": VARIED}


def compete(title, problem, options, given):
    law = Equations(problem["equations"]).fit(problem["Y"], problem["X"])
    print(f"\n{title}: {len(problem['X'])} rows to learn from, {len(problem['X_test'])} to predict")
    print(f"{'system':<28}{'mean nMSE':>11}{'violation':>11}{'fit s':>9}{'x ours':>8}{'predict s':>11}", flush=True)
    ours = None
    for name in [*HERE, *PACKAGES]:
        if options.systems and name not in options.systems:
            continue
        try:
            if name in HERE:
                c, fit, predict = here(HERE[name], problem)
            else:
                c, fit, predict = there(name, problem, options.epochs, options.limit, options.envs, given)
        except (subprocess.SubprocessError, RuntimeError) as error:
            print(f"{name:<28}no answer: {str(error)[-90:]}", flush=True)
            continue
        ours = fit if name == "lawful" else ours
        scored = problem["scored"]
        error = normalized_mse(problem["Y_test"][:, scored], c[:, scored])
        worst = constraint_violation(law, c, problem["X_test"])
        times = "-" if ours is None else f"{fit / ours:.1f}"
        print(f"{name:<28}{error:>11.2e}{worst:>11.1e}{fit:>9.2f}{times:>8}{predict:>11.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder that holds distillation/")
    parser.add_argument("--envs", type=Path, default=Path(".head_to_head"), help="where the peers' environments are kept")
    parser.add_argument("--python", action="append", default=[], help='an environment that is there: "ENFORCE=path/to/python"')
    parser.add_argument("--systems", nargs="*", help="only these")
    parser.add_argument("--epochs", type=int, default=0, help="of the networks (0: the default of each package)")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for each peer")
    parser.add_argument("--seeds", type=int, default=1, help="circles")
    options = parser.parse_args()
    given = dict(word.split("=", 1) for word in options.python)
    for name in library.__all__:  # names load on first use
        getattr(library, name)
    for seed in range(options.seeds):
        compete(f"circle, 5 % noise, seed {seed}", circle(seed), options, given)
    if options.data:
        compete("distillation column", column(options.data), options, given)


if __name__ == "__main__":
    main()

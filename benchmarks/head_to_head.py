"""Head to head on a circle and on the distillation column: error, violation of the law, seconds to fit and to predict.

    python benchmarks/head_to_head.py [--data FOLDER]             (FOLDER holds distillation/; without it the circle alone)
    python benchmarks/head_to_head.py --data FOLDER --problems column --systems lawful     one system again, beside what is kept
    python benchmarks/head_to_head.py --systems                                            the tables of what is kept

What was measured is kept in the file `--keep`, a system at a time, and the tables are printed from there. ENFORCE, KKT-HardNet
and GPyTorch's multitask GP are installed from the package index into environments of their own, under `--envs`;
`--python "ENFORCE=path/to/python"` uses one that is there. scikit-learn's kernel ridge (grid search), Gaussian process and
multi-layer perceptron run beside us. Networks have the settings of their documentation.

All get the same rows, one thread and the same machine; errors are mean nMSE against the truth. Seconds are of processor time,
libraries loaded, so a busy machine tells the same. `pace` is the time that this machine took for a fixed task (a matrix of
1500 rows factored) right before and after: two rows whose paces differ were measured under different conditions. Our first fit
in a process also loads compiled code; both are shown. "quick" is one kernel for all outputs, chosen on 150 rows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from distillation import scaled_grid_ridge  # benchmarks/distillation.py, beside this script
from metrics import VARIED
from peers import gp
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import lawful as library
from lawful import ConstrainedRegressor, Equations, KernelRidge
from lawful.datasets import load_distillation, make_curve
from lawful.kernels import Gaussian
from lawful.metrics import constraint_violation, normalized_mse

PACKAGES = {
    "ENFORCE": ["enforce-nn", "torch"],
    "KKT-HardNet": ["kkt-hardnet"],
    "GPyTorch multitask": ["gpytorch", "torch"],
}
PEERS = Path(__file__).with_name("head_to_head_peers.py")
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
ONE_THREAD["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def lawful(X, Y, law):
    return ConstrainedRegressor(Equations(law)).fit(X, Y).predict


def quick(X, Y, law):
    """One kernel for all outputs, its length scales chosen on 150 rows: what we suggest where seconds matter."""
    surrogate = KernelRidge(Gaussian(), scales="shared", max_tuning_rows=150)
    return ConstrainedRegressor(Equations(law), surrogate=surrogate).fit(X, Y).predict


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
    "lawful, quick": quick,
    "scikit-learn KernelRidge": ridge,
    "scikit-learn GP": lambda X, Y, law: gp(X, Y),
    "scikit-learn MLP": perceptron,
}


def here(name, problem):
    """Prediction, seconds to fit and to predict, in this process."""
    with threadpool_limits(1):
        start = time.process_time()
        predict = HERE[name](problem["X"], problem["Y"], problem["equations"])
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


def there(name, problem, options):
    """The same of a peer, in a process and an environment of its own."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder) / "problem.npz", Path(folder) / "answer.npz"
        arrays = {key: problem[key] for key in ("X", "Y", "X_test")}
        np.savez(asked, **arrays, law=problem["law"], epochs=options.epochs)
        words = [str(python_of(name, options.envs, options.given)), str(PEERS), name, str(asked), str(answer)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=options.limit, env=os.environ | ONE_THREAD)
        if done.returncode < 0:
            raise RuntimeError(f"ended by signal {-done.returncode}")
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}")
        with np.load(answer) as found:
            return found["prediction"], float(found["fit"]), float(found["predict"])


def circle(seed):
    data = make_curve("circle", 100, noise=0.05, random_state=seed)
    return {**data, "law": "circle", "equations": data.equation, "scored": slice(None)}


def column(folder):
    data = load_distillation(Path(folder) / "distillation")
    return {**data, "X": data.X[:1600], "Y": data.Y[:1600], "law": "distillation", "scored": VARIED}


def pace():
    """Seconds of processor time for a fixed task."""
    A = np.random.default_rng(0).standard_normal((1500, 1500))
    with threadpool_limits(1):
        start = time.process_time()
        np.linalg.cholesky(A @ A.T)
        return time.process_time() - start


def measure(name, problem, options):
    """A row of the table: figures, or why there are none."""
    before = pace()
    try:
        prediction, fit, predict = here(name, problem) if name in HERE else there(name, problem, options)
    except (subprocess.SubprocessError, RuntimeError) as error:
        return {"failure": "over the limit of time" if isinstance(error, subprocess.TimeoutExpired) else str(error)[-90:]}
    scored = problem["scored"]
    return {
        "error": normalized_mse(problem["Y_test"][:, scored], prediction[:, scored]),
        "violation": constraint_violation(
            Equations(problem["equations"]).fit(problem["Y"], problem["X"]), prediction, problem["X_test"]
        ),
        "fit": fit,
        "predict": predict,
        "pace": (before + pace()) / 2,
    }


def keep(file, title, name, row):
    """Written at once, whole or not at all: an interrupted run keeps what it has measured."""
    kept = json.loads(file.read_text()) if file.exists() else {}
    kept.setdefault(title, {})[name] = row
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(kept, indent=1))
    part.replace(file)


def show(title, rows):
    print(f"\n{title}")
    units = {"x ours": "lawful", "x first": "lawful, first fit", "x quick": "lawful, quick"}
    times = "".join(f"{head:>9}" for head in units)
    print(f"{'system':<28}{'mean nMSE':>11}{'violation':>11}{'fit s':>9}{times}{'predict s':>11}{'pace':>8}")
    fits = [rows.get(name, {}).get("fit") for name in units.values()]
    for name in [*HERE, *PACKAGES]:
        row = rows.get(name, {"failure": "not asked"})
        if "failure" in row:
            print(f"{name:<28}no answer: {row['failure']}")
            continue
        times = "".join(f"{row['fit'] / unit:>9.1f}" if unit else f"{'-':>9}" for unit in fits)
        print(
            f"{name:<28}{row['error']:>11.2e}{row['violation']:>11.1e}{row['fit']:>9.2f}{times}"
            f"{row['predict']:>11.3f}{row['pace']:>8.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder that holds distillation/")
    parser.add_argument("--problems", nargs="*", choices=("circle", "column"), default=["circle", "column"])
    parser.add_argument(
        "--systems", nargs="*", help='only these; "lawful" stands for both of our fits; none: print what is kept'
    )
    parser.add_argument("--seeds", type=int, nargs="*", default=[0], help="of circles")
    parser.add_argument("--keep", type=Path, default=Path(".head_to_head/results.json"), help="where results are kept")
    parser.add_argument("--envs", type=Path, default=Path(".head_to_head"), help="where the peers' environments are kept")
    parser.add_argument("--python", action="append", default=[], help='an environment that is there: "ENFORCE=path/to/python"')
    parser.add_argument("--epochs", type=int, default=0, help="of the networks (0: those of their documentation)")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for each peer")
    options = parser.parse_args()
    options.given = dict(word.split("=", 1) for word in options.python)
    for name in library.__all__:  # names load on first use
        getattr(library, name)
    problems = {f"circle, 100 rows, 5 % noise, seed {seed}": partial(circle, seed) for seed in options.seeds}
    problems = problems if "circle" in options.problems else {}
    if options.data and "column" in options.problems:
        problems["distillation column, 1600 rows"] = partial(column, options.data)
    asked = [*HERE, *PACKAGES] if options.systems is None else options.systems
    if unknown := set(asked) - {*HERE, *PACKAGES}:
        parser.error(f"no system {sorted(unknown)}; there are {[*HERE, *PACKAGES]}")
    if "lawful" in asked:
        asked = ["lawful, first fit", *(name for name in asked if name != "lawful, first fit")]
    for title, problem in problems.items():
        for name in asked:
            row = measure(name, problem(), options)
            keep(options.keep, title, name, row)
            print(f"{title}: {name}: " + ", ".join(f"{k} {v:.3g}" if k != "failure" else v for k, v in row.items()), flush=True)
    for title, rows in (json.loads(options.keep.read_text()) if options.keep.exists() else {}).items():
        show(title, rows)


if __name__ == "__main__":
    main()

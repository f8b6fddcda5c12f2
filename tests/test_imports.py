"""`import lawful` is cheap: packages load their names on first use, and nothing that a first fit does not need."""

from __future__ import annotations

import importlib.util
import json
import pickle
import rlcompleter
import subprocess
import sys
from pathlib import Path

import pytest

import lawful

ROOT = Path(lawful.__file__).parent
PACKAGES = [".".join(("lawful", *stub.parent.relative_to(ROOT).parts)) for stub in sorted(ROOT.rglob("__init__.pyi"))]
HEAVY = {"joblib", "matplotlib", "numba", "numpy", "pandas", "rich", "scipy", "sklearn", "sympy", "torch", "tqdm", "typer"}
FIRST_FIT = """
    import numpy as np
    from lawful import Ball, ConstrainedRegressor
    X = np.random.default_rng(0).standard_normal((20, 3))
    ConstrainedRegressor(Ball()).fit(X, X[:, :2]).predict(X)
"""


def fresh(code):
    """What a new interpreter has loaded after these lines, and the CPU seconds that they took."""
    lines = "\n".join(line.strip() for line in code.splitlines())
    script = f"import json, sys, time\nstart = time.process_time()\n{lines}\n"
    script += "took = time.process_time() - start\nprint(json.dumps([took, sorted(sys.modules)]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    took, modules = json.loads(done.stdout.splitlines()[-1])
    return took, set(modules)


def test_import_takes_under_a_second_and_loads_nothing():
    took, modules = fresh("import lawful")
    assert not modules & HEAVY
    assert {name for name in modules if name.partition(".")[0] == "lawful"} == {"lawful", "lawful._lazy"}
    for _ in range(4):  # a busy machine may be slow once
        took = min(took, fresh("import lawful")[0])
    assert took < 1.0


def test_a_first_fit_loads_only_what_it_needs():
    _, modules = fresh(FIRST_FIT)
    assert "lawful.surrogates.ridge" in modules and "sklearn" in modules  # which loads pandas, where there is one
    assert not modules & {"matplotlib", "numba", "sympy", "torch", "typer"}
    unused = ("baselines", "datasets", "experiments", "cli", "surrogates.pairs", "decoders.orders.", "theory", "report")
    assert not [name for name in modules if name.startswith(tuple(f"lawful.{room}" for room in unused))]


def test_a_fit_compiles_nothing_for_the_one_row_that_it_decodes():
    """Compiling takes ten seconds, once on a machine; it waits for rows to predict."""
    fit = """
        import numpy as np
        from lawful import ConstrainedRegressor, Equations
        X = np.random.default_rng(0).uniform(1, 2, (40, 2))
        Y = np.stack([X[:, 0], X[:, 1], X[:, 0] * X[:, 1]], axis=1)
        model = ConstrainedRegressor(Equations("y1 * y2 = y3")).fit(X, Y)
    """
    assert "lawful.decoders._lagrange" not in fresh(fit)[1]
    assert "lawful.decoders._lagrange" in fresh(fit + "model.predict(X)")[1]


def test_a_law_in_words_needs_no_computer_algebra():
    _, modules = fresh(
        """import numpy as np
        from lawful import Equations
        circle = Equations("y1**2 + y2**2 = x1").fit(np.ones((3, 2)), np.ones((3, 1)))
        assert circle.at(np.full((1, 1), 4.0)).residual(np.array([[0.0, 2.0]])) == 0"""
    )
    assert "lawful.sets.laws.law" in modules and not modules & {"sympy", "numba"}


def test_names_that_load_a_compiler():
    """Kernels are compiled when they are called, and the compiler is loaded with the things that have kernels."""
    names = set(lawful.__all__) - {"ConstrainedRanker", "rankings"}
    _, modules = fresh("import lawful\n" + "\n".join(f"lawful.{name}" for name in names))
    assert "lawful.estimators.search" in modules and not modules & {"numba", "sympy"}
    kernels = """
        from numba.core.dispatcher import Dispatcher
        from lawful.baselines import *
        from lawful.decoders import _seeding
        from lawful.decoders.orders import _insertion
        from lawful.surrogates.pairs import compiled
        everything = [*vars(_seeding).values(), *vars(_insertion).values(), *vars(compiled).values()]
        found = [f for f in everything if isinstance(f, Dispatcher)]
        assert len(found) > 10 and not any(f.signatures for f in found)
    """
    assert "lawful.baselines.ranking" in fresh(kernels)[1]


def test_help_loads_no_numbers():
    _, modules = fresh(
        """from typer.testing import CliRunner
        from lawful.cli import app
        pages = [CliRunner().invoke(app, words) for words in (["--help"], ["reproduce", "--help"], ["--version"])]
        assert all(page.exit_code == 0 for page in pages)"""
    )
    assert not modules & (HEAVY - {"rich", "typer"})
    assert {name for name in modules if name.startswith("lawful.experiments")} == {"lawful.experiments"}


def test_experiments_are_loaded_by_the_command_line_alone():
    everything = [name for name in PACKAGES if not name.startswith(("lawful.experiments", "lawful.cli"))]
    _, modules = fresh("\n".join(f"from {name} import *" for name in everything))
    assert "lawful.baselines.ranking" in modules
    assert not [name for name in modules if name.startswith("lawful.experiments")]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there(package):
    module = importlib.import_module(package)
    assert module.__all__ and set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        value = getattr(module, name)
        assert value is getattr(module, name)
        if value is not sys.modules.get(f"{package}.{name}"):
            assert importlib.util.find_spec(f"{package}.{name}") is None, f"importing the module {name} would hide the name"
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing


def test_names_complete():
    found = rlcompleter.Completer({"lawful": lawful}).attr_matches("lawful.Constrained")
    assert {name.removesuffix("(").removesuffix("()") for name in found} == {
        "lawful.ConstrainedClassifier",
        "lawful.ConstrainedRanker",
        "lawful.ConstrainedRegressor",
        "lawful.ConstrainedRegressorCV",
    }
    assert "__version__" in dir(lawful) and "baselines" in dir(lawful)


def test_objects_are_unpickled_where_nothing_is_loaded(tmp_path):
    model = lawful.ConstrainedRegressor(lawful.Product([(lawful.Sphere(), [0, 1])]), loss=lawful.Square())
    (tmp_path / "model").write_bytes(pickle.dumps([model, lawful.ConstrainedRanker]))
    fresh(
        f"""import pickle
        model, ranker = pickle.load(open({str(tmp_path / "model")!r}, "rb"))
        import lawful
        assert type(model) is lawful.ConstrainedRegressor and ranker is lawful.ConstrainedRanker"""
    )

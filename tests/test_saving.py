"""Models in files: what comes back is what was saved, and no file can do harm."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sympy
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

import lawful
from contracts.test_sets import SETS
from lawful import (
    Absolute,
    ConformalRegressor,
    ConstrainedRanker,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    DecodingError,
    DecodingWarning,
    Equations,
    Hinge,
    Huber,
    Inflated,
    Intersection,
    KernelRidge,
    Logistic,
    Mixed,
    ModelFileError,
    NystromRidge,
    Penalized,
    Pinball,
    PointCloud,
    Portfolio,
    Product,
    Sphere,
    Square,
    Union,
    ZeroOne,
    kernels,
    load,
)
from lawful.decoders import Newton, Posterior
from lawful.saving import describe
from lawful.saving.encoding import CannotSave

CIRCLE = "y1**2 + y2**2 = 1"
rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (40, 1))
Y = np.c_[np.cos(X), np.sin(X)] + 0.05 * rng.standard_normal((40, 2))
NEW = np.linspace(-3, 3, 25)[:, None]
FIXTURES = Path(__file__).parent / "models"
RIDGE = KernelRidge(kernels.Gaussian(1.0), lam=1e-3)  # nothing to tune: these tests are about files


def there_and_back(model, path):
    model.save(path)
    return load(path)


def same(model, again, new=NEW):
    one, two = model.decode(new), again.decode(new)
    for field in ("c", "value", "residual", "law_residual", "code", "margin", "std"):
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field))
    assert repr(again) == repr(model)


LAWS = {
    "words": Equations(CIRCLE),
    "several, with inputs": Equations(["y1**2 + y2**2 = 1 + 0*x1", "y1 <= 2 + x1**2"]),
    "tube": Inflated(Equations(CIRCLE), 0.1, "objective"),
    "penalty": Penalized(Sphere(), 0.5),
    "union": Union([Sphere(), Equations("y1 = y2")]),
    "intersection": Intersection([Sphere(), Equations("y1 >= 0")]),
    "product": Product([(Equations("y1**2 = 1"), [0])]),
    "cloud of the outputs": PointCloud(),
    "none": None,
}


@pytest.mark.parametrize("name", LAWS)
def test_laws(tmp_path, name):
    model = ConstrainedRegressor(LAWS[name], surrogate=RIDGE).fit(X, Y)
    again = there_and_back(model, tmp_path / "m")
    same(model, again)
    again.fit(X, Y)  # parameters came back too
    same(model, again)


@pytest.mark.parametrize("name", SETS)
def test_sets(tmp_path, name):
    law, T = SETS[name]
    labels = clone(law).fit(np.zeros((2, T))).sample(40, random_state=0)
    model = ConstrainedRegressor(law, surrogate=RIDGE).fit(X, labels)
    same(model, there_and_back(model, tmp_path / "m"))


LOSSES = [Absolute(), Huber(0.3), Pinball(0.2), Hinge(), Logistic(), ZeroOne(), Mixed([Absolute(), Square()], [1.0, 2.0])]
LOSSES += [Square("shrunk"), Square(np.eye(2) + 0.1), Square(confidence="variance")]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_losses(tmp_path, loss):
    labels = np.sign(Y) if isinstance(loss, Hinge | Logistic | ZeroOne) else Y
    model = ConstrainedRegressor(PointCloud(labels), loss=loss, surrogate=RIDGE).fit(X, labels)
    same(model, there_and_back(model, tmp_path / "m"))


KERNELS = [kernels.Gaussian(), kernels.Laplacian(0.7), kernels.Matern(2.5, np.array([0.4])), kernels.Polynomial(3, 0.5)]
KERNELS += [kernels.Linear(2.0)]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("gaps", [False, True])
def test_kernels(tmp_path, kernel, gaps):
    labels = np.where(rng.uniform(size=Y.shape) < 0.3 * gaps, np.nan, Y)
    ridge = KernelRidge(kernel, random_state=3).fit(X, labels)
    again = there_and_back(ridge, tmp_path / "m")
    np.testing.assert_array_equal(ridge.predict(NEW, return_std=True), again.predict(NEW, return_std=True))
    assert again.random_state == 3


@pytest.mark.parametrize(
    "surrogate", [KernelRidge(tune="evidence"), Portfolio(["kernel", KernelRidge(tune="evidence")])], ids=str
)
def test_averages_of_kernels_and_of_surrogates(tmp_path, surrogate):
    model = ConstrainedRegressor(Sphere(), surrogate=surrogate).fit(X, Y)
    same(model, there_and_back(model, tmp_path / "m"))


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_a_regression_on_centres_can_be_drawn_from_without_its_rows(tmp_path, solver):
    ridge = NystromRidge(kernels.Gaussian(1.0), lam=1e-3, n_centers=10, solver=solver)
    model = ConstrainedRegressor(Sphere(), surrogate=ridge).fit(X, Y)
    again = there_and_back(model, tmp_path / "m")
    same(model, again)
    np.testing.assert_array_equal(model.sample(NEW[:3], 5, random_state=0), again.sample(NEW[:3], 5, random_state=0))
    again.save(tmp_path / "n")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()


@pytest.mark.parametrize("generator", [np.random.default_rng(0), np.random.RandomState(0)], ids=["new", "old"])
def test_a_generator_has_done_its_work(tmp_path, generator):
    model = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(lam=1e-3, random_state=generator)).fit(X, Y)
    again = there_and_back(model, tmp_path / "m")
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    assert again.surrogate.random_state is None


@pytest.mark.parametrize("decoder", ["posterior", "wiener", Newton(n_starts=3), Posterior()], ids=str)
def test_decoders(tmp_path, decoder):
    law = Equations(CIRCLE) if isinstance(decoder, Newton) else PointCloud()
    model = ConstrainedRegressor(law, surrogate=RIDGE, decoder=decoder, on_failure="nan").fit(X, Y)
    same(model, there_and_back(model, tmp_path / "m"))


def test_gram_matrices(tmp_path):
    K = np.exp(-((X - X.T) ** 2))
    model = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(kernels.Precomputed(), lam=1e-3)).fit(K, Y)
    same(model, there_and_back(model, tmp_path / "m"), np.exp(-((NEW - X.T) ** 2)))


def test_names_of_columns(tmp_path):
    inputs = pd.DataFrame({"angle at noon": X[:, 0]})
    outputs = pd.DataFrame(Y, columns=["east", "north"]).assign(up=1.0)
    law = Product([(Equations("east**2 + north**2 = 1 + 0*`angle at noon`"), ["north", "east"]), (Equations("up = 1"), ["up"])])
    model = ConstrainedRegressor(law, surrogate=RIDGE).fit(inputs, outputs)
    again = there_and_back(model, tmp_path / "m")
    new = pd.DataFrame({"angle at noon": NEW[:, 0]})
    same(model, again, new)
    assert list(again.decode(new).to_frame().columns) == list(model.decode(new).to_frame().columns)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(pd.DataFrame({"noon": NEW[:, 0]}))
    assert describe(tmp_path / "m")["inputs"] == ["angle at noon"]


def test_one_column_without_an_axis(tmp_path):
    model = ConstrainedRegressor(Equations("y1 >= 0"), surrogate=RIDGE).fit(X, Y[:, 0])
    again = there_and_back(model, tmp_path / "m")
    assert again.predict(NEW).shape == (25,)
    np.testing.assert_array_equal(model.predict(NEW), again.predict(NEW))


def test_search(tmp_path):
    model = ConstrainedRegressorCV(Equations(CIRCLE), kernels=[1.0, 2.0], deltas=[0.1, 1.0]).fit(X, Y)
    again = there_and_back(model, tmp_path / "m")
    same(model, again)
    assert str(again.best_params_) == str(model.best_params_) and again.best_error_ == model.best_error_
    assert list(again.cv_results_) == list(model.cv_results_)
    np.testing.assert_array_equal(again.cv_results_["error"], model.cv_results_["error"])
    np.testing.assert_array_equal(again.lam_path_.lam, model.lam_path_.lam)


@pytest.mark.parametrize("prior", [None, "item_bias", "factors"])
def test_rankers(tmp_path, prior):
    R = X @ rng.standard_normal((1, 6)) + 0.1 * rng.standard_normal((40, 6))
    R[rng.uniform(size=R.shape) < 0.5] = np.nan
    ranker = ConstrainedRanker(prior).fit(X, R)
    again = there_and_back(ranker, tmp_path / "m")
    one, two = ranker.decode(NEW, ratings=R[:25]), again.decode(NEW, ratings=R[:25])
    np.testing.assert_array_equal(one.order, two.order)
    np.testing.assert_array_equal(one.objective, two.objective)
    alone = there_and_back(ranker.surrogate_, tmp_path / "n")
    np.testing.assert_array_equal(alone.pair_scores(NEW, [[0, 1]]), ranker.surrogate_.pair_scores(NEW, [[0, 1]]))


def test_a_ranker_that_keeps_no_coefficients_says_what_would_do(tmp_path):
    R = X @ rng.standard_normal((1, 6))
    with pytest.raises(CannotSave, match="larger max_memory"):
        ConstrainedRanker(None, pairs="all", max_memory=1.0).fit(X, R).save(tmp_path / "m")


# ---------------------------------------------------------------------- what cannot be saved


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            ConstrainedRegressor(Equations(gamma=lambda c: c[:, 0] - c[:, 1]), surrogate=RIDGE),
            r"gamma is the function .*as a string",
        ),
        (ConstrainedRegressor(surrogate=KernelRidge(lambda A, B: A @ B.T, lam=1.0)), "kernel"),
        (ConstrainedRegressor(Equations(sympy.Symbol("y1") - sympy.Symbol("y2")), surrogate=RIDGE), "as a string"),
        (ConstrainedRegressor(Sphere(), surrogate=Ridge()), "skops"),
        (ConstrainedRegressor(Sphere(), surrogate=Portfolio(["linear"], cv=2)), "skops"),
        (ConstrainedRegressorCV(Sphere(), kernels=[1.0], scoring=lambda c, y: (c - y) ** 2), "code cannot be saved"),
        (ConstrainedRegressorCV(Sphere(), kernels=[1.0], cv=KFold(3)), r"cv is KFold\(.*folds in a list"),
        (ConstrainedRegressor(Sphere(np.longdouble(1)), surrogate=RIDGE), r"radius: an array of type \w+ cannot be stored"),
    ],
    ids=["callable law", "callable kernel", "sympy", "scikit-learn", "lines", "scoring", "folds", "long double"],
)
def test_what_cannot_be_saved_says_what_would_do(tmp_path, model, message):
    with pytest.raises(TypeError, match=message):
        model.fit(X, Y).save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_not_fitted(tmp_path):
    with pytest.raises(ValueError, match="call fit first"):
        ConstrainedRegressor().save(tmp_path / "m")


class Own(Sphere):
    """A user's class."""


def test_classes_of_the_user_are_not_saved(tmp_path):
    with pytest.raises(CannotSave, match="test_saving"):
        ConstrainedRegressor(Own(), surrogate=RIDGE).fit(X, Y).save(tmp_path / "m")


# ---------------------------------------------------------------------- the file


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.lawful"
    model = ConstrainedRegressor(Equations(CIRCLE), surrogate=KernelRidge(kernels.Gaussian(1.0), lam=1e-3)).fit(X[:12], Y[:12])
    model.save(path)
    return model, path


def test_the_same_model_is_the_same_file(saved, tmp_path):
    model, path = saved
    model.save(tmp_path / "one")
    load(path).save(tmp_path / "two")
    assert path.read_bytes() == (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_file_can_be_read_without_this_library(saved):
    _, path = saved
    with np.load(path, allow_pickle=False) as arrays:
        manifest = json.loads(zipfile.ZipFile(path).read("manifest.json"))
        assert {f"arrays/{k}" for k in manifest["arrays"]} <= set(arrays.files)
    assert manifest["law"] == CIRCLE and manifest["outputs"] == ["y1", "y2"] and manifest["version"] == 1
    assert manifest["written by"]["numpy"] == np.__version__
    known = describe(path)
    assert known["class"] == "ConstrainedRegressor" and known["arrays"] == len(manifest["arrays"])


def test_an_old_file_survives_a_save_that_fails(saved, tmp_path):
    model, path = saved
    target = tmp_path / "m"
    target.write_bytes(b"old")
    with pytest.raises(TypeError):
        ConstrainedRegressor(Equations(gamma=lambda c: c[:, 0]), surrogate=RIDGE).fit(X, Y).save(target)
    assert target.read_bytes() == b"old"
    os.chmod(target, 0o640)
    (tmp_path / "link").symlink_to(target)
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and target.read_bytes() == path.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o640
    assert {p.name for p in tmp_path.iterdir()} == {"m", "link"}
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "nowhere" / "m")


def test_places_that_no_file_can_have(saved, tmp_path):
    model, path = saved
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file in it"):
        model.save(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"m' cannot be written: there is no folder .*nowhere; make it first"):
        model.save(tmp_path / "nowhere" / "m")
    with pytest.raises(OSError, match=f"'{tmp_path}/a{{300}}'$"):  # not the name that is written to first
        model.save(tmp_path / ("a" * 300))
    with open(path, "rb") as file:
        for odd in (file, None, 3, os.fsencode(path)):
            with pytest.raises(TypeError, match=r"ConstrainedRegressor.save: .* give the path of a file"):
                model.save(odd)
            for read, who in ((load, "load"), (describe, "describe")):
                with pytest.raises(TypeError, match=f"{who}: .* give the path of a file"):
                    read(odd)
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("on_failure", ["warn", "raise"])
def test_loading_is_silent(tmp_path, on_failure):
    """Also where the row of the example cannot be decoded, and where inputs have names."""
    law = Intersection([Equations("east**2 + north**2 = 1"), Equations("east >= 2")])
    frame = pd.DataFrame({"angle at noon": X[:, 0]})
    model = ConstrainedRegressor(law, surrogate=RIDGE, on_failure=on_failure)
    model.fit(frame, pd.DataFrame(Y, columns=["east", "north"])).save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.on_failure == on_failure and list(again.feature_names_in_) == ["angle at noon"]
    with pytest.raises((DecodingError, DecodingWarning)):
        again.predict(frame[:2])


def test_loading_needs_only_what_the_model_uses(saved):
    """A new process; nothing of rankings, algebra systems or the command line is loaded for a regressor."""
    code = f"import sys, lawful; m = lawful.load({str(saved[1])!r}); print(m.predict([[0.5]])); "
    code += "print([n for n in sys.modules if n in ('typer', 'sympy') or n.startswith('lawful.surrogates.pairs')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(saved[0].predict([[0.5]])) in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.lawful")), ids=lambda p: p.stem)
def test_models_of_earlier_versions(path):
    """The history of the format: every file here was written by the version in its name, with its predictions beside it."""
    expected = json.loads(path.with_suffix(".json").read_text())
    found = load(path).predict(np.array(expected["inputs"]))
    np.testing.assert_allclose(found, expected["outputs"], rtol=1e-9, atol=1e-9)


def test_there_is_a_history():
    assert FIXTURES.joinpath("0.1.0-regressor.lawful").is_file() and FIXTURES.joinpath("0.1.0-search.lawful").is_file()


def test_lawful_offers_it():
    assert lawful.load is load and issubclass(ModelFileError, ValueError)


@pytest.mark.parametrize("law", [Equations("y1**2 + y2**2 = 1"), PointCloud()], ids=str)
def test_a_copy_shares_and_a_pickle_compiles_again(law):
    """Sets bound to inputs are copies: they must not compile, or plant, anew."""
    law = law.fit(Y)
    costly = "system_" if isinstance(law, Equations) else "tree_"
    assert getattr(copy.copy(law), costly) is getattr(law, costly)
    again = pickle.loads(pickle.dumps(law))
    assert costly not in law.__getstate__()
    np.testing.assert_array_equal(again.residual(Y), law.residual(Y))


def test_parts_of_a_law_survive_a_pickle():
    parts = Equations(["y1 = 1", "y2 = 2"]).fit(Y).separate()
    again = pickle.loads(pickle.dumps(parts))
    for (one, _), (two, _) in zip(parts, again):
        np.testing.assert_array_equal(one.residual(Y[:, :1]), two.residual(Y[:, :1]))


@pytest.mark.parametrize(
    "constraint", [lawful.LearnedEquations(noise=0.02), lawful.LocalTangent(), lawful.KernelSet()], ids=repr
)
def test_learned_laws(constraint, tmp_path):
    """What was learned is kept; nothing is learned again."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (150, 1))
    Y = np.c_[np.cos(x), np.sin(x)] + 0.02 * rng.standard_normal((150, 2))
    model = lawful.ConstrainedRegressor(constraint).fit(x, Y)
    model.save(tmp_path / "learned.lawful")
    again = lawful.load(tmp_path / "learned.lawful")
    np.testing.assert_array_equal(again.predict(x[:20]), model.predict(x[:20]))
    assert getattr(again.constraint_, "equations_", None) == getattr(model.constraint_, "equations_", None)


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_prediction_sets_come_back(tmp_path, method):
    model = ConformalRegressor(ConstrainedRegressor(Equations(CIRCLE), surrogate=RIDGE), 0.2, method=method, random_state=0)
    model.fit(X, Y).save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_array_equal(again.predict_set(NEW).intervals(), model.predict_set(NEW).intervals())
    np.testing.assert_array_equal(again.predict_bound(NEW, "lower"), model.predict_bound(NEW, "lower"))
    assert describe(tmp_path / "model")["law"] == CIRCLE

"""`lawful.scale` on a cluster of two processes: the ridge of one process, whatever the collection, and whoever dies on the way.

Run by `make test-dask`. Only the first test needs no dask: it is what somebody without it reads.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from lawful import ConstrainedRegressor, ConstrainedRegressorCV, Huber, KernelRidge, NystromRidge, Sphere, load, scale
from lawful.kernels import Gaussian, Matern
from lawful.scale.spreading import require_room

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # dask's own calls of pandas
N, PARTS = 6000, 8
GIVEN = {"kernel": Matern(2.5, 1.5), "lam": 1e-6}


def data(n=N, seed=0):
    """The unit circle at an angle that two inputs decide, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    angle = X[:, 0] + 0.3 * X[:, 1]
    return X, np.c_[np.cos(angle), np.sin(angle)] + 0.1 * rng.standard_normal((n, 2))


X, Y = data()
CENTERS = X[:100]


def chunked(values, parts=PARTS):
    import dask.array as da

    return da.from_array(values, chunks=(len(values) // parts, *values.shape[1:]))


def coefficients(ridge):
    """(M + 1, T) in the order of the inputs of the centres."""
    order = np.lexsort(ridge.centers_.T)
    return np.concatenate([np.asarray(ridge._solution.coef)[order], ridge._solution.beta[None, :]])


def assert_same_ridge(one, other, tol=1e-8):
    a, b = coefficients(one), coefficients(other)
    assert np.abs(a - b).max() <= tol * np.abs(b).max()
    np.testing.assert_allclose(one.lam_, other.lam_)
    np.testing.assert_allclose(one.loo_mse_, other.loo_mse_, rtol=1e-8, atol=1e-12)


@pytest.fixture(scope="module")
def client():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="4GB") as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_without_dask_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(ImportError, match=r'lawful.scale needs dask.*pip install "lawful\[dask\]"'):
        scale.fit(NystromRidge(), "folder", ["y"])


# ---------------------------------------------------------------------- the same ridge


@pytest.mark.dask
def test_two_workers_give_the_ridge_of_one_process(client):
    ridge = scale.fit(NystromRidge(centers=CENTERS, **GIVEN), chunked(X), chunked(Y, 5), sample=1000)
    assert_same_ridge(ridge, NystromRidge(centers=CENTERS, **GIVEN).fit(X, Y))
    assert ridge.n_seen_ == N and ridge.centers_.shape == CENTERS.shape


def gaps(kind):
    """Labels and weights with gaps: two patterns, scattered, an output that is rare, rows without any label."""
    rng = np.random.default_rng(1)
    labels, weight = Y.copy(), None
    if kind == "sensors":
        labels[: N // 3, 0] = np.nan
    elif kind == "scattered":
        labels = np.c_[Y, Y[:, :1] ** 2]
        labels[rng.random(labels.shape) < 0.3] = np.nan
    elif kind == "rare":
        labels[10:-2, 1] = np.nan
    elif kind == "empty":
        labels[2 * N // PARTS : 4 * N // PARTS] = np.nan
    elif kind == "weights":
        weight = rng.integers(0, 3, N).astype(float)
    elif kind == "weights of labels":
        weight = rng.uniform(0.5, 2, Y.shape)
        labels[::7, 0] = np.nan
    return labels, weight


@pytest.mark.dask
@pytest.mark.parametrize("kind", ["sensors", "scattered", "rare", "empty", "weights", "weights of labels"])
def test_gaps_and_weights(kind):
    labels, weight = gaps(kind)
    given = None if weight is None else chunked(weight)
    ridge = scale.fit(NystromRidge(centers=CENTERS, **GIVEN), chunked(X), chunked(labels), given, sample=1000)
    assert_same_ridge(ridge, NystromRidge(centers=CENTERS, **GIVEN).fit(X, labels, weight))


@pytest.mark.dask
def test_a_fixed_intercept_and_one_column():
    fixed = NystromRidge(centers=CENTERS, intercept=[0.1], **GIVEN)
    ridge = scale.fit(fixed, chunked(X), chunked(Y[:, 0]), sample=1000)
    alone = NystromRidge(centers=CENTERS, intercept=[0.1], **GIVEN).fit(X, Y[:, 0])
    assert_same_ridge(ridge, alone)
    lazy = scale.predict(ridge, chunked(X))
    assert lazy.shape == (N,)
    np.testing.assert_allclose(lazy.compute(), alone.predict(X), atol=1e-9)


@pytest.mark.dask
def test_what_is_chosen_does_not_depend_on_the_cluster(client):
    """Kernel, centres and lambda come from a sample; two processes and the threads of this one agree to the last bit."""
    import dask

    X, Y = data(30_000)
    ridge = scale.fit(NystromRidge(n_centers=100), chunked(X), chunked(Y), sample=22_000)
    assert ridge.held_out_ is not None and ridge.n_seen_ == 30_000
    with dask.config.set(scheduler="threads"):
        again = scale.fit(NystromRidge(n_centers=100), chunked(X), chunked(Y), sample=22_000)
    np.testing.assert_array_equal(coefficients(ridge), coefficients(again))
    usual = NystromRidge(n_centers=100).fit(X, Y)
    new, true = data(2000, seed=3)[0], data(2000, seed=3)[1]
    ours, theirs = (np.mean((one.predict(new) - true) ** 2) for one in (ridge, usual))
    assert ours < 1.02 * theirs


@pytest.mark.dask
def test_a_small_table_is_fitted_as_ever():
    usual = ConstrainedRegressor(Sphere(), surrogate=NystromRidge(n_centers=50)).fit(X[:800], Y[:800])
    ours = scale.fit(ConstrainedRegressor(Sphere(), surrogate=NystromRidge(n_centers=50)), chunked(X[:800]), chunked(Y[:800]))
    np.testing.assert_array_equal(ours.predict(X), usual.predict(X))


@pytest.mark.dask
def test_without_a_surrogate_all_rows_are_learned_from(monkeypatch):
    """However small the sample is: an exact ridge would know no other rows."""
    seen = []

    def fit_tasks(self, tasks):
        seen.append((type(self), len(tasks.seen), tasks.elsewhere.n_seen, self.get_params()["n_centers"]))
        raise InterruptedError

    monkeypatch.setattr(NystromRidge, "fit_tasks", fit_tasks)
    with pytest.raises(InterruptedError):
        scale.fit(ConstrainedRegressor(Sphere()), chunked(X), chunked(Y), sample=1000)
    assert seen == [(NystromRidge, 5000, N, "auto")]


@pytest.mark.dask
def test_a_stream_may_follow():
    half = N // 2
    ridge = scale.fit(NystromRidge(centers=CENTERS, **GIVEN), chunked(X[:half]), chunked(Y[:half]), sample=1000)
    assert_same_ridge(ridge.partial_fit(X[half:], Y[half:]), NystromRidge(centers=CENTERS, **GIVEN).fit(X, Y))


# ---------------------------------------------------------------------- laws, tables, folders


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A Parquet folder of six files."""
    import dask.dataframe as dd

    path = tmp_path_factory.mktemp("table") / "rows"
    frame = pd.DataFrame(np.c_[X, Y], columns=["u", "v", "east", "north"])
    frame.loc[::3, "east"] = np.nan
    dd.from_pandas(frame, npartitions=6).to_parquet(path)
    return path, frame


@pytest.mark.dask
def test_a_law_on_a_parquet_folder(client, folder, tmp_path):
    import dask.dataframe as dd

    path, frame = folder
    ridge = NystromRidge(centers=CENTERS, **GIVEN)
    model = scale.fit(ConstrainedRegressor(Sphere(), surrogate=ridge), str(path), ["east", "north"], sample=2000)
    usual = ConstrainedRegressor(Sphere(), surrogate=ridge).fit(frame[["u", "v"]], frame[["east", "north"]])
    assert model.output_names_ == ["east", "north"] and list(model.feature_names_in_) == ["u", "v"]
    assert_same_ridge(model.surrogate_, usual.surrogate_)
    lazy = scale.predict(model, path)
    assert list(lazy.columns) == ["east", "north"] and isinstance(lazy, dd.DataFrame)
    lazy.to_parquet(tmp_path / "out")
    found = pd.read_parquet(tmp_path / "out")
    np.testing.assert_allclose(found, model.predict(frame[["u", "v"]]), atol=1e-10)
    np.testing.assert_allclose((found**2).sum(axis=1), 1, atol=1e-8)
    np.testing.assert_allclose(found, usual.predict(frame[["u", "v"]]), atol=5e-3)  # the metric is measured on a sample
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(frame[["u", "v"]]), model.predict(frame[["u", "v"]]))


@pytest.mark.dask
def test_statuses_of_a_table_and_of_an_array(folder):
    import dask.dataframe as dd

    path, frame = folder
    table = dd.read_parquet(path)
    model = ConstrainedRegressor(Sphere(), surrogate=NystromRidge(centers=CENTERS, **GIVEN))
    scale.fit(model, table[["u", "v"]], table[["east", "north"]], sample=2000)
    expected = model.decode(frame[["u", "v"]]).to_frame()
    found = scale.decode(model, table, std=True)
    assert list(found.columns) == list(expected.columns)
    pd.testing.assert_frame_equal(found.compute(), expected, check_dtype=False, check_index_type=False, check_names=False)
    model = ConstrainedRegressor(Sphere(), surrogate=NystromRidge(centers=CENTERS, **GIVEN)).fit(X, Y)
    by_array = scale.decode(model, chunked(X)).compute()
    assert (by_array["status"] == model.decode(X).status).all()
    np.testing.assert_allclose(by_array[["y1", "y2"]], model.predict(X), atol=1e-12)


@pytest.mark.dask
def test_names_of_columns_and_weights_in_the_table():
    import dask.dataframe as dd

    weight = np.random.default_rng(2).integers(1, 4, N).astype(float)
    table = dd.from_pandas(pd.DataFrame(np.c_[X, Y[:, 0], weight], columns=["u", "v", "east", "w"]), npartitions=3)
    table = table[table["u"] > -10]  # lengths are not known any more
    ridge = scale.fit(NystromRidge(centers=CENTERS, **GIVEN), table, "east", "w", sample=1000)
    assert_same_ridge(ridge, NystromRidge(centers=CENTERS, **GIVEN).fit(X, Y[:, 0], weight))
    assert list(ridge.feature_names_in_) == ["u", "v"]
    predicted = scale.predict(ridge, table)
    assert list(predicted.columns) == ["y1"] and len(predicted.compute()) == N


@pytest.mark.dask
def test_any_fitted_model_predicts_lazily():
    model = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(kernel=Gaussian(1.0), lam=1e-3)).fit(X[:100], Y[:100])
    np.testing.assert_allclose(scale.predict(model, chunked(X)).compute(), model.predict(X), atol=1e-12)


# ---------------------------------------------------------------------- what may go wrong


def dying(block, folder):
    """The block; but the second time that it is asked for, in the pass that sums, its worker is killed."""
    visits = [Path(folder) / name for name in ("first", "second")]
    for visit in visits:
        if not visit.exists():
            visit.touch()
            if visit is visits[1]:
                os.kill(os.getpid(), signal.SIGKILL)
            break
    return block


@pytest.mark.dask
def test_a_killed_worker_does_not_lose_the_run(client, tmp_path):
    import dask
    import dask.array as da

    size = N // PARTS
    blocks = [dask.delayed(X[i * size : (i + 1) * size]) for i in range(PARTS)]
    blocks[3] = dask.delayed(dying)(blocks[3], str(tmp_path))
    inputs = da.concatenate([da.from_delayed(block, (size, 2), float) for block in blocks])
    before = set(client.scheduler_info()["workers"])
    ridge = scale.fit(NystromRidge(centers=CENTERS, **GIVEN), inputs, chunked(Y), sample=1000)
    assert (tmp_path / "second").exists()
    client.wait_for_workers(2, timeout=30)
    assert set(client.scheduler_info()["workers"]) != before
    assert_same_ridge(ridge, NystromRidge(centers=CENTERS, **GIVEN).fit(X, Y))


@pytest.mark.dask
def test_workers_that_are_too_small_are_told_before(client):
    engine = SimpleNamespace(M=100_000, size=64)
    with pytest.raises(MemoryError, match=r"3 Gram matrices of 100000 centres.*1.2 TB for each thread.*4 GB; fewer n_centers"):
        require_room(engine, 3)
    require_room(SimpleNamespace(M=1000, size=64), 3)


@pytest.mark.dask
def test_errors_say_what_would_do(folder):
    import dask.array as da
    import dask.dataframe as dd

    x, y = chunked(X), chunked(Y)
    ridge = NystromRidge(centers=CENTERS, **GIVEN)
    holes = X.copy()
    holes[2500, 1] = np.nan
    unknown = x[x[:, 0] > -10]
    for error, words, call in (
        (TypeError, "X is a ndarray, which is not of dask; give a dask array", lambda: scale.fit(ridge, X, y)),
        (TypeError, "cannot fit KernelRidge.*give a NystromRidge", lambda: scale.fit(KernelRidge(), x, y)),
        (TypeError, "decoder=3 will not do", lambda: scale.fit(ConstrainedRegressor(decoder=3), x, y)),
        (ValueError, "tol=0 will not do", lambda: scale.fit(NystromRidge(tol=0), x, y)),
        (TypeError, "cannot fit ConstrainedRegressor", lambda: scale.fit(ConstrainedRegressor(surrogate="auto"), x, y)),
        (ValueError, "solver='cg' will not do; solver='direct'", lambda: scale.fit(NystromRidge(solver="cg"), x, y)),
        (ValueError, "dtype='float32' will not do", lambda: scale.fit(NystromRidge(dtype="float32"), x, y)),
        (ValueError, "3000 centres cannot be drawn", lambda: scale.fit(NystromRidge(n_centers=3000), x, y, sample=10)),
        (ValueError, "sample=0 will not do", lambda: scale.fit(ridge, x, y, sample=0)),
        (ValueError, "X has 6000 rows and Y has 3000", lambda: scale.fit(ridge, x, y[::2])),
        (ValueError, "X has 8 partitions and Y has 5", lambda: scale.fit(ridge, unknown, chunked(Y, 5))),
        (ValueError, "X has no column 'west'; it has u, v", lambda: scale.fit(ridge, folder[0], ["west"])),
        (ValueError, "no column of X is left", lambda: scale.fit(ridge, dd.read_parquet(folder[0], columns=["u"]), "u")),
        (ValueError, "partition 3: Input X contains NaN", lambda: scale.fit(ridge, chunked(holes), y, sample=1000)),
        (ValueError, "Huber.*has atoms; Square", lambda: scale.fit(ConstrainedRegressor(loss=Huber()), x, y, sample=1000)),
        (ValueError, "X has one axis", lambda: scale.fit(ridge, da.ones(5), y)),
        (TypeError, "NystromRidge knows no law", lambda: scale.decode(ridge, x)),
    ):
        with pytest.raises(error, match=words):
            call()
    table = dd.from_pandas(folder[1], npartitions=2)
    site = table.assign(site="at " + table["u"].astype(str))
    day = table.assign(day=dd.to_datetime(table["u"] * 0))
    for error, words, call in (
        (ValueError, "partition .: the columns site hold no numbers; .*or drop them", lambda: scale.fit(ridge, site, "east")),
        (ValueError, "partition .: the columns day hold no numbers", lambda: scale.fit(ridge, day, ["east"])),
        (ValueError, "Y names the column 'east' more than once", lambda: scale.fit(ridge, table, ["east", "east"])),
        (TypeError, "Y is a NoneType.*names of columns of X", lambda: scale.fit(ridge, table, None)),
        (ValueError, "no row of the table has an output", lambda: scale.fit(ridge, table[table["u"] > 10], "east")),
        (ValueError, "no row of the table has an output", lambda: scale.fit(ridge, x, y * np.nan)),
    ):
        with pytest.raises(error, match=words):
            call()
    named = NystromRidge(centers=CENTERS, **GIVEN).fit(folder[1][["u", "v"]], Y)
    with pytest.raises(ValueError, match="X has no column 'v', which was an input in fit"):
        scale.predict(named, dd.read_parquet(folder[0], columns=["u"]))


@pytest.mark.dask
def test_paths_that_will_not_do(tmp_path):
    """Missing, empty, not Parquet, files that do not have the same columns, and one that was not written to its end."""
    ridge = NystromRidge(centers=CENTERS, **GIVEN)
    empty, text, mixed, torn = (tmp_path / name for name in ("empty", "x.csv", "mixed", "torn"))
    for place in (empty, mixed, torn):
        place.mkdir()
    text.write_text("u,v\n1,2\n")
    frame = pd.DataFrame(np.c_[X, Y], columns=["u", "v", "east", "north"])
    frame[:3000].to_parquet(mixed / "a.parquet")
    frame[3000:].rename(columns={"v": "w"}).to_parquet(mixed / "b.parquet")
    frame[:3000].to_parquet(torn / "a.parquet")
    (torn / "b.parquet").write_bytes((torn / "a.parquet").read_bytes()[:1000])
    for error, words, path in (
        (FileNotFoundError, "X is '.*nothing', which cannot be read as Parquet.*give a folder", tmp_path / "nothing"),
        (ValueError, "cannot be read as Parquet.*give a folder", empty),
        (ValueError, "cannot be read as Parquet.*not a parquet file", text),
        (ValueError, "a partition could not be read.*'v'.*the same columns", mixed),
        (ValueError, "a partition could not be read.*must be whole", torn),
    ):
        with pytest.raises(error, match=words):
            scale.fit(ridge, path, ["east", "north"], sample=1000)


@pytest.mark.dask
def test_tables_as_they_come(tmp_path):
    """Nullable numbers, None for a gap, whole numbers, truth values, names in an Index, chunks across columns."""
    import dask.array as da
    import dask.dataframe as dd

    frame = pd.DataFrame(np.c_[X, Y], columns=["u", "v", "east", "north"])
    frame["u"], frame["up"] = (100 * frame["u"]).round(), frame["v"] > 0
    frame.loc[::3, "east"] = np.nan
    given = {"centers": frame[["u", "v", "up"]].to_numpy(float)[:50], **GIVEN}
    usual = NystromRidge(**given).fit(frame[["u", "v", "up"]].to_numpy(float), frame[["east", "north"]].to_numpy())
    gaps = frame.astype({"east": object}).where(frame.notna(), None)
    for table in (frame.convert_dtypes(), frame.convert_dtypes(dtype_backend="pyarrow"), gaps):
        dd.from_pandas(table, npartitions=3).to_parquet(tmp_path / "table", overwrite=True)
        for source in (dd.from_pandas(table, npartitions=4), tmp_path / "table"):
            found = scale.fit(NystromRidge(**given), source, pd.Index(["east", "north"]), sample=1000)
            assert_same_ridge(found, usual)
            predicted = scale.predict(found, source).compute()
            np.testing.assert_allclose(predicted, usual.predict(frame[["u", "v", "up"]].to_numpy(float)), atol=1e-9)
    plain = NystromRidge(centers=CENTERS, **GIVEN).fit(X, Y)
    across = da.from_array(X, chunks=(700, 1)), da.from_array(Y, chunks=(1100, 1))
    assert_same_ridge(scale.fit(NystromRidge(centers=CENTERS, **GIVEN), *across, sample=1000), plain)


# ---------------------------------------------------------------------- grids


@pytest.mark.dask
@pytest.mark.parametrize("search", ["ours", "scikit-learn"])
def test_searches_run_on_the_cluster(client, search):
    def made():
        if search == "ours":
            return ConstrainedRegressorCV(Sphere(), kernels=[0.5, 1, 2, 4, 8, 16, 32], cv=3, n_jobs=2)
        model = ConstrainedRegressor(Sphere(), surrogate=KernelRidge(kernel=Gaussian(1.0)))
        return GridSearchCV(model, {"surrogate__lam": [1e-4, 1e-3, 1e-2]}, cv=3)

    here = made().fit(X[:90], Y[:90])
    before = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)
    with joblib.parallel_config(backend="dask"):
        there = made().fit(X[:90], Y[:90])
    assert client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter) > before
    assert repr(there.best_params_) == repr(here.best_params_)
    np.testing.assert_allclose(there.predict(X[:50]), here.predict(X[:50]), atol=1e-10)

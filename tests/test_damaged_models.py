"""A thousand damaged model files: each is an error in words, nothing is run, and no more memory is taken than the file has."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from lawful import (
    ConformalRegressor,
    ConstrainedClassifier,
    ConstrainedRanker,
    ConstrainedRegressor,
    ConstrainedRegressorCV,
    Equations,
    KernelRidge,
    Logic,
    ModelFileError,
    NystromRidge,
    kernels,
    load,
)
from lawful.saving import describe

rng = np.random.default_rng(int(os.environ.get("LAWFUL_DAMAGE", "1")))  # other damage: LAWFUL_DAMAGE=2
X = rng.uniform(-3, 3, (12, 1))
Y = np.c_[np.cos(X), np.sin(X)]
FLIPS, CUTS, FIELDS = 400, 200, 400
RAN = []


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "m.lawful"
    law = Equations(["y1**2 + y2**2 = 1", "y1 <= 2 + x1**2"])
    model = ConstrainedRegressor(law, surrogate=KernelRidge(kernels.Gaussian(1.0), lam=1e-3)).fit(X, Y)
    model.save(path)
    return model, path.read_bytes()


def sealed(data):
    """The checksum of everything at the end, as an attacker would put it."""
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


def archive(entries, **options):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as out:
        out.comment = b"0" * 64
        for name, data in entries:
            out.writestr(name, data)
    return sealed(buffer.getvalue())


def opened(data):
    with zipfile.ZipFile(io.BytesIO(data)) as inside:
        return {name: inside.read(name) for name in inside.namelist()}


def refused(path, data, match=None):
    path.write_bytes(data)
    with pytest.raises(ModelFileError, match=match) as error:
        load(path)
    assert str(path) in str(error.value) and len(str(error.value)) > len(str(path)) + 20
    return error.value


def loads(path, data):
    """The model, or None where the file is refused in words."""
    path.write_bytes(data)
    try:
        return load(path)
    except ModelFileError as error:
        assert str(path) in str(error)
        return None


def test_flipped_bits(whole, tmp_path):
    data = whole[1]
    for place in rng.choice(8 * len(data), FLIPS, replace=False):
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << (place % 8)
        refused(tmp_path / "m", bytes(damaged))


def test_cut_short(whole, tmp_path):
    data = whole[1]
    for length in {0, 1, 3, 4, 63, 64, 65, len(data) - 1, *rng.integers(0, len(data), CUTS)}:
        refused(tmp_path / "m", data[:length])


def places(value, path=()):
    """Every place in the tree of a manifest."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


ODD = [
    None,
    True,
    -1,
    10**30,
    1e308,
    "",
    "os.system",
    [],
    {},
    {"$": "object", "class": "Popen"},
    {"$": "array", "number": 10**9},
]
ODD += [{"$": "__class__"}, [[[]]], {"$": "object", "class": "Sphere", "parameters": {}, "fitted": {"project": 1}}, "\x00" * 50]


def changed(manifest, kind):
    """The manifest with one place taken away, or made something else."""
    new = copy.deepcopy(manifest)
    found = list(places(new))[1:]
    path = found[rng.integers(len(found))]
    parent = new
    for key in path[:-1]:
        parent = parent[key]
    if kind == 0:
        del parent[path[-1]]
    else:
        parent[path[-1]] = copy.deepcopy(ODD[rng.integers(len(ODD))])
    return new


def test_wrong_fields(whole, tmp_path):
    """A field is wrong. The checksum says so, always; where it was made right again, by somebody who meant it, the file is an
    error too, or the field is one that predictions do not need."""
    model, data = whole
    inside = opened(data)
    manifest = json.loads(inside.pop("manifest.json"))
    expected, silent, harmless = model.predict(X), 0, 0
    tracemalloc.start()
    for trial in range(FIELDS):
        if trial == 20:  # watching memory takes time
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        new = changed(manifest, trial % 2)
        path = tmp_path / "m"
        forged = archive([("manifest.json", json.dumps(new, indent=1, ensure_ascii=False).encode()), *inside.items()])
        silent += new != manifest and loads(path, forged[:-64] + data[-64:]) is not None
        again = loads(path, forged)
        if again is not None:
            harmless += 1
            np.testing.assert_allclose(again._decode(X, X)[1].c, expected, rtol=1e-6, atol=1e-6)
    assert silent == 0
    assert peak < 200 * len(data), "bounded by the size of the file"
    # all changes of all fields, one by one: 16 % are of fields that nothing needs, 66 of 400 drawn, give or take 8
    assert harmless < FIELDS / 4, "fields that nothing needs"


LABELS = np.c_[X > 0, X > 1].astype(int)
RIDGE = KernelRidge(kernels.Gaussian(1.0), lam=1e-3)
CIRCLE = ConstrainedRegressor(Equations("y1**2 + y2**2 = 1"), surrogate=RIDGE)
MODELS = {
    "regressor": CIRCLE,
    "search": ConstrainedRegressorCV(Equations("y1**2 + y2**2 = 1"), kernels=[1.0], lams=[1e-2], cv=2),
    "sets": ConformalRegressor(CIRCLE, 0.4, random_state=0),
    "classifier": ConstrainedClassifier(Logic("y2 -> y1")),
    "ridge": RIDGE,
    "centres": NystromRidge(kernels.Gaussian(1.0), lam=1e-3, n_centers=6),
    "ranker": ConstrainedRanker(None),
}


def put(value, key, new):
    """Another value under the last place of that name, however deep, or none; states keep theirs in lists of pairs."""
    found = []
    for path in places(value):
        place = value
        for step in path:
            place = place[step]
        if isinstance(place, dict) and key in place:
            found.append((place, key))
        elif isinstance(place, list) and len(place) == 2 and place[0] == key:
            found.append((place, 1))
    place, at = found[-1]
    if new is not None:
        place[at] = new
    elif at == 1:
        place[0] = "odd"
    else:
        del place[at]


@pytest.mark.parametrize(
    ("name", "key", "new"),
    [
        ("regressor", "output_names_", None),
        ("regressor", "output_names_", 3),
        ("regressor", "n_features_in_", 7),
        ("regressor", "mean_map", None),
        ("regressor", "_residuals", {"$": "array", "number": 0}),
        ("search", "output_names_", None),
        ("sets", "scores_", []),
        ("sets", "errors_", [[1.0]]),
        ("classifier", "loss_", "odd"),
        ("classifier", "thresholds_", "odd"),
        ("classifier", "output_names_", None),
        ("ridge", "n_features_in_", 7),
        ("ridge", "s2", "odd"),
        ("centres", "own", {"$": "array", "number": 0}),
    ],
)
def test_what_the_example_does_not_need_is_rehearsed(tmp_path, name, key, new):
    """The example is predicted as it was, and something else that a user will ask for would fail."""
    model = clone(MODELS[name]).fit(X, LABELS if name == "classifier" else Y)
    model.save(tmp_path / "m")
    inside = opened((tmp_path / "m").read_bytes())
    manifest = json.loads(inside.pop("manifest.json"))
    put(manifest["model"], key, new)
    path = tmp_path / "n"
    refused(path, archive([("manifest.json", json.dumps(manifest).encode()), *inside.items()]))
    load(path, check=False)  # else it could not have been noticed


HUGE = [
    ("regressor", "n_tasks_"),
    ("search", "n_tasks_"),
    ("sets", "n_tasks_"),
    ("classifier", "n_tasks_"),
    ("centres", "_widths"),
    ("ranker", "n_items_"),
]


@pytest.mark.parametrize(("name", "key"), HUGE)
def test_numbers_that_room_would_be_made_for(tmp_path, name, key):
    """A few bytes that say that there are so many outputs."""
    model = clone(MODELS[name]).fit(X, {"classifier": LABELS, "ranker": X @ np.ones((1, 4))}.get(name, Y))
    model.save(tmp_path / "m")
    inside = opened((tmp_path / "m").read_bytes())
    manifest = json.loads(inside.pop("manifest.json"))
    place = manifest["model"]["fitted"]["constraint_"] if name == "ranker" else manifest["model"]
    put(place, key, [30_000_000, 1] if key == "_widths" else 30_000_000)
    data = archive([("manifest.json", json.dumps(manifest).encode()), *inside.items()])
    tracemalloc.start()
    refused(tmp_path / "n", data, "fit (it|the model) again|does not fit|knows")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


def test_names_that_are_not_those_of_the_inputs(tmp_path):
    clone(RIDGE).fit(pd.DataFrame(X, columns=["angle"]), Y).save(tmp_path / "m")
    inside = opened((tmp_path / "m").read_bytes())
    manifest = json.loads(inside.pop("manifest.json"))
    put(manifest["model"], "names", ["angle", "more"])
    refused(tmp_path / "n", archive([("manifest.json", json.dumps(manifest).encode()), *inside.items()]), "other names")


def test_errors_do_not_repeat_a_whole_file(whole, tmp_path):
    inside = opened(whole[1])
    manifest = json.loads(inside.pop("manifest.json"))
    manifest["model"]["fitted"]["constraint_"] = {"$": "a" * 100_000}
    error = refused(
        tmp_path / "m", archive([("manifest.json", json.dumps(manifest).encode()), *inside.items()]), "unknown kind"
    )
    assert len(str(error)) < 1000


@pytest.mark.parametrize("kind", [">f8", "g"])
def test_numbers_of_other_machines(tmp_path, kind):
    """Compiled code knows the numbers of this machine: bytes in another order are put in order, long doubles are refused."""
    model = ConstrainedRegressor(Equations(["y1**3 = y1", "y2**2 = 1"]), surrogate=RIDGE).fit(X, Y)
    model.save(tmp_path / "m")
    inside = opened((tmp_path / "m").read_bytes())
    manifest = json.loads(inside.pop("manifest.json"))
    for name, data in inside.items():
        numbers = np.load(io.BytesIO(data))
        buffer = io.BytesIO()
        np.save(buffer, numbers.astype(kind) if numbers.dtype == float else numbers)
        inside[name] = buffer.getvalue()
        manifest["arrays"][name[len("arrays/") : -len(".npy")]] = {
            "sha256": hashlib.sha256(inside[name]).hexdigest(),
            "bytes": len(inside[name]),
        }
    data = archive([("manifest.json", json.dumps(manifest).encode()), *inside.items()])
    if kind == "g" and np.dtype("g").itemsize > 8:
        refused(tmp_path / "n", data, "is no array of numbers")
    else:
        np.testing.assert_array_equal(loads(tmp_path / "n", data).predict(X), model.predict(X))


def test_files_that_were_never_models(whole, tmp_path):
    data, path = whole[1], tmp_path / "m"
    inside = opened(data)
    manifest = json.loads(inside.pop("manifest.json"))

    def text(**new):
        return json.dumps(manifest | new).encode()

    rest = list(inside.items())
    refused(path, b"", "is empty")
    refused(path, pickle.dumps(len), "does not begin")
    refused(path, b"y1,y2\n1,2\n", "does not begin")
    refused(path, archive(rest), "lacks manifest.json")
    refused(path, archive([("manifest.json", text(version=99)), *rest]), "a newer lawful")
    refused(path, archive([("manifest.json", text(version=True)), *rest]), "version")
    refused(path, archive([("manifest.json", text(format="other")), *rest]), "manifest is not")
    refused(path, archive([("manifest.json", b"{"), *rest]), "cannot be read")
    refused(path, archive([("manifest.json", b"[" * 100_000), *rest]), "cannot be read")
    refused(path, archive([("manifest.json", b'{"a": NaN}'), *rest]), "cannot be read")
    refused(path, archive([("manifest.json", b"\xff"), *rest]), "cannot be read")
    refused(path, archive([("manifest.json", text()), *rest[1:]]), "not those that its manifest lists")
    refused(path, archive([("manifest.json", text()), *rest, ("../../evil", b"")]), "no part of a model")
    refused(path, archive([("manifest.json", text()), *rest, ("evil.pkl", b"")]), "no part of a model")
    with pytest.raises(ModelFileError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")
    with pytest.raises(ModelFileError):
        describe(path)


def array_file(header, body=b""):
    text = header.encode()
    text += b" " * (64 - (len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


class Evil:
    def __reduce__(self):
        return RAN.append, ("ran",)


@pytest.mark.parametrize(
    "array",
    [
        array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
        array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", b"\0" * 8),
        array_file("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", pickle.dumps(Evil())),
        array_file("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }", pickle.dumps(Evil())),
        array_file("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'x': " + "(" * 5000 + "}"),
        array_file("__import__('os').system('true')"),
        b"\x93NUMPY\x03\x00" + b"\0" * 20,
        b"",
    ],
    ids=["huge", "negative", "pickle", "structure", "deep", "code", "version", "empty"],
)
def test_arrays_that_lie(whole, tmp_path, array):
    """Right checksums, and an array that claims too much or would run something."""
    inside = opened(whole[1])
    manifest = json.loads(inside.pop("manifest.json"))
    manifest["arrays"]["0"] = {"sha256": hashlib.sha256(array).hexdigest(), "bytes": len(array)}
    inside["arrays/0.npy"] = array
    tracemalloc.start()
    refused(tmp_path / "m", archive([("manifest.json", json.dumps(manifest).encode()), *inside.items()]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * len(whole[1]) and not RAN


def test_zip_bombs(whole, tmp_path):
    inside = opened(whole[1])
    bomb = archive([*inside.items(), ("arrays/99.npy", b"\0" * 50_000_000)], compression=zipfile.ZIP_DEFLATED)
    assert len(bomb) < 200_000
    tracemalloc.start()
    refused(tmp_path / "m", bomb, "compressed")
    # an entry that says it is larger than the file: in the directory at the end
    data = bytearray(whole[1])
    place = data.index(b"PK\x01\x02")
    data[place + 20 : place + 28] = struct.pack("<II", 2**31, 2**31)
    refused(tmp_path / "m", sealed(bytes(data)), "more bytes than it has")
    # two names for the same bytes
    data = bytearray(whole[1])
    first = data.index(b"arrays/1.npy", data.index(b"PK\x01\x02"))
    data[first : first + 12] = b"arrays/0.npy"
    refused(tmp_path / "m", sealed(bytes(data)))
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_indices_that_compiled_code_would_believe(tmp_path):
    R = np.where(rng.uniform(size=(12, 5)) < 0.3, np.nan, X @ rng.standard_normal((1, 5)))
    ConstrainedRanker(None).fit(X, R).save(tmp_path / "m")
    inside = opened((tmp_path / "m").read_bytes())
    manifest = json.loads(inside.pop("manifest.json"))
    table = manifest["model"]["fitted"]["surrogate_"]["fitted"]["table_"]["fitted"]
    for name in ("users", "partner", "ptr", "pair_start"):
        k = table[name]["number"]
        numbers = np.load(io.BytesIO(inside[f"arrays/{k}.npy"])).copy()
        numbers[-1] = 10_000
        buffer = io.BytesIO()
        np.save(buffer, numbers)
        new = copy.deepcopy(manifest)
        new["arrays"][str(k)] = {"sha256": hashlib.sha256(buffer.getvalue()).hexdigest(), "bytes": len(buffer.getvalue())}
        files = inside | {f"arrays/{k}.npy": buffer.getvalue()}
        refused(tmp_path / "n", archive([("manifest.json", json.dumps(new).encode()), *files.items()]), "table of pairs")

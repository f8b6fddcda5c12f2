"""MovieLens: fetched whole or not at all, split without a leak."""

import hashlib
import io
import os
import sys
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import Bunch

from lawful.datasets import fetch_movielens_100k, movielens, movielens_protocol
from lawful.datasets.queries import demographics
from lawful.ratings import similarity
from lawful.surrogates.pairs.factorisation import MatrixFactorization
from lawful.surrogates.pairs.priors import FactorPrior, make_prior


def people(n=60, D=20, seed=0):
    """Invented ratings and users."""
    rng = np.random.default_rng(seed)
    rows, columns = np.nonzero(rng.uniform(size=(n, D)) < 0.5)
    R = sparse.csr_array((rng.integers(1, 6, rows.size).astype(float), (rows, columns)), shape=(n, D))
    jobs = np.array(["artist", "doctor", "lawyer"])
    users = Bunch(
        age=rng.integers(15, 70, n),
        gender=np.array(["F", "M"])[rng.integers(2, size=n)],
        occupation=jobs[rng.integers(3, size=n)],
    )
    return Bunch(ratings=R, users=users)


def settings(protocol, **more):
    kinds = ("demographics",) if protocol == "B" else ("demographics", "similarity", "factors")
    return {"protocol": protocol, "n_train": 40, "n_test": 15, "features": kinds, "n_factors": 4, "random_state": 3, **more}


# ------------------------------------------------------------------------------------------------------------- leaks


def altered(data, split):
    """The same data with every evaluated rating changed."""
    other, R = data.ratings.copy(), split.R_eval
    evaluated = np.repeat(split.test_users, np.diff(R.indptr)), R.indices
    stored = other.tocoo()
    place = {pair: e for e, pair in enumerate(zip(stored.row.tolist(), stored.col.tolist()))}
    at = [place[pair] for pair in zip(*(v.tolist() for v in evaluated))]
    other.data[at] = 6 - other.data[at] + 0.5
    return Bunch(ratings=other, users=data.users), len(at)


@pytest.mark.parametrize("protocol", ["A", "B"])
def test_no_feature_and_no_prior_sees_an_evaluated_rating(protocol):
    data = people()
    a = movielens_protocol(data, **settings(protocol))
    other, count = altered(data, a)
    b = movielens_protocol(other, **settings(protocol))
    assert count == a.R_eval.nnz > 50 and not a.leaky
    assert np.array_equal(a.R_eval.indices, b.R_eval.indices) and not (a.R_eval.data == b.R_eval.data).any()
    for name in ("X_train", "X_test"):
        assert np.array_equal(a[name], b[name])
    for name in ("R_train", "profile_train", "profile_test"):
        assert np.array_equal(a[name].indices, b[name].indices) and np.array_equal(a[name].data, b[name].data)
    for prior in (make_prior("item_bias"), FactorPrior(MatrixFactorization(2), n_folds=3)):
        found = []
        for split in (a, b):
            prior.fit(split.R_train, split.X_train)
            found.append((prior.training_scores().data, prior.scores(split.profile_test, split.X_test)))
        assert np.array_equal(found[0][0], found[1][0]) and np.array_equal(found[0][1], found[1][1])


def test_the_leaky_protocol_leaks_and_says_so():
    data = people()
    a = movielens_protocol(data, **settings("C"))
    b = movielens_protocol(altered(data, a)[0], **settings("C"))
    assert not np.allclose(a.X_test, b.X_test)
    assert a.leaky and "LEAKY" in repr(a) and "LEAKY" in str(a) and "not a result" in f"{a}"
    fair = movielens_protocol(data, **settings("A"))
    assert not fair.leaky and "LEAKY" not in repr(fair) and "protocol A" in repr(fair)


# ------------------------------------------------------------------------------------------------------------ splits


def test_the_parts_make_the_whole():
    data = people()
    split = movielens_protocol(data, **settings("A"))
    assert not set(split.train_users) & set(split.test_users)
    assert ((split.R_train - data.ratings[split.train_users]) != 0).nnz == 0
    together = split.profile_test + split.R_eval
    assert ((together - data.ratings[split.test_users]) != 0).nnz == 0
    assert split.profile_test.nnz + split.R_eval.nnz == data.ratings[split.test_users].nnz
    assert np.array_equal(np.diff(split.profile_test.indptr), np.diff(together.indptr) // 2)
    assert split.X_train.shape == (40, 5 + 40 + 4) and split.X_test.shape == (15, 49) and len(split.feature_names) == 49
    alone = movielens_protocol(data, **settings("B"))
    assert alone.profile_test.nnz == 0 and np.array_equal(alone.R_eval.data, split.R_eval.data)  # the same half is evaluated
    assert movielens_protocol(data, n_train=40, n_test=None).R_eval.shape[0] == 20
    again = movielens_protocol(data, **settings("A", random_state=4))
    assert not np.array_equal(again.train_users, split.train_users)


def test_demographics_are_scaled_by_variable():
    data = people(200)
    train = np.arange(150)
    X, names = demographics(data.users, train)
    assert names == ["age", "gender", "occupation=artist", "occupation=doctor", "occupation=lawyer"]
    assert np.allclose(X[train].mean(axis=0), 0)
    variance = X[train].var(axis=0)
    assert np.allclose([variance[0], variance[1], variance[2:].sum()], 1)


def test_similarity_is_the_damped_cosine_of_centred_ratings():
    R = people(12, 9).ratings
    S = similarity(R[:4], R, damping=2.0)
    for u in range(4):
        for v in range(12):
            c = []
            for w in (u, v):
                r = R.toarray()[w]
                c.append(np.where(r > 0, r - r[r > 0].mean(), 0))
            expected = c[0] @ c[1] / np.sqrt((c[0] @ c[0] + 2) * (c[1] @ c[1] + 2))
            assert S[u, v] == pytest.approx(expected, abs=1e-12)


def test_training_features_follow_the_law_of_test_features():
    """Swapped roles: a training user's similarities have the distribution of a test user's, himself included."""
    data = people(400, 40)
    split = movielens_protocol(data, n_train=200, n_test=200, features="similarity", random_state=0)
    a, b = split.X_train, split.X_test
    assert abs(a.std() / b.std() - 1) < 0.05 and abs(a.mean() - b.mean()) < 0.01
    own = np.diag(a)
    assert np.allclose(own, (a.sum(axis=0) - own) / 199) and own.max() < 0.2  # not near 1


def test_what_cannot_be_done_is_said():
    data = people()
    with pytest.raises(ValueError, match="leaky"):
        movielens_protocol(data, "D", n_train=40, n_test=10)
    with pytest.raises(ValueError, match="demographics"):
        movielens_protocol(data, "A", n_train=40, n_test=10, features=("taste",))
    with pytest.raises(ValueError, match="no profiles"):
        movielens_protocol(data, "B", n_train=40, n_test=10, features=("similarity",))
    with pytest.raises(ValueError, match="the data have 60"):
        movielens_protocol(data, "A", n_train=50, n_test=11)
    with pytest.raises(ValueError, match="strictly between"):
        movielens_protocol(data, "A", n_train=40, n_test=10, profile=1.0)


# ------------------------------------------------------------------------------------------------------------- files


def invented_files():
    return {
        "README": b"licence",
        "u.data": b"1\t1\t5\t10\n2\t3\t1\t11\n1\t2\t3\t12\n",
        "u.genre": b"unknown|0\nDrama|1\n\n",
        "u.info": b"",
        "u.item": "".join(f"{i}|Caf\xe9 {i}|01-Jan-1995||http://x|{i % 2}|1\n" for i in (1, 2, 3)).encode("latin-1"),
        "u.occupation": b"",
        "u.user": b"1|24|M|technician|85711\n2|53|F|other|94043\n",
    }


@pytest.fixture
def archive(monkeypatch):
    """GroupLens on this machine, with invented content; the paths that it was asked for."""
    content = invented_files()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        for name, data in content.items():
            out.writestr(f"ml-100k/{name}", data)
    monkeypatch.setattr(movielens, "ZIP_MD5", hashlib.md5(buffer.getvalue()).hexdigest())
    monkeypatch.setattr(movielens, "DATA_MD5", hashlib.md5(content["u.data"]).hexdigest())
    monkeypatch.setattr(movielens, "SHAPE", (2, 3))
    asked = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(buffer.getvalue())))
            self.end_headers()
            self.wfile.write(buffer.getvalue())

        def log_message(self, *words):
            pass

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        monkeypatch.setattr(movielens, "URL", f"http://127.0.0.1:{server.server_port}/ml-100k.zip")
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield asked
        server.shutdown()
        thread.join()


def test_download_check_unpack_and_cache(archive, tmp_path):
    data = fetch_movielens_100k(tmp_path)
    assert data.ratings.toarray().tolist() == [[5, 3, 0], [0, 0, 1]] and data.timestamps.nnz == 3
    assert data.users.age.tolist() == [24, 53] and data.users.gender.tolist() == ["M", "F"]
    assert data.movies.title[0] == "Caf\xe9 1" and data.movies.genres.shape == (3, 2) and data.genres == ["unknown", "Drama"]
    assert "Research use only" in data.license
    fetch_movielens_100k(tmp_path)
    assert len(archive) == 1 and os.listdir(tmp_path) == ["ml-100k"]  # no second download, no leftovers
    assert fetch_movielens_100k(folder=tmp_path).ratings.nnz == fetch_movielens_100k(folder=tmp_path / "ml-100k").ratings.nnz
    assert len(archive) == 1


def test_an_incomplete_folder_is_replaced(archive, tmp_path):
    (tmp_path / "ml-100k").mkdir()
    (tmp_path / "ml-100k" / "u.data").write_text("half")
    assert fetch_movielens_100k(tmp_path).ratings.nnz == 3
    assert os.listdir(tmp_path) == ["ml-100k"]


def test_a_broken_download_leaves_nothing_behind(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(movielens, "ZIP_MD5", "0" * 32)
    with pytest.raises(OSError, match="md5"):
        fetch_movielens_100k(tmp_path)
    assert os.listdir(tmp_path) == []


def test_offline_says_what_to_do(tmp_path, monkeypatch):
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        closed = server.server_port
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(movielens, "URL", f"http://127.0.0.1:{closed}/ml-100k.zip")
    with pytest.raises(OSError, match=r"could not be reached.*folder="):
        fetch_movielens_100k(tmp_path)
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileNotFoundError, match="download=False"):
        fetch_movielens_100k(tmp_path, download=False)


def test_without_pooch_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"lawful\[download\].*folder="):
        fetch_movielens_100k(tmp_path)


def test_a_wrong_folder_is_refused(archive, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"u\.item"):
        fetch_movielens_100k(folder=tmp_path)
    fetch_movielens_100k(tmp_path)
    ratings = tmp_path / "ml-100k" / "u.data"
    ratings.write_bytes(ratings.read_bytes() + b"2\t2\t2\t2\n")
    with pytest.raises(OSError, match="not the ratings file"):
        fetch_movielens_100k(folder=tmp_path)


@pytest.mark.data
def test_movielens_itself():
    data = fetch_movielens_100k(folder=Path(os.environ["LAWFUL_DATA"]) / "ml-100k")
    assert data.ratings.shape == (943, 1682) and data.ratings.nnz == 100_000 and set(data.ratings.data) == {1, 2, 3, 4, 5}
    assert len(data.genres) == 19 and data.movies.genres.shape == (1682, 19) and data.movies.title[0] == "Toy Story (1995)"
    split = movielens_protocol(data, "A", random_state=0)
    assert split.X_train.shape == (643, 23) and split.R_eval.shape == (300, 1682)

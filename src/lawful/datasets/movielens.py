"""MovieLens 100k: 100,000 ratings of 1682 films by 943 people.

The data may be used for research and not be redistributed, so they are not in the package: `fetch_movielens_100k` downloads
them from GroupLens (by pooch, against a checksum), or reads a folder. Cite F. M. Harper and J. A. Konstan, The MovieLens
Datasets: History and Context, ACM Transactions on Interactive Intelligent Systems 5(4), 2015.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

__all__ = ["fetch_movielens_100k"]

URL = "https://files.grouplens.org/datasets/movielens/ml-100k.zip"
ZIP_MD5 = "0e33842e24a9c977be4e0107933c0723"
DATA_MD5 = "6e47046882bad158b0efbb84cd5cb987"
FILES = ("README", "u.data", "u.genre", "u.info", "u.item", "u.occupation", "u.user")
NEEDED = ("u.data", "u.genre", "u.item", "u.user")
SHAPE = (943, 1682)
LICENSE = (
    "MovieLens 100k, GroupLens Research, University of Minnesota. Research use only, no redistribution, no endorsement; cite "
    "Harper and Konstan (2015), ACM Transactions on Interactive Intelligent Systems 5(4)."
)


def fetch_movielens_100k(data_home: Any = None, *, folder: Any = None, download: bool = True, timeout: float = 30.0) -> Bunch:
    """MovieLens 100k from GroupLens, or from a folder on this machine.

    Parameters
    ----------
    data_home : where downloads are kept; None: the environment variable LAWFUL_DATA_HOME or else ~/.cache/lawful
    folder : an existing folder with u.data, u.user, u.item, u.genre (or holding ml-100k/ with them); nothing is downloaded
    download : False: fail when the data are not in data_home. Downloads need pooch: pip install 'lawful[download]'
    timeout : seconds without an answer after which the download is given up

    Returns
    -------
    Bunch with `ratings` (943, 1682) csr, 1 to 5, unrated where nothing is stored; `timestamps`, the same pattern; `users`: age,
    gender, occupation, zip_code (943,); `movies`: title, release_date (1682,), genres (1682, 19) of bool; `genres`, their
    names; `license`.

    Examples
    --------
    >>> from lawful.datasets import fetch_movielens_100k
    >>> data = fetch_movielens_100k()  # doctest: +SKIP
    >>> data.ratings.shape  # doctest: +SKIP
    (943, 1682)
    """
    if folder is not None:
        place = Path(folder) if (Path(folder) / "u.data").is_file() else Path(folder) / "ml-100k"
        lacking = [name for name in NEEDED if not (place / name).is_file()]
        if lacking:
            raise FileNotFoundError(f"{Path(folder)} lacks {', '.join(lacking)}; get them from {URL}")
    else:
        home = Path(data_home or os.environ.get("LAWFUL_DATA_HOME") or Path.home() / ".cache" / "lawful").expanduser()
        place = home / "ml-100k"
        if not all((place / name).is_file() for name in NEEDED):
            if not download:
                raise FileNotFoundError(f"MovieLens 100k is not in {home} and download=False; pass folder=, or allow it")
            _download(home, place, timeout)
    return _read(place)


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def _download(home: Path, place: Path, timeout: float) -> None:
    """Download, check and unpack beside `place`, then rename: an interrupted run leaves nothing half-written behind."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            "fetch_movielens_100k: a download needs pooch; pip install 'lawful[download]' brings it, or pass folder="
        ) from error
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix=".ml-100k-") as work:
        archive, unpacked = Path(work) / "ml-100k.zip", Path(work) / "ml-100k"
        try:
            pooch.retrieve(URL, f"md5:{ZIP_MD5}", archive.name, work, downloader=pooch.HTTPDownloader(timeout=timeout))
        except ValueError as error:  # the checksum
            raise OSError(f"the download from {URL} is not what was expected ({error}); try again") from error
        except OSError as error:
            raise OSError(
                f"{URL} could not be reached ({error}). Offline? Download it elsewhere, unpack it, and pass "
                "folder=<the folder that holds u.data>."
            ) from error
        unpacked.mkdir()
        with zipfile.ZipFile(archive) as content:
            for name in FILES:  # only what is known, under names of ours
                (unpacked / name).write_bytes(content.read(f"ml-100k/{name}"))
        if place.exists():  # an incomplete folder from elsewhere
            place.rename(Path(work) / "old")
        unpacked.rename(place)


def _rows(path: Path) -> list[list[str]]:
    return [line.split("|") for line in path.read_text(encoding="latin-1").splitlines() if line.strip()]


def _read(place: Path) -> Bunch:
    if _md5(place / "u.data") != DATA_MD5:
        raise OSError(f"{place / 'u.data'} is not the ratings file of MovieLens 100k (md5 {DATA_MD5}); get it from {URL}")
    table = np.loadtxt(place / "u.data", dtype=np.int64)
    at = (table[:, 0] - 1, table[:, 1] - 1)
    ratings = sparse.csr_array((table[:, 2].astype(float), at), shape=SHAPE)
    times = sparse.csr_array((table[:, 3], at), shape=SHAPE)
    for matrix in (ratings, times):
        matrix.sort_indices()
    users, items, genres = _rows(place / "u.user"), _rows(place / "u.item"), _rows(place / "u.genre")
    if (len(users), len(items)) != SHAPE:
        raise OSError(f"{place} describes {len(users)} users and {len(items)} items; {SHAPE} were expected")
    return Bunch(
        ratings=ratings,
        timestamps=times,
        users=Bunch(
            age=np.array([int(row[1]) for row in users]),
            gender=np.array([row[2] for row in users]),
            occupation=np.array([row[3] for row in users]),
            zip_code=np.array([row[4] for row in users]),
        ),
        movies=Bunch(
            title=np.array([row[1] for row in items]),
            release_date=np.array([row[2] for row in items]),
            genres=np.array([[flag == "1" for flag in row[5:]] for row in items]),
        ),
        genres=[row[0] for row in genres],
        license=LICENSE,
    )

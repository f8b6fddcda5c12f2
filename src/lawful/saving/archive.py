"""The file itself: a zip archive of a manifest in JSON and arrays in NumPy's own format.

    manifest.json          what the file is, what wrote it, the law in words, the model, and every array with its SHA-256
    arrays/<number>.npy    the arrays; `numpy.load(file)["arrays/0"]` reads one without this library
    the archive's comment  the SHA-256 of every byte before it

Nothing is compressed: numbers of double precision hardly shrink, and what is read can then never be larger than the file. A
reader believes nothing: every byte is checked before anything is parsed, sizes are compared with the bytes that are there
before anything is allocated, types are those of plain numbers and text. The same model gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from lawful._files import replacing

__all__ = ["Arrays", "ModelFileError", "read", "read_manifest", "write"]

FORMAT = "lawful model"
VERSION = 1
MANIFEST, ARRAY = "manifest.json", re.compile(r"arrays/(0|[1-9][0-9]{0,5})\.npy")
LARGEST_MANIFEST = 64 * 2**20
DIGEST = 64  # characters of a SHA-256, which end the file
MAGIC = b"\x93NUMPY\x01\x00"
HEADER = re.compile(
    rb"\{'descr': '([<>|](?:b1|[iu][1248]|f[248]|U[0-9]{1,9}))', 'fortran_order': (True|False), "
    rb"'shape': \(((?:[0-9]{1,18}, ?)*[0-9]{0,18})\), \} *\n"
)
KINDS = "biufU"  # booleans, whole numbers, floating point numbers and text: nothing that points elsewhere
EPOCH = (1980, 1, 1, 0, 0, 0)
BROKEN: tuple[type[Exception], ...] = (  # what zipfile and numpy raise on odd bytes
    *(zipfile.BadZipFile, zipfile.LargeZipFile, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError),
    *(OSError, KeyError, IndexError, TypeError, OverflowError, MemoryError),
)


class ModelFileError(ValueError):
    """A file that is no model, is damaged, or was written by a version that this one does not know.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from lawful import ModelFileError, load
    >>> path = Path(tempfile.mkdtemp()) / "damaged.lawful"
    >>> _ = path.write_text("not a model")
    >>> try:
    ...     load(path)
    ... except ModelFileError:
    ...     print("refused")
    refused
    """


class Arrays:
    """The arrays of a model that is being written; equal ones are stored once."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, bytes]] = {}

    def add(self, array: np.ndarray) -> int:
        """The number under which the array is stored."""
        if array.dtype.kind not in KINDS or (
            array.dtype.kind != "U" and array.dtype.itemsize > 8
        ):  # long double is a machine's own
            raise TypeError(f"an array of type {array.dtype} cannot be stored; numbers and text can")
        buffer = io.BytesIO()
        npy.write_array(buffer, array, version=(1, 0), allow_pickle=False)
        data = buffer.getvalue()
        return self.found.setdefault(hashlib.sha256(data).hexdigest(), (len(self.found), data))[0]


def write(path: Any, manifest: dict[str, Any], arrays: Arrays) -> None:
    """One file, whole or not at all; see `lawful._files`."""
    listed = {str(k): {"sha256": digest, "bytes": len(data)} for digest, (k, data) in arrays.found.items()}
    whole = {"format": FORMAT, "version": VERSION} | manifest | {"arrays": listed}
    text = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False).encode("utf-8")
    if len(text) > LARGEST_MANIFEST:
        raise ValueError(
            f"{os.fspath(path)}: the model has too many names and settings to be saved ({len(text)} bytes of them)"
        )
    with replacing(path) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.comment = b"0" * DIGEST
            archive.writestr(zipfile.ZipInfo(MANIFEST, EPOCH), text)
            for k, data in arrays.found.values():
                archive.writestr(zipfile.ZipInfo(f"arrays/{k}.npy", EPOCH), data)
        digest = _digest(file)
        file.seek(-DIGEST, os.SEEK_END)
        file.write(digest)


def _digest(file: Any) -> bytes:
    """The checksum of all of a file but its last characters, where it stands."""
    left = file.seek(0, os.SEEK_END) - DIGEST
    file.seek(0)
    digest = hashlib.sha256()
    while left > 0:
        piece = file.read(min(left, 2**20))
        digest.update(piece)
        left -= len(piece)
    return digest.hexdigest().encode("ascii")


def named(path: Any, who: str) -> Path:
    """The path of a file, which is all that is read and written."""
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise TypeError(f"{who}: {path!r} will not do; give the path of a file, text or a Path")
    return Path(path)


def read_manifest(path: Any) -> dict[str, Any]:
    """The manifest alone, checked."""
    return _read(named(path, "describe"), arrays=False)[0]


def read(path: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The manifest and the arrays by their numbers, every byte checked."""
    return _read(named(path, "load"), arrays=True)


def _read(path: Path, arrays: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder; give the file that model.save(path) wrote")
    with open(path, "rb") as file:  # a file that is not there is an error of its own
        start = file.read(4)
        if start != b"PK\x03\x04":
            what = "is empty" if not start else "does not begin like a model file"
            raise ModelFileError(f"{path} {what}; give a file that model.save(path) wrote, whole")
        if _digest(file) != file.read():
            raise ModelFileError(
                f"{path} is damaged or cut short: its checksum is not that of its content; copy or save it again"
            )
        try:
            with zipfile.ZipFile(file) as archive:
                entries = _entries(archive, os.fstat(file.fileno()).st_size)
                manifest = _manifest(archive, entries)
                return manifest, _arrays(archive, entries, manifest["arrays"]) if arrays else {}
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from error.__cause__
        except BROKEN as error:
            raise ModelFileError(f"{path} is damaged or cut short ({error}); copy or save it again") from error


def _entries(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """What is inside, by name; its declared sizes are no larger than the file."""
    entries: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        if not (info.filename == MANIFEST or ARRAY.fullmatch(info.filename)) or info.filename in entries:
            raise ModelFileError(f"it holds {info.filename!r}, which is no part of a model; save the model again")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
            raise ModelFileError(f"{info.filename} is compressed or encrypted, which model files never are; save it again")
        entries[info.filename] = info
    if sum(info.file_size for info in entries.values()) > size:
        raise ModelFileError("it claims to hold more bytes than it has; save the model again")
    if MANIFEST not in entries:
        raise ModelFileError(f"it lacks {MANIFEST}; give a file that model.save(path) wrote")
    return entries


def _manifest(archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo]) -> dict[str, Any]:
    if entries[MANIFEST].file_size > LARGEST_MANIFEST:
        raise ModelFileError(f"its manifest is larger than {LARGEST_MANIFEST} bytes; no model has so many settings")
    try:
        manifest = json.loads(archive.read(MANIFEST).decode("utf-8"), parse_constant=_no_constant)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError, ModelFileError) as error:
        raise ModelFileError(f"its manifest cannot be read ({error}); save the model again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"its manifest is not that of a {FORMAT}; give a file that model.save(path) wrote")
    version = manifest.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= VERSION:
        raise ModelFileError(
            f"it has format version {version!r}, and this version of lawful reads 1 to {VERSION}; a newer lawful would do"
        )
    listed = manifest.get("arrays")
    if not isinstance(listed, dict) or not all(isinstance(entry, dict) for entry in listed.values()):
        raise ModelFileError("its manifest does not list the arrays; save the model again")
    return manifest


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"{name} is not a number of JSON")


def _arrays(archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo], listed: dict[str, Any]) -> dict[str, np.ndarray]:
    present = {match[1] for name in entries if (match := ARRAY.fullmatch(name))}
    if present != set(listed):
        raise ModelFileError("the arrays that are there are not those that its manifest lists; copy or save it again")
    out = {}
    for k, expected in listed.items():
        data = archive.read(f"arrays/{k}.npy")
        if expected.get("bytes") != len(data) or expected.get("sha256") != hashlib.sha256(data).hexdigest():
            raise ModelFileError(f"array {k} does not have the checksum that was written with it; copy or save it again")
        out[k] = _array(k, data)
    return out


def _array(k: str, data: bytes) -> np.ndarray:
    """An array from the bytes of an npy file, by the letter of what `Arrays.add` writes; what is not there is not allocated."""
    start = len(MAGIC) + 2 + int.from_bytes(data[len(MAGIC) : len(MAGIC) + 2], "little")
    header = HEADER.fullmatch(data[len(MAGIC) + 2 : start]) if data.startswith(MAGIC) else None
    if header is None:
        raise ModelFileError(f"array {k} is no array of numbers or text as model files hold them; save the model again")
    dtype = np.dtype(header[1].decode("ascii"))
    shape = tuple(int(length) for length in header[3].decode("ascii").replace(" ", "").split(",") if length)
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise ModelFileError(f"array {k} has another size than it says; copy or save it again")
    flat = np.frombuffer(data, dtype=dtype, offset=start) if len(data) > start else np.empty(0, dtype=dtype)
    flat = flat.astype(dtype.newbyteorder("="))  # a copy, in the order of bytes of this machine: compiled code knows no other
    return flat.reshape(shape, order="F" if header[2] == b"True" else "C")

"""Files that are written whole or not at all.

What is written goes to a new name in the same folder, is brought to the disk (fsync) and then takes the place of the old file
in one step (`os.replace`). A program that is killed at any moment leaves the old file as it was or the new one complete, and at
most a hidden file whose name ends in `.part` beside it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

__all__ = ["check_ordinary", "replacing"]


def check_ordinary(path: Path) -> None:
    """An error where a device or a pipe stands, whose place no file takes."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no ordinary file, and is not replaced; name one that is")


@contextmanager
def replacing(path: Any, *, text: bool = False) -> Iterator[IO[Any]]:
    """A new file, open for writing bytes (or text), that takes the place of `path` when all went well.

    A symbolic link stays one: the file that it points to is replaced. What is no file (a device, a pipe) is left alone.
    """
    final = Path(os.path.realpath(path))
    if final.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)!r} is a folder; give the name of a file in it")
    if not final.parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(path)!r} cannot be written: there is no folder {final.parent}; make it first")
    check_ordinary(final)
    part = final.with_name(f".{final.name}.{secrets.token_hex(4)}.part")
    try:
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:  # in the words of whoever gave the path: the other name is ours
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        with open(handle, "w+", encoding="utf-8", newline="") if text else open(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if final.exists():
            os.chmod(part, final.stat().st_mode & 0o777)
        os.replace(part, final)
    except BaseException:  # an interrupt from the keyboard too leaves nothing behind
        with suppress(OSError):
            part.unlink()
        raise
    _settle(final.parent)


def _settle(folder: Path) -> None:
    """The new name reaches the disk with the folder; systems that cannot do that (Windows) do it their own way."""
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

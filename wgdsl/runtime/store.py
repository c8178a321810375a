"""Files of the cache folder, safe to share.

In: a key and bytes.  Out: the same bytes, or nothing. An entry is one file: a line with the SHA-256 of the rest, and the rest.
It appears by rename, so that a reader sees a whole one or none; one that fails its check is as good as none, with a warning.
A folder that can't be written costs one warning and the sharing between processes, nothing else. No locks lie on the disk.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from ..foundation.environment import cache_dir

T = TypeVar("T")

ABANDONED = 3600  # seconds after which a half-written file is one that a killed process left


class CacheWarning(UserWarning):
    """The cache can't be used as it should; results aren't affected."""


class Folder:
    """A cache folder, which may not exist and may not be writable."""

    def __init__(self, path: Path):
        self.path = path
        self.writable = True

    @staticmethod
    def shared() -> Folder:
        """The folder that the environment names now."""
        return _shared(cache_dir())

    def place(self, kind: str, key: str) -> Path:
        """Where the entry of a key lies."""
        return self.path / kind / key[:2] / f"{key}.bin"

    def read(self, kind: str, key: str, decode: Callable[[bytes], T], own: bool = False) -> T | None:
        """What an entry decodes to; None if there is none, or (with a warning) none that can be used.

        decode: raises ValueError for what it can't take.  own: only a file that this user has written.
        """
        path = self.place(kind, key)
        try:
            with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                if own and os.fstat(file.fileno()).st_uid != os.geteuid():
                    return None
                return decode(checked_body(file.read()))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as e:
            say(f"the cache entry {path} can't be read ({e.strerror or e}): making it again")
        except ValueError as e:
            say(f"the cache entry {path} is damaged ({e}): making it again")
        return None

    def write(self, kind: str, key: str, body: bytes) -> None:
        """Keep an entry if the folder can be written."""
        if not self.writable:
            return
        try:
            write_file(self.place(kind, key), hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
        except OSError as e:
            self.writable = False
            say(f"compiled kernels can't be kept in {self.path} ({e.strerror or e}): each process compiles its own")


@cache
def _shared(path: Path) -> Folder:
    return Folder(path)


def say(text: str) -> None:
    """Warn the caller of the library."""
    warnings.warn(text, CacheWarning, stacklevel=6)


def checked_body(data: bytes) -> bytes:
    """The rest of an entry after its hash. Raises ValueError."""
    digest, _, body = data.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError("its hash is wrong")
    return body


def write_file(path: Path, data: bytes) -> None:
    """Write a file so that nobody ever sees half of it. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sweep(path.parent)


def sweep(folder: Path) -> None:
    """Remove what killed processes left half-written."""
    for left in folder.glob(".new-*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > ABANDONED:
                left.unlink()

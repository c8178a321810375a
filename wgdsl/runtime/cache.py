"""Compiled kernels on disk and in memory.

Key: what NVRTC reads (the text, the flags) and its version. Entry: one file, a line with the SHA-256 of the rest, a line of
JSON, the cubin. Files appear by rename, so that a reader sees a whole one or none; what fails its check is made again, with
one warning. A folder that can't be written costs one warning and the sharing between processes, nothing else. No locks lie
on the disk: processes that start together compile the same thing, threads wait for one of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from ..foundation.environment import cache_dir
from . import nvrtc
from .nvrtc import Compiled

LAYOUT = "wgdsl cubin 1"  # changes when the entry's form does


class CacheWarning(UserWarning):
    """The cache can't be used as it should; results aren't affected."""


class Cache:
    """Compilations, each done once a process; kept in `folder` if that can be written."""

    def __init__(self, folder: Path, compiler: Callable[[str, str, str], Compiled] = nvrtc.compile):
        self.folder = folder
        self._compiler = compiler
        self._memory: dict[str, Compiled] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._writable = True

    @staticmethod
    def shared() -> Cache:
        """The cache of this process for the folder that the environment names now."""
        return _shared(cache_dir())

    def compile(self, text: str, arch: str, name: str = "kernel.cu") -> Compiled:
        """The compilation of a text, from memory, from disk, or new."""
        key = key_of(text, arch, nvrtc.version())
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._memory:
                found = self._read(key)
                self._memory[key] = found or self._make(key, text, arch, name)
            return self._memory[key]

    def _make(self, key: str, text: str, arch: str, name: str) -> Compiled:
        made = self._compiler(text, arch, name)
        if self._writable:
            try:
                write_entry(self.folder, key, made)
            except OSError as e:
                self._writable = False
                self._say(f"compiled kernels can't be kept in {self.folder} ({e.strerror or e}): each process compiles its own")
        return made

    def _read(self, key: str) -> Compiled | None:
        path = entry_path(self.folder, key)
        try:
            return read_entry(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as e:
            self._say(f"the cache entry {path} can't be read ({e.strerror or e}): compiling again")
        except ValueError as e:
            self._say(f"the cache entry {path} is damaged ({e}): compiling again")
        return None

    def _say(self, text: str) -> None:
        warnings.warn(text, CacheWarning, stacklevel=5)


@cache
def _shared(folder: Path) -> Cache:
    return Cache(folder)


def key_of(text: str, arch: str, version: str) -> str:
    """What the next tool reads, hashed."""
    parts = (LAYOUT, version, *nvrtc.flags(arch), text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def entry_path(folder: Path, key: str) -> Path:
    """Where the entry of a key lies."""
    return folder / "cubin" / key[:2] / f"{key}.bin"


def write_entry(folder: Path, key: str, made: Compiled) -> None:
    """Write an entry so that nobody ever sees half of it. Raises OSError."""
    path = entry_path(folder, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {"ptx": made.ptx, "log": made.log, "nvrtc": made.nvrtc, "seconds": made.seconds}
    body = json.dumps(facts).encode() + b"\n" + made.cubin
    whole = hashlib.sha256(body).hexdigest().encode() + b"\n" + body
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(whole)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def read_entry(path: Path) -> Compiled:
    """An entry. Raises OSError if there is none, ValueError if it is damaged."""
    digest, _, body = path.read_bytes().partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError("its hash is wrong")
    head, _, cubin = body.partition(b"\n")
    facts = json.loads(head)
    made = Compiled(cubin=cubin, ptx=facts["ptx"], log=facts["log"], nvrtc=facts["nvrtc"], seconds=facts["seconds"])
    return replace(made, cached=True)

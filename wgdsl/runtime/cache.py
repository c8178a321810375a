"""Compiled kernels on disk and in memory.

Key: what NVRTC reads (the text, the flags) and its version.  Entry: a line of JSON, and the cubin. Processes that start
together compile the same thing each for itself, threads wait for one of them; `store` has the rest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from . import nvrtc
from .nvrtc import Compiled
from .once import Once
from .store import Folder

LAYOUT = "wgdsl cubin 2"  # changes when the entry's form does
KIND = "cubin"
REMEMBERED = 256  # compilations that a process keeps in memory


class Cache:
    """Compilations, each done once a process; kept in `folder` if that can be written."""

    def __init__(self, folder: Path | Folder, compiler: Callable[[str, str, str], Compiled] = nvrtc.compile):
        self.folder = folder if isinstance(folder, Folder) else Folder(folder)
        self._compiler = compiler
        self._memory = Once(REMEMBERED)

    @staticmethod
    def shared() -> Cache:
        """The cache of this process for the folder that the environment names now."""
        return _shared(Folder.shared())

    def compile(self, text: str, arch: str, name: str = "kernel.cu") -> Compiled:
        """The compilation of a text, from memory, from disk, or new."""
        key = key_of(text, arch, nvrtc.version())
        return self._memory.get(key, lambda: self.folder.read(KIND, key, decode) or self._make(key, text, arch, name))

    def _make(self, key: str, text: str, arch: str, name: str) -> Compiled:
        made = self._compiler(text, arch, name)
        self.folder.write(KIND, key, encode(made))
        return made


@cache
def _shared(folder: Folder) -> Cache:
    return Cache(folder)


def key_of(text: str, arch: str, version: str) -> str:
    """What the next tool reads, hashed."""
    parts = (LAYOUT, version, *nvrtc.flags(arch), text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def encode(made: Compiled) -> bytes:
    """The body of an entry."""
    facts = {"ptx": made.ptx, "log": made.log, "nvrtc": made.nvrtc, "seconds": made.seconds}
    return json.dumps(facts).encode() + b"\n" + made.cubin


def decode(body: bytes) -> Compiled:
    """The compilation in an entry. Raises ValueError."""
    head, _, cubin = body.partition(b"\n")
    try:
        facts = json.loads(head)
        return Compiled(
            cubin=cubin, ptx=facts["ptx"], log=facts["log"], nvrtc=facts["nvrtc"], seconds=facts["seconds"], cached=True
        )
    except (KeyError, TypeError) as e:
        raise ValueError(f"it lacks {e}") from e

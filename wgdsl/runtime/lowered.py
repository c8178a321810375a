"""What the passes made of a request, on disk and in memory: so that compiling the same thing again parses and analyses nothing.

Key: the request (names, target, what is fixed at compile time), the bytes of every `.wg` file that it may read, and the bytes
of this package.  Entry: a pickle of whatever the driver has to have again.

Files that may be read: those that the request names, the ones beside the program and the shipped ones (a schedule is looked
up there), and what any of these import. That is more than is read; what was read is compared with it before anything is kept.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import pickle
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..foundation.resources import grammar_path, resource, schedule_files
from .once import Once
from .store import Folder

LAYOUT = "wgdsl forms 1"  # changes when what the driver keeps does
REMEMBERED = 64  # requests that a process keeps in memory
PACKAGE = Path(__file__).resolve().parents[1]
LOADED = time.time()  # files that changed later may not be what is running here
_IMPORT = re.compile(rb'^[ \t]*import[ \t]+"([^"\n]+)"', re.MULTILINE)

_memory = Once(REMEMBERED)


@dataclass(frozen=True)
class Request:
    """`key` tells requests apart; `contents` are the bytes of the texts that may be read for this one."""

    key: str
    contents: frozenset[bytes]


def request(words: Sequence[str], texts: Sequence[str], files: Sequence[Path], beside: Path | None) -> Request | None:
    """What is asked: its words, the texts and files that it names, and the folder of the program. None for what can't be
    remembered: a file can't be read, or the package has changed since it was loaded."""
    package = package_hash()
    if package is None:
        return None
    given = [text.encode("utf-8", "surrogatepass") for text in texts]
    try:
        contents = dict(_closure(given, [*files, *_around(beside), *_shipped()]))
    except (OSError, ValueError):
        return None
    digest = hashlib.sha256()
    head = [LAYOUT, str(sys.implementation.cache_tag), package, *words, *map(str, contents)]
    for part in (*(word.encode("utf-8", "surrogatepass") for word in head), *given, *contents.values()):
        digest.update(b"%d " % len(part) + part)
    return Request(digest.hexdigest(), frozenset((*given, *contents.values())))


def remembered(asked: Request | None, make: Callable[[], Any], read: Callable[[Any], Iterable[str]]) -> Any:
    """What was made for the same request before; else what `make` makes now. `read`: the texts that were read for it."""
    if asked is None:
        return make()
    folder, key, contents = Folder.shared(), asked.key, asked.contents

    def known(made: Any) -> bool:
        return all(_among(text, contents) for text in read(made))

    def new() -> Any:
        made = make()
        if known(made):
            _keep(folder, key, made)
        return made

    return _memory.get((folder, key), lambda: folder.read(kind(), key, _unpickled, own=True) or new(), known)


def kind() -> str:
    """The entries of this user. Those of others are left alone: a pickle can do anything."""
    return f"forms-{os.geteuid()}"


def forget() -> None:
    """Drop what this process remembers; what lies on the disk stays."""
    _memory.clear()


@cache
def package_hash() -> str | None:
    """The hash of the package's files and its grammar; None if one of them is newer than what is loaded."""
    files = sorted(p for p in PACKAGE.rglob("*.py") if p.is_file())
    digest = hashlib.sha256()
    try:
        for path in (*files, grammar_path()):
            if path.stat().st_ctime > LOADED:
                return None
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    except OSError:
        return None
    return digest.hexdigest() if files else None


def _around(beside: Path | None) -> list[Path]:
    return sorted(beside.glob("*.wg")) if beside is not None else []


def _shipped() -> list[Path]:
    return [*schedule_files(), *sorted(resource("examples").rglob("*.wg"))]


def _closure(texts: Iterable[bytes], files: Iterable[Path]) -> Iterator[tuple[Path, bytes]]:
    """The files, and all that they or the texts import, each with its bytes. Raises OSError."""
    waiting, seen = [*files, *(p for text in texts for p in _imports(text, Path()))], set[Path]()
    while waiting:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        data = path.read_bytes()
        yield path, data
        waiting += _imports(data, path.parent)


def _imports(data: bytes, folder: Path) -> list[Path]:
    """The files that a text may mean by its imports. One that isn't there is the parser's affair."""
    names = [os.fsdecode(m) for m in _IMPORT.findall(data)]
    return [p for name in names for p in dict.fromkeys((folder / name, Path(name))) if p.is_file()]


def _among(text: str, contents: frozenset[bytes]) -> bool:
    """Whether a text that was read is one of those."""
    data = text.encode("utf-8", "surrogatepass")
    return data in contents or codecs.BOM_UTF8 + data in contents


def _keep(folder: Folder, key: str, made: Any) -> None:
    try:
        body = pickle.dumps(made, protocol=5)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):  # an option's value may be anything
        return
    folder.write(kind(), key, body)


def _unpickled(body: bytes) -> Any:
    try:
        return pickle.loads(body)
    except Exception as e:  # a pickle may fail in any way
        raise ValueError(f"{type(e).__name__}: {e}") from e

"""CUDA texts that somebody edited by hand, in place of the emitted ones.

In: the emitted texts of a kernel and the edited one.  Out: the edited text for each kernel of the schedule. What the launch
relies on is as it was emitted: the entry's name, its parameters, its threads; and a header names the same schedule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..diagnostics.model import WgError
from ..diagnostics.tools import EditedText

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEADER = re.compile(r"^// (\w+): program (\w+), schedule (\w+), target (\w+)$", re.MULTILINE)
_BOUNDS = re.compile(r"__launch_bounds__\s*\(\s*(\d+)[^)]*\)")
_QUALIFIERS = re.compile(r"\b(?:const|__restrict__|__grid_constant__|volatile)\b")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A `__global__` function as the launch sees it. `parameters`: their types, without qualifiers; `threads` of its bounds."""

    name: str
    parameters: tuple[str, ...]
    threads: str


def edited_texts(texts: Mapping[str, str], entries: Mapping[str, str], edited: str, path: str) -> dict[str, str]:
    """Kernel -> its edited text. A schedule of several kernels is one text after the other, as `--emit cuda` prints them.

    texts, entries: the emitted text and the entry's name of each kernel. Raises WgError (WG1005) for what can't be launched.
    """
    pieces = _pieces(edited, tuple(texts), path)
    for name, piece in pieces.items():
        problem = _problem(texts[name], piece, entries[name], path)
        if problem is not None:
            raise WgError(problem)
    return pieces


def _pieces(edited: str, names: tuple[str, ...], path: str) -> dict[str, str]:
    if len(names) == 1:
        return {names[0]: edited}
    heads = [m for m in _HEADER.finditer(edited) if m[1] in names]
    ends = [m.start() for m in heads[1:]] + [len(edited)]
    found = {m[1]: edited[m.start() : end] for m, end in zip(heads, ends, strict=True)}
    if set(found) != set(names):
        expected, got = ", ".join(names), ", ".join(found) or "none"
        raise WgError(EditedText(path=path, what="the kernels, each under its header comment", expected=expected, got=got))
    return found


def _problem(emitted: str, edited: str, entry: str, path: str) -> EditedText | None:
    """The first thing in which the launch would differ."""
    for what, expected, got in _differences(emitted, edited, entry):
        if expected != got:
            return EditedText(path=path, what=what, expected=expected, got=got)
    return None


def _differences(emitted: str, edited: str, entry: str) -> Iterator[tuple[str, str, str]]:
    ours, theirs = _HEADER.search(emitted), _HEADER.search(edited)
    if ours is not None and theirs is not None:
        yield "the header comment", ours[0], theirs[0]
    wanted = next(e for e in _entries(emitted) if e.name == entry)
    found = {e.name: e for e in _entries(edited)}
    yield "the entry", entry, entry if entry in found else ", ".join(found) or "no `__global__` function"
    have = found[entry]
    yield "the number of parameters", str(len(wanted.parameters)), str(len(have.parameters))
    for k, (a, b) in enumerate(zip(wanted.parameters, have.parameters, strict=True), 1):
        yield f"the type of parameter {k}", a, b
    yield "the threads of `__launch_bounds__`", wanted.threads, have.threads


def _entries(text: str) -> Iterator[Entry]:
    """The `__global__` functions that a text defines."""
    bare = _COMMENT.sub(" ", text)
    for at in re.finditer(r"\b__global__\b", bare):
        head = bare[at.end() : bare.find("{", at.end())]
        if ";" in head:  # only declared
            continue
        bounds = _BOUNDS.search(head)
        name, _, rest = _BOUNDS.sub(" ", head).partition("(")
        yield Entry(
            name=name.split()[-1] if name.split() else "",
            parameters=tuple(_type(p) for p in rest.rpartition(")")[0].split(",") if p.strip()),
            threads=bounds[1] if bounds else "none",
        )


def _type(parameter: str) -> str:
    """The type of a parameter, one blank between its words."""
    words = re.findall(r"\w+|\*|&", _QUALIFIERS.sub(" ", parameter))
    return " ".join(words[:-1]) if len(words) > 1 and words[-1] not in "*&" else " ".join(words)

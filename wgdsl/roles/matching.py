"""Which row a line is of, and what stands in its slots.

In: a `Line`, which the grammar has taken.  Out: a `Match`. The grammar doesn't hold given numbers (`64 x`) to their value:
that is done here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..diagnostics.roles import WrongNumber
from ..syntax.lines import Line
from .rows import TABLES, Maybe, Piece, Row, Slot, Words
from .scope import Skipped

_BY_WORD: dict[str, list[Row]] = {}
for _table in TABLES.values():
    for _row in _table:
        _piece = _row.pieces[0]
        _BY_WORD.setdefault(_piece.words[0] if isinstance(_piece, Words) else "", []).append(_row)


@dataclass
class Match:
    """slots: each with its node or word. absent: the fields whose piece was left out; flags: those that are there."""

    row: Row
    line: Line
    slots: list[tuple[Slot, Any]] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)


def matched(line: Line, strict: bool = True) -> Match:
    """The row of a line. Raises Skipped if a given number is another one (`strict`)."""
    first = line.parts[0]
    rows = _BY_WORD.get(first, []) if isinstance(first, str) else _BY_WORD[""]
    for row in rows:
        found = Match(row, line)
        if _fits(row.pieces, line.parts, 0, found) == len(line.parts):
            if strict:
                _numbers(found)
            return found
    raise AssertionError(f"the grammar takes a line that no row has: {line.parts}")


def _fits(pieces: tuple[Piece, ...], parts: tuple, at: int, found: Match) -> int:
    """How far the pieces reach from `at`; -1 if they don't fit."""
    for p in pieces:
        if isinstance(p, Words):
            at = at + len(p.words) if _same(p.words, parts[at : at + len(p.words)]) else -1
        elif isinstance(p, Slot):
            at = _slot(p, parts, at, found)
        else:
            at = _maybe(p, parts, at, found)
        if at < 0:
            return -1
    return at


def _same(words: tuple[str, ...], parts: tuple) -> bool:
    return len(words) == len(parts) and all(
        a == b or (a.isdigit() and _is_digits(b)) for a, b in zip(words, parts, strict=True)
    )


def _is_digits(part: Any) -> bool:
    return isinstance(part, str) and part[0].isdigit()


def _slot(p: Slot, parts: tuple, at: int, found: Match) -> int:
    if at >= len(parts) or (parts[at] not in p.choices if p.choices else isinstance(parts[at], str)):
        return -1
    found.slots.append((p, parts[at]))
    return at + 1


def _maybe(p: Maybe, parts: tuple, at: int, found: Match) -> int:
    """Left out, if what stands there doesn't begin it."""
    before = len(found.slots)
    reached = _fits(p.pieces, parts, at, found)
    if reached >= 0:
        if p.flag:
            found.flags.append(p.field)
        return reached
    del found.slots[before:]
    found.absent += [p.field, *(name for q in p.pieces if isinstance(q, Slot) for name in q.fields)]
    return at


def _words(pieces: tuple[Piece, ...], found: Match) -> Iterator[str]:
    """The words of what isn't left out."""
    for p in pieces:
        if isinstance(p, Words):
            yield from p.words
        elif isinstance(p, Maybe) and (p.field in found.flags if p.flag else p.field not in found.absent):
            yield from _words(p.pieces, found)


def _numbers(found: Match) -> None:
    words = [w for w in _words(found.row.pieces, found) if w.isdigit()]
    told = [p for p in found.line.parts if _is_digits(p)]
    for a, b in zip(words, told, strict=True):
        if a != b:
            raise Skipped(WrongNumber(span=found.line.span, what="a number that the form gives", found=str(b), wanted=a))

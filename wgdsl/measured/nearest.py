"""The order of candidates for a shape: what was fastest where somebody measured nearest to it.

In: a shape and rows.  Out: candidates, the best first, each with the row that put it there.

How far a row is from a shape has two parts; the second counts only among rows that are equally near by the first:

    what is fixed when compiling    each dim: FIXED times the difference of the logarithms to base 2, so that a head dim twice
                                    as large is farther than anything else; an option of another value: OPTION; a type of
                                    another size: 2 * TYPE, of the same: TYPE
    the lengths of a call           each dim: the difference of the logarithms; those that aren't known don't count

What only one of both has counts ABSENT, a dim that is fixed FIXED times as much. Of rows that are equally near those beside
the program's file come first, then those of the same card. If several are still equal, a candidate's time is the geometric
mean of its times as multiples of each row's shortest; where a row hasn't timed it, of that row's longest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log, log2
from typing import Any

from ..foundation.dtypes import DTYPES
from .places import Measured

FIXED, OPTION, TYPE, ABSENT = 4.0, 2.0, 1.0, 1.0
EQUAL = 6  # digits to which two distances are compared
LEAST = 0.5  # what a dim of 0 counts as: an octave below 1


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a program is compiled for: its types, its options, the dims that are fixed; and the lengths of a call, as far as
    they are known. card: what it is to run on, if that is known."""

    types: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    fixed: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    card: str = ""


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A candidate in its place, and the rows that put it there. ratio: its time as a multiple of the shortest of them;
    microseconds: the time itself, if it is one row that says it.  cycles: without rows, what the cycle model says; or refused:
    why it can't be compiled."""

    candidate: str
    rows: tuple[Measured, ...] = ()
    ratio: float = 1.0
    microseconds: float | None = None
    cycles: float | None = None
    refused: str = ""


def fixed_distance(m: Measured, shape: Shape) -> float:
    """The first part."""
    dims = sum(octaves(m.row.dims.get(n), size) for n, size in shape.fixed.items())
    options = sum(OPTION * (a != b) if _both(a, b) else ABSENT for a, b in _pairs(m.row.options, shape.options))
    types = sum(_types(a, b) if _both(a, b) else ABSENT for a, b in _pairs(m.row.types, shape.types))
    return FIXED * dims + options + types


def length_distance(m: Measured, lengths: Mapping[str, int]) -> float:
    """The second part. lengths: those that aren't fixed."""
    return sum([octaves(m.row.dims.get(n), size) for n, size in lengths.items()])


def octaves(a: int | None, b: int) -> float:
    """How far two sizes are apart; ABSENT if the row says none."""
    return ABSENT if a is None else abs(log2(max(a, LEAST)) - log2(max(b, LEAST)))


def _types(a: str, b: str) -> float:
    if a == b:
        return 0.0
    alike = a in DTYPES and b in DTYPES and DTYPES[a].bits == DTYPES[b].bits
    return TYPE if alike else 2 * TYPE


def _pairs(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    return ((a.get(n), b.get(n)) for n in sorted({*a, *b}))


def _both(a: Any, b: Any) -> bool:
    return a is not None and b is not None


class Ranking:
    """The rows for a shape, whose own lengths don't count: what is fixed is compared once, the lengths for each call."""

    def __init__(self, rows: Sequence[Measured], shape: Shape):
        self._shape = shape
        far = [round(fixed_distance(m, shape), EQUAL) for m in rows]
        self._groups = [[m for m, d in zip(rows, far, strict=True) if d == each] for each in sorted({*far})]

    @property
    def nearest(self) -> Sequence[Measured]:
        """The rows that may decide for some lengths: all that are nearest by what is fixed."""
        return self._groups[0] if self._groups else ()

    def candidates(self, lengths: Mapping[str, int]) -> Iterator[Ranked]:
        """Every candidate that was timed, those of the nearest rows first."""
        seen: set[str] = set()
        free = {n: size for n, size in lengths.items() if n not in self._shape.fixed}
        for rows in self._groups:
            for r in self._ordered(rows, free):
                if r.candidate not in seen:
                    seen.add(r.candidate)
                    yield r

    def _ordered(self, rows: Sequence[Measured], lengths: Mapping[str, int]) -> Iterator[Ranked]:
        """Of rows that are equally near by what is fixed."""
        card = self._shape.card
        far = [(round(length_distance(m, lengths), EQUAL), m.shipped, bool(card) and m.card != card) for m in rows]
        for each in sorted({*far}):
            yield from _ranked([m for m, d in zip(rows, far, strict=True) if d == each])


def _ranked(rows: Sequence[Measured]) -> Iterator[Ranked]:
    """The candidates of rows that are equally near."""
    names = sorted({c for m in rows for c in m.row.microseconds})
    ratios = {c: exp(sum(log(_ratio(m, c)) for m in rows) / len(rows)) for c in names}
    for c in sorted(names, key=lambda c: (ratios[c], c)):
        only = rows[0].row.microseconds.get(c) if len(rows) == 1 else None
        yield Ranked(candidate=c, rows=tuple(rows), ratio=ratios[c], microseconds=only)


def _ratio(m: Measured, candidate: str) -> float:
    times = m.row.microseconds
    return times.get(candidate, max(times.values())) / min(times.values())

"""Marks: where an instrumented kernel notes the SM's clock, and the timeline that its notes make.

A mark stands before the first of each run of steps that come from the same words of the schedule, in the same block, and that
all wait or don't. One thread of each warpgroup of CTA 0 notes `clock << 16 | number of the mark`, until `KEPT` notes. Notes of
warpgroup w stand at [n, w], the first at n = KEPT, and so on down; 0 is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..foundation.source import NOWHERE
from . import model as m
from .timeline import STEP, WAIT, Slice, Timeline, joined, short

KEPT = 8192
NUMBER_BITS = 16
END = (1 << NUMBER_BITS) - 1  # of a role
WAITS = (m.Wait, m.WaitGroup, m.WaitCopies, m.WaitStore, m.BarSync)


@dataclass(frozen=True, kw_only=True)
class Mark:
    """name, line: the schedule's words. waits: what for, if it does."""

    number: int
    name: str
    line: int
    waits: str


def marks_of(kernel: m.Kernel) -> dict[int, Mark]:
    """By the identity of the step that a mark stands before."""
    found: dict[int, Mark] = {}
    for role in kernel.roles:
        for s, words, waits in _first(role.steps):
            found.setdefault(id(s), Mark(number=len(found), name=words[0], line=words[1], waits=waits))
    assert len(found) < END, "their numbers fit"
    return found


def _first(steps: tuple[m.Step, ...]) -> Iterator[tuple[m.Step, tuple[str, int], str]]:
    """The first step of each run, its words, and what it waits for. Those that set registers come before all else."""
    last = None
    for s in steps:
        if s.blocks():
            last = None
            for block in s.blocks():
                yield from _first(block)
            continue
        now = _words(s), _waits(s)
        if now != last and not isinstance(s, m.Registers):
            yield s, *now
        last = now


def _words(s: m.Step) -> tuple[str, int]:
    place = s.span.place if s.span is not None else NOWHERE
    return short(place.words) or s.note or type(s).__name__, place.line


def _waits(s: m.Step) -> str:
    if isinstance(s, m.Wait):
        return s.barrier
    if not isinstance(s, WAITS):
        return ""
    return {m.WaitGroup: "products", m.WaitCopies: "copies", m.WaitStore: "bulk stores"}.get(type(s), "named barrier")


def measured(kernel: m.Kernel, notes: np.ndarray, machine: str) -> Timeline:
    """What the notes of a launch say. notes: [KEPT + 1, warpgroups of a CTA], unsigned 64-bit."""
    marks = {x.number: x for x in marks_of(kernel).values()}
    groups = {w: _noted(notes[:, w]) for w in range(notes.shape[1])}
    start = min((at for group in groups.values() for at, _ in group[:1]), default=0)
    names = {r.first + k: f"{r.name} {k}" if r.count > 1 else r.name for r in kernel.roles for k in range(r.count)}
    slices = [s for w, track in names.items() for s in _slices(track, groups[w], start, marks)]
    full = any(len(g) == KEPT for g in groups.values())
    return Timeline(
        origin=f"measured on {machine}",
        kernel=kernel.name,
        what=f"CTA 0{f', the first {KEPT} marks' if full else ''}",
        roles=tuple(names.values()),
        engines=(),
        slices=tuple(slices),
    )


def _noted(column: np.ndarray) -> list[tuple[int, int]]:
    """(clock, number of the mark) of each note, in order."""
    values = [int(x) for x in column[:0:-1]]
    count = next((k for k, x in enumerate(values) if x == 0), len(values))
    return [(x >> NUMBER_BITS, x & END) for x in values[:count]]


def _slices(track: str, notes: list[tuple[int, int]], start: int, marks: dict[int, Mark]) -> list[Slice]:
    """From each note to the next."""
    out: list[Slice] = []
    for (at, number), (until, _) in pairwise(notes):
        if number == END:
            continue
        x, begin, end = marks[number], float(at - start), float(until - start)
        out.append(Slice(track=track, kind=STEP, name=x.name, line=x.line, start=begin, stop=end))
        if x.waits:
            out.append(Slice(track=track, kind=WAIT, name=x.waits, line=x.line, step=x.name, start=begin, stop=end))
    return joined(out)

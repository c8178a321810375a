"""Longer stretches: whether in each stretch at its cap the roles come back to where they were, all as many rounds further.

If they do, a run with more rounds is the same with what lies between repeated. The rounds that are repeated have to be alike in
each role that has moved on, and to be among those of which there are more as the stretch grows. What is known may differ
between the two states.
It is enough if, in all that was tried, no less is known with fewer rounds to go: then the rounds in between lead from what is
known with more rounds to go to at least that much again, and so on for any number of rounds.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from .progress import Progress, State
from .stretches import Stretch
from .traces import NO_LOOP, Trace

Known = tuple[int, ...]


class Side(NamedTuple):
    """A state on the way: what tells it from others, what was known in it, and a copy."""

    key: tuple
    known: Known
    state: State


@dataclass(eq=False)
class Pump:
    """A stretch at its cap, in one run: pairs of states alike, with more and with fewer rounds to go."""

    pairs: list[tuple[Side, Side]] = field(default_factory=list)


class Pumps:
    """The stretches at their cap of one run."""

    def __init__(self, progress: Progress, cap: int):
        self.progress, self.cap = progress, cap
        self.shapes: dict[Hashable, list[tuple[list[tuple[int, int]], Side]]] = {}
        self.traces: list[Trace | None] = [None] * len(progress.units)
        self.stretches: dict[tuple[int, int, Stretch], Pump] = {}  # unit, item, stretch

    @property
    def open(self) -> bool:
        return any(not p.pairs for p in self.stretches.values())

    def look(self, state: State, key: tuple, known: Known) -> None:
        """Take note of a state of the run."""
        for u, t in enumerate(state.traces):
            if t is not self.traces[u]:
                self.traces[u] = t
                for s in t.longest(self.cap):
                    self.stretches.setdefault((u, state.machine.item[u], s), Pump())
        if not self.stretches:
            return
        rounds = [t.rounds[a] if a < len(t.rounds) else NO_LOOP for t, a in zip(state.traces, state.at, strict=True)]
        if all(r == NO_LOOP for r in rounds):
            return
        chunks = tuple([t.numbers[a] if a < len(t.numbers) else -1 for t, a in zip(state.traces, state.at, strict=True)])
        places = (tuple(state.event), tuple(state.stage), tuple([r[0] for r in rounds]), tuple(state.machine.item), chunks)
        shape = (places, key[1:3], self.progress.normal.near(key[3]))
        side = Side(key, known, state.copy())
        for before, more in self.shapes.get(shape, ()):
            moved = [(a, b) for a, b, x, y in zip(before, rounds, more.state.at, state.at, strict=True) if x != y]
            further = {b[1] - a[1] for a, b in moved}
            if len(further) == 1 and further.pop() > 0:
                self._pair(before, rounds, more, side)
        self.shapes.setdefault(shape, []).append((rounds, side))

    def _pair(self, before: list[tuple[int, int]], after: list[tuple[int, int]], more: Side, fewer: Side) -> None:
        """Of the stretches to which the rounds belong that the roles have moved on by."""
        units = [u for u, (x, y) in enumerate(zip(more.state.at, fewer.state.at, strict=True)) if x != y]
        item, traces = fewer.state.machine.item, fewer.state.traces
        if len({item[u] for u in units}) > 1:
            return
        for (u, i, s), pump in self.stretches.items():
            if u in units and i == item[u] and all(traces[k].alike(s, after[k][0], before[k][1], after[k][1]) for k in units):
                pump.pairs.append((more, fewer))


def covers(less: Known, more: Known) -> bool:
    """Whether all that is known in the one is known in the other."""
    return all([a & b == a for a, b in zip(less, more, strict=True)])  # noqa: C419  a list is quicker here

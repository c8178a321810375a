"""Longer loops: whether each loop at its cap comes back to where it was, with all roles as many rounds further.

If it does, a run with more rounds is the same with what lies between repeated. Rounds that differ from those after them because
of their number (`letters.reach`) don't count. What is known may differ between the two states.
It is enough if, in all that was tried, no less is known with fewer rounds to go: then the rounds in between lead from what is
known with more rounds to go to at least that much again, and so on for any number of rounds.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from .progress import Progress, State
from .traces import NO_LOOP, Trace

Known = tuple[int, ...]


class Side(NamedTuple):
    """A state on the way: what tells it from others, what was known in it, and a copy."""

    key: tuple
    known: Known
    state: State


@dataclass(eq=False)
class Pump:
    """A loop at its cap, in one run: pairs of states alike, with more and with fewer rounds to go."""

    pairs: list[tuple[Side, Side]] = field(default_factory=list)


class Pumps:
    """The loops at their cap of one run."""

    def __init__(self, progress: Progress, cap: int, reach: int):
        self.progress, self.cap, self.reach = progress, cap, reach
        self.shapes: dict[Hashable, list[tuple[list[tuple[int, int]], Side]]] = {}
        self.traces: list[Trace | None] = [None] * len(progress.units)
        self.loops: dict[tuple[int, int, int], Pump] = {}  # unit, item, loop

    @property
    def open(self) -> bool:
        return any(not p.pairs for p in self.loops.values())

    def look(self, state: State, key: tuple, known: Known) -> None:
        """Take note of a state of the run."""
        for u, t in enumerate(state.traces):
            if t is not self.traces[u]:
                self.traces[u] = t
                self.loops |= {(u, state.machine.item[u], loop): Pump() for loop in t.longest(self.cap)}
        if not self.loops:
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
            if len(further) == 1 and further.pop() > 0 and all(a[1] >= self.reach for a, _ in moved):
                self._pair(rounds, more, side)
        self.shapes.setdefault(shape, []).append((rounds, side))

    def _pair(self, rounds: list[tuple[int, int]], more: Side, fewer: Side) -> None:
        """Of the loops in which roles have moved on."""
        for u, (loop, _) in enumerate(rounds):
            pump = self.loops.get((u, fewer.state.machine.item[u], loop))
            if pump is not None and more.state.at[u] != fewer.state.at[u]:
                pump.pairs.append((more, fewer))


def covers(less: Known, more: Known) -> bool:
    """Whether all that is known in the one is known in the other."""
    return all([a & b == a for a, b in zip(less, more, strict=True)])  # noqa: C419  a list is quicker here

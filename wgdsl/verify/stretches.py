"""Stretches: maximal runs of rounds in which every role does the same in each round, whatever the round's number.

In: how the rounds of an item go in each role, for many items at once.  Out: how long the stretches of each are.
A *place* is counted in rounds of one role since the item began, through all of its loops (a loop in steps of two counts
double). A role turns to something else where a loop of it ends, and where a condition changes that hangs on the loop's
variable. If that always is near the beginning, the end, or another such place, then the rounds in between are few, whatever
the dims, and stay with the stretch beside them. All others part the item into stretches, each as long as dims make it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

NEAR = 3  # rounds
LARGE = 2**40
CHANGES = 2  # of a condition that isn't linear in the loop's variable; with more, it is taken to come round again


class Stretch(NamedTuple):
    """Places from `start` on, before `stop`. Those from `first` on, before `last` become more as it grows."""

    start: int
    stop: int
    first: int
    last: int


class Rounds:
    """How the rounds of so many items go, noted role by role. `place`: how far the role has come; `loops`: the outermost ones,
    as (first place, place behind, step); `turns`: the places where a role turns to something else."""

    def __init__(self, count: int):
        self.count = count
        self.place: Any = 0
        self.loops: list[tuple[Any, Any, int]] = []
        self.turns: list[Any] = []
        self.inner = self.end = np.zeros(count, dtype=np.int64)

    def loop(self, runs: Any, step: int, *, outermost: bool) -> None:
        """A loop has been gone through."""
        if not outermost:
            self.inner = np.maximum(self.inner, runs)
            return
        begun, self.place = self.place, self.place + runs * step
        self.loops.append((begun, self.place, step))
        self.turns.append(self.place)
        self.end = np.maximum(self.end, self.place)

    def crossed(self, value: Any, slope: int, runs: Any, step: int) -> Any:
        """In which round it changes whether an integer is at least 0 that is `value` in the first one."""
        per_round = slope * step
        turn = -(value // per_round) if per_round > 0 else value // -per_round + 1
        turn = np.minimum(np.maximum(turn, 0), runs)
        self.turns.append(self.place + turn * step)
        return turn

    def changed(self, values: Sequence[Any], runs: Any, step: int) -> None:
        """A condition's value round by round."""
        table = np.stack([np.broadcast_to(v, (self.count,)) for v in values])
        changes = (table[1:] != table[:-1]) & (np.arange(1, len(values))[:, None] < runs)
        if changes.sum(axis=0).max(initial=0) > CHANGES:
            return
        some, last = changes.any(axis=0), len(values) - 1
        self.turns.append(self.place + np.where(some, changes.argmax(axis=0) + 1, runs) * step)
        self.turns.append(self.place + np.where(some, last - changes[::-1].argmax(axis=0), runs) * step)


class Parts:
    """Items parted into stretches. far: from which round on constants in conditions make no difference. `places`: where they
    are parted, not in order."""

    def __init__(self, rounds: Rounds, far: int):
        self.rounds, self.near = rounds, max(NEAR, far)
        self.end, count = rounds.end, rounds.count
        self.places: list[np.ndarray] = []
        self.turns = [np.broadcast_to(t, (count,)) for t in {id(t): t for t in rounds.turns}.values()]
        for t in self.turns:
            distance = reduce(np.minimum, (abs(t - p) for p in self.places), np.minimum(t, self.end - t))
            if distance.max(initial=0) > self.near:
                self.places.append(t)
        self.bounds = np.sort(np.stack([np.zeros(count, dtype=np.int64), *self.places, self.end]), axis=0)
        # A stretch that is equally long in all items is gone through as it is: nothing has to be said of a longer one.
        self.fixed = [count > 0 and int(np.ptp(stop - start)) == 0 for start, stop in self._pairs(self.bounds)]

    def lengths(self) -> Iterator[np.ndarray]:
        """Of each item, those of its stretches, one behind the other."""
        return (stop - start for start, stop in self._pairs(self.bounds))

    def longest(self) -> np.ndarray:
        """Of each item, the rounds of its longest stretch, but for those that always are so long."""
        inner = self.rounds.inner
        out = np.zeros_like(inner) if len(inner) and np.ptp(inner) == 0 else inner
        for begun, ended, step in self.rounds.loops:
            for start, stop in self._growing():
                out = np.maximum(out, -(-(np.minimum(ended, stop) - np.maximum(begun, start)) // step))
        return out

    def stretches(self, chosen: np.ndarray) -> Iterator[tuple[Stretch, ...]]:
        """Of each of the chosen items."""
        bounds, turns = self.bounds[:, chosen], [t[chosen] for t in self.turns]
        pairs = [pair for pair, fixed in zip(self._pairs(bounds), self.fixed, strict=True) if not fixed]
        ends = [(start, stop, start.copy(), stop.copy()) for start, stop in pairs]
        for t in turns:
            above, below = (
                np.where(bounds <= t, t - bounds, LARGE).min(axis=0),
                np.where(bounds >= t, bounds - t, LARGE).min(axis=0),
            )
            after = above <= below
            if above.max(initial=0) <= self.near:
                after = np.ones_like(after)
            elif below.max(initial=0) <= self.near:
                after = np.zeros_like(after)
            for start, stop, first, last in ends:
                inside = (start < t) & (t < stop)
                np.maximum(first, t, out=first, where=inside & after)
                np.minimum(last, t, out=last, where=inside & ~after)
        columns = [np.stack(e, axis=1).tolist() for e in ends]
        for k in range(len(chosen)):
            yield tuple([Stretch(*c[k]) for c in columns if c[k][0] < c[k][1]])

    def _growing(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return (pair for pair, fixed in zip(self._pairs(self.bounds), self.fixed, strict=True) if not fixed)

    @staticmethod
    def _pairs(bounds: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return pairwise(bounds)

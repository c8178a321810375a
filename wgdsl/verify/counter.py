"""Counter-examples: words of items, run once more by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from ..roles.model import Step
from ..roles.witness import Witness, WitnessItem
from .letters import Letter
from .machine import Found, Rule
from .progress import AHEAD, END, Progress, State

SHORT = 8  # letters of which shorter counter-examples are made
TRIES = 600


@dataclass(frozen=True, kw_only=True, eq=False)
class Fault:
    """A broken rule: what was found, and the word that leads there, by number."""

    found: Found
    progress: Progress
    word: tuple[int, ...]

    @property
    def letters(self) -> tuple[Letter, ...]:
        return tuple(self.progress.letters[k] for k in self.word if k != END)

    @property
    def witness(self) -> Witness:
        """The same for the simulator."""
        items = tuple(WitnessItem(dims=tuple(x.dims.items()), indices=tuple(x.indices.items())) for x in self.letters)
        dims = items[0].dims if items else ()
        return Witness(kernel=self.progress.kernel.name, items=items, dims=dims, flags=self.progress.flags)


@dataclass(eq=False)
class Watch:
    """What happens in a word: (unit, item, step) in order; bit -> which of these made it so; unit -> its latest."""

    events: list[tuple[int, int, Step]] = field(default_factory=list)
    made: dict[int, int] = field(default_factory=dict)
    latest: dict[int, int] = field(default_factory=dict)
    places: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    state: State | None = None

    def sees(self, _: Progress, state: State, u: int, k: int) -> None:
        """A unit is about to try an event, perhaps once more, or the second half of a step."""
        place, step = (u, state.machine.item[u], state.at[u], k), state.traces[u].chunks[state.at[u]].steps[k]
        last = self.places.get(u)
        again = last == place or (last == (*place[:3], k - 1) and self.events[self.latest[u]][2] is step)
        if not again:
            self.latest[u] = len(self.events)
            self.events.append((u, state.machine.item[u], step))
        self.places[u] = place
        state.machine.events = self.latest[u]


def replayed(progress: Progress, word: Sequence[int], watch: Watch | None = None) -> Fault | None:
    """The fault that a word of items leads to, or its end."""
    state = progress.first()
    if watch is not None:
        state.machine.made, watch.state = watch.made, state
    left = [*(k for k in word if k != END), END]
    try:
        while True:
            if progress.sweep(state, watch.sees if watch is not None else None):
                continue
            if all(state.gone):
                return None
            if not progress.wants(state):
                raise progress.stuck(state)
            if not left:
                return None
            state.word.append(left.pop(0))
    except Found as found:
        return Fault(found=found, progress=progress, word=tuple(state.word))


def shortest(fault: Fault) -> Fault | None:
    """The fault of a shortest word that has one; None if that of the word that was found isn't real."""
    real = replayed(fault.progress, fault.word)
    if real is None or real.found.rule == Rule.RUNAWAY:  # a shorter word would end before the role is far ahead
        return real
    shorter = (replayed(fault.progress, word) for word in _words(fault, len([k for k in real.word if k != END])))
    return next((f for f in shorter if f is not None), real)


def _words(fault: Fault, length: int) -> Iterator[tuple[int, ...]]:
    """Words that are no longer, the shortest first: of the word's own letters and the smallest ones."""
    count = 0
    for n in range(1, length + 1):
        every = range(len(fault.progress.letters))
        few = sorted({*(k for k in fault.word if k != END), *every[:SHORT]})
        for word in product(every if n == 1 else few, repeat=n):
            count += 1
            if count > TRIES:
                return
            yield word


def running_away(progress: Progress) -> Fault | None:
    """A role that goes on from item to item and waits for nobody, with items of one kind."""
    for letter in range(min(len(progress.letters), SHORT) if progress.kernel.grid.persistent else 0):
        if not _comes_round(progress, letter) and (fault := replayed(progress, [letter] * (AHEAD + 2))) is not None:
            return fault
    return None


def _comes_round(progress: Progress, letter: int) -> bool:
    """Whether roles are where they were, some items of a kind further: then they go on like that."""
    state = progress.first()
    seen: set[tuple] = set()
    try:
        for _ in range(AHEAD):
            while progress.sweep(state):
                pass
            if all(state.gone) or not progress.wants(state):
                return False
            if (here := progress.key(state)) in seen:
                return True
            seen.add(here)
            state.word.append(letter)
    except Found:
        pass
    return False

"""How the roles of a kernel go through a word of items: each unit its traces, chunk by chunk, over one machine.

A word is a list of letters by number, `END` last. A unit that needs a letter which isn't there yet stands still.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..roles.model import Kernel
from .control import FLAG
from .events import Maker, ended
from .layout import layout
from .letters import Letter
from .machine import Found, Machine, Rule, start
from .normal import Normal
from .rhythm import rhythm
from .traces import Trace, Tracer

END = -1
BEFORE, ITEM, REST, AFTER, ENDED = "before", "item", "rest", "after", "ended"
AHEAD = 16  # items that a role may be ahead of another

Watcher = Callable[["Progress", "State", int, int], None]


@dataclass(eq=False)
class State:
    """The machine, and where each unit is: in which stage of its life, trace, chunk and event. `begun`: whether the item before
    has begun this one."""

    machine: Machine
    word: list[int]
    stage: list[str]
    traces: list[Trace]
    at: list[int]
    event: list[int]
    begun: list[int]

    def copy(self) -> State:
        traces, at, event, begun = self.traces[:], self.at[:], self.event[:], self.begun[:]
        return State(self.machine.copy(), self.word[:], self.stage[:], traces, at, event, begun)

    @property
    def gone(self) -> list[bool]:
        """Which units have left."""
        return [s == ENDED for s in self.stage]


class Progress:
    """One kernel at fixed flags. `letters` may grow: those of `items` that differ in what roles do. apart: states differ where
    somebody has yet to pass a phase in the one, and nobody in the other."""

    def __init__(
        self, kernel: Kernel, flags: tuple[tuple[str, bool], ...], items: list[Letter], cap: int = 0, apart: bool = False
    ):
        self.kernel, self.flags = kernel, flags
        self.items: list[Letter] = []
        self.letters: list[Letter] = []
        self.layout = layout(kernel)
        self.units = range(len(self.layout.units))
        self.normal = Normal(self.layout, apart)
        self.rhythm = rhythm(kernel)
        fixed: dict[str, Any] = {**(items[0].dims if items else {}), **{FLAG + k: v for k, v in flags}}
        self.tracers = [Tracer(Maker(self.layout, u), fixed) for u in self.layout.units]
        self.joined = any(t.joined for t in self.tracers)
        self.traced: dict[tuple, Trace] = {}
        self.kinds: dict[tuple, int] = {}
        self.rests: dict[tuple, int] = {}
        self.rows: dict[int, dict[tuple[int, int], int]] = {}
        self.alike: set[tuple] = set()
        self.more(items, cap)

    def more(self, items: list[Letter], cap: int) -> None:
        """Further items. Those in which all roles do what they do in another one are left out, unless another loop is at its
        cap."""
        self.items += items
        for x in items:
            self.letters.append(x)
            self._leave_out(len(self.letters) - 1, cap)
        self.kinds.clear()  # what they are has to be said of more letters; no number stands for anything else than before

    def _leave_out(self, letter: int, cap: int) -> None:
        """The last letter, if there is another one like it."""
        if self.joined:
            return
        first, every = self.rhythm
        keys = [(u, letter, n, 0) for u, t in enumerate(self.tracers) if t.items is not None for n in range(first + every)]
        traces = [self.trace(*key) for key in keys]
        alike = tuple([(t.numbers, (t.rounds, t.stretches) if t.longest(cap) else ()) for t in traces])
        if alike in self.alike:
            self.letters.pop()
            self.rows.pop(letter, None)
            for key in keys:
                del self.traced[key]
        self.alike.add(alike)

    def first(self) -> State:
        machine = start(self.layout, [t.maker.products for t in self.tracers])
        n = len(self.units)
        return State(machine, [], [BEFORE] * n, [t.outside(BEFORE) for t in self.tracers], [0] * n, [0] * n, [0] * n)

    # Steps.
    def sweep(self, state: State, watch: Watcher | None = None) -> bool:
        """Let each unit run to the end of its chunk, or until it has to wait. Whether any did anything."""
        moved = False
        for u in self.units:
            moved |= self.step(state, u, watch)
        return moved

    def step(self, state: State, u: int, watch: Watcher | None) -> bool:
        moved = False
        while state.at[u] >= len(state.traces[u].chunks):
            if state.stage[u] == ENDED or not self.turn(state, u):
                return moved
            moved = True
        events, machine, k = state.traces[u].chunks[state.at[u]].events, state.machine, state.event[u]
        while k < len(events):
            if watch is not None:
                watch(self, state, u, k)
            if events[k](machine):
                break
            k, moved = k + 1, True
        done = k == len(events)
        state.at[u], state.event[u] = (state.at[u] + 1, 0) if done else (state.at[u], k)
        return moved

    def turn(self, state: State, u: int) -> bool:
        """Go on to the next item, or behind the items, or leave. False: that takes a letter that isn't there yet."""
        stage = state.stage[u]
        if stage == AFTER or (stage == BEFORE and self.tracers[u].items is None):
            ended(state.machine, self.layout.units[u])
            state.stage[u] = ENDED
            return True
        following = self.after(state, u)
        if following is None:
            return False
        begun = state.traces[u].begun if stage == REST else 0
        state.stage[u], state.traces[u] = following
        state.at[u] = state.event[u] = 0
        if state.stage[u] == ITEM:
            state.machine.item[u] += 1
            state.begun[u] = begun
        return True

    def after(self, state: State, u: int) -> tuple[str, Trace] | None:
        """What a unit does after its current steps; None: not before there is a further letter."""
        tracer, trace, stage = self.tracers[u], state.traces[u], state.stage[u]
        if tracer.items is None or (stage == ITEM and trace.leaves):
            return AFTER, self.outside(u)
        item = state.machine.item[u] + 1
        if item >= len(state.word):
            return None
        letter = state.word[item]
        if tracer.joined and stage == ITEM:
            return REST, self.rest(u, state.word[item - 1], letter, self.ordinal(item - 1), state.begun[u])
        if letter == END and (not tracer.learns or tracer.joined):
            return AFTER, self.outside(u)
        return ITEM, self.trace(u, letter, self.ordinal(item), trace.begun if stage == REST else 0)

    def wants(self, state: State) -> bool:
        """Whether a unit can't go on without the next letter. Raises Found if one is too far ahead of the others."""
        at_end = [state.at[u] >= len(state.traces[u].chunks) and state.stage[u] in (BEFORE, ITEM, REST) for u in self.units]
        if not any(e and self.after(state, u) is None for u, e in enumerate(at_end)):
            return False
        items = [i for i, gone in zip(state.machine.item, state.gone, strict=True) if not gone]
        if max(items) - min(items) > AHEAD:
            raise Found(Rule.RUNAWAY, state.machine.item.index(max(items)))
        return True

    def stuck(self, state: State) -> Found:
        """Nobody can go on."""
        waiting = [u for u in self.units if state.stage[u] != ENDED]
        return Found(Rule.STAYS if len(waiting) < len(self.units) else Rule.DEADLOCK, waiting[0])

    # Traces.
    def outside(self, u: int) -> Trace:
        if (u, AFTER) not in self.traced:
            self.traced[u, AFTER] = self.tracers[u].outside(AFTER)
        return self.traced[u, AFTER]

    def trace(self, u: int, letter: int, ordinal: int, begun: int) -> Trace:
        key = (u, letter, ordinal, begun)
        if key not in self.traced:
            own = None if letter == END else self.letters[letter]
            self.traced[key] = self.tracers[u].item(own, ordinal, begun, self.numbering(letter))
        return self.traced[key]

    def rest(self, u: int, letter: int, following: int, ordinal: int, begun: int) -> Trace:
        key = (u, letter, following, ordinal, begun)
        if key not in self.traced:
            after = None if following == END else self.letters[following]
            self.traced[key] = self.tracers[u].rest(self.letters[letter], after, ordinal, begun, self.numbering(letter))
        return self.traced[key]

    def numbering(self, letter: int) -> Callable[[int, int], int]:
        """Numbers for the rows that are cleared in an item; -1 if there are none."""
        numbers = self.rows.setdefault(letter, {})
        return lambda start, stop: numbers.setdefault((start, stop), len(numbers)) if start < stop else -1

    def ordinal(self, item: int) -> int:
        """An item's number, as far as it matters."""
        first, every = self.rhythm
        return item if item < first else first + (item - first) % every

    # What tells states apart.
    def key(self, state: State) -> tuple[tuple, tuple[int, ...]]:
        """A state, and apart from it what is known in it (see `normal`)."""
        x, gone = state.machine, state.gone
        least = min([i for i, g in zip(x.item, gone, strict=True) if not g], default=0)
        places = tuple([
            (s, t.left[a], e, 0 if s == ENDED else i - least, t.begun, self._going_on(state, u))
            for u, (s, t, a, e, i) in enumerate(zip(state.stage, state.traces, state.at, state.event, x.item, strict=True))
        ])  # fmt: skip
        skeleton, known = self.normal.key(x, gone)
        return (places, tuple(state.word[least + 1 :]), self.ordinal(least), skeleton), known

    def _going_on(self, state: State, u: int) -> int:
        """What a joined item is to a unit once the next one is named: equal for letters that go on alike whatever follows."""
        if not self.joined or state.stage[u] != ITEM:
            return 0
        item = state.machine.item[u]
        key = (u, state.word[item], self.ordinal(item), state.begun[u])
        if key not in self.kinds:
            rests = [self.rest(u, key[1], k, *key[2:]) for k in range(END, len(self.letters))]
            self.kinds[key] = self.rests.setdefault(tuple([(t.numbers, t.begun) for t in rests]), len(self.rests))
        return self.kinds[key]

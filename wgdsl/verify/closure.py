"""explore: whether the protocol of a kernel can go wrong, for items of any kind, in any order, of any length.

In: a kernel whose structure holds.  Out: how much there was to look at, and the first fault if there is one, with the word of
items that leads to it.

The word of items that a CTA works off is read letter by letter, each when no role can go on without it; for a given word the
machine is deterministic. States that repeat are gone into once. Loops are tried up to `cap` rounds: a run must show, in each loop
that runs so often, a state that comes back after some rounds, with every role as many rounds further; then more rounds only add
what has been seen.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import lcm
from typing import Any

from ..program.poly import Atom, Poly
from ..roles import model as m
from ..roles.model import Kernel
from ..roles.witness import Witness, WitnessItem
from .control import FLAG, flags_of, items_of, steering
from .events import Maker, ended
from .layout import Layout, layout
from .letters import ORDINAL, Letter, letters
from .machine import Found, Machine, Rule, start
from .normal import Normal
from .traces import AFTER, BEFORE, Trace, Tracer

LIMIT = 20_000  # states
SLACK = 4  # rounds of a loop beyond the deepest ring
MOST_SLACK = 12
FEW = 4  # letters to begin with
SHORT = 8  # letters of which shorter counter-examples are made
AHEAD = 64  # items that a role may be ahead of another
END = -1


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A broken rule: what was found, the word that leads there, and where."""

    found: Found
    word: tuple[Letter, ...]
    flags: tuple[tuple[str, bool], ...]
    layout: Layout
    explorer: _Explorer | None = None
    numbers: tuple[int, ...] = ()

    @property
    def witness(self) -> Witness:
        items = tuple(WitnessItem(dims=tuple(x.dims.items()), indices=tuple(x.indices.items())) for x in self.word)
        dims = items[0].dims if items else ()
        return Witness(kernel=self.layout.kernel.name, items=items, dims=dims, flags=self.flags)


@dataclass(kw_only=True)
class Exploration:
    """What an exploration has seen."""

    kernel: str
    letters: int = 0
    states: int = 0
    words: int = 0
    fault: Fault | None = None


@dataclass(eq=False)
class State:
    """The machine, and where each unit is."""

    machine: Machine
    word: list[int]
    stage: list[str]
    traces: list[Trace]
    at: list[int]
    event: list[int]
    begun: list[int]  # whether the item before has begun this one

    def copy(self) -> State:
        parts = (self.word, self.stage, self.traces, self.at, self.event, self.begun)
        return State(self.machine.copy(), *[p[:] for p in parts])


ITEM, REST, ENDED = "item", "rest", "ended"


def explore(kernel: Kernel, limit: int = LIMIT) -> Exploration:
    """Every word of items, until nothing new comes up or a rule is broken."""
    out = Exploration(kernel=kernel.name)
    flags = flags_of(kernel)
    for values in product((True, False), repeat=len(flags)):
        found = _explored(kernel, tuple(zip(flags, values, strict=True)), limit - out.states)
        out.letters = max(out.letters, found.letters)
        out.states, out.words, out.fault = out.states + found.states, out.words + found.words, found.fault
        if out.fault is not None:
            break
    return out


def _explored(kernel: Kernel, flags: tuple[tuple[str, bool], ...], limit: int) -> _Explored:
    """With more rounds of loops until they come back to where they were."""
    slack, merged = SLACK, True
    while True:
        explorer = _Explorer(kernel, flags, slack, limit, merged)
        found = explorer.run()
        if found.fault is not None and found.fault.found.rule != Rule.STATES:
            found.fault = explorer.confirmed(found.fault)
            if found.fault is None:  # less was known than ever is: look at each state by itself
                merged = False
                continue
        if found.fault is not None or not found.unclear:
            return found
        if slack >= MOST_SLACK:
            why = "how often loops run"
            found.fault = Fault(found=Found(Rule.STATES, 0, why=why), word=(), flags=flags, layout=explorer.layout)
            return found
        slack += 2


@dataclass(kw_only=True)
class _Explored(Exploration):
    skeletons: int = 0
    unclear: bool = False  # a loop at its cap showed no state that comes back


@dataclass(eq=False)
class _Fork:
    """A state that needs the next letter. `tried`: so many have been tried from it."""

    state: State
    tried: int = 0


@dataclass(eq=False)
class Watch:
    """What happened in a replayed word: (unit, item, step) in order; bit -> which of these made it so."""

    events: list[tuple[int, int, m.Step]] = field(default_factory=list)
    made: dict[int, int] = field(default_factory=dict)
    state: State | None = None
    last: tuple[int, int, int, int] | None = None

    def sees(self, explorer: _Explorer, state: State, u: int, k: int) -> None:
        """A unit is about to try an event, perhaps once more."""
        place = (u, state.machine.item[u], state.at[u], k)
        step = state.traces[u].chunks[state.at[u]].steps[k]
        last = self.waiting.get(u)
        again = last is not None and (last == place or last == (*place[:3], k - 1) and self.events[self.numbers[u]][2] is step)
        if not again:
            self.events.append((u, state.machine.item[u], step))
            self.numbers[u] = len(self.events) - 1
        self.waiting[u] = place
        state.machine.events = self.numbers[u]

    def __post_init__(self) -> None:
        self.waiting: dict[int, tuple[int, int, int, int]] = {}
        self.numbers: dict[int, int] = {}


class _Explorer:
    def __init__(self, kernel: Kernel, flags: tuple[tuple[str, bool], ...], slack: int, limit: int, merged: bool = True):
        self.merged = merged
        self.kernel, self.flags, self.limit = kernel, flags, limit
        self.layout = layout(kernel)
        self.normal = Normal(self.layout)
        self.cap = max([r.stages for r in kernel.rings] + [1]) + slack
        self.letters = letters(kernel, self.cap)
        fixed: dict[str, Any] = {**(self.letters[0].dims if self.letters else {}), **{FLAG + k: v for k, v in flags}}
        self.tracers = [Tracer(Maker(self.layout, u), fixed) for u in self.layout.units]
        self.joined = any(t.joined for t in self.tracers)
        self.traced: dict[tuple, Trace] = {}
        self.kinds: dict[tuple, int] = {}
        self.rests: dict[tuple, int] = {}
        self.rows: dict[int, dict[tuple[int, int], int]] = {}
        self.seen: dict[Hashable, tuple[int, ...]] = {}
        self.apart: dict[Hashable, list[tuple[int, ...]]] = {}
        self.states = 0
        self.pumps: list[_Pump] = []
        self.forks: dict[Hashable, _Fork] = {}
        self.out = _Explored(kernel=kernel.name, letters=len(self.letters))

    @cached_property
    def round(self) -> int:
        """After how many items of a CTA what depends on an item's number comes round again; 0: nothing depends on it."""
        every = [p for r in self.kernel.roles if (i := items_of(r)) and i.counted for s in m.walk(i.body) for p in steering(s)]
        polys = [p for p in every if ORDINAL in p.symbols()]
        self.first_items = max((abs(c) for p in polys for t, c in p.terms if not t), default=0)
        return lcm(1, *(k for p in polys for k in _moduli(p))) if polys else 0

    def ordinal(self, item: int) -> int:
        """An item's number, as far as it matters."""
        if not self.round:
            return 0
        least = self.first_items
        return item if item < least else least + (item - least) % self.round

    # Words.
    def run(self) -> _Explored:
        state = self.first()
        try:
            self.fork(state, self.go(state))
            for level in self.levels():
                while (before := next((f for f in self.forks.values() if f.tried < level), None)) is not None:
                    tried, before.tried = before.tried, level
                    for letter in self.options(before.state, tried, level):
                        state = before.state.copy()
                        state.word.append(letter)
                        self.fork(state, self.go(state))
        except Found as found:
            self.out.fault = self.fault(found, state.word)
        self.out.unclear = any(not self.closed(p) for p in self.pumps)
        self.out.states = self.states
        self.out.skeletons = len(self.seen)
        return self.out

    def fault(self, found: Found, word: list[int]) -> Fault:
        letters = tuple(self.letters[k] for k in word if k != END)
        return Fault(found=found, word=letters, flags=self.flags, layout=self.layout, explorer=self, numbers=tuple(word))

    # Counter-examples.
    def confirmed(self, fault: Fault) -> Fault | None:
        """The fault of the shortest word that has one, if that of the word that was found is real."""
        if self.replayed(fault.numbers) is None:
            return None
        short = range(min(len(self.letters), SHORT))
        for n in range(1, len(fault.numbers)):
            for word in product(short if n > 1 else range(len(self.letters)), repeat=n):
                found = self.replayed(word)
                if found is not None:
                    return found
        return self.replayed(fault.numbers)

    def replayed(self, word: Sequence[int], watch: Watch | None = None) -> Fault | None:
        """The fault that a word of items leads to, then the end, if it does."""
        state = self.first()
        if watch is not None:
            state.machine.made = watch.made
        left = [k for k in word if k != END] + [END]
        try:
            while True:
                moved = False
                for u in range(len(self.layout.units)):
                    moved |= self.step(state, u, watch)
                if moved:
                    continue
                if all(s == ENDED for s in state.stage):
                    return None
                if not any(self.wants(state, u) for u in range(len(self.layout.units))):
                    raise self.stuck(state)
                if not left:
                    return None
                state.word.append(left.pop(0))
        except Found as found:
            if watch is not None:
                watch.state = state
            return self.fault(found, state.word)

    def closed(self, pump: _Pump) -> bool:
        return any(all([a & b == a for a, b in zip(self.seen[x], self.seen[y], strict=True)]) for x, y in pump.pairs)

    def first(self) -> State:
        units = self.layout.units
        machine = start(self.layout, [t.maker.all_registers for t in self.tracers])
        traces = [t.outside(BEFORE) for t in self.tracers]
        return State(machine, [], [BEFORE] * len(units), traces, *[[0] * len(units) for _ in range(3)])

    def fork(self, state: State, wants: bool) -> None:
        """Go on from here with each letter, later: by then less may be known of the same state, which is then the one to try."""
        if wants:
            self.out.words += 1
            skeleton, known = self.key(state)
            self.forks[skeleton if self.merged else (skeleton, known)] = _Fork(state)

    def levels(self) -> Iterator[int]:
        """How many letters to try: a few first, until nothing new comes up, so that with many it is known how little is known."""
        level = FEW
        while level < len(self.letters):
            yield level
            level *= FEW
        yield len(self.letters)

    def options(self, state: State, tried: int, level: int) -> Iterator[int]:
        """What may come next. A CTA has an item at least, and without a persistent grid one."""
        if (state.word or not self.letters) and not tried:
            yield END
        if not state.word or self.kernel.grid.persistent:
            yield from range(max(tried, 0), level)

    # Runs.
    def go(self, state: State) -> bool:
        """Go on to where the next letter is needed. False: there is nothing new, or all roles have left."""
        pumps, old = _Pumps(self), False
        while True:
            moved = False
            for u in range(len(self.layout.units)):
                moved |= self.step(state, u)
            if not moved:
                break
            skeleton, known = self.known(state)
            pumps.look(state, skeleton)
            old |= known
            if old and not pumps.open:
                return False
        if all(s == ENDED for s in state.stage):
            return False
        if any(self.wants(state, u) for u in range(len(self.layout.units))):
            self.bounded(state)
            return not old
        raise self.stuck(state)

    def known(self, state: State) -> tuple[Any, bool]:
        """What tells the state from others, and whether it has been gone into with no more known than now."""
        skeleton, known = self.key(state)
        if not self.merged:
            return skeleton, self.alone(skeleton, known)
        least = self.seen.get(skeleton)
        if least is not None:
            both = tuple([a & b for a, b in zip(least, known, strict=True)])
            if both == least:
                return skeleton, True
            if both != known:
                self.normal.impose(state.machine, [s == ENDED for s in state.stage], both)
                known = both
        self.seen[skeleton] = known
        self.states += 1
        if self.states > self.limit:
            raise Found(Rule.STATES, 0, why=f"{self.limit}")
        return skeleton, False

    def alone(self, skeleton: Hashable, known: tuple[int, ...]) -> bool:
        """The same without taking states together."""
        others = self.apart.setdefault(skeleton, [])
        if any(all([a & b == a for a, b in zip(o, known, strict=True)]) for o in others):
            return True
        others.append(known)
        self.seen[skeleton] = known
        self.states += 1
        if self.states > self.limit:
            raise Found(Rule.STATES, 0)
        return False

    def key(self, state: State) -> Hashable:
        x, gone = state.machine, [s == ENDED for s in state.stage]
        items = [i for i, g in zip(x.item, gone, strict=True) if not g]
        least = min(items, default=0)
        places = tuple([
            (s, t.numbers[a:], e, i - least, t.begun, self.going_on(state, u) if self.joined and s == ITEM else 0)
            for u, (s, t, a, e, i) in enumerate(zip(state.stage, state.traces, state.at, state.event, x.item, strict=True))
        ])  # fmt: skip
        skeleton, known = self.normal.key(x, gone)
        return (places, tuple(state.word[least + 1 :]), self.ordinal(least), skeleton), known

    def going_on(self, state: State, u: int) -> int:
        item = state.machine.item[u]
        return self.kind(u, state.word[item], self.ordinal(item), state.begun[u])

    def wants(self, state: State, u: int) -> bool:
        """Whether a unit can't go on without the next letter."""
        return state.stage[u] in (BEFORE, ITEM, REST) and state.at[u] >= len(state.traces[u].chunks) and self.after(state, u) is None

    def step(self, state: State, u: int, watch: Watch | None = None) -> bool:
        """Run a unit to the end of its chunk, or until it has to wait. Whether it did anything."""
        moved = False
        while state.at[u] >= len(state.traces[u].chunks):
            if state.stage[u] == ENDED or not self.turn(state, u):
                return moved
            moved = True
        events, machine = state.traces[u].chunks[state.at[u]].events, state.machine
        k = state.event[u]
        while k < len(events):
            if watch is not None:
                watch.sees(self, state, u, k)
            if events[k](machine):
                break
            k += 1
            moved = True
        if k < len(events):
            state.event[u] = k
        else:
            state.at[u] += 1
            state.event[u] = 0
        return moved

    def turn(self, state: State, u: int) -> bool:
        """Go on to the next item, or behind the items, or leave. False: that takes a letter that isn't there yet."""
        stage, tracer = state.stage[u], self.tracers[u]
        if stage == AFTER or (stage == BEFORE and tracer.items is None):
            ended(state.machine, self.layout.units[u])
            state.stage[u] = ENDED
            return True
        following = self.after(state, u)
        if following is None:
            return False
        before = state.traces[u].begun if stage == REST else 0
        stage, trace = following
        if stage == ITEM:
            state.machine.item[u] += 1
            state.begun[u] = before
        state.stage[u], state.traces[u], state.at[u], state.event[u] = stage, trace, 0, 0
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

    def kind(self, u: int, letter: int, ordinal: int, begun: int) -> int:
        """What a joined item is to a unit once the next one is named: equal for letters that go on alike whatever follows."""
        key = (u, letter, ordinal, begun)
        if key not in self.kinds:
            rests = [self.rest(u, letter, k, ordinal, begun) for k in range(END, len(self.letters))]
            self.kinds[key] = self.rests.setdefault(tuple([(t.numbers, t.begun) for t in rests]), len(self.rests))
        return self.kinds[key]

    def numbering(self, letter: int):
        """Numbers for the rows that are cleared in an item; -1 if there are none."""
        numbers = self.rows.setdefault(letter, {})
        return lambda start, stop: numbers.setdefault((start, stop), len(numbers)) if start < stop else -1

    def bounded(self, state: State) -> None:
        items = [i for i, s in zip(state.machine.item, state.stage, strict=True) if s != ENDED]
        if items and max(items) - min(items) > AHEAD:
            raise Found(Rule.RUNAWAY, state.machine.item.index(max(items)))

    def stuck(self, state: State) -> Found:
        waiting = [u for u, s in enumerate(state.stage) if s != ENDED]
        gone = len(waiting) < len(state.stage)
        return Found(Rule.STAYS if gone else Rule.DEADLOCK, waiting[0], name=",".join(map(str, waiting)))


@dataclass(eq=False)
class _Pump:
    """A loop at its cap, in one run: pairs of states alike, with more and with fewer rounds to go."""

    pairs: list[tuple[Hashable, Hashable]] = field(default_factory=list)


class _Pumps:
    """Whether each loop at its cap comes back to a state with all roles as many rounds further.

    What is known may differ between the two. It is enough if, in all that was tried, no less is known with fewer rounds to go:
    then one round from the former leads to what the latter is, or better, and so on for any number of rounds.
    """

    def __init__(self, explorer: _Explorer):
        self.explorer = explorer
        self.shapes: dict[Hashable, list[tuple[list[tuple[int, int]], list[int], Hashable]]] = {}
        self.traces: list[Trace | None] = [None] * len(explorer.layout.units)
        self.loops: dict[tuple[int, int, int], _Pump] = {}  # unit, item, loop

    @property
    def open(self) -> bool:
        return any(not self.explorer.closed(p) for p in self.loops.values())

    def look(self, state: State, skeleton: tuple) -> None:
        for u, t in enumerate(state.traces):
            if t is not self.traces[u]:
                self.traces[u] = t
                for loop in t.longest(self.explorer.cap):
                    pump = self.loops[u, state.machine.item[u], loop] = _Pump()
                    self.explorer.pumps.append(pump)
        if not self.loops:
            return
        rounds = [t.rounds[a] if a < len(t.rounds) else (-1, 0) for t, a in zip(state.traces, state.at, strict=True)]
        if all(r[0] < 0 for r in rounds):
            return
        shape = (tuple(state.event), tuple(state.stage), tuple([r[0] for r in rounds]), tuple(state.machine.item), skeleton[1:3], self.explorer.normal.near(skeleton[3]))
        for before, at, longer in self.shapes.get(shape, ()):
            further = {b[1] - a[1] for a, b, x, y in zip(before, rounds, at, state.at, strict=True) if x != y}
            if len(further) == 1 and further.pop() > 0:
                for u, r in enumerate(rounds):
                    if (pump := self.loops.get((u, state.machine.item[u], r[0]))) is not None:
                        pump.pairs.append((longer, skeleton))
        self.shapes.setdefault(shape, []).append((rounds, state.at[:], skeleton))


def _moduli(p: Poly) -> Iterator[int]:
    for monomial, _ in p.terms:
        for f in monomial:
            if isinstance(f, Atom):
                if f.op == "mod" and f.args[1].constant:
                    yield f.args[1].constant
                for a in f.args:
                    yield from _moduli(a)

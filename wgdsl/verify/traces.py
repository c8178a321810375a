"""What a unit does for one item, as a row of chunks: the events of a round of an outermost loop, or those between two loops.

In: a unit's role, a letter, and the one that follows where items are joined.  Out: its chunks in order, and of each the loop
that it belongs to; and which rounds are alike. Chunks that do the same have one number, so that what is left of an item can be
compared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from ..roles import model as m
from ..roles.model import Step
from .control import ROWS, condition, conditions, decisive, integer, items_of, outermost, polys_in
from .events import Event, Maker, alike
from .letters import BEGUN, FOLLOWS, ORDINAL, Letter
from .stretches import Stretch

NO_LOOP = (-1, 0)


@dataclass(frozen=True, eq=False)
class Piece:
    """Events without a branch in between. `kinds`: of each, the same for those that do the same. `steps`: of each, its step."""

    kinds: tuple[int, ...]
    events: tuple[Event, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class Chunk:
    """`number`: the same for chunks that do the same. `steps`: of each event, its step."""

    number: int
    events: tuple[Event, ...]
    steps: tuple[Step, ...]


class Trips(NamedTuple):
    """An outermost loop: the place (see `stretches`) where it begins, by how much one of its rounds moves on, and how often it
    runs."""

    start: int
    step: int
    count: int


@dataclass(frozen=True, eq=False)
class Trace:
    """`numbers`: of the chunks. `left`: of each place, a number that is the same where the same chunks are still to come.
    `rounds`: of each chunk, the outermost loop that it runs in, by its place among the pieces, and how far its variable has
    come; (-1, 0): none. `trips`: of these loops. `leaves`: the role has no further item. `begun`: what the role has said of the
    item that follows. `stretches`: the item's."""

    chunks: tuple[Chunk, ...]
    rounds: tuple[tuple[int, int], ...]
    leaves: bool
    begun: int
    numbers: tuple[int, ...]
    left: tuple[int, ...]
    trips: Mapping[int, Trips]
    stretches: tuple[Stretch, ...]

    def longest(self, cap: int) -> tuple[Stretch, ...]:
        """The stretches that are as long as any may be, or even longer, in a loop of this role."""
        return tuple([s for s in self.stretches if any(_within(s, t) >= cap > 0 for t in self.trips.values())])

    def alike(self, stretch: Stretch, loop: int, before: int, after: int) -> bool:
        """Whether what a loop does from the one round to the other is what it repeats as the stretch grows: seen twice, and in
        all rounds that become more."""
        trips, contents = self.trips[loop], self.contents(loop)
        low, high = before // trips.step, after // trips.step
        period = high - low
        if contents[low] != contents[high]:
            return False
        while low and contents[low - 1] == contents[low - 1 + period]:
            low -= 1
        while high + 1 < trips.count and contents[high + 1] == contents[high + 1 - period]:
            high += 1
        start, stop = trips.start + low * trips.step, trips.start + (high + 1) * trips.step
        first, last = max(stretch.first, trips.start), min(stretch.last, trips.start + trips.count * trips.step)
        return high + 1 - low >= 2 * period and start <= first < last <= stop

    def contents(self, loop: int) -> list[list[int]]:
        """The chunks of each round of a loop, by number."""
        out: list[list[int]] = [[] for _ in range(self.trips[loop].count)]
        for number, (inside, n) in zip(self.numbers, self.rounds, strict=True):
            if inside == loop:
                out[n // self.trips[loop].step].append(number)
        return out


def _within(s: Stretch, t: Trips) -> int:
    """How many rounds of a loop are in a stretch."""
    return -(-(min(s.stop, t.start + t.count * t.step) - max(s.start, t.start)) // t.step)


@dataclass(eq=False)
class Tracer:
    """Traces of one unit. Flags and dims outside of items are fixed."""

    maker: Maker
    fixed: Mapping[str, Any]
    pieces: dict[tuple, Piece] = field(default_factory=dict)
    chunks: dict[tuple[Piece, ...], Chunk] = field(default_factory=dict)
    kinds: dict[Hashable, int] = field(default_factory=dict)
    numbers: dict[tuple[int, ...], int] = field(default_factory=dict)
    lefts: dict[tuple[int, int], int] = field(default_factory=dict)
    blocks: dict[tuple[int, bool], tuple] = field(default_factory=dict)

    def __post_init__(self) -> None:
        role = self.maker.unit.role
        self.items = items_of(role)
        steps = tuple(outermost(role.steps, role.elected))
        at = next((k for k, (s, _) in enumerate(steps) if s is self.items), len(steps))
        self.by_thread = steps[at][1] if at < len(steps) else role.elected
        self.before, self.after = steps[:at], steps[at + 1 :]
        self.joined = self.items is not None and self.items.joined
        self.learns = self.items is not None and self.items.source != "stride"  # that there is no item, in its body

    def outside(self, when: str) -> Trace:
        """The steps `before` or `after` the items."""
        run = _Run(self, dict(self.fixed))
        for s, by_thread in self.before if when == "before" else self.after:
            run.steps((s,), by_thread)
        return run.trace()

    def item(self, letter: Letter | None, ordinal: int, begun: int, rows: Callable) -> Trace:
        """The steps of an item; where items are joined, those before the next one is named. letter None: there is none, which
        the role learns on the way."""
        return self._walk(letter, letter, ordinal, begun, rows, stops=self.joined).trace()

    def rest(self, letter: Letter, following: Letter | None, ordinal: int, begun: int, rows: Callable) -> Trace:
        """The steps of a joined item from where the next one is named. following None: there is none."""
        assert self.items is not None
        run = self._walk(letter, following or letter, ordinal, begun, rows, follows=following is not None)
        return run.trace(run.named)

    def joined_up(self, pieces: tuple[Piece, ...]) -> Chunk:
        """Pieces that follow one another as one chunk."""
        if pieces not in self.chunks:
            number = self.numbers.setdefault(tuple([k for p in pieces for k in p.kinds]), len(self.numbers))
            events, steps = ([x for p in pieces for x in getattr(p, name)] for name in ("events", "steps"))
            self.chunks[pieces] = Chunk(number, tuple(events), tuple(steps))
        return self.chunks[pieces]

    def left(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Of each place in a trace, a number for all that is left from there on; 0 at its end."""
        out = [0]
        for n in reversed(numbers):
            out.append(self.lefts.setdefault((n, out[-1]), len(self.lefts) + 1))
        return tuple(reversed(out))

    def _walk(self, letter, following, ordinal: int, begun: int, rows: Callable, *, stops=False, follows=False) -> _Run:
        assert self.items is not None
        at = {**self.fixed, ORDINAL: ordinal, ROWS: rows, BEGUN: begun, FOLLOWS: int(follows)}
        if letter is not None:
            at |= {**letter.dims, **letter.indices, **{m.NEXT + k: v for k, v in following.indices.items()}}
        run = _Run(self, at, following.dims if following is not None else {}, leaves=letter is None, stops=stops)
        run.stretches = letter.stretches if letter is not None else ()
        run.steps(self.items.body, self.by_thread)
        return run


class _Run:
    """One walk through steps, with what is bound. ahead: the dims that what is said of the item that follows goes by."""

    def __init__(self, tracer: Tracer, at: dict[str, Any], ahead: Mapping[str, int] | None = None, leaves=False, stops=False):
        self.tracer, self.at, self.ahead, self.leaves, self.stops = tracer, at, ahead or {}, leaves, stops
        self.at["wg"] = tracer.maker.unit.wg
        self.pieces: list[Piece] = []
        self.rounds: list[tuple[int, int]] = []
        self.round = NO_LOOP
        self.trips: dict[int, Trips] = {}
        self.stretches: tuple[Stretch, ...] = ()
        self.place = 0
        self.left = False
        self.begun = 0
        self.named = 0  # how many pieces come before the next item is named

    def trace(self, start: int = 0) -> Trace:
        """Of what has been walked through, from some piece on."""
        tracer, chunks, rounds = self.tracer, [], []
        for where, pieces in groupby(zip(self.rounds[start:], self.pieces[start:], strict=True), key=itemgetter(0)):
            chunks.append(tracer.joined_up(tuple([piece for _, piece in pieces])))
            rounds.append((where[0] - start, where[1]) if where != NO_LOOP else NO_LOOP)
        numbers = tuple([c.number for c in chunks])
        trips = {loop - start: n for loop, n in self.trips.items() if loop >= start}
        left = tracer.left(numbers)
        return Trace(tuple(chunks), tuple(rounds), self.leaves, self.begun, numbers, left, trips, self.stretches)

    def steps(self, steps: tuple[Step, ...], by_thread: bool) -> None:
        known = self.tracer.blocks.get((id(steps), by_thread))
        for node in known[1] if known is not None else self._cut(steps, by_thread):
            if isinstance(node, _Block):
                self._emit(node)
            else:
                self._control(*node)
            if self.left:
                return

    def _cut(self, steps: tuple[Step, ...], by_thread: bool) -> tuple:
        """Straight blocks, and what stands between them."""
        out: list[Any] = []
        for s, alone in outermost(steps, by_thread):
            if isinstance(s, CONTROL):
                out.append((s, alone, _values_of(s)))
                continue
            if not out or not isinstance(out[-1], _Block):
                out.append(_Block())
            out[-1].steps.append((s, alone))
            out[-1].values += self._values(s)
        self.tracer.blocks[id(steps), by_thread] = steps, tuple(out)  # with the list itself, so that its number stays its own
        return tuple(out)

    def _values(self, s: Step) -> list[Callable]:
        """What the events of a step depend on beside the warpgroup."""
        if isinstance(s, m.ClearRows):
            parts = [integer(p) for p in (s.part,) if p.symbols() - {"wg"}]
            return [self._cleared(s), *parts]
        tests = [condition(c) for c in conditions(s) if any(p.symbols() - {"wg"} for p in polys_in(c))]
        return [*(integer(p) for p in decisive(s) if p.symbols() - {"wg"}), *tests]

    def _cleared(self, s: m.ClearRows) -> Callable:
        start, stop, rows = integer(s.start), integer(s.stop), self.tracer.maker.kernel.buffer(s.buffer).rows
        return lambda at: at[ROWS](max(start(at), 0), min(stop(at), rows))

    def _emit(self, block: _Block) -> None:
        tracer, at = self.tracer, self.at
        key = (id(block), tuple([v(at) for v in block.values]))
        piece = tracer.pieces.get(key)
        if piece is None:
            made = [(e, s) for s, by_thread in block.steps for e in tracer.maker.events(s, by_thread, at)]
            kinds = tuple([tracer.kinds.setdefault(alike(e), len(tracer.kinds)) for e, _ in made])
            piece = tracer.pieces[key] = Piece(kinds, tuple([e for e, _ in made]), tuple([s for _, s in made]))
        if piece.events:
            self.pieces.append(piece)
            self.rounds.append(self.round)

    def _control(self, s: Step, by_thread: bool, values: tuple[Callable, ...]) -> None:
        at = self.at
        if isinstance(s, m.Let):
            at[s.name] = values[0]({**at, **self.ahead} if s.name.startswith(m.NEXT) else at)
        elif isinstance(s, m.If):
            self.steps(s.then if values[0](at) else s.other, by_thread)
        elif isinstance(s, m.Loop):
            outer, loop, begun = self.round, len(self.pieces), self.place
            for n, k in enumerate(range(values[0](at), values[1](at), s.step)):
                at[s.var] = k
                if outer == NO_LOOP:
                    self.round, self.trips[loop] = (loop, n * s.step), Trips(begun, s.step, n + 1)
                    self.place = begun + (n + 1) * s.step
                self.steps(s.body, by_thread)
            self.round = outer
        elif isinstance(s, m.Leave):
            self.left = self.leaves
        elif isinstance(s, m.NextItem):
            self.named, self.left = len(self.pieces), self.stops
        elif isinstance(s, m.Begun):
            self.begun = values[0](at)


def _values_of(s: Step) -> tuple[Callable, ...]:
    """The integers and conditions by which a step steers, looked up once for all walks."""
    if isinstance(s, m.If):
        return (condition(s.cond),)
    if isinstance(s, m.Loop):
        return integer(s.start), integer(s.stop)
    return (integer(s.value),) if isinstance(s, m.Let | m.Begun) else ()


CONTROL = (m.Let, m.If, m.Loop, m.Leave, m.Begun, m.NextItem, m.Items)


@dataclass(eq=False)
class _Block:
    """Steps, each with whether one thread runs it; what they depend on beside the warpgroup."""

    steps: list[tuple[Step, bool]] = field(default_factory=list)
    values: list[Callable] = field(default_factory=list)

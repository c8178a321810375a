"""explore: whether the protocol of a kernel can go wrong, for items of any kind, in any order, of any length.

In: a kernel whose structure holds.  Out: how much there was to look at, and the first fault if there is one, with the word of
items that leads to it.

The word of items that a CTA works off is read letter by letter, each when no role can go on without it; for a given word the
machine is deterministic. States that differ only in what is known are taken as one in which only that is known which is known
in all of them; a fault that comes of that alone isn't real, and then each is looked at by itself. Loops are tried up to `cap`
rounds, and `pumps` makes sure that more rounds add nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from ..roles.model import Kernel
from .control import flags_of
from .counter import Fault, running_away, shortest
from .letters import letters, reach
from .machine import Found, Rule
from .progress import END, Progress, State
from .pumps import Known, Pump, Pumps, covers

LIMIT = 20_000  # states
SLACK = 3  # rounds of a loop beyond the deepest ring
MORE = 2  # rounds to add, or two for each that doesn't count
MOST = 14  # rounds beyond the deepest ring
FEW = 4  # letters to begin with
TOGETHER, APART = "together", "apart"  # states that differ in what is known: all, or all that agree on who still waits


@dataclass(kw_only=True)
class Exploration:
    """What an exploration has seen. `letters`: kinds of items; `words`: how often a next item was asked for."""

    kernel: str
    letters: int = 0
    states: int = 0
    words: int = 0
    fault: Fault | None = None


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


def _explored(kernel: Kernel, flags: tuple[tuple[str, bool], ...], limit: int) -> Exploration:
    try:
        explorer = Explorer(kernel, flags, limit)
    except Found as e:  # too much to try
        return Exploration(kernel=kernel.name, fault=Fault(found=e, progress=Progress(kernel, flags, []), word=()))
    found = explorer.run()
    for merging in (APART, None):  # more exactly, if the fault isn't real
        if found.fault is None or found.fault.found.rule == Rule.STATES:
            return found
        real = shortest(found.fault)
        if real is not None:
            found.fault = real
            return found
        found = Explorer(kernel, flags, limit, merging).run()
    found.fault = found.fault and (shortest(found.fault) or found.fault)
    return found


@dataclass(eq=False)
class _Fork:
    """A state that needs the next letter. `tried` is the last one; `again`: those that have been tried only while more was
    known, in the order in which they are to be tried once more."""

    state: State
    tried: int = END - 1
    again: list[int] = field(default_factory=list)

    def behind(self, level: int) -> bool:
        return bool(self.again) or self.tried < level - 1

    def next(self) -> int:
        if self.again:
            return self.again.pop(0)
        self.tried += 1
        return self.tried

    def lower(self, state: State, movers: list[int]) -> None:
        """Less is known. movers: letters after which less was known; it may be so once more."""
        self.state = state
        self.again = list(dict.fromkeys((*(k for k in movers if k <= self.tried), *range(END, self.tried + 1))))


class Explorer:
    """All words of one kernel at fixed flags. merging: which states that differ only in what is known are taken together; None:
    none."""

    def __init__(self, kernel: Kernel, flags: tuple[tuple[str, bool], ...], limit: int, merging: str | None = TOGETHER):
        self.kernel, self.flags, self.limit, self.merged = kernel, flags, limit, merging is not None
        self.apart = merging == APART
        self.deepest = max([r.stages for r in kernel.rings] + [1])
        self.out = Exploration(kernel=kernel.name)
        self.reach = reach(kernel)
        cap = self.deepest + SLACK + max(self.reach - 2, 0)
        self.cap = min(cap, self.deepest + MOST)
        self.progress = Progress(kernel, flags, letters(kernel, cap), self.cap, self.apart)
        self.seen: dict[tuple, list[Known]] = {}
        self.pumps: list[Pump] = []
        self.forks: dict[tuple, _Fork] = {}
        self.movers: list[int] = []
        self.state = self.progress.first()

    def run(self) -> Exploration:
        self.out.fault = running_away(self.progress)
        if self.out.fault is None:
            try:
                self.all_lengths()
            except Found as found:
                self.out.fault = Fault(found=found, progress=self.progress, word=tuple(self.state.word))
        self.out.letters = len(self.progress.letters)
        return self.out

    def all_lengths(self) -> None:
        """With more rounds of loops until they come back to where they were."""
        self.go(self.state)
        while not self.settled():
            if self.cap >= self.deepest + MOST or self.reach > MOST:
                raise Found(Rule.STATES, 0, name=str(self.limit), why="how often loops run")
            self.longer()

    def longer(self) -> None:
        """Let loops run more often. What has been seen stays: each item tried is one that there is, whatever else is tried. One
        that is tried once more may have longer stretches than before, now that items are parted otherwise."""
        before, self.cap = self.cap, min(self.cap + max(MORE, 2 * self.reach), self.deepest + MOST + 1)
        self.pumps.clear()
        known = {(*x.dims.items(), *x.indices.items()) for x in self.progress.items}
        more = letters(self.kernel, self.cap)
        new = (x for x in more if x.trips > before or (*x.dims.items(), *x.indices.items()) not in known)
        self.progress.more(list(new), self.cap)

    def settled(self) -> bool:
        """Until nothing new comes up: each letter from each state that needs one, and where a loop is at its cap, no more taken
        to be known with more rounds to go than with fewer. False: a loop doesn't come back to where it was."""
        self.words()
        while (pump := next((p for p in self.pumps if not self.closed(p)), None)) is not None:
            if not pump.pairs or not self.merged:
                return False
            self.lower(pump)
            self.go(self.state, again=True)
            self.words()
        return True

    def closed(self, pump: Pump) -> bool:
        if self.merged:
            return any(covers(self.seen[more.key][0], self.seen[fewer.key][0]) for more, fewer in pump.pairs)
        return any(covers(more.known, fewer.known) for more, fewer in pump.pairs)

    def lower(self, pump: Pump) -> None:
        more, fewer = pump.pairs[-1]
        both = _both(self.seen[more.key][0], self.seen[fewer.key][0])
        self.state = more.state.copy()
        self.progress.normal.impose(self.state.machine, self.state.gone, both)
        self.seen[more.key] = [both]

    # Letters.
    def words(self) -> None:
        """A few letters first, until nothing new comes up, so that with many it is known how little is known."""
        for level in self.levels():
            while (fork := next((f for f in self.forks.values() if f.behind(level)), None)) is not None:
                letter = fork.next()
                if letter in self.options(fork.state):
                    self.state = fork.state.copy()
                    self.state.word.append(letter)
                    self.go(self.state)

    def levels(self) -> Iterator[int]:
        level = FEW
        while level < len(self.progress.letters):
            yield level
            level *= FEW
        yield len(self.progress.letters)

    def options(self, state: State) -> range:
        """What may come next. A CTA has an item at least, and without a persistent grid one."""
        count = len(self.progress.letters)
        more = count if not state.word or self.kernel.grid.persistent else 0
        return range(END if state.word or not count else 0, more)

    def fork(self, state: State) -> None:
        """Go on from here with each letter, later: by then less may be known of the same state, which is then the one to
        try."""
        self.out.words += 1
        key, known = self.progress.key(state)
        place = key if self.merged else (key, known)
        if place not in self.forks:
            self.forks[place] = _Fork(state)
            return
        self.movers = list(dict.fromkeys((state.word[-1], *self.movers)))
        self.forks[place].lower(state, self.movers)

    # Runs.
    def go(self, state: State, again: bool = False) -> None:
        """Go on to where the next letter is needed, or nothing is new. again: from a state that has been gone into before.
        Raises Found."""
        pumps, old = Pumps(self.progress, 0 if again else self.cap), False
        while self.progress.sweep(state):
            key, known = self.progress.key(state)
            new, known = self.new(state, key, known)
            pumps.look(state, key, known)
            old |= not new
            if old and not pumps.open:
                break
        else:
            self.arrived(state, old)
        self.pumps += pumps.stretches.values()

    def arrived(self, state: State, old: bool) -> None:
        """Nobody can go on by himself."""
        if all(state.gone):
            return
        if not self.progress.wants(state):
            raise self.progress.stuck(state)
        if not old:
            self.fork(state)

    def new(self, state: State, key: tuple, known: Known) -> tuple[bool, Known]:
        """Whether a state has not been gone into with no more known than now; and what is to be known from here on."""
        before = self.seen.setdefault(key, [])
        if any(covers(k, known) for k in before):
            return False, known
        if self.merged and before:
            both = _both(before[0], known)
            if both != known:
                self.progress.normal.impose(state.machine, state.gone, both)
            before[:], known = [both], both
        else:
            before.append(known)
        self.out.states += 1
        if self.out.states > self.limit:
            raise Found(Rule.STATES, 0, name=str(self.limit), why=self.widest())
        return True, known

    def widest(self) -> str:
        """What tells most states apart: the places of roles in a ring, or the kinds of items."""
        normal, places = self.progress.normal, [skeleton[1] for _, _, _, skeleton in self.seen]
        owners = [ring for ring, users in enumerate(normal.users) for _ in users]
        counts = {ring: len({tuple(p[k] for k, o in enumerate(owners) if o == ring) for p in places}) for ring in set(owners)}
        ring = max(counts, key=counts.__getitem__, default=None)
        if ring is None or counts[ring] < len(self.progress.letters):
            return f"the {len(self.progress.letters)} kinds of items"
        return f"the places of the roles in ring `{self.kernel.rings[ring].name}`"


def _both(a: Known, b: Known) -> Known:
    return tuple([x & y for x, y in zip(a, b, strict=True)])

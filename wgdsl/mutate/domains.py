"""When a change is none: what steps see of products and stores in flight, of fences, and of ring positions.

Each domain says what counts as seeing less. A change of the steps that a domain knows is harmless, and its mutant the same
program, if no step sees less in any of them: `unchanged`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..roles import model as m
from ..roles.model import Kernel, Step
from .effects import GENERIC_WRITES, SIGNALS, Effects
from .flow import Domain, Seen, State, harmful
from .model import Change, Path
from .sites import sites
from .unheard import unheard

MOST = 8  # groups in flight, and copies of a step in an open one, that are told apart: none of the steps waits for more
AT_PHASE = (m.Wait, m.Arrive, m.Expect, m.Tma, m.CopyAsync, m.Mma)  # a copy of threads is for those who read at its position
ORDERED = (
    m.Wgmma, m.Commit, m.WaitGroup, m.TmaStore, m.CommitStore, m.WaitStore, m.CopyAsync, m.CommitCopies, m.WaitCopies,
    m.FenceWgmma, m.FenceAsync, m.Advance,
)  # fmt: skip

IN_FLIGHT = "what steps on registers, memory and releases find in flight stays the same"
UNHEARD = "it spoils arrivals alone that no wait comes to: the slot is filled no more"


def harmless(kernel: Kernel, role: int, changes: Iterable[Change]) -> str:
    """The rule by which changes of `ORDERED` steps, and moves of others across them, leave every step what it needs; "" if
    they don't."""
    changes = tuple(changes)
    if unchanged(kernel, role, changes):
        return IN_FLIGHT
    nobody = unheard(kernel, role)
    return UNHEARD if nobody and not _moving(kernel, role, changes) and unchanged(kernel, role, changes, nobody) else ""


def unchanged(kernel: Kernel, role: int, changes: Iterable[Change], nobody: frozenset[Path] = frozenset()) -> bool:
    """Whether all steps see as much as before. Nothing depends on the arrivals at the paths `nobody`."""
    changes, effects = tuple(changes), Effects(kernel, role)
    domains: list[Domain] = [Products(effects, nobody), Stores(effects, nobody), Copies(effects, nobody)]
    domains += [ProductFences(effects), ProxyFences(effects, nobody), *(Position(kernel, r.name) for r in kernel.rings)]
    return not any(harmful(kernel, role, changes, d) for d in domains)


def _moving(kernel: Kernel, role: int, changes: tuple[Change, ...]) -> bool:
    """Whether changes touch the positions by which it is known who hears an arrival."""
    advances = [path for path, s in sites(kernel.roles[role].steps) if isinstance(s, m.Advance)]
    return any(c.covers(path) for c in changes for path in advances)


class InFlight:
    """Asynchronous steps by path: those since the last commit, and the groups, oldest first."""

    issue: type[Step]
    commit: type[Step]
    wait: type[m.WaitGroup | m.WaitStore | m.WaitCopies]

    def __init__(self, effects: Effects, nobody: frozenset[Path]):
        self.effects, self.nobody = effects, nobody
        self.start: State = ((), ())
        self.steps: dict[Path, Step] = {}

    def step(self, state: State, path: Path, s: Step) -> tuple[State, Seen]:
        """An issue or a commit adds, a wait takes away; all else looks."""
        open_, groups = state  # type: ignore[misc]
        if isinstance(s, self.issue):
            self.steps[path] = s
            return (open_ if open_.count(path) == MOST else tuple(sorted((*open_, path))), groups), None
        if isinstance(s, self.commit):
            return ((), (*groups, open_)[-MOST:]), None
        if isinstance(s, self.wait):
            return (open_, groups[max(len(groups) - s.pending, 0) :]), None
        if path in self.nobody or not self.looks(s):
            return state, None
        return state, tuple(p for p in _flying(state) if self.sees(s, self.steps[p]))

    def looks(self, s: Step) -> bool:
        """Whether the step can see anything in flight."""
        raise NotImplementedError

    def sees(self, s: Step, issued: Step) -> bool:
        """Whether the step would meet what is in flight."""
        raise NotImplementedError

    def end(self, state: State) -> Seen:
        """Nothing may outlive the role."""
        return _flying(state)

    def harm(self, before: Seen, after: Seen) -> bool:
        """More in flight than now."""
        return after is not None and bool(Counter(after) - Counter(before))  # type: ignore[arg-type]


def _flying(state: State) -> tuple[Path, ...]:
    open_, groups = state  # type: ignore[misc]
    return tuple(sorted((*open_, *(p for g in groups for p in g))))


class Products(InFlight):
    """Products: met by steps on their registers, by what gives their operands free, and by writes to those."""

    issue, commit, wait = m.Wgmma, m.Commit, m.WaitGroup

    def looks(self, s: Step) -> bool:
        """Steps on registers, and those that let others write."""
        return any(self.effects.registers(s)) or isinstance(s, m.Arrive | m.Tma | m.ClearRows) or self.effects.rendezvous(s)

    def sees(self, s: Step, issued: Step) -> bool:
        """A product's accumulator is its own, its operands may be read."""
        assert isinstance(issued, m.Wgmma)
        reads, writes = self.effects.registers(s)
        if self.effects.owners[issued.acc] in reads | writes or self.effects.product(issued) & writes:
            return True
        return bool(freed(self.effects, s) & self.effects.operands(issued))


class Stores(InFlight):
    """Bulk stores: met by what gives their buffer free, and by writes to it."""

    issue, commit, wait = m.TmaStore, m.CommitStore, m.WaitStore

    def looks(self, s: Step) -> bool:
        """Steps that write, and those that let others write."""
        return isinstance(s, (m.Arrive, m.Tma, *GENERIC_WRITES)) or self.effects.rendezvous(s)

    def sees(self, s: Step, issued: Step) -> bool:
        """A store's buffer may be read."""
        assert isinstance(issued, m.TmaStore)
        return self.effects.bases[issued.buffer] in freed(self.effects, s)


class Copies(InFlight):
    """Copies of threads: met by all that touches their memory, and by what tells others of it."""

    issue, commit, wait = m.CopyAsync, m.CommitCopies, m.WaitCopies

    def looks(self, s: Step) -> bool:
        """Accesses and signals."""
        return isinstance(s, SIGNALS) or bool(self.effects.touched(s))

    def sees(self, s: Step, issued: Step) -> bool:
        """A copy may write; who is told reads, or writes."""
        assert isinstance(issued, m.CopyAsync)
        return isinstance(s, SIGNALS) or self.effects.bases[issued.buffer] in self.effects.touched(s)


def freed(effects: Effects, s: Step) -> frozenset[str]:
    """The memory that a step writes, or that others may write once it is done."""
    if isinstance(s, m.Arrive):
        return effects.ring_memory(s.barrier)
    if effects.rendezvous(s):
        return frozenset(effects.bases.values())
    if isinstance(s, (m.Tma, *GENERIC_WRITES)):
        return frozenset({effects.bases[s.buffer]})
    return frozenset()


class ProductFences:
    """Registers touched since the last `fence wgmma` (PTX, wgmma.fence: it stands between an access and a product on them)."""

    def __init__(self, effects: Effects):
        self.effects = effects
        self.start: State = frozenset(effects.owners.values())

    def step(self, state: State, path: Path, s: Step) -> tuple[State, Seen]:
        """A fence forgets; a product looks for its own registers."""
        assert isinstance(state, frozenset)
        if isinstance(s, m.FenceWgmma):
            return frozenset(), None
        if isinstance(s, m.Wgmma):
            return state, state & self.effects.product(s)
        reads, writes = self.effects.registers(s)
        return state | reads | writes, None

    def end(self, state: State) -> Seen:
        """Nobody looks."""
        return None

    def harm(self, before: Seen, after: Seen) -> bool:
        """A product on registers that no fence stands before."""
        return after is not None and bool(after - before)  # type: ignore[operator]


class ProxyFences:
    """Memory that this role's threads have written since the last `fence async`."""

    def __init__(self, effects: Effects, nobody: frozenset[Path]):
        self.effects, self.nobody = effects, nobody
        self.start: State = frozenset()

    def step(self, state: State, path: Path, s: Step) -> tuple[State, Seen]:
        """Signals pass on all that was written; products and stores read their own memory."""
        assert isinstance(state, frozenset)
        if isinstance(s, m.FenceAsync):
            return frozenset(), None
        if isinstance(s, GENERIC_WRITES):
            return state | {self.effects.bases[s.buffer]}, None
        if isinstance(s, SIGNALS):
            return state, None if path in self.nobody else state
        if isinstance(s, m.Wgmma):
            return state, state & self.effects.operands(s)
        return state, state & {self.effects.bases[s.buffer]} if isinstance(s, m.TmaStore) else None

    def end(self, state: State) -> Seen:
        """Nobody looks."""
        return None

    def harm(self, before: Seen, after: Seen) -> bool:
        """A reader or a signal before the fence."""
        return after is not None and bool(after - before)  # type: ignore[operator]


class Position:
    """The role's position in one ring, modulo twice its stages. What is at a barrier depends on the phase, too, and so do
    copies of threads and who reads them."""

    def __init__(self, kernel: Kernel, ring: str):
        self.ring, self.stages = ring, kernel.ring(ring).stages
        self.start: State = 0

    def step(self, state: State, path: Path, s: Step) -> tuple[State, Seen]:
        """A step on a stage sees which one it is, and the phase. An advance by a number that isn't known has to stay."""
        assert isinstance(state, int)
        if isinstance(s, m.Advance) and s.ring == self.ring:
            n = s.stages.constant
            return (state, "moved") if n is None else ((state + n) % (2 * self.stages), None)
        if not self.names(s):
            return state, None
        return state, state if isinstance(s, AT_PHASE) else state % self.stages

    def names(self, s: Step) -> bool:
        """Whether a step is at a stage of this ring."""
        slots = (s.slot,) if hasattr(s, "slot") else (getattr(s, f, None) for f in ("a", "b"))  # type: ignore[attr-defined]
        return any(getattr(getattr(x, "slot", x), "ring", None) == self.ring for x in slots)

    def end(self, state: State) -> Seen:
        """Nobody looks."""
        return None

    def harm(self, before: Seen, after: Seen) -> bool:
        """Another stage or phase."""
        return after is not None and before != after if before != "moved" else after is None

"""When a wait says nothing new: its role knows of what it waits for from other waits.

A second opinion on mutants that a verifier accepts. All roles are run at some sizes, waits and arrivals on mbarriers only. What
an agent (a warpgroup of a role) knows at each of its steps is how many steps of every other agent lie behind it, and which
copies have landed: an arrival carries what its agent knows, a wait takes up what the arrivals of its phase carry. Named
barriers tell nothing, so that less is known than there is; kernels whose threads copy for themselves, and meet at those, are
looked at by `races`. A change is none if every agent does the same in the same order,
waits, arrivals and advances aside, knows as much as before at each step, and at each arrival that the phase before is over.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import product

from ..roles import model as m
from ..roles.model import Kernel, Role, Step
from ..targets.registers import WARPS
from .races import fits, ordered_alike
from .trace import trace

# Of dims that the grid cuts, and of others: nothing, a part of a tile, one, and several, in all ratios; then many, for a split.
SIZES = (*((g, s) for g in (1, 130, 600) for s in (0, 1, 100, 200, 330, 600, 630, 1500)), (130, 5000))
SILENT = (m.Leave, m.NextItem, m.Registers)
ARRIVALS = (m.Arrive, m.Expect)

Agent = tuple[int, int]  # role, warpgroup
Phase = tuple[str, int, int, int]  # barrier, part, stage, number


@dataclass(frozen=True)
class Known:
    """How many steps, and how many arrivals, of each agent; and the phases of barriers that expect bytes."""

    steps: Counter[tuple[str, Agent]] = field(default_factory=Counter)
    landed: frozenset[Phase] = frozenset()

    @property
    def done(self) -> Known:
        """Without arrivals."""
        return Known(Counter({key: n for key, n in self.steps.items() if key[0] == "steps"}), self.landed)

    def __or__(self, other: Known) -> Known:
        return Known(self.steps | other.steps, self.landed | other.landed)

    def __ge__(self, other: Known) -> bool:
        return self.landed >= other.landed and all(self.steps[a] >= n for a, n in other.steps.items())


@dataclass(kw_only=True)
class _Runner:
    agent: Agent
    role: Role
    steps: list[Step]
    at: Counter[str] = field(default_factory=Counter)  # ring positions
    next: int = 0
    known: Known = field(default_factory=Known)
    done: list[Record] = field(default_factory=list)
    arrivals: list[Step] = field(default_factory=list)


Record = tuple[Step, tuple[int, ...], Known]  # a step, where its ring stood, what was known


@dataclass
class _Barrier:
    phase: int = 0
    count: int = 0
    carried: list[Known] = field(default_factory=lambda: [Known()])  # of each phase


def known_otherwise(kernel: Kernel, changed: Kernel) -> bool:
    """Whether a change takes away nothing that anybody knows. Barriers and rings have to be the same."""
    if (kernel.barriers, kernel.rings) != (changed.barriers, changed.rings):
        return False
    flags = (True, False) if any(p.kind == "flag" for p in kernel.params) else (True,)
    if fits(kernel) and fits(changed):
        return all(ordered_alike(kernel, changed, *at) for at in product(SIZES, flags))
    for sizes, flag in product(SIZES, flags):
        before, after = _run(kernel, sizes, flag), _run(changed, sizes, flag)
        if before is None or after is None or not all(map(_as_much, before, after)):
            return False
    return True


def _as_much(before: _Runner, after: _Runner) -> bool:
    old, new = before.done, after.done
    if not _without_some(before.arrivals, after.arrivals):
        return False
    return len(old) == len(new) and all(a[:2] == b[:2] and b[2] >= a[2].done for a, b in zip(old, new, strict=True))


def _without_some(old: list[Step], new: list[Step]) -> bool:
    """Whether the new arrivals are the old ones, in their order, but for plain ones that are gone."""
    rest = iter(new)
    following = next(rest, None)
    for s in old:
        if s == following:
            following = next(rest, None)
        elif not isinstance(s, m.Arrive):
            return False
    return following is None


def _run(kernel: Kernel, sizes: tuple[int, int], flags: bool) -> list[_Runner] | None:
    """Every agent at its end, with what it knew on the way; None if they wait for each other, or arrive in a wrong phase."""
    agents = [(n, r, wg) for n, r in enumerate(kernel.roles) for wg in range(r.count)]
    runners = [_Runner(agent=(n, wg), role=r, steps=[s for _, s in trace(kernel, r, wg, sizes, flags)]) for n, r, wg in agents]
    machine = _Machine(kernel)
    moved = True
    while moved and not machine.wrong:
        moved = sum(machine.advance(r) for r in runners) > 0
    return runners if not machine.wrong and all(r.next == len(r.steps) for r in runners) else None


class _Machine:
    def __init__(self, kernel: Kernel):
        self.wrong = False  # an arrival fell in another phase than its position says, or might have
        self.barriers: dict[tuple[str, int, int], _Barrier] = {}
        self.counts = {b.name: b.count for b in kernel.barriers}
        self.stages = {r.name: r.stages for r in kernel.rings}
        every = (s for r in kernel.roles for s in m.walk(r.steps))
        self.bytes = frozenset(s.barrier for s in every if isinstance(s, m.Expect))

    def advance(self, r: _Runner) -> bool:
        """Run an agent until it has to wait; whether it moved at all."""
        start = r.next
        while r.next < len(r.steps) and self.step(r, r.steps[r.next]):
            r.next += 1
        return r.next > start

    def step(self, r: _Runner, s: Step) -> bool:
        if isinstance(s, m.Wait):
            return self.wait(r, s)
        if isinstance(s, m.Advance):
            r.at[s.ring] += s.stages.constant or 0
        elif isinstance(s, ARRIVALS):
            self.arrive(r, s)
        elif not isinstance(s, SILENT):
            r.done.append((s, tuple(r.at[x.ring] for x in _slots(s)), r.known))
            r.known |= Known(Counter({("steps", r.agent): len(r.done)}))
        return True

    def barrier(self, r: _Runner, s: m.Wait | m.Arrive | m.Expect) -> tuple[tuple[str, int, int], int]:
        """Which barrier a step is at, and the number of the phase that its position says."""
        part = s.part.substitute({"wg": r.agent[1]}).constant or 0
        number, stage = divmod(r.at[s.slot.ring] - s.slot.lag, self.stages[s.slot.ring])
        return (s.barrier, part, stage), number

    def wait(self, r: _Runner, s: m.Wait) -> bool:
        key, number = self.barrier(r, s)
        number -= s.flip
        if number < 0:
            return True
        b = self.barriers.setdefault(key, _Barrier())
        if b.phase <= number:
            return False
        r.known |= self.end(key, number)
        return True

    def end(self, key: tuple[str, int, int], number: int) -> Known:
        """What the end of a phase tells."""
        landed = frozenset({(*key, number)}) if key[0] in self.bytes else frozenset()
        return self.barriers[key].carried[number] | Known(landed=landed)

    def arrive(self, r: _Runner, s: m.Arrive | m.Expect) -> None:
        key, number = self.barrier(r, s)
        b = self.barriers.setdefault(key, _Barrier())
        self.wrong = self.wrong or b.phase != number or (number > 0 and not r.known >= self.end(key, number - 1))
        r.arrivals.append(s)
        r.known |= Known(Counter({("arrivals", r.agent): len(r.arrivals)}))
        b.carried[-1] |= r.known
        b.count += 1 if isinstance(s, m.Expect) else WARPS if s.by == "warps" else s.count
        if b.count >= self.counts[s.barrier]:
            b.phase, b.count = b.phase + 1, 0
            b.carried.append(Known())


def _slots(s: Step) -> list[m.Slot]:
    found = (getattr(x, "slot", None) for x in (s, getattr(s, "a", None), getattr(s, "b", None)))
    return [x for x in found if isinstance(x, m.Slot)]

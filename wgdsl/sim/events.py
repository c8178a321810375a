"""What waits, arrivals and fences mean: mbarriers, named barriers, the asynchronous proxy."""

from __future__ import annotations

from dataclasses import dataclass

from ..diagnostics.sim import NamedBarrierMisuse, TooManyArrivals, WrongPhase
from ..roles import model as m
from ..targets.choice import TARGETS
from ..targets.registers import WARPGROUP, WARPS
from .agent import Agent, Blocked, Run
from .barriers import Knowledge, MBarrier, NamedBarrier
from .meaning import means

WARP = WARPGROUP // WARPS  # threads


@dataclass(frozen=True, eq=False)
class NeedsPhase(Blocked):
    """The hardware compares parities. A barrier that has gone on further than the phase after the one that is meant shows its
    parity again: the chip would wait on, and here it is a fault."""

    barrier: MBarrier
    phase: int

    def ready(self) -> bool:
        return self.barrier.passes(self.phase % 2) or self.barrier.phase > self.phase + 1

    def what(self) -> str:
        return f"`{self.barrier.name}`, parity {self.phase % 2}; it is in {self.barrier.missing()}"


@means(m.Wait)
def wait(a: Agent, s: m.Wait) -> Run:
    b, lap = a.mbarrier(s.barrier, s.part, s.slot)
    need = NeedsPhase(b, lap - s.flip)
    if not need.ready():
        yield need
    if b.phase != need.phase + 1:
        raise _wrong_phase(a, b, "a wait on", need.phase, b.phase - 1)
    a.knowledge.learn(b.last)


def _wrong_phase(a: Agent, b: MBarrier, what: str, meant: int, found: int):
    return a.fault(WrongPhase, barrier=b.name, what=what, meant=meant, found=found, count=b.count)


@means(m.Expect)
def expect(a: Agent, s: m.Expect) -> None:
    a.need_thread()
    b, lap = a.mbarrier(s.barrier, s.part, s.slot)
    _arrive(a, b, lap, 1, s.nbytes)


@means(m.Arrive)
def arrive(a: Agent, s: m.Arrive) -> None:
    if s.by == "warps":
        a.need_warp()
    else:
        a.need_thread()
    b, lap = a.mbarrier(s.barrier, s.part, s.slot)
    _arrive(a, b, lap, a.warps if s.by == "warps" else s.count, 0)


def _arrive(a: Agent, b: MBarrier, lap: int, arrivals: int, nbytes: int) -> None:
    if b.phase != lap:
        raise _wrong_phase(a, b, "an arrival on", lap, b.phase)
    if not b.arrive(arrivals, nbytes, a.knowledge):
        raise a.fault(TooManyArrivals, barrier=b.name, count=b.count, phase=b.phase)
    a.cta.turn(b)


@means(m.FenceAsync)
def fence_async(a: Agent, s: m.FenceAsync) -> None:
    """Of this thread's writes, or of all threads of the warp; one thread of a warp doesn't speak for the others."""
    if a.warp is None or not a.elected:
        a.knowledge.proxied |= a.written


@dataclass(frozen=True, eq=False)
class NeedsGeneration(Blocked):
    bar: NamedBarrier
    generation: int

    def ready(self) -> bool:
        return self.bar.generation > self.generation

    def what(self) -> str:
        return f"named barrier {self.bar.id}, where {self.bar.arrived} of {self.bar.threads} threads have arrived"


@means(m.BarSync)
def bar_sync(a: Agent, s: m.BarSync) -> Run:
    need, knowledge = _bar(a, s, waits=True)
    if not need.ready():
        yield need
    a.knowledge.learn(knowledge)


@means(m.BarArrive)
def bar_arrive(a: Agent, s: m.BarArrive) -> None:
    _bar(a, s, waits=False)


def _bar(a: Agent, s: m.BarSync | m.BarArrive, waits: bool) -> tuple[NeedsGeneration, Knowledge]:
    a.need_warp()
    number = a.integer(s.id)
    bar = a.cta.named.setdefault(number, NamedBarrier(id=number))
    need, knowledge = NeedsGeneration(bar, bar.generation), bar.gathered
    last = TARGETS[a.cta.world.kernel.target].named_barriers - 1
    why = bar.arrive(WARP * a.warps, s.threads, waits, a.knowledge) if 0 <= number <= last else f"ids are 0 to {last}"
    if why:
        raise a.fault(NamedBarrierMisuse, bar=number, why=why)
    return need, knowledge

"""The two judges of a case side by side: what the checks refuse, and what the simulator meets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.agreement.cases import Case
from tests.agreement.oracle import fault
from wgdsl.diagnostics import protocol, sim
from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.diagnostics.sim import Fault
from wgdsl.roles.model import RoleProgram
from wgdsl.verify import check

# Not of the protocol: that every element is written once, inside its tensor, is proven before there is a role program.
OUTSIDE: tuple[type[Fault], ...] = (sim.WrittenTwice, sim.OutsideTensor)

# Rule -> the faults that its counter-example may lead to in the simulator. A step can break two rules, and each judge has its
# own order: a product without a value is also one without a fence, a phase too early also a slot too early. What was filled for
# another position the simulator lets pass; the roles' positions differ then, and the next arrival is in another phase.
FAULTS: dict[type[Problem], tuple[type[Fault], ...]] = {
    protocol.TouchedInFlight: (sim.RegisterInFlight,),
    protocol.NeverAwaited: (sim.Unfinished, sim.RegisterInFlight),
    protocol.NoProductFence: (sim.NoProductFence,),
    protocol.ReadBeforeArrival: (sim.ReadTooEarly, sim.WrongPhase),
    protocol.OverwrittenBeforeRead: (sim.OverwrittenTooEarly,),
    protocol.ProxyFenceMissing: (sim.NotFenced,),
    protocol.NobodyRuns: (sim.Deadlock,),
    protocol.AmbiguousPhase: (sim.WrongPhase, sim.TooManyArrivals, sim.OverwrittenTooEarly),
    protocol.BarGeneration: (sim.NamedBarrierMisuse, sim.Deadlock),
    protocol.RoleStays: (sim.Deadlock, sim.Unfinished),
    protocol.RegisterWithoutValue: (sim.Uninitialised, sim.NoProductFence),
}


def witnessed(problems: Iterable[Problem]) -> list[protocol.ProtocolFault]:
    """Those with a word that leads the simulator to a fault: a role that runs ahead is none for any word."""
    return [p for p in problems if isinstance(p, protocol.ProtocolFault) and not isinstance(p, protocol.RunsAhead)]


def refusals(case: Case) -> tuple[Problem, ...]:
    """What the checks say of a case."""
    return refused(case.program)


def refused(program: RoleProgram) -> tuple[Problem, ...]:
    """What they say of a program."""
    try:
        check(program)
    except WgError as e:
        return e.problems
    return ()


@dataclass(frozen=True)
class Verdict:
    """`fault`: what the simulator meets first. `refused`: the first refusal, its code and name, or nothing."""

    case: Case
    fault: Fault | None
    refused: str
    shown: bool = False  # by a counter-example

    @property
    def wrong(self) -> bool:
        return self.fault is not None and not isinstance(self.fault, OUTSIDE)

    @property
    def missed(self) -> bool:
        return self.wrong and not self.refused


def verdict(case: Case) -> Verdict:
    first = next(iter(refusals(case)), None)
    rule = f"{first.code} {type(first).__name__}" if first else ""
    shown = isinstance(first, protocol.ProtocolFault)
    return Verdict(case=case, fault=fault(case.program, case.warpgroups), refused=rule, shown=shown)


def table(verdicts: Iterable[Verdict]) -> str:
    """How many cases are right, and which faults were refused by which rule."""
    every = list(verdicts)
    pairs = Counter((v.refused or "accepted", type(v.fault).__name__ if v.wrong else "right") for v in every)
    wrong = sum(v.wrong for v in every)
    accepted = sum(not v.refused for v in every)
    rows = []
    for rule in sorted({r for r, _ in pairs}):
        met = {name: n for (r, name), n in sorted(pairs.items()) if r == rule}
        rows.append(f"{sum(met.values()):5}  {rule}: {', '.join(f'{n} {name}' for name, n in met.items())}")
    judged = f"{len(every) - wrong} right, {wrong} wrong; {accepted} accepted, {len(every) - accepted} refused"
    return "\n".join((f"{len(every)} programs: {judged}", *rows))

"""`wgdsl verify --mutate`: does the verifier notice when a schedule's synchronisation is broken?

In: a role program.  Out: for each of its mutants the rules that refuse it; which of those that must be refused are not; and
whether those that may pass compute the same in the simulator.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from ..diagnostics.model import WgError
from ..diagnostics.protocol import TooManyStates
from ..driver import verified
from ..mutate import MUST_REJECT, OPERATORS, Mutant, Operator, known_otherwise, mutants
from ..roles.model import RoleProgram

RIGHT = "right"
Simulate = Callable[[RoleProgram], str]  # `RIGHT`, or what is wrong


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`codes`: the rules that refuse the mutant; none if it is accepted. `simulated`: `RIGHT`, what went wrong, or "" if it
    wasn't run. `known`: it is accepted, and what was taken away said nothing new (`known_otherwise`)."""

    mutant: Mutant
    codes: tuple[str, ...]
    seconds: float
    simulated: str = ""
    known: bool = False

    @property
    def missed(self) -> bool:
        """Whether the verifier has accepted what it mustn't."""
        if self.codes or self.known:
            return False
        return self.mutant.operator.expects == MUST_REJECT or self.simulated not in ("", RIGHT)

    @property
    def gave_up(self) -> bool:
        """Whether the verifier has refused it for having too many states, which says nothing of what is broken."""
        return self.codes == (TooManyStates.code,)

    @property
    def verdict(self) -> str:
        """In words."""
        if self.codes:
            return ", ".join(self.codes)
        if self.known:
            return "accepted, known otherwise"
        return f"accepted, simulated: {self.simulated}" if self.simulated else "accepted"


@dataclass(frozen=True, kw_only=True)
class Report:
    """The mutants that were tried, and those that a rule exempts. `total`: how many there are to try."""

    outcomes: tuple[Outcome, ...]
    exempt: tuple[Mutant, ...]
    total: int
    seconds: float

    @property
    def missed(self) -> tuple[Outcome, ...]:
        """What the verifier has accepted and mustn't."""
        return tuple(o for o in self.outcomes if o.missed)

    def of(self, expects: str) -> tuple[Outcome, ...]:
        """The outcomes of the operators with that expectation."""
        return tuple(o for o in self.outcomes if o.mutant.operator.expects == expects)


def run(
    program: RoleProgram,
    *,
    operators: Iterable[Operator] = OPERATORS,
    sample: int | None = None,
    seed: int = 0,
    simulate: Simulate | None = None,
) -> Report:
    """Verify the mutants of a program: all of them, or `sample` chosen by `seed`, at least one of each operator. `simulate`
    runs those that may pass and do."""
    start = time.perf_counter()
    every = list(mutants(program, operators))
    tried = [x for x in every if not x.exempt]
    chosen = tried if sample is None else sampled(tried, sample, seed)
    return Report(
        outcomes=tuple(_outcome(x, simulate) for x in chosen),
        exempt=tuple(x for x in every if x.exempt),
        total=len(tried),
        seconds=time.perf_counter() - start,
    )


def sampled(every: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """`count` of the mutants, in their order: one of each operator, which may be more than that, then any."""
    shuffled = Random(seed).sample(every, len(every))
    first = {x.operator.name: x for x in reversed(shuffled)}
    chosen = {x.number for x in first.values()}
    rest = [x.number for x in shuffled if x.number not in chosen]
    chosen |= set(rest[: max(count - len(chosen), 0)])
    return [x for x in every if x.number in chosen]


def _outcome(x: Mutant, simulate: Simulate | None) -> Outcome:
    start = time.perf_counter()
    codes = _refusals(x.program)
    seconds = time.perf_counter() - start
    if codes:
        return Outcome(mutant=x, codes=codes, seconds=seconds)
    if x.operator.expects == MUST_REJECT:
        return Outcome(mutant=x, codes=(), seconds=seconds, known=known_otherwise(x.original, x.variant.kernel))
    return Outcome(mutant=x, codes=(), seconds=seconds, simulated=simulate(x.program) if simulate is not None else "")


def _refusals(program: RoleProgram) -> tuple[str, ...]:
    try:
        verified(program)
    except WgError as e:
        return tuple(dict.fromkeys(p.code for p in e.problems))
    return ()

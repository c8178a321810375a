"""`wgdsl verify`: what the verifier says of a schedule, and, of broken copies of it, what the verifier says of itself.

In: a kernel and how many mutants to try.  Out: lines to print, and whether all is well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..diagnostics.model import WgError
from ..driver import Journal, explored, guarded
from ..runtime.kernel import Kernel
from .mutating import Report, run
from .mutation_text import report_text
from .trial import trial

REFUSED = "the schedule itself is refused: no mutants were made"


@dataclass(frozen=True, kw_only=True)
class Request:
    """`mutate`: try mutants, `sample` of them (None: all) as `seed` chooses. `simulate`: orders of events in which those that
    may pass are run, 0 for none."""

    mutate: bool = False
    sample: int | None = None
    seed: int = 0
    simulate: int = 0


@dataclass(frozen=True, kw_only=True)
class Verification:
    """`lines` to print; `right`: nothing was missed."""

    lines: tuple[str, ...]
    right: bool = True


def verify(prepared: Callable[[], tuple[Kernel, Journal]], request: Request, say: Callable[[str], None]) -> Verification:
    """The verdict on a kernel, then the report of its mutants. `say` prints what has to stand before an error. Raises WgError
    if a rule is broken."""
    try:
        kernel, journal = prepared()
    except WgError:
        if request.mutate:
            say(REFUSED)
        raise
    lines = tuple(verdicts(kernel))
    if not request.mutate:
        return Verification(lines=lines)
    with guarded(journal):
        report = mutation(kernel, request)
    return Verification(lines=(*lines, "", *report_text(report).splitlines()), right=not report.missed)


def verdicts(kernel: Kernel) -> Iterator[str]:
    """What was explored, for each kernel of a schedule that the verifier has accepted."""
    yield f"schedule {kernel.roles.schedule} for {kernel.roles.program} on {kernel.roles.target}"
    start = time.perf_counter()
    found = explored(kernel.roles)
    for e in found:
        yield f"  kernel {e.kernel}: all rules hold, for items of {e.letters} kinds in any order; {e.states} states"
    yield f"  {time.perf_counter() - start:.2f} s"


def mutation(kernel: Kernel, request: Request) -> Report:
    """The mutation run of one schedule."""
    simulate = trial(kernel, request.simulate) if request.simulate else None
    return run(kernel.roles, sample=request.sample, seed=request.seed, simulate=simulate)

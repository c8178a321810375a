"""`wgdsl tune`: what it is asked, and what it says.

In: a `Request`.  Out: lines, and an exit code; or a list of what the `tune` blocks of schedules leave open,
and how many combinations that makes. What `--set` fixes, as it does the options of a program, counts for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..diagnostics.model import WgError
from ..diagnostics.tools import BadLimit
from ..runtime import nvrtc
from .candidates import Field, Structure, field_of
from .gpu_stopwatch import gpu_stopwatch
from .progress import Progress, progress
from .tune import Request, Stopwatch, tune
from .tune_text import outcome_lines

OK, NOTHING, NO_GPU, INTERRUPTED = 0, 1, 69, 130

Clock = Callable[[str], Stopwatch | None]


def listing(request: Request) -> str:
    """What there is to tune."""
    r = request
    return "\n".join(_listed(field_of(r.file, r.program, r.schedules, r.settings, r.target))) + "\n"


def _listed(field: Field) -> Iterator[str]:
    for s in field.structures:
        schedule = s.space.found.schedule
        yield f"schedule {schedule.name} for {field.found.program.name} on {schedule.target}"
        yield from (f"  {c}" if c in s.choices else f"  {c}: `--set` says which" for c in s.space.choices)
        yield _count(s) if s.choices else "nothing to tune"


def _count(s: Structure) -> str:
    return f"{s.combinations} combination{'s' if s.combinations != 1 else ''}"


def tuned(request: Request, timeout: float, say: Callable[[str], None], clock: Clock | None = None) -> int:
    """Tune, and say what came of each call as soon as it is known. Returns the exit code. clock: in place of this machine's
    GPU."""
    checked(request, timeout)
    nvrtc.version()  # without it nothing could be compiled, in any process
    clock = clock or (lambda target: gpu_stopwatch(target, timeout))
    return _tuned(request, clock, progress(), say)


def _tuned(request: Request, clock: Clock, bar: Progress, say: Callable[[str], None]) -> int:
    seen: list[Stopwatch | None] = []

    def kept(target: str) -> Stopwatch | None:
        seen.append(clock(target))
        return seen[-1]

    code = OK
    for outcome in tune(request, kept, bar):
        timed = seen[-1] is not None
        for line in outcome_lines(outcome, timed):
            say(line)
        if outcome.interrupted:
            return INTERRUPTED
        if not timed:
            code = NO_GPU
        elif not outcome.times:
            code = NOTHING
    return code


def checked(request: Request, timeout: float) -> Request:
    """The request. Raises WgError (WG1015) for limits that leave nothing to do."""
    limits = {"--most": request.most, "--seconds": request.seconds, "--jobs": request.jobs, "--timeout": timeout}
    wrong = [BadLimit(option=name, value=value) for name, value in limits.items() if not value > 0]
    if wrong:
        raise WgError(wrong)
    return request

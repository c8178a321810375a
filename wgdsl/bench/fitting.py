"""Which of the schedules that were named each case can run.

In: a request and its cases.  Out: by the key of a case, those that there are for its program on its target; elsewhere the
chosen one is timed. A name that fits no case is refused. Whether a kernel comes of it is seen when it is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from ..diagnostics.model import WgError
from ..diagnostics.runtime import TargetMismatch, UnknownSchedule
from ..diagnostics.tools import UnknownWord
from ..driver import wanted
from ..sources import find, find_open
from .case import Case, Own
from .request import Request, shown

Fitting = Mapping[str, Sequence[str]]


def fitting(request: Request, cases: Sequence[Case]) -> Fitting:
    """Raises WgError (WG1016) for a schedule that fits none, and for what is wrong with the text of one."""
    fits = lru_cache(maxsize=None)(_fits)
    found = {c.key: [s for s in request.schedules if fits(s, c.own.program, c.own.target)] for c in cases if not c.schedules}
    used = {s for of in found.values() for s in of}
    lost = [s for s in request.schedules if s not in used]
    if lost:
        known = _known(cases)
        raise WgError(UnknownWord(what="schedule", text=shown(s), known=known) for s in lost)
    return {c.key: found.get(c.key, []) for c in cases}


def _fits(schedule: str, program: str, target: str) -> bool:
    try:
        find(program, schedule=schedule, wanted=wanted(target))
    except WgError as e:
        if isinstance(e.problems[0], UnknownSchedule | TargetMismatch):
            return False
        raise
    return True


def _known(cases: Sequence[Case]) -> tuple[str, ...]:
    """What could be named."""
    owns: dict[tuple[str, str], Own] = {(c.own.program, c.own.target): c.own for c in cases if not c.schedules}
    every = (find_open(program, wanted=wanted(target)).names for program, target in owns)
    return tuple(dict.fromkeys(name for names in every for name in names))

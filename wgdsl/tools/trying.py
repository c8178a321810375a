"""One candidate before it runs: what the cycle model expects of it, and its binary.

In: a `Trial`, as a process of its own may be given it.  Out: `Foreseen`, `Built`, or `Refused`: an illegal candidate is nothing
to fail for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..diagnostics.model import InternalError, WgError
from ..driver import Settings, compile, outlook


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A candidate for calls of these dims, all of them. settings: what is fixed at compile time."""

    file: str
    program: str | None
    candidate: str
    target: str
    settings: Settings
    dims: Mapping[str, int]

    def __hash__(self) -> int:
        return hash(self.candidate)


@dataclass(frozen=True, kw_only=True)
class Foreseen:
    """seconds: by the cycle model; None if the target has none. settings: with the dims that had to be fixed."""

    settings: Settings
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Built:
    """Its binary lies in the cache."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """code: of the error, empty for a failure that has none."""

    code: str
    why: str

    def __str__(self) -> str:
        return f"{self.code}: {self.why}" if self.code else self.why


def foresee(t: Trial) -> Foreseen | Refused:
    """What to expect of a candidate."""
    return _unless_refused(lambda: _foresee(t))


def build(t: Trial) -> Built | Refused:
    """Verify and compile a candidate. What is made lies in the cache, where a process that runs it finds it."""
    return _unless_refused(lambda: compile(**arguments(t)) and Built())


def arguments(t: Trial) -> dict[str, Any]:
    """Those of `compile`."""
    s = t.settings
    return {
        "given": t.file,
        "schedule": t.candidate,
        "target": t.target,
        "dims": dict(s.dims),
        "types": dict(s.types),
        "options": dict(s.options),
        "program": t.program,
    }


def _foresee(t: Trial) -> Foreseen:
    found = outlook(t.file, program=t.program, schedule=t.candidate, target=t.target, settings=t.settings, dims=t.dims)
    return Foreseen(settings=found.settings, seconds=found.seconds)


def _unless_refused(make: Any) -> Any:
    try:
        return make()
    except WgError as e:
        return Refused(code=e.problems[0].code, why=e.problems[0].title())
    except InternalError as e:  # a defect of ours: it has a bundle, and the other candidates go on
        return Refused(code="", why=" ".join(str(e).split()))

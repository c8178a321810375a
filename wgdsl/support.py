"""Whether a program can be compiled under a schedule for a target, as an answer rather than an error.

In: what `compile` takes.  Out: `Support`, which is true, or says why not. Nothing else is tried in place of what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .diagnostics.model import EnvironmentFault, Problem, WgError
from .diagnostics.render import render_all
from .driver import Settings, guarded, prepare
from .sources import Found


@dataclass(frozen=True, kw_only=True)
class Support:
    """True if it can be compiled: then the schedule and the target that are taken. Else the `problems`, those of the texts and
    settings, or `missing`, what this machine lacks."""

    schedule: str = ""
    target: str = ""
    told: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    missing: str = ""

    def __bool__(self) -> bool:
        return not self.problems and not self.missing

    @property
    def reason(self) -> str:
        """Why not: the problems as the compiler shows them. Empty if it can be."""
        return render_all(self.problems) if self.problems else self.missing


def supports(
    given: str | Path,
    schedule: str | Path | None = None,
    target: str = "auto",
    dims: Mapping[str, int] | None = None,
    types: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    program: str | None = None,
    build: bool = False,
) -> Support:
    """Whether `compile` takes the same arguments, or why not.

    given, schedule, target, dims, types, options, program: as for `compile`.  build: also let NVRTC make the binary; otherwise
    the answer rests on the CUDA text, which the verifier has accepted.

    Raises InternalError for a defect of wgdsl alone.
    """
    settings = Settings(options=dict(options or {}), types=dict(types or {}), dims=dict(dims or {}))
    return support(given, schedule, target, settings, program=program, build=build)


def support(
    given: str | Path,
    schedule: str | Path | None,
    target: str,
    settings: Settings | Callable[[Found], Settings],
    *,
    program: str | None = None,
    build: bool = False,
) -> Support:
    """The same, with the settings of the command line, which depend on the program found."""
    try:
        kernel, journal = prepare(given, program=program, schedule=schedule, target=target, settings=settings)
        with guarded(journal):
            if build:
                kernel.build()
    except WgError as e:
        return Support(problems=e.problems)
    except EnvironmentFault as e:
        return Support(missing=str(e))
    return Support(schedule=kernel.roles.schedule, target=kernel.target, told=kernel.forms.told)

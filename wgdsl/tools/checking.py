"""`wgdsl check`: mistakes in a file, without making a kernel of it.

In: a path and what the caller fixes.  Out: the problems, and notes. Each program of the file is analysed alone, its dims
symbolic, then under every schedule for it in the same file, and so is an imported one that the file has schedules for; with a
schedule named or dims fixed, one program goes through that one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..diagnostics.model import Problem, WgError
from ..diagnostics.runtime import DimsToFix
from ..driver import check_program, prepare
from ..reading import Unit, read_unit
from ..settings import sort_settings
from ..sources import misnamed, own_schedules
from ..syntax import ast


@dataclass(kw_only=True)
class Checked:
    """What is wrong, and notes on what could only be checked in part."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def check_file(path: Path, settings: list[str], program: str | None, schedule: str | None, target: str) -> Checked:
    """The problems of one file, in source order; none if it is right."""
    found = Checked()
    try:
        unit = read_unit(path)
        if schedule is not None or settings:
            _lowered(path, settings, program, schedule, target)
            return found
    except WgError as e:
        return Checked(problems=list(e.problems))
    for each in unit.programs:
        if program in (None, each.name):
            _check(each, unit, path, target, found)
    found.problems += misnamed(unit)
    return found


def _check(program: ast.Program, unit: Unit, path: Path, target: str, found: Checked) -> None:
    """An imported program counts as far as this file has schedules for it."""
    try:
        schedules = own_schedules(program.name, unit)
        if program not in unit.own.programs and not schedules:
            return
        check_program(program, unit.source)
    except WgError as e:  # a schedule for it would only repeat that
        found.problems += [p for p in e.problems if p not in found.problems]
        return
    for name in schedules:
        try:
            _lowered(path, [], program.name, name, target)
        except WgError as e:
            found.problems += [p for p in e.problems if not isinstance(p, DimsToFix)]
            found.notes += [_note(path, p) for p in e.problems if isinstance(p, DimsToFix)]


def _lowered(path: Path, settings: list[str], program: str | None, schedule: str | None, target: str) -> None:
    prepare(path, program=program, schedule=schedule, target=target, settings=lambda f: sort_settings(f, settings))


def _note(path: Path, p: DimsToFix) -> str:
    dims = " ".join(f"{n}={v}" for n, v in p.dims.items())
    return f"note: {path}: {p.title()}; checked with `--set {dims}`"

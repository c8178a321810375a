"""`wgdsl check`: mistakes in a file, without making a kernel of it.

In: a path and what the caller fixes.  Out: the problems. Each program is analysed alone, its dims symbolic; with a schedule
or fixed dims it also goes through the schedule and the verifier.
"""

from __future__ import annotations

from pathlib import Path

from ..diagnostics.model import Problem, WgError
from ..driver import check_program, prepare
from ..foundation.source import Source
from ..settings import sort_settings
from ..sources import load, parse_source
from ..syntax import ast


def check_file(path: Path, settings: list[str], program: str | None, schedule: str | None, target: str) -> list[Problem]:
    """The problems of one file, in source order; none if it is right."""
    try:
        source = load(path)
        file = parse_source(source)
        if schedule is not None or settings:
            prepare(
                path, program=program, schedule=schedule, target=target, settings=lambda f: sort_settings(f.program, settings)
            )
            return []
    except WgError as e:
        return list(e.problems)
    return [p for each in file.programs for p in _problems(each, source)]


def _problems(program: ast.Program, source: Source) -> list[Problem]:
    try:
        check_program(program, source)
    except WgError as e:
        return list(e.problems)
    return []

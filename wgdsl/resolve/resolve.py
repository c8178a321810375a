"""resolve: the schedule that is meant.

In: a schedule without `extends`, its program, the program's graph, and the caller's options for the schedule.  Out: the
schedule in literals, its `tune` blocks checked.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..program.graph import ProgramGraph
from ..syntax import ast
from .known import program_names
from .settle import settle
from .tuning import Choice, choices


def resolve(
    schedule: ast.Schedule, program: ast.Program, graph: ProgramGraph, options: Mapping[str, object]
) -> tuple[ast.Schedule, tuple[Choice, ...]]:
    """The schedule, and what it leaves to a tuner. Raises WgError (WG09xx; WG04xx for `tune` blocks)."""
    known = program_names(program, graph)
    settled = settle(schedule, options, known)
    return settled, choices(settled, program, known)

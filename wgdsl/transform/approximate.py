"""approximate: functions of which the schedule takes the chip's approximation.

In: a canonical graph, and the schedule with its `approximate` lines.  Out: the graph that calls the approximations by name.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..diagnostics.model import WgError
from ..diagnostics.schedule import UnknownName
from ..program.approximations import APPROXIMATIONS, with_approximations
from ..program.expr import Apply, walk
from ..program.graph import ProgramGraph
from ..syntax import ast


def approximate(graph: ProgramGraph, schedule: ast.Schedule) -> ProgramGraph:
    """The graph with the approximations that the schedule names. Raises WgError (WG0401) where the chip has none."""
    wanted: list[str] = []
    for line in (i for i in schedule.items if isinstance(i, ast.ApproximateDecl)):
        for function in line.functions:
            if function not in APPROXIMATIONS:
                known, what = tuple(APPROXIMATIONS), "function that the chip approximates"
                raise WgError(UnknownName(span=line.span, what=what, name=function, known=known))
            wanted.append(function)
    return with_approximations(graph, wanted)


def noted(graphs: Iterable[ProgramGraph]) -> tuple[str, ...]:
    """What is approximated, in words."""
    calls = {x.fn for g in graphs for n in g.nodes for e in n.exprs() for x in walk(e) if isinstance(x, Apply)}
    return tuple(a.note for a in APPROXIMATIONS.values() if a.name in calls)

"""`wgdsl run --probe 'P[j]'`: a probe put into a schedule that has none.

In: a schedule's AST and the names of values.  Out: the schedule with a `probe` behind each step that computes or awaits them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..diagnostics.model import WgError
from ..diagnostics.tools import NothingToProbe
from ..syntax import ast

Kind = type[ast.ComputeStep] | type[ast.AwaitStep]
_PROBE = re.compile(r"\s*([A-Za-z_]\w*(?:\.\w+)*)\s*(?:\[[^\]]*\])?\s*")


def with_probes(schedule: ast.Schedule, wanted: Sequence[str]) -> ast.Schedule:
    """The schedule with probes of the values: `P[j]`, or `P.max[j]` for a part of one. Raises WgError (WG1007) for what no step
    makes."""
    for text in wanted:
        named = _PROBE.fullmatch(text)
        if named is None:
            raise WgError(NothingToProbe(name=text, known=()))
        schedule = _with(schedule, named[1])
    return schedule


def _with(schedule: ast.Schedule, name: str) -> ast.Schedule:
    bodies = [i for i in schedule.items if isinstance(i, ast.RoleBody)]
    made = [(kind, b, n) for kind in (ast.ComputeStep, ast.AwaitStep) for b in bodies for n in _made(b.steps, kind)]
    found = next((row for row in made if _makes(row[2], name)), None)
    if found is None:
        known = tuple(dict.fromkeys(n for _, _, n in made))
        raise WgError(NothingToProbe(name=name, known=known))
    kind, body, _ = found
    new = replace(body, steps=tuple(_inserted(body.steps, kind, name)))
    return replace(schedule, items=tuple(new if i is body else i for i in schedule.items))


def _makes(made: str, name: str) -> bool:
    """Whether a step that makes one value makes the other: itself, or a part of it."""
    return name == made or name.startswith(f"{made}.")


def _made(steps: tuple[ast.Step, ...], kind: Kind) -> Iterator[str]:
    """The tile values that steps of a kind make."""
    for s in steps:
        if isinstance(s, ast.ForStep | ast.OnceStep | ast.TurnStep):
            yield from _made(s.body, kind)
        elif (target := _tile(s, kind)) is not None:
            yield target.base.id


def _inserted(steps: tuple[ast.Step, ...], kind: Kind, name: str) -> Iterator[ast.Step]:
    for s in steps:
        if isinstance(s, ast.ForStep | ast.OnceStep | ast.TurnStep):
            yield replace(s, body=tuple(_inserted(s.body, kind, name)))
            continue
        yield s
        target = _tile(s, kind)
        if target is not None and _makes(target.base.id, name):
            yield ast.ProbeStep(span=s.span, target=replace(target, base=replace(target.base, id=name)))


def _tile(s: ast.Step, kind: Kind) -> ast.Index | None:
    """The tile that a step of the kind makes."""
    if isinstance(s, ast.ComputeStep | ast.AwaitStep) and isinstance(s, kind) and isinstance(s.target, ast.Index):
        return s.target
    return None

"""Which functions a role program approximates, derived or written by hand."""

from __future__ import annotations

from ..program.approximations import APPROXIMATIONS
from ..program.expr import Apply
from ..program.expr import walk as parts
from .model import RoleProgram, exprs, walk


def approximated(program: RoleProgram) -> frozenset[str]:
    """The functions, by their names in programs."""
    steps = (s for k in program.kernels for r in k.roles for s in walk(r.steps))
    calls = {x.fn for s in steps for e in exprs(s) for x in parts(e) if isinstance(x, Apply)}
    return frozenset(f for f, row in APPROXIMATIONS.items() if row.name in calls)

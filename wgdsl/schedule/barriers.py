"""barriers: named barriers, dealt to the roles of a plan before any of them is lowered.

In: a plan.  Out: `Ids`, which numbers the barriers of `in turn` blocks and of each warpgroup.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..foundation.source import Span
from ..syntax import ast
from ..targets.registers import WARPGROUP
from .place import BULK, name_of
from .plan import Plan, steps_of

TURN_THREADS = 2 * WARPGROUP  # one warpgroup hands over, one takes


@dataclass(frozen=True)
class Turn:
    """Named barriers of one `in turn` block: `first` + warpgroup."""

    role: str
    block: int
    first: int
    count: int
    span: Span | None


@dataclass(frozen=True)
class Ids:
    """Named barrier numbers. 0 is the CTA's; then one per warpgroup for each `in turn` block, then one per warpgroup for
    its own threads (`local`: role -> first), then one for all threads of a role that copies for itself (`whole`)."""

    turns: tuple[Turn, ...]
    local: dict[str, int]
    whole: dict[str, int]

    def first(self, role: str, block: int) -> int:
        return next(t.first for t in self.turns if t.role == role and t.block == block)


def is_turn(plan: Plan, s: ast.Step) -> bool:
    """Whether a step makes a tile of another one in shared memory."""
    home = plan.homes.get(name_of(s.target)) if isinstance(s, ast.PackStep) else None
    return home is not None and home.turned is not None


def deal_ids(plan: Plan) -> Ids:
    """Deal named barriers to the roles of a plan."""
    at, turns, local, whole = 1, [], {}, {}
    for role in plan.roles:
        blocks = [s for s in steps_of(role.steps) if isinstance(s, ast.TurnStep)]
        for k, s in enumerate(blocks):
            if role.count > 1:
                turns.append(Turn(role.name, k, at, role.count, s.span))
                at += role.count
    for role in plan.roles:
        if any(isinstance(s, ast.FinishStep) or is_turn(plan, s) for s in steps_of(role.steps)):
            local[role.name] = at
            at += role.count
    for role in plan.roles:
        if BULK not in plan.target.copies and role.count > 1:
            whole[role.name] = at
            at += 1
    return Ids(tuple(turns), local, whole)

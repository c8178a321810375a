"""joinable: what `joined` excludes in the loop of a role and in the memory of a schedule.

In: the plan, the placement and the copies of a role's loop.  Out: nothing, or the error that says what the old item still uses
when the new one begins.
"""

from __future__ import annotations

from ..diagnostics.model import WgError
from ..diagnostics.schedule import CantJoin, NotYetSupported
from ..syntax import ast
from .flight import State, tile_text
from .pipeline import Copy, Expansion
from .place import Placement, name_of
from .plan import Plan, RolePlan, steps_of


def check_role(plan: Plan, role: RolePlan) -> None:
    """What of a role's list the walk over two items doesn't know yet. Raises WgError."""
    if role.by_item:
        cure = "split an index, or drop `joined`"
        raise WgError(NotYetSupported(span=role.span, what="`split tiles` in a grid whose items are joined", cure=cure))
    for s in role.steps:
        if isinstance(s, ast.TurnStep) and any(isinstance(x, ast.ForStep) for x in steps_of(s.body)):
            cure = "put it into the loop, or drop `joined`"
            raise WgError(NotYetSupported(span=s.span, what="a turn around the loop where items are joined", cure=cure))
    for s in steps_of(role.steps):
        if isinstance(s, ast.AwaitStep) and (home := plan.homes.get(name_of(s.target))) is not None and home.output:
            cure = "remove this step: `finish` waits before it writes there"
            raise WgError(NotYetSupported(span=s.span, what=f"`await {home.name}` where items are joined", cure=cure))
        if isinstance(s, ast.PackStep) and plan.operand_sets.get(name := name_of(s.target), 1) > 1:
            cure = f"drop `ring` of `regs {name}`, or `joined`"
            raise WgError(NotYetSupported(span=s.span, what="an operand in several sets where items are joined", cure=cure))


def check_loop(plan: Plan, placement: Placement, expansion: Expansion) -> None:
    """What the old item still uses is its own, whatever of the next one is under way by then. Raises WgError."""
    ahead = expansion.copies[0]
    _slots(plan)
    _staging(placement, _touched(placement, ahead))
    _accumulators(ahead)


def check_at_rest(state: State, loop: ast.ForStep, axis: str) -> None:
    """Where items meet, only whole iterations lie behind: nothing is under way from one to the next. Raises WgError."""
    for g in state.flight:
        what = f"`joined` with `{g.product}{tile_text(axis, g.rel)}` in flight from one iteration to the next"
        cure = "await it in the iteration that issues it, or drop `joined`"
        raise WgError(NotYetSupported(span=g.span or loop.span, what=what, cure=cure))


def _slots(plan: Plan) -> None:
    for h in plan.homes.values():
        if not h.output and plan.axis not in h.indices and h.stages < 2:
            why = f"`{h.name}` has one slot, and the next item's is filled while this one's is read"
            raise WgError(CantJoin(span=h.span, why=why, cure=f"`ring 2` on `{h.name}`, or drop `joined`"))


def _staging(placement: Placement, ahead: set[str]) -> None:
    for p in (p for p in placement.placed.values() if p.home.over):
        name, over = p.home.name, p.home.over or ""
        if not p.staged_parts or placement.ring_of[over] in ahead:
            why = f"`{name}` lies over `{over}`, of which the next item takes its first tile before this one's result is stored"
            cure = f"give `{name}` memory of its own, or put it over a tile that the loop's last product reads"
            raise WgError(CantJoin(span=p.home.span, why=why, cure=cure))


def _accumulators(ahead: Copy) -> None:
    """The registers in which the old item's result stands are the new item's from its first product on."""
    for s in (i.step for i in ahead.items if isinstance(i.step, ast.IssueStep) and i.step.op == "+="):
        why = f"`{name_of(s.target)}` accumulates, and the next item's first product comes before this one's `finish`"
        cure = "issue it one tile later than the product that it waits for, or drop `joined`"
        raise WgError(CantJoin(span=s.span, why=why, cure=cure))


def _touched(placement: Placement, copy: Copy) -> set[str]:
    """The rings that a copy of the loop fills or reads, but for what is filled once an item."""
    steps = [i.step for i in copy.items if i.offset is not None]
    filled = {name_of(t) for s in steps if isinstance(s, ast.FillStep) for t in s.targets}
    read = {h for s in steps if isinstance(s, ast.IssueStep) for h in map(name_of, (s.left, s.right))}
    return {placement.ring_of[h] for h in filled | read if h in placement.ring_of}

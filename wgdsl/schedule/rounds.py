"""rounds: what `split tiles`, and a turn around the loop, ask of a schedule.

In: the plan and a role.  Out: problems. A wait by parity is right only if the phase before is known to be complete. What a
warpgroup passes over it hasn't waited for: it knows by its turn, or because the slot was its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..diagnostics.schedule import NotYetSupported
from .items import loop_of

if TYPE_CHECKING:
    from .plan import Plan, RolePlan


def item_problems(plan: Plan, role: RolePlan) -> Iterator[NotYetSupported]:
    """Why a role can't share out items like this."""
    loop = loop_of(role.steps)
    around = role.count > 1 and loop is not None and loop not in role.steps
    if around and not role.by_item:
        cure = "put it into the loop, or let warpgroups take whole items: `split tiles`"
        what = "a turn around a loop of which warpgroups share the tiles"
        yield NotYetSupported(span=loop.span if loop else None, what=what, cure=cure)
    if not role.by_item:
        return
    if not plan.persistent:
        cure = "`grid persistent over (...)`: a CTA then has several items to share out"
        yield NotYetSupported(span=role.span, what="`split tiles` where a CTA has one item", cure=cure)
    if role.count > 1 and loop is not None and not around:
        cure = f"`in turn {{ for {loop.axis} {{ ... }} }}`: the rings hold the tiles of one item after the other"
        yield NotYetSupported(span=loop.span, what="`split tiles` without a turn around the loop", cure=cure)
    for home in (h for h in plan.homes.values() if h.output and h.over in plan.homes):
        if plan.axis in plan.homes[home.over or ""].indices:
            cure = f"`smem {home.name} = ... by tma` without `over`: memory of its own for each warpgroup"
            yield NotYetSupported(span=home.span, what=f"`split tiles` with `{home.name}` over a ring", cure=cure)
    for home in plan.homes.values():
        if not home.output and plan.axis not in home.indices and home.stages % role.count:
            what = f"`{home.name}`, a ring of {home.stages} that {role.count} warpgroups take whole items from,"
            cure = f"`ring {role.count}`: a slot for the item of each warpgroup"
            yield NotYetSupported(span=home.span, what=what, cure=cure)

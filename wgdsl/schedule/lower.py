"""lower: streamed graph + schedule -> role program.

In: a canonical program streamed along the schedule's axis, and the schedule's AST.  Out: a `RoleProgram` in which every event
is explicit. Order: plan (numbers), place (memory), mask (trip), then each role's pipeline and sync.
"""

from __future__ import annotations

from ..diagnostics.model import WgError
from ..diagnostics.schedule import MissingLine, NeverComputed, NotYetSupported
from ..foundation.source import Span
from ..program.expr import TRUE, Expr
from ..program.streamed import Streamed
from ..roles import model as roles
from ..roles.items import divisors
from ..roles.model import Grid, Kernel, Registers, Role, RoleProgram, Step, TensorArg
from ..syntax import ast
from ..targets.registers import WARPGROUP, launch_registers
from . import arguments
from .barriers import Ids, deal_ids
from .combine import combined, finishing, partials_of, resetting
from .copying import CopySync
from .finish import MathSync
from .lists import list_kernel, listed_trip, lists_of
from .load import LoadSync
from .mask import Trip, live_trip, make_trip
from .named import display
from .numbers import hoisted
from .order import make_order
from .place import BULK, Placement, place
from .plan import Plan, RolePlan, fills_and_transposes, make_plan
from .reads import bound
from .sync import RoleSync


def stream_axis(schedule: ast.Schedule) -> tuple[str, Span | None]:
    """The axis that the schedule streams and where it says so. Raises WgError if it doesn't."""
    found = [i for i in schedule.items if isinstance(i, ast.StreamDecl)]
    if not found:
        raise WgError(MissingLine(span=schedule.span, line="`stream` line"))
    return found[0].axis, found[0].span


def lower(streamed: Streamed, schedule: ast.Schedule) -> RoleProgram:
    """The role program of `schedule` over a streamed program. Raises WgError (WG04xx)."""
    plan = make_plan(streamed, schedule)
    placement = place(plan)
    domain = _domain(streamed)
    trip = make_trip(plan, domain)
    _not_ahead(plan, trip)
    lists = lists_of(plan, trip, domain)
    between, trip = trip, trip if lists is None else listed_trip(plan, trip, lists)
    own = live_trip(plan, trip, domain) if plan.skips else trip
    ids = deal_ids(plan)
    synced = [_sync(plan, placement, own if r.split else trip, r, ids) for r in plan.roles]
    _all_done(streamed, synced, products=True)
    steps = [bound(plan, s.steps(), trip.reads) for s in synced]
    _all_done(streamed, synced, products=False)
    results = combined(plan)
    kernel = _kernel(plan, placement, between, ids, synced, steps, () if lists is None else (lists.tensor,))
    listing = () if lists is None else (list_kernel(plan, between, lists),)
    return RoleProgram(
        program=streamed.program.name,
        schedule=schedule.name,
        target=schedule.target,
        kernels=(*listing, *resetting(plan, results), kernel, *finishing(plan, results)),
        roundings=tuple(dict.fromkeys(r for s in synced for r in s.roundings)),
    )


def _not_ahead(plan: Plan, trip: Trip) -> None:
    """What tensors say of the rows of the item that follows isn't known yet while an item runs."""
    if plan.joined and trip.reads:
        grid = next(i for i in plan.schedule.items if isinstance(i, ast.GridDecl))
        said = " and ".join(f"`{r.value}`" for r in trip.reads)
        cure = "drop `joined`"
        raise WgError(NotYetSupported(span=grid.span, what=f"`joined` items whose rows end where {said} says", cure=cure))


def _all_done(streamed: Streamed, synced: list[RoleSync], products: bool) -> None:
    """Every state is accumulated by a product or advanced by a compute of some role."""
    done = {p.node.name for s in synced for p in s.products.values()}
    done |= {n for s in synced for names in s.assignment.nodes.values() for n in names}
    for state in streamed.states:
        if state.name not in done and state.is_contract == products:
            verb = "issue" if state.is_contract else "compute"
            name = f"{display(streamed, state.name)}[{streamed.axis}]"
            raise WgError(NeverComputed(span=state.node.span, name=name, step="finish", verb=verb))


def _domain(streamed: Streamed) -> Expr:
    """Where an element of the streamed axis counts for anything: the common domain of what the states sum."""
    domains = [streamed.program.domain_of(s.node.body) for s in streamed.states]
    if not domains:
        return TRUE
    first = domains[0]
    for s, d in zip(streamed.states, domains, strict=True):
        if d != first:
            raise WgError(NotYetSupported(span=s.node.span, what="streamed reductions over different domains"))
    return first


def _sync(plan: Plan, placement: Placement, trip: Trip, role: RolePlan, ids: Ids) -> RoleSync:
    if BULK not in plan.target.copies:
        return CopySync(plan, placement, trip, role, ids)
    return (LoadSync if fills_and_transposes(role.steps) else MathSync)(plan, placement, trip, role, ids)


# The kernel.


def _kernel(
    plan: Plan,
    placement: Placement,
    trip: Trip,
    ids: Ids,
    synced: list[RoleSync],
    steps: list[tuple[Step, ...]],
    lists: tuple[TensorArg, ...],
) -> Kernel:
    graph = plan.graph
    steps, numbers = hoisted(steps)
    grid = _grid(plan, trip, placement)
    threads = WARPGROUP * sum(r.count for r in plan.roles)
    every = [s for body in steps for s in roles.walk(body)]
    probed = [t for s in synced for t in s.probes.tensors.values()]
    maps = [p.map for p in placement.placed.values() if p.map is not None]
    tensors = arguments.tensors(graph, every, maps, (*partials_of(combined(plan)), *probed, *lists))
    flags = [p.home.tensor for p in placement.placed.values() if p.needs_fallback]
    counters = [f"{plan.work.name}.next"] if plan.work is not None else []
    return Kernel(
        name=f"{graph.name}_{plan.schedule.name}",
        program=graph.name,
        schedule=plan.schedule.name,
        target=plan.schedule.target,
        grid=grid,
        threads=threads,
        roles=tuple(_role(s, body, threads) for s, body in zip(synced, steps, strict=True)),
        rings=tuple(placement.rings.values()),
        buffers=(*(p.buffer for p in placement.placed.values()), *((placement.work,) if placement.work else ())),
        barriers=tuple(placement.barriers.values()),
        values=tuple(v for s in synced for v in s.computer.values.values()),
        maps=tuple(maps),
        tensors=tensors,
        params=arguments.params(graph, every, maps, tensors, flags, counters, numbers, divisors(grid)),
        index_extents=dict(graph.extents),
        shared_bytes=placement.shared_bytes,
        resident=_resident(plan, synced, threads),
        v8=plan.axis if plan.v8 else None,
        named_barriers=(
            *((f"turns of {t.role}", t.first, t.count) for t in ids.turns),
            *((f"warpgroups of {r}", first, _count(plan, r)) for r, first in ids.local.items()),
            *((f"all of {r}", number, 1) for r, number in ids.whole.items()),
        ),
    )


def _resident(plan: Plan, synced: list[RoleSync], threads: int) -> int:
    """CTAs that an SM's registers hold, where a role says how many it takes."""
    counts = [s.role.registers for s in synced if s.role.registers is not None and not s.sets_registers]
    return max(min((plan.target.resident(threads=threads, registers=c) for c in counts), default=1), 1)


def _count(plan: Plan, role: str) -> int:
    return next(r.count for r in plan.roles if r.name == role)


def _grid(plan: Plan, trip: Trip, placement: Placement) -> Grid:
    line = next(i for i in plan.schedule.items if isinstance(i, ast.GridDecl))
    dynamic = plan.work is not None
    axes, order = tuple(map(plan.grid_axis, plan.grid)), make_order(plan, line, trip, placement)
    return Grid(axes=axes, persistent=plan.persistent, dynamic=dynamic, order=order)


def _role(s: RoleSync, body: tuple[Step, ...], threads: int) -> Role:
    r = s.role
    if r.registers is not None and s.sets_registers:
        direction = "inc" if r.registers > launch_registers(threads) else "dec"
        body = (Registers(count=r.registers, direction=direction, span=r.span), *body)
    return Role(
        name=r.name,
        first=r.first,
        count=r.count,
        registers=r.registers if s.sets_registers else None,
        elected=isinstance(s, LoadSync) and s.elected,
        steps=body,
        span=r.span,
    )

"""lower: streamed graph + schedule -> role program.

In: a canonical program streamed along the schedule's axis, and the schedule's AST.  Out: a `RoleProgram` in which every event
is explicit. Order: plan (numbers), place (memory), mask (trip), then each role's pipeline and sync.
"""

from __future__ import annotations

from ..diagnostics.model import WgError
from ..diagnostics.schedule import MissingLine, NeverComputed, NotYetSupported
from ..foundation.dtypes import F32, I32, DType
from ..foundation.source import Span
from ..program.expr import TRUE, Expr, Scalar, loads, walk
from ..program.graph import Input, Output
from ..program.poly import ceildiv
from ..program.streamed import Streamed
from ..roles import model as roles
from ..roles.model import Grid, GridAxis, Kernel, Param, Registers, Role, RoleProgram, Step, TensorArg
from ..syntax import ast
from ..targets.registers import WARPGROUP, launch_registers
from .barriers import Ids, deal_ids
from .compute import display
from .finish import MathSync
from .load import LoadSync
from .mask import Trip, live_trip, make_trip
from .order import make_order
from .place import Placement, place
from .plan import Plan, RolePlan, make_plan, steps_of
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
    own = live_trip(plan, trip, domain) if plan.skips else trip
    ids = deal_ids(plan)
    synced = [_sync(plan, placement, own if r.split else trip, r, ids) for r in plan.roles]
    _all_done(streamed, synced, products=True)
    steps = [s.steps() for s in synced]
    _all_done(streamed, synced, products=False)
    kernel = _kernel(plan, placement, trip, ids, synced, steps)
    return RoleProgram(
        program=streamed.program.name,
        schedule=schedule.name,
        target=schedule.target,
        kernels=(kernel,),
        roundings=tuple(dict.fromkeys(r for s in synced for r in s.roundings)),
    )


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
    kinds = [isinstance(s, ast.FillStep) for s in steps_of(role.steps) if not hasattr(s, "body")]
    return (LoadSync if kinds and all(kinds) else MathSync)(plan, placement, trip, role, ids)


# The kernel.


def _kernel(
    plan: Plan, placement: Placement, trip: Trip, ids: Ids, synced: list[RoleSync], steps: list[tuple[Step, ...]]
) -> Kernel:
    graph = plan.graph
    threads = WARPGROUP * sum(r.count for r in plan.roles)
    every = [s for body in steps for s in roles.walk(body)]
    probed = tuple(t for s in synced for t in s.probes.tensors.values())
    tensors = (*_tensors(plan, placement, every), *probed)
    return Kernel(
        name=f"{graph.name}_{plan.schedule.name}",
        program=graph.name,
        schedule=plan.schedule.name,
        target=plan.schedule.target,
        grid=_grid(plan, trip, placement),
        threads=threads,
        roles=tuple(_role(s, body, threads) for s, body in zip(synced, steps, strict=True)),
        rings=tuple(placement.rings.values()),
        buffers=(*(p.buffer for p in placement.placed.values()), *((placement.work,) if placement.work else ())),
        barriers=tuple(placement.barriers.values()),
        values=tuple(v for s in synced for v in s.computer.values.values()),
        maps=tuple(p.map for p in placement.placed.values()),
        tensors=tensors,
        params=_params(plan, placement, every, probed),
        index_extents=dict(graph.extents),
        shared_bytes=placement.shared_bytes,
        named_barriers=(
            *((f"turns of {t.role}", t.first, t.count) for t in ids.turns),
            *((f"warpgroups of {r}", first, _count(plan, r)) for r, first in ids.local.items()),
            *((f"all of {r}", at, 1) for r, at in ids.role.items() if _uses_barrier(every, at)),
        ),
    )


def _uses_barrier(every: list[Step], number: int) -> bool:
    return any(isinstance(s, roles.BarSync) and s.id.constant == number for s in every)


def _count(plan: Plan, role: str) -> int:
    return next(r.count for r in plan.roles if r.name == role)


def _grid(plan: Plan, trip: Trip, placement: Placement) -> Grid:
    line = next(i for i in plan.schedule.items if isinstance(i, ast.GridDecl))
    axes = []
    for i in plan.grid:
        tile = plan.tiles.get(i, 1)
        axes.append(GridAxis(index=i, tile=tile, blocks=ceildiv(plan.graph.extents[i], tile)))
    dynamic = plan.work is not None
    return Grid(axes=tuple(axes), persistent=plan.persistent, dynamic=dynamic, order=make_order(plan, line, trip, placement))


def _role(s: RoleSync, body: tuple[Step, ...], threads: int) -> Role:
    r = s.role
    if r.registers is not None:
        direction = "inc" if r.registers > launch_registers(threads) else "dec"
        body = (Registers(count=r.registers, direction=direction, span=r.span), *body)
    return Role(
        name=r.name,
        first=r.first,
        count=r.count,
        registers=r.registers,
        elected=isinstance(s, LoadSync),
        steps=body,
        span=r.span,
    )


def _exprs(step: Step) -> list[Expr]:
    if isinstance(step, roles.Compute):
        return [e for op in step.ops for e in op.exprs]
    return [step.value] if isinstance(step, roles.StoreGlobal) else []


def _direct(every: list[Step]) -> dict[str, None]:
    """Tensors that threads address themselves."""
    out: dict[str, None] = {}
    for s in every:
        if isinstance(s, roles.StoreGlobal | roles.CopyOut):
            out[s.tensor] = None
        for e in _exprs(s):
            for x in loads(e):
                out[x.tensor] = None
    return out


def _tensors(plan: Plan, placement: Placement, every: list[Step]) -> tuple[TensorArg, ...]:
    used = {p.home.tensor for p in placement.placed.values()} | set(_direct(every))
    out = []
    for n in plan.graph.nodes:
        if isinstance(n, Input) and n.name in used:
            out.append(TensorArg(name=n.name, dtype=n.dtype, shape=n.shape, written=False))
        if isinstance(n, Output) and n.tensor in used:
            out.append(TensorArg(name=n.tensor, dtype=n.dtype, shape=n.shape, written=True))
    return tuple(out)


def _params(plan: Plan, placement: Placement, every: list[Step], probed: tuple[TensorArg, ...]) -> tuple[Param, ...]:
    """Kernel arguments: tensor maps, pointers with their strides, dims, scalars, flags."""
    dtypes: dict[str, DType] = {n.name: n.dtype for n in plan.graph.inputs} | {o.tensor: o.dtype for o in plan.graph.outputs}
    ranks = {n.name: len(n.shape) for n in plan.graph.inputs} | {o.tensor: len(o.shape) for o in plan.graph.outputs}
    out = [Param(kind="map", name=p.map.name, tensor=p.home.tensor) for p in placement.placed.values()]
    dtypes |= {t.name: t.dtype for t in probed}
    ranks |= {t.name: len(t.shape) for t in probed}
    for t in _direct(every):
        out.append(Param(kind="pointer", name=t, tensor=t, dtype=dtypes[t]))
        out += [Param(kind="stride", name=f"{t}.stride{a}", tensor=t, axis=a) for a in range(ranks[t])]
    out += [Param(kind="dim", name=d, dtype=I32) for d in plan.graph.dims if d not in plan.graph.fixed]
    scalars = {x.name for s in every for e in _exprs(s) for x in walk(e) if isinstance(x, Scalar)}
    out += [Param(kind="scalar", name=s.name, dtype=F32) for s in plan.graph.scalars if s.name in scalars]
    for p in placement.placed.values():
        if p.needs_fallback:
            out.append(Param(kind="flag", name=f"{p.home.tensor}.tma", tensor=p.home.tensor))
    if plan.work is not None:
        out.append(Param(kind="counter", name=f"{plan.work.name}.next", dtype=I32))
    return tuple(out)

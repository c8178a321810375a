"""elementwise: a kernel that computes each element of one tensor by itself.

In: a tensor, the access of its elements, and their value as an expression that loads other tensors.  Out: a `Kernel` whose one
role, of one warpgroup, stores tiles of 64 x 128 straight from its threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..foundation.source import Span
from ..program.expr import Expr
from ..program.poly import Poly, ceildiv
from ..roles.model import Axis, Grid, GridAxis, Items, Kernel, Role, StoreGlobal, TensorArg, walk
from ..targets.registers import WARPGROUP
from . import arguments

if TYPE_CHECKING:
    from .plan import Plan

ROWS, COLS, STEP = 64, 128, 8  # of a tile; columns come in eights


def elementwise(
    plan: Plan,
    what: str,
    tensors: tuple[TensorArg, ...],
    access: tuple[Poly, ...],
    indices: tuple[str, ...],
    value: Expr,
    span: Span | None,
) -> Kernel:
    """The kernel `what`, which stores `value` in the first of `tensors`; the others are those that it reads beside inputs."""
    graph, target = plan.graph, tensors[0]
    rows, cols = _axes(plan, access, indices)
    store = StoreGlobal(tensor=target.name, access=access, value=value, rows=rows, cols=cols, span=span)
    role = Role(name=what, first=0, count=1, registers=None, elected=False, steps=(Items(body=(store,)),), span=span)
    tiles = {a.index: a.count for a in (rows, cols) if a is not None}
    axes = (GridAxis(index=i, tile=tiles.get(i, 1), blocks=ceildiv(graph.extents[i], tiles.get(i, 1))) for i in indices)
    every = list(walk(role.steps))
    others = [t for t in arguments.tensors(graph, every, ()) if t.name != target.name]
    args = (target, *others, *tensors[1:])
    return Kernel(
        name=f"{graph.name}_{plan.schedule.name}_{what.replace('.', '_')}",
        program=graph.name,
        schedule=plan.schedule.name,
        target=plan.schedule.target,
        grid=Grid(axes=tuple(axes)),
        threads=WARPGROUP,
        roles=(role,),
        rings=(),
        buffers=(),
        barriers=(),
        values=(),
        maps=(),
        tensors=args,
        params=arguments.params(graph, every, (), args),
        index_extents=dict(graph.extents),
        shared_bytes=0,
    )


def _axes(plan: Plan, access: tuple[Poly, ...], indices: tuple[str, ...]) -> tuple[Axis, Axis | None]:
    """Columns run along the tensor's last axis, rows along the one before; one index alone runs along rows."""
    order = [p.bare for p in access if p.bare in indices]
    order = [*(i for i in indices if i not in order), *order]
    if len(order) == 1:
        return _axis(plan, order[0], ROWS), None
    return _axis(plan, order[-2], ROWS), _axis(plan, order[-1], COLS)


def _axis(plan: Plan, index: str | None, most: int) -> Axis:
    assert index is not None
    extent = plan.graph.extents[index].constant
    count = most if extent is None or most == ROWS else min(most, max(-(-extent // STEP), 1) * STEP)
    return Axis(index=index, origin=Poly.of(f"{index}.lo"), count=count)

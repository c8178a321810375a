"""lists: `stream j listed`: a kernel lists beforehand the tiles of the streamed axis that aren't empty.

In: the plan, the domain of what is streamed, and the trip between its bounds.  Out: the trip along the list, and the kernel
that makes the lists. There is one list for each tile of rows and each combination of the other grid indices on which the domain
depends: how many tiles it holds, then these in the order of the stream, each as twice its number, and 1 more if no element of
it lies outside for any row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..diagnostics.model import WgError
from ..diagnostics.schedule import NotFilled, NotYetSupported
from ..foundation.dtypes import F32, I32
from ..program.expr import Affine, Expr, conjunction, conjuncts, indices_of, loads
from ..program.poly import Poly, element, floordiv, mod
from ..roles.model import (
    ROWS,
    Axis,
    Classify,
    Grid,
    GridAxis,
    Items,
    Kernel,
    Let,
    ListTile,
    Loop,
    Read,
    Role,
    Step,
    Tally,
    TensorArg,
    Value,
    Zero,
    walk,
)
from ..targets.registers import WARPGROUP
from . import arguments
from .reads import bound

if TYPE_CHECKING:
    from .mask import Trip
    from .plan import Plan

ROLE, BARRIER = "list", 1


@dataclass(frozen=True, kw_only=True)
class Lists:
    """The lists of a kernel. `axes`: the grid axes that tell one from another, `place`: where an item's lies. `cond`: where an
    element counts."""

    axis: str
    tensor: TensorArg
    axes: tuple[str, ...]
    place: tuple[Poly, ...]
    cond: Expr

    @property
    def cut_from(self) -> str:
        """In the tile at the axis' end: from which element on no row sees anything."""
        return f"{self.axis}.cut_from"

    @property
    def cut_to(self) -> str:
        """In the tile at its start: up to which."""
        return f"{self.axis}.cut_to"

    def entry(self, position: Poly) -> Poly:
        """What the list holds for a position of the stream."""
        return element(self.tensor.name, (*self.place, position + 1))

    def name(self, position: Poly) -> str:
        """What that is called once it is read."""
        if position.constant is not None:
            return f"{self.axis}.entry.at{position.constant}"
        rest = position.number
        base = "" if (position - rest).bare == f"{self.axis}.pos" else ".last"
        return f"{self.axis}.entry{base}{'' if not rest else f'.plus{rest}' if rest > 0 else f'.less{-rest}'}"

    def read(self, position: Poly, tiles: Poly) -> Read:
        """tiles: how many there are along the axis."""
        return Read(name=self.name(position), value=self.entry(position), low=Poly(), high=tiles * 2)

    def tile(self, position: Poly) -> Poly:
        """The tile at a position."""
        return floordiv(Poly.of(self.name(position)), 2)

    def partial(self, position: Poly) -> Expr:
        """Whether some of it lies outside."""
        return Affine(poly=-mod(Poly.of(self.name(position)), 2))


def lists_of(plan: Plan, trip: Trip, domain: Expr) -> Lists | None:
    """The lists that a schedule asks for. Raises WgError for what can't be listed."""
    if not plan.listed:
        return None
    for problem in refusals(plan, trip, domain):
        raise WgError(problem)
    graph, axis, (rows,) = plan.graph, plan.axis, _tiled(plan)
    axes = tuple(a for a in plan.grid if a == rows or a in indices_of(domain))
    shape = (*(plan.grid_axis(a).blocks for a in axes), plan.tiles_of(axis) + 1)
    end = Affine(poly=graph.extents[axis] - 1 - Poly.of(axis))
    return Lists(
        axis=axis,
        tensor=TensorArg(name=f"{axis}.tiles", dtype=I32, shape=shape, written=False, temporary=True),
        axes=axes,
        place=tuple(_block(plan.grid_axis(a)) for a in axes),
        cond=conjunction(end, *conjuncts(domain)),
    )


def _block(axis: GridAxis) -> Poly:
    """Which of an axis' blocks an item has."""
    return floordiv(Poly.of(f"{axis.index}.lo"), axis.tile) if axis.tile > 1 else Poly.of(axis.index)


def _tiled(plan: Plan) -> tuple[str, ...]:
    return tuple(a for a in plan.grid if plan.tiles.get(a, 1) > 1)


def refusals(plan: Plan, trip: Trip, domain: Expr) -> Iterator[NotFilled | NotYetSupported]:
    """What isn't listed, beside what `plan` refuses."""
    span, rows = plan.stream_span, _tiled(plan)
    if not any(p.everywhere for p in trip.partials):
        why = f"lists nothing: what the program says of `{plan.axis}` are bounds, and all tiles between them hold something"
        yield NotFilled(span=span, name=f"stream {plan.axis} listed", why=why, cure=f"`stream {plan.axis}`, without a list")
    for role in (r for r in plan.roles if r.by_item):
        yield NotYetSupported(span=role.span, what="`split tiles` beside a listed stream", cure="split the rows")
    if len(rows) != 1 or plan.tiles[rows[0]] % ROWS:
        cure = f"tile one axis of the grid, by a multiple of {ROWS}"
        yield NotYetSupported(span=span, what=f"a listed stream for tiles of {' and '.join(rows) or 'no index'}", cure=cure)
    inputs = {n.name for n in plan.graph.inputs}
    for tensor in dict.fromkeys(x.tensor for x in loads(domain) if x.tensor not in inputs):
        what = f"a listed stream where `{tensor}`, which isn't an input, says what counts"
        yield NotYetSupported(span=span, what=what, cure="drop `listed`")


def listed_trip(plan: Plan, trip: Trip, lists: Lists) -> Trip:
    """The trip along the list. All that was known of a tile by its place is known by its entry."""
    from .mask import Partial

    n = f"{plan.axis}.n"
    count = Read(name=n, value=lists.entry(Poly.of(-1)), low=Poly(), high=plan.tiles_of(plan.axis))
    whole = Partial(name="listed", predicate=lists.cond, start=Poly(), stop=None)
    return replace(
        trip,
        lets=(),
        mask_lets=(),
        reads=(count,) if trip.left is None else (*trip.reads, count),
        n=Poly.of(n),
        last=Poly.of(n),
        partials=(whole,),
        lists=lists,
        cuts=_cuts(plan, trip, lists, Poly.of(n)),
    )


def _cuts(plan: Plan, trip: Trip, lists: Lists, n: Poly) -> tuple[Step, ...]:
    """Where in the tile at either end of the list begins, or ends, what no row sees: none of it, if that tile isn't listed."""
    edges = ((trip.seen_stop, lists.cut_from, trip.descending), (trip.seen_start, lists.cut_to, not trip.descending))
    wanted, size = {s.bare for s, _, _ in edges if s is not None}, plan.tiles[plan.axis]
    out: list[Step] = [] if not wanted or trip.left is not None else [*trip.reads]  # unless those are bound for all roles
    out += [Let(name=name, value=value) for name, value in trip.mask_lets if name in wanted]
    for seen, name, first in edges:
        if seen is not None:
            start = floordiv(lists.entry(Poly() if first else n - 1), 2) * size
            out.append(Read(name=name, value=seen - start, low=Poly(), high=Poly.of(size)))
    return tuple(replace(s, span=plan.stream_span) for s in out)


# The kernel that makes them.


def list_kernel(plan: Plan, trip: Trip, lists: Lists) -> Kernel:
    """trip: all tiles between the bounds, in the order of the stream."""
    graph, (rows,) = plan.graph, _tiled(plan)
    count = plan.tiles[rows] // ROWS
    steps = bound(plan, (Items(body=_body(plan, trip, lists, rows, count)),), trip.reads)
    some, every, listed = _names(plan.axis)
    tensors = arguments.tensors(graph, list(walk(steps)), (), (replace(lists.tensor, written=True),))
    indices = {rows, plan.axis, *lists.axes, *indices_of(lists.cond)}
    dims = _dims(plan, trip, lists, indices) | {x for t in tensors for p in t.shape for x in p.symbols()}
    return Kernel(
        name=f"{graph.name}_{plan.schedule.name}_list_{plan.axis}",
        program=graph.name,
        schedule=plan.schedule.name,
        target=plan.schedule.target,
        grid=Grid(axes=tuple(map(plan.grid_axis, lists.axes))),
        threads=count * WARPGROUP,
        roles=(Role(name=ROLE, first=0, count=count, registers=None, elected=False, steps=steps, span=plan.stream_span),),
        rings=(),
        buffers=(),
        barriers=(),
        values=(
            Value(name=some, role=ROLE, kind="flag", dtype=F32),
            Value(name=every, role=ROLE, kind="flag", dtype=F32),
            Value(name=listed, role=ROLE, kind="count", dtype=I32),
        ),
        maps=(),
        tensors=tensors,
        params=tuple(p for p in arguments.params(graph, list(walk(steps)), (), tensors) if p.kind != "dim" or p.name in dims),
        index_extents={i: extent for i, extent in graph.extents.items() if i in indices},
        shared_bytes=0,
        named_barriers=((f"all of {ROLE}", BARRIER, 1),),
    )


def _dims(plan: Plan, trip: Trip, lists: Lists, indices: set[str]) -> set[str]:
    """The symbols on which lists hang."""
    values = [v for _, v in trip.lets] + [v for r in trip.reads for v in (r.value, r.low, r.high)]
    values += [*lists.tensor.shape, *(p for i, p in plan.graph.extents.items() if i in indices)]
    return {*indices_of(lists.cond), *(s for v in values for s in v.symbols())}


def _names(axis: str) -> tuple[str, str, str]:
    return f"{axis}.some", f"{axis}.every", f"{axis}.listed"


def _body(plan: Plan, trip: Trip, lists: Lists, rows: str, count: int) -> tuple[Step, ...]:
    """Each tile is classified by all warps, and listed if they agree that it isn't empty."""
    axis, (some, every, listed) = plan.axis, _names(plan.axis)
    tile = trip.tile(Poly.of(f"{axis}.pos"))
    share = plan.tiles[rows] // count
    classify = Classify(
        some=some,
        every=every,
        cond=lists.cond,
        rows=Axis(index=rows, origin=plan.origin(rows) + Poly.of("wg") * share, count=share),
        cols=Axis(index=axis, origin=tile * plan.tiles[axis], count=plan.tiles[axis]),
        span=plan.stream_span,
    )
    entry = ListTile(
        id=Poly.of(BARRIER),
        threads=count * WARPGROUP,
        some=some,
        every=every,
        count=listed,
        tensor=lists.tensor.name,
        access=lists.place,
        tile=tile,
        span=plan.stream_span,
    )
    return (
        *trip.reads,
        *(Let(name=name, value=value, span=plan.stream_span) for name, value in trip.lets),
        Zero(value=listed, span=plan.stream_span),
        Loop(var=f"{axis}.pos", start=Poly(), stop=trip.n, body=(classify, entry), span=plan.stream_span),
        Tally(tensor=lists.tensor.name, access=(*lists.place, Poly()), count=listed, span=plan.stream_span),
    )

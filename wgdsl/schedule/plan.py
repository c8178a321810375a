"""plan: the declarations of a schedule, resolved against a streamed graph.

In: the streamed graph and the schedule's AST.  Out: a `Plan` with numbers for tiles, roles and homes, and lookups that the
later passes share. Nothing is placed yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..diagnostics.model import WgError
from ..diagnostics.schedule import (
    AxisNotCovered,
    BadNumber,
    CantJoin,
    DeclaredTwice,
    ExtentNotFixed,
    FinishEarly,
    MissingLine,
    NotFilled,
    NotYetSupported,
    OutputNotFinished,
    RowsPerWarpgroup,
    SeveralWriters,
    TileNotWhole,
    UnknownName,
    WrongTarget,
)
from ..foundation.dtypes import BOOL, F32
from ..foundation.source import Span
from ..program.expr import Cast, Expr, loads, walk
from ..program.graph import Output, ProgramGraph, Reduce
from ..program.poly import Poly, ceildiv, floordiv, minimum
from ..program.streamed import Streamed
from ..roles.model import Axis, GridAxis
from ..syntax import ast
from ..targets.choice import TARGETS, unknown_target
from ..targets.engines import ENGINES, Engine
from ..targets.registers import GRANULE, LOWEST, WARPGROUP, WARPS
from ..targets.sm_90a import HOPPER
from ..targets.target import Target
from .combine import ATOMIC, combine_problems, declared
from .constants import constant
from .forms import Form, forms_of, is_form
from .items import opened
from .named import display, resolve
from .rounds import item_problems

MOST_SETS = 2  # of an operand's registers: the loop is unrolled as often
TILES = "tiles"  # `split tiles`: whole items, unless the program has an index of that name
TRANSPOSE = "transpose"  # the engine of tiles that a role makes of others
WORK_ENGINE = "atomic"  # of the ring of work items
BY_THREADS = (None, "store", "copy")  # homes that no copy engine fills


@dataclass(frozen=True, kw_only=True)
class RolePlan:
    name: str
    first: int
    count: int
    registers: int | None
    split: str | None
    by_item: bool  # `split tiles`: its warpgroups take items in turn
    steps: tuple[ast.Step, ...]
    span: Span | None = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Home:
    """A declared home with its numbers. `stages` is the ring depth; `load` the access that the program makes of it."""

    name: str
    tensor: str
    indices: tuple[str, ...]
    stages: int
    over: str | None
    output: bool
    engine: str
    access: tuple[Poly, ...]
    elements: bool = False  # threads read it, element by element; no product does
    turned: str | None = None  # the home whose tiles a role transposes into this one
    span: Span | None = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Work:
    """The ring in which the numbers of work items go from the role that fetches them to the others."""

    name: str
    stages: int
    role: str
    span: Span | None = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Plan:
    streamed: Streamed
    schedule: ast.Schedule
    tiles: dict[str, int]
    axis: str
    descending: bool
    listed: bool  # a kernel of its own lists the tiles that aren't empty
    grid: tuple[str, ...]
    persistent: bool
    work: Work | None  # how a dynamic grid hands out its items
    joined: bool  # items reach into one another
    skips: bool  # tiles that are empty for the rows of a warpgroup
    roles: tuple[RolePlan, ...]
    homes: dict[str, Home]
    operand_sets: dict[str, int]  # sets of registers of an operand, where it isn't one
    forms: dict[str, Form]  # of tiles that become operands in registers
    promoted: frozenset[str]  # sums whose tiles' products threads add up
    part: str | None = None  # the grid axis of the parts of the stream
    parts: int = 1
    stream_span: Span | None = field(default=None, compare=False)

    def grid_axis(self, axis: str) -> GridAxis:
        """An axis of the grid. One whose tiles are whole turns of a faster index counts by the slowest of those that it runs
        over: by queries, if a tile has all heads of each."""
        if axis == self.part:
            return GridAxis(index=axis, tile=1, blocks=Poly.of(self.parts))
        name, turn = self.turn(axis)
        tile = self.rows(axis) // turn
        return GridAxis(index=name, tile=tile, blocks=ceildiv(floordiv(self.graph.extents[axis], turn), tile))

    def turn(self, axis: str) -> tuple[str, int]:
        """What a grid axis counts, and how many elements each is."""
        name, turn = self.graph.turns.get(axis, (axis, 1))
        return (axis, 1) if self.used(axis) % turn else (name, turn)

    def parts_of(self, index: str) -> int:
        """The warpgroups that share out a tile along an index."""
        return self.split_role.count if self.split_role is not None and self.is_split(index) else 1

    def used(self, index: str) -> int:
        """Of a part's elements along a grid axis those that an item works for: whole turns of the faster indices, and of these
        a number that divides other tiles, so that few sizes tell all that a mask may do. The next part begins behind them."""
        share = self.tiles.get(index, 1) // self.parts_of(index)
        _, turn = self.graph.turns.get(index, (index, 1))
        if index not in self.grid or share % turn == 0 or share < turn:
            return share
        return turn * 2 ** ((share // turn).bit_length() - 1)

    def end_of_part(self, index: str) -> Poly | None:
        """The element before which an item's work on a part ends, where that is before its last row and its index' extent."""
        part = self.axis_of(index) if index in self.grid else None
        if part is None or part.count == self.used(index):
            return None
        return minimum(part.origin + self.used(index), self.graph.extents[index])

    def rows(self, index: str) -> int:
        """Elements along a grid axis from one item to the next."""
        return self.used(index) * self.parts_of(index)

    def tiles_of(self, index: str) -> Poly:
        """Tiles along an index."""
        return ceildiv(self.graph.extents[index], self.tiles[index])

    @property
    def graph(self) -> ProgramGraph:
        return self.streamed.program

    @property
    def target(self) -> Target:
        return TARGETS[self.schedule.target]

    @cached_property
    def split_role(self) -> RolePlan | None:
        return next((r for r in self.roles if r.split), None)

    def size(self, index: str, tensor: str = "", span: Span | None = None) -> int:
        """Elements of one tile along an index: its tile size, 1 on the grid, or its whole extent, filled up with zeros where a
        product takes it in larger steps."""
        if index in self.tiles:
            return self.tiles[index]
        if index in self.grid:
            return 1
        extent = self.graph.extents[index]
        if extent.constant is None:
            raise WgError(ExtentNotFixed(span=span, index=index, extent=str(extent), tensor=tensor))
        step = self.steps.get(index, 1)
        return -(-extent.constant // step) * step

    @cached_property
    def steps(self) -> dict[str, int]:
        """The steps in which products take what runs along an index."""
        engines = [ENGINES[name] for name in self.target.products]
        contracts = [n for n in self.graph.nodes if isinstance(n, Reduce) and n.is_contract]
        out = dict.fromkeys((i for n in contracts for i in n.indices), max(e.n_step for e in engines))
        for n in contracts:
            step = max(e.k_steps.get(d, 1) for e in engines for d in self.operand_types(n))
            out |= {a: max(step, out.get(a, 1)) for a in n.axes}
        return out

    def operand_types(self, product: Reduce) -> set[str]:
        """The types of the inputs that a product multiplies: at least one operand is one."""
        types = {n.name: n.dtype.name for n in self.graph.inputs}
        return {types[x.tensor] for x in loads(product.body) if x.tensor in types} or {F32.name}

    @property
    def v8(self) -> bool:
        """Whether columns along the streamed axis lie in the order v8 in registers: where a role transposes the other operand,
        that has the order of its columns in its stead."""
        return any(f.v8 for f in self.forms.values()) and not any(h.turned for h in self.homes.values())

    def is_split(self, index: str) -> bool:
        return self.split_role is not None and self.split_role.split == index

    def origin(self, index: str) -> Poly:
        """First element along an index of the item's tile (not for the streamed axis)."""
        if index in self.grid:
            name, turn = self.turn(index)
            return turn * Poly.of(f"{name}.lo" if self.rows(index) > turn else name)
        return Poly.of(0)

    def axis_of(self, index: str, tile: Poly | None = None) -> Axis:
        """The axis of a register tile. A split index is the warpgroup's share."""
        count = self.size(index)
        if index == self.axis:
            assert tile is not None
            return Axis(index=index, origin=tile * count, count=count)
        if self.is_split(index):
            assert self.split_role is not None
            share = count // self.split_role.count
            return Axis(index=index, origin=self.origin(index) + Poly.of("wg") * self.used(index), count=share)
        return Axis(index=index, origin=self.origin(index), count=count)


def make_plan(streamed: Streamed, schedule: ast.Schedule) -> Plan:
    """Resolve the declarations. Raises WgError (WG04xx)."""
    return _Planner(streamed, schedule).plan()


class _Planner:
    def __init__(self, streamed: Streamed, schedule: ast.Schedule):
        self.streamed, self.schedule = streamed, schedule
        self.graph = streamed.program
        self.problems: list = []

    @property
    def target(self) -> Target:
        return TARGETS[self.schedule.target]

    def of(self, kind: type) -> list:
        return [i for i in self.schedule.items if isinstance(i, kind)]

    def plan(self) -> Plan:
        if self.schedule.target not in TARGETS:
            raise WgError(unknown_target(self.schedule.target, span=self.schedule.span))
        self.problems += unsupported_items(self.schedule)
        tiles = self.tiles()
        stream, grid = self.only(ast.StreamDecl, "stream"), self.only(ast.GridDecl, "grid")
        self.stop()
        assert stream is not None and grid is not None, "a missing line is a problem"
        self.grid_features(grid, stream)
        roles = self.roles()
        plan = Plan(
            streamed=self.streamed,
            schedule=self.schedule,
            tiles=tiles,
            axis=stream.axis,
            descending=stream.descending,
            listed=stream.listed,
            grid=grid.axes,
            persistent=grid.persistent is not None,
            work=self.work(grid, roles),
            joined=grid.joined,
            skips=bool(self.of(ast.SkipDecl)),
            roles=roles,
            homes=self.homes(tiles, stream.axis),
            operand_sets=self.operand_sets(),
            forms=self.forms(),
            promoted=self.promoted(tiles, stream.axis),
            part=stream.split_index,
            parts=self.number(stream.split_count, "the number of parts of the stream", 1, 1 << 10) or 1,
            stream_span=stream.span,
        )
        self.stop()
        self.check(plan, stream, grid)
        self.stop()
        return plan

    def stop(self) -> None:
        if self.problems:
            raise WgError(self.problems)

    def only(self, kind: type, word: str):
        found = self.of(kind)
        if not found:
            self.problems.append(MissingLine(span=self.schedule.span, line=f"`{word}` line"))
            return None
        if len(found) > 1:
            self.problems.append(DeclaredTwice(span=found[1].span, what="line", name=word, first=found[0].span))
        return found[0]

    def number(self, e: ast.Expr | None, what: str, low: int, high: int) -> int | None:
        if e is None:
            return None
        value = constant(e)
        if not isinstance(value, int) or not low <= value <= high:
            self.problems.append(
                BadNumber(span=e.span, what=what, value=value, rule=f"it must be a whole number from {low} to {high}")
            )
            return low
        return value

    def tiles(self) -> dict[str, int]:
        out: dict[str, int] = {}
        for decl in self.of(ast.TileDecl):
            for index, e in decl.entries:
                if index not in self.graph.extents:
                    self.problems.append(UnknownName(span=decl.span, what="index", name=index, known=tuple(self.graph.extents)))
                    continue
                if index in out:
                    self.problems.append(DeclaredTwice(span=decl.span, what="tile", name=index))
                out[index] = self.number(e, f"the tile size of `{index}`", 1, 1 << 16) or 1
        return out

    def grid_features(self, grid: ast.GridDecl, stream: ast.StreamDecl) -> None:
        if grid.joined:
            self.problems += unjoinable(grid, self.schedule)
        if stream.listed:
            self.problems += unlistable(stream, grid, self.schedule)
        part = stream.split_index
        if part in (*self.graph.extents, *self.graph.dims):
            self.problems.append(DeclaredTwice(span=stream.span, what="index or dim", name=part or ""))
        elif part is not None and part not in grid.axes:
            form = f"`{part}` in it: `over ({part}, {', '.join(grid.axes)})`"
            self.problems.append(MissingLine(span=grid.span, where="`grid`", line=f"axis `{part}`", form=form))
        for axis in grid.axes:
            if axis not in self.graph.extents and axis != part:
                self.problems.append(UnknownName(span=grid.span, what="index", name=axis, known=tuple(self.graph.extents)))

    def roles(self) -> tuple[RolePlan, ...]:
        bodies: dict[str, ast.RoleBody] = {}
        decls = self.of(ast.RoleDecl)
        names = tuple(d.name for d in decls)
        for body in self.of(ast.RoleBody):
            if body.role in bodies:
                self.problems.append(
                    DeclaredTwice(span=body.span, what="the list of steps of", name=body.role, first=bodies[body.role].span)
                )
            elif body.role not in names:
                self.problems.append(UnknownName(span=body.span, what="role", name=body.role, known=names))
            bodies[body.role] = body
        if not decls:
            self.problems.append(MissingLine(span=self.schedule.span, line="`role` line"))
        out, first, seen = [], 0, {}
        for d in decls:
            if d.name in seen:
                self.problems.append(DeclaredTwice(span=d.span, what="role", name=d.name, first=seen[d.name]))
            seen[d.name] = d.span
            if d.name not in bodies:
                form = f"`{d.name} {{ ... }}`"
                self.problems.append(MissingLine(span=d.span, where=f"role `{d.name}`", line="list of steps", form=form))
                continue
            count, registers = self.warpgroups(d), self.registers(d)
            by_item = d.split == TILES and TILES not in self.graph.extents
            out.append(
                RolePlan(
                    name=d.name,
                    first=first,
                    count=count,
                    registers=registers,
                    split=None if by_item else d.split,
                    by_item=by_item,
                    steps=bodies[d.name].steps,
                    span=d.span,
                )
            )
            first += count
        most = self.target.threads
        if first * WARPGROUP > most:
            what, rule = "the thread count of all roles", f"a CTA has at most {most}"
            self.problems.append(BadNumber(span=decls[-1].span, what=what, value=first * WARPGROUP, rule=rule))
        return tuple(out)

    def warpgroups(self, d: ast.RoleDecl) -> int:
        """How many warpgroups a role has, or groups of four warps where the target issues by warps."""
        unit = self.target.unit
        if d.unit.rstrip("s") != unit:
            what, cure = f"a role of {self.target.name} counted in {d.unit}", f"count in {unit}s"
            self.problems.append(NotYetSupported(span=d.span, what=what, cure=cure))
            return 1
        each = 1 if unit == "warpgroup" else WARPS
        count = self.number(d.count, f"the {unit} count of `{d.name}`", each, self.target.threads // WARPGROUP * each) or each
        if count % each:
            rule = f"warps share rows out in groups of {each}"
            self.problems.append(BadNumber(span=d.span, what=f"the warp count of `{d.name}`", value=count, rule=rule))
        return max(count // each, 1)

    def registers(self, d: ast.RoleDecl) -> int | None:
        what, most = f"the register count of `{d.name}`", self.target.thread_registers
        found = self.number(d.registers, what, LOWEST, most)
        if d.registers is not None and found is not None and found % GRANULE and found != most:
            rule = f"it must be a multiple of {GRANULE} from {LOWEST} to {most}"
            self.problems.append(BadNumber(span=d.registers.span, what=what, value=found, rule=rule))
        return found

    def homes(self, tiles: dict[str, int], axis: str) -> dict[str, Home]:
        out: dict[str, Home] = {}
        turned: list[ast.HomeDecl] = []
        outputs = {n.tensor for n in self.graph.outputs}
        for d in self.of(ast.HomeDecl):
            if d.name in out:
                self.problems.append(DeclaredTwice(span=d.span, what="home", name=d.name, first=out[d.name].span))
                continue
            if d.tensor in self.graph.absent or d.engine == WORK_ENGINE or self.is_operand_ring(d) or is_form(d):
                continue
            if d.engine == TRANSPOSE:
                turned.append(d)
                continue
            engines = self.target.stores if d.tensor in outputs else self.target.copies
            if d.kind != "smem" or (d.engine in BY_THREADS and d.engine not in engines):
                what = f"`{d.kind} ... by {d.engine}`" if d.engine else f"`{d.kind}` without an engine"
                cure = f"`smem NAME = TENSOR[tiles] by {engines[0]}`"
                self.problems.append(NotYetSupported(span=d.span, what=what, cure=cure))
                continue
            if d.engine not in engines:
                self.problems.append(WrongTarget(span=d.span, engine=d.engine, target=self.schedule.target, has=engines))
                continue
            home = self.home(d, tiles, axis)
            if home is not None:
                out[d.name] = home
        for d in turned:
            home = self.turned(d, out)
            if home is not None:
                out[d.name] = home
        return out

    def turned(self, d: ast.HomeDecl, homes: dict[str, Home]) -> Home | None:
        """`smem Vt = Vs by transpose ring 2`."""
        source = homes.get(d.tensor)
        if source is None:
            self.problems.append(UnknownName(span=d.span, what="home", name=d.tensor, known=tuple(homes)))
            return None
        types = {n.name: n.dtype for n in self.graph.inputs}
        grid = next(iter(self.of(ast.GridDecl)), None)
        dtype = types.get(source.tensor)
        what = cure = ""
        if self.target.family != HOPPER:
            what, cure = f"`by transpose` on {self.target.name}", "take an operand as the tensor has it"
        elif source.output or source.elements or source.turned or dtype is None or dtype.nbytes != 1:
            what, cure = f"`{d.tensor}` transposed by a role", "transpose a tile of 8 bits that a product reads"
        elif grid is not None and grid.joined:
            what, cure = "`by transpose` in a grid whose items are joined", "drop `joined`"
        elif any(s.listed for s in self.of(ast.StreamDecl)):
            what, cure = "`by transpose` beside a listed stream", "drop `listed`"
        elif d.over is not None or d.indices:
            what, cure = f"`{d.name}` over another home", f"`smem {d.name} = {d.tensor} by transpose ring 2`"
        if what:
            self.problems.append(NotYetSupported(span=d.span, what=what, cure=cure))
            return None
        stages = self.number(d.ring, f"the ring depth of `{d.name}`", 1, 32) or 1
        return replace(source, name=d.name, stages=stages, engine=TRANSPOSE, turned=source.name, span=d.span)

    def promoted(self, tiles: dict[str, int], axis: str) -> frozenset[str]:
        """`accumulate Acc promote every 128`: a product of each tile by itself, which threads add to the sum so far."""
        out: set[str] = set()
        for d in self.of(ast.AccumulateDecl):
            state = self.streamed.state(resolve(self.streamed, d.tensor))
            if state is None or not state.is_contract:
                known = tuple(display(self.streamed, s.name) for s in self.streamed.states if s.is_contract)
                self.problems.append(UnknownName(span=d.span, what="sum of products", name=d.tensor, known=known))
                continue
            every, tile = self.number(d.every, "the number of products that the engine adds up", 1, 1 << 16), tiles.get(axis)
            grid = next(iter(self.of(ast.GridDecl)), None)
            if self.target.family != HOPPER or state.correction is not None or (grid is not None and grid.joined):
                what = f"`accumulate {d.tensor} promote`" + f" on {self.target.name}" * (self.target.family != HOPPER)
                what += " of a sum that is rescaled, or where items are joined" * (self.target.family == HOPPER)
                self.problems.append(NotYetSupported(span=d.span, what=what, cure="drop this line"))
            elif tile is not None and every != tile:
                what, cure = (
                    f"`promote every {every}` with tiles of {tile}",
                    f"`promote every {tile}`, or `tile {axis} {every}`",
                )
                self.problems.append(NotYetSupported(span=d.span, what=what, cure=cure))
            out.add(state.name)
        return frozenset(out)

    def forms(self) -> dict[str, Form]:
        out, problems = forms_of(self.streamed, self.schedule)
        self.problems += problems
        return out

    @staticmethod
    def is_operand_ring(d: ast.HomeDecl) -> bool:
        """`regs P ring 2`."""
        return d.kind == "regs" and d.name == d.tensor and d.engine is None and not d.indices

    def operand_sets(self) -> dict[str, int]:
        out: dict[str, int] = {}
        packed = {
            s.target.id if isinstance(s.target, ast.Name) else s.target.base.id
            for body in self.of(ast.RoleBody)
            for s in steps_of(body.steps)
            if isinstance(s, ast.PackStep)
        }
        for d in (d for d in self.of(ast.HomeDecl) if self.is_operand_ring(d)):
            if d.name not in packed:
                self.problems.append(
                    UnknownName(span=d.span, what="operand that is packed", name=d.name, known=tuple(sorted(packed)))
                )
            out[d.name] = self.number(d.ring, f"the number of register sets of `{d.name}`", 1, MOST_SETS) or 1
        return {name: count for name, count in out.items() if count > 1}

    def work(self, grid: ast.GridDecl, roles: tuple[RolePlan, ...]) -> Work | None:
        """The ring of work items: written (`smem work by atomic ring 2`), or derived."""
        written = [d for d in self.of(ast.HomeDecl) if d.engine == WORK_ENGINE]
        if grid.persistent != "dynamic":
            why = "holds work items of a grid that hands out none"
            cure = "`grid persistent dynamic over ...`, or drop this line"
            for d in written:
                self.problems.append(NotFilled(span=d.span, name=d.name, why=why, cure=cure))
            return None
        if len(written) > 1:
            self.problems.append(DeclaredTwice(span=written[1].span, what="ring of", name="work items", first=written[0].span))
        filling = [r.name for r in roles if any(isinstance(s, ast.FillStep) for s in steps_of(r.steps))]
        if not filling:
            self.problems.append(MissingLine(span=grid.span, line="role that fills", form="a role with `fill` steps"))
            return None
        for r in (r for r in roles if r.name in filling[1:] and only_fills(r.steps)):
            what, cure = (
                "a second role that only fills, in a dynamic grid",
                "`grid persistent static over ...`, or let one role fill",
            )
            self.problems.append(NotYetSupported(span=r.span, what=what, cure=cure))
        if written:
            d = written[0]
            stages = self.number(d.ring, f"the ring depth of `{d.name}`", 1, 32) or 1
            return Work(name=d.name, stages=stages, role=filling[0], span=d.span)
        taken = {d.name for d in self.of(ast.HomeDecl)}
        return Work(name="work" if "work" not in taken else "work.items", stages=2, role=filling[0], span=grid.span)

    def home(self, d: ast.HomeDecl, tiles: dict[str, int], axis: str) -> Home | None:
        inputs = {n.name: n for n in self.graph.inputs}
        outputs = {n.tensor: n for n in self.graph.outputs}
        known = (*inputs, *outputs)
        if d.tensor not in known:
            self.problems.append(UnknownName(span=d.span, what="input or output", name=d.tensor, known=known))
            return None
        if d.tensor in outputs:
            access, elements = outputs[d.tensor].access, False
        elif (found := self.access(d, axis)) is not None:
            access, elements = found
        else:
            return None
        reads = frozenset().union(*(p.symbols() for p in access))
        for i in d.indices:
            if i not in reads:
                known_i = tuple(sorted(reads & set(self.graph.extents)))
                self.problems.append(UnknownName(span=d.span, what=f"index of `{d.tensor}`", name=i, known=known_i))
        if axis in reads and axis not in d.indices:
            form = f"it: `{d.name} = {d.tensor}[{', '.join((*d.indices, axis))}]`"
            self.problems.append(MissingLine(span=d.span, where=f"home `{d.name}`", line=f"index `{axis}`", form=form))
        stages = self.number(d.ring, f"the ring depth of `{d.name}`", 1, 32) or 1
        return Home(
            name=d.name,
            tensor=d.tensor,
            indices=d.indices,
            stages=stages,
            over=d.over,
            output=d.tensor in outputs,
            engine=d.engine or "",
            access=access,
            elements=elements,
            span=d.span,
        )

    def access(self, d: ast.HomeDecl, axis: str) -> tuple[tuple[Poly, ...], bool] | None:
        """The access map with which products read an input, or else everybody; of several the one that has the home's indices.
        And whether no product does."""
        contracts = [n.body for n in self.graph.nodes if isinstance(n, Reduce) and n.is_contract]
        every = self.reads(d.tensor, contracts)
        elements = not every
        if elements:
            every = self.reads(d.tensor, [e for n in self.graph.nodes for e in n.exprs()])
        symbols = {a: frozenset().union(*(p.symbols() for p in a)) for a in every}
        meant = [a for a in every if symbols[a] >= {*d.indices} and (axis in d.indices) == (axis in symbols[a])]
        found = every if len(every) == 1 else meant
        if len(found) == 1:
            return found[0], elements
        what = f"a home for `{d.tensor}`, which nothing reads"
        cure = "drop this line"
        if every:
            what = f"a home for `{d.tensor}`, which {'steps' if elements else 'products'} read in {len(every)} ways,"
            forms = (", ".join(i for i in self.graph.extents if i in symbols[a] and i not in self.grid_axes()) for a in every)
            cure = f"name the indices of one: {' or '.join(f'`{d.name} = {d.tensor}[{form}]`' for form in forms)}"
        self.problems.append(NotYetSupported(span=d.span, what=what, cure=cure))
        return None

    @staticmethod
    def reads(tensor: str, bodies: list[Expr]) -> list[tuple[Poly, ...]]:
        """The distinct access maps with which expressions read a tensor."""
        return list(dict.fromkeys(x.access for e in bodies for x in loads(e) if x.tensor == tensor))

    def grid_axes(self) -> frozenset[str]:
        """Indices of which a CTA has one."""
        tiled = {i for d in self.of(ast.TileDecl) for i, _ in d.entries}
        return frozenset(a for g in self.of(ast.GridDecl) for a in g.axes if a not in tiled)

    def check(self, plan: Plan, stream: ast.StreamDecl, grid: ast.GridDecl) -> None:
        if plan.axis in plan.grid:
            self.problems.append(NotYetSupported(span=grid.span, what="a grid over the streamed axis (a split of it)"))
        if plan.axis not in plan.tiles:
            form = f"`tile {plan.axis} 128`"
            self.problems.append(MissingLine(span=stream.span, line=f"tile size for `{plan.axis}`", form=form))
        self.whole(plan)
        for out in self.graph.outputs:
            self.covered(plan, out, grid.span)
        self.problems += combine_problems(plan)
        self.split(plan)
        self.finished(plan)
        self.staged(plan)
        self.in_order(plan)
        self.casts()
        self.elements(plan)
        self.finished_last(plan)

    def whole(self, plan: Plan) -> None:
        """An index that no CTA and no iteration steps over has one tile, so that tile is all there is of it."""
        written = {i for o in self.graph.outputs for i in o.indices}  # `covered` looks at those
        for decl in self.of(ast.TileDecl):
            for index, e in decl.entries:
                extent = self.graph.extents[index]
                stepped = index == plan.axis or index in plan.grid or index in written
                if not stepped and extent.constant != plan.tiles[index]:
                    tile = plan.tiles[index]
                    self.problems.append(TileNotWhole(span=e.span, index=index, tile=tile, extent=str(extent)))

    def covered(self, plan: Plan, out: Output, span: Span | None) -> None:
        for axis in plan.grid:
            if axis not in out.indices and axis in self.graph.extents:
                folds = self.folds(out, axis)
                if folds and out.tensor in declared(plan):
                    continue  # `combine_problems` looks at those
                self.problems.append(SeveralWriters(span=span, output=out.tensor, axis=axis, how=self.addable(folds)))
        told = {p.index for p in self.problems if isinstance(p, AxisNotCovered)}
        for i in (i for i in out.indices if i not in told):
            if (i not in plan.grid and self.graph.extents[i].constant is None) or (i in plan.tiles and i not in plan.grid):
                self.problems.append(AxisNotCovered(span=span, index=i, output=out.tensor))

    def folds(self, out: Output, axis: str) -> tuple[Reduce, ...]:
        """The reductions of final values along an axis that an output reads."""
        o = next(o for o in self.streamed.outputs if o.name == out.name)
        found = (self.streamed.fold(x.tensor) for x in loads(o.value))
        return tuple(f for f in found if f is not None and axis in f.axes)

    def addable(self, folds: tuple[Reduce, ...]) -> str:
        """How CTAs could contribute to what is made of them; empty if they can't."""
        nested = any(self.streamed.fold(x.tensor) is not None for f in folds for x in loads(f.body))
        ops = {ATOMIC.get(f.op, "") for f in folds}
        return ops.pop() if len(ops) == 1 and not nested else ""

    def split(self, plan: Plan) -> None:
        self.problems += [p for r in plan.roles for p in item_problems(plan, r)]
        splits = [r for r in plan.roles if r.split]
        if len(splits) > 1:
            self.problems.append(NotYetSupported(span=splits[1].span, what="more than one split role"))
        for r in splits:
            if r.split not in plan.tiles:
                self.problems.append(UnknownName(span=r.span, what="tiled index", name=r.split or "", known=tuple(plan.tiles)))
            elif not any(e.shares_rows(plan.tiles[r.split], r.count) for e in self.engines()):
                problem = RowsPerWarpgroup(span=r.span, index=r.split, tile=plan.tiles[r.split], warpgroups=r.count)
                self.problems.append(replace(problem, most=max(e.blocks for e in self.engines()), unit=self.target.unit))

    def engines(self) -> list[Engine]:
        return [ENGINES[name] for name in self.target.products]

    def casts(self) -> None:
        for n in self.graph.nodes:
            for x in (x for e in n.exprs() for x in walk(e)):
                if isinstance(x, Cast) and x.dtype.name not in self.target.elements:
                    what, cure = f"a cast to {x.dtype} on {self.target.name}", f"casts: {', '.join(self.target.elements)}"
                    self.problems.append(NotYetSupported(span=n.span, what=what, cure=cure))

    def elements(self, plan: Plan) -> None:
        """The types of elements that threads read and write themselves; a copy engine takes any."""
        held = {h.tensor for h in plan.homes.values() if not h.output}
        read = {x.tensor for n in self.graph.nodes for e in n.exprs() for x in loads(e)} - held
        written = self.target.elements
        arrays = [(n.name, n.dtype, (*written, BOOL.name), n.span) for n in self.graph.inputs if n.name in read]
        arrays += [(n.tensor, n.dtype, written, n.span) for n in self.graph.outputs]
        for name, dtype, known, span in arrays:
            if dtype.name not in known:
                cure = "types of elements: " + ", ".join(known)
                self.problems.append(NotYetSupported(span=span, what=f"`{name}`, whose elements are {dtype},", cure=cure))

    def in_order(self, plan: Plan) -> None:
        """What threads move between registers and shared memory has its columns in order."""
        form = next((f for f in plan.forms.values() if f.v8), None)
        if form is None:
            return
        for h in (h for h in plan.homes.values() if h.output or h.elements):
            if h.access[-1].bare == plan.axis:
                what = f"`{h.name}` with columns along `{plan.axis}`, which lie in another order for `{form.name}`,"
                self.problems.append(NotYetSupported(span=h.span, what=what, cure="drop this line: threads use global memory"))

    def staged(self, plan: Plan) -> None:
        """A staging buffer that no `finish` goes through is memory for nothing."""
        via = {v for r in plan.roles for s in steps_of(r.steps) if isinstance(s, ast.FinishStep) for v in s.via}
        for h in plan.homes.values():
            if h.output and h.name not in via:
                why, cure = "stages nothing", f"`finish {h.tensor} via {h.name}`, or drop this line"
                self.problems.append(NotFilled(span=h.span, name=h.name, why=why, cure=cure))

    def finished(self, plan: Plan) -> None:
        found: dict[str, list[Span | None]] = {o.tensor: [] for o in self.graph.outputs}
        for r in plan.roles:
            for s in steps_of(r.steps):
                if not isinstance(s, ast.FinishStep):
                    continue
                for t in s.targets:
                    name = t.id if isinstance(t, ast.Name) else t.base.id
                    if name in found:
                        found[name].append(s.span)
        last = next((spans[-1] for spans in found.values() if spans), self.schedule.span)
        for name, spans in found.items():
            if len(spans) != 1:
                span, first = (spans[1], spans[0]) if spans else (last, None)
                self.problems.append(OutputNotFinished(span=span, output=name, times=len(spans), first=first))

    def finished_last(self, plan: Plan) -> None:
        """A `finish` stands behind the loop of its role: before its end the states aren't those of all tiles."""
        for r in plan.roles:
            steps = tuple(opened(r.steps))
            loop = max((k for k, s in enumerate(steps) if isinstance(s, ast.ForStep)), default=-1)
            behind = {id(s) for s in steps[loop + 1 :]}
            early = (s for s in steps_of(r.steps) if isinstance(s, ast.FinishStep) and id(s) not in behind)
            self.problems += [FinishEarly(span=s.span, axis=plan.axis) for s in early]


def unjoinable(grid: ast.GridDecl, schedule: ast.Schedule) -> Iterator[CantJoin | NotYetSupported]:
    """What stands beside `joined` and excludes it."""
    if grid.persistent is None:
        why = "each CTA runs one item, so none follows it"
        yield CantJoin(span=grid.span, why=why, cure="`grid persistent joined over ...`, or drop `joined`")
    for skip in (i for i in schedule.items if isinstance(i, ast.SkipDecl)):
        cure = "drop this line, or `joined`"
        yield NotYetSupported(span=skip.span, what="`skip` in a grid whose items are joined", cure=cure)


def unlistable(stream: ast.StreamDecl, grid: ast.GridDecl, schedule: ast.Schedule) -> Iterator[NotYetSupported]:
    """What stands beside `listed` and excludes it."""
    if stream.split_index is not None:
        yield NotYetSupported(span=stream.span, what="a listed stream in parts", cure="drop `listed`, or `split`")
    if grid.joined:
        yield NotYetSupported(span=grid.span, what="a listed stream where items are joined", cure="drop `listed`, or `joined`")
    for skip in (i for i in schedule.items if isinstance(i, ast.SkipDecl)):
        yield NotYetSupported(span=skip.span, what="`skip` beside a listed stream", cure="drop this line, or `listed`")


def steps_of(steps: tuple[ast.Step, ...]) -> Iterator[ast.Step]:
    """The steps and those inside them."""
    for s in steps:
        yield s
        yield from steps_of(getattr(s, "body", ()))


def only_fills(steps: tuple[ast.Step, ...]) -> bool:
    """Whether one thread can do all that a role does."""
    kinds = [isinstance(s, ast.FillStep) for s in steps_of(steps) if not hasattr(s, "body")]
    return bool(kinds) and all(kinds)


def fills_and_transposes(steps: tuple[ast.Step, ...]) -> bool:
    """Whether a role fills, and computes nothing: what it may do beside it is to transpose what it has filled."""
    kinds = [isinstance(s, ast.FillStep | ast.PackStep) for s in steps_of(steps) if not hasattr(s, "body")]
    return all(kinds) and any(isinstance(s, ast.FillStep) for s in steps_of(steps))


def unsupported_items(schedule: ast.Schedule) -> Iterator[NotYetSupported]:
    """The lines and steps of the language that no pass here lowers: nothing that is written is passed over."""
    for item in schedule.items:
        match item:
            case ast.GridDecl(with_home=str()):
                what, cure = "`with` in a `grid` line", "drop it"
            case ast.HomeDecl() if not is_form(item) and (item.cast or item.times or item.permute):
                what, cure = "a home with a form of its own", "drop `as`, `times` and `permute`"
            case _:
                continue
        yield NotYetSupported(span=item.span, what=what, cure=cure)

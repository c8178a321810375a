"""place: memory for every home.

In: a `Plan`.  Out: a `Placement`: buffers with swizzles and offsets, rings and their barriers with arrival counts, tensor
maps, and for each home the coordinates of its copies. Registers are placed where steps are lowered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..diagnostics.model import WgError
from ..diagnostics.schedule import CantShare, NoBox, NoHome, NotFilled, NotYetSupported, TileShape, UnknownName
from ..foundation.dtypes import I32
from ..foundation.source import Span
from ..program.graph import Input, Output
from ..program.poly import Poly, ceildiv, floordiv
from ..roles.model import Barrier, Buffer, MapDim, Ring, TensorMap
from ..roles.rules import ELEMENTS
from ..roles.shares import share_of
from ..syntax import ast
from ..targets.descriptor import CORE_ROWS
from ..targets.mbarrier import MBARRIER_BYTES
from ..targets.registers import WARPS
from ..targets.swizzle import CHUNK, swizzle_for
from ..targets.tma import TMA
from ..targets.wgmma import BLOCK, KEYS, PAIRS
from .boxes import Digit, Side, sides
from .plan import Home, Plan, RolePlan, Work, steps_of

ALIGN = TMA.shared_alignment  # every tile starts on a swizzle atom
BULK = "tma"  # the engine that copies by tensor maps, and counts bytes on mbarriers
FOUR = 4  # rows that lie side by side in registers, in the order v8
WORK_COLS = 4  # i32 in a slot of the work ring: what one access moves


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A home with its buffer and how its copies address global memory: by a tensor map if there is one."""

    home: Home
    buffer: Buffer
    map: TensorMap | None
    split_inner: bool  # the innermost axis stands in the map as (panel columns, panel): one copy moves all panels
    sides: tuple[Side, ...]  # of the map's boxes, along the rows
    rows: int  # of a part that its copies bring
    needs_fallback: bool  # a store whose row pitch may not suit the tensor map
    staged_parts: int = 0  # slots of the streamed ring that it takes behind an item's last fill, one for each part
    groups: int = 1  # of its rows, which copies bring one by one: those of an order that isn't the tensor's

    def copies(self, rows: Poly, cols: Poly) -> list[tuple[int, int, tuple[Poly, ...]]]:
        """(panel, group of rows, coordinates) of each copy of a tile at element (rows, cols) of its two axes."""
        width = self.buffer.panel_cols
        if self.split_inner:
            return [(0, 0, self._coords(Poly.of(0), rows, floordiv(cols, width)))]
        places = [(p, g) for p in range(self.buffer.panels) for g in range(self.groups)]
        return [(p, g, self._coords(cols + p * width, rows, None, g)) for p, g in places]

    def _coords(self, inner: Poly, rows: Poly, panel: Poly | None, group: int = 0) -> tuple[Poly, ...]:
        wide = {len(self.home.access) - 1, *(s.digit.axis for s in self.sides)}
        others = [a.substitute({self.buffer.rows_index: rows}) for k, a in enumerate(self.home.access) if k not in wide]
        along = [c for s in self.sides for c in s.coords(rows)]
        if self.groups > 1:
            along = [Poly.of(PAIRS * group), floordiv(rows, FOUR)]
        return (inner, *along, *([panel] if panel is not None else []), *reversed(others))

    @property
    def box_bytes(self) -> int:
        """Bytes of all copies of one part of one stage; boxes count whole even where they are clipped."""
        return self.buffer.tile_bytes // self.buffer.rows * self.rows


@dataclass(frozen=True, kw_only=True)
class Fill:
    """A fill step's homes, which form one ring."""

    ring: str
    homes: tuple[str, ...]
    role: str


@dataclass(kw_only=True)
class Placement:
    placed: dict[str, Placed]
    rings: dict[str, Ring]
    barriers: dict[str, Barrier]
    ring_of: dict[str, str]
    shared_bytes: int = 0
    work: Buffer | None = None  # where the numbers of work items stand

    def per_part(self, ring: str) -> bool:
        """Whether each part of the ring has its own barrier."""
        full = self.rings[ring].full
        return full is not None and self.barriers[full].parts > 1


def rank(home: Home, along: tuple[Side, ...]) -> int:
    """Dimensions of a map whose innermost axis is one of them."""
    wide = {s.digit.axis for s in along}
    return sum(len(s.boxes) for s in along) + len(home.access) - len(wide)


def name_of(t: ast.Name | ast.Index) -> str:
    return t.id if isinstance(t, ast.Name) else t.base.id


def place(plan: Plan) -> Placement:
    """Raises WgError (WG04xx) for homes that can't be placed."""
    return _Placer(plan).run()


def place_work(plan: Plan, work: Work, placement: Placement) -> None:
    """The ring of work items: a number a slot; the role that fetches writes it, one lane of every other warp frees it."""
    granule = TMA.unswizzled_alignment
    offset = -(-placement.shared_bytes // granule) * granule
    buffer = Buffer(
        name=work.name, tensor=work.name, dtype=I32, rows=1, cols=WORK_COLS, rows_index="", cols_index="", swizzle=0,
        ring=work.name, stages=work.stages, offset=offset, part_stride=granule, span=work.span,
    )  # fmt: skip
    at = offset + buffer.total_bytes
    full = Barrier(name=f"{work.name}.full", ring=work.name, count=1, parts=1, stages=work.stages, offset=at)
    readers = sum(WARPS * r.count for r in plan.roles if r.name != work.role)
    empty = replace(full, name=f"{work.name}.empty", count=readers, offset=at + MBARRIER_BYTES * work.stages)
    placement.rings[work.name] = Ring(
        name=work.name, stages=work.stages, buffers=(work.name,), full=full.name, empty=empty.name
    )
    placement.barriers |= {full.name: full, empty.name: empty}
    placement.shared_bytes = empty.offset + MBARRIER_BYTES * work.stages
    placement.work = buffer


class _Placer:
    def __init__(self, plan: Plan):
        self.plan = plan
        self.fills = self.find_fills()
        self.readers = self.find_readers()

    def run(self) -> Placement:
        plan = self.plan
        self.check_fills()
        placed = {h.name: self.placed(h) for h in plan.homes.values()}
        alone = {h.name: h.name for h in plan.homes.values() if h.output or h.turned}
        ring_of = {h: f.ring for f in self.fills for h in f.homes} | alone
        placed = {n: replace(p, buffer=replace(p.buffer, ring=ring_of[n])) for n, p in placed.items()}
        placed, end = self.offsets(placed)
        rings, barriers = self.rings(placed, end)
        last = max((b.offset + MBARRIER_BYTES * b.parts * b.stages for b in barriers.values()), default=end)
        out = Placement(placed=placed, rings=rings, barriers=barriers, ring_of=ring_of, shared_bytes=last)
        if plan.work is not None:
            place_work(plan, plan.work, out)
        return out

    # Who fills, who reads.
    def find_fills(self) -> list[Fill]:
        found: dict[tuple[str, ...], Fill] = {}
        for role in self.plan.roles:
            for s in steps_of(role.steps):
                if not isinstance(s, ast.FillStep):
                    continue
                homes = tuple(name_of(t).split(".")[0] for t in s.targets)
                for h in homes:
                    self.known_home(h, s.span)
                found.setdefault(homes, Fill(ring=homes[0], homes=homes, role=role.name))
                if found[homes].role != role.name:
                    why = f"is filled by `{found[homes].role}` too"
                    raise WgError(NotFilled(span=s.span, name=homes[0], why=why, cure="fill it in one role only"))
        return list(found.values())

    def known_home(self, name: str, span: Span | None) -> None:
        if name not in self.plan.homes:
            raise WgError(UnknownName(span=span, what="home", name=name, known=tuple(self.plan.homes)))
        if self.plan.homes[name].turned:
            why = "is made of another tile, and isn't filled"
            raise WgError(NotFilled(span=span, name=name, why=why, cure=f"`pack {name}[{self.plan.axis}]` makes it"))
        if self.plan.homes[name].output:
            why, tensor = "stages an output, and isn't filled", self.plan.homes[name].tensor
            raise WgError(NotFilled(span=span, name=name, why=why, cure=f"`finish {tensor} via {name}` writes it"))

    def known_operand(self, name: str, span: Span | None) -> None:
        values = [n.name for n in self.plan.streamed.tile] + list(self.plan.graph.aliases)
        values += [f.name for f in self.plan.forms.values()]
        if name not in self.plan.homes and name not in values:
            raise WgError(NoHome(span=span, name=name, homes=(*self.plan.homes, *values)))

    def find_readers(self) -> dict[str, list[RolePlan]]:
        out: dict[str, list[RolePlan]] = {}
        computing = [r for r in self.plan.roles if any(isinstance(s, ast.ComputeStep) for s in steps_of(r.steps))]
        out |= {h.name: list(computing) for h in self.plan.homes.values() if h.elements and computing}
        for role in self.plan.roles:
            for s in steps_of(role.steps):
                if isinstance(s, ast.IssueStep):
                    for operand in (s.left, s.right):
                        self.known_operand(name_of(operand), operand.span)
                        roles = out.setdefault(name_of(operand), [])
                        if role not in roles:
                            roles.append(role)
                if isinstance(s, ast.PackStep) and (home := self.plan.homes.get(name_of(s.target))) is not None and home.turned:
                    roles = out.setdefault(home.turned, [])
                    if role not in roles:
                        roles.append(role)
        return out

    def makers(self, home: Home) -> list[tuple[RolePlan, ast.PackStep]]:
        """The steps that make a tile of another one."""
        steps = ((r, s) for r in self.plan.roles for s in steps_of(r.steps))
        return [(r, s) for r, s in steps if isinstance(s, ast.PackStep) and name_of(s.target) == home.name]

    def check_made(self, home: Home) -> None:
        """A tile is made of another one by one step of a role that does nothing else but fill, and a product reads it."""
        found, axis = self.makers(home), self.plan.axis
        name = f"{home.name}[{axis}]"
        if len(found) != 1:
            why = "is never made" if not found else "is made twice"
            raise WgError(NotFilled(span=home.span, name=home.name, why=why, cure=f"`pack {name}` in one role, once"))
        role, step = found[0]
        if home.name not in self.readers:
            cure = "read it in a product, or remove it and its `pack`"
            raise WgError(NotFilled(span=home.span, name=home.name, why="is made, but no product reads it", cure=cure))
        beside = (ast.ForStep, ast.FillStep, ast.OnceStep)
        others = [s for s in steps_of(role.steps) if not isinstance(s, beside) and s is not step]
        if others or role.split or role.count > 1:
            what = f"`pack {name}` beside steps that aren't fills, or in a role of several warpgroups"
            raise WgError(NotYetSupported(span=step.span, what=what, cure="give it a role of one warpgroup"))
        readers = self.readers[home.turned or ""]
        if any(r is not role for r in readers):
            what = f"`{home.turned}`, which a product reads beside `{home.name}`,"
            raise WgError(NotYetSupported(span=home.span, what=what, cure=f"multiply by `{home.name}` alone"))

    def check_fills(self) -> None:
        for h in (h for h in self.plan.homes.values() if h.turned):
            self.check_made(h)
        for h in self.plan.homes.values():
            if h.output or h.turned:
                continue
            times = sum(h.name in f.homes for f in self.fills)
            tile = f"{h.name}[{self.plan.axis}]" if self.plan.axis in h.indices else h.name
            if times == 0:
                raise WgError(NotFilled(span=h.span, name=h.name, why="is never filled", cure=f"`fill {tile}` in one role"))
            if times > 1:
                cure = "fill it alone or in one list, the same wherever it is filled"
                raise WgError(NotFilled(span=h.span, name=h.name, why="is filled in two different groups", cure=cure))
            if h.name not in self.readers:
                reader = "compute" if h.elements else "product"
                cure = f"read it in a {reader}, or remove it and its `fill`"
                raise WgError(NotFilled(span=h.span, name=h.name, why=f"is filled, but no {reader} reads it", cure=cure))
        for f in self.fills:
            depths = {self.plan.homes[h].stages for h in f.homes}
            if len(depths) > 1:
                others = ", ".join(f"`{h}`" for h in f.homes[1:])
                why = f"is filled together with {others}, but their rings aren't equally deep"
                cure = "give them one depth, or fill them one by one"
                raise WgError(NotFilled(span=self.plan.homes[f.ring].span, name=f.ring, why=why, cure=cure))

    def placed(self, home: Home) -> Placed:
        tensor = self.tensor(home.tensor)
        buffer = self.buffer(home, tensor)
        self.shape(home, buffer)
        if home.elements:
            self.element_wise(home, buffer)
        shape, inner = self.reached(home, tensor.shape), tensor.shape[-1]
        along = self.sides(home, buffer, shape) if home.engine == BULK else ()
        groups = PAIRS if self.by_fours(home, buffer, along) else 1
        fits = rank(home, along) < TMA.rank and self.copied(buffer) == buffer.rows and groups == 1
        split = inner.constant is not None and inner.constant % buffer.panel_cols == 0 and fits
        aligned = inner.constant is not None and inner.constant * tensor.dtype.nbytes % 16 == 0
        return Placed(
            home=home,
            buffer=buffer,
            map=self.map(home, buffer, shape, along, split, groups) if home.engine == BULK else None,
            split_inner=split,
            sides=along,
            groups=groups,
            rows=self.copied(buffer),
            needs_fallback=home.output and not aligned,
        )

    def buffer(self, home: Home, tensor: Input | Output) -> Buffer:
        plan, (ri, ci) = self.plan, self.wide(home)
        if home.turned:
            ri, ci = ci, ri
        rows, cols = (plan.size(i, home.tensor, home.span) // plan.parts_of(i) for i in (ri, ci))
        parts = max(plan.parts_of(ri), plan.parts_of(ci))
        if home.output and home.over is None:
            parts = max(parts, *(r.count for r in self.finishers(home) if r.by_item), 1)  # each warpgroup has its own item
        return Buffer(
            name=home.name,
            tensor=home.tensor,
            dtype=tensor.dtype,
            rows=rows,
            cols=cols,
            rows_index=ri,
            cols_index=ci,
            swizzle=swizzle_for(cols, tensor.dtype.nbytes),
            ring=home.name,
            parts=parts,
            stages=home.stages,
            over=home.over,
            span=home.span,
        )

    def reached(self, home: Home, shape: tuple[Poly, ...]) -> tuple[Poly, ...]:
        """How far a home may reach along each axis of its tensor: a result's no further than its indices do."""
        if not home.output:
            return shape
        ends = tuple(self.plan.graph.extents.get(p.bare or "", n) for p, n in zip(home.access, shape, strict=True))
        if ends[-1] != shape[-1]:
            what = f"the staging of `{home.tensor}`, whose rows are written up to `{ends[-1]}` of `{shape[-1]}` elements,"
            cure = f"store it from registers: drop this line and `via {home.name}`"
            raise WgError(NotYetSupported(span=home.span, what=what, cure=cure))
        return ends

    def element_wise(self, home: Home, b: Buffer) -> None:
        """A tile that a `compute` reads lies as the products' tiles do: the streamed axis runs along its columns."""
        if b.cols_index != self.plan.axis:
            cure = f"a tensor whose last axis is `{self.plan.axis}`, or read it from global memory: drop this line"
            raise WgError(
                NotYetSupported(span=home.span, what=f"the tile of `{home.name}`, which a `compute` reads,", cure=cure)
            )
        if b.dtype.name not in ELEMENTS:
            cure = f"elements of type {', '.join(ELEMENTS)}, or read it from global memory: drop this line"
            raise WgError(
                NotYetSupported(span=home.span, what=f"a home of {b.dtype} elements that a `compute` reads", cure=cure)
            )

    def finishers(self, home: Home) -> list[RolePlan]:
        """The roles that store through a staging buffer."""
        steps = {r.name: steps_of(r.steps) for r in self.plan.roles}
        return [r for r in self.plan.roles if any(isinstance(s, ast.FinishStep) and home.name in s.via for s in steps[r.name])]

    def tensor(self, name: str) -> Input | Output:
        return next(
            n
            for n in self.plan.graph.nodes
            if (isinstance(n, Input) and n.name == name) or (isinstance(n, Output) and n.tensor == name)
        )

    def wide(self, home: Home) -> tuple[str, str]:
        """The indices of the rows and the columns of a tile: those along which it has more than one element. That of the
        columns stands alone at the tensor's last axis, that of the rows where the engine finds it."""
        found: dict[str, list[int]] = {}
        for k, access in enumerate(home.access):
            for s in sorted(access.symbols() & set(self.plan.graph.extents)):
                if self.plan.size(s, home.tensor, home.span) > 1 or s not in self.plan.grid:
                    found.setdefault(s, []).append(k)
        cols = home.access[-1].bare
        rows = [s for s in found if s != cols]
        if len(rows) != 1 or found.get(cols or "") != [len(home.access) - 1]:
            cure = "a home holds a two-dimensional tile whose columns run along the tensor's last axis"
            raise WgError(NotYetSupported(span=home.span, what=f"the tile of `{home.name}`", cure=cure))
        return rows[0], cols or ""

    def sides(self, home: Home, b: Buffer, shape: tuple[Poly, ...]) -> tuple[Side, ...]:
        """The sides of the boxes in which a copy engine takes a tile's rows."""
        rows, extent = b.rows_index, self.plan.graph.extents[b.rows_index]
        tile = self.plan.rows(rows) if rows in self.plan.grid else self.plan.size(rows)
        found = sides(home.access, shape, rows, extent, self.copied(b), tile)
        if found is not None:
            return found
        access = ", ".join(f"`{p}`" for p in home.access if b.rows_index in p.symbols())
        raise WgError(NoBox(span=home.span, home=home.name, tensor=home.tensor, index=b.rows_index, access=access, rows=b.rows))

    def is_single(self, index: str, home: Home) -> bool:
        """Whether a tile has one element along an index."""
        return index in self.plan.grid and self.plan.size(index, home.tensor, home.span) == 1

    def copied(self, b: Buffer) -> int:
        """Rows of a part that an item works for: all, or whole turns of what runs faster along them."""
        return self.plan.used(b.rows_index) if b.rows_index in self.plan.grid else b.rows

    def shape(self, home: Home, b: Buffer) -> None:
        row, count = f"the bytes of a row of `{home.name}`", f"the row count of a part of `{home.name}`"
        bulk, nbytes = home.engine == BULK, b.cols * b.dtype.nbytes
        granule = f"{'TMA' if bulk else home.engine} moves multiples of {CHUNK}"
        checks = (
            (nbytes % CHUNK, row, nbytes, granule, b.cols_index),
            (bulk and b.rows > TMA.box, count, b.rows, f"a TMA box side is at most {TMA.box}", b.rows_index),
            (b.rows % CORE_ROWS, count, b.rows, f"a swizzled tile has a multiple of {CORE_ROWS}", b.rows_index),
            (home.turned and b.rows % BLOCK, count, b.rows, f"a warp transposes {BLOCK} at once", b.rows_index),
            (home.turned and b.cols % KEYS, row, nbytes, f"a warp transposes {KEYS} at once", b.cols_index),
        )
        for wrong, what, value, rule, index in checks:
            if wrong:
                problem = TileShape(span=home.span, what=what, value=value, rule=rule, index=index, shares=(share_of(b),))
                raise WgError(problem)

    def by_fours(self, home: Home, b: Buffer, along: tuple[Side, ...]) -> bool:
        """Whether rows come in the order v8, in which the columns of a product have them: the first two of every four, then the
        last two."""
        if not self.plan.v8 or b.rows_index != self.plan.axis or home.output:
            return False
        if b.rows % KEYS:
            what, rule, index = (
                f"the row count of a part of `{home.name}`",
                f"in the order v8 a multiple of {KEYS}",
                b.rows_index,
            )
            raise WgError(TileShape(span=home.span, what=what, value=b.rows, rule=rule, index=index, shares=(share_of(b),)))
        if len(along) != 1 or along[0].digit != Digit(axis=along[0].digit.axis, weight=1, extent=None, rest=Poly()):
            what, cure = f"`{home.name}` in the order v8", f"`{b.rows_index}` alone at an axis of `{home.tensor}`"
            raise WgError(NotYetSupported(span=home.span, what=what, cure=cure))
        return True

    def map(
        self, home: Home, b: Buffer, shape: tuple[Poly, ...], along: tuple[Side, ...], split: bool, groups: int
    ) -> TensorMap:
        width, cols_axis, inner = b.panel_cols, len(shape) - 1, shape[-1]
        dims = [MapDim(axis=cols_axis, extent=Poly.of(width) if split else inner)]
        box = [width]
        if groups > 1:  # a row is one of four, and one of the fours
            axis = along[0].digit.axis
            dims += [MapDim(axis=axis, extent=Poly.of(FOUR)), MapDim(axis=axis, extent=ceildiv(shape[axis], FOUR), factor=FOUR)]
            box += [PAIRS, b.rows // FOUR]
        else:
            dims += (d for s in along for d in s.dims(shape))
            box += (n for s in along for n in s.boxes)
        if split:
            assert inner.constant is not None
            dims.append(MapDim(axis=cols_axis, extent=Poly.of(inner.constant // width), factor=width))
            box.append(b.panels)
        for k in reversed(range(len(shape))):
            if k not in {d.axis for d in dims}:
                dims.append(MapDim(axis=k, extent=shape[k]))
                box.append(1)
        if len(dims) > TMA.rank:
            raise WgError(NotYetSupported(span=home.span, what=f"a tensor map of {len(dims)} dimensions for `{home.tensor}`"))
        return TensorMap(name=home.name, tensor=home.tensor, dtype=b.dtype, dims=tuple(dims), box=tuple(box), swizzle=b.swizzle)

    def offsets(self, placed: dict[str, Placed]) -> tuple[dict[str, Placed], int]:
        at, out = 0, {}
        for name, p in placed.items():
            if p.home.over is None:
                out[name] = replace(p, buffer=replace(p.buffer, offset=at))
                at = -(-(at + p.buffer.total_bytes) // ALIGN) * ALIGN
        for name, p in placed.items():
            if p.home.over is not None:
                out[name] = self.shared(p, out)
        return {n: out[n] for n in placed}, at

    def shared(self, p: Placed, done: dict[str, Placed]) -> Placed:
        home, other = p.home, done.get(p.home.over or "")
        if other is None:
            known = tuple(n for n, q in done.items() if q.home.over is None)
            raise WgError(UnknownName(span=home.span, what="home", name=home.over or "", known=known))
        why = ""
        if not home.output:
            why = f"`{home.name}` is an operand; only a staging buffer lies over another"
        elif self.plan.axis in other.home.indices:
            return self.over_ring(p, other)
        elif other.buffer.parts != p.buffer.parts:
            why = f"it has {p.buffer.parts} parts and `{other.home.name}` has {other.buffer.parts}"
        elif other.buffer.tile_bytes < p.buffer.tile_bytes:
            why = f"a part has {p.buffer.tile_bytes} bytes and one of `{other.home.name}` {other.buffer.tile_bytes}"
        if why:
            both = (share_of(replace(p.buffer, over=None)), share_of(other.buffer))
            raise WgError(CantShare(span=home.span, name=home.name, other=other.home.name, why=why, shares=both))
        b = replace(p.buffer, offset=other.buffer.offset, part_stride=other.buffer.stride)
        if other.buffer.stages > 1:  # the same item's slot
            b = replace(b, stages=other.buffer.stages, ring=other.buffer.ring)
        return replace(p, buffer=b)

    def over_ring(self, p: Placed, other: Placed) -> Placed:
        """Staging that takes one slot of a ring for each part, behind the item's last fill."""
        home, slot = p.home, other.buffer
        parts = p.buffer.parts
        why = ""
        if slot.parts > 1:
            why = f"each warpgroup has its own part of `{slot.name}`"
        elif p.buffer.tile_bytes > slot.stride:
            why = f"a part has {p.buffer.tile_bytes} bytes and a slot of `{slot.name}` {slot.stride}"
        elif parts > slot.stages:
            why = f"its {parts} parts need as many slots, and `{slot.name}` has {slot.stages}"
        if why:
            both = (share_of(replace(p.buffer, over=None)), share_of(slot))
            raise WgError(CantShare(span=home.span, name=home.name, other=slot.name, why=why, shares=both))
        b = replace(p.buffer, parts=1, stages=slot.stages, ring=slot.ring, offset=slot.offset, part_stride=slot.stride)
        return replace(p, buffer=b, staged_parts=parts)

    def rings(self, placed: dict[str, Placed], at: int) -> tuple[dict[str, Ring], dict[str, Barrier]]:
        rings: dict[str, Ring] = {}
        barriers: dict[str, Barrier] = {}
        for f in self.fills:
            first = placed[f.ring]
            if first.home.engine != BULK:  # the threads that copy know by themselves
                rings[f.ring] = Ring(name=f.ring, stages=first.home.stages, buffers=f.homes)
                continue
            streamed = self.plan.axis in first.home.indices
            parts = first.buffer.parts if not streamed and len(f.homes) == 1 else 1
            full = Barrier(name=f"{f.ring}.full", ring=f.ring, count=1, parts=parts, stages=first.home.stages, offset=at)
            barriers[full.name] = full
            at += MBARRIER_BYTES * parts * full.stages
            empty = None
            if streamed or self.plan.persistent:
                empty = replace(full, name=f"{f.ring}.empty", count=self.releases(f, placed, parts), offset=at)
                barriers[empty.name] = empty
                at += MBARRIER_BYTES * parts * full.stages
            rings[f.ring] = Ring(
                name=f.ring,
                stages=first.home.stages,
                buffers=f.homes,
                full=full.name,
                empty=empty.name if empty else None,
            )
        for h in (h for h in self.plan.homes.values() if h.turned):
            full = Barrier(name=f"{h.name}.full", ring=h.name, count=1, parts=1, stages=h.stages, offset=at)
            readers = sum(WARPS * r.count for r in self.readers[h.name])
            empty = replace(full, name=f"{h.name}.empty", count=readers, offset=at + MBARRIER_BYTES * h.stages)
            at = empty.offset + MBARRIER_BYTES * h.stages
            barriers |= {full.name: full, empty.name: empty}
            rings[h.name] = Ring(name=h.name, stages=h.stages, buffers=(h.name,), full=full.name, empty=empty.name)
        for h in self.plan.homes.values():
            if h.output and placed[h.name].buffer.ring == h.name:
                rings[h.name] = Ring(name=h.name, stages=1, buffers=(h.name,))
        return rings, barriers

    def releases(self, f: Fill, placed: dict[str, Placed], parts: int) -> int:
        """Arrivals that free one slot: one lane of every reading warp, or the thread that stored what lies over it."""
        if any(p.home.over in f.homes and not p.staged_parts for p in placed.values()):
            return 1
        readers = {r.name: r for h in f.homes for r in self.readers[h]}
        return sum(WARPS if parts > 1 or r.by_item else WARPS * r.count for r in readers.values())

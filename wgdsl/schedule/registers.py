"""registers: what is computed, packed and rescaled in the registers of a role.

In: the role's products and which nodes each `compute` evaluates.  Out: `RegisterWriter`, on which `sync` builds: it refuses
what touches the registers of a product in flight or reads what the role hasn't computed for that tile.
"""

from __future__ import annotations

from ..diagnostics.model import WgError
from ..diagnostics.schedule import NeverComputed, NoHome, NotYetSupported, StillInFlight, UnknownName
from ..foundation.source import Span
from ..program.expr import Expr, Reg, apply, loads, regs
from ..program.poly import Poly
from ..roles.model import Axis, Compute, MapOp, Op, Pack, ReadShared, Step, Value
from ..syntax import ast
from .compute import Assignment, Computer
from .flight import tile_text
from .mask import Partial, Trip
from .named import resolve
from .pipeline import ast_text, step_offset
from .place import Placement, name_of
from .plan import Plan, RolePlan
from .products import Product
from .rings import RingWriter


class RegisterWriter(RingWriter):
    """Steps of one role in the making, and the values in its registers."""

    def __init__(self, plan: Plan, placement: Placement, trip: Trip, role: RolePlan):
        super().__init__(placement)
        self.plan, self.trip, self.role = plan, trip, role
        self.streamed = plan.streamed
        raised = {f.node: f.shift for f in plan.forms.values() if f.shift}
        coarse = frozenset(f.node for f in plan.forms.values() if f.dtype.nbytes == 1)
        self.computer = Computer(streamed=plan.streamed, role=role.name, raised=raised, coarse=coarse)
        self.products: dict[str, Product] = {}
        self.computes: list[ast.ComputeStep] = []
        self.assignment = Assignment(nodes={})
        self.roundings: list[str] = []
        self.unrolled = 0  # which copy of the body of an unrolled loop is being lowered

    def declare(self, p: Product) -> None:
        """Declare the registers of a product's result."""
        self.computer.rows = self.plan.axis_of(p.rows).count
        self.computer.tile(p.value, self.plan.size(p.cols))
        if p.promoted:
            self.computer.tile(p.result, self.plan.size(p.cols))
        self.computer.home.setdefault(p.node.name, p.value)
        dtype = self.placement.placed[p.b].buffer.dtype
        if dtype.largest is not None:
            of = f", {p.k} of them; threads add up those sums" if p.promoted else ""
            self.note_rounding(f"{p.name}: the matrix engine adds products of {dtype} with about 14 bits{of}")

    def note_rounding(self, note: str) -> None:
        if note not in self.roundings:
            self.roundings.append(note)

    def row_axis(self) -> Axis | None:
        for p in self.products.values():
            return self.plan.axis_of(p.rows)
        return None

    def initial_states(self) -> list[Step]:
        rows = self.row_axis()
        names = tuple(n for names in self.assignment.nodes.values() for n in names)
        ops = self.computer.initial(names, rows) if rows else []
        return [Compute(ops=tuple(ops), note="nothing seen yet")] if ops else []

    def operand_value(self, name: str, rel: int) -> str:
        """The registers of a packed tile: of several sets the one whose turn it is in this copy of the loop's body."""
        sets = self.plan.operand_sets.get(name, 1)
        k = (self.unrolled + rel) % sets
        return f"{name}.frag{k}" if k else f"{name}.frag"

    def overwrite(self, value: str) -> None:
        """A product takes these registers: what was computed in them is gone."""
        values = self.computer.values
        for node, home in self.computer.home.items():
            if (values[home].over or home) == value and self.streamed.tile_node(node) is not None:
                self.state.computed.pop(node, None)

    def touch(self, value: str, what: str, span: Span | None) -> None:
        base = self.computer.values[value].over or value if value in self.computer.values else value
        for g in self.state.flight:
            if g.value == base or g.operand == value:
                product = f"{g.product}{tile_text(self.plan.axis, g.rel)}"
                raise WgError(StillInFlight(span=span, product=product, touched=what, issued=g.span))

    def element_homes(self, step: int) -> tuple[str, ...]:
        """The homes whose elements a `compute` reads in some copy of it, masked or not."""
        names = self.assignment.nodes.get(step, ())
        read = [x for n in names for e in self.exprs(n) for x in loads(e)]
        if self.streamed.masks.union(self.streamed.masked_states) & {*names, *(x.tensor for x in read)}:
            read += [x for m in self.trip.partials for x in loads(m.predicate)]
        homes = (h for h in self.plan.homes.values() if h.elements)
        return tuple(h.name for h in homes if any((x.tensor, x.access) == (h.tensor, h.access) for x in read))

    def declare_elements(self, home: str) -> None:
        """The registers in which a tile stands that a `compute` reads."""
        h, b = self.plan.homes[home], self.placement.placed[home].buffer
        if b.rows != self.computer.rows:
            what = f"the tile of `{home}`, of {b.rows} rows where the products have {self.computer.rows},"
            raise WgError(NotYetSupported(span=h.span, what=what, cure="read it from global memory: drop this line"))
        value = Value(name=f"{home}.held", role=self.role.name, kind="elements", dtype=b.dtype, cols=b.cols, rows=b.rows)
        self.computer.held[h.tensor, h.access] = self.computer.declare(value)

    def read_elements(self, homes: tuple[str, ...], rel: int, ops: list[Op]) -> None:
        """Take the tiles that operations read out of shared memory."""
        used = {name for op in ops for e in op.exprs for name in regs(e)}
        for home in homes:
            h = self.plan.homes[home]
            dst, slot = self.computer.held[h.tensor, h.access], self.slot(self.placement.ring_of[home], rel)
            if dst in used:
                self.emit(ReadShared(dst=dst, buffer=home, part=self.part_of(home), slot=slot))

    def compute(self, s: ast.ComputeStep, rel: int, position: Poly, masks: tuple[Partial, ...], first: bool) -> None:
        """What a step evaluates for one tile. `first`: nothing has been seen before it."""
        step = self.computes.index(s)
        names = self.assignment.nodes[step]
        for n in names:
            for x in (y for e in self.exprs(n) for y in loads(e)):
                p = next((q for q in self.products.values() if q.node.name == x.tensor), None)
                if p is not None:
                    self.touch(p.value, p.name, s.span)
                if p is not None and self.streamed.state(x.tensor) is None and self.state.computed.get(x.tensor) != rel:
                    tile = f"{p.name}{tile_text(self.plan.axis, rel)}"
                    raise WgError(NeverComputed(span=s.span, name=tile, step=ast_text(s), verb="issue"))
        tile = self.trip.tile(position)
        rows, cols = self.axes(tile, s)
        partial = self.trip.lists.partial(position) if self.trip.lists is not None and masks else None
        predicates = tuple(m.predicate for m in masks)
        ops = self.computer.ops(names, self.assignment.after(step), rows, cols, predicates, first, partial)
        homes = self.element_homes(step)
        self.read_elements(homes, rel, ops)
        self.emit(Compute(ops=tuple(ops), note=ast_text(s)))
        for ring in dict.fromkeys(self.placement.ring_of[h] for h in homes):
            self.read_done(ring, rel)
        for n in names:
            self.state.computed[n] = rel
        moves = [n for n in names for t in self.streamed.states if n in t.references]
        if moves:
            self.state.scaled_to = rel

    def exprs(self, name: str) -> tuple[Expr, ...]:
        node = self.streamed.tile_node(name)
        state = self.streamed.state(name)
        return node.exprs() if node is not None else (state.node.body,) if state else ()

    def axes(self, tile: Poly, s: ast.ComputeStep) -> tuple[Axis, Axis]:
        p = next((q for q in self.products.values() if self.streamed.state(q.node.name) is None), None)
        if p is None or p.cols != self.plan.axis:
            cure = "a tile whose columns run along the streamed axis comes from a product such as `S[j] = wgmma(Qs, Ks[j])`"
            raise WgError(NotYetSupported(span=s.span, what="a `compute` without a product that it starts from", cure=cure))
        return self.plan.axis_of(p.rows), self.plan.axis_of(p.cols, tile)

    def pack(self, name: str, rel: int | None, span: Span | None) -> None:
        node = resolve(self.streamed, name)
        if not node or rel is None or self.state.computed.get(node) != rel:
            tile = f"{name}{tile_text(self.plan.axis, rel)}"
            raise WgError(NeverComputed(span=span, name=tile, step=f"pack {tile}"))
        reader = next((p for p in self.products.values() if p.a_value == name), None)
        if reader is None:
            raise WgError(NoHome(span=span, name=name, homes=tuple(p.a_value for p in self.products.values() if p.a_value)))
        dtype = self.placement.placed[reader.b].buffer.dtype
        form = self.plan.forms.get(node)
        frag = self.operand_value(name, rel)
        self.touch(frag, name, span)
        rows = self.computer.rows
        self.computer.declare(Value(name=frag, role=self.role.name, kind="operand", dtype=dtype, cols=reader.k, rows=rows))
        self.emit(Pack(dst=frag, src=self.computer.home[node], span=span))
        what = f"{name} to {dtype}" if form is None else form.words(name)
        self.note_rounding(f"{what} (operand of {reader.name})")
        sets = self.plan.operand_sets.get(name, 1)
        self.state.packed[name] = (*self.state.packed.get(name, ()), rel)[-sets:]

    @property
    def in_loop(self) -> bool:
        """Whether the steps being written are those of every iteration."""
        return False

    def flag_is_set(self, s: ast.RescaleStep, when: str | None) -> None:
        """The first tile's `compute` sets no flag, since nothing is corrected then: an iteration asks for its own alone."""
        offsets = [o for c in self.computes if (o := step_offset(c, self.plan.axis)) is not None]
        scaled_to = self.state.scaled_to
        if when is not None and self.in_loop and scaled_to is not None and scaled_to < max(offsets, default=scaled_to):
            what = f"`{ast_text(s)}` in front of the `compute` of its iteration"
            raise WgError(NotYetSupported(span=s.span, what=what, cure="put it behind that `compute`"))

    def rescale(self, s: ast.RescaleStep) -> None:
        name = name_of(s.target)
        if name not in self.products:
            raise WgError(UnknownName(span=s.span, what="accumulator", name=name, known=tuple(self.products)))
        p = self.products[name]
        state = self.streamed.state(p.node.name)
        held = self.state.reference.get(p.value)
        if state is None or state.correction is None or held is None or held == self.state.scaled_to:
            return
        if self.state.scaled_to is None or self.state.scaled_to - held != 1:
            raise WgError(NotYetSupported(span=s.span, what="a rescale over more than one `compute`"))
        self.touch(p.value, name, s.span)
        rows, cols = self.plan.axis_of(p.rows), self.plan.axis_of(p.cols)
        corr = Reg(name=self.computer.correction_name(state))
        when = self.computer.moved_flag(state)
        self.flag_is_set(s, when)
        op = MapOp(dst=p.value, expr=apply("mul", Reg(name=p.value), corr), rows=rows, cols=cols, when=when)
        self.emit(Compute(ops=(op,), note=ast_text(s)))
        self.state.reference[p.value] = self.state.scaled_to

"""sync: the steps of one role, with every event written out.

In: a role of the plan, the placement and the trip.  Out: role program steps. It walks the role's list (and each copy of its
loop) with the state of what is in flight: products by group, ring positions, which state each accumulator is scaled to.
From that follow the waits before first reads, the releases after last reads, wait depths, and the order of fences.

Tiles are counted relative to the loop variable, so one state describes every iteration; a steady loop is lowered twice, and
the second pass must leave the state as it found it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import NoReturn

from ..diagnostics.model import WgError
from ..diagnostics.schedule import (
    DoneTwice,
    LoopNotSteady,
    NeverComputed,
    NoHome,
    NotFilled,
    NotYetSupported,
    RingTooShallow,
    RowsPerWarpgroup,
    StillInFlight,
    TileNotNamed,
    TileShape,
    UnknownName,
    WrongProduct,
    WrongReference,
)
from ..foundation.dtypes import F32
from ..foundation.source import Span
from ..program.expr import FALSE, TRUE, Affine, Expr, Reg, apply, conjunction, loads
from ..program.graph import Reduce
from ..program.poly import Poly, minimum, mod
from ..roles.model import (
    Advance,
    Arrive,
    Axis,
    BarArrive,
    BarSync,
    ClearRows,
    Commit,
    Compute,
    FenceAsync,
    FenceWgmma,
    If,
    Items,
    Let,
    Loop,
    MapOp,
    Pack,
    RegOperand,
    Slot,
    SmemOperand,
    Step,
    Value,
    Wait,
    WaitGroup,
    Wgmma,
    Zero,
)
from ..syntax import ast
from ..targets.registers import WARPGROUP
from ..targets.wgmma import INSTRUCTIONS, N_MAX, N_STEP
from .compute import Computer, assign, display, resolve
from .mask import Partial, Trip
from .pipeline import Copy, Expansion, Item, ast_text, expand, step_offset
from .place import Placement, name_of
from .plan import ROWS, Plan, RolePlan, steps_of

TURN_THREADS = 2 * WARPGROUP  # one warpgroup hands over, one takes


@dataclass
class Group:
    """A committed product: its accumulator, tile relative to the loop variable, and what it reads."""

    product: str
    value: str
    rel: int | None
    operand: str | None
    reads: tuple[tuple[str, int | None], ...]
    span: Span | None

    def key(self) -> tuple:
        return (self.product, self.rel, self.operand, self.reads)


@dataclass
class State:
    """What is known between two steps. Tiles are relative to the loop variable."""

    flight: list[Group] = field(default_factory=list)
    position: dict[str, int] = field(default_factory=dict)  # ring -> tile that its position stands at
    waited: set[tuple[str, int | None]] = field(default_factory=set)
    done: dict[tuple[str, int | None], int] = field(default_factory=dict)  # reads completed, by (ring, tile)
    reference: dict[str, int] = field(default_factory=dict)  # accumulator -> tile whose state it is scaled to
    computed: dict[str, int] = field(default_factory=dict)  # node -> tile
    packed: dict[str, int] = field(default_factory=dict)
    scaled_to: int | None = None  # tile of the last compute that moved the states

    def shift(self) -> State:
        """The same knowledge, seen from the next iteration."""

        def back(t: int | None) -> int | None:
            return None if t is None else t - 1

        return State(
            flight=[replace(g, rel=back(g.rel), reads=tuple((r, back(t)) for r, t in g.reads)) for g in self.flight],
            position={r: t - 1 for r, t in self.position.items()},
            waited={(r, back(t)) for r, t in self.waited},
            done={(r, back(t)): k for (r, t), k in self.done.items()},
            reference={a: t - 1 for a, t in self.reference.items()},
            computed={a: t - 1 for a, t in self.computed.items()},
            packed={a: t - 1 for a, t in self.packed.items()},
            scaled_to=back(self.scaled_to),
        )

    def in_flight(self, axis: str) -> str:
        return ", ".join(f"`{g.product}{tile_text(axis, g.rel)}`" for g in self.flight) or "nothing"

    def leads_to(self, later: State) -> bool:
        """Whether the first iteration finds the flight and the ring positions that later ones do."""
        same = all(later.position[r] == t for r, t in self.position.items())
        return same and [g.key() for g in self.flight] == [g.key() for g in later.flight]

    def steady_key(self) -> tuple:
        return (tuple(g.key() for g in self.flight), tuple(sorted(self.position.items())), self.scaled_to)


@dataclass(kw_only=True)
class Product:
    """A product's node and where its operands and result lie."""

    node: Reduce
    name: str
    value: str
    rows: str
    cols: str
    a: str | None  # home of the left operand, None if in registers
    a_value: str | None
    b: str
    a_major: str
    b_major: str
    k: int


class RoleSync:
    """Lowers one role."""

    def __init__(self, plan: Plan, placement: Placement, trip: Trip, role: RolePlan, ids: Ids):
        self.plan, self.placement, self.trip, self.role, self.ids = plan, placement, trip, role, ids
        self.streamed = plan.streamed
        self.computer = Computer(streamed=plan.streamed, role=role.name)
        self.products: dict[str, Product] = {}
        self.uses: dict[str, int] = {}
        self.out: list[Step] = []
        self.state = State()
        self.span: Span | None = None
        self.roundings: list[str] = []
        self.cleared: set[str] = set()  # products of this turn whose operands are cleared
        self.collect()

    # What the role does, read off its list.
    def collect(self) -> None:
        self.once_fills()
        self.computes: list[ast.ComputeStep] = []
        issued: dict[str, Span | None] = {}
        for s in steps_of(self.role.steps):
            if isinstance(s, ast.IssueStep):
                p = self.product(s)
                if p.name in issued:
                    raise WgError(DoneTwice(span=s.span, verb="issued", name=p.name, first=issued[p.name]))
                issued[p.name] = s.span
                self.products[p.name] = p
                for home in (p.a, p.b):
                    if home is not None:
                        ring = self.placement.ring_of[home]
                        self.uses[ring] = self.uses.get(ring, 0) + 1
            if isinstance(s, ast.ComputeStep):
                self.computes.append(s)
        # two operands of one product may come from one ring: that is one use
        self.uses = {r: sum(r in self.rings_of(p) for p in self.products.values()) for r in self.uses}
        self.assignment = assign(self.streamed, self.computes, frozenset(p.node.name for p in self.products.values()))

    def once_fills(self) -> None:
        """What stands in `once` runs in place of the loop if there is no tile, so it may need none."""
        for once in (s for s in steps_of(self.role.steps) if isinstance(s, ast.OnceStep)):
            for s in once.body:
                if isinstance(s, ast.FillStep) and step_offset(s, self.plan.axis) is None:
                    continue
                cure = "only fills of what is filled once an item stand in `once`"
                raise WgError(NotYetSupported(span=s.span, what=f"`{ast_text(s)}` in `once`", cure=cure))

    def rings_of(self, p: Product) -> set[str]:
        return {self.placement.ring_of[h] for h in (p.a, p.b) if h is not None}

    @property
    def masked(self) -> bool:
        return bool(self.computes)

    def emit(self, *steps: Step) -> None:
        for s in steps:
            self.out.append(replace(s, span=self.span) if s.span is None else s)

    def product(self, s: ast.IssueStep) -> Product:
        target = name_of(s.target)
        name = resolve(self.streamed, target)
        node = self.streamed.tile_node(name)
        state = self.streamed.state(name)
        found = node if isinstance(node, Reduce) else state.node if state else None
        if found is None or not found.is_contract:
            known = [n.name for n in self.streamed.tile if isinstance(n, Reduce)]
            known += [t.name for t in self.streamed.states if t.is_contract]
            raise WgError(UnknownName(span=s.target.span, what="product of the program", name=target, known=tuple(known)))
        if s.engine != "wgmma":
            raise WgError(NotYetSupported(span=s.span, what=f"engine `{s.engine}`", cure="sm_90a has `wgmma`"))
        accumulates = state is not None
        if accumulates != (s.op == "+="):
            why, op = ("it is summed over the stream", "+=") if accumulates else ("each tile has its own", "=")
            raise WgError(WrongProduct(span=s.span, target=target, why=why, cure=f"write `{op}`", statement=found.span))
        return self.matched(s, found, target)

    def matched(self, s: ast.IssueStep, node: Reduce, target: str) -> Product:
        left, right = name_of(s.left), name_of(s.right)
        tensors = [x.tensor for x in loads(node.body)]
        a_tensor = self.operand_tensor(left, s.left.span)
        b_tensor = self.operand_tensor(right, s.right.span)
        if right not in self.plan.homes:
            raise WgError(NoHome(span=s.right.span, name=right, homes=tuple(self.plan.homes)))
        if sorted((a_tensor, b_tensor)) != sorted(tensors):
            got, wanted = (" and ".join(f"`{display(self.streamed, t)}`" for t in x) for x in ((a_tensor, b_tensor), tensors))
            self.wrong(s, node, f"the operands hold {got}", f"multiply homes of {wanted}")
        axis = node.axes[0]
        if len(node.axes) != 1:
            raise WgError(NotYetSupported(span=s.span, what="a product over several axes"))
        b = self.placement.placed[right].buffer
        cols = b.rows_index if b.cols_index == axis else b.cols_index
        rows = self.rows_of(left, node, s)
        if axis not in (b.rows_index, b.cols_index) or rows == cols:
            self.wrong(s, node, f"`{right}` holds no axis `{axis}`", f"`{right}` needs `{axis}` and one further axis")
        self.check_rows(s, node, rows, cols)
        k = self.plan.size(axis, b_tensor, s.span)
        self.shape(s, cols, self.plan.size(cols, b_tensor, s.span), axis, k, b.dtype.name)
        value = self.computer.declare(
            Value(
                name=display(self.streamed, node.name), role=self.role.name, kind="tile", dtype=F32, cols=self.plan.size(cols)
            )
        )
        self.computer.home.setdefault(node.name, value)
        in_memory = left in self.plan.homes
        a = self.placement.placed[left].buffer if in_memory else None
        return Product(
            node=node,
            name=target,
            value=value,
            rows=rows,
            cols=cols,
            a=left if in_memory else None,
            a_value=None if in_memory else left,
            b=right,
            a_major="MN" if a is not None and a.rows_index == axis else "K",
            b_major="MN" if b.rows_index == axis else "K",
            k=k,
        )

    def check_rows(self, s: ast.IssueStep, node: Reduce, rows: str, cols: str) -> None:
        """A warpgroup multiplies 64 rows, those of the left operand; several of one role must own different ones."""
        split, left, right = self.role.split, name_of(s.left), name_of(s.right)
        if split == cols:
            why = f"its rows run along `{rows}`, but `{self.role.name}` is split along `{split}`"
            self.wrong(s, node, why, f"rows come from the left operand: `wgmma({right}, {left})`")
        owner = self.plan.split_role
        if owner is not None and owner.split == rows and owner.name != self.role.name:
            raise WgError(NotYetSupported(span=s.span, what=f"a product over rows that `{owner.name}` is split along"))
        if self.plan.axis_of(rows).count != ROWS or (self.role.count > 1 and split != rows):
            tile = self.plan.size(rows)
            raise WgError(
                RowsPerWarpgroup(span=self.role.span, index=rows, tile=tile, warpgroups=self.role.count, split=split == rows)
            )

    def operand_tensor(self, name: str, span: Span | None) -> str:
        if name in self.plan.homes:
            return self.plan.homes[name].tensor
        node = resolve(self.streamed, name)
        if not node:
            known = (*self.plan.homes, *(display(self.streamed, n) for n in self.streamed.order))
            raise WgError(NoHome(span=span, name=name, homes=known))
        return node

    def wrong(self, s: ast.IssueStep, node: Reduce, why: str, cure: str) -> NoReturn:
        raise WgError(WrongProduct(span=s.span, target=name_of(s.target), why=why, cure=cure, statement=node.span))

    def rows_of(self, left: str, product: Reduce, s: ast.IssueStep) -> str:
        axis = product.axes[0]
        if left in self.plan.homes:
            a = self.placement.placed[left].buffer
            if axis not in (a.rows_index, a.cols_index):
                self.wrong(s, product, f"`{left}` holds no axis `{axis}`", f"`{left}` needs `{axis}` and one further axis")
            return a.rows_index if a.cols_index == axis else a.cols_index
        node = self.streamed.tile_node(resolve(self.streamed, left))
        assert node is not None
        wide = [i for i in node.indices if i != axis and self.plan.size(i, left, s.span) > 1]
        if len(wide) != 1:
            raise WgError(NotYetSupported(span=s.span, what=f"`{left}` as a register operand"))
        return wide[0]

    def shape(self, s: ast.IssueStep, cols: str, n: int, axis: str, k: int, dtype: str) -> None:
        if dtype not in INSTRUCTIONS or not INSTRUCTIONS[dtype].transposable:
            raise WgError(NotYetSupported(span=s.span, what=f"wgmma of {dtype}", cure="it multiplies f16 and bf16"))
        if n % N_STEP or not 0 < n <= N_MAX:
            rule = f"wgmma has n a multiple of {N_STEP} up to {N_MAX}"
            raise WgError(TileShape(span=s.span, what="n of this product", value=n, rule=rule, index=cols))
        step = INSTRUCTIONS[dtype].k
        if k % step:
            rule = f"wgmma of {dtype} takes k in steps of {step}"
            raise WgError(TileShape(span=s.span, what="k of this product", value=k, rule=rule, index=axis))

    def steps(self) -> tuple[Step, ...]:
        """All steps of the role, the item loop included."""
        body = self.item()
        self.out = []
        self.span = self.role.span
        credits = [t for t in self.ids.turns if t.role == self.role.name]
        for t in credits:
            first = If(
                cond=Affine(poly=-Poly.of("wg")), then=(BarArrive(id=Poly.of(t.first), threads=TURN_THREADS, span=t.span),)
            )
            self.emit(replace(first, note="warpgroup 0 has the first turn"))
        self.emit(Items(body=body))
        self.leave()
        return tuple(self.out)

    def leave(self) -> None:
        """What the role still has to wait for before it ends."""

    def item(self) -> tuple[Step, ...]:
        self.out = []
        self.span = self.plan.schedule.span
        self.bind()
        loops = [s for s in self.role.steps if isinstance(s, ast.ForStep)]
        if len(loops) > 1:
            raise WgError(NotYetSupported(span=loops[1].span, what="a second `for` in one role"))
        for s in self.role.steps:
            self.span = s.span
            if isinstance(s, ast.ForStep):
                self.loop(s)
            else:
                self.step(Item(step=s, offset=None), None)
        self.end_item()
        return tuple(self.out)

    def bind(self) -> None:
        for name, value in self.trip.lets:
            self.emit(Let(name=name, value=value))
        if self.masked:
            for name, value in self.trip.mask_lets:
                self.emit(Let(name=name, value=value))

    def end_item(self) -> None:
        """Releases of buffers that are filled once an item."""

    def loop(self, loop: ast.ForStep) -> None:
        expansion = expand(loop, self.trip, self.masked)
        self.before_loop(expansion)
        outer, self.out = self.out, []
        for copy in expansion.copies:
            self.copy(copy)
        body, self.out = self.out, outer
        other = self.empty(expansion)
        self.emit(*self.dynamic_init())
        if not expansion.guarded:
            self.emit(*body)
            if other:
                self.emit(If(cond=Affine(poly=-self.trip.n), then=tuple(other), note="nothing to stream"))
            return
        self.emit(If(cond=Affine(poly=self.trip.n - 1), then=tuple(body), other=tuple(other)))

    def before_loop(self, expansion: Expansion) -> None:
        """Wait for what is filled once an item, unless the schedule has awaited it."""
        for p in self.products.values():
            for home in (p.a, p.b):
                if home is not None and self.plan.axis not in self.plan.homes[home].indices:
                    self.wait_full(home, None)

    def static_first(self) -> bool:
        """Whether the first tile is computed in a prologue copy, so that states need no initial value."""
        loops = [s for s in self.role.steps if isinstance(s, ast.ForStep)]
        if not loops or not self.computes:
            return False
        e = expand(loops[0], self.trip, self.masked)
        return any(isinstance(i.step, ast.ComputeStep) for c in e.copies if c.kind == "prologue" for i in c.items)

    def row_axis(self) -> Axis | None:
        for p in self.products.values():
            return self.plan.axis_of(p.rows)
        return None

    def initial_states(self) -> list[Step]:
        rows = self.row_axis()
        names = tuple(n for names in self.assignment.nodes.values() for n in names)
        ops = self.computer.initial(names, rows) if rows else []
        return [Compute(ops=tuple(ops), note="nothing seen yet")] if ops else []

    def dynamic_init(self) -> list[Step]:
        return [] if self.static_first() else self.initial_states()

    def empty(self, expansion: Expansion) -> list[Step]:
        """What stands in place of the loop when there is no tile."""
        saved, self.out = self.out, []
        for item in expansion.once:
            self.span = item.step.span
            self.step(item, None)
        out, self.out = self.out, saved
        accumulators = [p.value for p in self.products.values() if self.streamed.state(p.node.name) is not None]
        zeros: list[Step] = [Zero(value=v) for v in accumulators]
        states = self.initial_states() if self.static_first() else []
        return [*out, *zeros, *states]

    def copy(self, copy: Copy) -> None:
        if copy.kind != "steady":
            self.run(copy)
            if copy.kind == "prologue":
                self.clear_in_prologue(copy)
            self.state = self.state.shift()
            return
        saved_out, before = self.out, deepcopy(self.state)
        self.out = []
        self.run(copy)  # the first pass only finds the state of later iterations
        entry = self.state = self.state.shift()
        if not before.leads_to(entry):
            raise WgError(self.not_steady(before, entry))
        entry, self.out = deepcopy(entry), []
        self.run(copy)
        self.state = self.state.shift()
        if entry.steady_key() != self.state.steady_key():
            raise WgError(self.not_steady(entry, self.state))
        body, self.out = tuple(self.out), saved_out
        var = copy.j.bare or ""
        self.span = copy.items[0].step.span if copy.items else None
        self.emit(Loop(var=var, start=copy.start, stop=copy.stop, mask=mask_text(copy.masks), body=body))

    def not_steady(self, before: State, after: State) -> LoopNotSteady:
        span = next((s.span for s in self.role.steps if isinstance(s, ast.ForStep)), self.role.span)
        axis, had = self.plan.axis, [g.product for g in before.flight]
        has = [g.product for g in after.flight]
        left = tuple(p for p in dict.fromkeys(has) if has.count(p) > had.count(p))
        return LoopNotSteady(span=span, before=before.in_flight(axis), after=after.in_flight(axis), axis=axis, left=left)

    def run(self, copy: Copy) -> None:
        self.masks = copy.masks
        self.current = copy
        for k, item in enumerate(copy.items):
            self.span = item.step.span
            turn = item.turn if item.turn in copy.turns and self.role.count > 1 else None
            members = [i for i, x in enumerate(copy.items) if x.turn == item.turn]
            if item.once and copy.kind == "steady":
                self.once(item, copy)
                continue
            if turn is not None and k == members[0]:
                self.clear_before_turn([copy.items[m] for m in members], copy)
            self.taking = turn if turn is not None and k == members[0] else None
            self.step(item, copy)
            self.take_turn()
            if turn is not None and k == members[-1]:
                self.hand_over(turn)
                self.cleared.clear()

    def clear_before_turn(self, items: list[Item], copy: Copy) -> None:
        """All warpgroups meet where rows are cleared, so that can't stand inside a turn."""
        for item in items:
            if isinstance(item.step, ast.IssueStep) and item.step.op == "+=" and item.offset is not None and self.masks:
                p = self.products[name_of(item.step.target)]
                self.clear_before(p, item.offset, copy.j + item.offset)
                self.cleared.add(p.name)

    def once(self, item: Item, copy: Copy) -> None:
        outer, self.out = self.out, []
        self.step(item, copy)
        body, self.out = tuple(self.out), outer
        self.emit(If(cond=Affine(poly=copy.start - copy.j), then=body))

    taking: int | None = None

    def take_turn(self) -> None:
        """The turn is taken just before the first step that does something, after that step's own waits."""
        if self.taking is None:
            return
        first = self.ids.first(self.role.name, self.taking)
        self.taking = None
        self.emit(BarSync(id=Poly.of("wg") + first, threads=TURN_THREADS, note="my turn"))

    def hand_over(self, turn: int) -> None:
        first, count = self.ids.first(self.role.name, turn), self.role.count
        self.emit(BarArrive(id=mod(Poly.of("wg") + 1, count) + first, threads=TURN_THREADS, note="the next one's turn"))

    def step(self, item: Item, copy: Copy | None) -> None:
        s = item.step
        position = None if copy is None or item.offset is None else copy.j + item.offset
        if isinstance(s, ast.IssueStep):
            self.issue(s, item.offset, position)
        elif isinstance(s, ast.AwaitStep):
            self.await_(s, item.offset)
        elif isinstance(s, ast.ComputeStep):
            if copy is None or item.offset is None or position is None:
                raise WgError(self.outside_loop(s, "a `compute`"))
            self.compute(s, item.offset, position, copy.masks)
        elif isinstance(s, ast.PackStep):
            self.pack(name_of(s.target), item.offset, s.span)
        elif isinstance(s, ast.RescaleStep):
            self.rescale(s)
        elif isinstance(s, ast.FinishStep):
            self.finish(s)
        elif isinstance(s, ast.FillStep):
            self.fill(s, position)
        else:
            words = " ".join(ast_text(s).partition("{")[0].split())
            raise WgError(NotYetSupported(span=s.span, what=f"`{words}` here"))

    def outside_loop(self, s: ast.Step, what: str) -> NotYetSupported:
        return NotYetSupported(
            span=s.span, what=f"{what} outside the loop", cure=f"put it into `for {self.plan.axis} {{ ... }}`"
        )

    def fill(self, s: ast.FillStep, position: Poly | None) -> None:
        raise WgError(
            NotYetSupported(span=s.span, what="a fill in a role that computes", cure="give fills a role of their own")
        )

    def finish(self, s: ast.FinishStep) -> None:
        raise NotImplementedError

    # products
    def part_of(self, home: str) -> Poly:
        return Poly.of("wg") if self.placement.placed[home].buffer.parts > 1 else Poly.of(0)

    def barrier_part(self, ring: str) -> Poly:
        return Poly.of("wg") if self.placement.per_part(ring) else Poly.of(0)

    def wait_full(self, home: str, rel: int | None) -> None:
        """Before the first read of a tile: its copies have arrived."""
        ring = self.placement.ring_of[home]
        if (ring, rel) in self.state.waited:
            return
        if rel is not None:
            self.room(home, ring)
            self.move_to(ring, rel)
        full = self.placement.rings[ring].full
        assert full is not None
        self.emit(Wait(barrier=full, part=self.barrier_part(ring), slot=self.slot(ring, rel)))
        self.state.waited.add((ring, rel))

    def room(self, home: str, ring: str) -> None:
        """A tile can arrive only in a slot that isn't held by tiles still to be released."""
        held, stages = sum(r == ring for r, _ in self.state.waited), self.placement.rings[ring].stages
        if held >= stages:
            raise WgError(RingTooShallow(span=self.span, home=home, stages=stages, held=held))

    def move_to(self, ring: str, rel: int) -> None:
        """Bring the ring's position to a tile that hasn't been read yet."""
        at = self.state.position.setdefault(ring, rel)
        while at < rel:
            self.emit(Advance(ring=ring))
            at += 1
        self.state.position[ring] = at

    def slot(self, ring: str, rel: int | None) -> Slot:
        return Slot(ring=ring, lag=0 if rel is None else self.state.position[ring] - rel)

    def issue(self, s: ast.IssueStep, rel: int | None, position: Poly | None) -> None:
        p = self.products[name_of(s.target)]
        if rel is None:
            raise WgError(self.outside_loop(s, "a product"))
        accumulates = s.op == "+="
        self.not_in_flight(p, accumulates, s)
        rels = {h: (rel if self.plan.axis in self.plan.homes[h].indices else None) for h in (p.a, p.b) if h is not None}
        for home, r in rels.items():
            self.wait_full(home, r)
        if p.a_value is not None:
            self.operand_ready(p, rel, s)
        if accumulates:
            self.same_reference(p, rel, s)
            assert position is not None
            if self.masks and p.name not in self.cleared:
                self.clear_before(p, rel, position)
        self.take_turn()
        a: SmemOperand | RegOperand
        if p.a is not None:
            a = self.operand(p.a, rels[p.a], p.a_major)
        else:
            a = RegOperand(value=self.operand_value(p.a_value or ""))
        placed = self.placement.placed[p.b].buffer
        self.overwrite(p.value)
        assert position is not None
        self.emit(
            FenceWgmma(),
            Wgmma(
                acc=p.value,
                a=a,
                b=self.operand(p.b, rels[p.b], p.b_major),
                n=self.plan.size(p.cols),
                k=p.k,
                dtype=placed.dtype,
                zero=self.first_tile(position, rel) if accumulates else TRUE,
            ),
            Commit(),
        )
        reads = tuple(dict.fromkeys((self.placement.ring_of[h], r) for h, r in rels.items()))
        operand = None if p.a_value is None else self.operand_value(p.a_value)
        self.state.flight.append(Group(p.name, p.value, rel, operand, reads, s.span))
        if accumulates and self.state.scaled_to is not None:
            self.state.reference[p.value] = self.state.scaled_to if p.a_value is None else rel

    # Elements that no row may see: 0 * NaN is NaN in a tensor core.
    def cleared_homes(self, p: Product) -> list[str]:
        """Operand tiles of an accumulating product whose rows run along the streamed axis; their partner is 0 outside."""
        homes = [h for h in (p.a, p.b) if h is not None and p.a is None]
        return [h for h in homes if self.placement.placed[h].buffer.rows_index == self.plan.axis]

    def outside(self) -> list[tuple[bool, Poly, Poly]]:
        """(at the axis' end, first, last + 1) of the elements that no row of the CTA sees in the outermost tiles."""
        t, size = self.trip, self.plan.tiles[self.plan.axis]
        out = []
        if t.seen_stop is not None:
            out.append((True, t.seen_stop, minimum(t.hi * size, self.plan.graph.extents[self.plan.axis])))
        if t.seen_start is not None:
            out.append((False, t.lo * size, t.seen_start))
        return out

    def clear_before(self, p: Product, rel: int, position: Poly) -> None:
        """Before a product that may read such elements. Where a prologue copy exists it has cleared the first tile."""
        for at_end, first, stop in self.outside():
            front = at_end == self.trip.descending
            edge = Poly.of(0) if front else self.trip.n - 1
            if front and self.cleared_in_prologue:
                continue
            if not self.reaches(front, rel, position - edge):
                continue
            self.clear(p, rel, position, at_end, first, stop, position - edge)

    def reaches(self, front: bool, rel: int, off_edge: Poly) -> bool:
        """Whether the current copy ever has the tile at offset `rel` at the first (last) position of the stream."""
        if off_edge.constant is not None:
            return off_edge.constant == 0
        if self.current is None or self.current.kind != "steady":
            return not front and self.current is not None and self.current.kind == "drain"
        return rel == (self.current.low if front else self.current.high)

    cleared_in_prologue = False
    current: Copy | None = None
    masks: tuple[Partial, ...] = ()  # of the copy that is being lowered

    def clear_in_prologue(self, copy: Copy) -> None:
        """At the end of a prologue copy: the first tile, if the product that reads it comes in the steady loop."""
        for p in self.products.values():
            accumulates = self.streamed.state(p.node.name) is not None
            if not accumulates or any(
                isinstance(i.step, ast.IssueStep) and name_of(i.step.target) == p.name for i in copy.items
            ):
                continue
            for at_end, first, stop in self.outside():
                if at_end == self.trip.descending and self.cleared_homes(p):
                    rel = -copy.j.constant if copy.j.constant is not None else 0
                    self.clear(p, rel, Poly.of(0), at_end, first, stop, Poly.of(0))
                    self.cleared_in_prologue = True

    def clear(self, p: Product, rel: int, position: Poly, at_end: bool, first: Poly, stop: Poly, off_edge: Poly) -> None:
        """Clear elements [first, stop) of the axis in the tile, if there are any: one warpgroup writes, all wait."""
        base = self.trip.tile(position) * self.plan.tiles[self.plan.axis]
        conditions = [Affine(poly=stop - first - 1)]
        if off_edge.constant != 0:
            conditions += [Affine(poly=off_edge), Affine(poly=-off_edge)]
        for home in self.cleared_homes(p):
            self.move_to(self.placement.ring_of[home], rel)
            outer, self.out = self.out, []
            self.wait_full(home, rel)
            slot = self.slot(self.placement.ring_of[home], rel)
            rows = ClearRows(
                buffer=home, part=self.part_of(home), slot=slot, start=first - base, stop=stop - base, span=self.span
            )
            writes = (rows, FenceAsync(span=self.span))
            if self.role.count == 1:
                self.emit(*writes, BarSync(id=self.ids.whole(self.role.name), threads=WARPGROUP, note="cleared"))
            else:
                whole = WARPGROUP * self.role.count
                self.emit(If(cond=Affine(poly=-Poly.of("wg")), then=writes))
                self.emit(BarSync(id=self.ids.whole(self.role.name), threads=whole, note="cleared"))
            body, self.out = tuple(self.out), outer
            self.state.waited.discard((self.placement.ring_of[home], rel))
            note = "no row sees these: a NaN in them must not count"
            self.emit(If(cond=conjunction(*conditions), then=body, note=note))

    def overwrite(self, value: str) -> None:
        """A product takes these registers: what was computed in them is gone."""
        values = self.computer.values
        for node, home in self.computer.home.items():
            if (values[home].over or home) == value and self.streamed.tile_node(node) is not None:
                self.state.computed.pop(node, None)

    def first_tile(self, position: Poly, rel: int) -> Expr:
        """Whether the product of a stream position is the item's first."""
        if position.constant is not None:
            return TRUE if position.constant <= 0 else FALSE
        if self.current is not None and self.current.kind == "steady" and rel > self.current.low:
            return FALSE
        return Affine(poly=-position)

    def operand(self, home: str, rel: int | None, major: str) -> SmemOperand:
        ring = self.placement.ring_of[home]
        return SmemOperand(buffer=home, part=self.part_of(home), slot=self.slot(ring, rel), major=major)

    def operand_value(self, name: str) -> str:
        return f"{name}.frag"

    def not_in_flight(self, p: Product, accumulates: bool, s: ast.IssueStep) -> None:
        """Another product into the same registers may only follow an accumulating one."""
        for g in self.state.flight:
            if g.value == p.value and not accumulates:
                product = f"{g.product}{tile_text(self.plan.axis, g.rel)}"
                raise WgError(StillInFlight(span=s.span, product=product, touched=p.name, issued=g.span))

    def operand_ready(self, p: Product, rel: int, s: ast.IssueStep) -> None:
        name = p.a_value or ""
        if self.state.packed.get(name) == rel:
            return
        if self.state.computed.get(resolve(self.streamed, name)) != rel:
            raise WgError(NeverComputed(span=s.span, name=f"{name}{tile_text(self.plan.axis, rel)}", step=ast_text(s)))
        self.pack(name, rel, s.span)

    def same_reference(self, p: Product, rel: int, s: ast.IssueStep) -> None:
        state = self.streamed.state(p.node.name)
        held = self.state.reference.get(p.value)
        if state is not None and state.correction is not None and held is not None and held != rel:
            raise WgError(WrongReference(span=s.span, accumulator=p.name, operand=p.a_value or p.a or ""))

    # waits and releases
    def await_(self, s: ast.AwaitStep, rel: int | None) -> None:
        name = name_of(s.target)
        if name in self.plan.homes:
            if self.plan.homes[name].output:
                cure = f"remove this step: `finish ... via {name}` waits by itself"
                raise WgError(NotFilled(span=s.span, name=name, why="stages an output, and isn't filled", cure=cure))
            if self.plan.axis in self.plan.homes[name].indices and rel is None:
                raise WgError(TileNotNamed(span=s.target.span, target=name, axis=self.plan.axis))
            return self.wait_full(name, rel)
        if name not in self.products:
            known = (*self.plan.homes, *self.products)
            raise WgError(UnknownName(span=s.span, what="home or product", name=name, known=known))
        found = [k for k, g in enumerate(self.state.flight) if g.product == name and g.rel == rel]
        if not found:
            return  # nothing was issued, or it is complete
        k = found[-1]
        ended, self.state.flight = self.state.flight[: k + 1], self.state.flight[k + 1 :]
        busy = {g.value for g in self.state.flight}
        values = tuple(v for v in dict.fromkeys(g.value for g in ended) if v not in busy)
        self.emit(WaitGroup(pending=len(self.state.flight), values=values))
        for g in ended:
            node = self.products[g.product].node.name
            if g.rel is not None and self.streamed.state(node) is None:
                self.state.computed[node] = g.rel
            for ring, tile in g.reads:
                self.read_done(ring, tile)

    def read_done(self, ring: str, rel: int | None) -> None:
        """One product has finished reading a tile; after the last one its slot is released."""
        if rel is None:
            return
        key = (ring, rel)
        self.state.done[key] = self.state.done.get(key, 0) + 1
        if self.state.done[key] < self.uses[ring]:
            return
        empty = self.placement.rings[ring].empty
        assert empty is not None
        slot = self.slot(ring, rel)
        self.emit(Arrive(barrier=empty, part=self.barrier_part(ring), slot=slot))
        if slot.lag == 0:
            self.emit(Advance(ring=ring))
            self.state.position[ring] += 1
        del self.state.done[key]
        self.state.waited.discard(key)

    # registers
    def touch(self, value: str, what: str, span: Span | None) -> None:
        base = self.computer.values[value].over or value if value in self.computer.values else value
        for g in self.state.flight:
            if g.value == base or g.operand == value:
                product = f"{g.product}{tile_text(self.plan.axis, g.rel)}"
                raise WgError(StillInFlight(span=span, product=product, touched=what, issued=g.span))

    def compute(self, s: ast.ComputeStep, rel: int, position: Poly, masks: tuple[Partial, ...]) -> None:
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
        first = position.constant == 0 and self.static_first()
        ops = self.computer.ops(names, self.assignment.after(step), rows, cols, tuple(m.predicate for m in masks), first)
        self.emit(Compute(ops=tuple(ops), note=ast_text(s)))
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
        frag = self.operand_value(name)
        self.touch(frag, name, span)
        self.computer.declare(Value(name=frag, role=self.role.name, kind="operand", dtype=dtype, cols=reader.k))
        self.emit(Pack(dst=frag, src=self.computer.home[node], span=span))
        note = f"{name} to {dtype} (operand of {reader.name})"
        if note not in self.roundings:
            self.roundings.append(note)
        self.state.packed[name] = rel

    def rescale(self, s: ast.RescaleStep) -> None:
        name = name_of(s.target)
        if name not in self.products:
            raise WgError(UnknownName(span=s.span, what="accumulator", name=name, known=tuple(self.products)))
        if s.grown_by is not None:
            raise WgError(NotYetSupported(span=s.span, what="`when grown by`", cure="`rescale` without it is always right"))
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
        op = MapOp(dst=p.value, expr=apply("mul", Reg(name=p.value), corr), rows=rows, cols=cols)
        self.emit(Compute(ops=(op,), note=ast_text(s)))
        self.state.reference[p.value] = self.state.scaled_to


def tile_text(axis: str, rel: int | None) -> str:
    """The tile at an offset from the loop's: `[j+1]`."""
    return "" if rel is None else f"[{axis}{f'{rel:+d}' if rel else ''}]"


def mask_text(masks: tuple[Partial, ...]) -> str:
    return "{" + ", ".join(f"{m.name}: partial" for m in masks) + "}"


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
    its own threads (`local`: role -> first), then one for all threads of a role (`role`)."""

    turns: tuple[Turn, ...]
    local: dict[str, int]
    role: dict[str, int]

    def first(self, role: str, block: int) -> int:
        return next(t.first for t in self.turns if t.role == role and t.block == block)

    def whole(self, role: str) -> Poly:
        return Poly.of(self.role[role])


def deal_ids(plan: Plan) -> Ids:
    """Deal named barriers to the roles of a plan."""
    at, turns, local = 1, [], {}
    for role in plan.roles:
        blocks = [s for s in steps_of(role.steps) if isinstance(s, ast.TurnStep)]
        for k, s in enumerate(blocks):
            if role.count > 1:
                turns.append(Turn(role.name, k, at, role.count, s.span))
                at += role.count
    for role in plan.roles:
        if any(isinstance(s, ast.FinishStep) for s in steps_of(role.steps)):
            local[role.name] = at
            at += role.count
    return Ids(tuple(turns), local, {name: at + k for k, name in enumerate(local)})

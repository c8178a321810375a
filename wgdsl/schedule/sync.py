"""sync: the steps of one role, with every event written out.

In: a role of the plan, the placement and the trip.  Out: role program steps. It walks the role's list (and each copy of its
loop) with the state of what is in flight (`flight`): products by group, ring positions, which state each accumulator is scaled
to. From that follow the waits before first reads and the releases after last reads (`rings`), what registers hold
(`registers`), which elements are cleared (`clears`), wait depths, and the order of fences.

Tiles are counted relative to the loop variable, so one state describes every iteration; a steady loop is lowered twice, and
the second pass must leave the state as it found it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace

from ..diagnostics.model import WgError
from ..diagnostics.schedule import (
    DoneTwice,
    LoopNotSteady,
    NeverComputed,
    NotFilled,
    NotYetSupported,
    OperandTooLarge,
    StillInFlight,
    TileNotNamed,
    UnknownName,
    WrongReference,
)
from ..foundation.source import Span
from ..program.expr import FALSE, TRUE, Affine, Expr, Reg, apply, loads
from ..program.poly import Poly, maximum, mod
from ..roles.model import (
    Advance,
    Arrive,
    BarArrive,
    BarSync,
    Commit,
    Compute,
    Elect,
    FenceAsync,
    FenceWgmma,
    Fetch,
    Forget,
    If,
    Items,
    Leave,
    Let,
    Loop,
    MapOp,
    Mma,
    Move,
    PutItem,
    RegOperand,
    Slot,
    SmemOperand,
    Step,
    TakeItem,
    Transpose,
    Wait,
    WaitGroup,
    Wgmma,
    Zero,
)
from ..syntax import ast
from ..targets.registers import WARPGROUP
from .barriers import TURN_THREADS, Ids, is_turn
from .clears import Clear, Clears
from .compute import assign
from .flight import Group, State, tile_text
from .items import NUMBER, is_mine, loop_of, opened, passed_over
from .lazy import lazy_states
from .mask import Partial, Trip
from .named import resolve
from .pipeline import Copy, Expansion, Item, ast_text, expand, step_offset
from .place import Placement, name_of
from .plan import Plan, RolePlan, steps_of
from .probe import Probes, probe
from .products import Product, match_product
from .registers import RegisterWriter
from .skip import Skipper

PRODUCTS = {"wgmma": Wgmma, "mma": Mma}
SECOND = Affine(poly=Poly.of(NUMBER) - 1)  # the CTA has had an item before


class RoleSync(RegisterWriter):
    """Lowers one role: `steps()` walks its list.

    This class knows the loop, turns, products and their waits. Its two subclasses provide the ends of a tile's way:

    - `finish(step)`: final values and stores of outputs (`MathSync`; a role without products has none);
    - `fill(step, position)`: the copies of a tile (`LoadSync`; refused in a role that computes);
    - `await_store(step, home)`: the store of a staging buffer has read it (`MathSync`);
    - `loop_ended()`: releases, after the loop, of what is filled once an item (`MathSync`);
    - `leave()`: what is still to be waited for before the role ends (`MathSync`).

    `CopySync` is a `MathSync` that fills for itself. `LoadSync` and `CopySync` also extend `collect`, which reads the role's
    list and checks it before the first step is written.
    """

    sets_registers = True  # whether a role's register count is taken from what the launch grants

    def __init__(self, plan: Plan, placement: Placement, trip: Trip, role: RolePlan, ids: Ids):
        super().__init__(plan, placement, trip, role)
        self.ids = ids
        self.clears = Clears(plan=plan, placement=placement, trip=trip)
        self.first_cleared = False  # a prologue copy has cleared the first tile
        self.cleared: set[str] = set()  # products of this turn whose operands are cleared
        self.current: Copy | None = None  # the copy that is being lowered, or was last
        self.taking: int | None = None  # the turn that is still to be taken
        self.turns = [s for s in steps_of(role.steps) if isinstance(s, ast.TurnStep)]  # their barriers are in this order
        self.first_turn = 0  # of those in the loop
        self.probes = Probes()
        self.begun: set[str] = set()  # accumulators whose first product has come, or comes in the loop being lowered
        self.counted = role.by_item  # a step asks which of the CTA's items it is
        self.collect()

    # What the role does, read off its list.
    def collect(self) -> None:
        self.once_fills()
        issued: dict[str, Span | None] = {}
        for s in steps_of(self.role.steps):
            if isinstance(s, ast.IssueStep):
                p = match_product(self.plan, self.placement, self.role, s)
                if p.name in issued:
                    raise WgError(DoneTwice(span=s.span, verb="issued", name=p.name, first=issued[p.name]))
                issued[p.name] = s.span
                self.products[p.name] = p
                self.declare(p)
                for home in (p.a, p.b):
                    if home is not None:
                        ring = self.placement.ring_of[home]
                        self.uses[ring] = self.uses.get(ring, 0) + 1
            if isinstance(s, ast.ComputeStep):
                self.computes.append(s)
        packs = [s for s in steps_of(self.role.steps) if isinstance(s, ast.PackStep) and is_turn(self.plan, s)]
        turned = [self.plan.homes[name_of(s.target)].turned for s in packs]
        # two operands of one product may come from one ring: that is one use
        self.uses = {r: sum(r in self.rings_of(p) for p in self.products.values()) for r in self.uses}
        self.uses |= {self.placement.ring_of[home]: 1 for home in turned if home is not None}
        self.assignment = assign(self.streamed, self.computes, frozenset(p.node.name for p in self.products.values()))
        self.element_reads()
        accumulators = {p.name: p.node.name for p in self.products.values()}
        self.computer.lazy = lazy_states(self.streamed, self.role.steps, accumulators)
        self.in_range(p for p in self.products.values() if p.a_value is not None)

    def in_range(self, products: Iterable[Product]) -> None:
        """An operand that is at most 1 while its maximum is the true one is larger where that lags behind, and has to fit its
        type all the same."""
        for p in products:
            node = self.streamed.tile_node(resolve(self.streamed, p.a_value or ""))
            dtype, form = self.placement.placed[p.b].buffer.dtype, self.plan.forms.get(node.name if node else "")
            times = 1 if form is None else 2**form.shift
            limits = {self.computer.lazy.get(x.tensor, 0.0) for e in (node.exprs() if node else ()) for x in loads(e)}
            grown = max(limits, default=0.0)
            if dtype.largest is not None and times * 2.0**grown > dtype.largest:
                most = int(math.log2(dtype.largest / times)) if times <= dtype.largest else 0
                raise WgError(
                    OperandTooLarge(
                        span=form.span if form else self.role.span, name=p.a_value or "", dtype=dtype.name, times=times,
                        grown=grown, largest=dtype.largest, most=most,
                    )
                )  # fmt: skip

    def element_reads(self) -> None:
        """A `compute` reads a tile once, as a product does."""
        for step in range(len(self.computes)):
            homes = self.element_homes(step)
            for home in homes:
                self.declare_elements(home)
            for ring in {self.placement.ring_of[h] for h in homes}:
                self.uses[ring] = self.uses.get(ring, 0) + 1

    def once_fills(self) -> None:
        """What stands in `once` runs in place of the loop if there is no tile, so it may need none, and takes no turn."""
        for turn in (s for s in steps_of(self.role.steps) if isinstance(s, ast.TurnStep)):
            if any(isinstance(s, ast.OnceStep) for s in turn.body):
                cure = "put it in front of the turn, or behind it"
                raise WgError(NotYetSupported(span=turn.span, what="`once` inside `in turn`", cure=cure))
        for once in (s for s in steps_of(self.role.steps) if isinstance(s, ast.OnceStep)):
            for s in once.body:
                if isinstance(s, ast.FillStep) and step_offset(s, self.plan.axis) is None:
                    continue
                if isinstance(s, ast.AwaitStep) and self.is_staging(name_of(s.target)):
                    continue
                cure = "only fills of what is filled once an item, and awaits of stores, stand in `once`"
                raise WgError(NotYetSupported(span=s.span, what=f"`{ast_text(s)}` in `once`", cure=cure))

    def is_staging(self, name: str) -> bool:
        return name in self.plan.homes and self.plan.homes[name].output

    def await_store(self, s: ast.AwaitStep, name: str) -> None:
        cure = f"`await {name}` in the role that finishes {self.plan.homes[name].tensor}"
        raise WgError(NotFilled(span=s.span, name=name, why="is stored by another role", cure=cure))

    def rings_of(self, p: Product) -> set[str]:
        return {self.placement.ring_of[h] for h in (p.a, p.b) if h is not None}

    @property
    def masks(self) -> tuple[Partial, ...]:
        return () if self.current is None else self.current.masks

    @property
    def masked(self) -> bool:
        return bool(self.computes)

    @property
    def in_loop(self) -> bool:
        return self.current is not None and self.current.kind == "steady"

    @property
    def turns_tiles(self) -> bool:
        """Whether it makes tiles of others, of which it clears what no row sees."""
        return any(is_turn(self.plan, s) for s in steps_of(self.role.steps))

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
        self.emit(self.items(body))
        self.leave()
        return tuple(self.out)

    def items(self, body: tuple[Step, ...]) -> Items:
        """The item loop, and how the role learns of its items."""
        work = self.plan.work
        if work is None:
            return Items(counted=self.counted, body=body)
        span, slot = self.plan.schedule.span, Slot(ring=work.name)
        full, empty = f"{work.name}.full", f"{work.name}.empty"
        end = (Advance(ring=work.name, span=span), Leave(span=span))
        if work.role == self.role.name:
            head: tuple[Step, ...] = (
                Wait(barrier=empty, part=Poly(), slot=slot, flip=True, span=span),
                PutItem(buffer=work.name, slot=slot, span=span),
                Arrive(barrier=full, part=Poly(), slot=slot, by="thread", span=span),
                *end,
            )
            # The next number comes when all copies of this item are under way: the other roles still work on them, and
            # nobody holds an item while others have none.
            return Items(source="counter", counted=self.counted, body=(*head, *body, self.fetch(span)))
        head = (
            Wait(barrier=full, part=Poly(), slot=slot, span=span),
            TakeItem(buffer=work.name, slot=slot, span=span),
            Arrive(barrier=empty, part=Poly(), slot=slot, span=span),
            *end,
        )
        return Items(source="work", counted=self.counted, body=(*head, *body))

    def fetch(self, span: Span | None) -> Fetch:
        """The next item, of those that tensors say have rows."""
        if self.trip.left is None:
            return Fetch(span=span)
        needed = [next(r for r in self.trip.reads if r.name == self.trip.left.bare)]
        for r in needed:
            needed += [x for x in self.trip.reads if x.name in r.value.symbols() and x not in needed]
        reads = tuple(r for r in self.trip.reads if r in needed)
        return Fetch(span=span, only=Affine(poly=self.trip.left - 1), reads=reads)

    def leave(self) -> None:
        """What the role still has to wait for before it ends."""

    def item(self) -> tuple[Step, ...]:
        self.out = []
        self.span = self.plan.schedule.span
        self.bind()
        bound, self.out = tuple(self.out), []
        loops = [s for s in opened(self.role.steps) if isinstance(s, ast.ForStep)]
        if len(loops) > 1:
            raise WgError(NotYetSupported(span=loops[1].span, what="a second `for` in one role"))
        for s in self.role.steps:
            self.item_step(s)
        body = tuple(self.out)
        if not self.role.by_item:
            return (*bound, *self.if_written(body))
        rings = {r: self.plan.axis in self.plan.homes[self.placement.rings[r].buffers[0]].indices for r in self.uses}
        others = tuple(replace(s, span=self.role.span) for s in passed_over(rings.items(), self.trip.n))
        mine = If(cond=is_mine(self.role.count), then=body, other=others, span=self.role.span)
        return (*bound, *self.if_written((mine,)))

    def if_written(self, body: tuple[Step, ...]) -> tuple[Step, ...]:
        """The steps of an item, unless tensors say that no row of it is written."""
        left = self.trip.left
        if left is None:
            return body
        for p in self.placement.placed.values() if self.plan.persistent else ():
            if p.home.output and p.home.over:
                cure = f"give `{p.home.name}` memory of its own, or take a grid that isn't persistent"
                what = f"`{p.home.name}` over `{p.home.over}` in a persistent grid of which items may have no rows"
                raise WgError(NotYetSupported(span=p.home.span, what=what, cure=cure))
        return (If(cond=Affine(poly=left - 1), then=body, span=self.plan.schedule.span, note="rows of it are written"),)

    def item_step(self, s: ast.Step) -> None:
        self.span = s.span
        if isinstance(s, ast.ForStep):
            self.loop(s)
            self.loop_ended()
        elif isinstance(s, ast.TurnStep):
            self.item_turn(s)
        else:
            self.step(Item(step=s, offset=None), None)

    def item_turn(self, turn: ast.TurnStep) -> None:
        """A turn around the loop: one pass an item."""
        inner = next((s for s in steps_of(turn.body) if isinstance(s, ast.TurnStep)), None)
        if inner is not None:
            raise WgError(NotYetSupported(span=inner.span, what="a turn inside a turn", cure="keep one of the two"))
        block = self.turns.index(turn)
        self.taking = block if self.role.count > 1 else None
        self.take_turn()
        for s in turn.body:
            self.item_step(s)
        self.span = turn.span
        if self.role.count > 1:
            self.hand_over(block)

    def bind(self) -> None:
        self.emit(*self.trip.reads)
        for name, value in self.trip.lets:
            self.emit(Let(name=name, value=value))
        if self.masked or self.trip.skips or self.turns_tiles:
            for name, value in self.trip.mask_lets:
                self.emit(Let(name=name, value=value))
        if self.masked:
            self.emit(*self.trip.cuts)

    def loop_ended(self) -> None:
        """Releases of buffers that are filled once an item."""

    def loop(self, loop: ast.ForStep) -> None:
        expansion = expand(loop, self.trip, self.masked)
        inside = [s for s in steps_of(loop.body) if isinstance(s, ast.TurnStep)]
        if inside and self.role.by_item:
            cure = "put it around the loop: warpgroups with items of their own meet once an item"
            raise WgError(NotYetSupported(span=inside[0].span, what="`in turn` in the loop under `split tiles`", cure=cure))
        self.first_turn = self.turns.index(inside[0]) if inside else 0
        self.before_loop(expansion)
        outer, self.out = self.out, []
        for copy in expansion.copies:
            self.copy(copy)
        body, self.out = self.out, outer
        other = self.empty(expansion)
        self.emit(*self.dynamic_init())
        skipper = Skipper(
            plan=self.plan, placement=self.placement, trip=self.trip, role=self.role, ids=self.ids, products=self.products,
            elements={id(s): self.element_homes(k) for k, s in enumerate(self.computes)}, loop=loop,
        )  # fmt: skip
        self.emit(*skipper.before())
        some = self.trip.last - self.trip.first
        if expansion.guarded:
            self.emit(If(cond=Affine(poly=some - 1), then=tuple(body), other=tuple(other)))
        else:
            self.emit(*body)
            if other:
                self.emit(If(cond=Affine(poly=-some), then=tuple(other), note="nothing to stream"))
        self.emit(*skipper.behind())

    def before_loop(self, expansion: Expansion) -> None:
        """Wait for what is filled once an item, unless the schedule has awaited it; sums that threads add up begin with 0."""
        self.emit(*(Zero(value=p.value) for p in self.products.values() if p.promoted))
        for p in self.products.values():
            for home in (p.a, p.b):
                if home is not None and self.plan.axis not in self.plan.homes[home].indices:
                    self.wait_full(home, None)

    def static_first(self) -> bool:
        """Whether the first tile is computed in a prologue copy, so that states need no initial value."""
        loop = loop_of(self.role.steps)
        if loop is None or not self.computes:
            return False
        e = expand(loop, self.trip, self.masked)
        return any(isinstance(i.step, ast.ComputeStep) for c in e.copies if c.kind == "prologue" for i in c.items)

    def dynamic_init(self) -> list[Step]:
        return [] if self.static_first() else self.initial_states()

    def empty(self, expansion: Expansion) -> list[Step]:
        """What stands in place of the loop when there is no tile."""
        saved, self.out = self.out, []
        for item in expansion.once:
            self.span = item.step.span
            self.step(item, None)
        self.nothing_streamed()
        out, self.out = self.out, saved
        sums = (p for p in self.products.values() if self.streamed.state(p.node.name) is not None and not p.promoted)
        accumulators = [p.value for p in sums]
        zeros: list[Step] = [Zero(value=v) for v in accumulators]
        states = self.initial_states() if self.static_first() else []
        return [*out, *zeros, *states]

    def nothing_streamed(self) -> None:
        """What a role owes for an item without a tile."""

    def copy(self, copy: Copy) -> None:
        if copy.kind != "steady":
            self.unrolled = -copy.high if copy.kind == "prologue" else 0  # so that the first steady iteration counts 0
            self.run(copy)
            self.unrolled = 0
            if copy.kind == "prologue":
                self.clear_after_prologue(copy)
            self.state = self.state.shift()
            return
        self.begin_accumulating()
        before = deepcopy(self.state)
        self.body(copy, 0)  # the first pass only finds the state of later iterations
        if not before.leads_to(self.state) and self.settled(before):
            before = deepcopy(self.state)
            self.body(copy, 0)
        if not before.leads_to(self.state):
            raise WgError(self.not_steady(before, self.state))
        self.state.reading |= before.reading
        entry, times = deepcopy(self.state), self.unroll
        bodies = [self.body(copy, u) for u in range(times)]
        if entry.steady_key() != self.state.steady_key():
            raise WgError(self.not_steady(entry, self.state))
        var = copy.j.bare or ""
        self.span = copy.items[0].step.span if copy.items else None
        whole = tuple(s for b in bodies for s in b)
        mask = mask_text(copy.masks)
        self.emit(Loop(var=var, start=copy.start, stop=copy.stop - (times - 1), step=times, mask=mask, body=whole))
        if times > 1:
            self.left_over(replace(copy, j=copy.stop - 1))
        self.state.reading |= before.reading  # the loop may not have run

    def settled(self, before: State) -> bool:
        """Whether the role could wait in front of a loop for what later iterations find done; `self.state` is theirs."""
        return False

    @property
    def unroll(self) -> int:
        """How often the loop is unrolled, so that registers are never indexed at run time."""
        mine = (p.a_value for p in self.products.values() if p.a_value is not None)
        return max((self.plan.operand_sets.get(name, 1) for name in mine), default=1)

    def body(self, copy: Copy, unrolled: int) -> tuple[Step, ...]:
        """One iteration; the state is then seen from the next one."""
        outer, self.out, self.unrolled = self.out, [], unrolled
        self.run(replace(copy, j=copy.j + unrolled))
        self.state, self.unrolled = self.state.shift(), 0
        out, self.out = tuple(self.out), outer
        return out

    def left_over(self, copy: Copy) -> None:
        """The last iteration of an odd number of them. What it packed goes to where the next loop looks for it."""
        before = deepcopy(self.state)
        outer, self.out = self.out, list(self.body(copy, 0))
        for name, sets in self.plan.operand_sets.items():
            for rel in self.state.packed.get(name, ()) if sets > 1 else ():
                dst, src = self.operand_value(name, rel), self.operand_value(name, rel + 1)
                if rel == max(self.state.packed[name]):
                    self.touch(dst, name, self.span)
                    self.emit(Move(dst=dst, src=src, note="where the next loop looks for it"))
        out, self.out = tuple(self.out), outer
        odd = mod(maximum(copy.stop - copy.start, 0), 2)
        self.emit(If(cond=Affine(poly=odd - 1), then=out, note="an odd number of iterations"))
        self.state = before

    def begin_accumulating(self) -> None:
        """Before the loop whose first product overwrites an accumulator by a run-time scale-d: what it held ends here."""
        for p in self.products.values():
            if self.streamed.state(p.node.name) is not None and p.value not in self.begun and not p.promoted:
                self.begun.add(p.value)
                if p.value not in self.state.reference and all(g.value != p.value for g in self.state.flight):
                    self.emit(Forget(value=p.value))

    def start_sum(self, p: Product) -> None:
        """A product is issued that adds to an accumulator, perhaps before the steady loop."""
        self.begun.add(p.value)

    def not_steady(self, before: State, after: State) -> LoopNotSteady:
        loop = loop_of(self.role.steps)
        span = loop.span if loop is not None else self.role.span
        axis, had = self.plan.axis, [g.product for g in before.flight]
        has = [g.product for g in after.flight]
        left = tuple(p for p in dict.fromkeys(has) if has.count(p) > had.count(p))
        return LoopNotSteady(span=span, before=before.in_flight(axis), after=after.in_flight(axis), axis=axis, left=left)

    def run(self, copy: Copy) -> None:
        self.current = copy
        self.look_up(copy)
        for k, item in enumerate(copy.items):
            self.span = item.step.span
            turn = self.first_turn + item.turn if item.turn in copy.turns and self.role.count > 1 else None
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

    def look_up(self, copy: Copy) -> None:
        """What the list says of the tiles that are filled or computed with in this copy."""
        if self.trip.lists is None:
            return
        named = (ast.FillStep, ast.ComputeStep, ast.ProbeStep)
        offsets = {i.offset for i in copy.items if i.offset is not None and isinstance(i.step, named)}
        for d in sorted(offsets):
            self.emit(self.trip.lists.read(copy.j + d, self.plan.tiles_of(self.plan.axis)))

    def clear_before_turn(self, items: list[Item], copy: Copy) -> None:
        """Rows are cleared before the turn is taken: the others would wait for it."""
        for item in items:
            if isinstance(item.step, ast.IssueStep) and item.step.op == "+=" and item.offset is not None and self.masks:
                p = self.products[name_of(item.step.target)]
                self.clear_before(p, item.offset, copy.j + item.offset)
                self.cleared.add(p.name)

    def once(self, item: Item, copy: Copy) -> None:
        outer, self.out = self.out, []
        self.step(item, copy)
        body, self.out = tuple(self.out), outer
        # the loop's first iteration, whichever mask class that has
        self.emit(If(cond=Affine(poly=self.trip.first - copy.low - copy.j), then=body))

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
            first = position == self.trip.first and copy.kind == "prologue" and self.static_first()
            self.wait_all(dict.fromkeys(self.element_homes(self.computes.index(s)), item.offset))
            self.take_turn()
            self.compute(s, item.offset, position, copy.masks, first)
        elif isinstance(s, ast.PackStep):
            self.take_turn()
            if is_turn(self.plan, s):
                self.turn(s, item.offset, position)
            else:
                self.pack(name_of(s.target), item.offset, s.span)
        elif isinstance(s, ast.RescaleStep):
            self.take_turn()
            self.rescale(s)
        elif isinstance(s, ast.FinishStep):
            self.finish(s)
        elif isinstance(s, ast.FillStep):
            self.fill(s, position)
        elif isinstance(s, ast.ProbeStep):
            if item.offset is None or position is None:
                raise WgError(self.outside_loop(s, "a `probe`"))
            self.emit(probe(self, self.probes, s, item.offset, position))
        else:
            words = " ".join(ast_text(s).partition("{")[0].split())
            raise WgError(NotYetSupported(span=s.span, what=f"`{words}` here"))

    def turn(self, s: ast.PackStep, rel: int | None, position: Poly | None) -> None:
        """Make a tile of another one: all threads write it, and make it visible to the products' proxy, before one says so."""
        name = name_of(s.target)
        source = self.plan.homes[name].turned or ""
        if rel is None or position is None:
            raise WgError(self.outside_loop(s, "a `pack`"))
        ring = self.placement.rings[self.placement.ring_of[name]]
        assert ring.full is not None and ring.empty is not None
        for c in self.clears.of_tile(source, rel, position, self.current):
            self.clear(c, proxy=False)  # its own threads read it; the fence before the tile is handed on comes after that
        self.wait_full(source, rel)
        slot, whole = Slot(ring=ring.name), Poly()
        self.emit(
            Wait(barrier=ring.empty, part=whole, slot=slot, flip=True),
            Transpose(
                buffer=name, part=whole, slot=slot, origin=source, origin_part=self.part_of(source),
                origin_slot=self.slot(self.placement.ring_of[source], rel),
            ),
            FenceAsync(),
            BarSync(id=self.local, threads=WARPGROUP, note="transposed"),
            Elect(body=(Arrive(barrier=ring.full, part=whole, slot=slot, by="thread", span=self.span),)),
            Advance(ring=ring.name),
        )  # fmt: skip
        self.read_done(self.placement.ring_of[source], rel)

    def outside_loop(self, s: ast.Step, what: str) -> NotYetSupported:
        return NotYetSupported(
            span=s.span, what=f"{what} outside the loop", cure=f"put it into `for {self.plan.axis} {{ ... }}`"
        )

    def fill(self, s: ast.FillStep, position: Poly | None) -> None:
        raise WgError(
            NotYetSupported(span=s.span, what="a fill in a role that computes", cure="give fills a role of their own")
        )

    @property
    def local(self) -> Poly:
        """The named barrier of each warpgroup's own threads."""
        return Poly.of("wg") + self.ids.local[self.role.name]

    def finish(self, s: ast.FinishStep) -> None:
        raise NotImplementedError

    # products
    def issue(self, s: ast.IssueStep, rel: int | None, position: Poly | None) -> None:
        p = self.products[name_of(s.target)]
        if rel is None:
            raise WgError(self.outside_loop(s, "a product"))
        accumulates = s.op == "+="
        self.not_in_flight(p, accumulates, s)
        rels = {h: (rel if self.plan.axis in self.plan.homes[h].indices else None) for h in (p.a, p.b) if h is not None}
        self.wait_all(rels)
        if p.a_value is not None:
            self.operand_ready(p, rel, s)
        if accumulates:
            self.same_reference(p, rel, s)
            self.start_sum(p)
            assert position is not None
            if self.masks and p.name not in self.cleared:
                self.clear_before(p, rel, position)
        self.take_turn()
        a: SmemOperand | RegOperand
        if p.a is not None:
            a = self.operand(p.a, rels[p.a], p.a_major)
        else:
            a = RegOperand(value=self.operand_value(p.a_value or "", rel))
        placed = self.placement.placed[p.b].buffer
        self.overwrite(p.result)
        assert position is not None
        reads = tuple(dict.fromkeys((self.placement.ring_of[h], r) for h, r in rels.items()))
        operand = None if p.a_value is None else self.operand_value(p.a_value, rel)
        step = PRODUCTS[p.engine](
            acc=p.result,
            a=a,
            b=self.operand(p.b, rels[p.b], p.b_major),
            n=self.plan.size(p.cols),
            k=p.k,
            dtype=placed.dtype,
            zero=self.first_tile(position, rel) if accumulates and not p.promoted else TRUE,
        )
        self.multiply(step, Group(p.name, p.result, rel, operand, reads, s.span))
        if accumulates and self.state.scaled_to is not None:
            self.state.reference[p.value] = self.state.scaled_to if p.a_value is None else rel

    def multiply(self, step: Wgmma | Mma, group: Group) -> None:
        """Issue a product."""
        # A fence before each product, whether registers were used or not: the assembler puts one there anyway.
        self.emit(FenceWgmma(), step, Commit())
        self.state.flight.append(group)

    def first_tile(self, position: Poly, rel: int) -> Expr:
        """Whether the product of a stream position is the item's first."""
        past = position - self.trip.first
        if past.constant is not None:
            return TRUE if past.constant <= 0 else FALSE
        if self.current is not None and self.current.kind == "steady" and rel + self.unrolled > self.current.low:
            return FALSE
        return Affine(poly=-past)

    def wait_all(self, rels: dict[str, int | None]) -> None:
        """Before a product reads these tiles, by home."""
        for home, r in rels.items():
            self.wait_full(home, r)

    def operand(self, home: str, rel: int | None, major: str) -> SmemOperand:
        ring = self.placement.ring_of[home]
        return SmemOperand(buffer=home, part=self.part_of(home), slot=self.slot(ring, rel), major=major)

    def not_in_flight(self, p: Product, accumulates: bool, s: ast.IssueStep) -> None:
        """Another product into the same registers may only follow an accumulating one."""
        for g in self.state.flight:
            if g.value == p.result and (p.promoted or not accumulates):
                product = f"{g.product}{tile_text(self.plan.axis, g.rel)}"
                raise WgError(StillInFlight(span=s.span, product=product, touched=p.name, issued=g.span))

    def operand_ready(self, p: Product, rel: int, s: ast.IssueStep) -> None:
        name = p.a_value or ""
        if rel in self.state.packed.get(name, ()):
            return
        if self.state.computed.get(resolve(self.streamed, name)) != rel:
            raise WgError(NeverComputed(span=s.span, name=f"{name}{tile_text(self.plan.axis, rel)}", step=ast_text(s)))
        self.pack(name, rel, s.span)

    def same_reference(self, p: Product, rel: int, s: ast.IssueStep) -> None:
        state = self.streamed.state(p.node.name)
        held = self.state.reference.get(p.value)
        if state is not None and state.correction is not None and held is not None and held != rel:
            raise WgError(WrongReference(span=s.span, accumulator=p.name, operand=p.a_value or p.a or ""))

    # clears
    def clear_before(self, p: Product, rel: int, position: Poly) -> None:
        for c in self.clears.before(p, rel, position, self.current, self.first_cleared):
            self.clear(c)

    def clear_after_prologue(self, copy: Copy) -> None:
        for c in self.clears.after_prologue(self.products, copy):
            self.clear(c)
            self.first_cleared = True

    def clear(self, c: Clear, proxy: bool = True) -> None:
        """proxy: whether a product reads the tile, by the asynchronous proxy."""
        ring = self.placement.ring_of[c.home]
        self.move_to(ring, c.rel)
        outer, self.out = self.out, []
        self.wait_full(c.home, c.rel)
        wait, self.out = tuple(self.out), outer
        self.state.waited.discard((ring, c.rel))
        self.emit(c.branch(self.part_of(c.home), self.slot(ring, c.rel), self.local, self.span, wait, proxy))

    # waits
    def await_(self, s: ast.AwaitStep, rel: int | None) -> None:
        name = name_of(s.target)
        if name in self.plan.homes:
            if self.plan.homes[name].output:
                return self.await_store(s, name)
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
            self.done(g)

    def done(self, g: Group) -> None:
        """A product is complete: its result can be computed with, and it reads its tiles no longer."""
        if g.rel is not None:
            self.state.computed[self.products[g.product].node.name] = g.rel
        for ring, tile in g.reads:
            self.read_done(ring, tile)
        if self.products[g.product].promoted:
            self.promote(self.products[g.product])

    def promote(self, p: Product) -> None:
        """Add a tile's product to the sum so far."""
        rows, cols = self.plan.axis_of(p.rows), self.plan.axis_of(p.cols)
        total = apply("add", Reg(name=p.value), Reg(name=p.result))
        self.emit(Compute(ops=(MapOp(dst=p.value, expr=total, rows=rows, cols=cols),), note=f"{p.name}, by threads"))


def mask_text(masks: tuple[Partial, ...]) -> str:
    return "{" + ", ".join(f"{m.name}: partial" for m in masks) + "}"

"""joined: items of a persistent grid that reach into one another.

In: a role whose loop has steps one tile ahead.  Out: its steps for one item, which may find itself begun by the item before and
may begin the one that follows: the last iteration of an item and the first of the next are then one. In it the steps at the
lower offset (and `rescale`) belong to the old item, those before the loop and at the higher offset to the new one; what the old
item's `finish` needs is kept beside what the new one computes. Items without a tile are joined on neither side.

Tiles follow each other in every ring as if both items were one stream: the new item's first is the tile behind the old one's
last. So the walk over a joined iteration is that over any other one, and has to leave what a prologue leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial

from ..diagnostics.model import WgError
from ..diagnostics.schedule import CantJoin, NotYetSupported
from ..program.expr import Affine, Reg
from ..program.poly import Poly, minimum
from ..roles.model import (
    NEXT,
    Advance,
    Arrive,
    Begun,
    Compute,
    Fetch,
    If,
    Items,
    Let,
    MapOp,
    NextItem,
    PutItem,
    Slot,
    Step,
    TakeItem,
    Wait,
)
from ..syntax import ast
from .flight import State
from .joinable import check_at_rest, check_loop, check_role
from .pipeline import Copy, Expansion, Item, expand, flatten
from .plan import steps_of
from .sync import RoleSync
from .twins import Twins, twins_of

BEGUN, FOLLOWS, JOINED = "item.begun", "item.follows", "item.joined"
AT_REST = Affine(poly=-Poly.of(BEGUN))  # nothing of the item has been done before it
JOINS = Affine(poly=Poly.of(JOINED) - 1)  # this item begins the one that follows


class JoinedSync(RoleSync):
    """A role whose items may be joined."""

    def items(self, body: tuple[Step, ...]) -> Items:
        if not self.plan.joined:
            return super().items(body)
        work = self.plan.work
        source = "stride" if work is None else "counter" if work.role == self.role.name else "work"
        return Items(source=source, joined=True, counted=self.counted, body=body)

    def item(self) -> tuple[Step, ...]:
        if not self.plan.joined:
            return super().item()
        check_role(self.plan, self.role)
        before, loop, after = self.around_loop()
        expansion = None if loop is None else expand(loop, self.trip, self.masked)
        if loop is None or expansion is None or not expansion.guarded:
            return self.unjoined()
        check_loop(self.plan, self.placement, expansion)
        self.out = []
        self.span = self.plan.schedule.span
        self.bind()
        self.emit(*self.dynamic_init())
        inside = [s for s in steps_of(loop.body) if isinstance(s, ast.TurnStep)]
        self.first_turn = self.turns.index(inside[0]) if inside else 0
        self.begin(before, loop, expansion)
        begun = deepcopy(self.state)
        for copy in expansion.copies[1:-1]:
            self.copy(copy)
        check_at_rest(self.state, loop, self.plan.axis)
        self.span = loop.span
        self.loop_ended()
        self.emit(*self.look_ahead(), *self.next_trip())
        self.end(before, loop, expansion, begun)
        self.each(after)
        self.span = self.plan.schedule.span
        self.emit(*self.hand_on(), Begun(value=Poly.of(JOINED)))
        return tuple(self.out)

    def around_loop(self) -> tuple[tuple[ast.Step, ...], ast.ForStep | None, tuple[ast.Step, ...]]:
        """The role's steps before its loop, the loop, and those behind it."""
        loops = [k for k, s in enumerate(self.role.steps) if isinstance(s, ast.ForStep)]
        if not loops:
            return self.role.steps, None, ()
        if len(loops) > 1:
            raise WgError(NotYetSupported(span=self.role.steps[loops[1]].span, what="a second `for` in one role"))
        loop = self.role.steps[loops[0]]
        assert isinstance(loop, ast.ForStep)
        return self.role.steps[: loops[0]], loop, self.role.steps[loops[0] + 1 :]

    def unjoined(self) -> tuple[Step, ...]:
        """A role that has nothing to do ahead: its items follow each other, and it only learns of them as the others do."""
        if self.products:
            why = f"the loop of `{self.role.name}` has no step one tile ahead, so nothing of the next item can run in this one"
            cure = "issue the next tile's product in the loop, as in `issue S[j+1] = ...`, or drop `joined`"
            raise WgError(CantJoin(span=self.role.span, why=why, cure=cure))
        body = super().item()
        self.out = []
        self.span = self.plan.schedule.span
        self.emit(*self.look_ahead())
        return (*body, *self.out)

    # The parts of an item.

    def begin(self, before: tuple[ast.Step, ...], loop: ast.ForStep, expansion: Expansion) -> None:
        """The steps before the loop and its prologue, unless the item before has done them."""
        prologue = expansion.copies[0]
        first = self.block(lambda: (self.each(before), self.before_loop(expansion)))
        tiles = self.block(lambda: self.run(prologue))
        self.span = loop.span
        self.emit(If(cond=AT_REST, then=(*first, *self.if_some(tiles)), note="the item before has not begun this one"))
        self.emit(*self.if_some(self.block(lambda: self.clear_after_prologue(prologue))))
        self.state = self.state.shift()

    def end(self, before: tuple[ast.Step, ...], loop: ast.ForStep, expansion: Expansion, begun: State) -> None:
        """The last iteration: joined with the first of the next item, or alone."""
        drain = expansion.copies[-1]
        at = deepcopy(self.state)
        joined = self.block(lambda: self.join(before, loop, expansion))
        if not begun.leads_to(self.state) or begun.scaled_to != self.state.scaled_to:
            raise WgError(self.not_steady(begun, self.state))
        self.state = at
        alone = self.block(lambda: self.run(drain))
        self.state = self.state.shift()
        none = tuple(self.empty(expansion))
        self.span = loop.span
        other = If(cond=Affine(poly=self.trip.n - 1), then=alone, other=none, span=loop.span)
        self.emit(If(cond=JOINS, then=joined, other=(other,), note="its last iteration and the first of the next item"))

    def join(self, before: tuple[ast.Step, ...], loop: ast.ForStep, expansion: Expansion) -> None:
        """One iteration of two items."""
        prologue, drain = expansion.copies[0], expansion.copies[-1]
        for p in self.products.values():
            self.state.waited -= {(r, None) for r in self.rings_of(p)}
        if self.masked:
            for name, value in self.twins.lets(self.trip.mask_lets):
                self.emit(Let(name=name, value=value))
        self.ahead(lambda: (self.each(before), self.before_loop(expansion)))
        items = [(i, prologue if i.once or i.offset == prologue.high else drain) for i in flatten(loop.body, self.trip.axis)]
        self.state.scaled_to = self.both(items)
        self.state.reference.clear()
        self.state = self.state.shift()

    def both(self, items: list[tuple[Item, Copy]]) -> int | None:
        """The steps of both items in the loop's order; the tile to which the new item's states are scaled afterwards."""
        scaled_to = {"prologue": None, "drain": self.state.scaled_to}
        for k, (item, copy) in enumerate(items):
            self.span = item.step.span
            turn = self.first_turn + item.turn if item.turn is not None and self.role.count > 1 else None
            members = [m for m, (x, _) in enumerate(items) if turn is not None and x.turn == item.turn]
            first, last = members[:1] == [k], members[-1:] == [k]
            for x, c in (items[m] for m in members if first):
                self.part(c, partial(self.clear_before_turn, [x], c))
            self.taking = turn if first else None
            self.state.scaled_to = scaled_to[copy.kind]
            self.part(copy, partial(self.step_in_turn, item, copy))
            scaled_to[copy.kind] = self.state.scaled_to
            if last and turn is not None:
                self.hand_over(turn)
                self.cleared.clear()
        return scaled_to["prologue"]

    def step_in_turn(self, item: Item, copy: Copy) -> None:
        self.step(item, copy)
        self.take_turn()

    def part(self, copy: Copy, write: Callable[[], object]) -> None:
        """Write steps of one of the two items: those of a prologue are the new one's."""
        self.current = copy
        if copy.kind == "prologue":
            self.ahead(write)
        else:
            write()

    def look_ahead(self) -> tuple[Step, ...]:
        """Learn which item follows."""
        work = self.plan.work
        if work is None:
            return (NextItem(),)
        slot, full, empty = Slot(ring=work.name), f"{work.name}.full", f"{work.name}.empty"
        if work.role == self.role.name:
            return (
                Fetch(),
                Wait(barrier=empty, part=Poly(), slot=slot, flip=True),
                PutItem(buffer=work.name, slot=slot, ahead=True),
                Arrive(barrier=full, part=Poly(), slot=slot, by="thread"),
                Advance(ring=work.name),
                NextItem(),
            )
        return (
            Wait(barrier=full, part=Poly(), slot=slot),
            TakeItem(buffer=work.name, slot=slot, ahead=True),
            Arrive(barrier=empty, part=Poly(), slot=slot),
            Advance(ring=work.name),
            NextItem(),
        )

    def next_trip(self) -> tuple[Step, ...]:
        """How many tiles the item that follows has, and so whether the two are joined."""
        n = self.trip.n
        lets = (Let(name=name, value=value) for name, value in self.twins.lets(self.trip.lets))
        both = minimum(Poly.of(FOLLOWS), n, self.twins.poly(n))
        return (*lets, Let(name=JOINED, value=both, note="1 if both have a tile"))

    def hand_on(self) -> tuple[Step, ...]:
        """The new item's states take the place of the old one's."""
        rows = self.row_axis()
        if rows is None or not self.second:
            return ()
        ops = tuple(MapOp(dst=old, expr=Reg(name=new), rows=rows) for old, new in self.second.items())
        return (If(cond=JOINS, then=(Compute(ops=ops),), note="the next item's states"),)

    # The new item's steps.

    @property
    def second(self) -> Mapping[str, str]:
        """State -> its second copy: those that are advanced one tile ahead."""
        if not self.static_first():
            return {}
        names = [n for nodes in self.assignment.nodes.values() for n in nodes]
        states = [s for n in names if (s := self.streamed.state(n)) is not None]
        values = [v for s in states for v in (self.computer.state_value(s), self.computer.room(s)) if v is not None]
        known = self.computer.values
        return {v: self.computer.declare(replace(known[v], name=f"{v}.{NEXT.rstrip('.')}")) for v in values}

    @property
    def twins(self) -> Twins:
        return twins_of(self.plan, self.trip, self.second)

    def ahead(self, write: Callable[[], object]) -> None:
        """Write steps of the item that follows."""
        self.emit(*self.twins.steps(self.block(write)))

    def block(self, write: Callable[[], object]) -> tuple[Step, ...]:
        """What `write` writes, apart."""
        outer, self.out = self.out, []
        write()
        out, self.out = tuple(self.out), outer
        return out

    def each(self, steps: tuple[ast.Step, ...]) -> None:
        for s in steps:
            self.span = s.span
            self.step(Item(step=s, offset=None), None)

    def if_some(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Steps for an item with a tile."""
        return (If(cond=Affine(poly=self.trip.n - 1), then=steps, span=self.span),) if steps else ()

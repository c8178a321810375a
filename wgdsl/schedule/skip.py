"""skip: positions of the stream at which a warpgroup passes over a tile that is empty for its rows.

In: a role's placement, trip, products and loop.  Out: the loops before and behind its own, which free the slots of those tiles
and take its turns empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..program.expr import TRUE, Affine, Expr, disjunction
from ..program.poly import Poly, mod
from ..roles.model import Advance, Arrive, BarArrive, BarSync, If, Loop, Slot, Step, Wait
from ..syntax import ast
from .barriers import TURN_THREADS, Ids
from .mask import Trip
from .pipeline import step_offset
from .place import Placement, name_of
from .plan import Plan, RolePlan, steps_of
from .products import Product


@dataclass(frozen=True, kw_only=True)
class Skipper:
    plan: Plan
    placement: Placement
    trip: Trip
    role: RolePlan
    ids: Ids
    products: Mapping[str, Product]
    elements: Mapping[int, tuple[str, ...]]  # the homes that a `compute` reads, by its identity
    loop: ast.ForStep

    def before(self) -> tuple[Step, ...]:
        """The empty tiles in front of the warpgroup's own."""
        return self.around(Poly(), self.trip.first, leading=True)

    def behind(self) -> tuple[Step, ...]:
        """The empty tiles behind its own."""
        return self.around(self.trip.last, self.trip.n, leading=False)

    def around(self, start: Poly, stop: Poly, *, leading: bool) -> tuple[Step, ...]:
        if not self.trip.skips:
            return ()
        var = f"{self.trip.axis}.empty"
        first, *rest = self.rings()
        turns = (s for k, t in enumerate(self.turns()) for s in self.turn(k, t, Poly.of(var), leading))
        body = (*self.free(first), *turns, *(s for ring in rest for s in self.free(ring)))
        return (Loop(var=var, start=start, stop=stop, mask="{empty}", body=body, span=self.loop.span),)

    def rings(self) -> list[str]:
        """Rings of the streamed tiles that the role reads, in the order in which it frees the slots of one tile: those of steps
        that run further ahead earlier."""
        readers = [s for s in steps_of(self.loop.body) if isinstance(s, ast.IssueStep | ast.ComputeStep)]
        readers.sort(key=lambda s: -(step_offset(s, self.trip.axis) or 0))
        homes = (h for s in readers for h in self.read_by(s))
        return list(dict.fromkeys(self.placement.ring_of[h] for h in homes if self.plan.axis in self.plan.homes[h].indices))

    def read_by(self, s: ast.IssueStep | ast.ComputeStep) -> tuple[str, ...]:
        if isinstance(s, ast.ComputeStep):
            return self.elements.get(id(s), ())
        p = self.products[name_of(s.target)]
        return tuple(h for h in (p.a, p.b) if h is not None)

    def free(self, ring: str) -> Iterator[Step]:
        """The tile of a ring has arrived, and its slot is free again."""
        r, slot = self.placement.rings[ring], Slot(ring=ring)
        part = Poly.of("wg") if self.placement.per_part(ring) else Poly.of(0)
        assert r.full is not None and r.empty is not None
        yield Wait(barrier=r.full, part=part, slot=slot, span=self.loop.span)
        yield Arrive(barrier=r.empty, part=part, slot=slot, span=self.loop.span)
        yield Advance(ring=ring, span=self.loop.span)

    def turns(self) -> list[ast.TurnStep]:
        if self.role.count == 1:
            return []
        return [s for s in steps_of(self.loop.body) if isinstance(s, ast.TurnStep)]

    def span(self, turn: ast.TurnStep) -> int:
        """Over how many iterations the steps of a block are spread: so many fewer passes than tiles there are."""
        steps = (s for s in steps_of(turn.body) if not hasattr(s, "body"))
        offsets = [d for s in steps if (d := step_offset(s, self.trip.axis)) is not None] or [0]
        return max(offsets) - min(offsets)

    def turn(self, block: int, turn: ast.TurnStep, at: Poly, leading: bool) -> Iterator[Step]:
        """A pass with nothing to do, wherever the other warpgroups make one."""
        first = self.ids.first(self.role.name, block)
        own, following = Poly.of("wg") + first, mod(Poly.of("wg") + 1, self.role.count) + first
        steps = (
            BarSync(id=own, threads=TURN_THREADS, note="my turn, with nothing to do", span=turn.span),
            BarArrive(id=following, threads=TURN_THREADS, note="the next one's turn", span=turn.span),
        )
        cond = self.passes(turn, at, leading)
        if cond == TRUE:
            yield from steps
        else:
            yield If(cond=cond, then=steps, span=turn.span)

    def passes(self, turn: ast.TurnStep, at: Poly, leading: bool) -> Expr:
        """A warpgroup without any tile passes over all of them, and has to leave out the passes that there are fewer."""
        span = self.span(turn)
        if not span:
            return TRUE
        early = Affine(poly=self.trip.n - span - at - 1)
        return early if leading else disjunction(Affine(poly=self.trip.last - self.trip.first - 1), early)

"""clears: elements of operand tiles that no row may see, since 0 * NaN is NaN in a tensor core.

In: the trip (where the rows of a CTA begin and cease to see anything) and the copy of the loop that is lowered.  Out: `Clear`s,
which `sync` puts before the product that would read such elements, and their steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..foundation.source import Span
from ..program.expr import Affine, Expr, conjunction
from ..program.poly import Poly, minimum
from ..roles.model import BarSync, ClearRows, FenceAsync, If, Slot, Step
from ..syntax import ast
from ..targets.registers import WARPGROUP
from .mask import Trip
from .pipeline import Copy
from .place import Placement, name_of
from .plan import Plan
from .products import Product


@dataclass(frozen=True, kw_only=True)
class Clear:
    """Rows [start, stop) of a tile to clear, counted from its first, under a condition on the stream position."""

    home: str
    rel: int  # tile relative to the loop variable
    start: Poly
    stop: Poly
    cond: Expr

    def branch(
        self, part: Poly, slot: Slot, barrier: Poly, span: Span | None, wait: tuple[Step, ...], proxy: bool = True
    ) -> If:
        """The steps where they are needed, behind the `wait` for the tile.

        Each warpgroup clears for itself, since all write the same zeros: none has to wait for another. proxy: the product reads
        by the asynchronous one.
        """
        rows = ClearRows(buffer=self.home, part=part, slot=slot, start=self.start, stop=self.stop, span=span)
        met = BarSync(id=barrier, threads=WARPGROUP, note="cleared", span=span)
        body = (*wait, rows, *((FenceAsync(span=span),) if proxy else ()), met)
        return If(cond=self.cond, then=body, note="no row sees these: a NaN in them must not count", span=span)


@dataclass(frozen=True, kw_only=True)
class Clears:
    """Decides what a role clears."""

    plan: Plan
    placement: Placement
    trip: Trip

    def before(self, p: Product, rel: int, position: Poly, copy: Copy | None, first_cleared: bool) -> Iterator[Clear]:
        """Before a product that may read such elements. `first_cleared`: a prologue copy has cleared the first tile."""
        for at_end, first, stop in self.outside():
            front = at_end == self.trip.descending
            edge = Poly.of(0) if front else self.trip.n - 1
            if front and first_cleared:
                continue
            if reaches(copy, front, rel, position - edge):
                yield from self.of(self.homes(p), rel, position, first, stop, position - edge)

    def of_tile(self, home: str, rel: int, position: Poly, copy: Copy | None) -> Iterator[Clear]:
        """Of a tile with the streamed axis along its rows, before it is made into another one."""
        for at_end, first, stop in self.outside():
            front = at_end == self.trip.descending
            off_edge = position - (Poly.of(0) if front else self.trip.n - 1)
            if reaches(copy, front, rel, off_edge):
                yield from self.of((home,), rel, position, first, stop, off_edge)

    def after_prologue(self, products: dict[str, Product], copy: Copy) -> Iterator[Clear]:
        """At the end of a prologue copy: the first tile, if the product that reads it comes in the steady loop."""
        issued = {name_of(i.step.target) for i in copy.items if isinstance(i.step, ast.IssueStep)}
        for p in products.values():
            if self.plan.streamed.state(p.node.name) is None or p.name in issued:
                continue
            for at_end, first, stop in self.outside():
                if at_end == self.trip.descending:
                    yield from self.of(self.homes(p), copy.high, self.trip.first, first, stop, self.trip.first)

    def outside(self) -> list[tuple[bool, Poly, Poly]]:
        """(at the axis' end, first, last + 1) of the elements that no row of the CTA sees in the outermost tiles."""
        t, size = self.trip, self.plan.tiles[self.plan.axis]
        out = []
        if t.lists is not None:  # counted from the first of the tile
            out += [] if t.seen_stop is None else [(True, Poly.of(t.lists.cut_from), Poly.of(size))]
            return out + ([] if t.seen_start is None else [(False, Poly(), Poly.of(t.lists.cut_to))])
        if t.seen_stop is not None:
            behind = t.hi * size  # all of it, where what is behind the extent needs no test of its own
            out.append((True, t.seen_stop, behind if t.ended else minimum(behind, self.plan.graph.extents[self.plan.axis])))
        if t.seen_start is not None:
            out.append((False, t.lo * size, t.seen_start))
        return out

    def of(self, homes: Sequence[str], rel: int, position: Poly, first: Poly, stop: Poly, off_edge: Poly) -> Iterator[Clear]:
        """Clear elements [first, stop) of the axis in the tile, if there are any, where the stream position is the edge's."""
        base = Poly() if self.trip.lists is not None else self.trip.tile(position) * self.plan.tiles[self.plan.axis]
        conditions = [Affine(poly=stop - first - 1)]
        if off_edge.constant != 0:
            conditions += [Affine(poly=off_edge), Affine(poly=-off_edge)]
        for home in homes:
            yield Clear(home=home, rel=rel, start=first - base, stop=stop - base, cond=conjunction(*conditions))

    def homes(self, p: Product) -> list[str]:
        """Operand tiles of an accumulating product whose rows run along the streamed axis; their partner is 0 outside."""
        homes = [h for h in (p.a, p.b) if h is not None and p.a is None]
        return [h for h in homes if self.placement.placed[h].buffer.rows_index == self.plan.axis]


def reaches(copy: Copy | None, front: bool, rel: int, off_edge: Poly) -> bool:
    """Whether a copy ever has the tile at offset `rel` at the first (last) position of the stream."""
    if off_edge.constant is not None:
        return off_edge.constant == 0
    if copy is None:
        return False
    if copy.kind in ("prologue", "drain"):
        return True  # a drain copy has the only tile there may be
    return rel == (copy.low if front else copy.high)

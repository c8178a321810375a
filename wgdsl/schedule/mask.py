"""mask: what of the streamed axis an item has to visit, and where along it each predicate is partial.

In: the domain's predicates and the plan.  Out: a `Trip`: tile range [lo, hi), trip count n, and for each predicate the
positions (in stream order) at which a tile may hold elements on both sides of it. By interval analysis of affine predicates
(`bounds`); any other is partial everywhere between what bounds it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..program.expr import Expr
from ..program.poly import Poly, ceildiv, elements, maximum, minimum
from ..roles.model import Read, Step
from .bounds import Bound, find_bounds, tiles
from .lists import Lists
from .plan import Plan
from .reads import Reading, read_out


@dataclass(frozen=True, kw_only=True)
class Partial:
    """A predicate and the positions [start, stop) at which it must be tested; `stop` None is the end."""

    name: str
    predicate: Expr
    start: Poly
    stop: Poly | None

    @property
    def prefix(self) -> bool:
        return self.start.constant == 0 and self.stop is not None

    @property
    def everywhere(self) -> bool:
        return self.start.constant == 0 and self.stop is None


@dataclass(frozen=True, kw_only=True)
class Trip:
    """lets: integers to bind, in order, before the loop. `n` counts tiles; position p is tile `tile(p)`.

    seen_stop, seen_start: elements of the axis from this one on (before this one) lie outside for every row of the CTA,
    though their tile is visited; None if there are none inside the extent.
    reads: integers that tensors say, to bind before the lets. ended: the predicates end the axis, where the extent does or
    before, or what is behind its end isn't 0. left: how many rows of the item's tile are written, where tensors say that.
    lists: where the tiles are listed: position p has the tile that the list says, and `cuts` binds, for roles that mask, how
    many rows of the list's first and last tile no row of the CTA sees.
    first, last: the positions [first, last) at which a role works on tiles; it passes over the others, which are empty for the
    rows of its warpgroup (`skips`).
    """

    axis: str
    descending: bool
    lets: tuple[tuple[str, Poly], ...]
    mask_lets: tuple[tuple[str, Poly], ...]  # needed only by roles that mask
    lo: Poly
    hi: Poly
    n: Poly
    partials: tuple[Partial, ...]
    seen_start: Poly | None
    seen_stop: Poly | None
    first: Poly
    last: Poly
    skips: bool = False
    lists: Lists | None = None
    cuts: tuple[Step, ...] = ()
    reads: tuple[Read, ...] = ()
    ended: bool = False
    left: Poly | None = None

    def tile(self, position: Poly) -> Poly:
        """The tile at a position; along a list, what its entry says once that is read."""
        if self.lists is not None:
            return self.lists.tile(position)
        return self.hi - 1 - position if self.descending else self.lo + position


def make_trip(plan: Plan, domain: Expr) -> Trip:
    """The trip along the streamed axis for elements inside `domain` and the axis' extent."""
    axis, size = plan.axis, plan.tiles[plan.axis]
    reading = read_out(plan, domain)
    bounds, free = find_bounds(plan, reading.domain, reading.ended)
    rest = [Partial(name=name, predicate=p, start=Poly.of(0), stop=None) for name, p in free]
    hi = minimum(*(tiles(b.loosest + size, size) for b in bounds if b.upper))
    lows = [tiles(b.loosest, size) for b in bounds if not b.upper]
    lo = maximum(0, *lows) if lows else Poly.of(0)
    lets = [(f"{axis}.hi", hi)]
    hi_name, lo_name = Poly.of(f"{axis}.hi"), lo
    if lows:
        lets.append((f"{axis}.lo", lo))
        lo_name = Poly.of(f"{axis}.lo")
    if plan.part is not None:
        lo_name, hi_name = _share(plan, lo_name, hi_name, lets)
    lets.append((f"{axis}.n", maximum(0, hi_name - lo_name)))
    n = Poly.of(f"{axis}.n")
    mask_lets: list[tuple[str, Poly]] = []
    starts = [b.loosest for b in bounds if not b.upper]
    shifted = any(is_shifted(h.access, axis) for h in plan.homes.values() if not h.output)
    stops = [b.loosest + 1 for b in bounds if b.upper and (shifted or b.name != "end")]
    partials = [_partial(plan, b, size, lo_name, hi_name, n, mask_lets) for b in bounds if b.exact]
    seen_start = maximum(*starts) if starts else None
    seen_stop = minimum(*stops) if stops else None
    if seen_start is not None:
        mask_lets.append((f"{axis}.seen_from", seen_start))
        seen_start = Poly.of(f"{axis}.seen_from")
    if seen_stop is not None:
        mask_lets.append((f"{axis}.seen_to", seen_stop))
        seen_stop = Poly.of(f"{axis}.seen_to")
    return Trip(
        axis=axis,
        descending=plan.descending,
        lets=tuple(lets),
        mask_lets=tuple(mask_lets),
        lo=lo_name,
        hi=hi_name,
        n=n,
        partials=(*partials, *rest),
        seen_start=seen_start,
        seen_stop=seen_stop,
        first=Poly.of(0),
        last=n,
        reads=reading.reads,
        ended=reading.ended or shifted,
        left=reading.left,
    )


def is_shifted(access: tuple[Poly, ...], axis: str) -> bool:
    """Whether a tensor says where the axis begins: what is behind its end is then another's, and not 0."""
    return any(axis in p.symbols() and any(elements(p)) for p in access)


def _share(plan: Plan, lo: Poly, hi: Poly, lets: list[tuple[str, Poly]]) -> tuple[Poly, Poly]:
    """The tiles of the item's part of the stream: equal shares, rounded up; the last parts may have fewer, or none."""
    share, first, end = (f"{plan.axis}.{x}" for x in ("share", "from", "to"))
    lets.append((share, ceildiv(maximum(0, hi - lo), plan.parts)))
    lets.append((first, lo + Poly.of(plan.part or "") * Poly.of(share)))
    lets.append((end, minimum(hi, Poly.of(first) + Poly.of(share))))
    return Poly.of(first), Poly.of(end)


def live_trip(plan: Plan, trip: Trip, domain: Expr) -> Trip:
    """The trip of a split role that passes over tiles which are empty for the rows of a warpgroup."""
    axis, size = plan.axis, plan.tiles[plan.axis]
    reading = read_out(plan, domain)
    bounds, _ = find_bounds(plan, reading.domain, reading.ended)
    hi = minimum(*(tiles(b.loosest_own + size, size) for b in bounds if b.upper))
    lo = maximum(0, *(tiles(b.loosest_own, size) for b in bounds if not b.upper))
    head, tail = (trip.hi - hi, trip.hi - lo) if plan.descending else (lo - trip.lo, hi - trip.lo)
    head, tail = maximum(0, head), minimum(trip.n, tail)
    some = minimum(1, maximum(0, tail - head)) * _rows_left(plan, reading)
    names = {k: f"{axis}.{k}" for k in ("some", "first", "last")}
    alive = Poly.of(names["some"])
    lets = (
        (names["some"], some),
        (names["first"], trip.n - (trip.n - head) * alive),
        (names["last"], trip.n - (trip.n - tail) * alive),
    )
    ends = {"first": Poly.of(names["first"]), "last": Poly.of(names["last"])}
    return replace(trip, mask_lets=(*trip.mask_lets, *lets), skips=True, **ends)


def _rows_left(plan: Plan, reading: Reading) -> Poly:
    """1 if the warpgroup has a row inside the extent, else 0."""
    role = plan.split_role
    if role is None or role.split is None:
        return Poly.of(1)
    if reading.live is not None:
        return minimum(1, maximum(0, reading.live - Poly.of("wg")))
    if reading.left is not None:
        return minimum(1, maximum(0, reading.left + plan.origin(role.split) - plan.axis_of(role.split).origin))
    first = plan.axis_of(role.split).origin
    return minimum(1, maximum(0, plan.graph.extents[role.split] - first))


def _partial(plan: Plan, b: Bound, size: int, lo: Poly, hi: Poly, n: Poly, lets: list[tuple[str, Poly]]) -> Partial:
    """Positions at which the bound cuts through a tile. Without rows it cuts at most the outermost one."""
    at_front = b.upper == plan.descending
    if not b.rows:
        one = Poly.of(1)
        return Partial(
            name=b.name, predicate=b.predicate, start=Poly.of(0) if at_front else n - 1, stop=one if at_front else None
        )
    if b.upper:
        full = tiles(b.tightest + 1, size)  # tiles below this are full
    else:
        full = tiles(b.tightest + (size - 1), size)  # tiles from this on are full
    cut = hi - full if plan.descending else full - lo
    name = f"{plan.axis}.{b.name}"
    lets.append((name, cut))
    edge = Poly.of(name)
    return Partial(name=b.name, predicate=b.predicate, start=Poly.of(0) if at_front else edge, stop=edge if at_front else None)

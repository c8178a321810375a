"""bounds: between which elements of the streamed axis a domain lies, for the rows of an item and of a warpgroup.

In: the domain's predicates and the plan.  Out: a `Bound` for each predicate that bounds the axis from above or below, and the
predicates that are more than one such bound, which are tested on every tile. A union is bounded where all its parts are; one
of bounds on the same side is such a bound itself. A dim that no index runs over bounds nothing: with as many sizes that loops
hang on, the protocol can't be verified for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..program.expr import Affine, Expr, Logic, conjuncts
from ..program.poly import Atom, Factor, Poly, Symbol, ceildiv, floordiv, maximum, minimum
from ..program.quotients import quotient, settled
from .plan import Plan

MOST_BLOCK = 1024  # elements: sizes up to several blocks are tried when the protocol is verified


@dataclass(frozen=True)
class Side:
    """An element that bounds the axis, on the side that is asked about: the last one inside, or the first."""

    loosest: Poly  # for some row of the CTA
    loosest_own: Poly  # for some row of the warpgroup
    tightest: Poly  # for every row of the warpgroup
    rows: bool  # whether it depends on the row


@dataclass(frozen=True)
class Bound:
    """A predicate that holds up to an element of the axis, or from one on. exact: nowhere else, and everywhere there."""

    name: str
    predicate: Expr
    upper: bool
    side: Side
    exact: bool

    @property
    def loosest(self) -> Poly:
        return self.side.loosest

    @property
    def loosest_own(self) -> Poly:
        return self.side.loosest_own

    @property
    def tightest(self) -> Poly:
        return self.side.tightest

    @property
    def rows(self) -> bool:
        return self.side.rows


@dataclass(frozen=True)
class _Limits:
    """What a predicate lies between. exact: it holds nowhere else, and everywhere between them."""

    lower: Side | None = None
    upper: Side | None = None
    exact: bool = False

    @property
    def sides(self) -> tuple[tuple[bool, Side], ...]:
        return tuple((upper, s) for upper, s in ((False, self.lower), (True, self.upper)) if s is not None)


def tiles(elements: Poly, size: int) -> Poly:
    """Whole tiles in so many elements. What is counted in blocks that are made of tiles, or that tiles are made of, isn't
    divided twice."""
    blocks = {m: c for m, c in elements.terms if len(m) == 1 and isinstance(m[0], Atom) and m[0].op == "floordiv"}
    whole = Poly(tuple((m, c // size) for m, c in blocks.items() if c % size == 0))
    rest = Poly(tuple((m, c) for m, c in elements.terms if m not in blocks or c % size))
    ((counted, block), *others) = [t for t in rest.terms if t[0]] or [((), 1)]
    if others or counted not in blocks or block <= 1 or size % block:
        return whole + floordiv(rest, size)
    assert isinstance(counted[0], Atom)
    (x, c), past = counted[0].args, rest.number // block
    return whole + floordiv(x + c * past, c * (size // block))


def find_bounds(plan: Plan, domain: Expr, ended: bool = False) -> tuple[list[Bound], list[tuple[str, Expr]]]:
    """The end of the axis and what the domain's predicates say; and, by name, the predicates that are no such bound alone.
    ended: the predicates end the axis, where the extent does or before."""
    extent = Affine(poly=plan.graph.extents[plan.axis] - 1 - Poly.of(plan.axis))
    bounds: list[Bound] = []
    free: list[tuple[str, Expr]] = []
    named = ((f"where{k or ''}", p) for k, p in enumerate(conjuncts(domain)))
    for name, p in (*(() if ended else (("end", extent),)), *named):
        p = _unfloored(p, plan.axis)
        found = _limits(plan, p)
        exact = found.exact and len(found.sides) == 1
        bounds += [Bound(name, p, upper, side, exact) for upper, side in found.sides]
        free += [] if exact else [(name, p)]
    return bounds, free


def _unfloored(p: Expr, axis: str) -> Expr:
    """The same without a quotient of the axis: `j / c <= t` is `j <= c * t + c - 1`, and `j / c >= t` is `j >= c * t`."""
    if isinstance(p, Logic):
        return p.map_children(lambda a: _unfloored(a, axis))
    if not isinstance(p, Affine) or p.poly.coefficient(axis) is not None:
        return p
    inside = [(m, c) for m, c in p.poly.terms if axis in Poly(((m, 1),)).symbols()]
    (factors, q), *others = inside
    if others or len(factors) != 1 or not isinstance(a := factors[0], Atom) or a.op != "floordiv":
        return p
    x, c = a.args
    if c.constant is None or c.constant <= 0:
        return p
    rest = p.poly.without([axis])
    poly = c * floordiv(rest, -q) + c - 1 - x if q < 0 else x - c * ceildiv(-rest, q)
    return _unfloored(Affine(poly=poly), axis)


def _limits(plan: Plan, p: Expr) -> _Limits:
    if isinstance(p, Affine):
        return _affine(plan, p)
    if not isinstance(p, Logic) or p.op == "not":
        return _Limits()
    parts = [_limits(plan, a) for a in p.args]
    exact = all(a.exact for a in parts)
    if p.op == "and":
        lower, upper = (a.lower for a in parts), (a.upper for a in parts)
        return _Limits(_joined(maximum, [*filter(None, lower)]), _joined(minimum, [*filter(None, upper)]), exact)
    sides = {tuple(upper for upper, _ in a.sides) for a in parts}
    return _Limits(
        _joined(minimum, [a.lower for a in parts]),
        _joined(maximum, [a.upper for a in parts]),
        exact and len(sides) == 1 and len(min(sides)) == 1,
    )


def _joined(pick: Callable[..., Poly], sides: Sequence[Side | None]) -> Side | None:
    """The outermost or innermost of several; none if one is none."""
    given = [s for s in sides if s is not None]
    if not given or len(given) < len(sides):
        return None
    loosest, own, tightest = (pick(*(getattr(s, f) for s in given)) for f in ("loosest", "loosest_own", "tightest"))
    return Side(loosest, own, tightest, any(s.rows for s in given))


def _affine(plan: Plan, p: Affine) -> _Limits:
    """j <= rest // q or j >= ceil(-rest / q) for a predicate q*j + rest >= 0 at both ends of the box."""
    c = p.poly.coefficient(plan.axis)
    if c is None or not c.constant or p.poly.symbols() & _parameters(plan) or _largest_block(p.poly) > MOST_BLOCK:
        return _Limits()
    rest, exact = _in_blocks(p.poly.without([plan.axis]), plan.tiles[plan.axis])
    highest, _ = _extremes(plan, rest, whole=True)
    own, lowest = _extremes(plan, rest, whole=False)
    if highest is None or lowest is None or own is None:
        return _Limits()
    rows = highest != lowest
    if c.constant < 0:
        ends = [floordiv(x, -c.constant) for x in (highest, own, lowest)]
        return _Limits(upper=Side(ends[0], ends[1], ends[2], rows), exact=exact)
    ends = [ceildiv(-x, c.constant) for x in (highest, own, lowest)]
    if any(_rises(rest, s) for s in rest.symbols() & set(plan.graph.extents) if plan.is_split(s)):
        ends[2] = maximum(ends[2], ends[0])  # a warpgroup past the last row is none that sees everything: others clear
    return _Limits(lower=Side(ends[0], ends[1], ends[2], rows), exact=exact)


def _largest_block(p: Poly) -> int:
    """Of those that a sum counts."""
    quotients = (f for m, _ in p.terms for f in m if isinstance(f, Atom) and f.op == "floordiv")
    return max((f.args[1].constant or 0 for f in quotients), default=0)


def _parameters(plan: Plan) -> frozenset[str]:
    """Dims that are under no index."""
    return frozenset(plan.graph.dims).difference(plan.graph.fixed, *(p.symbols() for p in plan.graph.extents.values()))


def _in_blocks(rest: Poly, size: int) -> tuple[Poly, bool]:
    """The largest that a sum can be where it counts blocks that don't fit the tiles, and whether it is that sum: the end of
    such a block is no end of a tile, and what lies within a block of it bounds the axis as well."""
    out, exact = Poly(), True
    for factors, c in rest.terms:
        term = Poly(((factors, c),))
        f = factors[0] if len(factors) == 1 else None
        block = f.args[1].constant if isinstance(f, Atom) and f.op == "floordiv" else None
        if isinstance(f, Atom) and block and c % block == 0 and size % block and block % size:
            x, exact = f.args[0], False
            term = c // block * (x if c > 0 else x - (block - 1))
        out = out + term
    return out, exact


def _extremes(plan: Plan, rest: Poly, whole: bool) -> tuple[Poly | None, Poly | None]:
    """(largest, smallest) of a polynomial over the rows of the CTA's tile (`whole`) or of the warpgroup's share."""
    high: dict[str, Poly] = {}
    low: dict[str, Poly] = {}
    # What is read stands beside places within the tile: with the end of the rows there too, each of both would be a size more.
    read = rest.symbols() - plan.graph.extents.keys() - set(plan.graph.dims)
    fused = rest.symbols() & plan.graph.turns.keys()
    for s in rest.symbols() & set(plan.graph.extents):
        rises, ends = _rises(rest, s), _range(plan, s, whole, clipped=not read)
        if rises is None and s in fused and len(rest.symbols() & set(plan.graph.extents)) == 1:
            return _between(rest, s, ends)
        if rises is None:
            return None, None
        first, last = ends
        high[s], low[s] = (last, first) if rises else (first, last)
    highest, lowest = rest.substitute(high), rest.substitute(low)
    return (settled(highest), settled(lowest)) if fused else (highest, lowest)


def _between(p: Poly, index: str, ends: tuple[Poly, Poly]) -> tuple[Poly | None, Poly | None]:
    """(largest, smallest) of a sum where an index lies between two elements, term by term: no less than the largest that it
    takes, and no more than the smallest."""
    high = low = p.without([index])
    for factors, c in (p - high).terms:
        found = _part_between(factors[0], index, ends) if len(factors) == 1 else None
        if found is None:
            return None, None
        least, most = found
        high, low = (high + c * most, low + c * least) if c > 0 else (high + c * least, low + c * most)
    return settled(high), settled(low)


def _part_between(f: Factor, index: str, ends: tuple[Poly, Poly]) -> tuple[Poly, Poly] | None:
    """(smallest, largest) of an index, of its quotient or of its remainder."""
    if isinstance(f, Symbol):
        return ends
    by, (high, low) = f.args[-1].constant, _between(f.args[0], index, ends)
    if f.op not in ("floordiv", "mod") or by is None or by <= 0 or high is None or low is None:
        return None
    first, last = quotient(low, by), quotient(high, by)
    if f.op == "floordiv":
        return first, last
    return maximum(0, low - by * last), minimum(by - 1, high - by * first)  # within one turn what is left, else anything


def _rises(p: Poly, index: str) -> bool | None:
    """Whether a polynomial grows with an index, or falls; None if neither is known. It holds the index."""
    found = set()
    for factors, c in p.terms:
        holding = [f for f in factors if index in Poly((((f,), 1),)).symbols()]
        if not holding:
            continue
        if len(factors) != 1:
            return None
        f = factors[0]
        rises = True if isinstance(f, Symbol) else _atom_rises(f, index)
        if rises is None:
            return None
        found.add(rises == (c > 0))
    return found.pop() if len(found) == 1 else None


def _atom_rises(a: Atom, index: str) -> bool | None:
    if a.op == "mod" or (a.op == "floordiv" and (a.args[1].constant or 0) <= 0):
        return None
    found = {_rises(x, index) for x in a.args if index in x.symbols()}
    return found.pop() if len(found) == 1 else None


def _range(plan: Plan, index: str, whole: bool, clipped: bool) -> tuple[Poly, Poly]:
    """First and last element of the item's tile along an index; clipped: that exists."""
    origin, size = plan.origin(index), plan.rows(index) if index in plan.grid else plan.size(index)
    if size == 1:
        return origin, origin
    if not whole and plan.is_split(index):
        origin, size = plan.axis_of(index).origin, plan.used(index)
    end = origin + size
    return origin, (minimum(end, plan.graph.extents[index]) if clipped else end) - 1

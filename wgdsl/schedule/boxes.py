"""boxes: where the rows of a tile lie in a tensor, dimension by dimension of a tensor map.

In: an access map, the index of the rows, and how many rows a box has.  Out: `Side`s, fastest first. Where an element says which
page rows lie on, as in `page[b, m / 64]` beside `m % 64`, a tile lies on one page. An index that stands alone
at an axis has one. One that stands there as `m % 8`, and as `m / 8` at another axis, has two: 64 rows are a box of 8 by 8. Rows
are taken in whole turns of the faster part, or lie within one turn of it, so that a box is the same wherever it starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..program.poly import Atom, Poly, Symbol, elements, floordiv, mod
from ..roles.model import MapDim


@dataclass(frozen=True, kw_only=True)
class Digit:
    """`(index / weight) % extent` at an axis, beside `rest`; the slowest has no extent."""

    axis: int
    weight: int
    extent: int | None
    rest: Poly

    def at(self, origin: Poly) -> Poly:
        """Its value at a place of the index."""
        value = floordiv(origin, self.weight)
        return value if self.extent is None else mod(value, self.extent)


@dataclass(frozen=True, kw_only=True)
class Side:
    """A digit's side of a box. whole: a box holds all its values, so that it begins with 0. turn: past how many values it has
    to be clipped although the axis goes on; a further dimension of the map steps over those."""

    digit: Digit
    box: int
    whole: bool = False
    turn: int | None = None

    def dims(self, shape: Sequence[Poly]) -> tuple[MapDim, ...]:
        axis = self.digit.axis
        if self.turn is None:
            return (MapDim(axis=axis, extent=shape[axis]),)
        return MapDim(axis=axis, extent=Poly.of(self.turn)), MapDim(
            axis=axis, extent=floordiv(shape[axis], self.turn), factor=self.turn
        )

    @property
    def boxes(self) -> tuple[int, ...]:
        return (self.box,) if self.turn is None else (self.box, 1)

    def coords(self, origin: Poly) -> tuple[Poly, ...]:
        """Of the box whose first row is at a place of the index."""
        start = Poly() if self.whole else self.digit.at(origin)
        if self.turn is None:
            return (self.digit.rest + start,)
        return start, floordiv(self.digit.rest, self.turn)


def sides(
    access: Sequence[Poly], shape: Sequence[Poly], index: str, extent: Poly, rows: int, tile: int
) -> tuple[Side, ...] | None:
    """The sides of boxes of so many rows along an index, of which tiles have `tile`; None if they aren't the same wherever a
    box starts, or if one at the end would reach what isn't the tile's."""
    if any(paged(p, index) for p in access):
        return _on_page(access, index, rows, tile)
    digits = _digits(access, index)
    if digits is None:
        return None
    *faster, slowest = digits
    out: list[Side] = []
    left = rows
    for d in faster:
        assert d.extent is not None, "only the slowest has none"
        if left % d.extent and d.extent % left:
            return None
        whole = left % d.extent == 0
        out.append(Side(digit=d, box=d.extent if whole else left, whole=whole))
        left = left // d.extent if whole else 1
    whole = extent.constant is not None and extent.constant % tile == 0
    last = _last(slowest, left, shape[slowest.axis], floordiv(extent, slowest.weight), whole)
    return None if last is None else (*out, last)


def _on_page(access: Sequence[Poly], index: str, rows: int, tile: int) -> tuple[Side, ...] | None:
    """The side of boxes on one page each: what stands beside the page is the place on it."""
    beside = [_digit(k, p, index) for k, p in enumerate(access) if index in p.symbols() and not paged(p, index)]
    digit = beside[0] if len(beside) == 1 else None
    if (
        digit is None
        or digit.weight != 1
        or digit.extent is None
        or digit.extent % tile
        or not on_one_page(access, index, tile)
    ):
        return None
    return (Side(digit=digit, box=rows),)


def on_one_page(access: Sequence[Poly], index: str, tile: int) -> bool:
    """Whether elements say on which page rows lie, the same one for all rows of a tile."""
    args = [x for p in access for a in elements(p) for x in a.args if index in x.symbols()]
    return bool(args) and all(_by_pages(x, index, tile) for x in args)


def _by_pages(p: Poly, index: str, tile: int) -> bool:
    """Whether a sum has an index by its quotient alone, the same for all of a tile."""
    inside = [m for m, _ in p.terms if index in Poly(((m, 1),)).symbols()]
    if len(inside) != 1 or len(inside[0]) != 1 or not isinstance(f := inside[0][0], Atom) or f.op != "floordiv":
        return False
    size = f.args[1].constant
    return f.args[0] == Poly.of(index) and bool(size) and size % tile == 0


def paged(p: Poly, index: str) -> bool:
    """Whether an element says the place at an axis by an index."""
    return any(index in x.symbols() for a in elements(p) for x in a.args)


def _last(d: Digit, box: int, length: Poly, values: Poly, whole: bool) -> Side | None:
    """The side of the slowest digit: all tiles are whole, or a box is clipped where the digit's values end. Where an element
    says the place nothing clips it: what is behind the end is cleared before it counts, and only whole tiles are stored."""
    if whole or any(elements(d.rest)) or (d.rest == Poly() and (d.weight == 1 or length == values)):
        return Side(digit=d, box=box)
    turn = values.constant
    if not turn or not d.rest.divisible_by(turn) or not length.divisible_by(turn):
        return None
    return Side(digit=d, box=box, turn=turn)


def _digits(access: Sequence[Poly], index: str) -> list[Digit] | None:
    """The parts of an index, fastest first; None unless each begins where the last one ends, and all together are the index."""
    found = [_digit(k, p, index) for k, p in enumerate(access) if index in p.symbols()]
    digits = sorted((d for d in found if d is not None), key=lambda d: d.weight)
    ends = [None if d.extent is None else d.weight * d.extent for d in digits]
    return digits if len(digits) == len(found) and [1, *ends] == [*(d.weight for d in digits), None] else None


def _digit(axis: int, p: Poly, index: str) -> Digit | None:
    rest = p.without([index])
    part = _part(p - rest)
    return None if part is None else Digit(axis=axis, weight=part[0], extent=part[1], rest=rest)


def _part(p: Poly) -> tuple[int, int | None] | None:
    """(weight, extent) of an index, or of a quotient or a remainder of it by a plain number."""
    f = _factor(p)
    if f is None or isinstance(f, Symbol):
        return None if f is None else (1, None)
    by = f.args[-1].constant
    inner = _part(f.args[0]) if f.op in ("floordiv", "mod") and by is not None and by > 0 else None
    if inner is None or by is None or (inner[1] is not None and inner[1] % by):
        return None
    weight, extent = inner
    return (weight, by) if f.op == "mod" else (weight * by, None if extent is None else extent // by)


def _factor(p: Poly) -> Symbol | Atom | None:
    """What a sum is, if it is one factor."""
    return p.terms[0][0][0] if len(p.terms) == 1 and p.terms[0][1] == 1 and len(p.terms[0][0]) == 1 else None

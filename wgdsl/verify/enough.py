"""enough: along which axes of a grid some of the items stand for all.

In: the integers that steer the roles, with what is bound, and an axis of tiles.  Out: which of its items are to be looked at.
The first ones are enough where nothing changes when the tile's first element and the dim move together: item t of M elements
then is item 0 of M - t. The last ones are enough where the dim only clips the tile: any other item is the last of fewer
elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from ..program.poly import Atom, Factor, Poly, Symbol, ceildiv
from ..roles import model as m

Items = Literal["all", "first", "last"]


def enough(
    axis: m.GridAxis, first: str, steers: Sequence[Poly], lets: Mapping[str, Sequence[Poly]], most: Mapping[str, int]
) -> Items:
    """`first`: what the first element of a tile is called. lets: the values under each name that something steering reads.
    most: the largest value of symbols that count warpgroups, from 0."""
    dims = axis.blocks.symbols()
    dim = next(iter(dims), "")
    polys = [*steers, *(p for values in lets.values() for p in values)]
    if len(dims) != 1 or axis.blocks != ceildiv(Poly.of(dim), axis.tile) or any(m.NEXT + first in p.symbols() for p in polys):
        return "all"
    if all(_moved(p, {first, dim}, lets, frozenset()) == 0 for p in steers):
        return "first"
    return "last" if all(_clips(p, dim, first, axis.tile, most) for p in polys) else "all"


def _moved(p: Poly, together: set[str], lets: Mapping[str, Sequence[Poly]], seen: frozenset[str]) -> int | None:
    """By how much an integer grows when each of the symbols grows by 1; None if that isn't always the same."""

    def factor(f: Factor) -> int | None:
        if isinstance(f, Symbol):
            if f.name in together or f.name not in lets or f.name in seen:
                return int(f.name in together)
            return _same(_moved(v, together, lets, seen | {f.name}) for v in lets[f.name])
        moves = _same(_moved(a, together, lets, seen) for a in f.args)
        return moves if f.op in ("min", "max") or moves == 0 else None

    total = 0
    for monomial, c in p.terms:
        moves = [factor(f) for f in monomial]
        if len(moves) == 1 and moves[0] is not None:
            total += c * moves[0]
        elif any(n != 0 for n in moves):
            return None
    return total


def _same(moves: Iterable[int | None]) -> int | None:
    found = set(moves)
    return found.pop() if len(found) == 1 else None


def _clips(p: Poly, dim: str, first: str, tile: int, most: Mapping[str, int]) -> bool:
    """Whether a dim stands nowhere but beside an element that lies in the tile, or just behind it, as the smaller of them."""
    for f in (f for monomial, _ in p.terms for f in monomial):
        if isinstance(f, Symbol):
            if f.name == dim:
                return False
            continue
        rest = [a for a in f.args if a.bare != dim]
        if f.op != "min" or len(rest) == len(f.args) or not any(_inside(a - Poly.of(first), tile, most) for a in rest):
            rest = list(f.args)
        if not all(_clips(a, dim, first, tile, most) for a in rest):
            return False
    return True


def _inside(offset: Poly, tile: int, most: Mapping[str, int]) -> bool:
    if not offset.symbols() <= most.keys() or any(isinstance(f, Atom) for f in _factors(offset)):
        return False
    ends = [offset.evaluate(dict.fromkeys(most, 0)), offset.evaluate(most)]
    return min(ends) >= 0 and max(ends) <= tile


def _factors(p: Poly) -> Iterator[Factor]:
    return (f for monomial, _ in p.terms for f in monomial)

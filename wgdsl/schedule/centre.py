"""centre: exponents around a maximum that rarely moves, with what hangs on the maximum alone kept while it stays.

In: an expression of a tile node, and the state.  Out: its one `(x - r) * c`, r the state and c the same for the whole tile, as
parts: the lowering makes `x * c - r * c` of it, one instruction an element, and computes `r * c` where r moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..program.expr import (
    Apply,
    Cmp,
    Expr,
    Load,
    Reg,
    Select,
    apply,
    conjunction,
    const,
    disjunction,
    indices_of,
    loads,
    rewrite,
    walk,
)
from ..roles.model import FAR


@dataclass(frozen=True, kw_only=True)
class Centred:
    """`(x - r) * c`: the whole and its parts but r."""

    whole: Expr
    x: Expr
    c: Expr

    def around(self, body: Expr, x: Expr, offset: Expr) -> Expr:
        """The expression with `x * c - offset` in its place."""
        scaled = apply("sub", apply("mul", x, self.c), offset)
        return rewrite(body, lambda e: scaled if e == self.whole else None)


def centred(body: Expr, state: str, varying: frozenset[str]) -> Centred | None:
    """The one place at which an expression reads a state, if that is `(x - r) * c`. varying: the indices of a tile."""
    if sum(x.tensor == state for x in loads(body)) != 1:
        return None
    return next((c for e in walk(body) if (c := _match(e, state, varying)) is not None), None)


def _match(e: Expr, state: str, varying: frozenset[str]) -> Centred | None:
    if not (isinstance(e, Apply) and e.fn == "mul"):
        return None
    for difference, c in (e.args, e.args[::-1]):
        if not (isinstance(difference, Apply) and difference.fn == "sub" and not varying & indices_of(c)):
            continue
        x, r = difference.args
        if isinstance(r, Load) and r.tensor == state:
            return Centred(whole=e, x=x, c=c)
    return None


def distinct(found: Iterable[Centred]) -> tuple[Expr, ...]:
    """The factors, each once."""
    return tuple(dict.fromkeys(f.c for f in found))


def near(r: Expr, c: Expr) -> Expr:
    """Whether the rounding of r * c is small beside a power of two."""
    return Cmp(op="le", left=apply("abs", apply("mul", r, c)), right=const(FAR))


def offset(r: Expr, c: Expr) -> Expr:
    """What is subtracted behind the product: r * c, or nothing where that is large: then r is, before it."""
    return Select(cond=near(r, c), then=apply("mul", r, c), other=const(0.0))


def base(r: str, offset: str) -> Expr:
    """What is subtracted before the product: nothing, or r where nothing is behind it. That is exact for what lies close."""
    zero = const(0.0)
    return Select(cond=Cmp(op="eq", left=Reg(name=offset), right=zero), then=Reg(name=r), other=zero)


def far(r: str, offsets: Iterable[str]) -> Expr | None:
    """Whether a tile has to be moved by a `base`, which only happens where the state moves. None if there is no offset."""
    nothing = [Cmp(op="eq", left=Reg(name=o), right=const(0.0)) for o in offsets]
    return conjunction(disjunction(*nothing), Cmp(op="ne", left=Reg(name=r), right=const(0.0))) if nothing else None

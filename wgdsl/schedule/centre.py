"""centre: exponents around a maximum that rarely moves, with what hangs on the maximum alone kept while it stays.

In: an expression of a tile node, and the state.  Out: its one `(x - r) * c`, r the state and c the same for the whole tile, as
parts: the lowering makes `x * c - r * c` of it, one instruction an element, and computes `r * c` where r moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..program.expr import (
    Apply,
    Cmp,
    Const,
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
    """`(x - r) * c`: the whole and its parts but r. raised: the power of two by which the exponential is to be larger."""

    whole: Expr
    x: Expr
    c: Expr
    raised: int = 0

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


def distinct(found: Iterable[Centred]) -> tuple[tuple[Expr, int], ...]:
    """The factors, and how much larger the exponential is to be, each once."""
    return tuple(dict.fromkeys((f.c, f.raised) for f in found))


def near(r: Expr, c: Expr) -> Expr:
    """Whether the rounding of r * c is small beside a power of two."""
    return Cmp(op="le", left=apply("abs", apply("mul", r, c)), right=const(FAR))


def offset(r: Expr, c: Expr, raised: int) -> Expr:
    """What is subtracted behind the product: r * c, or nothing where that is large: then r is, before it. raised: the power of
    two by which the exponential is larger, of which the offset is less by so much."""
    behind = apply("mul", r, c)
    if raised:
        behind = apply("sub", behind, const(float(raised)))
    return Select(cond=near(r, c), then=behind, other=nothing(raised))


def nothing(raised: int) -> Const:
    """The offset that leaves all of r to what is subtracted before the product."""
    return const(-float(raised) if raised else 0.0)


def base(r: str, offset: str, raised: int) -> Expr:
    """What is subtracted before the product: nothing, or r where nothing is behind it. That is exact for what lies close."""
    whole = Cmp(op="eq", left=Reg(name=offset), right=nothing(raised))
    return Select(cond=whole, then=Reg(name=r), other=const(0.0))


def far(r: str, offsets: Mapping[str, int]) -> Expr | None:
    """Whether a tile has to be moved by a `base`, which only happens where the state moves. None if there is no offset.
    offsets: and by how much each is less."""
    whole = [Cmp(op="eq", left=Reg(name=o), right=nothing(raised)) for o, raised in offsets.items()]
    return conjunction(disjunction(*whole), Cmp(op="ne", left=Reg(name=r), right=const(0.0))) if whole else None

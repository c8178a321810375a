"""Lowerings of joined items: a loop that learns of each item in the one before it, which may have begun it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from ..program.expr import Expr, indices_of
from ..program.poly import Poly
from ..roles.model import NEXT, Begun, Items, NextItem
from .context import RoleContext, grid_symbol
from .control import ITEMS, each_item, set_back
from .decode import decode
from .lowering import lowers


def joined(ctx: RoleContext, step: Items, total: str) -> None:
    """The loop: `item` is this one's number. It moves on to the next one's, and the indices with it, so that each item's are
    computed once."""
    told = step.source == "work"
    if not told:
        ctx.out.line(total)
    ctx.source = step.source
    ctx.out.line("int item = blockIdx.x;")
    begun = ctx.bind("item.begun", True, Poly.of(0), Poly.of(1))
    ctx.out.declare(begun, f"int {begun} = 0;  // whether the item before has begun this one")
    decode(ctx, ctx.kernel.grid, ctx.item_counts, kind="int")
    used = frozenset(_symbols(step.body))
    with each_item(ctx, step, "while (item >= 0)" if told else "while (item < total)"):
        ctx.ahead = ctx.names().fresh("next")
        ctx.steps(step.body)
        ctx.out.line(f"item = {ctx.ahead};")
        for symbol in (s for s in map(grid_symbol, ctx.kernel.grid.axes) if s in used):
            ctx.out.line(f"{ctx.scope.get('int', symbol)} = {ctx.scope.get('int', NEXT + symbol)};")
    if step.source == "counter":
        set_back(ctx)


ITEMS["joined"] = joined


def _symbols(x: object) -> Iterator[str]:
    """The integers that steps mention."""
    if isinstance(x, Poly):
        yield from x.symbols()
    elif isinstance(x, Expr):
        yield from indices_of(x)
    elif isinstance(x, tuple):
        for y in x:
            yield from _symbols(y)
    elif is_dataclass(x):
        for f in fields(x):
            if f.name != "span":
                yield from _symbols(getattr(x, f.name))


@lowers(NextItem)
def next_item(ctx: RoleContext, step: NextItem) -> None:
    if ctx.source == "stride":
        ctx.out.line(f"const int {ctx.ahead} = item + gridDim.x;")
    follows = ctx.bind("item.follows", True, Poly.of(0), Poly.of(1))
    ctx.out.define("const int", follows, f"{ctx.ahead} >= 0" if ctx.source == "work" else f"{ctx.ahead} < total")
    seen = ctx.names().fresh("seen")
    ctx.out.define("const int", seen, f"{follows} ? {ctx.ahead} : item")
    decode(ctx, ctx.kernel.grid, ctx.item_counts, seen, NEXT)


@lowers(Begun)
def begun(ctx: RoleContext, step: Begun) -> None:
    ctx.out.line(f"{ctx.scope.get('int', 'item.begun')} = {ctx.text(step.value)};")

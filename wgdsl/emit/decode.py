"""decode: the grid's indices from the number of a work item.

A division by what the kernel has a parameter of kind `divisor` for is a multiplication. Item numbers are not negative, so `/`
floors.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..program.poly import Poly
from ..roles.items import Sections, blocks, sections
from ..roles.model import Grid, GridAxis
from .context import RoleContext, grid_symbol
from .integers import PRIMARY
from .writer import bare


def product(counts: Iterable[str]) -> str:
    return " * ".join(c for c in counts if c != "1") or "1"


def decode(
    ctx: RoleContext, grid: Grid, counts: dict[str, str], item: str = "item", prefix: str = "", kind: str = "const int"
) -> None:
    """Bind the grid indices, under names with a prefix. counts: what the text calls the numbers of blocks."""
    split = _Split(ctx, {a.index: a for a in grid.axes}, counts, prefix, kind)
    order, cut = grid.order, sections(grid)
    if order is None:
        split.bind(item, tuple(counts))
        return
    if cut is not None:
        rows = product(counts[i] for i in order.outer)
        at, first, wide, quotient = _in_section(ctx, cut, item, rows)
        split.bind(quotient, order.outer, order.reversed)
        split.bind(f"{first} + {at} - {quotient} * {wide}", order.inner)
        return
    wide, every = product(counts[i] for i in order.inner), blocks(grid, order.inner)
    quotient = _named(ctx, "outer", _divided(ctx, item, every, f"({wide})" if " " in wide else wide))
    split.bind(quotient, order.outer, order.reversed)
    split.bind(f"{item} - {quotient} * {wide}", order.inner)


def _in_section(ctx: RoleContext, cut: Sections, item: str, rows: str) -> tuple[str, str, str, str]:
    """Names: the place in the item's section, the first combination there, how many there are, the place over that number."""
    sized = [ctx.divisor(p) for p in (cut.width, cut.first)]
    width, start = (f"{d}.value" if d else ctx.text(p, PRIMARY) for p, d in zip((cut.width, cut.first), sized, strict=True))
    missing = _named(ctx, "missing", f"{width} - {start}")
    skipped = _named(ctx, "skipped", f"{missing} * {rows}")
    every = ctx.divisor(cut.items)
    items = f"{every}.value" if every else f"({width} * {rows})"
    whole = _named(ctx, "whole", f"{item} + {skipped}")
    nth = _named(ctx, "nth", _divided(ctx, whole, cut.items, items))
    # by maxima: where it is chosen, the assembler takes what follows for different in each lane
    at = _named(ctx, "place", f"{whole} - max({nth} * {items}, {skipped})")
    first = _named(ctx, "first", f"max({nth} * {width}, {missing}) - {missing}")
    if all(sized):
        wide = ctx.names().fresh("wide")
        ctx.out.line(f"const Divisor {wide} = {nth} == 0 ? {sized[1]} : {sized[0]};")
        return at, first, f"{wide}.value", _named(ctx, "outer", f"{ctx.ptx('divided')}({at}, {wide})")
    wide = _named(ctx, "wide", f"{nth} == 0 ? {bare(start)} : {bare(width)}")
    return at, first, wide, _named(ctx, "outer", f"{at} / {wide}")


def _divided(ctx: RoleContext, number: str, by: Poly, plainly: str) -> str:
    """number / by. plainly: what the text calls `by`."""
    name = ctx.divisor(by)
    return f"{ctx.ptx('divided')}({number}, {name})" if name else f"{number} / {plainly}"


def _named(ctx: RoleContext, name: str, value: str) -> str:
    name = ctx.names().fresh(name)
    ctx.out.define("const int", name, value)
    return name


class _Split:
    """Binds the indices of some axes to the blocks of a combined number: the last axis runs fastest."""

    def __init__(self, ctx: RoleContext, axes: dict[str, GridAxis], counts: dict[str, str], prefix: str, kind: str):
        self.ctx, self.axes, self.counts, self.prefix, self.kind = ctx, axes, counts, prefix, kind

    def bind(self, number: str, group: tuple[str, ...], turned: str | None = None) -> None:
        """turned: the axis that runs from its last block to its first."""
        counted = [i for i in group if self.counts[i] != "1"]
        if len(counted) > 1 and " " in number:
            number = _named(self.ctx, "rest", number)
        for index in reversed(group):
            if index not in counted:
                self._bind(index, "0")
                continue
            count, block = self.counts[index], number
            if index != counted[0]:
                number = _named(self.ctx, "rest", _divided(self.ctx, number, self.axes[index].blocks, count))
                block = f"{block} - {number} * {count}"
            back = f"({block})" if " " in block else block
            self._bind(index, f"{count} - 1 - {back}" if index == turned else block)

    def _bind(self, index: str, block: str) -> None:
        axis = self.axes[index]
        name = self.ctx.bind(self.prefix + grid_symbol(axis), True, Poly.of(0), (axis.blocks - 1) * axis.tile)
        if axis.tile != 1 and block != "0":
            block = f"({block}) * {axis.tile}" if " " in block else f"{block} * {axis.tile}"
        self.ctx.out.define(self.kind, name, block)

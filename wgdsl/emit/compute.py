"""Lowering of elementwise maths and row reductions on registers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from itertools import groupby

from ..program.expr import Apply, Const, Expr, Reg, Select, regs, rewrite, walk
from ..roles.model import FAR, CompleteOp, Compute, MapOp, Op, ReduceOp, RoomOp, VoteOp
from ..targets.registers import WARPGROUP
from .context import RoleContext
from .elements import Elements, Rank, Written, float_text, halves_loop
from .lowering import lowers
from .writer import bare


@lowers(Compute)
def compute(ctx: RoleContext, step: Compute) -> None:
    ctx.need_all_threads(step)
    for when, ops in groupby(step.ops, lambda op: getattr(op, "when", None)):
        if when is None:
            _each(ctx, ops)
            continue
        with ctx.block(f"if ({ctx.value(when)[1]})"):
            _each(ctx, ops)


def _each(ctx: RoleContext, ops: Iterable[Op]) -> None:
    for op in ops:
        _LOWER[type(op)](ctx, op)


def _title(op: Op) -> str:
    if isinstance(op, MapOp):
        return f"{op.dst} = {op.expr}"
    if isinstance(op, CompleteOp):
        return f"{op.value} = {op.op} over the lanes of a row"
    if isinstance(op, RoomOp):
        return f"{op.dst} = how far below {op.total}, by up to 2^{op.limit:g}, one summand stays"
    if isinstance(op, VoteOp):
        return f"{op.dst} = {op.cond} in some row of the warp"
    start = f"{op.start}, " if op.start is not None else ""
    return f"{op.dst} = {op.op}({start}{op.src} over {op.cols.index}){' of this lane' if op.lanes == 'partial' else ''}"


def _map(ctx: RoleContext, op: MapOp) -> None:
    target, name = ctx.value(op.dst)
    ctx.out.comment(_title(op))
    with ctx.scope.temporaries() as names:
        elements = Elements(ctx, op.rows, op.cols, names)
        if target.kind == "row":
            text = bare(elements.text(op.expr, Rank.ROW))
            _enclosed(ctx, elements, [f"{name}[half] = {text};"], [])
            return
        by = _rarely_moved(elements, op)
        if by is not None:
            _moved(ctx, op, elements, by)
            return
        pattern = _centred(elements, op)
        if pattern is not None:
            _fused(ctx, op, elements, pattern)
            return
        text = bare(elements.text(op.expr, Rank.TILE))
        _enclosed(ctx, elements, [], [f"{name}[at] = {text};"], target.length)


def _enclosed(ctx: RoleContext, elements: Elements, row: list[str], tile: list[str], count: int = 0) -> None:
    """Braces only where an operation declares something."""
    if not elements.declares:
        elements.emit(row, tile, count)
        return
    with ctx.out.block():
        elements.emit(row, tile, count)


def _reduce(ctx: RoleContext, op: ReduceOp) -> None:
    ctx.out.comment(_title(op))
    target = ctx.value(op.dst)[1]
    columns = op.cols.count
    # what may be counted by each lane: everything if lanes keep shares, and always for max and min
    early = op.start is not None and (op.lanes == "partial" or op.op != "sum")
    with ctx.scope.temporaries() as names, ctx.out.block():
        elements = Elements(ctx, op.rows, op.cols, names)
        start = elements.text(op.start, Rank.ROW) if op.start is not None else ""
        identity = elements.number({"sum": 0.0, "max": -math.inf, "min": math.inf}[op.op])
        elements.half()
        body = f"acc[half] = {_combine(ctx, op.op, 'acc[half]', elements.text(op.src, Rank.TILE))};"
        elements.arrays.append(f"float acc[{ctx.halves}];")
        again = list(elements.row_head)
        elements.emit([f"acc[half] = {bare(start) if early else identity};"], [body], ctx.rows * columns // WARPGROUP)
        result = f"{ctx.ptx(f'quad_{op.op}')}(acc[half])" if op.lanes == "full" else "acc[half]"
        if op.start is not None and not early:
            result = _combine(ctx, op.op, start, result)
            ctx.out.loop(halves_loop(ctx.halves), [*again, f"{target}[half] = {result};"])
            return
        ctx.out.loop(halves_loop(ctx.halves), [f"{target}[half] = {result};"])


def _combine(ctx: RoleContext, op: str, a: str, b: str) -> str:
    return f"{a} + {b}" if op == "sum" else f"{ctx.ptx(f'{op}_nan')}({a}, {b})"


def _complete(ctx: RoleContext, op: CompleteOp) -> None:
    ctx.out.comment(_title(op))
    name = ctx.value(op.value)[1]
    call = ctx.ptx(f"quad_{op.op}")
    ctx.out.loop(halves_loop(ctx.halves), [f"{name}[half] = {call}({name}[half]);"])


def _vote(ctx: RoleContext, op: VoteOp) -> None:
    ctx.out.comment(_title(op))
    name = ctx.value(op.dst)[1]
    with ctx.scope.temporaries() as names, ctx.out.block():
        elements = Elements(ctx, op.rows, None, names)
        text = bare(elements.text(op.cond, Rank.ROW))
        elements.arrays.append(f"bool holds[{ctx.halves}];")
        elements.emit([f"holds[half] = {text};"], [])
        any_row = " || ".join(f"holds[{k}]" for k in range(ctx.halves))
        ctx.out.line(f"{name} = __any_sync(~0u, {any_row});")


def _room(ctx: RoleContext, op: RoomOp) -> None:
    ctx.out.comment(_title(op))
    total, name = ctx.value(op.total)[1], ctx.value(op.dst)[1]
    log = f"{ctx.ptx('log2_approx')}({total}[half] * {float_text(op.weight)})"
    room = f"fmaxf({float_text(-op.limit)}, fminf(0.0f, -{log}))"
    with ctx.scope.temporaries() as names:
        elements = Elements(ctx, op.rows, None, names)
        if op.far is not None:
            room = f"({bare(elements.text(op.far, Rank.ROW))}) ? {elements.number(math.inf)} : {room}"
        _enclosed(ctx, elements, [f"{name}[half] = {room};"], [])


_LOWER = {MapOp: _map, ReduceOp: _reduce, VoteOp: _vote, RoomOp: _room, CompleteOp: _complete}


# x - (r where ..., else 0), in place


def _rarely_moved(elements: Elements, op: MapOp) -> Expr | None:
    """What each row of a tile is less by, if a condition says whether it is anything."""
    e = op.expr
    if not (isinstance(e, Apply) and e.fn == "sub" and e.args[0] == Reg(name=op.dst)):
        return None
    by = e.args[1]
    nothing = isinstance(by, Select) and isinstance(by.other, Const) and by.other.value == 0
    return by if nothing and elements.rank(by) == Rank.ROW else None


def _moved(ctx: RoleContext, op: MapOp, elements: Elements, by: Expr) -> None:
    """Only in the warps that have a row which is moved at all."""
    target, name = ctx.value(op.dst)
    with ctx.out.block():
        less = elements.kept(by, "float", Rank.ROW, Rank.TILE, lambda: bare(elements.text(by, Rank.ROW)), "less")
        elements.emit([], [], target.length)
        array = less.removesuffix("[half]")
        some = " || ".join(f"{array}[{k}] != 0.0f" for k in range(ctx.halves))
        with ctx.out.block(f"if (__any_sync(~0u, {some}))"):
            elements.half()
            elements.emit([], [f"{name}[at] -= {less};"], target.length)


# (x - r) * c


def _centred(elements: Elements, op: MapOp) -> tuple[Expr, Expr, Expr, Expr] | None:
    """(whole, x, r, c) of the one `(x - r) * c` in the expression, if the result's registers can hold x meanwhile."""
    found = [m for e in walk(op.expr) if (m := _match(elements, e)) is not None]
    if len(found) != 1:
        return None
    whole, _, r, c = found[0]
    around = rewrite(op.expr, lambda e: Written(text="") if e == whole else None)
    outside = {elements.ctx.home(name) for name in regs(around) | regs(r) | regs(c)}
    return found[0] if elements.ctx.home(op.dst) not in outside else None


def _match(elements: Elements, e: Expr) -> tuple[Expr, Expr, Expr, Expr] | None:
    if not (isinstance(e, Apply) and e.fn == "mul"):
        return None
    for difference, c in (e.args, e.args[::-1]):
        if not (isinstance(difference, Apply) and difference.fn == "sub"):
            continue
        x, r = difference.args
        if (elements.rank(x), elements.rank(r), elements.rank(c)) == (Rank.TILE, Rank.ROW, Rank.UNIFORM):
            return e, x, r, c
    return None


def _fused(ctx: RoleContext, op: MapOp, elements: Elements, pattern: tuple[Expr, Expr, Expr, Expr]) -> None:
    """`(x - r) * c` as fma(x, c, -(r * c)): one instruction an element instead of two.

    r * c is rounded, to half a unit of its last place. While it is small that error is too (2^-14 at 1024), and every
    element of the row has the same. Where it is large the difference of two large numbers would be lost; then r is
    subtracted from x first, which is exact when they are close, and the offset is 0.
    """
    whole, x, r, c = pattern
    target, name = ctx.value(op.dst)
    with ctx.out.block():
        factor = elements.text(c, Rank.TILE)
        offset = elements.kept(
            whole, "float", Rank.ROW, Rank.TILE, lambda: f"{elements.text(r, Rank.ROW)} * {factor}", "offset"
        )
        centre = elements.text(r, Rank.TILE)
        in_place = isinstance(x, Reg) and ctx.home(x.name) == ctx.home(op.dst)
        elements.tile_head.clear()
        move = [] if in_place else [f"{name}[at] = {bare(elements.text(x, Rank.TILE))};"]
        elements.emit([], move, target.length)
        array = offset.removesuffix("[half]")
        ctx.out.comment("the rounding of a large offset would swamp the difference: then subtract first")
        furthest = reduce(lambda a, b: f"fmaxf({a}, {b})", (f"fabsf({array}[{k}])" for k in range(ctx.halves)))
        with ctx.out.block(f"if (__any_sync(~0u, !({furthest} <= {float_text(FAR)})))"):
            elements.half()
            elements.emit([], [f"{name}[at] -= {centre};"], target.length)
            ctx.out.line(" = ".join([*(f"{array}[{k}]" for k in range(ctx.halves)), "0.0f;"]))
        elements.half()
        scaled = Written(text=f"fmaf({name}[at], {factor}, -{offset})")
        text = bare(elements.text(rewrite(op.expr, lambda e: scaled if e == whole else None), Rank.TILE))
        elements.emit([], [f"{name}[at] = {text};"], target.length)

"""Lowerings of what passes between registers and shared memory, and from registers to global memory by threads."""

from __future__ import annotations

from collections.abc import Callable

from ..diagnostics.model import InternalError
from ..foundation.dtypes import DType
from ..foundation.names import identifier
from ..program.expr import conjunction
from ..program.poly import Poly, maximum, minimum
from ..roles.model import Buffer, ClearRows, CopyOut, ReadShared, StoreGlobal, StoreShared, Transpose
from ..targets.registers import LANES, WARPGROUP, WARPS
from ..targets.sm_90a import HOPPER
from ..targets.swizzle import CHUNK, SWIZZLES
from ..targets.wgmma import BLOCK, M
from .chunks import copy_wide, row_bits
from .context import RoleContext, stride_key
from .control import at_least_zero
from .eight_bits import narrowing
from .elements import Elements, Rank
from .integers import PRODUCT, SUM
from .lowering import lowers
from .writer import bare

TOGETHER = {"sum": "add_global_f32", "max": "max_global_f32", "min": "min_global_f32"}

# Registers and shared memory.


@lowers(StoreShared)
def store_shared(ctx: RoleContext, step: StoreShared) -> None:
    ctx.need_all_threads(step)
    buffer = ctx.kernel.buffer(step.buffer)
    with ctx.block():
        to = _tile(ctx, buffer, step)
        if ctx.target.matrix_stores and buffer.dtype.nbytes == 2 and buffer.cols % 16 == 0 and ctx.rows == M:
            _by_matrices(ctx, buffer, to, ctx.value(step.src)[1])
        else:
            _by_pairs(ctx, buffer, to, ctx.value(step.src)[1])


def _tile(ctx: RoleContext, buffer: Buffer, step: StoreShared | ReadShared | CopyOut | ClearRows | Transpose) -> str:
    """A local name for the address of the tile."""
    name = ctx.names().fresh("tile")
    ctx.out.line(f"const unsigned {name} = {ctx.tile_address(buffer, step.part, step.slot)};")
    return name


def _by_matrices(ctx: RoleContext, buffer: Buffer, tile: str, source: str) -> None:
    """stmatrix.x4: 16 columns at a time. Lanes 0-15 name the warp's 16 rows for the left 8 columns, 16-31 for the right."""
    swizzle, names, out = SWIZZLES[buffer.swizzle], ctx.names(), ctx.out
    line, chunk, start = names.fresh("line"), names.fresh("chunk"), names.fresh("start")
    out.line(f"const int {line} = {ctx.thread()} / 32 * 16 + {ctx.lane()} % 16;  // the row that this lane addresses")
    permuted = f" ^ {row_bits(line, buffer.swizzle)}" if swizzle.mask else ""
    if swizzle.chunks == 1:
        out.line(f"const unsigned {start} = {tile} + {line} * {swizzle.span} + lane / 16 * {buffer.panel_bytes};")
        to = f"{start} + pair * {2 * buffer.panel_bytes}"
    else:
        pairs = swizzle.chunks // 2  # column pairs in a panel
        out.line(f"const unsigned {start} = {tile} + {line} * {swizzle.span};")
        out.line(f"const int {chunk} = lane / 16{permuted};")
        panel = f" + pair / {pairs} * {buffer.panel_bytes}" if buffer.panels > 1 else ""
        # the low bit of the chunk tells left from right, so a pair of columns is an exclusive or away
        inner = f"pair % {pairs} * 2" if buffer.panels > 1 else "pair * 2"
        to = f"{start}{panel} + ({chunk} ^ {inner}) * {CHUNK}" if pairs > 1 else f"{start}{panel} + {chunk} * {CHUNK}"
    pack = ctx.ptx("pack", buffer.dtype.name)
    r = names.fresh("r")
    body = [
        f"unsigned {r}[4];",
        "#pragma unroll",
        f"for (int q = 0; q < 4; ++q) {r}[q] = {pack}({source}[8 * pair + 2 * q], {source}[8 * pair + 2 * q + 1]);",
        f"{ctx.ptx('stmatrix')}({to}, {r});",
    ]
    out.loop(f"for (int pair = 0; pair < {buffer.cols // 16}; ++pair)", body)


def _by_pairs(ctx: RoleContext, buffer: Buffer, tile: str, source: str) -> None:
    """Two adjacent columns at a time."""
    _each_pair(ctx, buffer, tile, lambda to: _store_pair(ctx, buffer, to, f"{source}[2 * pair]", f"{source}[2 * pair + 1]"))


def _each_pair(ctx: RoleContext, buffer: Buffer, tile: str, move: Callable[[str], str]) -> None:
    """A loop over the pairs of adjacent columns that a thread has of a tile, in the order of the accumulators. move: the
    statement for the pair at an address."""
    halves, names = ctx.halves, ctx.names()
    line, column = names.fresh("line"), names.fresh("column")
    body = [
        f"const int {line} = {ctx.fragment_row()} + pair % {halves} * 8, "
        f"{column} = {ctx.fragment_col()} + pair / {halves} * 8;",
        move(f"{tile} + {_offset(ctx, buffer, line, column)}"),
    ]
    ctx.out.loop(f"for (int pair = 0; pair < {buffer.cols // 8 * halves}; ++pair)", body)


def _store_pair(ctx: RoleContext, buffer: Buffer, to: str, a: str, b: str) -> str:
    if buffer.dtype.name == "f32":
        return f"{ctx.ptx('store_shared_f32x2')}({to}, {a}, {b});"
    if buffer.dtype.nbytes == 2:
        return f"{ctx.ptx('store_shared_b32')}({to}, {ctx.ptx('pack', buffer.dtype.name)}({a}, {b}));"
    if buffer.dtype.nbytes == 1:
        return f"{ctx.ptx('store_shared_b16')}({to}, {ctx.ptx('pack_8', buffer.dtype.name)}({a}, {b}));"
    raise InternalError(f"no C++ for a store of {buffer.dtype} elements to shared memory")


EVEN, ODD = 0x6420, 0x7531  # bytes of two registers


@lowers(Transpose, HOPPER)
def transpose(ctx: RoleContext, step: Transpose) -> None:
    """16 bytes of 32 rows at a time. As 8 x 8 matrices of byte pairs, transposed on the way, a lane has of two columns four
    bytes each of rows 2 c, 2 c + 1 and 8 further down: one register of either column, which is a row of the result."""
    ctx.need_all_threads(step)
    to, source = ctx.kernel.buffer(step.buffer), ctx.kernel.buffer(step.origin)
    with ctx.block():
        out, names = ctx.out, ctx.names()
        tile = _tile(ctx, to, step)
        start = names.fresh("start")
        out.line(f"const unsigned {start} = {ctx.tile_address(source, step.origin_part, step.origin_slot)};")
        warp, lane = f"{ctx.thread()} / 32", ctx.lane()
        load, store, pick = ctx.ptx("ldmatrix", True), ctx.ptx("stmatrix"), ctx.ptx("bytes_of")
        blocks = to.rows // BLOCK
        r, t, line, column = (names.fresh(x) for x in ("r", "t", "line", "column"))
        out.unroll()
        with out.block(f"for (int turn = 0; turn < {-(-blocks // WARPS)}; ++turn)"):
            out.line(f"const int block = {warp} + turn * {WARPS};")
            if blocks % WARPS:
                out.line(f"if (block >= {blocks}) break;")
            out.line(f"const int {line} = block * {BLOCK} + {lane} % 8 * 2 + {lane} / 8 % 2, {column} = {lane} / 16 * {BLOCK};")
            out.unroll()
            with out.block(f"for (int k = 0; k < {source.rows // LANES}; ++k)"):
                out.line(f"unsigned {r}[4];")
                further = LANES * SWIZZLES[source.swizzle].span  # whole atoms of the swizzle: outside of it
                at = _offset(ctx, source, lane, f"(block * {BLOCK})")
                out.line(f"{load}({r}, {start} + k * {further} + {at});")
                sides = ", ".join(f"{pick}({r}[{a}], {r}[{a + 1}], 0x{which:x})" for a in (0, 2) for which in (EVEN, ODD))
                out.line(f"const unsigned {t}[4] = {{{sides}}};")
                out.line(f"{store}({tile} + {_offset(ctx, to, line, f'(k * {LANES} + {column})')}, {t});")


@lowers(ReadShared)
def read_shared(ctx: RoleContext, step: ReadShared) -> None:
    """A quad reads 16 bytes in a row, or 32."""
    ctx.need_all_threads(step)
    buffer, (_, to) = ctx.kernel.buffer(step.buffer), ctx.value(step.dst)

    def read(at: str) -> str:
        if buffer.dtype.nbytes == 2:
            return f"{to}[pair] = {ctx.ptx('load_shared_b32')}({at});"
        return f"{ctx.ptx('load_shared_b32x2')}({to}[2 * pair], {to}[2 * pair + 1], {at});"

    with ctx.block():
        _each_pair(ctx, buffer, _tile(ctx, buffer, step), read)


def _offset(ctx: RoleContext, buffer: Buffer, row: str, col: str) -> str:
    """Byte offset of an element in a tile, swizzled."""
    s, n = SWIZZLES[buffer.swizzle], buffer.dtype.nbytes
    wide = buffer.panel_cols
    panel = f"{col} / {wide} * {buffer.panel_bytes} + " if buffer.panels > 1 else ""
    inner = f"{row} * {s.span} + {f'{col} % {wide}' if buffer.panels > 1 else col} * {n}"
    if not s.mask:
        return f"{panel}{inner}"
    return f"{panel}(({inner}) ^ {row_bits(row, buffer.swizzle)} * {CHUNK})"


# To global memory.


def narrowed(ctx: RoleContext, dtype: DType, value: str) -> str:
    """A float as a stored element."""
    if dtype.name == "f32":
        return value
    if dtype.kind == "float":
        return f"{ctx.ptx(narrowing(dtype), dtype.name)}({value})"
    if dtype.name == "i32":
        return f"(int)({value})"
    raise InternalError(f"no C++ for a store of {dtype} elements")


def stored(ctx: RoleContext, dtype: DType, target: str, value: str, add: bool, by: str = "sum") -> str:
    """The statement that stores an element, or brings it together with what is there."""
    if not add:
        return f"{target} = {value};"
    if dtype.name != "f32":
        raise InternalError(f"no C++ to add to {dtype} elements")
    return f"{ctx.ptx(TOGETHER[by])}(&{target}, {value});"


@lowers(StoreGlobal)
def store_global(ctx: RoleContext, step: StoreGlobal) -> None:
    ctx.need_all_threads(step)
    level = Rank.ROW if step.cols is None else Rank.TILE
    axes = [step.rows] if step.cols is None else [step.rows, step.cols]
    dtype = ctx.kernel.tensor(step.tensor).dtype
    ctx.out.comment(f"{step.tensor}[{', '.join(map(str, step.access))}] = {step.value}")
    with ctx.scope.temporaries() as names, ctx.out.block():
        elements = Elements(ctx, step.rows, step.cols, names)
        place = tuple(Poly.of(a.index) for a in axes)
        extents = tuple(ctx.kernel.index_extents[a.index] for a in axes)
        inside = elements.in_range(place, extents if step.limit is None else (step.limit, *extents[1:]))
        target = elements.element(step.tensor, step.access, level)
        text = stored(ctx, dtype, target, narrowed(ctx, dtype, bare(elements.text(step.value, level))), step.add, step.by)
        if inside != conjunction():
            text = f"if ({bare(elements.text(inside, level))}) {text}"
        if step.cols is not None:
            elements.emit([], [text], ctx.rows * step.cols.count // WARPGROUP)
            return
        # one of the 4 lanes that hold a row
        with ctx.out.block(f"if ({ctx.lane()} % 4 == 0)"):
            elements.emit([text], [])


@lowers(CopyOut)
def copy_out(ctx: RoleContext, step: CopyOut) -> None:
    ctx.need_all_threads(step)
    if step.wide:
        return copy_wide(ctx, step)
    buffer = ctx.kernel.buffer(step.buffer)
    load = {1: "load_shared_b8", 2: "load_shared_b16", 4: "load_shared_b32"}[buffer.dtype.nbytes]
    ctx.out.comment(f"{step.tensor}[{', '.join(map(str, step.access))}], element by element")
    with ctx.block():
        tile, names = _tile(ctx, buffer, step), ctx.names()
        line, column = names.fresh("line"), names.fresh("column")
        ints = ctx.ints
        for axis in (step.rows, step.cols):
            name = names.fresh(identifier(f"{axis.index}_at"))
            ints = ints.binding(axis.index, name, ctx.ints.is_natural(axis.origin))
        ctx.out.unroll(4)
        count = buffer.rows * buffer.cols
        with ctx.out.block(f"for (int at = {ctx.thread()}; at < {count}; at += {WARPGROUP})"):
            ctx.out.line(f"const int {line} = at / {buffer.cols}, {column} = at % {buffer.cols};")
            for axis, place in ((step.rows, line), (step.cols, column)):
                ctx.out.line(f"const int {ints.symbols[axis.index]} = {ctx.text(axis.origin, SUM)} + {place};")
            value = f"{ctx.ptx(load)}(from)"
            if buffer.dtype.name == "f32":
                value = f"__uint_as_float({value})"
            extents = [ctx.kernel.index_extents[a.index] for a in (step.rows, step.cols)]
            ends = extents if step.limit is None else [step.limit, *extents[1:]]
            bounds = [
                at_least_zero(ctx, end - 1 - Poly.of(a.index), ints)
                for a, end in zip((step.rows, step.cols), ends, strict=True)
            ]
            pointer = ctx.scope.get("pointer", step.tensor)
            address = " + ".join(
                f"{ints.text(p, PRODUCT)} * {ctx.scope.get('stride', stride_key(step.tensor, k))}"
                for k, p in enumerate(step.access)
            )
            ctx.out.line(f"const unsigned from = {tile} + {_offset(ctx, buffer, line, column)};")
            text = stored(ctx, ctx.kernel.tensor(step.tensor).dtype, f"{pointer}[{address}]", value, step.add)
            ctx.out.line(f"if ({' && '.join(bounds)}) {text}")


@lowers(ClearRows)
def clear_rows(ctx: RoleContext, step: ClearRows) -> None:
    """Chunks are permuted within a row only, so whole rows of every panel are cleared."""
    ctx.need_all_threads(step)
    buffer = ctx.kernel.buffer(step.buffer)
    chunks = SWIZZLES[buffer.swizzle].chunks
    with ctx.block():
        tile, names = _tile(ctx, buffer, step), ctx.names()
        first, end = names.fresh("clear_from"), names.fresh("clear_to")
        ctx.out.line(f"const int {first} = {ctx.text(maximum(step.start, 0), PRODUCT)} * {chunks};")
        ctx.out.line(f"const int {end} = {ctx.text(minimum(step.stop, buffer.rows), PRODUCT)} * {chunks};")
        call = f"{ctx.ptx('clear_shared_16')}({tile} + panel * {buffer.panel_bytes} + at * {CHUNK});"
        ctx.out.unroll(1)
        with ctx.out.block(f"for (int panel = 0; panel < {buffer.panels}; ++panel)"):
            head = f"for (int at = {first} + {ctx.thread()}; at < {end}; at += {WARPGROUP})"
            ctx.out.unroll(1)
            ctx.out.loop(head, [call], unroll=False)

"""What steps on registers mean, and those that move results on: to shared memory, and by threads to global memory."""

from __future__ import annotations

import numpy as np

from ..diagnostics.sim import IllFormed, LaneShares
from ..roles import model as m
from ..targets.registers import WARPGROUP, WARPS
from ..targets.swizzle import CHUNK, SWIZZLES
from ..targets.wgmma import v8, v8_operand
from .agent import Agent
from .elementwise import Scope, column_indices, row_indices, run, tile_columns
from .events import WARP
from .global_stores import claim
from .integers import Integer, value_of
from .meaning import means
from .memory import BAND, Clear
from .registers import QUAD
from .tensors import rounded


@means(m.Compute)
def compute(a: Agent, s: m.Compute) -> None:
    a.need_warp()
    for op in s.ops:
        a.op = op
        run(a, op)
    a.op = None


@means(m.Pack)
def pack(a: Agent, s: m.Pack) -> None:
    a.need_warp()
    dst = a.registers.find(s.dst, "operand").value
    src = a.registers.find(s.src, "tile").value
    if dst.cols != src.cols:
        raise a.fault(IllFormed, why=f"`{s.dst}` has {dst.cols} columns, `{s.src}` {src.cols}")
    values = rounded(a.registers.read(s.src), dst.dtype)
    if dst.dtype.nbytes == 1:
        own = [v8(c, dst.cols) if a.v8 else v8_operand(c) for c in range(dst.cols)]
        values = values[:, np.argsort(own) if a.v8 else own]
    a.registers.write(s.dst, values)


@means(m.Move)
def move(a: Agent, s: m.Move) -> None:
    a.need_warp()
    kind = a.registers.find(s.dst, "tile", "row", "operand").value.kind
    a.registers.write(s.dst, a.registers.content(s.src, kind))


@means(m.Forget)
def forget(a: Agent, s: m.Forget) -> None:
    a.need_warp()
    a.registers.forget(s.value)


@means(m.Zero)
def zero(a: Agent, s: m.Zero) -> None:
    a.need_warp()
    v = a.registers.find(s.value, "tile", "count").value
    a.registers.write(s.value, np.zeros((a.rows, v.cols) if v.kind == "tile" else (1, 1), dtype=np.float32))


@means(m.StoreShared)
def store_shared(a: Agent, s: m.StoreShared) -> None:
    """The warp's own rows."""
    a.need_warp()
    tile = a.tile(s.buffer, s.part, s.slot)
    b = tile.buffer
    values = a.registers.read(s.src)
    if (len(values) * WARPS, values.shape[1]) != (b.rows, b.cols):
        raise a.fault(IllFormed, why=f"`{s.src}` doesn't fit a tile of `{s.buffer}`, {b.rows} x {b.cols}")
    bands = ((1 << a.rows // BAND) - 1) << a.row // BAND
    a.cta.memory.write(a, tile.cells, asynchronous=False, bands=bands)
    tile.data[a.row : a.row + a.rows] = rounded(values, b.dtype)


@means(m.Transpose)
def transpose(a: Agent, s: m.Transpose) -> None:
    """A warp's rows are the n-th 16 of every four times 16."""
    a.need_warp()
    assert a.warp is not None
    tile, source = a.tile(s.buffer, s.part, s.slot), a.tile(s.origin, s.origin_part, s.origin_slot)
    b = tile.buffer
    if (b.rows, b.cols) != source.data.T.shape or b.dtype != source.buffer.dtype:
        raise a.fault(IllFormed, why=f"`{s.buffer}` is no transpose of `{s.origin}`")
    mine = np.arange(b.rows) // BAND % WARPS == a.warp
    if not mine.any():
        return
    a.cta.memory.read(a, source.cells, asynchronous=False)
    bands = sum(1 << k for k in range(b.rows // BAND) if k % WARPS == a.warp)
    a.cta.memory.write(a, tile.cells, asynchronous=False, bands=bands)
    tile.data[mine] = source.data.T[mine][:, [v8_operand(c) for c in range(b.cols)]]


@means(m.ReadShared)
def read_shared(a: Agent, s: m.ReadShared) -> None:
    """The warp's own rows."""
    a.need_warp()
    tile = a.tile(s.buffer, s.part, s.slot)
    a.registers.find(s.dst, "elements")
    a.cta.memory.read(a, tile.cells, asynchronous=False)
    a.registers.write(s.dst, tile.data[a.row : a.row + a.rows].astype(np.float32))


@means(m.CopyOut)
def copy_out(a: Agent, s: m.CopyOut) -> None:
    """Thread t copies the elements t, t + 128, ... of the tile, counted row by row; or chunks of 16 bytes."""
    a.need_warp()
    tile = a.tile(s.buffer, s.part, s.slot)
    a.cta.memory.read(a, tile.cells, asynchronous=False)
    own = shares(tile.buffer, CHUNK // tile.buffer.dtype.nbytes if s.wide else 1, WARPGROUP) == a.warp
    rows = column_indices(s.rows, a.env).T
    _from_threads(a, s, tile.data, own, rows)


def shares(b: m.Buffer, together: int, threads: int) -> np.ndarray:
    """[rows, cols]: by which warp each element of a tile is copied, if threads take so many neighbours at once in turn."""
    pieces = np.arange(b.rows * b.cols // together) % threads // WARP
    return np.repeat(pieces, together).reshape(b.rows, b.cols)


@means(m.StoreGlobal)
def store_global(a: Agent, s: m.StoreGlobal) -> None:
    a.need_warp()
    values = Scope(a, s.rows, s.cols).value(s.value)
    if s.cols is None and values.shape[1] == QUAD:
        raise a.fault(LaneShares, value=s.tensor)
    _from_threads(a, s, values, np.ones((1, 1), dtype=bool), row_indices(s.rows, a))


def _from_threads(a: Agent, s: m.StoreGlobal | m.CopyOut, values: np.ndarray, where: np.ndarray, rows: np.ndarray) -> None:
    """Store where row and column lie inside the extents of their indices, or the row below the limit."""
    env: dict[str, Integer] = {**a.env, s.rows.index: rows}
    where = where & (_inside(a, s.rows, rows) if s.limit is None else rows < a.integer(s.limit))
    if s.cols is not None:
        in_registers = isinstance(s, m.StoreGlobal)
        env[s.cols.index] = cols = tile_columns(s.cols, a) if in_registers else column_indices(s.cols, a.env)
        where = where & _inside(a, s.cols, cols)
    access = tuple(value_of(p, env) for p in s.access)
    claim(a, s.tensor, access, where, clipped=False, add=s.add, by=getattr(s, "by", "sum"))(values)


def _inside(a: Agent, axis: m.Axis, at: np.ndarray) -> np.ndarray:
    extent = a.cta.world.extents.get(axis.index)
    return at >= 0 if extent is None else (at >= 0) & (at < a.integer(extent))


@means(m.ClearRows)
def clear_rows(a: Agent, s: m.ClearRows) -> None:
    """Thread t clears the 16-byte chunks t, t + 128, ... of these rows of each panel, counted row by row."""
    a.need_warp()
    tile = a.tile(s.buffer, s.part, s.slot)
    b = tile.buffer
    start, stop = max(a.integer(s.start), 0), min(a.integer(s.stop), b.rows)
    if start >= stop or a.warp is None:
        return
    a.cta.memory.write(a, tile.cells, asynchronous=False, clear=Clear(start, stop, a.warp))
    chunks = SWIZZLES[b.swizzle].chunks
    own = np.arange((stop - start) * chunks).reshape(-1, chunks) % WARPGROUP // WARP == a.warp
    for c in tile.cells:
        c.data[start:stop][np.repeat(own, b.panel_cols // chunks, axis=1)] = 0

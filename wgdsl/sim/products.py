"""What products mean. Those of a warpgroup are asynchronous: each warp has its own, in groups of its own, which complete in
order. Those of single warps are done at once."""

from __future__ import annotations

import numpy as np

from ..diagnostics.sim import IllFormed, ReadTooEarly, RegisterInFlight
from ..roles import model as m
from ..targets.registers import WARPS
from .agent import Agent
from .flight import Product
from .meaning import means
from .memory import Tile
from .registers import RegisterFile


@means(m.Wgmma)
def wgmma(a: Agent, s: m.Wgmma) -> None:
    """The warp's 16 rows of the accumulator. That it reads only its own rows of A is told to nobody: the instruction belongs to
    the warpgroup."""
    a.need_warp()
    fresh = a.holds(s.zero)
    acc = a.registers.accumulator(s.acc, fresh)
    operand, left, cells = None, None, ()
    if isinstance(s.a, m.RegOperand):
        operand = a.registers.operand(s.a.value)
        assert operand.data is not None
        _fits(a, s, s.a.value, operand.value.dtype, operand.data.shape == (a.rows, s.k))
    else:
        tile, matrix = _matrix(a, s, s.a, a.rows * WARPS)
        left, cells = matrix[a.row : a.row + a.rows], _read(tile, s, s.a, a.rows * WARPS)
    tile, right = _matrix(a, s, s.b, s.n)
    _fits(a, s, s.acc, s.dtype, acc.value.cols == s.n)
    access = a.cta.memory.read(a, (*cells, *_read(tile, s, s.b, s.n)), asynchronous=True)
    p = Product(agent=a, step=s, access=access, acc=acc, operand=operand, left=left, right=right, fresh=fresh)
    a.registers.start(p, acc, operand)
    a.products.append(p)
    a.open_products.append(p)


@means(m.Mma)
def mma(a: Agent, s: m.Mma) -> None:
    """The warp's rows of the accumulator, at once."""
    a.need_warp()
    fresh, cells = a.holds(s.zero), ()
    acc = a.registers.find(s.acc, "tile").value
    old = None if fresh else a.registers.content(s.acc, "tile")
    if isinstance(s.a, m.RegOperand):
        value = a.registers.find(s.a.value, "operand").value
        left = a.registers.content(s.a.value, "operand")
        _fits(a, s, s.a.value, value.dtype, left.shape == (a.rows, s.k))
    else:
        tile, matrix = _matrix(a, s, s.a, a.rows * WARPS)
        left, cells = matrix[a.row : a.row + a.rows], _read(tile, s, s.a, a.rows * WARPS)
    tile, right = _matrix(a, s, s.b, s.n)
    _fits(a, s, s.acc, s.dtype, acc.cols == s.n)
    a.cta.memory.read(a, (*cells, *_read(tile, s, s.b, s.n)), asynchronous=False)
    product = np.matmul(left, right.T)
    a.registers.write(s.acc, product if old is None else old + product)


def _fits(a: Agent, s: m.Wgmma | m.Mma, name: str, dtype, shape: bool) -> None:
    if not shape or dtype != s.dtype:
        raise a.fault(IllFormed, why=f"`{name}` doesn't fit a product of m {a.rows * WARPS}, n {s.n}, k {s.k} of {s.dtype}")


def _extents(s: m.Wgmma | m.Mma, o: m.SmemOperand, rows: int) -> tuple[int, int]:
    """Rows and columns of the tile that it takes."""
    return (rows, s.k) if o.major == "K" else (s.k, rows)


def _matrix(a: Agent, s: m.Wgmma | m.Mma, o: m.SmemOperand, rows: int) -> tuple[Tile, np.ndarray]:
    """The tile, and a view of it as [rows, k]."""
    tile, wanted = a.tile(o.buffer, o.part, o.slot), _extents(s, o, rows)
    if tile.position not in (None, a.positions[o.slot.ring] - o.slot.lag):
        raise a.fault(ReadTooEarly, tile=tile.cells[0].name, lost="a copy to another position of its ring")
    b = tile.buffer
    _fits(a, s, o.buffer, b.dtype, wanted[0] <= b.rows and wanted[1] <= b.cols)
    matrix = tile.data[: wanted[0], : wanted[1]]
    return tile, matrix if o.major == "K" else matrix.T


def _read(tile: Tile, s: m.Wgmma | m.Mma, o: m.SmemOperand, rows: int):
    """The panels that it reads."""
    return tile.cells[: -(-_extents(s, o, rows)[1] // tile.buffer.panel_cols)]


@means(m.FenceWgmma)
def fence_wgmma(a: Agent, s: m.FenceWgmma) -> None:
    a.need_warp()
    a.registers.fence()


@means(m.Commit)
def commit(a: Agent, s: m.Commit) -> None:
    a.need_warp()
    a.groups.append(a.open_products)
    a.open_products = []


@means(m.WaitGroup)
def wait_group(a: Agent, s: m.WaitGroup) -> None:
    a.need_warp()
    while len(a.groups) > s.pending:
        for p in a.groups.pop(0):
            while not p.done:
                a.cta.complete(a.products[0])
            RegisterFile.finish(p, p.acc, p.operand)
            a.finished(p.access)
    for name in s.values:
        writers = a.registers.find(name, "tile").writers
        if writers:
            raise a.fault(RegisterInFlight, value=name, product=a.text(writers[0].step))

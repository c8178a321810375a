"""Expressions over a register tile, in float32: the meaning of `MapOp`, `ReduceOp`, `CompleteOp` and of stored values.

Arrays are two-dimensional and broadcast: the rows of a warp as [rows, cols] tile values, [rows, 1] row values, [rows, 4] lane
shares of a row value. Lane c of a quad owns the columns with (column % 8) // 2 == c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, reduce
from math import copysign
from typing import Any, Protocol

import numpy as np

from ..diagnostics.sim import Fault, IllFormed, LaneShares
from ..program.expr import (
    Affine,
    Apply,
    Cast,
    Cmp,
    Const,
    Expr,
    IndexValue,
    Load,
    Logic,
    Reg,
    Scalar,
    Select,
    exponent,
    regs,
    whole_numbers,
)
from ..program.poly import Poly
from ..roles.model import Axis, CompleteOp, MapOp, Op, ReduceOp, RoomOp, VoteOp
from ..targets.registers import WARPS
from ..targets.wgmma import v8
from .functions import COMPARISONS, FUNCTIONS, REDUCTIONS, power
from .integers import Integer, value_of
from .registers import QUAD, RegisterFile
from .tensors import Tensor, rounded

OCTET = 8  # columns over which the lanes of a quad go round


class Machine(Protocol):
    """What expressions may look at: an agent. rows: its rows of a tile; row: the first of them. v8: whose columns lie in that
    order."""

    registers: RegisterFile
    rows: int
    row: int
    v8: str | None
    env: dict[str, Integer]
    scalars: Mapping[str, float]
    tensors: Mapping[str, Tensor]

    def fault(self, kind: type[Fault], **data) -> Exception: ...


def run(m: Machine, op: Op) -> None:
    """One operation of a `compute`."""
    if isinstance(op, MapOp):
        _map(m, op)
    elif isinstance(op, ReduceOp):
        _reduce(m, op)
    elif isinstance(op, VoteOp):
        _vote(m, op)
    elif isinstance(op, RoomOp):
        _room(m, op)
    else:
        _complete(m, op)


def column_indices(axis: Axis, env: Mapping[str, Integer]) -> np.ndarray:
    """[1, count]: the element indices of an axis, all along a row."""
    return (int(value_of(axis.origin, env)) + np.arange(axis.count))[None, :]


def tile_columns(axis: Axis, m: Machine) -> np.ndarray:
    """[1, count]: the element indices of the columns of a register tile."""
    if axis.index != m.v8:
        return column_indices(axis, m.env)
    return int(value_of(axis.origin, m.env)) + np.array([[v8(c, axis.count) for c in range(axis.count)]])


def row_indices(axis: Axis, m: Machine) -> np.ndarray:
    """[rows, 1]: the element indices of an axis at a warp's own rows."""
    return (int(value_of(axis.origin, m.env)) + m.row + np.arange(m.rows))[:, None]


def _map(m: Machine, op: MapOp) -> None:
    kind = m.registers.find(op.dst, "tile", "row").value.kind
    if (kind == "tile") != (op.cols is not None):
        raise m.fault(IllFormed, why=f"`{op.dst}` is a {kind} value")
    if kind == "tile" and m.registers.is_poison(op.dst) and op.dst in regs(op.expr):
        return  # rescaling what no product has written leaves it as it is
    if op.when is not None and not m.registers.flag(op.when):
        return
    value = Scope(m, op.rows, op.cols).value(op.expr)
    if op.cols is not None:
        data = _tile(m, op.dst, value)
    else:
        data = _row(m, op.dst, value, op.expr)
    m.registers.write(op.dst, data)


def _vote(m: Machine, op: VoteOp) -> None:
    """A warp's rows, of which each lane may hold its own share, agree on whether the condition holds anywhere."""
    m.registers.write(op.dst, np.full((1, 1), Scope(m, op.rows, None, sums=False).value(op.cond).any()))


def _room(m: Machine, op: RoomOp) -> None:
    """Each lane by its own share."""
    if op.when is not None and not m.registers.flag(op.when):
        return
    below = -np.log2(m.registers.read(op.total) * np.float32(op.weight))
    room = np.fmax(np.float32(-op.limit), np.fmin(np.float32(0), below))
    if op.far is not None:
        room = np.where(Scope(m, op.rows, None).value(op.far), np.float32(np.inf), room)
    m.registers.write(op.dst, room)


def _tile(m: Machine, dst: str, value: np.ndarray) -> np.ndarray:
    shape = (m.rows, m.registers.values[dst].cols)
    if value.shape != shape and np.broadcast_shapes(value.shape, shape) != shape:
        raise m.fault(IllFormed, why=f"`{dst}` holds {shape[1]} columns, the expression {value.shape[1]}")
    return _as_floats(value, shape)


def _row(m: Machine, dst: str, value: np.ndarray, e: Expr) -> np.ndarray:
    """A row value. One that hangs on no register goes to every lane's share; a whole value may stand in the registers of a
    partial one."""
    partial = m.registers.values[dst].partial
    width = QUAD if partial and not regs(e) else value.shape[1]
    if width == QUAD and not partial:
        raise m.fault(LaneShares, value=dst)
    return _as_floats(value, (m.rows, width))


def _as_floats(value: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """float32 of this shape, contiguous. Arrays of values are never changed: one that fits is taken as it is."""
    if value.shape != shape:
        value = np.broadcast_to(value, shape)
    return np.ascontiguousarray(value, dtype=np.float32)


@lru_cache(1024)
def _constant(value: float, kind: type, sign: float) -> np.ndarray:
    """`kind` and `sign` tell apart what is equal: 1 and true, 0.0 and -0.0."""
    return np.full((1, 1), value, dtype=bool if kind is bool else np.float32)


def _reduce(m: Machine, op: ReduceOp) -> None:
    scope = Scope(m, op.rows, op.cols)
    n = op.cols.count
    if n % OCTET:
        raise m.fault(IllFormed, why=f"{n} columns are no multiple of {OCTET}")
    join = REDUCTIONS[op.op]
    values = _as_floats(scope.value(op.src), (m.rows, n))
    columns = join.reduce(values.reshape(m.rows, n // OCTET, OCTET), axis=1)
    shares = join(columns[:, 0::2], columns[:, 1::2])
    partial = op.lanes == "partial"
    if partial != m.registers.values[op.dst].partial:
        raise m.fault(LaneShares, value=op.dst)
    out = shares if partial else join.reduce(shares, axis=1)[:, None]
    if op.start is not None:
        start = Scope(m, op.rows, None).value(op.start)
        may_repeat = partial and op.op != "sum"
        if regs(op.start) and (start.shape[1] == QUAD) != partial and not may_repeat:
            raise m.fault(LaneShares, value=op.dst)
        out = join(start, out)
    m.registers.write(op.dst, _as_floats(out, (m.rows, out.shape[1])))


def _complete(m: Machine, op: CompleteOp) -> None:
    if op.when is not None and not m.registers.flag(op.when):
        return
    shares = m.registers.read(op.value)
    if shares.shape[1] != QUAD:
        raise m.fault(LaneShares, value=op.value)
    m.registers.write(op.value, REDUCTIONS[op.op].reduce(shares, axis=1)[:, None])


def _poly(e: Expr) -> Poly:
    assert isinstance(e, IndexValue)
    return e.poly


class Scope:
    """Expressions at the elements of one tile (`cols` given) or at its rows."""

    def __init__(self, m: Machine, rows: Axis, cols: Axis | None, sums: bool = True):
        """sums: whether shares have to add up to something; each lane may vote for itself by its own share."""
        if rows.count != m.rows * WARPS:
            raise m.fault(IllFormed, why=f"a register tile has {m.rows * WARPS} rows, not {rows.count}")
        self.m, self.rows, self.cols, self.sums = m, rows, cols, sums

    @cached_property
    def env(self) -> dict[str, Integer]:
        """The integers, with arrays for the indices of the axes."""
        env = {**self.m.env, self.rows.index: row_indices(self.rows, self.m)}
        if self.cols is not None:
            env[self.cols.index] = tile_columns(self.cols, self.m)
        return env

    def value(self, e: Expr) -> np.ndarray:
        """float32 or bool, two-dimensional."""
        return _VALUE[type(e)](self, e)

    def constant(self, e: Const) -> np.ndarray:
        return _constant(e.value, type(e.value), copysign(1.0, e.value))

    def index(self, e: IndexValue) -> np.ndarray:
        return self.two_dimensional(value_of(e.poly, self.env), np.float32)

    def scalar(self, e: Scalar) -> np.ndarray:
        return np.full((1, 1), self.m.scalars[e.name], dtype=np.float32)

    def load(self, e: Load) -> np.ndarray:
        return self.two_dimensional(self.m.tensors[e.tensor].load([value_of(p, self.env) for p in e.access]), np.float32)

    def affine(self, e: Affine) -> np.ndarray:
        return self.two_dimensional(value_of(e.poly, self.env) >= 0, np.bool_)

    def cast(self, e: Cast) -> np.ndarray:
        value = self.value(e.arg)
        return rounded(np.trunc(value) if e.dtype.kind == "int" else value, e.dtype).astype(np.float32)

    def comparison(self, e: Cmp) -> np.ndarray:
        value = self.integer if whole_numbers((e.left, e.right), self.is_of_integers) else self.value
        return COMPARISONS[e.op](value(e.left), value(e.right))

    def is_of_integers(self, tensor: str) -> bool:
        return self.m.tensors[tensor].dtype.kind == "int"

    def integer(self, e: Expr) -> np.ndarray:
        """What is compared exactly: an element, an index, a number."""
        if isinstance(e, Load):
            return self.two_dimensional(self.m.tensors[e.tensor].elements([value_of(p, self.env) for p in e.access]), np.int64)
        return self.two_dimensional(e.value if isinstance(e, Const) else value_of(_poly(e), self.env), np.int64)

    def apply(self, e: Apply) -> np.ndarray:
        args = [self.value(a) for a in e.args]
        self.check_shares(e, args)
        n = exponent(e)
        return FUNCTIONS[e.fn](*args) if n is None else power(args[0], n)

    def logic(self, e: Logic) -> np.ndarray:
        parts = [self.value(a) for a in e.args]
        if e.op == "not":
            return ~parts[0]
        return reduce(np.logical_and if e.op == "and" else np.logical_or, parts)

    @staticmethod
    def two_dimensional(x, dtype) -> np.ndarray:
        x = np.asarray(x, dtype=dtype)
        return x if x.ndim == 2 else x.reshape(1, 1)

    def select(self, e: Select) -> np.ndarray:
        """A side that no element takes isn't looked at: it may be poison."""
        cond = self.value(e.cond)
        if cond.all():
            return self.value(e.then)
        if not cond.any():
            return self.value(e.other)
        then, other = self.value(e.then), self.value(e.other)
        self.check_shares(e, [then, other])
        return np.where(cond, then, other)

    def register(self, e: Reg) -> np.ndarray:
        name = e.name
        value = self.m.registers.values.get(name)
        data = self.m.registers.read(name)
        assert value is not None
        tile = value.kind in ("tile", "elements")
        if self.cols is None and tile:
            raise self.m.fault(IllFormed, why=f"`{name}` is a tile value, used where there is no column")
        if self.cols is not None and tile and value.cols != self.cols.count:
            raise self.m.fault(IllFormed, why=f"`{name}` has {value.cols} columns, the tile {self.cols.count}")
        if self.cols is not None and value.kind == "row" and data.shape[1] == QUAD:
            raise self.m.fault(LaneShares, value=name)
        return data

    def check_shares(self, e: Apply | Select, args: list[np.ndarray]) -> None:
        """Shares may be scaled by whole values and joined with other shares; nothing else keeps their sum."""
        if not self.sums or self.cols is not None or not any(a.shape[1] == QUAD for a in args):
            return
        shares = [a.shape[1] == QUAD for a in args]
        if isinstance(e, Select) or e.fn in ("add", "sub", "min", "max"):
            fine = all(s or not a.any() for s, a in zip(shares, args, strict=True))
        else:
            fine = e.fn == "neg" or (e.fn == "mul" and sum(shares) == 1) or (e.fn == "div" and shares == [True, False])
        if not fine:
            raise self.m.fault(LaneShares, value=", ".join(sorted(regs(e))))


_VALUE: dict[type[Expr], Callable[[Scope, Any], np.ndarray]] = {
    Const: Scope.constant, IndexValue: Scope.index, Scalar: Scope.scalar, Reg: Scope.register, Load: Scope.load,
    Affine: Scope.affine, Cast: Scope.cast, Select: Scope.select, Cmp: Scope.comparison, Logic: Scope.logic, Apply: Scope.apply,
}  # fmt: skip

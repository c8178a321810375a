"""Expressions over a register tile, in float32: the meaning of `MapOp`, `ReduceOp`, `CompleteOp` and of stored values.

Arrays are two-dimensional and broadcast: [64, cols] tile values, [64, 1] row values, [64, 4] lane shares of a row value.
Lane c of a quad owns the columns with (column % 8) // 2 == c.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Protocol

import numpy as np

from ..diagnostics.sim import Fault, IllFormed, LaneShares
from ..program.expr import Affine, Apply, Cast, Cmp, Const, Expr, IndexValue, Load, Logic, Reg, Scalar, Select, regs
from ..roles.model import OUTWEIGHS, Axis, CompleteOp, MapOp, Op, ReduceOp, RoomOp, VoteOp
from ..targets.registers import WARPS
from .functions import COMPARISONS, FUNCTIONS, REDUCTIONS
from .integers import Integer, value_of
from .registers import QUAD, ROWS, RegisterFile
from .tensors import Tensor, rounded

OCTET = 8  # columns over which the lanes of a quad go round


class Machine(Protocol):
    """What expressions may look at: an agent."""

    registers: RegisterFile
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


def indices(axis: Axis, env: Mapping[str, Integer], *, along_rows: bool) -> np.ndarray:
    """The element indices of an axis, as a column or as a row."""
    values = int(value_of(axis.origin, env)) + np.arange(axis.count)
    return values[:, None] if along_rows else values[None, :]


def _map(m: Machine, op: MapOp) -> None:
    kind = m.registers.find(op.dst, "tile", "row").value.kind
    if (kind == "tile") != (op.cols is not None):
        raise m.fault(IllFormed, why=f"`{op.dst}` is a {kind} value")
    if kind == "tile" and op.dst in regs(op.expr) and m.registers.is_poison(op.dst):
        return  # rescaling what no product has written leaves it as it is
    holds = np.True_ if op.when is None else m.registers.flag(op.when)
    if not holds.any():
        return
    value = Scope(m, op.rows, op.cols).value(op.expr)
    if op.cols is not None:
        data = _tile(m, op.dst, value)
    else:
        data = _row(m, op.dst, value, constant=not regs(op.expr))
    m.registers.write(op.dst, data if holds.all() else np.where(holds, data, m.registers.before(op.dst, data)))


def _vote(m: Machine, op: VoteOp) -> None:
    """A warp's 16 rows, of which each lane may hold its own share, agree on whether the condition holds anywhere."""
    held = np.broadcast_to(Scope(m, op.rows, None).value(op.cond), (ROWS, QUAD)).reshape(WARPS, -1)
    m.registers.write(op.dst, np.repeat(held.any(axis=1), ROWS // WARPS)[:, None])


def _room(m: Machine, op: RoomOp) -> None:
    """Each lane by its own share."""
    holds = np.True_ if op.when is None else m.registers.flag(op.when)
    if not holds.any():
        return
    below = -np.log2(m.registers.read(op.total) * np.float32(OUTWEIGHS))
    room = np.fmax(np.float32(-op.limit), np.fmin(np.float32(0), below))
    m.registers.write(op.dst, room if holds.all() else np.where(holds, room, m.registers.before(op.dst, room)))


def _tile(m: Machine, dst: str, value: np.ndarray) -> np.ndarray:
    shape = (ROWS, m.registers.values[dst].cols)
    if np.broadcast_shapes(value.shape, shape) != shape:
        raise m.fault(IllFormed, why=f"`{dst}` holds {shape[1]} columns, the expression {value.shape[1]}")
    return np.ascontiguousarray(np.broadcast_to(value, shape), dtype=np.float32)


def _row(m: Machine, dst: str, value: np.ndarray, constant: bool) -> np.ndarray:
    """A row value. A constant goes to every lane's share; a whole value may stand in the registers of a partial one."""
    partial = m.registers.values[dst].partial
    width = QUAD if partial and constant else value.shape[1] if value.ndim == 2 else 1
    if width == QUAD and not partial:
        raise m.fault(LaneShares, value=dst)
    return np.ascontiguousarray(np.broadcast_to(value, (ROWS, width)), dtype=np.float32)


def _reduce(m: Machine, op: ReduceOp) -> None:
    scope = Scope(m, op.rows, op.cols)
    n = op.cols.count
    if n % OCTET:
        raise m.fault(IllFormed, why=f"{n} columns are no multiple of {OCTET}")
    join = REDUCTIONS[op.op]
    values = np.broadcast_to(scope.value(op.src), (ROWS, n)).astype(np.float32)
    shares = join.reduce(join.reduce(values.reshape(ROWS, n // OCTET, QUAD, 2), axis=3), axis=1)
    partial = op.lanes == "partial"
    if partial != m.registers.values[op.dst].partial:
        raise m.fault(LaneShares, value=op.dst)
    out = shares if partial else join.reduce(shares, axis=1)[:, None]
    if op.start is not None:
        start = Scope(m, op.rows, None).value(op.start)
        if regs(op.start) and (start.shape[1] == QUAD) != partial:
            raise m.fault(LaneShares, value=op.dst)
        out = join(start, out)
    m.registers.write(op.dst, np.broadcast_to(out, (ROWS, out.shape[1])).astype(np.float32))


def _complete(m: Machine, op: CompleteOp) -> None:
    shares = m.registers.read(op.value)
    if shares.shape[1] != QUAD:
        raise m.fault(LaneShares, value=op.value)
    m.registers.write(op.value, REDUCTIONS[op.op].reduce(shares, axis=1)[:, None])


class Scope:
    """Expressions at the elements of one tile (`cols` given) or at its rows."""

    def __init__(self, m: Machine, rows: Axis, cols: Axis | None):
        if rows.count != ROWS:
            raise m.fault(IllFormed, why=f"a register tile has {ROWS} rows, not {rows.count}")
        self.m, self.cols = m, cols
        self.env: dict[str, Integer] = {**m.env, rows.index: indices(rows, m.env, along_rows=True)}
        if cols is not None:
            self.env[cols.index] = indices(cols, m.env, along_rows=False)

    def value(self, e: Expr) -> np.ndarray:
        """float32 or bool, two-dimensional."""
        if isinstance(e, Const):
            return np.full((1, 1), e.value, dtype=bool if isinstance(e.value, bool) else np.float32)
        if isinstance(e, IndexValue):
            return self.two_dimensional(value_of(e.poly, self.env), np.float32)
        if isinstance(e, Scalar):
            return np.full((1, 1), self.m.scalars[e.name], dtype=np.float32)
        if isinstance(e, Reg):
            return self.register(e.name)
        if isinstance(e, Load):
            t = self.m.tensors[e.tensor]
            return self.two_dimensional(t.load([value_of(p, self.env) for p in e.access]), np.float32)
        if isinstance(e, Affine):
            return self.two_dimensional(value_of(e.poly, self.env) >= 0, np.bool_)
        if isinstance(e, Cast):
            value = self.value(e.arg)
            return rounded(np.trunc(value) if e.dtype.kind == "int" else value, e.dtype).astype(np.float32)
        if isinstance(e, Select):
            return self.select(e)
        if isinstance(e, Cmp):
            return COMPARISONS[e.op](self.value(e.left), self.value(e.right))
        if isinstance(e, Logic):
            return self.logic(e.op, [self.value(a) for a in e.args])
        assert isinstance(e, Apply)
        args = [self.value(a) for a in e.args]
        self.check_shares(e, args)
        return FUNCTIONS[e.fn](*args)

    @staticmethod
    def logic(op: str, parts: list[np.ndarray]) -> np.ndarray:
        if op == "not":
            return ~parts[0]
        return reduce(np.logical_and if op == "and" else np.logical_or, parts)

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

    def register(self, name: str) -> np.ndarray:
        value = self.m.registers.values.get(name)
        data = self.m.registers.read(name)
        assert value is not None
        if self.cols is None and value.kind == "tile":
            raise self.m.fault(IllFormed, why=f"`{name}` is a tile value, used where there is no column")
        if self.cols is not None and value.kind == "tile" and value.cols != self.cols.count:
            raise self.m.fault(IllFormed, why=f"`{name}` has {value.cols} columns, the tile {self.cols.count}")
        if self.cols is not None and value.kind == "row" and data.shape[1] == QUAD:
            raise self.m.fault(LaneShares, value=name)
        return data

    def check_shares(self, e: Apply | Select, args: list[np.ndarray]) -> None:
        """Shares may be scaled by whole values and joined with other shares; nothing else keeps their sum."""
        if self.cols is not None or not any(a.shape[1] == QUAD for a in args):
            return
        shares = [a.shape[1] == QUAD for a in args]
        if isinstance(e, Select) or e.fn in ("add", "sub", "min", "max"):
            fine = all(s or not a.any() for s, a in zip(shares, args, strict=True))
        else:
            fine = e.fn == "neg" or (e.fn == "mul" and sum(shares) == 1) or (e.fn == "div" and shares == [True, False])
        if not fine:
            raise self.m.fault(LaneShares, value=", ".join(sorted(regs(e))))

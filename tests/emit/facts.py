"""What the machine code of a kernel must hold, counted from its role program: the text has each step once.

Counts of instructions in the text, not of how often they run. The assembler may add moves and address arithmetic, but none
of these; more WARPGROUP.ARRIVE than fences, say, means that products were serialised.
"""

from __future__ import annotations

from dataclasses import dataclass

from wgdsl.program.expr import Apply, Expr, Reg, walk
from wgdsl.roles.model import (
    Axis,
    Compute,
    FenceWgmma,
    Kernel,
    MapOp,
    ReduceOp,
    StoreGlobal,
    StoreShared,
    Tma,
    TmaStore,
    WaitGroup,
    Wgmma,
)
from wgdsl.roles.model import walk as steps_of
from wgdsl.targets.wgmma import INSTRUCTIONS

_POWERS = frozenset({"exp", "exp2", "sigmoid", "silu", "gelu_tanh"})


@dataclass(frozen=True, kw_only=True)
class Facts:
    """SASS opcode counts: products (HGMMA or QGMMA), fences (WARPGROUP.ARRIVE), waits (WARPGROUP.DEPBAR), powers (MUFU.EX2),
    loads (UTMALDG), stores (UTMASTG), matrices (STSM)."""

    products: int
    fences: int
    waits: int
    powers: int
    loads: int
    stores: int
    matrices: int


def facts(kernel: Kernel) -> Facts:
    """The expected counts of one kernel."""
    steps = [s for role in kernel.roles for s in steps_of(role.steps)]
    buffers = [kernel.buffer(s.buffer) for s in steps if isinstance(s, StoreShared)]
    return Facts(
        products=sum(s.k // INSTRUCTIONS[s.dtype.name].k for s in steps if isinstance(s, Wgmma)),
        fences=sum(isinstance(s, FenceWgmma) for s in steps),
        waits=sum(isinstance(s, WaitGroup) for s in steps),
        powers=sum(_powers(kernel, e, cols) for s in steps for e, cols in _expressions(s)),
        loads=sum(isinstance(s, Tma) for s in steps),
        stores=sum(isinstance(s, TmaStore) for s in steps),
        matrices=sum(b.cols // 16 for b in buffers if b.dtype.nbytes == 2 and b.cols % 16 == 0),
    )


def _expressions(step: object) -> list[tuple[Expr, Axis | None]]:
    if isinstance(step, StoreGlobal):
        return [(step.value, step.cols)]
    out: list[tuple[Expr, Axis | None]] = []
    for op in step.ops if isinstance(step, Compute) else ():
        if isinstance(op, MapOp):
            out.append((op.expr, op.cols))
        elif isinstance(op, ReduceOp):
            out.append((op.src, op.cols))
            out.extend([(op.start, None)] if op.start is not None else [])
    return out


def _powers(kernel: Kernel, e: Expr, cols: Axis | None) -> int:
    """A thread has two rows, and half the columns of its 64-row tile."""
    return sum(_copies(kernel, x, cols) for x in walk(e) if isinstance(x, Apply) and x.fn in _POWERS)


def _copies(kernel: Kernel, e: Expr, cols: Axis | None) -> int:
    kinds = {kernel.value(x.name).kind for x in walk(e) if isinstance(x, Reg)}
    if "tile" in kinds and cols is not None:
        return cols.count // 2
    return 2 if kinds else 1

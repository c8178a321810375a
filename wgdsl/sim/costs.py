"""How many instructions a warp needs for its share of a `compute`, and how they hang together.

In: operations on register tiles.  Out: `Stretch`es: instructions by pipe that can overlap freely, and the latency behind them.
A stretch ends where lanes exchange values: what follows needs them all.

An element of a tile costs what its expression says; what varies along rows alone is done once for each row that a thread holds.
A product and a sum around it are one instruction, as the compiler makes them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from ..program.expr import Apply, Cast, Cmp, Const, Expr, Load, Logic, Reg, Scalar, Select, exponent, polys_of, walk
from ..roles import model as m
from ..targets.cycles import ALU, FMA, FUNCTIONS, LANES, MUFU, PARTITIONS, SHUFFLE

THREADS = PARTITIONS * LANES
QUAD_STEPS = 2  # exchanges that bring the values of 4 lanes together
FUSED = ("add", "sub")
NOTHING, ROW, ELEMENT = range(3)  # along what an expression varies


@dataclass
class Stretch:
    """pipes: instructions of a warp. other: those of no pipe that is modelled. exchanges: of lanes, one after the other, at its
    end. loaded: bytes that the warpgroup reads from global memory."""

    pipes: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    other: float = 0
    exchanges: int = 0
    loaded: float = 0

    @property
    def instructions(self) -> float:
        return sum(self.pipes.values()) + self.other


def stretches(ops: Iterable[m.Op], values: Mapping[str, m.Value]) -> list[Stretch]:
    """Of a `compute`, in order. What only some warps do, by a vote (`when`), isn't done: a maximum rarely grows that much."""
    out = [Stretch()]
    for when, together in groupby(ops, lambda op: getattr(op, "when", None)):
        if when is not None:
            out[-1].other += 2  # a branch around them
            continue
        for op in together:
            _add(out[-1], op, values)
            if out[-1].exchanges:
                out.append(Stretch())
    return [s for s in out if s.instructions]


def _add(s: Stretch, op: m.Op, values: Mapping[str, m.Value]) -> None:
    halves = values[op.dst].halves if op.dst in values else 2
    if isinstance(op, m.MapOp):
        evaluate(s, op.expr, op.rows, op.cols, values)
    elif isinstance(op, m.ReduceOp):
        evaluate(s, op.src, op.rows, op.cols, values)
        _reduce(s, op, halves)
    elif isinstance(op, m.VoteOp):
        s.pipes[ALU] += halves * sum(1 for _ in walk(op.cond)) + 1
        s.exchanges = 1
    elif isinstance(op, m.RoomOp):
        for pipe, count in {MUFU: 1, FMA: 3, ALU: 4}.items():
            s.pipes[pipe] += count * halves
    else:
        s.pipes[SHUFFLE] += QUAD_STEPS * halves
        s.pipes[FMA if op.op == "sum" else ALU] += QUAD_STEPS * halves
        s.exchanges = QUAD_STEPS


def _reduce(s: Stretch, op: m.ReduceOp, halves: int) -> None:
    """One more for each element. Both rows of a thread go through the quad at once."""
    pipe = FMA if op.op == "sum" else ALU
    s.pipes[pipe] += elements(op.rows, op.cols)
    if op.lanes == "full":
        s.pipes[SHUFFLE] += QUAD_STEPS * halves
        s.pipes[pipe] += QUAD_STEPS * halves
        s.exchanges = QUAD_STEPS


def elements(rows: m.Axis, cols: m.Axis | None) -> float:
    """Of a thread, in a tile or in a row value."""
    return rows.count * cols.count / THREADS if cols is not None else rows.count / LANES


def evaluate(s: Stretch, e: Expr, rows: m.Axis, cols: m.Axis | None, values: Mapping[str, m.Value]) -> None:
    """Add what an expression costs, on each element or row as it needs."""
    times = {ELEMENT: elements(rows, cols), ROW: elements(rows, None), NOTHING: 0.0}
    for x, fused in _nodes(e):
        n = times[level(x, cols, values)]
        for pipe, count in ({} if fused else node_cost(x)).items():
            s.pipes[pipe] += n * count
        if isinstance(x, Load):
            s.other += 2 * n  # the address, and the load
            s.loaded += 4 * n * THREADS


def _nodes(e: Expr, fused: bool = False) -> Iterator[tuple[Expr, bool]]:
    """Every node, and whether it goes into its parent: a product into a sum around it, or a sum into a product."""
    yield e, fused
    for c in e.children():
        yield from _nodes(c, _fuses(e, c))


def _fuses(parent: Expr, child: Expr) -> bool:
    if not (isinstance(parent, Apply) and isinstance(child, Apply)):
        return False
    return (parent.fn == "mul" and child.fn in FUSED) or (parent.fn in FUSED and child.fn == "mul")


def node_cost(x: Expr) -> Mapping[str, float]:
    """Instructions by pipe for one node, without what it is made of."""
    if isinstance(x, Apply):
        n = exponent(x)
        return FUNCTIONS[x.fn] if n is None else _power(n)
    if isinstance(x, Cmp | Select | Logic | Cast):
        return {ALU: 1}
    if isinstance(x, Reg | Scalar | Const | Load):
        return {}
    return {ALU: 1}  # an index as a value, or its comparison


def _power(n: int) -> Mapping[str, float]:
    """Of a power that is a product."""
    reciprocal = FUNCTIONS["rcp"] if n < 0 else {}
    return {**reciprocal, FMA: reciprocal.get(FMA, 0) + abs(n).bit_length() + (abs(n) == 3) - 1}


def level(e: Expr, cols: m.Axis | None, values: Mapping[str, m.Value]) -> int:
    """Along what it varies."""
    return max((_own_level(x, cols, values) for x in walk(e)), default=NOTHING)


def _own_level(x: Expr, cols: m.Axis | None, values: Mapping[str, m.Value]) -> int:
    if isinstance(x, Reg):
        kind = values[x.name].kind if x.name in values else "tile"
        return ROW if kind in m.FEW else ELEMENT
    symbols = {s for p in polys_of(x) for s in p.symbols()}
    if cols is not None and cols.index in symbols:
        return ELEMENT
    return ROW if symbols else NOTHING

"""forms: `regs Pr = P as e4m3 times 16 permute v8`: the form in which a computed tile becomes an operand in registers.

In: the streamed graph and the schedule.  Out: for each such tile its `Form`: the type that it is rounded to; a power of two by
which it is multiplied beforehand, so that small values keep their bits, and which the sums that are made of it are rid of where
they are finished; and the order of the columns, by which a result is an 8-bit operand as it stands.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..diagnostics.model import Problem
from ..diagnostics.schedule import BadNumber, DeclaredTwice, NotYetSupported, UnknownName
from ..foundation.dtypes import DTYPES, DType
from ..foundation.source import Span
from ..program.expr import Apply, Expr, Load, loads
from ..program.graph import Map
from ..program.streamed import State, Streamed
from ..syntax import ast
from .constants import constant
from .named import display, resolve

MOST = 1 << 15
V8 = "v8"  # the one order that is known


@dataclass(frozen=True, kw_only=True)
class Form:
    """shift: the binary logarithm of the factor."""

    name: str
    node: str
    dtype: DType
    shift: int
    span: Span | None = field(compare=False)

    @property
    def v8(self) -> bool:
        """Whether the columns of the tile lie in that order."""
        return self.dtype.nbytes == 1

    def words(self, shown: str) -> str:
        """The rounding, for the report."""
        return f"{shown}{f' times {2**self.shift}' if self.shift else ''} to {self.dtype}"


def is_form(d: ast.HomeDecl) -> bool:
    """Whether a line says how an operand lies in registers."""
    return d.kind == "regs" and d.cast is not None


def forms_of(streamed: Streamed, schedule: ast.Schedule) -> tuple[dict[str, Form], list[Problem]]:
    """Tile node -> its form, and what is wrong with the lines."""
    out: dict[str, Form] = {}
    problems: list[Problem] = []
    for d in (d for d in schedule.items if isinstance(d, ast.HomeDecl) and is_form(d)):
        node = resolve(streamed, d.tensor)
        if not isinstance(streamed.tile_node(node), Map):
            known = tuple(display(streamed, n.name) for n in streamed.tile if isinstance(n, Map))
            problems.append(UnknownName(span=d.span, what="tile that is computed", name=d.tensor, known=known))
            continue
        if node in out:
            problems.append(DeclaredTwice(span=d.span, what="operand of", name=d.tensor, first=out[node].span))
        found = list(_problems(d)) or list(_readers(streamed, node, d))
        problems += found
        if not found:
            times = 1 if d.times is None else constant(d.times)
            assert d.cast is not None and isinstance(times, int)
            shift = times.bit_length() - 1
            out[node] = Form(name=d.name, node=node, dtype=DTYPES[d.cast], shift=shift, span=d.span)
    return out, problems


def _problems(d: ast.HomeDecl) -> Iterator[Problem]:
    dtype = DTYPES.get(d.cast or "")
    if dtype is None or dtype.kind != "float" or dtype.bits > 16:
        known = tuple(n for n, t in DTYPES.items() if t.kind == "float" and t.bits <= 16)
        yield UnknownName(span=d.span, what="type of operands", name=d.cast or "", known=known)
        return
    times = 1 if d.times is None else constant(d.times)
    if not isinstance(times, int) or not 0 < times <= MOST or times & (times - 1):
        rule = f"it must be a power of two from 1 to {MOST}, by which nothing is rounded"
        yield BadNumber(span=d.times.span if d.times else d.span, what="the factor of an operand", value=times, rule=rule)
    if dtype.nbytes == 1 and d.permute != V8:
        cure = f"`permute {V8}`: keys in the order in which a result is an operand"
        yield NotYetSupported(span=d.span, what=f"an operand of {dtype} in registers without `permute`", cure=cure)
    if dtype.nbytes != 1 and d.permute is not None:
        what, cure = f"`permute` of an operand of {dtype}", "drop it: a result of 16 bits is an operand as it stands"
        yield NotYetSupported(span=d.span, what=what, cure=cure)
    if d.ring is not None or d.indices or d.over is not None or d.engine is not None:
        what, cure = "a ring, a place or an engine of an operand with a form", "`regs NAME = TENSOR as TYPE ...`"
        yield NotYetSupported(span=d.span, what=what, cure=cure)


def _readers(streamed: Streamed, node: str, d: ast.HomeDecl) -> Iterator[Problem]:
    """A factor comes out of sums again, and of nothing else."""
    if d.times is None:
        return
    for n in streamed.tile:
        if n.name != node and any(x.tensor == node for e in n.exprs() for x in loads(e)):
            shown = display(streamed, n.name)
            what = f"`times` for `{d.tensor}`, which `{shown}` reads for each element,"
            yield NotYetSupported(span=d.span, what=what, cure="drop `times`")
    for s in streamed.states:
        if reads(s, node) and not is_linear(s, node):
            what = f"`times` for `{d.tensor}`, of which `{display(streamed, s.name)}` is no sum of products,"
            yield NotYetSupported(span=d.span, what=what, cure="drop `times`")


def reads(s: State, node: str) -> bool:
    """Whether a state is made of a tile."""
    return any(x.tensor == node for x in loads(s.node.body))


def is_linear(s: State, node: str) -> bool:
    """Whether a state is a sum in which a tile is a factor once."""
    return s.node.op == "sum" and _degree(s.node.body, node) == 1


def _degree(e: Expr, node: str) -> float:
    """How often a tile is a factor; inf if it stands elsewhere than in a product."""
    if isinstance(e, Load):
        return int(e.tensor == node)
    if isinstance(e, Apply) and e.fn == "mul":
        return sum(_degree(x, node) for x in e.args)
    return math.inf if any(x.tensor == node for x in loads(e)) else 0

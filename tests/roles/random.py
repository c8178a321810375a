"""Random pieces of a role program over the names of a shipped kernel, by the rows of the vocabulary: hypothesis strategies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from wgdsl.foundation.dtypes import DTYPES
from wgdsl.program.expr import (
    SIGNS,
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
)
from wgdsl.program.poly import Poly, floordiv, maximum, minimum, mod
from wgdsl.roles import model as m
from wgdsl.roles.limits import LARGEST, numbers_in
from wgdsl.roles.rows import OPS, Maybe, Piece, Row
from wgdsl.roles.rows import Slot as RowSlot

TWO = ("add", "sub", "mul", "div", "pow", "min", "max")
ONE = ("neg", "exp", "exp2", "log2", "rcp", "abs", "gelu_tanh", "sigmoid")
OTHER = m.Zero(value="O")  # a step inside a block


def polys(symbols: tuple[str, ...], leaves: int = 6) -> st.SearchStrategy[Poly]:
    """Integers as the compiler makes them: folded where they can be."""

    leaf = st.integers(-300, 300).map(Poly.of) | st.sampled_from(symbols).map(Poly.of)

    def larger(inner):
        pair = st.tuples(inner, inner)
        divisor = st.integers(1, 200).map(Poly.of) | inner.filter(lambda p: p.constant is None)
        return (
            pair.map(lambda p: p[0] + p[1])
            | pair.map(lambda p: p[0] - p[1])
            | st.tuples(inner, leaf).map(lambda p: p[0] * p[1])
            | st.tuples(inner, divisor).map(lambda p: floordiv(*p))
            | st.tuples(inner, divisor).map(lambda p: mod(*p))
            | st.lists(inner, min_size=1, max_size=3).map(lambda p: minimum(*p))
            | st.lists(inner, min_size=1, max_size=3).map(lambda p: maximum(*p))
        )

    return st.recursive(leaf, larger, max_leaves=leaves).filter(lambda p: max(numbers_in(p), default=0) <= LARGEST)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Strategies for what stands in the slots of a kernel's lines. `symbols`: integers that are known everywhere."""

    kernel: m.Kernel
    role: str
    symbols: tuple[str, ...]
    scalars: tuple[str, ...]

    @cached_property
    def poly(self) -> st.SearchStrategy[Poly]:
        return polys(self.symbols, 4)

    def values(self) -> tuple[str, ...]:
        return tuple(v.name for v in self.kernel.values if v.role == self.role)

    def numbers(self, leaves: int = 6) -> st.SearchStrategy[Expr]:
        floats = st.floats(allow_nan=False) | st.integers(-9, 9) | st.sampled_from([math.inf, -math.inf, 1e-7, 1.5e30])
        loads = st.sampled_from(self.kernel.tensors).flatmap(
            lambda t: st.tuples(*[self.poly] * len(t.shape)).map(lambda a: Load(tensor=t.name, access=a))
        )
        leaf = (
            floats.map(lambda v: Const(value=v))
            | st.sampled_from(self.values()).map(lambda n: Reg(name=n))
            | st.sampled_from(self.scalars).map(lambda n: Scalar(name=n))
            | self.poly.map(lambda p: IndexValue(poly=p))
            | loads
        )
        return st.recursive(leaf, self._larger, max_leaves=leaves)

    def _larger(self, inner):
        return (
            st.tuples(st.sampled_from(TWO), inner, inner).map(lambda x: Apply(fn=x[0], args=x[1:]))
            | st.tuples(st.sampled_from(ONE), inner).map(lambda x: Apply(fn=x[0], args=x[1:]))
            | st.tuples(st.sampled_from(list(DTYPES.values())), inner).map(lambda x: Cast(dtype=x[0], arg=x[1]))
            | st.tuples(self.conditions(inner), inner, inner).map(lambda x: Select(cond=x[0], then=x[1], other=x[2]))
        )

    def conditions(self, numbers=None) -> st.SearchStrategy[Expr]:
        numbers = self.numbers(3) if numbers is None else numbers
        compared = st.tuples(st.sampled_from(list(SIGNS)), numbers, numbers).map(lambda x: Cmp(op=x[0], left=x[1], right=x[2]))
        leaf = self.poly.map(lambda p: Affine(poly=p)) | compared | st.booleans().map(lambda v: Const(value=v))
        return st.recursive(
            leaf,
            lambda inner: (
                inner.map(lambda x: Logic(op="not", args=(x,)))
                | st.tuples(st.sampled_from(("and", "or")), st.lists(inner, min_size=2, max_size=3)).map(
                    lambda x: Logic(op=x[0], args=tuple(x[1]))
                )
            ),
            max_leaves=4,
        )

    def axes(self) -> st.SearchStrategy[m.Axis]:
        indices = st.sampled_from(tuple(self.kernel.index_extents))
        return st.builds(m.Axis, index=indices, origin=self.poly, count=st.integers(1, 256))

    def placed(self, things: tuple) -> st.SearchStrategy[tuple]:
        """(name, part, slot); the part is 0 where there is only one."""
        slot = st.integers(0, 3)
        return st.sampled_from(things).flatmap(
            lambda t: st.tuples(st.just(t.name), self.poly if t.parts > 1 else st.just(Poly()), slot).map(
                lambda x: (x[0], x[1], m.Slot(ring=t.ring, lag=x[2]))
            )
        )

    def operands(self) -> st.SearchStrategy:
        shared = st.tuples(self.placed(self.kernel.buffers), st.sampled_from(("K", "MN"))).map(
            lambda x: m.SmemOperand(buffer=x[0][0], part=x[0][1], slot=x[0][2], major=x[1])
        )
        return shared | st.sampled_from(self.values()).map(lambda v: m.RegOperand(value=v))

    def boxes(self) -> st.SearchStrategy[tuple]:
        return st.sampled_from(self.kernel.maps).flatmap(
            lambda x: st.tuples(st.just(x.name), st.tuples(*[self.poly] * len(x.dims)))
        )

    def of(self, codec: str) -> st.SearchStrategy:
        """What a slot of that codec holds: a tuple for one of several fields."""
        k, words = self.kernel, st.text("abcxyz 0123(),;#", max_size=12)
        names = {"ring": k.rings, "buffer": k.buffers, "barrier": k.barriers, "map": k.maps, "tensor": k.tensors}
        if codec in names:
            return st.sampled_from([x.name for x in names[codec]])
        table = {
            "value": lambda: st.sampled_from(self.values()),
            "values": lambda: st.lists(st.sampled_from(self.values()), min_size=1, max_size=3).map(tuple),
            "new": lambda: st.sampled_from(("z", "z.n", "loop", "wait")),
            "int": lambda: st.integers(1, 1 << 20),  # 1: what counts isn't 0
            "number": lambda: st.floats(0, allow_nan=False, allow_infinity=False),
            "stage": lambda: self.placed(k.buffers).map(lambda x: (x[0], x[2])),
            "poly": lambda: self.poly,
            "stop": lambda: self.poly,
            "polys": lambda: st.lists(self.poly, min_size=1, max_size=4).map(tuple),
            "expr": self.numbers,
            "predicate": self.conditions,
            "axis": self.axes,
            "event": lambda: self.placed(k.barriers),
            "tile": lambda: self.placed(k.buffers),
            "box": self.boxes,
            "operand": self.operands,
            "dtype": lambda: st.sampled_from(list(DTYPES.values())),
            "reduction": lambda: st.sampled_from(("sum", "max", "min")),
            "mask": lambda: st.sampled_from(("{}", "{where: partial}", "{causal: partial, end: full}", "{empty}")),
            "text": lambda: words,
            "steps": lambda: st.just((OTHER,)),
            "ops": lambda: st.lists(st.one_of([self.row(r) for r in OPS]), min_size=1, max_size=3).map(tuple),
        }
        return table[codec]()

    def slot(self, codec: str, values: dict[str, Any]) -> st.SearchStrategy:
        """A barrier beside a buffer is one of its ring."""
        if codec != "event" or "slot" not in values:
            return self.of(codec)
        own = tuple(b for b in self.kernel.barriers if b.ring == values["slot"].ring)
        assume(own)
        return self.placed(own)

    def row(self, row: Row) -> st.SearchStrategy:
        """Things of the row's class that the row tells."""

        @st.composite
        def thing(draw):
            values: dict[str, Any] = dict(row.fixed)
            self._fill(draw, row, row.pieces, values)
            return row.make(**values)

        return thing()

    def _fill(self, draw, row: Row, pieces: tuple[Piece, ...], values: dict[str, Any]) -> None:
        for p in pieces:
            if isinstance(p, RowSlot):
                _set(draw(st.sampled_from(p.choices) if p.choices else self.slot(p.codec, values)), p, values)
            elif isinstance(p, Maybe):
                there = draw(st.booleans())
                values[p.field] = there if p.flag else row.default(p.field)
                if there:
                    inner: dict[str, Any] = {}
                    self._fill(draw, row, p.pieces, inner)
                    values |= inner


def _set(drawn: Any, p: RowSlot, values: dict[str, Any]) -> None:
    several: Mapping[str, Any] = dict(zip(p.fields, drawn, strict=True)) if len(p.fields) > 1 else {p.fields[0]: drawn}
    if "slot" in several and "slot" in values:  # one slot, told twice: the position is the first's
        several = {**several, "slot": values["slot"]}
    values |= several

"""Scalar expressions: what one element of a tensor is.

The same trees serve the program graph (leaves: `Load`, `Scalar`, `IndexValue`) and the role program (leaves: `Reg`,
`Load` from global memory). Integers that address or bound are `Poly`, not `Expr`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..foundation.dtypes import DType
from .poly import Poly

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
POWERS = (2, 3, 4, -1, -2)  # whole exponents that are computed as products; others by logarithm and exponential
COMPARE: dict[str, Callable[[Any, Any], bool]] = {op: getattr(operator, op) for op in SIGNS}


@dataclass(frozen=True, kw_only=True)
class Expr:
    """Base of scalar expressions."""

    def children(self) -> tuple[Expr, ...]:
        out: list[Expr] = []
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Expr):
                out.append(value)
            elif isinstance(value, tuple):
                out.extend(v for v in value if isinstance(v, Expr))
        return tuple(out)

    def map_children(self, fn: Callable[[Expr], Expr]) -> Expr:
        changed = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Expr):
                changed[f.name] = fn(value)
            elif isinstance(value, tuple) and any(isinstance(v, Expr) for v in value):
                changed[f.name] = tuple(fn(v) if isinstance(v, Expr) else v for v in value)
        return replace(self, **changed) if changed else self


@dataclass(frozen=True, kw_only=True)
class Const(Expr):
    """A number (float, int) or a bool."""

    value: float | int | bool

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, kw_only=True)
class IndexValue(Expr):
    """An integer polynomial of indices and dims used as a value: `i`, `N - M`, `D`."""

    poly: Poly

    def __str__(self) -> str:
        return str(self.poly)


@dataclass(frozen=True, kw_only=True)
class Scalar(Expr):
    """A scalar input of the program (`scale`), f32 unless declared otherwise."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True)
class Load(Expr):
    """Element of a tensor (an input or another node) at an access map, one `Poly` of indices and dims per axis."""

    tensor: str
    access: tuple[Poly, ...]

    def __str__(self) -> str:
        return f"{self.tensor}[{', '.join(map(str, self.access))}]"


@dataclass(frozen=True, kw_only=True)
class Reg(Expr):
    """Role program only: the element of a register value at this lane's row and column (a row value has no column)."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True)
class Apply(Expr):
    """A function of real numbers. One argument: neg exp exp2 log log2 tanh sigmoid sqrt rsqrt abs rcp erf gelu gelu_tanh
    relu silu; in schedules' hands tanh_approx too. Two: add sub mul div pow min max. `rcp` is IEEE 1/x."""

    fn: str
    args: tuple[Expr, ...]

    def __str__(self) -> str:
        if self.fn in INFIX:
            return f"({self.args[0]} {INFIX[self.fn]} {self.args[1]})"
        return f"{self.fn}({', '.join(map(str, self.args))})"


@dataclass(frozen=True, kw_only=True)
class Cmp(Expr):
    """Comparison of numbers. op: lt le gt ge eq ne."""

    op: str
    left: Expr
    right: Expr

    def __str__(self) -> str:
        return f"{self.left} {SIGNS[self.op]} {self.right}"


@dataclass(frozen=True, kw_only=True)
class Affine(Expr):
    """The canonical integer predicate: `poly >= 0`, over indices and dims."""

    poly: Poly

    def __str__(self) -> str:
        return f"{self.poly} >= 0"


@dataclass(frozen=True, kw_only=True)
class Logic(Expr):
    """op: and, or, not."""

    op: str
    args: tuple[Expr, ...]

    def __str__(self) -> str:
        if self.op == "not":
            return f"not ({self.args[0]})"
        return f" {self.op} ".join(f"({a})" if isinstance(a, Logic) else str(a) for a in self.args)


@dataclass(frozen=True, kw_only=True)
class Select(Expr):
    """`then` where `cond`, else `other`."""

    cond: Expr
    then: Expr
    other: Expr

    def __str__(self) -> str:
        return f"select({self.cond}, {self.then}, {self.other})"


@dataclass(frozen=True, kw_only=True)
class Cast(Expr):
    """Rounding to a stored type: a rounding that no pass moves across."""

    dtype: DType
    arg: Expr

    def __str__(self) -> str:
        return f"{self.dtype}({self.arg})"


TRUE = Const(value=True)
FALSE = Const(value=False)


def const(value: float | int | bool) -> Const:
    """A number or a truth value."""
    return Const(value=value)


def apply(fn: str, *args: Expr) -> Apply:
    """A function applied to its arguments."""
    return Apply(fn=fn, args=args)


def exponent(e: Expr) -> int | None:
    """The exponent of a power that is computed as a product."""
    if not isinstance(e, Apply) or e.fn != "pow" or not isinstance(e.args[1], Const):
        return None
    return next((n for n in POWERS if n == e.args[1].value), None)


def whole_numbers(sides: tuple[Expr, ...], integers: Callable[[str], bool]) -> bool:
    """Whether expressions that are compared are integers as they stand, elements of tensors among them: such a comparison is
    exact. integers: whether a tensor's elements are."""
    read = [e for e in sides if isinstance(e, Load) and integers(e.tensor)]
    return bool(read) and all(e in read or isinstance(e, IndexValue) or _is_whole(e) for e in sides)


def _is_whole(e: Expr) -> bool:
    return isinstance(e, Const) and not isinstance(e.value, bool) and float(e.value).is_integer() and abs(e.value) < 2**31


def conjunction(*parts: Expr) -> Expr:
    """`and` of the parts, flattened, without TRUE and duplicates; FALSE if one is."""
    return _joined("and", parts, TRUE, FALSE)


def disjunction(*parts: Expr) -> Expr:
    """`or` of the parts, flattened, without FALSE and duplicates; TRUE if one is."""
    return _joined("or", parts, FALSE, TRUE)


def _joined(op: str, parts: tuple[Expr, ...], neutral: Expr, decisive: Expr) -> Expr:
    flat: list[Expr] = []
    for p in parts:
        for q in p.args if isinstance(p, Logic) and p.op == op else (p,):
            if q == decisive:
                return decisive
            if q != neutral and q not in flat:
                flat.append(q)
    if not flat:
        return neutral
    return flat[0] if len(flat) == 1 else Logic(op=op, args=tuple(flat))


def conjuncts(e: Expr) -> tuple[Expr, ...]:
    """The parts of a conjunction; none for TRUE."""
    if e == TRUE:
        return ()
    return e.args if isinstance(e, Logic) and e.op == "and" else (e,)


def walk(e: Expr) -> Iterator[Expr]:
    """The expression and everything under it, parents first."""
    stack = [e]
    while stack:
        x = stack.pop()
        yield x
        stack.extend(reversed(x.children()))


def rewrite(e: Expr, fn: Callable[[Expr], Expr | None]) -> Expr:
    """Bottom-up: `fn` sees each node after its children; None keeps it."""
    e = e.map_children(lambda c: rewrite(c, fn))
    out = fn(e)
    return e if out is None else out


def map_polys(e: Expr, fn: Callable[[Poly], Poly]) -> Expr:
    """Apply a function to every integer polynomial of an expression."""

    def one(x: Expr) -> Expr | None:
        if isinstance(x, Load):
            return Load(tensor=x.tensor, access=tuple(fn(p) for p in x.access))
        if isinstance(x, IndexValue):
            return IndexValue(poly=fn(x.poly))
        if isinstance(x, Affine):
            return Affine(poly=fn(x.poly))
        return None

    return rewrite(e, one)


def substitute_indices(e: Expr, values: Mapping[str, Poly]) -> Expr:
    """Replace index symbols in accesses, index values and predicates."""
    return map_polys(e, lambda p: p.substitute(values))


def loads(e: Expr) -> tuple[Load, ...]:
    """Every load, in the order of the text."""
    return tuple(x for x in walk(e) if isinstance(x, Load))


def regs(e: Expr) -> frozenset[str]:
    """The names of the register values that the expression reads."""
    return frozenset(x.name for x in walk(e) if isinstance(x, Reg))


def indices_of(e: Expr) -> frozenset[str]:
    """Symbols (indices and dims) that the expression mentions in accesses, index values and predicates."""
    return frozenset(s for x in walk(e) for p in polys_of(x) for s in p.symbols())


def polys_of(x: Expr) -> tuple[Poly, ...]:
    """The integer polynomials of one node: its access map, or its value."""
    if isinstance(x, Load):
        return x.access
    return (x.poly,) if isinstance(x, IndexValue | Affine) else ()

"""Typed values: what an AST expression means, and the arithmetic of that.

In: values of operands.  Out: a value, folded where it is known. Three kinds: `bool`; `int`, exact, with a `poly` while it
depends on indices, dims and elements of integer arguments only; `real`. Int / and % floor; a real operand makes the whole
operation real.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..diagnostics.analyse import LiteralRange, NotBuilt, TypeMismatch
from ..foundation.dtypes import BOOL, F32, I32, DType
from ..foundation.source import Span
from ..program.expr import Apply, Cast, Cmp, Const, Expr, IndexValue, Load, Scalar, Select
from ..program.poly import Poly, element, elements, floordiv, maximum, minimum, mod
from .problems import refuse

PHRASES = {"bool": "a truth value", "int": "an integer", "real": "a real number"}
UNARY = [
    "exp",
    "exp2",
    "log",
    "log2",
    "tanh",
    "sigmoid",
    "sqrt",
    "rsqrt",
    "abs",
    "rcp",
    "erf",
    "gelu",
    "gelu_tanh",
    "relu",
    "silu",
]  # functions of one real number; `abs` of an integer stays one
EXTREMES = {"min": minimum, "max": maximum}
CASTS = ("f32", "f16", "bf16", "e4m3", "e5m2", "i32")
F32_MAX, F32_TINY = 3.4028235677973366e38, 7.006492321624085e-46  # what rounds to inf, and to 0, in f32


@dataclass(frozen=True)
class Value:
    kind: str  # bool, int, real
    expr: Expr
    poly: Poly | None = None

    @property
    def dtype(self) -> DType:
        return {"bool": BOOL, "int": I32, "real": F32}[self.kind]

    @property
    def read(self) -> bool:
        """Whether it is an integer that elements of arguments say: in expressions they stay loads."""
        return self.poly is not None and any(elements(self.poly))

    @property
    def constant(self) -> float | int | bool | None:
        """The number if it is known, else None."""
        if self.poly is not None:
            return self.poly.constant
        return self.expr.value if isinstance(self.expr, Const) else None


def integer(poly: int | Poly) -> Value:
    """An exact integer."""
    poly = Poly.of(poly)
    c = poly.constant
    return Value("int", Const(value=c) if c is not None else IndexValue(poly=poly), poly)


def real(expr: Expr | float) -> Value:
    """A real number."""
    return Value("real", expr if isinstance(expr, Expr) else Const(value=float(expr)))


def truth(expr: Expr | bool) -> Value:
    """A truth value."""
    return Value("bool", expr if isinstance(expr, Expr) else Const(value=expr))


def of_constant(value: bool | int | float) -> Value:
    """The value of a Python constant."""
    if isinstance(value, bool):
        return truth(value)
    return integer(value) if isinstance(value, int) else real(value)


def of_dtype(expr: Expr, dtype: DType) -> Value:
    """The value of a stored element."""
    return Value({"float": "real"}.get(dtype.kind, dtype.kind), expr)


def of_argument(expr: Scalar | Load, dtype: DType) -> Value:
    """The value of a scalar argument, or of an element of one; a truth value is passed as 0 or 1."""
    if dtype == I32 and isinstance(expr, Load):
        return Value("int", expr, element(expr.tensor, expr.access))
    return truth(Cmp(op="ne", left=expr, right=Const(value=0))) if dtype == BOOL else of_dtype(expr, dtype)


def literal(value: int | float, text: str, span: Span | None) -> Value:
    """A number of the source; out of the range of f32 or of 32-bit integers it is refused."""
    if isinstance(value, int):
        if value > 2**31 - 1:
            cure = f"write {text}.0 if a real number is meant"
            refuse(LiteralRange(span=span, text=text or str(value), why="doesn't fit a 32-bit integer", cure=cure))
        return integer(value)
    if F32_MAX <= abs(value) < math.inf:
        cure = "write `inf` for infinity"
        refuse(LiteralRange(span=span, text=text or str(value), why="is too large for f32", cure=cure))
    if abs(value) < F32_TINY and (value or _has_digits(text)):
        refuse(LiteralRange(span=span, text=text or str(value), why="is 0 in f32", cure="write `0.0`"))
    return real(value)


def _has_digits(text: str) -> bool:
    """Whether a literal that parsed to zero has a digit other than 0 before its exponent."""
    mantissa = text.lower().split("p")[0] if text.lower().startswith("0x") else text.lower().split("e")[0]
    return any(c in "123456789abcdef" for c in mantissa.removeprefix("0x"))


def expect(v: Value, kinds: str, what: str, span: Span | None, cure: str = "") -> Value:
    """`v`, if its kind is among `kinds` (as in "int real"); else refused."""
    if v.kind not in kinds.split():
        wanted = "a number" if kinds == "int real" else " or ".join(PHRASES[k] for k in kinds.split())
        refuse(TypeMismatch(span=span, what=what, expected=wanted, got=PHRASES[v.kind], cure=cure))
    return v


def as_real(v: Value) -> Expr:
    """The expression as a real number: integer constants become floats."""
    c = v.constant
    return Const(value=float(c)) if c is not None and not isinstance(c, bool) else v.expr


def as_poly(v: Value, what: str, span: Span | None) -> Poly:
    """The integer polynomial of indices and dims, for extents; for accesses of elements too."""
    expect(v, "int", what, span)
    if v.poly is None or (v.read and what != PLACE):
        refuse(NotBuilt(span=span, what=f"{what} that depends on a tensor or a scalar input", cure=_GATHER))
    return v.poly


PLACE = "an index"
_GATHER = "accesses are integer expressions of indices, dims and options"


# Arithmetic.

_FN = {"+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow"}
_FOLD: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
}


def arithmetic(op: str, a: Value, b: Value, span: Span | None) -> Value:
    """op: + - * / % **."""
    for v in (a, b):
        expect(v, "int real", f"an operand of `{op}`", span, "write `select(condition, a, b)`" if v.kind == "bool" else "")
    if a.kind == b.kind == "int":
        return _integers(op, a, b, span)
    if op == "%":
        expect(a, "int", "an operand of `%`", span)
        expect(b, "int", "an operand of `%`", span)
    return real(_folded(op, as_real(a), as_real(b)))


def _folded(op: str, a: Expr, b: Expr) -> Expr:
    if isinstance(a, Const) and isinstance(b, Const):
        try:
            result = _FOLD[op](a.value, b.value)
            if not isinstance(result, complex):
                return Const(value=result)
        except (ZeroDivisionError, OverflowError):
            pass  # IEEE gives inf or nan: left to the evaluation
    return Apply(fn=_FN[op], args=(a, b))


def _integers(op: str, a: Value, b: Value, span: Span | None) -> Value:
    if op == "**":
        return _power(a, b, span)
    if a.poly is not None and b.poly is not None and not (a.read or b.read):
        return integer(_polynomial(op, a.poly, b.poly, span))
    if op in ("/", "%"):
        refuse(NotBuilt(span=span, what=f"integer `{op}` of a tensor element", cure="convert with `f32(...)` to divide"))
    poly = None if a.poly is None or b.poly is None else _polynomial(op, a.poly, b.poly, span)
    return Value("int", Apply(fn=_FN[op], args=(a.expr, b.expr)), poly)


def _polynomial(op: str, a: Poly, b: Poly, span: Span | None) -> Poly:
    if op in ("/", "%") and b.constant == 0:
        refuse(TypeMismatch(span=span, what="an integer divisor", expected="other than 0", got="0"))
    return {"+": a.__add__, "-": a.__sub__, "*": a.__mul__, "/": lambda d: floordiv(a, d), "%": lambda d: mod(a, d)}[op](b)


def _power(a: Value, b: Value, span: Span | None) -> Value:
    exponent = b.constant
    if a.poly is None or a.read or exponent is None:
        refuse(NotBuilt(span=span, what="an integer power that isn't known at compile time", cure="write `2.0 ** x`"))
    if exponent < 0:
        return real(_folded("**", as_real(a), as_real(b)))
    if exponent > 64:
        refuse(LiteralRange(span=span, text=str(exponent), why="is too large for an integer power"))
    result = Poly.of(1)
    for _ in range(int(exponent)):
        result = result * a.poly
    return integer(result)


def negative(v: Value, span: Span | None) -> Value:
    """`-v`."""
    expect(v, "int real", "the operand of `-`", span)
    if v.poly is not None and not v.read:
        return integer(-v.poly)
    if isinstance(v.expr, Const):
        return real(-v.expr.value)
    return Value(v.kind, Apply(fn="neg", args=(v.expr,)), None if v.poly is None else -v.poly)


# Functions.


def function(name: str, args: tuple[Value, ...], span: Span | None) -> Value:
    """One of `UNARY` or `EXTREMES`, with the right number of arguments."""
    for v in args:
        expect(v, "int real", f"an argument of `{name}`", span)
    if name in EXTREMES:
        return _extreme(name, args)
    if name == "abs" and args[0].kind == "int":
        poly = None if args[0].read else args[0].poly
        return integer(maximum(poly, -poly)) if poly is not None else Value("int", Apply(fn="abs", args=(args[0].expr,)))
    return real(Apply(fn=name, args=(as_real(args[0]),)))


def _extreme(name: str, args: tuple[Value, ...]) -> Value:
    if all(v.poly is not None and not v.read for v in args):
        return integer(EXTREMES[name](*(v.poly for v in args if v.poly is not None)))
    ints = all(v.kind == "int" for v in args)
    out = args[0].expr if ints else as_real(args[0])
    for v in args[1:]:
        out = Apply(fn=name, args=(out, v.expr if ints else as_real(v)))
    polys = [v.poly for v in args if v.poly is not None]
    return Value("int" if ints else "real", out, EXTREMES[name](*polys) if ints and len(polys) == len(args) else None)


def cast(dtype: DType, v: Value, span: Span | None) -> Value:
    """`v` rounded to a stored type; to an integer type, truncated."""
    expect(v, "int real", f"the argument of `{dtype}`", span)
    if dtype.kind == "int":
        return v if v.kind == "int" else Value("int", Cast(dtype=dtype, arg=v.expr))
    return real(Cast(dtype=dtype, arg=as_real(v)))


def choose(cond: Value, a: Value, b: Value, span: Span | None) -> Value:
    """`select` with a condition that isn't known."""
    if (a.kind == "bool") != (b.kind == "bool"):
        refuse(TypeMismatch(span=span, what="both branches of `select`", expected="of one kind", got="a mixture"))
    if a.kind == b.kind:
        return Value(a.kind, Select(cond=cond.expr, then=a.expr, other=b.expr))
    return real(Select(cond=cond.expr, then=as_real(a), other=as_real(b)))

"""Expressions and integers of a role program out of the AST of their text: `expressions.py` read backwards.

In: a `Scope`, which says what names mean, and an expression.  Out: a `Poly` or an `Expr`. What has no meaning is `Skipped`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

from ..diagnostics.roles import NothingOfThatName, NotOfThisKind, WrongNumber
from ..foundation.dtypes import DTYPES
from ..program.expr import (
    INFIX,
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
    conjunction,
    disjunction,
)
from ..program.poly import Poly, element, floordiv, maximum, minimum, mod
from ..syntax import ast
from .limits import fitting
from .scope import Scope, refuse

_SIGNS = {sign: op for op, sign in SIGNS.items()}
_INFIX = {sign: fn for fn, sign in INFIX.items()}
_BY_ZERO = "this divides by 0: write a divisor of 1 or more"
_TWO = frozenset(("pow", "min", "max", *INFIX))  # functions of two arguments


def integer(scope: Scope, e: ast.Node) -> Poly:
    """An integer: of numbers, of names that stand for integers, of elements, and of `+ - * / % min max`."""
    return fitting(e, _integer(scope, e))


def _integer(scope: Scope, e: ast.Node) -> Poly:
    if isinstance(e, ast.Number) and isinstance(e.value, int):
        return Poly.of(e.value)
    if isinstance(e, ast.Name):
        return Poly.of(e.id) if e.id in scope.integers else _unknown(scope, e, "integer", tuple(sorted(scope.integers)))
    if isinstance(e, ast.Unary) and e.op == "-":
        return -integer(scope, e.operand)
    if isinstance(e, ast.Binary) and e.op in ("+", "-", "*", "/", "%"):
        a, b = integer(scope, e.left), integer(scope, e.right)
        return _not(e, "integer", _BY_ZERO) if e.op in "/%" and b == Poly() else _binary(e.op, a, b)
    if isinstance(e, ast.Index):
        return element(e.base.id, access(scope, e, e.base, e.indices))
    if isinstance(e, ast.Call) and e.function in ("min", "max"):
        return (minimum if e.function == "min" else maximum)(*(integer(scope, a) for a in e.arguments))
    _not(e, "integer")


def _unknown(scope: Scope, e: ast.Name, what: str, known: tuple[str, ...]) -> NoReturn:
    refuse(NothingOfThatName(span=e.span, what=what, name=e.id, known=known, cure=scope.bound_by(e.id)))


def _binary(op: str, a: Poly, b: Poly) -> Poly:
    if op in ("/", "%"):
        return floordiv(a, b) if op == "/" else mod(a, b)
    return a + b if op == "+" else a - b if op == "-" else a * b


def _not(e: ast.Node, wanted: str, hint: str = "") -> NoReturn:
    refuse(NotOfThisKind(span=e.span, found=e.span.text if e.span else "", wanted=wanted, hint=hint))


def constant(scope: Scope, e: ast.Node) -> int:
    """An integer that is a plain number."""
    value = integer(scope, e).constant
    return value if value is not None else _not(e, "plain number")


def number(scope: Scope, e: ast.Node) -> Expr:
    """What one element is computed to."""
    if isinstance(e, ast.Number):
        return Const(value=e.value)
    if isinstance(e, ast.Bool):
        return Const(value=e.value)
    if isinstance(e, ast.Name):
        return _named(scope, e)
    if isinstance(e, ast.Index):
        return _load(scope, e)
    if isinstance(e, ast.Call):
        return _call(scope, e)
    if isinstance(e, ast.Unary) and e.op == "-":
        if isinstance(e.operand, ast.Number):
            return Const(value=-e.operand.value)
        return Apply(fn="neg", args=(number(scope, e.operand),))
    if isinstance(e, ast.Binary) and e.op in (*_INFIX, "**"):
        return Apply(fn=_INFIX.get(e.op, "pow"), args=(number(scope, e.left), number(scope, e.right)))
    if isinstance(e, ast.Binary | ast.Unary | ast.Compare) and getattr(e, "op", "") != "%":
        return predicate(scope, e)
    for x in _unnamed(scope, e):
        _unknown(scope, x, "integer", tuple(sorted(scope.integers)))
    _not(e, "number", "`int(...)` is an integer as a number" if isinstance(e, ast.Binary) else "")


def _named(scope: Scope, e: ast.Name) -> Expr:
    values = scope.names.known("value")
    if e.id in values:
        return Reg(name=e.id)
    if e.id in scope.scalars:
        return Scalar(name=e.id)
    if e.id in scope.integers:
        _not(e, "number", f"`int({e.id})` is the integer as a number")
    _unknown(scope, e, "value or scalar", (*values, *sorted(scope.scalars)))


def _unnamed(scope: Scope, e: ast.Node) -> Iterator[ast.Name]:
    """The names in a sum that mean nothing here."""
    if isinstance(e, ast.Name) and not (e.id in scope.integers or e.id in scope.scalars or e.id in scope.names.known("value")):
        yield e
    elif isinstance(e, ast.Binary):
        yield from (*_unnamed(scope, e.left), *_unnamed(scope, e.right))


def _load(scope: Scope, e: ast.Index) -> Expr:
    return Load(tensor=e.base.id, access=access(scope, e, e.base, e.indices))


def access(scope: Scope, e: ast.Node, tensor: ast.Name, indices: tuple[ast.Node, ...]) -> tuple[Poly, ...]:
    """The place of an element in a tensor: an integer for each of its axes."""
    rank = len(scope.thing("tensor", tensor, tensor.id).shape)
    if len(indices) != rank:
        refuse(
            WrongNumber(span=e.span, what=f"the number of indices of `{tensor.id}`", found=str(len(indices)), wanted=str(rank))
        )
    return tuple(integer(scope, i) for i in indices)


def _call(scope: Scope, e: ast.Call) -> Expr:
    from ..program.functions import FUNCTIONS

    fn, known = e.function, ("int", "select", *DTYPES, *FUNCTIONS)
    if fn not in known:
        refuse(NothingOfThatName(span=e.span, what="function", name=fn, known=known))
    count = 3 if fn == "select" else 2 if fn in _TWO else 1
    if len(e.arguments) != count:
        refuse(
            WrongNumber(span=e.span, what=f"the number of arguments of `{fn}`", found=str(len(e.arguments)), wanted=str(count))
        )
    if fn == "int":
        return IndexValue(poly=integer(scope, e.arguments[0]))
    if fn == "select":
        cond, then, other = e.arguments
        return Select(cond=predicate(scope, cond), then=number(scope, then), other=number(scope, other))
    args = tuple(number(scope, a) for a in e.arguments)
    return Cast(dtype=DTYPES[fn], arg=args[0]) if fn in DTYPES else Apply(fn=fn, args=args)


def predicate(scope: Scope, e: ast.Node) -> Expr:
    """A condition."""
    if isinstance(e, ast.Unary) and e.op == "not":
        return Logic(op="not", args=(predicate(scope, e.operand),))
    if isinstance(e, ast.Binary) and e.op in ("and", "or"):
        return Logic(op=e.op, args=tuple(predicate(scope, x) for x in _joined(e, e.op)))
    if isinstance(e, ast.Compare):
        return _comparison(scope, e)
    if isinstance(e, ast.Bool | ast.Name | ast.Index) or (isinstance(e, ast.Call) and e.function == "select"):
        return number(scope, e)
    _not(e, "condition")


def _joined(e: ast.Binary, op: str) -> list[ast.Node]:
    """The operands of `a and b and c`; what stands in brackets is one operand."""
    left = e.left
    chained = isinstance(left, ast.Binary) and left.op == op and not _bracketed(left)
    return [*(_joined(left, op) if chained else (left,)), e.right]  # type: ignore[arg-type]


def _bracketed(e: ast.Binary | ast.Compare) -> bool:
    """The span of a node that stands in brackets begins before its first operand does."""
    first = e.left if isinstance(e, ast.Binary) else e.operands[0]
    return e.span is not None and first.span is not None and e.span.start < first.span.start


def _comparison(scope: Scope, e: ast.Compare) -> Expr:
    """Of integers, which is `poly >= 0`, or of numbers. Two plain numbers are numbers if they stand in brackets."""
    if len(e.ops) != 1:
        _not(e, "condition", "`a < b and b < c`")
    left, right = e.operands
    names = list(_names(e))
    if (names or not _bracketed(e)) and all(x is not None and x in scope.integers for x in names) and not _has_reals(e):
        return _affine(e.ops[0], integer(scope, left), integer(scope, right))
    return Cmp(op=_SIGNS[e.ops[0]], left=number(scope, left), right=number(scope, right))


def _affine(sign: str, a: Poly, b: Poly) -> Expr:
    at_least, at_most = Affine(poly=a - b), Affine(poly=b - a)
    match sign:
        case ">=":
            return at_least
        case "<=":
            return at_most
        case ">":
            return Affine(poly=a - b - 1)
        case "<":
            return Affine(poly=b - a - 1)
        case "==":
            return conjunction(at_least, at_most)
    return disjunction(Affine(poly=a - b - 1), Affine(poly=b - a - 1))


def _names(e: ast.Node) -> Iterable[str | None]:
    """The names that stand for themselves; None for what only a number can hold."""
    match e:
        case ast.Name():
            yield e.id
        case ast.Unary():
            yield from _names(e.operand)
        case ast.Binary():
            yield from (*_names(e.left), *_names(e.right))
        case ast.Compare():
            for x in e.operands:
                yield from _names(x)
        case ast.Call(function="min" | "max"):
            for x in e.arguments:
                yield from _names(x)
        case ast.Number():
            pass
        case _:
            yield None


def _has_reals(e: ast.Node) -> bool:
    match e:
        case ast.Number():
            return not isinstance(e.value, int)
        case ast.Unary():
            return _has_reals(e.operand)
        case ast.Binary():
            return _has_reals(e.left) or _has_reals(e.right)
        case ast.Compare():
            return any(map(_has_reals, e.operands))
        case ast.Call():
            return any(map(_has_reals, e.arguments))
    return False

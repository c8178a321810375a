"""The value of a constant expression of a schedule.

In: an expression and the names with values (options of schedule and program, fixed dims).  Out: a number, a truth value or
the name of a choice. Integer `/` and `%` floor, as in programs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from ..diagnostics.model import WgError
from ..diagnostics.resolve import BadConstant, UnknownConstant
from ..foundation.source import Span
from ..syntax import ast
from ..syntax.options import OptionValue

_COMPARE: dict[str, Callable] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_ARITHMETIC: dict[str, Callable] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "**": operator.pow,
    "%": operator.mod,
}
FUNCTIONS = ("select", "min", "max")


@dataclass(frozen=True, kw_only=True)
class Names:
    """`values`: what has one.  `choices`: the value names of the options that are enumerations.  `open`: dims that each call
    gives."""

    values: Mapping[str, OptionValue] = field(default_factory=dict)
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    open: frozenset[str] = frozenset()


def evaluate(e: ast.Expr, names: Names) -> OptionValue:
    """The value. Raises WgError for a name without one, and for what has none."""
    match e:
        case ast.Number() | ast.Bool():
            return e.value
        case ast.Name():
            return _named(e, names)
        case ast.Unary(op="not"):
            return not truth(e.operand, names)
        case ast.Unary():
            return -number(e.operand, names)
        case ast.Binary(op="and"):
            return truth(e.left, names) and truth(e.right, names)
        case ast.Binary(op="or"):
            return truth(e.left, names) or truth(e.right, names)
        case ast.Binary():
            return _arithmetic(e, number(e.left, names), number(e.right, names))
        case ast.Compare():
            return _compare(e, names)
        case ast.Call():
            return _call(e, names)
    _refuse(e.span, "a schedule's constants are numbers, options and fixed dims")


def number(e: ast.Expr, names: Names) -> int | float:
    """The value, which has to be a number."""
    value = evaluate(e, names)
    if isinstance(value, bool | str):
        _refuse(e.span, "a number belongs here", value)
    return value


def truth(e: ast.Expr, names: Names) -> bool:
    """The value, which has to be true or false."""
    value = evaluate(e, names)
    if not isinstance(value, bool):
        _refuse(e.span, "a truth value belongs here", value)
    return value


def _named(e: ast.Name, names: Names) -> OptionValue:
    if e.id not in names.values:
        raise WgError(UnknownConstant(span=e.span, name=e.id, known=tuple(names.values), dim=e.id in names.open))
    return names.values[e.id]


def _arithmetic(e: ast.Binary, a: int | float, b: int | float) -> int | float:
    whole = isinstance(a, int) and isinstance(b, int)
    try:
        value = (a // b if whole else a / b) if e.op == "/" else _ARITHMETIC[e.op](a, b)
    except (ZeroDivisionError, OverflowError):
        _refuse(e.span, "this has no value")
    if isinstance(value, complex) or abs(value) >= 2**63:
        _refuse(e.span, "this has no value below 2**63")
    return value


def _compare(e: ast.Compare, names: Names) -> bool:
    values = [_side(e, at, names) for at in range(len(e.operands))]
    for op, left, right in zip(e.ops, values, values[1:], strict=False):
        kinds = {type(v) if isinstance(v, bool | str) else float for v in (left, right)}
        if len(kinds) > 1 or (kinds != {float} and op not in ("==", "!=")):
            _refuse(e.span, "these can't be compared")
        if not _COMPARE[op](left, right):
            return False
    return True


def _side(e: ast.Compare, at: int, names: Names) -> OptionValue:
    """An operand; beside an enumeration a name is one of its choices."""
    operand = e.operands[at]
    if not isinstance(operand, ast.Name) or operand.id in names.values:
        return evaluate(operand, names)
    for other in e.operands[max(at - 1, 0) : at + 2]:
        choices = names.choices.get(other.id, ()) if isinstance(other, ast.Name) else ()
        if operand.id in choices:
            return operand.id
        if choices:
            raise WgError(UnknownConstant(span=operand.span, name=operand.id, known=choices))
    return evaluate(operand, names)


def _call(e: ast.Call, names: Names) -> OptionValue:
    if e.function == "select" and len(e.arguments) == 3:
        condition, first, second = e.arguments
        return evaluate(first if truth(condition, names) else second, names)
    if e.function in ("min", "max") and len(e.arguments) > 1:
        return (min if e.function == "min" else max)(number(a, names) for a in e.arguments)
    _refuse(e.span, f"a schedule has the functions {', '.join(FUNCTIONS)}: `select(c, a, b)`, `min(a, b)`")


def _refuse(span: Span | None, why: str, value: OptionValue | None = None) -> NoReturn:
    raise WgError(BadConstant(span=span, why=why, value=value))

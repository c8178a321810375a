"""Expressions and integers of a role program as text; `terms.py` reads them.

A bare `poly >= 0` is an integer predicate; `int(poly)` an integer used as a number; comparisons of numbers stand in brackets,
and numbers that aren't integers have a point or an exponent.
"""

from __future__ import annotations

from collections.abc import Iterable

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
)
from ..program.poly import Poly


def expr_text(e: Expr) -> str:
    """An expression that can be read back; see the module's docstring."""
    if isinstance(e, Const):
        return str(e.value).lower() if isinstance(e.value, bool) else repr(e.value)
    if isinstance(e, IndexValue):
        return f"int({e.poly})"
    if isinstance(e, Scalar | Reg):
        return e.name
    if isinstance(e, Load):
        return f"{e.tensor}[{polys_text(e.access)}]"
    if isinstance(e, Affine):
        return f"{e.poly} >= 0"
    if isinstance(e, Cast):
        return f"{e.dtype}({expr_text(e.arg)})"
    if isinstance(e, Select):
        return f"select({expr_text(e.cond)}, {expr_text(e.then)}, {expr_text(e.other)})"
    if isinstance(e, Cmp):
        return f"({expr_text(e.left)} {SIGNS[e.op]} {expr_text(e.right)})"
    if isinstance(e, Logic):
        return _logic(e)
    assert isinstance(e, Apply)
    args = [expr_text(a) for a in e.args]
    return f"({args[0]} {INFIX[e.fn]} {args[1]})" if e.fn in INFIX else f"{e.fn}({', '.join(args)})"


def _logic(e: Logic) -> str:
    args = [f"({expr_text(a)})" if isinstance(a, Logic) else expr_text(a) for a in e.args]
    return f"not {args[0]}" if e.op == "not" else f" {e.op} ".join(args)


def polys_text(ps: Iterable[Poly]) -> str:
    """Integers between commas."""
    return ", ".join(map(str, ps))

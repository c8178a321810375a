"""Comparisons of integers as predicates `poly >= 0`, and what they are the opposite of."""

from __future__ import annotations

from .expr import Affine, Const, Expr, Logic, conjunction, disjunction
from .poly import Poly


def nonnegative(p: Poly) -> Expr:
    """The predicate `p >= 0`, folded if it is known."""
    return Affine(poly=p) if p.constant is None else Const(value=p.constant >= 0)


def compared(op: str, a: Poly, b: Poly) -> Expr:
    """A comparison of two integers. op: lt le gt ge eq ne."""
    if op in ("lt", "gt"):
        return nonnegative((b - a if op == "lt" else a - b) - 1)
    if op in ("le", "ge"):
        return nonnegative(b - a if op == "le" else a - b)
    if op == "eq":
        return conjunction(nonnegative(a - b), nonnegative(b - a))
    return disjunction(nonnegative(a - b - 1), nonnegative(b - a - 1))


def negation(e: Expr) -> Expr:
    """`not e`, moved inward to the integer comparisons; a comparison of reals keeps its `not` (NaN)."""
    if isinstance(e, Const):
        return Const(value=not e.value)
    if isinstance(e, Affine):
        return Affine(poly=-e.poly - 1)
    if isinstance(e, Logic) and e.op == "not":
        return e.args[0]
    if isinstance(e, Logic):
        return (disjunction if e.op == "and" else conjunction)(*(negation(a) for a in e.args))
    return Logic(op="not", args=(e,))

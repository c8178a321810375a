"""Comparisons of integers as predicates `poly >= 0`, and what they are the opposite of."""

from __future__ import annotations

from .expr import Affine, Apply, Const, Expr, IndexValue, Load, Logic, conjunction, disjunction
from .poly import Poly, element, maximum, minimum


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


OF_INTEGERS = ("add", "sub", "mul", "neg", "min", "max")


def integral(e: Expr) -> Poly | None:
    """An expression of whole numbers, elements of tensors among them; None for another one."""
    match e:
        case Const(value=int() as n) if not isinstance(n, bool):
            return Poly.of(n)
        case IndexValue():
            return e.poly
        case Load():
            return element(e.tensor, e.access)
        case Apply() if e.fn in OF_INTEGERS:
            args = [integral(a) for a in e.args]
            known = [a for a in args if a is not None]
            return _applied(e.fn, known) if len(known) == len(args) else None
    return None


def _applied(fn: str, args: list[Poly]) -> Poly:
    if fn == "neg":
        return -args[0]
    a, b = args
    return {"add": a + b, "sub": a - b, "mul": a * b, "min": minimum(a, b), "max": maximum(a, b)}[fn]


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

"""Truth values: comparisons and their logic, folded and canonical.

In: values to compare, or predicates to combine.  Out: predicates. A comparison of integer polynomials becomes
`poly >= 0`, and a negation of that another one; comparisons of reals stay as they are (NaN).
"""

from __future__ import annotations

from ..foundation.source import Span
from ..program.expr import COMPARE, SIGNS, Affine, Cmp, Const, Expr, Logic, conjunction, disjunction
from ..program.poly import Poly
from .values import Value, as_real, expect, truth

_CMP = {sign: op for op, sign in SIGNS.items()}


def compare(op: str, a: Value, b: Value, span: Span | None) -> Value:
    """One link of a chain. Integer polynomials give `poly >= 0`; anything else stays a comparison."""
    if a.kind == b.kind == "bool" and a.constant is not None and b.constant is not None and op in ("==", "!="):
        return truth((a.constant == b.constant) == (op == "=="))
    for v in (a, b):
        expect(v, "int real", f"an operand of `{op}`", span, "combine truth values with `and`, `or`, `not`")
    if a.poly is not None and b.poly is not None:
        return truth(_affine(op, a.poly, b.poly))
    left, right = (a.expr, b.expr) if a.kind == b.kind == "int" else (as_real(a), as_real(b))
    return truth(folded_cmp(Cmp(op=_CMP[op], left=left, right=right)))


def folded_cmp(c: Cmp) -> Expr:
    """The comparison, or its truth value if both sides are numbers."""
    if isinstance(c.left, Const) and isinstance(c.right, Const):
        return Const(value=COMPARE[c.op](c.left.value, c.right.value))
    return c


def nonnegative(p: Poly) -> Expr:
    """The predicate `p >= 0`, folded if it is known."""
    return Affine(poly=p) if p.constant is None else Const(value=p.constant >= 0)


def _affine(op: str, a: Poly, b: Poly) -> Expr:
    if op in ("<", ">"):
        return nonnegative((b - a if op == "<" else a - b) - 1)
    if op in ("<=", ">="):
        return nonnegative(b - a if op == "<=" else a - b)
    if op == "==":
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

"""Truth values: comparisons and their logic, folded and canonical.

In: values to compare, or predicates to combine.  Out: predicates. A comparison of integer polynomials becomes
`poly >= 0`, and a negation of that another one; comparisons of reals stay as they are (NaN).
"""

from __future__ import annotations

from ..foundation.source import Span
from ..program.expr import COMPARE, SIGNS, Cmp, Const, Expr
from ..program.predicates import compared
from .values import Value, as_real, expect, truth

_CMP = {sign: op for op, sign in SIGNS.items()}


def compare(op: str, a: Value, b: Value, span: Span | None) -> Value:
    """One link of a chain. Integer polynomials give `poly >= 0`; anything else stays a comparison."""
    if a.kind == b.kind == "bool" and a.constant is not None and b.constant is not None and op in ("==", "!="):
        return truth((a.constant == b.constant) == (op == "=="))
    for v in (a, b):
        expect(v, "int real", f"an operand of `{op}`", span, "combine truth values with `and`, `or`, `not`")
    if a.poly is not None and b.poly is not None and not (a.read or b.read):
        return truth(compared(_CMP[op], a.poly, b.poly))
    left, right = (a.expr, b.expr) if a.kind == b.kind == "int" else (as_real(a), as_real(b))
    return truth(folded_cmp(Cmp(op=_CMP[op], left=left, right=right)))


def folded_cmp(c: Cmp) -> Expr:
    """The comparison, or its truth value if both sides are numbers."""
    if isinstance(c.left, Const) and isinstance(c.right, Const):
        return Const(value=COMPARE[c.op](c.left.value, c.right.value))
    return c

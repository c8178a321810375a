"""constants: whole numbers that a schedule writes."""

from __future__ import annotations

from ..syntax import ast


def constant(e: ast.Expr) -> object:
    """The value of a constant integer expression of a schedule; None if it isn't one."""
    if isinstance(e, ast.Number):
        return e.value
    if isinstance(e, ast.Unary) and e.op == "-":
        v = constant(e.operand)
        return -v if isinstance(v, int) else None
    if isinstance(e, ast.Binary) and e.op in ("+", "-", "*", "/"):
        a, b = constant(e.left), constant(e.right)
        if not isinstance(a, int) or not isinstance(b, int) or (e.op == "/" and b == 0):
            return None
        return {"+": a + b, "-": a - b, "*": a * b, "/": a // b if b else 0}[e.op]
    return None

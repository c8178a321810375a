"""The numbers that a line of an explicit form may hold: what fits an `int` of the kernel, and what counts something.

In: a number and the field that it is for.  Out: nothing, or `Skipped` with the problem.
"""

from __future__ import annotations

from ..diagnostics.analyse import LiteralRange
from ..diagnostics.roles import WrongNumber
from ..program.poly import Atom, Poly
from ..syntax import ast
from .scope import refuse

LARGEST = 2**31 - 1
COUNTS = {  # fields that are 1 at least; all others are 0 at least
    "step": "the step of a loop",
    "stages": "the number of stages",
    "parts": "the number of parts",
    "count": "a count",
    "threads": "the number of threads",
    "rows": "the number of rows",
    "cols": "the number of columns",
    "n": "n of a product",
    "k": "k of a product",
}
OTHERS = {"pending": "the number of groups in flight", "nbytes": "the number of bytes", "offset": "a place in shared memory"}


def fitting(e: ast.Node, value: Poly) -> Poly:
    """The integer, if its numbers fit 32 bits."""
    largest = max(numbers_in(value), default=0)
    if largest > LARGEST:
        text = e.span.text if e.span else str(value)
        came = "" if text == str(largest) else f"comes to {largest}, which "
        cure = f"an integer of an explicit form is {LARGEST} at most"
        refuse(LiteralRange(span=e.span, text=f"`{text}`", why=f"{came}doesn't fit a 32-bit integer", cure=cure))
    return value


def counting(field: str, e: ast.Node, value: int) -> None:
    """Refuse a number that its field can't be."""
    least = 1 if field in COUNTS else 0
    if value < least:
        what = COUNTS.get(field) or OTHERS.get(field, f"the number for `{field}`")
        refuse(WrongNumber(span=e.span, what=what, found=str(value), wanted=f"{least} or more"))


def numbers_in(p: Poly) -> list[int]:
    """The numbers that stand in an integer, without their signs."""
    return [abs(c) for _, c in p.terms] + [
        n for monomial, _ in p.terms for f in monomial if isinstance(f, Atom) for a in f.args for n in numbers_in(a)
    ]

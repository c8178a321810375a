"""items: what a role does once an item, and which items are whose when `split tiles` shares them out.

In: a role of the plan.  Out: its list with turns around the loop opened; the condition under which a warpgroup takes an item;
the steps of one that doesn't.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..program.expr import Affine, Expr
from ..program.poly import Poly, mod
from ..roles.model import Advance
from ..syntax import ast

NUMBER = "item.ordinal"  # the symbol of an item's number among those of its CTA


def opened(steps: tuple[ast.Step, ...]) -> Iterator[ast.Step]:
    """The steps of an item in order, those of an `in turn` around the loop among them."""
    for s in steps:
        if isinstance(s, ast.TurnStep):
            yield from opened(s.body)
        else:
            yield s


def loop_of(steps: tuple[ast.Step, ...]) -> ast.ForStep | None:
    """The loop in a role's list, if there is one."""
    return next((s for s in opened(steps) if isinstance(s, ast.ForStep)), None)


def is_mine(count: int) -> Expr:
    """Whether an item falls to this warpgroup, of `count` that take items in turn."""
    return Affine(poly=-mod(Poly.of(NUMBER) + Poly.of("wg") * (count - 1), count))


def passed_over(rings: Iterable[tuple[str, bool]], n: Poly) -> Iterator[Advance]:
    """What a warpgroup does with an item of another one: its rings move as far. rings: (name, whether it is streamed)."""
    for ring, streamed in rings:
        yield Advance(ring=ring, stages=n if streamed else Poly.of(1), note="another warpgroup's item")

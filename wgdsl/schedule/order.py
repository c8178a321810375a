"""order: in which order the work items of a grid run.

In: the grid line, the plan, the trip and the placement.  Out: an `Order`, or None for the order of the grid's axes.
`longest_first` finds the one axis along which trip counts rise or fall, and lets it run slowest, from its long end; `section`
cuts the other axes into groups whose streamed operands fit the given bytes together.
"""

from __future__ import annotations

from math import prod

from ..diagnostics.model import WgError
from ..diagnostics.schedule import CantOrder, UnknownName
from ..program.poly import Atom, Factor, Poly, Symbol, floordiv, maximum, with_elements
from ..roles.model import Order
from ..syntax import ast
from .mask import Trip
from .place import Placement
from .plan import Plan
from .reads import unread


def make_order(plan: Plan, grid: ast.GridDecl, trip: Trip, placement: Placement) -> Order | None:
    """Raises WgError (WG0426) if no axis orders the trip counts."""
    if not grid.longest_first and not grid.section:
        return None
    for axis in grid.section:
        if axis not in plan.grid:
            raise WgError(UnknownName(span=grid.span, what="grid axis", name=axis, known=plan.grid))
    slowest, falling = _longest(plan, grid, trip) if grid.longest_first else (None, False)
    if slowest in grid.section:
        why = f"`{slowest}` is in the section, and trip counts differ along it"
        raise WgError(CantOrder(span=grid.span, why=why, cure=f"take `{slowest}` out of `section`"))
    inner = tuple(a for a in plan.grid if (a in grid.section if grid.section else a != slowest))
    outer = tuple(sorted((a for a in plan.grid if a not in inner), key=lambda a: a != slowest))
    if not outer:
        return None
    size = _size(plan, grid, placement, inner) if grid.section else None
    name = {a: plan.grid_axis(a).index for a in plan.grid}
    back = None if falling or slowest is None else name[slowest]
    return Order(inner=tuple(name[a] for a in inner), outer=tuple(name[a] for a in outer), size=size, reversed=back)


def _longest(plan: Plan, grid: ast.GridDecl, trip: Trip) -> tuple[str | None, bool]:
    """The axis along which the trip count changes, if it does, and whether it falls along it."""
    values: dict[str, Poly] = {}
    for name, value in trip.lets:
        values[name] = value.substitute(values)
    n = with_elements(unread(values[trip.n.bare or ""], trip.reads), lambda a: Poly.of(str(a)))
    symbols = {s: a for a in plan.grid for s in (plan.origin(a).symbols() & n.symbols())}
    cure = "drop `longest_first`"
    if not symbols:
        return None, False
    if len(symbols) > 1:
        why = f"trip counts depend on {' and '.join(f'`{a}`' for a in symbols.values())}"
        raise WgError(CantOrder(span=grid.span, why=why, cure=cure))
    symbol, axis = next(iter(symbols.items()))
    way = direction(n, symbol)
    if not way:
        why = f"trip counts neither only rise nor only fall along `{axis}`"
        raise WgError(CantOrder(span=grid.span, why=why, cure=cure))
    return axis, way < 0


def direction(p: Poly, symbol: str) -> int | None:
    """1 if p never falls where the symbol grows, -1 if it never rises, 0 if it stays; None if that isn't known."""
    return _together([_of_term(m, c, symbol) for m, c in p.terms])


def _together(ways: list[int | None]) -> int | None:
    found = {w for w in ways if w != 0}
    return found.pop() if len(found) == 1 else None if found else 0


def _of_term(monomial: tuple[Factor, ...], coefficient: int, symbol: str) -> int | None:
    moving = [f for f in monomial if symbol in Poly((((f,), 1),)).symbols()]
    if not moving:
        return 0
    if len(monomial) > 1:
        return None
    way = _of_factor(moving[0], symbol)
    return None if way is None else way * (1 if coefficient > 0 else -1)


def _of_factor(f: Factor, symbol: str) -> int | None:
    if isinstance(f, Symbol):
        return 1
    assert isinstance(f, Atom)
    if f.op in ("min", "max"):
        return _together([direction(a, symbol) for a in f.args])
    divisor = f.args[1].constant
    return direction(f.args[0], symbol) if f.op == "floordiv" and divisor is not None and divisor > 0 else None


def _size(plan: Plan, grid: ast.GridDecl, placement: Placement, inner: tuple[str, ...]) -> Poly:
    """How many combinations of the inner axes share a section: as many as have streamed operands that fit together.

    Axes at the end on which no streamed operand depends repeat the same operands: they count once.
    """
    streamed = [p for p in placement.placed.values() if plan.axis in p.home.indices and not p.home.output]
    row = sum(prod(plan.size(i) for i in (p.buffer.rows_index, p.buffer.cols_index) if i != plan.axis) * p.buffer.dtype.nbytes
              for p in streamed)  # fmt: skip
    used = frozenset().union(*(a.symbols() for p in streamed for a in p.home.access))
    copies = Poly.of(1)
    for axis in reversed(inner):
        if axis in used:
            break
        copies = copies * plan.grid_axis(axis).blocks
    assert grid.section_bytes is not None
    fit = floordiv(grid.section_bytes // max(row, 1), maximum(1, plan.graph.extents[plan.axis]))
    return maximum(1, fit) * copies

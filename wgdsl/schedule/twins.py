"""twins: steps of the item that follows, told in the one before it.

In: steps as an item has them for itself.  Out: the same steps over the following item's integers (`next.i.lo` for `i.lo`) and
over second copies of the row values whose first ones the old item still needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from ..program.expr import Expr, Reg, map_polys, rewrite
from ..program.poly import Poly
from ..roles.model import NEXT, Op, Step
from .mask import Trip
from .plan import Plan

VALUES = ("dst", "total", "when", "value")  # fields of a `compute`'s operations that name a register value


@dataclass(frozen=True, kw_only=True)
class Twins:
    """ints: symbol -> the following item's. values: row value -> its second copy."""

    ints: Mapping[str, Poly]
    values: Mapping[str, str] = field(default_factory=dict)

    def poly(self, p: Poly) -> Poly:
        return p.substitute(self.ints)

    def lets(self, lets: tuple[tuple[str, Poly], ...]) -> tuple[tuple[str, Poly], ...]:
        """What an item binds, for the one that follows."""
        return tuple((NEXT + name, self.poly(value)) for name, value in lets)

    def steps(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(self._of(s) for s in steps)

    def _of(self, x: Any) -> Any:
        if isinstance(x, Poly):
            return self.poly(x)
        if isinstance(x, Expr):
            return self._expr(x)
        if isinstance(x, tuple):
            return tuple(self._of(y) for y in x)
        if not is_dataclass(x) or isinstance(x, type):
            return x
        told = {f.name: self._of(getattr(x, f.name)) for f in fields(x) if f.name not in ("span", "note")}
        if isinstance(x, Op):
            told |= {n: self.values.get(told[n], told[n]) for n in VALUES if n in told}
        return replace(x, **told)

    def _expr(self, e: Expr) -> Expr:
        def one(x: Expr) -> Expr | None:
            return Reg(name=self.values.get(x.name, x.name)) if isinstance(x, Reg) else None

        return rewrite(map_polys(e, self.poly), one)


def twins_of(plan: Plan, trip: Trip, values: Mapping[str, str]) -> Twins:
    """The integers that a grid and a trip bind for each item, and theirs for the one that follows."""
    grid = (s for i in plan.grid for s in plan.origin(i).symbols())
    names = (*grid, *(name for name, _ in (*trip.lets, *trip.mask_lets)))
    return Twins(ints={n: Poly.of(NEXT + n) for n in names}, values=values)

"""items: which place of a grid an item number stands for, in polynomials of the dims.

In: a grid.  Out: how its combinations are cut into sections, and by what an item number is divided on the way to the indices.
A kernel whose parameters give these divisors (kind `divisor`) divides by multiplying.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import mul

from ..program.poly import Poly, ceildiv, maximum
from .model import Grid


@dataclass(frozen=True)
class Sections:
    """How many combinations of the inner axes a section has. The first may have fewer, so that the last, in which CTAs run out
    of items, has as many as any; `items`: work items of a whole section."""

    width: Poly
    first: Poly
    items: Poly


def blocks(grid: Grid, group: Iterable[str]) -> Poly:
    """How many combinations of blocks some axes have."""
    of = {a.index: a.blocks for a in grid.axes}
    return reduce(mul, (of[i] for i in group), Poly.of(1))


def sections(grid: Grid) -> Sections | None:
    """None if all combinations are one section."""
    order = grid.order
    if order is None or order.size is None:
        return None
    every = blocks(grid, order.inner)
    width = ceildiv(every, ceildiv(every, maximum(1, order.size)))  # an explicit form may say a size that can be 0
    return Sections(width=width, first=every - (ceildiv(every, width) - 1) * width, items=width * blocks(grid, order.outer))


def divisors(grid: Grid) -> dict[str, Poly]:
    """Name -> what item numbers are divided by and no constant is. Item numbers and divisors are below 2^31."""
    found: dict[Poly, str] = {}
    cut = sections(grid)
    if cut is not None:
        found |= {cut.items: "section.items", cut.width: "section.width", cut.first: "section.first"}
    elif grid.order is not None:
        found[blocks(grid, grid.order.inner)] = "combinations"
    for group in _groups(grid):
        counted = [a for a in grid.axes if a.index in group and a.blocks.constant != 1]
        for axis in sorted(counted, key=lambda a: group.index(a.index))[1:]:
            found.setdefault(axis.blocks, f"{axis.index}.divisor")
    return {name: p for p, name in found.items() if p.constant is None}


def multiplier(divisor: int) -> tuple[int, int]:
    """(m, s) with x // divisor == (2 * x * m >> 32) >> s for every x from 0 to 2^31 - 1; the divisor is from 1 to 2^31, m is
    below 2^32. Granlund and Montgomery, "Division by invariant integers using multiplication" (1994), theorem 4.2."""
    shift = (divisor - 1).bit_length()
    return -(-(1 << 31 + shift) // divisor), shift


def _groups(grid: Grid) -> list[tuple[str, ...]]:
    """Axes whose blocks one number stands for, the slowest first."""
    if grid.order is None:
        return [tuple(a.index for a in grid.axes)]
    return [grid.order.outer, grid.order.inner]

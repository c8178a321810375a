"""reads: integers that tensors say, as far as they bound the streamed axis.

In: the domain's predicates and the plan.  Out: the predicates over integers that are read once an item, and these `Read`s.

A comparison is taken that has the axis as it is and elements of inputs at the item's own grid indices. All of it that is the
same for the whole item becomes one integer between limits beyond which nothing changes, so that for the verifier it is one free
number: where the rows don't matter, the element of the axis at which it ends or begins, from 0 to the extent. Beside such a one
the other bounds of the axis become one number each as well: with the dims that they hang on there would be too many.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd

from ..foundation.dtypes import I32
from ..program.expr import TRUE, Affine, Apply, Cmp, Const, Expr, IndexValue, Load, Logic, conjuncts, walk
from ..program.graph import Input
from ..program.poly import Poly, ceildiv, element, elements, maximum, minimum
from ..program.predicates import compared, negation
from ..roles.model import Read
from .plan import Plan

LARGEST_EXTENT = 2**25  # more than elements of an axis: sizes are up to 2^24
STEEPEST = 4  # factor of an index in a predicate
MOST = 3  # numbers on which loops hang
COARSE = 64  # what tile sizes are multiples of, so that there are few sizes to try
OF_INTEGERS = ("add", "sub", "mul", "neg", "min", "max")


@dataclass(frozen=True)
class Reading:
    """The domain over what is read. ended: it ends where the extent does, or before. live: how many warpgroups have rows, where
    that is read too."""

    domain: Expr = TRUE
    reads: tuple[Read, ...] = ()
    ended: bool = False
    live: Poly | None = None


def read_out(plan: Plan, domain: Expr) -> Reading:
    """The predicates that bound the axis by what tensors say, over integers that are bound for the item."""
    reader = _Reader(plan)
    found = reader.of(domain)
    if not reader.reads:
        return Reading(domain)
    found = reader.rest(found)
    ends = {Poly.of(r.name) - 1 - Poly.of(plan.axis) for r in reader.reads.values() if r.high == reader.extent}
    ended = any(isinstance(p, Affine) and p.poly in ends for p in conjuncts(found))
    if len(reader.reads) + (not ended) > most_numbers(plan):
        return Reading(domain)
    live = reader.live()
    return Reading(found, tuple(reader.reads.values()), ended, live)


def most_numbers(plan: Plan) -> int:
    """On how many numbers loops may hang: the sizes of all of them are tried together, where the protocol is verified."""
    coarse = gcd(*(n for n in plan.tiles.values() if n > 1)) >= COARSE
    return MOST if coarse and not plan.skips else MOST - 1


def unread(p: Poly, reads: tuple[Read, ...]) -> Poly:
    """An integer over what tensors say, without what is read in between."""
    return p.substitute({r.name: maximum(r.low, minimum(r.high, r.value)) for r in reads})


@dataclass
class _Reader:
    plan: Plan
    reads: dict[str, Read] = field(default_factory=dict)

    @property
    def extent(self) -> Poly:
        return self.plan.graph.extents[self.plan.axis]

    def of(self, e: Expr) -> Expr:
        if isinstance(e, Logic) and e.op == "not":
            inner = self.of(e.args[0])
            return e if inner == e.args[0] else negation(inner)
        if isinstance(e, Logic):
            return e.map_children(self.of)
        return (self.comparison(e) if isinstance(e, Cmp) else None) or e

    def comparison(self, e: Cmp) -> Expr | None:
        """The comparison over what is read; None if it can't be taken."""
        left, right = (self.integral(x) for x in (e.left, e.right))
        if left is None or right is None:
            return None
        parts = compared(e.op, left, right)
        found = [p.poly for p in walk(parts) if isinstance(p, Affine)]
        if not found or not all(any(elements(p)) and self.bounds(p) for p in found):
            return None
        return self.replaced(parts)

    def rest(self, e: Expr) -> Expr:
        """The same with the bounds that nothing is read for."""
        if isinstance(e, Logic):
            return e.map_children(self.rest)
        ours = isinstance(e, Affine) and not e.poly.symbols() & self.reads.keys() and self.bounds(e.poly)
        return self.replaced(e) if ours else e

    def live(self) -> Poly | None:
        """How many warpgroups have rows, where they pass over what is empty for them."""
        role = self.plan.split_role
        if role is None or role.split is None or not self.plan.skips:
            return None
        rows = self.plan.graph.extents[role.split] - self.plan.origin(role.split)
        share = self.plan.size(role.split) // role.count
        return self.read("live", ceildiv(rows, share), Poly(), Poly.of(role.count), role.split)

    def integral(self, e: Expr) -> Poly | None:
        """An expression of whole numbers."""
        match e:
            case Const(value=int() as n) if not isinstance(n, bool):
                return Poly.of(n)
            case IndexValue():
                return e.poly
            case Load():
                node = self.plan.graph.by_name[e.tensor]
                return element(e.tensor, e.access) if isinstance(node, Input) and node.dtype == I32 else None
            case Apply() if e.fn in OF_INTEGERS:
                args = [self.integral(a) for a in e.args]
                known = [a for a in args if a is not None]
                return _applied(e.fn, known) if len(known) == len(args) else None
        return None

    def bounds(self, p: Poly) -> bool:
        """Whether a predicate bounds the axis by what is the same for the whole item, in whole steps of indices."""
        at = {s for a in elements(p) for x in a.args for s in x.symbols()}
        if at - self.fixed():
            return False
        slopes = [p.coefficient(i) for i in (self.plan.axis, *self.rows(p))]
        known = [c for s in slopes if s is not None and (c := s.constant) is not None and abs(c) <= STEEPEST]
        return len(known) == len(slopes) and known[0] != 0

    def fixed(self) -> frozenset[str]:
        """What has one value for an item: dims, and grid indices of single elements."""
        grid = (i for i in self.plan.grid if self.plan.tiles.get(i, 1) == 1)
        return frozenset(grid) | frozenset(self.plan.graph.dims)

    def rows(self, p: Poly) -> list[str]:
        """The indices of a predicate that differ within an item, but for the axis."""
        return [i for i in self.plan.graph.extents if i in p.symbols() and i not in self.fixed() and i != self.plan.axis]

    def replaced(self, e: Expr) -> Expr:
        if isinstance(e, Logic):
            return e.map_children(self.replaced)
        assert isinstance(e, Affine)
        p, axis = e.poly, Poly.of(self.plan.axis)
        slopes = {i: c.constant or 0 for i in (self.plan.axis, *self.rows(p)) if (c := p.coefficient(i)) is not None}
        rest = p - sum((c * Poly.of(i) for i, c in slopes.items()), Poly())
        if slopes == {self.plan.axis: -1}:
            return Affine(poly=self.read("to", rest + 1, Poly(), self.extent) - 1 - axis)
        if slopes == {self.plan.axis: 1}:
            return Affine(poly=axis - self.read("from", -rest, Poly(), self.extent))
        inside = Poly()
        for i, c in slopes.items():
            origin = self.plan.origin(i) if i != self.plan.axis else Poly()
            rest, inside = rest + c * origin, inside + c * (Poly.of(i) - origin)
        most = Poly.of(LARGEST_EXTENT * max(map(abs, slopes.values())))
        return Affine(poly=inside + _constant(rest) + self.read("past", rest - _constant(rest), -most, most))

    def read(self, what: str, value: Poly, low: Poly, high: Poly, of: str = "") -> Poly:
        """The integer's name: that of the element that it is, if it is one."""
        known = next((r for r in self.reads.values() if (r.value, r.low, r.high) == (value, low, high)), None)
        if known is None:
            said = [str(a) for a in elements(value) if value == element(a.tensor, a.args)]
            name = ".".join(re.findall(r"\w+", said[0])) if said else f"{of or self.plan.axis}.{what}"
            name = next(n for n in _numbered(name) if n not in self.reads)
            known = self.reads[name] = Read(name=name, value=value, low=low, high=high, span=self.plan.schedule.span)
        return Poly.of(known.name)


def _constant(p: Poly) -> int:
    """The number that stands by itself."""
    return dict(p.terms).get((), 0)


def _applied(fn: str, args: list[Poly]) -> Poly:
    if fn == "neg":
        return -args[0]
    a, b = args
    return {"add": a + b, "sub": a - b, "mul": a * b, "min": minimum(a, b), "max": maximum(a, b)}[fn]


def _numbered(name: str) -> Iterator[str]:
    yield name
    k = 2
    while True:
        yield f"{name}{k}"
        k += 1

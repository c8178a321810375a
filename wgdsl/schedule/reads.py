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
from dataclasses import dataclass, field, replace
from math import gcd

from ..diagnostics.model import WgError
from ..diagnostics.schedule import NotYetSupported
from ..foundation.dtypes import I32
from ..program.expr import TRUE, Affine, Cmp, Expr, Logic, conjuncts, loads, walk
from ..program.graph import Input, Output
from ..program.poly import Atom, Poly, ceildiv, element, elements, floordiv, maximum, minimum, with_elements
from ..program.predicates import compared, integral, negation
from ..program.rules import covers
from ..roles.mapped import mapped
from ..roles.model import Fetch, Items, Leave, Read, Step, regions
from .plan import Plan

LARGEST_PLACE = 2**24  # of an element: sizes are as large at most
LARGEST_EXTENT = 2**25  # more than elements of an axis: sizes are up to 2^24
STEEPEST = 4  # factor of an index in a predicate
MOST = 3  # numbers on which loops hang
COARSE = 64  # what tile sizes are multiples of, so that there are few sizes to try


@dataclass(frozen=True)
class Reading:
    """The domain over what is read. ended: it ends where the extent does, or before. live: how many warpgroups have rows, where
    that is read too. left: how many rows of the item's tile are written, where tensors say that."""

    domain: Expr = TRUE
    reads: tuple[Read, ...] = ()
    ended: bool = False
    live: Poly | None = None
    left: Poly | None = None


def read_out(plan: Plan, domain: Expr) -> Reading:
    """The predicates that bound the axis by what tensors say, over integers that are bound for the item. Where these are too
    many numbers those in which the rows matter are left to the mask, and then all; all too where items are joined, since what
    tensors say of the item that follows isn't known yet while one runs."""
    for reader in () if plan.joined else (_Reader(plan), _Reader(plan, sloped=False)):
        found = reader.of(domain)
        if reader.reads:
            found = reader.rest(found)
        ended, numbers = reader.ended(found), len(reader.reads)
        left = reader.left()
        if numbers + (not ended) <= most_numbers(plan, left is not None):
            break
    else:
        reader = _Reader(plan)
        found, ended, left = domain, False, reader.left()
    live = reader.live() if reader.reads and left is None else None
    return Reading(found, tuple(reader.reads.values()), ended, live, left)


def limit(plan: Plan, left: Poly | None, o: Output) -> Poly | None:
    """The row before which those of an output end, where tensors say that."""
    row = _row(plan)
    return None if left is None or row is None or covers(plan.graph, o) else plan.origin(row) + left


def bound(plan: Plan, steps: tuple[Step, ...], known: tuple[Read, ...]) -> tuple[Step, ...]:
    """The steps of a role with what they read of tensors bound before, once an item. Raises WgError for elements that differ
    within it."""
    binder = _Binder(plan, {r.value: r for r in known if r.low == Poly()})
    return binder.steps(steps)


def most_numbers(plan: Plan, rows: bool) -> int:
    """On how many numbers loops may hang: the sizes of all of them are tried together, where the protocol is verified. rows:
    they hang on how many rows are written too."""
    coarse = gcd(*(n for n in plan.tiles.values() if n > 1)) >= COARSE
    return MOST if coarse and not plan.skips and not rows else MOST - 1


def unread(p: Poly, reads: tuple[Read, ...]) -> Poly:
    """An integer over what tensors say, without what is read in between."""
    return p.substitute({r.name: maximum(r.low, minimum(r.high, r.value)) for r in reads})


@dataclass
class _Reader:
    """sloped: comparisons are taken too in which the rows matter."""

    plan: Plan
    sloped: bool = True
    reads: dict[str, Read] = field(default_factory=dict)

    @property
    def extent(self) -> Poly:
        return self.plan.graph.extents[self.plan.axis]

    def ended(self, domain: Expr) -> bool:
        """Whether what is read ends the axis."""
        ends = {Poly.of(r.name) - 1 - Poly.of(self.plan.axis) for r in self.reads.values() if r.high == self.extent}
        return any(isinstance(p, Affine) and p.poly in ends for p in conjuncts(domain))

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
        if not self.sloped and any(self.rows(p) for p in found):
            return None
        return self.replaced(parts)

    def rest(self, e: Expr) -> Expr:
        """The same with the bounds that nothing is read for."""
        if isinstance(e, Logic):
            return e.map_children(self.rest)
        ours = isinstance(e, Affine) and not e.poly.symbols() & self.reads.keys() and self.bounds(e.poly)
        return self.replaced(e) if ours else e

    def left(self) -> Poly | None:
        """How many rows of the item's tile are written, where the `where` of outputs selects them."""
        found = {o.tensor: self.rows_of(o) for o in self.plan.streamed.outputs if not self.all_written(o)}
        if not found:
            return None
        ends = list(dict.fromkeys(found.values()))
        row = _row(self.plan)
        if len(ends) > 1 or len(found) < len(self.plan.streamed.outputs) or row is None:
            span = self.plan.streamed.outputs[0].span
            names = " and ".join(f"`{o.tensor}`" for o in self.plan.streamed.outputs)
            cure = "give them one `where`"
            raise WgError(NotYetSupported(span=span, what=f"{names}, of which different rows are written,", cure=cure))
        rows = minimum(ends[0], self.plan.graph.extents[row])
        return self.read("left", rows - self.plan.origin(row), Poly(), Poly.of(self.plan.rows(row)), row)

    def all_written(self, o: Output) -> bool:
        return covers(self.plan.graph, o) or self.plan.streamed.program.domain(o.name) == TRUE

    def rows_of(self, o: Output) -> Poly:
        """How many rows of an output are written, and lie in it: over integers that are read."""
        row, domain = _row(self.plan), self.plan.streamed.program.domain(o.name)
        turn, counted = self.counted(row)
        beside = [(n, p - counted) for n, p in zip(o.shape, o.access, strict=True) if row in p.symbols()]
        inside = [(n, before) for n, before in beside if row not in before.symbols()]
        ends = [self.end(c, row) for c in conjuncts(domain)]
        known = [e for e in ends if e is not None]
        if row is None or len(known) < len(ends) or len(inside) != 1:
            what = f"a `where` that selects what of `{o.tensor}` is written"
            cure = "select rows up to an element of a tensor: `where i < len[b]`"
            raise WgError(NotYetSupported(span=o.span, what=what, cure=cure))
        ((extent, before),) = inside
        return minimum(*(self.elements_read(e) for e in known), turn * (extent - self.elements_read(before)))

    def counted(self, row: str | None) -> tuple[int, Poly]:
        """What of the rows' index a tensor may end: all of it, or the slowest of those that it runs over; and how many rows
        each is."""
        _, turn = self.plan.graph.turns.get(row or "", ("", 1))
        return turn, floordiv(Poly.of(row or ""), turn)

    def end(self, e: Expr, row: str | None) -> Poly | None:
        """Where a predicate ends the rows; None if it is another one."""
        parts = [self.integral(e.left), self.integral(e.right)] if isinstance(e, Cmp) else []
        if not isinstance(e, Cmp) or parts[0] is None or parts[1] is None:
            return None
        p = compared(e.op, parts[0], parts[1])
        if not isinstance(p, Affine) or row not in p.poly.symbols():
            return None
        turn, counted = self.counted(row)
        rest = p.poly + counted
        at = {s for a in elements(rest) for x in a.args for s in x.symbols()}
        known = not (rest.symbols() | at) - self.fixed() and not any(map(_placed_by_another, elements(rest)))
        return turn * (rest + 1) if known else None

    def elements_read(self, p: Poly) -> Poly:
        """The same over the names of its elements."""
        return with_elements(p, lambda a: self.read("", element(a.tensor, a.args), Poly(), Poly.of(LARGEST_PLACE)))

    def live(self) -> Poly | None:
        """How many warpgroups have rows, where they pass over what is empty for them."""
        role = self.plan.split_role
        if role is None or role.split is None or not self.plan.skips:
            return None
        rows = self.plan.graph.extents[role.split] - self.plan.origin(role.split)
        return self.read("live", ceildiv(rows, self.plan.used(role.split)), Poly(), Poly.of(role.count), role.split)

    def integral(self, e: Expr) -> Poly | None:
        """An expression of whole numbers, of which only inputs of i32 hold some."""
        nodes = [self.plan.graph.by_name[x.tensor] for x in loads(e)]
        return integral(e) if all(isinstance(n, Input) and n.dtype == I32 for n in nodes) else None

    def bounds(self, p: Poly) -> bool:
        """Whether a predicate bounds the axis by what is the same for the whole item, in whole steps of indices."""
        at = {s for a in elements(p) for x in a.args for s in x.symbols()}
        if at - self.fixed() or any(map(_placed_by_another, elements(p))):
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
        return Affine(poly=inside + rest.number + self.read("past", rest - rest.number, -most, most))

    def read(self, what: str, value: Poly, low: Poly, high: Poly, of: str = "") -> Poly:
        """The integer's name: that of the element that it is, if it is one."""
        known = next((r for r in self.reads.values() if (r.value, r.low, r.high) == (value, low, high)), None)
        if known is None:
            said = [a for a in elements(value) if value == element(a.tensor, a.args)]
            name = _name(said[0]) if said else f"{of or self.plan.axis}.{what}"
            name = next(n for n in _numbered(name) if n not in self.reads)
            known = self.reads[name] = Read(name=name, value=value, low=low, high=high, span=self.plan.schedule.span)
        return Poly.of(known.name)


def _row(plan: Plan) -> str | None:
    """The index that the warpgroups share, or along which tiles of a result lie."""
    if plan.split_role is not None:
        return plan.split_role.split
    tiled = [i for i in plan.grid if plan.tiles.get(i, 1) > 1]
    return tiled[0] if len(tiled) == 1 else None


@dataclass
class _Binder:
    """Elements that steps hold, each under a name: those of the item are read first of all, others just before the step.
    reads: by the element; here: those of the list of steps that is gone through."""

    plan: Plan
    reads: dict[Poly, Read]
    more: list[Read] = field(default_factory=list)
    here: list[Read] = field(default_factory=list)
    count: int = 0

    def steps(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        new = self.block(steps)
        return tuple(replace(s, body=self.begun(s.body)) if isinstance(s, Items) else s for s in new) if self.more else new

    def block(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        out: list[Step] = []
        for s in steps:
            outer, self.here = self.here, []
            new = self.step(s)
            out += [*self.here, new]
            self.here = outer
        return tuple(out)

    def step(self, s: Step) -> Step:
        if isinstance(s, Read | Fetch):
            return s
        if s.blocks():
            return replace(s, **{name: self.block(getattr(s, name)) for name in regions(type(s))})
        return mapped(s, lambda p: with_elements(p, self.named) if any(elements(p)) else p)

    def named(self, a: Atom) -> Poly:
        value = element(a.tensor, a.args)
        known = self.reads.get(value) or next((r for r in self.here if r.value == value), None)
        if known is None:
            known = self.read(a, value)
        return Poly.of(known.name)

    def read(self, a: Atom, value: Poly) -> Read:
        single = frozenset(i for i in self.plan.grid if self.plan.tiles.get(i, 1) == 1) | frozenset(self.plan.graph.dims)
        if _placed_by_another(a):
            what, cure = f"`{value}`, whose place an element says,", "give the kernel a tensor that says it without another"
            raise WgError(NotYetSupported(span=self.plan.schedule.span, what=what, cure=cure))
        inner = {s for x in a.args for s in x.symbols()} - single
        if within := inner & self.plan.graph.extents.keys():
            cure = f"take `{min(within)}` as a grid axis of single elements"
            what = f"`{value}`, which differs within a tile, as the place of an element"
            raise WgError(NotYetSupported(span=self.plan.schedule.span, what=what, cure=cure))
        name = _name(a)
        if inner:
            self.count += 1
            name = f"{a.tensor}.{self.count}"
        taken = {r.name for r in self.reads.values()}
        name = next(n for n in _numbered(name) if n not in taken)
        new = Read(name=name, value=value, low=Poly(), high=Poly.of(LARGEST_PLACE), span=self.plan.schedule.span)
        if inner:
            self.here.append(new)
        else:
            self.reads[value] = new
            self.more.append(new)
        return new

    def begun(self, body: tuple[Step, ...]) -> tuple[Step, ...]:
        """The body of an item, read first of all once it is known which one it is."""
        at = next((k + 1 for k, s in enumerate(body) if isinstance(s, Leave)), 0)
        return (*body[:at], *self.more, *body[at:])


def _placed_by_another(a: Atom) -> bool:
    """Whether an element says where this one is: it may lie outside of its tensor."""
    return any(True for x in a.args for _ in elements(x))


def _name(a: Atom) -> str:
    return ".".join(re.findall(r"\w+", str(a)))


def _numbered(name: str) -> Iterator[str]:
    yield name
    k = 2
    while True:
        yield f"{name}{k}"
        k += 1

"""fuse: program graph -> program graph in which one index runs over several, the last named fastest.

`fuse m = (i, r)` puts `m / R` in the place of i and `m % R` in that of r, in accesses, values and predicates alike, so that no
later pass knows of it: what they meet is an index like any other, at which some tensors are read by quotient and remainder.
Where neighbours of the list stand together in an access as they do in m (`h * M + i` under `fuse m = (h, i)`), they stay one.

In: an analysed graph and the schedule of one kernel.  Out: the graph. A tensor that has some of the indices gets all of them:
its elements are the same along the others. A reduction runs along all of them, or along none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

from ..diagnostics.model import Problem, WgError
from ..diagnostics.schedule import CantFuse, DeclaredTwice, UnknownName
from ..program.expr import Expr, Load, map_polys, rewrite
from ..program.graph import EXPRESSIONS, Node, Output, ProgramGraph, Reduce
from ..program.poly import Poly, floordiv, mod
from ..syntax import ast


def fuse(graph: ProgramGraph, schedule: ast.Schedule) -> ProgramGraph:
    """The graph with the indices of every `fuse` line made one. Raises WgError (WG0401, WG0403, WG0447)."""
    for decl in (i for i in schedule.items if isinstance(i, ast.FuseDecl)):
        problems = list(_problems(graph, decl))
        if problems:
            raise WgError(problems)
        graph = _Fusion(graph, decl).graph()
    return graph


def _problems(graph: ProgramGraph, decl: ast.FuseDecl) -> Iterator[Problem]:
    if decl.name in (*graph.extents, *graph.dims, *graph.derived, *graph.fixed):
        yield DeclaredTwice(span=decl.span, what="index or dim", name=decl.name)
    for k, i in enumerate(decl.axes):
        if i not in graph.extents:
            yield UnknownName(span=decl.span, what="index", name=i, known=tuple(graph.extents))
        if i in decl.axes[:k]:
            yield DeclaredTwice(span=decl.span, what="index", name=i)
    faster = [(i, graph.extents[i]) for i in decl.axes[1:] if i in graph.extents]
    for i, extent in ((i, e) for i, e in faster if e.constant is None):
        why = f"`{i}` runs faster than `{decl.axes[0]}`, and its extent `{extent}` isn't known at compile time"
        yield CantFuse(span=decl.span, why=why, cure=_order(graph, decl))
    if len(decl.axes) < 2:
        yield CantFuse(span=decl.span, why="one index alone isn't fused", cure="name two or more, or drop this line")
    for n in graph.nodes:
        yield from _taken_apart(n, decl)


def _taken_apart(n: Node, decl: ast.FuseDecl) -> Iterator[CantFuse]:
    """A reduction along some of the indices, or an output that has some of them."""
    axes, reduced = {*decl.axes}, {*(n.axes if isinstance(n, Reduce) else ())} & {*decl.axes}
    if reduced and reduced != axes:
        why = f"`{n.name}` is reduced along {_named(decl, reduced)} and not along {_named(decl, axes - reduced)}"
        yield CantFuse(span=decl.span, why=why, cure="fuse indices that every reduction takes together", other=n.span)
    left = axes - {*n.indices}
    if isinstance(n, Output) and left and left != axes:
        why = f"the output `{n.tensor}` has no {_named(decl, left)}, so rows of one tile would write the same element"
        yield CantFuse(span=decl.span, why=why, cure="keep its indices as grid axes", other=n.span)


def _named(decl: ast.FuseDecl, axes: set[str]) -> str:
    return " and ".join(f"`{a}`" for a in decl.axes if a in axes)


def _order(graph: ProgramGraph, decl: ast.FuseDecl) -> str:
    """What to write instead: the order with the one free extent in front, or the dims that have to be fixed."""
    free = [a for a in decl.axes if graph.extents[a].constant is None]
    if len(free) == 1:
        return f"`fuse {decl.name} = ({', '.join([free[0], *(a for a in decl.axes if a not in free)])})`"
    dims = dict.fromkeys(s for a in decl.axes[1:] for s in sorted(graph.extents[a].symbols()))
    fixed = " and ".join(f"fix `{d}`: `--set {d}=8`, or dims={{'{d}': 8}}" for d in dims)
    return f"{fixed}; or put another index first"


@dataclass(frozen=True)
class _Fusion:
    """One `fuse` line and the graph that it changes."""

    before: ProgramGraph
    decl: ast.FuseDecl

    def graph(self) -> ProgramGraph:
        extents = {i: e for i, e in self.before.extents.items() if i not in self.decl.axes}
        extents[self.decl.name] = self.extent(self.decl.axes)
        turn = self.weights[self.decl.axes[0]].constant
        assert turn is not None, "the extents of the faster ones are plain numbers"
        turns = {**self.before.turns, self.decl.name: (self.decl.axes[0], turn)}
        return replace(self.before, nodes=tuple(map(self.node, self.before.nodes)), extents=extents, turns=turns)

    @cached_property
    def weights(self) -> dict[str, Poly]:
        """By how much the one index grows with each of the several."""
        axes = self.decl.axes
        return {a: self.extent(axes[k + 1 :]) for k, a in enumerate(axes)}

    def extent(self, axes: tuple[str, ...]) -> Poly:
        return prod((self.before.extents[a] for a in axes), start=Poly.of(1))

    def node(self, n: Node) -> Node:
        """Where an expression of a node that has none of the indices reads a fused tensor, it says at which elements."""
        own = (*n.indices, *(n.axes if isinstance(n, Reduce) else ()))
        inside = bool({*self.decl.axes} & {*own})

        def expr(e: Expr) -> Expr:
            return map_polys(rewrite(e, lambda x: self.load(x, inside)), self.poly)

        changed: dict[str, Any] = {f: expr(e) for f in EXPRESSIONS if isinstance(e := getattr(n, f, None), Expr)}
        changed |= {f: self.indices(getattr(n, f)) for f in ("indices", "axes") if hasattr(n, f)}
        if isinstance(n, Output):
            changed["access"] = tuple(map(self.poly, n.access))
        return replace(n, **changed)

    def indices(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Those of a node: the one stands where the first of the several did."""
        return tuple(dict.fromkeys(self.decl.name if i in self.decl.axes else i for i in names))

    def load(self, e: Expr, inside: bool) -> Expr | None:
        """An element of a tensor whose indices are fused, by its place along the one."""
        node = self.before.by_name[e.tensor] if isinstance(e, Load) else None
        if not isinstance(e, Load) or node is None or not {*self.decl.axes} & {*node.indices}:
            return None
        at = dict(zip(node.indices, e.access, strict=True))
        elsewhere = {a: Poly.of(a) if inside else Poly() for a in self.decl.axes}
        place = sum(({**elsewhere, **at}[a] * w for a, w in self.weights.items()), start=Poly())
        return replace(e, access=tuple(place if i == self.decl.name else at[i] for i in self.indices(node.indices)))

    def poly(self, p: Poly) -> Poly:
        """An integer with quotients and remainders of the one index in the place of the several."""
        count = len(self.decl.axes)
        for size in range(count, 1, -1):
            for first in range(count - size + 1):
                p = self.joined(p, first, first + size)
        return p.substitute({a: self.digits(k, k + 1) for k, a in enumerate(self.decl.axes)})

    def joined(self, p: Poly, first: int, end: int) -> Poly:
        """The same with neighbours of the list as one, where they stand together as they do in the one index."""
        run = self.decl.axes[first:end]
        factors = [p.coefficient(a) for a in run]
        last = factors[-1]
        if last is None or not last.terms or any(f is None or f.symbols() & {*self.decl.axes} for f in factors):
            return p
        if any(f != last * self.extent(run[k + 1 :]) for k, f in enumerate(factors)):
            return p
        return p.without(run) + last * self.digits(first, end)

    def digits(self, first: int, end: int) -> Poly:
        """Neighbours of the list as a part of the one index."""
        axes = self.decl.axes
        part = floordiv(Poly.of(self.decl.name), self.extent(axes[end:]))
        return mod(part, self.extent(axes[first:end])) if first else part

"""started: program graph -> program graph in which a maximum that starts from a value along an axis is one reduction.

`max(max[j] x * k, s)` with k > 0 is k times the maximum over x and one more element, s / k: where nothing has been seen the
running maximum is that element, and all that is scaled to it stays finite. Minima likewise.

In: a canonical graph and the streamed axis.  Out: the graph without such maps, and the first element of each reduction that has
one.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from ..program.expr import Apply, Expr, Load, apply, indices_of, loads, rewrite
from ..program.graph import Input, Map, Node, ProgramGraph, Reduce
from .algebra import factors, is_scalar, positive, product, simplify


class _Found(NamedTuple):
    reduce: Reduce
    factor: Expr
    start: Expr


def started(graph: ProgramGraph, axis: str, positives: frozenset[str]) -> tuple[ProgramGraph, dict[str, Expr]]:
    """The graph, and reduction -> its first element. positives: inputs that are known to be greater than 0."""
    found = {n.name: f for n in graph.nodes if isinstance(n, Map) and (f := _match(graph, n, axis, positives)) is not None}
    if not found:
        return graph, {}
    nodes = [_replaced(n, found) for n in graph.nodes]
    read = {x.tensor for n in nodes for e in n.exprs() for x in loads(e)}
    gone = {f.reduce.name: name for name, f in found.items() if f.reduce.name not in read}
    aliases = {a: gone.get(n, n) for a, n in graph.aliases.items()} | gone
    kept = tuple(n for n in nodes if n.name not in gone)
    return replace(graph, nodes=kept, aliases=aliases), {name: f.start for name, f in found.items()}


def _match(graph: ProgramGraph, node: Map, axis: str, positives: frozenset[str]) -> _Found | None:
    if not (isinstance(node.body, Apply) and node.body.fn in ("max", "min")):
        return None
    parts = [(a, _reduction(graph, node, a, axis, positives)) for a in _operands(node.body, node.body.fn)]
    of = [r for _, r in parts if r is not None]
    others = [a for a, r in parts if r is None]
    if len(of) != 1 or not others or not all(_given(graph, a, axis) for a in others):
        return None
    reduce, factor = of[0]
    least = functools.reduce(functools.partial(apply, node.body.fn), others)
    return _Found(reduce, factor, simplify(product([least, apply("rcp", factor)])))


def _operands(e: Expr, fn: str) -> list[Expr]:
    """Those of a function of two, however deep the text nests it: `max(a, b, c)` is `max(max(a, b), c)`."""
    if isinstance(e, Apply) and e.fn == fn:
        return [o for a in e.args for o in _operands(a, fn)]
    return [e]


def _reduction(graph: ProgramGraph, node: Map, e: Expr, axis: str, positives: frozenset[str]) -> tuple[Reduce, Expr] | None:
    """The reduction of the map's own kind of which an argument is a positive multiple, and that factor."""
    parts = factors(e)
    of = [f for f in parts if isinstance(f, Load)]
    k = product([f for f in parts if not isinstance(f, Load)])
    if len(of) != 1 or not is_scalar(k) or not positive(k, positives):
        return None
    reduce = graph.by_name.get(of[0].tensor)
    assert isinstance(node.body, Apply)
    if not isinstance(reduce, Reduce) or axis not in reduce.axes or reduce.op != node.body.fn:
        return None
    return (reduce, k) if tuple(p.bare for p in of[0].access) == node.indices == reduce.indices else None


def _given(graph: ProgramGraph, e: Expr, axis: str) -> bool:
    """Whether an expression is known before anything along the axis has been seen."""
    return axis not in indices_of(e) and all(isinstance(graph.by_name[x.tensor], Input) for x in loads(e))


def _replaced(node: Node, found: Mapping[str, _Found]) -> Node:
    """A node that reads the reduction in place of the map; the map is the reduction."""
    if node.name in found:
        assert isinstance(node, Map)
        f = found[node.name]
        return replace(f.reduce, name=node.name, span=node.span)

    def one(x: Expr) -> Expr | None:
        if not (isinstance(x, Load) and x.tensor in found):
            return None
        return simplify(product([x, found[x.tensor].factor]))

    changed = {}
    for name in ("body", "value", "predicate", "otherwise"):
        e = getattr(node, name, None)
        if isinstance(e, Expr) and any(x.tensor in found for x in loads(e)):
            changed[name] = simplify(rewrite(e, one))
    return replace(node, **changed) if changed else node

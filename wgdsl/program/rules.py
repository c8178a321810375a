"""The written legality rules of the program graph, and which outputs a program writes whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from ..diagnostics.model import InternalError
from .expr import Affine, Apply, Cmp, Const, Expr, IndexValue, Load, Logic, Select, indices_of, walk
from .graph import IDENTITY, Domain, Input, Node, Output, ProgramGraph, Reduce
from .poly import Poly


def covers(graph: ProgramGraph, output: Output) -> bool:
    """Whether the output's access map reaches every element of its array.

    analyse has proven that it is injective and in range, so this is a matter of counting. If it doesn't, elements outside
    its image and outside the value's domain stay untouched; if it does, those outside the domain become
    `otherwise`.
    """
    written = prod((graph.extents[i] for i in output.indices), start=Poly.of(1))
    return written == prod(output.shape, start=Poly.of(1))


# Legality.

RULES = """
G1  node names are unique, and no node is named like a scalar
G2  a load names an input or an earlier node that isn't an output, with one polynomial for each of its axes
G3  what a body mentions is one of the node's indices, a reduction axis, or a free dim
G4  reduction axes are distinct and none of the node's indices; a reduction has at least one
G5  every index and axis has an extent, over free dims only
G6  a reduction's op is one of sum, max, min, argmax, argmin; argmax and argmin have one axis
G7  predicates and conditions are truth values, numbers are not; an element of an argument is a number, 0 or 1 if it is `bool`
G8  an output has one access polynomial for each axis of its shape, and each output tensor one node
"""


def violations(graph: ProgramGraph) -> tuple[str, ...]:
    """The rules that a graph breaks, each as `Gn: node: what`; () if it is legal."""
    return tuple(_violations(graph))


def check(graph: ProgramGraph) -> None:
    """Raise InternalError if the graph is illegal: a pass made it so, not the user."""
    found = violations(graph)
    if found:
        raise InternalError(f"illegal program graph `{graph.name}`:\n  " + "\n  ".join(found))


def _violations(graph: ProgramGraph) -> Iterator[str]:
    ranks: dict[str, int] = {}
    scalars = {s.name for s in graph.scalars}
    stored: set[str] = set()
    for n in graph.nodes:
        if n.name in ranks or n.name in scalars or n.name in stored:
            yield f"G1: {n.name}: the name is taken"
        yield from _node_violations(graph, n, ranks)
        if isinstance(n, Output):
            if len(n.access) != len(n.shape):
                yield f"G8: {n.name}: {len(n.access)} access polynomials for {len(n.shape)} axes"
            if n.tensor in {o.tensor for o in graph.outputs if o is not n}:
                yield f"G8: {n.name}: another node stores `{n.tensor}` too"
            stored.add(n.name)
        else:
            ranks[n.name] = len(n.shape) if isinstance(n, Input) else len(n.indices)


def _node_violations(graph: ProgramGraph, n: Node, ranks: Mapping[str, int]) -> Iterator[str]:
    axes = n.axes if isinstance(n, Reduce) else ()
    bound = (*n.indices, *axes)
    if len(set(bound)) < len(bound) or (isinstance(n, Reduce) and not axes):
        yield f"G4: {n.name}: indices {n.indices}, axes {axes}"
    for i in bound:
        if i not in graph.extents or not graph.extents[i].symbols() <= set(graph.dims):
            yield f"G5: {n.name}: index `{i}` has extent {graph.extents.get(i)}"
    if isinstance(n, Reduce) and (n.op not in IDENTITY or (n.op.startswith("arg") and len(axes) != 1)):
        yield f"G6: {n.name}: {n.op} over {axes}"
    for e in n.exprs():
        yield from _expr_violations(graph, n.name, e, {*bound, *graph.dims}, ranks)
    if isinstance(n, Domain) and not _is_truth(n.predicate, graph):
        yield f"G7: {n.name}: predicate {n.predicate}"
    if isinstance(n, Output):
        for p in n.access:
            if not p.symbols() <= {*bound, *graph.dims}:
                yield f"G3: {n.name}: access {p}"


def _expr_violations(graph: ProgramGraph, name: str, e: Expr, known: set[str], ranks: Mapping[str, int]) -> Iterator[str]:
    for x in walk(e):
        if isinstance(x, Load) and ranks.get(x.tensor) != len(x.access):
            yield f"G2: {name}: load {x}"
        if isinstance(x, Load | IndexValue | Affine) and not indices_of(x) <= known:
            yield f"G3: {name}: {x}"
        conditions = (x.cond,) if isinstance(x, Select) else x.args if isinstance(x, Logic) else ()
        numbers = x.args if isinstance(x, Apply) else (x.left, x.right) if isinstance(x, Cmp) else ()
        if not all(_is_truth(c, graph) for c in conditions) or any(_is_truth(a, graph) for a in numbers):
            yield f"G7: {name}: {x}"


def _is_truth(e: Expr, graph: ProgramGraph) -> bool:
    if isinstance(e, Const):
        return isinstance(e.value, bool)
    if isinstance(e, Select):
        return _is_truth(e.then, graph)
    if isinstance(e, Load):
        node = graph.by_name.get(e.tensor)
        return node is not None and not isinstance(node, Input) and node.dtype.kind == "bool"
    return isinstance(e, Cmp | Affine | Logic)

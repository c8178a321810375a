"""reciprocals: program graph -> program graph in which a quotient by a number is a product, which others can join.

The product may be off by a rounding: 41 * (1 / 41) is less than 1 in f32. So what is compared or becomes an integer keeps its
quotients, through all statements that it is made by; a sign, and whether something is infinite, is the same either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isinf

from ..program.expr import Apply, Cast, Cmp, Expr, apply, const, loads, walk
from ..program.graph import EXPRESSIONS, Node, Output, ProgramGraph
from .algebra import is_number, is_scalar, simplify

TINY = 2.0**-126  # the least normal number of f32


def reciprocals(graph: ProgramGraph) -> ProgramGraph:
    """The graph with products in the place of quotients."""
    exact = _exact(graph)
    return replace(graph, nodes=tuple(n if n.name in exact or _is_integer(n) else _node(n) for n in graph.nodes))


def _exact(graph: ProgramGraph) -> set[str]:
    """The nodes that comparisons and integers are made of."""
    found = {x.tensor for n in graph.nodes for e in _settling(n) for x in loads(e)}
    for n in reversed(graph.nodes):
        found |= {x.tensor for e in n.exprs() for x in loads(e)} if n.name in found else set()
    return found


def _settling(n: Node) -> Iterator[Expr]:
    """The parts of a node in which a rounding may change more than a rounding."""
    for e in n.exprs():
        yield from (e,) if _is_integer(n) else (x for x in walk(e) if _settles(x))


def _is_integer(n: Node) -> bool:
    return isinstance(n, Output) and n.dtype.kind == "int"


def _settles(e: Expr) -> bool:
    if isinstance(e, Cmp):
        return not any(is_number(x) and (float(x.value) == 0 or isinf(x.value)) for x in (e.left, e.right))  # type: ignore[attr-defined]
    return isinstance(e, Cast) and e.dtype.kind == "int"


def _node(n: Node) -> Node:
    return replace(n, **{f: _product(e) for f in EXPRESSIONS if isinstance(e := getattr(n, f, None), Expr)})


def _product(e: Expr) -> Expr:
    if _settles(e):
        return e
    e = e.map_children(_product)
    if not isinstance(e, Apply) or e.fn != "div" or is_scalar(e.args[0]):
        return e
    by = simplify(e.args[1])
    if not is_number(by) or not TINY <= abs(float(by.value)) <= 1 / TINY:  # type: ignore[attr-defined]
        return e
    return apply("mul", e.args[0], const(1.0 / float(by.value)))  # type: ignore[attr-defined]

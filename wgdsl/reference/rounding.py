"""Where the chip rounds an operand: the comparison behind the error bar of `wgdsl run --check`.

In: a graph.  Out: the graph with those roundings as casts.
"""

from __future__ import annotations

from dataclasses import replace

from ..foundation.dtypes import DType
from ..program.expr import Apply, Cast, Expr, Load
from ..program.graph import Input, Map, Node, ProgramGraph, Reduce
from ..program.poly import Poly


def with_rounded_operands(graph: ProgramGraph) -> ProgramGraph:
    """The graph in which what the program computes is rounded before a sum multiplies it with an input of 16 or 8 bits."""
    nodes: list[Node] = []
    made: set[str] = set()
    for n in graph.nodes:
        operand, dtype = _to_round(graph, n)
        if operand is None or dtype is None:
            nodes.append(n)
            continue
        assert isinstance(n, Reduce) and isinstance(n.body, Apply)
        rounded_operand: Expr = Cast(dtype=dtype, arg=operand)
        if isinstance(operand, Load):  # as a node of its own, so that the sum stays a product of two loads
            copy = _rounded_copy(graph.by_name[operand.tensor], dtype)
            if copy.name not in made:
                nodes.append(copy)
                made.add(copy.name)
            rounded_operand = Load(tensor=copy.name, access=operand.access)
        args = tuple(rounded_operand if a is operand else a for a in n.body.args)
        nodes.append(replace(n, body=replace(n.body, args=args)))
    return replace(graph, nodes=tuple(nodes))


def _to_round(graph: ProgramGraph, n: Node) -> tuple[Expr | None, DType | None]:
    """The factor of a sum of products that meets an input of 16 or 8 bits and isn't an input itself, and the input's type."""
    if not isinstance(n, Reduce) or n.op != "sum" or not isinstance(n.body, Apply) or n.body.fn != "mul":
        return None, None
    for x, y in (n.body.args, n.body.args[::-1]):
        source = graph.by_name[y.tensor] if isinstance(y, Load) else None
        reads_input = isinstance(x, Load) and isinstance(graph.by_name[x.tensor], Input)
        if isinstance(source, Input) and source.dtype.bits < 32 and source.dtype.kind == "float" and not reads_input:
            return x, source.dtype
    return None, None


def _rounded_copy(node: Node, dtype: DType) -> Map:
    access = tuple(Poly.of(i) for i in node.indices)
    body = Cast(dtype=dtype, arg=Load(tensor=node.name, access=access))
    return Map(name=f"{node.name} as {dtype}", indices=node.indices, body=body)

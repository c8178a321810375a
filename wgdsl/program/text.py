"""Text form of the program graph, for `--emit graph` and for tests.

One line for each node: kind, name with the extent of every index, type, what it computes, and where it exists. Then one for
each edge, with its access maps.
Deterministic: declaration order for everything that has one, definition order for nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from .expr import TRUE, Expr
from .graph import Domain, Input, Map, Node, Output, ProgramGraph, Reduce


def graph_text(graph: ProgramGraph) -> str:
    """The graph as text, ending with a newline."""
    return "\n".join([f"program {graph.name}", *(f"  {line}" for line in _lines(graph))]) + "\n"


def _lines(graph: ProgramGraph) -> Iterator[str]:
    if graph.options:
        yield "options " + " ".join(f"{k}={spelled(v)}" for k, v in graph.options.items())
    if graph.types:
        yield "types " + " ".join(f"{k}={v}" for k, v in graph.types.items())
    if graph.dims:
        yield "dims " + ", ".join(graph.dims)
    if graph.fixed:
        yield "fixed " + " ".join(f"{k}={v}" for k, v in graph.fixed.items())
    for name, p in graph.derived.items():
        yield f"derived {name} = {p}"
    for s in graph.scalars:
        yield f"scalar {s.name}: {s.dtype}" + (f" = {s.default}" if s.default is not None else "")
    for e in graph.requires:
        yield f"require {e}"
    for n in graph.nodes:
        yield _node(graph, n)
    for source, target, accesses in graph.digraph().edges.data("accesses"):
        yield f"edge {source} -> {target} at " + ", ".join(f"[{', '.join(map(str, a))}]" for a in accesses)


def spelled(value: object) -> str:
    """The value of an option as the language writes it: `true`, `128`, `gelu`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _node(graph: ProgramGraph, n: Node) -> str:
    if isinstance(n, Input):
        return f"input {n.name}[{', '.join(map(str, n.shape))}]: {n.dtype}"
    if isinstance(n, Output):
        place = f"{n.tensor}[{', '.join(map(str, n.access))}]"
        shape = ", ".join(map(str, n.shape))
        head = f"output {_ranged(graph, n.name, n.indices)}: {n.dtype} -> {place} of [{shape}] = {n.value}"
        return head + _existence(graph.domain(n.name), n.otherwise)
    return f"{n.kind} {_ranged(graph, n.name, n.indices)}: {n.dtype} = {_body(graph, n)}"


def _body(graph: ProgramGraph, n: Node) -> str:
    if isinstance(n, Reduce):
        over = ", ".join(f"{a} < {graph.extents.get(a)}" for a in n.axes)
        return f"{n.op}[{over}] {n.body}" + _existence(graph.domain_of(n.body), None)
    if isinstance(n, Domain):
        return f"{n.body} where {n.predicate}" + (f" else {n.otherwise}" if n.otherwise is not None else "")
    assert isinstance(n, Map)
    return f"{n.body}" + _existence(graph.domain(n.name), None)


def _ranged(graph: ProgramGraph, name: str, indices: tuple[str, ...]) -> str:
    return f"{name}[{', '.join(f'{i} < {graph.extents.get(i)}' for i in indices)}]"


def _existence(domain: Expr, otherwise: Expr | None) -> str:
    where = "" if domain == TRUE else f" on {domain}"
    return where + (f" else {otherwise}" if otherwise is not None else "")

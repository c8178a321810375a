"""Checks on the finished graph: every access in range, every output element written once.

In: the graph with its extents, and where each access is written.  Out: problems. What may be assumed at a load: the
extents of the indices around it, the program's `require`s, and the domain of the expression that holds it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import permutations
from types import MappingProxyType

from ..diagnostics.analyse import BadElse, NotInjective, OutOfRange
from ..foundation.source import Span
from ..program.expr import Affine, Cmp, Expr, Load, conjunction, conjuncts, loads, polys_of, walk
from ..program.graph import Domain, Input, Node, Output, ProgramGraph, Reduce
from ..program.poly import Atom, Poly, element, elements
from ..program.predicates import compared, integral
from ..program.rules import covers
from .problems import Problems
from .prove import Box, proven
from .statements import Result


def check_bounds(graph: ProgramGraph, result: Result, increasing: Collection[str], problems: Problems) -> None:
    """Add OutOfRange, NotInjective and BadElse problems. Where an element says the place, only the call can tell: outside the
    tensor it reads 0."""
    for node in graph.nodes:
        box = _box(graph, node)
        for e, facts in _guarded(graph, node):
            for x in loads(e):
                spans = result.spans.get((node.name, x), (node.span,) * len(x.access))
                _in_range(x.tensor, x.access, _extents(graph, x), spans, box, facts, problems)
            for p in (p for x in walk(e) for p in polys_of(x)):
                _elements_in_range(graph, p, node.span, box, facts, problems)
        if isinstance(node, Output):
            _check_output(graph, node, box, result, increasing, problems)


def _elements_in_range(
    graph: ProgramGraph, p: Poly, span: Span | None, box: Box, facts: tuple[Poly, ...], problems: Problems
) -> None:
    """The elements that say a place."""
    for a in elements(p):
        extents = _extents(graph, Load(tensor=a.tensor, access=a.args))
        _in_range(a.tensor, a.args, extents, (span,) * len(a.args), box, facts, problems)


def _box(graph: ProgramGraph, node: Node) -> Box:
    axes = node.axes if isinstance(node, Reduce) else ()
    return {i: graph.extents[i] for i in (*node.indices, *axes)}


def _guarded(graph: ProgramGraph, node: Node) -> list[tuple[Expr, tuple[Poly, ...]]]:
    """The node's expressions, each with what is known to be >= 0 where it is evaluated."""
    required = graph.requires
    if isinstance(node, Domain):
        parts = [(node.body, conjunction(graph.domain_of(node.body), node.predicate)), (node.predicate, conjunction())]
        if node.otherwise is not None:
            parts.append((node.otherwise, conjunction()))
    else:
        parts = [(e, graph.domain_of(e)) for e in node.exprs()]
    return [(e, _affine(conjunction(*required, known))) for e, known in parts]


def _affine(e: Expr) -> tuple[Poly, ...]:
    return tuple(c.poly for c in conjuncts(e) if isinstance(c, Affine))


def _extents(graph: ProgramGraph, x: Load) -> tuple[Poly, ...]:
    node = graph.by_name[x.tensor]
    return node.shape if isinstance(node, Input) else tuple(graph.extents[i] for i in node.indices)


def _in_range(
    tensor: str,
    access: tuple[Poly, ...],
    extents: tuple[Poly, ...],
    spans: tuple[Span | None, ...],
    box: Box,
    facts: tuple[Poly, ...],
    problems: Problems,
) -> None:
    for p, extent, span in zip(access, extents, spans, strict=True):
        if any(elements(p)):
            continue
        if not proven(p, box, facts):
            bound = f"{p} >= 0"
        elif not proven(extent - 1 - p, box, facts):
            bound = f"{p} < {extent}"
        else:
            continue
        problems.add(OutOfRange(span=span, tensor=tensor, access=str(p), extent=str(extent), bound=bound))


# Outputs.


def _check_output(
    graph: ProgramGraph, node: Output, box: Box, result: Result, increasing: Collection[str], problems: Problems
) -> None:
    s = result.statements[node.name]
    spans = tuple(i.span for i in s.target.indices)
    facts = _affine(conjunction(*graph.requires, graph.domain(node.name)))
    _in_range(node.tensor, node.access, node.shape, spans, box, facts, problems)
    for p in node.access:
        _elements_in_range(graph, p, s.target.span, box, facts, problems)
    left = undetermined(node.access, box, _apart(graph, node, increasing))
    if left:
        problems.add(NotInjective(span=s.target.span, tensor=node.tensor, indices=left))
    elif s.otherwise is not None and not covers(graph, node):
        why = "needs a left side that covers the whole output"
        problems.add(BadElse(span=s.otherwise.span, why=why, cure="the elements that aren't written stay untouched"))


def _apart(graph: ProgramGraph, node: Output, increasing: Collection[str]) -> dict[Poly, frozenset[str]]:
    """Places `cu[b] + i` of which each belongs to one b and one i: offsets never fall, and only `i < cu[b + 1] - cu[b]` is
    written."""
    written = [(c.op, integral(c.left), integral(c.right)) for c in conjuncts(graph.domain(node.name)) if isinstance(c, Cmp)]
    domain = [compared(op, a, b) for op, a, b in written if a is not None and b is not None]
    out: dict[Poly, frozenset[str]] = {}
    for p in node.access:
        for a in elements(p):
            b = a.args[0].bare if len(a.args) == 1 else None
            i = (p - element(a.tensor, a.args)).bare
            if a.tensor in increasing and b in node.indices and i in node.indices:
                length = element(a.tensor, [a.args[0] + 1]) - element(a.tensor, a.args)
                if Affine(poly=length - 1 - Poly.of(i or "")) in domain:
                    out[p] = frozenset((b or "", i or ""))
    return out


def undetermined(
    access: tuple[Poly, ...], box: Box, apart: Mapping[Poly, frozenset[str]] = MappingProxyType({})
) -> tuple[str, ...]:
    """The indices that an element's position doesn't determine: () if the map is injective on the box. apart: those that one
    axis determines."""
    left = {n for n in box if box[n].constant != 1}.difference(*apart.values())
    axes = [*(p for p in access if not any(elements(p))), *_divided(access)]
    progress = True
    while left and progress:
        progress = False
        for p in axes:
            inside = left & p.symbols()
            if inside and _distinct(p, sorted(inside), box):
                left -= inside
                progress = True
    return tuple(n for n in box if n in left)


def _divided(access: tuple[Poly, ...]) -> list[Poly]:
    """`x / c` and `x % c` at two axes determine x."""
    parts = {a for p in access if (a := _atom(p)) is not None}
    return [a.args[0] for a in parts if a.op == "floordiv" and Atom("mod", a.args) in parts]


def _atom(p: Poly) -> Atom | None:
    if len(p.terms) != 1 or p.terms[0][1] != 1 or len(p.terms[0][0]) != 1:
        return None
    f = p.terms[0][0][0]
    return f if isinstance(f, Atom) else None


def _distinct(p: Poly, names: list[str], box: Box) -> bool:
    """Whether p has different values for different values of `names`, the others fixed: each coefficient exceeds what
    the smaller ones reach."""
    factors = {n: p.coefficient(n) for n in names}
    if any(f is None or f.symbols() & box.keys() for f in factors.values()):
        return False
    return any(_steps(order, factors, box) for order in permutations(names))


def _steps(order: tuple[str, ...], factors: dict[str, Poly | None], box: Box) -> bool:
    reach = Poly()
    for n in order:
        factor = factors[n]
        assert factor is not None
        size = next((f for f in (factor, -factor) if proven(f - 1 - reach, box, depth=0)), None)
        if size is None:
            return False
        reach = reach + size * (box[n] - 1)
    return True

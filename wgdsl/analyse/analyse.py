"""The analyse step: AST of a program -> program graph.

In: form 1 and what the caller chose.  Out: form 2, in which every name, type, extent and range is settled. Refused
programs raise `WgError` with as many problems as could be found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..diagnostics.analyse import NoOutput, TooDeep
from ..diagnostics.model import WgError
from ..program.expr import Affine
from ..program.graph import ProgramGraph, Reduce
from ..program.rules import check
from ..syntax import ast
from .bounds import check_bounds
from .context import Context
from .declare import declare, holds
from .extents import infer_extents
from .problems import Problems
from .statements import MAX_DEPTH, Result, build_nodes, live_statements

PLACES = 1 << 24


def analyse(
    program: ast.Program,
    *,
    options: Mapping[str, object] | None = None,
    types: Mapping[str, str] | None = None,
    dims: Mapping[str, int] | None = None,
) -> ProgramGraph:
    """The graph of a program.

    options, types: overrides of the program's defaults.  dims: those known at compile time; the others stay symbolic.
    Raises WgError (WG02xx).
    """
    try:
        return _analyse(program, options or {}, types or {}, dims or {})
    except RecursionError:  # `def`s and `let`s that open into each other
        raise WgError(TooDeep(span=program.span, limit=MAX_DEPTH)) from None


def _analyse(
    program: ast.Program, options: Mapping[str, object], types: Mapping[str, str], dims: Mapping[str, int]
) -> ProgramGraph:
    problems = Problems()
    context = declare(program, options, types, dims, problems)
    statements = [s for s in program.items if isinstance(s, ast.Statement)]
    live = live_statements(context, statements, lambda when: holds(context, when), problems)
    result = build_nodes(context, live, problems)
    if not context.outputs and not problems.refusals:
        problems.add(NoOutput(span=program.span, program=program.name))
    problems.close()  # extents and ranges of half a program would only repeat what is wrong
    used = {i for n in result.nodes for i in (*n.indices, *getattr(n, "axes", ()))}
    extents = infer_extents(context, result.uses, [i for i in context.indices if i in used], problems)
    problems.close()
    graph = _graph(program, context, result, extents)
    check_bounds(graph, result, context.increasing, problems)
    problems.close()
    check(graph)
    return replace(graph, requires=(*graph.requires, *_places(graph)))


def _places(graph: ProgramGraph) -> tuple[Affine, ...]:
    """What a call has to meet for the places that argmax and argmin find: kernels hold them in f32, exact up to 2^24."""
    axes = {a: None for n in graph.nodes if isinstance(n, Reduce) and n.op.startswith("arg") for a in n.axes}
    extents = (graph.extents[a] for a in axes)
    return tuple(Affine(poly=PLACES - e) for e in extents if e.constant is None or e.constant > PLACES)


def _graph(program: ast.Program, context: Context, result: Result, extents: Mapping) -> ProgramGraph:
    free = {n: p for n, p in context.dims.items() if p.bare == n}
    return ProgramGraph(
        name=program.name,
        dims=tuple(n for n in free if n not in context.fixed),
        derived={n: context.settle(p) for n, p in context.dims.items() if n not in free},
        fixed={n: context.fixed[n] for n in context.dims if n in context.fixed},
        options={n: o.value for n, o in context.options.items()},
        types=dict(context.types),
        scalars=tuple(context.scalars.values()),
        requires=tuple(context.requires),
        extents=extents,
        nodes=tuple(result.nodes),
        increasing=frozenset(context.increasing),
        positive=frozenset(context.positive),
        absent=frozenset(context.absent),
        span=program.span,
    )

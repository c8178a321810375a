"""combine: results that several CTAs contribute to, each from its part of the stream, or from its tile along another axis.

In: the plan of a schedule with `stream k split s in 8` and `combine C by atomic_add`, or with `combine most by atomic_max`
where the program reduces final values along a grid axis.  Out: for each such output what CTAs contribute to: the output
itself, if it is that f32 reduction and nothing else; or f32 values in global memory, of which a kernel of its own makes the
output. Whatever is contributed to is set to the identity by a kernel before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..diagnostics.model import Problem
from ..diagnostics.schedule import NotAddable, NotYetSupported, SeveralWriters, UnknownName
from ..foundation.dtypes import F32
from ..foundation.source import Span
from ..program.expr import TRUE, Apply, Expr, Load, Select, const, loads, rewrite
from ..program.graph import IDENTITY, Output, Reduce
from ..program.poly import Poly
from ..program.rules import covers
from ..program.streamed import Streamed
from ..roles.model import Kernel, TensorArg
from ..syntax import ast
from .elementwise import elementwise

if TYPE_CHECKING:
    from .plan import Plan

OPS = {"atomic_add": "sum", "atomic_max": "max", "atomic_min": "min"}
ATOMIC = {op: how for how, op in OPS.items()}


@dataclass(frozen=True, kw_only=True)
class Combined:
    """direct: CTAs contribute to the output itself.  partials: otherwise its reductions, and the tensors of f32 that CTAs
    contribute them to."""

    output: Output
    op: str
    direct: bool
    partials: tuple[tuple[Reduce, TensorArg], ...] = ()


def declared(plan: Plan) -> dict[str, tuple[str, Span | None]]:
    """Output -> the operation by which a `combine` line brings it together, and where."""
    lines = (i for i in plan.schedule.items if isinstance(i, ast.CombineDecl))
    return {t: (OPS.get(line.how, "sum"), line.span) for line in lines for t in line.targets}


def combine_problems(plan: Plan) -> Iterator[Problem]:
    """Combined outputs that don't exist, needn't be combined, or can't be; and those that several CTAs would store."""
    outputs = {o.tensor: o for o in plan.streamed.outputs}
    lines = declared(plan)
    for line in (i for i in plan.schedule.items if isinstance(i, ast.CombineDecl)):
        if line.how not in OPS:
            cure = "`combine ... by atomic_add`, for sums"
            yield NotYetSupported(span=line.span, what=f"`combine` by {line.how}", cure=cure)
        for t in line.targets:
            if t not in outputs:
                yield UnknownName(span=line.span, what="output", name=t, known=tuple(outputs))
            elif plan.part is None and not missing(plan, outputs[t]):
                yield SeveralWriters(span=line.span, output=t, axis="", stream=plan.axis)
    for name, o in outputs.items():
        if plan.part is not None and name not in lines:
            yield SeveralWriters(span=plan.stream_span, output=name, axis=plan.part, stream=plan.axis)
        elif name not in lines:
            yield from unread(plan, o)
        elif (plan.part is not None or missing(plan, o)) and (why := not_addable(plan, o, lines[name][0])):
            yield NotAddable(span=lines[name][1], output=name, why=why, folded=plan.part is None)


def missing(plan: Plan, o: Output) -> tuple[str, ...]:
    """The grid axes that an output lacks, other than that of the parts of the stream."""
    return tuple(a for a in plan.grid if a not in o.indices and a != plan.part)


def unread(plan: Plan, o: Output) -> Iterator[Problem]:
    """An output that isn't combined reads nothing of which a CTA has a part only."""
    every = [f for f in plan.streamed.folds if f.axes[0] in plan.grid]
    reads = _folds_under(plan.streamed, o.value)
    for f in every:
        if f.name in reads and f.axes[0] in o.indices:
            why = f"it reads all of `{f.name}` along `{f.axes[0]}`, of which each CTA has its tile"
            yield NotAddable(span=f.span, output=o.tensor, why=why, folded=True)


def _folds_under(streamed: Streamed, e: Expr) -> set[str]:
    found = [f for x in loads(e) if (f := streamed.fold(x.tensor)) is not None]
    return {f.name for f in found}.union(*(_folds_under(streamed, f.body) for f in found))


def not_addable(plan: Plan, o: Output, op: str) -> str:
    """Why what CTAs have for an output can't be brought together by an operation; empty if it can."""
    streamed, found = plan.streamed, reductions_of(plan.streamed, o)
    for r in found:
        if r.op != op:
            return f"it needs the `{r.op}` of all parts"
        state = streamed.state(r.name)
        if plan.part is not None and state is None:
            return f"`{r.name}` is reduced along `{r.axes[0]}` too, once all parts are there"
        if state is not None and (state.correction is not None or state.kept is not None or state.references):
            return "its sums are scaled to a state that each part has for itself"
        if plan.part is None and (state is not None or r.axes != missing(plan, o)):
            return f"`{r.name}` isn't reduced along `{', '.join(missing(plan, o))}`"
        if any(streamed.fold(x.tensor) is not None for x in loads(r.body)):
            return f"`{r.name}` reads what is reduced along another axis"
    return "" if found else "it isn't summed over the stream"


def reductions_of(streamed: Streamed, o: Output) -> tuple[Reduce, ...]:
    """The states that an output reads, and the reductions of final values."""
    out = []
    for n in dict.fromkeys(x.tensor for x in loads(final_value(streamed, o))):
        state, fold = streamed.state(n), streamed.fold(n)
        out += [state.node] if state is not None else [fold] if fold is not None else []
    return tuple(out)


def combined(plan: Plan) -> dict[str, Combined]:
    """Output -> how CTAs contribute to it; nothing if each result is one CTA's."""
    lines = declared(plan)
    return {o.tensor: _combined(plan, o, lines[o.tensor][0]) for o in plan.streamed.outputs if o.tensor in lines}


def _combined(plan: Plan, o: Output, op: str) -> Combined:
    if o.dtype == F32 and is_reduction(plan.streamed, o, op):
        return Combined(output=o, op=op, direct=True)
    extents = plan.graph.extents
    args = [
        (
            r,
            TensorArg(
                name=f"{r.name}.{op}", dtype=F32, shape=tuple(extents[i] for i in r.indices), written=True, temporary=True
            ),
        )
        for r in reductions_of(plan.streamed, o)
    ]
    return Combined(output=o, op=op, direct=False, partials=tuple(args))


def is_reduction(streamed: Streamed, o: Output, op: str) -> bool:
    """Whether bringing the output's values together gives the output: one reduction; of sums also times what depends on
    none."""
    if streamed.program.domain(o.name) != TRUE and o.otherwise is not None:
        return False
    return _linear(streamed, o.value) if op == "sum" else isinstance(o.value, Load) and _reduced(streamed, o.value)


def _reduced(streamed: Streamed, x: Load) -> bool:
    return streamed.state(x.tensor) is not None or streamed.fold(x.tensor) is not None


def _linear(streamed: Streamed, e: Expr) -> bool:
    if isinstance(e, Load):
        return _reduced(streamed, e)
    if not (isinstance(e, Apply) and e.fn == "mul"):
        return False
    a, b = e.args
    free = [not any(_reduced(streamed, x) for x in loads(y)) for y in (a, b)]
    return (free[1] and _linear(streamed, a)) or (free[0] and _linear(streamed, b))


def final_value(streamed: Streamed, o: Output) -> Expr:
    """What an output stores, over states; outside its domain what it stores there, unless that selects what is written."""
    domain = streamed.program.domain(o.name)
    if domain == TRUE or not covers(streamed.program, o):
        return o.value
    return Select(cond=domain, then=o.value, other=const(0.0) if o.otherwise is None else o.otherwise)


def partials_of(results: dict[str, Combined]) -> tuple[TensorArg, ...]:
    """The tensors that outputs are made of, each once."""
    return tuple({t.name: t for c in results.values() for _, t in c.partials}.values())


def resetting(plan: Plan, results: dict[str, Combined]) -> Iterator[Kernel]:
    """The kernels that set what CTAs contribute to, to 0 or another identity."""
    extents = plan.graph.extents
    for c in results.values():
        if c.direct:
            o, nothing = c.output, const(float(IDENTITY[c.op]))
            arg = TensorArg(name=o.tensor, dtype=o.dtype, shape=o.shape, written=True)
            yield elementwise(plan, f"zero_{o.tensor}", (arg,), o.access, o.indices, nothing, c.output.span)
    for arg in partials_of(results):
        r = next(r for c in results.values() for r, t in c.partials if t.name == arg.name)
        access, nothing = tuple(Poly.of(i) for i in r.indices), const(float(IDENTITY[r.op]))
        assert all(i in extents for i in r.indices)
        yield elementwise(plan, f"zero_{arg.name}", (arg,), access, r.indices, nothing, r.span)


def finishing(plan: Plan, results: dict[str, Combined]) -> Iterator[Kernel]:
    """The kernels that make outputs of what CTAs have contributed."""
    for c in (c for c in results.values() if not c.direct):
        o, names = c.output, {s.name: t.name for s, t in c.partials}

        def one(x: Expr, names: dict[str, str] = names) -> Expr | None:
            return Load(tensor=names[x.tensor], access=x.access) if isinstance(x, Load) and x.tensor in names else None

        arg = TensorArg(name=o.tensor, dtype=o.dtype, shape=o.shape, written=True)
        read = tuple(TensorArg(name=t.name, dtype=t.dtype, shape=t.shape, written=False, temporary=True) for _, t in c.partials)
        value = rewrite(final_value(plan.streamed, o), one)
        yield elementwise(plan, f"finish_{o.tensor}", (arg, *read), o.access, o.indices, value, o.span)

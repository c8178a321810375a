"""combine: results that several CTAs contribute to, each from its part of the stream.

In: the plan of a schedule with `stream k split s in 8` and `combine C by atomic_add`.  Out: for each such output what CTAs add
to: the output itself, if it is the f32 sum and nothing else; or f32 sums in global memory, of which a kernel of its own makes
the output. Whatever is added to is set to 0 by a kernel before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..diagnostics.model import Problem, WgError
from ..diagnostics.schedule import NotAddable, NotYetSupported, SeveralWriters, UnknownName
from ..foundation.dtypes import F32
from ..foundation.source import Span
from ..program.expr import TRUE, Apply, Expr, Load, Select, const, loads, rewrite
from ..program.graph import Output
from ..program.poly import Poly
from ..program.rules import covers
from ..program.streamed import State, Streamed
from ..roles.model import Kernel, TensorArg
from ..syntax import ast
from .elementwise import elementwise

if TYPE_CHECKING:
    from .plan import Plan


@dataclass(frozen=True, kw_only=True)
class Combined:
    """direct: CTAs add to the output itself. Otherwise `sums` are the tensors that they add its states to."""

    output: Output
    direct: bool
    sums: tuple[tuple[State, TensorArg], ...] = ()


def combine_problems(plan: Plan) -> Iterator[Problem]:
    """Combined outputs that don't exist, needn't be combined, or can't be; and those that several CTAs would store."""
    outputs = {o.tensor: o for o in plan.streamed.outputs}
    declared: dict[str, Span | None] = {}
    for line in (i for i in plan.schedule.items if isinstance(i, ast.CombineDecl)):
        if line.how != "atomic_add":
            cure = "`combine ... by atomic_add`, for sums"
            yield NotYetSupported(span=line.span, what=f"`combine` by {line.how}", cure=cure)
        for t in line.targets:
            if t not in outputs:
                yield UnknownName(span=line.span, what="output", name=t, known=tuple(outputs))
            elif plan.part is None:
                yield SeveralWriters(span=line.span, output=t, axis="", stream=plan.axis)
            declared[t] = line.span
    for name, o in outputs.items():
        if plan.part is not None and name not in declared:
            yield SeveralWriters(span=plan.split_span, output=name, axis=plan.part, stream=plan.axis)
        elif plan.part is not None and (why := not_addable(plan.streamed, o)):
            yield NotAddable(span=declared[name], output=name, why=why)


def not_addable(streamed: Streamed, o: Output) -> str:
    """Why the parts of what an output is made of can't be added up; empty if they can."""
    for s in states_of(streamed, o):
        if s.node.op != "sum":
            return f"it needs the `{s.node.op}` of all parts"
        if s.correction is not None or s.references:
            return "its sums are scaled to a state that each part has for itself"
    return "" if states_of(streamed, o) else "it isn't summed over the stream"


def states_of(streamed: Streamed, o: Output) -> tuple[State, ...]:
    names = dict.fromkeys(x.tensor for x in loads(final_value(streamed, o)))
    return tuple(s for n in names if (s := streamed.state(n)) is not None)


def combined(plan: Plan) -> dict[str, Combined]:
    """Output -> how CTAs contribute to it; nothing if each result is one CTA's."""
    if plan.part is None:
        return {}
    return {o.tensor: _combined(plan, o) for o in plan.streamed.outputs}


def _combined(plan: Plan, o: Output) -> Combined:
    if o.dtype == F32 and is_sum(plan.streamed, o):
        return Combined(output=o, direct=True)
    extents = plan.graph.extents
    args = [
        (
            s,
            TensorArg(
                name=f"{s.name}.sum", dtype=F32, shape=tuple(extents[i] for i in s.node.indices), written=True, temporary=True
            ),
        )
        for s in states_of(plan.streamed, o)
    ]
    return Combined(output=o, direct=False, sums=tuple(args))


def is_sum(streamed: Streamed, o: Output) -> bool:
    """Whether adding up the output's value over parts gives the output: one sum, times what depends on no state."""
    if streamed.program.domain(o.name) != TRUE and o.otherwise is not None:
        return False
    return _linear(streamed, o.value)


def _linear(streamed: Streamed, e: Expr) -> bool:
    if isinstance(e, Load):
        return streamed.state(e.tensor) is not None
    if not (isinstance(e, Apply) and e.fn == "mul"):
        return False
    a, b = e.args
    free = [not any(streamed.state(x.tensor) for x in loads(y)) for y in (a, b)]
    return (free[1] and _linear(streamed, a)) or (free[0] and _linear(streamed, b))


def final_value(streamed: Streamed, o: Output) -> Expr:
    """What an output stores, over states; outside its domain what it stores there. Raises WgError if that selects what is
    written."""
    domain = streamed.program.domain(o.name)
    if domain == TRUE:
        return o.value
    if not covers(streamed.program, o):
        raise WgError(NotYetSupported(span=o.span, what=f"a `where` that selects what of `{o.tensor}` is written"))
    return Select(cond=domain, then=o.value, other=const(0.0) if o.otherwise is None else o.otherwise)


def sums_of(results: dict[str, Combined]) -> tuple[TensorArg, ...]:
    """The tensors of sums, each once."""
    return tuple({t.name: t for c in results.values() for _, t in c.sums}.values())


def zeroing(plan: Plan, results: dict[str, Combined]) -> Iterator[Kernel]:
    """The kernels that set to 0 what CTAs add to."""
    extents = plan.graph.extents
    for c in results.values():
        if c.direct:
            o = c.output
            arg = TensorArg(name=o.tensor, dtype=o.dtype, shape=o.shape, written=True)
            yield elementwise(plan, f"zero_{o.tensor}", (arg,), o.access, o.indices, const(0.0), c.output.span)
    for arg in sums_of(results):
        state = next(s for c in results.values() for s, t in c.sums if t.name == arg.name)
        access = tuple(Poly.of(i) for i in state.node.indices)
        assert all(i in extents for i in state.node.indices)
        yield elementwise(plan, f"zero_{arg.name}", (arg,), access, state.node.indices, const(0.0), state.node.span)


def finishing(plan: Plan, results: dict[str, Combined]) -> Iterator[Kernel]:
    """The kernels that make outputs of sums."""
    for c in (c for c in results.values() if not c.direct):
        o, names = c.output, {s.name: t.name for s, t in c.sums}

        def one(x: Expr, names: dict[str, str] = names) -> Expr | None:
            return Load(tensor=names[x.tensor], access=x.access) if isinstance(x, Load) and x.tensor in names else None

        arg = TensorArg(name=o.tensor, dtype=o.dtype, shape=o.shape, written=True)
        read = tuple(TensorArg(name=t.name, dtype=t.dtype, shape=t.shape, written=False, temporary=True) for _, t in c.sums)
        value = rewrite(final_value(plan.streamed, o), one)
        yield elementwise(plan, f"finish_{o.tensor}", (arg, *read), o.access, o.indices, value, o.span)

"""arguments: what a kernel is called with, read off its steps.

In: the program graph, the steps, the tensor maps.  Out: the tensors that the kernel touches, and its parameters in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from ..foundation.dtypes import F32, I32
from ..program.expr import Expr, Scalar, loads, walk
from ..program.graph import Input, Output, ProgramGraph
from ..program.poly import elements
from ..roles import model as roles
from ..roles.model import Param, Step, TensorArg, TensorMap, exprs


def direct(every: Iterable[Step]) -> dict[str, None]:
    """Tensors that threads address themselves."""
    out: dict[str, None] = {}
    for s in every:
        if isinstance(s, roles.StoreGlobal | roles.CopyOut | roles.CopyAsync | roles.ListTile | roles.Tally):
            out[s.tensor] = None
        if isinstance(s, roles.Read):
            out |= dict.fromkeys(a.tensor for a in elements(s.value))
        for e in exprs(s):
            for x in loads(e):
                out[x.tensor] = None
    return out


def tensors(
    graph: ProgramGraph, every: Sequence[Step], maps: Sequence[TensorMap], more: Sequence[TensorArg] = ()
) -> tuple[TensorArg, ...]:
    """Inputs and outputs of the program that the kernel uses, in the graph's order, then those of `more`."""
    used = {m.tensor for m in maps} | set(direct(every))
    out = []
    for n in graph.nodes:
        if isinstance(n, Input) and n.name in used:
            out.append(TensorArg(name=n.name, dtype=n.dtype, shape=n.shape, written=False))
        if isinstance(n, Output) and n.tensor in used:
            out.append(TensorArg(name=n.tensor, dtype=n.dtype, shape=n.shape, written=True))
    return (*out, *(t for t in more if t.name in used))


def params(
    graph: ProgramGraph,
    every: Sequence[Step],
    maps: Sequence[TensorMap],
    given: Sequence[TensorArg],
    flags: Sequence[str] = (),
    counters: Sequence[str] = (),
    numbers: Mapping[str, Expr] = MappingProxyType({}),
    divided: Iterable[str] = (),
) -> tuple[Param, ...]:
    """Kernel arguments: tensor maps, pointers with their strides, dims, scalars, numbers that hang on them alone, divisors,
    flags, counters. flags: tensors that may be stored with or without their map."""
    known = {t.name: t for t in given}
    out = [Param(kind="map", name=m.name, tensor=m.tensor) for m in maps]
    for name in direct(every):
        t = known[name]
        out.append(Param(kind="pointer", name=name, tensor=name, dtype=t.dtype))
        out += [Param(kind="stride", name=f"{name}.stride{a}", tensor=name, axis=a) for a in range(len(t.shape))]
    out += [Param(kind="dim", name=d, dtype=I32) for d in graph.dims if d not in graph.fixed]
    scalars = {x.name for s in every for e in exprs(s) for x in walk(e) if isinstance(x, Scalar)}
    out += [Param(kind="scalar", name=s.name, dtype=F32) for s in graph.scalars if s.name in scalars]
    out += [Param(kind="number", name=n, dtype=F32, value=e) for n, e in numbers.items()]
    out += [Param(kind="divisor", name=n) for n in divided]
    out += [Param(kind="flag", name=f"{t}.tma", tensor=t) for t in flags]
    return (*out, *(Param(kind="counter", name=c, dtype=I32) for c in counters))

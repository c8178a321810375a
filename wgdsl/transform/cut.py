"""cut: a program and a schedule of several kernels -> one program and one schedule for each, in launch order.

In: an analysed graph, and a schedule with `kernel NAME computes T1, T2 { ... }`.  Out: `Piece`s. What one kernel computes and
another reads becomes an output of the one and an input of the other: an array of f32, or of the type that the statement casts
to; an output of the program keeps its own array. All else that a kernel needs it computes itself. Where a tensor exists only on
part of its elements, so does what is read of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from ..diagnostics.model import Problem, WgError
from ..diagnostics.schedule import DeclaredTwice, KernelsDontFit, NotYetSupported, UnknownName
from ..foundation.dtypes import F32, DType
from ..program.expr import TRUE, Cast, Expr, Load, loads
from ..program.graph import Domain, Input, Map, Node, Output, ProgramGraph, rewrite_node
from ..program.poly import Poly
from ..syntax import ast


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One kernel: its program, its schedule, and which of its arguments pass between kernels in memory of the run time's."""

    graph: ProgramGraph
    schedule: ast.Schedule
    temporary: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Passed:
    """A tensor between kernels: its array, and where an element of the program's tensor lies in it."""

    name: str
    dtype: DType
    shape: tuple[Poly, ...]
    indices: tuple[str, ...]
    access: tuple[Poly, ...]
    domain: Expr
    temporary: bool


def cut(graph: ProgramGraph, schedule: ast.Schedule) -> tuple[Piece, ...]:
    """The kernels of a schedule in launch order; one if it has no `kernel`. Raises WgError for kernels that don't fit."""
    every = [i for i in schedule.items if isinstance(i, ast.KernelDecl)]
    kernels = [k for k in every if not graph.absent.issuperset(k.computes)]
    if not every:
        return (Piece(graph=graph, schedule=schedule),)
    lines = (i for i in (*schedule.items, *(i for k in kernels for i in k.items)) if isinstance(i, ast.StreamDecl))
    for listed in (i for i in lines if i.listed):
        raise WgError(NotYetSupported(span=listed.span, what="a listed stream in one of several kernels", cure="drop `listed`"))
    return _Cut(graph, schedule, kernels).pieces()


def whole_schedules(schedule: ast.Schedule) -> tuple[ast.Schedule, ...]:
    """The schedule of each kernel in the order in which they are written: its own lines, and those outside all kernels."""
    common = tuple(i for i in schedule.items if not isinstance(i, ast.KernelDecl))
    kernels = [i for i in schedule.items if isinstance(i, ast.KernelDecl)]
    named = (replace(schedule, name=f"{schedule.name}_{k.name}", items=(*common, *k.items), span=k.span) for k in kernels)
    return tuple(named) or (schedule,)


class _Cut:
    def __init__(self, graph: ProgramGraph, schedule: ast.Schedule, kernels: list[ast.KernelDecl]):
        self.graph, self.schedule, self.kernels = graph, schedule, kernels
        self.outputs = {o.tensor: o for o in graph.outputs}
        self.values = {n.name: n for n in graph.nodes if not isinstance(n, Input | Output)}
        self.owner: dict[str, ast.KernelDecl] = {}

    def pieces(self) -> tuple[Piece, ...]:
        problems = [*self.own(), *self.left_out()]
        if problems:
            raise WgError(problems)
        needs = {k.name: self.needed(k) for k in self.kernels}
        unread = [t for t in self.owner if t not in self.outputs and not any(t in reads for _, reads in needs.values())]
        if unread:
            why, cure = f"`{unread[0]}` is no output, and no other kernel reads it", "remove it from `computes`"
            raise WgError(KernelsDontFit(span=self.owner[unread[0]].span, why=why, cure=cure))
        passed = {t: self.passed(t) for _, reads in needs.values() for t in reads}
        return tuple(self.piece(k, *needs[k.name], passed) for k in self.ordered(needs))

    # Who computes what.
    def own(self) -> Iterator[Problem]:
        names: dict[str, ast.KernelDecl] = {}
        for k in self.kernels:
            if k.name in names:
                yield DeclaredTwice(span=k.span, what="kernel", name=k.name, first=names[k.name].span)
            names[k.name] = k
            for t in (t for t in k.computes if t not in self.graph.absent):
                if t not in self.outputs and t not in self.values:
                    yield UnknownName(
                        span=k.span, what="tensor that a kernel can compute", name=t, known=(*self.outputs, *self.values)
                    )
                elif t in self.owner:
                    why = f"`{t}` is computed by kernel `{self.owner[t].name}` and by kernel `{k.name}`"
                    yield KernelsDontFit(span=k.span, why=why, cure="name it in one of them; the other reads it")
                self.owner[t] = k

    def left_out(self) -> Iterator[Problem]:
        for t in (t for t in self.outputs if t not in self.owner):
            why, cure = f"no kernel computes the output `{t}`", f"`kernel NAME computes {t} {{ ... }}`"
            yield KernelsDontFit(span=self.schedule.span, why=why, cure=cure)

    def ordered(self, needs: Mapping[str, tuple[frozenset[str], tuple[str, ...]]]) -> list[ast.KernelDecl]:
        """Every kernel after those whose tensors it reads; else as they are written."""
        by_name = {k.name: k for k in self.kernels}
        try:
            order = list(TopologicalSorter({n: [self.owner[t].name for t in r] for n, (_, r) in needs.items()}).static_order())
        except CycleError as e:
            ring = list(dict.fromkeys(e.args[1]))
            why = f"kernels {' and '.join(f'`{n}`' for n in ring)} each read what the other computes"
            cure = "compute one of these tensors in a kernel of its own"
            raise WgError(KernelsDontFit(span=by_name[ring[0]].span, why=why, cure=cure)) from None
        return [by_name[n] for n in order]

    # What a kernel needs.
    def needed(self, kernel: ast.KernelDecl) -> tuple[frozenset[str], tuple[str, ...]]:
        """(the nodes that a kernel computes, the tensors of other kernels that it reads)"""
        kept: dict[str, None] = {}
        reads: dict[str, None] = {}
        stack = [n for t in kernel.computes for n in self.nodes_of(t)]
        while stack:
            name = stack.pop()
            if name in kept:
                continue
            kept[name] = None
            for x in (x for e in self.graph.by_name[name].exprs() for x in loads(e)):
                elsewhere = x.tensor in self.owner and self.owner[x.tensor] is not kernel
                if elsewhere:
                    reads[x.tensor] = None
                else:
                    stack.append(x.tensor)
        return frozenset(kept), tuple(t for t in self.owner if t in reads)

    def nodes_of(self, tensor: str) -> Iterator[str]:
        """The nodes that a tensor's name stands for: its value, and where that is stored."""
        if tensor in self.values:
            yield tensor
        if tensor in self.outputs:
            yield self.outputs[tensor].name

    def passed(self, tensor: str) -> Passed:
        o = self.outputs.get(tensor)
        node = self.values[tensor]
        if o is not None:
            return Passed(
                name=tensor,
                dtype=o.dtype,
                shape=o.shape,
                indices=o.indices,
                access=o.access,
                domain=self.domain(node),
                temporary=False,
            )
        return Passed(
            name=tensor,
            dtype=stored_type(node),
            shape=tuple(self.graph.extents[i] for i in node.indices),
            indices=node.indices,
            access=tuple(Poly.of(i) for i in node.indices),
            domain=self.domain(node),
            temporary=True,
        )

    def domain(self, node: Node) -> Expr:
        domain = self.graph.domain(node.name)
        if loads(domain):
            cure = f"compute `{node.name}` where it is read"
            what = f"passing `{node.name}`, whose `where` reads tensors, from one kernel to another"
            raise WgError(NotYetSupported(span=node.span, what=what, cure=cure))
        return domain

    # The pieces.
    def piece(self, k: ast.KernelDecl, kept: frozenset[str], reads: tuple[str, ...], passed: Mapping[str, Passed]) -> Piece:
        arrivals = [n for t in reads for n in arriving(passed[t])]
        leaving = [p for t in k.computes if (p := passed.get(t)) is not None and p.temporary]
        renamed = {t: passed[t] for t in reads}
        own = [rerouted(n, renamed) for n in self.graph.nodes if n.name in kept]
        nodes = (*arrivals, *own, *(departing(p) for p in leaving))
        inputs = [n for n in nodes if isinstance(n, Input)]
        graph = replace(self.graph, nodes=(*inputs, *(n for n in nodes if not isinstance(n, Input))))
        temporary = frozenset(p.name for p in (*renamed.values(), *leaving) if p.temporary)
        (lines,) = whole_schedules(
            replace(self.schedule, items=tuple(i for i in self.schedule.items if i is k or not isinstance(i, ast.KernelDecl)))
        )
        return Piece(graph=graph, schedule=lines, temporary=temporary)


def stored_type(node: Node) -> DType:
    """The type in which a tensor passes between kernels: that of the cast that makes it, or f32."""
    return node.body.dtype if isinstance(node, Map) and isinstance(node.body, Cast) else F32


def arriving(p: Passed) -> Iterator[Node]:
    """The input that a tensor of another kernel is, and its restriction to where it exists."""
    yield Input(name=p.name, indices=(), dtype=p.dtype, shape=p.shape)
    if p.domain != TRUE:
        yield Domain(name=domain_name(p), indices=p.indices, body=Load(tensor=p.name, access=p.access), predicate=p.domain)


def domain_name(p: Passed) -> str:
    return f"{p.name}.read"


def departing(p: Passed) -> Output:
    """The output that a tensor for another kernel is. Outside its domain it holds 0."""
    whole = tuple(Poly.of(i) for i in p.indices)
    return Output(
        name=f"{p.name}.out",
        indices=p.indices,
        dtype=p.dtype,
        tensor=p.name,
        shape=p.shape,
        access=p.access,
        value=Load(tensor=p.name, access=whole),
    )


def rerouted(node: Node, passed: Mapping[str, Passed]) -> Node:
    """The node with what it reads of other kernels read from their arrays."""

    def one(x: Expr) -> Expr | None:
        p = passed.get(x.tensor) if isinstance(x, Load) else None
        if p is None:
            return None
        assert isinstance(x, Load)
        if p.domain != TRUE:
            return Load(tensor=domain_name(p), access=x.access)
        at = dict(zip(p.indices, x.access, strict=True))
        return Load(tensor=p.name, access=tuple(a.substitute(at) for a in p.access))

    return rewrite_node(node, one)


def roundings(pieces: Iterable[Piece]) -> tuple[str, ...]:
    """What is rounded on its way from one kernel to another, in words."""
    found: dict[str, None] = {}
    for p in pieces:
        for n in p.graph.inputs:
            writer = any(o.tensor == n.name for q in pieces for o in q.graph.outputs)
            if writer and n.dtype.bits < 32:
                found[f"{n.name} to {n.dtype} (between kernels)"] = None
    return tuple(found)

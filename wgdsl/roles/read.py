"""read: the AST of an explicit form -> the role program that it is the text of.

In: an `Explicit` block and the graph of its program.  Out: a `RoleProgram`, equal to the one that was printed. Raises WgError
with every line that can't be read (WG11xx). Whether the program is legal, `wgdsl.verify` says.

A kernel's declarations are read first, so that they may name each other in any order; then its roles. The spans of what is read
are those of the explicit text; their `origin` is the line that an `@` names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.roles import LineNotOnce, NameInUse, NotAsTheProgram, NothingOfThatName
from ..foundation.source import Span
from ..program.graph import ProgramGraph
from ..syntax import ast
from ..syntax.lines import Block, Explicit, KernelLines, Line
from . import model as m
from .items import divisors
from .matching import matched
from .model import Kernel, RoleProgram
from .reading import LineReader, first_line, first_word, is_value
from .rows import Bars, Computes, Extent, InOrder, Resident, Rounding, Shared, Threads
from .scope import Names, Scope

_MAX_PROBLEMS = 20
_KINDS = {m.Barrier: "barrier", m.Ring: "ring", m.Buffer: "buffer", m.TensorMap: "map", m.TensorArg: "tensor", Extent: "index"}
_ONCE = {m.Grid: "`grid` line", Threads: "`threads` line", Shared: "`shared` line"}


def read_roles(block: Explicit, graph: ProgramGraph) -> RoleProgram:
    """The role program that an explicit form is the text of."""
    reader = _Reader(block=block, graph=graph)
    program = reader.program()
    if reader.problems:
        raise WgError(sorted(reader.problems, key=lambda p: p.span.start if p.span else 0)[:_MAX_PROBLEMS])
    return program


@dataclass
class _Reader(LineReader):
    """A whole form: its kernels, and what they declare."""

    block: Explicit = field(kw_only=True)
    graph: ProgramGraph = field(kw_only=True)
    temporaries: dict[str, m.TensorArg] = field(default_factory=dict)  # what passes between kernels, as the first one has it

    def program(self) -> RoleProgram:
        self.path = self.block.origin.text if self.block.origin is not None else ""
        heads = [self.line(x, Scope(names=Names())) for x in self.block.lines if isinstance(x, Line)]
        kernels = tuple(self.kernel(x) for x in self.block.lines if isinstance(x, KernelLines))
        self.outputs(kernels)
        return RoleProgram(
            program=self.block.program,
            schedule=self.block.name,
            target=self.block.target,
            kernels=kernels,
            roundings=tuple(h.what for h in heads if isinstance(h, Rounding)),
        )

    def outputs(self, kernels: tuple[Kernel, ...]) -> None:
        written = {t.name for k in kernels for t in k.tensors if t.written}
        for o in self.graph.outputs:
            if o.tensor not in written and not self.problems:
                line = f"line `tensor {o.tensor}: ... written`"
                self.problems.append(LineNotOnce(span=_head(self.block), line=line, where="the program", times=0))

    def kernel(self, block: KernelLines) -> Kernel:
        roles = [x for x in block.lines if first_word(x) == "role"]
        declared = [x for x in block.lines if first_word(x) != "role"]
        names = self.names(declared)
        dims, of_program = self.arguments(declared, "dim"), frozenset(s.name for s in self.graph.scalars)
        scope = Scope(names=names, integers=frozenset(dims), scalars=of_program)
        things = self.declarations(declared, scope)
        self.once(block, things, declared)
        grid = next((g for g in things if isinstance(g, m.Grid)), None)
        if grid is not None:
            self.divided(declared, grid)
        scope = replace(
            scope,
            integers=scope.integers | {"wg"},
            scalars=frozenset(x for kind in ("scalar", "number", "flag") for x in self.arguments(declared, kind)),
            grid=frozenset(a.index if a.tile == 1 else f"{a.index}.lo" for a in grid.axes) if grid else frozenset(),
        )
        found = [self.role(x, scope) for x in roles if grid is not None]  # without a grid nothing in them has a name
        return self.assembled(block, things, [r for r in found if r is not None])

    def names(self, declared: list[Line]) -> Names:
        """Everything that the declarations name, before they are read."""
        names, first = Names(), {}
        for line in declared:
            found = matched(line, strict=False)
            kind = _KINDS.get(found.row.make, "")
            node = next((node for slot, node in found.slots if slot.codec == "new"), None)
            if node is None or not kind:
                continue
            if (kind, node.id) in first:
                self.problems.append(NameInUse(span=node.span, what=kind, name=node.id, first=first[kind, node.id]))
            first[kind, node.id] = node.span
            names.declare(kind, node.id)
        return names

    def divided(self, declared: list[Line], grid: m.Grid) -> None:
        """What item numbers are divided by follows from the grid."""
        known = tuple(divisors(grid))
        for line in declared:
            for name in (n for n in self.arguments([line], "divisor") if n not in known):
                self.problems.append(
                    NothingOfThatName(span=first_line(line), what="divisor of the grid", name=name, known=known)
                )

    def arguments(self, declared: list[Line], kind: str) -> Iterator[str]:
        """The names of the parameters of a kind, before they are read."""
        for line in declared:
            if line.parts[:2] == ("param", kind) and isinstance(line.parts[2], ast.Name):
                yield line.parts[2].id

    def declarations(self, declared: list[Line], scope: Scope) -> list[Any]:
        """Tensors before the maps and the rest, which look them up."""
        out = []
        for line in declared:
            x = self.line(line, scope)
            if x is None:
                continue
            kind = _KINDS.get(type(x))
            if kind is not None:
                scope.names.declare(kind, x.index if isinstance(x, Extent) else x.name, x)
            self.compared(x, line)
            out.append(x)
        return out

    def compared(self, x: Any, line: Line) -> None:
        """Tensors, dims and scalars are the program's; what passes between kernels is alike in all; an order is of the axes."""
        span = first_line(line)
        if isinstance(x, m.TensorArg):
            self.same_tensor(x, span)
        if isinstance(x, m.Grid) and x.order is not None:
            known = tuple(a.index for a in x.axes)
            for name in (n for n in (*x.order.inner, *x.order.outer) if n not in known):
                self.problems.append(NothingOfThatName(span=span, what="axis of the grid", name=name, known=known))
        if isinstance(x, m.Param) and x.kind in ("dim", "scalar"):
            free = (d for d in self.graph.dims if d not in self.graph.fixed)
            known = tuple(free if x.kind == "dim" else (s.name for s in self.graph.scalars))
            if x.name not in known:
                what = f"{x.kind} of the program"
                self.problems.append(NothingOfThatName(span=span, what=what, name=x.name, known=known))

    def same_tensor(self, x: m.TensorArg, span: Span) -> None:
        if x.temporary or x.name.endswith(m.PROBE):
            first = self.temporaries.setdefault(x.name, x)
            if (first.dtype, first.shape) != (x.dtype, x.shape):
                where = "another kernel"
                self.problems.append(NotAsTheProgram(span=span, where=where, told=_tensor(x), wanted=_tensor(first)))
        elif said := _differs(x, self.graph):
            self.problems.append(NotAsTheProgram(span=span, where="the program", told=_tensor(x), wanted=said))

    def once(self, block: KernelLines, things: list[Any], declared: list[Line]) -> None:
        for kind, what in _ONCE.items():
            found = [line for line in declared if matched(line, strict=False).row.make is kind]
            if len(found) != 1:
                span = first_line(found[1]) if found else block.name.span
                first = first_line(found[0]) if found else None
                where = f"kernel `{block.name.id}`"
                self.problems.append(LineNotOnce(span=span, line=what, where=where, times=len(found), first=first))

    def role(self, line: Line, scope: Scope) -> tuple[m.Role, tuple[m.Value, ...]] | None:
        block = next(p for p in line.parts if isinstance(p, Block))
        names = Names({**scope.names.of, "value": {}})
        taken = dict.fromkeys(scope.integers, "dim") | dict.fromkeys(scope.scalars, "scalar")
        for each in block.lines:
            if not is_value(each):
                continue
            node = each.parts[1]
            assert isinstance(node, ast.Name)
            if node.id in taken:
                self.problems.append(NameInUse(span=node.span, what=taken[node.id], name=node.id))
            taken[node.id] = "value"
            names.declare("value", node.id)
        role = self.line(line, replace(scope, names=names))
        if role is None:
            return None
        values = tuple(x for x in role.steps if isinstance(x, m.Value))
        return replace(role, steps=role.steps[len(values) :]), values

    def assembled(self, block: KernelLines, things: list[Any], roles: list[tuple[m.Role, tuple[m.Value, ...]]]) -> Kernel:
        def of(kind: type) -> tuple:
            return tuple(x for x in things if isinstance(x, kind))

        whole = Computes(program=self.block.program, schedule=self.block.name, target=self.block.target)
        computes = next(iter(of(Computes)), whole)
        return Kernel(
            name=block.name.id,
            program=computes.program,
            schedule=computes.schedule,
            target=computes.target,
            grid=next(iter(of(m.Grid)), m.Grid(axes=())),
            threads=next((x.count for x in of(Threads)), 0),
            roles=tuple(r for r, _ in roles),
            rings=of(m.Ring),
            buffers=of(m.Buffer),
            barriers=of(m.Barrier),
            values=tuple(v for _, values in roles for v in values),
            maps=of(m.TensorMap),
            tensors=of(m.TensorArg),
            params=of(m.Param),
            index_extents={x.index: x.extent for x in of(Extent)},
            shared_bytes=next((x.nbytes for x in of(Shared)), 0),
            resident=next((x.count for x in of(Resident)), 1),
            v8=next((x.index for x in of(InOrder)), None),
            named_barriers=tuple((x.use, x.first, x.count) for x in of(Bars)),
        )


def _tensor(x: m.TensorArg) -> str:
    marks = (" written" if x.written else "") + (" temporary" if x.temporary else "")
    return f"{x.name}: {x.dtype}[{', '.join(map(str, x.shape))}]{marks}"


def _differs(x: m.TensorArg, graph: ProgramGraph) -> str:
    """What the program says of a tensor, if that is something else."""
    for n in (*graph.inputs, *graph.outputs):
        name, written = (n.tensor, True) if n in graph.outputs else (n.name, False)
        if name == x.name:
            right = m.TensorArg(name=name, dtype=n.dtype, shape=n.shape, written=written)
            return "" if right == x else _tensor(right)
    return "no tensor of that name"


def _head(block: Explicit) -> Span | None:
    if block.span is None:
        return None
    return Span(block.span.source, block.span.start, block.span.start + len("roles"))

"""The text of a role program: `--emit roles` and `wgdsl explain`.

In: a `RoleProgram`.  Out: one line a declaration or step, in the vocabulary of the explicit form; nothing in the program is
left out, so that the text can be read back. Comments (`#`) hold what follows from the rest: bytes, budgets, source lines.

Reading it: `(s, p)` is the role's position in the ring of the thing named, `s-1` the stage before it, and `parity p` the phase
of the stage that stands beside it (`not p` the other one). `[w, s]` is part and stage where there are several parts. A bare
`poly >= 0` is an integer predicate; `int(poly)` an integer used as a number; comparisons of numbers stand in brackets and
numbers that aren't integers have a point or an exponent. `i = 64 * wg +: 64` is an axis: index, first element, elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatchmethod

from ..foundation.source import Span
from ..program.expr import (
    FALSE,
    INFIX,
    SIGNS,
    TRUE,
    Affine,
    Apply,
    Cast,
    Cmp,
    Const,
    Expr,
    IndexValue,
    Load,
    Logic,
    Reg,
    Scalar,
    Select,
)
from ..program.poly import Poly
from .model import (
    FEW,
    Advance,
    Arrive,
    Axis,
    BarArrive,
    Barrier,
    BarSync,
    Buffer,
    ClearRows,
    Commit,
    CommitStore,
    CompleteOp,
    Compute,
    CopyOut,
    Elect,
    Expect,
    FenceAsync,
    FenceWgmma,
    If,
    Items,
    Kernel,
    Let,
    Loop,
    MapOp,
    Op,
    Pack,
    Param,
    ReduceOp,
    Registers,
    RegOperand,
    Ring,
    Role,
    RoleProgram,
    Slot,
    SmemOperand,
    Step,
    StoreGlobal,
    StoreShared,
    TensorMap,
    Tma,
    TmaStore,
    Value,
    VoteOp,
    Wait,
    WaitGroup,
    WaitStore,
    Wgmma,
    Zero,
)

VERSION = 1
LINE_COLUMN = 100  # where the `.wg` line of a step stands


def roles_text(program: RoleProgram, *, lines: bool = True) -> str:
    """The whole program, deterministic. `lines`: name the schedule's line where it changes."""
    out = [f"roles {VERSION}", f"program {program.program}  schedule {program.schedule}  target {program.target}"]
    out += [f"rounds {r}" for r in program.roundings]
    for k in program.kernels:
        out += ["", *_Printer(k, lines).kernel_lines()]
    return "\n".join(out) + "\n"


def step_text(kernel: Kernel, step: Step) -> str:
    """One step on one line, without what is nested in it: for diagnostics."""
    head = _Printer(kernel, False).head(step)
    return head if isinstance(head, str) else "compute { ... }"


def op_text(op: Op) -> str:
    """One operation of a `compute` on one line."""
    return _Printer.op(op)


def expr_text(e: Expr) -> str:
    """An expression that can be read back; see the module's docstring."""
    if isinstance(e, Const):
        return str(e.value).lower() if isinstance(e.value, bool) else repr(e.value)
    if isinstance(e, IndexValue):
        return f"int({e.poly})"
    if isinstance(e, Scalar | Reg):
        return e.name
    if isinstance(e, Load):
        return f"{e.tensor}[{_polys(e.access)}]"
    if isinstance(e, Affine):
        return f"{e.poly} >= 0"
    if isinstance(e, Cast):
        return f"{e.dtype}({expr_text(e.arg)})"
    if isinstance(e, Select):
        return f"select({expr_text(e.cond)}, {expr_text(e.then)}, {expr_text(e.other)})"
    if isinstance(e, Cmp):
        return f"({expr_text(e.left)} {SIGNS[e.op]} {expr_text(e.right)})"
    if isinstance(e, Logic):
        return _logic(e)
    assert isinstance(e, Apply)
    args = [expr_text(a) for a in e.args]
    return f"({args[0]} {INFIX[e.fn]} {args[1]})" if e.fn in INFIX else f"{e.fn}({', '.join(args)})"


def _logic(e: Logic) -> str:
    if e.op == "not":
        return f"not ({expr_text(e.args[0])})"
    return f" {e.op} ".join(f"({expr_text(a)})" if isinstance(a, Logic) else expr_text(a) for a in e.args)


def _polys(ps: tuple[Poly, ...]) -> str:
    return ", ".join(map(str, ps))


def _axis(a: Axis) -> str:
    return f"{a.index} = {a.origin} +: {a.count}"


def _axes(rows: Axis, cols: Axis | None) -> str:
    return _axis(rows) + (f", {_axis(cols)}" if cols is not None else "")


def _plural(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


class _Printer:
    def __init__(self, kernel: Kernel, lines: bool):
        self.kernel, self.lines = kernel, lines
        self.last_line: int | None = None

    def kernel_lines(self) -> Iterator[str]:
        k = self.kernel
        yield f"kernel {k.name} {{"
        yield f"  computes {k.program} by {k.schedule} on {k.target}"
        yield f"  {self.grid()}"
        yield f"  threads {k.threads}"
        yield f"  shared {k.shared_bytes}"
        for t in k.tensors:
            yield f"  tensor {t.name}: {t.dtype}[{_polys(t.shape)}]{' written' if t.written else ''}"
        for index, extent in k.index_extents.items():
            yield f"  index {index} < {extent}"
        for p in k.params:
            yield f"  param {self.param(p)}"
        for m in k.maps:
            yield f"  map {self.map(m)}"
        for b in k.buffers:
            yield f"  smem {self.buffer(b)}"
        for r in k.rings:
            yield f"  ring {self.ring(r)}"
        for b in k.barriers:
            yield f"  barrier {self.barrier(b)}"
        for use, first, count in k.named_barriers:
            yield f"  bars {first} +: {count} for {use}"
        for r in k.roles:
            yield ""
            yield from self.role(r)
        yield "}"

    def grid(self) -> str:
        axes = ", ".join(f"{a.index} in {a.blocks}{f' by {a.tile}' if a.tile != 1 else ''}" for a in self.kernel.grid.axes)
        return f"grid {'persistent ' if self.kernel.grid.persistent else ''}over ({axes}){self.order()}"

    def order(self) -> str:
        order = self.kernel.grid.order
        if order is None:
            return ""
        outer = ", ".join(f"{a} reversed" if a == order.reversed else a for a in order.outer)
        size = f" of {order.size}" if order.size is not None else ""
        return f" section ({', '.join(order.inner)}){size} under ({outer})"

    @staticmethod
    def param(p: Param) -> str:
        of = f" of {p.tensor}" if p.tensor is not None else ""
        axis = f" axis {p.axis}" if p.axis is not None else ""
        return f"{p.kind} {p.name}{of}{axis}{f': {p.dtype}' if p.dtype is not None else ''}"

    @staticmethod
    def map(m: TensorMap) -> str:
        dims = ", ".join(f"axis {d.axis}{f' x {d.factor}' if d.factor != 1 else ''} < {d.extent}" for d in m.dims)
        return f"{m.name} of {m.tensor}: {m.dtype} dims ({dims}) box ({', '.join(map(str, m.box))}) swizzle {m.swizzle}"

    @staticmethod
    def buffer(b: Buffer) -> str:
        over = f" over {b.over}" if b.over else ""
        return (
            f"{b.name} = {b.tensor}[{b.rows_index}, {b.cols_index}]: {b.dtype} {b.rows} x {b.cols} swizzle {b.swizzle} "
            f"ring {b.ring} parts {b.parts} stages {b.stages} at {b.offset} stride {b.stride}{over}"
            f"  # {b.tile_bytes} bytes a tile, {b.total_bytes} in all"
        )

    @staticmethod
    def ring(r: Ring) -> str:
        full = f" full {r.full}" if r.full else ""
        empty = f" empty {r.empty}" if r.empty else ""
        return f"{r.name} stages {r.stages} holds ({', '.join(r.buffers)}){full}{empty}"

    @staticmethod
    def barrier(b: Barrier) -> str:
        return f"{b.name} of {b.ring} count {b.count} parts {b.parts} stages {b.stages} at {b.offset}"

    @staticmethod
    def value(v: Value) -> str:
        size = "" if v.kind in FEW else f" 64 x {v.cols}"
        partial, over = " partial" if v.partial else "", f" over {v.over}" if v.over else ""
        return f"{v.name}: {v.kind}{size} {v.dtype}{partial}{over}  # {_plural(v.registers, 'register')}"

    def role(self, r: Role) -> Iterator[str]:
        registers = f" registers {r.registers}" if r.registers is not None else ""
        one = " one thread" if r.elected else ""
        yield f"  role {r.name}: warpgroups {r.first} +: {r.count}{registers}{one} {{"
        values = [v for v in self.kernel.values if v.role == r.name]
        for v in values:
            yield f"    value {self.value(v)}"
        if values:
            yield f"    # {_plural(sum(v.registers for v in values), 'register')} of values a thread"
        yield from self.steps(r.steps, 2)
        yield "  }"

    def steps(self, steps: tuple[Step, ...], depth: int) -> Iterator[str]:
        for s in steps:
            yield from self.step(s, depth)

    def step(self, s: Step, depth: int) -> Iterator[str]:
        pad, head = "  " * depth, self.head(s)
        if isinstance(head, list):
            first, *rest = head
            yield self.line(pad + first, s)
            yield from (pad + r for r in rest)
            return
        if not isinstance(s, Items | Loop | If | Elect):
            yield self.line(pad + head, s)
            return
        body = s.then if isinstance(s, If) else s.body
        yield self.line(f"{pad}{head} {{", s)
        yield from self.steps(body, depth + 1)
        if isinstance(s, If) and s.other:
            yield f"{pad}}} else {{"
            yield from self.steps(s.other, depth + 1)
        yield f"{pad}}}"

    def line(self, text: str, s: Step) -> str:
        remarks = [s.note] if s.note else []
        place = self.place(s.span)
        if place:
            remarks.append(place)
        if not remarks:
            return text
        return f"{text:<{LINE_COLUMN}}  # {'; '.join(remarks)}" if place else f"{text}  # {s.note}"

    def place(self, span: Span | None) -> str:
        """`line 12` where the schedule's line changes."""
        if not self.lines or span is None or span.line == self.last_line:
            return ""
        self.last_line = span.line
        return f"line {span.line}"

    @singledispatchmethod
    def head(self, s) -> str | list[str]:
        raise NotImplementedError(f"no text for {type(s).__name__}")

    def at(self, name: str, part: Poly, slot: Slot, parts: int) -> str:
        stage = f"s-{slot.lag}" if slot.lag else "s"
        return f"{name}[{part}, {stage}]" if parts > 1 or part != Poly() else f"{name}[{stage}]"

    def bar(self, name: str, part: Poly, slot: Slot) -> str:
        return self.at(name, part, slot, self.kernel.barrier(name).parts)

    def tile(self, name: str, part: Poly, slot: Slot) -> str:
        return self.at(name, part, slot, self.kernel.buffer(name).parts)

    @head.register
    def _(self, s: Items) -> str:
        return "items"

    @head.register
    def _(self, s: Let) -> str:
        return f"let {s.name} = {s.value}"

    @head.register
    def _(self, s: Loop) -> str:
        return f"loop {s.var} {s.start} .. {s.stop - 1}{f' mask {s.mask}' if s.mask else ''}"

    @head.register
    def _(self, s: If) -> str:
        return f"if {expr_text(s.cond)}"

    @head.register
    def _(self, s: Elect) -> str:
        return "one thread"

    @head.register
    def _(self, s: Registers) -> str:
        return f"registers {s.direction} {s.count}"

    @head.register
    def _(self, s: Wait) -> str:
        return f"wait {self.bar(s.barrier, s.part, s.slot)} parity {'not p' if s.flip else 'p'}"

    @head.register
    def _(self, s: Expect) -> str:
        return f"expect {self.bar(s.barrier, s.part, s.slot)} bytes {s.nbytes}"

    @head.register
    def _(self, s: Arrive) -> str:
        by = "lane 0 of each warp" if s.by == "warps" else "one thread"
        return f"arrive {self.bar(s.barrier, s.part, s.slot)} by {by}"

    @head.register
    def _(self, s: Advance) -> str:
        return f"advance {s.ring}"

    @head.register
    def _(self, s: Tma) -> str:
        to = self.tile(s.buffer, s.part, s.slot) + (f" panel {s.panel}" if s.panel else "")
        signals = self.bar(s.barrier, s.barrier_part, s.slot)
        return f"tma {to} = {self.box(s.map, s.coords)} signals {signals}"

    @head.register
    def _(self, s: TmaStore) -> str:
        source = self.tile(s.buffer, s.part, s.slot) + (f" panel {s.panel}" if s.panel else "")
        return f"store {self.box(s.map, s.coords)} = {source}"

    def box(self, name: str, coords: tuple[Poly, ...]) -> str:
        """`K[b, 128 * t +: 128, g, 0 +: 128] by Ks(0, 128 * t, 0, g, b)`: the elements, then the map's own coordinates."""
        m = self.kernel.map(name)
        start: dict[int, Poly] = {}
        extent: dict[int, int] = {}
        for d, c, n in zip(m.dims, coords, m.box, strict=True):
            start[d.axis] = start.get(d.axis, Poly()) + c * d.factor
            extent[d.axis] = extent.get(d.axis, 1) * n
        axes = [f"{start[a]} +: {extent[a]}" if extent[a] > 1 else str(start[a]) for a in sorted(start)]
        return f"{m.tensor}[{', '.join(axes)}] by {name}({_polys(coords)})"

    @head.register
    def _(self, s: Wgmma) -> str:
        a, b = self.operand(s.a), self.operand(s.b)
        sign = "=" if s.zero == TRUE else "+="
        first = " first" if s.zero == TRUE else "" if s.zero == FALSE else f" first if {expr_text(s.zero)}"
        return f"wgmma {s.acc} {sign} {a} * {b}{first} shape m64 n{s.n} k{s.k} {s.dtype}"

    def operand(self, o: SmemOperand | RegOperand) -> str:
        if isinstance(o, RegOperand):
            return o.value
        return f"{self.tile(o.buffer, o.part, o.slot)} {'k-major' if o.major == 'K' else 'mn-major'}"

    @head.register
    def _(self, s: FenceWgmma) -> str:
        return "fence wgmma"

    @head.register
    def _(self, s: Commit) -> str:
        return "commit"

    @head.register
    def _(self, s: WaitGroup) -> str:
        ready = f" ready {', '.join(s.values)}" if s.values else ""
        return f"wait_group {s.pending}{ready}"

    @head.register
    def _(self, s: FenceAsync) -> str:
        return "fence async"

    @head.register
    def _(self, s: BarSync) -> str:
        return f"sync bar {s.id} threads {s.threads}"

    @head.register
    def _(self, s: BarArrive) -> str:
        return f"arrive bar {s.id} threads {s.threads}"

    @head.register
    def _(self, s: Compute) -> list[str]:
        return ["compute {", *(f"  {self.op(o)}" for o in s.ops), "}"]

    @staticmethod
    def op(o: Op) -> str:
        if isinstance(o, CompleteOp):
            return f"complete {o.value} by {o.op}"
        if isinstance(o, MapOp):
            when = f" when {o.when}" if o.when else ""
            return f"{o.dst}[{_axes(o.rows, o.cols)}] = {expr_text(o.expr)}{when}"
        if isinstance(o, VoteOp):
            return f"{o.dst} = any[{_axis(o.rows)}] {expr_text(o.cond)}"
        assert isinstance(o, ReduceOp)
        start = f" from {expr_text(o.start)}" if o.start is not None else ""
        return f"{o.dst}[{_axis(o.rows)}] = {o.op}[{_axis(o.cols)}] {expr_text(o.src)}{start} lanes {o.lanes}"

    @head.register
    def _(self, s: Pack) -> str:
        return f"pack {s.dst} = {s.src}"

    @head.register
    def _(self, s: Zero) -> str:
        return f"zero {s.value}"

    @head.register
    def _(self, s: StoreShared) -> str:
        return f"write {self.tile(s.buffer, s.part, s.slot)} = {s.src}"

    @head.register
    def _(self, s: CommitStore) -> str:
        return "commit store"

    @head.register
    def _(self, s: WaitStore) -> str:
        return f"{'wait_read' if s.read else 'wait_store'} {s.pending}"

    @head.register
    def _(self, s: CopyOut) -> str:
        source = self.tile(s.buffer, s.part, s.slot)
        return f"copy {s.tensor}[{_polys(s.access)}] = {source} over {_axes(s.rows, s.cols)}"

    @head.register
    def _(self, s: StoreGlobal) -> str:
        return f"put {s.tensor}[{_polys(s.access)}] = {expr_text(s.value)} over {_axes(s.rows, s.cols)}"

    @head.register
    def _(self, s: ClearRows) -> str:
        return f"clear {self.tile(s.buffer, s.part, s.slot)} rows {s.start} .. {s.stop - 1}"

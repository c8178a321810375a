"""The text of one kernel: wrappers, parameters, barriers, one branch per role."""

from __future__ import annotations

from ..diagnostics.model import InternalError
from ..roles.marks import END, KEPT, NUMBER_BITS, marks_of
from ..roles.model import COUNTERS, ONES, Kernel, Param, Registers, Role, RoleProgram, Step, Tma, TmaStore, walk
from ..targets.choice import TARGETS
from ..targets.mbarrier import MBARRIER_BYTES
from ..targets.registers import WARPGROUP
from ..targets.tma import TMA
from . import chunks, compute, control, copies, joined, lists, products, stores, sync, warps  # noqa: F401  (they register their lowerings)
from .context import KernelContext, RoleContext, stride_key
from .lowering import require_lowerings
from .writer import Writer


def emit(kernel: Kernel, *, lines: bool = True, timed: bool = False) -> str:
    """CUDA C++ of one kernel for NVRTC, without headers. `lines`: name the `.wg` lines with `#line`. `timed`: note the clock
    at every mark (`roles.marks`).

    Raises InternalError for a role program that the target's lowerings cannot print.
    """
    require_lowerings(kernel)
    shared = KernelContext(kernel, marks_of(kernel) if timed else None)
    branched = _is_branched(kernel)
    roles = [_Role(shared, r, lines, 2 if branched else 1) for r in sorted(kernel.roles, key=lambda r: r.first)]
    body = Writer(depth=1, lines=lines)
    _prologue(body, shared, roles)
    _branches(body, kernel, roles)
    out = Writer()
    _header(out, shared)
    _counters(out, shared)
    if timed:
        name, count = shared.scope.get("marks", "marks"), (KEPT + 1) * (kernel.threads // WARPGROUP)
        out.line(f"__device__ unsigned long long {name}[{count}];  // a clock << {NUMBER_BITS}, and a mark")
        out.line()
    _signature(out, shared)
    out.take(body)
    out.line("}")
    return out.text()


def emit_program(program: RoleProgram, *, lines: bool = True, timed: bool = False) -> dict[str, str]:
    """Kernel name -> CUDA C++ text, in launch order."""
    return {k.name: emit(k, lines=lines, timed=timed) for k in program.kernels}


def marks_name(kernel: Kernel) -> str:
    """The C name of the array that the text of a timed kernel notes the clock in."""
    return KernelContext(kernel, marks_of(kernel)).scope.get("marks", "marks")


def entry_name(kernel: Kernel) -> str:
    """The C name of the kernel's `extern "C"` function."""
    return KernelContext(kernel).scope.get("kernel", kernel.name)


class _Role:
    """One role, printed: its own lines first, then what they turned out to need."""

    def __init__(self, shared: KernelContext, role: Role, lines: bool, depth: int):
        self.role = role
        self.ctx = RoleContext(shared, role, lines)
        self.first, rest = _leading_registers(role.steps)
        ctx = self.ctx
        ctx.elected = False
        self.registers = Writer(depth, lines)
        ctx.out = self.registers
        ctx.steps(self.first)
        self.body = ctx.out = Writer(depth, lines)
        ctx.elected = role.elected
        if role.elected:
            with ctx.block(f"if ({ctx.thread()} == 0)"):
                self._steps(rest)
        else:
            self._steps(rest)

    def _steps(self, steps: tuple[Step, ...]) -> None:
        self.ctx.steps(steps)
        if self.ctx.marks:
            self.ctx.mark(END)

    def write(self, out: Writer) -> None:
        whole = Writer(self.body.depth)
        whole.take(self.registers)
        self._declare(whole)
        whole.take(self.body)
        out.rows.extend(whole.pruned())

    def _declare(self, out: Writer) -> None:
        """What the role's text may name, ring positions and registers; unused ones are pruned."""
        ctx, scope = self.ctx, self.ctx.scope
        if self.role.count > 1:
            out.define("const int", scope.get("own", "wg"), f"warpgroup - {self.role.first}")
        for name, text in ctx.head.items():
            out.declare(name, text)
        for ring in ctx.kernel.rings:
            names = [ctx.stage_name(ring.name)] * ctx.has_stage(ring) + [ctx.phase_name(ring.name)] * ctx.has_phase(ring)
            if names:
                out.line(f"int {', '.join(f'{n} = 0' for n in names)};")
        for v in sorted(ctx.kernel.values, key=lambda v: v.over is not None):
            if v.role != self.role.name:
                continue
            name = scope.get("value", v.name)
            if v.kind in ONES:
                out.declare(name, f"{'bool' if v.kind == 'flag' else 'int'} {name};  // one for the warp")
                continue
            kind = "unsigned" if v.kind in ("operand", "elements") else "float"
            alias = v.over is not None
            home = f" = {scope.get('value', v.over)}" if v.over is not None else ""
            out.declare(name, f"{kind} {f'(&{name})' if alias else name}[{v.length}]{home};")


def _leading_registers(steps: tuple[Step, ...]) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The setmaxnreg steps, which every thread of the warpgroup runs, and the rest."""
    count = next((k for k, s in enumerate(steps) if not isinstance(s, Registers)), len(steps))
    return steps[:count], steps[count:]


def _header(out: Writer, shared: KernelContext) -> None:
    kernel = shared.kernel
    out.comment(f"{kernel.name}: program {kernel.program}, schedule {kernel.schedule}, target {kernel.target}")
    registers = ", ".join(f"{r.name} {r.count} x 128 threads" for r in kernel.roles)
    slack = TARGETS[kernel.target].shared_slack
    extra = f" + {slack}" if slack else ""
    out.comment(f"{kernel.threads} threads ({registers}), {kernel.shared_bytes}{extra} bytes of shared memory")
    out.line()
    if kernel.maps:
        out.line(f"struct alignas({TMA.map_alignment}) TMap {{ unsigned long long v[{TMA.map_bytes // 8}]; }};")
        out.line()
    if any(p.kind == "divisor" for p in kernel.params):
        out.line("struct Divisor { int value; unsigned multiplier, shift; };")
        out.line()
    if shared.functions:
        out.line("namespace ptx {")
        for f in shared.functions.values():
            for row in f.lines:
                out.line(row)
        out.line("}  // namespace ptx")
        out.line()


def _counters(out: Writer, shared: KernelContext) -> None:
    for p in shared.kernel.params:
        if p.kind == "counter":
            name = shared.scope.get("counter", p.name)
            out.line(f"__device__ int {name}[{COUNTERS}][2];  // items given out, CTAs that have left; 0 between launches")
            out.line()


def _signature(out: Writer, shared: KernelContext) -> None:
    kernel = shared.kernel
    out.line(f'extern "C" __global__ void __launch_bounds__({kernel.threads}, {kernel.resident})')
    params = [_parameter(shared, p) for p in kernel.params]
    name = shared.scope.get("kernel", kernel.name)
    rows, current = [], f"{name}("
    for k, p in enumerate(params):
        piece = p + (", " if k < len(params) - 1 else "")
        if len(current) + len(piece) > 112:
            rows.append(current.rstrip())
            current = "    "
        current += piece
    rows.append(current + ") {")
    for row in rows:
        out.line(row)


def _parameter(shared: KernelContext, p: Param) -> str:
    scope = shared.scope
    if p.kind == "map":
        return f"const __grid_constant__ TMap {scope.get('map', p.name)}"
    if p.kind == "pointer":
        tensor = shared.kernel.tensor(p.tensor or p.name)
        kind = f"{tensor.dtype.cuda}*" if tensor.written else f"const {tensor.dtype.cuda}* __restrict__"
        return f"{kind} {scope.get('pointer', tensor.name)}"
    if p.kind == "stride":
        return f"long long {scope.get('stride', stride_key(p.tensor, p.axis))}"
    if p.kind == "dim":
        return f"int {scope.get('int', p.name)}"
    if p.kind in ("scalar", "number"):
        return f"float {scope.get('scalar', p.name)}"
    if p.kind == "divisor":
        return f"Divisor {scope.get('divisor', p.name)}"
    if p.kind in ("counter", "flag"):
        return f"int {scope.get('scalar', p.name)}"
    raise InternalError(f"no C++ for a parameter of kind {p.kind!r}")


def _prologue(out: Writer, shared: KernelContext, roles: list[_Role]) -> None:
    """Addresses, barriers, and which warpgroup this is."""
    kernel, scope = shared.kernel, shared.scope
    if kernel.shared_bytes:
        address = shared.ptx("shared_address")
        target = TARGETS[kernel.target]
        if target.shared_slack:
            out.line("extern __shared__ char shared_raw[];")
            slack = target.shared_alignment - 1
            out.line(f"const unsigned smem = ({address}(shared_raw) + {slack}) & ~{slack}u;")
        else:
            out.line(f"extern __shared__ __align__({target.shared_alignment}) char shared_raw[];")
            out.line(f"const unsigned smem = {address}(shared_raw);")
    used = set().union(*(r.ctx.used_buffers for r in roles))
    for b in kernel.buffers:
        if b.name in used:
            shape = f"{b.stages} x " * (b.stages > 1) + f"{b.parts} x " * (b.parts > 1) + f"{b.rows} x {b.cols} {b.dtype}"
            swizzle = f"{b.swizzle}-byte swizzle" if b.swizzle else "no swizzle"
            over = f", over {b.over}" if b.over else ""
            out.line(f"const unsigned {scope.get('buffer', b.name)} = {_at(b.offset)};  // {shape}, {swizzle}{over}")
    for b in kernel.barriers:
        shape = f"{b.parts} x " * (b.parts > 1) + f"{b.stages} mbarrier" + "s" * (b.stages * b.parts > 1)
        out.line(f"const unsigned {scope.get('barrier', b.name)} = {_at(b.offset)};  // {shape}, arrivals a phase: {b.count}")
    _start(out, shared)
    if len(roles) > 1 or any(r.role.count > 1 for r in roles):
        # the shuffle tells the compiler that a warp agrees on it
        out.line("const int warpgroup = __shfl_sync(~0u, threadIdx.x >> 7, 0);")
    out.line()


def _at(offset: int) -> str:
    return f"smem + {offset}" if offset else "smem"


def _start(out: Writer, shared: KernelContext) -> None:
    kernel, scope = shared.kernel, shared.scope
    used_maps = {s.map for r in kernel.roles for s in walk(r.steps) if isinstance(s, Tma | TmaStore)}
    if not kernel.barriers and not used_maps:
        return
    with out.block("if (threadIdx.x == 0)"):
        for m in kernel.maps:
            if m.name in used_maps:
                out.line(f"{shared.ptx('prefetch')}({scope.get('map', m.name)});")
        for b in kernel.barriers:
            name, count = scope.get("barrier", b.name), b.parts * b.stages
            if count == 1:
                out.line(f"{shared.ptx('mbarrier_init')}({name}, {b.count});")
            else:
                call = f"{shared.ptx('mbarrier_init')}({name} + {MBARRIER_BYTES} * k, {b.count});"
                out.line(f"for (int k = 0; k < {count}; ++k) {call}")
        if kernel.barriers:
            out.line(f"{shared.ptx('fence_mbarrier_init')}();")
    if kernel.barriers:
        out.line("__syncthreads();")


def _is_branched(kernel: Kernel) -> bool:
    """Whether not every thread runs the one role."""
    return len(kernel.roles) != 1 or kernel.roles[0].count * 128 != kernel.threads


def _branches(out: Writer, kernel: Kernel, roles: list[_Role]) -> None:
    if not _is_branched(kernel):
        roles[0].write(out)
        return
    for k, r in enumerate(roles):
        last = r.role.first + r.role.count
        head = f"if (warpgroup < {last})" if r.role.count > 1 or r.role.first else "if (warpgroup == 0)"
        if r.role.first != (roles[k - 1].role.first + roles[k - 1].role.count if k else 0):
            head = f"if (warpgroup >= {r.role.first} && warpgroup < {last})"
        if k:
            head = "else " + ("" if last * 128 == kernel.threads else head)
        with out.block(head.rstrip()):
            out.comment(f"role {r.role.name}" + (" (one thread)" if r.role.elected else ""))
            r.write(out)

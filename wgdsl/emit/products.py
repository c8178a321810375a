"""Lowerings of matrix products: descriptors are one 32-bit base an operand plus what the K step adds."""

from __future__ import annotations

from ..diagnostics.model import InternalError
from ..program.expr import TRUE, Const
from ..roles.model import Buffer, Forget, Move, Pack, RegOperand, SmemOperand, Value, Wgmma, Zero
from ..targets.descriptor import UNIT, MatrixLayout, matrix_layout
from ..targets.registers import launch_registers
from ..targets.sm_90a import HOPPER
from ..targets.wgmma import INSTRUCTIONS, N_MAX, M, abreast, v8_source
from .context import RoleContext
from .control import refusal
from .lowering import lowers


@lowers(Wgmma, HOPPER)
def wgmma(ctx: RoleContext, step: Wgmma) -> None:
    ctx.need_all_threads(step)
    row = INSTRUCTIONS[step.dtype.name]
    steps = step.k // row.k
    buffer = ctx.kernel.buffer(step.b.buffer)
    layout, nbytes = _layout(buffer, step.b.major), buffer.dtype.nbytes
    count = abreast(step.n, layout, nbytes, launch_registers(ctx.kernel.threads * ctx.kernel.resident))
    if step.k % row.k or step.n > N_MAX or not count:
        raise InternalError(f"a product of n = {step.n}, k = {step.k} is no run of m{M}n..k{row.k} instructions")
    n = step.n // count
    acc = ctx.value(step.acc)[1]
    in_registers = isinstance(step.a, RegOperand)
    a_major = "K" if isinstance(step.a, RegOperand) else step.a.major
    call = ctx.ptx("wgmma", step.dtype.name, n, in_registers, a_major, step.b.major)
    if step.zero == TRUE:
        ctx.out.line(f"{ctx.ptx('fresh')}({acc});")
    with ctx.scope.temporaries() as names:
        if isinstance(step.a, RegOperand):
            packed, k = ctx.value(step.a.value)[1], "4 * k" if steps > 1 else "0"
            a = ", ".join(f"{packed}[{_sum(k, str(q))}]" for q in range(4))
            descriptors = []
        else:
            a = names.fresh("a_matrix")
            descriptors = [f"const unsigned long long {a} = {_operand(ctx, step.a, steps)};"]
        parts = {names.fresh("b_matrix"): part * n for part in range(count)}
        for b, at in parts.items():
            ahead = layout.across(at, nbytes)
            assert ahead is not None, "`abreast` asked"
            descriptors.append(f"const unsigned long long {b} = {_operand(ctx, step.b, steps, ahead)};")
        first = _first(ctx, step)
        accumulate = first if steps == 1 else {"0": "k != 0", "1": "1"}.get(first, f"k != 0 || {first}")
        results = {b: acc if count == 1 else f"{ctx.ptx('part')}<{n // 2}>({acc}, {at // 2})" for b, at in parts.items()}
        calls = [f"{call}({result}, {a}, {b}, {accumulate});" for b, result in results.items()]
        ctx.out.loop(f"for (int k = 0; k < {steps}; ++k)", [*descriptors, *calls])


def _first(ctx: RoleContext, step: Wgmma) -> str:
    """The scale-d of the first instruction: whether it adds to what the accumulator holds."""
    if isinstance(step.zero, Const):
        return "0" if step.zero.value else "1"
    return refusal(ctx, step.zero)


def _operand(ctx: RoleContext, operand: SmemOperand, steps: int, ahead: int = 0) -> str:
    """The descriptor of K step `k` as text, `ahead` bytes behind the tile's."""
    buffer = ctx.kernel.buffer(operand.buffer)
    layout = _layout(buffer, operand.major)
    base = _base(ctx, operand, layout)
    terms = ctx.tile_offset(buffer, operand.part, operand.slot, UNIT)
    if terms:
        base = ctx.at_slot(operand.slot, f"{ctx.scope.get('buffer', buffer.name)}_at", " + ".join([base, *terms]))
    return f"{ctx.ptx('matrix')}({_sum(base, _step_text(layout, steps), str(ahead // UNIT))}, 0x{layout.high:08x})"


def _layout(buffer: Buffer, major: str) -> MatrixLayout:
    return matrix_layout(major=major, swizzle=buffer.swizzle, rows=buffer.rows, cols=buffer.cols, nbytes=buffer.dtype.nbytes)


def _base(ctx: RoleContext, operand: SmemOperand, layout: MatrixLayout) -> str:
    """The lower descriptor half of the buffer's first tile, a constant of the role."""
    ctx.used_buffers.add(operand.buffer)
    buffer = ctx.scope.get("buffer", operand.buffer)
    suffix = "matrix" if operand.major == "K" else "matrix_t"
    name = ctx.scope.declare("matrix", f"{operand.buffer} {operand.major}", f"{buffer}_{suffix}")
    what = f"{operand.major}-major, {f'{layout.swizzle}-byte swizzle' if layout.swizzle else 'no swizzle'}"
    what += f", LBO {layout.leading}, SBO {layout.stride}"
    ctx.head.setdefault(name, f"const unsigned {name} = {buffer} / 16 + 0x{layout.low:x};  // descriptor: {what}")
    return name


def _step_text(layout: MatrixLayout, count: int) -> str:
    """The distance of K step k in descriptor units, as text of k: steps are even inside a panel, panels are even too."""
    units = [s // UNIT for s in layout.steps[:count]]
    if len(units) < count:
        raise InternalError(f"a {layout.major}-major tile of {len(layout.steps)} K steps in a product of {count}")
    if count == 1:
        return ""
    inner = next((k for k in range(1, count) if units[k] != k * units[1]), count)
    if inner == count:
        return _scaled("k", units[1])
    text = f"k / {inner} * {units[inner]}" + (f" + k % {inner} * {units[1]}" if inner > 1 else "")
    assert units == [k // inner * units[inner] + k % inner * units[1] for k in range(count)], "uneven K steps"
    return text


def _scaled(text: str, by: int) -> str:
    return "0" if text == "0" else text if by == 1 else f"{by} * {text}"


def _sum(*terms: str) -> str:
    return " + ".join(t for t in terms if t and t != "0") or "0"


@lowers(Pack)
def pack(ctx: RoleContext, step: Pack) -> None:
    ctx.need_all_threads(step)
    target, name = ctx.value(step.dst)
    source = ctx.value(step.src)[1]
    if target.dtype.nbytes == 1:
        return _pack_8(ctx, target, name, source)
    call = ctx.ptx("pack", target.dtype.name)
    body = f"{name}[at] = {call}({source}[2 * at], {source}[2 * at + 1]);"
    ctx.out.loop(f"for (int at = 0; at < {target.length}; ++at)", [body])


def _pack_8(ctx: RoleContext, target: Value, name: str, source: str) -> None:
    """Four elements a register, by twos: of the left half of the tile and at the same place of its right half where it lies in
    the order v8, else of 8 columns and of the next 8."""
    call = ctx.ptx("pack_8", target.dtype.name)
    first, right = ("2 * at", v8_source(2, target.cols)) if ctx.kernel.v8 else ("at / 2 * 8 + at % 2 * 2", 4)
    low, high = (f"{call}({source}[{at}], {source}[{at} + 1])" for at in (first, f"{first} + {right}"))
    ctx.out.loop(f"for (int at = 0; at < {target.length}; ++at)", [f"{name}[at] = {low} | (unsigned){high} << 16;"])


@lowers(Move)
def move(ctx: RoleContext, step: Move) -> None:
    target, name = ctx.value(step.dst)
    source = ctx.value(step.src)[1]
    ctx.out.loop(f"for (int at = 0; at < {target.length}; ++at)", [f"{name}[at] = {source}[at];"])


@lowers(Forget, HOPPER)
def forget(ctx: RoleContext, step: Forget) -> None:
    ctx.out.line(f"{ctx.ptx('fresh')}({ctx.value(step.value)[1]});")


@lowers(Zero)
def zero(ctx: RoleContext, step: Zero) -> None:
    value, name = ctx.value(step.value)
    if value.kind == "count":
        ctx.out.line(f"{name} = 0;")
        return
    ctx.out.loop(f"for (int at = 0; at < {value.length}; ++at)", [f"{name}[at] = 0.0f;"])

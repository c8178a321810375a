"""Each step's text."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pytest

from tests.arithmetic import add, mul
from tests.emit.checks import check
from tests.emit.hand import WG, ZERO, P, attention, gemm, strides
from tests.emit.toolchain import compile_text
from wgdsl.diagnostics.model import InternalError
from wgdsl.emit import emit, emit_program
from wgdsl.emit.lowering import lowers
from wgdsl.foundation.dtypes import BF16, DTYPES, F32
from wgdsl.foundation.source import Source, Span
from wgdsl.program.expr import (
    FALSE,
    TRUE,
    Affine,
    Cast,
    Cmp,
    Const,
    IndexValue,
    Load,
    Logic,
    Reg,
    Scalar,
    Select,
    apply,
    conjunction,
)
from wgdsl.program.poly import floordiv, minimum
from wgdsl.roles.model import (
    Advance,
    Arrive,
    Axis,
    BarArrive,
    Barrier,
    BarSync,
    Buffer,
    ClearRows,
    CommitStore,
    CompleteOp,
    Compute,
    Elect,
    Expect,
    If,
    Items,
    Kernel,
    Let,
    Loop,
    MapOp,
    Param,
    ReduceOp,
    Registers,
    Ring,
    Role,
    RoleProgram,
    Slot,
    SmemOperand,
    Step,
    StoreGlobal,
    TensorArg,
    Value,
    Wait,
    WaitStore,
    Wgmma,
    Zero,
)

ROWS = Axis(index="i", origin=P("i.lo") + 64 * WG, count=64)
COLS = Axis(index="j", origin=P("t") * 64, count=64)


def kernel_of(*steps: Step, elected: bool = False, count: int = 1, stages: int = 3, **changes) -> Kernel:
    """A kernel with one role that runs the steps, on a ring `Ks` of `stages` and the values X, Y (tiles), m, l (rows)."""
    base = gemm()
    buffer = Buffer(name="Ks", tensor="B", dtype=BF16, rows=64, cols=64, rows_index="j", cols_index="kk", swizzle=128,
                    ring="Ks", stages=stages)  # fmt: skip
    barriers = tuple(
        Barrier(name=f"Ks.{e}", ring="Ks", count=1, parts=1, stages=stages, offset=65536 + 64 * k)
        for k, e in enumerate(("full", "empty"))
    )
    role = Role(name="math", first=0, count=count, registers=None, elected=elected, steps=steps)
    tile, row = {"role": "math", "kind": "tile", "dtype": F32, "cols": 64}, {"role": "math", "kind": "row", "dtype": F32}
    fields = {
        "threads": 128 * count, "roles": (role,), "rings": (Ring(name="Ks", stages=stages, buffers=("Ks",)),),
        "buffers": (buffer,), "barriers": barriers,
        "values": (Value(name="X", **tile), Value(name="Y", **tile), Value(name="m", **row),
                   Value(name="l", partial=True, **row)),
        "tensors": (TensorArg(name="W", dtype=DTYPES["f16"], shape=(P("M"), P("N")), written=False),
                    TensorArg(name="out", dtype=BF16, shape=(P("M"), P("N")), written=True),
                    TensorArg(name="ids", dtype=DTYPES["i32"], shape=(P("M"),), written=False)),
        "params": (*(Param(kind="pointer", name=t, tensor=t) for t in ("W", "out", "ids")), *strides("W", 2),
                   *strides("out", 2), *strides("ids", 1), *(Param(kind="dim", name=d) for d in "MNK"),
                   Param(kind="scalar", name="alpha", dtype=F32), Param(kind="flag", name="out.tma")),
    }  # fmt: skip
    return replace(base, maps=(), **(fields | changes))


def loop(*steps: Step) -> tuple[Step, ...]:
    """The steps once an item and tile, so that `i.lo` and `t` are bound."""
    return (Items(body=(Loop(var="t", start=ZERO, stop=P("K"), body=steps),)),)


def compute(*ops) -> Kernel:
    return kernel_of(*loop(Compute(ops=ops)), count=2)


def clean(kernel: Kernel) -> str:
    text = emit(kernel)
    c = compile_text(text)
    assert "C75" not in c.log and "0 bytes stack frame" in c.log and "never referenced" not in c.log, c.log
    return text


def now(lag: int = 0) -> Slot:
    return Slot(ring="Ks", lag=lag)


# Rings.


def test_positions_and_lag():
    text = clean(kernel_of(*loop(
        Wait(barrier="Ks.full", part=ZERO, slot=now()),
        Wait(barrier="Ks.full", part=ZERO, slot=now(1), flip=True),
        Arrive(barrier="Ks.empty", part=ZERO, slot=now(1)),
        Advance(ring="Ks"),
        Arrive(barrier="Ks.empty", part=ZERO, slot=now(1)),
    )))  # fmt: skip
    check(text, """
// CHECK: int Ks_stage = 0, Ks_phase = 0;
// CHECK: ptx::mbarrier_wait(Ks_full + 8 * Ks_stage, Ks_phase);
// CHECK-NEXT: const int Ks_back1 = Ks_stage < 1 ? Ks_stage + 2 : Ks_stage - 1;
// CHECK-NEXT: ptx::mbarrier_wait(Ks_full + 8 * Ks_back1, Ks_phase ^ (Ks_stage < 1) ^ 1);
// CHECK-NEXT: if (lane == 0) ptx::mbarrier_arrive(Ks_empty + 8 * Ks_back1);
// CHECK-NEXT: if (++Ks_stage == 3) {
// CHECK-NEXT: Ks_stage = 0;
// CHECK-NEXT: Ks_phase ^= 1;
// CHECK-NEXT: }
// CHECK-NEXT: const int Ks_back12 = Ks_stage < 1 ? Ks_stage + 2 : Ks_stage - 1;
// CHECK-NEXT: if (lane == 0) ptx::mbarrier_arrive(Ks_empty + 8 * Ks_back12);
""")  # fmt: skip


def test_two_stages_lag_by_exclusive_or():
    text = clean(kernel_of(*loop(Arrive(barrier="Ks.empty", part=ZERO, slot=now(1)), Advance(ring="Ks")), stages=2))
    check(text, """
// CHECK: int Ks_stage = 0;
// CHECK: const int Ks_back1 = Ks_stage ^ 1;
// CHECK: Ks_stage = Ks_stage == 1 ? 0 : Ks_stage + 1;
""")  # fmt: skip


def test_one_stage_has_only_a_phase():
    steps = (Wait(barrier="Ks.full", part=ZERO, slot=now(1)), Wait(barrier="Ks.full", part=ZERO, slot=now()))
    text = clean(kernel_of(*loop(*steps, Advance(ring="Ks")), stages=1))
    check(text, """
// CHECK: int Ks_phase = 0;
// CHECK: ptx::mbarrier_wait(Ks_full, Ks_phase ^ 1);
// CHECK-NEXT: ptx::mbarrier_wait(Ks_full, Ks_phase);
// CHECK-NEXT: Ks_phase ^= 1;
""")  # fmt: skip
    assert "Ks_stage" not in text


def test_a_position_that_never_moves_is_a_constant():
    steps = (Wait(barrier="Ks.full", part=ZERO, slot=now()), Wait(barrier="Ks.full", part=ZERO, slot=now(1), flip=True))
    text = clean(kernel_of(*loop(*steps)))
    check(text, "// CHECK: mbarrier_wait(Ks_full, 0);\n// CHECK-NEXT: mbarrier_wait(Ks_full + 16, 0);")
    assert "Ks_stage" not in text and "Ks_phase" not in text


def test_barriers_of_parts():
    barriers = (Barrier(name="Ks.full", ring="Ks", count=1, parts=2, stages=3, offset=65536),)
    wait, arrive = Wait(barrier="Ks.full", part=WG, slot=now()), Arrive(barrier="Ks.full", part=P(1), slot=now(), by="thread")
    text = clean(kernel_of(*loop(wait, arrive, Advance(ring="Ks")), count=2, barriers=barriers))
    check(text, """
// CHECK: for (int k = 0; k < 6; ++k) ptx::mbarrier_init(Ks_full + 8 * k, 1);
// CHECK: ptx::mbarrier_wait(Ks_full + 8 * (wg * 3 + Ks_stage), Ks_phase);
// CHECK: if (thread == 0) ptx::mbarrier_arrive(Ks_full + 8 * (3 + Ks_stage));
""")  # fmt: skip


# Control.


def test_branches_and_names():
    live = conjunction(Affine(poly=P("N") - 1 - P("first")), Logic(op="not", args=(Scalar(name="out.tma"),)))
    text = clean(kernel_of(*loop(
        Let(name="first", value=floordiv(P("t") * 3 - P("N"), 80)),
        If(cond=live, then=(BarArrive(id=WG + 2, threads=256),), other=(BarSync(id=P(1), threads=256),)),
    ), count=2))  # fmt: skip
    check(text, """
// CHECK: const int first = ptx::floor_div(t * 3 - N, 80);
// CHECK-NEXT: if (first < N && !out_tma) {
// CHECK-NEXT: ptx::bar_arrive(wg + 2, 256);
// CHECK-NEXT: }
// CHECK-NEXT: else {
// CHECK-NEXT: ptx::bar_sync(1, 256);
""")  # fmt: skip


def test_elected_role_and_elected_steps():
    steps = (
        Expect(barrier="Ks.full", part=ZERO, slot=now(), nbytes=64),
        Elect(body=(CommitStore(), WaitStore(pending=1, read=False))),
    )
    text = clean(kernel_of(Registers(count=24, direction="dec"), *loop(*steps), elected=True))
    check(text, """
// CHECK: ptx::setmaxnreg_dec<24>();
// CHECK: if (thread == 0) {
// CHECK: ptx::mbarrier_expect(Ks_full, 64);
// CHECK-NEXT: ptx::tma_store_commit();
// CHECK-NEXT: ptx::tma_store_wait<1>();
""")  # fmt: skip
    text = clean(kernel_of(*loop(*steps)))
    check(text, """
// CHECK: if (thread == 0) ptx::mbarrier_expect(Ks_full, 64);
// CHECK-NEXT: if (thread == 0) {
// CHECK-NEXT: ptx::tma_store_commit();
""")  # fmt: skip


def test_whole_warpgroup_steps_are_refused_where_one_thread_runs():
    for step in (
        BarSync(id=ZERO, threads=128),
        Arrive(barrier="Ks.full", part=ZERO, slot=now()),
        Registers(count=24, direction="dec"),
    ):
        with pytest.raises(InternalError, match=f"{type(step).__name__} runs on a whole warpgroup"):
            emit(kernel_of(*loop(Elect(body=(step,)))))


def test_persistent_grid():
    check(emit(gemm(persistent=True)), """
// CHECK: const int i_blocks = (M + 127) >> 7;
// CHECK-NEXT: const int j_blocks = (N + 127) >> 7;
// CHECK-NEXT: const int total = i_blocks * j_blocks;
// CHECK-NEXT: #pragma unroll 1
// CHECK-NEXT: for (int item = blockIdx.x; item < total; item += gridDim.x) {
// CHECK-NEXT: const int rest = item / j_blocks;
// CHECK-NEXT: const int j_lo = (item - rest * j_blocks) * 128;
// CHECK-NEXT: const int i_lo = rest * 128;
""")  # fmt: skip


# Products.


@pytest.mark.parametrize(
    ("zero", "last"),
    [(TRUE, "k != 0"), (FALSE, "1"), (Affine(poly=-P("t")), "k != 0 || t > 0"), (Affine(poly=P("t") - 3), "k != 0 || t <= 2")],
)
def test_scale_d(zero, last: str):
    operand = SmemOperand(buffer="Ks", part=ZERO, slot=now(), major="K")
    step = Wgmma(acc="X", a=operand, b=operand, n=64, k=64, dtype=BF16, zero=zero)
    text = clean(kernel_of(*loop(step, Advance(ring="Ks"))))
    check(text, f"""
// CHECK: const unsigned Ks_at = Ks_matrix + Ks_stage * 512;
// CHECK: for (int k = 0; k < 4; ++k) {{
// CHECK-NEXT: const unsigned long long a_matrix = ptx::matrix(Ks_at + 2 * k, 0x40000040);
// CHECK-NEXT: const unsigned long long b_matrix = ptx::matrix(Ks_at + 2 * k, 0x40000040);
// CHECK-NEXT: ptx::wgmma_m64n64k16_bf16_ss(X, a_matrix, b_matrix, {last});
""")  # fmt: skip


def test_both_majors_of_one_buffer():
    a, b = (SmemOperand(buffer="Ks", part=ZERO, slot=now(), major=m) for m in ("K", "MN"))
    text = clean(kernel_of(*loop(Wgmma(acc="X", a=a, b=b, n=64, k=64, dtype=BF16, zero=TRUE), Zero(value="Y"))))
    check(text, """
// CHECK: const unsigned Ks_matrix = Ks / 16 + 0x10000;  // descriptor: K-major
// CHECK: const unsigned Ks_matrix_t = Ks / 16 + 0x2000000;  // descriptor: MN-major, 128-byte swizzle, LBO 8192, SBO 1024
// CHECK: ptx::matrix(Ks_matrix + 2 * k, 0x40000040);
// CHECK-NEXT: ptx::matrix(Ks_matrix_t + 128 * k, 0x40000040);
// CHECK: Y[at] = 0.0f;
""")  # fmt: skip


# Elementwise.


def test_uniform_row_and_element_parts():
    row = apply("exp2", mul(Reg(name="m"), apply("log2", Scalar(name="alpha"))))
    text = clean(compute(MapOp(dst="X", expr=mul(Reg(name="X"), row), rows=ROWS, cols=COLS)))
    check(text, """
// CHECK: const float f = log2f(alpha);
// CHECK-NEXT: float f2[2];
// CHECK: f2[half] = ptx::exp2(m[half] * f);
// CHECK: X[at] = X[at] * f2[half];
""")  # fmt: skip


def test_index_values_are_converted_once_a_row():
    """ALiBi: the distance is a float whose part along the row is a constant."""
    bias = mul(IndexValue(poly=P("j") - P("i")), Scalar(name="alpha"))
    text = clean(compute(MapOp(dst="X", expr=add(Reg(name="X"), bias), rows=ROWS, cols=COLS)))
    check(text, """
// CHECK: start[half] = (float)(j_first - i_row);
// CHECK: X[at] = X[at] + ((start[half] + (float)(col)) * alpha);
""")  # fmt: skip


def test_predicates():
    i, j = P("i"), P("j")
    window = conjunction(Affine(poly=i - j), Affine(poly=j - i + 100), Affine(poly=P("N") - 1 - j), Affine(poly=P("M") - 1 - i))
    text = clean(
        compute(MapOp(dst="X", expr=Select(cond=window, then=Reg(name="X"), other=Const(value=0.0)), rows=ROWS, cols=COLS))
    )
    check(text, """
// CHECK: const int limit = N - j_first - 1;
// CHECK: ok[half] = i_row < M;
// CHECK: limit2[half] = min(i_row - j_first, limit);
// CHECK: limit3[half] = j_first - i_row + 100;
// CHECK: X[at] = (ok[half] && (col <= limit2[half]) && (-col <= limit3[half])) ? X[at] : 0.0f;
""")  # fmt: skip


def test_predicate_that_is_not_linear():
    page = Affine(poly=floordiv(P("j"), 16) - P("M"))
    text = clean(
        compute(MapOp(dst="X", expr=Select(cond=page, then=Reg(name="X"), other=Const(value=1.0)), rows=ROWS, cols=COLS))
    )
    check(text, """
// CHECK: const int j_col = j_first + col;
// CHECK-NEXT: X[at] = (M <= (j_col >> 4)) ? X[at] : 1.0f;
""")  # fmt: skip


def test_loads():
    tile = Load(tensor="W", access=(P("i"), P("j")))
    number = Load(tensor="ids", access=(P("i"),))
    text = clean(compute(MapOp(dst="X", expr=add(Reg(name="X"), mul(tile, number)), rows=ROWS, cols=COLS)))
    check(text, """
// CHECK: const unsigned short* W_at = W_ptr + j_first * W_stride1;
// CHECK: W_at2[half] = W_at + i_row * W_stride0;
// CHECK: f[half] = (i_row < M) ? (float)ids_ptr[i_row * ids_stride0] : 0.0f;
// CHECK: X[at] = X[at] + (((ok[half] && (col <= limit)) ? ptx::from_f16(W_at2[half][col * W_stride1]) : 0.0f) * f[half]);
""")  # fmt: skip


def test_what_is_certain_is_not_checked():
    """The grid's own bounds, and tiles of a fixed width."""
    load = Load(tensor="W", access=(P("b"), P("i")))
    axis = replace(gemm().grid.axes[0], index="b", tile=1, blocks=P("M"))
    kernel = kernel_of(
        Items(body=(Compute(ops=(MapOp(dst="m", expr=load, rows=Axis(index="i", origin=ZERO, count=64)),)),)),
        grid=replace(gemm().grid, axes=(axis,)),
        tensors=(TensorArg(name="W", dtype=DTYPES["f16"], shape=(P("M"), P(64)), written=False),),
        params=(Param(kind="pointer", name="W", tensor="W"), *strides("W", 2), Param(kind="dim", name="M")),
    )
    check(clean(kernel), "// CHECK: m[half] = ptx::from_f16(W_at[i_row * W_stride1]);")


def test_casts_and_comparisons():
    e = Select(
        cond=Cmp(op="eq", left=Reg(name="m"), right=Const(value=float("-inf"))),
        then=Const(value=0),
        other=Cast(dtype=BF16, arg=Reg(name="m")),
    )
    text = clean(compute(MapOp(dst="m", expr=e, rows=ROWS)))
    check(text, "// CHECK: m[half] = (m[half] == -ptx::infinity()) ? 0.0f : ptx::from_bf16(ptx::to_bf16(m[half]));")


def test_reductions():
    text = clean(compute(
        ReduceOp(dst="l", op="sum", src=mul(Reg(name="X"), Reg(name="X")), start=mul(Reg(name="l"), Reg(name="m")), rows=ROWS,
                 cols=COLS, lanes="partial"),
        ReduceOp(dst="m", op="sum", src=Reg(name="X"), start=Reg(name="m"), rows=ROWS, cols=COLS),
        ReduceOp(dst="m", op="min", src=Reg(name="X"), start=Reg(name="m"), rows=ROWS, cols=COLS),
        CompleteOp(value="l", op="sum"),
    ))  # fmt: skip
    check(text, """
// CHECK: acc[half] = l[half] * m[half];
// CHECK: acc[half] = acc[half] + (X[at] * X[at]);
// CHECK: l[half] = acc[half];
// CHECK: acc[half] = 0.0f;
// CHECK: m[half] = m[half] + ptx::quad_sum(acc[half]);
// CHECK: acc[half] = m[half];
// CHECK: acc[half] = ptx::min_nan(acc[half], X[at]);
// CHECK: m[half] = ptx::quad_min(acc[half]);
// CHECK: l[half] = ptx::quad_sum(l[half]);
""")  # fmt: skip


def test_store_global():
    text = clean(kernel_of(*loop(
        StoreGlobal(tensor="out", access=(P("i"), P("j")), value=mul(Reg(name="X"), Reg(name="m")), rows=ROWS, cols=COLS),
        StoreGlobal(tensor="out", access=(P("i"), P("t")), value=Reg(name="m"), rows=ROWS),
    ), count=2))  # fmt: skip
    check(text, """
// CHECK: if (ok[half] && (col <= limit)) out_at2[half][col * out_stride1] = ptx::to_bf16(X[at] * m[half]);
// CHECK: if (lane % 4 == 0) {
// CHECK: if (i_row < M) out_at[i_row * out_stride0] = ptx::to_bf16(m[half]);
""")  # fmt: skip


def test_values_that_share_registers():
    values = tuple(replace(v, over="X") if v.name == "Y" else v for v in kernel_of().values)
    e = mul(apply("sub", Reg(name="X"), Reg(name="m")), Scalar(name="alpha"))
    text = clean(kernel_of(*loop(Compute(ops=(MapOp(dst="Y", expr=e, rows=ROWS, cols=COLS),))), count=2, values=values))
    check(text, """
// CHECK: float (&Y)[32] = X;
// CHECK-NOT: Y[at] = X[at];
// CHECK: Y[at] -= m[half];
// CHECK: Y[at] = fmaf(Y[at], alpha, -offset[half]);
""")  # fmt: skip


def test_clear_rows():
    text = clean(
        kernel_of(*loop(ClearRows(buffer="Ks", part=ZERO, slot=now(), start=P("N") - P("t"), stop=P(64)), Advance(ring="Ks")))
    )
    check(text, """
// CHECK: const unsigned tile = Ks + Ks_stage * 8192;
// CHECK: const int clear_from = max(N - t, 0) * 8;
// CHECK-NEXT: const int clear_to = 64 * 8;
// CHECK-NEXT: #pragma unroll 1
// CHECK-NEXT: for (int panel = 0; panel < 1; ++panel) {
// CHECK-NEXT: #pragma unroll 1
// CHECK-NEXT: for (int at = clear_from + thread; at < clear_to; at += 128)
// CHECK-NEXT: ptx::clear_shared_16(tile + panel * 8192 + at * 16);
""")  # fmt: skip


# The text as a whole.


def test_lines_and_words_of_the_schedule():
    source = Source("examples/two.wg", "first {\n  await S   # now\n}\nadvance the caf\u00e9 \\\n")
    one, two = Span(source, 10, 17), Span(source, 28, 47)
    steps = loop(
        Wait(barrier="Ks.full", part=ZERO, slot=now(), span=one),
        Arrive(barrier="Ks.empty", part=ZERO, slot=now(), span=one, note="all warps"),
        Advance(ring="Ks", span=two),
    )
    text = emit(kernel_of(*steps))
    check(text, """
// CHECK: {{^}}#line 2 "examples/two.wg"
// CHECK-NEXT: // await S
// CHECK-NEXT: mbarrier_wait
// CHECK-NEXT: // all warps
// CHECK-NEXT: mbarrier_arrive
// CHECK-NEXT: {{^}}#line 4 "examples/two.wg"
// CHECK-NEXT: // advance the caf? /
""")  # fmt: skip
    assert "#line" not in emit(kernel_of(*steps), lines=False)
    compile_text(text)


def test_hostile_names():
    """Names of the user that C++, CUDA or the emitter want for themselves."""
    names = {
        "Ks": "smem",
        "X": "int",
        "Y": "thread",
        "m": "half",
        "l": "at",
        "alpha": "1 caf\u00e9",
        "M": "ptx",
        "N": "threadIdx",
        "K": "min",
    }
    steps = loop(
        Wait(barrier="Ks.full", part=ZERO, slot=now()),
        Compute(ops=(
            MapOp(dst="int", expr=mul(Reg(name="thread"), mul(Reg(name="half"), Scalar(name="1 caf\u00e9"))), rows=ROWS,
                  cols=replace(COLS, index="col")),
            ReduceOp(dst="at", op="sum", src=Reg(name="int"), start=None, rows=ROWS, cols=COLS),
        )),
        ClearRows(buffer="smem", part=ZERO, slot=now(), start=minimum(P("threadIdx"), P("ptx")), stop=P("min")),
    )  # fmt: skip
    base = kernel_of(*steps)
    old = gemm().grid.axes[0]
    kernel = replace(
        base,
        name="__global__",
        roles=(
            replace(
                base.roles[0], steps=(Items(body=(Loop(var="t", start=ZERO, stop=P("min"), body=steps[0].body[0].body),)),)
            ),
        ),
        buffers=(replace(base.buffers[0], name="smem"),),
        rings=(replace(base.rings[0], buffers=("smem",)),),
        values=tuple(replace(v, name=names[v.name]) for v in base.values),
        params=tuple(replace(p, name=names.get(p.name, p.name)) for p in base.params if p.kind in ("dim", "scalar")),
        tensors=(),
        grid=replace(base.grid, axes=(replace(old, blocks=P("ptx")),)),
        index_extents={},
    )
    compile_text(emit(kernel))


def test_renaming_changes_names_only():
    text = emit(attention())
    kernel = attention()
    renamed = replace(kernel, values=tuple(replace(v, name="Zq") if v.name == "inv" else v for v in kernel.values))
    renamed = _rename(renamed, "inv", "Zq")
    assert re.sub(r"\bZq\b", "inv", emit(renamed)) == text


def _rename(value, old: str, new: str):
    """The same tree with registers renamed."""
    if isinstance(value, tuple):
        return tuple(_rename(v, old, new) for v in value)
    if hasattr(value, "__dataclass_fields__"):
        fields = {f: _rename(getattr(value, f), old, new) for f in value.__dataclass_fields__ if f != "span"}
        return replace(value, **fields)
    return new if value == old else value


def test_steps_without_lowering_are_named_together():
    @dataclass(frozen=True, kw_only=True)
    class Sing(Step):
        pass

    @dataclass(frozen=True, kw_only=True)
    class Dance(Step):
        pass

    with pytest.raises(InternalError, match=r"no lowering for sm_90a of Dance \(lowered for: none\); Sing"):
        emit(kernel_of(Sing(), Dance()))


def test_a_second_lowering_is_refused():
    with pytest.raises(InternalError, match=r"two lowerings of Wait for hopper: wgdsl.emit.sync.wait and .*again"):

        @lowers(Wait)
        def again(ctx, step):
            pass


def test_programs_of_several_kernels():
    one, two = gemm(), replace(attention(), name="second")
    program = RoleProgram(program="p", schedule="s", target="sm_90a", kernels=(one, two))
    texts = emit_program(program)
    assert list(texts) == ["gemm", "second"] and texts["gemm"] == emit(one)


def test_centring_of_what_is_no_register():
    x = add(mul(Reg(name="X"), Scalar(name="alpha")), Load(tensor="W", access=(P("i"), P("j"))))
    e = apply("exp2", mul(apply("sub", x, Reg(name="m")), Scalar(name="alpha")))
    text = clean(
        compute(MapOp(dst="Y", expr=e, rows=ROWS, cols=COLS), MapOp(dst="X", expr=Reg(name="Y"), rows=ROWS, cols=COLS))
    )
    check(text, """
// CHECK: Y[at] = (X[at] * alpha) +
// CHECK: Y[at] -= m[half];
// CHECK: Y[at] = ptx::exp2(fmaf(Y[at], alpha, -offset[half]));
""")  # fmt: skip


def test_a_summand_keeps_its_brackets():
    """`acc + c ? a : b` would choose by the sum."""
    below = Cmp(op="lt", left=Reg(name="X"), right=Const(value=0.0))
    source = Select(cond=below, then=Reg(name="X"), other=Const(value=1.0))
    text = clean(compute(ReduceOp(dst="l", op="sum", src=source, start=None, rows=ROWS, cols=COLS, lanes="partial")))
    assert "acc[half] + ((X[at] < 0.0f) ? X[at] : 1.0f)" in text

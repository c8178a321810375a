"""An attention kernel, built by hand: products from registers, softmax, and the facts of a good Hopper kernel in its SASS."""

from __future__ import annotations

import pytest

from tests.emit.checks import check
from tests.emit.hand import attention
from tests.emit.toolchain import compile_text
from wgdsl.emit import emit

SHAPES = {
    "128": {"d": 128, "n": 128},
    "128 causal": {"d": 128, "n": 128, "causal": True},
    "128 of 3": {"d": 128, "n": 80, "workers": 3, "registers": (32, 160), "stages": 3},
    "64 of 4": {"d": 64, "n": 64, "workers": 4, "registers": (24, 112), "stages": 4},
    "256": {"d": 256, "n": 80},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_sass(shape: str):
    options = SHAPES[shape]
    d, n, workers = options["d"], options["n"], options.get("workers", 2)
    c = compile_text(emit(attention(**options)))
    most = options.get("registers", (24, 240))[1]
    assert "C75" not in c.log and "0 bytes stack frame, 0 bytes spill" in c.log
    assert c.registers == {2: 168, 3: 128, 4: 96}[workers] and c.highest_register < most
    copies = 2  # prologue and loop share QK, loop and drain share PV
    assert c.count("HGMMA") == copies * (d // 16 + n // 16)
    assert sum(".tnspB" in row for row in c.sass.splitlines()) == copies * n // 16
    assert c.count("WARPGROUP.ARRIVE") == c.count("WARPGROUP.DEPBAR") == 2 * copies
    assert c.count("MUFU.EX2") == copies * n // 2 + 2
    assert c.count("FMNMX.NAN") >= copies * n // 2 and c.count("STSM") == d // 16 and c.count("HMMA") == 0
    assert c.count("USETMAXREG.TRY_ALLOC") == c.count("USETMAXREG.DEALLOC") == 1


def test_one_loop_is_the_steady_state():
    c = compile_text(emit(attention()))
    steady = min((b for b in c.loops if all(any(op in i for i in b) for op in ("HGMMA", "MUFU.EX2"))), key=len)
    assert sum("HGMMA" in i for i in steady) == 16
    assert sum("WARPGROUP.DEPBAR" in i for i in steady) == 2
    assert sum("MUFU.EX2" in i for i in steady) == 66
    assert len(steady) < 560
    # descriptors and barriers live in uniform registers
    assert not any(i.startswith("R2UR") for i in steady)


def test_masks_cost_one_comparison_an_element():
    text = emit(attention(causal=True))
    check(text, """
// CHECK: // S = select(N - j - 1 >= 0 and i + N - M - j >= 0, S, -inf)
// CHECK-NEXT: {
// CHECK-NEXT: const int j_first = n * 128 - 128 + first_col;
// CHECK-NEXT: const int limit{{.*}} = N - j_first - 1;
// CHECK-NEXT: int [[L:limit.*]][2];
// CHECK-NEXT: #pragma unroll
// CHECK-NEXT: for (int half = 0; half < 2; ++half) {
// CHECK-NEXT: const int i_row = i_lo + wg * 64 + row + 8 * half;
// CHECK-NEXT: [[L]][half] = min({{.*}}
// CHECK: const int half = at / 2 % 2;
// CHECK: const int col = at / 4 * 8 + at % 2;
// CHECK: S[at] = (col <= [[L]][half]) ? S[at] : -ptx::infinity();
""")  # fmt: skip


def test_scores_are_centred_by_one_fma():
    text = emit(attention())
    check(text, """
// CHECK: // S = exp2(((S - m) * (scale * 1.4426950408889634)))
// CHECK: offset[half] = m[half] * f;
// CHECK: if (__any_sync(~0u, !(fmaxf(fabsf(offset[0]), fabsf(offset[1])) <= 1024.0f))) {
// CHECK: S[at] -= m[half];
// CHECK: offset[0] = offset[1] = 0.0f;
// CHECK: S[at] = ptx::exp2(fmaf(S[at], f, -offset[half]));
""")  # fmt: skip


def test_row_values():
    check(emit(attention()), """
// CHECK: // l = sum(l, S over j) of this lane
// CHECK: acc[half] = l[half];
// CHECK: acc[half] = acc[half] + S[at];
// CHECK: l[half] = acc[half];
// CHECK: ptx::ready(O);
// CHECK: if (lane == 0) ptx::mbarrier_arrive(Vs_empty + 8 * Vs_stage);
// CHECK: // l = sum over the lanes of a row
// CHECK: l[half] = ptx::quad_sum(l[half]);
// CHECK: if (lane % 4 == 0) {
// CHECK-NEXT: float* L_at = L_ptr + b * L_stride0 + h * L_stride1;
// CHECK: if (i_row < M) L_at[i_row * L_stride2] =
""")  # fmt: skip


def test_too_many_registers_show():
    """96 keys a tile need more than 160 registers of three warpgroups: every product is then waited for."""
    c = compile_text(emit(attention(n=96, workers=3, registers=(32, 160))))
    assert "C7512" in c.log and "0 bytes spill stores" not in c.log
    assert c.count("WARPGROUP.DEPBAR") == c.count("HGMMA")

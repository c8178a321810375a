"""A whole GEMM, built by hand: what NVRTC says and what the SASS holds."""

from __future__ import annotations

import pytest

from tests.arithmetic import add, mul
from tests.emit.checks import check
from tests.emit.hand import gemm
from tests.emit.toolchain import compile_text
from wgdsl.emit import emit, entry_name
from wgdsl.foundation.dtypes import BF16, DTYPES
from wgdsl.program.expr import Load, Reg, Scalar, apply
from wgdsl.program.poly import Poly


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dtype": DTYPES["f16"], "b_major": "MN", "persistent": True},
        {"n": 80, "k": 32, "swizzle": 64, "stages": 3, "workers": 1},
        {"n": 256, "k": 64, "stages": 3},
        {"n": 64, "k": 64, "swizzle": 0, "b_major": "MN", "stages": 2},
    ],
    ids=str,
)
def test_compiles_clean(options: dict):
    kernel = gemm(**options)
    text = emit(kernel)
    assert text.isascii() and f" {entry_name(kernel)}(" in text.replace("\n", " ")
    c = compile_text(text)
    workers, n, k = options.get("workers", 2), options.get("n", 128), options.get("k", 64)
    assert "C75" not in c.log and "0 bytes stack frame, 0 bytes spill" in c.log
    assert c.registers == {1: 240, 2: 168}[workers] and c.highest_register < 240
    assert c.count("HGMMA") == k // 16 and c.count("WARPGROUP.ARRIVE") == c.count("WARPGROUP.DEPBAR") == 1
    assert c.count("USETMAXREG") == 2 and c.count("LDL") == c.count("STL") == 0
    assert c.count("STSM") == n // 16 and c.count("UTMASTG") == n // 64 if n % 64 == 0 else True


def test_epilogue_with_bias_and_activation():
    """Whole-tile maths on the accumulator: a load with a range guard, one address a row of the bias."""
    bias = Load(tensor="bias", access=(Poly.of("j"),))
    value = apply("gelu", add(mul(Reg(name="Acc"), Scalar(name="alpha")), bias))
    text = emit(gemm(epilogue=value))
    check(text, """
// CHECK: // Acc = gelu(((Acc * alpha) + bias[j]))
// CHECK: const int j_first = j_lo + first_col;
// CHECK-NEXT: const unsigned short* bias_at = bias_ptr + j_first * bias_stride0;
// CHECK-NEXT: const int limit = N - j_first - 1;
// CHECK: for (int pair = 0; pair < 32; ++pair) {
// CHECK-NEXT: const int col = pair / 2 * 8 + pair % 2;
// CHECK-NEXT: const float f = (col <= limit) ? ptx::from_bf16(bias_at[col * bias_stride0]) : 0.0f;
// CHECK: const int at = pair / 2 * 4 + half * 2 + pair % 2;
// CHECK-NEXT: Acc[at] = ptx::gelu((Acc[at] * alpha) + f);
""")  # fmt: skip
    c = compile_text(text)
    assert "C75" not in c.log and "0 bytes spill" in c.log and c.count("LDG") == 32


@pytest.mark.parametrize(
    "name", ["silu", "sigmoid", "gelu_tanh", "relu", "tanh", "exp", "sqrt", "rsqrt", "abs", "erf", "rcp", "log"]
)
def test_functions_compile(name: str):
    c = compile_text(emit(gemm(n=8 * 2, workers=1, stages=2, epilogue=apply(name, Reg(name="Acc")))))
    assert "C75" not in c.log and "0 bytes spill" in c.log


def test_only_the_wrappers_that_are_used():
    text = emit(gemm())
    assert "ex2.approx" not in text and "prefetch.tensormap" in text and "_rs" not in text


def test_text_does_not_depend_on_anything_else():
    assert emit(gemm()) == emit(gemm()) and BF16.name in emit(gemm())

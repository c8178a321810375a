"""Schedules in which several CTAs contribute to a result, each from its part of the stream."""

from __future__ import annotations

import pytest

from tests.programs.check import DEVICES, inputs, wrong
from tests.programs.edits import ATTENTION, GEMM_SPLIT, PIPELINED, edit
from tests.programs.test_attention_programs import CAUSAL, NO_LSE, NO_MAXIMUM, P
from tests.programs.test_gemm_programs import BATCHED, PLAIN, program
from wgdsl.driver import compile
from wgdsl.roles.model import StoreGlobal, TmaStore, walk

SIZES = ((1, 1, 8), (130, 260, 200), (129, 40, 8), (3, 7, 0), (300, 40, 1360))
STAGED = edit(
    GEMM_SPLIT,
    ("ring 6\n\nload", "ring 6\nsmem Cs = C[i, n] by tma\n\nload"),
    ("ring 6", "ring 4"),
    ("finish C", "finish C via Cs"),
)
TWO = "D[i,n] = Acc[i,n] * 2.0"
CASES = {
    "f32, from registers": (program("Acc[i,n]", out="f32"), GEMM_SPLIT),
    "f32, staged": (program("Acc[i,n]", out="f32"), STAGED),
    "a factor": (program("alpha * Acc[i,n] * s[i]", "in alpha: f32 = 1.5\nin s: f32[M]", out="f32"), GEMM_SPLIT),
    "a masked result": (program("Acc[i,n] where n <= i", out="f32"), GEMM_SPLIT),
    "a masked result with else": (program("Acc[i,n] where n <= i else 7.0", out="f32"), GEMM_SPLIT),
    "rounded": (PLAIN, GEMM_SPLIT),
    "an epilogue": (program("gelu(Acc[i,n] + w[n]) + R[i,n]", "in w: f32[N]\nin R: T[M, N]"), GEMM_SPLIT),
    "two results of one sum": (
        program("relu(Acc[i,n])", "out D: f32[M, N]", rest=TWO),
        edit(GEMM_SPLIT, ("combine C by", "combine C, D by"), ("finish C", "finish C, D")),
    ),
    "batched": (BATCHED, edit(GEMM_SPLIT, ("(s, i, n)", "(z, s, i, n)"))),
    "persistent, parts last": (PLAIN, edit(GEMM_SPLIT, ("grid over (s, i, n)", "grid persistent over (i, n, s)"))),
    "dynamic grid": (PLAIN, edit(GEMM_SPLIT, ("grid over", "grid persistent dynamic over"))),
    "descending": (PLAIN, edit(GEMM_SPLIT, ("stream k split", "stream k descending split"))),
    "one part": (PLAIN, edit(GEMM_SPLIT, ("in 8", "in 1"))),
    "three parts": (PLAIN, edit(GEMM_SPLIT, ("in 8", "in 3"))),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_product(name, device):
    text, schedule = CASES[name]
    kernel = compile(text, schedule=schedule, types={"T": "bf16"}, build=False)
    for m, n, k in SIZES:
        assert wrong(kernel, inputs(text, {"M": m, "N": n, "K": k, "Z": 2}), device) == [], (m, n, k)


def test_a_plain_f32_sum_is_added_up_in_the_output():
    kernel = compile(program("Acc[i,n]", out="f32"), schedule=GEMM_SPLIT, build=False)
    assert [k.name for k in kernel.roles.kernels] == ["gemm_split_zero_C", "gemm_split"]
    assert not any(t.temporary for k in kernel.roles.kernels for t in k.tensors)
    assert adds(kernel, StoreGlobal) == ["C"]


def test_staged_sums_are_added_by_the_copy_engine():
    kernel = compile(program("Acc[i,n]", out="f32"), schedule=STAGED, build=False)
    assert adds(kernel, TmaStore) == 4 * ["Cs"], "panels of 32 columns"
    assert "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group" in kernel.cuda


def test_the_report_says_that_the_order_varies():
    kernel = compile(PLAIN, schedule=GEMM_SPLIT, target="sm_90a", types={"T": "bf16"})
    assert "not deterministic: CTAs add to Acc.sum in no order" in str(kernel.report)
    whole = compile(PLAIN, schedule=PIPELINED, target="sm_90a", types={"T": "bf16"})
    assert "not deterministic" not in str(whole.report)


def adds(kernel, kind) -> list[str]:
    every = [s for k in kernel.roles.kernels for r in k.roles for s in walk(r.steps)]
    return [s.tensor if isinstance(s, StoreGlobal) else s.map for s in every if isinstance(s, kind) and s.add]


SPLIT = edit(
    NO_MAXIMUM,
    ("stream j descending", "stream j descending split part in 3\ncombine O by atomic_add"),
    ("over (b, g, r, i)", "over (b, g, r, i, part)"),
    (" via Os", ""),
    ("smem Os = O[i] by tma over Qs\n", ""),
)
MASKS = {
    "causal": ("P[b,g,r,i,j] = X[b,g,r,i,j]", CAUSAL),
    "full": ("P[b,g,r,i,j] = sigmoid(X[b,g,r,i,j])", {}),
    "exponentials": ("P[b,g,r,i,j] = exp(X[b,g,r,i,j])", CAUSAL),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", ["descending", "ascending"])
@pytest.mark.parametrize("name", MASKS)
def test_parts_of_a_masked_stream(name, order, device):
    """Most parts of a causal item are whole, one is cut, the last ones are empty."""
    statement, options = MASKS[name]
    text = edit(ATTENTION, (P, statement), *NO_LSE)
    schedule = SPLIT if order == "descending" else edit(SPLIT, (" descending", ""))
    kernel = compile(text, schedule=schedule, dims={"D": 64, "E": 64}, types={"T": "bf16"}, options=options, build=False)
    for m, n in ((1, 1), (200, 700), (300, 200), (130, 0)):
        sizes = {"B": 1, "H": 2, "G": 1, "M": m, "N": n, "D": 64, "E": 64}
        assert wrong(kernel, inputs(text, sizes), device) == [], (m, n)

"""Schedules of several kernels: what passes between them, and that each is right at odd sizes."""

from __future__ import annotations

import pytest

from tests.programs.check import DEVICES, inputs, wrong
from tests.programs.edits import ATTENTION, PIPELINED, SIMPLE, edit, plain
from wgdsl.driver import compile
from wgdsl.runtime.kernel import Kernel

SOFTMAX = plain("examples/row_softmax/row_softmax.wg")
TWO_PASS = plain("schedules/hopper/row_softmax_two_pass.wg")


def body(schedule: str) -> str:
    """The lines of a schedule."""
    return schedule[schedule.index("{") + 1 : schedule.rindex("}")]


def kernels(program: str, **parts: tuple[str, str]) -> str:
    """A schedule of kernels. parts: name -> (what it computes, its lines)."""
    inner = "\n".join(f"kernel {n} computes {what} {{ {lines} }}" for n, (what, lines) in parts.items())
    return f"wg 1\nschedule several for {program} on sm_90a {{\n{inner}\n}}\n"


# Attention in two passes: the log of the row sums, then O without a running maximum.
PASSES = edit(
    ATTENTION,
    ("P[b,g,r,i,j] = softmax[j] X[b,g,r,i,j]", "P[b,g,r,i,j] = exp(X[b,g,r,i,j] - Z[b,g,r,i])"),
    ("L[b,h,i] = logsumexp[j] X[b,g,r,i,j]", "L[b,h,i] = Z[b,g,r,i]"),
    ("P[b,g,r,i,j] = exp", "Z[b,g,r,i] = logsumexp[j] X[b,g,r,i,j]\nP[b,g,r,i,j] = exp"),
)
STATISTICS = edit(
    body(SIMPLE),
    ("smem Vs = V[j] by tma ring 2\nsmem Os = O[i] by tma over Qs\n", ""),
    ("fill Vs[j]\n", ""),
    ("compute P[j]\nrescale O\npack P[j]\nissue O += wgmma(P[j], Vs[j])\nawait O[j]", "compute Z[j]"),
    ("finish O, L via Os", "finish Z, L"),
)
USE = edit(body(SIMPLE), ("finish O, L via", "finish O via"), ("rescale O\n", ""))
# A layer of a network: the hidden values pass as bf16, ready to be multiplied.
MLP = """wg 1
program mlp {
dims M, N, K, E
type T in {bf16, f16}
in A: T[M, K]
in B: T[N, K]
in D: T[E, N]
out Y: T[M, E]
H[i,n] = bf16(gelu(sum[k] A[i,k] * B[n,k]))
Y[i,e] = sum[n] H[i,n] * D[e,n]
}
"""
HIDDEN = edit(body(PIPELINED), ("C[i, n]", "H[i, n]"), ("finish C", "finish H"), ("Acc", "H.sum"))
LAST = edit(
    body(PIPELINED),
    ("n 256, k 64", "e 128, n 64"),
    ("stream k", "stream n"),
    ("over (i, n)", "over (i, e)"),
    ("C[i, n]", "Y[i, e]"),
    ("finish C", "finish Y"),
    ("A[i, k]", "H[i, n]"),
    ("B[n, k]", "D[e, n]"),
    ("for k", "for n"),
    ("[k]", "[n]"),
    ("[k-1]", "[n-1]"),
    ("Acc", "Y"),
)
ORDER = {"first": ("H", HIDDEN), "second": ("Y", LAST)}
CASES = {
    "row statistics, then use": (SOFTMAX, TWO_PASS, {"K": 64}, {}),
    "attention in two passes": (
        PASSES,
        kernels("attention", rows=("Z, L", STATISTICS), use=("O", USE)),
        {"D": 64, "E": 64},
        {},
    ),
    "attention in two passes, causal": (
        PASSES,
        kernels("attention", rows=("Z, L", STATISTICS), use=("O", USE)),
        {"D": 64, "E": 64},
        {"causal": True},
    ),
    "two layers": (MLP, kernels("mlp", **ORDER), {}, {}),
    "two layers, last one first": (MLP, kernels("mlp", **dict(reversed(ORDER.items()))), {}, {}),
}


def compiled(name: str) -> tuple[str, Kernel]:
    text, schedule, dims, options = CASES[name]
    return text, compile(text, schedule=schedule, dims=dims, types={"T": "bf16"}, options=options, build=False)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_right(name, device):
    text, kernel = compiled(name)
    fixed = CASES[name][2]
    for m, n in ((1, 1), (200, 300), (300, 200), (130, 0), (129, 257)):
        n = n if "mlp" not in text else -(-n // 8) * 8  # rows of D are the copy engine's
        sizes = {"B": 2, "H": 2, "G": 1, "M": m, "N": n, "K": 72, "E": 100, **fixed}
        assert wrong(kernel, inputs(text, sizes), device) == [], (m, n)


def test_kernels_run_in_the_order_of_their_needs():
    for name in ("two layers", "two layers, last one first"):
        _, kernel = compiled(name)
        assert [k.name for k in kernel.roles.kernels] == ["mlp_several_first", "mlp_several_second"]


def test_what_passes_is_memory_of_the_run_time():
    _, kernel = compiled("two layers")
    made = {(k.name, t.name): (t.written, str(t.dtype)) for k in kernel.roles.kernels for t in k.tensors if t.temporary}
    assert made == {("mlp_several_first", "H"): (True, "bf16"), ("mlp_several_second", "H"): (False, "bf16")}
    assert "H to bf16 (between kernels)" in kernel.roles.roundings
    _, kernel = compiled("attention in two passes")
    made = {t.name: str(t.dtype) for k in kernel.roles.kernels for t in k.tensors if t.temporary}
    assert made == {"Z": "f32"}


def test_a_kernel_of_absent_outputs_is_none():
    """`L` is left out, so nothing is left of a kernel that computes it alone."""
    text = edit(ATTENTION, ("out L", "out L"))
    rows = edit(STATISTICS, ("compute Z", "compute L"), ("finish Z, L", "finish L"))
    whole = edit(body(SIMPLE), ("finish O, L via", "finish O via"))
    schedule = kernels("attention", rows=("L", rows), use=("O", whole))
    options = {"lse": False}
    kernel = compile(text, schedule=schedule, dims={"D": 64, "E": 64}, types={"T": "bf16"}, options=options, build=False)
    assert [k.name for k in kernel.roles.kernels] == ["attention_several_use"]

"""cut: what each kernel of a schedule computes, what passes between them, and what doesn't fit."""

from __future__ import annotations

import pytest

from tests.lowering import graph, schedule
from wgdsl.diagnostics.model import WgError
from wgdsl.program.rules import check
from wgdsl.program.text import graph_text
from wgdsl.transform.cut import cut, roundings

PROGRAM = """wg 1
program rows {
dims M, N, K
in A: bf16[M, K]
in B: bf16[N, K]
out L: f32[M]
out P: bf16[M, N]
S[i,n] = sum[k] A[i,k] * B[n,k]
X[i,n] = S[i,n] where n <= i
R[i] = logsumexp[n] X[i,n]
L[i] = R[i] + 1.0
H[i,n] = f16(X[i,n])
P[i,n] = exp(H[i,n] - R[i]) * L[i]
}
"""


def pieces(*kernels: str, program: str = PROGRAM):
    lines = "\n".join(f"kernel {k} {{ stream n }}" for k in kernels)
    return cut(graph(program), schedule(f"wg 1\nschedule s for rows on sm_90a {{\ntile i 64\n{lines}\n}}\n"))


def lines(piece) -> list[str]:
    return [x.strip() for x in graph_text(piece.graph).splitlines() if x.split()[0] in ("input", "output", "domain")]


def test_one_kernel_is_the_program():
    g = graph(PROGRAM)
    s = schedule("wg 1\nschedule s for rows on sm_90a { stream n }")
    (piece,) = cut(g, s)
    assert (piece.graph, piece.schedule) == (g, s)


def test_statistics_then_use():
    first, second = pieces("rows computes R, L", "use computes P")
    assert lines(first) == [
        "input A[M, K]: bf16",
        "input B[N, K]: bf16",
        "domain X[i < M, n < N]: f32 = S[i, n] where i - n >= 0",
        "output L.out[i < M]: f32 -> L[i] of [M] = L[i]",
        "output R.out[i < M]: f32 -> R[i] of [M] = R[i]",
    ]
    assert lines(second) == [
        "input R[M]: f32",
        "input L[M]: f32",
        "input A[M, K]: bf16",
        "input B[N, K]: bf16",
        "domain X[i < M, n < N]: f32 = S[i, n] where i - n >= 0",
        "output P.out[i < M, n < N]: bf16 -> P[i, n] of [M, N] = (exp((H[i, n] - R[i])) * L[i]) on i - n >= 0",
    ]
    assert first.temporary == second.temporary == {"R"}
    assert [p.schedule.name for p in (first, second)] == ["s_rows", "s_use"]
    assert len(first.schedule.items) == 2, "its own line and the common one"
    for p in (first, second):
        check(p.graph)


def test_a_cast_says_in_which_type_a_tensor_passes_and_a_where_stays():
    first, second = pieces("one computes H, R", "two computes P, L")
    assert "output H.out[i < M, n < N]: f16 -> H[i, n] of [M, N] = H[i, n] on i - n >= 0" in lines(first)
    assert lines(second)[:3] == [
        "input H[M, N]: f16",
        "input R[M]: f32",
        "domain H.read[i < M, n < N]: f32 = H[i, n] where i - n >= 0",
    ]
    assert roundings((first, second)) == ("H to f16 (between kernels)",)


def test_kernels_stand_in_the_order_of_their_needs():
    assert [p.schedule.name for p in pieces("use computes P", "rows computes R, L")] == ["s_rows", "s_use"]


REFUSED = {
    "an output of no kernel": (("rows computes R, L",), "WG0442", "no kernel computes the output `P`"),
    "of two": (("a computes R, P", "b computes L, R"), "WG0442", "`R` is computed by kernel `a` and by kernel `b`"),
    "unknown": (("a computes L, P, Q",), "WG0401", "no tensor that a kernel can compute is called `Q`"),
    "an input": (("a computes L, P, A",), "WG0401", "no tensor that a kernel can compute is called `A`"),
    "for nothing": (("a computes L, P, R",), "WG0442", "`R` is no output, and no other kernel reads it"),
    "a name twice": (("a computes L", "a computes P"), "WG0403", "kernel `a` is declared twice"),
    "each waits for the other": (
        ("a computes R, P", "b computes L, H"),
        "WG0442",
        "kernels `a` and `b` each read what the other computes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    kernels, code, title = REFUSED[name]
    with pytest.raises(WgError) as e:
        pieces(*kernels)
    assert (code, title) in [(p.code, p.title()) for p in e.value.problems]


def test_a_where_that_reads_tensors_doesnt_pass():
    text = PROGRAM.replace("where n <= i", "where S[i,n] > 0.0")
    with pytest.raises(WgError) as e:
        pieces("one computes H, R", "two computes P, L", program=text)
    assert e.value.problems[0].code == "WG0405"

"""stream: states and corrections follow from algebra."""

from __future__ import annotations

import pytest

from tests.lowering import attention, gemm, graph
from wgdsl.diagnostics.model import WgError
from wgdsl.program.streamed import streamed_text
from wgdsl.transform.canonicalise import canonicalise
from wgdsl.transform.stream import stream

HEAD = """wg 1
program p {
  dims M, N, D
  in A: f16[M, D]
  in B: f16[N, D]
  in w: f32[N]
  out y: f32[M]
  S[i,j] = sum[d] A[i,d] * B[j,d]
"""


def streamed(body: str, axis: str = "j"):
    return stream(canonicalise(graph(HEAD + body + "\n}\n", dims={"D": 64})), axis)


def test_attention():
    text = streamed_text(stream(canonicalise(attention(causal=True)), "j"))
    correction = "correction: exp2(((P.max.old[b, g, r, i] - P.max[b, g, r, i]) * (scale * 1.4426950408889634)))"
    assert text.count(correction) == 2  # of the row sum and of the output
    assert "outside: -inf (select)" in text and "outside: 0.0" in text
    assert "masked at its operand" not in text


def test_a_product_streams_without_states():
    s = stream(canonicalise(gemm()), "k")
    assert [t.name for t in s.states] == ["Acc"] and s.states[0].correction is None
    assert not s.masks and not s.masked_states  # zero-filled operands add nothing


def test_sum_of_exponentials_without_maximum_needs_no_correction():
    s = streamed("  y[i] = sum[j] exp(S[i,j])")
    assert all(t.correction is None for t in s.states)
    assert s.masked_states, "exp(0) of a zero-filled score is 1, so the sum masks its own operand"


def test_a_linear_use_of_an_earlier_result_leaves_the_reduction():
    s = streamed("  m[i] = max[j] S[i,j]\n  y[i] = sum[j] m[i] * S[i,j]")
    total = next(t for t in s.states if t.node.op == "sum")
    assert total.correction is None and "m" not in str(total.node.body)


def test_not_separable():
    with pytest.raises(WgError) as caught:
        streamed("  m[i] = max[j] S[i,j]\n  y[i] = sum[j] tanh(S[i,j] - m[i])")
    (problem,) = caught.value.problems
    assert problem.code == "WG0302" and "`y` needs `m`, along `j`" in problem.notes()


def test_unknown_axis():
    with pytest.raises(WgError) as caught:
        streamed("  y[i] = sum[j] S[i,j]", axis="i")
    assert caught.value.problems[0].code == "WG0301"


def test_a_factor_of_another_sign_is_corrected_the_other_way():
    s = streamed("  m[i] = min[j] S[i,j]\n  y[i] = sum[j] exp(m[i] - S[i,j])")
    total = next(t for t in s.states if t.node.op == "sum")
    assert str(total.correction).startswith("exp2(((m[i] - m.old[i])")

"""reciprocals: which quotients by numbers become products, and which have to stay what they are."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.lowering import ATTENTION, graph
from wgdsl.driver import compile
from wgdsl.transform.canonicalise import canonicalise
from wgdsl.transform.reciprocals import reciprocals


def scores(text: str) -> str:
    """The nodes of attention with other scores, once it is canonical."""
    odd = ATTENTION.replace("S[b,g,r,i,j] * scale", text)
    assert odd != ATTENTION
    nodes = canonicalise(reciprocals(graph(odd, dims={"D": 64, "E": 64}))).nodes
    return " ".join(str(e) for n in nodes for e in n.exprs())


def test_a_product_that_others_join():
    text = scores("30.0 * tanh(S[b,g,r,i,j] * scale / 30.0)")
    assert "(scale * 0.0333" in text and "/ 30" not in text


@pytest.mark.parametrize("number", ["0.0", "1e-39"])
def test_a_number_without_a_reciprocal(number):
    assert f"/ {float(number)}" in scores(f"S[b,g,r,i,j] * scale / {number}")


ONE = "min(max(Acc[i,n], 41.0), 41.0)"  # 41, computed
DECIDED = {
    "compared": f"C[i,n] = select({ONE} / 41.0 >= 1, 1.0, 0.0)",
    "an index": "C[i,n] = select(i / 41.0 == 1, Acc[i,n], 0.0)",
    "cast": f"C[i,n] = f32(i32({ONE} / 41.0))",
    "elsewhere": f"Y[i,n] = {ONE} / 41.0\nZ[i,n] = abs(Y[i,n])\nC[i,n] = select(Z[i,n] >= 1, 1.0, 0.0)",
    "of what exists": f"Y[i,n] = {ONE} / 41.0 where n <= i\nC[i,n] = select(Y[i,n] >= 1, 1.0, 0.0)",
    "whether it exists": f"C[i,n] = Acc[i,n] where {ONE} / 41.0 >= 1",
}


@pytest.mark.parametrize("case", DECIDED)
def test_what_decides_is_exact(case):
    text = f"""wg 1
program gemm {{
  dims M, N, K
  type T in {{bf16}}
  in   A: T[M, K]
  in   B: T[N, K]
  out  C: f32[M, N]
  Acc[i,n] = sum[k] A[i,k] * B[n,k]
  {DECIDED[case]}
}}
"""
    kernel = compile(text, schedule="warps", target="sm_80", dims={"K": 64}, build=False)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (n, 64)).astype(ml_dtypes.bfloat16) for n in (70, 66))
    np.testing.assert_array_equal(kernel.simulate(A=a, B=b), kernel(A=a, B=b, device="reference"))

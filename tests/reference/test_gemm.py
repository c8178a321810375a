"""GEMM of `wgdsl.reference` in both layouts, with bias and activations, against scalar loops."""

from __future__ import annotations

import numpy as np
import pytest

from tests.analyse.programs import GEMM, graph_of
from tests.reference import plain
from wgdsl.reference import evaluate, random_inputs


@pytest.mark.parametrize("act", list(plain.ACTIVATIONS))
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("b_rows", [True, False], ids=["B[n,k]", "B[k,n]"])
def test_gemm(b_rows, with_bias, act):
    graph = graph_of(GEMM, options={"b_rows": b_rows, "with_bias": with_bias, "act": act})
    arrays = random_inputs(graph, {"M": 7, "N": 5, "K": 11}, seed=1)
    a, b = arrays["A"].astype(float), arrays["B" if b_rows else "Bt"].astype(float)
    expected = np.zeros((7, 5))
    for m, n in np.ndindex(7, 5):
        total = sum(a[m, k] * (b[n, k] if b_rows else b[k, n]) for k in range(11))
        expected[m, n] = plain.ACTIVATIONS[act](total + (arrays["bias"][n] if with_bias else 0.0))
    np.testing.assert_allclose(evaluate(graph, arrays)["C"], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("size", [(0, 5, 3), (4, 0, 3), (4, 5, 0), (1, 1, 1)])
def test_extents_of_zero_and_one(size):
    graph = graph_of(GEMM, options={"with_bias": True})
    m, n, k = size
    arrays = random_inputs(graph, {"M": m, "N": n, "K": k}, seed=2)
    expected = arrays["A"].astype(float) @ arrays["B"].astype(float).T + arrays["bias"]
    np.testing.assert_allclose(evaluate(graph, arrays)["C"], expected, rtol=1e-12)


def test_inputs_that_meet_are_not_rounded_again():
    graph = graph_of(GEMM, types={"T": "bf16"})
    arrays = random_inputs(graph, {"M": 4, "N": 5, "K": 6}, seed=3)
    exact, close = evaluate(graph, arrays)["C"], evaluate(graph, arrays, round_operands=True)["C"]
    np.testing.assert_array_equal(close, exact.astype(graph.types["T"].numpy()).astype(float))


def test_shapes_must_agree():
    graph = graph_of(GEMM)
    with pytest.raises(ValueError, match="axis 1 of `B` is 4, but K with K = 3 = 3"):
        evaluate(graph, {"A": np.zeros((2, 3)), "B": np.zeros((2, 4))})
    with pytest.raises(ValueError, match="`A` has 2 axes, but the array has 3"):
        evaluate(graph, {"A": np.zeros((2, 3, 1)), "B": np.zeros((2, 4))})
    with pytest.raises(ValueError, match="needs input B"):
        evaluate(graph, {"A": np.zeros((2, 3))})


def test_a_nan_in_a_row_stays_in_it():
    graph = graph_of(GEMM)
    arrays = random_inputs(graph, {"M": 4, "N": 5, "K": 6}, seed=4)
    arrays["A"][2, 3] = np.nan
    assert np.isnan(evaluate(graph, arrays)["C"]).any(axis=1).tolist() == [False, False, True, False]

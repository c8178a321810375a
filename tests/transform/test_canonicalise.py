"""canonicalise: one normal form, whatever way the maths is written."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.lowering import ATTENTION, attention, graph
from wgdsl.program.graph import ProgramGraph
from wgdsl.reference.evaluate import evaluate
from wgdsl.reference.random import random_inputs
from wgdsl.transform.canonicalise import canonicalise

BY_HAND = ATTENTION.replace(
    "P[b,g,r,i,j] = softmax[j] X[b,g,r,i,j]",
    """m[b,g,r,i] = max[j] X[b,g,r,i,j]
  p[b,g,r,i,j] = exp(X[b,g,r,i,j] - m[b,g,r,i])
  l[b,g,r,i] = sum[j] p[b,g,r,i,j]
  P[b,g,r,i,j] = p[b,g,r,i,j] / l[b,g,r,i]""",
)
BY_HAND_LSE = BY_HAND.replace("logsumexp[j] X[b,g,r,i,j]", "m[b,g,r,i] + log(l[b,g,r,i])")


def shape(g: ProgramGraph, names: dict[str, str]) -> list[str]:
    """Every node as text, with nodes renamed."""
    out = []
    for n in g.nodes:
        text = f"{n.kind} {n.name} {' '.join(str(e) for e in n.exprs())}"
        for old, new in names.items():
            text = text.replace(old + "[", new + "[").replace(f" {old} ", f" {new} ")
        out.append(text)
    return out


@pytest.mark.parametrize("text", [BY_HAND, BY_HAND_LSE])
def test_softmax_by_hand_is_the_same(text):
    dims = {"D": 64, "E": 64}
    sugar, hand = canonicalise(graph(ATTENTION, dims=dims)), canonicalise(graph(text, dims=dims))
    assert shape(sugar, {"P.max": "m", "P.exp": "p", "P.sum": "l"}) == shape(hand, {})


def test_parts_of_two_reductions_are_shared():
    g = canonicalise(attention())
    assert g.aliases["L.max"] == "P.max" and g.aliases["L.sum"] == "P.sum" and g.aliases["P"] == "P.exp"
    assert [n.name for n in g.nodes if n.kind == "reduce"] == ["P.max", "P.sum"]


def test_a_scale_of_unknown_sign_stays_inside_max():
    text = re.sub(r"  require scale > 0.*\n", "", ATTENTION)
    g = canonicalise(graph(text, dims={"D": 64, "E": 64}))
    maximum = next(n for n in g.nodes if n.name == "P.max")
    assert "scale" in str(maximum.body)
    known = next(n for n in canonicalise(attention()).nodes if n.name == "P.max")
    assert "scale" not in str(known.body)


def test_the_denominator_leaves_the_sum_with_its_guard():
    g = canonicalise(attention())
    assert str(next(n for n in g.nodes if n.name == "O").body) == "(P.exp[b, g, r, i, j] * V[b, j, g, e])"
    assert "select(P.sum[b, g, r, i] == 0.0, 0.0" in str(next(n for n in g.nodes if n.name == "O.out").value)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", [(5, 7), (7, 3), (1, 0), (0, 4)])
def test_it_means_the_same(causal, sizes):
    g = attention(causal, 16)
    dims = {"B": 2, "G": 2, "R": 2, "M": sizes[0], "N": sizes[1]}
    arrays = random_inputs(g, dims, seed=3)
    before = evaluate(g, arrays, {"scale": 0.25}, dims=dims)
    after = evaluate(canonicalise(g), arrays, {"scale": 0.25}, dims=dims)
    for name in before:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-12, atol=1e-12)


def test_a_predicate_reads_what_became_no_node_of_its_own():
    """`U` is a product of earlier values, which is written into its readers: into a `where` too."""
    text = """wg 1
program p {
  dims M, N
  in   X: f32[M, N]
  out  Y: f32[M]
  U[i,j] = 2.0 * X[i,j]
  W[i,j] = X[i,j] where U[i,j] > 1.0
  Y[i]   = sum[j] W[i,j]
}
"""
    g = graph(text)
    x = np.array([[0.0, 1.0, 2.0], [0.4, 0.5, 0.6]], np.float32)
    assert "U" not in {n.name for n in canonicalise(g).nodes}
    for made in (g, canonicalise(g)):
        np.testing.assert_allclose(evaluate(made, {"X": x})["Y"], [3.0, 0.6], rtol=1e-6)

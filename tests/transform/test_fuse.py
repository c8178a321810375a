"""fuse: one index in the place of several, the same numbers, and what can't be fused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import ATTENTION, graph, schedule
from wgdsl.diagnostics.model import WgError
from wgdsl.program.graph import ProgramGraph
from wgdsl.program.rules import check
from wgdsl.program.text import graph_text
from wgdsl.reference.evaluate import evaluate
from wgdsl.reference.random import random_inputs
from wgdsl.transform.fuse import fuse

PROGRAM = """wg 1
program rows {
dims M, N, R, B
in A: f32[B, M, R]
in C: f32[R, N]
in W: f32[M]
out L: f32[B, R, M]
out P: f32[B, M * R]
out T: f32[B]
require M >= 1
Z[i,r] = W[i] * 2.0
Y[i] = W[i] + i
S[b,i,r,n] = A[b,i,r] * C[r,n] + Z[i,r] + Y[i] where n <= i + r
X[b,i,r] = max[n] S[b,i,r,n]
L[b,r,i] = X[b,i,r]
P[b,i * R + r] = X[b,i,r] - r
T[b] = (sum[i,r] X[b,i,r] * A[b,i,r]) + Y[0]
}
"""


def fused(line: str, program: str = PROGRAM, **dims: int) -> ProgramGraph:
    text = f"wg 1\nschedule s for rows on sm_90a {{\n{line}\nstream n\n}}\n"
    return fuse(graph(program, dims=dims), schedule(text))


def accesses(g: ProgramGraph) -> dict[str, tuple[str, ...]]:
    return {o.tensor: tuple(map(str, o.access)) for o in g.outputs}


def test_quotient_and_remainder():
    g = fused("fuse m = (i, r)", R=3)
    check(g)
    assert accesses(g) == {"L": ("b", "(m) % (3)", "(m) / (3)"), "P": ("b", "m"), "T": ("b",)}
    assert str(g.extents["m"]) == "3 * M" and not {"i", "r"} & g.extents.keys()
    assert g.turns == {"m": ("i", 3)}


def test_the_last_named_runs_fastest():
    g = fused("fuse m = (r, i)", M=5)
    assert accesses(g)["L"] == ("b", "(m) / (5)", "(m) % (5)")
    assert accesses(g)["P"] == ("b", "((m) % (5)) * R + (m) / (5)")
    assert g.turns == {"m": ("r", 5)}


def test_a_tensor_with_one_of_them_gets_all():
    g = fused("fuse m = (i, r)", R=3)
    text = graph_text(g)
    assert g.by_name["Y"].indices == ("m",) and "Y[m]" in text and "Y[0]" in text


def test_nothing_to_fuse():
    g = graph(ATTENTION)
    assert fuse(g, schedule("wg 1\nschedule s for attention on sm_90a {\nstream j\n}\n")) == g


def test_neighbours_that_stand_together_stay_one():
    text = "wg 1\nschedule s for attention on sm_90a {\nfuse m = (i, g, r)\nstream j\n}\n"
    g = fuse(graph(ATTENTION, dims={"G": 2, "R": 4}), schedule(text))
    assert accesses(g)["O"] == ("b", "(m) / (8)", "(m) % (8)", "e")
    assert "K[b, j, ((m) / (4)) % (2), d]" in graph_text(g)


LINES = {"fuse m = (i, r)": {"R": 3}, "fuse m = (r, i)": {"M": 5}}


@pytest.mark.parametrize("line", LINES)
def test_the_numbers_are_the_same(line):
    sizes = {"M": 5, "N": 4, "R": 3, "B": 2}
    fixed = LINES[line]
    free = {k: v for k, v in sizes.items() if k not in fixed}
    before = graph(PROGRAM, dims=fixed)
    arrays = random_inputs(before, free, seed=1)
    plain, other = (evaluate(g, arrays, {}, dims=free) for g in (before, fused(line, **fixed)))
    for name in plain:
        np.testing.assert_array_equal(other[name], plain[name])


WRONG = {
    "an unknown index": ("fuse m = (i, q)", {}, "WG0401", "no index is called `q`"),
    "twice": ("fuse m = (i, i)", {"M": 4}, "WG0403", "`i` is declared twice"),
    "a taken name": ("fuse n = (i, r)", {"R": 3}, "WG0403", "`n` is declared twice"),
    "alone": ("fuse m = (i)", {}, "WG0447", "one index alone"),
    "an extent of the call": ("fuse m = (r, i)", {"R": 3}, "WG0447", "help: `fuse m = (i, r)`"),
    "two of the call": ("fuse m = (r, i)", {}, "WG0447", "fix `M`: `--set M=8`"),
    "an output without one": ("fuse m = (b, i)", {"M": 4}, "WG0447", "`T.sum` is reduced along `i` and not along `b`"),
    "reduced along one": ("fuse m = (i, n)", {"N": 4}, "WG0447", "`X` is reduced along `n` and not along `i`"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cant_be_fused(case):
    line, dims, code, words = WRONG[case]
    with pytest.raises(WgError) as e:
        fused(line, **dims)
    assert code in [p.code for p in e.value.problems] and words in str(e.value)

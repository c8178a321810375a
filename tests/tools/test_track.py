"""The smaller call in which candidates are proven, and when two results of the whole one are the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import attention, gemm
from wgdsl.reference.shapes import solve_dims
from wgdsl.tools.track import OPERATIONS, POINTS, alike, smaller
from wgdsl.tools.work import work


def big(**sizes: int) -> dict[str, int]:
    return solve_dims(attention(causal=True), {}, {"B": 4, "G": 16, "R": 1, "M": 4096, "N": 4096, **sizes})


def test_the_longest_dims_are_halved_and_many_items_stay():
    graph = attention(causal=True)
    found = smaller(graph, big(), ("D", "E"))
    assert work(graph, found) <= OPERATIONS and found["M"] < 4096
    assert (found["B"], found["G"], found["H"], found["D"]) == (4, 16, 16, 128)
    assert found["B"] * found["G"] * found["M"] / 128 > 132  # more than an SM each: CTAs go from one item to the next
    assert found["B"] * found["H"] * found["M"] * found["N"] <= POINTS


def test_a_small_call_stays_as_it_is():
    dims = big(B=1, G=1, M=300, N=300)
    assert smaller(attention(causal=True), dims, ()) == dims


def test_what_is_no_multiple_stays_none():
    found = smaller(attention(), big(M=4097, N=9999), ())
    assert (found["M"] % 16, found["N"] % 16) == (1, 15)


def test_fixed_dims_are_left_alone():
    dims = {"M": 8192, "N": 8192, "K": 8192}
    found = smaller(gemm(), dims, ("K",))
    assert found["K"] == 8192 and work(gemm(), found) <= OPERATIONS
    assert smaller(gemm(), dims, ("M", "N", "K")) == dims


@pytest.mark.parametrize(
    "change, same",
    [({}, True), ({3: 1.001}, True), ({3: 1.1}, False), ({3: np.nan}, False), ({3: np.inf}, False), ({5: 0.0}, False)],
)
def test_results_are_the_same_within_roundings(change, same):
    a = np.array([0.5, -2.0, 0.25, 1.0, 0.0, np.nan], np.float32)
    b = a.copy()
    for place, value in change.items():
        b[place] = value
    assert alike(a, b, 0.01) is same and alike(b, a, 0.01) is same


def test_results_without_elements_are_the_same():
    assert alike(np.zeros(0, np.float32), np.zeros(0, np.float32), 0.0)

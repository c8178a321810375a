"""Retargeted schedules on a GPU: right, and nearly as fast as those written for sm_80 by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from math import exp, log
from statistics import fmean, median

import pytest

from tests.shipped import Shipped, attention, batched, dual, gemm, row_softmax
from tests.tools.test_retargeting import FIRST, retargeted
from wgdsl.runtime.kernel import Kernel
from wgdsl.tools.running import interleaved, run

pytestmark = pytest.mark.gpu
BAR = 0.8  # of the speed of the hand-written schedules, as a geometric mean
ATTENTION = {"B": 2, "G": 8, "R": 2, "M": 4096, "N": 4096}
SQUARE = {"M": 4096, "N": 4096, "K": 4096}
ODD = {"B": 2, "G": 2, "R": 2, "Z": 2, "M": 333, "N": 264, "K": 136}
PAIRS: tuple[tuple[Shipped, str, Mapping[str, int]], ...] = (
    (attention("fa3", False, 64), "fa2", ATTENTION),
    (attention("four", False, 64), "fa2", ATTENTION),
    (attention("four_longest", True, 64), "fa2_longest", ATTENTION),
    (attention("fa3", False, 128), "fa2_narrow", ATTENTION),
    (attention("three", False, 128), "fa2_narrow", ATTENTION),
    (attention("three_longest", True, 128), "fa2_narrow_longest", ATTENTION),
    (attention("two_80", False, 256), "fa2_wide", ATTENTION),
    (attention("two_64_longest", True, 256), "fa2_wide_longest", ATTENTION),
    (gemm("nk"), "warps", SQUARE),
    (gemm("nk", schedule="split"), "split_warps", {"M": 512, "N": 512, "K": 32768}),
    (batched("batched"), "batched_warps", {"Z": 8, "M": 2048, "N": 2048, "K": 2048}),
    (dual("dual"), "dual_warps", SQUARE),
    (row_softmax(64), "two_pass_warps", {"M": 8192, "N": 8192}),
)
EVERY = tuple(dict.fromkeys([*(k for k, _, _ in PAIRS), *FIRST]))  # and of each schedule one kernel


@cache
def built(k: Shipped) -> Kernel:
    kernel = retargeted(k).prepared()
    kernel.build()
    return kernel


@pytest.mark.parametrize("k", EVERY, ids=[k.name for k in EVERY])
def test_it_is_right(k: Shipped):
    kernel = built(k)
    dims = {n: size for n, size in ODD.items() if n in (*kernel.graph.dims, *kernel.graph.derived)}
    assert run(kernel, dims, device="gpu", check=True).right


def test_it_is_nearly_as_fast_as_what_is_written_by_hand():
    shares = {k.name: _share(k, by_hand, dims) for k, by_hand, dims in PAIRS}
    mean = exp(fmean(log(s) for s in shares.values()))
    print("".join(f"\n{s:6.3f}  {name}" for name, s in shares.items()), f"\n{mean:6.3f}  geometric mean")
    assert mean >= BAR, shares


def _share(k: Shipped, by_hand: str, dims: Mapping[str, int]) -> float:
    """The speed of the retargeted schedule, as a share of the other's."""
    other = replace(k, schedule=by_hand, target="sm_80").compile(build=True)
    _, (mine, theirs) = interleaved([built(k), other], dims, rounds=4, repeats=5)
    return median(theirs) / median(mine)

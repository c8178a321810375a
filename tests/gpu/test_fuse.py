"""Heads that share a key head in one tile, on a GPU: right at every size that the simulator sees."""

from __future__ import annotations

import pytest

from tests.programs.test_fuse import LAYOUTS, MASK, MASKS, ORDERS, SIZES, packed, right

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("base", ["fa3", "fa3_persistent", "three", "fa2"])
@pytest.mark.parametrize("heads", [1, 3, 4, 7, 8])
@pytest.mark.parametrize("causal", [False, True])
def test_turns(base, heads, causal):
    assert not right(packed(base, options={"causal": causal}, R=heads), *SIZES, device="gpu")


@pytest.mark.parametrize("base", ["fa3", "fa2"])
@pytest.mark.parametrize("mask", [x for x in MASKS if x != "documents"])
def test_masks(base, mask):
    assert not right(packed(base, (MASK, MASKS[mask]), R=8), *SIZES, device="gpu")


@pytest.mark.parametrize("base", ["fa3", "fa2"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(base, layout):
    assert not right(packed(base, *LAYOUTS[layout], R=8, options={"causal": True}), *SIZES, device="gpu")


@pytest.mark.parametrize("base", ["fa3", "fa2"])
@pytest.mark.parametrize("order", ORDERS)
def test_heads_slow(base, order):
    heads, queries = ORDERS[order]
    kernel = packed(base, order="r, i", R=heads, M=queries, options={"causal": True})
    assert not right(kernel, (queries, 200), (queries, 40), device="gpu")

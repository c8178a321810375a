"""Keys and values on pages that a table names: one element a tile says where it is."""

from __future__ import annotations

import numpy as np
import pytest

import wgdsl
from tests.docs.test_cookbook_page import changed
from wgdsl.diagnostics.model import WgError
from wgdsl.roles import model as m
from wgdsl.roles.model import walk

PAGED = """option page = {page}
option most = {most}
in K: T[N, page, G, D]
in V: T[N, page, G, E]
in pages: i32[B, most]
in len: i32[B]
index j < most * page
S[b,g,r,i,j] = sum[d] Q[b,i,h,d] * K[pages[b, j / page], j % page, g, d]
X[b,g,r,i,j] = S[b,g,r,i,j] * scale where j < len[b] and j <= i + len[b] - M
O[b,i,h,e] = sum[j] P[b,g,r,i,j] * V[pages[b, j / page], j % page, g, e]"""
LENGTHS = np.array([0, 1, 131, 300], np.int32)


def compiled(schedule: str, page: int) -> wgdsl.Kernel:
    text = changed(PAGED.format(page=page, most=-(-300 // page)))
    return wgdsl.compile(text, schedule=schedule, dims={"D": 64, "E": 64}, build=False)


@pytest.mark.parametrize(
    ("schedule", "page"),
    [("simple", 128), ("fa3", 256), ("three", 80), ("three", 160), ("two_longest", 128), ("fa2", 96), ("fa2_narrow", 96)],
)
def test_pages(schedule, page):
    """A page, or several tiles of one; what lies on other pages, or where no page is, never counts."""
    kernel, rng = compiled(schedule, page), np.random.default_rng(page)
    most, count = -(-300 // page), 24
    draw = lambda *shape: rng.normal(size=shape).astype(np.float16)  # noqa: E731
    q, k, v = draw(4, 70, 2, 64), draw(count, page, 1, 64), draw(count, page, 1, 64)
    pages = rng.permutation(count)[: 4 * most].reshape(4, most).astype(np.int32)
    for b, n in enumerate(LENGTHS):
        pages[b, -(-n // page) :] = (-1, 2**31 - 1, count, 5)[b]
    inputs = {"Q": q, "K": k, "V": v, "pages": pages, "len": LENGTHS, "G": 1, "R": 2}
    right, found = kernel(**inputs, device="reference"), kernel.simulate(**inputs)
    for a, b in zip(found, right, strict=True):
        np.testing.assert_allclose(np.float32(a), np.float32(b), atol=4e-3)
    seen = np.zeros((count, page), bool)
    for b, n in enumerate(LENGTHS):
        for t in range(n):
            seen[pages[b, t // page], t % page] = True
    k[~seen], v[~seen] = np.nan, np.inf
    for a, b in zip(found, kernel.simulate(**inputs), strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_element_says_where_a_tile_is():
    (kernel,) = compiled("three", 160).roles.kernels
    load, math = kernel.roles
    loops = [s for s in walk(load.steps) if isinstance(s, m.Loop)]
    inside = [s for loop in loops for s in loop.body]
    assert sum(isinstance(s, m.Read) for s in inside) == sum(isinstance(s, m.Tma) for s in inside) > 0
    assert not any("pages" in str(s.value) for s in walk(math.steps) if isinstance(s, m.Read))


@pytest.mark.parametrize(("schedule", "page", "code"), [("fa3", 64, "WG0448"), ("three", 120, "WG0448"), ("fa2", 64, "WG0405")])
def test_a_tile_on_several_pages(schedule, page, code):
    with pytest.raises(WgError) as caught:
        compiled(schedule, page)
    assert caught.value.problems[0].code == code


def test_a_page_that_a_table_of_tables_names():
    paged = "in whose: i32[B]\n" + PAGED.format(page=128, most=3).replace("pages[b,", "pages[whose[b],")
    with pytest.raises(WgError, match=r"`pages\[whose\[b\], .*`, whose place an element says, is not yet") as caught:
        wgdsl.compile(changed(paged), schedule="fa3", dims={"D": 64, "E": 64}, build=False)
    assert caught.value.problems[0].code == "WG0405"

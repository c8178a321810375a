"""Heads that share a key head in one tile: `fuse`, under schedules of both targets, at awkward sizes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import wgdsl
from tests.programs.edits import ATTENTION, ROOT, edit
from tests.reference.plain import attention
from wgdsl.driver import Settings, prepare
from wgdsl.forms import explained
from wgdsl.roles.model import Let, walk
from wgdsl.runtime.kernel import Kernel
from wgdsl.tools.retargeting import retarget
from wgdsl.tools.running import run

MASK = "where not causal or j <= i + N - M"
SCHEDULE = "wg 1\nschedule packed extends fa3 with i = m {\nfuse m = (i, r)\ngrid over (b, g, m)\n}\n"
FEW = ((3, 40), (100, 200))
SIZES = (*FEW, (1, 130), (17, 300))


def packed(base: str, *edits: tuple[str, str], order: str = "i, r", lines: str = "", options=None, **dims: int) -> Kernel:
    """A shipped schedule whose rows are queries of several heads."""
    text = SCHEDULE.replace("fa3", base).replace("i, r", order).replace("grid", f"{lines}\ngrid")
    fixed = {"D": 64, "E": 64, **dims}
    return wgdsl.compile(edit(ATTENTION, *edits), schedule=text, dims=fixed, options=options or {}, build=False)


def right(kernel: Kernel, *sizes: tuple[int, int], device: str = "sim") -> list[tuple[int, int]]:
    """The sizes at which it isn't."""
    free = [{"B": 2, "G": 2, "M": m, "N": n} for m, n in sizes]
    free = [{k: v for k, v in f.items() if k in kernel.graph.dims} for f in free]
    return [s for s, f in zip(sizes, free, strict=True) if not run(kernel, f, device=device, check=True).right]


@pytest.mark.parametrize("base, heads", [*product(("fa3", "fa2"), (1, 2, 8)), ("fa3_persistent", 4), ("three", 16)])
@pytest.mark.parametrize("causal", [False, True])
def test_whole_turns_in_a_tile(base, heads, causal):
    assert not right(packed(base, options={"causal": causal}, R=heads), *SIZES)


@pytest.mark.parametrize("base, heads", [("fa3", 8), ("fa3", 3), ("fa2", 3)])
def test_listed_tiles(base, heads):
    edits = ((MASK, "where doc[b,i] == key[b,j]"), ("in scale", "in doc: i32[B, M]\nin key: i32[B, N]\nin scale"))
    assert not right(packed(base, *edits, lines="stream j descending listed", R=heads), *SIZES)


MASKS = {
    "top left": "where j <= i",
    "a window": "where i + N - M - 50 <= j <= i + N - M + 9",
    "chunks": "where j / 64 == i / 64",
    "a prefix": "where j < 30 or j <= i",
    "documents": "where doc[b,i] == key[b,j]",
}
SCORES = {
    "a slope a head": ("slope: f32[H]", "S[b,g,r,i,j] * scale - slope[h] * abs(j - i)"),
    "a bias": ("bias: f32[H, M, N]", "S[b,g,r,i,j] * scale + bias[h,i,j]"),
    "a temperature": ("t: f32[H]", "S[b,g,r,i,j] * t[h]"),
    "a row's own": ("w: f32[B, M]", "S[b,g,r,i,j] * scale + w[b,i]"),
}


@pytest.mark.parametrize("base", ["fa3", "fa2"])
@pytest.mark.parametrize("mask", MASKS)
def test_masks(base, mask):
    more = [("in scale", "in doc: i32[B, M]\nin key: i32[B, N]\nin scale")] if mask == "documents" else []
    assert not right(packed(base, (MASK, MASKS[mask]), *more, R=8), *FEW)


@pytest.mark.parametrize("base", ["fa3", "fa2"])
@pytest.mark.parametrize("score", SCORES)
def test_scores(base, score):
    declared, formula = SCORES[score]
    edits = (("S[b,g,r,i,j] * scale", formula), ("in scale", f"in {declared}\nin scale"))
    assert not right(packed(base, *edits, R=4, options={"causal": True}), *FEW)


LAYOUTS = {
    "heads in front": (("Q: T[B, M, H, D]", "Q: T[B, H, M, D]"), ("Q[b,i,h,d]", "Q[b,h,i,d]")),
    "groups apart": (("Q: T[B, M, H, D]", "Q: T[B, M, G, R, D]"), ("Q[b,i,h,d]", "Q[b,i,g,r,d]")),
    "groups behind": (("Q: T[B, M, H, D]", "Q: T[B, M, R, G, D]"), ("Q[b,i,h,d]", "Q[b,i,r,g,d]")),
    "results in front": (("O: T[B, M, H, E]", "O: T[H, B, M, E]"), ("O[b,i,h,e]", "O[h,b,i,e]")),
}


@pytest.mark.parametrize("base", ["fa3", "fa2"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(base, layout):
    assert not right(packed(base, *LAYOUTS[layout], R=8, options={"causal": True}), *FEW)


ORDERS = {"queries fast": (4, 16), "part of a head": (4, 256), "a tile a head": (3, 128), "one query": (8, 1)}


@pytest.mark.parametrize("base", ["fa3", "fa2"])
@pytest.mark.parametrize("order", ORDERS)
def test_heads_slow(base, order):
    """`(r, i)`: the queries are fixed, and a tile may hold several heads whole."""
    heads, queries = ORDERS[order]
    kernel = packed(base, order="r, i", R=heads, M=queries, options={"causal": True})
    assert not right(kernel, (queries, 200), (queries, 40))


def test_neighbours_in_one_axis_are_one_index():
    """Where queries of all heads lie one after the other, a box is rows of the one index, clipped at the group's end."""
    queries = (("Q: T[B, M, H, D]", "Q: T[B, H * M, D]"), ("Q[b,i,h,d]", "Q[b,h * M + i,d]"))
    results = (("O: T[B, M, H, E]", "O: T[B, H * M, E]"), ("O[b,i,h,e]", "O[b,h * M + i,e]"))
    kernel = packed("fa3", *queries, *results, order="r, i", R=3, M=32)
    (x,) = (x for x in kernel.roles.kernels[0].maps if x.tensor == "Q")
    assert x.box[1:3] == (64, 1) and str(x.dims[1].extent) == "96"
    assert not right(kernel, (32, 200))


def test_a_retargeted_schedule_keeps_the_line(tmp_path):
    file = tmp_path / "packed.wg"
    file.write_text(f"{ATTENTION}{SCHEDULE.partition('wg 1')[2]}")
    made = retarget([str(file), "packed"], "sm_80", ["D=64", "E=64", "R=8", "causal=true"])
    assert "fuse   m = (i, r)" in made.text
    assert not right(Kernel(made.prepared().forms), *FEW)


def test_what_explain_prints_gives_the_same_numbers():
    _, journal = prepare(ATTENTION, schedule=SCHEDULE, settings=Settings(dims={"D": 64, "E": 64, "R": 8}))
    kernel, _ = prepare(explained(journal.forms))
    assert not right(kernel, *FEW)


@pytest.mark.parametrize("base, heads", [("fa3", 3), ("fa3", 7), ("three", 5), ("fa2", 3), ("fa2", 6), ("fa3_persistent", 6)])
def test_turns_that_leave_rows_over(base, heads):
    """As many turns as are a power of two; what follows in the tile is the next one's, and stored there alone."""
    assert not right(packed(base, options={"causal": True}, R=heads), *SIZES)
    assert not right(packed(base, (MASK, MASKS["a window"]), R=heads), *SIZES)


# What becomes of it.


@pytest.mark.parametrize("heads, box, queries", [(1, (64, 1), 128), (8, (8, 8), 16), (3, (3, 16), 32), (7, (7, 8), 16)])
def test_a_tile_of_few_queries(heads, box, queries):
    """One tile holds 16 queries of 8 heads, in one box of 8 by 8 for each warpgroup; of 3 heads it holds 32, in 96 rows."""
    (k,) = packed("fa3", R=heads).roles.kernels
    (x,) = (x for x in k.maps if x.tensor == "Q")
    assert x.box[1:3] == box
    assert [a.tile for a in k.grid.axes if a.index == "i"] == [queries]


def test_the_loop_ends_with_the_last_query_of_a_tile():
    (k,) = packed("fa3", R=8, options={"causal": True}).roles.kernels
    ends = {str(s.value) for r in k.roles for s in walk(r.steps) if isinstance(s, Let) and s.name == "j.hi"}
    assert ends == {"min((N + 127) / (128), (min(i.lo + 16, M) + N - M + 127) / (128))"}


def test_copies_of_threads_go_down_by_whole_turns():
    (text,) = packed("fa2", R=8).forms.texts.values()
    assert "down = 2LL * Q_stride1 * 2;" in text


# Packed sequences, whose rows end where a tensor says.


VARLEN = """wg 1
import "{folder}/schedules.wg"
schedule packed extends {base} with i = q {{
  fuse q = (i, r)
  grid {items}over (b, g, q)
}}
"""
ROWS, KEYS, AROUND, GROUPS = (1, 17, 0, 40, 3), (130, 60, 20, 200, 5), 5, 2


def sequences(base: str, heads: int, causal: bool) -> Kernel:
    folder = ROOT / "examples" / "attention_varlen"
    text = VARLEN.format(folder=folder, base=base, items="" if "warps" in base else "persistent dynamic ")
    dims, options = {"D": 64, "E": 64, "R": heads}, {"causal": causal}
    path = folder / "attention_varlen.wg"
    return wgdsl.compile(path, schedule=text, dims=dims, options=options, types={"T": "f16"}, build=False)


def called(kernel: Kernel, q, k, v, cu_q, cu_k) -> tuple[np.ndarray, np.ndarray]:
    out = np.full(q.shape, np.nan, np.float16), np.full((q.shape[1], len(q)), np.nan, np.float32)
    dims = {"G": GROUPS, "LongestQ": max(ROWS), "LongestK": max(KEYS)}
    kernel.simulate(Q=q, K=k, V=v, cu_q=cu_q, cu_k=cu_k, **dims, out=dict(zip("OL", out, strict=True)))
    return out


@pytest.mark.parametrize("base", ["varlen", "varlen_warps"])
@pytest.mark.parametrize("heads", [8, 3])
@pytest.mark.parametrize("causal", [False, True])
def test_each_sequence_as_if_alone(base, heads, causal):
    """NaN in front of the first and behind the last; what is nobody's stays as it was."""
    rng, kernel = np.random.default_rng(0), sequences(base, heads, causal)
    cu_q, cu_k = (np.cumsum([AROUND, *x]).astype(np.int32) for x in (ROWS, KEYS))
    shapes = ((cu_q[-1], heads * GROUPS), (cu_k[-1], GROUPS), (cu_k[-1], GROUPS))
    q, k, v = (rng.normal(size=(n + AROUND, h, 64)).astype(np.float16) for n, h in shapes)
    for x in (q, k, v):
        x[:AROUND] = x[-AROUND:] = np.nan
    o, lse = called(kernel, q, k, v, cu_q, cu_k)
    assert np.isnan(np.delete(o, np.r_[cu_q[0] : cu_q[-1]], axis=0)).all()
    for m0, m1, n0, n1 in zip(cu_q, cu_q[1:], cu_k, cu_k[1:], strict=False):
        own, sums = attention(q[None, m0:m1], k[None, n0:n1], v[None, n0:n1], causal=causal)
        np.testing.assert_allclose(o[m0:m1], own[0], atol=3e-3)
        np.testing.assert_allclose(lse[:, m0:m1], sums[0], atol=2e-3)
    for wrong in ([-5, 70, 100, 9000, 1, 2], [0, 2**31 - 1, -(2**31), 9, 9, 9]):
        called(kernel, q, k, v, cu_q, np.array(wrong, np.int32))
    for wrong in ([0, 7, 11, 9000, 9001, 9002], [30, 40, 50, 60, 70, 80]):  # nothing outside is touched
        called(kernel, q, k, v, np.array(wrong, np.int32), cu_k)

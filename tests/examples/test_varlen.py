"""Packed sequences: each as if it were alone, whatever lies beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.foundation.resources import resource
from wgdsl.roles.model import Fetch, walk
from wgdsl.runtime.kernel import Kernel

SCHEDULES = (("varlen", "sm_90a"), ("varlen_longest", "sm_90a"), ("varlen_warps", "sm_80"))
PATH = resource("examples", "attention_varlen", "attention_varlen.wg")
HEADS, D = 2, 64


@cache
def kernel(schedule: str, target: str, causal: bool) -> Kernel:
    options = {"causal": causal}
    return compile(
        PATH, schedule=schedule, target=target, dims={"D": D, "E": D}, types={"T": "f16"}, options=options, build=False
    )


@dataclass(kw_only=True)
class Packed:
    """Arrays of sequences one behind the other, with rows of nobody in front and behind."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    cu_q: np.ndarray
    cu_k: np.ndarray

    def run(self, kernel: Kernel, longest: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        out = np.full(self.q.shape, np.nan, np.float16), np.full((HEADS, len(self.q)), np.nan, np.float32)
        arrays = {"Q": self.q, "K": self.k, "V": self.v, "cu_q": self.cu_q, "cu_k": self.cu_k}
        dims = {"G": 1, "R": HEADS, "LongestQ": longest[0], "LongestK": longest[1]}
        kernel.simulate(**arrays, **dims, out=dict(zip("OL", out, strict=True)))
        return out

    def alone(self, b: int) -> Packed:
        (m, m1), (n, n1) = self.cu_q[b : b + 2], self.cu_k[b : b + 2]
        ends = np.array([0, m1 - m], np.int32), np.array([0, n1 - n], np.int32)
        return Packed(q=self.q[m:m1], k=self.k[n:n1], v=self.v[n:n1], cu_q=ends[0], cu_k=ends[1])


def packed(rows: list[int], keys: list[int], around: int = 0) -> Packed:
    rng = np.random.default_rng(len(rows))
    draw = lambda n, h: rng.normal(size=(n + 2 * around, h, D)).astype(np.float16)  # noqa: E731
    cu_q, cu_k = (np.cumsum([around, *x]).astype(np.int32) for x in (rows, keys))
    return Packed(
        q=draw(sum(rows), HEADS), k=draw(sum(keys), 1), v=draw(sum(keys), 1), cu_q=cu_q, cu_k=cu_k
    )  # fmt: skip


ROWS, KEYS = [0, 1, 0, 1, 130, 128, 64, 200], [0, 3, 5, 0, 77, 128, 129, 300]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("schedule", "target"), SCHEDULES)
def test_each_sequence_as_if_alone(schedule, target, causal):
    """Sequences without rows, without keys, of one, of whole tiles; more items than there are tiles."""
    x, run = packed(ROWS, KEYS), kernel(schedule, target, causal)
    o, lse = x.run(run, (256, 384))
    assert not np.isnan(o).any() and not np.isnan(lse).any()
    for b, (m, n) in enumerate(zip(ROWS, KEYS, strict=True)):
        at = slice(x.cu_q[b], x.cu_q[b + 1])
        if not n:
            assert (o[at] == 0).all() and (lse[:, at] == -np.inf).all()
        elif m:
            own = x.alone(b).run(run, (m, n))
            np.testing.assert_array_equal(o[at], own[0])
            np.testing.assert_array_equal(lse[:, at], own[1])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("schedule", "target"), SCHEDULES)
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_no_neighbour_is_read_or_written(schedule, target, causal, poison):
    """All rows of others hold what shows if it counts; those of nobody stay as they were."""
    rows, keys = [70, 40, 130], [50, 90, 33]
    x, run = packed(rows, keys, around=150), kernel(schedule, target, causal)
    clean = x.run(run, (130, 90))
    inside = slice(x.cu_q[0], x.cu_q[-1])
    assert np.isnan(np.delete(clean[0], np.r_[inside], axis=0)).all()
    assert np.isnan(np.delete(clean[1], np.r_[inside], axis=1)).all()
    for b in range(len(rows)):
        mine, keys_of = slice(*x.cu_q[b : b + 2]), slice(*x.cu_k[b : b + 2])
        other = Packed(
            q=np.full_like(x.q, poison), k=np.full_like(x.k, poison), v=np.full_like(x.v, poison), cu_q=x.cu_q, cu_k=x.cu_k
        )
        other.q[mine], other.k[keys_of], other.v[keys_of] = x.q[mine], x.k[keys_of], x.v[keys_of]
        dirty = other.run(run, (130, 90))
        np.testing.assert_array_equal(dirty[0][mine], clean[0][mine])
        np.testing.assert_array_equal(dirty[1][:, mine], clean[1][:, mine])


@pytest.mark.parametrize(("schedule", "target"), SCHEDULES)
def test_offsets_that_lead_outside_harm_nobody(schedule, target):
    """They may give any numbers, but nothing outside of the tensors is touched: the simulator would say so."""
    x, run = packed([70, 40, 130], [50, 90, 33]), kernel(schedule, target, False)
    for cu in ([-5, 70, 100, 9000], [0, 2**31 - 1, -(2**31), 240], [300, 400, 500, 600]):
        Packed(q=x.q, k=x.k, v=x.v, cu_q=x.cu_q, cu_k=np.array(cu, np.int32)).run(run, (130, 90))
    for cu in ([0, 70, 110, 9000], [0, 2**31 - 1, 2**31 - 1, 2**31 - 1], [300, 400, 500, 600]):
        Packed(q=x.q, k=x.k, v=x.v, cu_q=np.array(cu, np.int32), cu_k=x.cu_k).run(run, (130, 90))


@pytest.mark.parametrize(("schedule", "target"), SCHEDULES)
def test_rows_that_lie_outside_are_not_written_by_the_evaluator_either(schedule, target):
    x, run = packed([70, 40, 130], [50, 90, 33]), kernel(schedule, target, False)
    x.cu_q[-1] = 9000
    dims = {"G": 1, "R": HEADS, "LongestQ": 400, "LongestK": 90}
    right = run(Q=x.q, K=x.k, V=x.v, cu_q=x.cu_q, cu_k=x.cu_k, **dims, device="reference")
    for found, exact in zip(x.run(run, (400, 90)), right, strict=True):
        np.testing.assert_allclose(np.float32(found), exact, atol=4e-3)


@pytest.mark.parametrize("schedule", ["varlen", "varlen_warps"])
def test_what_is_behind_the_longest_is_another_s(schedule):
    """Sequences of one length, without a `where`: the last tile holds rows of the next one."""
    run = changed((" where j < n and (not causal or j <= i + n - m)", ""), schedule=schedule)
    x = packed([70, 70], [90, 90], around=40)
    clean = x.run(run, (70, 90))
    x.k[: x.cu_k[1]], x.v[: x.cu_k[1]], x.k[x.cu_k[2] :], x.v[x.cu_k[2] :] = np.nan, np.nan, np.nan, np.inf
    dirty = x.run(run, (70, 90))
    inside = slice(*x.cu_q[1:3])
    assert np.isfinite(dirty[0][inside]).all()
    np.testing.assert_array_equal(clean[0][inside], dirty[0][inside])
    np.testing.assert_array_equal(clean[1][:, inside], dirty[1][:, inside])


@pytest.mark.parametrize(("schedule", "target"), SCHEDULES)
def test_a_window(schedule, target):
    """Both its ends hang on the rows: with the keys and the rows that there are these are more numbers than can be tried."""
    window = ("where j < n and (not causal or j <= i + n - m)", "where j < n and 0 <= i + n - m - j < 40")
    run, x = changed(window, schedule=schedule), packed([70, 0, 130], [90, 10, 150])
    arrays = {"Q": x.q, "K": x.k, "V": x.v, "cu_q": x.cu_q, "cu_k": x.cu_k}
    right = run(**arrays, G=1, R=HEADS, LongestQ=130, LongestK=150, device="reference")
    for found, exact in zip(x.run(run, (130, 150)), right, strict=True):
        np.testing.assert_allclose(np.float32(found), exact, atol=4e-3)


def test_threads_copy_nothing_that_lies_in_front_of_an_array():
    """A place that a tensor says less a number may be negative: the call alone could tell."""
    before, plain = (changed(("cu_k[b] + j", f"cu_k[b] + j{less}"), schedule="varlen_warps").cuda for less in (" - 5", ""))
    copies = re.findall(r"cp_async\([^;]*cu_k_b[^;]*;", before)
    assert copies and all("- 5 >= 0" in copy for copy in copies)
    assert not re.search(r"cu_k_b[^;]*>= 0", plain)


@pytest.mark.parametrize("schedule", ["varlen", "varlen_warps"])
def test_an_offset_below_0_counts_as_0(schedule):
    run = changed(
        ("  in     cu_k: i32[B + 1]\n", "  in     cu_k: i32[B + 1]\n  in     at: i32[B]\n"),
        ("cu_k[b] + j", "at[b] + j"),
        schedule=schedule,
    )
    x = packed([70, 130], [90, 150])
    arrays = {"Q": x.q, "K": x.k, "V": x.v, "cu_q": x.cu_q, "cu_k": x.cu_k, "at": np.array([-5, 2**31 - 1], np.int32)}
    dims = {"G": 1, "R": HEADS, "LongestQ": 130, "LongestK": 150}
    for found, exact in zip(run.simulate(**arrays, **dims), run(**arrays, **dims, device="reference"), strict=True):
        np.testing.assert_allclose(np.float32(found), exact, atol=4e-3)


def test_items_without_rows_are_nobody_s():
    """What hands out items passes over those behind the end of a sequence; the simulator's word of items has them not."""
    run = kernel("varlen_longest", "sm_90a", True)
    load = run.roles.kernels[0].roles[0]
    (fetch,) = (s for s in walk(load.steps) if isinstance(s, Fetch))
    assert str(fetch.only) == "i.left - 1 >= 0" and [r.name for r in fetch.reads] == ["cu_q.b.1", "cu_q.b", "i.left"]
    x = packed([130, 1], [40, 40])
    few, many = (x.run(run, (longest, 40)) for longest in (130, 130 * 8))
    np.testing.assert_array_equal(few[0], many[0])


def changed(*pairs: tuple[str, str], schedule: str = "varlen") -> Kernel:
    text = PATH.read_text() + resource("examples", "attention_varlen", "schedules.wg").read_text().removeprefix("wg 1")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    target = "sm_80" if schedule == "varlen_warps" else "sm_90a"
    return compile(text, schedule=schedule, target=target, dims={"D": D, "E": D}, types={"T": "f16"}, build=False)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("  assume cu_q increasing\n", "", "WG0210"),
        ("e] where i < m", "e] where i <= m", "WG0210"),
        ("assume cu_q increasing", "assume Q increasing", "WG0211"),
        ("assume cu_q increasing", "assume distinct", "WG0223"),
        ("persistent dynamic over (b, g, r, i)\n\n", "persistent joined over (b, g, r, i)\n\n", "WG0405"),
        ("smem Os = O[i] by tma ", "smem Os = O[i] by tma over Qs ", "WG0405"),
        ("over (b, g, r, i)\n\n", "over (g, r, i)\n\n", "WG0"),
    ],
)
def test_refusals(old, new, code):
    with pytest.raises(WgError) as caught:
        changed((old, new))
    assert caught.value.problems[0].code.startswith(code), str(caught.value)

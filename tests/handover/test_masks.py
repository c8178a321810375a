"""Masks of public bug reports: where the diagonal lies (B01), rows that see nothing (B02), ends of windows (B04), masks that
read tensors (B09), left padding (B10)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.handover.reference import attention, hashed, off, qkv, seen
from tests.handover.running import DEVICES, SCHEDULES, SCORE, attend, made, program

pytestmark = [pytest.mark.parametrize("device", DEVICES), pytest.mark.parametrize("schedule", SCHEDULES)]
CAUSAL = program(where="j <= i + N - M")
BIASED = program(f"{SCORE} + w[i,j]", declared="in w: f32[M, N]")
TABLE = program(where="keep[i,j]", declared="in keep: bool[M, N]")


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("m, n", [(3, 128), (1, 127), (2, 5), (64, 100), (127, 128)])
def test_b01_causal_puts_the_last_query_beside_the_last_key(schedule, device, dtype, m, n):
    q, k, v = qkv(m, n, dtype)
    want = attention(q, k, v, seen(m, n, right=0))
    top_left = attention(q, k, v, np.tri(m, n, dtype=bool))
    assert np.abs(want.o - top_left.o).max() > 0.9, "another diagonal would show"
    for text, options in ((CAUSAL, {}), (program(where="not causal or j <= i + N - M"), {"causal": True})):
        assert want.faults(*attend(made(text, schedule, dtype, **options), device, q, k, v)) == []


@pytest.mark.parametrize("m, n, empty", [(130, 64, 66), (5, 2, 3)])
def test_b02_queries_before_the_first_key_are_0(schedule, device, m, n, empty):
    q, k, v = qkv(m, n, h=2)
    o, lse = attend(made(CAUSAL, schedule, "f16"), device, q, k, v)
    assert attention(q, k, v, seen(m, n, right=0)).faults(o, lse) == []
    assert not o[:, :, :empty].any() and np.isneginf(lse[:, :, :empty]).all() and np.isfinite(lse[:, :, empty:]).all()


def test_b02_rows_that_a_table_empties_beside_live_ones(schedule, device):
    """8 x 8, true in the first 4 x 4."""
    q, k, v = qkv(8, 8)
    keep = np.zeros((8, 8), bool)
    keep[:4, :4] = True
    o, lse = attend(made(TABLE, schedule, "f16"), device, q, k, v, keep=keep)
    assert attention(q, k, v, keep).faults(o, lse) == []
    assert not o[0, 0, 4:].any() and np.isneginf(lse[0, 0, 4:]).all()


def test_b02_an_empty_row_leaves_the_rest_of_its_tile_alone(schedule, device):
    q, k, v = qkv(200, 150)
    keep = np.ones((200, 150), bool)
    keep[77] = False
    kernel = made(TABLE, schedule, "f16")
    o, lse = attend(kernel, device, q, k, v, keep=keep)
    full, full_lse = attend(kernel, device, q, k, v, keep=np.ones_like(keep))
    assert not o[0, 0, 77].any() and np.isneginf(lse[0, 0, 77])
    others = np.arange(200) != 77
    assert np.array_equal(o[:, :, others], full[:, :, others]) and np.array_equal(lse[:, :, others], full_lse[:, :, others])


def test_b02_rows_of_infinite_and_of_the_least_finite_scores(schedule, device):
    """A bias of -inf empties its row. The least finite f32 is a number like others: scores are that, weights equal."""
    m, n = 8, 100
    q, k, v = qkv(m, n)
    w = hashed(4, (m, n), dtype="f32")
    w[2], w[5] = -np.inf, np.finfo(np.float32).min
    o, lse = attend(made(BIASED, schedule, "f16"), device, q, k, v, w=w)
    want = attention(q, k, v, bias=w.astype(np.float64))
    assert want.faults(o, lse) == []
    assert not o[0, 0, 2].any() and np.isneginf(lse[0, 0, 2])
    assert off("mean", o[0, 0, 5], v[0, 0].astype(np.float64).mean(0), 1e-3) == []


WINDOWS = [(0, 0), (1, 0), (7, 0), (63, 0), (3, 2)]


@pytest.mark.parametrize(
    "m, n, left, right", [*((64, 64, *w) for w in WINDOWS), (5, 64, 7, 0), (300, 300, 0, 0), (300, 300, 130, 5)]
)
def test_b04_both_ends_of_a_window_are_seen(schedule, device, m, n, left, right):
    """What is one key wider, at either end, would show."""
    q, k, v = qkv(m, n, d=32, most=2.0)
    text = program(where=f"i + N - M - {left} <= j <= i + N - M + {right}")
    want = attention(q, k, v, seen(m, n, left, right))
    assert want.faults(*attend(made(text, schedule, "f16", d=32), device, q, k, v)) == []
    if left < n - 1:
        assert np.abs(want.o - attention(q, k, v, seen(m, n, left + 1, right)).o).max() > 0.1


def test_b04_no_key_before_and_none_behind_is_the_own_value(schedule, device):
    q, k, v = qkv(64, 64, d=32, most=2.0)
    kernel = made(program(where="i + N - M - 0 <= j <= i + N - M + 0"), schedule, "f16", d=32)
    assert np.array_equal(attend(kernel, device, q, k, v)[0], v)


@pytest.mark.parametrize("s", [64, 300])
def test_b04_a_window_of_all_that_came_before_is_causal_bit_for_bit(schedule, device, s):
    q, k, v = qkv(s, s, d=32, most=2.0)
    window = made(program(where=f"i + N - M - {s - 1} <= j <= i + N - M"), schedule, "f16", d=32)
    causal = made(CAUSAL, schedule, "f16", d=32)
    for got, same in zip(attend(window, device, q, k, v), attend(causal, device, q, k, v), strict=True):
        assert np.array_equal(got, same)


def test_b09_a_table_of_queries_is_read_inside_only(schedule, device):
    """S = 2046 is no whole number of tiles; behind the table's last element stand bytes that mean `true`."""
    s = 2046
    q, k, v = qkv(s, s)
    room = np.full(s + 500, True)
    room[:s] = np.arange(s) % 3 > 0
    o, lse = attend(made(program(where="ok[i]", declared="in ok: bool[M]"), schedule, "f16"), device, q, k, v, ok=room[:s])
    assert attention(q, k, v, np.broadcast_to(room[:s, None], (s, s))).faults(o, lse) == []


@pytest.mark.parametrize("first", [0, 2**24, -(2**31)])
@pytest.mark.parametrize("starts", [(0, 2, 6, 9), (0, 1, 129, 300)])
def test_b09_documents_of_one_row_don_t_see_each_other(schedule, device, starts, first):
    """Whatever numbers they have: f32 doesn't tell those apart that are next to each other."""
    s = starts[-1]
    doc = np.concatenate([np.full(end - start, first + n, np.int32) for n, (start, end) in enumerate(pairwise(starts))])
    q, k, v = qkv(s, s)
    text = program(where="doc[i] == of[j] and j <= i", declared="in doc: i32[M]\nin of: i32[N]")
    keep = np.array([[doc[i] == doc[j] and j <= i for j in range(s)] for i in range(s)])
    assert attention(q, k, v, keep).faults(*attend(made(text, schedule, "f16"), device, q, k, v, doc=doc, of=doc)) == []


def near(i: int, j: int, cw: int, ch: int, kw: int, kh: int) -> bool:
    """The formula as it is written, element by element."""
    cx = min(max(i // cw, kw // 2), cw - 1 - kw // 2)
    cy = min(max(i % cw, kh // 2), ch - 1 - kh // 2)
    return abs(cx - j // cw) <= kw // 2 and abs(cy - j % cw) <= kh // 2


NEIGHBOURHOOD = """option cw = 8
option ch = 4
option kw = 3
option kh = 3
def clamp(x, lo, hi) = min(max(x, lo), hi)"""


@pytest.mark.parametrize("sizes, least, most", [((6, 6, 3, 3), 9, 9), ((8, 4, 3, 3), 6, 9), ((4, 4, 5, 5), 16, 16)])
def test_b09_neighbourhoods_of_a_picture(schedule, device, sizes, least, most):
    """Also where the clamp's lower end is above its upper one."""
    cw, ch, kw, kh = sizes
    s = cw * ch
    q, k, v = qkv(s, s)
    text = program(
        where="abs(clamp(i / cw, kw / 2, cw - 1 - kw / 2) - j / cw) <= kw / 2 and "
        "abs(clamp(i % cw, kh / 2, ch - 1 - kh / 2) - j % cw) <= kh / 2",
        declared=NEIGHBOURHOOD,
    )
    keep = np.array([[near(i, j, *sizes) for j in range(s)] for i in range(s)])
    assert (keep.sum(1).min(), keep.sum(1).max()) == (least, most)
    kernel = made(text, schedule, "f16", cw=cw, ch=ch, kw=kw, kh=kh)
    assert attention(q, k, v, keep).faults(*attend(kernel, device, q, k, v)) == []


def test_b10_left_padding_and_causal_together(schedule, device):
    """Of two rows of 5 tokens one has 3 real ones, the last. Each is as if run alone; what pads sees nothing."""
    q, k, v = qkv(5, 5, b=2, h=2)
    real = np.array([[False, False, True, True, True], [True] * 5])
    text = program(where="j <= i + N - M and real[b,j]", declared="in real: bool[B, N]")
    o, lse = attend(made(text, schedule, "f16"), device, q, k, v, real=real)
    for row, count in enumerate((3, 5)):
        alone = [x[row : row + 1, :, 5 - count :] for x in (q, k, v)]
        want = attention(*alone, seen(count, count, right=0))
        assert want.faults(o[row : row + 1, :, 5 - count :], lse[row : row + 1, :, 5 - count :]) == []
    assert not o[0, :, :2].any() and np.isneginf(lse[0, :, :2]).all()

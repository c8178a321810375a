"""Scores of public bug reports: sinks (B05), very large ones (B11), the soft cap and its order (B13), the base of the
log-sum-exp and results of parts brought together (B14)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.handover.reference import attention, hashed, off, qkv, seen
from tests.handover.running import DEVICES, SCHEDULES, SCORE, attend, made, program

pytestmark = [pytest.mark.parametrize("device", DEVICES), pytest.mark.parametrize("schedule", SCHEDULES)]
FULL = program()
SINK = {"declared": "in sink: f32[H]", "sink": "sink[h]"}


def test_b05_a_sink_takes_part_in_maximum_and_sum(schedule, device):
    """Of scores that are all 0, 37 of them: 3 of 10 parts, and nothing beside a sink of 100."""
    q, v = np.zeros((1, 2, 4, 64), np.float16), np.ones((1, 2, 37, 64), np.float16)
    k, sink = hashed(2, (1, 2, 37, 64)), np.array([np.log(37 * 7 / 3), 100.0], np.float32)
    o, lse = attend(made(program(**SINK), schedule, "f16"), device, q, k, v, sink=sink)
    assert np.all(o[0, 0] == np.float16(0.3)) and not o[0, 1].any()
    assert off("L", lse[0, 0], np.full(4, 4.814890717), 1e-5) == [] and np.all(lse[0, 1] == 100.0)


def test_b05_a_sink_alone(schedule, device):
    q, k, v = qkv(4, 0, h=2)
    o, lse = attend(made(program(**SINK), schedule, "f16"), device, q, k, v, sink=np.array([0.5, -2.0], np.float32))
    assert o.shape == (1, 2, 4, 64) and not o.any()
    assert np.array_equal(lse[0], np.repeat([[0.5], [-2.0]], 4, 1))


def test_b05_a_sink_of_minus_infinity_is_none(schedule, device):
    """Also for rows that see no key."""
    q, k, v = qkv(150, 100, h=2)
    sink = np.array([-np.inf, 0.0], np.float32)
    kernel = made(program(where="j <= i + N - M", **SINK), schedule, "f16")
    o, lse = attend(kernel, device, q, k, v, sink=sink)
    keep = seen(150, 100, right=0)
    assert attention(q, k, v, keep, sink=sink).faults(o, lse) == []
    none = attention(q[:, :1], k[:, :1], v[:, :1], keep)
    assert none.faults(o[:, :1], lse[:, :1]) == [] and np.isneginf(lse[0, 0, :50]).all() and not lse[0, 1, :50].any()


@pytest.mark.parametrize("n", [1, 65])
def test_b11_scores_of_100_billion(schedule, device, n):
    """64 times 133120^2 / 8. Keys that are equal have equal weights."""
    q, k, v = (np.full((1, 1, rows, 64), 133120.0).astype(qkv(1, 1, "bf16")[0].dtype) for rows in (1, n, n))
    o, lse = attend(made(FULL, schedule, "bf16"), device, q, k, v)
    assert np.all(o.astype(np.float64) == 133120.0)
    assert off("L", lse, np.full((1, 1, 1), 141767475200.0), 1e5) == []


def test_b11_large_halves(schedule, device):
    q, k = (np.full((1, 1, rows, 128), 30000.0, np.float16) for rows in (3, 70))
    schedule = "fa2_narrow" if schedule == "fa2" else schedule
    o, lse = attend(made(FULL, schedule, "f16", d=128), device, q, k, np.ones_like(k))
    assert np.all(o == 1.0) and np.isfinite(lse).all()


def test_b11_of_large_scores_that_differ_the_largest_takes_all(schedule, device):
    q, k, v = qkv(70, 300, most=30000.0)
    v /= 30000
    want = attention(q, k, v)
    assert want.faults(*attend(made(FULL, schedule, "f16"), device, q, k, v)) == []


CAP = {"declared": "in cap: f32\nin w: f32[M, N]\ndef capped(x) = cap * tanh(x / cap)", "where": "j <= i + N - M"}
ORDERS = {
    "cap": f"capped({SCORE}) + 0.0 * w[i,j]",
    "cap, then bias": f"capped({SCORE}) + w[i,j]",
    "bias, then cap": f"capped({SCORE} + w[i,j])",
}


@pytest.mark.parametrize("cap", [1.0, 50.0])
@pytest.mark.parametrize("order", ORDERS)
def test_b13_a_soft_cap_stands_where_the_text_has_it(schedule, device, order, cap):
    """Scale, cap, bias, mask, softmax."""
    q, k, v = qkv(16, 16, most=4.0)
    w, keep = hashed(9, (16, 16), -5, 5, "f32"), seen(16, 16, right=0)
    x = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / 8
    if order == "bias, then cap":
        want = attention(q * 0, k, v, keep, bias=cap * np.tanh((x + w) / cap))
    else:
        want = attention(q, k, v, keep, cap=cap, bias=w.astype(np.float64) * (order != "cap"))
    kernel = made(program(ORDERS[order], **CAP), schedule, "f16")
    assert want.faults(*attend(kernel, device, q, k, v, cap=cap, w=w)) == []


def test_b13_likely_mistakes_are_far_off(schedule, device):
    """Cap and mask the other way round, s tanh(s), and the bias inside the cap."""
    q, k, v = qkv(16, 16, most=4.0)
    w, keep = hashed(9, (16, 16), -5, 5, "f32").astype(np.float64), seen(16, 16, right=0)
    o, _ = attend(made(program(ORDERS["cap"], **CAP), schedule, "f16"), device, q, k, v, cap=1.0, w=w.astype(np.float32))
    x = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / 8
    masked_first = attention(q * 0, k, v, bias=np.tanh(np.where(keep, x, -1e30)))
    product = attention(q * 0, k, v, keep, bias=x * np.tanh(x))
    assert np.abs(o - masked_first.o).max() == pytest.approx(3.156, abs=0.05)
    assert np.abs(o - product.o).max() == pytest.approx(6.103, abs=0.05)
    inside = attention(q * 0, k, v, keep, bias=np.tanh(x + w))
    o, _ = attend(
        made(program(ORDERS["cap, then bias"], **CAP), schedule, "f16"), device, q, k, v, cap=1.0, w=w.astype(np.float32)
    )
    assert np.abs(o - inside.o).max() == pytest.approx(4.218, abs=0.05)


def test_b13_a_cap_of_0_is_none(schedule, device):
    """As an option the same CUDA. As an argument too: nothing of what the other side comes to shows."""
    mask, score = {"where": "j <= i + N - M"}, f"select(cap == 0.0, {SCORE}, cap * tanh({SCORE} / cap))"
    plain = made(program(**mask), schedule, "f16")
    assert made(program(score, declared="option cap = 50.0", **mask), schedule, "f16", cap=0.0).cuda == plain.cuda
    q, k, v = qkv(16, 16, most=4.0)
    called = attend(made(program(score, declared="in cap: f32", **mask), schedule, "f16"), device, q, k, v, cap=0.0)
    assert attention(q, k, v, seen(16, 16, right=0)).faults(*called) == []


def test_b14_the_log_sum_exp_is_natural(schedule, device):
    q, k, v = qkv(3, 128)
    o, lse = attend(made(FULL, schedule, "f16"), device, q, k, v)
    assert lse[0, 0, 0] == pytest.approx(4.865545, abs=1e-3), "of inputs in f16"
    assert attention(q, k, v).faults(o, lse) == []
    text = program().replace(
        "L[b,h,i] = logsumexp[j] X[b,g,r,i,j]", "Z[b,g,r,i] = logsumexp[j] X[b,g,r,i,j]\nL[b,h,i] = Z[b,g,r,i] / log(2)"
    )
    _, base2 = attend(made(text, schedule, "f16"), device, q, k, v)
    assert base2[0, 0, 0] == pytest.approx(7.019498, abs=1e-3)


def merged(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Results of parts of the keys as one: each weighs exp(its log-sum-exp). An empty part weighs nothing."""
    os, ls = (np.stack([p[k].astype(np.float64) for p in parts]) for k in (0, 1))
    top = ls.max(0)
    weights = np.exp(ls - np.where(np.isneginf(top), 0.0, top))
    total = weights.sum(0)
    o = (os * weights[..., None]).sum(0) / np.where(total, total, 1.0)[..., None]
    with np.errstate(divide="ignore"):
        return o, np.where(np.isneginf(top), 0.0, top) + np.log(total)


@pytest.mark.parametrize("m, ends", [(3, (0, 100, 128)), (3, (0, 64, 100, 100, 100)), (3, (0, 0, 0, 0, 0))])
def test_b14_parts_of_the_keys_make_the_whole(schedule, device, m, ends):
    """Some of them empty; all of them."""
    q, k, v = qkv(m, 128)
    kernel = made(FULL, schedule, "f16")
    parts = [attend(kernel, device, q, k[:, :, a:b], v[:, :, a:b]) for a, b in pairwise(ends)]
    want = attention(q, k[:, :, : ends[-1]], v[:, :, : ends[-1]])
    o, lse = merged(parts)
    assert want.faults(o, lse) == []

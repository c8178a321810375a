"""Lengths of public bug reports: tails that fill no tile (B07), nothing at all along an axis (B18)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.handover.reference import attention, hashed, qkv, seen
from tests.handover.running import DEVICES, SCHEDULES, attend, made, program

pytestmark = [pytest.mark.parametrize("device", DEVICES), pytest.mark.parametrize("schedule", SCHEDULES)]
FULL, CAUSAL = program(), program(where="j <= i + N - M")
TAILS = {77: 0.0618, 129: 0.0791, 1025: 0.00284}  # error where keys of 0 fill the last tile of 128 and take part


@pytest.mark.parametrize("m, n", [*((5, n) for n in (1, 77, 127, 129, 1025)), *((m, 77) for m in (1, 63, 65, 129, 257))])
def test_b07_what_fills_a_tile_takes_no_part(schedule, device, m, n):
    q, k, v = qkv(m, n, most=3.0)
    want = attention(q, k, v)
    assert want.faults(*attend(made(FULL, schedule, "f16"), device, q, k, v)) == []
    if m == 5 and n in TAILS:
        filled = [np.concatenate([x, np.zeros((1, 1, -n % 128, 64), x.dtype)], 2) for x in (k, v)]
        assert np.abs(attention(q, *filled).o - want.o).max() == pytest.approx(TAILS[n], abs=1e-3)
        assert 2 * want.rounding + 1e-5 < TAILS[n] / 2, "the bar tells"


def test_b07_a_large_value_in_a_long_row(schedule, device):
    """1025 keys, and a value that makes every weight show."""
    q, k, v = qkv(5, 1025, most=3.0)
    v[0, 0, 1024] = 10000
    assert attention(q, k, v).faults(*attend(made(FULL, schedule, "f16"), device, q, k, v)) == []


@pytest.mark.parametrize("text", [FULL, CAUSAL], ids=["full", "causal"])
def test_b18_no_keys(schedule, device, text):
    q, k, v = qkv(4, 0, h=2)
    o, lse = attend(made(text, schedule, "f16"), device, q, k, v)
    assert o.shape == (1, 2, 4, 64) and not o.any() and np.isneginf(lse).all()


@pytest.mark.parametrize("text", [FULL, CAUSAL], ids=["full", "causal"])
@pytest.mark.parametrize("b, h, m, n", [(1, 2, 0, 20), (0, 2, 4, 20), (2, 0, 4, 20), (0, 0, 0, 0)])
def test_b18_results_without_elements(schedule, device, text, b, h, m, n):
    """And the next call works."""
    kernel = made(text, schedule, "f16")
    q, k, v = qkv(m, n, b=b, h=h)
    more = {} if h else {"R": 1}
    o, lse = attend(kernel, device, q, k, v, **more)
    assert o.shape == (b, h, m, 64) and lse.shape == (b, h, m)
    q, k, v = qkv(4, 20)
    assert attention(q, k, v, seen(4, 20, right=0) if text == CAUSAL else None).faults(*attend(kernel, device, q, k, v)) == []


def test_b18_one_query(schedule, device):
    q, k, v = qkv(1, 20, h=3)
    assert attention(q, k, v).faults(*attend(made(CAUSAL, schedule, "f16"), device, q, k, v)) == []


def test_b18_sequences_of_every_length_alone(schedule, device):
    """Those of the packed batch, one call each."""
    for m, n in zip((0, 1, 0, 1, 130), (0, 3, 5, 0, 77), strict=True):
        q, k, v = hashed(1, (1, 2, m, 64)), hashed(2, (1, 2, n, 64)), hashed(3, (1, 2, n, 64))
        want = attention(q, k, v, seen(m, n, right=0))
        assert want.faults(*attend(made(CAUSAL, schedule, "f16"), device, q, k, v)) == []

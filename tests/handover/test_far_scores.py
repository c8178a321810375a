"""Scores so large that what is subtracted from them behind their product would be rounded too much: tiles are moved before it,
by the rows that need it, as soon as they do and until they no longer do. Rows near and far stand in the same warp."""

from __future__ import annotations

import numpy as np
import pytest

from tests.handover.reference import attention, qkv
from tests.handover.running import DEVICES, attend, made, program

FULL = program(where="not causal or j <= i + N - M")
SCHEDULES = {"four": 64, "three_128_longest": 64, "three_longest": 128, "two_joined": 128, "two_64_longest": 256}
CASES = [(schedule, scale) for schedule in SCHEDULES for scale in (1.0, 40.0, 3e3)]
pytestmark = pytest.mark.parametrize("device", DEVICES)


def inputs(d: int, growth: float) -> list[np.ndarray]:
    """Some rows look at large scores, others at small ones; keys grow, or shrink, along the stream."""
    q, k, v = (x.astype(np.float32) for x in qkv(150, 333, "bf16", d=d))
    q[:, :, ::3] *= 30
    q[:, :, 1::3] *= 1e-3
    k *= growth ** np.linspace(0, 1, 333)[None, None, :, None]
    return [x.astype(qkv(1, 1, "bf16")[0].dtype) for x in (q, k, v)]


@pytest.mark.parametrize("growth", [1.0, 60.0, 1 / 60.0])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("schedule, scale", CASES)
def test_far_and_near_rows(device, schedule, scale, causal, growth):
    d = SCHEDULES[schedule]
    q, k, v = inputs(d, growth)
    keep = np.arange(333)[None] <= np.arange(150)[:, None] + 183 if causal else None
    want = attention(q, k, v, keep, scale=scale)
    got = attend(made(FULL, schedule, "bf16", d, causal=causal), device, q, k, v, scale=scale)
    assert want.faults(*got) == []


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_far_row_that_is_nan_stays_alone(device, schedule):
    d = SCHEDULES[schedule]
    q, k, v = inputs(d, 1.0)
    kernel = made(FULL, schedule, "bf16", d, causal=True)
    want = attend(kernel, device, q, k, v, scale=40.0)
    q[0, 0, 17, 3] = np.nan
    o, lse = attend(kernel, device, q, k, v, scale=40.0)
    assert np.isnan(o[0, 0, 17].astype(np.float32)).all() and np.isnan(lse[0, 0, 17])
    others = np.arange(150) != 17
    assert np.allclose(o[0, 0, others].astype(np.float32), want[0][0, 0, others].astype(np.float32), atol=2e-2)
    assert np.isfinite(lse[0, 0, others]).all()

"""NaN and infinities of public bug reports (B08): what isn't seen doesn't show, and what is seen isn't hidden."""

from __future__ import annotations

import numpy as np
import pytest

from tests.handover.reference import attention, qkv, seen
from tests.handover.running import DEVICES, SCHEDULES, attend, made, program

pytestmark = [pytest.mark.parametrize("device", DEVICES), pytest.mark.parametrize("schedule", SCHEDULES)]
FULL = program()
BAD = [np.nan, np.inf]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("n", [32, 64, 96, 48])
def test_b08_what_lies_behind_the_keys_of_a_longer_buffer(schedule, device, n, bad):
    """128 slots, of which the first are real: the views that the kernel gets end there."""
    q, k, v = qkv(70, 128, h=8)
    want = attention(q, k[:, :, :n], v[:, :, :n])
    for x in (k, v):
        x[:, :, n:] = bad
    assert want.faults(*attend(made(FULL, schedule, "f16"), device, q, k[:, :, :n], v[:, :, :n])) == []


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("where", ["j < len[b]", "j < len[b] and j <= i + len[b] - M"])
def test_b08_what_lies_past_the_length_of_each_batch(schedule, device, where, bad):
    """The same buffers as a batch of four, their lengths a tensor."""
    q, k, v = qkv(128, 128, b=4, h=8)
    lengths = np.array([32, 64, 96, 48], np.int32)
    keep = np.stack([np.pad(seen(128, n, right=0 if "M" in where else np.inf), ((0, 0), (0, 128 - n))) for n in lengths])
    want = attention(q, k, v, keep[:, None])
    for b, n in enumerate(lengths):
        k[b, :, n:], v[b, :, n:] = bad, bad
    kernel = made(program(where=where, declared="in len: i32[B]"), schedule, "f16")
    assert want.faults(*attend(kernel, device, q, k, v, len=lengths)) == []


@pytest.mark.parametrize("bad", BAD)
def test_b08_a_key_that_no_row_sees(schedule, device, bad):
    q, k, v = qkv(70, 100, h=2)
    keep = np.ones((70, 100), bool)
    keep[:, 1] = False
    want = attention(q, k, v, keep)
    k[:, :, 1] = bad
    kernel = made(program(where="keep[i,j]", declared="in keep: bool[M, N]"), schedule, "f16")
    assert want.faults(*attend(kernel, device, q, k, v, keep=keep)) == []


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_b08_a_value_that_rows_see_reaches_its_column_only(schedule, device, bad):
    q, k, v = qkv(70, 100, h=2)
    v[0, 1, 37, 5] = bad
    o, lse = attend(made(FULL, schedule, "f16"), device, q, k, v)
    assert attention(q, k, v).faults(o, lse) == []
    assert np.array_equal(np.argwhere(~np.isfinite(o[0, :, 0])), [[1, 5]]) and not np.isfinite(o[0, 1, :, 5]).any()


def test_b08_a_query_of_nan_spoils_its_row_only(schedule, device):
    q, k, v = qkv(70, 100, h=2)
    q[0, 1, 3] = np.nan
    o, lse = attend(made(FULL, schedule, "f16"), device, q, k, v)
    assert attention(q, k, v).faults(o, lse) == []
    assert np.isnan(o[0, 1, 3]).all() and np.isnan(lse[0, 1, 3]) and np.isnan(o).sum() == 64

"""Every shipped attention schedule under all of it at once: a soft cap, a bias with -inf in it, a mask that leaves rows without
keys inside live tiles, grouped heads, sinks of which one is -inf, views, and values that no row sees."""

from __future__ import annotations

import numpy as np
import pytest

from tests.handover.reference import attention, hashed, seen
from tests.handover.running import DEVICES, SCORE, attend, made, program

# Head dim for each; those whose steps name parts of a softmax don't run other texts of it.
HOPPER = {
    "simple": 64,
    "fa3": 64,
    "fa3_persistent": 64,
    "softmax_turns": 128,
    "unordered": 128,
    "three": 128,
    "three_longest": 128,
    "three_128": 64,
    "two": 128,
    "two_longest": 128,
    "two_joined": 128,
    "two_80": 256,
    "two_64": 256,
    "two_64_longest": 256,
    "four": 64,
    "four_longest": 64,
}
AMPERE = {
    "fa2": 64,
    "fa2_longest": 64,
    "fa2_narrow": 128,
    "fa2_narrow_longest": 128,
    "fa2_wide": 256,
    "fa2_wide_longest": 256,
}
NAMED = ("softmax_turns",)
DECLARED = "in w: f32[M, N]\ndef capped(x, c) = c * tanh(x / c)\n"
SHORT = 3  # of the last keys no query sees any


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("schedule, d", [*HOPPER.items(), *AMPERE.items()])
def test_all_of_it(schedule, d, device):
    sunk = schedule not in NAMED
    text = program(
        f"capped({SCORE}, 2.0) + w[i,j]",
        where=f"j <= i + N - M - {SHORT}",
        declared=DECLARED + "in sink: f32[H]" * sunk,
        sink="sink[h]" * sunk,
    )
    m, n = 300, 270
    q, room = hashed(1, (2, 2, m, d), -2, 2), [hashed(seed, (2, 1, n + 50, d), -2, 2) for seed in (2, 3)]
    keep = seen(m, n, right=-SHORT)
    w = hashed(4, (m, n), -2, 2, "f32")
    w[hashed(5, (m, n), dtype="f32") < -0.5] = -np.inf
    w[100], sink = -np.inf, np.array([-np.inf, 0.5], np.float32)
    want = attention(q, *(x[:, :, :n] for x in room), keep, cap=2.0, bias=w.astype(np.float64), sink=sink if sunk else None)
    for x in room:
        x[:, :, n - SHORT :] = np.nan
    more = {"w": w, "sink": sink} if sunk else {"w": w}
    got = attend(made(text, schedule, "f16", d=d), device, q, *(x[:, :, :n] for x in room), **more)
    assert want.faults(*got) == []
    if sunk:
        assert np.isneginf(got[1][:, 0, 100]).all() and np.all(got[1][:, 1, 100] == 0.5) and not got[0][:, :, 100].any()

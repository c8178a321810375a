"""What the shapes of a call have to fit (B20): ratios of heads, head dims, head dims of values."""

from __future__ import annotations

import numpy as np
import pytest

import wgdsl
from tests.handover.reference import TYPES, attention, hashed
from tests.handover.running import DEVICES, SCHEDULES, attend, made, program
from wgdsl.tools.running import gpu_notes, run

WIDE = {"fa3": "three", "fa2": "fa2_narrow"}  # the result has shared memory of its own, or there are fewer keys in a tile
on_schedules = pytest.mark.parametrize("schedule", SCHEDULES)
on_devices = pytest.mark.parametrize("device", DEVICES)


@on_schedules
@pytest.mark.parametrize("heads, keys", [(33, 2), (3, 2), (2, 4)])
def test_b20_heads_that_no_whole_group_shares_are_refused(schedule, heads, keys):
    kernel = made(program(), schedule, "f16")
    arrays = {"Q": hashed(1, (1, 9, heads, 64)), "K": hashed(2, (1, 9, keys, 64)), "V": hashed(3, (1, 9, keys, 64))}
    with pytest.raises(wgdsl.WgError) as e:
        kernel(**arrays, device="sim")
    assert e.value.problems[0].code == "WG0605"
    assert f"H = G * R = {heads}" in str(e.value) and f"G = {keys}" in str(e.value) and "multiple of" in str(e.value)


@on_devices
@on_schedules
@pytest.mark.parametrize("heads, keys", [(8, 2), (9, 3), (6, 1)])
def test_b20_heads_in_whole_groups(schedule, device, heads, keys):
    q, k, v = (hashed(seed, (2, h, 33, 64), -3, 3) for seed, h in ((1, heads), (2, keys), (3, keys)))
    assert attention(q, k, v).faults(*attend(made(program(), schedule, "f16"), device, q, k, v)) == []


PADDED = {59: 0.1007, 63: 0.0225, 72: 0.1407, 80: 0.2538}  # error of a scale by the next of 64, 80, 96


@on_devices
@on_schedules
@pytest.mark.parametrize("d", [59, 63, 72, 80, 96])
def test_b20_head_dims_off_the_grid(schedule, device, d):
    """The scale is that of the real head dim. Rows of 59 or 63 elements lie in a buffer of 64: their pitch is what a copy
    engine needs, and what lies behind them is NaN."""
    q, k, v = (_padded(hashed(seed, (1, 2, 33, d), -3, 3)) for seed in (1, 2, 3))
    want = attention(q, k, v)
    o, lse = attend(made(program(), WIDE[schedule] if d > 64 else schedule, "f16", d=d), device, q, k, v)
    assert o.shape == (1, 2, 33, d) and want.faults(o, lse) == []
    if d in PADDED:
        up = {59: 64, 63: 64, 72: 80, 80: 96}[d]
        assert np.abs(attention(q, k, v, scale=up**-0.5).o - want.o).max() == pytest.approx(PADDED[d], abs=2e-3)
        assert 2 * want.rounding + 1e-5 < PADDED[d] / 5


def _padded(x: np.ndarray) -> np.ndarray:
    """The same as rows of a buffer with rows of a multiple of 8 elements, the rest NaN."""
    room = np.full((*x.shape[:-1], -(-x.shape[-1] // 8) * 8), np.nan, TYPES["f16"])
    room[..., : x.shape[-1]] = x
    return room[..., : x.shape[-1]]


@on_devices
@on_schedules
@pytest.mark.parametrize("d, e", [(192, 128), (64, 128), (32, 24)])
def test_b20_values_of_another_head_dim(schedule, device, d, e):
    """The last axis of the result is that of the values, the scale that of queries and keys."""
    q, k, v = (hashed(seed, (1, 2, 33, w), -3, 3) for seed, w in ((1, d), (2, d), (3, e)))
    o, lse = attend(_kernel(schedule, d, e), device, q, k, v)
    assert o.shape[-1] == e and attention(q, k, v).faults(o, lse) == []


MINE = "schedule mine extends fa2_narrow {\nsmem Os = O[i] by copy\n}\n"  # values wider than Q: not in Q's place
NAMES = {("fa3", 64, 128): "three", ("fa2", 192, 128): "fa2_narrow", ("fa2", 64, 128): "mine"}


def _kernel(schedule: str, d: int, e: int):
    name = NAMES.get((schedule, d, e), schedule)
    return made(program() + MINE * (name == "mine"), name, "f16", d=d, e=e)


def test_b20_values_wider_than_queries_don_t_lie_in_their_place():
    with pytest.raises(wgdsl.WgError, match="WG0416") as error:
        made(program(), "fa2_narrow", "f16", d=64, e=128)
    assert "drop `over Qs`" in str(error.value)


@pytest.mark.parametrize(
    "schedule, rule", [("fa3", "wgmma has n a multiple of 8 up to 256"), ("fa2", "mma has n a multiple of 16 up to 256")]
)
def test_b20_a_head_dim_that_no_product_has(schedule, rule):
    with pytest.raises(wgdsl.WgError) as error:
        made(program(), schedule, "f16", d=264)
    assert rule in str(error.value) and "tile size of `e`" in str(error.value)


@on_schedules
def test_b20_rows_that_the_copies_of_a_gpu_can_t_begin_at_are_refused_there(schedule):
    """Dense rows of 59 elements are 118 bytes apart; the simulator says so too."""
    kernel = made(program(), schedule, "f16", d=59)
    notes = "\n".join(gpu_notes(kernel, run(kernel, {"B": 1, "G": 1, "R": 1, "M": 5, "N": 5}, device="sim")))
    assert "118 bytes, which must be a multiple of 16 bytes" in notes and all(f"`{t}`" in notes for t in "QKV")

"""Large arrays and grids of public bug reports: offsets past 2^31 (B21), batches and heads past 65535 (B22). Here it is what
the driver would be told, and the width of what the kernel adds up; `tests/gpu/test_large.py` runs them."""

from __future__ import annotations

import re

import pytest

import wgdsl
from tests.handover.launches import launched, viewed
from tests.handover.reference import attention, hashed
from tests.handover.running import SCHEDULES, attend, made, program
from wgdsl.runtime.cuda import CudaError

on_schedules = pytest.mark.parametrize("schedule", SCHEDULES)
TABLE = program(where="keep[i,j]", declared="in keep: bool[M, N]")


def cache(b: int, n: int = 24000, d: int = 128, m: int = 256):
    """Keys and values stored [N, B, D] and seen as [B, N, 1, D]."""
    far = {t: viewed((b, n, 1, d), "bf16", (d, b * d, d, 1), at=k << 40) for k, t in enumerate("KV", 1)}
    near = {"Q": viewed((b, m, 1, d), "bf16", at=3 << 40), "O": viewed((b, m, 1, d), "bf16", at=4 << 40)}
    return far | near | {"L": viewed((b, 1, m), "f32", at=5 << 40)}


@pytest.mark.parametrize("b", [699, 700])
def test_b21_maps_of_tensors_past_2_to_31_elements(monkeypatch, b):
    """The copy engine gets strides of 64 bits: 24000 rows, each of all batches."""
    driver = launched(monkeypatch, made(program(), "fa3", "bf16", d=128), cache(b))
    strides = {m[2]: m[4] for m in driver.maps}
    assert ((24000 - 1) * b * 128 + (b - 1) * 128 + 127 >= 2**31) is (b == 700)
    assert all(2 * b * 128 in strides[k << 40] for k in (1, 2))


@pytest.mark.parametrize("schedule, text", [("fa2_narrow", program()), ("fa3", TABLE), ("fa2_narrow", TABLE)])
def test_b21_addresses_are_of_64_bits(schedule, text):
    """Every product of an index and a stride is, since each stride is."""
    kernel = made(text, schedule, "bf16", d=128)
    strides = [f"{p.tensor}_stride{p.axis}" for k in kernel.roles.kernels for p in k.params if p.kind == "stride"]
    assert strides and all(f"long long {s}" in kernel.cuda for s in strides)
    assert not re.search(r"\((int|unsigned)\)\s*\(?\w*_stride|\bint \w+ = [^;]*_stride", kernel.cuda), "nor is one cut"


@pytest.mark.parametrize("n, fits", [(46340, True), (46341, False)])
@on_schedules
def test_b21_a_table_of_more_than_2_to_31_elements_is_launched(monkeypatch, schedule, n, fits):
    assert (n * n < 2**31) is fits
    shape, rows = (1, n, 1, 64), (1, 1, n)
    views = {t: viewed(shape, "bf16", at=k << 40) for k, t in enumerate("QKVO", 1)} | {"L": viewed(rows, "f32", at=5 << 40)}
    driver = launched(monkeypatch, made(TABLE, schedule, "bf16"), views | {"keep": viewed((n, n), "bool", at=6 << 40)})
    assert driver.launches


@on_schedules
def test_b21_more_than_2_to_31_bytes_are_launched(monkeypatch, schedule):
    """[1600, 16, 729, 72]."""
    kernel = made(program(), "fa2_wide" if schedule == "fa2" else schedule, "bf16", d=72)
    shape = (1600, 729, 16, 72)
    dense = (16 * 729 * 72, 72, 729 * 72, 1)
    views = {t: viewed(shape, "bf16", dense, at=k << 40) for k, t in enumerate("QKVO", 1)}
    driver = launched(monkeypatch, kernel, views | {"L": viewed((1600, 16, 729), "f32", at=5 << 40)})
    assert len(driver.launches) == 1


SIZES = [(65536, 1, 8), (1, 65536, 8), (256, 256, 8), (65535, 1, 8), (32768, 4, 3)]


@on_schedules
@pytest.mark.parametrize("b, h, s", SIZES)
def test_b22_grids_have_one_axis(monkeypatch, schedule, b, h, s):
    """Of which there may be 2^31 - 1 blocks; 65535 is the limit of the others."""
    views = {t: viewed((b, s, h, 16), "f16", at=k << 40) for k, t in enumerate("QKVO", 1)}
    driver = launched(monkeypatch, made(program(), schedule, "f16", d=16), views | {"L": viewed((b, h, s), "f32", at=5 << 40)})
    assert [n["blocks"] for n in driver.launches] == [b * h]


@on_schedules
def test_b22_more_blocks_than_a_grid_has_are_refused(monkeypatch, schedule):
    """By the count of each axis."""
    b, h = 2**16, 2**16
    views = {t: viewed((b, 8, h, 16), "f16", at=k << 50) for k, t in enumerate("QKVO", 1)}
    with pytest.raises(wgdsl.WgError, match="WG0618") as e:
        launched(monkeypatch, made(program(), schedule, "f16", d=16), views | {"L": viewed((b, h, 8), "f32", at=5 << 50)})
    assert "b: 65536" in str(e.value) and "g: 65536" in str(e.value)


@on_schedules
def test_b22_a_launch_that_fails_raises(monkeypatch, schedule):
    """As one of too many threads would: the call itself says so, and no result is returned."""
    kernel = made(program(), schedule, "f16", d=16)
    views = {t: viewed((1, 8, 1, 16), "f16", at=k << 40) for k, t in enumerate("QKVO", 1)} | {
        "L": viewed((1, 1, 8), "f32", at=5 << 40)
    }
    with pytest.raises(CudaError, match="cuLaunchKernel failed with 1 "):
        launched(monkeypatch, kernel, views, refuse={"cuLaunchKernel": 1})


@on_schedules
@pytest.mark.parametrize("b, h", [(200, 1), (1, 200)])
def test_b22_many_batches_and_heads_are_all_written(schedule, b, h):
    q, k, v = (hashed(seed, (b, h, 8, 16)) for seed in (1, 2, 3))
    assert attention(q, k, v).faults(*attend(made(program(), schedule, "f16", d=16), "sim", q, k, v)) == []

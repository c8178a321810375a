"""The fits behind functions of the emitted text, evaluated in f32 as the text does."""

from __future__ import annotations

import numpy as np
import pytest

from wgdsl.driver import compile
from wgdsl.emit.ptx import TANH_NEAR, TANH_SERIES
from wgdsl.foundation.resources import resource

F = np.float32


def tanh(a: np.ndarray) -> np.ndarray:
    """`ptx::tanh`, up to the last bits of what the chip's exp2 and reciprocal give."""
    z = np.abs(a)
    far = F(1) - F(2) * (F(1) / (np.exp2(F(2.8853901) * z) + F(1)))
    square, p = z * z, np.full_like(a, TANH_SERIES[0])
    for c in TANH_SERIES[1:]:
        p = p * square + F(c)
    return np.copysign(np.where(z < F(TANH_NEAR), z * square * p + z, far), a)


def test_tanh_is_right_to_its_last_bits():
    a = np.concatenate([np.geomspace(1e-30, 1e3, 200_001), np.linspace(0.5, 0.7, 100_001)]).astype(F)
    a = np.concatenate([a, -a])
    with np.errstate(over="ignore"):
        error = np.abs(tanh(a).astype(np.float64) / np.tanh(a.astype(np.float64)) - 1)
    assert error.max() < 4e-7


def test_tanh_of_what_is_no_number_or_has_no_size():
    with np.errstate(over="ignore", invalid="ignore"):
        found = tanh(np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype=F))
    assert found[:4].tolist() == [0, 0, 1, -1] and np.signbit(found[1]) and np.isnan(found[4])


@pytest.mark.parametrize(
    "schedule, target", [("simple", "sm_90a"), ("overlapped", "sm_90a"), ("warps", "sm_80")], ids=lambda x: x
)
def test_squared_weights_are_products(schedule, target):
    """`relu(...) ** 2` for every element of a tile, masked ones and others; NVRTC takes the text."""
    path = resource("examples", "relu2_attention", "relu2_attention.wg")
    made = compile(path, schedule=schedule, target=target, dims={"D": 64, "E": 64}, types={"T": "bf16"})
    assert made.cuda.count("ptx::power_2(ptx::relu(") >= 2
    assert "powf" not in made.cuda and made.cubin

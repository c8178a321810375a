"""The descriptor table against the offsets that were measured on an H200."""

from __future__ import annotations

import pytest

from wgdsl.targets.descriptor import matrix_layout

K_MAJOR = {
    (128, 64): (0, 32, 64), (128, 128): (0, 32, 64), (128, 80): (0, 32, 64),
    (64, 64): (0, 32, 4096), (64, 128): (0, 32, 8192), (64, 80): (0, 32, 5120),
    (32, 64): (0, 2048, 4096), (32, 128): (0, 4096, 8192), (32, 80): (0, 2560, 5120),
    (0, 64): (0, 2048, 4096), (0, 128): (0, 4096, 8192), (0, 80): (0, 2560, 5120),
}  # fmt: skip
MN_MAJOR = {128: (0, 2048, 4096), 64: (0, 1024, 2048), 32: (0, 512, 1024), 0: (0, 256, 512)}


@pytest.mark.parametrize(("swizzle", "rows"), K_MAJOR)
def test_k_steps(swizzle: int, rows: int):
    layout = matrix_layout(major="K", swizzle=swizzle, rows=rows, cols=64, nbytes=2)
    assert layout.steps[:3] == K_MAJOR[swizzle, rows] and len(layout.steps) == 4
    assert layout.stride == (8 * swizzle or 128)
    assert layout.leading == (16 if swizzle else rows * 16)


@pytest.mark.parametrize("swizzle", MN_MAJOR)
def test_mn_steps(swizzle: int):
    layout = matrix_layout(major="MN", swizzle=swizzle, rows=64, cols=64, nbytes=2)
    assert layout.steps[:3] == MN_MAJOR[swizzle] and len(layout.steps) == 4
    if swizzle:
        assert (layout.leading, layout.stride) == (64 * swizzle, 8 * swizzle)
    else:
        assert (layout.leading, layout.stride) == (128, 64 * 16)


def test_bytes_are_steps_of_32():
    layout = matrix_layout(major="K", swizzle=128, rows=96, cols=128, nbytes=1)
    assert layout.steps == (0, 32, 64, 96)


def test_what_attention_uses():
    """All of Q, K and V have one upper half, and V steps by 2048 bytes with the panel as its leading offset."""
    for major, rows in (("K", 64), ("K", 128), ("MN", 128)):
        layout = matrix_layout(major=major, swizzle=128, rows=rows, cols=128, nbytes=2)
        assert layout.high == 1 << 30 | 64
    assert layout.low == (128 * 128 >> 4) << 16
    assert layout.encode(0x8000, 3) == layout.high << 32 | layout.low | (0x8000 + 3 * 2048) >> 4


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"major": "K", "swizzle": 128, "rows": 64, "cols": 80, "nbytes": 2}, "whole panels"),
        ({"major": "K", "swizzle": 128, "rows": 12, "cols": 64, "nbytes": 2}, "whole panels"),
        ({"major": "MN", "swizzle": 128, "rows": 64, "cols": 128, "nbytes": 1}, "16-bit"),
        ({"major": "M", "swizzle": 128, "rows": 64, "cols": 64, "nbytes": 2}, "major"),
    ],
)
def test_refusals(fields: dict, message: str):
    with pytest.raises(ValueError, match=message):
        matrix_layout(**fields)

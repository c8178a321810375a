"""Swizzles, fragments, registers and limits."""

from __future__ import annotations

import pytest

from wgdsl.targets.registers import count_problem, launch_registers
from wgdsl.targets.sm_90a import SM_90A
from wgdsl.targets.swizzle import SWIZZLES, swizzle_for
from wgdsl.targets.tma import box_problem
from wgdsl.targets.wgmma import ACCUMULATOR, INSTRUCTIONS, OPERAND_8, OPERAND_16


@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_swizzle_permutes_the_chunks_of_a_row(swizzle: int):
    s = SWIZZLES[swizzle]
    for row in range(16):
        chunks = [s.physical(row * s.span + c * 16) for c in range(s.chunks)]
        assert sorted(chunks) == [row * s.span + c * 16 for c in range(s.chunks)]
        assert chunks == [row * s.span + (c ^ (row >> s.row_shift & s.mask)) * 16 for c in range(s.chunks)]


def test_swizzle_128_is_chunk_xor_row():
    assert SWIZZLES[128].physical(5 * 128 + 3 * 16 + 7) == 5 * 128 + (3 ^ 5) * 16 + 7


@pytest.mark.parametrize(
    ("cols", "nbytes", "swizzle"),
    [(64, 2, 128), (128, 2, 128), (80, 2, 32), (96, 2, 64), (24, 2, 0), (128, 1, 128), (16, 1, 0)],
)
def test_swizzle_for(cols: int, nbytes: int, swizzle: int):
    assert swizzle_for(cols, nbytes) == swizzle


def test_accumulator():
    """d[4j + 2i + e] of lane l in warp q: row 16 q + l / 4 + 8 i, column 8 j + 2 (l % 4) + e."""
    for q, lane, j, i, e in ((0, 0, 0, 0, 0), (3, 31, 5, 1, 1), (2, 17, 3, 0, 1)):
        assert ACCUMULATOR.at(q, lane, 4 * j + 2 * i + e) == (16 * q + lane // 4 + 8 * i, 8 * j + 2 * (lane % 4) + e)


def test_operands():
    """Registers a0 (row, k 0-7), a1 (row + 8), a2 (k 8-15), a3 both; for bytes, k 0-15 and 16-31."""
    assert [OPERAND_16.at(0, 5, 2 * r) for r in range(4)] == [(1, 2), (9, 2), (1, 10), (9, 10)]
    assert [OPERAND_8.at(0, 5, 4 * r + 3) for r in range(4)] == [(1, 7), (9, 7), (1, 23), (9, 23)]


def test_instructions():
    assert INSTRUCTIONS["bf16"].mnemonic(80) == "wgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16"
    for n in (0, 12, 264):
        with pytest.raises(ValueError, match="multiple of 8"):
            INSTRUCTIONS["e4m3"].mnemonic(n)


def test_registers():
    assert [launch_registers(t) for t in (256, 384, 512, 640)] == [255, 168, 128, 96]
    assert count_problem(240) is None and count_problem(236) and count_problem(16) and count_problem(248)


def test_boxes():
    assert box_problem((64, 128, 2, 1, 1), 2, 128) is None
    assert "swizzle" in (box_problem((128, 64), 2, 128) or "")
    assert "extent" in (box_problem((64, 257), 2, 128) or "")
    assert "dimensions" in (box_problem((8,) * 6, 2, 0) or "")
    assert "multiple of 16" in (box_problem((4, 64), 2, 0) or "")


def test_limits():
    assert (SM_90A.shared_limit, SM_90A.named_barriers, SM_90A.threads) == (232448, 16, 1024)

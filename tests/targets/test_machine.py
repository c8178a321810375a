"""Rows of the engines against the manual's spellings, and how many CTAs fit on an SM."""

from __future__ import annotations

import pytest

from tests.sass import sass_shape
from wgdsl.roles import model
from wgdsl.targets.machine import INSTRUCTIONS, MATRIX, flops, loaded_bytes
from wgdsl.targets.sm_80 import SM_86
from wgdsl.targets.sm_90a import SM_90A


@pytest.mark.parametrize(
    "op, engine, issuer, shape",
    [
        ("HGMMA.64x128x16.F32.BF16", "wgmma", "warpgroup", (64, 128, 16)),
        ("QGMMA.64x96x32.F32.E4M3.E4M3", "wgmma", "warpgroup", (64, 96, 32)),
        ("HMMA.16816.F32.BF16", "mma.sync", "warp", (16, 8, 16)),
        ("HMMA.1688.F32.TF32", "mma.sync", "warp", (16, 8, 8)),
        ("IMMA.16832.S8.S8", "mma.sync", "warp", (16, 8, 32)),
    ],
)
def test_matrix_instructions(op, engine, issuer, shape):
    row = MATRIX[op.split(".")[0]]
    assert (row.name, row.issuer, sass_shape(op)) == (engine, issuer, shape)


def test_shapes_of_placed_products():
    assert INSTRUCTIONS["Wgmma"].shape(80, 2) == (64, 80, 16) and INSTRUCTIONS["Wgmma"].shape(96, 1) == (64, 96, 32)
    assert INSTRUCTIONS["Mma"].shape(80, 2) == (16, 8, 16)
    assert flops((16, 8, 16)) == 2 * 16 * 8 * 16 == 4096
    assert all(issubclass(getattr(model, step), model.Step) for step in INSTRUCTIONS)


def test_an_unknown_shape_is_said():
    with pytest.raises(ValueError, match=r"HMMA\.884"):
        sass_shape("HMMA.884.F16.F16")


@pytest.mark.parametrize(
    "op, size",
    [("LDSM.16.M88.4", 512), ("LDSM.16.MT88.2", 256), ("LDSM.16.M88", 128), ("LDS.128", 512), ("LDS.64", 256), ("LDS", 128),
     ("LDG.E.128", 0), ("STS.128", 0)],
)  # fmt: skip
def test_bytes_that_a_warp_loads(op, size):
    assert loaded_bytes(op) == size


@pytest.mark.parametrize(
    "registers, threads, shared, ctas",
    [(168, 384, 164_944, 1), (128, 128, 0, 4), (32, 1024, 0, 2), (24, 128, 0, 16), (64, 128, 100_000, 2), (16, 32, 0, 32)],
)
def test_residency(registers, threads, shared, ctas):
    assert SM_90A.resident(registers=registers, threads=threads, shared=shared) == ctas


def test_small_ctas_of_a_smaller_sm():
    assert SM_86.resident(registers=16, threads=32) == 16
    assert SM_86.resident(registers=32, threads=128) == 12

"""Matrix products of public bug reports: a summand that isn't there (B17), shapes of instructions and boxes (B35)."""

from __future__ import annotations

import numpy as np
import pytest

import wgdsl
from tests.handover.reference import TYPES, hashed, off
from tests.handover.running import DEVICES, call
from tests.programs.edits import GEMM, PIPELINED, edit, plain
from wgdsl.runtime.kernel import Kernel

WARPS = plain("schedules/ampere/gemm_warps.wg")
SCHEDULES = {"pipelined": (PIPELINED, "sm_90a"), "warps": (WARPS, "sm_80")}
on_both = pytest.mark.parametrize("schedule", SCHEDULES)
on_devices = pytest.mark.parametrize("device", DEVICES)


def compiled(schedule: str, *edits: tuple[str, str], text: str = GEMM, **options: object) -> Kernel:
    lines, target = SCHEDULES[schedule]
    return wgdsl.compile(text, schedule=edit(lines, *edits), target=target, types={"T": "f16"}, options=options, build=False)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


def faults(c: np.ndarray, want: np.ndarray) -> list[str]:
    """Twice what rounding to f16 does, and accumulation in f32."""
    rounded = want.astype(TYPES["f16"]).astype(np.float64)
    return off("C", c, want, 2 * np.abs(rounded - want).max(initial=0) + 1e-5 * (1 + np.abs(want).max(initial=0)))


SUMMED = """wg 1
program gemm {
option beta in {none, some}
dims M, N, K
type T in {f16, bf16}
in A: T[M, K]
in B: T[N, K]
in R: T[M, N] when beta == some
in alpha: f32
in factor: f32 when beta == some
out C: T[M, N]
Acc[i,n] = sum[k] A[i,k] * B[n,k]
C[i,n] = alpha * Acc[i,n]                     when beta == none
C[i,n] = alpha * Acc[i,n] + factor * R[i,n]   when beta == some
}
"""
CHOSEN = edit(
    SUMMED,
    ("alpha * Acc[i,n] + factor * R[i,n]", "select(factor == 0.0, alpha * Acc[i,n], alpha * Acc[i,n] + factor * R[i,n])"),
)
NARROW = {"pipelined": [("n 256", "n 128")], "warps": []}  # a residual takes registers


@on_devices
@on_both
@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (65, 72, 40)])
def test_b17_a_summand_times_0_is_left_out(schedule, device, m, n, k):
    """By an option there is no such argument; by an argument NaN doesn't pass, if the text says so."""
    a, b = hashed(1, (m, k)), hashed(2, (n, k))
    want, nan = 1.5 * product(a, b.T), np.full((m, n), np.nan, np.float16)
    none, chosen = compiled(schedule, text=SUMMED), compiled(schedule, *NARROW[schedule], text=CHOSEN, beta="some")
    assert faults(call(none, device, {"A": a, "B": b}, alpha=1.5)["C"], want) == []
    assert faults(call(chosen, device, {"A": a, "B": b, "R": nan}, alpha=1.5, factor=0.0)["C"], want) == []


@on_devices
@on_both
@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (65, 72, 40)])
def test_b17_a_summand_that_counts(schedule, device, m, n, k):
    a, b, r = hashed(1, (m, k)), hashed(2, (n, k)), hashed(3, (m, n), -4, 4)
    kernel = compiled(schedule, *NARROW[schedule], text=SUMMED, beta="some")
    got = call(kernel, device, {"A": a, "B": b, "R": r}, alpha=1.5, factor=0.5)["C"]
    assert faults(got, 1.5 * product(a, b.T) + 0.5 * r.astype(np.float64)) == []


@on_both
def test_b17_a_summand_that_counts_has_to_be_there(schedule):
    a, b = hashed(1, (64, 64)), hashed(2, (64, 64))
    kernel = compiled(schedule, *NARROW[schedule], text=SUMMED, beta="some")
    with pytest.raises(wgdsl.WgError, match="argument `R` is missing"):
        kernel(A=a, B=b, alpha=1.5, factor=0.5, device="sim")


@on_devices
@on_both
@pytest.mark.parametrize("layout", ["nk", "kn"])
@pytest.mark.parametrize("k", [8, 16, 24, 40])
def test_b35_sums_that_fill_no_instruction(schedule, device, layout, k):
    """Of 24 elements not 16 alone: that would be off by 3.6."""
    a, b = hashed(1, (64, k)), hashed(2, (k, 64))
    got = call(compiled(schedule, layout=layout), device, {"A": a, "B": b if layout == "kn" else np.ascontiguousarray(b.T)})[
        "C"
    ]
    assert faults(got, product(a, b)) == []
    if k == 24:
        assert np.abs(got - product(a[:, :16], b[:16])).max() == pytest.approx(3.629, abs=0.02)


TILES = {"pipelined": (8, 64, 104, 128, 192, 256), "warps": (64, 96, 112, 128)}


@on_devices
@pytest.mark.parametrize("schedule, tile", [(s, n) for s, tiles in TILES.items() for n in tiles])
def test_b35_columns_side_by_side_in_tiles_of_every_width(schedule, device, tile):
    """B is [K, N]: a tile is several swizzle atoms wide, or part of one."""
    old = "n 256" if schedule == "pipelined" else "n 128"
    kernel = compiled(schedule, (old, f"n {tile}"), layout="kn")
    a, b = hashed(1, (70, 72)), hashed(2, (72, 264))
    assert faults(call(kernel, device, {"A": a, "B": b})["C"], product(a, b)) == []


@on_devices
def test_b35_104_columns(device):
    """16 x 104 x 64: every column is written."""
    a, b = hashed(1, (16, 64)), hashed(2, (104, 64))
    for schedule in SCHEDULES:
        assert faults(call(compiled(schedule), device, {"A": a, "B": b})["C"], product(a, b.T)) == []


@on_devices
@pytest.mark.parametrize("k", [128, 256, 512])
def test_b35_slices_wider_than_the_swizzle_are_copied_in_parts(device, k):
    """An inner box of 128 elements of 16 bits is twice as wide as the 128-byte swizzle: such boxes are never asked for."""
    small = [("i 128, n 256, k 64", f"i 64, n 64, k {k}"), ("2 warpgroups", "1 warpgroup"), (", split i", "")]
    kernel = compiled("pipelined", *small, ("ring 3", "ring 1"), ("await Acc[k-1]", "await Acc[k]"))
    loads = [m for m in kernel.roles.kernels[0].maps if m.name != "Cs"]
    assert loads and all(m.box[0] * 2 <= m.swizzle and max(m.box) <= 256 for m in loads)
    a, b = hashed(1, (70, 600)), hashed(2, (72, 600))
    assert faults(call(kernel, device, {"A": a, "B": b})["C"], product(a, b.T)) == []


ONE = [("2 warpgroups", "1 warpgroup"), (", split i", ""), ("ring 3", "ring 1"), ("await Acc[k-1]", "await Acc[k]")]
REFUSED = {
    "a step of 24": ("pipelined", [("k 64", "k 24")], "WG0415", "wgmma of f16 takes k in steps of 16", "`tile k 32`"),
    "a step of 24 by warps": ("warps", [("k 64", "k 24")], "WG0415", "mma of f16 takes k in steps of 16", "`tile k 32`"),
    "264 columns": ("pipelined", [("n 256", "n 264")], "WG0415", "wgmma has n a multiple of 8 up to 256", "`tile n 256`"),
    "104 columns by warps": ("warps", [("n 128", "n 104")], "WG0415", "mma has n a multiple of 16 up to 256", "`tile n 112`"),
    "16 rows of 12 warps": (
        "warps",
        [("i 128", "i 16"), ("4 warps", "12 warps")],
        "WG0414",
        "a multiple of 192",
        "`tile i 192`",
    ),
    "a box of 512 rows": (
        "pipelined",
        [("i 128, n 256, k 64", "i 64, n 64, k 512"), *ONE],
        "WG0415",
        "at most 256",
        "`tile k 256`",
    ),
    "columns shared out": (
        "pipelined",
        [("i 128, n 256", "i 192, n 128"), ("split i", "split n")],
        "WG0408",
        "its rows run along `i`, but `math` is split along `n`",
        "rows come from the left operand",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_b35_shapes_that_no_engine_has(name):
    schedule, edits, code, rule, cure = REFUSED[name]
    with pytest.raises(wgdsl.WgError) as e:
        compiled(schedule, *edits, layout="kn")
    assert [p.code for p in e.value.problems] == [code] and rule in str(e.value) and cure in str(e.value)


@on_devices
def test_b35_a_tile_of_192_x_192_is_shared_by_rows(device):
    """Three warpgroups of 64 rows each."""
    kernel = compiled(
        "pipelined", ("i 128, n 256", "i 192, n 192"), ("2 warpgroups, registers 240", "3 warpgroups, registers 160")
    )
    a, b = hashed(1, (200, 64)), hashed(2, (200, 64))
    assert faults(call(kernel, device, {"A": a, "B": b})["C"], product(a, b.T)) == []

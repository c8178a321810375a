"""mma.sync and ldmatrix: what one warp multiplies, and how its operands come out of shared memory (PTX ISA: "Matrix
Fragments for mma.m16n8k16", "Warp-level matrix load instruction: ldmatrix").

Fragments of the accumulator and of the left operand are those of wgmma: a warp holds 16 rows of each block, and a result
becomes an operand by rounding alone.
"""

from __future__ import annotations

from dataclasses import dataclass

M = 16
N = 8
K = 16
PAIR = 2 * N  # columns of the result for which one ldmatrix.x4 fetches the right operand
EIGHT = 8  # rows of one of the four matrices of an ldmatrix, 16 bytes each

DTYPES = ("bf16", "f16")


def mnemonic(dtype: str) -> str:
    """e.g. mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"""
    return f"mma.sync.aligned.m{M}n{N}k{K}.row.col.f32.{dtype}.{dtype}.f32"


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """An ldmatrix.x4 of a 16 x 16 piece of an operand: which line and which 16-byte chunk of the piece a lane addresses.

    Lines are rows of the tile: along M or N for a K-major tile, along K for an MN-major one, which is transposed on the way.
    `line` is `lane & 15` if `plain`, else `(lane & 7) + (lane >> 4) * 8`; the chunk is the other one of bits 4 and 3.
    """

    plain: bool
    transposed: bool

    def line(self, lane: int) -> int:
        return lane & 15 if self.plain else (lane & 7) + (lane >> 4) * 8

    def chunk(self, lane: int) -> int:
        return lane >> 4 if self.plain else lane >> 3 & 1


# by operand (left or right) and major
FETCHES = {
    ("a", "K"): Fetch(plain=True, transposed=False),
    ("a", "MN"): Fetch(plain=False, transposed=True),
    ("b", "K"): Fetch(plain=False, transposed=False),
    ("b", "MN"): Fetch(plain=True, transposed=True),
}


def _matrix(fetch: Fetch, number: int) -> tuple[int, int]:
    """(line, chunk) at which one of the four 8 x 8 matrices starts."""
    lane = number * EIGHT
    return fetch.line(lane), fetch.chunk(lane)


def _check(operand: str, major: str, wanted: list[tuple[int, int]]) -> None:
    """wanted: (row or column of the product, k) at which matrices 0 to 3 start."""
    found = []
    for number in range(4):
        line, chunk = _matrix(FETCHES[operand, major], number)
        found.append((line, chunk * EIGHT) if major == "K" else (chunk * EIGHT, line))
    assert found == wanted, (operand, major, found)


for _major in ("K", "MN"):
    _check("a", _major, [(0, 0), (8, 0), (0, 8), (8, 8)])  # registers a0 to a3
    _check("b", _major, [(0, 0), (0, 8), (8, 0), (8, 8)])  # b0, b1 of the left 8 columns, then of the right ones

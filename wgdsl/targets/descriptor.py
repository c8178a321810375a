"""The 64-bit shared-memory matrix descriptor of wgmma (PTX ISA: "Matrix Descriptor Format").

A tile is `[panels][rows][span bytes]`. `K`-major: the columns of the tile run along K, its rows along M or N. `MN`-major:
the columns run along M or N, the rows along K. The offsets below were measured on an H200 for every major and swizzle.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from .swizzle import SWIZZLES

UNIT = 16  # the fields count 16 bytes
STEP_BYTES = 32  # bytes of K that one instruction takes: k16 of 16-bit elements, k32 of 8-bit ones
CORE_ROWS = 8  # rows of a core matrix


@dataclass(frozen=True, kw_only=True)
class Field:
    """Bits [low, low + width) of the descriptor."""

    name: str
    low: int
    width: int

    def place(self, value: int) -> int:
        assert 0 <= value < 1 << self.width, f"{self.name} = {value} has more than {self.width} bits"
        return value << self.low


ADDRESS = Field(name="start address >> 4", low=0, width=14)
LEADING = Field(name="leading byte offset >> 4", low=16, width=14)
STRIDE = Field(name="stride byte offset >> 4", low=32, width=14)
BASE = Field(name="base offset", low=49, width=3)
LAYOUT = Field(name="layout", low=62, width=2)
FIELDS = (ADDRESS, LEADING, STRIDE, BASE, LAYOUT)

assert all(a.low + a.width <= b.low for a, b in pairwise(FIELDS)) and LAYOUT.low + LAYOUT.width == 64


@dataclass(frozen=True, kw_only=True)
class MatrixLayout:
    """How one operand tile is described: `leading` and `stride` in bytes; `steps` are byte offsets of the K steps."""

    major: str
    swizzle: int
    leading: int
    stride: int
    steps: tuple[int, ...]

    @property
    def high(self) -> int:
        """The descriptor's upper 32 bits: a constant."""
        return (LAYOUT.place(SWIZZLES[self.swizzle].layout) | STRIDE.place(self.stride // UNIT)) >> 32

    @property
    def low(self) -> int:
        """The constant part of the lower 32 bits, to which (address >> 4) is added."""
        return LEADING.place(self.leading // UNIT)

    def across(self, n: int, nbytes: int) -> int | None:
        """The byte offset of the n-th of the elements along M or N; None where no descriptor can begin."""
        span = SWIZZLES[self.swizzle].span
        if self.major == "K":
            return None if n % CORE_ROWS else n // CORE_ROWS * self.stride
        return None if n * nbytes % span else n * nbytes // span * (self.leading if self.swizzle else self.stride)

    def encode(self, address: int, step: int = 0) -> int:
        """The whole descriptor of K step `step` of a tile at a shared-memory address."""
        return self.high << 32 | self.low | ADDRESS.place((address + self.steps[step]) // UNIT)


def matrix_layout(*, major: str, swizzle: int, rows: int, cols: int, nbytes: int) -> MatrixLayout:
    """The descriptor of a tile of `rows` x `cols` elements of `nbytes` bytes as a wgmma operand.

    Raises ValueError for a tile that the instruction cannot read.
    """
    if rows % CORE_ROWS or cols * nbytes % SWIZZLES[swizzle].span:
        raise ValueError(f"a {rows} x {cols * nbytes} byte tile has no whole panels of {swizzle} bytes")
    if major == "K":
        return _k_major(swizzle, rows, cols * nbytes)
    if major != "MN":
        raise ValueError(f"no operand major {major!r}: K or MN")
    if nbytes != 2:
        raise ValueError("only 16-bit operands can be MN-major")
    return _mn_major(swizzle, rows, rows // (STEP_BYTES // nbytes))


def _k_major(swizzle: int, rows: int, row_bytes: int) -> MatrixLayout:
    span = SWIZZLES[swizzle].span
    panel = rows * span
    along = range(0, row_bytes - STEP_BYTES + 1, STEP_BYTES)
    if swizzle == 0:
        steps = tuple(k // span * panel for k in along)
        return MatrixLayout(major="K", swizzle=0, leading=panel, stride=CORE_ROWS * span, steps=steps)
    steps = tuple(k // span * panel + k % span for k in along)
    # the leading offset of a swizzled K-major operand is said to be ignored; 1 is what was measured
    return MatrixLayout(major="K", swizzle=swizzle, leading=UNIT, stride=CORE_ROWS * span, steps=steps)


def _mn_major(swizzle: int, rows: int, count: int) -> MatrixLayout:
    span = SWIZZLES[swizzle].span
    panel, core = rows * span, CORE_ROWS * span
    steps = tuple(k * 2 * core for k in range(count))
    if swizzle == 0:  # here the two offsets change places
        return MatrixLayout(major="MN", swizzle=0, leading=core, stride=panel, steps=steps)
    return MatrixLayout(major="MN", swizzle=swizzle, leading=panel, stride=core, steps=steps)

"""Shared-memory swizzles (PTX ISA: "Shared Memory Matrix Layout", "Swizzling Modes" of tensor copies).

A panel is `[rows][span bytes]`, contiguous. Inside it the 16-byte chunks of a row are permuted, so that neither a column of
chunks nor a row hits one bank twice.
"""

from __future__ import annotations

from dataclasses import dataclass

CHUNK = 16  # bytes that stay together
PERIOD_SHIFT = 7  # the permutation is taken from the address bits from 128 bytes up


@dataclass(frozen=True, kw_only=True)
class Swizzle:
    """One mode. `span`: bytes of a panel row; `mask`: which row bits permute the chunks; `layout`: the matrix descriptor's
    code; `tensor_map`: the value of CUtensorMapSwizzle."""

    nbytes: int  # 128, 64, 32, or 0 for none
    span: int
    mask: int
    layout: int
    tensor_map: int

    def __post_init__(self):
        chunks = self.span // CHUNK
        assert self.span == (self.nbytes or CHUNK) and chunks & (chunks - 1) == 0
        assert self.mask == chunks - 1, "the permutation must stay inside a row"

    @property
    def chunks(self) -> int:
        """16-byte chunks in a panel row."""
        return self.span // CHUNK

    @property
    def period(self) -> int:
        """Bytes after which the permutation repeats; a panel must start on a multiple."""
        return (self.mask + 1) << PERIOD_SHIFT

    @property
    def row_shift(self) -> int:
        """The permutation of row r is `(r >> row_shift) & mask`."""
        return ((1 << PERIOD_SHIFT) // self.span).bit_length() - 1

    def physical(self, offset: int) -> int:
        """Where the byte at a logical offset from a panel's start is stored."""
        return offset ^ (((offset >> PERIOD_SHIFT) & self.mask) << 4)


SWIZZLES = {
    s.nbytes: s
    for s in (
        Swizzle(nbytes=128, span=128, mask=7, layout=1, tensor_map=3),
        Swizzle(nbytes=64, span=64, mask=3, layout=2, tensor_map=2),
        Swizzle(nbytes=32, span=32, mask=1, layout=3, tensor_map=1),
        Swizzle(nbytes=0, span=16, mask=0, layout=0, tensor_map=0),
    )
}


def swizzle_for(cols: int, nbytes: int) -> int:
    """The widest swizzle whose panels divide rows of `cols` elements of `nbytes` bytes: 128, 64, 32, or 0 for none."""
    return next(s for s in SWIZZLES if s == 0 or cols * nbytes % s == 0)

"""wgmma: instruction shapes and register fragments (PTX ISA: "Asynchronous Warpgroup Level Matrix Instructions").

One warpgroup (4 warps) computes 64 x n. A fragment says which element of the 64 rows a thread's n-th element is.
"""

from __future__ import annotations

from dataclasses import dataclass

from .descriptor import STEP_BYTES, MatrixLayout

M = 64
N_STEP = 8
BESIDE = 30  # registers that ptxas wants beside the accumulators of an instruction, of those at launch (C7602)
SHORT_STEP, SHORT_BITS = 32, 13  # of 8-bit operands so many products are added at once, to so many bits behind the leading one
N_MAX = 256
MOST_ABREAST = 4  # instructions for one result; narrower ones read the left operand too often


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """wgmma.mma_async with f32 accumulators. `transposable`: whether operands may be MN-major (trans immediates)."""

    dtype: str
    nbytes: int
    k: int
    transposable: bool

    def __post_init__(self):
        assert self.k * self.nbytes == STEP_BYTES and self.transposable == (self.nbytes == 2)

    def mnemonic(self, n: int) -> str:
        """e.g. wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"""
        if n % N_STEP or not 0 < n <= N_MAX:
            raise ValueError(f"wgmma has no n = {n}: a multiple of {N_STEP} up to {N_MAX}")
        return f"wgmma.mma_async.sync.aligned.m{M}n{n}k{self.k}.f32.{self.dtype}.{self.dtype}"


INSTRUCTIONS = {
    i.dtype: i
    for i in (
        Instruction(dtype="bf16", nbytes=2, k=16, transposable=True),
        Instruction(dtype="f16", nbytes=2, k=16, transposable=True),
        Instruction(dtype="e4m3", nbytes=1, k=32, transposable=False),
        Instruction(dtype="e5m2", nbytes=1, k=32, transposable=False),
    )
}


def abreast(n: int, layout: MatrixLayout, nbytes: int, registers: int) -> int:
    """How many instructions of equal n make a result of n columns: as few as the assembler takes in a kernel that begins with
    so many registers a thread, which wants `BESIDE` of them beside an instruction's accumulators. 0: none will do. layout: of
    the right operand, in which each of them has to begin somewhere."""
    for count in range(1, MOST_ABREAST + 1):
        part = n // count
        fits = n % count == 0 and part % N_STEP == 0 and part <= N_MAX and part // 2 + BESIDE <= registers
        if fits and (count == 1 or layout.across(part, nbytes) is not None):
            return count
    return 0


@dataclass(frozen=True, kw_only=True)
class Digit:
    """One term of a coordinate: `source // divide % modulo * scale`. Sources: warp (0-3), lane (0-31), element."""

    source: str
    divide: int
    modulo: int | None
    scale: int

    def value(self, sources: dict[str, int]) -> int:
        digit = sources[self.source] // self.divide
        return (digit if self.modulo is None else digit % self.modulo) * self.scale


@dataclass(frozen=True, kw_only=True)
class Fragment:
    """Where the elements of a 64-row register tile live, as sums of digits."""

    row: tuple[Digit, ...]
    col: tuple[Digit, ...]

    def at(self, warp: int, lane: int, element: int) -> tuple[int, int]:
        """(row, column) of a thread's element."""
        sources = {"warp": warp, "lane": lane, "element": element}
        return sum(d.value(sources) for d in self.row), sum(d.value(sources) for d in self.col)


KEYS = 32  # columns of a tile in the order v8: a multiple of these
BLOCK = 16  # rows of a tile that a warp transposes at once, with KEYS columns
PAIRS = 2  # parts of such a tile: the n-th has the n-th two of every four keys


def v8(column: int, columns: int) -> int:
    """Which key stands at a column of a tile of so many, in the order v8: two elements of a thread in the left half of a tile,
    and the two at the same place of its right half, are four keys that lie side by side."""
    half = columns // PAIRS
    part, place = divmod(column, half)
    return place // 2 * 4 + PAIRS * part + place % 2


def v8_operand(column: int) -> int:
    """Which key stands at a column of an 8-bit operand that is made of a result whose columns are in order: in each 16 the two
    elements that a thread has of the left 8, and those that it has of the right 8, are four columns side by side."""
    block, place = divmod(column, 16)
    lane, which = divmod(place, 4)
    return block * 16 + which // 2 * 8 + lane * 2 + which % 2


def v8_accumulator(columns: int) -> Fragment:
    """The keys of the elements of a result of 64 rows whose columns are in the order v8."""
    octets = columns // PAIRS // N_STEP
    return Fragment(
        row=ACCUMULATOR.row,
        col=(Digit(source="lane", divide=1, modulo=4, scale=4), Digit(source="element", divide=1, modulo=2, scale=1),
             Digit(source="element", divide=4, modulo=octets, scale=16),
             Digit(source="element", divide=4 * octets, modulo=None, scale=PAIRS)),
    )  # fmt: skip


def v8_source(element: int, columns: int) -> int:
    """Which element of such a result a thread's n-th element of an 8-bit operand is: none of another thread's."""
    register, byte = divmod(element, 4)
    return register * 2 + byte % 2 + byte // 2 * (columns // PAIRS // 2)


def _check(fragment: Fragment, cols: int, rows: int = M) -> None:
    elements = rows * cols // 128
    seen = {fragment.at(w, lane, e) for w in range(4) for lane in range(32) for e in range(elements)}
    assert seen == {(r, c) for r in range(rows) for c in range(cols)}, "every element once"


def accumulator(rows: int) -> Fragment:
    """The fragment of a result of `rows` rows, a multiple of 64, of which each of the 4 warps has a quarter that hangs
    together: for each 8 columns two elements of every eighth row."""
    halves = rows // 32
    return Fragment(
        row=(Digit(source="warp", divide=1, modulo=4, scale=8 * halves), Digit(source="lane", divide=4, modulo=8, scale=1),
             Digit(source="element", divide=2, modulo=halves, scale=8)),
        col=(Digit(source="lane", divide=1, modulo=4, scale=2), Digit(source="element", divide=1, modulo=2, scale=1),
             Digit(source="element", divide=2 * halves, modulo=None, scale=8)),
    )  # fmt: skip


ACCUMULATOR = accumulator(M)

# 16-bit A fragments hold two elements a register, and element for element they are the accumulator: a result becomes an
# operand by rounding alone. 8-bit ones, four a register, are not.
OPERAND_16 = ACCUMULATOR
OPERAND_8 = Fragment(
    row=(Digit(source="warp", divide=1, modulo=4, scale=16), Digit(source="lane", divide=4, modulo=8, scale=1),
         Digit(source="element", divide=4, modulo=2, scale=8)),
    col=(Digit(source="lane", divide=1, modulo=4, scale=4), Digit(source="element", divide=1, modulo=4, scale=1),
         Digit(source="element", divide=8, modulo=None, scale=16)),
)  # fmt: skip

_check(ACCUMULATOR, 32)
_check(accumulator(2 * M), 16, 2 * M)
_check(OPERAND_8, 32)
for _e in range(16):  # of a result whose columns are in order
    _row, _col = OPERAND_8.at(1, 13, _e)
    assert ACCUMULATOR.at(1, 13, _e // 4 // 2 * 8 + _e // 4 % 2 * 2 + _e % 2 + _e % 4 // 2 * 4) == (_row, v8_operand(_col))
for _cols in (KEYS, 96, 128):
    _own = v8_accumulator(_cols)
    _check(_own, _cols)
    for _w, _lane, _e in ((0, 0, 0), (1, 13, 2), (3, 31, 7), (2, 6, 15)):
        _row, _col = ACCUMULATOR.at(_w, _lane, _e)
        assert _own.at(_w, _lane, _e) == (_row, v8(_col, _cols)), "the keys of the columns"
        assert OPERAND_8.at(_w, _lane, _e) == _own.at(_w, _lane, v8_source(_e, _cols)), (
            "a result becomes an operand by rounding"
        )

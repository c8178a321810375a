"""Steps of single warps in the emitted text, worked out for every lane: what ldmatrix fetches, what copies touch."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.emit.c_integers import resolve
from tests.emit.hand import WG, ZERO, P, gemm, strides
from tests.emit.test_addresses import place
from wgdsl.emit import emit
from wgdsl.foundation.dtypes import BF16, F32
from wgdsl.program.expr import FALSE, TRUE, Affine, Expr
from wgdsl.roles import model as m
from wgdsl.roles.model import Axis, Buffer, Kernel, Slot, Step, Value
from wgdsl.targets.swizzle import SWIZZLES

SLOT = Slot(ring="R")
LANES = range(32)


def tile(name: str, rows: int, cols: int, swizzle: int, *, parts: int = 1, at: int = 0) -> Buffer:
    return Buffer(name=name, tensor="C", dtype=BF16, rows=rows, cols=cols, rows_index="i", cols_index="j", swizzle=swizzle,
                  ring="R", parts=parts, offset=at)  # fmt: skip


def kernel_of(*steps: Step, buffers: tuple[Buffer, ...], values: tuple[Value, ...] = (), groups: int = 1) -> Kernel:
    """One role of 4 warps, or of more, that runs the steps."""
    base = gemm()
    return replace(
        base, target="sm_80", threads=128 * groups, buffers=buffers, barriers=(), maps=(), values=values,
        tensors=tuple(replace(t, dtype=BF16) for t in base.tensors),
        roles=(m.Role(name="math", first=0, count=groups, registers=None, elected=False, steps=steps),),
        rings=(m.Ring(name="R", stages=1, buffers=tuple(b.name for b in buffers)),),
        params=(*(p for p in base.params if p.kind in ("dim", "scalar")), replace(strides("C", 2)[0], kind="pointer", name="C"),
                *strides("C", 2)),
    )  # fmt: skip


# Products.


def product(
    rows: int, n: int, k: int, a: tuple[str, int], b: tuple[str, int], zero: Expr = FALSE
) -> tuple[str, Buffer, Buffer]:
    """The text of a product with operands in shared memory, each by (major, swizzle), and their buffers. The left one is the
    second part of its buffer."""
    (a_major, a_swizzle), (b_major, b_swizzle) = a, b
    left = tile("As", *((rows, k) if a_major == "K" else (k, rows)), a_swizzle, parts=2)
    right = tile("Bs", *((n, k) if b_major == "K" else (k, n)), b_swizzle, at=left.total_bytes)
    step = m.Mma(
        acc="Acc", n=n, k=k, dtype=BF16, zero=zero,
        a=m.SmemOperand(buffer="As", part=WG, slot=SLOT, major=a_major),
        b=m.SmemOperand(buffer="Bs", part=ZERO, slot=SLOT, major=b_major),
    )  # fmt: skip
    acc = Value(name="Acc", role="math", kind="tile", dtype=F32, cols=n, rows=rows)
    return emit(kernel_of(step, buffers=(left, right), values=(acc,), groups=2)), left, right


def fetched(text: str, into: str) -> tuple[str, str]:
    """The instruction and the address of the fetch of these registers."""
    found = re.search(rf"(ptx::ldmatrix\w*)\({re.escape(into)},\s+([^;]*)\);", text)
    assert found is not None, into
    return found[1], found[2]


def address(text: str, into: str, **names: int) -> int:
    _, where = fetched(text, into)
    return resolve("address", f"{text}const int address = {where};\n", smem=0, wg=1, **names)


def element(major: str, outer: int, k: int) -> tuple[int, int]:
    """Line and column of a tile at a row of the left operand, or a column of the right one, and k."""
    return (outer, k) if major == "K" else (k, outer)


def along(major: str, lane: int) -> tuple[int, int]:
    """What a lane adds to the start of its 8 x 8 matrix: along M or N, and along K. A matrix' lines are those of the tile."""
    return (lane % 8, 0) if major == "K" else (0, lane % 8)


SWIZZLED = [
    (major, swizzle, panels)
    for major in ("K", "MN")
    for swizzle in (128, 64, 32, 0)
    for panels in (1, 2)
    if swizzle or panels > 1
]


@pytest.mark.parametrize("rows", [64, 128, 256])
@pytest.mark.parametrize("major, swizzle, panels", SWIZZLED)
def test_the_left_operand(major: str, swizzle: int, panels: int, rows: int):
    """Registers a0 to a3: rows 0-7 and 8-15 of the block, then the same 8 further along K (PTX ISA, m16n8k16)."""
    k = SWIZZLES[swizzle].span // 2 * panels if major == "K" else 32
    text, left, _ = product(rows, 16, k, (major, swizzle), ("K", 32 if k % 16 == 0 else 0))
    blocks = rows // 64
    for block in range(blocks):
        assert fetched(text, f"a[{block}]")[0] == ("ptx::ldmatrix" if major == "K" else "ptx::ldmatrix_t")
        for warp in range(4):
            for lane in LANES:
                for step in range(k // 16):
                    got = address(text, f"a[{block}]", k=step, thread=32 * warp + lane, lane=lane)
                    matrix = lane // 8
                    row, deep = along(major, lane)
                    row += 16 * blocks * warp + 16 * block + 8 * (matrix % 2)
                    deep += 16 * step + 8 * (matrix // 2)
                    assert got == left.stride + place(left, *element(major, row, deep))


@pytest.mark.parametrize("major, swizzle, panels", SWIZZLED)
def test_the_right_operand(major: str, swizzle: int, panels: int):
    """Registers b0 and b1 of 8 columns, 8 further along K, then those of the next 8 columns."""
    width = SWIZZLES[swizzle].span // 2 * panels
    n, k = (48, width) if major == "K" else (width, 48)
    text, left, right = product(64, n, k, ("K", 32), (major, swizzle))
    assert fetched(text, "b")[0] == ("ptx::ldmatrix" if major == "K" else "ptx::ldmatrix_t")
    for lane in LANES:
        for step in range(k // 16):
            for pair in range(n // 16):
                got = address(text, "b", k=step, pair=pair, thread=96 + lane, lane=lane)
                matrix = lane // 8
                col, deep = along(major, lane)
                col += 16 * pair + 8 * (matrix // 2)
                deep += 16 * step + 8 * (matrix % 2)
                assert got == left.total_bytes + place(right, *element(major, col, deep))


@pytest.mark.parametrize("rows", [64, 128, 256])
def test_registers_of_a_product(rows: int):
    """Of each block 4 accumulators for 8 columns, side by side; b0, b1 belong to the left 8 of a pair."""
    text, *_ = product(rows, 32, 32, ("K", 64), ("MN", 64))
    calls = re.findall(r"ptx::mma_m16n8k16_bf16\(&Acc\[(.*?)\], (.*?)\);", re.sub(r"\s+", " ", text))
    blocks = rows // 64
    assert len(calls) == 2 * blocks
    found = set()
    for at, operands in calls:
        *a, b0, b1 = operands.split(", ")
        block = int(a[0].split("[")[1].rstrip("]"))
        assert a == [f"a[{block}][{q}]" for q in range(4)]
        half = int(b0[2]) // 2
        assert (b0, b1) == (f"b[{2 * half}]", f"b[{2 * half + 1}]")
        for pair in range(2):
            start = resolve("at", f"const int at = {at};", pair=pair)
            assert start == 4 * (blocks * (2 * pair + half) + block)
            found.add(start)
    assert found == set(range(0, rows // 32 * 8, 4))


@pytest.mark.parametrize("rows", [64, 128, 256])
def test_an_operand_in_registers(rows: int):
    """It is laid out as the accumulator that it was rounded from: per 8 columns two rows of each block."""
    right = tile("Bs", 32, 16, 32)
    step = m.Mma(
        acc="Acc", a=m.RegOperand(value="P"), b=m.SmemOperand(buffer="Bs", part=ZERO, slot=SLOT, major="MN"), n=16, k=32,
        dtype=BF16, zero=FALSE,
    )  # fmt: skip
    values = (
        Value(name="Acc", role="math", kind="tile", dtype=F32, cols=16, rows=rows),
        Value(name="P", role="math", kind="operand", dtype=BF16, cols=32, rows=rows),
    )
    text = re.sub(r"\s+", " ", emit(kernel_of(step, buffers=(right,), values=values)))
    calls = re.findall(r"ptx::mma_m16n8k16_bf16\(&Acc\[.*?\], (.*?), b\[0\]", text)
    halves = rows // 32
    for block, a in enumerate(calls):
        for k in range(2):
            places = [resolve("at", f"const int at = {x};", k=k) for x in re.findall(r"P\[(.*?)\](?:,|$)", a)]
            assert places == [(2 * k + q // 2) * halves + 2 * block + q % 2 for q in range(4)]
    assert len(calls) == rows // 64


@pytest.mark.parametrize("zero, words", [(FALSE, ""), (TRUE, "Acc[at] = 0.0f;"), (Affine(poly=P("M") - 5), "if (M >= 5)")])
def test_what_the_accumulator_held(zero: Expr, words: str):
    """A product that overwrites begins from 0."""
    text, *_ = product(64, 16, 16, ("K", 32), ("K", 32), zero)
    assert (words in text) and ("= 0.0f;" in text) == bool(words)


# Copies.


def shared_out(text: str, threads: int, lines: int, cols: int) -> list[tuple[int, dict[str, int]]]:
    """(thread, what its loop binds) of every round of every thread."""
    found = re.search(r"for \(int k = (\w+); k < (\d+); (?:\+\+k|k \+= (\d+))\)", text)
    assert found is not None
    out = []
    for thread in range(threads):
        first = 0 if found[1] == "0" else thread
        rounds = range(first, int(found[2]), int(found[3] or 1))
        out += [(thread, {"k": k}) for k in rounds]
    return out


def covered(buffer: Buffer) -> set[int]:
    """The places of all chunks of a tile."""
    return {place(buffer, row, col) for row in range(buffer.rows) for col in range(0, buffer.cols, 8)}


TILES = [
    (64, 64, 128, 1), (128, 64, 128, 1), (128, 128, 128, 2), (96, 64, 128, 1), (64, 32, 64, 1), (64, 16, 32, 2), (32, 24, 0, 1),
    (48, 128, 128, 1), (80, 64, 128, 2), (16, 16, 32, 1), (16, 48, 32, 3),
]  # fmt: skip


def called(text: str, name: str) -> list[str]:
    """The arguments of the one call of a function in the kernel's text."""
    flat = re.sub(r"\s+", " ", text[text.index("__global__") :])
    start = flat.index(name + "(") + len(name) + 1
    out, depth, begin = [], 0, start
    for k in range(start, len(flat)):
        depth += (flat[k] == "(") - (flat[k] == ")")
        if depth < 0 or (depth == 0 and flat[k] == ","):
            out.append(flat[begin:k].strip())
            begin = k + 1
        if depth < 0:
            return out
    raise AssertionError(name)


NAMES = {"smem": 0, "C_stride0": 1000, "C_stride1": 1, "wg": 0}


def element_of(pointer: str, text: str, **names: int) -> int:
    """Which element of C a pointer is at. What is `down` from one is counted in bytes."""
    if pointer.startswith("from"):
        start = re.search(r"from = \((?:const )?char\*\)\((.*?)\);", text)
        down = re.search(r"const long long down = (\d+)LL \* C_stride0 \* 2;", text)
        assert start is not None and down is not None
        steps = names["k"] * int(down[1])
        return element_of(start[1], text, **names) + steps * NAMES["C_stride0"]
    inner = re.sub(r"^\((?:const )?char\*\)", "", pointer).strip()
    inner = inner.removeprefix("(").removesuffix(")") if inner.startswith("(") else inner
    return resolve("element", f"{text}const int element = {inner};", C_ptr=0, **names, **NAMES)


@pytest.mark.parametrize("rows, cols, swizzle, groups", TILES)
@pytest.mark.parametrize("there", [(1000, 1000), (20, 1000), (1000, 12), (21, 9), (0, 1000)])
def test_a_copy_in(rows: int, cols: int, swizzle: int, groups: int, there: tuple[int, int]):
    """Each chunk of the tile is copied once, from its own elements, as far as the tensor reaches. Beyond it there are zeros."""
    buffer = tile("Cs", rows, cols, swizzle)
    step = m.CopyAsync(
        buffer="Cs", part=ZERO, slot=SLOT, tensor="C", access=(P("i"), P("j")),
        rows=Axis(index="i", origin=P("M") - there[0], count=rows), cols=Axis(index="j", origin=P("N") - there[1], count=cols),
    )  # fmt: skip
    text = emit(kernel_of(step, buffers=(buffer,), groups=groups))
    to, pointer, nbytes = called(text, "ptx::cp_async")
    size = {"M": 2000, "N": 2000}
    seen: dict[int, tuple[int, int]] = {}
    for thread, bound in shared_out(text, 128 * groups, rows, cols):
        names = {**bound, "thread": thread % 128, "role_thread": thread, **size}
        where = resolve("where", f"{text}const int where = {to};", **names, **NAMES)
        count = resolve("count", f"{text}const int count = {nbytes};", **names, **NAMES)
        assert where not in seen
        seen[where] = element_of(pointer, text, **names), count
    assert seen.keys() == covered(buffer)
    for row in range(rows):
        for col in range(0, cols, 8):
            element, count = seen[place(buffer, row, col)]
            assert element == (2000 - there[0] + row) * 1000 + 2000 - there[1] + col
            assert count == (max(0, min(8, there[1] - col)) * 2 if row < there[0] else 0)


@pytest.mark.parametrize("rows, cols, swizzle, groups", [x for x in TILES if x[3] == 1])
@pytest.mark.parametrize("there", [(1000, 1000), (20, 16), (0, 8)])
def test_a_copy_out(rows: int, cols: int, swizzle: int, groups: int, there: tuple[int, int]):
    """Each chunk of the tile that lies inside of the tensor is stored once, to its own elements."""
    buffer = tile("Cs", rows, cols, swizzle, parts=2)
    step = m.CopyOut(
        buffer="Cs", part=WG, slot=SLOT, tensor="C", access=(P("i"), P("j")), wide=True,
        rows=Axis(index="i", origin=P("M") - there[0], count=rows), cols=Axis(index="j", origin=P("N") - there[1], count=cols),
    )  # fmt: skip
    text = emit(kernel_of(step, buffers=(buffer,), groups=2))
    pointer, _ = called(text, "ptx::store_global_16")
    (to,) = called(text, "ptx::load_shared_16")
    (inside,) = re.findall(r"if \(([^{;]*)\) ptx::store_global_16", re.sub(r"\s+", " ", text))
    seen: dict[int, int] = {}
    names = {**NAMES, "wg": 1}
    for thread, bound in shared_out(text, 128, rows, cols):
        at = {**bound, "thread": thread, "M": 2000, "N": 2000}
        where = resolve("where", f"{text}const int where = {to};", **at, **names)
        assert where not in seen
        if resolve("inside", f"{text}const int inside = {inside};", **at, **names):
            seen[where] = element_of(pointer, text, **at)
    wanted = {
        buffer.stride + place(buffer, row, col): (2000 - there[0] + row) * 1000 + 2000 - there[1] + col
        for row in range(min(rows, there[0]))
        for col in range(0, min(cols, there[1]), 8)
    }
    assert seen == wanted


@pytest.mark.parametrize("pending", [0, 3])
def test_waits_and_commits(pending: int):
    text = emit(kernel_of(m.CommitCopies(), m.WaitCopies(pending=pending), buffers=(tile("Cs", 16, 16, 32),)))
    kernel = text[text.index("__global__") :]
    assert re.findall(r"ptx::cp_async_(commit|wait)(<\d>)?\(\);", kernel) == [("commit", ""), ("wait", f"<{pending}>")]

"""Addresses of the emitted text, worked out for every thread: what stmatrix, pair stores and copies touch."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.emit.c_integers import resolve
from tests.emit.hand import WG, ZERO, P, gemm, strides
from wgdsl.emit import emit
from wgdsl.foundation.dtypes import BF16, F32, DType
from wgdsl.roles.model import Axis, Buffer, CopyOut, Kernel, Role, Slot, Step, StoreShared, Value
from wgdsl.targets.swizzle import SWIZZLES
from wgdsl.targets.wgmma import ACCUMULATOR

SLOT = Slot(ring="Cs")


def kernel_of(*steps: Step, cols: int, swizzle: int, dtype: DType) -> Kernel:
    """One role of 2 warpgroups that runs the steps on a 64 x cols tile a warpgroup."""
    base = gemm()
    buffer = Buffer(name="Cs", tensor="C", dtype=dtype, rows=64, cols=cols, rows_index="i", cols_index="j",
                    swizzle=swizzle, ring="Cs", parts=2)  # fmt: skip
    tensors = tuple(replace(t, dtype=dtype) for t in base.tensors)
    return replace(
        base, threads=256, roles=(Role(name="math", first=0, count=2, registers=None, elected=False, steps=steps),),
        buffers=(buffer,), barriers=(), maps=(), tensors=tensors,
        values=(Value(name="Acc", role="math", kind="tile", dtype=F32, cols=cols),),
        params=(*(p for p in base.params if p.kind in ("dim", "scalar")), replace(strides("C", 2)[0], kind="pointer", name="C"),
                *strides("C", 2)),
    )  # fmt: skip


def place(buffer: Buffer, row: int, col: int) -> int:
    """Where an element of the tile is stored, from the layout's definition."""
    panel, inner = divmod(col, buffer.panel_cols)
    span = SWIZZLES[buffer.swizzle].span
    offset = row * span + inner * buffer.dtype.nbytes
    return panel * buffer.panel_bytes + SWIZZLES[buffer.swizzle].physical(offset)


@pytest.mark.parametrize(("cols", "swizzle"), [(128, 128), (64, 128), (96, 64), (32, 64), (80, 32), (16, 32), (48, 0), (16, 0)])
def test_stmatrix(cols: int, swizzle: int):
    store = StoreShared(buffer="Cs", part=WG, slot=SLOT, src="Acc")
    kernel = kernel_of(store, cols=cols, swizzle=swizzle, dtype=BF16)
    text, buffer = emit(kernel), kernel.buffers[0]
    address = re.search(r"ptx::stmatrix\((.*), r\);", text)[1]
    text += f"const int address = {address};\n"
    for thread in (0, 5, 9, 17, 31, 32, 64 + 22, 127):
        for pair in range(cols // 16):
            got = resolve("address", text, thread=thread, lane=thread % 32, wg=1, smem=0, pair=pair)
            # lane l of x4 addresses row l % 8 of matrix l / 8: rows 0-7, 8-15, then the same rows 8 columns on
            row, col = thread // 32 * 16 + thread % 32 % 16, 16 * pair + thread % 32 // 16 * 8
            assert got == buffer.tile_bytes + place(buffer, row, col)


@pytest.mark.parametrize(
    ("cols", "swizzle", "dtype"), [(8, 0, BF16), (24, 0, BF16), (64, 128, F32), (32, 128, F32), (16, 64, F32)]
)
def test_pairs(cols: int, swizzle: int, dtype: DType):
    store = StoreShared(buffer="Cs", part=ZERO, slot=SLOT, src="Acc")
    kernel = kernel_of(store, cols=cols, swizzle=swizzle, dtype=dtype)
    text, buffer = emit(kernel), kernel.buffers[0]
    address = re.search(r"ptx::store_shared_\w+\((.*?),\s+(?:Acc|ptx::pack)", text)[1]
    text += f"const int address = {address};\n"
    for thread in (0, 3, 21, 63, 127):
        for pair in range(cols // 4):
            got = resolve("address", text, thread=thread, lane=thread % 32, smem=0, pair=pair)
            row, col = ACCUMULATOR.at(thread // 32, thread % 32, 2 * pair)
            assert got == place(buffer, row, col)


@pytest.mark.parametrize(("cols", "swizzle", "dtype"), [(128, 128, BF16), (80, 32, BF16), (24, 0, BF16), (64, 128, F32)])
def test_copy_out(cols: int, swizzle: int, dtype: DType):
    rows, columns = Axis(index="i", origin=P("M") - 64, count=64), Axis(index="j", origin=ZERO, count=cols)
    copy = CopyOut(buffer="Cs", part=ZERO, slot=SLOT, tensor="C", access=(P("i"), P("j")), rows=rows, cols=columns)
    kernel = kernel_of(copy, cols=cols, swizzle=swizzle, dtype=dtype)
    text, buffer = emit(kernel), kernel.buffers[0]
    target = re.search(r" C_ptr\[(.*?)\] = ", text)[1]
    text += f"const int target = {target};\n"
    names = {"smem": 0, "M": 100, "C_stride0": 1000, "C_stride1": 3}
    for at in (0, 1, cols - 1, cols, 17 * cols + 5, 64 * cols - 1):
        row, col = divmod(at, cols)
        assert resolve("from", text, at=at, **names) == place(buffer, row, col)
        assert resolve("target", text, at=at, **names) == (100 - 64 + row) * 1000 + col * 3

"""What passes between the kernels of one call: global memory that no caller sees.

In: the temporary tensors of a role program and the dims of a call.  Out: `Passing`, where each lies in one block of memory, and
the block itself. There is one block a device and stream, as large as the largest call has needed: what a stream runs comes one
after the other, so the next call may write where the last one has. Rows are padded to what the copy engine takes.

A block that grows is another one, at least twice as large; the old one stays, since a CUDA graph that was captured before may
still write there. Such a graph has the block of the stream on which it was captured, wherever it runs, as long as the kernel
object lives.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from ..roles.model import TensorArg
from ..targets.tma import TMA
from .arrays import ArrayView, contiguous
from .bind import Bound
from .cuda import checked, driver, on_device, relaxed_capture

ALIGN = 256  # of each tensor in the block
PER_THREAD = 2  # the handle that stands for another default stream in each thread


@dataclass
class Block:
    """Memory of one stream. `lock`: held while a call puts its kernels into the stream, so that no other comes in between."""

    pointer: int = 0
    nbytes: int = 0
    outgrown: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Blocks:
    """The blocks of one kernel object; they are freed with it."""

    def __init__(self):
        self._blocks: dict[tuple[int, int, int], Block] = {}
        self._lock = threading.Lock()
        weakref.finalize(self, _free_all, self._blocks).atexit = False

    @contextmanager
    def held(self, device: int, stream: int, nbytes: int) -> Iterator[int]:
        """The address of at least `nbytes` for one call. The device's context must be current."""
        with self._lock:
            thread = threading.get_ident() if stream == PER_THREAD else 0
            block = self._blocks.setdefault((device, stream, thread), Block())
        with block.lock:
            if block.nbytes < nbytes:
                _grow(block, nbytes)
            yield block.pointer


def _grow(block: Block, nbytes: int) -> None:
    """A new block beside the old one."""
    nbytes = max(nbytes, 2 * block.nbytes)
    with relaxed_capture():
        pointer = int(checked(driver().cuMemAlloc(nbytes), "cuMemAlloc", f"{nbytes} bytes that pass between kernels"))
    if block.pointer:
        block.outgrown.append(block.pointer)
    block.pointer, block.nbytes = pointer, nbytes


def _free_all(blocks: dict[tuple[int, int, int], Block]) -> None:
    for (device, *_), block in blocks.items():
        for pointer in (*block.outgrown, *([block.pointer] if block.pointer else ())):
            with on_device(device), relaxed_capture():  # a kernel may end while another one's call is captured
                checked(driver().cuMemFree(pointer), "cuMemFree")


class Passing:
    """Where the temporary tensors of one call lie in their block. `views`: by name, with the offset as the address."""

    def __init__(self, args: Sequence[TensorArg], bound: Bound, device: int, blocks: Blocks):
        self.device, self._blocks = device, blocks
        self.views: dict[str, ArrayView] = {}
        at = 0
        for t in args:
            shape = tuple(extent.evaluate(bound.dims) for extent in t.shape)
            rows = padded(shape, t.dtype.nbytes)
            self.views[t.name] = ArrayView(at, shape, contiguous(rows), t.dtype.name, device, "")
            at += -(-prod(rows) * t.dtype.nbytes // ALIGN) * ALIGN
        self.nbytes = max(at, ALIGN)

    @contextmanager
    def held(self, stream: int) -> Iterator[tuple[int, ...]]:
        """The addresses of the tensors for one call on a stream."""
        with self._blocks.held(self.device, stream, self.nbytes) as base:
            yield tuple(base + v.pointer for v in self.views.values())


def padded(shape: tuple[int, ...], nbytes: int) -> tuple[int, ...]:
    """The shape with rows of a multiple of 16 bytes."""
    if len(shape) < 2:
        return shape
    unit = TMA.stride_multiple // nbytes
    return (*shape[:-1], -(-shape[-1] // unit) * unit)

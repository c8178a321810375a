"""Global memory: tensors, what a tensor map's box covers, and who has written which element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..foundation.dtypes import DType
from ..roles.model import TensorArg, TensorMap
from .functions import REDUCTIONS
from .integers import Integer, value_of

NOBODY = -1
MISSING_INT = np.iinfo(np.int32).min  # what an unwritten integer shows; floats show NaN


def rounded(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Values of a type, held as float32 (integers as int64: a number saturates, and NaN becomes 0). 8-bit floats saturate;
    what is of the type already stays as it is."""
    x = np.asarray(x)
    if dtype.kind == "int" and x.dtype.kind == "f":
        most = 2 ** (dtype.bits - 1)
        x = np.where(np.isnan(x), 0, np.clip(x.astype(np.float64), -most, most - 1))
    if dtype.kind != "float":
        return x.astype(np.int64)
    if dtype.largest is not None and x.dtype != dtype.numpy():
        x = np.clip(x.astype(np.float64), -dtype.largest, dtype.largest)
    return x.astype(np.float32) if dtype.name == "f32" else x.astype(dtype.numpy()).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Chosen:
    """Elements of a tensor: `which` of an array of values go to which `place` of the flat array."""

    which: np.ndarray
    place: np.ndarray


@dataclass(kw_only=True)
class Tensor:
    """One tensor: float32 or int64 values that its dtype can hold; `writers` holds ordinals into a kernel's log of stores."""

    name: str
    dtype: DType
    data: np.ndarray
    writers: np.ndarray | None = None
    added: np.ndarray | None = None  # whether the last writer added

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    def stored(self) -> np.ndarray:
        """The tensor in its own element type."""
        return self.data.astype(self.dtype.numpy())

    def load(self, access: Sequence[Integer]) -> np.ndarray:
        """Elements at broadcasting index arrays; 0 outside the shape."""
        return np.asarray(self.elements(access), dtype=np.float32)

    def elements(self, access: Sequence[Integer]) -> np.ndarray:
        """The same as they are stored: integers exactly."""
        inside, at = self._place(access)
        return np.where(inside, self.data.reshape(-1)[at], 0) if self.data.size else np.zeros(np.shape(inside))

    def element(self, *place: int) -> int:
        """An integer; 0 outside the shape."""
        inside, at = self._place(place)
        return int(self.data.reshape(-1)[at]) if inside else 0

    def _place(self, access: Sequence[Integer]) -> tuple[np.ndarray, np.ndarray]:
        """Which of the elements lie inside the shape, and their places in the flat array (of the others: some place)."""
        inside, place = np.ones((), dtype=bool), np.zeros((), dtype=np.int64)
        for i, n in zip(access, self.shape, strict=True):
            inside = inside & ((np.asarray(i) >= 0) & (np.asarray(i) < n))
            place = place * n + np.minimum(np.maximum(i, 0), max(n - 1, 0))
        return inside, place

    def choose(self, access: Sequence[Integer], where: np.ndarray) -> tuple[Chosen | None, tuple[int, ...] | None]:
        """The elements where asked and inside the shape; and one that is asked for and isn't inside, if there is one."""
        inside, place = self._place(access)
        missed = where & ~inside
        outside = None
        if missed.any():
            k = tuple(int(x[0]) for x in np.nonzero(missed))
            outside = tuple(int(np.broadcast_to(i, missed.shape)[k]) for i in access)
        where = where & inside
        if not where.any():
            return None, outside
        which = np.broadcast_to(where, np.broadcast_shapes(where.shape, place.shape))
        return Chosen(which, np.broadcast_to(place, which.shape)[which]), outside

    def claim(self, chosen: Chosen | None, writer: int, add: bool) -> tuple[tuple[int, ...], int] | None:
        """Note who writes them (or adds to what is there). Returns an element that was written before, and by whom; several may
        add to one."""
        if chosen is None:
            return None
        assert self.writers is not None and self.added is not None
        writers, added = self.writers.reshape(-1), self.added.reshape(-1)
        before = writers[chosen.place]
        clash = (before != NOBODY) & ~(added[chosen.place] & add)
        if clash.any():
            k = int(np.argmax(clash))
            return tuple(int(i) for i in np.unravel_index(chosen.place[k], self.shape)), int(before[k])
        writers[chosen.place], added[chosen.place] = writer, add
        return None

    def put(self, chosen: Chosen | None, values: np.ndarray, add: bool, by: str = "sum") -> None:
        """Write them, or bring them together with what is there."""
        if chosen is None:
            return
        data, new = self.data.reshape(-1), np.broadcast_to(values, chosen.which.shape)[chosen.which]
        data[chosen.place] = rounded(REDUCTIONS[by](data[chosen.place], new) if add else new, self.dtype)

    def forget_writers(self) -> None:
        """A new kernel begins: what earlier ones wrote may be written again."""
        self.writers = np.full(self.shape, NOBODY, dtype=np.int64)
        self.added = np.zeros(self.shape, dtype=bool)


@dataclass(frozen=True, eq=False)
class Box:
    """Where the elements of one bulk copy lie: index arrays per tensor axis over the box (slowest dimension first), and
    which of them are in bounds."""

    access: tuple[Integer, ...]
    inside: np.ndarray
    count: int


def box_of(m: TensorMap, rank: int, coords: Sequence[int], extents: Sequence[int]) -> Box:
    """A map's box at coordinates; those and the extents of its dimensions are fastest first."""
    access: list[Integer] = [0] * rank
    shape = tuple(reversed(m.box))
    inside = np.ones(shape, dtype=bool)
    for k, (dim, at, n, extent) in enumerate(zip(m.dims, coords, m.box, extents, strict=True)):
        along = (at + np.arange(n)).reshape((n,) + (1,) * k)
        inside &= (along >= 0) & (along < extent)
        access[dim.axis] = access[dim.axis] + along * dim.factor
    return Box(tuple(access), inside, int(np.prod(m.box)))


def gather(t: Tensor, box: Box) -> np.ndarray:
    """What a bulk load brings: zeros outside."""
    return np.where(box.inside, t.load(box.access), np.float32(0))


def shape_of(arg: TensorArg, dims: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(int(value_of(p, dims)) for p in arg.shape)


def make_tensor(arg: TensorArg, shape: tuple[int, ...], given: np.ndarray | None) -> Tensor:
    """A tensor from the caller's array, or an output that nothing has been written to. ValueError for a wrong shape."""
    if given is not None:
        if given.shape != shape:
            raise ValueError(f"{arg.name} has shape {given.shape}, expected {shape}")
        return Tensor(name=arg.name, dtype=arg.dtype, data=np.asarray(rounded(given, arg.dtype), order="C"))
    floating = arg.dtype.kind == "float"
    data = np.full(shape, np.nan if floating else MISSING_INT, dtype=np.float32 if floating else np.int64)
    return Tensor(name=arg.name, dtype=arg.dtype, data=data)

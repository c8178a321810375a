"""Global memory: tensors, what a tensor map's box covers, and who has written which element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..foundation.dtypes import DType
from ..roles.model import TensorArg, TensorMap
from .integers import Integer, value_of

NOBODY = -1
MISSING_INT = np.iinfo(np.int32).min  # what an unwritten integer shows; floats show NaN


def rounded(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Values of a type, held as float32 (integers as int64)."""
    if dtype.kind != "float":
        return np.asarray(x).astype(np.int64)
    x = np.asarray(x)
    return x.astype(np.float32) if dtype.name == "f32" else x.astype(dtype.numpy()).astype(np.float32)


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
        inside, at = self._clip(access)
        values = np.where(inside, self.data[at], 0) if self.data.size else np.zeros(np.shape(inside))
        return np.asarray(values, dtype=np.float32)

    def _clip(self, access: Sequence[Integer]) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        inside = np.ones((), dtype=bool)
        for i, n in zip(access, self.shape, strict=True):
            inside = inside & ((np.asarray(i) >= 0) & (np.asarray(i) < n))
        return inside, tuple(np.minimum(np.maximum(i, 0), max(n - 1, 0)) for i, n in zip(access, self.shape, strict=True))

    def outside(self, access: Sequence[Integer], where: np.ndarray) -> tuple[int, ...] | None:
        """An element that is addressed outside the shape, if there is one."""
        inside, _ = self._clip(access)
        return self._first(access, where & ~inside)

    def store(
        self, access: Sequence[Integer], values: np.ndarray, where: np.ndarray, writer: int, add: bool = False
    ) -> tuple[tuple[int, ...], int] | None:
        """Write (or add to what is there) where asked and inside the shape. Returns an element that was written before, and by
        whom; several may add to one."""
        inside, at = self._clip(access)
        where = where & inside
        if not where.any():
            return None
        assert self.writers is not None and self.added is not None
        full = np.broadcast_shapes(where.shape, *(np.shape(a) for a in at))
        chosen = np.broadcast_to(where, full)
        index = tuple(np.broadcast_to(a, full)[chosen] for a in at)
        before = self.writers[index]
        clash = (before != NOBODY) & ~(self.added[index] & add)
        if clash.any():
            k = int(np.argmax(clash))
            return tuple(int(i[k]) for i in index), int(before[k])
        self.writers[index], self.added[index] = writer, add
        new = np.broadcast_to(values, full)[chosen]
        self.data[index] = rounded(self.data[index] + new if add else new, self.dtype)
        return None

    def forget_writers(self) -> None:
        """A new kernel begins: what earlier ones wrote may be written again."""
        self.writers = np.full(self.shape, NOBODY, dtype=np.int64)
        self.added = np.zeros(self.shape, dtype=bool)

    @staticmethod
    def _first(access: Sequence[Integer], where: np.ndarray) -> tuple[int, ...] | None:
        if not where.any():
            return None
        k = tuple(int(x[0]) for x in np.nonzero(where))
        return tuple(int(np.broadcast_to(a, where.shape)[k]) for a in access)


@dataclass(frozen=True)
class Box:
    """Where the elements of one bulk copy lie: index arrays per tensor axis over the box (slowest dimension first), and
    which of them are in bounds."""

    access: tuple[Integer, ...]
    inside: np.ndarray
    count: int = field(compare=False)


def box_of(m: TensorMap, rank: int, coords: Sequence[int], dims: Mapping[str, int]) -> Box:
    """A map's box at coordinates (fastest dimension first)."""
    access: list[Integer] = [0] * rank
    shape = tuple(reversed(m.box))
    inside = np.ones(shape, dtype=bool)
    for k, (dim, at, n) in enumerate(zip(m.dims, coords, m.box, strict=True)):
        along = (at + np.arange(n)).reshape((n,) + (1,) * k)
        inside &= (along >= 0) & (along < value_of(dim.extent, dims))
        access[dim.axis] = access[dim.axis] + along * dim.factor
    return Box(tuple(access), inside, int(np.prod(m.box)))


def gather(t: Tensor, box: Box) -> np.ndarray:
    """What a bulk load brings: zeros outside."""
    return np.where(box.inside, t.load(box.access), np.float32(0))


def make_tensor(arg: TensorArg, dims: Mapping[str, int], given: np.ndarray | None) -> Tensor:
    """An input from the caller's array, or an output that nothing has been written to. ValueError for a wrong shape."""
    shape = tuple(int(value_of(p, dims)) for p in arg.shape)
    if given is not None:
        if given.shape != shape:
            raise ValueError(f"{arg.name} has shape {given.shape}, expected {shape}")
        return Tensor(name=arg.name, dtype=arg.dtype, data=rounded(given, arg.dtype))
    floating = arg.dtype.kind == "float"
    data = np.full(shape, np.nan if floating else MISSING_INT, dtype=np.float32 if floating else np.int64)
    return Tensor(name=arg.name, dtype=arg.dtype, data=data)

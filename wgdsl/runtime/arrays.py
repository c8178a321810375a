"""Arrays of every framework as one kind of view.

In: a torch, CuPy, JAX (DLPack) or NumPy array.  Out: an `ArrayView`, strides in elements. No framework is imported here: an
array of one can only exist if the caller has imported it.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, NamedTuple

from ..diagnostics.model import WgError
from ..diagnostics.runtime import NeedsGrad, NotAnArray
from ..foundation.dtypes import DTYPES, DType


class ArrayView(NamedTuple):
    """Where the elements lie. `device` is a CUDA ordinal, or -1 on the host; `strides` count elements; `dtype` is the name."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: int
    framework: str
    readonly: bool = False

    @property
    def place(self) -> str:
        return f"cuda:{self.device}" if self.device >= 0 else "cpu"


_OTHERS = {"float64": "f64", "uint8": "u8", "int8": "i8", "int16": "i16", "complex64": "c64", "complex128": "c128"}
_NAMES = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "int32": "i32",
    "int64": "i64",
    "bool": "bool",
    **_OTHERS,
}


def dtype_name(framework_name: str) -> str:
    """Our name of a framework's element type: `torch.bfloat16` and `bfloat16` are bf16. Unknown ones keep theirs."""
    bare = framework_name.rpartition(".")[2]
    return _NAMES.get(bare, bare)


@cache
def torch_dtype_name(dtype: Any) -> str:
    """Our name of a torch dtype."""
    return dtype_name(str(dtype))


def view(name: str, obj: Any) -> ArrayView:
    """The view of the array given for argument `name`. Raises WgError (WG06xx) if it can't be read as one."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(obj, torch.Tensor):
        return _torch(name, obj, torch)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(obj, numpy.ndarray):
        return _numpy(name, obj)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(obj, cupy.ndarray):
        return _cupy(name, obj)
    if hasattr(obj, "__dlpack__"):
        return _dlpack(name, obj)
    raise WgError(NotAnArray(name=name, got=f"of type {type(obj).__name__}"))


def _torch(name: str, t: Any, torch: Any) -> ArrayView:
    if t.layout is not torch.strided:
        raise WgError(NotAnArray(name=name, got=f"a tensor of layout {t.layout}"))
    if t.requires_grad and torch.is_grad_enabled():
        raise WgError(NeedsGrad(name=name))
    where = t.get_device() if t.is_cuda else -1
    if where < 0 and t.device.type != "cpu":
        raise WgError(NotAnArray(name=name, got=f"a tensor on device {t.device}"))
    if t.is_neg():
        raise WgError(
            NotAnArray(name=name, got="part of complex numbers, its sign still to be applied (`.resolve_neg()` does it)")
        )
    try:
        return ArrayView(t.data_ptr(), tuple(t.shape), t.stride(), torch_dtype_name(t.dtype), where, "torch")
    except RuntimeError as e:  # nested tensors, and what vmap and grad pass on
        raise WgError(NotAnArray(name=name, got="a tensor without memory of its own")) from e


def _numpy(name: str, a: Any) -> ArrayView:
    if a.dtype.hasobject or a.dtype.names:
        raise WgError(NotAnArray(name=name, got=f"an array of {a.dtype}"))
    strides = _elements(name, a)
    pointer = a.__array_interface__["data"][0]
    return ArrayView(pointer, a.shape, strides, dtype_name(a.dtype.name), -1, "numpy", not a.flags.writeable)


def _cupy(name: str, a: Any) -> ArrayView:
    strides = _elements(name, a)
    return ArrayView(a.data.ptr, a.shape, strides, dtype_name(a.dtype.name), a.device.id, "cupy")


def _elements(name: str, a: Any) -> tuple[int, ...]:
    for axis, stride in enumerate(a.strides if a.size else ()):
        if stride % a.itemsize:
            raise WgError(NotAnArray(name=name, got=f"an array whose stride along axis {axis} splits elements"))
    return tuple(s // a.itemsize for s in a.strides)


HOSTS, CUDA = (1, 3), (2, 13)  # DLDeviceType: plain and pinned host memory; CUDA, plain and managed


def _dlpack(name: str, obj: Any) -> ArrayView:
    from cuda.core.utils import StridedMemoryView

    kind, ordinal = (int(n) for n in obj.__dlpack_device__())
    if kind not in (*HOSTS, *CUDA):
        raise WgError(NotAnArray(name=name, got=f"an array on a device of kind {kind}"))
    try:
        seen = StridedMemoryView.from_dlpack(obj, stream_ptr=-1 if kind in HOSTS else 1)  # 1: the default stream waits for it
    except (BufferError, TypeError, ValueError, RuntimeError) as e:
        raise WgError(NotAnArray(name=name, got=f"an object whose DLPack export fails ({e})")) from e
    shape = tuple(seen.shape)
    strides = tuple(seen.strides) if seen.strides else contiguous(shape)
    framework = "jax" if type(obj).__module__.startswith("jax") else "dlpack"
    element = dtype_name(str(obj.dtype if hasattr(obj, "dtype") else seen.dtype))
    return ArrayView(seen.ptr, shape, strides, element, -1 if kind in HOSTS else ordinal, framework, bool(seen.readonly))


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a dense array with the last axis fastest."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def to_numpy(name: str, obj: Any) -> Any:
    """The elements as a NumPy array on the host (no copy if they are there): what the simulator takes."""
    import numpy as np

    if isinstance(obj, np.ndarray):
        return obj
    v = view(name, obj)
    if v.dtype not in DTYPES:
        raise WgError(NotAnArray(name=name, got=f"an array of {v.dtype}"))
    if v.framework == "torch":
        return _torch_to_numpy(obj, DTYPES[v.dtype])
    if v.framework == "cupy":
        return sys.modules["cupy"].asnumpy(obj)
    return np.asarray(obj)


def _torch_to_numpy(t: Any, dtype: DType) -> Any:
    torch = sys.modules["torch"]
    t = t.detach().cpu()
    if dtype.name in ("bf16", "e4m3", "e5m2"):  # NumPy lacks them, torch can't export them: move the bits
        bits = torch.int16 if dtype.nbytes == 2 else torch.uint8
        return t.contiguous().view(bits).numpy().view(dtype.numpy())
    return t.numpy()

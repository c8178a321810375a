"""Outputs of a call, made as the inputs are.

In: framework, device, shape, dtype.  Out: an uninitialised array of that framework on that device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from ..foundation.dtypes import DType
from .arrays import contiguous

_TORCH = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
_TORCH |= {"i32": "int32", "i64": "int64", "bool": "bool"}


def empty(framework: str, device: int, shape: tuple[int, ...], dtype: DType) -> Any:
    """An array to write into. `device` is a CUDA ordinal, or -1 for the host."""
    if framework == "torch":
        return torch_empty(device, shape, dtype)()
    if framework == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(device):
            return cupy.empty(shape, dtype.numpy())
    if framework == "jax" and device >= 0:
        return _jax(device, shape, dtype)
    import numpy as np

    return np.empty(shape, dtype.numpy())


def torch_empty(device: int, shape: tuple[int, ...], dtype: DType) -> Callable[[], Any]:
    """What makes such tensors: for a call that comes again, all is looked up beforehand."""
    torch = sys.modules["torch"]
    where = torch.device("cuda", device) if device >= 0 else torch.device("cpu")
    return partial(torch.empty_strided, shape, contiguous(shape), dtype=getattr(torch, _TORCH[dtype.name]), device=where)


def torch_empty_here(shape: tuple[int, ...], dtype: DType) -> Callable[[], Any] | None:
    """What makes such tensors on the current device, in a third of the time; None if this torch can't. It isn't public: torch
    made it for the code that its compiler writes. Whoever uses it looks where the tensor has come to lie."""
    torch = sys.modules["torch"]
    try:
        make = torch._C._dynamo.guards._empty_strided_cuda
    except AttributeError:
        return None
    return partial(make, shape, contiguous(shape), getattr(torch, _TORCH[dtype.name]))


def _jax(device: int, shape: tuple[int, ...], dtype: DType) -> Any:
    """JAX arrays don't change; this one is written before anybody has seen it."""
    jax = sys.modules["jax"]
    where = next(d for d in jax.devices() if d.platform in ("gpu", "cuda") and d.id == device)
    return jax.device_put(jax.numpy.zeros(shape, dtype.numpy()), where).block_until_ready()

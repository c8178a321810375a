"""The caller's current stream, asked of the framework whose arrays the call uses."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from . import cuda
from .remembered import Remembered

STREAMS = 1024  # whose objects are kept


def current_stream(framework: str, device: int) -> int:
    """The handle of the current stream on a device; 0 is the default stream."""
    if framework == "torch":
        return torch_stream()(device)
    if framework == "cupy":
        cuda = sys.modules["cupy"].cuda
        with cuda.Device(device):  # CuPy asks for the one of the current device
            return cuda.get_current_stream().ptr
    return 0


@cache
def torch_stream() -> Callable[[int], int]:
    """What gives torch's current stream on a device: the quick way inside torch where there is one."""
    torch = sys.modules["torch"]
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return quick or (lambda device: torch.cuda.current_stream(device).cuda_stream)


def stream_of(handle: int) -> Any:
    """The driver's object for the handle of a stream: a launch takes it faster than a number."""
    return cuda.driver().CUstream(handle)


HANDLES = Remembered(stream_of, STREAMS)

"""The caller's current stream, asked of the framework whose arrays the call uses."""

from __future__ import annotations

import sys


def current_stream(framework: str, device: int) -> int:
    """The handle of the current stream on a device; 0 is the default stream."""
    if framework == "torch":
        return sys.modules["torch"].cuda.current_stream(device).cuda_stream
    if framework == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream().ptr
    return 0

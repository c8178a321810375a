"""The SM's clock and the power of a GPU, as NVML tells them.

In: torch's name of the device (its UUID).  Out: readings; None where NVML isn't there, and why.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

LIBRARY = "libnvidia-ml.so.1"
SM = 1  # NVML_CLOCK_SM


@dataclass(frozen=True, kw_only=True)
class Gauge:
    """mhz, watts: of this moment; NVML's power is a mean over up to a second."""

    mhz: Callable[[], float | None]
    watts: Callable[[], float | None]


def gauge(uuid: str) -> Gauge | str:
    """The gauge of a device; a text that says why there is none."""
    try:
        nvml = ctypes.CDLL(LIBRARY)
    except OSError:
        return f"no {LIBRARY}"
    handle = ctypes.c_void_p()
    if code := nvml.nvmlInit_v2():
        return f"nvmlInit_v2: error {code}"
    name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
    if code := nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle)):
        return f"nvmlDeviceGetHandleByUUID: error {code}"

    def read(function: Callable[..., int], *more: int) -> float | None:
        value = ctypes.c_uint()
        return None if function(handle, *more, ctypes.byref(value)) else float(value.value)

    def watts() -> float | None:
        milliwatts = read(nvml.nvmlDeviceGetPowerUsage)
        return None if milliwatts is None else milliwatts / 1000

    return Gauge(mhz=lambda: read(nvml.nvmlDeviceGetClockInfo, SM), watts=watts)

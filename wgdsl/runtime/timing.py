"""How long a launch takes: CUDA events around each of many launches on arrays that stay on the device.

In: a kernel and host inputs.  Out: seconds, one for each launch, after some that warm up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .cuda import checked, current_device, driver, on_device
from .staging import staged

if TYPE_CHECKING:
    from .kernel import Kernel

WARM = 5


def time_kernel(kernel: Kernel, inputs: Mapping[str, Any], dims: Mapping[str, int], repeats: int) -> list[float]:
    """Seconds of each launch on the current device. Launches of several kernels count together."""
    d, device = driver(), current_device()
    given = kernel.interface.sort((), {**inputs, **dims}, None)
    outputs = kernel.host_outputs(given)
    with on_device(device), staged(device, inputs, outputs) as views:
        launches = kernel.launches(given, views)
        events = [checked(d.cuEventCreate(0), "cuEventCreate") for _ in range(2)]
        try:
            return [_once(launches, events) for _ in range(WARM + repeats)][WARM:]
        finally:
            for event in events:
                checked(d.cuEventDestroy(event), "cuEventDestroy")


def _once(launches: tuple[Any, ...], events: list[Any]) -> float:
    d = driver()
    start, stop = events
    checked(d.cuEventRecord(start, 0), "cuEventRecord")
    for launch in launches:
        launch.run(0)
    checked(d.cuEventRecord(stop, 0), "cuEventRecord")
    checked(d.cuEventSynchronize(stop), "cuEventSynchronize")
    return checked(d.cuEventElapsedTime(start, stop), "cuEventElapsedTime") / 1000

"""How long a launch takes: CUDA events around each of many launches on arrays that stay on the device.

In: a kernel and host inputs, or launches.  Out: seconds, one for each launch, after some that warm up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .cuda import checked, current_device, driver, on_device
from .staging import staged

if TYPE_CHECKING:
    from .kernel import Kernel

WARM = 5
FLUSH = 256 << 20  # bytes written to empty an L2 cache; the largest, of an H200, holds 50 MB


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


def cold_times(launches: Sequence[Any], scratch: int, count: int) -> list[float]:
    """Seconds of each of so many runs of the launches, after one that warms up, each with an L2 cache that holds nothing of the
    arrays. scratch: the address of `FLUSH` bytes, whose writing also keeps the device busy while the host is behind it. The
    device's context must be current."""
    d = driver()
    events = [checked(d.cuEventCreate(0), "cuEventCreate") for _ in range(2 * count)]
    try:
        for launch in launches:
            launch.run(0)
        for start, stop in zip(events[::2], events[1::2], strict=True):
            checked(d.cuMemsetD8Async(scratch, 0, FLUSH, 0), "cuMemsetD8Async")
            checked(d.cuEventRecord(start, 0), "cuEventRecord")
            for launch in launches:
                launch.run(0)
            checked(d.cuEventRecord(stop, 0), "cuEventRecord")
        checked(d.cuCtxSynchronize(), "cuCtxSynchronize")
        pairs = zip(events[::2], events[1::2], strict=True)
        return [checked(d.cuEventElapsedTime(*pair), "cuEventElapsedTime") / 1000 for pair in pairs]
    finally:
        for event in events:
            d.cuEventDestroy(event)  # after a fault nothing can be destroyed, and the fault is what counts

"""NumPy arrays on a machine with a GPU: copied in, and the results copied out.

In: host arrays by name.  Out: device views of dense copies, freed at the end of the `with`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .arrays import ArrayView, contiguous, dtype_name
from .cuda import checked, driver


class Stage:
    """Device memory for some host arrays. The device's context must be current."""

    def __init__(self, device: int):
        self.device = device
        self._memory: list[int] = []

    def put(self, array: Any, copy: bool) -> ArrayView:
        """A dense device copy; without `copy`, memory of that size only."""
        import numpy as np

        d, count = driver(), array.size * array.itemsize
        pointer = 0
        if count:
            pointer = int(checked(d.cuMemAlloc(count), "cuMemAlloc", f"{count} bytes for a host array"))
            self._memory.append(pointer)
        if copy and count:
            dense = np.ascontiguousarray(array)
            checked(d.cuMemcpyHtoD(pointer, dense.ctypes.data, count), "cuMemcpyHtoD")
        return ArrayView(pointer, array.shape, contiguous(array.shape), dtype_name(array.dtype.name), self.device, "numpy")

    def get(self, view: ArrayView, array: Any) -> None:
        """Copy a device result into the host array, after all work on the device."""
        import numpy as np

        if not view.pointer:
            return
        d, dense = driver(), np.empty(view.shape, array.dtype)
        checked(d.cuMemcpyDtoH(dense.ctypes.data, view.pointer, dense.nbytes), "cuMemcpyDtoH")
        array[...] = dense

    def close(self) -> None:
        d, memory = driver(), self._memory
        self._memory = []
        for pointer in memory:
            checked(d.cuMemFree(pointer), "cuMemFree")


@contextmanager
def staged(device: int, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Iterator[dict[str, ArrayView]]:
    """Device views of host inputs and outputs; outputs are copied back at the end unless something failed."""
    stage = Stage(device)
    try:
        views = {name: stage.put(a, copy=True) for name, a in inputs.items()}
        # Elements that the program leaves alone keep what they hold.
        results = {name: stage.put(a, copy=True) for name, a in outputs.items()}
        yield {**views, **results}
        checked(driver().cuCtxSynchronize(), "cuCtxSynchronize")
        for name, view in results.items():
            stage.get(view, outputs[name])
    finally:
        stage.close()

"""What a kernel that notes the clock has noted: a launch of it, and the arrays of its modules that hold the notes.

In: a kernel whose texts were made for that, host inputs, and the names of the arrays.  Out: the notes of each of its kernels,
by name. The launch that they are of is the second one: instructions and inputs are in the caches then, as far as they fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import to_numpy
from .cuda import checked, current_device, driver, on_device
from .staging import staged

if TYPE_CHECKING:
    from .kernel import Kernel

NBYTES = 8  # of a note


def noted(
    kernel: Kernel, inputs: Mapping[str, Any], dims: Mapping[str, int], names: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """Notes by the names of kernels, flat, unsigned 64-bit. inputs: host arrays, and scalars. names: of each kernel's array in
    its text."""
    device = current_device()
    given = kernel.interface.sort((), {**inputs, **dims}, None)
    arrays = {name: to_numpy(name, a) for name, a in given.inputs.items()}
    with on_device(device), staged(device, arrays, kernel.host_outputs(given)) as views:
        launches = kernel.launches(given, views)
        _run(launches)
        places = {k: kernel.global_array(k, name, device) for k, name in names.items()} if launches else {}
        for address, nbytes in places.values():
            checked(driver().cuMemsetD8(address, 0, nbytes), "cuMemsetD8")
        _run(launches)
        return {k: _read(*place) for k, place in places.items()}


def _run(launches: tuple[Any, ...]) -> None:
    for launch in launches:
        launch.run(0)
    checked(driver().cuStreamSynchronize(0), "cuStreamSynchronize")


def _read(address: int, nbytes: int) -> np.ndarray:
    notes = np.zeros(nbytes // NBYTES, np.uint64)
    checked(driver().cuMemcpyDtoH(notes.ctypes.data, address, nbytes), "cuMemcpyDtoH")
    return notes

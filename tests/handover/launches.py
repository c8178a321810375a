"""A launch of a kernel on arrays that exist only as shapes, strides and addresses, with a driver made of Python."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest

from tests.runtime.copying import pretended
from tests.runtime.driver import Driver
from wgdsl.runtime.arrays import ArrayView, contiguous
from wgdsl.runtime.call import Given
from wgdsl.runtime.caller import Caller
from wgdsl.runtime.kernel import Kernel
from wgdsl.runtime.nvrtc import Compiled

ANY = Compiled(cubin=b"\x7fELF", ptx="", log="", nvrtc="13.0", seconds=0.0)


def viewed(shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] | None = None, at: int = 1 << 34) -> ArrayView:
    """An array on the GPU. at: its address; strides count elements."""
    return ArrayView(at, shape, strides or contiguous(shape), dtype, 0, "torch")


def launched(
    monkeypatch: pytest.MonkeyPatch,
    kernel: Kernel,
    views: Mapping[str, ArrayView],
    refuse: Mapping[str, int] = MappingProxyType({}),
) -> Driver:
    """The driver, with the launches and the tensor maps that it was asked for. Raises what a call on such arrays does.
    refuse: call of the driver -> the code that it fails with."""
    driver = pretended(monkeypatch)
    driver.kinds = ()
    driver.refuse.update(refuse)
    binaries = dict.fromkeys(kernel.forms.texts, ANY)
    caller = Caller(kernel.interface, kernel.roles, kernel.forms.entries, lambda: binaries, lambda name, arch: ANY)
    plan = caller.plan(Given(inputs={}, outputs={}), views)
    plan.run(tuple(v.pointer for v in views.values()), 0)
    return driver

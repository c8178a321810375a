"""The notes of a launch are those of the second one, read from the array that the module holds."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

from wgdsl.runtime import noting

COUNT = 6


class Memory:
    """A driver whose device memory is the host's."""

    def cuMemsetD8(self, address, value, nbytes):
        ctypes.memset(address, value, nbytes)
        return (0,)

    def cuMemcpyDtoH(self, to, address, nbytes):
        ctypes.memmove(to, address, nbytes)
        return (0,)

    def cuStreamSynchronize(self, stream):
        return (0,)


class Launch:
    """Its k-th run adds k to a place of its own."""

    def __init__(self, array: np.ndarray):
        self.array, self.runs = array, 0

    def run(self, stream: int) -> None:
        self.array[self.runs] += self.runs + 1
        self.runs += 1


def test_notes_of_the_second_launch(monkeypatch):
    array = np.zeros(COUNT, np.uint64)
    launch = Launch(array)

    @contextmanager
    def nothing(*_):
        yield {}

    for name, value in {"driver": Memory, "current_device": lambda: 0, "on_device": nothing, "staged": nothing}.items():
        monkeypatch.setattr(noting, name, value)
    kernel = SimpleNamespace(
        interface=SimpleNamespace(sort=lambda *_: SimpleNamespace(inputs={})),
        host_outputs=lambda given: {},
        launches=lambda given, views: (launch,),
        global_array=lambda k, name, device: (array.ctypes.data, array.nbytes),
    )
    found = noting.noted(kernel, {}, {}, {"k": "timeline_marks"})  # pyright: ignore[reportArgumentType]
    assert launch.runs == 2
    assert found["k"].tolist() == [0, 2, 0, 0, 0, 0]

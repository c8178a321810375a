"""Which arrays of a call share memory.

In: views of one device.  Out: yes or no; yes also where finding out would take too long, as for the oddest of strides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..diagnostics.runtime import OverlappingOutput, SharedOutput
from ..foundation.dtypes import DTYPES
from .arrays import ArrayView

EFFORT = 100_000  # candidate solutions that NumPy looks at before it gives up

Reach = tuple[int, int]  # the first byte of an array and the one after its last, counted from its address


def reach(view: ArrayView) -> Reach:
    """The bytes between which the elements lie."""
    if 0 in view.shape:
        return 0, 0
    size = DTYPES[view.dtype].nbytes
    steps = [(extent - 1) * stride * size for extent, stride in zip(view.shape, view.strides, strict=True)]
    return sum(s for s in steps if s < 0), sum(s for s in steps if s > 0) + size


def onto_itself(name: str, view: ArrayView) -> OverlappingOutput | None:
    """Why two elements of one array may share memory: from the fastest axis on, each stride has to step over what lies within.
    (There are arrays, such as 2 x 3 with strides 3 and 2, that break this rule and don't overlap; nobody makes them.)"""
    if 0 in view.shape:
        return None
    last = 0
    for stride, axis in sorted((abs(s), a) for a, s in enumerate(view.strides) if view.shape[a] > 1):
        if stride <= last:
            return OverlappingOutput(name=name, axis=axis, stride=view.strides[axis])
        last += stride * (view.shape[axis] - 1)
    return None


class Sharing:
    """The pairs of one call's arrays that must not share memory: each output with every other array."""

    def __init__(self, views: Mapping[str, ArrayView], written: frozenset[str]):
        self.views = views
        names = list(views)
        reaches = [reach(v) for v in views.values()]
        outputs = [k for k, name in enumerate(names) if name in written]
        self._pairs = [
            (out, *reaches[out], k, *reaches[k])
            for out in outputs
            for k in range(len(names))
            if k != out and not (k in outputs and k < out) and any(reaches[out]) and any(reaches[k])
        ]

    def problems(self, pointers: Sequence[int]) -> list[SharedOutput]:
        """The outputs that lie on another array, the arrays being at these addresses."""
        close = [
            (out, other)
            for out, low, high, other, other_low, other_high in self._pairs
            if pointers[out] + low < pointers[other] + other_high and pointers[other] + other_low < pointers[out] + high
        ]
        if not close:
            return []
        names = list(self.views)
        at = [v._replace(pointer=p) for v, p in zip(self.views.values(), pointers, strict=True)]
        return [SharedOutput(name=names[a], other=names[b]) for a, b in close if share(at[a], at[b])]


def share(a: ArrayView, b: ArrayView) -> bool:
    """Whether some byte belongs to both."""
    import numpy as np

    try:
        return bool(np.shares_memory(np.asarray(_Anywhere(a)), np.asarray(_Anywhere(b)), max_work=EFFORT))  # type: ignore
    except np.exceptions.TooHardError:
        return True


class _Anywhere:
    """An array for NumPy to reason about; nobody reads its elements, which may lie on a device."""

    def __init__(self, view: ArrayView):
        size = DTYPES[view.dtype].nbytes
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"|V{size}",
            "shape": view.shape,
            "strides": tuple(s * size for s in view.strides),
            "data": (view.pointer, True),
        }

"""Which arrays of a call share memory.

In: views of one device.  Out: yes or no; yes also where finding out would take too long, as for the oddest of strides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise

from ..diagnostics.runtime import OverlappingOutput, SharedOutput
from ..foundation.dtypes import DTYPES
from .arrays import ArrayView

EFFORT = 100_000  # candidate solutions that NumPy looks at before it gives up

Reach = tuple[int, int]  # the first byte of an array and the one after its last, counted from its address


def reach(view: ArrayView) -> Reach:
    """The bytes between which the elements lie."""
    return _reach(view.shape, view.strides, DTYPES[view.dtype].nbytes)


@lru_cache(maxsize=1024)
def _reach(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> Reach:
    if 0 in shape:
        return 0, 0
    steps = [(extent - 1) * stride * size for extent, stride in zip(shape, strides, strict=True)]
    return sum([s for s in steps if s < 0]), sum([s for s in steps if s > 0]) + size


@lru_cache(maxsize=1024)
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
        self.views, self._written = views, written
        self._reaches = [reach(v) for v in views.values()]
        self._asked = False

    @cached_property
    def _pairs(self) -> list[tuple[int, int, int, int]]:
        """Two arrays, one of them an output, and the bounds within which the distance of their addresses means a look."""
        reaches = self._reaches
        outputs = [k for k, name in enumerate(self.views) if name in self._written]
        return [
            (out, k, low - reaches[out][1], high - reaches[out][0])
            for out in outputs
            for k, (low, high) in enumerate(reaches)
            if (k > out or k not in outputs) and low != high and reaches[out][0] != reaches[out][1]
        ]

    def _apart(self, pointers: Sequence[int]) -> bool:
        """Whether no array at all begins before another has ended."""
        places = sorted([(p + low, p + high) for p, (low, high) in zip(pointers, self._reaches, strict=True) if low != high])
        return all(before[1] <= after[0] for before, after in pairwise(places))

    def problems(self, pointers: Sequence[int]) -> list[SharedOutput]:
        """The outputs that lie on another array, the arrays being at these addresses."""
        if not self._asked:  # the first time: many layouts never have a second
            self._asked = True
            if self._apart(pointers):
                return []
        close = [(out, k) for out, k, least, most in self._pairs if least < pointers[out] - pointers[k] < most]
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

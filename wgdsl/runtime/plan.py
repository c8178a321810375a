"""The plan of a call: all that the layout of its arrays decides, so that a call like an earlier one costs little.

In: the layout of each array (a view without its address), and what makes templates of launches from it.  Out: `Plan`, which
launches for arrays of that layout wherever they lie. It remembers the launches of the addresses it has seen, each with a
buffer of arguments of its own that nobody changes: threads share a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.runtime import NotAnArray
from ..targets.tma import TMA
from . import cuda
from .arrays import ArrayView
from .launch import Launch, Template
from .overlap import Sharing

ADDRESSES = 128  # sets of addresses that a plan remembers
ALIGNMENTS = 16  # and sets of places within 16 bytes

Templates = Callable[[Mapping[str, ArrayView]], tuple[Template, ...]]


class Plan:
    """How to launch for arrays of one layout. `names` is the order in which it takes their addresses.

    templates: checks views whose addresses are cut to their places within 16 bytes, and makes the templates; the device's
    context is current then.  written: the outputs.
    """

    def __init__(self, device: cuda.Device, views: Mapping[str, ArrayView], written: frozenset[str], templates: Templates):
        self.device, self.views, self.names = device, views, tuple(views)
        self._make = templates
        self._filled = [0 not in v.shape for v in views.values()]
        self._written = written
        self._current, self._context = cuda.driver().cuCtxGetCurrent, int(device.context)
        self.launches = lru_cache(maxsize=ADDRESSES)(self._launches)
        self._templates = lru_cache(maxsize=ALIGNMENTS)(self._templates_at)

    def run(self, pointers: tuple[int, ...], stream: int) -> None:
        """Launch on a stream of the device, for arrays at these addresses. Raises WgError (WG06xx) if they can't lie there."""
        code, context = self._current()
        if code or int(context) != self._context:
            with cuda.on_device(self.device.ordinal):
                self.run(pointers, stream)
            return
        for launch in self.launches(pointers):
            launch.run(stream)

    def _launches(self, pointers: tuple[int, ...]) -> tuple[Launch, ...]:
        """The launches for arrays at these addresses; the device's context is current."""
        templates = self._templates(tuple(p % TMA.global_alignment for p in pointers))
        problems = [*self._missing(pointers), *self._sharing.problems(pointers)]
        if problems:
            raise WgError(problems)
        return tuple(t.at(pointers) for t in templates)

    @cached_property
    def _sharing(self) -> Sharing:
        return Sharing(self.views, self._written)

    def _templates_at(self, places: tuple[int, ...]) -> tuple[Template, ...]:
        return self._make({name: v._replace(pointer=p) for (name, v), p in zip(self.views.items(), places, strict=True)})

    def _missing(self, pointers: tuple[int, ...]) -> list[NotAnArray]:
        rows = zip(self.names, pointers, self._filled, strict=True)
        return [NotAnArray(name=name, got="an array without memory") for name, p, filled in rows if filled and not p]


def layout(views: Mapping[str, ArrayView]) -> tuple[Any, ...]:
    """What tells plans apart."""
    return tuple((name, *v[1:]) for name, v in views.items())

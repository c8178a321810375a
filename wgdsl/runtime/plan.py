"""The plan of a call: all that the layout of its arrays decides, so that a call like an earlier one costs little.

In: the layout of each array (a view without its address), and what makes templates of launches from it.  Out: `Plan`, which
launches for arrays of that layout wherever they lie. It remembers the launches of the addresses it has seen, each with a
buffer of arguments of its own that nobody changes: threads share a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.runtime import NotAnArray
from ..targets.tma import TMA
from . import cuda
from .arrays import ArrayView
from .launch import Launch, Template
from .overlap import Sharing
from .remembered import Remembered
from .temporaries import Passing

ADDRESSES = 128  # sets of addresses that a plan remembers
PLACES = 16  # and sets of places within 16 bytes

Templates = Callable[[Mapping[str, ArrayView]], tuple[Template, ...]]


class Plan:
    """How to launch for arrays of one layout. It takes their addresses in the order of `views`.

    templates: checks views whose addresses are cut to their places within 16 bytes, and makes the templates; the device's
    context is current then.  written: the outputs.  passing: what passes between the kernels, whose addresses come last.
    """

    def __init__(
        self,
        device: cuda.Device,
        views: Mapping[str, ArrayView],
        written: frozenset[str],
        templates: Templates,
        passing: Passing | None = None,
    ):
        self.views = {**views, **passing.views} if passing else views
        self.device, self.passing = device, passing
        self._make, self._written = templates, written
        self.current, self.context, self._handle = cuda.driver().cuCtxGetCurrent, device.context, int(device.context)
        self.launches: Remembered[tuple[int, ...], tuple[Launch, ...]] = Remembered(self._launches, ADDRESSES)
        self._templates: Remembered[tuple[int, ...], tuple[Template, ...]] = Remembered(self._templates_at, PLACES)

    def run(self, pointers: tuple[int, ...], stream: int) -> None:
        """Launch on a stream of the device, for arrays at these addresses. Raises WgError (WG06xx) if they can't lie there."""
        code, context = self.current()
        if not self.at_home(code, context):
            with cuda.on_device(self.device.ordinal):
                return self.run(pointers, stream)
        self.enqueue(pointers, stream)

    def enqueue(self, pointers: tuple[int, ...], stream: int) -> None:
        """`run`, the device's context being current."""
        if self.passing is None:
            for launch in self.launches[pointers]:
                launch.run(stream)
            return
        with self.passing.held(stream) as more:
            for launch in self.launches[(*pointers, *more)]:
                launch.run(stream)

    def at(self, pointers: tuple[int, ...], stream: int) -> tuple[Launch, ...]:
        """The launches for arrays at these addresses on a stream, nobody else using it; the device's context is current."""
        if self.passing is None:
            return self.launches[pointers]
        with self.passing.held(stream) as more:
            return self.launches[(*pointers, *more)]

    def at_home(self, code: Any, context: Any) -> bool:
        """Whether the driver's answer is the context to launch in. (Those that compare equal are the same anyway.)"""
        return not code and int(context) == self._handle

    def _launches(self, pointers: tuple[int, ...]) -> tuple[Launch, ...]:
        """The launches for arrays at these addresses; the device's context is current."""
        templates = self._templates[tuple([p % TMA.global_alignment for p in pointers])]
        problems = [*self._missing(pointers), *self._sharing.problems(pointers)]
        if problems:
            raise WgError(problems)
        return tuple([t.at(pointers) for t in templates])

    @cached_property
    def _sharing(self) -> Sharing:
        return Sharing(self.views, self._written)

    def _templates_at(self, places: tuple[int, ...]) -> tuple[Template, ...]:
        views = {name: ArrayView(p, *v[1:]) for (name, v), p in zip(self.views.items(), places, strict=True)}
        return self._make(views)

    def _missing(self, pointers: tuple[int, ...]) -> list[NotAnArray]:
        if all(pointers):
            return []
        rows = zip(self.views.items(), pointers, strict=True)
        return [NotAnArray(name=name, got="an array without memory") for (name, v), p in rows if not p and 0 not in v.shape]


def layout(views: Mapping[str, ArrayView]) -> tuple[Any, ...]:
    """What tells plans apart, beside the dims and scalars."""
    return tuple([part for name, v in views.items() for part in (name, v[1:])])

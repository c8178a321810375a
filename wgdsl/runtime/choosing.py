"""One program under several schedules: each call runs under the one that suits its lengths.

In: the arguments of the program, and a function from the dims of a call to the kernel for them.  Out: a kernel like any other,
whose forms are those of the pick where no lengths are known; `pick(M=4096)` gives the one for a length.

A call that has come before is recognised here as a plain kernel recognises it, and launched by the plan of the kernel that was
picked then: only a new layout asks which one that is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from . import cuda
from .arrays import ArrayView, view
from .bind import whole
from .by_name import call_by_name
from .call import Given, Interface
from .caller import Calls
from .kernel import Forms, Kernel
from .listing import Halves
from .nvrtc import Compiled
from .plan import Plan
from .torch_call import Cell, Form

PICKS = 256  # sets of dims of which a kernel remembers the pick

ByDims = Callable[[Mapping[str, int]], Kernel]


class Switch(Calls):
    """Passes a call on to the kernel for its dims."""

    def __init__(self, interface: Interface, chosen: ByDims):
        super().__init__(interface)
        self._chosen = chosen

    def kernel(self, given: Given) -> Kernel:
        """The one for a call."""
        views = {name: view(name, a) for name, a in (*given.inputs.items(), *given.outputs.items())}
        return self._chosen(self.bind(given, views).dims)

    def first(
        self, args: tuple[Any, ...], named: dict[str, Any], out: Any, form: Form | None = None, cell: Cell | None = None
    ) -> Any:
        cuda.driver()
        kernel = self.kernel(self.interface.sort(args, named, out))
        return kernel._caller.first(args, named, out, form, cell)

    def plan(self, given: Given, views: Mapping[str, ArrayView]) -> Plan:
        return self._chosen(self.bind(given, views).dims)._caller.plan(given, views)

    def global_array(self, kernel: str, name: str, device: int) -> tuple[int, int]:
        return self._chosen({})._caller.global_array(kernel, name, device)


class Choosing(Kernel):
    """A compiled program whose schedule depends on the lengths of a call."""

    def __init__(self, interface: Interface, chosen: ByDims, told: Callable[[Mapping[str, int]], tuple[str, ...]]):
        """chosen: the kernel for some dims of a call, which may lack others.  told: what a report says of that choice."""
        self.interface = interface
        self._told = told
        self._by_dims = lru_cache(maxsize=PICKS)(lambda dims: chosen(dict(dims)))
        self._reported = lru_cache(maxsize=PICKS)(self._with_report)
        self._switch = self._caller = Switch(interface, lambda dims: self._by_dims(tuple(sorted(dims.items()))))
        call_by_name(self, Choosing)

    def __repr__(self) -> str:
        return f"<wgdsl kernel: program {self.interface.graph.name}, schedule by the lengths of each call, {self.target}>"

    def pick(self, /, **dims: int) -> Kernel:
        """The kernel for these dims, of which some may be left out: a plain one, whose report says why."""
        super().pick(**dims)
        return self._reported(tuple(sorted((name, whole(name, size)) for name, size in dims.items())))

    def _with_report(self, dims: tuple[tuple[str, int], ...]) -> Kernel:
        forms = self._by_dims(dims).forms
        return Kernel(replace(forms, told=(*self._told(dict(dims)), *forms.told)), self._by_dims(dims).cache)

    @property
    def forms(self) -> Forms:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.pick().forms

    @property
    def cache(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.pick().cache

    @property
    def binaries(self) -> Mapping[str, Compiled]:
        return self.pick().binaries

    def probe(self, *args: Any, device: str = "gpu", seed: int | None = None, **named: Any) -> dict[str, Any]:
        kernel = self._switch.kernel(self.interface.sort(args, named, None))
        return kernel.probe(*args, device=device, seed=seed, **named)

    @property
    def _halves(self) -> Halves:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.pick()._halves  # lists and those who use them belong to one kernel, whatever its sizes

    def _elsewhere(self, device: str, args: tuple[Any, ...], named: Mapping[str, Any], out: Any, **more: Any) -> Any:
        kernel = self._switch.kernel(self.interface.sort(args, named, out))
        return kernel._elsewhere(device, args, named, out, **more)

"""What a call of a known layout does: allocate the outputs that aren't given, launch, sort the results.

In: the plan of an earlier call.  Out: `Ready`, which runs the next call like it for the addresses of its tensors. Everything
that can be looked up beforehand is: such a call costs little more than torch's own allocations and the driver's launch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import call, itemgetter
from typing import Any

from . import cuda
from .allocate import torch_empty, torch_empty_here
from .bind import Bound, shape_of
from .call import Interface
from .plan import Plan
from .streams import HANDLES, torch_stream
from .torch_call import Pointers, Ready

Makers = Sequence[Callable[[], Any]]


def ready_of(interface: Interface, plan: Plan, bound: Bound, given: Any) -> Ready:
    """A call of this plan's layout, for the next time. `given`: the `out` of the call."""
    mine = {*given} if isinstance(given, Mapping) else {*interface.outputs} if given is not None else set()
    missing = [node for node in interface.written if node.tensor not in mine]
    if not missing:
        return _writing(plan, _given(interface, given))
    shapes = [(shape_of(node, bound), node.dtype) for node in missing]
    makers = [torch_empty(plan.device.ordinal, *s) for s in shapes]
    here = [torch_empty_here(*s) for s in shapes]
    quick = [make for make in here if make is not None]
    return _allocating(plan, makers, quick if len(quick) == len(makers) else makers, _made(interface, given, missing))


def _writing(plan: Plan, results: Callable[[Any], Any] | None) -> Ready:
    """A call whose outputs are given. `results`: `out` to what it returns, if that isn't `out` itself."""
    current, context, launches, device = plan.current, plan.context, plan.launches, plan.device.ordinal
    stream, handles, passing = torch_stream(), HANDLES, plan.passing is not None

    def run(pointers: Pointers, out: Any) -> Any:
        code, now = current()
        if now != context and not plan.at_home(code, now):
            with cuda.on_device(device):
                return run(pointers, out)
        if passing:
            plan.enqueue(pointers, stream(device))
            return results(out) if results else out
        handle = handles[stream(device)]
        for launch in launches[pointers]:
            result = launch.enqueue(handle, launch.address, 0)
            if result[0]:
                launch.failed(result)
        return results(out) if results else out

    return run


def _allocating(plan: Plan, makers: Makers, here: Makers, results: Callable[[Any, Any], Any]) -> Ready:
    """A call that makes outputs: by `here` on the current device, whatever that is for torch; else by `makers`. `results`:
    `out` and these to what the call returns."""
    current, context, launches, device = plan.current, plan.context, plan.launches, plan.device.ordinal
    stream, handles, passing = torch_stream(), HANDLES, plan.passing is not None
    address = sys.modules["torch"].Tensor.data_ptr

    def run(pointers: Pointers, out: Any) -> Any:
        code, now = current()
        if now != context and not plan.at_home(code, now):
            with cuda.on_device(device):
                return run(pointers, out)
        made = (*map(call, here),)
        if made[0].get_device() != device:
            made = (*map(call, makers),)
        pointers = (*pointers, *map(address, made))
        if passing:
            plan.enqueue(pointers, stream(device))
            return results(out, made)
        handle = handles[stream(device)]
        for launch in launches[pointers]:
            result = launch.enqueue(handle, launch.address, 0)
            if result[0]:
                launch.failed(result)
        return results(out, made)

    return run


def _given(interface: Interface, given: Any) -> Callable[[Any], Any] | None:
    """What a call returns whose outputs are all given."""
    if not isinstance(given, Mapping):
        return None
    pick = itemgetter(*interface.outputs)
    if len(interface.outputs) == 1:
        return pick
    results = _results(interface)
    return lambda out: results(pick(out))


def _made(interface: Interface, given: Any, missing: Sequence[Any]) -> Callable[[Any, Any], Any]:
    """What a call returns some of whose outputs are made."""
    if len(interface.outputs) == 1:
        return lambda out, made: made[0]
    results = _results(interface)
    if len(missing) == len(interface.outputs):
        return lambda out, made: results(made)
    names, pick = [node.tensor for node in missing], itemgetter(*interface.outputs)
    return lambda out, made: results(pick({**out, **dict(zip(names, made, strict=True))}))


def _results(interface: Interface) -> Callable[[tuple[Any, ...]], Any]:
    """The arrays, in the order of the outputs, as the type of several results."""
    return partial(tuple.__new__, interface.results)

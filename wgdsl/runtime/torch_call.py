"""Calls on torch tensors, recognised as cheaply as Python allows.

In: the arguments of a call.  Out: what an earlier call came to (`Ready`) for which every check of that one holds again: the
same types, shapes, strides, element types and device, the same numbers beside them. Addresses are the plan's affair. Or
nothing: then the call has to be looked at in full, because it is new, or holds something else than plain tensors and numbers,
or something that is refused.

A call like one of the last few is found by torch's own check (`torch_guard`), others by a key.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count
from operator import itemgetter
from typing import Any, NamedTuple

from ..program.graph import Output
from .allocate import torch_empty
from .bind import Bound, shape_of
from .call import Interface
from .plan import Plan
from .streams import torch_stream
from .torch_guard import Check, check_of

PLANS = 128  # layouts that each form of call remembers by a key
RECENT, OFTEN = 4, 64  # those that have a check, and how many calls by the key give a layout one again
NUMBERS = frozenset((int, float, bool))
ARRAYS = "array", "real"  # kinds, see `Interface.kind`

Pointers = tuple[int, ...]  # the addresses of the tensors in the order in which they are passed


class Recent(NamedTuple):
    """One of the last layouts: torch's check of its tensors, and the numbers beside them."""

    check: Check
    numbers: tuple[Any, ...]
    ready: Ready


@dataclass(frozen=True)
class Ready:
    """A call whose layout is known. `fresh` makes the outputs that aren't given, `results` sorts all of them."""

    plan: Plan
    fresh: tuple[Callable[[], Any], ...]
    results: Callable[[Any, list[Any]], Any]
    stream: Callable[[int], int]
    device: int

    def run(self, pointers: Pointers, out: Any) -> Any:
        """Launch for tensors at these addresses; what the call returns."""
        if not self.fresh:
            self.plan.run(pointers, self.stream(self.device))
            return self.results(out, [])
        made = [make() for make in self.fresh]
        self.plan.run((*pointers, *[t.data_ptr() for t in made]), self.stream(self.device))
        return self.results(out, made)


class Cell:
    """Place for what the calls of one key come to."""

    def __init__(self):
        self.ready: Ready | None = None
        self.hits = count()


Found = tuple[Ready | None, Pointers, Cell | None]
NOTHING: Found = (None, (), None)


class Form:
    """The calls that are written alike: so many arguments by position, these by name, these outputs given.

    names, kinds: of all values, outputs included (`Interface.kind`).
    """

    def __init__(self, names: Sequence[str], kinds: Sequence[str]):
        self.arrays = tuple(n for n, kind in zip(names, kinds, strict=True) if kind != "number")
        self.cells: Callable[[Hashable], Cell] = lru_cache(maxsize=PLANS)(lambda key: Cell())
        self._places = [k for k, kind in enumerate(kinds) if kind != "number"]
        self._mixed = len(self._places) < len(kinds)
        self._recent: tuple[Recent, ...] = ()
        self._key, self._numbers, self._pointers = _key(kinds), _numbers(kinds), _pointers(kinds)

    def find(self, values: Sequence[Any]) -> Found:
        """What an earlier call like this came to and where this one's tensors lie; else the place for what this one comes to,
        if it may be remembered."""
        try:
            pointers = self._pointers(*values)
            if pointers is None:
                return NOTHING
            tensors = [values[k] for k in self._places] if self._mixed else values
            numbers = self._numbers(*values) if self._mixed else ()
            for check, beside, ready in self._recent:
                if numbers == beside and check(*tensors):
                    return ready, pointers, None
            key = self._key(*values)
        except (AttributeError, RuntimeError):  # no tensor, or one without memory of its own: sparse, under vmap or grad
            return NOTHING
        if key is None:
            return NOTHING
        cell = self.cells(key)
        if cell.ready is not None and next(cell.hits) % OFTEN == 0:
            self._note(tensors, numbers, cell.ready)
        return cell.ready, pointers, cell

    def _note(self, tensors: Sequence[Any], numbers: tuple[Any, ...], ready: Ready) -> None:
        """Give a layout that comes again a check. torch's doesn't ask for the grad mode, in which gradients may be refused."""
        check = None if any(t.requires_grad for t in tensors) else check_of(tensors)
        if check is not None:
            self._recent = (Recent(check, numbers, ready), *self._recent[: RECENT - 1])


def form_of(interface: Interface, positions: int, named: tuple[str, ...], outputs: tuple[str, ...]) -> Form | None:
    """The form of a call, for which torch has to be there; None for one that can't be right."""
    names = (*interface.positions[:positions], *named)
    known = {*interface.inputs, *interface.scalars, *interface.dims}
    if len({*names}) != positions + len(named) or not known.issuperset(names) or not {*names}.issuperset(interface.inputs):
        return None
    if not {*interface.outputs}.issuperset(outputs):
        return None
    every = (*names, *outputs)
    return Form(every, [*map(interface.kind, every)])


def _function(kinds: Sequence[str], body: str, **scope: Any) -> Callable[..., Any]:
    """A function of the values a0, a1, ... of a call. Its text is written out for them: a loop would take twice as long."""
    return eval(f"lambda {', '.join(f'a{k}' for k in range(len(kinds)))}: {body}", scope)


def _of(kinds: Sequence[str], text: str, *wanted: str) -> list[str]:
    """The text for each value of the wanted kinds, whose name stands in place of `@`."""
    return [text.replace("@", f"a{k}") for k, kind in enumerate(kinds) if kind in wanted]


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)},)" if parts else "()"


def _pointers(kinds: Sequence[str]) -> Callable[..., Pointers | None]:
    """Where the tensors lie; None if one is nested, which torch's check doesn't survive."""
    nested = " or ".join(_of(kinds, "@.is_nested", *ARRAYS))
    return _function(kinds, f"None if {nested} else {_tuple(_of(kinds, '@.data_ptr()', *ARRAYS))}")


def _numbers(kinds: Sequence[str]) -> Callable[..., tuple[Any, ...]]:
    """The type and value of each number. 0.0 and -0.0 are equal, but not the same argument."""
    one = "type(@), (@ or repr(@)) if type(@) in numbers else None"
    return _function(kinds, _tuple(_of(kinds, one, "number")), numbers=NUMBERS)


def _key(kinds: Sequence[str]) -> Callable[..., Hashable]:
    """Values to a key that two calls share only if what the first one was checked for holds for the second; to None if they
    have to be looked at in full.

    A dense tensor needs no strides in the key: its shape says them, but for axes of one element, where they don't matter.
    """
    refused = _of(kinds, "type(@) not in tensors", *ARRAYS) + _of(kinds, "type(@) not in numbers", "number")
    refused += _of(kinds, "@.is_neg()", "real")  # a part of complex numbers whose sign is still to be applied
    refused.append(f"grad() and ({' or '.join(_of(kinds, '@.requires_grad', *ARRAYS))})")
    parts = _of(kinds, "@.shape, @.is_contiguous() or @.stride(), @.dtype, @.get_device()", *ARRAYS)
    parts += _of(kinds, "type(@), @ or repr(@)", "number")
    grad = sys.modules["torch"].is_grad_enabled
    body = f"None if {' or '.join(refused)} else {_tuple(parts)}"
    return _function(kinds, body, tensors=plain(), numbers=NUMBERS, grad=grad)


@cache
def plain() -> frozenset[type]:
    """The types of torch's own tensors; subclasses may mean anything."""
    torch = sys.modules["torch"]
    return frozenset((torch.Tensor, torch.nn.Parameter))


def ready_of(interface: Interface, plan: Plan, bound: Bound, given: Any, device: int) -> Ready:
    """A call of this plan's layout, for the next time. `given`: the `out` of the call."""
    mine = {*given} if isinstance(given, Mapping) else {*interface.outputs} if given is not None else set()
    missing = [node for node in interface.graph.outputs if node.tensor not in mine]
    fresh = tuple(_maker(node, bound, device) for node in missing)
    return Ready(plan, fresh, _sorter(interface, given, [n.tensor for n in missing]), torch_stream(), device)


def _maker(node: Output, bound: Bound, device: int) -> Callable[[], Any]:
    return torch_empty(device, shape_of(node, bound), node.dtype)


def _sorter(interface: Interface, given: Any, missing: list[str]) -> Callable[[Any, list[Any]], Any]:
    """(`out`, outputs made) -> what the call returns."""
    if given is not None and not isinstance(given, Mapping):
        return lambda out, made: out
    if len(interface.outputs) == 1:
        only = interface.outputs[0]
        return (lambda out, made: made[0]) if missing else (lambda out, made: out[only])
    results, pick = interface.results._make, itemgetter(*interface.outputs)
    if not missing:
        return lambda out, made: results(pick(out))
    if len(missing) == len(interface.outputs):
        return lambda out, made: results(made)

    def mixed(out: Any, made: list[Any]) -> Any:
        return results(pick({**out, **dict(zip(missing, made, strict=True))}))

    return mixed

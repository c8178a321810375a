"""Calls on torch tensors, recognised as cheaply as Python allows.

In: the arguments of a call.  Out: what an earlier call came to (`Ready`) for which every check of that one holds again: the
same types, shapes, strides, element types and device, the same numbers beside them. Addresses are the plan's affair. Or
nothing: then the call has to be looked at in full, because it is new, or holds something else than plain tensors and numbers,
or something that is refused.

A call like one of the last few is found by torch's own check (`torch_guard`), others by a key.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from functools import cache, lru_cache
from itertools import count
from typing import Any

from .call import Interface
from .torch_guard import check_of

PLANS = 128  # layouts that each form of call remembers by a key
RECENT, OFTEN = 4, 64  # those that have a check, and how many calls by the key give a layout one again
NUMBERS = frozenset((int, float, bool, type(None)))  # None: the default
ALONE = object()  # in the key of a form: `out` is the only output itself

Pointers = tuple[int, ...]  # the addresses of the tensors in the order in which they are passed
Ready = Callable[[Pointers, Any], Any]  # addresses, `out` -> what the call returns: a launch for a layout that is known


class Cell:
    """Place for what the calls of one key come to."""

    def __init__(self):
        self.ready: Ready | None = None
        self.hits = count()


Found = tuple[Ready | None, Pointers, Cell | None]
NOTHING: Found = (None, (), None)


class Form:
    """The calls that are written alike: so many arguments by position, these by name, these outputs given.

    names, kinds: of all values, outputs included (`Interface.kind`).  find: the values of a call to what an earlier call like
    it came to and where this one's tensors lie; else to the place for what this one comes to, if it may be remembered.
    """

    def __init__(self, names: Sequence[str], kinds: Sequence[str]):
        self.arrays = tuple(n for n, kind in zip(names, kinds, strict=True) if kind != "number")
        self.cells: Callable[[Hashable], Cell] = lru_cache(maxsize=PLANS)(lambda key: Cell())
        self._recent: dict[str, Any] = {"recent": ()}
        self._key = _key(kinds)
        self.find: Callable[..., Found] = _finder(kinds, self._by_key, self._recent)

    def _by_key(self, values: Sequence[Any], tensors: Sequence[Any], numbers: tuple[Any, ...], pointers: Pointers) -> Found:
        key = self._key(*values)
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
            self._recent["recent"] = ((check, numbers, ready), *self._recent["recent"][: RECENT - 1])


def form_of(interface: Interface, key: tuple[Any, ...]) -> Form | None:
    """The form of a call, for which torch has to be there; None for one that can't be right.

    key: how many arguments have no name, the names of the others, then nothing, or `ALONE`, or None and the outputs given.
    """
    if "torch" not in sys.modules:
        raise ModuleNotFoundError("torch")
    (positions, *named), outputs = _cut(key, interface.outputs)
    names = (*interface.positions[:positions], *named)
    known = {*interface.inputs, *interface.scalars, *interface.dims}
    if len({*names}) != positions + len(named) or not known.issuperset(names) or not {*names}.issuperset(interface.inputs):
        return None
    if not {*interface.outputs}.issuperset(outputs):
        return None
    every = (*names, *outputs)
    return Form(every, ["array" if name in interface.nodes else "number" for name in every])


def _cut(key: tuple[Any, ...], outputs: tuple[str, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The key of a form without its outputs, and those."""
    if key[-1] is ALONE:
        return key[:-1], outputs if len(outputs) == 1 else (ALONE,)
    if None in key:
        return key[: key.index(None)], key[key.index(None) + 1 :]
    return key, ()


def _finder(kinds: Sequence[str], by_key: Callable[..., Found], scope: dict[str, Any]) -> Callable[..., Found]:
    """`Form.find`. `scope["recent"]` has the last layouts: torch's check of the tensors, the numbers beside them, and what such
    calls come to. Nothing nested may come before torch's check, which doesn't survive it."""
    values, tensors = _values(kinds), _of(kinds, "@", "array")
    numbers = _tuple(_of(kinds, "None if @ is None else (type(@), @ or repr(@)) if type(@) in numbers else numbers", "number"))
    beside = "beside == mine and " if "number" in kinds else ""
    text = f"""
def find({", ".join(values)}):
    try:
        if {" or ".join(_of(kinds, "@.is_nested", "array")) or False}:
            return NOTHING
        pointers, mine = {_tuple(_of(kinds, "@.data_ptr()", "array"))}, {numbers}
        for check, beside, ready in recent:
            if {beside}check({", ".join(tensors)}):
                return ready, pointers, None
        return by_key({_tuple(values)}, {_tuple(tensors)}, mine, pointers)
    except (AttributeError, RuntimeError):  # no tensor, or one without memory of its own: sparse, under vmap or grad
        return NOTHING
"""
    scope |= {"NOTHING": NOTHING, "numbers": NUMBERS, "by_key": by_key}
    exec(text, scope)
    return scope["find"]


def _values(kinds: Sequence[str]) -> list[str]:
    """Names for the values of a call. The text of a function is written out for them: a loop would take twice as long."""
    return [f"a{k}" for k in range(len(kinds))]


def _of(kinds: Sequence[str], text: str, wanted: str) -> list[str]:
    """The text for each value of a kind, whose name stands in place of `@`."""
    return [text.replace("@", name) for name, kind in zip(_values(kinds), kinds, strict=True) if kind == wanted]


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)},)" if parts else "()"


def _key(kinds: Sequence[str]) -> Callable[..., Hashable]:
    """Values to a key that two calls share only if what the first one was checked for holds for the second; to None if they
    have to be looked at in full.

    A dense tensor needs no strides in the key: its shape says them, but for axes of one element, where they don't matter.
    """
    refused = _of(kinds, "type(@) not in tensors", "array") + _of(kinds, "type(@) not in numbers", "number")
    refused += _of(kinds, "@.is_neg()", "array")  # the sign is still to be applied
    refused.append(f"grad() and ({' or '.join(_of(kinds, '@.requires_grad', 'array')) or False})")
    parts = _of(kinds, "@.shape, @.is_contiguous() or @.stride(), @.dtype, @.device", "array")
    parts += _of(kinds, "type(@), @ or repr(@)", "number")
    scope = {"tensors": plain(), "numbers": NUMBERS, "grad": sys.modules["torch"].is_grad_enabled}
    return eval(f"lambda {', '.join(_values(kinds))}: None if {' or '.join(refused)} else {_tuple(parts)}", scope)


@cache
def plain() -> frozenset[type]:
    """The types of torch's own tensors; subclasses may mean anything."""
    torch = sys.modules["torch"]
    return frozenset((torch.Tensor, torch.nn.Parameter))

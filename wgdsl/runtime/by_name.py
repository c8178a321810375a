"""The call of a kernel, written out for the arguments of its program.

In: a class of kernels and what runs one of them.  Out: that class, its `__call__` having the program's arguments for parameters.

Python then sorts the names itself, in C, and finds an earlier call like this one with one function call: a call by name that
is like an earlier one takes two thirds of the time. Arguments without names, dims by name, other backends and errors are left
to the class.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from keyword import iskeyword
from typing import Any

from .caller import Caller
from .torch_call import NOTHING, Form, Found

MARK = "_by_name"
OWN = frozenset(
    ("self", "args", "out", "device", "others", "type", "dict", "len", "pick", "ready", "pointers", "cell", "first")
)
OWN |= {"general", *(f"{part}{way}" for part in ("find_", "form_") for way in ("new", "given", "alone"))}


def by_name(cls: type, caller: Caller) -> type:
    """The class for one kernel; the same one if a name of the program can't be a parameter."""
    interface = caller.interface
    names, outputs = interface.positions, interface.outputs
    if any(iskeyword(n) or n in OWN for n in (*names, *outputs)):
        return cls
    scope: dict[str, Any] = {"general": cls.__call__, "first": lambda *a: caller.first(*a)}  # type: ignore[attr-defined]
    for way, written in {"new": (), "given": outputs, "alone": outputs}.items():
        kinds = ["array" if n in interface.nodes else "number" for n in (*names, *written)]
        scope[f"find_{way}"] = _starting(scope, way, (*names, *written), kinds)
        scope[f"form_{way}"] = None
    exec(_text(names, outputs, _leading(interface.inputs, names)), scope)
    made = scope["__call__"]
    made.__doc__, made.__module__, made.__qualname__ = cls.__call__.__doc__, cls.__module__, f"{cls.__qualname__}.__call__"
    contents = {"__call__": made, "__init_subclass__": _final, "__module__": cls.__module__, "__doc__": cls.__doc__, MARK: True}
    return type(cls.__name__, (cls,), contents)


def is_by_name(cls: type) -> bool:
    """Whether it is one of these classes."""
    return MARK in vars(cls)


def _final(cls: type) -> None:
    raise TypeError("this class calls one kernel; derive from Kernel")


def _starting(scope: dict[str, Any], way: str, names: Sequence[str], kinds: Sequence[str]) -> Callable[..., Found]:
    """`find` until torch is there."""

    def find(*values: Any) -> Found:
        if "torch" not in sys.modules:
            return NOTHING
        scope[f"form_{way}"] = form = Form(names, kinds)
        scope[f"find_{way}"] = form.find
        return form.find(*values)

    return find


def _leading(inputs: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    """The inputs, if they come before all scalars: then a call may give just them by position."""
    return names[: len(inputs)] if {*names[: len(inputs)]} == {*inputs} else ()


def _text(names: Sequence[str], outputs: Sequence[str], leading: Sequence[str]) -> str:
    """`__call__`. `out` is sorted in the order of the program's outputs."""
    passed, named = ", ".join(names), ", ".join(f"{n!r}: {n}" for n in names)
    given = [f"out[{o!r}]" for o in outputs]
    inside = " and ".join(f"{o!r} in out" for o in outputs)
    text = f"def __call__(self, /, *args, {', '.join(f'{n}=None' for n in names)}, out=None, device='gpu', **others):\n"
    if leading:
        text += f"    if len(args) == {len(leading)} and {' is '.join(leading)} is None:\n"
        text += f"        {', '.join(leading)}, args = *args, ()\n"
    text += "    if not args and not others and device == 'gpu':\n"
    text += _way("out is None", "new", passed, named)
    text += _way(f"type(out) is dict and len(out) == {len(outputs)} and {inside}", "given", ", ".join((passed, *given)), named)
    if len(outputs) == 1:
        text += _way("type(out) is not dict", "alone", f"{passed}, out", named)
    return (
        text
        + f"""
    others |= {{name: value for name, value in {{{named}}}.items() if value is not None}}
    return general(self, *args, out=out, device=device, **others)
"""
    )


def _way(condition: str, way: str, values: str, named: str) -> str:
    """The calls whose `out` is of one kind."""
    return f"""
        if {condition}:
            ready, pointers, cell = find_{way}({values})
            if ready is not None:
                return ready(pointers, out)
            return first((), {{{named}}}, out, form_{way}, cell)
"""

"""The call of a kernel, written out for the arguments of its program.

In: a kernel.  Out: the same one, of a class whose `__call__` has the program's arguments for parameters.

Python then sorts the names itself, in C, and an earlier call like this one is found with one function call: a call by name that
has come before takes three quarters of the time. Dims by name, numbers by position, other backends and errors are left to the
class itself. Kernels with the same arguments share a class.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from keyword import iskeyword
from typing import Any

from .call import Interface
from .torch_call import NOTHING, Form, Found

CLASSES = 256
MARK = "_by_name"
WAYS = ("new", "given", "alone")  # `out` is None, a dict of all outputs, the only output itself
OWN = frozenset(("self", "args", "out", "device", "others", "type", "dict", "len", "find", "ready", "pointers", "cell"))
OWN |= {"general", "name", "value"}


def call_by_name(kernel: Any, cls: type) -> None:
    """Make a kernel, of the class `cls` or of one made here, callable in this way, unless one of its names can't be a
    parameter. It has `interface` and a `_caller`."""
    interface: Interface = kernel.interface
    if type(kernel) is not cls and MARK not in vars(type(kernel)):
        return  # somebody's own class
    if any(not n.isidentifier() or iskeyword(n) or n in OWN for n in (*interface.positions, *interface.outputs)):
        kernel.__class__ = cls
        return
    for way in WAYS:
        written = () if way == "new" else interface.outputs
        setattr(kernel, f"_find_{way}", _starting(kernel, way, (*interface.positions, *written)))
        setattr(kernel, f"_form_{way}", None)
    kernel.__class__ = _class(cls, interface.positions, interface.outputs, interface.inputs)


def _starting(kernel: Any, way: str, names: Sequence[str]) -> Callable[..., Found]:
    """`Form.find` until torch is there."""

    def find(*values: Any) -> Found:
        if "torch" not in sys.modules:
            return NOTHING
        form = Form(names, ["array" if n in kernel.interface.nodes else "number" for n in names])
        setattr(kernel, f"_form_{way}", form)
        setattr(kernel, f"_find_{way}", form.find)
        return form.find(*values)

    return find


@lru_cache(maxsize=CLASSES)
def _class(cls: type, names: tuple[str, ...], outputs: tuple[str, ...], inputs: tuple[str, ...]) -> type:
    scope: dict[str, Any] = {"general": cls.__call__}
    leading = names[: len(inputs)] if {*names[: len(inputs)]} == {*inputs} else ()
    exec(_text(names, outputs, leading), scope)
    made = scope["__call__"]
    made.__doc__, made.__module__, made.__qualname__ = cls.__call__.__doc__, cls.__module__, f"{cls.__qualname__}.__call__"
    contents = {"__call__": made, "__init_subclass__": _final, "__module__": cls.__module__, "__doc__": cls.__doc__, MARK: True}
    return type(cls.__name__, (cls,), contents)


def _final(cls: type) -> None:
    raise TypeError("this class is for the arguments of one program; derive from Kernel")


def _text(names: Sequence[str], outputs: Sequence[str], leading: Sequence[str]) -> str:
    """`__call__`. `out` is passed on in the order of the program's outputs. leading: all inputs, if no number comes before one
    of them; then they may also be given without names."""
    passed, named = ", ".join(names), ", ".join(f"{n!r}: {n}" for n in names)
    given = ", ".join((*names, *[f"out[{o!r}]" for o in outputs]))
    inside = " and ".join(f"{o!r} in out" for o in outputs)
    text = f"def __call__(self, /, *args, {', '.join(f'{n}=None' for n in names)}, out=None, device='gpu', **others):\n"
    if leading:
        text += f"    if len(args) == {len(leading)} and {' is '.join(leading)} is None:\n"
        text += f"        {', '.join(leading)}, args = *args, ()\n"
    text += "    if not args and not others and device == 'gpu':\n"
    text += _way("out is None", "new", passed, named)
    text += _way(f"type(out) is dict and len(out) == {len(outputs)} and {inside}", "given", given, named)
    if len(outputs) == 1:
        text += _way("type(out) is not dict", "alone", f"{passed}, out", named)
    return f"""{text}
    others |= {{name: value for name, value in {{{named}}}.items() if value is not None}}
    return general(self, *args, out=out, device=device, **others)
"""


def _way(condition: str, way: str, values: str, named: str) -> str:
    """The calls whose `out` is of one kind."""
    return f"""
        if {condition}:
            find = self._find_{way}
            ready, pointers, cell = find({values})
            if ready is not None:
                return ready(pointers, out)
            return self._caller.first((), {{{named}}}, out, self._form_{way}, cell)
"""

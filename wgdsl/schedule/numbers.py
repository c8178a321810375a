"""numbers: what hangs on the scalars of a call alone, computed once, by the launch.

In: the steps of a kernel.  Out: the same over further parameters, one for each such number, and what they are. `x * scale *
1.44` on a tile is one multiplication by a constant then, which every instruction can name where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ..program.expr import Apply, Const, Expr, Scalar, walk
from ..roles.model import Step

Steps = tuple[Step, ...]


def hoisted(bodies: list[Steps]) -> tuple[list[Steps], Mapping[str, Expr]]:
    """The bodies of all roles, and number -> its value."""
    found: dict[Expr, str] = {}
    return [_of(b, found) for b in bodies], {name: e for e, name in found.items()}


def _of(x: Any, found: dict[Expr, str]) -> Any:
    if isinstance(x, Expr):
        return _expr(x, found)
    if isinstance(x, tuple):
        new = tuple([_of(y, found) for y in x])
        return x if all(a is b for a, b in zip(x, new, strict=True)) else new
    if not is_dataclass(x) or isinstance(x, type):
        return x
    new = {f.name: _of(getattr(x, f.name), found) for f in fields(x) if f.name not in ("span", "note")}
    changed = {name: v for name, v in new.items() if v is not getattr(x, name)}
    return replace(x, **changed) if changed else x


def _expr(e: Expr, found: dict[Expr, str]) -> Expr:
    """With the largest parts that are numbers of the call in the place of their formulas."""
    if _is_number(e):
        scalars = [x.name for x in walk(e) if isinstance(x, Scalar)]
        taken = sum(name.startswith(f"{scalars[0]}.") for name in found.values())
        return Scalar(name=found.setdefault(e, f"{scalars[0]}.{taken + 1}"))
    children = e.children()
    new = {id(c): _expr(c, found) for c in children}
    return e if all(new[id(c)] is c for c in children) else e.map_children(lambda c: new[id(c)])


def _is_number(e: Expr) -> bool:
    leaves = [x for x in walk(e) if not isinstance(x, Apply)]
    return (
        isinstance(e, Apply)
        and all(isinstance(x, Scalar | Const) for x in leaves)
        and any(isinstance(x, Scalar) for x in leaves)
    )

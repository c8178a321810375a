"""Steps with other integers in the place of theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ..program.expr import Expr, map_polys
from ..program.poly import Poly


def mapped(x: Any, of: Callable[[Poly], Poly]) -> Any:
    """A step, or a part of one, with each of its integers mapped; the same object where nothing changes."""
    if isinstance(x, Poly):
        return of(x)
    if isinstance(x, Expr):
        return map_polys(x, of)
    if isinstance(x, tuple):
        return tuple(mapped(y, of) for y in x)
    if not is_dataclass(x) or isinstance(x, type):
        return x
    told = {f.name: getattr(x, f.name) for f in fields(x) if f.name not in ("span", "note")}
    new = {name: mapped(value, of) for name, value in told.items()}
    return replace(x, **new) if new != told else x

"""picked: a schedule with values of its `tune` entries put in.

In: a schedule without `extends`, and values.  Out: the schedule whose lines say these values, as if they had been written
there, and the values of options, which count as the caller's. An entry in a kernel's lines is about the kernel's own line if it
has one, else about the one around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from ..diagnostics.model import WgError
from ..diagnostics.schedule import UnknownName
from ..syntax import ast
from ..syntax.candidate import Picked
from ..syntax.options import OptionValue

WHAT = {"tile": "tile size", "ring": "home", "registers": "role", "warpgroups": "role", "option": "option"}

Items = tuple[ast.ScheduleItem, ...]


def picked(schedule: ast.Schedule, values: Iterable[Picked]) -> tuple[ast.Schedule, dict[str, OptionValue]]:
    """The schedule with the values in its lines, and options. Raises WgError (WG0401) for what it doesn't declare."""
    values, items = tuple(values), schedule.items
    problems = [_unknown(schedule, v) for v in values if v.name not in declared(items, v.what)]
    if problems:
        raise WgError(problems)
    for v in values:
        items = _placed(items, v) if v.what != "option" else items
    return replace(schedule, items=items), {v.name: v.value for v in values if v.what == "option"}


def declared(items: Items, what: str) -> tuple[str, ...]:
    """The names that a value of this kind may be for."""
    blocks = (items, *(k.items for k in items if isinstance(k, ast.KernelDecl)))
    return tuple(sorted({name for block in blocks for name in NAMES[what](block)}))


def _unknown(schedule: ast.Schedule, v: Picked) -> UnknownName:
    known = declared(schedule.items, v.what)
    return UnknownName(span=schedule.span, what=f"{WHAT[v.what]} of this schedule", name=v.name, known=known)


def _placed(items: Items, v: Picked) -> Items:
    """With the value in the line that it is about: of the kernel whose entry it is; or outside all; or of the kernels."""
    own = [k for k in items if isinstance(k, ast.KernelDecl) and v.name in NAMES[v.what](k.items)]
    chosen = [k for k in own if _tunes(k.items, v)]
    if not chosen and v.name in NAMES[v.what](items):
        return tuple(_changed(i, v) for i in items)
    where = chosen or own
    return tuple(_within(i, v) if isinstance(i, ast.KernelDecl) and i in where else i for i in items)


def _within(k: ast.KernelDecl, v: Picked) -> ast.KernelDecl:
    return replace(k, items=tuple(_changed(i, v) for i in k.items))


def _tunes(items: Items, v: Picked) -> bool:
    entries = (e for i in items if isinstance(i, ast.TuneDecl) for e in i.entries)
    return any((e.what, e.name) == (v.what, v.name) for e in entries)


def _changed(item: ast.ScheduleItem, v: Picked) -> ast.ScheduleItem:
    """The line with the value, if it is about that. The number stands where the line's own did."""
    number = ast.Number(span=item.span, value=v.value)  # type: ignore[arg-type]
    match v.what, item:
        case "tile", ast.TileDecl():
            return replace(
                item, entries=tuple((n, replace(number, span=e.span) if n == v.name else e) for n, e in item.entries)
            )
        case "ring", ast.HomeDecl(name=v.name):
            return replace(item, ring=number)
        case "registers", ast.RoleDecl(name=v.name):
            return replace(item, registers=number)
        case "warpgroups", ast.RoleDecl(name=v.name):
            return replace(item, count=number, unit="warpgroup")
    return item


def _tiles(items: Iterable[ast.ScheduleItem]) -> Iterator[str]:
    return (index for i in items if isinstance(i, ast.TileDecl) for index, _ in i.entries)


def _homes(items: Iterable[ast.ScheduleItem]) -> Iterator[str]:
    return (i.name for i in items if isinstance(i, ast.HomeDecl))


def _roles(items: Iterable[ast.ScheduleItem]) -> Iterator[str]:
    return (i.name for i in items if isinstance(i, ast.RoleDecl))


def _options(items: Iterable[ast.ScheduleItem]) -> Iterator[str]:
    return (i.name for i in items if isinstance(i, ast.OptionDecl))


NAMES: dict[str, Callable[[Sequence[ast.ScheduleItem]], Iterator[str]]] = {
    "tile": _tiles,
    "ring": _homes,
    "registers": _roles,
    "warpgroups": _roles,
    "option": _options,
}

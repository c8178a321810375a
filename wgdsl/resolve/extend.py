"""extend: a schedule that `extends` another, with the lines of both.

In: a schedule and its base, itself resolved.  Out: one schedule without `extends`. A line of the same kind and name (the tile
of an index, a role, a home, a list of steps, the grid, ...) takes the place of the base's; others follow the base's. Every
node keeps its span, so that an error shows the line that it comes from.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from ..diagnostics.model import Problem, WgError
from ..diagnostics.resolve import BadRenaming, NotRenamed
from ..syntax import ast
from .names import rename, shared_names, tensor_names

Items = tuple[ast.ScheduleItem, ...]


def extend(schedule: ast.Schedule, base: ast.Schedule) -> ast.Schedule:
    """The schedule with its base's lines. Raises WgError for renamings that don't fit."""
    own, program = tuple(split(schedule.items)), schedule.program or base.program
    kept = _kept(tuple(split(base.items)), {key(i) for i in own})
    problems = [*_misrenamed(schedule, base), *_not_renamed(schedule, base, program, kept)]
    if problems:
        raise WgError(problems)
    names = {r.old: r.new for r in schedule.renames}
    items = merge(tuple(split(rename(base.items, names))), own)
    return replace(schedule, program=program, target=schedule.target or base.target, items=items, extends=None, renames=())


def merge(base: Items, own: Items) -> Items:
    """The base's items, each replaced by the own ones of its key; then the other own ones."""
    mine: dict[Hashable, list[ast.ScheduleItem]] = {}
    for item in own:
        mine.setdefault(key(item), []).append(item)
    out: list[ast.ScheduleItem] = []
    placed = set()
    for item in base:
        k = key(item)
        if k not in mine:
            out.append(item)
        elif k not in placed:
            placed.add(k)
            out += [_within(item, new) for new in mine[k]]
    return (*out, *(item for item in own if key(item) not in placed))


def _within(base: ast.ScheduleItem, own: ast.ScheduleItem) -> ast.ScheduleItem:
    """A kernel of the schedule changes the base's kernel of its name as a schedule does its base."""
    if isinstance(base, ast.KernelDecl) and isinstance(own, ast.KernelDecl):
        return replace(own, items=merge(tuple(split(base.items)), tuple(split(own.items))))
    return own


def split(items: Iterable[ast.ScheduleItem]) -> Iterator[ast.ScheduleItem]:
    """A line that says several things as one for each: `tile i 128, j 128`, `combine O, L by merge`, `tune { ... }`."""
    for item in items:
        match item:
            case ast.TileDecl() | ast.TuneDecl():
                yield from (replace(item, entries=(e,)) for e in item.entries)
            case ast.CombineDecl():
                yield from (replace(item, targets=(t,)) for t in item.targets)
            case ast.ApproximateDecl():
                yield from (replace(item, functions=(f,)) for f in item.functions)
            case _:
                yield item


def key(item: ast.ScheduleItem) -> Hashable:
    """What an item is about: one that is about the same replaces it."""
    match item:
        case ast.TileDecl(entries=((index, _),)):
            return "tile", index
        case ast.TuneDecl(entries=(ast.Tuning(what=what, name=name),)):
            return "tune", what, name
        case ast.CombineDecl(targets=(target,)):
            return "combine", target
        case ast.ApproximateDecl(functions=(function,)):
            return "approximate", function
        case ast.AccumulateDecl():
            return "accumulate", item.tensor
        case ast.RoleBody():
            return "steps", item.role
        case ast.FuseDecl() | ast.RoleDecl() | ast.HomeDecl() | ast.OptionDecl() | ast.KernelDecl():
            return type(item).__name__, item.name
    return type(item).__name__


def _kept(base: Items, replaced: set[Hashable]) -> Items:
    return tuple(i for i in base if key(i) not in replaced)


def _misrenamed(schedule: ast.Schedule, base: ast.Schedule) -> Iterator[Problem]:
    known, seen = shared_names(base.items), set()
    for r in schedule.renames:
        if r.old in seen:
            yield BadRenaming(span=r.span, name=r.old, base=base.name)
        elif r.old not in known:
            yield BadRenaming(span=r.span, name=r.old, base=base.name, known=tuple(known))
        seen.add(r.old)


def _not_renamed(schedule: ast.Schedule, base: ast.Schedule, program: str, kept: Items) -> Iterator[Problem]:
    """Across programs nothing is matched by name: each tensor that the base's lines name is renamed, or its line replaced."""
    if program == base.program:
        return
    renamed = {r.old for r in schedule.renames}
    missing = tuple(t for t in tensor_names(kept) if t not in renamed)
    if missing:
        yield NotRenamed(span=schedule.span, tensors=missing, base=base.name, other=base.program, program=program)

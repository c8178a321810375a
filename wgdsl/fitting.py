"""The nearest schedule that fits: what an error of placement proposes.

In: a schedule that is over a budget, and a trial that says whether a changed one can be lowered and checked.  Out: the same
problems, each with the smallest changes of one number that make it fit; of two where one isn't enough.

Every proposal has been tried: it keeps all rules, not only the one that was broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from .diagnostics.budget import Budgeted
from .diagnostics.model import Problem
from .diagnostics.schedule import CantShare, TileShape
from .diagnostics.verify import RegisterNeed, RegisterPool, SharedMemory
from .syntax import ast
from .targets.choice import TARGETS
from .targets.engines import ENGINES
from .targets.registers import GRANULE, HIGHEST, LOWEST, WARPGROUP, WARPS, launch_registers
from .targets.target import Target

Trial = Callable[[ast.Schedule], bool]
TILE_STEP = 8  # elements: no engine's granule is finer
TRIALS = 200  # of pairs of changes; one takes about ten milliseconds


@dataclass(frozen=True)
class Change:
    """A changed schedule, and the change in its words. `homes`: whose ring is changed."""

    text: str
    schedule: ast.Schedule
    homes: frozenset[str] = frozenset()


Knob = Iterator[Change]  # one number at its other values, the nearest first


def fitted(schedule: ast.Schedule, problems: Iterable[Problem], trial: Trial) -> list[Problem]:
    """The problems; those of placement say what fits, if nothing else is wrong."""
    problems = list(problems)
    if not problems or not all(isinstance(p, Budgeted) for p in problems):
        return problems
    found = [c for p in problems for knob in _knobs(schedule, p) if (c := _first(knob, trial)) is not None]
    smallest = [c for c in found if not any(o.homes and o.homes < c.homes for o in found)]
    texts = dict.fromkeys(c.text for c in smallest)
    if not texts and any(isinstance(p, SharedMemory | RegisterNeed) for p in problems):
        texts = dict.fromkeys(c.text for c in _pairs(schedule, problems, trial))
    return [replace(p, nearest=tuple(texts)) if isinstance(p, Budgeted) else p for p in problems]


def _first(knob: Knob, trial: Trial) -> Change | None:
    return next((c for c in knob if trial(c.schedule)), None)


def _knobs(s: ast.Schedule, p: Problem) -> list[Knob]:
    """What might help against one problem."""
    if isinstance(p, SharedMemory):
        units = [_units(s)] if _target(s).unit == "warp" else []  # nobody's registers depend on how many warps there are
        return [*_rings(s), *_shared(s), *_tiles(s), *units]
    if isinstance(p, RegisterNeed):
        return [_registers(s, p.role, up=True), *_tiles(s)]
    if isinstance(p, RegisterPool):
        return [_registers(s, r.name, up=False) for r in _of(s, ast.RoleDecl)]
    if isinstance(p, TileShape):
        return [_tile(s, p.index, up=False), _tile(s, p.index, up=True)]
    if isinstance(p, CantShare):
        return [_apart(s, p.name)]
    return []


def _pairs(s: ast.Schedule, problems: list[Problem], trial: Trial) -> Iterator[Change]:
    """One change for each first knob: its nearest value with which some tile of the streamed axis fits."""
    firsts = [_units(s), *(k for p in problems for k in _knobs(s, p))]
    left = iter(range(TRIALS))
    axis = next(d.axis for d in _of(s, ast.StreamDecl))
    for knob in firsts:
        for first in islice(knob, 4):
            both = (Change(f"{first.text} with {c.text}", c.schedule) for c in _tile(first.schedule, axis, up=False))
            found = next((c for c, _ in zip(both, left, strict=False) if trial(c.schedule)), None)
            if found is not None:
                yield found
                break


# The numbers of a schedule.


def _of(s: ast.Schedule, kind: type) -> list:
    return [i for i in s.items if isinstance(i, kind)]


def _target(s: ast.Schedule) -> Target:
    return TARGETS[s.target]


def _with(s: ast.Schedule, *edits: tuple[ast.ScheduleItem, ast.ScheduleItem]) -> ast.Schedule:
    """The schedule with items replaced by others."""
    new = {id(old): item for old, item in edits}
    return replace(s, items=tuple(new.get(id(i), i) for i in s.items))


def _number(e: ast.Expr | None) -> int | None:
    return e.value if isinstance(e, ast.Number) and isinstance(e.value, int) else None


def _as(e: ast.Expr | None, value: int) -> ast.Number:
    """A number in the place of another."""
    return ast.Number(value=value, span=e.span if e is not None else None)


def _tiles(s: ast.Schedule) -> list[Knob]:
    return [_tile(s, index, up=False) for d in _of(s, ast.TileDecl) for index, _ in d.entries]


def _tile(s: ast.Schedule, index: str, *, up: bool) -> Knob:
    step = _step(s, index)
    for d in _of(s, ast.TileDecl):
        size = next((_number(e) for i, e in d.entries if i == index), None)
        if size is None:
            continue
        low = size // step * step
        values = range(low + step, 2 * size + step, step) if up else range(low, 0, -step)
        for n in values:
            if n != size:
                yield Change(f"`tile {index} {n}`", _with(s, (d, _retiled(d, index, n))))


def _step(s: ast.Schedule, index: str) -> int:
    """Tiles in between can't be lowered: the rows that a role splits come in blocks of the engine's."""
    is_split = any(r.split == index for r in _of(s, ast.RoleDecl))
    return ENGINES[_target(s).products[0]].rows if is_split else TILE_STEP


def _retiled(d: ast.TileDecl, index: str, size: int) -> ast.TileDecl:
    return replace(d, entries=tuple((i, _as(e, size) if i == index else e) for i, e in d.entries))


def _rings(s: ast.Schedule) -> Iterator[Knob]:
    """Each ring alone, then all rings of one depth: those that are filled together have to stay equal."""
    depths: dict[int, list[ast.HomeDecl]] = {}
    for d in _of(s, ast.HomeDecl):
        depth = _number(d.ring)
        if depth is not None and depth > 1:
            depths.setdefault(depth, []).append(d)
            yield _ring([d], depth, s)
    for depth, homes in depths.items():
        if len(homes) > 1:
            yield _ring(homes, depth, s)


def _ring(homes: list[ast.HomeDecl], depth: int, s: ast.Schedule) -> Knob:
    names = " and ".join(f"`{d.name}`" for d in homes)
    for n in range(depth - 1, 0, -1):
        shorter = _with(s, *((d, replace(d, ring=_as(d.ring, n))) for d in homes))
        yield Change(f"`ring {n}` for {names}", shorter, frozenset(d.name for d in homes))


def _shared(s: ast.Schedule) -> Iterator[Knob]:
    """A buffer of its own, laid over one that is filled once."""
    homes = _of(s, ast.HomeDecl)
    for d in (d for d in homes if d.over is None):
        others = [o for o in homes if o is not d and o.over is None and o.ring is None]
        yield (Change(f"`{d.name} ... over {o.name}`", _with(s, (d, replace(d, over=o.name)))) for o in others)


def _apart(s: ast.Schedule, name: str) -> Knob:
    for d in _of(s, ast.HomeDecl):
        if d.name == name and d.over is not None:
            yield Change(f"drop `over {d.over}`, so that `{name}` has memory of its own", _with(s, (d, replace(d, over=None))))


def _registers(s: ast.Schedule, role: str, *, up: bool) -> Knob:
    most = _target(s).thread_registers
    for d in _of(s, ast.RoleDecl):
        count = _number(d.registers)
        if d.name == role and count is not None:
            for n in range(count + GRANULE, most + 1, GRANULE) if up else range(count - count % GRANULE, LOWEST - 1, -GRANULE):
                if n != count:
                    yield Change(f"`registers {n}` for `{role}`", _with(s, (d, replace(d, registers=_as(d.registers, n)))))


def _units(s: ast.Schedule) -> Knob:
    """Fewer warpgroups, or warps in fours, in a role that splits an index: each keeps its rows of the tile. Warpgroups share
    what the pool gives; warps have what their launch grants."""
    target, roles, tiles = _target(s), _of(s, ast.RoleDecl), _of(s, ast.TileDecl)
    each = 1 if target.unit == "warpgroup" else WARPS
    for d in roles:
        count, tile = _number(d.count), next((t for t in tiles if d.split in dict(t.entries)), None)
        if d.split is None or count is None or tile is None:
            continue
        share = _rows(target, _number(dict(tile.entries)[d.split]) or 0, count // each)
        others = [(_number(r.count) or 1, _number(r.registers) or LOWEST) for r in roles if r is not d]
        for n in range((count - 1) // each, 0, -1):
            role = replace(d, count=_as(d.count, n * each))
            text = f"{d.name} : {n * each} {target.unit}{'s' * (n * each > 1)}"
            if each == 1:
                registers = _share(n, others)
                role, text = replace(role, registers=_as(d.registers, registers)), f"{text}, registers {registers}"
            retiled = _retiled(tile, d.split, share * n)
            yield Change(f"`{text}`, `tile {d.split} {share * n}`", _with(s, (d, role), (tile, retiled)))


def _rows(target: Target, tile: int, groups: int) -> int:
    """The rows of a tile that each warpgroup, or group of four warps, has: whole blocks of the engine's."""
    engine = ENGINES[target.products[0]]
    blocks = tile // (engine.rows * max(groups, 1))
    return engine.rows * max(1, min(blocks, engine.blocks))


def _share(count: int, others: list[tuple[int, int]]) -> int:
    """The most registers that each of `count` warpgroups can have beside the others."""
    groups = count + sum(n for n, _ in others)
    left = launch_registers(groups * WARPGROUP) * groups - sum(n * r for n, r in others)
    return max(LOWEST, min(HIGHEST, left // count // GRANULE * GRANULE))

"""From what the caller names to one program and one schedule.

In: a path or a text, the name of a program, and a schedule (a name or a path, perhaps with values in braces; or a text).
Out: `Found`.
A schedule's name is looked up in the program's own file and what it imports, then in the `.wg` files beside it, then among
the shipped ones: the first of these places that has one for the target decides, and of several there the nearest to it. The
schedule that another extends is looked up in the same way, from the file of the line that says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from .diagnostics.hints import nearest
from .diagnostics.model import WgError
from .diagnostics.resolve import AmbiguousBase, BadRenaming, BaseCycle, UnknownBase
from .diagnostics.runtime import AmbiguousSchedule, TargetMismatch, UnknownProgram, UnknownSchedule, UnknownTarget
from .foundation.resources import is_shipped, schedule_files
from .foundation.source import Source, Span
from .reading import TEXT_PATH, Unit, display_path, is_text, read_unit
from .resolve.extend import extend
from .resolve.names import program_words
from .resolve.picked import picked
from .syntax import ast
from .syntax.candidate import candidate, is_candidate
from .syntax.lines import Explicit
from .syntax.options import OptionValue
from .targets.choice import TARGETS, Wanted, number, serves, specific, unknown_target

ANY = Wanted()
SHIPPED = 2  # the last of the places in which a schedule is looked up


@dataclass(frozen=True, kw_only=True)
class Row:
    """A schedule as it is written, and the file that it stands in."""

    schedule: ast.Schedule
    unit: Unit


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A schedule with all that it extends, every source that it comes from, and the renamings of its own first line."""

    schedule: ast.Schedule
    sources: tuple[Source, ...]
    renames: tuple[ast.Renaming, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Found:
    """One program with the schedule chosen for it, on the target that it is compiled for, and every source that was read for
    them. `told`: what a report says of that choice. `options`: those that were named with the schedule."""

    program: ast.Program
    schedule: ast.Schedule
    sources: tuple[Source, ...]
    told: tuple[str, ...] = ()
    options: Mapping[str, OptionValue] = field(default_factory=dict)


def find(given: str | Path, *, program: str | None = None, schedule: str | Path | None = None, wanted: Wanted = ANY) -> Found:
    """The program and its schedule. Raises WgError for unknown names, unreadable files and syntax errors.

    wanted: what it is to be compiled for.
    """
    unit = read_unit(given)
    chosen = find_program(unit, program)
    named = candidate(schedule) if isinstance(schedule, str) and is_candidate(schedule) else None
    plan = find_schedule(chosen.name, named.schedule if named else schedule, unit, wanted)
    known = program_words(chosen)
    own = {i.name for i in plan.schedule.items if isinstance(i, ast.FuseDecl)}
    unknown = [r for r in plan.renames if r.new not in {*known, *own}]
    if unknown:
        base = plan.schedule.name
        raise WgError(BadRenaming(span=r.span, name=r.new, base=base, program=chosen.name, known=known) for r in unknown)
    target = _target(plan.schedule, wanted)
    assert target is not None, "only such schedules are found"
    meant, options = picked(plan.schedule, named.values if named else ())
    return Found(
        program=chosen,
        schedule=replace(meant, target=target),
        sources=tuple(dict.fromkeys((*unit.sources, *plan.sources))),
        told=wanted.told(plan.schedule.target, target),
        options=options,
    )


def _target(s: ast.Schedule, wanted: Wanted) -> str | None:
    """What a schedule is compiled for; None if it can't be. The numbers of an explicit form are those of its target."""
    return wanted.target_for(s.target, exact=isinstance(s, Explicit))


def find_program(unit: Unit, name: str | None) -> ast.Program:
    """The program of that name; without a name the only one."""
    known = tuple(p.name for p in unit.programs)
    if name is None and len(known) == 1:
        return unit.programs[0]
    for p in unit.programs:
        if p.name == name:
            return p
    raise WgError(UnknownProgram(name=name or "", known=known, path=unit.source.path))


def find_schedule(program: str, name: str | Path | None, own: Unit, wanted: Wanted = ANY) -> Whole:
    """The schedule for a program: named, from a file, from a text, or the first one there is; for what is wanted.

    Raises WgError (WG0651, WG0652, WG0658) if there is none, none for the target, or several of one name in one place; and
    what is wrong with what it extends (WG09xx).
    """
    return _only(_fitting(program, name, own, wanted)[1], program)


def _fitting(program: str, name: str | Path | None, own: Unit, wanted: Wanted) -> tuple[int, list[Whole]]:
    """The number of the first place that has schedules for what is wanted, and these, the nearest to it first."""
    if name is not None and (is_text(name) or str(name).endswith(".wg")):
        places = iter([_for_program(_all_rows(read_unit(name)), program, None, strict=True)])
    else:
        places = schedules_for(program, own, None if name is None else str(name))
    looked: list[list[Whole]] = []  # a place is read only if those before it have nothing: its mistakes concern nobody else
    for at, place in enumerate(places):
        looked.append(place)
        fit = [whole for whole in place if _target(whole.schedule, wanted) is not None]
        if fit:
            return at, sorted(fit, key=lambda w: wanted.distance(w.schedule.target))
        if any(isinstance(whole.schedule, Explicit) for whole in place):
            break  # it was written out to be run: nothing stands in for it
    others = [whole.schedule for place in looked for whole in place]
    if others:
        raise WgError(_mismatch(others[0], wanted, program, own))
    known = tuple(dict.fromkeys(w.schedule.name for place in schedules_for(program, own) for w in place))
    unknown = UnknownSchedule(name=TEXT_PATH if is_text(name) else str(name or ""), program=program, known=known)
    raise WgError([unknown, *misnamed(own)])


@dataclass(frozen=True, kw_only=True)
class Open:
    """A program for which no schedule is named: those that there are to choose from, by name in the order in which they are
    found. written: the target that they are written for; target: the one that they are compiled for.  shipped: whether they
    are shipped ones, or those of a shipped program, and not the user's.  several: whether the program's file has others.
    path: that file, if it is one."""

    program: ast.Program
    schedules: tuple[ast.Schedule, ...]
    written: str
    target: str
    shipped: bool
    several: bool
    path: Path | None
    sources: tuple[Source, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(s.name for s in self.schedules)


def find_open(given: str | Path, *, program: str | None = None, wanted: Wanted = ANY) -> Open:
    """The schedules that may be taken: all of the first place that has any, for the target that is nearest to what is wanted.
    Raises WgError as `find` does."""
    unit = read_unit(given)
    chosen = find_program(unit, program)
    place, fit = _fitting(chosen.name, None, unit, wanted)
    _only(fit, chosen.name)
    first = fit[0].schedule
    named = {w.schedule.name: w for w in reversed(fit)}  # by its name each of them can be had again
    alike = [w for w in fit if named[w.schedule.name] is w and w.schedule.target == first.target]
    target = _target(first, wanted)
    assert target is not None, "only such schedules are found"
    return Open(
        program=chosen,
        schedules=tuple(w.schedule for w in alike),
        written=first.target,
        target=target,
        shipped=place == SHIPPED or (unit.path is not None and is_shipped(unit.path)),
        several=len(unit.programs) > 1,
        path=unit.path,
        sources=tuple(dict.fromkeys((*unit.sources, *(s for w in alike for s in w.sources)))),
    )


def _mismatch(s: ast.Schedule, wanted: Wanted, program: str, own: Unit) -> TargetMismatch | UnknownTarget:
    """Why a schedule isn't for what is wanted, and which are."""
    if s.target not in TARGETS:
        return unknown_target(s.target, span=s.span)
    gpu = wanted.gpu if wanted.named is None else None
    target = gpu.target if gpu is not None else str(wanted.named)
    return TargetMismatch(
        span=s.span,
        target=target,
        schedule=s.name,
        needs=s.target,
        gpu=gpu.name if gpu is not None else "",
        same_family=serves(target, s.target) or serves(s.target, target),
        explicit=isinstance(s, Explicit),
        engines={t: (*TARGETS[t].products, *TARGETS[t].copies) for t in (s.target, target) if t in TARGETS},
        instead=_served(program, wanted, own),
        retarget=_other_family(s, wanted),
    )


def _other_family(s: ast.Schedule, wanted: Wanted) -> str:
    """The target of another family whose schedules can be compiled for what is wanted, the earliest and so the most widely
    served; empty if there is none."""
    if isinstance(s, Explicit):
        return ""
    others = (t for t in TARGETS if not specific(t) and TARGETS[t].family != TARGETS[s.target].family)
    return min((t for t in others if wanted.target_for(t) is not None), key=number, default="")


def _served(program: str, wanted: Wanted, own: Unit) -> tuple[str, ...]:
    """The schedules for a program that can be compiled for what is wanted; none if some file can't be read."""
    try:
        found = [w.schedule for place in schedules_for(program, own) for w in place]
    except WgError:
        return ()
    return tuple(dict.fromkeys(s.name for s in found if _target(s, wanted) is not None))


def _only(place: list[Whole], program: str) -> Whole:
    """The first one, if its name is the only one of its kind there."""
    first = place[0].schedule
    same = [w.schedule.span for w in place if (w.schedule.name, w.schedule.target) == (first.name, first.target)]
    if len(same) > 1:
        paths = tuple(dict.fromkeys(span.source.path for span in same if span))
        raise WgError(AmbiguousSchedule(span=same[1], first=first.span, name=first.name, program=program, paths=paths))
    return place[0]


def misnamed(unit: Unit) -> list[UnknownProgram]:
    """The schedules of a file that are for no program of it, but for one with nearly that name."""
    known = tuple(p.name for p in unit.programs)
    return [
        UnknownProgram(span=s.span, name=s.program, known=known)
        for s in unit.own.schedules
        if s.program and s.program not in known and nearest(s.program, known)
    ]


def schedules_for(program: str, own: Unit, name: str | None = None) -> Iterator[list[Whole]]:
    """Every schedule for a program, of that name if one is given: a list for each place, in the order of the places."""
    mention = re.compile(rf"\b(?:schedule|roles)\s+\w+\s+(?:for\s+{re.escape(program)}\b|extends\b)")
    for at, place in enumerate(_places(own, mention)):
        yield _for_program(place(), program, name, strict=at == 0 or name is not None)


def schedule_names(found: Found, own: Unit, wanted: Wanted) -> list[str]:
    """The names of all schedules for a program that can be compiled for the target for which one was found, those of the
    nearest place first."""
    fit = (w.schedule for place in schedules_for(found.program.name, own) for w in place)
    return list(dict.fromkeys(s.name for s in fit if _target(s, wanted) == found.schedule.target))


def own_schedules(program: str, unit: Unit) -> list[str]:
    """The names of the schedules for a program that stand in the file itself."""
    rows = [Row(schedule=s, unit=unit) for s in unit.own.schedules]
    return list(dict.fromkeys(w.schedule.name for w in _for_program(rows, program, None, strict=True)))


def _for_program(rows: list[Row], program: str, name: str | None, *, strict: bool) -> list[Whole]:
    """Those of the rows that are for the program, whole. One that leaves its program to a base that can't be found counts
    for none, unless `strict`."""
    out = []
    for row in rows:
        s = row.schedule
        if s.program not in ("", program) or (name is not None and s.name != name):
            continue
        try:
            found = whole(row)
        except WgError:
            if strict or s.program:
                raise
            continue
        if found.schedule.program == program:
            out.append(found)
    return out


# The places in which a schedule is looked up, from the file that asks for it.


def _places(unit: Unit, mention: re.Pattern[str]) -> Iterator[Callable[[], list[Row]]]:
    """The rows of each place, read when they are asked for. Only files that mention what is looked for are parsed."""
    near, shipped = _files(unit)
    yield lambda: _all_rows(unit)
    yield lambda: _rows_of(near, mention)
    yield lambda: _rows_of(shipped, mention)


def _all_rows(unit: Unit) -> list[Row]:
    return [Row(schedule=s, unit=u) for u in unit.units for s in u.own.schedules]


def _rows_of(paths: list[Path], mention: re.Pattern[str]) -> list[Row]:
    """The schedules that stand in the files themselves."""
    units = [read_unit(p) for p in paths if mention.search(_text(p))]
    return [Row(schedule=s, unit=u) for u in units for s in u.own.schedules]


def _text(path: Path) -> str:
    from .reading import load

    return load(path).text


def _files(unit: Unit) -> tuple[list[Path], list[Path]]:
    """The files beside this one, and the shipped ones; each file in one of them, those already read in neither."""
    beside = unit.beside
    near = sorted(beside.glob("*.wg")) if beside is not None and beside.is_dir() else []
    read = {u.source.path for u in unit.units}
    seen = {display_path(p) for p in near} | read
    return [p for p in near if display_path(p) not in read], [p for p in schedule_files() if display_path(p) not in seen]


# What a schedule extends.


def whole(row: Row, inside: tuple[ast.Schedule, ...] = ()) -> Whole:
    """The schedule with all that it extends. `inside`: the schedules whose `extends` led here, outermost first."""
    s = row.schedule
    if s.extends is None:
        return Whole(schedule=s, sources=row.unit.sources)
    if any(s.span == other.span for other in inside):
        names = [other.name for other in inside]
        chain = (*names[names.index(s.name) :], s.name)
        raise WgError(BaseCycle(span=inside[-1].span, chain=chain))
    base = _base(row, (*inside, s))
    sources = tuple(dict.fromkeys((*row.unit.sources, *base.sources)))
    return Whole(schedule=extend(s, base.schedule), sources=sources, renames=s.renames)


def _base(row: Row, inside: tuple[ast.Schedule, ...]) -> Whole:
    """The schedule that a row extends, from the first place that has one of that name."""
    s = row.schedule
    name = s.extends or ""
    mention = re.compile(rf"\bschedule\s+{re.escape(name)}\b")
    for place in _places(row.unit, mention):
        found = [r for r in place() if r.schedule.name == name and r.schedule.span != s.span]
        if found:
            return _chosen_base(s, found, inside)
    if name == s.name:
        raise WgError(BaseCycle(span=s.span, chain=(name, name)))
    known = tuple(dict.fromkeys(r.schedule.name for p in _places(row.unit, re.compile(r"\bschedule\b")) for r in p()))
    raise WgError(UnknownBase(span=s.span, name=name, known=tuple(k for k in known if k != s.name)))


def _chosen_base(s: ast.Schedule, rows: list[Row], inside: tuple[ast.Schedule, ...]) -> Whole:
    """The only one; of several the one for the program and the target that the schedule names."""
    if len(rows) == 1:
        return whole(rows[0], inside)
    found = [whole(r, inside) for r in rows]
    for fits in (_of_program, _of_target):
        found = [w for w in found if fits(s, w.schedule)] or found
    if len(found) > 1:
        spans: tuple[Span, ...] = tuple(w.schedule.span for w in found if w.schedule.span)
        raise WgError(AmbiguousBase(span=s.span, name=s.extends or "", places=spans))
    return found[0]


def _of_program(s: ast.Schedule, base: ast.Schedule) -> bool:
    return base.program == s.program


def _of_target(s: ast.Schedule, base: ast.Schedule) -> bool:
    return base.target == s.target

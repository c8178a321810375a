"""From what the caller names to one program and one schedule.

In: a path or a text, the name of a program, and a schedule (a name, a path or a text).  Out: `Found`.
A schedule's name is looked up in the program's own file, then in the `.wg` files beside it, then among the shipped ones:
the first of these places that has one decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .diagnostics.hints import nearest
from .diagnostics.model import WgError
from .diagnostics.runtime import AmbiguousSchedule, TargetMismatch, UnknownProgram, UnknownSchedule
from .foundation.resources import resource, schedule_files
from .foundation.source import Source
from .syntax import ast

TEXT_PATH = "<text>"
Row = tuple[ast.Schedule, Source]


@dataclass(frozen=True, kw_only=True)
class Found:
    """One program with the schedule chosen for it, and every source that was read for them."""

    program: ast.Program
    schedule: ast.Schedule
    sources: tuple[Source, ...]


def is_text(given: object) -> bool:
    """Whether this is `.wg` text rather than the path of a file."""
    return isinstance(given, str) and ("\n" in given or "{" in given)


def load(given: str | Path) -> Source:
    """The source of a path or a text. Raises WgError for what can't be read."""
    if is_text(given):
        return Source(TEXT_PATH, str(given).removeprefix("\ufeff"))
    return _load_file(Path(given))


def _load_file(path: Path) -> Source:
    from .syntax.parser import read

    return Source(display_path(path), read(path).text)


def display_path(path: Path) -> str:
    """The path that messages and `#line` show: shipped files by their place in the project, others as they were given."""
    whole = path.resolve()
    for kind in ("schedules", "examples"):
        try:
            root = resource(kind).resolve()
        except FileNotFoundError:
            continue
        if whole.is_relative_to(root):
            return whole.relative_to(root.parent).as_posix()
    return str(path)


def parse_source(source: Source) -> ast.File:
    """The AST of a source."""
    return _parsed(source.path, source.text)


@lru_cache(maxsize=64)
def _parsed(path: str, text: str) -> ast.File:
    from .syntax.parser import parse

    return parse(Source(path, text))


def find(
    given: str | Path, *, program: str | None = None, schedule: str | Path | None = None, target: str | None = None
) -> Found:
    """The program and its schedule. Raises WgError for unknown names, unreadable files and syntax errors.

    target: the architecture the schedule must be for; without it any.
    """
    source = load(given)
    file = parse_source(source)
    chosen = find_program(file, program, source.path)
    beside = None if is_text(given) else Path(given).parent
    plan, where = find_schedule(chosen.name, schedule, source, beside, target)
    return Found(program=chosen, schedule=plan, sources=tuple(dict.fromkeys((source, where))))


def find_program(file: ast.File, name: str | None, path: str) -> ast.Program:
    """The program of that name; without a name the only one."""
    known = tuple(p.name for p in file.programs)
    if name is None and len(known) == 1:
        return file.programs[0]
    for p in file.programs:
        if p.name == name:
            return p
    raise WgError(UnknownProgram(name=name or "", known=known, path=path))


def find_schedule(
    program: str, wanted: str | Path | None, own: Source, beside: Path | None = None, target: str | None = None
) -> tuple[ast.Schedule, Source]:
    """The schedule for a program: named, from a file, from a text, or the first one there is.

    Raises WgError (WG0651, WG0652, WG0658) if there is none, none for the target, or several of one name in one place.
    """
    if wanted is not None and (is_text(wanted) or str(wanted).endswith(".wg")):
        source = load(wanted)
        places = [[(s, source) for s in parse_source(source).schedules if s.program == program]]
    else:
        places = [
            [(s, source) for s, source in place if wanted is None or s.name == wanted]
            for place in schedules_for(program, own, beside)
        ]
    for place in places:
        fit = [row for row in place if target is None or row[0].target == target]
        if fit:
            return _only(fit, program)
    others = [s for place in places for s, _ in place]
    if others:
        raise WgError(TargetMismatch(span=others[0].span, target=str(target), schedule=others[0].name, needs=others[0].target))
    known = tuple(dict.fromkeys(s.name for place in schedules_for(program, own, beside) for s, _ in place))
    unknown = UnknownSchedule(name=TEXT_PATH if is_text(wanted) else str(wanted or ""), program=program, known=known)
    raise WgError([unknown, *misnamed(parse_source(own))])


def _only(rows: list[Row], program: str) -> Row:
    """The first row, if its name is the only one of its kind there."""
    first, source = rows[0]
    same = [(s, where) for s, where in rows if (s.name, s.target) == (first.name, first.target)]
    if len(same) > 1:
        paths = tuple(dict.fromkeys(where.path for _, where in same))
        raise WgError(AmbiguousSchedule(span=same[1][0].span, first=first.span, name=first.name, program=program, paths=paths))
    return first, source


def misnamed(file: ast.File) -> list[UnknownProgram]:
    """The schedules of a file that are for no program of it, but for one with nearly that name."""
    known = tuple(p.name for p in file.programs)
    return [
        UnknownProgram(span=s.span, name=s.program, known=known)
        for s in file.schedules
        if s.program not in known and nearest(s.program, known)
    ]


def schedules_for(program: str, own: Source, beside: Path | None = None) -> Iterator[list[Row]]:
    """Every schedule for a program, a list for each place in the order in which they are looked up: the program's own file,
    the files beside it, the shipped ones. Only files that mention the program are parsed."""
    mention = re.compile(rf"\bschedule\s+\w+\s+for\s+{re.escape(program)}\b")
    near, shipped = _files(own, beside)
    for sources in ([own], map(load, near), map(load, shipped)):
        read = [source for source in sources if mention.search(source.text)]
        yield [(s, source) for source in read for s in parse_source(source).schedules if s.program == program]


def _files(own: Source, beside: Path | None) -> tuple[list[Path], list[Path]]:
    """The files beside the program's, and the shipped ones; each file in one of them, the program's own in neither."""
    near = sorted(beside.glob("*.wg")) if beside is not None and beside.is_dir() else []
    seen = {display_path(p) for p in near} | {own.path}
    return [p for p in near if display_path(p) != own.path], [p for p in schedule_files() if display_path(p) not in seen]

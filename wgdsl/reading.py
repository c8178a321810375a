"""From a path or a text to what stands in it and in what it imports.

In: a path or a text.  Out: a `Unit`. An import is a path relative to the file that has it, for a text to the current folder;
the programs and schedules of the imported file then count as if they stood in the importing one.
"""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from .diagnostics.model import Problem, WgError
from .diagnostics.resolve import ImportCycle, ImportUnread, ProgramTwice
from .diagnostics.syntax import Unreadable
from .foundation.resources import resource
from .foundation.source import Source, Span
from .syntax import ast

TEXT_PATH = "<text>"


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One text. `own` is what stands in it, `imports` what its import lines name; `path` is None for a text."""

    source: Source
    path: Path | None
    own: ast.File
    imports: tuple[Unit, ...] = ()

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """This one, then every one that it imports, directly or not, each once."""
        found: dict[Source, Unit] = {self.source: self}
        for unit in (u for i in self.imports for u in i.units):
            found.setdefault(unit.source, unit)
        return tuple(found.values())

    @property
    def programs(self) -> tuple[ast.Program, ...]:
        return tuple(p for u in self.units for p in u.own.programs)

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(u.source for u in self.units)

    @property
    def beside(self) -> Path | None:
        """The folder of the file."""
        return None if self.path is None else self.path.parent


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


def read_unit(given: str | Path) -> Unit:
    """A path or a text with all that it imports. Raises WgError for what can't be read, here or there."""
    unit = _Reader().unit(given, ())
    twice = list(_programs_twice(unit))
    if twice:
        raise WgError(twice)
    return unit


class _Reader:
    """Reads each file once, however many import it."""

    def __init__(self):
        self.units: dict[Path, Unit] = {}

    def unit(self, given: str | Path, inside: tuple[tuple[Path, str], ...]) -> Unit:
        """`inside`: the files whose imports led here, outermost first, with the paths to show."""
        source = load(given)
        file = parse_source(source)
        path = None if is_text(given) else Path(given)
        if path is not None:
            inside = (*inside, (path.resolve(), source.path))
        problems: list[Problem] = []
        imports: list[Unit] = []
        for line in file.imports:
            try:
                imports.append(self.imported(line, path, inside))
            except WgError as e:
                problems += e.problems
        if problems:
            raise WgError(problems)
        return Unit(source=source, path=path, own=file, imports=tuple(imports))

    def imported(self, line: ast.Import, importer: Path | None, inside: tuple[tuple[Path, str], ...]) -> Unit:
        path = Path(os.path.normpath((importer.parent if importer is not None else Path()) / line.path))
        whole = path.resolve()
        open_files = [p for p, _ in inside]
        if whole in open_files:
            chain = tuple(shown for _, shown in inside[open_files.index(whole) :])
            raise WgError(ImportCycle(span=line.span, chain=(*chain, chain[0])))
        if whole not in self.units:
            self.units[whole] = self._read(path, line.span, inside)
        return self.units[whole]

    def _read(self, path: Path, span: Span | None, inside: tuple[tuple[Path, str], ...]) -> Unit:
        try:
            return self.unit(path, inside)
        except WgError as e:
            problem = e.problems[0]
            if isinstance(problem, Unreadable):  # said where the import stands
                raise WgError(ImportUnread(span=span, path=problem.path, why=problem.why)) from None
            raise


def _programs_twice(unit: Unit) -> list[ProgramTwice]:
    first: dict[str, ast.Program] = {}
    found = []
    for p in unit.programs:
        if first.setdefault(p.name, p) is not p:
            found.append(ProgramTwice(span=p.span, name=p.name, first=first[p.name].span))
    return found

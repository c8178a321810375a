"""Two schedules of one program, as `wgdsl diff` names them.

In: two words, each the name of a schedule or the path of a file with one; perhaps the program's file before them.
Out: the program's file and name, and both schedules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..diagnostics.model import WgError
from ..diagnostics.tools import NoCommonProgram
from ..foundation.resources import resource, schedule_files
from ..reading import read_unit
from ..sources import Row, whole


@dataclass(frozen=True, kw_only=True)
class Pair:
    file: Path
    program: str
    schedules: tuple[str | Path, str | Path]


def paired(words: list[str], program: str | None) -> Pair:
    """What the words mean. Raises WgError for two schedules without a common program, or with several."""
    if len(words) == 3:
        file, *rest = words
        names = [p.name for p in read_unit(Path(file)).programs]
        common = [program] if program else names[:1]
        places = [Path(file)]
    else:
        rest = words
        common = [p for p in programs_with(rest[0]) if p in programs_with(rest[1]) and program in (None, p)]
        places = [*(Path(w) for w in rest if _is_file(w)), *_beside(rest), *sorted(resource("examples").rglob("*.wg"))]
    found = {p: f for p in common for f in reversed(places) if p in _declared(f)}
    if len(found) != 1:
        raise WgError(NoCommonProgram(first=rest[0], second=rest[1], programs=tuple(sorted(found)), wanted=program or ""))
    ((name, file),) = found.items()
    first, second = (Path(w) if _is_file(w) else w for w in rest)
    return Pair(file=Path(file), program=name, schedules=(first, second))


def placed_schedule(words: list[str], program: str | None) -> tuple[Path, str, str | Path]:
    """One schedule, perhaps behind its program's file: that file, the program's name, and the schedule. Raises WgError as
    `paired` does."""
    pair = paired([*words, words[-1]], program)
    return pair.file, pair.program, pair.schedules[0]


def _is_file(word: str) -> bool:
    return Path(word).is_file()


def _beside(words: list[str]) -> Iterator[Path]:
    """Files beside those that are named, and those of the current folder."""
    for folder in dict.fromkeys([*(Path(w).parent for w in words if _is_file(w)), Path(".")]):
        yield from sorted(folder.glob("*.wg"))


def _declared(file: Path) -> list[str]:
    """The programs of a file; none of one that doesn't parse: it isn't what was asked for."""
    try:
        return [p.name for p in read_unit(file).programs]
    except WgError:
        return []


def programs_with(word: str) -> list[str]:
    """The programs that have a schedule of that name, or in that file. Those of the examples' own schedules count where no
    other schedule has the name."""
    if _is_file(word):
        return _scheduled(Path(word))
    for files in ([*sorted(Path(".").glob("*.wg")), *schedule_files()], sorted(resource("examples").rglob("*.wg"))):
        if found := list(dict.fromkeys(p for f in files for p in _named(f, word))):
            return found
    return []


def _scheduled(file: Path, name: str | None = None) -> list[str]:
    """The programs of a file's schedules, perhaps only of those of a name; one that extends another may leave it to that."""
    rows = [Row(schedule=s, unit=u) for u in read_unit(file).units for s in u.own.schedules if name in (None, s.name)]
    return [whole(row).schedule.program for row in rows]


def _named(file: Path, name: str) -> list[str]:
    try:
        return _scheduled(file, name)
    except WgError:
        return []

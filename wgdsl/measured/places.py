"""Which tables say something of a program on a target.

In: the program, its file, the target.  Out: their rows, each with where it stands.
Tables are looked up in two places. Beside a file `my.wg`: every `my.*.json` with the target among the parts of its name, as
`my.sm_90a.json`, `my.sm_90a.h100.json` or, if the file holds several programs, `my.other.sm_90a.json`. And, if the schedules
are shipped ones, those of the program among the shipped tables. A table counts if it is of that program; one that can't be
read is an error.
A target for which there is none uses those of the latest target before it of its family.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..foundation.resources import table_files
from ..reading import display_path
from ..targets.choice import TARGETS, number, serves
from .table import Row, parsed_file


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A row, the table that it stands in, and its number there. shipped: whether that is a shipped one. text: of the file."""

    row: Row
    number: int
    path: str
    card: str
    date: str
    shipped: bool
    text: str

    @property
    def place(self) -> str:
        return f"row {self.number} of {self.path}"

    @property
    def made(self) -> str:
        """The card and the date."""
        return f"{self.card}, {self.date}" if self.date else self.card


def files_beside(path: Path) -> list[Path]:
    """The tables that may belong to a `.wg` file, whatever the target."""
    found = (p for p in path.parent.glob("*.json") if p.name.startswith(f"{path.stem}."))
    return sorted(p for p in found if _targets_of(p))


def _targets_of(path: Path) -> list[str]:
    return [part for part in path.name.split(".") if part in TARGETS]


def rows_of(program: str, target: str, path: Path | None, *, shipped: bool) -> tuple[Measured, ...]:
    """The rows for a program on a target, those beside its file first. shipped: whether its schedules are shipped ones.

    Raises WgError (WG0660) for a file that should hold some and is no table.
    """
    files = [(p, False) for p in files_beside(path)] if path is not None else []
    files += [(p, True) for p in table_files() if shipped and p.name.startswith(f"{program}.")]
    for each in _family(target):
        rows = tuple(_rows(program, each, files))
        if rows:
            return rows
    return ()


def _family(target: str) -> list[str]:
    """The target, and those whose schedules it takes, the latest first."""
    return sorted((t for t in TARGETS if serves(t, target)), key=number, reverse=True)


def _rows(program: str, target: str, files: Iterable[tuple[Path, bool]]) -> Iterable[Measured]:
    for path, shipped in files:
        if target not in _targets_of(path):
            continue
        text, table = parsed_file(path, display_path(path))
        if (table.program, table.target) != (program, target):
            continue
        for n, row in enumerate(table.rows, 1):
            yield Measured(
                row=row,
                number=n,
                path=display_path(path),
                card=table.card,
                date=table.date,
                shipped=shipped,
                text=text,
            )

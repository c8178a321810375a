"""`golden.json`: how the CUDA texts of a folder were made.

In: a folder, or a `.wg` file with the folder `golden` beside it.  Out: a `Folder` of `Golden`s.

    golden/golden.json       by name: file, schedule, program, what was fixed, the dims of the runs that prove it
    golden/NAME.cu           the text
    golden/hardware.json     which texts ran right, and where (another place: `"record": PATH`)

Paths are relative to the folder, so that it can be moved together with what it was made of.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.tools import BadManifest, NoGoldens

MANIFEST, RECORD, BESIDE = "golden.json", "hardware.json", "golden"


@dataclass(frozen=True, kw_only=True)
class Golden:
    """One text. `settings`: `NAME=VALUE` each, as after `--set`. `dims`: those of each run that proves it; none: chosen."""

    name: str
    file: str
    schedule: str
    program: str | None = None
    settings: tuple[str, ...] = ()
    dims: tuple[tuple[str, ...], ...] = ()

    def row(self) -> dict[str, Any]:
        """What the file holds of it."""
        row = {"file": self.file, "schedule": self.schedule, "program": self.program}
        row |= {"set": list(self.settings), "dims": [list(d) for d in self.dims]}
        return {k: v for k, v in row.items() if v}


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder of goldens, sorted by name."""

    path: Path
    goldens: tuple[Golden, ...] = ()
    record: str = RECORD
    own: bool = field(default=False)  # whether the record's place is written down

    def text_path(self, g: Golden) -> Path:
        return self.path / f"{g.name}.cu"

    @property
    def record_path(self) -> Path:
        return self.path / self.record

    def source(self, g: Golden) -> Path:
        """The `.wg` file of the program, as it is shown."""
        return Path(os.path.normpath(self.path / g.file))

    def schedule(self, g: Golden) -> str | Path:
        """The schedule's name, or the path of its file."""
        return Path(os.path.normpath(self.path / g.schedule)) if g.schedule.endswith(".wg") else g.schedule

    def of(self, source: Path) -> tuple[Golden, ...]:
        """The goldens made of a file, as program or as schedule."""
        whole = source.resolve()
        return tuple(g for g in self.goldens if whole in (self.source(g).resolve(), Path(self.schedule(g)).resolve()))

    def with_golden(self, g: Golden) -> Folder:
        rest = [x for x in self.goldens if x.name != g.name]
        return replace(self, goldens=tuple(sorted([*rest, g], key=lambda x: x.name)))

    def text(self) -> str:
        whole = {"record": self.record} if self.own else {}
        return json.dumps({**whole, "goldens": {g.name: g.row() for g in self.goldens}}, indent=1) + "\n"

    def save(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / MANIFEST).write_text(self.text(), "utf-8")


def read_folder(path: Path) -> Folder:
    """The goldens of a folder; none if it has no `golden.json`. Raises WgError (WG1002)."""
    file = path / MANIFEST
    if not file.exists():
        return Folder(path=path)
    try:
        data = json.loads(file.read_text("utf-8"))
        goldens = tuple(_golden(file, name, row) for name, row in sorted(data["goldens"].items()))
    except (ValueError, AttributeError, TypeError) as e:
        raise WgError(BadManifest(path=str(file), why=str(e))) from e
    except KeyError as e:
        raise WgError(BadManifest(path=str(file), why=f"it lacks {e}")) from e
    return Folder(path=path, goldens=goldens, record=data.get("record", RECORD), own="record" in data)


def _golden(file: Path, name: str, row: Mapping[str, Any]) -> Golden:
    for key in ("file", "schedule"):
        if not isinstance(row.get(key), str):
            raise WgError(BadManifest(path=str(file), why=f"`{name}` doesn't say its {key}"))
    return Golden(
        name=name,
        file=row["file"],
        schedule=row["schedule"],
        program=row.get("program"),
        settings=tuple(row.get("set", ())),
        dims=tuple(tuple(d) for d in row.get("dims", ())),
    )


def folder_of(path: Path) -> Folder:
    """The folder that a path means: itself, or `golden` beside a file."""
    return read_folder(path if path.is_dir() else path.parent / BESIDE)


def chosen(path: Path) -> tuple[Folder, tuple[Golden, ...]]:
    """The goldens that a path means: all of a folder, or those of a `.wg` file. Raises WgError (WG1001) if there are none."""
    folder = folder_of(path)
    goldens = folder.goldens if path.is_dir() else folder.of(path)
    if not goldens:
        raise WgError(NoGoldens(path=str(path), folder=str(folder.path)))
    return folder, goldens

"""Files of results: JSON lines, each an object.

`{"about": ...}` says what machine, `{"fault": {"key", "contestant", "why"}}` who was left out of what, `{"summary": [...]}`,
the last one, has the means, and every other line is a case with its ratios. Lines are written as they come: a run that is
broken off leaves what it has. What a summary says is worked out from the cases again, so it isn't read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.tools import NoResults

Line = dict[str, Any]
NEEDED = ("suite", "case", "contestants", "ratios")  # of a row


@dataclass(kw_only=True)
class Results:
    about: dict[str, Any] = field(default_factory=dict)
    rows: list[Line] = field(default_factory=list)
    faults: list[Line] = field(default_factory=list)

    def take(self, line: Line) -> None:
        if "about" in line:
            self.about = line["about"]
        elif "fault" in line:
            self.faults.append(line["fault"])
        elif "summary" not in line:
            self.rows.append(line)


class Sink:
    """Where lines go: to the results, and to a file if there is one."""

    def __init__(self, path: Path | None):
        self.path, self.results = path, Results()
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("", "utf-8")

    def add(self, line: Line) -> None:
        self.results.take(line)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def read_results(path: Path) -> Results:
    """The results of a file. Raises WgError (WG1017) for one that holds none."""
    results = Results()
    for line in _lines(path):
        results.take(line)
    if not results.about:
        raise WgError(NoResults(path=str(path), why="no line says what machine it was"))
    return results


def _lines(path: Path) -> Iterator[Line]:
    for number, text in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            raise WgError(NoResults(path=str(path), why=f"line {number} isn't JSON")) from None
        if not isinstance(line, dict) or not ({"about", "fault", "summary"} & line.keys() or line.keys() >= {*NEEDED}):
            raise WgError(NoResults(path=str(path), why=f"line {number} is no case of a benchmark"))
        yield line

"""`wgdsl supports`: the answer as text or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..diagnostics.model import Problem, WgError
from ..diagnostics.runtime import UnknownSetting
from ..settings import sort_settings
from ..support import Support, support

FORMATS = ("text", "json")


def answer(
    path: Path, settings: list[str], program: str | None, schedule: str | None, target: str, *, build: bool, form: str
) -> tuple[str, bool]:
    """The answer in one of the formats, and whether it is yes. Raises WgError (WG0654) for another format."""
    if form not in FORMATS:
        raise WgError(UnknownSetting(text=form, known=FORMATS, why=f"there is no format `{form}`"))
    found = support(path, schedule, target, lambda f: sort_settings(f, settings), program=program, build=build)
    text = json.dumps(_row(found), indent=1) if form == "json" else _text(found)
    return f"{text}\n", bool(found)


def _text(s: Support) -> str:
    if not s:
        return f"no\n{s.reason}"
    return "\n".join((f"yes: schedule {s.schedule}, target {s.target}", *(f"  {line}" for line in s.told)))


def _row(s: Support) -> dict[str, Any]:
    return {
        "supported": bool(s),
        "schedule": s.schedule,
        "target": s.target,
        "told": list(s.told),
        "missing": s.missing,
        "problems": [_problem(p) for p in s.problems],
    }


def _problem(p: Problem) -> dict[str, Any]:
    place = {"file": p.span.source.path, "line": p.span.line} if p.span else {}
    return {"code": p.code, "title": p.title(), **place, "notes": list(p.notes()), "help": p.help()}

"""`wgdsl tune`: what a schedule leaves to a tuner.

In: a path, and names of program and schedule.  Out: a line for each entry of its `tune` blocks, and the number of
combinations.
"""

from __future__ import annotations

from pathlib import Path

from ..driver import tuning
from ..resolve.tuning import combinations
from ..settings import sort_settings


def space_text(path: Path, settings: list[str], program: str | None, schedule: str | None, target: str) -> str:
    """The text of `wgdsl tune`."""
    found, choices = tuning(
        path, program=program, schedule=schedule, target=target, settings=lambda f: sort_settings(f, settings)
    )
    count = combinations(choices)
    head = f"schedule {found.schedule.name} for {found.program.name} on {found.schedule.target}"
    tail = f"{count} combination{'s' if count != 1 else ''}" if choices else "nothing to tune"
    return "\n".join([head, *(f"  {c}" for c in choices), tail]) + "\n"

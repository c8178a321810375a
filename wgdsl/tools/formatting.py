"""`wgdsl fmt`: files rewritten in the one layout."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..reading import load


def format_files(paths: Iterable[Path], *, write: bool) -> list[Path]:
    """The files that change; rewritten if `write`. Raises WgError for what doesn't parse."""
    from ..syntax.printer import fmt

    changed = []
    for path in paths:
        text = fmt(load(path))
        if text.encode() == path.read_bytes():
            continue
        changed.append(path)
        if write:
            path.write_bytes(text.encode())
    return changed

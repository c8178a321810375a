"""Which golden CUDA texts have been proven on a GPU.

In: a folder of `.cu` files and the record of runs.  Out: the files whose text has no record.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from . import hardware


@dataclass(frozen=True, kw_only=True)
class Status:
    proven: tuple[Path, ...]
    unproven: tuple[Path, ...]


def status(folder: Path, record: Path) -> Status:
    """Sort the goldens under `folder` by whether `record` knows their text."""
    known = hardware.load(record)
    files = sorted(folder.rglob("*.cu"))
    proven = tuple(f for f in files if hardware.digest(f.read_text("utf-8")) in known)
    return Status(proven=proven, unproven=tuple(f for f in files if f not in proven))

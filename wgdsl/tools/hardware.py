"""Which emitted CUDA texts have run right, and on which card: the record behind the goldens.

In: the texts that GPU tests ran, with their errors.  Out: a JSON file, keyed by the SHA-256 of the text, that says for each
kernel the card, the driver, NVRTC, the largest error, how many runs and when. A text without a record has not been proven.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Card:
    """One CUDA device and what compiles for it. `target` is its architecture, e.g. sm_90a."""

    name: str
    target: str
    driver: str
    nvrtc: str


@dataclass(frozen=True, kw_only=True)
class Record:
    """`runs` right runs of one text on one card; `max_error` is the largest absolute error against float64 among them."""

    kernel: str
    card: str
    driver: str
    nvrtc: str
    max_error: float
    runs: int
    date: str  # of the last run, UTC

    def joined(self, later: Record) -> Record:
        """Both in one: the later surroundings, all the runs, the larger error."""
        return replace(later, max_error=max(self.max_error, later.max_error), runs=self.runs + later.runs)


def digest(cuda_text: str) -> str:
    """The key of a text: SHA-256 of its UTF-8 bytes, in hexadecimal."""
    return hashlib.sha256(cuda_text.encode()).hexdigest()


def load(path: Path) -> dict[str, Record]:
    """The records of a file; none if it doesn't exist."""
    if not path.exists():
        return {}
    return {key: Record(**row) for key, row in json.loads(path.read_text("utf-8")).items()}


def merge(path: Path, right: Mapping[str, Record], wrong: Iterable[str] = ()) -> None:
    """Write `right` over what the file has, and take out the texts in `wrong`: they failed since they were recorded."""
    rows = {**load(path), **right}
    for key in wrong:
        rows.pop(key, None)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({key: asdict(row) for key, row in rows.items()}, indent=1, sort_keys=True)
    path.write_text(text + "\n", "utf-8")


def today() -> str:
    """The date of a record: UTC, as 2026-11-30."""
    return datetime.now(UTC).date().isoformat()


def find_card(ordinal: int = 0) -> Card | None:
    """The CUDA device of that number, or None where there is no driver or no device."""
    from ..runtime import cuda, nvrtc

    if not cuda.available():
        return None
    device = cuda.device(ordinal)
    driver = f"{_kernel_module_version()} (CUDA {cuda.driver_version()})"
    return Card(name=device.name, target=device.target, driver=driver, nvrtc=nvrtc.version())


def _kernel_module_version(path: Path = Path("/proc/driver/nvidia/version")) -> str:
    """The driver's version as its kernel module states it, e.g. 580.95.05."""
    found = re.search(r"\b\d+\.\d+(\.\d+)?\b", path.read_text("utf-8")) if path.exists() else None
    return found[0] if found else "unknown"

"""A GPU as a stopwatch: contests are held in a process that may crash or hang.

In: contests.  Out: their entries; and the work of that process.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory

from ..runtime import cuda
from .contest import Contest, hold
from .supervised import Entry, Journal, followed
from .track import on_gpu
from .watch import MODULE

COMMAND = "time-candidates"


class GpuStopwatch:
    """The current GPU. timeout: seconds after which the work of a candidate counts as hanging."""

    def __init__(self, card: str, timeout: float):
        self.card, self.timeout = card, timeout

    def times(self, contest: Contest, until: float) -> Generator[Entry]:
        with TemporaryDirectory(prefix="wgdsl-") as folder:
            what, journal = Path(folder, "contest.json"), Path(folder, "journal")
            contest.write(what)
            command = [sys.executable, *MODULE, COMMAND, str(what), str(journal)]
            yield from followed(command, journal, hang=self.timeout, until=until)


def gpu_stopwatch(target: str, timeout: float) -> GpuStopwatch | None:
    """That of this machine; None without a GPU that runs the target."""
    gpu = cuda.gpu()
    return GpuStopwatch(gpu.name, timeout) if gpu is not None and gpu.runs(target) else None


def run_contest(what: Path, journal: Path) -> None:
    """The work of the process."""
    contest = Contest.read(what)
    with on_gpu(contest) as track:
        hold(contest, Journal(journal), track)

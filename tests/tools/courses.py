"""Tracks and stopwatches without a GPU: candidates take as long as a test says."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from tempfile import mkdtemp

from wgdsl.runtime.cuda import CudaError
from wgdsl.tools.contest import Contest, Wrong, hold
from wgdsl.tools.halving import PLAN
from wgdsl.tools.supervised import Entry, Journal, read


class Course:
    """A track on which a candidate takes so many microseconds. Its result is 1 unless `results` says another; `wrong` fails
    beside float64, `fails` in a call; `dies` ends the process in its second round."""

    def __init__(self, speeds, results=None, wrong=(), fails=(), dies=()):
        self.speeds, self.results, self.wrong, self.fails, self.dies = speeds, results or {}, wrong, fails, dies
        self.done: list[tuple[str, str]] = []

    def load(self, name):
        self.done.append(("load", name))

    def prove(self, name):
        self.done.append(("prove", name))
        if name in self.wrong:
            raise Wrong("O: WRONG, error 1, bar 0.1")

    def fill(self):
        self.done.append(("fill", ""))

    def result(self, name):
        return self.results.get(name, 1)

    def same(self, one, a, other, b):
        return a == b

    def calls(self, name, count):
        self.done.append(("calls", name))
        if name in self.fails:
            raise CudaError("cuCtxSynchronize", "CUDA_ERROR_LAUNCH_FAILED")
        if name in self.dies and count == PLAN[1].calls:
            raise SystemExit(9)
        return [self.speeds[name]] * count

    def lost(self):
        return False


class Watch:
    """A stopwatch for contests on courses. speed: microseconds of a candidate. during: is told of every entry before the tuner
    is, and may interrupt it. contests: what it was asked, by name."""

    card = "a card"

    def __init__(self, folder: Path, speed: Callable[[str], float], during: Callable[[Entry], None] = lambda e: None, **course):
        self.folder, self.speed, self.during, self.course = folder, speed, during, course
        self.contests: list[list[str]] = []

    def times(self, contest: Contest, until: float) -> Generator[Entry]:
        journal = Path(mkdtemp(dir=self.folder)) / "journal"
        self.contests.append(list(contest.trials))
        hold(contest, Journal(journal), Course({n: self.speed(n) for n in contest.trials}, **self.course))
        for entry in read(journal):
            self.during(entry)
            yield entry

"""Work of the processor in many processes, which may take too long, die, or be interrupted.

In: a function of a module, and tasks.  Out: pairs of a task and its result as they are done; `Died` for a task that ended its
process. The processes are new ones (not forks: the caller may have asked for the GPU), leave interruptions to the caller, and
end with the `with`, whatever they do.
"""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Died:
    """What became of a process: nobody knows why."""

    why: str = "it ended the process that worked on it"


@dataclass
class Workers:
    """A number of processes. After one has died, each task gets a process of its own: it can't take others with it."""

    count: int
    executor: ProcessPoolExecutor
    alone: bool = False

    def each(self, work: Callable[[T], R], tasks: Sequence[T], until: float) -> Iterator[tuple[T, R | Died]]:
        """The results, in the order in which they come; those that have come by `until` (of `time.monotonic`)."""
        left = list(tasks)
        if not self.alone:
            futures = {self.executor.submit(work, t): t for t in left}
            try:
                for task, result in _done(futures, until):
                    left.remove(task)
                    yield task, result
                return
            except BrokenProcessPool:
                self.alone = True
        with ThreadPoolExecutor(self.count) as threads:
            yield from _done({threads.submit(_alone, work, t): t for t in left}, until)


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def workers(count: int) -> Iterator[Workers]:
    """Processes for the time of a `with`."""
    mine = {p.pid for p in active_children()}
    executor = _executor(count)
    try:
        yield Workers(count=count, executor=executor)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in active_children():
            if process.pid not in mine:
                process.kill()


def _executor(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")  # of spills and the like: what isn't fast isn't taken


def _alone(work: Callable[[Any], Any], task: Any) -> Any:
    with _executor(1) as executor:
        try:
            return executor.submit(work, task).result()
        except BrokenProcessPool:
            return Died()


def _done(futures: dict[Future[Any], Any], until: float) -> Iterator[tuple[Any, Any]]:
    try:
        for future in as_completed(futures, timeout=max(0.0, until - time.monotonic())):
            yield futures[future], future.result()
    except TimeoutError:
        return
    finally:
        for future in futures:
            future.cancel()

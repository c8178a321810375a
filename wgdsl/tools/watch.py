"""A command in a child process, with a time limit on its use of the GPU: a kernel that hangs must not hang its user.

In: a command.  Out: its exit code; `Hung` if it had to be killed. Killing the process frees the GPU. The child says over a
pipe when it hands work to the GPU and when that is done; what it does in between (a float64 check, say) may take any time.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..diagnostics.model import InternalError

MODULE = ["-m", "wgdsl"]
BEGIN, END = b"+", b"-"
_pipe: list[int] = []


class Hung(InternalError):
    """The child was killed at its limit."""


def report_to(descriptor: int | None) -> None:
    """In the child: the pipe to its parent; None in a process that nobody watches."""
    _pipe[:] = [] if descriptor is None else [descriptor]


@contextmanager
def busy() -> Iterator[None]:
    """Around work on the GPU."""
    _tell(BEGIN)
    try:
        yield
    finally:
        _tell(END)


def _tell(mark: bytes) -> None:
    for descriptor in _pipe:
        os.write(descriptor, mark)


def watched(arguments: Sequence[str], seconds: float) -> int:
    """Run `python -m wgdsl ARGUMENTS` with at most `seconds` of each piece of GPU work; its output goes where ours does."""
    mine, its = os.pipe()
    command = [sys.executable, *MODULE, *arguments, "--watched", str(its)]
    child = subprocess.Popen(command, pass_fds=[its])
    os.close(its)
    try:
        _follow(mine, seconds)
        return child.wait()
    finally:
        os.close(mine)
        if child.poll() is None:
            child.kill()
            child.wait()


def _follow(pipe: int, seconds: float) -> None:
    """Until the child closes its end, by ending. Raises Hung when it stays busy for longer than `seconds`."""
    limit: float | None = None
    while True:
        left = None if limit is None else max(0.0, limit - time.monotonic())
        ready, _, _ = select.select([pipe], [], [], left)
        if not ready:
            raise Hung(
                f"the GPU run didn't end within {seconds:g} s, and was killed: the kernel hangs, or is very slow\n"
                "  help: run it with `--device sim`, which says who waits for what; `--timeout SECONDS` gives it longer",
                "",
            )
        marks = os.read(pipe, 64)
        if not marks:
            return
        limit = time.monotonic() + seconds if marks.endswith(BEGIN) else None

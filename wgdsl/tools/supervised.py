"""Work that may crash or hang, done by a child process that writes down what it does, and followed by its parent.

In: a command that appends to a journal, and the journal's path.  Out: the entries, as they come. An entry is a JSON object on a
line. `{"begin": who}` opens work on the GPU, and any later entry about `who` (as the value of its first key; any value) closes
it; a child that dies in between, or takes too long, is followed by another after `{"fault": who, "why": ...}`, and has to read
from the journal where it goes on.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..diagnostics.model import InternalError

LOST = 3  # how a child ends that has noted its fault, and can't go on: the device is lost to its process
TICK = 0.05  # seconds between looks at the journal

Entry = dict[str, Any]


class Journal:
    """The child's end: what has been done so far, and more of it."""

    def __init__(self, path: Path):
        self.path = path
        self.entries = read(path)
        self.parent = os.getppid()

    def add(self, entry: Entry) -> None:
        """Write an entry down, for good. Ends the process if nobody follows it any more."""
        if os.getppid() != self.parent:
            os._exit(1)
        self.entries.append(entry)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def all(self, key: str) -> list[Entry]:
        """The entries of one kind."""
        return [e for e in self.entries if key in e]


def read(path: Path) -> list[Entry]:
    """The entries of a journal. Half a line, which a killed process leaves, counts for none."""
    lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def followed(command: Sequence[str], path: Path, *, hang: float, until: float) -> Iterator[Entry]:
    """The entries, until the child is through or it is `until` (of `time.monotonic`). hang: seconds for what was begun.

    Raises InternalError if the child fails outside what it has begun.
    """
    seen = 0
    while True:
        watch = _Watch(command, path, seen, hang, until)
        try:
            yield from watch.entries()
        finally:
            watch.end()
        seen = watch.seen
        if watch.late or watch.through:
            return
        if watch.open is None and watch.code != LOST:
            raise InternalError(f"the process that times kernels ended with {watch.code}:\n{watch.said()}", "")
        if watch.open is not None:
            fault = {"fault": watch.open, "why": watch.why()}
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(fault) + "\n")


class _Watch:
    """One child."""

    def __init__(self, command: Sequence[str], path: Path, seen: int, hang: float, until: float):
        self.path, self.seen, self.hang, self.until = path, seen, hang, until
        self.open: Any = None  # who is at work
        self.since = time.monotonic()
        self.late = self.hung = False
        self.log = path.with_suffix(".log").open("w+", encoding="utf-8")
        # A session of its own: who interrupts the parent leaves the end of the child to it.
        self.child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True
        )

    @property
    def code(self) -> int | None:
        return self.child.poll()

    @property
    def through(self) -> bool:
        return self.code == 0

    def entries(self) -> Iterator[Entry]:
        while True:
            ended = self.code is not None
            for entry in read(self.path)[self.seen :]:
                self.seen += 1
                self._note(entry)
                yield entry
            if ended or self._over():
                return
            time.sleep(TICK)

    def _note(self, entry: Entry) -> None:
        key, who = next(iter(entry.items()))
        if key == "begin":
            self.open, self.since = who, time.monotonic()
        elif who == self.open:
            self.open = None

    def _over(self) -> bool:
        now = time.monotonic()
        self.late = now > self.until
        self.hung = self.open is not None and now - self.since > self.hang
        return self.late or self.hung

    def why(self) -> str:
        return f"hangs: no result in {self.hang:g} s" if self.hung else f"ended its process with {self.code}"

    def said(self) -> str:
        self.log.seek(0)
        return self.log.read()[-2000:]

    def end(self) -> None:
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        _whole_lines(self.path)


def _whole_lines(path: Path) -> None:
    """Cut off the half line that a killed child may have left."""
    if path.exists():
        data = path.read_bytes()
        path.write_bytes(data[: data.rfind(b"\n") + 1])

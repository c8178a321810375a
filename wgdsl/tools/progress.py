"""A bar for work whose steps are counted.

In: what is done, and how many steps it has.  Out: a bar on a terminal, nothing elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

Step = Callable[[str], None]  # what the step was about


class Progress(Protocol):
    """Tells how far something is."""

    @contextmanager
    def of(self, what: str, total: int) -> Iterator[Step]: ...


class Silent:
    """Tells nobody."""

    @contextmanager
    def of(self, what: str, total: int) -> Iterator[Step]:
        yield lambda about: None


class Bar:
    """A bar on the terminal of the errors, gone when the work is done."""

    @contextmanager
    def of(self, what: str, total: int) -> Iterator[Step]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Rich

        columns = (TextColumn("{task.description:9}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        about = TextColumn("{task.fields[about]}", markup=False)
        with Rich(*columns, about, console=Console(stderr=True), transient=True) as rich:
            task = rich.add_task(what, total=total, about="")
            yield lambda step: rich.update(task, advance=1, about=step)


def progress() -> Progress:
    """A bar where somebody looks at it."""
    return Bar() if sys.stderr.isatty() else Silent()

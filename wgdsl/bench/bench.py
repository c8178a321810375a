"""`wgdsl bench`: compile, time beside peers, say and write down what came of it.

In: a `Request`, and where to write.  Out: lines as they come, a file of results, a plot; an exit code.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from ..diagnostics.model import EnvironmentFault
from ..runtime import cuda, nvrtc
from ..tools.progress import progress
from ..tools.supervised import Entry, followed
from ..tools.watch import MODULE
from ..tools.workers import workers
from .fitting import fitting
from .match import INPUTS, Plan
from .picks import picks_of, refusals
from .plot import needs_matplotlib, plot
from .ratios import summary_line, with_ratios
from .request import Request, cases_of
from .results import Line, Results, Sink, read_results
from .text import every_line, fault_line, head_lines, row_lines, summary_lines

COMMAND = "time-contestants"
OK, NOTHING = 0, 1

Say = Callable[[str], None]
Follow = Callable[[Plan, float], Iterator[Entry]]


def bench(request: Request, jsonl: Path | None, picture: Path | None, say: Say) -> int:
    """On this machine's GPU. Returns the exit code: 1 if nothing was timed."""
    cases = cases_of(request)
    fit = fitting(request, cases)
    _needs(picture)
    until = time.monotonic() + request.budget
    sink = Sink(jsonl)
    with workers(request.jobs) as pool:
        picks = picks_of(cases, fit, pool, progress(), until)
    for key, who, why in refusals(picks):
        sink.add({"fault": {"key": key, "contestant": who, "why": why}})
    held(Plan(request=request, picks=picks.candidates), sink, until, say)
    return told(sink.results, picture, say)


def _needs(picture: Path | None) -> None:
    """Raises EnvironmentFault for what is missing, before anything is compiled."""
    if find_spec("torch") is None:
        raise EnvironmentFault("`wgdsl bench` needs torch, which isn't installed", "`pip install 'wgdsl[torch]'`")
    if cuda.gpu() is None:
        raise EnvironmentFault("`wgdsl bench` needs a GPU, and there is none here")
    nvrtc.version()  # without it nothing could be compiled, in any process
    if picture is not None:
        needs_matplotlib()


def held(plan: Plan, sink: Sink, until: float, say: Say, follow: Follow | None = None) -> None:
    """Say and keep what comes, up to the end, and the summary in a line of its own. follow: in place of a process that works
    on this machine's GPU."""
    for entry in (follow or followed_match)(plan, until):
        line = line_of(entry)
        if line is None:
            continue
        sink.add(line)
        for text in _texts(line):
            say(text)
    if sink.results.rows:
        sink.add(summary_line(sink.results.rows))


def line_of(entry: Entry) -> Line | None:
    """What an entry of the journal says in a file of results; None for what is of no interest there."""
    if "about" in entry:
        return entry
    if "row" in entry:
        return with_ratios(entry["row"])
    if "fault" in entry:
        key, who = entry["fault"]
        return {"fault": {"key": key, "contestant": who or INPUTS, "why": entry["why"]}}
    return None


def _texts(line: Line) -> Iterator[str]:
    if "about" in line:
        yield from head_lines(line["about"])
    elif "fault" in line:
        yield fault_line(line["fault"])
    else:
        yield from row_lines(line)


def followed_match(plan: Plan, until: float) -> Iterator[Entry]:
    """The entries of a process that works on this machine's GPU."""
    with TemporaryDirectory(prefix="wgdsl-") as folder:
        what, journal = Path(folder, "plan.json"), Path(folder, "journal")
        plan.write(what)
        command = [sys.executable, *MODULE, COMMAND, str(what), str(journal)]
        yield from followed(command, journal, hang=plan.request.timeout, until=until)


def told(results: Results, picture: Path | None, say: Say) -> int:
    """The summary and the plot."""
    for line in summary_lines(results):
        say(line)
    if picture is not None:
        plot(results, picture)
        say(f"drawn in {picture}")
    return OK if results.rows else NOTHING


def show(path: Path, picture: Path | None, say: Say) -> int:
    """Say again what a file holds."""
    results = read_results(path)
    for line in every_line(results):
        say(line)
    if picture is not None:
        plot(results, picture)
        say(f"drawn in {picture}")
    return OK

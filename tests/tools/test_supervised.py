"""A process that crashes or hangs is followed by another; what it has done is kept."""

from __future__ import annotations

import sys
import time

import pytest

from wgdsl.diagnostics.model import InternalError
from wgdsl.tools.supervised import followed, read

CHILD = """
import os, sys, time
from pathlib import Path
from wgdsl.tools.supervised import LOST, Journal

journal = Journal(Path(sys.argv[1]))
over = {who for e in journal.entries for kind, who in e.items() if kind in ("ran", "fault")}
for who in sys.argv[2].split():
    if who in over:
        continue
    if who == "outside":
        raise RuntimeError("nobody's fault")
    journal.add({"begin": who})
    if who == "crashes":
        os._exit(9)
    if who == "half":
        with journal.path.open("a") as file:
            file.write('{"ran": "ha')
        os._exit(9)
    if who == "lost":
        journal.add({"fault": who, "why": "a fault on the device"})
        os._exit(LOST)
    if who == "hangs":
        time.sleep(60)
    journal.add({"ran": who})
    if who == "slow":
        time.sleep(60)
"""


@pytest.fixture
def follow(tmp_path):
    script = tmp_path / "child.py"
    script.write_text(CHILD)

    def run(what: str, *, hang: float = 30.0, seconds: float = 60.0):
        command = [sys.executable, str(script), str(tmp_path / "journal"), what]
        return followed(command, tmp_path / "journal", hang=hang, until=time.monotonic() + seconds)

    return run


def ran(entries) -> list[str]:
    return [e["ran"] for e in entries if "ran" in e]


def test_the_rest_goes_on(follow, tmp_path):
    entries = list(follow("a crashes b lost half c hangs d", hang=1.5))
    assert ran(entries) == ["a", "b", "c", "d"]
    faults = {e["fault"]: e["why"] for e in entries if "fault" in e}
    assert faults == {
        "crashes": "ended its process with 9",
        "lost": "a fault on the device",
        "half": "ended its process with 9",
        "hangs": "hangs: no result in 1.5 s",
    }
    assert entries == read(tmp_path / "journal")


def test_it_ends_in_time_with_what_there_is(follow):
    start = time.monotonic()
    entries = list(follow("a slow b", seconds=3.0))
    assert time.monotonic() - start < 20 and ran(entries) == ["a", "slow"]


def test_nothing_begun_may_take_its_time(follow):
    """Only work on the GPU counts as hanging."""
    entries = list(follow("a slow", hang=0.5, seconds=3.0))
    assert ran(entries) == ["a", "slow"] and not any("fault" in e for e in entries)


def test_a_failure_outside_is_ours(follow):
    with pytest.raises(InternalError, match="nobody's fault"):
        list(follow("a outside"))


def test_who_stops_listening_ends_the_process(follow, tmp_path):
    entries = follow("a slow b")
    for entry in entries:
        if entry.get("ran") == "slow":
            break
    start = time.monotonic()
    entries.close()
    assert time.monotonic() - start < 5  # the child, which would sleep for a minute, is gone: it was waited for
    assert ran(read(tmp_path / "journal")) == ["a", "slow"]

"""The GPU record: what a test run adds to it and takes out of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wgdsl.tools import hardware

pytest_plugins = ["pytester"]

CARD = hardware.Card(name="A card", target="sm_90", driver="580.1 (CUDA 13.0)", nvrtc="13.0")
ROW = hardware.Record(kernel="k", card="A card", driver="580.1", nvrtc="13.0", max_error=0.5, runs=3, date="2026-01-01")
TESTS = """
import pytest
pytestmark = pytest.mark.gpu

@pytest.mark.parametrize("error", [0.25, 0.5])
def test_right(record, error):
    record("right text", "right", error)

@pytest.mark.parametrize("error", [0.25, 0.5])
def test_wrong_once(record, error):
    record.tries("wrong text")
    assert error < 0.3
    record("wrong text", "wrong", error)
"""


@pytest.fixture
def nested(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(Path(__file__).parents[1].joinpath("conftest.py").read_text("utf-8"))
    pytester.makeini("[pytest]\nmarkers = gpu\n")
    pytester.makepyfile(TESTS)
    return pytester


def test_a_run_with_one_failure_keeps_only_texts_that_never_failed(nested, monkeypatch):
    monkeypatch.setattr(hardware, "find_card", lambda: CARD)
    path = nested.path / "hardware.json"
    hardware.merge(path, {hardware.digest("wrong text"): ROW, hardware.digest("older text"): ROW})

    nested.runpytest_inprocess(f"--record-hardware={path}").assert_outcomes(passed=3, failed=1)

    rows = hardware.load(path)
    assert rows[hardware.digest("older text")] == ROW
    assert hardware.digest("wrong text") not in rows
    right = rows[hardware.digest("right text")]
    assert (right.kernel, right.card, right.max_error, right.runs) == ("right", "A card", 0.5, 2)


def test_nothing_is_written_unless_asked_for(nested, monkeypatch):
    monkeypatch.setattr(hardware, "find_card", lambda: CARD)
    nested.runpytest_inprocess()
    assert not list(nested.path.glob("*.json"))


def test_without_a_device_gpu_tests_are_skipped_and_say_why(nested, monkeypatch):
    monkeypatch.setattr(hardware, "find_card", lambda: None)
    result = nested.runpytest_inprocess("-rs")
    result.assert_outcomes(skipped=4)
    result.stdout.fnmatch_lines(["*no CUDA device on this machine*"])


def test_later_runs_keep_the_larger_error():
    later = replace(ROW, max_error=0.1, runs=2, driver="590.1", date="2026-02-02")
    assert ROW.joined(later) == replace(later, max_error=0.5, runs=5)


def test_the_file_is_sorted_and_ends_with_a_newline(tmp_path):
    path = tmp_path / "new" / "hardware.json"
    hardware.merge(path, {"b": ROW, "a": ROW})
    text = path.read_text("utf-8")
    assert text.endswith("}\n") and text.index('"a"') < text.index('"b"')
    assert hardware.load(path) == {"a": ROW, "b": ROW}

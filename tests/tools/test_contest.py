"""A contest: nobody who isn't right gets a time, and a second process goes on where a first one has ended."""

from __future__ import annotations

import pytest

from tests.tools.courses import Course
from wgdsl.driver import Settings
from wgdsl.tools.contest import Contest, hold, times_of
from wgdsl.tools.halving import PLAN
from wgdsl.tools.supervised import Journal, read
from wgdsl.tools.trying import Trial


def contest(*names: str) -> Contest:
    settings = Settings(options={"causal": True}, types={"T": "bf16"}, dims={"D": 64})
    trials = {
        n: Trial(file="p.wg", program=None, candidate=n, target="sm_90a", settings=settings, dims={"M": 8, "D": 64})
        for n in names
    }
    return Contest(trials=trials, seed=3)


@pytest.fixture
def held(tmp_path):
    """Holds a contest on a track: the entries."""

    def run(track: Course, names="abc"):
        hold(contest(*names), Journal(tmp_path / "journal"), track)
        return read(tmp_path / "journal")

    return run


def faults(entries) -> dict[str, str]:
    return {e["fault"]: e["why"] for e in entries if "fault" in e}


def test_all_are_proven_before_any_is_timed(held):
    track = Course({"a": 3.0, "b": 1.0, "c": 2.0})
    entries = held(track)
    kinds = [kind for kind, _ in track.done]
    assert kinds.index("calls") > max(n for n, kind in enumerate(kinds) if kind == "prove")
    assert faults(entries) == {} and set(times_of(entries)) == {"a", "b", "c"}
    assert times_of(entries)["b"][len(PLAN) - 1] == [1.0] * PLAN[-1].calls


@pytest.mark.parametrize(
    "track, why",
    [
        (Course({"a": 1.0, "b": 1.0}, wrong="c"), "WRONG"),
        (Course({"a": 1.0, "b": 1.0}, results={"c": 2}), "isn't that of 2 others"),
        (Course({"a": 1.0, "b": 1.0, "c": 9.0}, fails="c"), "CUDA_ERROR_LAUNCH_FAILED"),
    ],
    ids=["float64", "the others", "the driver"],
)
def test_who_is_wrong_has_no_time(held, track, why):
    entries = held(track)
    assert list(faults(entries)) == ["c"] and why in faults(entries)["c"]
    assert set(times_of(entries)) == {"a", "b"}


def test_of_two_with_two_results_nobody_counts(held):
    entries = held(Course({"a": 1.0, "b": 1.0}, results={"a": 2}), "ab")
    assert set(faults(entries)) == {"a", "b"} and times_of(entries) == {}


def test_a_second_process_goes_on(held, tmp_path):
    speeds = {"a": 3.0, "b": 1.0, "c": 2.0}
    with pytest.raises(SystemExit):
        held(Course(speeds, dies="b"))
    before = read(tmp_path / "journal")
    opened = [e["begin"] for e in before if "begin" in e][-1]
    assert opened == "b" and 0 in times_of(before)["b"] and 1 not in times_of(before)["b"]

    journal = Journal(tmp_path / "journal")
    journal.add({"fault": "b", "why": "ended its process with 9"})  # as the supervisor notes
    track = Course(speeds)
    after = held(track)
    assert ("load", "b") not in track.done
    times = times_of(after)
    assert times["a"][0] == [3.0] * PLAN[0].calls and len(times["a"]) == len(PLAN)
    assert sum(("times" in e and e["round"] == 0) for e in after) == 3  # no round twice


def test_a_contest_is_read_as_it_is_written(tmp_path):
    c = contest("a", "three {tile j 96}")
    c.write(tmp_path / "contest.json")
    assert Contest.read(tmp_path / "contest.json") == c

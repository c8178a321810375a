"""Contestants take turns; who is wrong, fails, crashes or hangs is noted, and the rest goes on."""

from __future__ import annotations

import sys
import time

import pytest

from tests.bench.arenas import CASES, Fake, plan
from wgdsl.bench.match import Plan, hold
from wgdsl.tools.supervised import Journal, followed, read

SPEEDS = {"FA3": 110.0, "cuDNN": 120.0, "three": 100.0}
CHILD = """
import sys
from pathlib import Path
from tests.bench.arenas import Fake
from wgdsl.bench.match import Plan, hold
from wgdsl.tools.supervised import Journal

fake = Fake({"FA3": 110.0, "cuDNN": 120.0, "FA2": 300.0, "three": 100.0}, dies=["FA3"], hangs=["cuDNN"])
hold(Plan.read(Path(sys.argv[1])), Journal(Path(sys.argv[2])), fake)
"""


@pytest.fixture
def held(tmp_path):
    def run(fake: Fake, **more):
        hold(plan(**more), Journal(tmp_path / "journal"), fake)
        return read(tmp_path / "journal")

    return run


def rows(entries) -> dict[str, dict]:
    return {e["row"]["case"]: e["row"]["contestants"] for e in entries if "row" in e}


def faults(entries) -> list[tuple[str, str, str]]:
    return [(*e["fault"], e["why"]) for e in entries if "fault" in e]


def test_every_round_has_a_time_of_everyone(held):
    fake = Fake(SPEEDS)
    found = rows(held(fake, cases=CASES[:1]))
    assert found[CASES[0]]["FA3"]["rounds"] == [110.0, 55.0, 220.0, 110.0, 110.0]
    three = found[CASES[0]]["wgdsl"]
    assert (three["schedule"], three["max_error"], three["watts"], three["mhz"]) == ("three", 0.001, None, 1702.0)


def test_another_one_begins_each_round(held):
    fake = Fake(SPEEDS)
    held(fake, cases=CASES[:1], rounds=3)
    timed = [who for who, count in fake.order if count > 3]
    assert timed == ["FA3", "cuDNN", "three", "cuDNN", "three", "FA3", "three", "FA3", "cuDNN"]


def test_a_turn_takes_the_milliseconds_that_were_asked(held):
    fake = Fake({"FA3": 1000.0, "three": 10.0})
    held(fake, cases=CASES[:1], peers=("FA3",), rounds=1, ms=12.0)
    assert dict(fake.order) == {"FA3": 12, "three": 100}  # a hundred calls are enough


@pytest.mark.parametrize(
    "fake, why",
    [
        (Fake(SPEEDS, wrong=["FA3"]), "ArithmeticError: error 1 is above 0.1"),
        (Fake(SPEEDS, fails=["FA3"]), "RuntimeError: launch failed"),
    ],
    ids=["wrong", "fails"],
)
def test_who_is_wrong_or_fails_has_no_time(held, fake, why):
    entries = held(fake, cases=CASES[:1])
    assert faults(entries) == [(f"attention: {CASES[0]}", "FA3", why)]
    assert set(rows(entries)[CASES[0]]) == {"cuDNN", "wgdsl"}


def test_a_missing_peer_is_named_and_nothing_else(held):
    entries = held(Fake(SPEEDS, absent=["FA3"]), cases=CASES[:1])
    assert entries[0]["about"]["missing"] == {"FA3": "it is absent"}
    assert faults(entries) == [] and set(rows(entries)[CASES[0]]) == {"cuDNN", "wgdsl"}


@pytest.mark.parametrize(
    "absent, missing, asked",
    [([], set(), {"FA3"}), (["FA3"], {"FA3"}, {"Flex"}), (["FA3", "Flex"], {"FA3", "Flex"}, set())],
    ids=["there", "one is absent", "both are"],
)
def test_who_is_absent_is_replaced_where_another_can_do_it(held, absent, missing, asked):
    fake = Fake({**SPEEDS, "Flex": 150.0}, absent=absent)
    entries = held(fake, suite="variants", cases=("window 256",), peers=())
    assert set(entries[0]["about"]["missing"]) == missing
    assert set(rows(entries)["window 256"]) == asked | {"wgdsl"}


def test_a_file_in_some_folder_is_named_alone(held):
    fake = Fake({**SPEEDS, "/home/me/s.wg {tile j 96}": 100.0})
    found = rows(held(fake, cases=CASES[:1], schedules=("/home/me/s.wg {tile j 96}",)))
    assert found[CASES[0]]["wgdsl"]["schedule"] == "s.wg {tile j 96}"


def test_a_case_without_inputs_is_left_out(held):
    entries = held(Fake(SPEEDS, inputs=CASES[:1]), cases=CASES[:2])
    assert faults(entries) == [(f"attention: {CASES[0]}", "", "MemoryError: too large")]
    assert list(rows(entries)) == [CASES[1]]


def test_who_goes_on_repeats_nothing_and_has_the_same_inputs(tmp_path):
    first, second = Fake(SPEEDS), Fake(SPEEDS)
    hold(plan(cases=CASES[:1]), Journal(tmp_path / "journal"), first)
    hold(plan(cases=CASES[:2]), Journal(tmp_path / "journal"), second)
    assert list(rows(read(tmp_path / "journal"))) == list(CASES[:2])
    assert (first.seeds, second.seeds) == ([0], [1])


def test_a_plan_is_read_as_it_was_written(tmp_path):
    given = plan(schedules=("three", "two {tile j 96}"), seed=7, target="sm_90a")
    given.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json") == given


def test_the_run_goes_on_without_what_crashes_or_hangs(tmp_path):
    script, what, journal = tmp_path / "child.py", tmp_path / "plan.json", tmp_path / "journal"
    script.write_text(CHILD)
    plan(peers=("FA3", "cuDNN", "FA2"), rounds=2).write(what)
    command = [sys.executable, str(script), str(what), str(journal)]

    entries = list(followed(command, journal, hang=2, until=time.monotonic() + 100))

    assert {case: set(who) for case, who in rows(entries).items()} == {case: {"FA2", "wgdsl"} for case in CASES}
    # Two deaths are enough: the third case is run without either.
    assert [(key.split(": ")[1], who) for key, who, _ in faults(entries)] == [
        (CASES[0], "FA3"),
        (CASES[0], "cuDNN"),
        (CASES[1], "FA3"),
        (CASES[1], "cuDNN"),
    ]
    assert faults(entries)[1][2] == "hangs: no result in 2 s"

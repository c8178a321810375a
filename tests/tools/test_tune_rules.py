"""What `wgdsl tune` decides without running anything: calls, rounds, medians, and which results count."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgdsl.diagnostics.model import WgError
from wgdsl.tools.halving import FEW, LAST, PLAN, agreeing, entrants, measured, starts
from wgdsl.tools.shapes import calls_of


@pytest.mark.parametrize(
    "texts, calls",
    [
        (["M=1,N=2"], [{"M": 1, "N": 2}]),
        (["M=1", "N=2"], [{"M": 1, "N": 2}]),
        (["B=4,M=1,N=2,M=3,N=4"], [{"B": 4, "M": 1, "N": 2}, {"B": 4, "M": 3, "N": 4}]),
        (["B=4,M=1,N=2", "M=3"], [{"B": 4, "M": 1, "N": 2}, {"B": 4, "M": 3, "N": 2}]),
        (["M=1", "M=2", "M=1"], [{"M": 1}, {"M": 2}]),
        (["M=1_000"], [{"M": 1000}]),
        ([], []),
    ],
)
def test_a_name_that_comes_again_begins_a_call(texts, calls):
    assert calls_of(texts) == calls


@pytest.mark.parametrize("text", ["M", "M=", "M=two", "=2"])
def test_what_is_no_size(text):
    with pytest.raises(WgError, match="WG0654"):
        calls_of([text])


def run(speeds: dict[str, float]) -> dict[str, dict[int, list[float]]]:
    """Every round, as the plan has it."""
    times: dict[str, dict[int, list[float]]] = {}
    for number in range(len(PLAN)):
        for n in entrants(list(speeds), times, number):
            times.setdefault(n, {})[number] = [speeds[n]] * PLAN[number].calls
    return times


def test_fewer_and_fewer_run_and_the_fastest_to_the_end():
    speeds = {f"c{n}": 100.0 + (7 * n) % 40 for n in range(40)}
    times = run(speeds)
    counts = [sum(number in of for of in times.values()) for number in range(len(PLAN))]
    assert counts[0] == 40 and counts[-1] == FEW and all(a >= b for a, b in pairwise(counts))
    assert sum(counts) == starts(40)
    stayed = {n for n, of in times.items() if len(PLAN) - 1 in of}
    assert stayed == set(sorted(speeds, key=lambda n: speeds[n])[:FEW])
    assert {n: m.median for n, m in measured(times).items()} == speeds


@given(st.integers(0, 60))
def test_every_round_has_entrants_while_there_are_candidates(count):
    names = [f"c{n}" for n in range(count)]
    times = run(dict.fromkeys(names, 1.0))
    assert sum(len(of) for of in times.values()) == starts(count)
    assert all(len(entrants(names, times, number)) >= min(count, FEW) for number in range(len(PLAN)))


def test_another_one_begins_each_round():
    times = {n: {0: [1.0], 1: [1.0], 2: [1.0]} for n in "abcd"}
    assert [entrants("abcd", times, number)[0] for number in range(4)] == ["a", "b", "c", "d"]


def test_who_has_failed_enters_no_more():
    times = {"a": {0: [1.0]}, "b": {0: [2.0]}, "c": {0: [3.0]}}
    assert set(entrants(["a", "c"], times, 1)) == {"a", "c"}
    assert entrants(["a", "c", "d"], times, 1) == ["c", "a"]  # d has no time of the round before


def test_a_card_that_slows_down_slows_all_of_them():
    times = {"stays": {0: [10.0] * 3, 1: [20.0] * 5}, "leaves": {0: [11.0] * 3}}
    found = measured(times)
    assert found["stays"].median == 20.0 and found["leaves"].median == 22.0
    assert (found["stays"].calls, found["leaves"].calls) == (5, 3)


def test_the_last_rounds_count_together():
    last = [n for n, r in enumerate(PLAN) if r == LAST]
    found = measured({"a": {0: [50.0], **{n: [10.0 + n] for n in last}}})["a"]
    assert found.calls == len(last) and found.median == 10.0 + last[1]


def test_the_spread_is_that_of_the_middle_half():
    assert measured({"a": {0: [8.0, 9.0, 10.0, 11.0, 100.0]}})["a"].spread == pytest.approx(0.2)
    assert measured({"a": {0: [8.0]}})["a"].spread == 0
    assert measured({"a": {0: []}, "b": {}}) == {}


@pytest.mark.parametrize(
    "results, right",
    [
        ({"a": 1, "b": 1, "c": 2}, ["a", "b"]),
        ({"a": 2, "b": 1, "c": 1}, ["b", "c"]),
        ({"a": 1, "b": 2}, []),
        ({"a": 1, "b": 2, "c": 3}, []),
        ({"a": 1}, ["a"]),
        ({}, []),
    ],
)
def test_the_result_of_most_counts(results, right):
    assert agreeing(list(results), lambda a, b: results[a] == results[b]) == right

"""Programs that nobody wrote, by schedules that nobody wrote: evaluator, simulator and, with a GPU, hardware agree."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings

from tests.fuzz.case import Case
from tests.fuzz.check import check
from tests.fuzz.choices import Choices, choices, replayed, seeded
from tests.fuzz.combinations import combination
from tests.fuzz.generate import case

REFUSED_AT_MOST = 0.25


def right(seeds: range, device: str = "sim", make: Callable[[Choices], Case] = case) -> None:
    """Every case of these seeds; few of them refused."""
    refused = 0
    for seed in seeds:
        outcome = check(make(seeded(seed)), device, seed)
        again = f"python -m tests.fuzz 1 {seed}{' --combinations' if make is combination else ''}"
        assert not outcome.failed, (again, outcome.wrong, outcome.message)
        refused += bool(outcome.refused)
    assert refused <= max(2, REFUSED_AT_MOST * len(seeds))


@pytest.mark.parametrize("first", [0, 5])
def test_seeded(first):
    right(range(first, first + 5))


@settings(max_examples=5)
@given(choices())
def test_drawn(decided: Choices):
    one = case(decided)
    outcome = check(one)
    assert not outcome.failed, (one.text, outcome.wrong, outcome.message)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(1000, 1300, 50))
def test_more(first):
    right(range(first, first + 50))


@pytest.mark.gpu
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(0, 100, 5))
def test_on_the_gpu(first):
    right(range(first, first + 5), "gpu")


def test_combinations():
    right(range(12), make=combination)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(1000, 1500, 100))
def test_more_combinations(first):
    right(range(first, first + 100), make=combination)


@pytest.mark.gpu
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(0, 500, 25))
def test_combinations_on_the_gpu(first):
    right(range(first, first + 25), "gpu", combination)


def test_a_case_is_made_of_its_decisions():
    decided = seeded(7)
    first = case(decided)
    assert case(replayed(decided.taken)) == first == case(seeded(7))
    assert isinstance(case(replayed([])), Case)

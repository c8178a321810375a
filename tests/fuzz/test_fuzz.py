"""Programs that nobody wrote, by schedules that nobody wrote: evaluator, simulator and, with a GPU, hardware agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.fuzz.case import Case
from tests.fuzz.check import check
from tests.fuzz.choices import Choices, replayed, seeded
from tests.fuzz.generate import case
from tests.fuzz.shards import right
from tests.fuzz.strategy import choices


@pytest.mark.parametrize("first", [0, 5])
def test_seeded(first):
    right(range(first, first + 5))


@settings(max_examples=4)
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


def test_combinations():
    right(range(8), what="combination")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(1000, 1500, 100))
def test_more_combinations(first):
    right(range(first, first + 100), what="combination")


def test_a_case_is_made_of_its_decisions():
    decided = seeded(7)
    first = case(decided)
    assert case(replayed(decided.taken)) == first == case(seeded(7))
    assert isinstance(case(replayed([])), Case)

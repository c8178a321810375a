"""Programs that nobody wrote, by schedules that nobody wrote: evaluator, simulator and, with a GPU, hardware agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.fuzz.case import Case
from tests.fuzz.check import check
from tests.fuzz.choices import Choices, choices, replayed, seeded
from tests.fuzz.generate import case, case_of

REFUSED_AT_MOST = 0.25
SHARDS, SHARD = 10, 10  # of the GPU's programs


def right(seeds: range, device: str = "sim") -> None:
    """Every case of these seeds; few of them refused."""
    refused = 0
    for seed in seeds:
        outcome = check(case_of(seed), device, seed)
        assert not outcome.failed, (f"python -m tests.fuzz 1 {seed}", outcome.wrong, outcome.message)
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
@pytest.mark.parametrize("first", range(0, SHARDS * SHARD, SHARD))
def test_on_the_gpu(first):
    right(range(first, first + SHARD), "gpu")


def test_a_case_is_made_of_its_decisions():
    decided = seeded(7)
    first = case(decided)
    assert case(replayed(decided.taken)) == first == case_of(7)
    assert isinstance(case(replayed([])), Case)

"""Programs and schedules that nobody wrote, on a GPU: 100 programs and 500 combinations of attention, each run twice.

In shards, so that several processes share them: `pytest -m gpu tests/gpu/test_fuzzed.py -n 14`. With `OMP_NUM_THREADS=1` they
don't get into each other's way.
"""

from __future__ import annotations

import pytest

from tests.fuzz.shards import right

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]


@pytest.mark.parametrize("first", range(0, 100, 5))
def test_programs(first):
    right(range(first, first + 5), "gpu")


@pytest.mark.parametrize("first", range(0, 500, 20))
def test_combinations(first):
    right(range(first, first + 20), "gpu", "combination")

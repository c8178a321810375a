"""Work in other processes: results as they come, whatever becomes of a process."""

from __future__ import annotations

import os
import time
from multiprocessing import active_children

import pytest

from wgdsl.tools.workers import Died, cores, workers


def double(n: int) -> int:
    """Some tasks end their process, one takes for ever."""
    if n in (3, 5):
        os._exit(1)
    if n == 7:
        time.sleep(600)
    return 2 * n


@pytest.fixture(autouse=True)
def no_process_is_left():
    before = active_children()
    yield
    end = time.monotonic() + 10
    while active_children() != before and time.monotonic() < end:
        time.sleep(0.05)
    assert active_children() == before


def soon(seconds: float = 60.0) -> float:
    return time.monotonic() + seconds


def test_every_task_has_its_result():
    with workers(2) as pool:
        assert dict(pool.each(double, [0, 1, 2], soon())) == {0: 0, 1: 2, 2: 4}
        assert dict(pool.each(double, [4], soon())) == {4: 8}
        assert list(pool.each(double, [], soon())) == []


def test_who_ends_a_process_ends_only_that():
    with workers(2) as pool:
        found = dict(pool.each(double, [0, 3, 1, 5, 2], soon()))
        assert found == {0: 0, 1: 2, 2: 4, 3: Died(), 5: Died()}
        assert dict(pool.each(double, [4, 3], soon())) == {4: 8, 3: Died()}


def test_what_takes_too_long_is_left():
    start = time.monotonic()
    with workers(2) as pool:
        assert dict(pool.each(double, [1, 7, 2], soon(4.0))) == {1: 2, 2: 4}
    assert time.monotonic() - start < 30


def test_an_interruption_ends_the_processes():
    with pytest.raises(KeyboardInterrupt), workers(2) as pool:
        for _ in pool.each(double, [7, 1], soon()):
            raise KeyboardInterrupt


def test_a_process_may_use_some_cores():
    assert 1 <= cores() <= (os.cpu_count() or 1)

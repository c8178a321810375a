"""Masks, scores and sinks on a GPU: right at every size that the simulator sees, twice."""

from __future__ import annotations

import pytest

import wgdsl
from tests.programs.test_masks_and_scores import PROGRAMS, SIZES, called, made

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("schedule", ["simple", "three", "fa2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, schedule):
    kernel = made(PROGRAMS[name], schedule)
    kernel.build()
    for m, n in SIZES:
        for _ in range(2):
            assert called(kernel, PROGRAMS[name], m, n, None, device="gpu") == [], (m, n)


@pytest.mark.parametrize("base", ["simple", "three", "fa2"])
def test_an_approximate_soft_cap(base):
    program = PROGRAMS["soft cap"]
    near = f"wg 1\nschedule near extends {base} {{ approximate tanh }}\n"
    kernel = wgdsl.compile(program, schedule=near, dims={"D": 64, "E": 64}, types={"T": "bf16"})
    assert kernel.approximated == {"tanh"}
    for m, n in SIZES:
        assert called(kernel, program, m, n, None, device="gpu") == [], (m, n)

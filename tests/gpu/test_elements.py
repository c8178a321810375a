"""Homes that a `compute` reads, on a GPU: right at odd sizes, the same bits twice."""

from __future__ import annotations

import numpy as np
import pytest

from tests.programs.test_elements import PROGRAMS, SCHEDULES, made
from wgdsl.tools.running import run

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_right(program, schedule, causal):
    kernel = made(program, schedule, causal)
    kernel.build()
    for seed, (m, n) in enumerate(((70, 200), (201, 136), (130, 0), (1, 8), (700, 1032))):
        dims = {"B": 2, "M": m, "N": n, "G": 2, "R": 2}
        first, second = (run(kernel, dims, device="gpu", seed=seed, check=True) for _ in range(2))
        assert first.right and second.right, (m, n)
        assert all(np.array_equal(x.view(np.uint8), second.results[o].view(np.uint8)) for o, x in first.results.items())

"""The simulator's float32 functions against the reference's float64 ones, special values included."""

from __future__ import annotations

import numpy as np
import pytest

from wgdsl.program import functions as reference
from wgdsl.program.approximations import APPROXIMATIONS
from wgdsl.sim.functions import COMPARISONS, FUNCTIONS, REDUCTIONS

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 3.25, -7.5, 80.0, -80.0, np.inf, -np.inf, np.nan]
TWO = ("add", "sub", "mul", "div", "pow", "min", "max")
PAIRS = [np.array(x, np.float32) for x in np.meshgrid(SPECIAL, SPECIAL)]


def test_there_are_the_same_functions():
    assert set(FUNCTIONS) == set(reference.FUNCTIONS) and set(COMPARISONS) == set(reference.COMPARE)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_numbers(name: str):
    """An approximation is off by its error on both sides, here this way and there that."""
    error = sum(2 * 2.0**-a.bits for a in APPROXIMATIONS.values() if a.name == name)
    args = PAIRS if name in TWO else [np.array(SPECIAL, np.float32)]
    with np.errstate(all="ignore"):
        got = FUNCTIONS[name](*args)
        wanted = reference.FUNCTIONS[name](*(a.astype(np.float64) for a in args)).astype(np.float32)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=2e-6 + error, atol=1e-6)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_nan_in_a_row_is_its_result(name: str):
    assert np.isnan(REDUCTIONS[name].reduce(np.array([1.0, np.nan, 2.0], np.float32)))

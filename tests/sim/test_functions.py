"""The simulator's float32 functions against the reference's float64 ones, special values included."""

from __future__ import annotations

import numpy as np
import pytest

from wgdsl.program import functions as reference
from wgdsl.program.approximations import APPROXIMATIONS
from wgdsl.program.expr import POWERS, apply, const, exponent
from wgdsl.sim.costs import node_cost
from wgdsl.sim.functions import COMPARISONS, FUNCTIONS, REDUCTIONS, power
from wgdsl.targets import cycles

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


@pytest.mark.parametrize("n", POWERS)
def test_a_power_that_is_a_product(n: int):
    """The same numbers, also where the square of one is too large or too small for f32."""
    x = np.array([*SPECIAL, 1e10, -1e13, 3e18, -2e19, 1e-10, 2e-20], np.float32)
    with np.errstate(all="ignore"):
        got, wanted = power(x, n), reference.FUNCTIONS["pow"](x.astype(np.float64), float(n)).astype(np.float32)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-44)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_which_powers_are_products():
    x = const(3.0)
    assert [exponent(apply("pow", x, const(n))) for n in (2, 2.0, -1.0, 5, 0.5, 0, 1)] == [2, 2, -1, None, None, None, None]
    assert exponent(apply("pow", x, apply("neg", const(2)))) is exponent(apply("mul", x, const(2))) is exponent(x) is None


def test_what_a_power_costs():
    assert [node_cost(apply("pow", const(3.0), const(n)))[cycles.FMA] for n in (2, 3, 4)] == [1, 2, 2]
    reciprocal = cycles.FUNCTIONS["rcp"]
    assert node_cost(apply("pow", const(3.0), const(-1))) == reciprocal
    assert node_cost(apply("pow", const(3.0), const(-2))) == {**reciprocal, cycles.FMA: reciprocal[cycles.FMA] + 1}
    assert node_cost(apply("pow", const(3.0), const(0.5))) == cycles.FUNCTIONS["pow"]

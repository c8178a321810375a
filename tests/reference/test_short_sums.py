"""Sums of products of 8-bit floats as the matrix engine makes them: what is cut off, and where."""

from __future__ import annotations

import numpy as np
import pytest

from wgdsl.reference.products import multiplied


def total(a: list[float], b: list[float]) -> float:
    left, right = np.array([a], np.float64), np.array([b], np.float64)
    found = multiplied(left, ("m", "k"), right, ("n", "k"), ("m", "n"), (1, 1), short=True)
    return float(found[0, 0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_lies_far_below_the_largest_is_cut_off_one_by_one(sign):
    """The largest has exponent 8, so a unit is 2^-5: 31 times 2^-6 are nothing, though together they are 15 of these."""
    assert total([sign * 448.0] + [0.125] * 31, [1.0] + [sign * 0.125] * 31) == sign * 448.0
    assert total([sign * 448.0] + [0.25] * 31, [1.0] + [sign * 0.125] * 31) == sign * (448.0 + 31 / 32)


def test_the_exponent_of_a_product_is_that_of_its_factors():
    """1.5 * 1.5 counts as 2^0, so that a unit is 2^-13; as 2.25, which it is, it would be 2^-12."""
    assert total([1.5, -1.5, 2.0**-6], [1.5, 1.0, 2.0**-7]) == 0.75 + 2.0**-13


def test_the_sum_keeps_as_many_bits():
    """A sum of 4 and more has units of 2^-11, whatever its summands had."""
    assert total([1.5, 1.5, 2.0**-6], [1.5, 1.5, 2.0**-7]) == 4.5
    assert total([1.5, -1.5, 2.0**-6], [1.5, 1.5, 2.0**-7]) == 2.0**-13


def test_steps_of_32_each_add_to_the_sum_so_far():
    small = [0.125] * 32
    assert total([448.0] + [0.0] * 31 + small, [1.0] + [0.0] * 31 + small) == 448.0
    assert total(small + [448.0] + [0.0] * 31, small + [1.0] + [0.0] * 31) == 448.5


def test_zeros_and_nothing():
    assert total([0.0] * 40, [448.0] * 40) == 0.0
    assert total([], []) == 0.0

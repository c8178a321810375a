"""Scalar arguments: every kind of number, converted to the declared type."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wgdsl.diagnostics.model import WgError
from wgdsl.foundation.dtypes import F32, I32
from wgdsl.program.expr import Cmp, Logic, Scalar, Select, apply, const
from wgdsl.runtime.scalars import evaluate, number


@pytest.mark.parametrize("given", [2.0, np.float32(2), np.float64(2), 2, np.int64(2), np.array(2.0)])
def test_two_in_every_spelling(given):
    assert number("x", given, F32) == 2.0 and isinstance(number("x", given, F32), float)
    assert number("x", given, I32) == 2 and isinstance(number("x", given, I32), int)


def test_rounded_to_f32():
    assert number("x", 0.1, F32) == float(np.float32(0.1)) != 0.1
    assert number("x", 2**40, F32) == 2.0**40
    assert number("x", True, F32) == 1.0
    assert math.isnan(number("x", math.nan, F32)) and number("x", -math.inf, F32) == -math.inf
    assert number("x", 3.4028235e38, F32) == float(np.finfo(np.float32).max)


@pytest.mark.parametrize(
    "given, dtype",
    [(2**40, I32), (2**31, I32), (1.5, I32), (math.nan, I32), (1e39, F32), ("2", F32), (None, F32), (1j, F32), ([2.0], F32),
     (np.zeros(1), F32), (np.array(1j), F32)],
)  # fmt: skip
def test_refused(given, dtype):
    with pytest.raises(WgError) as e:
        number("x", given, dtype)
    assert e.value.problems[0].code == "WG0614" and "`x` is" in str(e.value)


def test_expressions():
    x = Scalar(name="x")
    assert evaluate(apply("div", const(1.0), x), {}, {"x": 0.0}) == math.inf
    assert math.isnan(evaluate(apply("log", x), {}, {"x": -1.0})) and evaluate(apply("log", x), {}, {"x": 0.0}) == -math.inf
    assert evaluate(apply("exp", x), {}, {"x": 1e6}) == math.inf
    positive = Cmp(op="gt", left=x, right=const(0.0))
    both = Logic(op="and", args=(positive, Logic(op="not", args=(positive,))))
    assert evaluate(both, {}, {"x": 1.0}) is False
    assert evaluate(Select(cond=positive, then=x, other=const(7.0)), {}, {"x": -1.0}) == 7.0

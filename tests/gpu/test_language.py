"""What the language page says that expressions and reductions are, on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.docs.tables import REDUCED, VALUES, expression, reduction

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("written, value", VALUES)
def test_an_expression(written, value):
    np.testing.assert_allclose(expression(written, "gpu"), value, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("written, of, value", REDUCED)
def test_a_reduction(written, of, value):
    np.testing.assert_allclose(reduction(written, of, "gpu"), value, rtol=1e-6, atol=1e-7)

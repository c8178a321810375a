"""Keys past the mask, inside a tile that is visited, never count: NaN and infinity neither."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.shipped import ATTENTION_SCHEDULES, attention

ROWS = 128  # of a CTA
M, N, HIDDEN = 200, 230, 180  # rows 0 .. 149 don't see key 180; those of the first CTA end at 127


def inputs(bad: float):
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, n, 2, 64)).astype(ml_dtypes.bfloat16) for n in (M, N, N))
    v[:, HIDDEN:] = bad
    return {"Q": q, "K": k, "V": v}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("schedule", ATTENTION_SCHEDULES)
def test_simulated(schedule, bad):
    kernel = attention(schedule, True, 64).compile()
    arrays = inputs(bad)
    out, want = kernel(**arrays, device="sim"), kernel(**arrays, device="reference")
    assert np.isfinite(want.O[:, :ROWS]).all() and not np.isfinite(want.O[:, HIDDEN:]).any()
    np.testing.assert_allclose(out.O[:, :ROWS].astype(float), want.O[:, :ROWS], atol=2e-2)


@pytest.mark.gpu
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("schedule", ATTENTION_SCHEDULES)
def test_on_gpu(schedule, bad):
    kernel = attention(schedule, True, 64).compile(build=True)
    arrays = inputs(bad)
    out, want = kernel(**arrays), kernel(**arrays, device="reference")
    np.testing.assert_allclose(np.asarray(out.O[:, :ROWS]).astype(float), want.O[:, :ROWS], atol=2e-2)

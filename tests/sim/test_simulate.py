"""Hand-written role programs give NumPy's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.programs import attention, gemm
from wgdsl.foundation.dtypes import BF16, F16
from wgdsl.sim import simulate_unchecked


def random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def run_gemm(program, m: int, n: int, k: int, **more) -> tuple[np.ndarray, np.ndarray]:
    """(simulated, expected): exact products of f16, summed in float64."""
    a, b = random(1, m, k).astype(F16.numpy()), random(2, k, n).astype(F16.numpy())
    out = simulate_unchecked(program, {"A": a, "B": b}, {}, {"M": m, "N": n, "K": k}, **more)
    return out["C"], a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize(
    "shape", [(128, 128, 64), (1, 1, 1), (129, 127, 65), (64, 200, 320), (300, 140, 129), (70, 70, 0), (0, 5, 5)]
)
def test_gemm(shape):
    got, expected = run_gemm(gemm(), *shape)
    assert got.dtype == np.float16 and got.shape == expected.shape
    bound = np.abs(expected) * 2.0**-11 + 1e-5 * max(shape[2], 1)
    assert (np.abs(got.astype(np.float64) - expected) <= bound).all()


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("k", [1, 64, 65, 128, 192, 640])
def test_gemm_at_every_depth(stages, k):
    first, _ = run_gemm(gemm(stages=2), 70, 90, k)
    got, _ = run_gemm(gemm(stages=stages, persistent=False), 70, 90, k)
    np.testing.assert_array_equal(got, first)


def run_attention(program, m: int, n: int, **more):
    q, k, v = (random(s, x, 64).astype(BF16.numpy()) for s, x in ((1, m), (2, n), (3, n)))
    arrays = {"Q": q, "K": k, "V": v}
    out = simulate_unchecked(program, arrays, {"scale": 0.125 * 1.4426950408889634}, {"M": m, "N": n, "D": 64}, **more)
    s = q.astype(np.float64) @ k.astype(np.float64).T * 0.125
    top = s.max(axis=1, initial=-np.inf)
    e = np.exp(s - np.where(np.isfinite(top), top, 0)[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        o = np.where(n > 0, (e @ v.astype(np.float64)) / e.sum(axis=1)[:, None], 0)
        lse = np.where(n > 0, top + np.log(e.sum(axis=1)), -np.inf)
    return out, o, lse


@pytest.mark.parametrize("m", [0, 1, 64, 127, 128, 129, 700])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 128, 200])
def test_attention(m, n):
    out, o, lse = run_attention(attention(), m, n)
    assert out["O"].shape == (m, 64)
    assert np.abs(out["O"].astype(np.float64) - o).max(initial=0) <= 1e-2
    np.testing.assert_allclose(out["L"], lse, atol=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_events_changes_nothing(seed):
    program = attention()
    first, _, _ = run_attention(program, 300, 200)
    again, _, _ = run_attention(program, 300, 200, seed=seed)
    np.testing.assert_array_equal(first["O"].view(np.uint16), again["O"].view(np.uint16))
    np.testing.assert_array_equal(first["L"], again["L"])


def test_a_missing_argument_is_named():
    with pytest.raises(ValueError, match="no array is given for B"):
        simulate_unchecked(gemm(), {"A": random(1, 4, 4)}, {}, {"M": 4, "N": 4, "K": 4})
    with pytest.raises(ValueError, match=r"B has shape \(5, 4\), expected \(4, 4\)"):
        simulate_unchecked(gemm(), {"A": random(1, 4, 4), "B": random(1, 5, 4)}, {}, {"M": 4, "N": 4, "K": 4})

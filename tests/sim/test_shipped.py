"""Every shipped schedule in the simulator, against the float64 reference, at the sizes around its tiles."""

from __future__ import annotations

import numpy as np
import pytest

from tests.shipped import KERNELS, Shipped, field_ids
from wgdsl.foundation.dtypes import DTYPES
from wgdsl.reference.evaluate import evaluate
from wgdsl.roles.checked import Checked
from wgdsl.sim import simulate

TILE = 128
SIZES = (0, 1, TILE - 1, TILE, TILE + 1, 3 * TILE + 40)
DIAGONAL = tuple(zip(SIZES, SIZES, strict=True))
MIXED = ((1, 3 * TILE + 40), (TILE + 1, TILE), (2 * TILE + 70, 1), (TILE - 1, 0), (300, 600), (600, 200))


def values(seed: int, dtype: str, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(DTYPES[dtype].numpy())


def inputs(s: Shipped, m: int, n: int) -> tuple[dict[str, np.ndarray], dict[str, float], dict[str, int]]:
    """Arrays, scalars and dims of a call: two query heads for one key head; or products with k a little over n."""
    dims = dict(s.dims)
    if s.program.startswith("examples/attention_eight_bits"):
        return eight_bit_inputs(s, m, n)
    if not s.program.startswith("examples/attention"):
        return product_inputs(s, m, n)
    d, e = dims["D"], dims["E"]
    shapes = {"Q": (1, m, 2, d), "K": (1, n, 1, d), "V": (1, n, 1, e)}
    arrays = {name: values(seed, s.dtype, *shape) for seed, (name, shape) in enumerate(shapes.items())}
    return arrays, {"scale": d**-0.5}, {"B": 1, "G": 1, "R": 2, "M": m, "N": n, "D": d, "E": e}


def eight_bit_inputs(s: Shipped, m: int, n: int) -> tuple[dict[str, np.ndarray], dict[str, float], dict[str, int]]:
    """The same with a scale of queries, keys and values for the key head."""
    d = dict(s.dims)["D"]
    plain = dict(s.options).get("values") == "plain"
    shapes = {"Q": (1, m, 2, d), "K": (1, n, 1, d), "V": (1, n, 1, d) if plain else (1, 1, d, n)}
    arrays = {name: values(seed, s.dtype, *shape) for seed, (name, shape) in enumerate(shapes.items())}
    arrays |= {name: 1 + values(seed, "f32", 1, 1) / 2 for seed, name in enumerate("qkv")}
    return arrays, {"scale": d**-0.5}, {"B": 1, "G": 1, "R": 2, "M": m, "N": n, "D": d, "E": d}


def product_inputs(s: Shipped, m: int, n: int) -> tuple[dict[str, np.ndarray], dict[str, float], dict[str, int]]:
    """Two batches, if there are any; rows of 16 bytes."""
    graph = s.compile().forms.graph
    sizes = {"Z": 2, "M": m, "N": max(8 * (n // 3 // 8), 8), "K": 8 * (n // 8) + 8 * bool(n)}
    dims = {d: sizes[d] for d in graph.dims}
    shapes = {x.name: tuple(extent.evaluate(dims) for extent in x.shape) for x in graph.inputs}
    scalars = {x.name: 0.3 for x in graph.scalars}
    return {name: values(k, s.dtype, *shape) for k, (name, shape) in enumerate(shapes.items(), 1)}, scalars, dims


def compare(s: Shipped, m: int, n: int, **more) -> None:
    forms = s.compile().forms
    arrays, scalars, dims = inputs(s, m, n)
    got = simulate(Checked(forms.roles), arrays, scalars, dims, **more)
    expected = evaluate(forms.graph, arrays, scalars, dims)
    rounded = evaluate(forms.graph, arrays, scalars, dims, round_operands=True)
    assert got.keys() == expected.keys()
    for name, e in expected.items():
        close(name, np.asarray(got[name], dtype=np.float64), e, rounded[name])


def close(name: str, got: np.ndarray, expected: np.ndarray, rounded: np.ndarray) -> None:
    """The project's error bars: twice what rounding alone costs, for an output of f32 a fixed one."""
    assert got.shape == expected.shape
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(got[~finite], expected[~finite], err_msg=name)
    error = np.abs(np.where(finite, got, 0) - np.where(finite, expected, 0))
    if name == "L":
        assert (error <= 1e-4 + 2e-6 * np.abs(np.where(finite, expected, 0))).all()
        return
    bar = 2 * np.abs(rounded - expected).max(initial=0) + 1e-5 * np.abs(expected).max(initial=0)
    assert error.max(initial=0) <= bar


@pytest.mark.parametrize("s", KERNELS, ids=field_ids())
def test_sizes(s: Shipped):
    for m, n in DIAGONAL + MIXED:
        compare(s, m, n)


@pytest.mark.slow
@pytest.mark.parametrize("s", KERNELS, ids=field_ids())
def test_all_sizes(s: Shipped):
    for m in SIZES:
        for n in SIZES:
            compare(s, m, n)


@pytest.mark.slow
@pytest.mark.parametrize("s", KERNELS, ids=field_ids())
def test_twenty_orders_of_events(s: Shipped):
    forms = s.compile().forms
    arrays, scalars, dims = inputs(s, 300, 600)
    first = simulate(Checked(forms.roles), arrays, scalars, dims)
    for seed in range(20):
        again = simulate(Checked(forms.roles), arrays, scalars, dims, seed=seed)
        for name, x in first.items():
            np.testing.assert_array_equal(again[name].astype(np.float64), x.astype(np.float64))


@pytest.mark.parametrize("sms", [1, 3, 132])
def test_any_number_of_ctas(sms: int):
    persistent = next(k for k in KERNELS if k.schedule == "fa3_persistent")
    compare(persistent, 600, 300, sms=sms)


@pytest.mark.parametrize("schedule", ["simple", "fa3", "fa3_persistent"])
def test_a_nan_that_no_row_of_the_tile_sees(schedule: str):
    """Rows 0 to 127 see keys up to 427 only; the tile that holds key 427 holds key 450 as well, where V is NaN."""
    s = next(k for k in KERNELS if k.schedule == schedule and dict(k.options)["causal"] and dict(k.dims)["D"] == 64)
    forms = s.compile().forms
    arrays, scalars, dims = inputs(s, 300, 600)
    clean = simulate(Checked(forms.roles), arrays, scalars, dims)["O"].astype(np.float64)
    arrays["V"][0, 450] = np.nan
    got = simulate(Checked(forms.roles), arrays, scalars, dims)["O"].astype(np.float64)
    np.testing.assert_array_equal(got[:, :TILE], clean[:, :TILE])
    assert np.isnan(got[:, 150:]).all()

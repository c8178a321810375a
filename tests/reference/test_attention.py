"""Attention of `wgdsl.reference` against loops over what is visible."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.analyse.programs import ATTENTION, graph_of
from tests.reference import plain
from wgdsl.reference import evaluate, random_inputs

FULL, CAUSAL = graph_of(ATTENTION), graph_of(ATTENTION, options={"causal": True})


def dims(M, N, *, B=1, G=1, R=1, D=16, E=16):
    return {"B": B, "G": G, "R": R, "M": M, "N": N, "D": D, "E": E}


def compare(graph, arrays, see=None):
    """Both results, after checking that they agree: NaN and infinities in the same places."""
    got = evaluate(graph, arrays)
    out, lse = plain.attention(arrays["Q"], arrays["K"], arrays["V"], causal=graph is CAUSAL, see=see)
    np.testing.assert_allclose(got["O"], out, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(got["L"], lse, rtol=1e-12, atol=1e-13)
    return got["O"], got["L"]


@pytest.mark.parametrize("sizes", [(3, 128), (1, 127), (2, 5), (64, 100), (127, 128), (5, 2), (1, 1), (130, 64)])
@pytest.mark.parametrize("graph", [FULL, CAUSAL], ids=["full", "causal"])
def test_causal_is_bottom_right(graph, sizes):
    compare(graph, random_inputs(graph, dims(*sizes), seed=1))


def test_a_top_left_mask_would_be_seen():
    arrays = random_inputs(CAUSAL, dims(3, 128), seed=1)
    wrong, _ = plain.attention(arrays["Q"], arrays["K"], arrays["V"], see=lambda b, h, i: range(i + 1))
    assert np.abs(wrong - evaluate(CAUSAL, arrays)["O"]).max() > 0.5


@pytest.mark.parametrize("sizes, empty", [((130, 64), 66), ((5, 2), 3), ((9, 0), 9)])
def test_rows_that_see_nothing_are_zero_and_minus_infinity(sizes, empty):
    out, lse = compare(CAUSAL, random_inputs(CAUSAL, dims(*sizes, R=2), seed=2))
    assert (out[:, :empty] == 0).all() and np.isneginf(lse[:, :, :empty]).all()
    assert np.isfinite(lse[:, :, empty:]).all()


@pytest.mark.parametrize("n", [1, 77, 127, 129])
def test_odd_lengths(n):
    compare(FULL, random_inputs(FULL, dims(5, n), seed=3))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_hidden_from_a_row_does_not_leak_into_it(bad):
    arrays = random_inputs(CAUSAL, dims(6, 6, B=2, G=2, R=2), seed=4)
    clean = evaluate(CAUSAL, arrays)["O"]
    for name in ("K", "V"):
        dirty = {**arrays, name: arrays[name].copy()}
        dirty[name][1, 4:, :, :] = bad
        out, _ = compare(CAUSAL, dirty)
        np.testing.assert_allclose(out[1, :4], clean[1, :4], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(out[0], clean[0], rtol=1e-12, atol=1e-15)
        assert not np.isfinite(out[1, 4:]).all()


def test_a_visible_nan_reaches_its_column_and_no_other():
    arrays = random_inputs(FULL, dims(4, 9), seed=5)
    arrays["V"][0, 3, 0, 7] = np.nan
    out, lse = compare(FULL, arrays)
    assert np.isnan(out[..., 7]).all() and np.isfinite(np.delete(out, 7, axis=-1)).all() and np.isfinite(lse).all()


def test_a_nan_query_spoils_its_row_and_no_other():
    arrays = random_inputs(CAUSAL, dims(4, 9), seed=6)
    arrays["Q"][0, 2, 0, 5] = np.nan
    out, lse = compare(CAUSAL, arrays)
    spoilt = np.isnan(out).all(axis=-1)[0, :, 0]
    assert spoilt.tolist() == [False, False, True, False] and np.isnan(lse[0, 0]).tolist() == spoilt.tolist()


def test_a_row_of_minus_infinity_counts_as_empty():
    """Every score is -inf."""
    arrays = random_inputs(FULL, dims(3, 4), seed=7)
    arrays["K"][..., 0] = -np.inf
    arrays["Q"][..., 0] = 1.0
    out, lse = evaluate(FULL, arrays).values()
    assert (out == 0).all() and np.isneginf(lse).all()


@pytest.mark.parametrize("graph", [FULL, CAUSAL], ids=["full", "causal"])
@pytest.mark.parametrize(
    "size", [dims(4, 0), dims(0, 5), dims(0, 0), dims(3, 5, B=0), dims(3, 5, G=0), dims(1, 20, G=3)], ids=str
)
def test_lengths_of_zero_and_one(graph, size):
    out, lse = compare_or_empty(graph, random_inputs(graph, size, seed=8))
    assert out.shape == (size["B"], size["M"], size["G"], size["E"]) and lse.shape == (size["B"], size["G"], size["M"])
    if size["N"] == 0:
        assert (out == 0).all() and np.isneginf(lse).all()


def compare_or_empty(graph, arrays):
    if arrays["K"].shape[2] == 0:  # no heads: nothing to compare
        return evaluate(graph, arrays).values()
    return compare(graph, arrays)


@pytest.mark.parametrize("heads", [(8, 2), (9, 3), (6, 1)])
def test_grouped_heads(heads):
    h, g = heads
    compare(CAUSAL, random_inputs(CAUSAL, dims(7, 9, B=2, G=g, R=h // g), seed=9))


@pytest.mark.parametrize("heads", [(33, 2), (3, 2), (2, 4)])
def test_head_counts_that_do_not_divide_are_refused(heads):
    h, g = heads
    arrays = {"Q": np.zeros((1, 3, h, 8)), "K": np.zeros((1, 3, g, 8)), "V": np.zeros((1, 3, g, 8))}
    with pytest.raises(ValueError, match=rf"(?s){h}.*G = {g}"):
        evaluate(FULL, arrays)


@pytest.mark.parametrize("depths", [(59, 59), (72, 72), (192, 128), (64, 128), (32, 24)])
def test_head_dims(depths):
    d, e = depths
    compare(FULL, random_inputs(FULL, dims(5, 33, D=d, E=e), seed=10))


def test_the_scale_can_be_given():
    arrays = random_inputs(FULL, dims(5, 7), seed=11)
    out, _ = plain.attention(arrays["Q"], arrays["K"], arrays["V"], scale=0.3)
    np.testing.assert_allclose(evaluate(FULL, arrays, {"scale": 0.3})["O"], out, rtol=1e-12)
    with pytest.raises(ValueError, match="requires scale > 0"):
        evaluate(FULL, arrays, {"scale": -1.0})


def test_fixed_dims_give_the_same_numbers():
    size = dims(7, 9, G=2, R=2)
    fixed = graph_of(ATTENTION, options={"causal": True}, dims={"D": 16, "E": 16, "R": 2})
    arrays = random_inputs(CAUSAL, size, seed=12)
    for name, value in evaluate(fixed, arrays).items():
        np.testing.assert_array_equal(value, evaluate(CAUSAL, arrays)[name])
    with pytest.raises(ValueError, match="axis 3 of `Q`"):
        evaluate(graph_of(ATTENTION, dims={"D": 32}), arrays)


def test_rounding_operands_is_the_error_bar():
    """P in the type of V, O in its own type; nothing else."""
    arrays = random_inputs(FULL, dims(9, 50, G=2, R=2), seed=13)
    exact, close = evaluate(FULL, arrays), evaluate(FULL, arrays, round_operands=True)
    error = np.abs(exact["O"] - close["O"]).max()
    assert 1e-5 < error < 2e-3
    assert (close["O"].astype(np.float16) == close["O"]).all()
    np.testing.assert_allclose(close["L"], exact["L"], rtol=1e-6)

    scores = np.einsum("bihd,bjhd->bhij", arrays["Q"].astype(float), np.repeat(arrays["K"], 2, axis=2).astype(float)) / 4
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p = (p / p.sum(-1, keepdims=True)).astype(np.float16).astype(float)
    o = np.einsum("bhij,bjhe->bihe", p, np.repeat(arrays["V"], 2, axis=2).astype(float)).astype(np.float16)
    assert np.abs(o - close["O"]).max() <= np.spacing(np.float16(1))


def test_passes_give_the_same_numbers(monkeypatch):
    arrays = random_inputs(CAUSAL, dims(7, 9, B=2, G=2, R=2), seed=14)
    arrays["V"][1, 8, 1, 3] = np.nan  # takes the way without matrix products
    whole = evaluate(CAUSAL, arrays)
    for budget in (1, 50, 300):
        monkeypatch.setattr(sys.modules["wgdsl.reference.passes"], "BUDGET", budget)
        monkeypatch.setattr(sys.modules["wgdsl.reference.evaluate"], "BUDGET", budget)
        for name, value in evaluate(CAUSAL, arrays).items():
            np.testing.assert_allclose(value, whole[name], rtol=1e-13, atol=1e-15)

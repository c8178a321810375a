"""Lazy rescaling is refused where an output shows the running maximum itself, however it is hidden."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tests.programs.edits import ATTENTION, SIMPLE, edit
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.roles.checked import Checked
from wgdsl.sim import simulate

LAZY = edit(SIMPLE, ("rescale O", "rescale O when grown by 8"), ("finish O, L via Os", "finish O, L, W via Os"))
SHOWN = {
    "itself": "P.max[b,g,r,i]",
    "above a threshold": "max(P.max[b,g,r,i], 100)",
    "what is left of it": "relu(P.max[b,g,r,i] - 100)",
    "if it is large": "select(P.max[b,g,r,i] > 50, P.max[b,g,r,i], 0)",
    "the sum that is scaled to it, compared": "select(P.sum[b,g,r,i] > 3, 1, 0)",
}
HIDDEN = {
    "the log of the sum": "P.max[b,g,r,i] + log(P.sum[b,g,r,i])",
    "a bend of what stays": "relu(P.max[b,g,r,i] + log(P.sum[b,g,r,i]))",
}


def compiled(value: str) -> None:
    program = edit(
        ATTENTION,
        ("out L: f32[B, H, M]", "out W: f32[B, H, M]\nout L: f32[B, H, M]"),
        ("L[b,h,i] =", f"W[b,h,i] = {value}\nL[b,h,i] ="),
    )
    compile(program, schedule=LAZY, dims={"D": 64, "E": 64}, types={"T": "bf16"}, build=False)


@pytest.mark.parametrize("value", SHOWN.values(), ids=SHOWN)
def test_refused(value):
    with pytest.raises(WgError, match="WG0425"):
        compiled(value)


@pytest.mark.parametrize("value", HIDDEN.values(), ids=HIDDEN)
def test_accepted(value):
    compiled(value)


@pytest.mark.parametrize("score, moves", [(5.15625, True), (3.03125, False)], ids=["more than half", "less"])
def test_a_summand_that_outweighs_its_row_is_exact(score: float, moves: bool):
    """192 keys: the last to be streamed has a weight of exp(score), rounded by 0.1 % or more, the others 1. Where it is
    more than half of the row so far the maximum follows, though it has grown by less than 2^8, and the weight is 1."""
    program = edit(ATTENTION, ("out O: T[", "out O: f32["))
    lazy = edit(SIMPLE, ("rescale O", "rescale O when grown by 8"), (" over Qs", ""))
    kernel = compile(program, schedule=lazy, dims={"D": 64, "E": 64}, types={"T": "bf16"}, options={"lse": False}, build=False)
    q, k, v = (np.zeros((1, n, 1, 64), dtype=np.float32) for n in (64, 192, 192))
    q[..., 0], k[0, 0, 0, 0], v[0, 0] = 1, score, 1
    got = simulate(
        Checked(kernel.roles),
        {"Q": q.astype(bfloat16), "K": k.astype(bfloat16), "V": v.astype(bfloat16)},
        {"scale": 1.0},
        {"B": 1, "G": 1, "R": 1, "M": 64, "N": 192, "D": 64, "E": 64},
    )
    exact = np.exp(score) / (np.exp(score) + 191)
    error = np.abs(np.asarray(got["O"], dtype=np.float64) / exact - 1)
    assert error.max() < 1e-6 if moves else error.min() > 5e-4

"""Lazy rescaling is refused where an output shows the running maximum itself, however it is hidden."""

from __future__ import annotations

import pytest

from tests.programs.edits import ATTENTION, SIMPLE, edit
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile

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

"""Sums whose summand is a sum of terms f(final results) * g(this element): a state for each g, together at the end."""

from __future__ import annotations

import pytest

from tests.programs.edits import edit
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.foundation.resources import resource
from wgdsl.tools.running import run

PROGRAM = resource("examples", "entropy", "entropy.wg").read_text("utf-8")
SCHEDULES = resource("examples", "entropy", "schedules.wg").read_text("utf-8").replace("j 128", "j 64")
SUM = "sum[j] P[b,h,i,j] * (L[b,h,i] - X[b,h,i,j])"
TARGETS = {"simple": "sm_90a", "warps": "sm_80"}
SIZES = ({"B": 1, "M": 70, "N": 150, "H": 2}, {"B": 1, "M": 140, "N": 0, "H": 1}, {"B": 1, "M": 200, "N": 70, "H": 1})
RIGHT = {
    "one factor": "sum[j] P[b,h,i,j] * (L[b,h,i] - X[b,h,i,j])",
    "minus": "-sum[j] (X[b,h,i,j] - L[b,h,i]) * P[b,h,i,j] * 0.5",
    "three terms": "sum[j] P[b,h,i,j] * (L[b,h,i] - X[b,h,i,j] + tanh(S[b,h,i,j]) * L[b,h,i])",
}


def compiled(value: str, name: str, causal: bool = False):
    text = edit(PROGRAM, (SUM, value)) + SCHEDULES.removeprefix("wg 1\n")
    fixed, options = {"D": 64, "E": 64}, {"causal": causal}
    return compile(text, schedule=name, target=TARGETS[name], dims=fixed, types={"T": "bf16"}, options=options, build=False)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("case", RIGHT)
def test_right(case, causal, name):
    kernel = compiled(RIGHT[case], name, causal)
    for seed, dims in enumerate(SIZES):
        for order in (None, 1):
            done = run(kernel, dims, device="sim", seed=seed, order=order, check=True)
            assert done.right, (dims, order, [str(v) for v in done.verdicts])


def test_what_is_summed_already_has_its_state():
    """The sum of the weights is the softmax's own: one more state, for the weights times the scores."""
    states = [s.name for s in compiled(SUM, "simple").forms.stream.states]
    assert len(states) == 4 and len(set(states)) == 4


@pytest.mark.parametrize("value", ["sum[j] P[b,h,i,j] * (X[b,h,i,j] - L[b,h,i]) ** 2", "sum[j] tanh(X[b,h,i,j] - L[b,h,i])"])
def test_refused(value):
    """A square of a difference would lose its digits; a function of one has no terms."""
    with pytest.raises(WgError, match=r"WG030[23]"):
        compiled(value, "simple")

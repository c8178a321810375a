"""Probes on a GPU give what the simulator gives; a plain call of such a kernel says what it lacks."""

from __future__ import annotations

import numpy as np
import pytest

import wgdsl
from tests.shipped import ROOT

pytestmark = pytest.mark.gpu

FA3 = (ROOT / "schedules" / "hopper" / "attention_fa3.wg").read_text("utf-8")
STEPS = {"P": "compute P[j+1]", "S": "await S[j+1]", "O": "await O[j]"}


def kernel(name: str) -> wgdsl.Kernel:
    step = STEPS[name]
    schedule = FA3.replace(step, f"{step}  probe {name}{step[step.index('[') :]}", 1)
    program = ROOT / "examples" / "attention" / "attention.wg"
    return wgdsl.compile(program, schedule=schedule, dims={"D": 64, "E": 64}, types={"T": "f16"}, options={"causal": True})


@pytest.fixture
def inputs():
    rng = np.random.default_rng(3)
    shapes = {"Q": (2, 150, 2, 64), "K": (2, 200, 1, 64), "V": (2, 200, 1, 64)}
    return {n: rng.standard_normal(s).astype(np.float16) for n, s in shapes.items()}


@pytest.mark.parametrize("name", STEPS)
def test_the_same_tiles_as_in_the_simulator(card, inputs, name):
    probed = kernel(name)
    here, there = probed.probe(**inputs), probed.probe(**inputs, device="sim")
    assert list(here) == list(there)
    for key in here:
        assert np.array_equal(np.isnan(here[key]), np.isnan(there[key])), key
        np.testing.assert_allclose(here[key], there[key], rtol=2e-3, atol=2e-2, err_msg=key)


def test_a_plain_call_has_no_room_for_it(card, inputs):
    with pytest.raises(wgdsl.WgError, match="WG1008"):
        kernel("P")(**inputs)

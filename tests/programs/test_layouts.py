"""Where operands lie: one tensor for several of them, and every head dim."""

from __future__ import annotations

import re

import pytest

from tests.programs.edits import edit, plain
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.tools.running import run

PACKED = plain("examples/attention_packed/attention_packed.wg")
LAYOUTS = {
    "3 before heads": ("QKV[B, M, 3, H, D]", "QKV[b,{},{},h,{}]"),
    "3 behind heads": ("QKV[B, M, H, 3, D]", "QKV[b,{},h,{},{}]"),
    "3 in front": ("QKV[3, B, H, M, D]", "QKV[{1},b,h,{0},{2}]"),
}


def packed(layout: str) -> str:
    shape, access = LAYOUTS[layout]
    access = access if "{0}" in access else access.replace("{}", "{0}", 1).replace("{}", "{1}", 1).replace("{}", "{2}", 1)
    text = edit(PACKED, ("QKV: T[B, M, 3, H, D]", shape.replace("QKV[", "QKV: T[")))
    return re.sub(r"QKV\[b,(\w),(\d),h,(\w)\]", lambda m: access.format(*m.groups()), text)


@pytest.mark.parametrize("schedule", ["packed", "packed_warps"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_tensor_of_queries_keys_and_values(layout, schedule):
    for causal in (False, True):
        kernel = compile(packed(layout), schedule=schedule, dims={"D": 64}, options={"causal": causal}, build=False)
        for m in (1, 70, 300):
            assert run(kernel, {"B": 2, "M": m, "H": 3}, device="sim", check=True).right, (causal, m)


def test_a_home_of_what_is_read_in_several_ways_names_its_indices():
    with pytest.raises(WgError) as e:
        compile(PACKED.replace("QKV[j, d]", "QKV[j]"), schedule="packed", dims={"D": 64}, build=False)
    assert e.value.problems[0].code == "WG0405"
    assert "`Ks = QKV[i, d]` or `Ks = QKV[j, d]` or `Ks = QKV[j, e]`" in str(e.value)


def test_homes_of_one_tensor_are_told_apart_in_products():
    with pytest.raises(WgError) as e:
        text = edit(PACKED, ("wgmma(P[j], Vs[j])", "wgmma(P[j], Ks[j])"), ("wgmma(Qs, Ks[j+1])", "wgmma(Qs, Vs[j+1])"))
        compile(text, schedule="packed", dims={"D": 64}, build=False)
    assert e.value.problems[0].code == "WG0408" and "`QKV[b, j, 1, h, d]`" in str(e.value)

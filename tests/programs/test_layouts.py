"""Where operands lie: one tensor for several of them, and every head dim."""

from __future__ import annotations

import re

import pytest

from tests.programs.edits import ATTENTION, edit, plain
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


HEADS = {
    "simple": ((8, 8), (40, 24), (72, 72), (104, 88), (192, 128)),
    "fa3": ((72, 72), (120, 120), (192, 128)),
    "fa2": ((8, 8), (40, 24), (72, 72)),
    "fa2_narrow": ((120, 120), (192, 128)),
    "two_80": ((248, 248), (256, 256)),
}
FILES = {
    "fa3": "hopper/attention_fa3",
    "simple": "hopper/attention_simple",
    "fa2": "ampere/attention_fa2",
    "fa2_narrow": "ampere/attention_fa2_narrow",
    "two_80": "hopper/attention_two",
}


@pytest.mark.parametrize("schedule, d, e", [(s, d, e) for s, dims in HEADS.items() for d, e in dims])
def test_head_dims_are_multiples_of_8(schedule, d, e):
    """What a product takes in larger steps is filled up with zeros in shared memory."""
    text = ATTENTION + plain(f"schedules/{FILES[schedule]}.wg").removeprefix("wg 1\n")
    kernel = compile(text, schedule=schedule, dims={"D": d, "E": e}, options={"causal": True}, build=False)
    for m, n in ((70, 200), (200, 130)):
        assert run(kernel, {"B": 1, "M": m, "N": n, "G": 1, "R": 2}, device="sim", check=True).right, (m, n)

"""Where operands lie: one tensor for several of them, and every head dim."""

from __future__ import annotations

import re
from random import Random

import numpy as np
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


AXES = {"Q": ("BMHD", "bihd"), "K": ("BNGD", "bjgd"), "V": ("BNGE", "bjge"), "O": ("BMHE", "bihe")}
SIMPLE = plain("schedules/hopper/attention_simple.wg")
FA2 = plain("schedules/ampere/attention_fa2.wg")
DIRECT = {
    "sm_90a": edit(SIMPLE, ("smem Os = O[i] by tma over Qs\n", ""), (" via Os", "")),
    "sm_80": edit(FA2, ("smem Os = O[i] by copy over Qs\n", ""), (" via Os", "")),
}


def ordered(**orders: tuple[int, ...]) -> str:
    """The program with the axes of tensors in other orders."""
    text = ATTENTION
    for tensor, order in orders.items():
        (shape, access), new = AXES[tensor], [AXES[tensor][0][k] for k in order]
        text = edit(text, (f"{tensor}: T[{', '.join(shape)}]", f"{tensor}: T[{', '.join(new)}]"))
        text = edit(text, (f"{tensor}[{','.join(access)}]", f"{tensor}[{','.join(access[k] for k in order)}]"))
    return text


@pytest.mark.parametrize("schedule", [SIMPLE, FA2], ids=["sm_90a", "sm_80"])
@pytest.mark.parametrize("seed", range(6))
def test_axes_in_any_order(seed, schedule):
    """Those of heads, lengths and the batch; of operands the one along which products sum too."""
    random = Random(seed)
    orders = {t: (*random.sample(range(3), 3), 3) for t in AXES} | {random.choice("QKV"): tuple(random.sample(range(4), 4))}
    if any(o[3] == 0 for o in orders.values()) or any(orders[t][3] == 2 for t in "QKV"):
        orders |= {t: (3, 0, 2, 1) for t in "QKV" if orders[t][3] in (0, 2)}  # the last axis is one of the tile
    kernel = compile(ordered(**orders), schedule=schedule, dims={"D": 64, "E": 64}, options={"causal": True}, build=False)
    for m, n in ((72, 200), (200, 136)):
        assert run(kernel, {"B": 2, "M": m, "N": n, "G": 1, "R": 2}, device="sim", check=True).right, (orders, m, n)


@pytest.mark.parametrize("target", DIRECT)
def test_a_result_whose_rows_lie_side_by_side_is_stored_by_threads(target):
    text = ordered(O=(0, 2, 3, 1))
    staged = SIMPLE if target == "sm_90a" else FA2
    with pytest.raises(WgError) as e:
        compile(text, schedule=staged, dims={"D": 64, "E": 64}, build=False)
    assert e.value.problems[0].code == "WG0405" and "drop `via Os` and the line of `Os`" in str(e.value)
    kernel = compile(text, schedule=DIRECT[target], dims={"D": 64, "E": 64}, build=False)
    assert run(kernel, {"B": 2, "M": 70, "N": 200, "G": 1, "R": 2}, device="sim", check=True).right


@pytest.mark.parametrize("schedule", [SIMPLE, FA2], ids=["sm_90a", "sm_80"])
def test_views_of_larger_arrays(schedule):
    kernel = compile(ATTENTION, schedule=schedule, dims={"D": 64, "E": 64}, types={"T": "f16"}, build=False)
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 2 * n, 3, 72)).astype(np.float16) for n in (70, 200, 200))
    given = {"Q": q[:, ::2, 1:, :64], "K": k[:, 200:, 1:2, 8:], "V": v[:, ::2, 2:, :64]}
    for got, same in zip(kernel.simulate(**given), kernel.simulate(**{t: x.copy() for t, x in given.items()}), strict=True):
        assert np.array_equal(got, same)

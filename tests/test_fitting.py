"""What an error of placement proposes: the nearest schedule that fits, tried before it is said."""

from __future__ import annotations

import pytest

import wgdsl
from tests.lowering import ATTENTION, FA3, GEMM, PIPELINED, SIMPLE, shipped

WIDE = FA3.replace("i 128", "i 192").replace("2 warpgroups, registers 240", "3 warpgroups, registers 160")
WIDE = WIDE.replace("registers 24\n", "registers 32\n")


def refused(schedule: str, program: str = ATTENTION, d: int = 128, e: int | None = None) -> wgdsl.WgError:
    dims = {"D": d, "E": e or d} if program is ATTENTION else {}
    with pytest.raises(wgdsl.WgError) as caught:
        wgdsl.compile(program, schedule=schedule, dims=dims, build=False)
    return caught.value


def nearest(*args, **named) -> dict[str, tuple[str, ...]]:
    return {p.code: p.nearest for p in refused(*args, **named).problems}


CASES = {
    "a deep ring": ((FA3.replace("K[j] by tma ring 2", "K[j] by tma ring 6"),), "WG0708", ("`ring 4` for `Ks`", "`tile j 96`")),
    "rings filled together": ((PIPELINED.replace("ring 3", "ring 6"), GEMM), "WG0708", ("`ring 3` for `As` and `Bs`",)),
    "staging of its own": (
        (SIMPLE.replace(" over Qs", "").replace("ring 2", "ring 3"),), "WG0708", ("`Os ... over Qs`", "`ring 2` for `Vs`")
    ),
    "three warpgroups": ((WIDE,), "WG0707", ("`tile j 80`",)),
    "few registers": ((FA3.replace("240", "168"),), "WG0707", ("`registers 192` for `math`", "`tile j 96`")),
    "wide heads": ((FA3, ATTENTION, 256), "WG0707", ("`tile j 80`",)),
    "wide heads, three warpgroups": (
        (WIDE, ATTENTION, 256), "WG0707", ("`math : 2 warpgroups, registers 232`, `tile i 128` with `tile j 80`",)
    ),
    "the pool": (
        (FA3.replace("registers 24\n", "registers 40\n"),), "WG0706",
        ("`registers 24` for `load`", "`registers 232` for `math`")
    ),
    "no tile of the engines": ((FA3.replace("j 128", "j 100"),), "WG0415", ("`tile j 96`", "`tile j 112`")),
    "a small buffer": ((FA3, ATTENTION, 64, 128), "WG0416", ("drop `over Qs`, so that `Os` has memory of its own",)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_fits(name):
    args, code, wanted = CASES[name]
    found = nearest(*args)[code]
    assert found is not None and set(wanted) <= set(found)


def test_the_numbers_of_options_are_tried_too():
    """A proposal replaces what a name stands for."""
    named = FA3.replace("  tile   i 128, j 128", "  option keys in {128, 96}\n  option depth in {6, 2}\n  tile   i 128, j keys")
    found = nearest(named.replace("K[j] by tma ring 2", "K[j] by tma ring depth"))["WG0708"]
    assert found is not None and {"`ring 4` for `Ks`", "`tile j 96`"} <= set(found)


def test_what_is_proposed_can_be_compiled():
    for change in (("ring 2", "ring 3"), ("over Qs", "over Qs")):
        wgdsl.compile(ATTENTION, schedule=FA3.replace("j 128", "j 80").replace(*change), dims={"D": 128, "E": 128}, build=False)
    assert nearest(WIDE, d=128) == {"WG0707": ("`tile j 80`",)}
    wgdsl.compile(ATTENTION, schedule=WIDE.replace("j 128", "j 80"), dims={"D": 128, "E": 128}, build=False)
    wgdsl.compile(ATTENTION, schedule=FA3.replace("j 128", "j 80"), dims={"D": 256, "E": 256}, build=False)


def test_both_budgets_are_shown_and_one_change_mends_both():
    text = str(refused(WIDE, d=256))
    assert "128  O: 64 x 256 f32" in text and "248  in all, 96 more than 160 less 8 for the assembler" in text
    assert "load 1 x 32 + math 3 x 160 = 512, of 512 that the launch grants" in text
    assert "98304  Qs: 3 x 1 x 32768" in text and "361560  in all, 129112 more than the 232448 of sm_90a" in text


def test_a_smaller_change_hides_a_larger_one_of_its_kind():
    found = nearest(SIMPLE.replace(" over Qs", "").replace("ring 2", "ring 3"))["WG0708"]
    assert "`ring 2` for `Ks` and `Vs`" not in found


def test_where_nothing_small_helps():
    """One warpgroup's accumulator alone is more than its registers."""
    text = SIMPLE.replace("i 128", "i 64").replace("2 warpgroups, registers 240", "1 warpgroup, registers 104")
    found = refused(text.replace("j 128", "j 16"), d=256)
    need = next(p for p in found.problems if p.code == "WG0707")
    assert need.nearest and need.nearest[0].startswith("`registers "), "more registers do"
    four = FA3.replace("i 128", "i 256").replace("2 warpgroups, registers 240", "4 warpgroups, registers 112")
    found = refused(four.replace("j 128", "j 16"), d=256)
    (need,) = found.problems
    assert need.nearest == () and "no change of one number makes it fit: smaller tiles, more warpgroups" in need.help()


def test_other_mistakes_come_first():
    """A budget is looked at when all else is right: what is wrong elsewhere would spoil every trial."""
    problems = refused(FA3.replace("i 128, j 128", "i 100, j 100")).problems
    assert all(p.nearest in (None, ()) for p in problems if hasattr(p, "nearest"))


def test_of_several_kernels_the_one_that_fails_is_changed():
    program, two = shipped("examples/row_softmax/row_softmax.wg"), shipped("schedules/hopper/row_softmax_two_pass.wg")
    deep = two.replace("smem As = A[i, k] by tma ring 3", "smem As = A[i, k] by tma ring 6")
    deep = deep.replace("smem Bs = B[n, k] by tma ring 3", "smem Bs = B[n, k] by tma ring 6")
    with pytest.raises(wgdsl.WgError) as caught:
        wgdsl.compile(program, schedule=deep, dims={"K": 64}, build=False)
    (problem,) = caught.value.problems
    assert problem.nearest and "`ring 3` for `As` and `Bs`" in problem.nearest

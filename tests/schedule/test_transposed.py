"""`smem Vt = Vs by transpose`: what a role program owes for a tile that a warpgroup makes of another one, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import wgdsl
from tests.shipped import ROOT, eight
from tests.sim.programs import drop, edit
from tests.sim.test_shipped import inputs
from wgdsl.diagnostics.schedule import RingTooShallow
from wgdsl.driver import compile
from wgdsl.roles import model as m
from wgdsl.roles.checked import Checked
from wgdsl.roles.model import RoleProgram, Step, walk
from wgdsl.sim import simulate
from wgdsl.targets.descriptor import matrix_layout
from wgdsl.targets.wgmma import abreast
from wgdsl.verify import check
from wgdsl.verify.closure import explore

PROGRAM = ROOT / "examples" / "attention_eight_bits" / "attention_eight_bits.wg"
SHIPPED = eight("turning_apart", False, 64)
FILLING = eight("turning", False, 64)


def program() -> RoleProgram:
    return SHIPPED.compile().roles


def role(name: str) -> tuple[Step, ...]:
    return tuple(walk(next(r for r in program().kernels[0].roles if r.name == name).steps))


def test_what_a_tile_owes():
    """In this order: the tile is there, the slot is free, it is written, visible to the products, said to be so."""
    found = [s for s in role("turn") if not isinstance(s, m.Items | m.Loop | m.Let | m.If | m.Elect | m.Registers)]
    kinds = [type(s).__name__ for s in found]
    first = ["Wait", "Wait", "Transpose", "FenceAsync", "BarSync", "Arrive", "Advance", "Arrive", "Advance"]
    assert kinds == first
    full, empty = (s for s in found if isinstance(s, m.Wait))
    assert (full.barrier, full.flip, empty.barrier, empty.flip) == ("Vs.full", False, "Vt.empty", True)
    made, freed = (s for s in found if isinstance(s, m.Arrive))
    assert (made.barrier, made.by, freed.barrier, freed.by) == ("Vt.full", "thread", "Vs.empty", "warps")
    kernel = program().kernels[0]
    assert kernel.v8 is None, "keys lie as the tensor has them"
    assert [(kernel.barrier(b).count) for b in ("Vs.empty", "Vt.full", "Vt.empty")] == [4, 1, 12]


TURN, MATH = "turn", "math"
# what is left out -> the role, and which of its steps
MUTANTS: dict[str, tuple[str, Callable[[Step], bool]]] = {
    "the fence of the proxy": (TURN, lambda s: isinstance(s, m.FenceAsync)),
    "the meeting of the warps": (TURN, lambda s: isinstance(s, m.BarSync)),
    "that the tile is there": (MATH, lambda s: isinstance(s, m.Wait) and s.barrier == "Vt.full"),
    "that the slot is free": (TURN, lambda s: isinstance(s, m.Wait) and s.barrier == "Vt.empty"),
    "that the source is there": (TURN, lambda s: isinstance(s, m.Wait) and s.barrier == "Vs.full"),
}


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.parametrize(("shipped", "turn"), [(SHIPPED, "turn"), (FILLING, "load")], ids=["apart", "filling"])
def test_what_nobody_may_leave_out(shipped, turn, name):
    where, which = MUTANTS[name]
    roles = shipped.compile().roles
    assert explore(roles.kernels[0]).fault is None
    assert explore(edit(roles, drop(which), role=turn if where == TURN else where).kernels[0]).fault is not None


def test_one_thread_of_those_that_transpose_fills():
    """The position in the ring is that of the fills; what is transposed lies behind it."""
    load = next(r for r in FILLING.compile().roles.kernels[0].roles if r.name == "load")
    assert not load.elected
    copies = [s for s in walk(load.steps) if isinstance(s, m.Elect) and any(isinstance(x, m.Tma) for x in s.body)]
    assert copies and all(isinstance(s.body[0], m.Wait) and isinstance(s.body[1], m.Expect) for s in copies)
    assert sum(isinstance(x, m.Tma) for s in copies for x in s.body) == sum(isinstance(s, m.Tma) for s in walk(load.steps))
    assert {s.origin_slot.lag for s in walk(load.steps) if isinstance(s, m.Transpose)} == {1}


def test_a_fill_that_waits_for_its_own_transposition():
    """One slot, filled again before what it holds is transposed: the same role would wait for itself."""
    line = "load { fill Qs  for j { fill Ks[j+1]  fill Vs[j+1]  pack Vt[j] } }"
    with pytest.raises(wgdsl.WgError) as e:
        own("turning", line)
    (problem,) = e.value.problems
    assert isinstance(problem, RingTooShallow) and problem.home == "Vs"


def test_who_gives_out_items_transposes_nothing():
    """One thread reads the counter."""
    with pytest.raises(wgdsl.WgError) as e:
        own("turning", "grid persistent dynamic over (b, g, r, i)")
    assert [p.code for p in e.value.problems] == ["WG0405"] and "fills and transposes in a dynamic grid" in str(e.value)


def own(base: str, lines: str, **dims: int):
    text = f"wg 1\nschedule s extends {base} {{\n  {lines}\n}}\n"
    given = {"D": 64, "E": 64, **dims}
    return compile(PROGRAM, schedule=text, dims=given, options={"values": "plain"}, types=SHIPPED.types, build=False)


def test_the_source_freed_too_early_is_rejected():
    """Its slot is filled again while warps still read it."""
    kernel = program().kernels[0]
    turn = next(r for r in kernel.roles if r.name == "turn")

    def early(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        at = next((k for k, s in enumerate(steps) if isinstance(s, m.Transpose)), None)
        if at is None:
            return tuple(_inside(s, early) for s in steps)
        freed = [s for s in steps if isinstance(s, m.Arrive) and s.barrier == "Vs.empty"]
        rest = [s for s in steps if s not in freed]
        return (*rest[:at], *freed, *rest[at:])

    wrong = replace(turn, steps=early(turn.steps))
    roles = tuple(wrong if r is turn else r for r in kernel.roles)
    assert explore(replace(kernel, roles=roles)).fault is not None


def _inside(s: Step, change: Callable[[tuple[Step, ...]], tuple[Step, ...]]) -> Step:
    return replace(s, **{name: change(getattr(s, name)) for name in m.regions(type(s))})


REFUSED = {
    "of no home": ("smem Vt = V by transpose", "WG0401", "no home is called `V`"),
    "listed": ("stream j descending listed", "WG0405", "listed"),
    "never made": ("turn { for j { } }", "WG0417", "`Vt` is never made"),
    "joined": ("grid persistent joined over (b, g, r, i)", "WG0405", "joined"),
    "before its fill": (
        "load { fill Qs for j { fill Ks[j+1] } }\n  turn { for j { pack Vt[j] fill Vs[j] } }", "WG0417", "comes first",
    ),
    "filled": ("load { fill Qs for j { fill Ks[j+1] fill Vs[j] fill Vt[j] } }", "WG0417", "`pack Vt[j]` makes it"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    lines, code, said = REFUSED[name]
    with pytest.raises(wgdsl.WgError) as e:
        own("turning_apart", lines)
    assert code in [p.code for p in e.value.problems] and said in str(e.value)


def test_a_result_of_several_instructions():
    """512 threads begin with 128 registers each, and ptxas takes 94 for n = 128, 158 for n = 256 (C7602)."""
    text = own("turning_apart", "tile i 64, j 32\n  role math : 1 warpgroup, registers 200", E=256).cuda
    assert "wgmma_m64n256k32_e4m3_rs(W, " in text and "ptx::part" not in text, "384 threads begin with 168"
    text = eight("turning_wide", False, 256).compile().cuda
    assert "wgmma_m64n128k32_e4m3_rs(ptx::part<64>(W, 0)" in text and "ptx::part<64>(W, 64)" in text
    layout = matrix_layout(major="MN", swizzle=128, rows=64, cols=256, nbytes=2)
    assert [abreast(256, layout, 2, n) for n in (168, 128, 96, 64)] == [1, 2, 2, 4]
    assert [abreast(n, layout, 2, 128) for n in (192, 208, 256)] == [1, 0, 2], "parts begin where a panel does"
    assert layout.across(128, 2) == 2 * 64 * 128 and layout.across(104, 2) is None


@pytest.mark.parametrize(("layout", "fits"), [("nk", True), ("kn", False)])
def test_a_result_that_is_too_wide_for_so_many_threads(layout, fits):
    """208 columns in two parts begin 208 bytes apart where they lie side by side, and a panel has 32."""
    text = """wg 1
schedule s extends pipelined {
  tile i 192, n 208, k 64
  role math : 3 warpgroups, registers 160, split i
  smem As = A[i, k] by tma ring 2
  smem Bs = B[n, k] by tma ring 2
}
"""
    path, given = ROOT / "examples" / "gemm" / "gemm.wg", {"types": {"T": "bf16"}, "options": {"layout": layout}}
    if fits:
        assert "wgmma_m64n104k16_bf16_ss(ptx::part<52>(Acc, 52)" in compile(path, schedule=text, build=False, **given).cuda
        return
    with pytest.raises(wgdsl.WgError) as e:
        compile(path, schedule=text, build=False, **given)
    (problem,) = e.value.problems
    assert problem.code == "WG0415" and "512 threads begins with 128 registers" in str(e.value)
    assert "`tile n 192`" in str(e.value)


def test_values_that_lie_along_the_keys_already():
    """Transposed they wouldn't."""
    with pytest.raises(wgdsl.WgError) as e:
        compile(PROGRAM, schedule="turning", dims={"D": 64, "E": 64}, types=SHIPPED.types, target="sm_90a", build=False)
    assert e.value.problems[0].code == "WG0449"


@pytest.mark.parametrize("schedule", ["turning", "turning_longest"])
def test_a_nan_that_no_row_of_the_tile_sees(schedule):
    """Rows 0 to 191 see keys up to 491 only; the tile that holds key 491 holds key 500 as well, where V is NaN."""
    shipped = eight(schedule, True, 64)
    forms = shipped.compile().forms
    arrays, scalars, dims = inputs(shipped, 300, 600)
    clean = simulate(Checked(forms.roles), arrays, scalars, dims)["O"].astype(np.float64)
    arrays["V"][0, 500] = np.nan
    got = simulate(Checked(forms.roles), arrays, scalars, dims)["O"].astype(np.float64)
    np.testing.assert_array_equal(got[:, :192], clean[:, :192])
    assert np.isnan(got[0, 200:]).all() and not np.isnan(clean).any()


def test_it_passes_every_check():
    for shipped in (SHIPPED, FILLING, eight("turning_longest", True, 128)):
        check(shipped.compile().roles)

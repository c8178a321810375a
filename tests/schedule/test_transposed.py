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
from wgdsl.driver import compile
from wgdsl.roles import model as m
from wgdsl.roles.checked import Checked
from wgdsl.roles.model import RoleProgram, Step, walk
from wgdsl.sim import simulate
from wgdsl.verify import check
from wgdsl.verify.closure import explore

PROGRAM = ROOT / "examples" / "attention_eight_bits" / "attention_eight_bits.wg"
SHIPPED = eight("turning", False, 64)


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
    assert [(kernel.barrier(b).count) for b in ("Vs.empty", "Vt.full", "Vt.empty")] == [4, 1, 8]


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
def test_what_nobody_may_leave_out(name):
    where, which = MUTANTS[name]
    assert explore(program().kernels[0]).fault is None
    assert explore(edit(program(), drop(which), role=where).kernels[0]).fault is not None


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
    "beside a fill": (
        "load { fill Qs for j { fill Ks[j+1] } }\n  turn { for j { fill Vs[j] pack Vt[j] } }", "WG0405", "other steps",
    ),
    "filled": ("load { fill Qs for j { fill Ks[j+1] fill Vs[j] fill Vt[j] } }", "WG0417", "`pack Vt[j]` makes it"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    lines, code, said = REFUSED[name]
    text = f"wg 1\nschedule s extends turning {{\n  {lines}\n}}\n"
    with pytest.raises(wgdsl.WgError) as e:
        compile(PROGRAM, schedule=text, dims={"D": 64, "E": 64}, options={"values": "plain"}, types=SHIPPED.types, build=False)
    assert code in [p.code for p in e.value.problems] and said in str(e.value)


def test_a_result_that_is_too_wide_for_so_many_threads():
    """512 threads begin with 128 registers each, and ptxas takes 158 for n = 256 (C7602)."""
    text, dims = "wg 1\nschedule s extends turning {\n  tile j 32\n}\n", {"D": 64, "E": 256}
    with pytest.raises(wgdsl.WgError) as e:
        compile(PROGRAM, schedule=text, dims=dims, options={"values": "plain"}, types=SHIPPED.types, build=False)
    (problem,) = e.value.problems
    assert problem.code == "WG0415" and "512 threads begins with 128 registers" in str(e.value)


def test_values_that_lie_along_the_keys_already():
    """Transposed they wouldn't."""
    with pytest.raises(wgdsl.WgError) as e:
        compile(PROGRAM, schedule="turning", dims={"D": 64, "E": 64}, types=SHIPPED.types, target="sm_90a", build=False)
    assert e.value.problems[0].code == "WG0449"


@pytest.mark.parametrize("schedule", ["turning", "turning_longest"])
def test_a_nan_that_no_row_of_the_tile_sees(schedule):
    """Rows 0 to 127 see keys up to 427 only; the tile that holds key 427 holds key 450 as well, where V is NaN."""
    shipped = eight(schedule, True, 64)
    forms = shipped.compile().forms
    arrays, scalars, dims = inputs(shipped, 300, 600)
    clean = simulate(Checked(forms.roles), arrays, scalars, dims)["O"].astype(np.float64)
    arrays["V"][0, 450] = np.nan
    got = simulate(Checked(forms.roles), arrays, scalars, dims)["O"].astype(np.float64)
    np.testing.assert_array_equal(got[:, :128], clean[:, :128])
    assert np.isnan(got[0, 151:]).all() and not np.isnan(clean).any()


def test_it_passes_every_check():
    for shipped in (SHIPPED, eight("turning_longest", True, 128)):
        check(shipped.compile().roles)

"""A fault says where every agent stands and what happened last, in few lines."""

from __future__ import annotations

from tests.sim.programs import attention, drop, edit, gemm
from tests.sim.test_faults import fault_of, kind, waits
from tests.sim.test_simulate import run_attention, run_gemm
from wgdsl.diagnostics.render import render_plain
from wgdsl.diagnostics.sim import Waiting
from wgdsl.roles.model import Arrive, BarSync
from wgdsl.sim.situation import SHOWN


def test_warps_at_one_place_share_a_line():
    f = fault_of(run_gemm, edit(gemm(), drop(kind(Arrive))), 300, 140, 320)
    assert [w.agent for w in f.waiting] == ["load warp 0", "math 0", "math 1"]
    assert f.ended == ("load warps 1, 2, 3",)


def test_warps_at_different_places_have_their_own():
    f = fault_of(run_gemm, edit(gemm(), drop(waits("As.full"))), 300, 140, 320)
    assert f.agent == "math 0 warp 0"
    assert [str(w).split(" `")[0] for w in f.waiting] == [
        "load warp 0 waits for", "math 0 warps 1, 2, 3 have not begun", "math 1 has not begun",
    ]  # fmt: skip


def test_who_is_blocked_and_who_could_go_on():
    waits_for = Waiting(agent="math 0 warps 1, 2", what="named barrier 8, where 64 of 128 threads have arrived", step="sync")
    assert str(waits_for) == "math 0 warps 1, 2 wait for named barrier 8, where 64 of 128 threads have arrived: `sync`"
    assert str(Waiting(agent="math 0", what="", step="fence async")) == "math 0 can go on at `fence async`"


def test_the_events_before_it():
    for seed in (None, 1, 2, 3):
        f = fault_of(run_attention, edit(attention(), drop(waits("Vs.full"))), 300, 300, seed=seed)
        assert 3 <= len(f.events) <= SHOWN
        assert all(e.agent and e.step and e.span for e in f.events)
        assert "before it:" in "\n".join(f.notes()) and str(f.events[-1]) in render_plain(f)


def test_the_last_event_comes_last():
    f = fault_of(run_gemm, edit(gemm(), drop(kind(BarSync))), 300, 140, 320)
    assert f.agent == "math 0 warp 0" and str(f.events[-1]).startswith("math 0 warp 0: `fence async` at hand.wg:25")


def test_what_completes_by_itself_is_an_event():
    f = fault_of(run_gemm, edit(gemm(), drop(kind(Arrive))), 300, 140, 320)
    assert any(e.what == "completes" and e.step.startswith("tma As") for e in f.events)


def test_at_most_forty_lines():
    for seed in range(20):
        f = fault_of(run_attention, edit(attention(), drop(waits("Ks.full"))), 300, 300, seed=seed)
        assert render_plain(f).count("\n") < 40

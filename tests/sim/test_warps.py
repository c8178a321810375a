"""Each warp of a warpgroup is an agent of its own: what only one of them has done says nothing about the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.sim.programs import attention, drop, edit, gemm
from tests.sim.signals import ping_pong
from tests.sim.test_faults import barriers, fault_of, kind
from tests.sim.test_simulate import run_attention, run_gemm
from wgdsl.diagnostics.model import WgError
from wgdsl.diagnostics.sim import Deadlock, OverwrittenTooEarly, ReadTooEarly, WrongPhase
from wgdsl.program.expr import Affine
from wgdsl.program.poly import Poly
from wgdsl.roles.model import (
    Arrive,
    Axis,
    BarSync,
    CopyOut,
    Elect,
    FenceAsync,
    If,
    Slot,
    Step,
    StoreShared,
    TmaStore,
)
from wgdsl.sim import simulate_unchecked
from wgdsl.sim.agent import Item
from wgdsl.sim.cta import Cta
from wgdsl.sim.orders import Order, Who
from wgdsl.sim.world import World

SEEDS = (None, *range(20))


def cta(program) -> Cta:
    return Cta(World(kernel=program.kernels[0], dims={}, scalars={}, tensors={}, limit=1000), [], 0)


def test_a_warpgroup_is_four_agents_and_an_elected_role_is_one():
    assert [a.name for a in cta(ping_pong()).agents] == ["front", *(f"back warp {k}" for k in range(4))]
    names = [a.name for a in cta(gemm()).agents]
    assert names[:5] == ["load warp 0", "load warp 1", "load warp 2", "load warp 3", "math 0 warp 0"] and len(names) == 12


def between_write_and_store(program):
    """Without the barrier behind the writes of the staging buffer, which the one in front of them keeps."""

    def without(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        fence = next((k for k, s in enumerate(steps) if isinstance(s, FenceAsync)), None)
        return steps if fence is None else (*steps[: fence + 1], *steps[fence + 2 :])

    def changed(s: Step):
        fields = {f: without(getattr(s, f)) for f in ("body",) if hasattr(s, f)}
        new = replace(s, **fields) if fields else s
        return s if new == s else new

    return edit(program, changed)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_thread_stores_what_other_warps_have_not_written(seed):
    """Either the store comes before another warp's write, or the write before it without a word to the storing thread."""
    f = fault_of(run_gemm, between_write_and_store(gemm()), 300, 140, 320, seed=seed)
    assert isinstance(f, ReadTooEarly | OverwrittenTooEarly)
    f = fault_of(run_attention, between_write_and_store(attention()), 300, 200, seed=seed)
    assert isinstance(f, ReadTooEarly | OverwrittenTooEarly)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_thread_releases_what_other_warps_still_read(seed):
    by_thread = lambda s: Elect(body=(replace(s, by="thread"),)) if isinstance(s, Arrive) else s  # noqa: E731
    f = fault_of(run_gemm, edit(gemm(), by_thread, barriers=barriers(gemm(), As_empty=2)), 300, 140, 320, seed=seed)
    assert isinstance(f, OverwrittenTooEarly | WrongPhase)


def test_each_warp_counts_at_a_named_barrier():
    f = fault_of(run_gemm, edit(gemm(), lambda s: replace(s, threads=96) if isinstance(s, BarSync) else s), 64, 64, 64)
    assert type(f).__name__ in ("ReadTooEarly", "OverwrittenTooEarly", "Deadlock")
    f = fault_of(run_gemm, edit(gemm(), lambda s: replace(s, threads=160) if isinstance(s, BarSync) else s), 64, 64, 64)
    assert isinstance(f, Deadlock) and any("where 128 of 160 threads" in w.what for w in f.waiting)


def test_a_warp_writes_its_own_rows_in_any_order():
    """Two writes of one tile by the same warps need nothing between them; a warp that falls behind overwrites nobody's rows."""
    twice = edit(gemm(), lambda s: (s, s) if isinstance(s, StoreShared) else s)
    for seed in SEEDS:
        got, expected = run_gemm(twice, 70, 90, 64, seed=seed)
        assert np.abs(got.astype(float) - expected).max() < 0.05


def copied_out(threads: int = 128):
    """The staged result leaves by threads instead of by a bulk store."""
    program = edit(gemm(), lambda s: () if isinstance(s, Elect) and any(isinstance(x, TmaStore) for x in s.body) else s)
    i, j = Poly.of("i"), Poly.of("j")
    out = CopyOut(
        buffer="Cs", part=Poly.of("wg"), slot=Slot(ring="Cs"), tensor="C", access=(i, j),
        rows=Axis(index="i", origin=Poly.of("i.lo") + Poly.of("wg") * 64, count=64),
        cols=Axis(index="j", origin=Poly.of("j.lo"), count=128),
    )  # fmt: skip
    return edit(program, lambda s: (s, BarSync(id=Poly.of("wg") + 8, threads=threads), out) if isinstance(s, FenceAsync) else s)


@pytest.mark.parametrize("seed", (None, *range(5)))
def test_each_element_is_copied_out_by_one_warp(seed):
    got, expected = run_gemm(copied_out(), 300, 140, 64, seed=seed)
    assert np.abs(got.astype(float) - expected).max() < 0.05


def test_a_copy_by_threads_needs_the_rows_of_all_warps():
    """Without a barrier a thread would read rows that another warp writes."""
    program = edit(copied_out(), drop(kind(BarSync)))
    for seed in SEEDS:
        assert isinstance(fault_of(run_gemm, program, 300, 140, 64, seed=seed), ReadTooEarly | OverwrittenTooEarly)


def test_a_signal_that_every_warp_is_ready_for():
    for seed in SEEDS:
        simulate_unchecked(ping_pong(), {}, seed=seed)


def test_a_signal_that_one_thread_asks_for_in_the_name_of_its_warpgroup():
    """In the canonical order the warps keep step. One that falls behind meets the parity of the signal before the last."""
    program = ping_pong(by="thread")
    simulate_unchecked(program, {})
    found = [f for seed in range(20) if (f := order_fault(program, seed)) is not None]
    assert found
    for f in found:
        assert isinstance(f, WrongPhase) and f.agent.startswith("back warp") and f.barrier == "A.full[0]" and f.found > f.meant


def order_fault(program, seed: int):
    try:
        simulate_unchecked(program, {}, seed=seed)
    except WgError as e:
        return e.problems[0]
    return None


def test_the_warp_that_is_made_to_fall_behind():
    world = World(kernel=ping_pong(by="thread").kernels[0], dims={}, scalars={}, tensors={}, limit=1000)
    with pytest.raises(WgError) as e:
        Cta(world, [Item(0, {"i": 0})], 0, Order(behind=(Who(role="back", warpgroup=0, warp=2),))).run()
    (fault,) = e.value.problems
    assert isinstance(fault, WrongPhase) and fault.agent == "back warp 2"


def test_the_warpgroup_that_is_made_to_fall_behind():
    """Half of the readers release a slot for all of them."""
    only_first = lambda s: If(cond=Affine(poly=-Poly.of("wg")), then=(s,)) if isinstance(s, Arrive) else s  # noqa: E731
    program = edit(gemm(), only_first, barriers=barriers(gemm(), As_empty=4))
    f = fault_of(run_gemm, program, 128, 128, 640, late=(("math", 1),))
    assert isinstance(f, WrongPhase) and f.agent.startswith("math 1")

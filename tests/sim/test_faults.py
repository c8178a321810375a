"""A right program is broken in one place, and the simulator says where. No structural check has seen these programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.sim.programs import Change, attention, drop, edit, gemm
from tests.sim.test_simulate import run_attention, run_gemm
from wgdsl.diagnostics.model import WgError
from wgdsl.diagnostics.sim import (
    Deadlock,
    Endless,
    Fault,
    IllFormed,
    LaneShares,
    NamedBarrierMisuse,
    NoProductFence,
    NotFenced,
    OutsideTensor,
    OverwrittenTooEarly,
    ReadTooEarly,
    RegisterInFlight,
    TooManyArrivals,
    Unfinished,
    Uninitialised,
    WrittenTwice,
    WrongBytes,
    WrongPhase,
)
from wgdsl.program.expr import FALSE, TRUE, Affine, Reg
from wgdsl.program.poly import Poly
from wgdsl.roles.model import (
    Arrive,
    BarArrive,
    BarSync,
    Commit,
    CompleteOp,
    Compute,
    Elect,
    Expect,
    FenceAsync,
    FenceWgmma,
    If,
    Loop,
    Pack,
    RoleProgram,
    Step,
    StoreGlobal,
    Tma,
    TmaStore,
    Wait,
    WaitGroup,
    WaitStore,
    Wgmma,
    Zero,
    walk,
)
from wgdsl.sim import simulate_unchecked


def fault_of(run, program: RoleProgram, *shape: int, **more) -> Fault:
    with pytest.raises(WgError) as caught:
        run(program, *shape, **more)
    (problem,) = caught.value.problems
    assert isinstance(problem, Fault)
    assert problem.title()
    return problem


def in_gemm(change: Change, *, role: str = "", shape=(300, 140, 320), **kernel) -> Fault:
    return fault_of(run_gemm, edit(gemm(), change, role=role, **kernel), *shape)


def in_attention(change: Change, *, role: str = "", shape=(300, 300), **kernel) -> Fault:
    return fault_of(run_attention, edit(attention(), change, role=role, **kernel), *shape)


def waits(barrier: str):
    return lambda s: isinstance(s, Wait) and s.barrier == barrier


def kind(k: type[Step], line: int = 0):
    return lambda s: isinstance(s, k) and (not line or (s.span is not None and s.span.line == line))


def change(match, **fields) -> Change:
    return lambda s: replace(s, **fields) if match(s) else s


def barriers(program: RoleProgram, **counts: int):
    k = program.kernels[0]
    return tuple(replace(b, count=counts.get(b.name.replace(".", "_"), b.count)) for b in k.barriers)


# Missing waits.


def test_a_missing_wait_for_a_fill():
    f = in_gemm(drop(waits("As.full")))
    assert isinstance(f, ReadTooEarly)
    assert f.span is not None and f.span.line == 20 and "wgmma Acc" in f.step and f.agent == "math 0 warp 0"
    f = in_attention(drop(waits("Vs.full")))
    assert isinstance(f, ReadTooEarly) and f.tile == "Vs[0]" and "tma Vs[s]" in f.writer


def test_a_missing_wait_for_a_fill_in_the_drain_only():
    def only_after_the_loop(s: Step):
        """The loop keeps its wait."""
        return () if isinstance(s, Wait) and s.barrier == "Vs.full" else s

    def skip_loop(s: Step):
        if isinstance(s, If) and any(isinstance(x, Loop) for x in s.then):
            at = next(k for k, x in enumerate(s.then) if isinstance(x, Loop))
            rest = tuple(x for x in s.then[at + 1 :] if only_after_the_loop(x) != ())
            return replace(s, then=(*s.then[: at + 1], *rest))
        return s

    f = in_attention(skip_loop)
    assert isinstance(f, ReadTooEarly) and f.tile.startswith("Vs")


def test_a_missing_wait_for_an_empty_slot():
    f = in_gemm(drop(waits("As.empty")))
    assert isinstance(f, WrongPhase)
    f = in_attention(drop(waits("Ks.empty")))
    assert isinstance(f, WrongPhase) and f.span is not None and f.span.line == 11


def test_a_missing_wait_for_the_buffer_under_the_staging():
    f = in_attention(drop(waits("Qs.empty")), shape=(700, 100))
    assert isinstance(f, WrongPhase) and f.barrier == "Qs.full[0, 0]"


def test_a_wait_on_the_wrong_parity():
    f = in_gemm(change(waits("As.empty"), flip=False))
    assert isinstance(f, Deadlock)
    f = in_gemm(change(waits("As.full"), flip=True))
    assert isinstance(f, ReadTooEarly)


# Missing or early releases.


def test_a_missing_release():
    f = in_gemm(drop(kind(Arrive)))
    assert isinstance(f, Deadlock)
    loader = next(w for w in f.waiting if w.agent == "load warp 0")
    assert loader.what == "`As.empty[0]`, parity 0; it is in phase 0, pending 8 of 8 arrivals and 0 bytes"
    assert str(loader.span) == "hand.wg:10:1"
    assert {w.agent for w in f.waiting} == {"load warp 0", "math 0", "math 1"}
    assert f.ended == ("load warps 1, 2, 3",)


def test_a_missing_release_in_the_drain_only():
    f = in_gemm(drop(kind(Arrive, 22)))
    assert isinstance(f, Deadlock)


def test_a_release_by_one_warpgroup_only():
    f = in_gemm(lambda s: If(cond=Affine(poly=-Poly.of("wg")), then=(s,)) if isinstance(s, Arrive) else s)
    assert isinstance(f, Deadlock)


def test_a_release_before_the_last_use():
    """The product may still read the slot: the wait_group stands behind the release."""
    f = in_gemm(change(kind(WaitGroup, 21), pending=2))
    assert isinstance(f, OverwrittenTooEarly)
    assert "wgmma Acc" in f.other and f.agent == "load warp 0"


def test_a_release_by_one_thread_speaks_for_its_warp_only():
    f = in_gemm(
        lambda s: Elect(body=(replace(s, by="thread"),)) if isinstance(s, Arrive) else s, barriers=barriers(gemm(), As_empty=2)
    )
    assert isinstance(f, OverwrittenTooEarly) and "wgmma Acc" in f.other


# Bytes and arrivals.


def test_too_many_bytes_expected():
    f = in_gemm(change(kind(Expect), nbytes=32768 + 16))
    assert isinstance(f, Deadlock)
    assert any("pending 0 of 1 arrivals and 16 bytes" in w.what for w in f.waiting)


@pytest.mark.parametrize("nbytes", [32768 - 16, 24576, 8192, 16])
def test_too_few_bytes_expected(nbytes):
    f = in_gemm(change(kind(Expect), nbytes=nbytes))
    assert isinstance(f, WrongBytes) and f.span is not None and f.span.line == 10
    assert f.missing in (32768 - nbytes, 8192 - 16, 16384 - 16)


def test_a_copy_that_nothing_expects():
    f = in_attention(drop(lambda s: isinstance(s, Expect) and s.barrier == "Vs.full"))
    assert isinstance(f, Deadlock)


@pytest.mark.parametrize("count", [1, 4, 7])
def test_an_arrival_count_that_is_too_small(count):
    f = in_gemm(lambda s: s, barriers=barriers(gemm(), As_empty=count))
    assert isinstance(f, WrongPhase) and f.barrier == "As.empty[0]" and f.step == "arrive As.empty[s-1] by lane 0 of each warp"


@pytest.mark.parametrize("count", [9, 12])
def test_an_arrival_count_that_is_too_large(count):
    f = in_gemm(lambda s: s, barriers=barriers(gemm(), As_empty=count))
    assert isinstance(f, Deadlock) and any(f"of {count} arrivals" in w.what for w in f.waiting)


def test_an_arrival_count_of_a_full_barrier():
    f = in_gemm(lambda s: s, barriers=barriers(gemm(), As_full=2))
    assert isinstance(f, Deadlock)


def test_an_expect_that_arrives_twice():
    f = in_gemm(lambda s: (s, s) if isinstance(s, Expect) else s)
    assert isinstance(f, TooManyArrivals)


# Rings.


def test_a_ring_with_one_stage():
    """The release lags by one tile, so the loader never gets its only slot."""
    f = fault_of(run_gemm, gemm(stages=1), 64, 64, 320)
    assert isinstance(f, Deadlock)


def test_a_forgotten_advance():
    f = in_attention(drop(lambda s: type(s).__name__ == "Advance" and s.ring == "Vs"), role="math")
    assert isinstance(f, ReadTooEarly) and f.tile == "Vs[0]"


# Products and registers.


def test_a_missing_commit():
    """No group, so nothing to wait for: the release comes too early, and the accumulator is never ready."""
    f = in_gemm(drop(kind(Commit)))
    assert isinstance(f, OverwrittenTooEarly) and "wgmma Acc" in f.other
    f = in_gemm(drop(kind(Commit)), shape=(64, 64, 64))
    assert isinstance(f, RegisterInFlight) and f.value == "Acc"


def test_a_missing_wait_group():
    f = in_gemm(drop(kind(WaitGroup, 22)))
    assert isinstance(f, RegisterInFlight) and f.value == "Acc" and "write Cs" in f.step


def test_a_wait_group_that_leaves_too_many():
    f = in_attention(change(kind(WaitGroup, 24), pending=2))
    assert isinstance(f, RegisterInFlight) and f.value == "S"
    f = in_attention(change(kind(WaitGroup, 25), pending=1, values=()))
    assert isinstance(f, RegisterInFlight) and f.value == "Pr"


def test_operand_registers_rewritten_under_a_product():
    """Pack stands before the wait for the product that reads the old operand."""

    def early(s: Step):
        if not isinstance(s, Loop) or not any(isinstance(x, Pack) for x in s.body):
            return s
        pack = next(x for x in s.body if isinstance(x, Pack))
        rest = [x for x in s.body if x is not pack]
        at = next(k for k, x in enumerate(rest) if isinstance(x, WaitGroup) and x.pending == 0)
        return replace(s, body=(*rest[:at], pack, *rest[at:]))

    f = in_attention(early)
    assert isinstance(f, RegisterInFlight) and f.value == "Pr" and f.step == "pack Pr = P"


def test_a_missing_product_fence():
    f = in_gemm(drop(kind(FenceWgmma)))
    assert isinstance(f, NoProductFence)
    f = in_attention(drop(kind(FenceWgmma, 21)))
    assert isinstance(f, NoProductFence) and f.span is not None and f.span.line == 21


def test_an_accumulator_that_nothing_has_written():
    f = in_gemm(change(kind(Wgmma), zero=FALSE))
    assert isinstance(f, Uninitialised) and f.value == "Acc"
    f = in_gemm(drop(kind(Zero)), shape=(64, 64, 0))
    assert isinstance(f, Uninitialised)


def test_lane_shares_used_as_whole_values():
    f = in_attention(
        drop(lambda s: isinstance(s, Compute) and any(isinstance(o, CompleteOp) for o in s.ops) and len(s.ops) == 1)
    )
    assert isinstance(f, LaneShares) and f.value == "l"


def test_a_product_still_running_at_the_end():
    product = next(s for s in walk(gemm().kernels[0].roles[1].steps) if isinstance(s, Wgmma))
    f = in_gemm(
        lambda s: (s, FenceWgmma(), replace(product, zero=TRUE)) if kind(WaitStore, 26)(s.blocks() and s.blocks()[0][0]) else s
    )
    assert isinstance(f, Unfinished) and "wgmma Acc" in f.step


# Proxies and stores.


def test_a_missing_proxy_fence():
    f = in_gemm(drop(kind(FenceAsync)))
    assert isinstance(f, NotFenced) and "write Cs" in f.writer and f.step.startswith("store C")


def test_a_proxy_fence_without_a_barrier():
    f = in_gemm(lambda s: () if isinstance(s, BarSync) else s)
    assert isinstance(f, ReadTooEarly) and f.step.startswith("store C")
    f = in_attention(drop(kind(BarSync, 41)))
    assert isinstance(f, OverwrittenTooEarly) and f.tile == "Qs[0, 0]" and f.step == "write Os[wg, s] = O"


def test_a_proxy_fence_by_one_thread():
    f = in_gemm(lambda s: Elect(body=(s,)) if isinstance(s, FenceAsync) else s)
    assert isinstance(f, NotFenced)


def test_staging_overwritten_under_its_bulk_store():
    f = in_gemm(drop(kind(WaitStore, 25)), shape=(600, 600, 64))
    assert isinstance(f, OverwrittenTooEarly) and "store C" in f.other


def test_a_buffer_released_before_the_store_over_it_has_read():
    f = in_attention(drop(kind(WaitStore)), shape=(700, 64))
    assert isinstance(f, OverwrittenTooEarly) and "store O" in f.other and f.step.startswith("tma Qs")


def test_a_bulk_store_still_running_at_the_end():
    f = in_gemm(drop(kind(WaitStore, 26)))
    assert isinstance(f, Unfinished)


def test_an_element_written_twice():
    f = in_gemm(change(kind(TmaStore), coords=(Poly.of(0), Poly.of(0))))
    assert isinstance(f, WrittenTwice) and f.tensor == "C"


def test_a_thread_that_stores_outside():
    f = in_attention(change(kind(StoreGlobal), access=(Poly.of("i") + 1,)))
    assert isinstance(f, OutsideTensor) and f.element == (300,) and f.shape == (300,)


# Named barriers.


def test_turns_that_nobody_hands_over():
    f = in_attention(drop(kind(BarArrive)), shape=(128, 200))
    assert isinstance(f, Deadlock) and any("named barrier 1, where 128 of 256 threads" in w.what for w in f.waiting)


def test_counts_that_differ():
    f = in_attention(change(kind(BarArrive, 19), threads=384), shape=(128, 200))
    assert isinstance(f, NamedBarrierMisuse)


# The machine.


def test_more_registers_than_the_pool_holds():
    f = in_gemm(lambda s: replace(s, count=240) if type(s).__name__ == "Registers" and s.count == 232 else s)
    assert isinstance(f, Deadlock) and any("registers a thread more" in w.what for w in f.waiting)


def test_a_copy_in_flight_at_the_end():
    """The loader fills one slot more than anybody reads."""
    f = in_gemm(change(lambda s: isinstance(s, Loop), stop=Poly.of("k.n") + 1), role="load", shape=(64, 64, 64))
    assert isinstance(f, Unfinished) and f.step.startswith("tma As[0, s]")


def test_bulk_steps_by_all_threads():
    f = in_gemm(lambda s: s.body if isinstance(s, Elect) else s)
    assert isinstance(f, IllFormed)


def test_a_watchdog():
    program = gemm()
    with pytest.raises(WgError) as caught:
        simulate_unchecked(program, *_small(), limit=20)
    assert isinstance(caught.value.problems[0], Endless)


def _small():
    import numpy as np

    a = np.ones((64, 320), dtype=np.float16)
    return {"A": a, "B": a.T.copy()}, {}, {"M": 64, "N": 64, "K": 320}


def test_two_copies_into_one_slot():
    f = in_attention(change(lambda s: isinstance(s, Tma) and s.buffer == "Ks", buffer="Vs"))
    assert isinstance(f, OverwrittenTooEarly) and f.tile == "Vs[0]"
    assert f.span is not None and f.span.line == 12


def test_a_row_value_is_no_tile():
    f = in_attention(change(kind(StoreGlobal), value=Reg(name="O")))
    assert isinstance(f, IllFormed)

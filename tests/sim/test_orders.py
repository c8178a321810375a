"""Orders of events: seeds are orders, faults don't hide from them, and what is in flight is poison until it completes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.shipped import attention as shipped
from tests.sim.programs import attention, drop, edit, gemm
from tests.sim.signals import ping_pong
from tests.sim.test_faults import change, fault_of, kind, waits
from tests.sim.test_simulate import run_attention, run_gemm
from wgdsl.diagnostics.sim import Fault
from wgdsl.program.expr import Affine
from wgdsl.program.poly import Poly
from wgdsl.roles.model import If, WaitGroup, WaitStore
from wgdsl.sim import memory
from wgdsl.sim.agent import Agent, Item
from wgdsl.sim.cta import Cta
from wgdsl.sim.orders import CANONICAL, COMPLETIONS, Order, Who, everyone, order_of, single_warps
from wgdsl.sim.world import World

SEEDS = range(20)
KERNEL = gemm().kernels[0]


# What a seed means.


def test_no_seed_is_the_canonical_order():
    assert order_of(None, KERNEL) == CANONICAL == Order() and str(CANONICAL) == "canonical"


def test_a_seed_is_always_the_same_order():
    assert [order_of(s, KERNEL) for s in SEEDS] == [order_of(s, KERNEL) for s in SEEDS]
    assert len({str(order_of(s, KERNEL)) for s in range(100)}) > 40


def test_seeds_go_to_the_extremes():
    orders = [order_of(s, KERNEL) for s in range(200)]
    assert {o.completions for o in orders} == set(COMPLETIONS) and {o.turns for o in orders} == {"blocked", "random"}
    assert {w for o in orders for w in o.behind} >= set(everyone(KERNEL)) and any(o.then for o in orders)
    assert {w.warp for o in orders for w in (*o.behind, *o.ahead)} == {None, 0, 1, 2, 3}


def happened(program, seed: int | None) -> list[tuple[str, str]]:
    """All events of the only CTA."""
    seen: list[tuple[str, str]] = []
    world = World(kernel=program.kernels[0], dims={}, scalars={}, tensors={}, limit=1000)
    cta = Cta(world, [Item(0, {"i": 0})], 0, order_of(seed, world.kernel), seed)
    cta.events = type("Log", (list,), {"append": lambda _, e: seen.append((e[0].name, e[0].text(e[1])))})()
    cta.run()
    return seen


def test_a_seed_repeats_every_event():
    for seed in (None, 0, 1, 2):
        assert happened(ping_pong(), seed) == happened(ping_pong(), seed)
    assert len({tuple(happened(ping_pong(), seed)) for seed in SEEDS}) > 10


def test_a_seed_repeats_its_fault():
    for seed in range(5):
        one, two = (fault_of(run_gemm, edit(gemm(), drop(waits("As.empty"))), 300, 140, 320, seed=seed) for _ in range(2))
        assert one == two and one.notes() == two.notes()


# Who goes on.


def first_steps(order: Order, count: int) -> list[str]:
    world = World(kernel=ping_pong().kernels[0], dims={}, scalars={}, tensors={}, limit=1000)
    cta = Cta(world, [Item(0, {"i": 0})], 0, order)
    names: list[str] = []
    go_on = Cta.go_on
    try:
        Cta.go_on = staticmethod(lambda a, running: (names.append(a.name), go_on(a, running))[1])  # type: ignore[assignment]
        cta.run()
    finally:
        Cta.go_on = staticmethod(go_on)  # type: ignore[assignment]
    return names[:count]


def test_who_falls_behind_goes_on_when_nobody_else_can():
    steps = first_steps(Order(behind=(Who(role="back", warpgroup=0, warp=0),)), 100)
    others = [k for k, name in enumerate(steps) if name != "back warp 0"]
    assert steps.index("back warp 0") >= 7 and others[0] == 0


def test_who_runs_ahead_goes_first():
    steps = first_steps(Order(ahead=(Who(role="back", warpgroup=0, warp=3),)), 100)
    assert steps[:3] == ["back warp 3"] * 3


# Faults.

MISSING = {
    "a wait for a fill": (run_gemm, lambda: edit(gemm(), drop(waits("As.full"))), (300, 140, 320)),
    "a wait for an empty slot": (run_gemm, lambda: edit(gemm(), drop(waits("As.empty"))), (300, 140, 320)),
    "a wait for a product": (run_gemm, lambda: edit(gemm(), drop(kind(WaitGroup, 22))), (300, 140, 320)),
    "a wait for a store": (run_gemm, lambda: edit(gemm(), drop(kind(WaitStore, 25))), (600, 600, 64)),
    "a late wait for a product": (run_gemm, lambda: edit(gemm(), change(kind(WaitGroup, 21), pending=2)), (300, 140, 320)),
    "a wait for keys": (run_attention, lambda: edit(attention(), drop(waits("Ks.full"))), (300, 300)),
    "a wait for values": (run_attention, lambda: edit(attention(), drop(waits("Vs.full"))), (300, 300)),
}


@pytest.mark.parametrize("what", MISSING)
def test_a_missing_wait_is_a_fault_in_every_order(what):
    run, program, shape = MISSING[what]
    for seed in (None, *SEEDS):
        assert isinstance(fault_of(run, program(), *shape, seed=seed), Fault)


def test_a_right_program_has_the_same_bits_in_every_order():
    first, _ = run_gemm(gemm(), 300, 140, 320)
    for seed in range(40):
        again, _ = run_gemm(gemm(), 300, 140, 320, seed=seed)
        np.testing.assert_array_equal(first.view(np.uint16), again.view(np.uint16))


# Without what agents know of each other a race is still a wrong number.


@pytest.fixture
def ignorant(monkeypatch):
    monkeypatch.setattr(memory, "_check_read", lambda *_: frozenset())
    monkeypatch.setattr(memory, "_check_write", lambda *_: None)
    monkeypatch.setattr("wgdsl.sim.registers.RegisterFile._at_rest", lambda *_: None)


def test_what_a_load_will_fill_is_poison(ignorant):
    """Only the first warpgroup waits: the second one's products come before the copies have arrived."""
    only_first = lambda s: If(cond=Affine(poly=-Poly.of("wg")), then=(s,)) if waits("As.full")(s) else s  # noqa: E731
    got, _ = run_gemm(edit(gemm(), only_first), 128, 128, 64)
    assert not np.isnan(got[:64]).any() and np.isnan(got[64:]).all()


def test_a_product_reads_shared_memory_when_it_completes(ignorant):
    """A release before the wait: the next slice's bytes are there by the time the product runs, in some orders."""
    program = edit(gemm(), change(kind(WaitGroup, 21), pending=2))
    right, _ = run_gemm(gemm(), 128, 128, 640)
    found = []
    for seed in SEEDS:
        got, _ = run_gemm(program, 128, 128, 640, seed=seed)
        found.append(np.array_equal(got.view(np.uint16), right.view(np.uint16)))
    assert True in found and False in found


def test_a_store_reads_shared_memory_when_it_completes(ignorant):
    program = edit(gemm(), drop(kind(WaitStore, 25)))
    right, _ = run_gemm(gemm(), 600, 600, 64)
    got, _ = run_gemm(program, 600, 600, 64)
    assert not np.array_equal(got.view(np.uint16), right.view(np.uint16))


def test_an_accumulator_is_poison_until_its_products_complete(monkeypatch):
    seen = []
    meant = Agent.finished

    def finished(a, access):
        seen.extend(r.data is None for p in a.products for r in (p.acc,))
        meant(a, access)

    monkeypatch.setattr(Agent, "finished", finished)
    run_gemm(gemm(), 128, 128, 320)
    assert seen and all(seen)


def test_every_warpgroup_and_warp_can_be_named():
    kernel = shipped("fa3", True, 64).compile().forms.roles.kernels[0]
    assert [str(w) for w in everyone(kernel)] == ["load", "math 0", "math 1"]
    assert len(single_warps(kernel)) == 8

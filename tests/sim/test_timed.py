"""Time in the simulator: bounds that no schedule can beat, orders that must hold, and what a timeline is made of."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from tests.programs.edits import ATTENTION, edit
from tests.shipped import KERNELS, Shipped, attention, gemm
from tests.sim.test_shipped import inputs
from wgdsl.driver import compile
from wgdsl.roles import model as m
from wgdsl.roles.timeline import ENGINE, STEP, WAIT, Predicted
from wgdsl.sim import launched, timed
from wgdsl.sim.clock import Clock, Engine
from wgdsl.sim.steps import MEANING
from wgdsl.targets.cycles import ENGINES, FMA, MACHINES, MUFU, STEPS, TENSOR
from wgdsl.tools.work import work

FREE = {m.Begun, m.Forget, m.Zero, m.Move, m.Mma, m.Wgmma, m.Pack, m.Compute}  # cost their instructions on registers alone
LONG = {"B": 4, "G": 16, "R": 1, "M": 4096, "N": 4096}
SHORT = {"B": 1, "G": 2, "R": 1, "M": 512, "N": 512}


@cache
def predicted(s: Shipped, **dims: int) -> tuple[Predicted, ...]:
    return tuple(launched.predict(k, dims) for k in s.compile().roles.kernels)


def one(schedule: str, causal: bool = False, d: int = 128, target: str = "sm_90a", **dims: int) -> Predicted:
    (p,) = predicted(replace(attention(schedule, causal, d), target=target), **(dims or LONG))
    return p


def of_kind(kernels: list[Shipped]) -> list[Shipped]:
    """One for each program and schedule."""
    return list({(s.program, s.schedule): s for s in kernels}.values())


# The engines.


def test_an_engine_serves_one_after_another():
    e = Engine("e")
    assert [e.serve(0, 5), e.serve(2, 5), e.serve(20, 1)] == [(0, 5), (5, 10), (20, 21)]


def test_a_clock_goes_on_with_what_was_asked_for_first():
    seen, clock = [], Clock()

    def process(name: str, *times: float):
        for t in times:
            yield t
            seen.append((name, clock.now))

    clock.start(process("a", 3, 5))
    clock.start(process("b", 3, 4))
    assert clock.run() and seen == [("a", 3), ("b", 3), ("b", 4), ("a", 5)]


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_rates(machine):
    """A warp's instruction keeps MUFU for 8 cycles; a partition's share of products is what the SM does."""
    assert machine.occupied(MUFU, 1) == 8
    assert machine.occupied(FMA, 1) == 128 / machine.lanes[FMA].value
    assert machine.product(64, 128, 16, 2) == 2 * 64 * 128 * 16 / machine.products.value
    assert machine.product(64, 128, 32, 1) == machine.product(64, 128, 16, 2), "8 bits go at twice the rate"


def test_every_step_has_a_cost():
    names = {kind.__name__ for kind in MEANING}
    assert STEPS.keys() <= names, "no cost of a step that isn't there"
    assert {k.__name__ for k in MEANING if k not in timed.COSTS and k not in FREE} <= STEPS.keys()


# What no schedule can beat.


@pytest.mark.parametrize("s", of_kind(KERNELS), ids=lambda s: s.name)
def test_no_launch_beats_the_tensor_cores(s):
    """The work of a launch takes its cycles on all SMs; that of an engine fits into the time."""
    _, _, dims = inputs(s, 700, 700)
    kernel = s.compile()
    found = predicted(s, **{n: dims[n] for n in kernel.graph.dims if n in dims})
    machine = MACHINES[kernel.target]
    least = work(kernel.graph, dims) / machine.products.value / machine.sms.value
    assert sum(p.cycles for p in found) > least
    for p in found:
        assert p.timeline.slices and all(0 <= p.timeline.share(t) <= 1.0001 for t in (*p.timeline.roles, *ENGINES))


def test_the_products_of_an_item_take_their_cycles():
    """128 queries against 4096 keys, of 128 elements each: every product in full, and nothing else on the tensor cores."""
    t = one("fa3").timeline
    assert sum(s.cycles for s in t.on(TENSOR)) == 4 * 128 * 4096 * 128 / MACHINES["sm_90a"].products.value


def test_the_exponentials_of_an_item_take_their_cycles():
    t, rows, keys = one("fa3").timeline, 128, 4096
    busy = sum(s.cycles for s in t.on(MUFU))
    assert rows * keys / 16 <= busy <= 1.05 * rows * keys / 16


# Orders of schedules.


def test_overlap_is_faster():
    simple, fa3, three = (one(s).cycles for s in ("simple", "fa3", "three"))
    assert fa3 < 0.9 * simple
    assert three <= fa3


def test_a_persistent_grid_hides_the_first_copies():
    p = one("fa3_persistent")
    assert p.item.next < p.item.first
    assert p.cycles < one("fa3").cycles


def test_a_causal_mask_halves_the_work():
    full, half = one("fa3"), one("fa3", causal=True)
    assert half.kinds == 32 and half.item.first > 0.95 * full.item.first, "the last rows see all keys"
    assert 0.5 * full.cycles < half.cycles < 0.65 * full.cycles


def test_two_ctas_share_an_sm():
    """They take longer than one alone, and less than twice as long: one's copies run under the other's work."""
    p = one("fa2", d=64, target="sm_80", **LONG)
    (kernel,) = replace(attention("fa2", False, 64), target="sm_80").compile().roles.kernels
    alone = launched.predict(replace(kernel, resident=1), LONG)
    assert p.resident == 2 and len(p.timeline.roles) == 2
    assert alone.item.first < p.item.first < 2 * alone.item.first
    assert p.cycles < alone.cycles


def test_kinds_between_are_interpolated():
    """Of 32 kinds of items 9 are run: what is said of another is what it takes, within 2 %."""
    s = attention("fa3", True, 128)
    (kernel,) = s.compile().roles.kernels
    world = launched.World(kernel=kernel, dims=LONG, scalars={}, tensors={}, limit=launched.STEP_LIMIT)
    items = launched.items_of(kernel, LONG)
    costs = launched._Costs(world, MACHINES["sm_90a"], items)
    ran = {k for lasts in costs.known.values() for k in lasts}
    assert len(costs.kinds) == 32 and len(ran) == launched.SAMPLES
    between = next(x for x in items[10:] if costs.kind(x)[-1] not in ran)
    assert costs.of(between).first == pytest.approx(costs._run(between).first, rel=0.02)


def test_packed_sequences_are_as_long_as_they_may_be():
    """Offsets in tensors: every sequence of the batch has all its rows, and takes what one of that length does."""
    s = Shipped("examples/attention_varlen/attention_varlen.wg", "varlen", (), (("D", 64), ("E", 64)))
    kernel = s.compile()
    (made,) = kernel.roles.kernels
    dims = {"B": 3, "G": 1, "R": 1, "RowsQ": 900, "RowsK": 900, "LongestQ": 256, "LongestK": 512}
    p = launched.predict(made, dims, kernel.graph.increasing)
    item = 2 if made.grid.persistent else 1
    rows, machine = 128, MACHINES["sm_90a"]
    assert sum(x.cycles for x in p.timeline.on(TENSOR)) == pytest.approx(item * 4 * rows * 512 * 64 / machine.products.value)
    assert p.kinds == 3, "of each sequence"


def test_no_items_take_no_time():
    assert one("fa3").kinds == 1
    assert one("fa3", **{**LONG, "M": 0}).cycles == 0


def test_a_launch_reads_its_tensors():
    """A product of few operations for its bytes is bound by memory."""
    (p,) = predicted(gemm("nk"), M=128, N=65536, K=64)
    assert p.bound == "memory"
    nbytes = 2 * (128 * 64 + 65536 * 64 + 128 * 65536)
    h200 = MACHINES["sm_90a"]
    assert p.cycles == pytest.approx(nbytes / h200.bandwidth.value * h200.clock.value * 1e9)


# What a timeline is made of.


@pytest.mark.parametrize("schedule, d, target", [("fa3", 128, "sm_90a"), ("three", 128, "sm_90a"), ("fa2", 64, "sm_80")])
def test_slices(schedule, d, target):
    """Those of a track don't overlap, waits lie inside steps, and the words are those of the schedule's lines."""
    s = replace(attention(schedule, False, d), target=target)
    (p,) = predicted(s, **SHORT)
    text = s.compile().roles.kernels[0].roles[0].span.source.text.splitlines()
    t = p.timeline
    for track in (*t.roles, *t.engines):
        kinds = (STEP,) if track in t.roles else (ENGINE,)
        assert all(a.stop <= b.start + 1e-6 for a, b in pairwise(t.on(track, *kinds)))
    for role in t.roles:
        steps = t.on(role, STEP)
        assert all(any(x.start <= w.start and w.stop <= x.stop + 1e-6 for x in steps) for w in t.on(role, WAIT))
    assert all(x.name in text[x.line - 1] for r in t.roles for x in t.on(r, STEP) if x.line)
    assert {x.by for e in t.engines for x in t.on(e)} <= set(t.roles)


def test_names_are_the_schedules():
    t = one("fa3", **SHORT).timeline
    names = {s.name for r in t.roles for s in t.on(r, STEP)}
    assert {"issue S[j+1]", "await S[j+1]", "compute P[j+1]", "await O[j]", "fill Ks[j+1]"} <= names
    assert {s.name for s in t.on(TENSOR)} == {"issue S[j+1]", "issue O"}
    assert "j.pos = 0" in {s.place for s in t.slices}


def test_exclusive_exponentials_exclude_each_other():
    t = one("softmax_turns", **SHORT).timeline
    turns = sorted((s.start, s.stop, r) for r in t.roles for s in t.on(r, STEP) if s.name.startswith("compute P.exp"))
    work_ = [(start + _waited(t, r, start, stop), stop, r) for start, stop, r in turns]
    assert {r for _, _, r in work_} == {"math 0", "math 1"}
    assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(sorted(work_)))


def _waited(t, role: str, start: float, stop: float) -> float:
    """The wait for the turn, with which the step begins."""
    inside = [w for w in t.on(role, WAIT) if start <= w.start and w.stop <= stop]
    return max((w.stop - start for w in inside), default=0.0)


def test_roles_and_waits_fill_the_time():
    t = one("fa3").timeline
    for role in ("math 0", "math 1"):
        steps = sum(s.cycles for s in t.on(role, STEP))
        waits = sum(s.cycles for s in t.on(role, WAIT))
        assert steps <= t.cycles and 0 < waits < steps
        assert sum(cycles for *_, cycles in t.waits(role)) == pytest.approx(waits)


def test_it_is_deterministic():
    (kernel,) = attention("three", True, 128).compile().roles.kernels
    a, b = (launched.predict(kernel, SHORT) for _ in range(2))
    assert a == b and a.timeline.slices == b.timeline.slices


def test_lists_of_tiles_are_made_in_time():
    """The kernel that lists them, and the one that goes through the most that there can be."""
    text = edit(ATTENTION, ("where not causal or j <= i + N - M", "where here[b,i] == there[b,j]"))
    text = edit(text, ("let h", "in here: i32[B, M]\nin there: i32[B, N]\nlet h"))
    listed = f"{text}schedule listed extends fa3 {{ stream j descending listed }}\n"
    kernel = compile(listed, schedule="listed", dims={"D": 64, "E": 64}, types={"T": "bf16"}, build=False)
    short, long = ([launched.predict(k, {**SHORT, "N": n}).cycles for k in kernel.roles.kernels] for n in (512, 2048))
    assert all(0 < a < b for a, b in zip(short, long, strict=True))

"""Mistakes of public bug reports (hand-over cases B27, B28, B30, B31) in explicit forms: refused by the right rule, which names
barrier, roles and counts. The form that each should have been is accepted and computes what float64 does."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.agreement.verdicts import FAULTS, witnessed
from tests.bugs.cases import SEEDS, SIZES, file, form, run
from wgdsl.diagnostics import protocol, sim, verify
from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.driver import prepare
from wgdsl.sim.replay import replay
from wgdsl.verify import check


@dataclass(frozen=True)
class Bug:
    """`rules`: one of them refuses it. `faults`: what the simulator meets. `words`: what the message has to name. `right`: the
    form that it should have been."""

    rules: tuple[type[Problem], ...]
    faults: tuple[type[sim.Fault], ...]
    words: tuple[str, ...]
    right: str


AHEAD, ALONE = "right_two_products_in_flight", "right_one_at_a_time"
STALLED, EARLY = (sim.Deadlock,), (sim.OverwrittenTooEarly,)
STUCK = (protocol.NobodyRuns, protocol.RoleStays)  # the latter where other roles have left

BUGS = {
    "b27_no_wait_for_the_product": Bug((protocol.TouchedInFlight,), (sim.RegisterInFlight,), ("`C`", "wgmma"), AHEAD),
    "b27_wait_in_some_items": Bug((protocol.TouchedInFlight,), (sim.RegisterInFlight,), ("`C`", "wgmma", "math"), AHEAD),
    "b27_no_proxy_fence": Bug((protocol.ProxyFenceMissing,), (sim.NotFenced,), ("Cs", "math", "fence async"), "right_staged"),
    "b27_fence_behind_the_barrier": Bug(
        (protocol.ProxyFenceMissing,), (sim.NotFenced,), ("Cs", "math", "fence async"), "right_staged"
    ),
    "b27_no_wait_for_the_fill": Bug((protocol.ReadBeforeArrival,), (sim.ReadTooEarly,), ("As", "math", "load"), AHEAD),
    "b28_parity_of_the_first_wait": Bug(STUCK, STALLED, ("As.empty", "load", "math"), AHEAD),
    "b28_one_iteration": Bug(STUCK, STALLED, ("As.full", "math"), AHEAD),
    "b28_one_stage": Bug(STUCK, STALLED, ("As.empty", "load", "As.full", "math", "of 8 arrivals"), "right_one_stage"),
    "b28_zero_iterations": Bug(STUCK, STALLED, ("As.full", "math"), AHEAD),
    "b30_no_tiles": Bug(STUCK, STALLED, ("As.empty", "load", "4 of 8 arrivals"), "right_no_rows"),
    "b30_leader_arrives_first": Bug((protocol.OverwrittenBeforeRead,), EARLY, ("As", "load", "math"), "right_one_thread"),
    "b30_count_2_of_3": Bug(
        (verify.WrongArrivalCount,),
        (sim.WrongPhase, sim.TooManyArrivals),
        ("As.empty", "2 arrivals", "gets 3", "math0", "math1", "math2"),
        "right_three_roles",
    ),
    "b30_count_3_of_2": Bug(
        (verify.WrongArrivalCount,),
        STALLED,
        ("As.empty", "3 arrivals", "gets 2", "math0", "math1"),
        "right_two_roles_one_thread",
    ),
    "b30_nobody_arrives": Bug((verify.LonelyBarrier,), STALLED, ("As.empty", "load", "nobody arrives"), ALONE),
    "b30_waits_twice": Bug(STUCK, STALLED, ("As.full", "math", "As.empty", "load"), ALONE),
    "b30_bytes_of_threads": Bug(
        (verify.WrongExpectedBytes,), STALLED, ("Xs.full", "2048 bytes", "bring 0"), "right_written_by_threads"
    ),
    "b31_refill_before_the_last_read": Bug((protocol.OverwrittenBeforeRead,), EARLY, ("As", "load", "math"), ALONE),
    "b31_wait_leaves_one": Bug((protocol.OverwrittenBeforeRead,), EARLY, ("As", "load", "math"), ALONE),
    "b31_one_of_two_readers": Bug((protocol.OverwrittenBeforeRead,), EARLY, ("Bs", "load", "math1"), "right_two_roles"),
    "b31_no_wait_for_empty": Bug(
        (protocol.OverwrittenBeforeRead, protocol.AmbiguousPhase), (sim.WrongPhase, *EARLY), ("As", "load"), ALONE
    ),
    "b31_staging_written_again": Bug((protocol.OverwrittenBeforeRead,), EARLY, ("Cs", "math"), "right_staged"),
}
RIGHT = sorted({b.right for b in BUGS.values()})


def told(p: Problem) -> str:
    """All that is said of a problem."""
    return "\n".join((p.title(), p.label(), *p.notes(), p.help(), *(text for _, text in p.others())))


def refused(name: str) -> tuple[Problem, ...]:
    with pytest.raises(WgError) as caught:
        prepare(file(name), target="sm_90a")
    return caught.value.problems


@pytest.mark.parametrize("name", BUGS)
def test_it_is_refused(name: str):
    bug = BUGS[name]
    for p in refused(name):
        assert isinstance(p, bug.rules), p.title()
        assert [w for w in bug.words if w not in told(p)] == [], told(p)
        assert p.span is not None and p.span.source.path.endswith(f"{name}.wg")


@pytest.mark.parametrize("name", BUGS)
def test_it_is_wrong(name: str):
    """The simulator, which has seen no check, agrees."""
    graph, roles = form(name)
    found = []
    for size in SIZES:
        for seed in SEEDS:
            try:
                run(graph, roles, size, seed)
            except WgError as e:
                found += e.problems
    assert any(isinstance(p, BUGS[name].faults) for p in found), found


@pytest.mark.parametrize("name", BUGS)
def test_the_counter_example_faults(name: str):
    _, roles = form(name)
    with pytest.raises(WgError) as caught:
        check(roles)
    for p in witnessed(caught.value.problems):
        assert isinstance(replay(roles, p.witness, kinds=FAULTS[type(p)]), FAULTS[type(p)])


@pytest.mark.parametrize("name", RIGHT)
def test_what_it_should_have_been(name: str):
    """Accepted; right for no tile, for one, for fewer and more than the ring has stages, in any order of events."""
    kernel, _ = prepare(file(name), target="sm_90a")
    graph, roles = form(name)
    assert kernel.roles == roles
    for size in SIZES:
        for seed in SEEDS:
            run(graph, roles, size, seed)


def test_every_file_is_used():
    forms = {p.stem for p in file("x").parent.glob("*.wg")}
    assert forms == {*BUGS, *RIGHT, "short_form", "b32_registers", "b34_shared_memory"}

"""The operators on a GEMM written by hand, and on schedules whose mutants a rule exempts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.shipped import ROOT, attention, gemm, row_softmax, warps
from tests.sim.copying import Copying, build
from tests.sim.programs import edit
from tests.sim.programs import gemm as by_hand
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import prepare, verified
from wgdsl.forms import explained
from wgdsl.mutate import MUST_REJECT, OPERATORS, Mutant, mutants, operator
from wgdsl.mutate.domains import UNHEARD, unchanged
from wgdsl.mutate.events import written
from wgdsl.mutate.model import Change
from wgdsl.mutate.sites import sites
from wgdsl.mutate.unheard import unheard
from wgdsl.mutate.whole import _resized
from wgdsl.program.poly import Poly
from wgdsl.roles import model as m
from wgdsl.roles.model import RoleProgram, walk
from wgdsl.roles.text import roles_text

# Steps of warps that copy for themselves, in which the GEMM has none.
BY_WARPS = ("no-wait-copies", "no-copy-threads", "no-commit-copies", "more-copies", "fewer-copies", "wait-copies-again")
# role, line, copies, event and what was done to it
BY_HAND = {
    "no-wait": ["load 10 1: wait As.empty[s] parity not p: deleted", "math 20 1: wait As.full[s] parity p: deleted"],
    "no-wait-group": ["math 21 1: wait_group 1: deleted", "math 22 1: wait_group 0 ready Acc: deleted"],
    "no-wait-store": ["math 25 1: wait_read 0: deleted", "math 26 1: wait_read 0: deleted"],
    "no-arrive": [
        "math 21 1: arrive As.empty[s-1] by lane 0 of each warp: deleted",
        "math 22 1: arrive As.empty[s-1] by lane 0 of each warp: deleted",
    ],
    "no-last-release": [],
    "no-expect": ["load 10 1: expect As.full[s] bytes 32768: deleted"],
    "no-copy": [
        "load 10 1: tma As[0, s] = A[i.lo +: 64, 64 * t +: 64] by A signals As.full[s]: deleted",
        "load 10 1: tma As[1, s] = A[i.lo + 64 +: 64, 64 * t +: 64] by A signals As.full[s]: deleted",
        "load 10 2: tma Bs[s] = B[64 * t +: 64, j.lo +: 64] by B signals As.full[s]: deleted",
    ],
    "no-commit": ["math 20 1: commit: deleted"],
    "no-commit-store": ["math 25 1: commit_store: deleted"],
    "no-fence-async": ["math 25 1: fence async: deleted"],
    "no-fence-wgmma": ["math 20 1: fence wgmma: deleted"],
    "no-bar": ["math 25 2: sync bar wg + 8 threads 128: deleted"],
    "no-advance": ["load 10 1: advance As: deleted", "math - 1: advance As: deleted"],
    "more-in-flight": ["math 21 1: wait_group 1: its depth +1", "math 22 1: wait_group 0 ready Acc: its depth +1"],
    "more-stores": ["math 25 1: wait_read 0: its depth +1", "math 26 1: wait_read 0: its depth +1"],
    "wrong-count": [
        "- - 1: barrier As.full count 1: its count +1",
        "- - 1: barrier As.empty count 8: its count +1",
        "- - 1: barrier As.empty count 8: its count -1",
    ],
    "wrong-arrivals": [
        "math 21 1: arrive As.empty[s-1] by lane 0 of each warp: its arrivals +1",
        "math 22 1: arrive As.empty[s-1] by lane 0 of each warp: its arrivals +1",
    ],
    "wrong-threads": ["math 25 2: sync bar wg + 8 threads 128: its threads +128"],
    "wrong-bytes": [
        f"load 10 1: expect As.full[s] bytes 32768: its bytes {how}" for how in ("+ 16", "- 16", "doubled", "halved")
    ],
    "wrong-parity": [
        "load 10 1: wait As.empty[s] parity not p: its parity flipped",
        "math 20 1: wait As.full[s] parity p: its parity flipped",
    ],
    "ring-too-small": ["- - 1: ring As stages 2: 1 stage"],
    "fewer-in-flight": ["math 21 1: wait_group 1: its depth -1"],
    "fewer-stores": [],
    "ring-smaller": [],
    "ring-larger": ["- - 1: ring As stages 2: 3 stages"],
    "wait-again": ["math 21 1: wait_group 1: twice", "math 22 1: wait_group 0 ready Acc: twice"],
    "extra-fence-async": ["math 25 2: sync bar wg + 8 threads 128: a fence before it"],
    "extra-fence-wgmma": ["math 20 1: commit: a fence before it"],
    **{name: [] for name in BY_WARPS},
}
SWAPS = [
    "wait behind expect: a wait before what it waits for",
    "expect behind advance: the use of a stage before the advance",
    "tma behind advance: the use of a stage before the advance",
    "tma behind advance: the use of a stage before the advance",
    "tma behind advance: the use of a stage before the advance",
    "wait_read behind sync: the wait for a store before its buffer is free",
    "sync behind write: a rendezvous before an access",
    "write behind fence: a write before its proxy fence",
    "fence behind sync: the proxy fence before what passes the write on",
    "sync behind store: a rendezvous before an access",
    "wait behind wgmma: a wait before what it waits for",
    "fence behind wgmma: the fence before the product",
    "wgmma behind commit: a product before its commit",
    "commit behind wait_group: a commit before the wait for it",
    "wait_group behind arrive: a wait before the release of what the product read",
    "store behind commit_store: a store before its commit",
]


def told(x: Mutant) -> str:
    line = x.where.rpartition(":")[2] or "-"
    return f"{x.variant.role or '-'} {line} {x.variant.copies}: {x.variant.event}: {x.variant.what}"


def found(program: RoleProgram, name: str) -> list[Mutant]:
    return list(mutants(program, [operator(name)]))


def exempt(program: RoleProgram, name: str, text: str = "") -> list[Mutant]:
    return [x for x in found(program, name) if x.exempt and text in told(x)]


@pytest.mark.parametrize("name", [o.name for o in OPERATORS if o.name != "swap"])
def test_on_a_gemm_written_by_hand(name: str):
    every = found(by_hand(), name)
    assert [told(x) for x in every] == BY_HAND[name]
    assert not any(x.exempt for x in every)


def test_neighbours_change_places():
    every = found(by_hand(), "swap")
    words = [(x.variant.event.split()[0], *x.variant.what.removesuffix(")").split("`", 2)[1:]) for x in every]
    assert [f"{a} behind {b.split()[0]}: {why.strip(' (')}" for a, b, why in words] == SWAPS
    assert not any(x.exempt for x in every)


WARPS = {
    "no-wait-copies": ["math - 2: wait copies 1: deleted"],
    "no-copy-threads": [
        "math - 3: copy async A0s[s] = A0[i, k] over i = i.lo +: 64, k = 0 +: 16: deleted",
        "math - 3: copy async B0s[s] = B0[i, k] over i = 0 +: 16, k = 0 +: 16: deleted",
    ],
    "no-commit-copies": ["math - 3: commit copies: deleted"],
    "no-bar": ["math - 1: sync bar 1 threads 128: deleted"],
    "no-advance": ["math - 3: advance R0: deleted"],
    "more-copies": ["math - 2: wait copies 1: its depth +1"],
    "wrong-threads": ["math - 1: sync bar 1 threads 128: its threads +128"],
    "ring-too-small": ["- - 1: ring R0 stages 3: 2 stages"],
    "fewer-copies": ["math - 1: wait copies 1: its depth -1"],
    "ring-larger": ["- - 1: ring R0 stages 3: 4 stages"],
    "wait-copies-again": ["math - 2: wait copies 1: twice"],
}


@pytest.mark.parametrize("name", [o.name for o in OPERATORS if o.name != "swap"])
def test_on_warps_that_copy_for_themselves(name: str):
    """No engine but theirs touches memory, so that no fence belongs into such a kernel."""
    every = found(build(Copying(ahead=2, stages=3)), name)
    assert [told(x) for x in every] == WARPS.get(name, [])
    for x in every:
        assert not x.exempt and accepted(x) == (x.operator.expects != MUST_REJECT)


def accepted(x: Mutant) -> bool:
    try:
        verified(x.program)
    except WgError:
        return False
    return True


def test_neighbours_of_a_copy_change_places():
    """In a shipped schedule, whose first copies stand in no branch."""
    every = found(warps(gemm("nk", schedule="warps")).compile().forms.roles, "swap")
    pairs = {(x.variant.event.split(" ")[0], x.variant.what.split("`")[1].split(" ")[0]) for x in every}
    assert pairs == {
        ("copy", "commit"), ("advance", "mma"), ("wait", "sync"), ("sync", "copy"), ("sync", "mma"), ("write", "sync"),
    }  # fmt: skip
    assert not any(x.exempt or accepted(x) for x in every)


def test_a_mutant_is_another_program():
    program = by_hand()
    every = [roles_text(x.program) for x in mutants(program)]
    assert roles_text(program) not in every


def test_numbers_go_up():
    assert [x.number for x in mutants(by_hand())] == list(range(len(list(mutants(by_hand())))))


def test_no_operator_of_that_name():
    with pytest.raises(LookupError):
        operator("wrong")


# Written events.


def test_copies_of_a_written_event_go_together():
    """Prologue, two loops (one for each mask class), and the wait that a clear asks for, which is an event of its own."""
    kernel = attention("fa3_persistent", True, 64).compile().forms.roles.kernels[0]
    waits = {(e.text(kernel), e.place.words): len(e.copies) for e in written(kernel, m.Wait) if e.role == 1}
    assert waits == {
        ("wait Qs.full[wg, s] parity p", "await Qs"): 1,
        ("wait Ks.full[s] parity p", "issue S[j+1] = wgmma(Qs, Ks[j+1])"): 3,
        ("wait Vs.full[s] parity p", "rescale O"): 1,
        ("wait Vs.full[s] parity p", "issue O += wgmma(P[j], Vs[j])"): 3,
    }


def test_parts_are_events_of_their_own():
    kernel = attention("fa3_persistent", True, 64).compile().forms.roles.kernels[0]
    fills = [e.text(kernel) for e in written(kernel, m.Expect)]
    assert sum(t.startswith("expect Qs.full[0") for t in fills) == sum(t.startswith("expect Qs.full[1") for t in fills) == 1


def test_every_step_belongs_to_one_event():
    kernel = attention("fa3", True, 64).compile().forms.roles.kernels[0]
    copies = [(e.role, path) for e in written(kernel, m.Step) for path, _ in e.copies]
    steps = [(n, path) for n, r in enumerate(kernel.roles) for path, _ in sites(r.steps)]
    assert sorted(copies) == sorted(steps)


def test_an_emptied_block_goes_too():
    gone = next(x for x in found(by_hand(), "no-wait-store") if x.variant.place.line == 26)
    elects = lambda p: sum(isinstance(s, m.Elect) for s in walk(p.kernels[0].roles[1].steps))  # noqa: E731
    assert elects(gone.program) == elects(by_hand()) - 1


# What is no change, by a rule.


def test_the_end_of_a_cta_with_one_item():
    """Nothing follows the last barrier and the last advance, and no fill waits for the last release."""
    met = m.BarSync(id=Poly.of("wg") + 1, threads=128, note="copied")
    program = edit(gemm("nk").compile().forms.roles, lambda s: (s, met) if isinstance(s, m.CopyOut) else s)
    assert [x.variant.event for x in exempt(program, "no-bar")] == ['sync bar wg + 1 threads 128  "copied"']
    assert [x.variant.event for x in exempt(program, "no-advance", "math 23")] == ["advance As"]
    assert len(exempt(program, "no-last-release")) == 1
    persistent = replace(program.kernels[0], grid=replace(program.kernels[0].grid, persistent=True))
    again = replace(program, kernels=(persistent,))
    for name in ("no-bar", "no-advance", "no-last-release"):
        assert found(again, name) and not exempt(again, name)


def test_a_wait_for_what_has_been_awaited():
    """The store is awaited before Q's slot is released: at the end of the role nothing is left."""
    program = attention("fa3_persistent", True, 64).compile().forms.roles
    (wait,) = (s for r in program.kernels[0].roles for s in m.walk(r.steps) if isinstance(s, m.WaitStore))
    roles = tuple(
        replace(r, steps=(*r.steps, m.Elect(body=(wait,)))) if r.name == "math" else r for r in program.kernels[0].roles
    )
    kernel = replace(program.kernels[0], roles=roles)
    (event,) = written(kernel, m.WaitStore)
    in_items, at_end = (path for path, _ in event.copies)
    assert unchanged(kernel, event.role, [Change(path=at_end)])
    assert not unchanged(kernel, event.role, [Change(path=in_items)])


def test_a_second_wait_isnt_needed():
    twice = edit(by_hand(), lambda s: (s, replace(s, span=None)) if isinstance(s, m.WaitGroup) else s)
    every = found(twice, "no-wait-group")
    assert len(every) == 3  # without a line, the second ones are one event
    assert all(x.exempt for x in every)
    assert all(x.exempt for x in found(twice, "more-in-flight"))


def test_a_group_that_nobody_tells_from_the_next():
    """Two commits in a row: the second closes an empty group, which takes a place among those that a wait leaves in flight."""
    twice = edit(by_hand(), lambda s: (s, replace(s, span=None)) if isinstance(s, m.Commit) else s)
    assert [bool(x.exempt) for x in found(twice, "more-in-flight")] == [False, True]
    awaited = edit(by_hand(), lambda s: replace(s, pending=0) if isinstance(s, m.WaitGroup) else s)
    again = edit(awaited, lambda s: (s, replace(s, span=None)) if isinstance(s, m.Commit) else s)
    assert all(x.exempt for x in found(again, "no-commit"))


def test_a_fence_that_no_register_needs():
    twice = edit(by_hand(), lambda s: (s, replace(s, span=None)) if isinstance(s, m.FenceWgmma | m.FenceAsync) else s)
    for name in ("no-fence-wgmma", "no-fence-async"):
        every = found(twice, name)
        assert len(every) == 2 and all(x.exempt for x in every)


def test_an_advance_and_a_step_on_memory_alone():
    """In a ring of one stage an advance turns the phase only, which the steps at a barrier see."""
    program = attention("fa3_persistent", True, 64).compile().forms.roles
    moves = [x for x in found(program, "swap") if "behind `advance Qs`" in told(x)]
    assert moves and not any(x.exempt for x in moves)


def test_every_kernel_of_a_schedule_has_mutants():
    program = row_softmax(64).compile().forms.roles
    changed = [[a != b for a, b in zip(x.program.kernels, program.kernels, strict=True)] for x in mutants(program)]
    assert all(sum(row) == 1 for row in changed) and {tuple(row) for row in changed} == {(True, False), (False, True)}


def test_the_explicit_form_has_the_same_mutants(tmp_path):
    kernel, journal = prepare(ROOT / "examples" / "gemm" / "gemm.wg", schedule="pipelined")
    path = tmp_path / "explicit.wg"
    path.write_text(explained(journal.forms))
    again, _ = prepare(path)
    short, long = ([(told(x), x.exempt) for x in mutants(k.roles)] for k in (kernel, again))
    assert short == long


def test_what_a_verifier_owes():
    assert {o.name for o in OPERATORS if o.expects == MUST_REJECT} >= {"no-wait", "no-arrive", "swap", "ring-too-small"}
    assert len({o.name for o in OPERATORS}) == len(OPERATORS)


def test_a_second_wait_for_copies_isnt_needed():
    twice = edit(build(Copying()), lambda s: (s, replace(s, note="again")) if isinstance(s, m.WaitCopies) else s)
    every = [x for name in ("no-wait-copies", "more-copies") for x in found(twice, name)]
    assert len(every) == 4
    for x in every:
        assert x.exempt and accepted(x)


def test_a_group_of_copies_that_nobody_tells_from_the_next():
    """All groups are waited for: whether they are one or two shows nowhere, nor does one without copies."""
    first = next(s for s in walk(build(Copying(apart=True)).kernels[0].roles[0].steps) if isinstance(s, m.CommitCopies))
    twice = edit(build(Copying()), lambda s: (s, replace(first, note="again")) if isinstance(s, m.CommitCopies) else s)
    again = [x for x in found(twice, "no-commit-copies") if "again" in told(x)]
    assert [bool(x.exempt) for x in again] == [True] and accepted(again[0])
    deeper = edit(build(Copying(ahead=2, stages=3)), lambda s: (s, replace(s, note="again")) if s == first else s)
    assert not any(x.exempt for x in found(deeper, "no-commit-copies"))


# Arrivals that nobody hears.

SPOILT = "commit: behind `wait_group 1`"  # a release in the loop finds the product before it in flight


def spoilt(program: RoleProgram) -> Mutant:
    (x,) = (x for x in found(program, "swap") if SPOILT in told(x) and "use" in x.variant.kernel.name)
    return x


def ring_of(program: RoleProgram, stages: int, persistent: bool = False) -> RoleProgram:
    """The second kernel of `row_softmax` with a ring of so many stages."""
    first, kernel = program.kernels
    (ring, *_) = kernel.rings
    changed = _resized(kernel, ring, stages).kernel
    return replace(program, kernels=(first, replace(changed, grid=replace(kernel.grid, persistent=persistent))))


@pytest.mark.parametrize("k, stages", [(64, 3), (128, 3), (128, 2), (192, 3)])
def test_a_release_of_a_slot_that_nothing_fills_again(k: int, stages: int):
    """So many tiles in as many slots: no fill waits for one."""
    x = spoilt(ring_of(row_softmax(k, "f16").compile().forms.roles, stages))
    assert x.exempt == UNHEARD
    verified(x.program)


@pytest.mark.parametrize("k, stages, persistent", [(192, 2, False), (256, 3, False), (128, 3, True)])
def test_a_release_of_a_slot_that_is_filled_again(k: int, stages: int, persistent: bool):
    """One tile more than slots, or another item: the fill overwrites what the product may still read."""
    x = spoilt(ring_of(row_softmax(k, "f16").compile().forms.roles, stages, persistent))
    assert not x.exempt
    with pytest.raises(WgError) as caught:
        verified(x.program)
    assert [p.code for p in caught.value.problems] == ["WG0715"]


def test_nobody_hears_the_releases_of_the_last_fills():
    """Of four tiles in three slots the first alone is released for another; the loop's arrival is that one's too."""
    for k, count in ((192, 2), (256, 1)):
        kernel = row_softmax(k).compile().forms.roles.kernels[1]
        arrivals = [path for path, s in sites(kernel.roles[1].steps) if isinstance(s, m.Arrive)]
        assert unheard(kernel, 1) == frozenset(arrivals[-count:])


def test_sizes_that_nothing_fixes_may_bring_a_fill():
    kernel = gemm("nk").compile().forms.roles.kernels[0]
    assert not any(unheard(kernel, role) for role in range(len(kernel.roles)))


def test_what_a_change_covers():
    """By that it is known that a mutant moves a ring, and with it who hears an arrival."""
    change = Change(path=(3, 0, 1), length=2)
    covered = [(3, 0, 1), (3, 0, 2), (3, 0, 2, 0, 5)]
    assert all(map(change.covers, covered))
    assert not any(map(change.covers, [(3,), (3, 0), (3, 0, 0), (3, 0, 3), (3, 1, 1), (2, 0, 1)]))

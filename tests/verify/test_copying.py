"""Wrong role programs of warps that copy for themselves: each is refused, and its counter-example leads the simulator to the
same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from tests.agreement.oracle import SIZES, fault, run
from tests.agreement.verdicts import FAULTS
from tests.sim.copying import WG, Copying, build
from tests.sim.programs import Change, drop, edit
from tests.sim.test_faults import kind
from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.diagnostics.protocol import ProtocolFault
from wgdsl.diagnostics.sim import OverwrittenTooEarly, ReadTooEarly
from wgdsl.program.expr import Affine
from wgdsl.program.poly import Poly
from wgdsl.roles import model as m
from wgdsl.roles.model import RoleProgram, Step
from wgdsl.sim.replay import replay
from wgdsl.verify import verify


def refusals(program: RoleProgram) -> tuple[Problem, ...]:
    try:
        verify(program)
    except WgError as e:
        return e.problems
    return ()


def refusal(program: RoleProgram) -> ProtocolFault:
    (p,) = refusals(program)
    assert isinstance(p, ProtocolFault), p
    found = replay(program, p.witness, kinds=FAULTS[type(p)])
    assert isinstance(found, FAULTS[type(p)]), f"{p.code}, {p.title()}: the simulator says {found}"
    return p


def last(program: RoleProgram, match: Callable[[Step], bool], first: bool = False) -> Change:
    """Drop the last step, or the first, that matches."""
    steps = [s for s in m.walk(program.kernels[0].roles[0].steps) if match(s)]
    return drop(lambda s: s is steps[0 if first else -1])


def by_first(match: Callable[[Step], bool]) -> Change:
    """Only the first four warps do it."""
    return lambda s: m.If(cond=Affine(poly=-WG), then=(s,)) if match(s) else s


def of(tensor: str) -> Callable[[Step], bool]:
    return lambda s: isinstance(s, m.CopyAsync) and s.tensor == tensor


def one_more(s: Step) -> Step:
    return replace(s, pending=s.pending + 1) if isinstance(s, m.WaitCopies) else s


def twice(s: Step) -> Step | tuple[Step, ...]:
    return (s, s) if of("B0")(s) else s


@dataclass(frozen=True)
class Wrong:
    shape: Copying
    change: Callable[[RoleProgram], Change]
    code: str
    words: str  # of the title


PLAIN = Copying()
OVER = Copying(chain="plain", store="over", groups=2)
WRONG = {
    "not waited for": Wrong(PLAIN, lambda p: last(p, kind(m.WaitCopies), first=True), "WG0714", "is read before"),
    "waited for, and not told": Wrong(PLAIN, lambda p: drop(kind(m.BarSync)), "WG0714", "is read before"),
    "told before the wait": Wrong(PLAIN, lambda p: turned, "WG0714", "is read before"),
    "too few groups": Wrong(Copying(ahead=2, stages=3), lambda p: one_more, "WG0714", "is read before"),
    "too few groups, copied early": Wrong(Copying(early=True, stages=3), lambda p: one_more, "WG0714", "is read before"),
    "too few of the groups of a round": Wrong(Copying(apart=True), lambda p: one_more, "WG0714", "is read before"),
    "no commit": Wrong(PLAIN, lambda p: drop(kind(m.CommitCopies)), "WG0714", "is read before"),
    "never copied": Wrong(PLAIN, lambda p: drop(of("A0")), "WG0714", "is read"),
    "not copied again": Wrong(PLAIN, lambda p: last(p, of("B0")), "WG0714", "is read"),
    "overwritten before all have read": Wrong(
        Copying(early=True), lambda p: last(p, kind(m.BarSync), first=True), "WG0715", "is overwritten"
    ),
    "overwritten by the next item": Wrong(
        Copying(persistent=True, pair=False), lambda p: last(p, kind(m.BarSync)), "WG0715", "is overwritten"
    ),
    "copied twice to one position": Wrong(PLAIN, lambda p: twice, "WG0715", "is overwritten"),
    "a share that a group of warps leaves out": Wrong(Copying(groups=2), lambda p: by_first(of("B0")), "WG0714", "is read"),
    "a wait that a group of warps leaves out": Wrong(
        Copying(groups=2), lambda p: by_first(kind(m.WaitCopies)), "WG0714", "is read before"
    ),
    "staged over copies that have not arrived": Wrong(OVER, lambda p: last(p, kind(m.WaitCopies)), "WG0715", "is overwritten"),
    "staged over copies of other warps": Wrong(
        replace(OVER, groups=1), lambda p: drop(lambda s: s is p_before_staging(p)), "WG0715", "is overwritten"
    ),
    "in flight at the end": Wrong(
        Copying(pair=False), lambda p: last(p, kind(m.WaitCopies)), "WG0712", "is never waited for before `math` ends"
    ),
    "an accumulator without a value": Wrong(PLAIN, lambda p: drop(kind(m.Zero)), "WG0721", "`O` is read"),
    "an operand without a value": Wrong(OVER, lambda p: drop(kind(m.Pack)), "WG0721", "`P` is read"),
    "read at another position": Wrong(PLAIN, lambda p: last(p, kind(m.Advance)), "WG0714", "is read"),
}


def turned(s: Step) -> Step:
    """The barrier in front of the wait."""
    if not isinstance(s, m.Loop):
        return s
    wait, bar, *rest = s.body
    assert isinstance(wait, m.WaitCopies) and isinstance(bar, m.BarSync)
    return replace(s, body=(bar, wait, *rest))


def p_before_staging(program: RoleProgram) -> Step:
    """The barrier behind which the result is staged."""
    (items,) = program.kernels[0].roles[0].steps
    assert isinstance(items, m.Items)
    at = next(k for k, s in enumerate(items.body) if isinstance(s, m.StoreShared))
    return items.body[at - 1]


@pytest.mark.parametrize("name", WRONG)
def test_it_is_refused(name: str):
    wrong = WRONG[name]
    program = build(wrong.shape)
    p = refusal(edit(program, wrong.change(program)))
    assert p.code == wrong.code and wrong.words in p.title()


@pytest.mark.parametrize("name", ["staged over copies that have not arrived", "in flight at the end"])
def test_an_item_without_tiles_is_what_goes_wrong(name: str):
    """In others the loop has waited for all of them."""
    wrong = WRONG[name]
    program = build(wrong.shape)
    p = refusal(edit(program, wrong.change(program)))
    assert p.witness is not None and any(dict(x.dims)["K"] <= 0 for x in p.witness.items)


def test_what_is_said_of_copies_in_flight():
    program = build(Copying(pair=False))
    p = refusal(edit(program, last(program, kind(m.WaitCopies))))
    text = "copy async Qs[s] = Q[i, k] over i = i.lo +: 64, k = 0 +: 16"
    assert p.title() == f"`{text}` is never waited for before `math` ends"
    assert p.help() == "`wait copies 0` after it"
    more = m.BarSync(id=Poly.of(1), threads=128), q_of(program)
    again = edit(program, lambda s: (s, *more) if s is stored(program) else s)
    p = refusal(again)
    assert p.title() == f"`{text}` is never committed before `math` ends"
    assert p.help() == "`commit copies` after it"


def q_of(program: RoleProgram) -> m.CopyAsync:
    found = next(s for s in m.walk(program.kernels[0].roles[0].steps) if of("Q")(s))
    assert isinstance(found, m.CopyAsync)
    return found


def stored(program: RoleProgram) -> Step:
    return next(s for s in m.walk(program.kernels[0].roles[0].steps) if isinstance(s, m.StoreGlobal))


def test_more_tiles_ahead_than_slots():
    """The slot of the tile that is read is the one that is copied to: the text says as much."""
    for shape in (Copying(ahead=2, stages=2), Copying(ahead=3, stages=2, early=True)):
        assert {p.code for p in refusals(build(shape))} == {"WG0701"}
        assert isinstance(fault(build(shape), 1), ReadTooEarly | OverwrittenTooEarly)


# What isn't wrong.


@pytest.mark.parametrize("shape", [PLAIN, Copying(ahead=2, stages=3), Copying(early=True, ahead=2, stages=4, apart=True)])
def test_groups_of_nothing_are_in_flight_at_the_end(shape: Copying):
    """The last rounds commit where nothing is left to copy; nobody has to wait for that."""
    program = build(shape)
    without = edit(program, last(program, kind(m.WaitCopies)))
    assert refusals(without) == ()
    assert fault(without, shape.groups) is None


def test_a_commit_without_copies():
    program = build(PLAIN)
    twice = edit(program, lambda s: (s, s) if isinstance(s, m.CommitCopies) else s)
    deeper = edit(twice, one_more)  # of two groups a round the older one has the copies
    assert refusals(twice) == refusals(deeper) == ()
    assert refusal(edit(deeper, one_more)).code == "WG0714"


def test_no_copies_at_all():
    """A wait, and a commit that nothing follows."""
    program = build(PLAIN)
    idle = edit(program, lambda s: m.Zero(value="O") if isinstance(s, m.Loop) else () if isinstance(s, m.If) else s)
    assert refusals(edit(idle, drop(kind(m.WaitCopies)))) == ()


def test_waits_for_more_than_there_is():
    program = build(Copying(early=True, ahead=2, stages=4))
    deep = edit(program, lambda s: (m.WaitCopies(pending=7), s) if isinstance(s, m.WaitCopies) else s)
    assert refusals(deep) == () and run(deep, 1, SIZES[3]).size


def test_registers_that_no_product_writes_stay():
    """A product that is done at once is its warps' own instruction: nothing is in flight behind it."""
    program = build(OVER)
    again = edit(program, lambda s: (s, m.Move(dst="S", src="O")) if isinstance(s, m.Mma) and s.acc == "O" else s)
    assert refusals(again) == ()


def test_a_ring_goes_round_for_ever():
    """Positions are counted from the slowest: more rounds than its stages add nothing."""
    assert refusals(build(Copying(ahead=3, stages=5, persistent=True, groups=3))) == ()

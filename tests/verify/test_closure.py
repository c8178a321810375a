"""The closure: shipped schedules are right and quickly so; what it explores is enough; what it refuses the simulator shows."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tests.broken import BROKEN, right
from tests.shipped import KERNELS, field_ids
from tests.sim.programs import edit
from tests.verify.kernels import apart
from wgdsl.diagnostics import protocol as p
from wgdsl.diagnostics import sim
from wgdsl.diagnostics.model import WgError
from wgdsl.program.expr import Affine
from wgdsl.program.poly import Poly
from wgdsl.roles import model as m
from wgdsl.sim.replay import replay
from wgdsl.verify import check, verify
from wgdsl.verify.closure import TOGETHER, Explorer, explore
from wgdsl.verify.control import flags_of
from wgdsl.verify.letters import letters
from wgdsl.verify.report import problem_of

SECONDS = 2.5  # of a schedule's whole verification on a busy core; on a free one the slowest takes 1, most 0.05 to 0.3

# What a rule is called in the simulator.
FAULTS = {
    p.TouchedInFlight: (sim.RegisterInFlight,),
    p.NeverAwaited: (sim.Unfinished,),
    p.NoProductFence: (sim.NoProductFence,),
    p.ReadBeforeArrival: (sim.ReadTooEarly,),
    p.OverwrittenBeforeRead: (sim.OverwrittenTooEarly,),
    p.ProxyFenceMissing: (sim.NotFenced,),
    p.NobodyRuns: (sim.Deadlock,),
    p.AmbiguousPhase: (sim.WrongPhase, sim.TooManyArrivals, sim.WrongBytes),
    p.BarGeneration: (sim.NamedBarrierMisuse,),
    p.RoleStays: (sim.Deadlock,),
    p.RegisterWithoutValue: (sim.Uninitialised,),
}
UNIQUE = list({(k.program, k.schedule, k.options, k.dims): k for k in KERNELS}.values())


@pytest.mark.parametrize("shipped", UNIQUE, ids=field_ids(UNIQUE))
def test_shipped_schedules_hold_and_are_verified_quickly(shipped):
    program = shipped.compile().forms.roles
    start = time.process_time()
    explored = verify(program)
    assert time.process_time() - start < SECONDS
    assert all(e.fault is None and e.letters and e.states for e in explored)


@pytest.mark.parametrize("shipped", UNIQUE, ids=field_ids(UNIQUE))
def test_items_are_all_there(shipped):
    """Looking further adds items with longer loops only."""
    for kernel in shipped.compile().forms.roles.kernels:
        cap = Explorer(kernel, tuple((f, True) for f in flags_of(kernel)), 20_000).cap
        assert len(letters(kernel, cap)) == sum(x.trips <= cap for x in letters(kernel, cap + 3))


@pytest.mark.parametrize("code", [c for c in BROKEN if "WG0711" <= c < "WG0724"])
def test_a_refusal_is_replayed(code):
    program = BROKEN[code].program()
    with pytest.raises(WgError) as caught:
        check(program)
    (problem,) = caught.value.problems
    assert isinstance(problem, p.ProtocolFault) and problem.witness.items
    found = replay(program, problem.witness, kinds=FAULTS[type(problem)])
    assert isinstance(found, FAULTS[type(problem)]), found


def test_a_refusal_shows_a_shortest_word():
    fault = explore(BROKEN["WG0715"].program().kernels[0]).fault
    assert fault is not None and len(fault.letters) == 1 and fault.letters[0].trips == 4  # one more than the ring has stages


def test_what_leads_there_is_a_table():
    problem = problem_of(explore(BROKEN["WG0714"].program().kernels[0]).fault)
    table = problem.notes()[-1].splitlines()
    assert table[0].split() == ["role", "item", "step", "line"]
    (first,) = (row for row in table if row.startswith("1 "))
    assert "tma As[0, s]" in first and "load" in first and first.split()[-1] == "17"
    assert table[-1].startswith("2 ") and "wgmma Acc" in table[-1]


def test_too_many_states_are_an_error_that_names_what_is_many():
    fault = explore(BROKEN["WG0714"].program().kernels[0], limit=3).fault
    assert fault is not None
    kernel = KERNELS[0].compile().forms.roles.kernels[0]
    problem = problem_of(explore(kernel, limit=3).fault)
    assert isinstance(problem, p.TooManyStates) and problem.limit == 3 and problem.widest


def test_a_role_that_runs_ahead():
    problem = problem_of(explore(apart()).fault)
    assert isinstance(problem, p.RunsAhead) and problem.event.agent == "free"


def test_states_taken_together_and_apart_agree():
    """Taking states together only loses knowledge: what is right that way is right."""
    kernel = KERNELS[0].compile().forms.roles.kernels[0]
    flags = tuple((f, True) for f in flags_of(kernel))
    together, alone = (Explorer(kernel, flags, 20_000, m).run() for m in (TOGETHER, None))
    assert together.fault is None and alone.fault is None


@pytest.mark.parametrize("at", [400, 1000, 12345])
def test_a_branch_that_only_large_sizes_take(at):
    """The wait in the loop is left out from a size on that no item within the cap has."""
    more = Poly.of("K") - at

    def guarded(s):
        inside = isinstance(s, m.Loop) and any(isinstance(x, m.Wgmma) for x in s.body)
        if not inside:
            return s
        wait = next(x for x in s.body if isinstance(x, m.Wait))
        rest = tuple(m.If(cond=Affine(poly=-more - 1), then=(x,)) if x is wait else x for x in s.body)
        return replace(s, body=rest)

    fault = explore(edit(right("pipelined"), guarded).kernels[0]).fault
    assert fault is not None and fault.letters[0].dims["K"] >= at


LONGEST = next(k for k in KERNELS if k.schedule == "two_longest")


# Without a limit of growth: what a lazy maximum does to a tile's registers differs where a mask has written them before.
EVERY_TILE = """wg 1
schedule every_tile extends two_longest {
  math {
    await Qs
    for j {
      in turn {
        issue S[j+1] = wgmma(Qs, Ks[j+1])
        issue O += wgmma(P[j], Vs[j])
      }
      await S[j+1]
      compute P[j+1]
      await O[j]
      pack P[j+1]
      rescale O
    }
    finish O, L via Os
  }
}
"""


def test_rounds_with_and_without_a_mask_are_alike():
    kernel = replace(LONGEST, schedule=EVERY_TILE).compile().forms.roles.kernels[0]
    progress = Explorer(kernel, (), 20_000).progress
    assert len(progress.letters) < 0.8 * len(progress.items)


@pytest.mark.parametrize("partial", [True, False], ids=["masked", "others"])
@pytest.mark.parametrize("kind", [m.Wait, m.FenceWgmma, m.WaitGroup, m.Commit, m.Arrive, m.BarSync, m.Advance])
def test_rounds_that_lack_a_step_are_told_from_those_that_have_it(kind, partial):
    def lacking(s):
        if not isinstance(s, m.Loop) or ("partial" in s.mask) != partial:
            return s
        at = next((k for k, x in enumerate(s.body) if isinstance(x, kind)), len(s.body))
        return replace(s, body=s.body[:at] + s.body[at + 1 :])

    with pytest.raises(WgError):
        check(edit(LONGEST.compile().forms.roles, lacking, role="math"))

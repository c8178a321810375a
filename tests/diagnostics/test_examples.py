"""The documented examples of every error, run: the failing one is refused with that error alone, the mended one works.

`test_syntax.py` runs those of WG01xx, `tests/analyse/test_catalogue.py` those of WG02xx.
"""

from __future__ import annotations

import pytest

from tests.catalogue import both
from wgdsl.diagnostics import protocol, resolve, roles, schedule, sim, transform, verify
from wgdsl.diagnostics.catalogue import problems_of

WITHOUT = (
    sim.Endless,  # two million steps take long; tests/sim/test_faults.py sets a lower limit
    resolve.ImportCycle,  # takes two files; tests/test_reading.py has them
    roles.SettingFixed,  # takes a caller; tests/roles/test_hand_edits.py
    protocol.TooManyStates,  # takes a lower limit; tests/verify/test_closure.py
    protocol.RunsAhead,  # takes a role that shares nothing; tests/verify/test_closure.py
)
MODULES = (transform, schedule, verify, protocol, sim, resolve, roles)
PROBLEMS = [c for module in MODULES for c in problems_of(module) if c not in WITHOUT]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda c: c.code)
def test_the_failing_example_fails_as_it_says_and_the_mended_one_works(problem):
    fails, works = both(problem)
    assert {p.code for p in fails} == {problem.code}
    assert all(p.title() and p.span is not None for p in fails)
    assert works == ()

"""WG07xx: the documented examples of every error, run."""

from __future__ import annotations

import pytest

from tests.catalogue import both
from wgdsl.diagnostics import verify as catalogue
from wgdsl.diagnostics.catalogue import problems_of


@pytest.mark.parametrize("problem", problems_of(catalogue), ids=lambda c: c.code)
def test_the_failing_example_fails_as_it_says_and_the_mended_one_works(problem):
    fails, works = both(problem)
    assert {p.code for p in fails} == {problem.code}
    assert all(p.title() and p.span is not None for p in fails)
    assert works == ()

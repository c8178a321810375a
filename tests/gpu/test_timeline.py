"""Kernels that note the clock: they compute the same, and every warpgroup notes its steps in their order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.shipped import Shipped, attention, gemm
from tests.sim.test_shipped import inputs
from wgdsl.driver import timed
from wgdsl.roles.marks import END, KEPT, NUMBER_BITS, marks_of, measured
from wgdsl.roles.timeline import STEP
from wgdsl.runtime.noting import noted

pytestmark = pytest.mark.gpu

SHIPPED = [
    attention("fa3", False, 128),
    attention("three", False, 128),
    attention("softmax_turns", False, 128),
    gemm("nk"),
    replace(attention("fa2", False, 64), target="sm_80"),
]


@pytest.mark.parametrize("s", SHIPPED, ids=lambda s: s.name)
def test_results_are_the_same(card, s: Shipped):
    arrays, scalars, dims = inputs(s, 300, 300)
    plain = s.compile()
    told = {n: v for n, v in dims.items() if n in plain.interface.dims}
    a, b = (k(**arrays, **scalars, **told) for k in (plain, timed(plain)[0]))
    for x, y in zip(a if isinstance(a, tuple) else (a,), b if isinstance(b, tuple) else (b,), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("s", SHIPPED, ids=lambda s: s.name)
def test_every_warpgroup_notes_its_steps(card, s: Shipped):
    arrays, scalars, dims = inputs(s, 300, 300)
    kernel, names = timed(s.compile())
    (made,) = kernel.roles.kernels
    told = {n: v for n, v in dims.items() if n in kernel.interface.dims}
    (flat,) = noted(kernel, {**arrays, **scalars}, told, names).values()
    notes = flat.reshape(KEPT + 1, made.threads // 128)
    t = measured(made, notes, "a GPU")
    known = {x.name for x in marks_of(made).values()}
    for w, role in enumerate(t.roles):
        column = notes[:, w][::-1]
        column = column[column > 0]
        clocks = column >> np.uint64(NUMBER_BITS)
        assert (np.diff(clocks.astype(np.int64)) > 0).all(), "time goes on"
        assert int(column[-1]) & END == END, "the role has ended"
        assert {x.name for x in t.on(role, STEP)} <= known and 0 < t.share(role) < 1

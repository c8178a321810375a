"""Sizes that matter only by small numbers, or by quotients of quotients: those at which something changes are tried."""

from __future__ import annotations

import pytest

from tests.sim.programs import P
from tests.verify.test_soundness import ROWS, at_least, unawaited
from tests.verify.test_stretches import either, explored, items, way
from wgdsl.program.poly import floordiv, minimum, mod
from wgdsl.verify.closure import explore
from wgdsl.verify.machine import Rule

TILES, DEPTH = floordiv(ROWS, 128), P("K")
CONDITIONS = {
    "between small sizes": (at_least(ROWS - 3), at_least(4 - ROWS)),
    "just behind a tile": (at_least(ROWS - 128 - 5), at_least(128 + 6 - ROWS)),
    "the smaller of two": (at_least(minimum(ROWS, DEPTH) - 5), at_least(6 - ROWS)),
    "a small remainder": (at_least(mod(ROWS, 5) - 3), at_least(-mod(ROWS, 4))),
    "a quotient of a quotient": (at_least(floordiv(TILES, 3) - 4), at_least(4 - floordiv(TILES, 3))),
    "a quotient of a remainder": (at_least(floordiv(mod(TILES, 12), 4) - 2),),
    "a remainder of a quotient": (at_least(mod(TILES, 17) - 16),),
    "a multiple": (at_least(3 * ROWS - 500), at_least(503 - 3 * ROWS)),
}


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
def test_what_is_wrong_for_few_sizes_is_refused(conditions):
    fault = explore(unawaited(*conditions).kernels[0]).fault
    assert fault is not None and fault.found.rule != Rule.STATES


@pytest.mark.parametrize("conditions", CONDITIONS.values(), ids=CONDITIONS)
def test_items_of_any_size_are_among_those_tried(conditions):
    explorer = explored(either(*conditions).kernels[0])
    progress, most = explorer.progress, explorer.deepest
    tried = {way(progress, x, most) for x in progress.letters}
    some = [*items(progress, 200, 0, 1500), *items(progress, 3000, 1, 1500)]
    assert not [x for x in some if way(progress, x, most) not in tried]


def test_more_combinations_of_sizes_than_can_be_tried_are_refused():
    """Three sizes, by a remainder of their sum."""
    condition = at_least(-mod(P("M") + P("N") + P("K"), 7))
    fault = explore(either(condition).kernels[0]).fault
    assert fault is not None and fault.found.rule == Rule.STATES and "combinations" in fault.found.name

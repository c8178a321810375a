"""Of some axes a few items are looked at: what all others do is among what these do."""

from __future__ import annotations

import re

import pytest

from tests.programs.test_masks_and_scores import MASKS, made, where
from tests.verify.test_stretches import explored, items, way
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.program.poly import Poly, ceildiv, floordiv, minimum
from wgdsl.roles.model import GridAxis
from wgdsl.roles.settings import settings_text
from wgdsl.roles.text import roles_text
from wgdsl.verify.enough import enough

M, N, LO, WG = map(Poly.of, ("M", "N", "i.lo", "wg"))
END, OWN = minimum(LO + 128, M), minimum(LO + 64 * WG + 64, M)
AXIS = GridAxis(index="i", tile=128, blocks=ceildiv(M, 128))
CASES = {
    "moves along": ("first", [floordiv(END + N - M + 127, 128), OWN + N - M], {}),
    "moves along by a name": ("first", [Poly.of("j.hi") - M], {"j.hi": [END], "wg.rows": [OWN - LO]}),
    "clips": ("last", [floordiv(END + 127, 128), floordiv(LO + N, 128), OWN - 5], {}),
    "a quotient that doesn't move along": ("all", [floordiv(END + 127, 128), M - 5], {}),
    "beyond the tile": ("all", [minimum(LO + 129, M)], {}),
    "of another item": ("all", [minimum(LO + 128, M) - M, Poly.of("next.i.lo")], {}),
    "names of two kinds": ("all", [Poly.of("x")], {"x": [END, END - M]}),
    "a product": ("all", [LO * N - M * N], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_which_items_are_enough(name):
    expected, steers, lets = CASES[name]
    assert enough(AXIS, "i.lo", steers, lets, {"wg": 1}) == expected


@pytest.mark.parametrize("schedule", ["simple", "three", "fa2"])
@pytest.mark.parametrize(
    "program",
    [
        *(MASKS[x] for x in ("window of the past", "window of both sides", "prefix", "chunks across tiles", "chunks of tiles")),
        where("i + N - M - 500 < j <= i + N - M"),
    ],
)
def test_items_of_any_size_are_among_those_tried(program, schedule):
    explorer = explored(made(program, schedule).roles.kernels[0])
    progress, most = explorer.progress, explorer.deepest
    tried = {way(progress, x, most) for x in progress.letters}
    assert not [x for x in items(progress, 3000, 0, 500) if way(progress, x, most) not in tried]


def test_clears_at_both_ends_of_a_tile_are_each_needed():
    """A tile in which a window begins and ends: whoever reads it has cleared both ends, or knows of one who has."""
    program = MASKS["window of the past"]
    kernel = made(program, "three")
    text = roles_text(kernel.roles, settings=settings_text(kernel.graph), lines=False)
    clears = list(dict.fromkeys(re.findall(r"clear Vs\[s.*$", text, re.M)))
    assert len(clears) > 1
    for clear in clears:
        edited = text.replace(clear, f"if -wg >= 0 {{ {clear} }}")
        with pytest.raises(WgError) as e:
            compile(program, schedule=edited, build=False)
        assert {p.code for p in e.value.problems} <= {"WG0713", "WG0714", "WG0715", "WG0716"}, clear

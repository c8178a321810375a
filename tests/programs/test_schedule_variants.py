"""Other schedules over the attention program: tiles, warpgroups, rings, turns, stores, order of the stream."""

from __future__ import annotations

import pytest

from tests.programs.check import DEVICES, inputs, wrong
from tests.programs.edits import ATTENTION, FA3, SIMPLE, edit
from wgdsl.driver import compile

THREE = edit(
    FA3,
    ("i 128, j 128", "i 192, j 80"),
    ("registers 24\n", "registers 32\n"),
    ("2 warpgroups, registers 240", "3 warpgroups, registers 160"),
    ("ring 2", "ring 3"),
)
OWN = (" over Qs", "")
PERSISTENT = ("grid over", "grid persistent over")
SECTIONS = ("(b, g, r, i)", "(b, g, r, i) longest_first section (b, g, r) within 1 MB")
DYNAMIC = ("grid over (b, g, r, i)", "grid persistent dynamic over (b, g, r, i) longest_first")
SKIP = ("stream j", "skip empty per warpgroup\nstream j")
ITEMS = edit(
    SIMPLE,
    PERSISTENT,
    OWN,
    ("tile i 128", "tile i 64"),
    ("split i", "split tiles"),
    ("Q[i] by tma", "Q[i] by tma ring 2"),
    ("for j {\nissue", "in turn { for j {\nissue"),
    ("await O[j]\n}", "await O[j]\n}}"),
)
ITEMS_OVERLAPPED = edit(
    FA3,
    PERSISTENT,
    OWN,
    ("tile i 128", "tile i 64"),
    ("split i", "split tiles"),
    ("Q[i] by tma", "Q[i] by tma ring 2"),
    ("fill Qs.0 for j { fill Ks[j+1] once { fill Qs.rest } fill Vs[j] }", "fill Qs for j { fill Ks[j+1] fill Vs[j] }"),
    ("for j {\nin turn {\nissue", "in turn {\nfor j {\nissue"),
    ("Vs[j])\n}", "Vs[j])"),
    ("rescale O\n}", "rescale O\n}}"),
)
SCHEDULES = {
    "3 warpgroups x 80": (THREE, 128, 128),
    "3 warpgroups, own staging, persistent": (edit(THREE, OWN, PERSISTENT), 128, 128),
    "3 warpgroups, lazy rescale": (edit(THREE, ("rescale O", "rescale O when grown by 8")), 128, 128),
    "lazy rescale, no overlap": (edit(SIMPLE, ("rescale O", "rescale O when grown by 1")), 64, 64),
    "Q twice, staged in its own item's slot": (edit(THREE, ("Q[i] by tma", "Q[i] by tma ring 2"), PERSISTENT), 64, 64),
    "a store awaited under the next item": (
        edit(THREE, ("Q[i] by tma", "Q[i] by tma ring 2"), PERSISTENT, ("await S[j+1]", "once { await Os }\nawait S[j+1]")),
        64,
        64,
    ),
    "staged in V's ring": (edit(THREE, ("over Qs", "over Vs")), 64, 64),
    "staged in V's ring, persistent": (edit(THREE, ("over Qs", "over Vs"), PERSISTENT), 64, 64),
    "dynamic, staged in V's ring": (edit(THREE, ("over Qs", "over Vs"), DYNAMIC, SKIP), 64, 64),
    "dynamic, longest first": (edit(FA3, DYNAMIC, OWN), 64, 64),
    "longest first in sections": (edit(THREE, SECTIONS, SKIP), 64, 64),
    "empty tiles passed over": (edit(FA3, SKIP), 64, 64),
    "empty tiles passed over, without overlap": (edit(SIMPLE, SKIP), 64, 64),
    "empty tiles passed over, ascending": (edit(FA3, (" descending", ""), SKIP), 64, 64),
    "empty tiles passed over, turns around all": (
        edit(SIMPLE, SKIP, ("for j {\nissue S", "for j {\nin turn {\nissue S"), ("Vs[j])\n", "Vs[j])\n}\n")),
        64,
        64,
    ),
    "a store awaited, without overlap": (
        edit(SIMPLE, ("Q[i] by tma", "Q[i] by tma ring 2"), PERSISTENT, ("await S[j]", "once { await Os }\nawait S[j]")),
        64,
        64,
    ),
    "empty tiles passed over, one slot for K, O first": (
        edit(
            FA3,
            SKIP,
            ("K[j] by tma ring 2", "K[j] by tma"),
            (
                "issue S[j+1] = wgmma(Qs, Ks[j+1])\nissue O += wgmma(P[j], Vs[j])",
                "issue O += wgmma(P[j], Vs[j])\nissue S[j+1] = wgmma(Qs, Ks[j+1])",
            ),
        ),
        64,
        64,
    ),
    "two sets of operand registers": (
        edit(FA3, ("load {", "regs P ring 2\nload {"), ("await O[j]\npack P[j+1]\n", "pack P[j+1]\nawait O[j]\n")),
        64,
        64,
    ),
    "4 warpgroups x 64": (
        edit(FA3, ("i 128, j 128", "i 256, j 64"), ("2 warpgroups, registers 240", "4 warpgroups, registers 112")),
        64,
        64,
    ),
    "one warpgroup": (edit(FA3, ("i 128", "i 64"), ("2 warpgroups", "1 warpgroup")), 64, 64),
    "no turns": (edit(FA3, ("in turn {\n", ""), ("Vs[j])\n}", "Vs[j])")), 128, 128),
    "ascending, overlapped": (edit(FA3, (" descending", "")), 128, 128),
    "ascending": (edit(SIMPLE, (" descending", "")), 128, 128),
    "d 256": (edit(FA3, ("j 128", "j 80")), 256, 256),
    "items in turn": (ITEMS, 64, 64),
    "items in turn, overlapped": (ITEMS_OVERLAPPED, 64, 64),
    "one slot": (edit(SIMPLE, ("ring 2", "ring 1")), 64, 64),
    "one slot, overlapped": (edit(FA3, ("ring 2", "ring 1")), 64, 64),
    "exclusive exponentials": (
        edit(SIMPLE, ("compute P[j]", "compute P.max[j]\nin turn { compute P.exp[j] }")),
        128,
        128,
    ),
    "turns around the softmax": (edit(SIMPLE, ("compute P[j]", "in turn { compute P[j] }")), 128, 128),
    "no pack written": (edit(SIMPLE, ("pack P[j]\n", "")), 64, 64),
    "straight from registers": (edit(SIMPLE, (" via Os", ""), ("smem Os = O[i] by tma over Qs\n", "")), 128, 128),
    "persistent without overlap": (edit(SIMPLE, PERSISTENT), 64, 64),
    "d 96": (FA3, 96, 96),
    "d 80": (SIMPLE, 80, 80),
    "d 32, e 16": (FA3, 32, 16),
    "d 64, e 128": (edit(FA3, OWN), 64, 128),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name, causal, device):
    schedule, d, e = SCHEDULES[name]
    kernel = compile(
        ATTENTION, schedule=schedule, dims={"D": d, "E": e}, types={"T": "bf16"}, options={"causal": causal}, build=False
    )
    for m, n in ((1, 1), (200, 300), (300, 200), (130, 0)):
        sizes = {"B": 2, "H": 2, "G": 1, "M": m, "N": n, "D": d, "E": e}
        assert wrong(kernel, inputs(ATTENTION, sizes), device) == [], (m, n)


ALL_IN_TURN = edit(
    SIMPLE,
    ("for j {\nissue S", "for j {\nin turn {\nissue S"),
    ("issue O += wgmma(P[j], Vs[j])\n", "issue O += wgmma(P[j], Vs[j])\n}\n"),
)
ODD = {
    "everything in one turn": ALL_IN_TURN,
    "finish in two steps": edit(SIMPLE, ("finish O, L via Os", "finish O via Os\nfinish L")),
    "fill once in a loop": edit(SIMPLE, ("fill Qs\nfor j {\nfill Ks[j]", "for j {\nfill Ks[j]\nonce { fill Qs }")),
    "an early await": edit(SIMPLE, ("issue S[j] =", "await Ks[j+1]\nissue S[j] =")),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("schedule", ODD.values(), ids=ODD)
def test_turns_and_finish(schedule, device):
    options = {"causal": True}
    kernel = compile(ATTENTION, schedule=schedule, dims={"D": 64, "E": 64}, types={"T": "bf16"}, options=options, build=False)
    for m, n in ((300, 257), (200, 300), (130, 0)):
        sizes = {"B": 1, "H": 2, "G": 1, "M": m, "N": n, "D": 64, "E": 64}
        assert wrong(kernel, inputs(ATTENTION, sizes), device) == [], (m, n)

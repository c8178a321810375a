"""Items that reach into one another: attention over several items of a CTA, in every order of events."""

from __future__ import annotations

import re
from functools import partial

import pytest

from tests.programs.check import DEVICES, inputs, wrong
from tests.programs.edits import ATTENTION, FA3, edit
from wgdsl.driver import compile
from wgdsl.roles.model import BarSync
from wgdsl.runtime.verdict import complaints_of
from wgdsl.sim.steps import MEANING

STATIC = edit(
    FA3,
    ("grid over", "grid persistent joined over"),
    ("smem Qs = Q[i] by tma", "smem Qs = Q[i] by tma ring 2"),
    (" over Qs", ""),
    ("registers 24\n", "registers 40\n"),
    ("registers 240", "registers 232"),
)
DYNAMIC = edit(
    STATIC,
    (
        "persistent joined over (b, g, r, i)",
        "persistent dynamic joined over (b, g, r, i) longest_first section (b, g, r) within 32 MB",
    ),
)
LAZY = ("rescale O", "rescale O when grown by 8")
NO_TURNS = (("in turn {\n", ""), ("Vs[j])\n}", "Vs[j])"))
OVER_V = (("j 128", "j 64"), ("smem Os = O[i] by tma", "smem Os = O[i] by tma over Vs"))
PLAIN_LOAD = (
    "load { fill Qs.0 for j { fill Ks[j+1] once { fill Qs.rest } fill Vs[j] } }",
    "load { fill Qs for j { fill Ks[j] fill Vs[j] } }",
)
COMPUTE_LATE = edit(
    STATIC,
    (
        FA3[FA3.index("in turn {") : FA3.index("finish")],
        "compute P[j]\npack P[j]\nrescale O\nissue S[j+1] = wgmma(Qs, Ks[j+1])\nissue O += wgmma(P[j], Vs[j])\n"
        "await S[j+1]\nawait O[j]\n}\n",
    ),
)
SCHEDULES = {
    "static": (STATIC, 128),
    "static, lazy": (edit(STATIC, LAZY), 64),
    "static, no turns": (edit(STATIC, *NO_TURNS), 64),
    "static, straight from registers": (edit(STATIC, (" via Os", ""), ("smem Os = O[i] by tma\n", "")), 64),
    "static, results over the ring of V": (edit(STATIC, *OVER_V), 64),
    "static, ascending": (edit(STATIC, (" descending", "")), 64),
    "static, rings of one": (edit(STATIC, ("[j] by tma ring 2", "[j] by tma")), 64),
    "static, one warpgroup": (edit(STATIC, ("i 128", "i 64"), ("2 warpgroups", "1 warpgroup")), 64),
    "static, fills not ahead": (edit(STATIC, PLAIN_LOAD), 64),
    "static, softmax in the old item": (COMPUTE_LATE, 64),
    "static, rescale first": (edit(STATIC, ("rescale O\n", ""), ("in turn {\n", "rescale O\nin turn {\n")), 64),
    "dynamic": (DYNAMIC, 128),
    "dynamic, lazy": (edit(DYNAMIC, LAZY), 64),
    "dynamic, no turns, lazy": (edit(DYNAMIC, *NO_TURNS, LAZY), 64),
    "dynamic, results over the ring of V": (edit(DYNAMIC, *OVER_V), 64),
    "dynamic, fills not ahead": (edit(DYNAMIC, PLAIN_LOAD), 64),
    "dynamic, three warpgroups": (
        edit(
            DYNAMIC,
            ("i 128, j 128", "i 192, j 80"),
            ("registers 40\n", "registers 56\n"),
            ("2 warpgroups, registers 232", "3 warpgroups, registers 152"),
        ),
        64,
    ),
}
LENGTHS = ((1, 1), (200, 300), (300, 200), (130, 0), (500, 400))  # 300 over 200, causal: items without a tile among others


def made(schedule: str, causal: bool, d: int, build: bool = False):
    return compile(
        ATTENTION, schedule=schedule, dims={"D": d, "E": d}, types={"T": "bf16"}, options={"causal": causal}, build=build
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name, causal, device):
    schedule, d = SCHEDULES[name]
    kernel = made(schedule, causal, d)
    for m, n in LENGTHS:
        sizes = {"B": 2, "H": 2, "G": 1, "M": m, "N": n, "D": d, "E": d}
        assert wrong(kernel, inputs(ATTENTION, sizes), device) == [], (m, n)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("schedule", [edit(STATIC, LAZY), DYNAMIC], ids=["static, lazy", "dynamic"])
def test_every_order(schedule, causal):
    kernel = made(schedule, causal, 16)
    canonical = kernel.forms.backends["sim"]
    for m, n in ((300, 200), (300, 400)):
        arrays = inputs(ATTENTION, {"B": 1, "H": 2, "G": 1, "M": m, "N": n, "D": 16, "E": 16})
        for seed in range(20):
            kernel.forms.backends["sim"] = partial(canonical, seed=seed)  # type: ignore[index]
            assert wrong(kernel, arrays) == [], (m, n, seed)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("schedule", [STATIC, DYNAMIC], ids=["static", "dynamic"])
def test_machine_code(schedule, causal):
    """Nothing spills and no product is serialised, with two items in the registers."""
    kernel = made(edit(schedule, LAZY), causal, 128, build=True)
    (binary,) = kernel.binaries.values()
    assert complaints_of(kernel.roles.kernels[0], binary) == []
    loops = 2 if causal else 1
    assert len(re.findall(r"\bHGMMA\.", kernel.sass)) == (loops + 2) * 2 * 8, (
        "prologue and drain make one pair, the joined iteration another"
    )


def test_a_joined_iteration_is_a_turn(monkeypatch):
    """A CTA's warpgroups (by their first warps) take a turn for every tile but the first of each run of joined items."""
    turns: dict[tuple[int, str], int] = {}
    meant = MEANING[BarSync]

    def counted(agent, step):
        if step.note == "my turn" and agent.warp == 0:
            key = (agent.cta.number, agent.name)
            turns[key] = turns.get(key, 0) + 1
        return meant(agent, step)

    monkeypatch.setitem(MEANING, BarSync, counted)
    kernel = made(STATIC, False, 16)
    sizes = {"B": 2, "H": 2, "G": 1, "M": 200, "N": 300, "D": 16, "E": 16}
    assert wrong(kernel, inputs(ATTENTION, sizes)) == []
    items, tiles = 2 * 2 * 2, 3  # two blocks of rows for each of 2 * 2 heads; two CTAs share them
    assert set(turns.values()) == {items // 2 * tiles - 1} and len(turns) == 4

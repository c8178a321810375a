"""What a schedule in its short form can get wrong of the hand-over cases B27, B28, B30, B32 and B34, and neighbours that are
right. Each file holds one program and several schedules."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.bugs.cases import SIZES, file, run
from tests.bugs.test_bugs import told
from tests.sim.test_shipped import close, values
from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.driver import Settings, prepare
from wgdsl.forms import explained
from wgdsl.reference.evaluate import evaluate
from wgdsl.sim import simulate_unchecked


def kernel(name: str, schedule: str, **dims: int):
    return prepare(file(name), schedule=schedule, target="sm_90a", settings=Settings(dims=dims))[0]


def refusal(name: str, schedule: str, **dims: int) -> Problem:
    with pytest.raises(WgError) as caught:
        kernel(name, schedule, **dims)
    (problem,) = caught.value.problems
    return problem


# B27, B28, B30.


@pytest.mark.parametrize(
    "schedule, code, words, line",
    [
        ("never_awaited", "WG0413", "after it: `C[k-1]`", "for k {"),
        ("one_stage", "WG0420", "ring `As` of 1 is full", "issue C += wgmma(As[k], Bs[k])"),
        ("ninety_six_threads", "WG0405", "counted in warp", "role math : 3 warps"),
    ],
)
def test_what_a_schedule_can_say(schedule: str, code: str, words: str, line: str):
    p = refusal("short_form", schedule)
    assert p.code == code and words in told(p)
    assert p.span is not None and p.span.text.startswith(line)


@pytest.mark.parametrize("schedule", ["right", "one_stage_awaited"])
def test_what_it_should_have_said(schedule: str):
    k = kernel("short_form", schedule)
    for size in SIZES:
        run(k.forms.graph, k.roles, size)


# B32: setmaxnreg.


@pytest.mark.parametrize("schedule", ["r24_240", "r40_232", "r24_232", "r32_160"])
def test_registers_that_are_granted(schedule: str):
    k = kernel("b32_registers", schedule)
    load, math = map(int, schedule[1:].split("_"))
    assert [r.registers for r in k.roles.kernels[0].roles] == [load, math]
    run(k.forms.graph, k.roles, (200, 24, 40))


@pytest.mark.parametrize(
    "schedule, asked, granted",
    [("r40_240", "40 + 480 = 520", "168 each (in eights), x 3"), ("r40_160", "40 + 480 = 520", "128 each (in eights), x 4")],
)
def test_registers_that_are_not(schedule: str, asked: str, granted: str):
    """The sum, the pool and the limits are named."""
    p = refusal("b32_registers", schedule)
    load, math, total = asked.replace("+", "=").split(" = ")
    assert p.code == "WG0706" and f"ask for {total} registers" in p.title()
    assert f" {load}  load" in told(p) and f"{math}  math" in told(p)
    assert granted in told(p) and "multiple of 8 from 24 to 240" in told(p)


@pytest.mark.parametrize("schedule", ["r24_16", "r24_264", "r24_100"])
def test_register_counts_that_the_instruction_lacks(schedule: str):
    p = refusal("b32_registers", schedule)
    assert p.code == "WG0404" and f"`math` is {schedule.split('_')[1]}" in p.title()


def twice(schedule: str) -> str:
    """The explicit form of a schedule of 256 threads, of which an SM is to hold two CTAs: 128 registers each."""
    _, journal = prepare(file("b32_registers"), schedule=schedule, target="sm_90a")
    text = explained(journal.forms)
    threads = "    threads 256\n"
    assert text.count(threads) == 1 and "resident" not in text
    more = re.sub(r"registers dec (2[34]\d)", r"registers inc \1", text)  # than the launch grants then
    return more.replace(threads, f"{threads}    resident 2\n")


def test_registers_of_two_ctas_an_sm():
    with pytest.raises(WgError) as caught:
        prepare(twice("one_warpgroup"), target="sm_90a")
    (p,) = caught.value.problems
    assert p.code == "WG0706" and "ask for 264 registers" in p.title() and "128 each (in eights), x 2" in told(p)
    k, _ = prepare(twice("one_warpgroup_of_232"), target="sm_90a")
    run(k.forms.graph, k.roles, (200, 24, 40))
    assert "__launch_bounds__(256, 2)" in k.cuda


# B34: shared memory.


def score_inputs(d: int) -> tuple[dict[str, np.ndarray], dict[str, float], dict[str, int]]:
    m, n = 130, 300
    arrays = {x: values(k, "bf16", rows, d) for k, (x, rows) in enumerate({"Q": m, "K": n, "V": n}.items())}
    return arrays, {"scale": d**-0.5}, {"M": m, "N": n, "D": d}


@pytest.mark.parametrize(
    "schedule, d, nbytes", [("three_stages", 128, 229376), ("two_stages", 128, 163840), ("narrow", 256, 196608)]
)
def test_tiles_that_fit(schedule: str, d: int, nbytes: int):
    k = kernel("b34_shared_memory", schedule, D=d)
    (only,) = k.roles.kernels
    assert nbytes < only.shared_bytes <= nbytes + 256, "the tiles, and some barriers"
    arrays, scalars, dims = score_inputs(d)
    got = simulate_unchecked(k.roles, arrays, scalars, dims)
    exact = evaluate(k.forms.graph, arrays, scalars, dims)
    rounded = evaluate(k.forms.graph, arrays, scalars, dims, round_operands=True)
    close("O", np.asarray(got["O"], dtype=np.float64), exact["O"], rounded["O"])


@pytest.mark.parametrize(
    "schedule, d, total, rows",
    [
        ("own_staging", 128, 263280, ("98304  Ks: 1 x 3 x 32768", "98304  Vs: 1 x 3 x 32768", "32768  Os: 2 x 1 x 16384")),
        ("two_stages", 256, 328784, ("65536  Qs: 2 x 1 x 32768", "131072  Ks: 1 x 2 x 65536", "0  Os: over Qs")),
    ],
)
def test_tiles_that_do_not_fit(schedule: str, d: int, total: int, rows: tuple[str, ...]):
    """Each buffer, the total, the limit, and what to reduce."""
    p = refusal("b34_shared_memory", schedule, D=d)
    assert p.code == "WG0708" and p.title() == f"{total} bytes of shared memory are needed, sm_90a has 232448"
    assert [r for r in rows if r not in told(p)] == []
    assert "takes most" in told(p) or "ring" in p.help()


def test_columns_that_no_product_has():
    p = refusal("b34_shared_memory", "two_stages", D=512)
    assert p.code == "WG0415" and "n of this product is 512" in p.title() and "262144 bytes" in told(p)

"""Homes that no product reads: tiles of biases and masks that a `compute` takes out of shared memory, element by element."""

from __future__ import annotations

import pytest

from tests.programs.edits import ATTENTION, FA3, SIMPLE, edit, plain
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import compile
from wgdsl.roles.model import ReadShared, walk
from wgdsl.tools.running import run

SCORE = "S[b,g,r,i,j] * scale"
MASK = " where not causal or j <= i + N - M"
PROGRAMS = {
    "bias": ("in w: T[H, M, N]", f"{SCORE} + w[h,i,j]{MASK}"),
    "bias in f32": ("in w: f32[B, M, N]", f"{SCORE} + 0.5 * w[b,i,j]{MASK}"),
    "factor": ("in w: f16[M, N]", f"{SCORE} * w[i,j]{MASK}"),
    "mask": ("in w: i32[B, M, N]", f"{SCORE} where w[b,i,j] > 1"),
    "mask and bias": ("in w: T[B, M, N]", f"{SCORE} + w[b,i,j] where w[b,i,j] > -0.5"),
}
THREE = edit(plain("schedules/hopper/attention_three.wg"), ("j 80", "j 64"))  # room for tiles of f32
FA2 = edit(plain("schedules/ampere/attention_fa2.wg"), ("tile i 128, j 96", "tile i 64, j 64"))
NAMES = {"together": "fa3"}


def home(schedule: str, line: str) -> str:
    """The schedule with another home."""
    return edit(schedule, ("smem Os", f"{line}\nsmem Os"))


RING = "smem Ws = w[i, j] by tma ring 2"
BEHIND = ("fill Ks[j+1]", "fill Ks[j+1] fill Ws[j+1]")
SCHEDULES = {
    "simple": edit(home(SIMPLE, "smem Ws = w[i, j] by tma"), ("fill Ks[j]", "fill Ks[j] fill Ws[j]")),
    "together": edit(home(FA3, RING), ("fill Ks[j+1]", "fill Ks[j+1], Ws[j+1]")),
    "fa3": edit(home(FA3, RING), BEHIND),
    "three": edit(home(THREE, RING), BEHIND),
    "three_longest": edit(home(THREE, RING), BEHIND),
    "fa2": edit(home(FA2, "smem Ws = w[i, j] by cp_async"), ("fill Vs[j]", "fill Vs[j] fill Ws[j]")),
}


def made(program: str, schedule: str, causal: bool, **given):
    declared, statement = PROGRAMS[program]
    text = edit(ATTENTION, (f"{SCORE}{MASK}", statement), ("let h", f"{declared}\nlet h"))
    whole = text + SCHEDULES[schedule].removeprefix("wg 1\n")
    named, dims = NAMES.get(schedule, schedule), {"D": 64, "E": 64}
    return compile(whole, schedule=named, dims=dims, types={"T": "bf16"}, options={"causal": causal}, build=False, **given)


SIMPLEST = ("fa3", "fa2")  # the schedules that every program is tried under
CASES = [
    (program, schedule, causal)
    for program, (_, statement) in PROGRAMS.items()
    for schedule in (SCHEDULES if program in ("bias", "mask and bias") else SIMPLEST)
    for causal in ((False, True) if MASK in statement else (False,))
]


@pytest.mark.parametrize(("program", "schedule", "causal"), CASES)
def test_right(program, schedule, causal):
    kernel = made(program, schedule, causal)
    assert any(isinstance(s, ReadShared) for r in kernel.roles.kernels[0].roles for s in walk(r.steps))
    for (m, n), order in (((70, 200), None), ((201, 136), 1), ((130, 0), 2)):
        dims = {"B": 2, "M": m, "N": n, "G": 1, "R": 2}
        assert run(kernel, dims, device="sim", check=True, order=order).right, (m, n)


TURNED = ("in w: T[N, H, M]", f"{SCORE} + w[j,h,i]{MASK}")
TRUTH = ("in w: bool[M, N]", f"{SCORE} where w[i,j]")
UNREAD = ("in w: T[M, N]", f"{SCORE}{MASK}")


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [(TURNED, "WG0405", "last axis is `j`"), (TRUTH, "WG0405", "bool"), (UNREAD, "WG0405", "which nothing reads")],
)
def test_refused(program, code, words, monkeypatch):
    monkeypatch.setitem(PROGRAMS, "odd", program)
    with pytest.raises(WgError, match=words) as e:
        made("odd", "fa3", False)
    assert code in str(e.value)


def test_a_turn_of_exponentials_is_taken_before_them():
    """The turn of `in turn { compute ... }` stands between its waits and its work."""
    kernel = compile(ATTENTION, schedule="softmax_turns", dims={"D": 128, "E": 128}, types={"T": "bf16"}, build=False)
    cuda = kernel.cuda
    taken, exponentials = cuda.index("// my turn"), cuda.index("// P = exp2(")
    assert taken < exponentials < cuda.index("// the next one's turn", taken)

"""What people compute with attention, each as an edit of the one program: masks, scores and sinks, on both targets."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from tests.programs.edits import ATTENTION, edit, plain
from wgdsl.driver import compile
from wgdsl.roles.model import Let, Loop, walk
from wgdsl.runtime.bind import shape_of
from wgdsl.runtime.kernel import Kernel
from wgdsl.tools.judge import judge
from wgdsl.tools.running import unwritten

SCHEDULES = {
    "simple": plain("schedules/hopper/attention_simple.wg"),
    "three": plain("schedules/hopper/attention_three.wg"),
    "joined": plain("schedules/hopper/attention_two.wg"),
    "skipping": plain("schedules/hopper/attention_three.wg")
    + "schedule skipping extends three_longest {\ngrid persistent over (b, g, r, i)\n}\n",
    "fa2": plain("schedules/ampere/attention_fa2.wg"),
}
NAMES = {"joined": "two_joined", "skipping": "skipping"}
SIZES = ((70, 200), (130, 0), (201, 129))
SEEDS = (None, 1, 2)
GIVEN = {"W": 40, "U": 10, "F": 50, "C": 48}
SCORE = "S[b,g,r,i,j] * scale"
SOFTMAX = "P[b,g,r,i,j] = softmax[j] X[b,g,r,i,j]"
LSE = "L[b,h,i] = logsumexp[j] X[b,g,r,i,j]"
SINK = (
    "m[b,g,r,i] = max(max[j] X[b,g,r,i,j], {0})\np[b,g,r,i,j] = exp(X[b,g,r,i,j] - m[b,g,r,i])\n"
    "l[b,g,r,i] = sum[j] p[b,g,r,i,j] + exp({0} - m[b,g,r,i])\nP[b,g,r,i,j] = p[b,g,r,i,j] / l[b,g,r,i]"
)


def where(predicate: str, *lines: str) -> str:
    return scored(f"{SCORE} where {predicate}", *lines)


def scored(text: str, *lines: str) -> str:
    """The program with another score, and further lines."""
    old = "X[b,g,r,i,j] = S[b,g,r,i,j] * scale where not causal or j <= i + N - M"
    return edit(ATTENTION, (old, f"X[b,g,r,i,j] = {text}"), ("in scale", "\n".join((*lines, "in scale"))))


def sunk(sink: str, *lines: str, mask: str = "j <= i + N - M") -> str:
    total = "L[b,h,i] = log(l[b,g,r,i]) + m[b,g,r,i]"
    return edit(where(mask, *lines), (SOFTMAX, SINK.format(sink)), (LSE, total))


MASKS = {
    "causal, last rows aligned": where("j <= i + N - M"),
    "causal, first rows aligned": where("j <= i"),
    "causal, moved": where("j <= i + 17"),
    "strictly causal": where("j < i"),
    "window of both sides": where("i + N - M - 40 <= j <= i + N - M + 30"),
    "window of the past": where("i - 64 < j <= i"),
    "window by arguments": where("i - W <= j <= i + U", "dims W, U"),
    "prefix": where("j < 50 or j <= i + N - M"),
    "prefix by argument": where("j < F or j <= i + N - M", "dims F"),
    "prefix and window": where("j < 5 or i - 30 <= j <= i"),
    "chunks that tiles are made of": where("i / 64 == j / 64 and j <= i"),
    "chunks of tiles": where("i / 128 == j / 128"),
    "chunks across tiles": where("i / 48 == j / 48"),
    "chunks by argument": where("i / max(C, 1) == j / max(C, 1)", "dims C"),
    "large chunks": where("i / 8192 == j / 8192 and j <= i + 3"),
    "this chunk and the last": where("i / 64 - 1 <= j / 64 <= i / 64"),
    "dilation": where("(i - j) % 3 == 0 and 0 <= i - j < 90"),
    "documents": where("doc[b,i] == other[b,j]", "in doc: i32[B, M]", "in other: i32[B, N]"),
    "lengths": where("j < len[b]", "in len: i32[B]"),
    "lengths, causal": where("j < len[b] and j <= i + len[b] - M", "in len: i32[B]"),
    "a tensor of integers": where("keep[b,i,j] != 0", "in keep: i32[B, M, N]"),
    "a tensor of truth values": where("keep[b,i,j]", "in keep: bool[B, M, N]"),
    "a row of truth values": where("not keep[b,j] and j <= i", "in keep: bool[B, N]"),
    "not a conjunction": where("not (j > i and j > 20)"),
    "two conjunctions": where("(j <= i and j > i - 50) or (j < 10 and not i == 3)"),
    "the other diagonal": where("i + j >= M"),
    "bands": where("0 <= i - j < 20 or 60 <= i - j < 80"),
}
SCORES = {
    "soft cap": scored(f"cap({SCORE}, 30.0) where j <= i", "def cap(x, c) = c * tanh(x / c)"),
    "alibi": scored(f"{SCORE} + slope[h] * (j - i) where j <= i", "in slope: f32[H]"),
    "alibi of both sides": scored(f"{SCORE} - slope[h] * abs(j - i)", "in slope: f32[H]"),
    "bias": scored(f"{SCORE} + w[h,i,j]", "in w: T[H, M, N]"),
    "bias of keys": scored(f"{SCORE} + w[b,0,0,j]", "in w: f32[B, 1, 1, N]"),
    "relative positions": scored(f"{SCORE} + w[h, j - i + M - 1]", "in w: f32[H, M + N - 1]"),
    "relative positions in a window": scored(
        f"{SCORE} + w[h, j - i + W] where i - W <= j <= i + W", "dims W", "in w: f32[H, 2 * W + 1]"
    ),
    "relative positions, clipped": scored(f"{SCORE} + w[h, min(max(j - i, -W), W) + W]", "dims W", "in w: f32[H, 2 * W + 1]"),
    "temperature": scored("S[b,g,r,i,j] * t[h]", "in t: f32[H]"),
    "a formula": scored(f"{SCORE} + 0.1 * tanh(S[b,g,r,i,j]) * (i % 7) - 0.01 * (j / 3) where not i == j"),
    "sinks": sunk("sink[h]", "in sink: f32[H]"),
    "sinks of rows": sunk("sink[b,i]", "in sink: f32[B, M]", mask="i - 30 < j <= i"),
    "a sink of 0": sunk("0.0"),
}
PROGRAMS = {**MASKS, **SCORES}


def arrays(program: str, sizes: dict[str, int], seed: int = 0) -> dict[str, np.ndarray]:
    """Random arrays for every tensor of the text; small integers where they are that."""
    rng = np.random.default_rng(seed)
    out = {}
    for name, dtype, shape in re.findall(r"^in (\w+): (\w+)\[([^\]]*)\]", program, re.M):
        extents = tuple(eval(x, {}, sizes) for x in shape.split(","))
        if dtype == "i32":
            most = sizes["N"] + 20 if name == "len" else 3
            out[name] = rng.integers(0, most, extents).astype(np.int32)
        elif dtype == "bool":
            out[name] = rng.integers(0, 2, extents).astype(bool)
        else:
            values = rng.standard_normal(extents)
            out[name] = (values * 0.3).astype(np.float32) if dtype == "f32" else values.astype(ml_dtypes.bfloat16)
    return out


def made(program: str, schedule: str, **fixed: int) -> Kernel:
    named = NAMES.get(schedule)
    text = SCHEDULES[schedule]
    if named is None:
        return compile(program, schedule=text, dims={"D": 64, "E": 64, **fixed}, types={"T": "bf16"}, build=False)
    whole = program + text.removeprefix("wg 1\n")
    return compile(whole, schedule=named, dims={"D": 64, "E": 64, **fixed}, types={"T": "bf16"}, build=False)


def called(
    kernel: Kernel, program: str, m: int, n: int, seed: int | None, device: str = "sim", **more: np.ndarray
) -> list[str]:
    """What is wrong at a size, in words. seed: of the order of events in the simulator."""
    sizes = {"B": 2, "G": 1, "H": 2, "M": m, "N": n, "D": 64, "E": 64, **GIVEN}
    given = arrays(program, sizes) | more
    shaped = {s for i in kernel.graph.inputs for p in i.shape for s in p.symbols()}
    given |= {d: GIVEN[d] for d in kernel.graph.dims if d in GIVEN and d not in shaped}
    call = kernel.interface.sort((), given, None)
    bound = kernel.bound(call)
    results = {o.tensor: unwritten(shape_of(o, bound), o.dtype) for o in kernel.graph.outputs}
    if device == "sim":
        kernel.simulate(**given, seed=seed, out=results)
    else:
        kernel(**given, out=results)
    verdicts = judge(kernel.graph, call.inputs, bound.scalars, bound.dims, results, kernel.approximated)
    return [str(v) for v in verdicts if not v.right]


@pytest.mark.parametrize("schedule", ["simple", "three", "fa2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, schedule):
    kernel = made(PROGRAMS[name], schedule)
    for (m, n), seed in zip(SIZES, SEEDS, strict=True):
        assert called(kernel, PROGRAMS[name], m, n, seed) == [], (m, n, seed)


@pytest.mark.parametrize("schedule", NAMES)
@pytest.mark.parametrize("name", ["window of the past", "prefix", "chunks across tiles", "sinks", "sinks of rows", "lengths"])
def test_items_that_reach_into_one_another_or_skip_tiles(name, schedule):
    kernel = made(PROGRAMS[name], schedule)
    for (m, n), seed in zip(((70, 200), (300, 129)), (1, 2), strict=True):
        assert called(kernel, PROGRAMS[name], m, n, seed) == [], (m, n, seed)


def rounds(kernel: Kernel, **dims: int) -> int:
    """Tiles that the role which multiplies goes through, for the rows from 1024 on."""
    role = kernel.roles.kernels[0].roles[-1]
    at = {"b": 0, "g": 0, "r": 0, "i.lo": 1024, "wg": 0, "B": 1, "G": 1, "R": 1, **dims}
    for s in walk(role.steps):
        if isinstance(s, Let) and s.name == "j.n":
            return s.value.evaluate(at)
        if isinstance(s, Let):
            at[s.name] = s.value.evaluate(at)
        assert not isinstance(s, Loop), "before the loop"
    raise AssertionError("no loop")


@pytest.mark.parametrize(
    "name, most",
    [
        ("causal, moved", 10),
        ("window of both sides", 3),
        ("window of the past", 2),
        ("prefix", 9),
        ("chunks that tiles are made of", 1),
        ("chunks of tiles", 1),
        ("chunks across tiles", 3),
        ("this chunk and the last", 2),
        ("dilation", 2),
        ("not a conjunction", 9),
        ("bands", 2),
    ],
)
def test_loops_are_as_long_as_the_mask_is_wide(name, most):
    """Of 32 tiles of 128 keys."""
    assert rounds(made(PROGRAMS[name], "simple"), M=4096, N=4096) <= most


def test_a_window_of_thousands_is_verified():
    kernel = made(where("i + N - M - 4096 < j <= i + N - M"), "simple")
    assert rounds(kernel, M=8192, N=16384) == 33


def test_a_dim_that_is_fixed_bounds_the_loop():
    program = PROGRAMS["window by arguments"]
    assert rounds(made(program, "simple"), M=4096, N=4096, W=64, U=0) == 32
    assert rounds(made(program, "simple", W=64, U=0), M=4096, N=4096) == 2


@pytest.mark.parametrize("schedule", ["simple", "three", "fa2"])
@pytest.mark.parametrize(
    "name, m, n, outside",
    [
        ("window of both sides", 40, 250, slice(0, 100)),
        ("causal, moved", 60, 300, slice(77, 300)),
        ("causal, moved", 60, 90, slice(77, 90)),
        ("not a conjunction", 64, 300, slice(64, 300)),
        ("two conjunctions", 64, 300, slice(64, 300)),
        ("chunks of tiles", 128, 400, slice(255, 400)),
    ],
)
def test_what_no_row_of_a_tile_sees_may_be_anything(name, m, n, outside, schedule):
    program = PROGRAMS[name]
    given = arrays(program, {"B": 2, "G": 1, "H": 2, "M": m, "N": n, "D": 64, "E": 64})
    for t in ("K", "V"):
        given[t][:, outside] = np.nan
    assert called(made(program, schedule), program, m, n, None, K=given["K"], V=given["V"]) == []


def test_a_prefix_ends_where_it_says():
    program = where("j < 70 or j <= i")
    given = arrays(program, {"B": 2, "G": 1, "H": 2, "M": 60, "N": 300, "D": 64, "E": 64})
    for t in ("K", "V"):
        given[t][:, 70:] = np.nan
    assert called(made(program, "three"), program, 60, 300, None, K=given["K"], V=given["V"]) == []

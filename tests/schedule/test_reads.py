"""Lengths and places that tensors say: they bound the loop, whatever they are, and the protocol holds for all of them."""

from __future__ import annotations

import numpy as np
import pytest

import wgdsl
from tests.docs.test_cookbook_page import changed
from wgdsl.roles import model as m
from wgdsl.roles.model import walk
from wgdsl.roles.text import roles_text

CLAUSES = {
    "length": ("in len: i32[B]", "j < len[b]"),
    "length, causal": ("in len: i32[B]", "j < len[b] and j <= i + N - M"),
    "start": ("in first: i32[B]", "j >= first[b]"),
    "between": ("in cu: i32[B + 1]\nindex b < B", "j < cu[b + 1] - cu[b]"),
    "not": ("in len: i32[B]", "not (j >= len[b])"),
    "shift": ("in len: i32[B]", "j < len[b] and j <= i + len[b] - M"),
    "window": ("in len: i32[B]\nin first: i32[B]", "first[b] <= j < len[b]"),
    "either": ("in len: i32[B]", "j < len[b] or j <= i"),
    "of another batch": ("in len: i32[B]\nin whose: i32[B]", "j < len[whose[b]]"),
}
SCHEDULES = ("simple", "fa3_persistent", "three", "two_longest", "fa2")


def compiled(clause: str, schedule: str) -> wgdsl.Kernel:
    declared, where = CLAUSES[clause]
    text = changed(f"{declared}\nX[b,g,r,i,j] = S[b,g,r,i,j] * scale where {where}")
    dims = {"D": 64, "E": 64}
    return wgdsl.compile(text, schedule=schedule, dims=dims, build=False)


def loops(kernel: wgdsl.Kernel) -> list[m.Loop]:
    (k,) = kernel.roles.kernels
    return [s for r in k.roles for s in walk(r.steps) if isinstance(s, m.Loop)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("clause", [c for c in CLAUSES if c not in ("either", "of another batch")])
def test_the_loop_is_bounded(clause, schedule):
    """Each role reads, and no tile is tested that lies inside whole."""
    kernel = compiled(clause, schedule)
    (k,) = kernel.roles.kernels
    for role in k.roles:
        read = {s.name for s in walk(role.steps) if isinstance(s, m.Read)}
        bound = [s for s in walk(role.steps) if isinstance(s, m.Let) and s.name in ("j.hi", "j.lo")]
        assert read and any(s.value.symbols() & read for s in bound)
    assert any(not loop.mask.strip("{}") for loop in loops(kernel))


def test_more_numbers_than_can_be_tried_together():
    """With the length, the row and the end of the axis there are three."""
    assert "len.b" in reads(compiled("either", "simple"))
    assert not reads(compiled("either", "three"))


def steps_that_read(kernel: wgdsl.Kernel) -> list[m.Read]:
    return [s for k in kernel.roles.kernels for r in k.roles for s in walk(r.steps) if isinstance(s, m.Read)]


def reads(kernel: wgdsl.Kernel) -> set[str]:
    return {s.name for s in steps_that_read(kernel)}


LENGTHS = (0, 1, 63, 64, 80, 96, 128, 129, 150, 151, 1000, -7, -(2**31), 2**31 - 1)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("clause", ["length", "length, causal", "start", "not", "shift", "either"])
def test_every_length(clause, schedule):
    """Against the evaluator: none, one, at the edges of tiles, beyond the extent, below 0."""
    kernel = compiled(clause, schedule)
    name = CLAUSES[clause][0].split()[1].rstrip(":")
    check(kernel, 70, 150, {name: np.array(LENGTHS, np.int32)})


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_length_that_may_lie_outside_of_its_tensor_bounds_nothing(schedule):
    """It is tested in every tile; outside there is a length of 0, and before the first element there is the first."""
    kernel = compiled("of another batch", schedule)
    assert "whose.b" in reads(kernel) and all("len" not in str(r.value) for r in steps_that_read(kernel))
    whose = np.array([0, 3, 2, 1, 4, 5, -1, -(2**31), 2**31 - 1], np.int32)
    lengths = np.array([70, 150, 0, 64, 1000, -7, 3, 8, 9], np.int32)
    check(kernel, 70, 150, {"whose": whose, "len": lengths})


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_between_two(schedule):
    check(compiled("between", schedule), 70, 150, {"cu": np.array([0, 0, 64, 65, 300, 200, 2**30, -(2**30)], np.int32)})
    first, last = np.array([0, 5, 80, 100, 96, 160, -9], np.int32), np.array([3, 5, 150, 90, 1000, 170, 81], np.int32)
    check(compiled("window", schedule), 70, 150, {"first": first, "len": last})


def check(kernel: wgdsl.Kernel, rows: int, keys: int, said: dict[str, np.ndarray]) -> None:
    batch = min(len(x) for x in said.values()) - ("cu" in said)
    rng = np.random.default_rng(5)
    draw = lambda *shape: rng.normal(size=shape).astype(np.float16)  # noqa: E731
    q, k, v = draw(batch, rows, 2, 64), draw(batch, keys, 1, 64), draw(batch, keys, 1, 64)
    dims = {"G": 1, "R": 2}
    found = kernel.simulate(Q=q, K=k, V=v, **said, **dims)
    right = kernel(Q=q, K=k, V=v, **said, **dims, device="reference")
    for a, b in zip(found, right, strict=True):
        np.testing.assert_allclose(np.float32(a), np.float32(b), atol=4e-3)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_lies_past_the_length_never_counts(schedule):
    kernel = compiled("length", schedule)
    rng = np.random.default_rng(6)
    lengths = np.array([0, 1, 64, 70, 80, 150], np.int32)
    draw = lambda *shape: rng.normal(size=shape).astype(np.float16)  # noqa: E731
    q, k, v = draw(6, 70, 2, 64), draw(6, 150, 1, 64), draw(6, 150, 1, 64)
    clean = kernel.simulate(Q=q, K=k, V=v, len=lengths, G=1, R=2)
    for b, n in enumerate(lengths):
        k[b, n:], v[b, n:] = np.nan, np.inf
    dirty = kernel.simulate(Q=q, K=k, V=v, len=lengths, G=1, R=2)
    for a, b in zip(clean, dirty, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_form_is_read_back():
    """`explain` prints what is read, and the text gives the same kernel."""
    kernel = compiled("shift", "three")
    text = changed("in len: i32[B]\nX[b,g,r,i,j] = S[b,g,r,i,j] * scale where j < len[b] and j <= i + len[b] - M")
    form = roles_text(kernel.roles, settings={"D": 64, "E": 64, "T": "f16", "causal": False, "lse": True})
    again = wgdsl.compile(f"{text}\n{form}", schedule="three", build=False)
    assert again.roles == kernel.roles
    assert "read len.b = len[b] from 0 to N" in form
    assert "read j.past = len[b] + i.lo - M from -33554432 to 33554432" in form


def test_nothing_is_read_for_the_item_that_follows():
    """Lengths are left to the mask where items are joined."""
    assert not reads(compiled("length", "two_joined"))


@pytest.mark.parametrize(
    "where", ["j < min(len[b], N - 3)", "j < max(len[b], 64) + 100000 * N - 100000 * M", "2 * j < len[b] * M"]
)
def test_what_is_made_of_elements_takes_64_bits(where):
    """The text is compiled: C++ has no least of an `int` and a `long long`."""
    kernel = wgdsl.compile(
        changed(f"in len: i32[B]\nX[b,g,r,i,j] = S[b,g,r,i,j] * scale where {where}"),
        schedule="simple",
        dims={"D": 64, "E": 64},
    )
    check(kernel, 70, 150, {"len": np.array([0, 3, 70, 149, 150, 2**31 - 1, -(2**31)], np.int32)})
    (said,) = {line.strip() for line in kernel.cuda.splitlines() if "_said = " in line}
    assert all(f"(long long){dim}" in said for dim in "MN" if dim in said.partition("=")[2])

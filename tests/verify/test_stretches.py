"""Loops whose rounds change at a place that sizes move: long stretches on all sides of it are looked into.

What is wrong there is refused, and the simulator shows it at much larger sizes, too; what is right there is accepted. That no
way through an item is left out is seen by brute force: each item of any size is, but for the length of runs of equal rounds,
one of those tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from random import Random

import pytest

from tests.shipped import KERNELS
from tests.sim.programs import P, edit, gemm
from tests.verify.test_soundness import ROUND, ROWS, at_least, unawaited
from wgdsl.program.expr import Affine
from wgdsl.program.poly import Poly, floordiv, minimum, mod
from wgdsl.roles import model as m
from wgdsl.roles.model import Kernel, RoleProgram, Step
from wgdsl.roles.witness import Witness, WitnessItem
from wgdsl.sim.replay import replay
from wgdsl.verify.closure import APART, Explorer, explore
from wgdsl.verify.control import flags_of
from wgdsl.verify.letters import Letter
from wgdsl.verify.machine import Rule
from wgdsl.verify.progress import Progress

PLACE, NEXT = floordiv(ROWS, 128), floordiv(ROWS, 128) + floordiv(P("N"), 128)
LEFT = P("k.n") - ROUND


def between(first: Poly, last: Poly) -> tuple[Affine, Affine]:
    """From one round to another."""
    return at_least(ROUND - first), at_least(last - ROUND)


def halves(conditions: tuple[Affine, ...] = ()) -> RoleProgram:
    """The loop of `math` as two, the first of M / 128 rounds; where all conditions hold, no wait in that."""

    def split(s: Step) -> Step | tuple[Step, ...]:
        if not isinstance(s, m.Loop):
            return s
        body = tuple(_unless(conditions, x) if isinstance(x, m.Wait) else x for x in s.body)
        middle = m.Let(name="middle", value=minimum(PLACE, s.stop))
        return middle, replace(s, stop=P("middle"), body=body), replace(s, start=P("middle"))

    return edit(gemm(), split, role="math")


def _unless(conditions: tuple[Affine, ...], step: Step) -> Step:
    """A step that isn't run where all conditions hold."""
    out: tuple[Step, ...] = ()
    for c in reversed(conditions):
        out = (m.If(cond=c, then=out, other=(step,)),)
    return out[0] if conditions else step


def either(*conditions: Affine) -> RoleProgram:
    """Each step of `math`'s loop under conditions, and the same step where they don't hold; another wait, too, that is
    fulfilled already."""

    def change(s: Step) -> Step:
        if not isinstance(s, m.Loop):
            return s
        again = [x for x in s.body if isinstance(x, m.Wait)]
        return replace(s, body=(again[0], *(_unless(conditions, x) for x in again), *s.body[1:]))

    return edit(gemm(), change, role="math")


@dataclass(frozen=True)
class Wrong:
    """A program, and sizes far beyond what is tried at which it is wrong."""

    program: Callable[[], RoleProgram]
    dims: dict[str, int]


WRONG = {
    "in the middle": Wrong(
        lambda: unawaited(*between(PLACE, PLACE), at_least(LEFT - 9), at_least(ROUND - 9)), {"M": 128 * 20, "K": 64 * 40}
    ),
    "from the middle on": Wrong(
        lambda: unawaited(at_least(ROUND - PLACE), at_least(ROUND - 7), at_least(LEFT - 5)), {"M": 128 * 25, "K": 64 * 50}
    ),
    "up to the middle": Wrong(
        lambda: unawaited(at_least(PLACE - ROUND), at_least(ROUND - 5), at_least(P("k.n") - PLACE - 7)),
        {"M": 128 * 15, "K": 64 * 40},
    ),
    "near the beginning": Wrong(
        lambda: unawaited(*between(PLACE, PLACE), at_least(2 - ROUND), at_least(LEFT - 10)), {"M": 128, "K": 64 * 40}
    ),
    "near the end": Wrong(
        lambda: unawaited(*between(PLACE, PLACE), at_least(2 - LEFT), at_least(ROUND - 10)), {"M": 128 * 39, "K": 64 * 40}
    ),
    "counted from the end": Wrong(
        lambda: unawaited(*between(P("k.n") - 1 - PLACE, P("k.n") - 1 - PLACE), at_least(LEFT - 7), at_least(ROUND - 6)),
        {"M": 128 * 15, "K": 64 * 40},
    ),
    "by what is bound in the loop": Wrong(
        lambda: unawaited(
            at_least(P("q")), at_least(-P("q")), at_least(LEFT - 6), at_least(ROUND - 6), let=ROUND - PLACE
        ),
        {"M": 128 * 15, "K": 64 * 40},
    ),
    "by a quotient of the round": Wrong(
        lambda: unawaited(*between(PLACE * 2, PLACE * 2), at_least(LEFT - 6), at_least(floordiv(ROUND, 2) - PLACE)),
        {"M": 128 * 10, "K": 64 * 40},
    ),
    "in two loops": Wrong(
        lambda: halves((*between(PLACE - 1, PLACE - 1), at_least(ROUND - 5), at_least(LEFT - 6))), {"M": 128 * 15, "K": 64 * 40}
    ),
    "in the second of two places": Wrong(
        lambda: unawaited(*between(NEXT, NEXT), at_least(PLACE - 4), at_least(NEXT - PLACE - 4), at_least(LEFT - 4)),
        {"M": 128 * 12, "N": 128 * 12, "K": 64 * 40},
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused(wrong):
    program = wrong.program()
    fault = explore(program.kernels[0]).fault
    assert fault is not None and fault.found.rule != Rule.STATES
    assert replay(program, fault.witness, seeds=range(4)) is not None


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_the_simulator_shows_it_at_large_sizes(wrong):
    dims = tuple({"M": 128, "N": 128, **wrong.dims}.items())
    item = WitnessItem(dims=dims, indices=(("i.lo", 0), ("j.lo", 0)))
    assert replay(wrong.program(), Witness(kernel="gemm", items=(item,), dims=dims), seeds=range(4)) is not None


def test_rounds_that_come_round_late_are_not_let_pass():
    """A wait is left out in each fourth ten rounds."""
    program = unawaited(at_least(mod(floordiv(ROUND, 10), 4) - 3))
    assert explore(program.kernels[0]).fault is not None


RIGHT = {
    "two halves of a loop": lambda: halves(),
    "in the middle": lambda: either(*between(PLACE, PLACE)),
    "from the middle on": lambda: either(at_least(ROUND - PLACE)),
    "in two places": lambda: either(at_least(ROUND - PLACE), at_least(NEXT - ROUND)),
    "in each second round": lambda: either(at_least(-mod(ROUND, 2))),
}


@pytest.mark.parametrize("program", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_accepted(program):
    found = explore(program().kernels[0])
    assert found.fault is None and found.states


# Brute force.


def way(progress: Progress, item: Letter, most: int) -> tuple:
    """How all units go through an item: runs of equal rounds, none counted further than `most`."""
    out = []
    for tracer in progress.tracers:
        numbers: dict[tuple[int, int], int] = {}
        rows = lambda start, stop: numbers.setdefault((start, stop), len(numbers)) if start < stop else -1  # noqa: E731, B023
        trace = tracer.item(item, 0, 0, rows)
        rounds = [tuple(n for n, _ in g) for _, g in groupby(zip(trace.numbers, trace.rounds, strict=True), lambda x: x[1])]
        out.append(tuple((content, min(len([*g]), most)) for content, g in groupby(rounds)))
    return tuple(out)


def explored(kernel: Kernel) -> Explorer:
    explorer = Explorer(kernel, tuple((f, True) for f in flags_of(kernel)), 20_000, APART)
    assert explorer.run().fault is None
    return explorer


def items(progress: Progress, sizes: int, seed: int, count: int) -> list[Letter]:
    """Any items of a launch of any sizes."""
    random, out = Random(seed), []
    names = progress.letters[0].dims
    while len(out) < count:
        dims = {x: random.choice((random.randrange(sizes), 64 * random.randrange(sizes // 64))) for x in names}
        blocks = {x: a.blocks.evaluate(dims) for x, a in axes(progress.kernel).items()}
        if min(blocks.values()) > 0:
            out.append(Letter(dims, {x: axes(progress.kernel)[x].tile * random.randrange(n) for x, n in blocks.items()}, 0))
    return out


def axes(kernel: Kernel) -> dict[str, m.GridAxis]:
    return {f"{a.index}.lo" if a.tile > 1 else a.index: a for a in kernel.grid.axes}


LONGEST = [k for k in KERNELS if k.name.partition("-")[2].startswith(("three_longest", "four_longest", "two_joined", "simple"))]
STEADY = {k: v for k, v in RIGHT.items() if k != "in each second round"}  # there, no two rounds are equal
PROGRAMS = {**STEADY, **{k.name: lambda k=k: k.compile().forms.roles for k in LONGEST}}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_items_of_any_size_are_among_those_tried(program):
    kernel = program().kernels[0]
    explorer = explored(kernel)
    progress, most = explorer.progress, explorer.deepest
    tried = {way(progress, x, most) for x in progress.letters}
    missing = [x for x in items(progress, 5000, 0, 1000) if way(progress, x, most) not in tried]
    assert not missing, missing[0]

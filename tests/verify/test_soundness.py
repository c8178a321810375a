"""Wrong role programs whose fault is hard to come by: far along a loop, in a later item, for some dims only. Each is refused,
and the simulator shows that it is wrong. Places that sizes move along a loop are in `test_stretches`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

import wgdsl
from tests.shipped import ROOT
from tests.sim.programs import P, edit, gemm, positive
from wgdsl.diagnostics.protocol import ProtocolFault
from wgdsl.diagnostics.verify import IllFormedStep
from wgdsl.program.expr import Affine
from wgdsl.program.poly import Poly, floordiv, minimum, mod
from wgdsl.roles import model as m
from wgdsl.roles.model import RoleProgram, Step
from wgdsl.roles.witness import Witness, WitnessItem
from wgdsl.sim.replay import replay
from wgdsl.verify.closure import explore
from wgdsl.verify.report import problem_of
from wgdsl.verify.structural import structural_problems

ROUND, NUMBER, ROWS = P("t"), P("item.ordinal"), P("M")
BEFORE = m.Slot(ring="As", lag=1)


def at_least(p: Poly) -> Affine:
    return Affine(poly=p)


def items(program: RoleProgram, change: Callable[[m.Items], tuple[Step, ...]]) -> RoleProgram:
    """Change the loops over items, which `edit` would look into no further."""

    def go(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        out: list[Step] = []
        for s in steps:
            out += change(s) if isinstance(s, m.Items) else [replace(s, body=go(s.body))] if isinstance(s, m.Elect) else [s]
        return tuple(out)

    kernel = program.kernels[0]
    return replace(program, kernels=(replace(kernel, roles=tuple(replace(r, steps=go(r.steps)) for r in kernel.roles)),))


def waits_again(line: int) -> RoleProgram:
    """A wait on a phase whose tiles have been released."""
    wait = m.Wait(barrier="As.full", part=P(0), slot=BEFORE)
    return edit(gemm(), lambda s: (s, wait) if isinstance(s, m.Arrive) and s.span and s.span.line == line else s)


def unawaited(*conditions: Affine, let: Poly | None = None, program: RoleProgram | None = None) -> RoleProgram:
    """Where all conditions hold, the tiles are read without a wait. let: the value of `q`, bound before."""

    def change(s: Step) -> Step | tuple[Step, ...]:
        if not isinstance(s, m.Wait) or s.barrier != "As.full":
            return s
        out: tuple[Step, ...] = ()
        for c in reversed(conditions):
            out = (m.If(cond=c, then=out, other=(s,)),)
        return out if let is None else (m.Let(name="q", value=let), *out)

    return edit(program or gemm(), change)


def unfenced(condition: Affine, let: Poly | None = None, where: bool = True) -> RoleProgram:
    """In items whose number fulfils the condition, a store isn't fenced. where: or in all others."""

    def change(s: Step) -> Step:
        if not isinstance(s, m.FenceAsync):
            return s
        return m.If(cond=condition, then=() if where else (s,), other=(s,) if where else ())

    program = edit(gemm(), change)
    lets = () if let is None else (m.Let(name="q", value=let),)
    return items(program, lambda s: (replace(s, counted=True, body=(*lets, *s.body)),))


def without_items(program: RoleProgram) -> RoleProgram:
    at = (m.Let(name="i.lo", value=P(0)), m.Let(name="j.lo", value=P(0)))
    return items(program, lambda s: (*at, *s.body))


@dataclass(frozen=True)
class Wrong:
    program: Callable[[], RoleProgram]
    dims: dict[str, int] = field(default_factory=dict)
    items: int = 2


LATE = at_least(ROUND - 20)
WRONG = {
    "waits again in the drain": Wrong(lambda: waits_again(22)),
    "waits again in the loop": Wrong(lambda: waits_again(21)),
    "in a late round": Wrong(lambda: unawaited(LATE), {"K": 64 * 30}),
    "in a round that many rows move": Wrong(
        lambda: unawaited(at_least(4 - ROUND), at_least(minimum(floordiv(ROWS, 128), 3) + ROUND - 6)), {"M": 1024}
    ),
    "in a round, with many rows": Wrong(
        lambda: unawaited(at_least(2 - ROUND), at_least(ROUND - 2), at_least(ROWS - 128 * ROUND - 300)), {"M": 1024}
    ),
    "by what is bound in the loop": Wrong(
        lambda: unawaited(at_least(P("q") - 3), at_least(ROUND - 2), let=minimum(floordiv(ROWS, 128), 5) - ROUND), {"M": 1024}
    ),
    "in later items": Wrong(lambda: unfenced(positive(NUMBER - 2)), items=6),
    "not in the first three items": Wrong(lambda: unfenced(at_least(2 - NUMBER), where=False), items=6),
    "not in the first item": Wrong(lambda: unfenced(at_least(-NUMBER), where=False)),
    "in each second four items": Wrong(lambda: unfenced(positive(mod(floordiv(NUMBER, 4), 2))), items=8),
    "by an item's number, bound": Wrong(lambda: unfenced(positive(P("q") - 2), let=NUMBER), items=6),
    "by an item's number and a dim": Wrong(lambda: unfenced(positive(NUMBER - 2 - floordiv(P("K"), 64))), items=14),
    "by the smaller of two": Wrong(lambda: unfenced(positive(minimum(NUMBER, 9) - 8)), items=14),
    "outside of items": Wrong(
        lambda: unawaited(positive(ROUND - 3), program=without_items(gemm(persistent=False))), items=1
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused(wrong):
    program = wrong.program()
    kernel = program.kernels[0]
    problems = structural_problems(kernel)
    assert all(isinstance(p, IllFormedStep) for p in problems)
    if not problems:
        fault = explore(kernel).fault
        assert fault is not None and isinstance(problem_of(fault), ProtocolFault)


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_the_simulator_shows_it(wrong):
    program = wrong.program()
    dims = tuple({"M": 128, "N": 128, "K": 64 * 9, **wrong.dims}.items())
    item = WitnessItem(dims=dims, indices=(("i.lo", 0), ("j.lo", 0)))
    assert replay(program, Witness(kernel="gemm", items=(item,) * wrong.items, dims=dims)) is not None


def test_without_what_is_wrong_they_are_right():
    kernel = gemm().kernels[0]
    assert not structural_problems(kernel) and explore(kernel).fault is None


@pytest.mark.parametrize("k", [64, 640, 4096, 50000])
def test_a_loop_as_long_as_a_fixed_dim_is_gone_through(k):
    """However far that lies beyond the cap of loops whose length may grow."""
    program = wgdsl.compile(ROOT / "examples/gemm/gemm.wg", schedule="pipelined", dims={"K": k}, build=False).roles
    explored = explore(program.kernels[0])
    assert explored.fault is None and explored.letters == 1
    wrong = items(program, lambda s: (replace(s, body=unfenced_steps(s.body)),))
    assert explore(wrong.kernels[0]).fault is not None


def unfenced_steps(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    out: list[Step] = []
    for s in (s for s in steps if not isinstance(s, m.FenceWgmma)):
        if isinstance(s, m.If):
            s = replace(s, then=unfenced_steps(s.then), other=unfenced_steps(s.other))
        out.append(replace(s, body=unfenced_steps(s.body)) if isinstance(s, m.Loop) else s)
    return tuple(out)

"""Every event of the shipped schedules is needed: without it in all its copies, the checks or the simulator refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.shipped import Shipped, attention, gemm
from tests.sim.programs import edit
from tests.sim.test_shipped import inputs
from wgdsl.diagnostics.model import WgError
from wgdsl.roles import model as m
from wgdsl.roles.model import Kernel, RoleProgram, Step, walk
from wgdsl.roles.text import step_text
from wgdsl.sim import simulate_unchecked
from wgdsl.verify import check

EVENTS = (
    m.Wait, m.Arrive, m.Expect, m.Advance, m.Commit, m.WaitGroup, m.FenceWgmma, m.FenceAsync, m.BarSync, m.BarArrive,
    m.WaitStore, m.CommitStore, m.Tma,
)  # fmt: skip
CASES = {
    "simple": (attention("simple", True, 64), ((300, 600), (70, 0), (300, 128))),
    "fa3": (attention("fa3", True, 64), ((300, 600), (70, 0), (300, 128))),
    "fa3_persistent": (attention("fa3_persistent", False, 64), ((700, 600), (700, 0))),
    "gemm": (gemm("nk"), ((600, 600),)),
    "items in turn": (gemm("nk", schedule="turns"), ((600, 600),)),
}


def name_of(kernel: Kernel, s: Step) -> str:
    """An event without its place: copies of it differ in slot and note only."""
    if isinstance(s, m.Wait | m.Arrive | m.Expect):
        return f"{type(s).__name__} {s.barrier}"
    return step_text(kernel, s)


def mutants(program: RoleProgram) -> dict[str, RoleProgram]:
    kernel = program.kernels[0]
    out = {}
    for role in kernel.roles:
        for name in dict.fromkeys(name_of(kernel, s) for s in walk(role.steps) if isinstance(s, EVENTS)):
            gone = lambda s, name=name: () if isinstance(s, EVENTS) and name_of(kernel, s) == name else s  # noqa: E731
            out[f"{role.name}: {name}"] = edit(program, gone, role=role.name)
    return out


def refusal(program: RoleProgram, case: Shipped, sizes) -> str:
    """The code of the fault that the simulator meets; the numbers themselves aren't looked at."""
    try:
        for size in sizes:
            simulate_unchecked(program, *inputs(case, *size))
    except WgError as e:
        return e.problems[0].code
    return ""


@pytest.mark.parametrize("name", CASES)
def test_every_event_is_needed(name: str):
    case, sizes = CASES[name]
    program = case.compile().forms.roles
    assert not refusal(program, case, sizes)
    survivors = [what for what, p in mutants(program).items() if not refusal(p, case, sizes)]
    assert survivors == []


@pytest.mark.parametrize("name", CASES)
def test_wrong_numbers_are_refused_by_both(name: str):
    """Byte and arrival counts: the structural check names them, and so does the simulator, which hasn't seen the check."""
    case, sizes = CASES[name]
    program = case.compile().forms.roles
    for wrong in (*counts(program), *nbytes(program)):
        with pytest.raises(WgError) as caught:
            check(wrong)
        assert {p.code for p in caught.value.problems} <= {"WG0702", "WG0703"}
        assert refusal(wrong, case, sizes)


def counts(program: RoleProgram):
    kernel = program.kernels[0]
    for k, b in enumerate(kernel.barriers):
        observed = any(isinstance(s, m.Wait) and s.barrier == b.name for r in kernel.roles for s in walk(r.steps))
        for wrong in (b.count - 1, b.count + 1):
            if wrong > 0 and observed:
                changed = (*kernel.barriers[:k], replace(b, count=wrong), *kernel.barriers[k + 1 :])
                yield replace(program, kernels=(replace(kernel, barriers=changed),))


def nbytes(program: RoleProgram):
    for by in (-16, 16):
        yield edit(program, lambda s, by=by: replace(s, nbytes=s.nbytes + by) if isinstance(s, m.Expect) else s)

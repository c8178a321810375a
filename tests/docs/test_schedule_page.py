"""The page of schedules: each line and lever in one form, its example compiled and simulated, each of its refusals provoked."""

from __future__ import annotations

import re
from functools import cache

import pytest

import wgdsl
from tests.docs.pages import FORM, ROOT, sections
from tests.docs.refusals import REFUSALS, Case
from tests.programs.edits import edit
from wgdsl.foundation.source import Source
from wgdsl.roles.model import Loop, RoleProgram, Wgmma, walk
from wgdsl.runtime.kernel import Kernel
from wgdsl.syntax.parser import parse
from wgdsl.tools.running import run

SECTIONS = sections()
SIZES = ({"M": 130, "N": 200}, {"M": 300, "N": 270}, {"M": 1, "N": 0})  # a tile and a bit, several tiles, none
OTHERS = {"B": 2, "G": 1, "R": 2, "K": 200}
FIXED = {"D": 64, "E": 64}


@cache
def programs() -> dict[str, str]:
    """The shipped programs, as texts."""
    return {parse(Source(p, p.read_text("utf-8"))).programs[0].name: p.read_text("utf-8") for p in ROOT.glob("examples/*/*.wg")}


@cache
def program_of(base: str) -> str:
    """The name of the program that a shipped schedule is for."""
    found = {s.name: s for p in ROOT.glob("schedules/*/*.wg") for s in parse(Source(p, p.read_text("utf-8"))).schedules}
    while found[base].extends:
        base = found[base].extends or ""
    return found[base].program


def compiled(schedule: str, *edits: tuple[str, str], dims: dict[str, int], **options: object) -> Kernel:
    """The kernel of a schedule that extends a shipped one."""
    name = program_of(re.findall(r"extends (\w+)", schedule)[0])
    text = edit(programs()[name], *edits)
    needed = {d: n for d, n in dims.items() if d in re.findall(r"\w+", text.partition("type")[0])}
    needed = {d: n for d, n in needed.items() if d != "K" or name == "row_softmax"}  # else it is streamed
    return wgdsl.compile(text, schedule=f"wg 1\n{schedule}", dims=needed, types={"T": "bf16"}, options=options, build=False)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda s: s.title)
def test_every_section_has_the_form(section):
    assert tuple(label for label, _ in section.bullets) == FORM
    assert section.examples
    assert {clause for clause, _ in section.refusals} == set(REFUSALS.get(section.title, ()))


def test_every_case_is_of_a_section():
    assert set(REFUSALS) == {s.title for s in SECTIONS if s.refusals}


EXAMPLES = [
    pytest.param(settings, text, id=f"{s.title}: {name}")
    for s in SECTIONS
    for settings, block in s.examples
    for text in re.findall(r"^schedule (?:.*\n)*?\}\n", block, re.MULTILINE)
    for name in re.findall(r"^schedule (\w+)", text)
]


@pytest.mark.parametrize("settings, text", EXAMPLES)
def test_each_example_is_right(settings, text):
    """In the simulator, at awkward sizes; attention with and without a mask."""
    options = [{"causal": True}] if settings == "causal=true" else [{}]
    options += [{"causal": True}] if options == [{}] and "attention" == program_of(re.findall(r"extends (\w+)", text)[0]) else []
    for chosen in options:
        kernel = compiled(text, dims={**FIXED, "K": 64}, **chosen)
        for sizes in SIZES:
            dims = {d: ({**OTHERS, **sizes})[d] for d in kernel.graph.dims}
            assert run(kernel, dims, device="sim", check=True).right, (chosen, sizes)


CASES = [
    pytest.param(case, code, id=f"{s.title}: {clause[:40]} {k}")
    for s in SECTIONS
    for clause, code in s.refusals
    for k, case in enumerate(REFUSALS.get(s.title, {}).get(clause, ()))
]


@pytest.mark.parametrize("case, code", CASES)
def test_each_refusal_has_its_code(case: Case, code: str):
    with pytest.raises(wgdsl.WgError) as refused:
        compiled(f"schedule wrong extends {case.base} {{\n  {case.lines}\n}}\n", *case.edits, dims=dict(case.dims))
    assert code in [p.code for p in refused.value.problems], str(refused.value)

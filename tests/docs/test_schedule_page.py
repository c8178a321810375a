"""The page of schedules: each line and lever in one form, its example compiled and simulated, each of its refusals provoked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import get_args

import pytest

import wgdsl
from tests.docs.pages import FORM, ROOT, blocks, sections
from tests.docs.refusals import DOCUMENTS, REFUSALS, Case
from tests.programs.edits import edit
from wgdsl.diagnostics import schedule as schedule_problems
from wgdsl.diagnostics import transform as transform_problems
from wgdsl.diagnostics.catalogue import problems_of
from wgdsl.diagnostics.emit import CompilerWarning
from wgdsl.foundation.source import Source
from wgdsl.roles.model import Loop, Wgmma, walk
from wgdsl.runtime.kernel import Kernel
from wgdsl.syntax import ast
from wgdsl.syntax.parser import parse
from wgdsl.tools.running import run

SECTIONS = sections()
SIZES = ({"M": 130, "N": 200}, {"M": 300, "N": 270}, {"M": 1, "N": 0})  # a tile and a bit, several tiles, none
OTHERS = {"B": 1, "G": 1, "R": 2, "K": 200}
FIXED = {"D": 64, "E": 64}


@cache
def programs() -> dict[str, str]:
    """The shipped programs, as texts."""
    texts = [p.read_text("utf-8") for p in ROOT.glob("examples/*/*.wg")]
    return {program.name: text for text in texts for program in parse(Source("example.wg", text)).programs}


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
    types = {"T": "e4m3" if "type   T in {e4m3" in text else "bf16"}
    return wgdsl.compile(text, schedule=f"wg 1\n{schedule}", dims=needed, types=types, options=options, build=False)


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
    masks, edits = ([True] if settings == "causal=true" else [False, True]), ()
    if settings == "documents":
        masks, edits = [False], DOCUMENTS
    is_attention = program_of(re.findall(r"extends (\w+)", text)[0]).startswith("attention")
    fixed = {**FIXED, "K": 64, **{d: int(n) for d, n in re.findall(r"(\w)=(\d+)", settings)}}
    more: dict[str, object] = dict(re.findall(r"(\w+)=([a-z]+)", settings.replace("causal=true", "")))
    options = [{"causal": m, **more} for m in masks] if is_attention else [more]
    for chosen in options:
        kernel = compiled(text, *edits, dims=fixed, **chosen)
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


# Nothing is left out.

PAGE = ROOT / "docs" / "schedule.md"
UNBUILT = [(kind.removeprefix("unbuilt "), text) for kind, text in blocks(PAGE) if kind.startswith("unbuilt ")]


@pytest.mark.parametrize("code, text", UNBUILT)
def test_what_is_read_and_not_built(code, text):
    with pytest.raises(wgdsl.WgError) as refused:
        compiled(text, dims=FIXED)
    assert refused.value.problems[0].code == code and "not yet supported" in str(refused.value)


def shown() -> str:
    """All code of the page."""
    page = PAGE.read_text("utf-8")
    return " ".join([*re.findall(r"`([^`\n]+)`", page), *(text for kind, text in blocks(PAGE) if "explicit" not in kind)])


def test_every_keyword_of_schedules_stands_on_the_page():
    grammar = (ROOT / "grammar" / "wg.lark").read_text("utf-8")
    part = grammar[grammar.index("// Schedules.") : grammar.index("// Explicit form")]
    wanted = set(re.findall(r'"([A-Za-z_]+)"', part))
    assert len(wanted) > 50 and wanted <= set(re.findall(r"[A-Za-z_]+", shown()))


def test_every_line_and_step_has_an_example():
    """In the blocks of this page and of the files of the language page."""
    page = {kind: text for kind, text in blocks(PAGE) if kind == "steps"}
    texts = [f"wg 1\n{t}" for kind, t in blocks(PAGE) if kind.partition(" ")[0] in ("example", "unbuilt")]
    texts += [f"wg 1\nschedule s for p on sm_90a {{ math {{\n{t}\n}} }}" for t in page.values()]
    texts += [t for kind, t in blocks(ROOT / "docs" / "language.md") if kind.startswith("file ")]
    nodes = {type(n) for t in texts for s in parse(Source("page.wg", t)).schedules for n in tree(s)}
    lines = {get_args(x) or (x,) for x in get_args(ast.ScheduleItem)}
    steps = {x for name, x in vars(ast).items() if name.endswith("Step") and isinstance(x, type)}
    assert {x for group in lines for x in group} | steps - {ast.ProbeStep} <= nodes
    assert "probe P[j]" in shown()


def tree(node: object) -> Iterator[object]:
    """Every node of a schedule."""
    if isinstance(node, tuple):
        for x in node:
            yield from tree(x)
    elif isinstance(node, ast.Node):
        yield node
        for f in fields(node):
            yield from tree(getattr(node, f.name))


def test_every_mistake_of_a_schedule_stands_on_the_page():
    page = PAGE.read_text("utf-8")
    codes = {p.code for p in (*problems_of(schedule_problems), *problems_of(transform_problems))}
    assert {code for code in codes if code not in page} == set()


# What the page says becomes of a line.


def steps(kernel: Kernel, kind: type) -> list:
    return [s for k in kernel.roles.kernels for r in k.roles for s in walk(r.steps) if isinstance(s, kind)]


def attention(base: str, lines: str = "", *edits: tuple[str, str], **options: object) -> Kernel:
    return compiled(f"schedule s extends {base} {{ {lines} }}\n", *edits, dims=FIXED, **options)


WINDOW = ("where not causal or j <= i + N - M", "where j <= i and i - j < 1000")


def masks(kernel: Kernel) -> list[str]:
    """What each loop of products tests."""
    roles = [r for k in kernel.roles.kernels for r in k.roles]
    loops = (s for r in roles for s in walk(r.steps) if isinstance(s, Loop) and any(isinstance(x, Wgmma) for x in walk(s.body)))
    return [s.mask for s in loops]


@pytest.mark.parametrize("base, copies", [("simple", 3), ("fa3", 4), ("three", 4)])
def test_a_window_gives_three_loops_and_four_copies_at_most(base, copies):
    kernel = attention(base, "", WINDOW)
    front, middle, behind = masks(kernel)
    assert "partial" in front and middle == "{}" and "partial" in behind
    products = [s.acc for s in steps(kernel, Wgmma)]
    assert {products.count(acc) for acc in products} == {copies}


def test_a_condition_that_is_not_affine_is_tested_in_every_tile():
    kernel = attention("simple", "", ("where not causal or j <= i + N - M", "where (i + j) % 3 > 0 or j < 5"))
    assert masks(kernel) and all("where" in m for m in masks(kernel))


def test_the_ring_of_items_is_derived():
    (kernel,) = attention("fa3", "grid persistent dynamic over (b, g, r, i)").roles.kernels
    assert next(r for r in kernel.rings if r.name == "work").stages == 2


def test_longest_first_changes_nothing_where_items_are_equally_long():
    line = "grid persistent dynamic over (b, g, r, i)"

    def order(text: str, causal: bool):
        return attention("fa3", text, causal=causal).roles.kernels[0].grid.order

    assert order(f"{line} longest_first", False) == order(line, False)
    assert order(f"{line} longest_first", True) != order(line, True)


def test_two_sets_of_registers_unroll_the_loop_twice():
    text = next(t for s in SECTIONS if s.title == "regs P ring 2" for _, t in s.examples)
    kernel = compiled(text, dims=FIXED)
    assert 2 in [s.step for s in steps(kernel, Loop)]
    with pytest.warns(CompilerWarning, match="WG0503"):
        _ = kernel.cubin


# The tables of shipped schedules.


def rows() -> list[list[str]]:
    page = (ROOT / "docs" / "schedule.md").read_text("utf-8")
    part = page.partition("## Shipped schedules\n")[2].partition("\n## ")[0]
    return [[c.strip() for c in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("| ")]


def test_the_tables_name_every_shipped_schedule():
    named = {n for row in rows() for cell in row[:4] for n in re.findall(r"`(\w+)`", cell)}
    files = [parse(Source(p, p.read_text("utf-8"))) for p in ROOT.glob("schedules/*/*.wg")]
    assert named == {s.name for f in files for s in f.schedules} | {
        f.program for s in files for f in s.schedules if f.program not in ("", "attention")
    }


RECOMMENDED = [
    pytest.param(name, int(d), mask == "causal", int(count), int(keys), id=name)
    for d, mask, names, shapes in (row[:4] for row in rows() if row[0].isdigit())
    for name, (count, keys) in zip(re.findall(r"`(\w+)`", names), re.findall(r"(\d) x (\d+)", shapes), strict=True)
]


@pytest.mark.parametrize("name, d, causal, count, keys", RECOMMENDED)
def test_what_is_recommended_compiles_for_it(name, d, causal, count, keys):
    kernel = compiled(f"schedule s extends {name} {{ }}\n", dims={"D": d, "E": d}, causal=causal)
    (lowered,) = kernel.roles.kernels
    assert next(r.count for r in lowered.roles if r.name == "math") == count
    assert {s.n for s in steps(kernel, Wgmma)} == {keys, d}

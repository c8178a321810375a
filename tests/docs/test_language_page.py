"""The page of the language: what its tables say that expressions and reductions are, in the evaluator and in the simulator; its
refusals; and that nothing of the grammar is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import wgdsl
from tests.docs.pages import ROOT, blocks
from tests.docs.tables import REDUCED, VALUES, expression, reduction
from tests.docs.test_docs import FRAMES
from tests.programs.test_language import SCHEDULE, program
from wgdsl.analyse.analyse import analyse
from wgdsl.analyse.expressions import FUNCTIONS
from wgdsl.analyse.values import CASTS
from wgdsl.foundation.source import Source
from wgdsl.syntax import ast
from wgdsl.syntax.parser import parse

PAGE = ROOT / "docs" / "language.md"
TEXT = PAGE.read_text("utf-8")
GRAMMAR = (ROOT / "grammar" / "wg.lark").read_text("utf-8")


def test_the_tables_are_there():
    assert len(VALUES) > 50 and len(REDUCED) > 15


@pytest.mark.parametrize("device", ["reference", "sim"])
@pytest.mark.parametrize("written, value", VALUES)
def test_an_expression_is_what_the_page_says(written, value, device):
    np.testing.assert_allclose(expression(written, device), value, rtol=1e-6)


def test_offsets_have_64_bits():
    text = wgdsl.compile(program("in w: f32[M, N]\nC[i,n] = Acc[i,n] + w[i,n]"), schedule=SCHEDULE, build=False).cuda
    strides = re.findall(r"(?:^|[,(])\s*([a-z ]+) (\w+_stride\d)(?=[,)])", text, re.MULTILINE)
    assert len(strides) >= 4 and {kind for kind, _ in strides} == {"long long"}


@pytest.mark.parametrize("device", ["reference", "sim"])
@pytest.mark.parametrize("written, of, value", REDUCED)
def test_a_reduction_is_what_the_page_says(written, of, value, device):
    np.testing.assert_allclose(reduction(written, of, device), value, rtol=1e-6)


REFUSED = [(kind.removeprefix("refused "), text) for kind, text in blocks(PAGE) if kind.startswith("refused ")]


@pytest.mark.parametrize("code, items", REFUSED)
def test_what_the_page_says_is_refused(code, items):
    with pytest.raises(wgdsl.WgError) as refused:
        analyse(parse(Source("refused.wg", program(items))).programs[0])
    assert {p.code for p in refused.value.problems} == {code}


# Nothing is left out.


def nodes(node: object) -> Iterator[ast.Node]:
    """Every node of a tree."""
    if isinstance(node, tuple):
        for x in node:
            yield from nodes(x)
    elif is_dataclass(node):
        if isinstance(node, ast.Node):
            yield node
        for f in fields(node):
            yield from nodes(getattr(node, f.name))


def section(begin: str, end: str) -> str:
    return GRAMMAR[GRAMMAR.index(begin) : GRAMMAR.index(end)]


def keywords(text: str) -> set[str]:
    """The words in quotes of a part of the grammar."""
    return set(re.findall(r'"([a-z_]+)"', text))


def programs_shown() -> list[ast.Node]:
    texts = [
        FRAMES.get(kind, FRAMES.get(kind.partition(" ")[0], "{}")).format(text)
        for kind, text in blocks(PAGE)
        if not kind.startswith("file")
    ]
    expressions = [f"wg 1\nprogram p {{ C[i] = {w} }}" for w, *_ in (*VALUES, *REDUCED)]
    return [x for t in (*texts, *expressions) for p in parse(Source("page.wg", t)).programs for x in nodes(p)]


def test_every_sort_of_declaration_and_expression_has_an_example():
    shown = programs_shown()
    items = {ast.OptionDecl, ast.DimsDecl, ast.TypeDecl, ast.ParamDecl, ast.RequireDecl, ast.AssumeDecl, ast.LetDecl}
    items |= {ast.DefDecl, ast.IndexDecl, ast.Statement}
    parts = {ast.Number, ast.Bool, ast.Name, ast.Index, ast.Call, ast.Unary, ast.Binary, ast.Compare, ast.Reduce}
    assert items | parts <= {type(x) for x in shown}
    sorts = re.findall(r"\w+", section("_program_item:", "option:").partition(":")[2])
    assert len({*sorts} - {"BROKEN"}) == 11, "a new sort of item needs an example here"


def test_every_operator_reduction_and_function_has_an_example():
    shown = programs_shown()
    quoted = set(re.findall(r'"([^"\s]+)"', section("?expr:", "NAME: /")))
    operators = {q for q in quoted if q in ("and", "or", "not") or not re.search(r"[\w\[\](),]", q)}
    assert len(operators) == 15
    used = {x.op for x in shown if isinstance(x, ast.Unary | ast.Binary)} | {
        op for x in shown if isinstance(x, ast.Compare) for op in x.ops
    }
    assert operators <= used
    reductions = set(re.findall(r"REDUCER: /(.*)/", GRAMMAR)[0].split("|"))
    assert reductions <= {x.op for x in shown if isinstance(x, ast.Reduce)}
    named = set(re.findall(r"`([a-z_0-9]+)[(`]", TEXT))
    assert {*FUNCTIONS, *CASTS} <= named


def test_every_keyword_of_programs_stands_on_the_page():
    code = " ".join([*re.findall(r"`([^`\n]+)`", TEXT), *(text for _, text in blocks(PAGE))])
    words = set(re.findall(r"[a-z_]+", code))
    wanted = keywords(section("// Programs.", "// Schedules.")) | keywords(section("?expr:", "NAME: /"))
    assert wanted - {"increasing"} <= words

"""The page of the language: what its tables say that expressions and reductions are, in the evaluator and in the simulator; its
refusals; and that nothing of the grammar is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache

import ml_dtypes
import numpy as np
import pytest

import wgdsl
from tests.docs.pages import ROOT, blocks
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


def rows(*header: str) -> list[list[str]]:
    """The cells of all tables with that header."""
    head = re.escape(f"| {' | '.join(header)} |\n") + r"\|[ -|]*\|\n"
    tables = re.findall(rf"^{head}((?:\|.*\n)*)", TEXT, re.MULTILINE)
    return [[c.strip() for c in line.strip("|").split("|")] for table in tables for line in table.splitlines()]


VALUES = [(written.strip("`"), float(value)) for written, value in rows("written", "is")]
REDUCED = [(w.strip("`"), of, float(value)) for w, of, value in rows("written", "a row of `S`", "is")]


def test_the_tables_are_there():
    assert len(VALUES) > 50 and len(REDUCED) > 15


# `i` is 5 and `n` is 3 in the element that is looked at.
GIVEN = "in x: f32\nin v: f32[N]\nin w: i32[N]\nrequire N > 3\n"
V, W = np.array([np.nan, np.inf, -np.inf, 2.5], np.float32), np.array([7, -7, 3, -3], np.int32)
A, B = np.ones((6, 8), np.float16), np.ones((4, 8), np.float16)


@pytest.mark.parametrize("device", ["reference", "sim"])
@pytest.mark.parametrize("written, value", VALUES)
def test_an_expression_is_what_the_page_says(written, value, device):
    kernel = wgdsl.compile(
        program(f"{GIVEN}C[i,n] = 0.0 * Acc[i,n] + ({written})"), schedule=SCHEDULE, types={"T": "f16"}, build=False
    )
    found = float(np.asarray(kernel(A=A, B=B, x=0.0, v=V, w=W, device=device))[5, 3])
    np.testing.assert_allclose(found, value, rtol=1e-6)


ROWS = """wg 1
program rows {{
  dims M, N, K
  in   A: bf16[M, K]
  in   B: bf16[N, K]
  out  Y: {kind}[M]
  S[i,n] = sum[k] A[i,k] * B[n,k]
  Y[i]   = {written}
}}
schedule one for rows on sm_90a {{
  tile   i 64, n 64
  stream n
  grid   over (i)
  role load : 1 warpgroup, registers 24
  role math : 1 warpgroup, registers 240, split i
  smem As = A[i] by tma
  smem Bs = B[n] by tma ring 2
  load {{ fill As for n {{ fill Bs[n] }} }}
  math {{
    for n {{
      issue S[n] = wgmma(As, Bs[n])
      await S[n]
      compute Y[n]
    }}
    finish Y
  }}
}}
"""


@cache
def rows_kernel(written: str):
    kind = "i32" if "arg" in written else "f32"
    return wgdsl.compile(ROWS.format(kind=kind, written=written), dims={"K": 16}, build=False)


@pytest.mark.parametrize("device", ["reference", "sim"])
@pytest.mark.parametrize("written, of, value", REDUCED)
def test_a_reduction_is_what_the_page_says(written, of, value, device):
    """A row of the product is the column of `B` that `A` picks."""
    elements = [float(x) for x in of.split(",") if x.strip()]
    a, b = np.zeros((1, 16), ml_dtypes.bfloat16), np.zeros((len(elements), 16), ml_dtypes.bfloat16)
    a[0, 0], b[:, 0] = 1, elements
    found = float(np.asarray(rows_kernel(written)(A=a, B=b, device=device))[0])
    np.testing.assert_allclose(found, value, rtol=1e-6)


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

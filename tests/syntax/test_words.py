"""Keywords against names, depth, and what ends a line."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace

import pytest

from tests.syntax.texts import ROOT, codes, expression, items, parsed, plan, problems, steps
from wgdsl.diagnostics.syntax import ReservedWord, TooDeep
from wgdsl.foundation.source import Source
from wgdsl.syntax import ast
from wgdsl.syntax.depth import MAX_DEPTH
from wgdsl.syntax.lexer import RESERVED
from wgdsl.syntax.lines import Line
from wgdsl.syntax.parser import parse
from wgdsl.syntax.printer import show
from wgdsl.syntax.tables import tables

KEYWORDS = sorted(t for t in tables().terminals if t.isidentifier())
FREE = [k for k in KEYWORDS if k not in RESERVED]

EVERYWHERE = """program {0} {{
  option {0}_o = 1
  dims {0}, N = {0} + {0} * 2
  type {0}_t in {{f16, {0}}}
  in {0}: {0}[{0}, N] when {0} > 0
  in q_1: f32 = {0}
  out {0}: f32
  require {0} < {0} and not {0}
  let {0} = {0}
  when_[{0}] = {0}[{0}] + {0}({0}) where {0} < N else {0} when {0} == {0}
  {0}[i] = sum[{0}] {0}[{0},i] * {0}
  {0}[i] = {0} {0}[j] = {0}
  index {0} < {0}, j < {0}
  def {0}({0}) = {0} / 2
}}
schedule {0} for {0} on {0} {{
  tile {0} 128, {0} {0}
  fuse {0} = ({0}, {0})
  stream {0} {0} {{ }}
  stream {0} split {0} in {0}
  grid over ({0}, i)
  {0} {{ }}
  grid over (i) section ({0}) within 1 B with {0}
  combine {0}, {0} by merge
  skip empty per warpgroup
  tune {{ tile {0} in {{ {0} }}; option {0} in {{ {0} }} ring {0} in {{ {0} }} }}
  kernel {0} computes {0}, {0} {{ {0} {{ pack {0} }} stream {0} }}
  role {0} : {0} warps, registers {0}, split {0}
  smem {0} = {0}[{0}] by {0} ring {0} over {0}
  regs {0} regs {0} as {0} times {0} permute {0} by {0}
  {0} {{
    fill {0}, {0}[{0}+1] await {0} issue {0} += {0}({0}, {0}[{0}])
    compute {0} pack {0} probe {0} rescale {0} when grown by {0} finish {0}, {0} via {0}, {0}
    for {0} {{ once {{ await {0} }} in turn {{ await {0} }} }}
  }}
}}
schedule {0} extends {0} for {0} on {0} with {0} = {0}, i = {0} {{ {0} {{ }} }}
schedule {0} extends {0} {{ {0} {{ }} }}
roles {0} for {0} on {0} with {0} = {0}, {0} = 1 {{
  kernel {0} {{
    computes {0} by {0} on {0}
    grid over ({0} in {0} by {0})
    tensor {0}: {0}[{0}, {0}] written
    index {0} < {0}
    param dim {0} of {0} axis {0}: {0}
    map {0} of {0}: {0} dims (axis {0} x {0} < {0}) box ({0}, {0}) swizzle {0}
    smem {0} = {0}[{0}, {0}]: {0} {0} x {0} swizzle {0} ring {0} parts {0} stages {0} at {0} stride {0} over {0}
    ring {0} stages {0} holds ({0}, {0}) full {0} empty {0}
    barrier {0} of {0} count {0} parts {0} stages {0} at {0}
    role {0} : warpgroups {0} +: {0} registers {0} {{
      value {0}: tile 64 x {0} {0} partial over {0}
      let {0} = {0} loop {0} {0} .. {0} mask {{{0}: {0}}} {{ wait {0}[{0}, s] parity p }}
      if {0} {{ arrive {0}[s] by one thread }} else {{ advance {0} }}
      tma {0}[{0}, s] panel {0} = {0}[{0}, {0} +: {0}] by {0} at ({0}, {0}) signals {0}[s]
      wgmma {0} = {0}[s] k_major * {0} first shape 64 x {0} x {0} {0}
      wgmma {0} += {0} * {0}[s] mn_major first if {0} shape 64 x {0} x {0} {0}
      wait_group {0} ready {0}, {0} sync bar {0} threads {0} pack {0} = {0} zero {0}
      put {0}[{0}] = {0} over {0} = {0} +: {0}
      compute {{
        vote {0} = any[{0} = {0} +: {0}] {0}
        {0}[{0} = {0} +: {0}, {0} = {0} +: {0}] = {0}({0}, {0}) when {0}
        {0}[{0} = {0} +: {0}] = max[{0} = {0} +: {0}] {0} from {0} lanes full
        {0}[{0} = {0} +: {0}] = {0}
        complete {0} by sum
      }}
    }}
  }}
}}
"""


def renamed(part, names: dict[str, str]):
    """The tree with other names; the words of the language in it stay."""
    if isinstance(part, str):
        return names.get(part, part)
    if isinstance(part, tuple):
        return tuple(renamed(p, names) for p in part)
    if not isinstance(part, ast.Node):
        return part
    if isinstance(part, Line):
        return replace(part, parts=tuple(p if isinstance(p, str) else renamed(p, names) for p in part.parts))
    own = ("mark", "step", "major", "span", "direction", "kind", "unit", "op", "persistent", "text", "how", "what")
    return replace(part, **{f.name: renamed(getattr(part, f.name), names) for f in fields(part) if f.name not in own})


@pytest.mark.parametrize("word", [*FREE, "letter", "mask", "masked", "in_smem", "stage0", "for_", "q1", "summed", "infinite"])
def test_a_word_that_is_not_reserved_may_name_anything(word):
    """The tree is the one that any other name gives, so no keyword was taken for another thing."""
    text = EVERYWHERE.format(word)
    tree = parsed(text)
    assert renamed(tree, {word: "zz", f"{word}_o": "zz_o", f"{word}_t": "zz_t"}) == parsed(EVERYWHERE.format("zz"))
    assert parsed(show(tree)) == tree


@pytest.mark.parametrize("word", sorted(RESERVED))
@pytest.mark.parametrize("line", ["dims {0}", "in {0}: f32[N]", "let {0} = 1", "{0}[i] = 1", "out {0}: f32", "index {0} < 3"])
def test_a_reserved_word_as_a_name_is_an_error_that_says_so(word, line):
    (problem,) = problems("program p {\n  dims N\n  " + line.format(word) + "\n}\n")
    assert isinstance(problem, ReservedWord) and problem.word == word
    assert problem.span is not None and problem.span.line == 3 and problem.span.text == word


@pytest.mark.parametrize("text", ["letx = 1", "inX: f32", "dimsN", "let x=1 lety=2", "option a=1 optionb=2"])
def test_a_keyword_ends_where_the_word_ends(text):
    assert problems(f"program p {{\n{text}\n}}")
    assert codes("schedule s for p on t { tilei 128 }") == ["WG0109"]


def test_names_that_begin_with_a_keyword_are_whole():
    assert items("let letter = inner + where_ * notable")[0] == ast.LetDecl(
        name="letter",
        value=ast.Binary(
            op="+",
            left=ast.Name(id="inner"),
            right=ast.Binary(op="*", left=ast.Name(id="where_"), right=ast.Name(id="notable")),
        ),
    )


# Depth.


@pytest.mark.parametrize("count", [1000, 20_000])
def test_parentheses_may_nest(count):
    assert expression("(" * count + "a" + ")" * count) == ast.Name(id="a")


@pytest.mark.parametrize(
    "text",
    [
        " + ".join(["a"] * MAX_DEPTH),
        "-" * (MAX_DEPTH - 1) + "a",
        "not " * (MAX_DEPTH - 1) + "a",
        "exp(" * (MAX_DEPTH - 1) + "a" + ")" * (MAX_DEPTH - 1),
        "a[" * (MAX_DEPTH - 1) + "i" + "]" * (MAX_DEPTH - 1),
        " ** ".join(["a"] * MAX_DEPTH),
        "sum[j] " * (MAX_DEPTH - 1) + "a",
    ],
)
def test_depth_up_to_the_limit_works_in_every_pass_over_the_tree(text):
    e = expression(text)
    assert expression(show(e)) == e
    assert hash(e) == hash(expression(text)) and repr(e)


@pytest.mark.parametrize("count", [MAX_DEPTH + 2, 1000, 5000])
@pytest.mark.parametrize("begin, end", [("a + ", ""), ("a ** ", ""), ("-", ""), ("not ", ""), ("f(", ")"), ("a[", "]")])
def test_deeper_expressions_are_refused_with_their_line(begin, end, count):
    (problem,) = problems("program p {\n  dims N\n  let x = " + begin * count + "a" + end * count + "\n}")
    assert isinstance(problem, TooDeep) and problem.what == "expression"
    assert problem.span is not None and problem.span.line == 3


def test_deep_blocks_are_refused_with_their_line():
    deep = 2000
    (problem,) = problems("schedule s for p on t {\nm {\n" + "for j {\n" * deep + "fill A\n" + "}\n" * deep + "}\n}")
    assert isinstance(problem, TooDeep) and problem.what == "block"
    assert problem.span is not None and problem.span.line == MAX_DEPTH + 3


def test_long_texts():
    statements = items("\n".join(f"T{n}[i] = T{n + 1}[i] + {n}" for n in range(5000)))
    assert len(statements) == 5000 and statements[-1] == items("T4999[i] = T5000[i] + 4999")[0]
    assert len(plan("\n".join("role a : 1 warp" for _ in range(2000)))) == 2000
    assert len(steps(" ".join("fill K[j]" for _ in range(2000)))) == 2000


def test_the_same_tree_for_every_hash_seed():
    code = (
        "import hashlib; from wgdsl.syntax.parser import parse, read; from pathlib import Path\n"
        "files = sorted(Path('schedules').rglob('*.wg')) + sorted(Path('examples').rglob('*.wg'))\n"
        "print(hashlib.sha256(repr([parse(read(f)) for f in files]).encode()).hexdigest())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in range(4)
    }
    assert len(runs) == 1 and len(runs.pop()) == 65


# Where items end.


def test_items_need_no_line_ends():
    spread = items("dims N\nin X: f32[N]\nout Y: f32[N]\nlet h = N\nY[i] = X[i]\nZ[i] = h")
    assert items("dims N in X: f32[N] out Y: f32[N] let h = N Y[i] = X[i] Z[i] = h") == spread
    assert len(spread) == 6


def test_an_expression_goes_on_over_line_ends():
    assert items("Y[i] =\n a\n +\n b\n where i\n < 3\n else\n 0\n when c") == items("Y[i] = a + b where i < 3 else 0 when c")
    assert items("Y[i] = a\n  - b") == items("Y[i] = a - b")


def test_steps_share_lines():
    assert steps("fill Qs.0  for j { fill Ks[j+1]  once { fill Qs.rest }  fill Vs[j] }") == (
        ast.FillStep(targets=(ast.Name(id="Qs.0"),)),
        ast.ForStep(
            axis="j",
            body=(
                ast.FillStep(
                    targets=(
                        ast.Index(
                            base=ast.Name(id="Ks"),
                            indices=(ast.Binary(op="+", left=ast.Name(id="j"), right=ast.Number(value=1)),),
                        ),
                    )
                ),
                ast.OnceStep(body=(ast.FillStep(targets=(ast.Name(id="Qs.rest"),)),)),
                ast.FillStep(targets=(ast.Index(base=ast.Name(id="Vs"), indices=(ast.Name(id="j"),)),)),
            ),
        ),
    )


def test_spans_of_items():
    source = Source("t.wg", "program p {\n  in X: f32[N] when a  # c\n}\nschedule s for p on t { m { await A[j] } }")
    file = parse(source)
    found = [file.programs[0].items[0], file.schedules[0], file.schedules[0].items[0].steps[0]]  # type: ignore[union-attr]
    texts = ["in X: f32[N] when a", "schedule s for p on t { m { await A[j] } }", "await A[j]"]
    assert [n.span.text for n in found if n.span] == texts

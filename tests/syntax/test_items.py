"""Each declaration, line and step gives the node that ast.py documents for it."""

from __future__ import annotations

import lark
import pytest

from tests.syntax.texts import codes, expression, items, parsed, plan, problems, steps
from wgdsl.foundation.resources import grammar_path
from wgdsl.syntax import ast
from wgdsl.syntax.tables import _NoLexer

N = ast.Name
ONE, TWO = ast.Number(value=1), ast.Number(value=2)
MATH = ast.RoleDecl(name="m", count=TWO, unit="warpgroup", registers=TWO, split="i")


def test_the_grammar_has_no_conflict_that_lark_settles_by_itself():
    lark.Lark(grammar_path().read_text(encoding="utf-8"), parser="lalr", lexer=_NoLexer, strict=True)


@pytest.mark.parametrize(
    "line, node",
    [
        ("option causal = false", ast.OptionDecl(name="causal", default=ast.Bool(value=False))),
        ("option act in {none, 2}", ast.OptionDecl(name="act", choices=(N(id="none"), TWO))),
        ("dims B, H = G * 2", ast.DimsDecl(entries=(("B", None), ("H", ast.Binary(op="*", left=N(id="G"), right=TWO))))),
        ("type T in {f16, bf16}", ast.TypeDecl(name="T", choices=("f16", "bf16"))),
        ("in x: f32", ast.ParamDecl(direction="in", name="x", dtype="f32")),
        ("in x: f32 = 1 when a", ast.ParamDecl(direction="in", name="x", dtype="f32", default=ONE, when=N(id="a"))),
        ("out L: T[B, 1] when a", ast.ParamDecl(direction="out", name="L", dtype="T", shape=(N(id="B"), ONE), when=N(id="a"))),
        ("require a > 1", ast.RequireDecl(condition=expression("a > 1"))),
        ("assume distinct", ast.AssumeDecl(words=("distinct",))),
        ("assume cu_q increasing", ast.AssumeDecl(words=("cu_q", "increasing"))),
        ("let h = 1", ast.LetDecl(name="h", value=ONE)),
        ("def f(x, c) = 1", ast.DefDecl(name="f", parameters=("x", "c"), body=ONE)),
        ("index i < M, j < 2", ast.IndexDecl(entries=(("i", N(id="M")), ("j", TWO)))),
        (
            "Y[i, 1] = a where b else 2 when c",
            ast.Statement(
                target=ast.Index(base=N(id="Y"), indices=(N(id="i"), ONE)),
                value=N(id="a"),
                where=N(id="b"),
                otherwise=TWO,
                when=N(id="c"),
            ),
        ),
        ("Y[i] = 1 when c", ast.Statement(target=ast.Index(base=N(id="Y"), indices=(N(id="i"),)), value=ONE, when=N(id="c"))),
    ],
)
def test_program_items(line, node):
    assert items(line) == (node,)


@pytest.mark.parametrize(
    "line, node",
    [
        ("option a = 1", ast.OptionDecl(name="a", default=ONE)),
        ("tile i 2, j 64 * 2", ast.TileDecl(entries=(("i", TWO), ("j", expression("64 * 2"))))),
        ("fuse m = (r, i)", ast.FuseDecl(name="m", axes=("r", "i"))),
        ("stream j", ast.StreamDecl(axis="j")),
        ("stream j descending", ast.StreamDecl(axis="j", descending=True)),
        ("grid over (b, i)", ast.GridDecl(axes=("b", "i"))),
        ("grid persistent over (i)", ast.GridDecl(axes=("i",), persistent="static")),
        ("grid persistent static over (i)", ast.GridDecl(axes=("i",), persistent="static")),
        (
            "grid persistent dynamic joined over (b, i) longest_first section (b, h) within 32 MB",
            ast.GridDecl(
                axes=("b", "i"),
                persistent="dynamic",
                joined=True,
                longest_first=True,
                section=("b", "h"),
                section_bytes=32 << 20,
            ),
        ),
        ("role load : 1 warpgroup", ast.RoleDecl(name="load", count=ONE, unit="warpgroup")),
        ("role m : 2 warps, registers 2", ast.RoleDecl(name="m", count=TWO, unit="warp", registers=TWO)),
        ("role m : 2 warpgroups, registers 2, split i", MATH),
        ("role m : 2 warpgroups, split i, registers 2", MATH),
        ("smem Qs = Q[i] by tma", ast.HomeDecl(kind="smem", name="Qs", tensor="Q", indices=("i",), engine="tma")),
        (
            "smem As = A[i, k] by tma ring 2 over X",
            ast.HomeDecl(kind="smem", name="As", tensor="A", indices=("i", "k"), engine="tma", ring=TWO, over="X"),
        ),
        ("smem Oc = O.corr by store", ast.HomeDecl(kind="smem", name="Oc", tensor="O.corr", indices=(), engine="store")),
        ("regs Qr = Q", ast.HomeDecl(kind="regs", name="Qr", tensor="Q", indices=())),
        ("math { }", ast.RoleBody(role="math", steps=())),
    ],
)
def test_schedule_items(line, node):
    assert plan(line) == (node,)


def at(name: str, index: str) -> ast.Index:
    return ast.Index(base=N(id=name), indices=(expression(index),))


@pytest.mark.parametrize(
    "text, node",
    [
        ("fill Qs.0", ast.FillStep(targets=(N(id="Qs.0"),))),
        ("fill As[k], Bs[k]", ast.FillStep(targets=(at("As", "k"), at("Bs", "k")))),
        ("await S[j+1]", ast.AwaitStep(target=at("S", "j + 1"))),
        (
            "issue O += wgmma(P[j], Vs)",
            ast.IssueStep(target=N(id="O"), op="+=", engine="wgmma", left=at("P", "j"), right=N(id="Vs")),
        ),
        ("issue S[j] = mma(Q, K)", ast.IssueStep(target=at("S", "j"), op="=", engine="mma", left=N(id="Q"), right=N(id="K"))),
        ("compute P.exp[j]", ast.ComputeStep(target=at("P.exp", "j"))),
        ("pack P[j-1]", ast.PackStep(target=at("P", "j - 1"))),
        ("rescale O", ast.RescaleStep(target=N(id="O"))),
        ("rescale O when grown by 2", ast.RescaleStep(target=N(id="O"), grown_by=TWO)),
        ("finish O, L via Os, Ls", ast.FinishStep(targets=(N(id="O"), N(id="L")), via=("Os", "Ls"))),
        ("finish X[j]", ast.FinishStep(targets=(at("X", "j"),))),
        ("for j { await A }", ast.ForStep(axis="j", body=(ast.AwaitStep(target=N(id="A")),))),
        ("once { }", ast.OnceStep(body=())),
        ("in turn { pack P }", ast.TurnStep(body=(ast.PackStep(target=N(id="P")),))),
    ],
)
def test_steps(text, node):
    assert steps(text) == (node,)


def test_a_file_holds_programs_and_schedules_in_any_order():
    file = parsed('wg 1\nimport "x.wg"\nschedule s for p on t { }\nprogram p { }\nprogram q { }\n')
    assert (file.version, file.imports) == (1, ("x.wg",))
    assert [p.name for p in file.programs] == ["p", "q"] and [s.name for s in file.schedules] == ["s"]
    assert parsed("program p { }").version is None


@pytest.mark.parametrize(
    "text",
    [
        "program p { X[i] = 1 else 2 }",
        "program p { X = 1 }",
        "program p { out x: f32 = 1 }",
        "program p { def f() = 1 }",
        "program p { let a.b = 1 }",
        "program p { in x: T[] }",
        "program p { dims }",
        "schedule s for p on t { smem A = B[j+1] by tma }",
        "schedule s for p on t { smem A = B ring 2 by tma }",
        "schedule s for p on t { let x = 1 }",
        "schedule s for p on t { m { tile i 2 } }",
        "program p { fill X }",
        "program p { } wg 1",
        "wg 1.5 program p { }",
        "wg 2 program p { }",
    ],
)
def test_refused(text):
    assert len(problems(text)) == 1


def test_the_version_is_checked():
    assert codes("wg 2\nprogram p { }") == ["WG0113"]

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
        ("stream j listed", ast.StreamDecl(axis="j", listed=True)),
        ("stream j descending listed", ast.StreamDecl(axis="j", descending=True, listed=True)),
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
        ("grid over (b) with Qs", ast.GridDecl(axes=("b",), with_home="Qs")),
        (
            "grid persistent dynamic over (b, i) longest_first section (b) within 32 MB with Qs",
            ast.GridDecl(
                axes=("b", "i"),
                persistent="dynamic",
                longest_first=True,
                section=("b",),
                section_bytes=32 << 20,
                with_home="Qs",
            ),
        ),
        ("stream j split s in 2", ast.StreamDecl(axis="j", split_index="s", split_count=TWO)),
        (
            "stream j descending split s in parts",
            ast.StreamDecl(axis="j", descending=True, split_index="s", split_count=N(id="parts")),
        ),
        ("combine O, L by merge", ast.CombineDecl(targets=("O", "L"), how="merge")),
        ("combine C by atomic_add", ast.CombineDecl(targets=("C",), how="atomic_add")),
        ("skip empty per warpgroup", ast.SkipDecl()),
        ("approximate tanh", ast.ApproximateDecl(functions=("tanh",))),
        ("accumulate C promote every 2", ast.AccumulateDecl(tensor="C", every=TWO)),
        ("approximate tanh, exp", ast.ApproximateDecl(functions=("tanh", "exp"))),
        (
            "kernel first computes A, P.sum { tile i 2 stream j }",
            ast.KernelDecl(
                name="first",
                computes=("A", "P.sum"),
                items=(ast.TileDecl(entries=(("i", TWO),)), ast.StreamDecl(axis="j")),
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
        ("regs P ring 2", ast.HomeDecl(kind="regs", name="P", tensor="P", indices=(), ring=TWO)),
        ("regs P", ast.HomeDecl(kind="regs", name="P", tensor="P", indices=())),
        (
            "regs Pr = P as e4m3 times 2 permute v8 ring 2",
            ast.HomeDecl(kind="regs", name="Pr", tensor="P", indices=(), cast="e4m3", times=TWO, permute="v8", ring=TWO),
        ),
        (
            "smem work by atomic ring 2",
            ast.HomeDecl(kind="smem", name="work", tensor="work", indices=(), engine="atomic", ring=TWO),
        ),
        (
            "smem Vt = Vs by transpose ring 2",
            ast.HomeDecl(kind="smem", name="Vt", tensor="Vs", indices=(), engine="transpose", ring=TWO),
        ),
        (
            "tune { tile i in {1, 2}; ring Ks in {2} option act in {a, true}\nregisters m in {1} warpgroups m in {2}; }",
            ast.TuneDecl(
                entries=(
                    ast.Tuning(what="tile", name="i", values=(ONE, TWO)),
                    ast.Tuning(what="ring", name="Ks", values=(TWO,)),
                    ast.Tuning(what="option", name="act", values=(N(id="a"), ast.Bool(value=True))),
                    ast.Tuning(what="registers", name="m", values=(ONE,)),
                    ast.Tuning(what="warpgroups", name="m", values=(TWO,)),
                )
            ),
        ),
        ("tune { }", ast.RoleBody(role="tune", steps=())),
        ("tune { fill X }", ast.RoleBody(role="tune", steps=(ast.FillStep(targets=(N(id="X"),)),))),
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
        ("for j { finish X[j] }", ast.ForStep(axis="j", body=(ast.FinishStep(targets=(at("X", "j"),)),))),
        ("probe P.exp[j+1]", ast.ProbeStep(target=at("P.exp", "j + 1"))),
        ("finish X[j]", ast.FinishStep(targets=(at("X", "j"),))),
        ("for j { await A }", ast.ForStep(axis="j", body=(ast.AwaitStep(target=N(id="A")),))),
        ("once { }", ast.OnceStep(body=())),
        ("in turn { pack P }", ast.TurnStep(body=(ast.PackStep(target=N(id="P")),))),
    ],
)
def test_steps(text, node):
    assert steps(text) == (node,)


@pytest.mark.parametrize(
    "head, expected",
    [
        ("s for p on t", ("p", "t", None, ())),
        ("s extends b", ("", "", "b", ())),
        ("s extends b for p", ("p", "", "b", ())),
        ("s extends b on t", ("", "t", "b", ())),
        ("s extends b for p on t with S = A, P = B", ("p", "t", "b", (("S", "A"), ("P", "B")))),
        ("extends extends extends for for on on with with = with", ("for", "on", "extends", (("with", "with"),))),
    ],
)
def test_the_head_of_a_schedule(head, expected):
    (s,) = parsed(f"schedule {head} {{ tile i 2 }}").schedules
    assert (s.program, s.target, s.extends, tuple((r.old, r.new) for r in s.renames)) == expected
    assert s.items == (ast.TileDecl(entries=(("i", TWO),)),)


def test_a_file_holds_programs_and_schedules_in_any_order():
    file = parsed('wg 1\nimport "x.wg"\nschedule s for p on t { }\nprogram p { }\nprogram q { }\n')
    assert (file.version, file.imports) == (1, (ast.Import(path="x.wg"),))
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
        "schedule s for p { }",
        "schedule s on t { }",
        "schedule s for p on t with S = T { }",
        "schedule s for p on t { stream j split s }",
        "schedule s for p on t { combine O by adding }",
        "schedule s for p on t { skip empty }",
        "schedule s for p on t { kernel k computes A { kernel l computes B { } } }",
        "schedule s for p on t { tune { role i in {1} } }",
        "schedule s for p on t { tune { tile i in {} } }",
        "schedule s for p on t { tile i 2; }",
        "schedule s for p on t { regs P as e4m3[i] }",
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

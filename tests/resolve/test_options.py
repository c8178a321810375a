"""Options of schedules: numbers of a schedule follow from them, and callers choose them as they choose a program's."""

from __future__ import annotations

import re

import pytest

import wgdsl
from tests.lowering import ATTENTION, GEMM, PIPELINED, parse, shipped
from tests.programs.edits import edit
from wgdsl.cli import main
from wgdsl.diagnostics.model import WgError
from wgdsl.foundation.resources import resource
from wgdsl.foundation.source import Source
from wgdsl.resolve.evaluate import Names, evaluate
from wgdsl.resolve.known import ProgramNames
from wgdsl.resolve.settle import settle
from wgdsl.syntax import ast
from wgdsl.syntax.printer import show

NAMES = Names(
    values={"stages": 3, "causal": True, "half": 0.5, "mode": "wide", "D": 64},
    choices={"mode": ("wide", "narrow")},
    open=frozenset(["M"]),
)


def expression(text: str) -> ast.Expr:
    (item,) = parse(Source("t.wg", f"program p {{ let x = {text} }}")).programs[0].items
    assert isinstance(item, ast.LetDecl)
    return item.value


VALUES = """
2 + 3 * 4; -7 / 2; 7 / -2; -7 % 3; 2 ** 3; 7 / 2.0; stages * half; (1 + stages) % 2; min(3, stages, 2); max(1, stages);
1 < stages <= 3; 3 < stages; 1 < 2 > 3; not causal or stages == 3; causal and half < 1; D / 16
"""


@pytest.mark.parametrize("text", [v.strip() for v in VALUES.split(";")])
def test_values_are_pythons(text):
    """Integer `/` floors."""
    python = re.sub(r"(?<!\.)\b(\d+|D) / (-?\d+)(?!\.)", r"\1 // \2", text)
    assert evaluate(expression(text), NAMES) == eval(python, dict(NAMES.values), {"min": min, "max": max})


@pytest.mark.parametrize(
    "text, value",
    [
        ("select(causal, 2, 3)", 2),
        ("select(mode == wide, 256, 128)", 256),
        ("select(mode != narrow, 1, 0)", 1),
        ("select(narrow == mode, 1, 0)", 0),
        ("select(causal, 1, 1 / 0)", 1),
        ("mode", "wide"),
    ],
)
def test_choices(text, value):
    assert evaluate(expression(text), NAMES) == value


@pytest.mark.parametrize(
    "text, code, said",
    [
        ("stage", "WG0910", "did you mean `stages`?"),
        ("M + 1", "WG0910", "dim `M` isn't fixed"),
        ("mode == broad", "WG0910", "there are: `wide`, `narrow`"),
        ("mode + 1", "WG0911", "this is `wide`"),
        ("causal + 1", "WG0911", "this is `true`"),
        ("causal < 1", "WG0911", "compared"),
        ("mode < wide", "WG0911", "compared"),
        ("mode == 3", "WG0911", "compared"),
        ("not stages", "WG0911", "a truth value"),
        ("1 / 0", "WG0911", "no value"),
        ("1 % 0", "WG0911", "no value"),
        ("2 ** 63", "WG0911", "2**63"),
        ("(-8) ** 0.5", "WG0911", "no value"),
        ("sqrt(4)", "WG0911", "select, min, max"),
        ("select(causal, 1)", "WG0911", "select, min, max"),
        ("sum[j] 3", "WG0911", "constants"),
        ("Q[3]", "WG0911", "constants"),
    ],
)
def test_what_has_no_value(text, code, said):
    with pytest.raises(WgError) as e:
        evaluate(expression(text), NAMES)
    (problem,) = e.value.problems
    assert problem.code == code and said in str(e.value)


def settled(lines: str, **options: object) -> str:
    text = f"schedule s for p on t {{ option stages = 2  option lead = 1  option warpgroups = 2\n {lines} }}"
    program = ProgramNames(values={"D": 64}, taken={"D": "dim", "M": "dim", "j": "index", "causal": "option"})
    items = settle(parse(Source("t.wg", text)).schedules[0], options, program).items
    return " | ".join(" ".join(show(i).split()) for i in items if not isinstance(i, ast.OptionDecl))


@pytest.mark.parametrize(
    "lines, plain",
    [
        ("tile i 64 * warpgroups, e D", "tile i 128, e 64"),
        ("role m : warpgroups warpgroups, registers 24 * 10", "role m : 2 warpgroups, registers 240"),
        ("smem K = Q[j] by tma ring stages + 1", "smem K = Q[j] by tma ring 3"),
        ("regs P as e4m3 times 2 ** 4", "regs P as e4m3 times 16"),
        ("stream j split s in stages", "stream j split s in 2"),
        ("stream j split s in M", "stream j split s in M"),
        ("m { for j { fill K[j + lead] fill K[j - 2 * lead] } }", "m { for j { fill K[j+1] fill K[j-2] } }"),
        ("m { compute lead[j] rescale O when grown by stages ** 3 }", "m { compute lead[j] rescale O when grown by 8 }"),
        ("kernel k computes A { option more = stages + 1 tile i more }",
         "kernel k computes A { option more = stages + 1 tile i 3 }"),
        ("tune { tile i in {warpgroups * 64, 32} option stages in {2, 3} }",
         "tune { tile i in {128, 32} option stages in {2, 3} }"),
    ],
)  # fmt: skip
def test_where_options_stand(lines, plain):
    assert settled(lines) == plain


def test_values_of_the_caller():
    assert settled("smem K = Q by tma ring stages", stages=5) == "smem K = Q by tma ring 5"
    assert settled("smem K = Q by tma ring stages", stages="5") == "smem K = Q by tma ring 5"


@pytest.mark.parametrize("value", [True, 2.5, "many", None])
def test_values_that_an_option_does_not_take(value):
    with pytest.raises(WgError, match=r"WG0218\]: option `stages` can't be"):
        settled("tile i stages", stages=value)


@pytest.mark.parametrize(
    "lines, said",
    [
        ("option j = 3", "the name of an index of the program"),
        ("option M = 3", "the name of a dim of the program"),
        ("option causal = 3", "the name of an option of the program"),
        ("option stages = 3", "`stages` is declared twice"),
    ],
)
def test_names_that_are_taken(lines, said):
    with pytest.raises(WgError, match=rf"WG0909\]: .*{said}"):
        settled(lines)


def test_every_problem_is_reported():
    with pytest.raises(WgError) as e:
        settled("tile i x, j y  role m : z warpgroups  option w = 1 / 0")
    assert [p.code for p in e.value.problems] == ["WG0911", "WG0910", "WG0910", "WG0910"]


# Through the compiler.

WITH_OPTIONS = edit(
    PIPELINED,
    ("pipelined", "mine"),
    ("  tile   i 128, n 256, k 64", "  option stages = 3\n  option groups in {2, 1}\n  option size in {wide, narrow}\n"
     "  option lag = 1\n  tile   i 64 * groups, n select(size == wide, 256, 128), k 64"),
    ("math : 2 warpgroups", "math : groups warpgroups"),
    ("A[i, k] by tma ring 3", "A[i, k] by tma ring stages"),
    ("B[n, k] by tma ring 3", "B[n, k] by tma ring stages"),
    ("Acc[k-1]", "Acc[k - lag]"),
)  # fmt: skip

FOUR = [
    ("A[i, k] by tma ring 3", "A[i, k] by tma ring 4"),
    ("B[n, k] by tma ring 3", "B[n, k] by tma ring 4"),
    ("n 256", "n 128"),
]


def bare(cuda: str) -> str:
    return re.sub(r"^\s*#line.*\n|\s*//.*", "", cuda, flags=re.M)


@pytest.mark.parametrize(
    "options, edits",
    [
        ({}, ()),
        ({"stages": 4, "size": "narrow"}, FOUR),
        ({"groups": 1, "bias": True, "size": "narrow"}, [("i 128, n 256", "i 64, n 128"), ("math : 2", "math : 1")]),
        ({"lag": 0}, [("Acc[k-1]", "Acc[k]")]),
    ],
)  # fmt: skip
def test_the_kernel_is_that_of_the_literals(options, edits):
    written = edit(PIPELINED, ("pipelined", "mine"), *edits)
    theirs = {n: v for n, v in options.items() if n == "bias"}
    one = wgdsl.compile(GEMM, schedule=WITH_OPTIONS, options=options, build=False)
    two = wgdsl.compile(GEMM, schedule=written, options=theirs, build=False)
    assert bare(one.cuda) == bare(two.cuda)


def test_dims_and_options_of_the_program_are_constants_too():
    simple = shipped("schedules/hopper/attention_simple.wg")
    written = edit(simple, ("ring 2\n  smem Vs", "ring select(causal, 3, 2)\n  smem Vs"), ("tile   i 128", "tile   d D, i 128"))
    plain = edit(simple, ("ring 2\n  smem Vs", "ring 3\n  smem Vs"))
    chosen = {"dims": {"D": 64, "E": 64}, "options": {"causal": True}, "build": False}
    assert bare(wgdsl.compile(ATTENTION, schedule=written, **chosen).cuda) == bare(
        wgdsl.compile(ATTENTION, schedule=plain, **chosen).cuda
    )


@pytest.mark.parametrize(
    "options, code, said",
    [
        ({"stage": 2}, "WG0201", "did you mean `stages`?"),
        ({"zzz": 2}, "WG0201", "known: act, bias, groups, lag, layout, residual, size, stages"),
        ({"groups": 3}, "WG0218", "one of 2, 1"),
        ({"size": "broad"}, "WG0218", "one of wide, narrow"),
        ({"stages": 40}, "WG0404", "from 1 to 32"),
    ],
)
def test_mistakes_of_the_caller(options, code, said):
    with pytest.raises(WgError) as e:
        wgdsl.compile(GEMM, schedule=WITH_OPTIONS, options=options, build=False)
    assert {p.code for p in e.value.problems} == {code} and said in str(e.value)


def test_a_dim_that_is_not_fixed():
    with pytest.raises(WgError, match="`--set K=128`"):
        wgdsl.compile(GEMM, schedule=edit(PIPELINED, ("k 64", "k K")), build=False)


def test_set_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "s.wg"
    path.write_text(WITH_OPTIONS)
    words = ["explain", str(resource("examples", "gemm", "gemm.wg")), "--schedule", str(path)]
    with pytest.raises(SystemExit) as e:
        main([*words, "--set", "stages=4", "size=narrow", "bias=true", "T=bf16"])
    assert e.value.code == 0 and "ring As parts 2 stages 4" in capsys.readouterr().out
    with pytest.raises(SystemExit) as e:
        main([*words, "--set", "stagse=4"])
    assert e.value.code == 1 and "did you mean `stages`?" in capsys.readouterr().err

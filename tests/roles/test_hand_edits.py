"""Hand edits of an explicit form: what works compiles and computes the same; mistakes are named at their lines."""

from __future__ import annotations

import re

import numpy as np
import pytest

import wgdsl
import wgdsl.driver
from tests.roles.test_read import text_of
from tests.shipped import attention
from tests.sim.test_shipped import close, inputs
from wgdsl import cli
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import Settings, prepare
from wgdsl.reference.evaluate import evaluate
from wgdsl.roles.checked import Checked
from wgdsl.sim import simulate

FA3 = attention("fa3", True, 64)
SIZES = ((300, 600), (70, 0), (128, 200))


def edited(*changes: tuple[str, str]) -> str:
    """The explicit form of fa3 with every match of each pattern replaced."""
    text = text_of(FA3)
    for pattern, new in changes:
        text, count = re.subn(pattern, new, text, flags=re.MULTILINE)
        assert count, f"nothing matches {pattern}"
    return text


def right(text: str) -> wgdsl.Kernel:
    """The kernel of a form, once it has computed what the program says."""
    kernel, _ = prepare(text, target="sm_90a")
    for size in SIZES:
        arrays, scalars, dims = inputs(FA3, *size)
        got = simulate(Checked(kernel.roles), arrays, scalars, dims)
        expected = evaluate(kernel.graph, arrays, scalars, dims)
        rounded = evaluate(kernel.graph, arrays, scalars, dims, round_operands=True)
        for name, e in expected.items():
            close(name, np.asarray(got[name], dtype=np.float64), e, rounded[name])
    return kernel


RELEASE = r"^( +)(arrive Vs\.empty\[s\] by lane 0 of each warp)\n +(advance Vs)\n"


def test_two_independent_steps_change_places():
    """V's slot is released after P has been packed, not before."""
    text = edited((RELEASE + r" +(pack P\.frag = P)( .*)?\n", r"\1\4\n\1\2\n\1\3\n"))
    assert right(text).cuda != FA3.compile().cuda


def test_a_release_moves_behind_the_softmax():
    """K's slot, after the `compute` that it needn't wait for."""
    release = r"^( +)(arrive Ks\.empty\[s\] by lane 0 of each warp)\n +(advance Ks)\n"
    text = edited((release + r"((?:.*\n)*?\1\}\n)", r"\4\1\2\n\1\3\n"))
    assert right(text).roles != FA3.compile().roles


def test_a_deeper_ring():
    """Ks with three slots: its buffer, its ring, its barriers, and everything behind them 16384 bytes and 16 bytes on."""
    text = edited(
        (r"^(    smem Ks .*) stages 2", r"\1 stages 3"),
        (r"^(    ring Ks) stages 2", r"\1 stages 3"),
        (r"^(    barrier Ks\..*) stages 2", r"\1 stages 3"),
        (r"^(    smem Vs .*) at 49152", r"\1 at 48 * 1024 + 16384"),
        (r"^    shared (\d+)", r"    shared \1 + 16384 + 16"),
        (r"^(    barrier \S+ .*) at (\d+)", r"\1 at \2 + 16384"),
    )
    for name, by in (("Ks.empty", 8), ("Vs.full", 16), ("Vs.empty", 16)):
        text = re.sub(rf"^(    barrier {name} .*)$", rf"\1 + {by}", text, flags=re.MULTILINE)
    kernel = right(text)
    assert kernel.roles.kernels[0].ring("Ks").stages == 3
    assert kernel.roles.kernels[0].buffer("Vs").offset == 65536


def test_other_register_counts():
    text = edited(
        ("registers 240", "registers 232"),
        ("registers inc 240", "registers inc 232"),
        (r"registers (dec )?24\b", r"registers \g<1>40"),
    )
    kernel = right(text)
    assert [r.registers for r in kernel.roles.kernels[0].roles] == [40, 232]
    assert "232" in kernel.cuda


def test_no_turns():
    """Without the named barriers of the turns nothing is exclusive, and all is right."""
    text = edited(
        (r'^ +(sync|arrive) bar .*"(my turn|the next one\'s turn)"\n', ""),
        (r'^ +if -wg >= 0 \{  "warpgroup 0 has the first turn"\n.*\n +\}\n', ""),
        (r'^ +bars 1 \+: 2 for "turns of math"\n', ""),
    )
    assert "my turn" in FA3.compile().cuda and "my turn" not in right(text).cuda


def test_a_form_without_notes_and_places_is_a_form():
    bare = edited((r"^  from .*\n", ""), (r"  +@[^#\n]*", ""), (r" +#.*$", ""), (r'  "[^"]*"$', ""))
    assert not [x for x in bare.splitlines() if '"' in x and x.split()[0] not in ("bars", "rounds")]
    kernel = right(bare)
    assert kernel.roles == FA3.compile().roles
    lines = bare.splitlines()
    told = re.findall(r'^#line (\d+) "<text>"\n *// (.*)$', kernel.cuda, flags=re.MULTILINE)
    assert len(told) > 50
    for number, words in told:
        assert words.removesuffix("...") in lines[int(number) - 1]


def test_a_hand_writes_as_it_comes():
    """Sums of numbers, comparisons in any direction, brackets where they help."""
    text = edited(
        (r"bytes 16384", "bytes 2 * (128 * 64)"),
        (r"i \+ N - M - j >= 0", "j <= i + N - M"),
        (r"N - j - 1 >= 0", "j < N"),
        (r"if -wg >= 0", "if wg < 1"),
        (r"\(N \+ 127\) / \(128\)", "(N + 127) / 128"),
    )
    assert right(text).forms.texts == FA3.compile().forms.texts


def test_what_no_parameter_names_is_divided_by_plainly():
    text = edited((r"^ +param divisor r\.divisor\n", ""))
    assert " / R;" in right(text).cuda and " / R;" not in FA3.compile().cuda


# Mistakes.


def test_a_divisor_that_the_grid_has_not():
    text = edited((r"param divisor r\.divisor", "param divisor M.divisor"))
    assert said(text) == [("WG1101", line_of(text, "param divisor M.divisor"))]


def said(text: str) -> list[tuple[str, int]]:
    """(code, line) of everything that is said of a form."""
    with pytest.raises(WgError) as caught:
        prepare(text, target="sm_90a")
    return [(p.code, p.span.line if p.span else 0) for p in caught.value.problems]


def line_of(text: str, part: str) -> int:
    return next(n for n, row in enumerate(text.splitlines(), 1) if part in row)


def test_several_mistakes_are_told_at_once():
    text = edited(
        (r"wait Qs\.full\[wg, s\]", "wait Qs.fill[wg, s]"),
        (r"zero O\b", "zero Q"),
        (r"complete P\.sum by sum", "complete P.sum by argmax"),
        (r"barrier Vs\.full of Vs", "barrier Vs.full of Ws"),
    )
    places = [line_of(text, x) for x in ("of Ws", "Qs.fill", "zero Q", "argmax")]
    assert said(text) == [("WG1101", n) for n in places]


def test_a_word_that_no_step_begins_with():
    text = edited((r"commit_store", "comit_store"), (r"pack P\.frag = P\b", "pak P.frag = P"))
    codes = said(text)
    assert {c for c, _ in codes} == {"WG0109"}
    assert line_of(text, "comit_store") in {n for _, n in codes}


@pytest.mark.parametrize(
    "pattern, new, code",
    [
        (r"expect Ks\.full\[s\] bytes 16384", "expect Ks.full[s] bytes 8192", "WG0702"),
        (r"count 8 parts 1 stages 2", "count 4 parts 1 stages 2", "WG0703"),
        (r"wait_group 0 ready O", "wait_group 1 ready O", "WG0711"),
        (r"param map Qs of Q", "", "WG0701"),
        (r"sync bar wg \+ 3 threads 128", "sync bar wg + 3 threads 100", "WG0710"),
    ],
)
def test_the_checks_judge_it_like_any_role_program(pattern: str, new: str, code: str):
    codes = said(edited((pattern, new)))
    assert {c for c, _ in codes} == {code}


def test_the_verifier_names_the_line_of_the_text():
    text = edited((r"^ +(sync bar wg \+ 3 threads 128)  \"written\"\n", ""))
    with pytest.raises(WgError) as caught:
        prepare(text, target="sm_90a")
    (problem,) = caught.value.problems
    assert problem.span is not None and problem.span.source.path == "<text>"
    assert problem.span.line == line_of(text, "store O[") and problem.span.text.startswith("store O[")


# Settings, and the commands.


def test_settings_of_a_caller_may_repeat_those_of_the_form():
    text = text_of(FA3)
    settings = Settings(dims={"D": 64}, types={"T": "bf16"}, options={"causal": True, "lse": "true"})
    kernel, _ = prepare(text, settings=settings, target="sm_90a")
    assert kernel.forms.texts == FA3.compile().forms.texts


@pytest.mark.parametrize("settings", [Settings(options={"causal": False}), Settings(dims={"N": 64}), Settings(dims={"D": 128})])
def test_other_settings_are_refused(settings: Settings):
    with pytest.raises(WgError) as caught:
        prepare(text_of(FA3), settings=settings, target="sm_90a")
    assert [p.code for p in caught.value.problems] == ["WG1109"]


@pytest.mark.parametrize("clause, code", [("Z = 3", "WG1101"), ("D = true", "WG1104"), ("D = 1.5", "WG1104")])
def test_settings_are_the_programs(clause: str, code: str):
    assert said(edited((r"with D = 64", f"with {clause}")))[0][0] == code


def run(arguments: list[str], capsys) -> tuple[int, str]:
    with pytest.raises(SystemExit) as done:
        cli.main(arguments)
    return int(done.value.code or 0), "".join(capsys.readouterr())


def test_the_commands_take_an_explicit_form(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.wg").write_text(text_of(FA3))
    assert run(["check", "mine.wg"], capsys) == (0, "")
    code, said = run(["run", "mine.wg", "--device", "sim", "--dims", "B=1,M=70,N=130,G=1,R=2", "--check"], capsys)
    assert code == 0 and "O: right" in said and "L: right" in said
    assert run(["compile", "mine.wg", "--emit", "cuda"], capsys) == (0, FA3.compile().cuda)
    assert run(["explain", "mine.wg"], capsys) == (0, text_of(FA3))
    assert run(["fmt", "--check", "mine.wg"], capsys) == (0, "")
    code, said = run(["compile", "mine.wg", "--emit", "stream"], capsys)
    assert code == 1 and "an explicit form has no stream" in said
    code, said = run(["compile", "mine.wg", "--emit", "graph"], capsys)
    assert code == 0 and "contract" in said

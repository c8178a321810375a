"""Line ends, white space, marks of byte order, and characters that don't belong."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.syntax.texts import ROOT, SHIPPED, codes, parsed, problems
from wgdsl.diagnostics.model import WgError
from wgdsl.diagnostics.syntax import BadCharacter, NotUtf8, Unreadable
from wgdsl.foundation.source import Source
from wgdsl.syntax.parser import parse, read

TEXT = """wg 1
# a comment
program p {
  dims N   # sizes

  in   X: f32[N]
  out  Y: f32[N]
  Y[i] = X[i]
    + 1
}
"""


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", "\r"),
        TEXT.replace("}\n", "}").rstrip(),
        TEXT.replace("\n", "\r\n", 3).replace("p {", "p {\r"),
        TEXT.replace("\n\n", "\n   \t \n \r\n"),
        TEXT.replace("  ", "\t"),
        TEXT.replace("\n\n", "\n\f\n"),
        "\ufeff" + TEXT,
        TEXT.replace("a comment", "Привет \u2014 µ² \u0085 \u2028 x"),
    ],
    ids=["crlf", "cr", "no-final-newline", "mixed", "blank", "tabs", "form-feed", "bom", "unicode-comment"],
)
def test_the_same_tree(text, tmp_path):
    assert parsed(text) == parsed(TEXT)
    file = tmp_path / "t.wg"
    file.write_bytes(text.encode("utf-8"))
    assert parse(read(file)) == parsed(TEXT)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_by_every_line_end(end):
    (problem,) = problems(TEXT.replace("X[i]\n", "X[i] ]\n").replace("# a comment", "# \u0085\u2028\x0c").replace("\n", end))
    assert problem.span is not None and (problem.span.line, problem.span.column) == (8, 15)


@pytest.mark.parametrize(
    "old, new, line, column, code_point",
    [
        ("dims N", "dims\u00a0N", 4, 7, "U+00A0 (NO-BREAK SPACE)"),
        ("dims N", "dims\u0085N", 4, 7, "U+0085 (a control character)"),
        ("dims N", "\tdims\tµ", 4, 9, "U+00B5 (MICRO SIGN)"),
        ("  Y[i]", "\t\tx²[i]", 8, 4, "U+00B2 (SUPERSCRIPT TWO)"),
        ("+ 1", "+ \uff11", 9, 7, "U+FF11 (FULLWIDTH DIGIT ONE)"),
        ("dims N", "dims N\x00", 4, 9, "U+0000 (a control character)"),
        ("a comment", "a \x00 comment", 2, 5, "U+0000 (a control character)"),
        ("a comment", "a \x1b[31m comment", 2, 5, "U+001B (a control character)"),
        ("dims N", "dims N\x0b", 4, 9, "U+000B (a control character)"),
        ("dims N", "dims N \ufeff", 4, 10, "U+FEFF (ZERO WIDTH NO-BREAK SPACE)"),
        ("dims N", "dims N \U0001f600", 4, 10, "U+1F600 (GRINNING FACE)"),
    ],
)
def test_a_bad_character_is_named_with_its_place(old, new, line, column, code_point):
    (problem,) = problems(TEXT.replace(old, new))
    assert isinstance(problem, BadCharacter) and problem.span is not None
    assert (problem.span.line, problem.span.column) == (line, column)
    assert code_point in problem.title()


def test_a_run_of_bad_characters_is_one_problem_and_others_are_found_too():
    assert codes(TEXT.replace("dims N", "dims Привет").replace("X[i]\n", "X[ii\n")) == ["WG0103", "WG0110"]


def test_a_file_name_is_ascii():
    assert codes('import "é.wg"\nprogram p { dims N }') == ["WG0103"]
    assert codes('import "a.wg\nprogram p { dims N }') == ["WG0103"]
    assert [i.path for i in parsed('import "a b.wg"\nimport "c.wg"').imports] == ["a b.wg", "c.wg"]


def test_bytes_that_are_no_utf8(tmp_path):
    file = tmp_path / "latin.wg"
    file.write_bytes(TEXT.replace("sizes", "größe").encode("latin-1"))
    with pytest.raises(WgError) as e:
        read(file)
    (problem,) = e.value.problems
    assert isinstance(problem, NotUtf8) and problem.byte == 0xF6 and problem.span is not None
    assert (problem.span.line, problem.span.column) == (4, 16)
    assert "latin.wg:4:16" in str(e.value)


def test_a_binary_file(tmp_path):
    file = tmp_path / "a.wg"
    file.write_bytes(bytes(range(256)) * 40)
    with pytest.raises(WgError) as e:
        parse(read(file))
    assert str(e.value).count("\n") < 40
    with pytest.raises(WgError) as e:
        parse(Source("b.wg", bytes(range(128)).decode() * 40))
    assert str(e.value).count("\n") < 40


@pytest.mark.parametrize("name", ["missing.wg", "", "nul\0.wg", "x" * 5000])
def test_a_file_that_cannot_be_read(tmp_path, name):
    with pytest.raises(WgError) as e:
        read(tmp_path / name)
    assert isinstance(e.value.problems[0], Unreadable) and "error[WG0101]: can't read" in str(e.value)


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n# comments", "\ufeff", " \t\f"])
def test_nothing_in_a_file(text):
    assert codes(text) == ["WG0104"]


def test_an_ascii_locale(tmp_path):
    """Comments that aren't ASCII are read, and errors beside them shown, whatever the locale."""
    file = tmp_path / "t.wg"
    file.write_text(TEXT.replace("sizes", "größe \u2014"), encoding="utf-8")
    broken = tmp_path / "b.wg"
    broken.write_text(TEXT.replace("dims N   # sizes", "dims N N # größe"), encoding="utf-8")
    code = (
        "import sys; from wgdsl.syntax.parser import parse, read\nparse(read(sys.argv[1]))\n"
        "try: parse(read(sys.argv[2]))\nexcept Exception as e: print(e, file=sys.stderr); sys.exit(3)"
    )
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    run = subprocess.run([sys.executable, "-c", code, file, broken], env=env, capture_output=True, check=False)
    assert run.returncode == 3 and b"b.wg:4:10" in run.stderr and b"gr\\xf6\\xdfe" in run.stderr


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_files_parse(path):
    file = parse(read(path))
    assert file.version == 1 and (file.programs or file.schedules)

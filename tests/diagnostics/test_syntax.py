"""What every syntax error says, whole, one file each, and its documented examples."""

from __future__ import annotations

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from wgdsl.diagnostics import syntax as catalogue
from wgdsl.diagnostics.catalogue import problems_of
from wgdsl.diagnostics.model import WgError
from wgdsl.foundation.source import Source
from wgdsl.syntax.depth import MAX_DEPTH
from wgdsl.syntax.parser import parse, read

PROGRAM = "wg 1\nprogram p {{\n  dims N\n  {0}\n}}\n"
SCHEDULE = "wg 1\nschedule s for p on sm_90a {{\n  tile i 128\n  {0}\n}}\n"

# name -> text, or the bytes of a file
CASES: dict[str, str | bytes] = {
    "WG0102-latin-1": "# größe\n".encode("latin-1"),
    "WG0102-binary": b"\xff\xfe\x00wg",
    "WG0103-letter": PROGRAM.format("in µ: f32[N]"),
    "WG0103-digit": PROGRAM.format("let x = \uff13"),
    "WG0103-no-break-space": PROGRAM.format("let\u00a0x = 1"),
    "WG0103-nul-in-comment": PROGRAM.format("let x = 1  # a\0b"),
    "WG0103-ampersand": PROGRAM.format("require a && b"),
    "WG0103-open-text": 'import "a.wg\nprogram p { dims N }\n',
    "WG0104-empty": "",
    "WG0104-comments": "# nothing\n# here\n",
    "WG0105-hexadecimal": PROGRAM.format("let x = 0x1p-3"),
    "WG0105-leading-zero": PROGRAM.format("let x = 007"),
    "WG0105-suffix": PROGRAM.format("let x = 1.5f"),
    "WG0105-name": PROGRAM.format("let x = 2pi"),
    "WG0106-float": PROGRAM.format("let x = 1e400"),
    "WG0106-integer": PROGRAM.format("let x = 9223372036854775808"),
    "WG0107-reduction": PROGRAM.format("in sum: f32[N]"),
    "WG0107-literal": PROGRAM.format("let nan = 1"),
    "WG0108-expression": PROGRAM.format("let x = 2 * * 3"),
    "WG0108-operator": PROGRAM.format("X[i] = a[i] b[i]"),
    "WG0108-equality": PROGRAM.format("require a = b"),
    "WG0108-else": PROGRAM.format("X[i] = 1 else 2"),
    "WG0108-indices": PROGRAM.format("X = 1"),
    "WG0108-comment": PROGRAM.format("let x = 1 // one"),
    "WG0108-clause": SCHEDULE.format("smem A = Q[i] by tma rung 2"),
    "WG0108-unit": SCHEDULE.format("role m : 3 warpgroop"),
    "WG0108-end": "wg 1\n",
    "WG0109-declaration": PROGRAM.format("dim M"),
    "WG0109-glued": PROGRAM.format("letx = 1"),
    "WG0109-line": SCHEDULE.format("strem j descending"),
    "WG0109-step": SCHEDULE.format("load { fil K[j] }"),
    "WG0109-elsewhere": SCHEDULE.format("let x = 1"),
    "WG0109-file": "wg 1\nprogam p {\n}\n",
    "WG0110-parenthesis": PROGRAM.format("let x = (1 + 2\n  let y = 3"),
    "WG0110-block": SCHEDULE.format("load {\n    fill K\n  math { await K }"),
    "WG0110-end": "program p {\n  dims N\n",
    "WG0110-suspect": "schedule s for p on t {\n  m {\n    for j {\n      fill K\n  }\n}\n",
    "WG0111-kind": PROGRAM.format("let x = (1 + 2]"),
    "WG0111-nothing": PROGRAM.format("let x = 1)"),
    "WG0112-expression": PROGRAM.format("let x = " + " + ".join(["a"] * (MAX_DEPTH + 2))),
    "WG0112-block": SCHEDULE.format("m { " + "for j { " * MAX_DEPTH + "fill K" + " }" * MAX_DEPTH + " }"),
    "WG0113-version": "wg 2\nprogram p {\n  dims N\n}\n",
    "WG0108-semicolon": PROGRAM.format("let x = 1;"),
    "WG0108-combine": SCHEDULE.format("combine O by addition"),
    "WG0109-tuning": SCHEDULE.format("tune {\n    tiel i in {64, 128}\n  }"),
    "WG0109-kernel": PROGRAM.format("kernel k computes A"),
    "WG0108-cut-line": PROGRAM.format("let x = 1 +\n  in Y: f32"),
    "WG0108-cut-call": PROGRAM.format("let x = max(1,\n  in Y: f32"),
    "two-problems": PROGRAM.format("let x = 1 *\n  in Y f32\n  out Z f32\n  let z = 1"),
    "tabs": PROGRAM.format("\tlet\tx = 1 ]\t# a comment"),
}


class TextExtension(SingleFileSnapshotExtension):
    _write_mode = WriteMode.TEXT
    file_extension = "txt"


def said(case: str | bytes, folder) -> str:
    """The text of the error, for a file called t.wg in the working directory."""
    file = folder / "t.wg"
    file.write_bytes(case if isinstance(case, bytes) else case.encode())
    with pytest.raises(WgError) as e:
        parse(read("t.wg"))
    return str(e.value)


@pytest.mark.parametrize("name", CASES)
def test_said(name, snapshot, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = said(CASES[name], tmp_path)
    assert name[:6] in text or not name.startswith("WG")
    assert text.count("\n") < 40
    assert text + "\n" == snapshot(extension_class=TextExtension)


@pytest.mark.parametrize("path, why", [("missing.wg", "No such file"), (".", "it is a folder")])
def test_a_file_that_cannot_be_read(path, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WgError, match=rf"^error\[WG0101\]: can't read `{path}`: {why}"):
        read(path)


def test_every_syntax_error_has_a_snapshot():
    assert {c.code for c in problems_of(catalogue)} - {name[:6] for name in CASES} == {"WG0101"}


def test_codes_are_numbered_without_gaps():
    assert [c.code for c in problems_of(catalogue)] == [f"WG01{n:02}" for n in range(1, 14)]


@pytest.mark.parametrize("problem", [c for c in problems_of(catalogue) if "fails:" in c.doc], ids=lambda c: c.code)
def test_the_documented_example_fails_and_the_mended_one_works(problem):
    fails, works = problem.doc.split("fails:\n")[1].split("works:\n")
    with pytest.raises(WgError) as e:
        parse(Source("t.wg", fails))
    assert {p.code for p in e.value.problems} == {problem.code}
    assert parse(Source("t.wg", works))

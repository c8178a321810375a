"""`import`: what an imported file holds counts as if it stood in the importing one; its mistakes are shown where they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import wgdsl
from tests.lowering import GEMM, PIPELINED
from wgdsl.cli import main
from wgdsl.reading import read_unit
from wgdsl.sources import find

SCHEDULE = PIPELINED.removeprefix("wg 1\n")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Writes files into a fresh current folder: `files(a="...", **{"lib/b": "..."})`."""
    monkeypatch.chdir(tmp_path)

    def write(**texts: str) -> Path:
        for name, text in texts.items():
            path = tmp_path / f"{name}.wg"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def bare(cuda: str) -> str:
    """CUDA without what names lines of the `.wg` files."""
    return re.sub(r"^\s*#line.*\n", "", cuda, flags=re.M)


def complaint(given: str, **chosen) -> str:
    with pytest.raises(wgdsl.WgError) as e:
        wgdsl.compile(given, build=False, **chosen)
    return str(e.value)


def test_programs_and_schedules_of_an_import_count_as_own(files):
    files(main='wg 1\nimport "lib/p.wg"\nimport "lib/s.wg"\n', **{"lib/p": GEMM, "lib/s": PIPELINED})
    files(whole=GEMM + SCHEDULE)
    found = find("main.wg")
    assert (found.program.name, found.schedule.name) == ("gemm", "pipelined")
    assert [s.path for s in found.sources] == ["main.wg", "lib/p.wg", "lib/s.wg"]
    assert bare(wgdsl.compile("main.wg", build=False).cuda) == bare(wgdsl.compile("whole.wg", build=False).cuda)


def test_a_path_counts_from_the_importing_file_and_a_text_from_the_current_folder(files):
    files(main='wg 1\nimport "lib/a.wg"\n', shared=GEMM, **{"lib/a": 'wg 1\nimport "../shared.wg"\nimport "b.wg"\n'})
    files(**{"lib/b": PIPELINED})
    assert [s.path for s in find("main.wg").sources] == ["main.wg", "lib/a.wg", "shared.wg", "lib/b.wg"]
    assert find('import "lib/a.wg"\n').schedule.name == "pipelined"


def test_a_file_that_two_import_is_read_once(files):
    files(main='import "a.wg"\nimport "b.wg"\n', a='import "p.wg"\n', b='import "p.wg"\n' + SCHEDULE, p=GEMM)
    unit = read_unit("main.wg")
    assert [u.source.path for u in unit.units] == ["main.wg", "a.wg", "p.wg", "b.wg"]
    assert find("main.wg").schedule.name == "pipelined"


def test_an_edit_of_an_imported_file_shows_at_once(files):
    files(main='import "p.wg"\n' + SCHEDULE, p=GEMM)
    before = wgdsl.compile("main.wg", build=False).cuda
    files(p=re.sub(r"= Acc\[i,n\] (\s*when not bias)", r"= 2.0 * Acc[i,n] \1", GEMM))
    assert wgdsl.compile("main.wg", build=False).cuda != before


@pytest.mark.parametrize(
    "texts, chain",
    [
        ({"a": 'import "a.wg"\n'}, "`a.wg` imports `a.wg`"),
        ({"a": 'import "b.wg"\n', "b": 'import "a.wg"\n'}, "`a.wg` imports `b.wg` imports `a.wg`"),
        (
            {"a": 'import "b.wg"\n', "b": 'import "c.wg"\n', "c": 'wg 1\nimport "./b.wg"\n'},
            "`b.wg` imports `c.wg` imports `b.wg`",
        ),
    ],
)
def test_a_cycle_is_refused(files, texts, chain):
    files(**texts)
    said = complaint("a.wg")
    assert said.startswith("error[WG0902]") and chain in said


@pytest.mark.parametrize("path, why", [("gone.wg", "No such file or directory"), (".", "it is a folder")])
def test_a_file_that_cannot_be_imported(files, path, why):
    files(main=f'wg 1\nimport "lib/a.wg"\n{SCHEDULE}', **{"lib/a": f'wg 1\n  import "{path}"\n{GEMM.removeprefix("wg 1")}'})
    said = complaint("main.wg")
    assert said.startswith("error[WG0901]") and why in said and "--> lib/a.wg:2:3" in said


def test_every_import_that_fails_is_reported(files):
    files(main='import "x.wg"\nimport "y.wg"\n', y="program p { dims N,, }")
    said = complaint("main.wg")
    assert "error[WG0901]" in said and "error[WG0108]" in said and "--> y.wg:1:" in said


@pytest.mark.parametrize(
    "old, new, where",
    [
        (
            "type   T in {f16, bf16}",
            "type   T in {f16, bf16",
            r"WG0110.*--> lib/p.wg:10:15\n.*\n 10 \|   type   T in \{f16, bf16\n +\| {15}\^ ",
        ),
        ("sum[k] A[i,k]", "sum[k] Aa[i,k]", r"WG0201.*--> lib/p.wg:19:21\n.*\n 19 \|.*\n +\| {21}\^\^ "),
    ],
)
def test_a_mistake_in_an_imported_file_shows_its_own_line(files, old, new, where):
    files(main='wg 1\nimport "lib/p.wg"\n' + SCHEDULE, **{"lib/p": GEMM.replace(old, new, 1)})
    assert re.search(where, complaint("main.wg"), re.S)


def test_a_mistake_in_an_imported_schedule_shows_its_own_line(files):
    files(main=GEMM + 'import "s.wg"\n', s=PIPELINED.replace("registers 24 ", "registers 25 ").replace("24\n", "25\n"))
    assert "--> s.wg:9:" in complaint("main.wg")


def test_two_programs_of_one_name(files):
    files(main=GEMM + 'import "p.wg"\n', p=GEMM)
    said = complaint("main.wg")
    assert "error[WG0903]: two programs are called `gemm`" in said and "p.wg:4:1" in said and "main.wg:4:1" in said


def test_two_schedules_of_one_name(files):
    files(main=GEMM + SCHEDULE + 'import "s.wg"\n', s=PIPELINED)
    assert re.search(r"WG0658.*`pipelined`: in main.wg and in s.wg", complaint("main.wg", schedule="pipelined"))


def test_check_follows_imports(files, capsys):
    files(main='wg 1\nimport "p.wg"\n' + SCHEDULE, p=GEMM, other='wg 1\nimport "p.wg"\n')
    for name, code in (("main", 0), ("other", 0)):
        with pytest.raises(SystemExit) as e:
            main(["check", f"{name}.wg"])
        assert e.value.code == code
    files(main='wg 1\nimport "p.wg"\n' + SCHEDULE.replace("As[k], Bs", "As[k], Bb"))
    with pytest.raises(SystemExit) as e:
        main(["check", "main.wg"])
    assert e.value.code == 1 and "main.wg:18:" in capsys.readouterr().err


def test_check_reports_an_imported_program_that_its_schedules_need(files, capsys):
    files(main='wg 1\nimport "p.wg"\n' + SCHEDULE, p=GEMM.replace("* B[n,k]", "* Bb[n,k]"))
    with pytest.raises(SystemExit):
        main(["check", "main.wg"])
    assert "--> p.wg:19:" in capsys.readouterr().err


def test_a_broken_file_beside_concerns_nobody_who_has_a_schedule(files):
    files(own=GEMM + SCHEDULE, broken="wg 1\nschedule x for gemm on sm_90a { garbage !!\n")
    assert find("own.wg").schedule.name == "pipelined"

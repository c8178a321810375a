"""`wgdsl diff`: the numbers of two schedules beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lowering import FA3, ROOT
from wgdsl import cli
from wgdsl.diagnostics.model import EnvironmentFault
from wgdsl.runtime import kernel as runtime_kernel
from wgdsl.tools.differing import diff_text, kernels
from wgdsl.tools.measures import instructions
from wgdsl.tools.pairing import Pair, paired

ATTENTION = ROOT / "examples" / "attention" / "attention.wg"
DIMS = ["D=128", "E=128"]


def rows(text: str) -> dict[str, dict[str, list[str]]]:
    """section -> row -> cells."""
    out: dict[str, dict[str, list[str]]] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("  "):
            name, *cells = [c for c in line.strip().split("  ") if c]
            out[section][name] = [c.strip() for c in cells]
        elif line:
            section = line.split("  ")[0]
            out[section] = {}
    return out


@pytest.fixture
def wgdsl(capfd):
    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as e:
            cli.main(["diff", *words])
        out, err = capfd.readouterr()
        return int(e.value.code or 0), out, err

    return call


@pytest.fixture
def deep(tmp_path) -> Path:
    """FlashAttention-3 with a deeper ring for smaller tiles, and fewer registers."""
    text = (
        FA3.replace("schedule fa3", "schedule deep")
        .replace("j 128", "j 64")
        .replace("K[j] by tma ring 2", "K[j] by tma ring 4")
    )
    path = tmp_path / "deep.wg"
    path.write_text(text.replace("registers 240", "registers 200"))
    return path


def test_memory_registers_and_events(wgdsl, deep):
    code, out, _ = wgdsl(str(ATTENTION), "fa3", str(deep), "--set", *DIMS)
    assert code == 0
    seen = rows(out)
    shared = seen["shared memory, bytes"]
    assert shared["Ks"] == ["65536", "65536"] and shared["Vs"] == ["65536", "32768", "-32768"]
    assert shared["Os"] == ["over Qs", "over Qs"] and shared["barriers"] == ["80", "112", "+32"]
    assert shared["in all"] == ["164944", "132208", "-32736"]
    registers = seen["registers a thread of math"]
    assert registers["S"] == ["64", "32", "-32"] and registers["of"] == ["240", "200", "-40"]
    assert seen["mbarriers"]["Ks.full"] == ["1 x 2, 1 arrivals a phase", "1 x 4, 1 arrivals a phase"]
    assert seen["events of math, in an iteration"]["waits"] == ["2", "2"]
    assert seen["copies of each product of math"] == {"S": ["2", "2"], "O": ["2", "2"]}
    assert seen["launch"]["threads"] == ["384", "384"]


def test_only_what_differs(wgdsl, deep):
    _, out, _ = wgdsl(str(ATTENTION), "fa3", str(deep), "--set", *DIMS, "--changed")
    seen = rows(out)
    assert "Ks" not in seen["shared memory, bytes"] and "launch" not in seen
    assert all(cells[0] != cells[1] for section in list(seen.values())[1:] for cells in section.values())


def test_a_schedule_and_itself_have_no_difference():
    pair = Pair(file=ATTENTION, program="attention", schedules=("fa3", "fa3"))
    a, b = kernels(pair, DIMS)
    assert diff_text(a, b, every=False, text=True) == "program attention: schedule fa3 (first), schedule fa3 (second)\n\n"
    assert diff_text(a, b) == diff_text(b, a)


def test_the_texts_of_the_roles(wgdsl):
    code, out, _ = wgdsl("fa3", "simple", "--set", *DIMS, "--text")
    assert code == 0 and "--- roles of fa3\n+++ roles of simple\n" in out
    gone = [line.lstrip("- ") for line in out.splitlines() if line.startswith("-")]
    assert any(line.startswith("arrive bar (wg + 1) % (2) + 1 threads 256") for line in gone)
    assert wgdsl("fa3", "simple", "--set", *DIMS, "--text")[1] == out


def test_the_assembler(wgdsl):
    _, out, _ = wgdsl("fa3", "simple", "--set", *DIMS, "--sass")
    seen = rows(out)
    assert seen["assembler"]["registers"] == ["168", "168"] and seen["assembler"]["spill stores"] == ["0", "0"]
    assert seen["instructions"]["HGMMA"] == ["32", "32"] and seen["instructions"]["UTMALDG"][:2] == ["7", "4"]


def test_without_a_disassembler(monkeypatch):
    def missing(_):
        raise EnvironmentFault("nvdisasm is missing")

    monkeypatch.setattr(runtime_kernel.Kernel, "sass", property(missing))
    a, b = kernels(Pair(file=ATTENTION, program="attention", schedules=("fa3", "simple")), DIMS)
    text = diff_text(a, b, sass=True)
    assert "spill stores" in text and "no instruction counts: nvdisasm is missing" in text


def test_instructions_are_counted_by_name():
    sass = """
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], RZ, !UPT ;
        /*0020*/                   WARPGROUP.ARRIVE ;
.L_x_1:
        /*0030*/                   STL [R1], R2 ;
    """
    assert instructions(sass) == {"HGMMA": 1, "WARPGROUP.ARRIVE": 1, "STL": 1, "in all": 4}


def test_where_the_program_is_found(deep, monkeypatch):
    files = [str(ROOT / "schedules" / "hopper" / f"attention_{n}.wg") for n in ("fa3", "simple")]
    for words in (["fa3", "simple"], files, [str(deep), "simple"], [str(ATTENTION), "fa3", files[1]]):
        pair = paired(words, None)
        assert pair.program == "attention" and pair.file.resolve() == ATTENTION
    (deep.parent / "attention.wg").write_text(ATTENTION.read_text())
    assert paired([str(deep), "fa3"], None).file == deep.parent / "attention.wg", "beside a schedule's file first"


@pytest.mark.parametrize("words", [("fa3", "pipelined"), ("fa3", "none"), ("fa3", "simple", "--program", "gemm")])
def test_no_common_program(wgdsl, words):
    code, _, err = wgdsl(*words)
    assert code == 1 and "WG1004" in err


def test_two_words_are_needed(wgdsl):
    code, _, err = wgdsl("fa3")
    assert code == 1 and "two schedules" in err


def test_grids_that_hand_items_out(wgdsl):
    code, out, _ = wgdsl("three", "three_longest", "--set", *DIMS, "causal=true")
    found = rows(out)["launch"]
    assert code == 0 and found["grid"] == ["persistent", "persistent, items from a counter"]
    assert found["items in order"][0] == "-" and found["items in order"][1].startswith(
        "i from its end, b, g, r, in sections of "
    )

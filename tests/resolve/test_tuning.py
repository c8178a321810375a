"""`tune`: what it may hold, what `wgdsl tune` prints, and that a compilation leaves it alone."""

from __future__ import annotations

import re

import pytest

import wgdsl
from tests.lowering import GEMM, PIPELINED
from tests.programs.edits import edit
from wgdsl.cli import main

TUNE = """  option stages = 3
  tune {
    tile n in {64, 128, 256}; ring As in {2, stages}
    registers math in {232, 240}
    warpgroups math in {2}
    option layout in {nk, kn}
    option stages in {2, 3, 4}
    option bias in {false, true}
  }
"""


def with_tune(block: str) -> str:
    return edit(PIPELINED, ("  role load", f"{block}\n  role load"))


@pytest.fixture
def tune(tmp_path, capsys):
    """Runs `wgdsl tune` on a file with a program and schedules: exit code and output."""

    def run(text: str, *words: str, schedule: str = "pipelined") -> tuple[int, str]:
        path = tmp_path / "g.wg"
        path.write_text(text)
        with pytest.raises(SystemExit) as e:
            main(["tune", str(path), "--schedule", schedule, *words])
        seen = capsys.readouterr()
        return int(e.value.code or 0), seen.out + seen.err

    return run


def test_what_is_listed(tune):
    assert tune(GEMM + with_tune(TUNE).removeprefix("wg 1\n")) == (
        0,
        """schedule pipelined for gemm on sm_90a
  tile n in {64, 128, 256}
  ring As in {2, 3}
  registers math in {232, 240}
  warpgroups math in {2}
  option layout in {nk, kn}: `--set` says which
  option stages in {2, 3, 4}
  option bias in {false, true}: `--set` says which
36 combinations
""",
    )


def test_without_a_block(tune):
    assert tune(GEMM) == (0, "schedule pipelined for gemm on sm_90a\nnothing to tune\n")


def test_a_schedule_inherits_what_its_base_leaves_open(tune):
    text = GEMM + with_tune("tune { tile n in {64, 128}  ring As in {2, 3} }").removeprefix("wg 1\n")
    text += "schedule mine extends pipelined { tune { tile n in {96}; tile i in {128} } }\n"
    code, out = tune(text, schedule="mine")
    assert code == 0
    assert out.splitlines()[1:] == ["  tile n in {96}", "  ring As in {2, 3}", "  tile i in {128}", "2 combinations"]


def test_the_values_follow_the_options_chosen(tune):
    code, out = tune(GEMM + with_tune(TUNE).removeprefix("wg 1\n"), "--set", "stages=7")
    assert code == 0 and "ring As in {2, 7}" in out


def test_a_compilation_leaves_it_alone():
    one = wgdsl.compile(GEMM, schedule=with_tune(TUNE), build=False).cuda
    two = wgdsl.compile(GEMM, schedule=PIPELINED, build=False).cuda
    assert re.sub(r"^\s*#line.*\n|:\d+", "", one, flags=re.M) == re.sub(r"^\s*#line.*\n|:\d+", "", two, flags=re.M)


@pytest.mark.parametrize(
    "entry, code, said",
    [
        ("tile q in {64}", "WG0401", "`i`, `k`, `n`"),
        ("tile z in {64}", "WG0401", "no tile size of this schedule is called `z`"),
        ("ring Aa in {2}", "WG0401", "there are: `As`, `Bs`, `Cs`"),
        ("registers maths in {24}", "WG0401", "did you mean `math`?"),
        ("warpgroups As in {2}", "WG0401", "`load`, `math`"),
        ("option stages in {2}", "WG0401", "`bias`, `layout`"),
        ("tile n in {0}", "WG0404", "from 1 to 65536"),
        ("ring As in {2, 33}", "WG0404", "from 1 to 32"),
        ("ring As in {2.5}", "WG0404", "whole number"),
        ("registers math in {25}", "WG0404", "multiple of 8"),
        ("warpgroups math in {8}", "WG0404", "from 1 to 7"),
        ("tile n in {x}", "WG0910", "`x` has no value"),
        ("option bias in {1}", "WG0218", "true or false"),
        ("option layout in {nk, kk}", "WG0218", "one of nk, kn"),
        ("option layout in {1}", "WG0218", "one of nk, kn"),
        ("tile n in {64}; tile n in {128}", "WG0403", "choice of tile `n` is declared twice"),
        ("tile n in {64, 64}", "WG0403", "value of tile n `64` is declared twice"),
    ],
)
def test_mistakes(tune, entry, code, said):
    text = GEMM + with_tune(f"tune {{ {entry} }}").removeprefix("wg 1\n")
    status, out = tune(text)
    assert (status, re.findall(r"WG\d{4}", out)) == (1, [code]) and said in out
    with pytest.raises(wgdsl.WgError, match=code):
        wgdsl.compile(text, build=False)

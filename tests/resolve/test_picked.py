"""Values of a tuner in the lines of a schedule: the same text as one in which they had been written."""

from __future__ import annotations

import re

import pytest

import wgdsl
from tests.lowering import GEMM, PIPELINED, schedule
from tests.programs.edits import edit
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import prepare
from wgdsl.resolve.picked import picked
from wgdsl.syntax.candidate import candidate

OWN = PIPELINED.removeprefix("wg 1\n")
FILE = GEMM + OWN
WITH_OPTION = edit(OWN, ("ring 3", "ring stages"), ("  role load", "  option stages in {3, 1 + 1}\n  role load"))
TWO_KERNELS = """wg 1
schedule s for p on sm_90a {
  tile i 64, j 8
  kernel a computes A { tile n 32 tune { tile n in {32, 64}; tile i in {64} } }
  kernel b computes B { tile n 16 }
}
"""


def cuda(text: str, schedule: str | None = None) -> str:
    """The CUDA text, without the places in `.wg` files and the words that stand there."""
    made = wgdsl.compile(text, schedule=schedule, target="sm_90a", build=False).cuda
    return re.sub(r"^\s*#line.*\n| *//.*", "", made, flags=re.M)


@pytest.mark.parametrize(
    "values, changes",
    [
        ("tile n 128", [("n 256", "n 128")]),
        ("tile i 64, warpgroups math 1, tile n 64", [("i 128, n 256", "i 64, n 64"), ("2 warpgroups", "1 warpgroup")]),
        ("ring As 2, ring Bs 2", [("ring 3", "ring 2")]),
        ("registers math 232", [("registers 240", "registers 232")]),
    ],
)
def test_a_value_counts_as_if_it_were_written(values, changes):
    assert cuda(FILE, f"pipelined {{{values}}}") == cuda(GEMM + edit(OWN, *changes))


def test_an_option_is_chosen_as_a_caller_does():
    text = GEMM + WITH_OPTION
    given = wgdsl.compile(text, target="sm_90a", build=False, options={"stages": 2}).cuda
    assert wgdsl.compile(text, "pipelined {option stages 2}", target="sm_90a", build=False).cuda == given
    assert cuda(text, "pipelined {option stages 2}") != cuda(text)
    with pytest.raises(WgError, match="WG0218"):
        cuda(text, "pipelined {option stages 7}")


def test_the_schedule_is_named_without_its_values():
    kernel, journal = prepare(FILE, schedule="pipelined {ring As 2, ring Bs 2}", target="sm_90a")
    assert kernel.roles.schedule == "pipelined"
    assert journal.forms["parse"].schedule.name == "pipelined"


@pytest.mark.parametrize(
    "values, code, said",
    [
        ("tile q 64", "WG0401", "no tile size of this schedule is called `q`"),
        ("ring Aa 2", "WG0401", "there are: `As`, `Bs`, `Cs`"),
        ("registers maths 24", "WG0401", "did you mean `math`?"),
        ("option bias true", "WG0401", "no option of this schedule is called `bias`"),
        ("ring As 0", "WG0404", ""),
        ("tile n 100", "WG0415", ""),
        ("registers math 25", "WG0404", ""),
        ("tile n", "WG0665", ""),
    ],
)
def test_what_is_refused(values, code, said):
    with pytest.raises(WgError, match=code) as e:
        cuda(FILE, f"pipelined {{{values}}}")
    assert said in f"{e.value.problems[0].title()} {e.value.problems[0].help()}"


def test_an_unknown_name_with_values_is_an_unknown_schedule():
    with pytest.raises(WgError, match="WG0651"):
        cuda(FILE, "pipelinned {ring As 2}")


@pytest.mark.parametrize(
    "values, changed",
    [
        ("tile n 64", {"tile n 32": "tile n 64"}),  # the entry stands in kernel a
        ("tile i 128", {"tile i 64": "tile i 128"}),  # about the line around it
        ("tile j 16", {"j 8": "j 16"}),  # no entry
    ],
)
def test_of_kernels_the_one_with_the_entry_is_meant(values, changed):
    expected = TWO_KERNELS
    for old, new in changed.items():
        expected = expected.replace(old, new, 1)
    assert picked(schedule(TWO_KERNELS), candidate(f"s {{{values}}}").values) == (schedule(expected), {})

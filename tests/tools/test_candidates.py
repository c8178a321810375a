"""What a tuner may try: every combination once, named with no more values than it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lowering import GEMM, PIPELINED
from tests.programs.edits import edit
from wgdsl.diagnostics.model import WgError
from wgdsl.syntax.candidate import candidate
from wgdsl.tools import candidates
from wgdsl.tools.candidates import Field, field_of

OWN = PIPELINED.removeprefix("wg 1\n")


@pytest.fixture
def field(tmp_path):
    """The field of a GEMM whose schedule has such a `tune` block, or of a whole file."""

    def of(block: str, *settings: str, schedules: str | None = "pipelined", more: str = "", **named) -> Field:
        path = tmp_path / "g.wg"
        path.write_text(GEMM + edit(OWN, ("  role load", f"{block}\n  role load")) + more)
        return field_of(path, None, schedules, settings, named.get("target", "sm_90a"))

    return of


def names(found: Field) -> list[str]:
    return [str(c) for c, _ in found.candidates()]


def test_every_combination_once(field):
    assert names(field("tune { tile n in {128, 256}; ring As in {2, 3} }")) == [
        "pipelined",
        "pipelined {tile n 128, ring As 2}",
        "pipelined {tile n 128}",
        "pipelined {ring As 2}",
    ]


def test_what_is_written_counts_where_no_entry_has_it(field):
    assert names(field("tune { tile n in {64, 128} }")) == ["pipelined", "pipelined {tile n 64}", "pipelined {tile n 128}"]


def test_without_entries_there_is_the_schedule(field):
    assert names(field("")) == ["pipelined"]


def test_a_home_without_a_ring_has_one_slot(field):
    assert names(field("tune { ring Cs in {1, 2} }")) == ["pipelined", "pipelined {ring Cs 2}"]


def test_names_mean_what_they_were_made_for(field):
    found = field("tune { tile n in {64, 256}; registers math in {232, 240}; warpgroups math in {1, 2} }")
    assert len(names(found)) == 8
    for name in names(found):
        assert str(candidate(name)) == name


def test_options_of_the_schedule_are_chosen_those_of_the_program_are_not(field):
    ring = "smem As = A[i, k] by tma ring stages  smem Bs = B[n, k] by tma ring stages"
    block = "option stages in {3, 2}  tune { option stages in {2, 3}; option bias in {false, true} }"
    more = f"\nschedule other extends pipelined {{ {block} {ring} }}\n"
    found = field("", schedules="other", more=more)
    assert names(found) == ["other", "other {option stages 2}"]
    assert found.structures[0].combinations == 2


def test_an_option_that_the_caller_gives_is_in_every_name(field):
    block = "option stages = 3  tune { option stages in {2, 3, 4}; ring As in {2, stages} }"
    more = "\nschedule other extends pipelined { smem As = A[i, k] by tma ring stages }\n"
    found = field(block, "stages=4", schedules="other", more=more)
    assert names(found) == ["other {option stages 4}", "other {ring As 2}"]
    assert field(block, "bias=true", "T=bf16").structures[0].settings.options == {"bias": "true"}


def test_several_schedules_take_turns(field):
    more = "\nschedule other extends pipelined { tune { ring As in {2, 3} } }\n"
    found = names(field("tune { tile n in {64, 128, 256} }", schedules="pipelined, other", more=more))
    assert found[:4] == ["pipelined", "pipelined {tile n 64}", "other {tile n 64, ring As 2}", "pipelined {tile n 128}"]
    assert len(found) == 3 + 3  # what both have in common is one candidate


def test_a_schedule_named_with_values_has_those_alone(field):
    found = field("tune { tile n in {64, 128, 256} }", schedules="pipelined {tile n 64, ring As 2},pipelined {tile n 128}")
    assert names(found) == ["pipelined {tile n 64, ring As 2}", "pipelined {tile n 128}"]


def test_by_default_there_is_every_schedule_for_the_target(field):
    assert {"pipelined", "turns", "split"} <= set(names(field("", schedules=None)))
    assert names(field("", schedules=None, target="sm_80")) == ["split_warps", "warps"]


def test_of_very_many_some_are_looked_at(field, monkeypatch):
    monkeypatch.setattr(candidates, "SAMPLED", 20)
    entries = "; ".join(f"ring {h} in {{1, 2, 3, 4, 5, 6, 7, 8}}" for h in ("As", "Bs"))
    found = names(field(f"tune {{ {entries} }}"))
    assert len(found) in (20, 21) and found == names(field(f"tune {{ {entries} }}"))
    assert {candidate(n).values for n in found[1:]} and found[0] == "pipelined"


@pytest.mark.parametrize(
    "settings, schedules, code",
    [
        (["stage=4"], "pipelined", "WG0654"),
        (["T=f64"], "pipelined", "WG0219"),
        ([], "pipelinned", "WG0651"),
        ([], "pipelined,x.wg", "WG1014"),
        ([], "pipelined {tile n}", "WG0665"),
        ([], "pipelined {tile q 3}", "WG0401"),
        (["stages=x"], "pipelined", "WG0218"),
    ],
)
def test_what_is_refused(field, settings, schedules, code):
    with pytest.raises(WgError, match=code):
        field("option stages = 3  tune { ring As in {2, 3} }", *settings, schedules=schedules)


def test_a_schedule_that_nobody_named_is_left_out(field):
    more = "\nschedule wrong extends pipelined { smem As = A[i, k] by tma ring stages }\n"
    found = field("", schedules=None, more=more)
    assert "pipelined" in names(found) and list(found.refused) == ["wrong"]
    with pytest.raises(WgError, match="WG0910"):
        field("", schedules="wrong", more=more)


def test_a_file_that_isnt_there():
    with pytest.raises(WgError, match="WG0"):
        field_of(Path("nowhere.wg"), None, None, [], "auto")

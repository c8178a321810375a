"""Which target is meant, and which schedules may be compiled for it."""

from __future__ import annotations

import pytest

from wgdsl.diagnostics.model import WgError
from wgdsl.targets.choice import TARGETS, Gpu, Wanted, resolve, serves

H100 = Gpu(name="H100", capability=(9, 0))
B200 = Gpu(name="B200", capability=(10, 0))
RTX3090 = Gpu(name="RTX 3090", capability=(8, 6))
A100 = Gpu(name="A100", capability=(8, 0))
ORIN = Gpu(name="Orin", capability=(8, 7))
GB10 = Gpu(name="GB10", capability=(12, 1))
T4 = Gpu(name="T4", capability=(7, 5))


@pytest.mark.parametrize("spelling", ["sm_90a", "SM90A", "90a", " sm_90a ", "Sm_90A"])
def test_spellings(spelling):
    assert resolve(spelling) == "sm_90a"


@pytest.mark.parametrize("nothing", ["auto", "AUTO"])
def test_what_names_no_target(nothing):
    assert resolve(nothing) is None


@pytest.mark.parametrize("wrong", ["sm_9", "sm_90", "sm_100a", "sm_75", "sm_120a", "hopper", ""])
def test_what_is_no_target(wrong):
    with pytest.raises(WgError, match="WG0653"):
        resolve(wrong)


def test_a_schedule_serves_its_own_target_and_later_ones_of_its_family():
    served = {(a, b) for a in TARGETS for b in TARGETS if serves(a, b)}
    ampere = ("sm_80", "sm_86", "sm_89", "sm_120")  # in their order, which isn't that of the texts
    assert served == {("sm_90a", "sm_90a"), *((a, b) for n, a in enumerate(ampere) for b in ampere[n:])}


@pytest.mark.parametrize(
    "gpu, written, target",
    [
        (H100, "sm_90a", "sm_90a"),
        (H100, "sm_80", "sm_80"),  # another family: as it is written, and compiled again
        (H100, "sm_120", None),
        (B200, "sm_90a", None),
        (B200, "sm_80", "sm_80"),
        (A100, "sm_80", "sm_80"),
        (A100, "sm_86", None),
        (RTX3090, "sm_80", "sm_86"),  # its own limits
        (ORIN, "sm_80", "sm_86"),  # the last that it runs
        (GB10, "sm_86", "sm_120"),
        (T4, "sm_80", None),
    ],
)
def test_what_a_gpu_takes(gpu, written, target):
    assert Wanted(gpu=gpu).target_for(written) == target


def test_a_name_counts_whatever_the_gpu_is():
    assert Wanted(named="sm_86", gpu=H100).target_for("sm_80") == "sm_86"
    assert Wanted(named="sm_86").target_for("sm_90a") is None


def test_nothing_wanted_leaves_it_to_the_schedule():
    assert [Wanted().target_for(t) for t in (*TARGETS, "sm_100a")] == [*TARGETS, "sm_100a"]


def test_the_numbers_of_an_explicit_form_stay():
    assert Wanted(named="sm_86").target_for("sm_80", exact=True) is None
    assert Wanted(gpu=RTX3090).target_for("sm_80", exact=True) == "sm_80"


@pytest.mark.parametrize(
    "gpu, order",
    [
        (H100, ["sm_90a", "sm_80"]),
        (RTX3090, ["sm_86", "sm_80"]),
        (GB10, ["sm_120", "sm_80"]),
    ],
)
def test_the_own_target_comes_first(gpu, order):
    own = Wanted(gpu=gpu)
    runs = [t for t in ("sm_80", *order) if own.target_for(t)]
    assert sorted(dict.fromkeys(runs), key=own.distance) == order


@pytest.mark.parametrize("gpu, best", [(H100, "sm_90a"), (B200, "sm_80"), (RTX3090, "sm_86"), (ORIN, "sm_86"), (T4, "")])
def test_the_best_that_a_gpu_runs(gpu, best):
    assert gpu.best == best


def test_what_a_report_says():
    assert Wanted().told("sm_80", "sm_80") == () and Wanted(named="sm_80").told("sm_80", "sm_80") == ()
    (line,) = Wanted(named="sm_86").told("sm_80", "sm_86")
    assert line == "the schedule is written for sm_80: placed and checked against the limits of sm_86"
    assert Wanted(gpu=H100).told("sm_80", "sm_80") == (
        "chosen for this GPU: H100, sm_90a",
        "it runs the instructions of sm_80: the text is compiled again for it",
    )

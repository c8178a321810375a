"""`target`, `auto` and `supports`: what is compiled for what, and what is said where it can't be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wgdsl
from tests.snapshots import TextFile
from tests.targets.test_choice import A100, B200, H100, RTX3090, T4
from wgdsl.cli import main
from wgdsl.diagnostics.runtime import TargetMismatch
from wgdsl.driver import prepare
from wgdsl.forms import explained
from wgdsl.foundation.resources import resource
from wgdsl.reading import display_path
from wgdsl.runtime import cuda

ATTENTION = str(resource("examples", "attention", "attention.wg"))
GEMM = str(resource("examples", "gemm", "gemm.wg"))
WIDE = resource("schedules", "ampere", "attention_fa2_wide.wg").read_text("utf-8")
WARPS = resource("schedules", "ampere", "gemm_warps.wg").read_text("utf-8")
D64, D256 = {"D": 64, "E": 64}, {"D": 256, "E": 256}


@pytest.fixture
def on(monkeypatch):
    """Puts a GPU into this machine; or none."""
    return lambda gpu: monkeypatch.setattr(cuda, "gpu", lambda: gpu)


@pytest.fixture(autouse=True)
def no_gpu(on):
    on(None)


def test_yes():
    answer = wgdsl.supports(GEMM, "warps", "sm_86")
    assert answer and (answer.schedule, answer.target, answer.reason) == ("warps", "sm_86", "")
    assert answer.told == ("the schedule is written for sm_80: placed and checked against the limits of sm_86",)


def test_what_is_compiled_is_what_was_said():
    kernel = wgdsl.compile(GEMM, "warps", "sm_89", build=False)
    assert kernel.target == "sm_89" and "target sm_89" in kernel.cuda
    same = wgdsl.compile(GEMM, "warps", "sm_80", build=False)
    assert kernel.cuda.replace("sm_89", "sm_80") == same.cuda and wgdsl.supports(GEMM, "warps", "sm_80").told == ()


def test_the_report_says_how_the_target_was_chosen(on):
    assert "written for" not in str(wgdsl.compile(GEMM, "warps", "sm_80").report)
    on(H100)
    report = str(wgdsl.compile(GEMM, "warps").report)
    assert "target sm_80\n  chosen for this GPU: H100, sm_90a\n  it runs the instructions of sm_80" in report


def test_the_answer_may_go_as_far_as_the_binary():
    assert wgdsl.supports(GEMM, "warps", "sm_120", build=True)


def test_without_nvrtc_the_answer_is_no(monkeypatch):
    def missing(*_):
        raise wgdsl.EnvironmentFault("NVRTC can't be loaded", "pip install it")

    monkeypatch.setattr(wgdsl.Kernel, "build", missing)
    answer = wgdsl.supports(GEMM, "warps", "sm_80", build=True)
    assert not answer and answer.reason == "NVRTC can't be loaded\n  help: pip install it" and not answer.problems
    assert wgdsl.supports(GEMM, "warps", "sm_80"), "the text needs none"


@pytest.mark.parametrize(
    "given",
    [
        {"schedule": "fa3"},  # dims are missing
        {"schedule": "fa4", "dims": D64},
        {"schedule": "fa2", "dims": D64, "types": {"T": "f64"}},
        {"schedule": "fa2", "dims": D64, "options": {"causl": True}},
    ],
)
def test_other_mistakes_are_reasons_too(given):
    answer = wgdsl.supports(ATTENTION, **given)
    assert not answer and answer.problems[0].title() in answer.reason


# For which target `auto` takes a schedule.


@pytest.mark.parametrize(
    "gpu, family, target",
    [
        (None, "hopper", "sm_90a"),
        (H100, "hopper", "sm_90a"),
        (A100, "ampere", "sm_80"),
        (RTX3090, "ampere", "sm_86"),
        (B200, "ampere", "sm_80"),
    ],
)
def test_the_target_of_a_schedule_that_nobody_named(on, gpu, family, target):
    on(gpu)
    answer = wgdsl.supports(ATTENTION, dims=D64)
    texts = [p.read_text("utf-8") for p in resource("schedules", family).glob("*.wg")]
    assert answer.target == target, answer.reason
    assert any(f"schedule {answer.schedule} " in text for text in texts)


def test_an_earlier_family_by_name(on):
    on(H100)
    assert wgdsl.supports(ATTENTION, "fa2", dims=D64).target == "sm_80"


def test_the_file_of_the_program_comes_before_what_is_shipped(on):
    on(H100)
    assert wgdsl.supports(Path(GEMM).read_text("utf-8") + WARPS.replace("wg 1\n", "")).schedule == "warps"


def test_a_name_that_two_targets_have(on):
    both = WARPS.replace("wg 1\n", "") + WARPS.replace("wg 1\n", "").replace("on sm_80", "on sm_86").replace("k 64", "k 32")
    text = Path(GEMM).read_text("utf-8") + both
    tiles = {"sm_80": 98304, "sm_86": 65536, "sm_120": 98304}
    for target, nbytes in tiles.items():
        assert wgdsl.compile(text, "warps", target, build=False).roles.kernels[0].shared_bytes == nbytes
    on(RTX3090)
    assert wgdsl.compile(text, "warps", build=False).roles.kernels[0].shared_bytes == tiles["sm_86"]


# What is refused, as it is shown.


def explicit() -> str:
    return explained(prepare(GEMM, schedule="pipelined", target="sm_90a")[1].forms)


REFUSED = {
    "hopper_for_sm_80": (lambda: (GEMM, "turns", "sm_80"), None),
    "ampere_for_sm_90a": (lambda: (GEMM, "warps", "sm_90a"), None),
    "an_earlier_one": (lambda: (GEMM, WARPS.replace("on sm_80", "on sm_86"), "sm_80"), None),
    "an_explicit_form": (lambda: (GEMM, explicit(), "sm_80"), None),
    "sm_90": (lambda: (GEMM, None, "sm_90"), None),
    "sm_100a": (lambda: (GEMM, None, "sm_100a"), None),
    "sm_75": (lambda: (GEMM, None, "sm_75"), None),
    "sm_121": (lambda: (GEMM, None, "sm_121"), None),
    "sm_120a": (lambda: (GEMM, None, "sm_120a"), None),
    "written_on_sm_90": (lambda: (GEMM, WARPS.replace("on sm_80", "on sm_90"), "auto"), None),
    "written_on_sm_100a": (lambda: (GEMM, WARPS.replace("on sm_80", "on sm_100a"), "sm_80"), None),
    "hopper_on_an_Ampere_GPU": (lambda: (GEMM, "turns"), RTX3090),
    "hopper_on_a_Blackwell_GPU": (lambda: (GEMM, "turns"), B200),
    "an_old_GPU": (lambda: (GEMM,), T4),
    "too_much_shared_memory": (lambda: (ATTENTION, "fa2_wide", "sm_86", D256), None),
    "too_much_of_everything": (lambda: (ATTENTION, "fa2", "sm_89", {"D": 192, "E": 192}), None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, snapshot, on):
    given, gpu = REFUSED[name]
    on(gpu)
    answer = wgdsl.supports(*given())
    assert not answer and answer.reason + "\n" == snapshot(extension_class=TextFile, name=name)


def test_an_explicit_form_stays_on_its_target():
    p = TargetMismatch(target="sm_86", schedule="warps", needs="sm_80", same_family=True, explicit=True)
    assert p.notes() == ("an explicit form holds for the target that it was made for, sm_80",)
    assert p.help().startswith("print it again from its schedule: `wgdsl explain ... --target sm_86`")


@pytest.mark.parametrize(
    "changes",
    [
        (("j 64", "j 32"),),
        (("8 warps", "4 warps"), ("i 128", "i 64")),
    ],
)
def test_what_is_proposed_fits(changes):
    text = WIDE
    for old, new in changes:
        text = text.replace(old, new)
    assert wgdsl.supports(ATTENTION, text, "sm_86", D256)


# The command.


def asked(capsys, *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as e:
        main(["supports", *words])
    return int(e.value.code or 0), capsys.readouterr().out


def test_the_command_says_yes(capsys):
    assert asked(capsys, GEMM, "--schedule", "warps", "--target", "86", "--set", "T=bf16") == (
        0,
        "yes: schedule warps, target sm_86\n"
        "  the schedule is written for sm_80: placed and checked against the limits of sm_86\n",
    )


def test_the_command_says_no(capsys):
    code, out = asked(capsys, ATTENTION, "--schedule", "fa2_wide", "--target", "sm_89", "--set", "D=256", "E=256")
    assert code == 1 and out.startswith("no\nerror[WG0708]") and "what fits: `tile j 32`" in out


def test_the_command_in_json(capsys):
    code, out = asked(capsys, ATTENTION, "--schedule", "fa3", "--target", "sm_80", "--format", "json")
    (problem,) = json.loads(out)["problems"]
    assert code == 1 and (problem["code"], problem["line"]) == ("WG0652", 4)
    assert problem["file"] == display_path(resource("schedules", "hopper", "attention_fa3.wg"))
    code, out = asked(capsys, GEMM, "--schedule", "warps", "--format", "json")
    assert code == 0 and json.loads(out) == {
        "supported": True, "schedule": "warps", "target": "sm_80", "told": [], "missing": "", "problems": [],
    }  # fmt: skip


def test_goldens_and_differences_are_the_same_on_every_machine(on):
    """Whoever asks for no target gets what the schedule is written for."""
    on(RTX3090)
    assert prepare(GEMM, schedule="warps")[0].target == "sm_80" and prepare(GEMM)[0].target == "sm_90a"

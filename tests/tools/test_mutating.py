"""The mutation run: its report, its sample, and `wgdsl verify`."""

from __future__ import annotations

import re

import pytest

from tests.shipped import ROOT, gemm
from tests.sim.programs import gemm as by_hand
from wgdsl import cli
from wgdsl.diagnostics.model import WgError
from wgdsl.diagnostics.protocol import TooManyStates
from wgdsl.diagnostics.verify import LonelyBarrier
from wgdsl.mutate import MAY_PASS, MUST_REJECT, OPERATORS, mutants, operator
from wgdsl.tools import mutating
from wgdsl.tools.mutating import RIGHT, run, sampled
from wgdsl.tools.mutation_text import report_text, summary
from wgdsl.tools.trial import trial

GEMM = str(ROOT / "examples" / "gemm" / "gemm.wg")


@pytest.fixture
def wgdsl(capfd):
    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as e:
            cli.main(["verify", *words])
        out, err = capfd.readouterr()
        return int(e.value.code or 0), out, err

    return call


@pytest.fixture
def blind(monkeypatch):
    """A verifier that takes everything."""
    monkeypatch.setattr(mutating, "verified", lambda program: program)


@pytest.fixture
def strict(monkeypatch):
    """A verifier that refuses everything."""

    def refuse(program):
        raise WgError([LonelyBarrier(barrier="As.full", waits=(), arrives=("load",))] * 2)

    monkeypatch.setattr(mutating, "verified", refuse)


# The run.


def test_what_is_missed(blind):
    report = run(by_hand())
    assert {o.mutant.operator.expects for o in report.missed} == {MUST_REJECT}
    known = [o for o in report.outcomes if o.known]
    assert len(report.missed) + len(known) == len(report.of(MUST_REJECT)) and report.of(MAY_PASS)
    assert not known and all(o.verdict == "accepted" for o in report.outcomes)
    lines = report_text(report).splitlines()
    assert lines[0] == "missed: the verifier accepts what it must reject"
    assert lines[1:4] == [
        "  no-wait: a wait on an mbarrier is deleted",
        "    wait As.empty[s] parity not p",
        "    deleted, in load at hand.wg:10",
    ]
    assert lines[-1] == summary(report) and f"{len(report.missed)} were missed" in lines[-1]


def test_nothing_is_missed(strict):
    report = run(by_hand())
    assert not report.missed and all(o.codes == ("WG0704",) for o in report.outcomes)
    text = report_text(report)
    assert text.startswith("no-wait ") and text.rstrip().endswith("none was missed")


def test_too_many_states_are_told_apart(monkeypatch):
    def give_up(program):
        raise WgError(TooManyStates(kernel="gemm", limit=20_000, widest="As"))

    monkeypatch.setattr(mutating, "verified", give_up)
    report = run(by_hand(), operators=[operator("no-expect")])
    assert not report.missed and summary(report).endswith("none was missed, 1 had too many states to tell")


def test_some_operators_only(blind):
    report = run(by_hand(), operators=[operator("no-wait"), operator("ring-larger")])
    assert [o.mutant.operator.name for o in report.outcomes] == ["no-wait", "no-wait", "ring-larger"]


def test_exempt_mutants_are_counted_and_not_tried(strict):
    report = run(gemm("nk").compile().forms.roles)
    assert report.exempt and report.total == len(report.outcomes)
    assert "exempt, 1: the CTA has one item, and fills the slot no more" in report_text(report, every=False)


def test_what_may_pass_has_to_be_right(blind):
    lenient = [o for o in OPERATORS if o.expects == MAY_PASS]
    wrong = run(by_hand(), operators=lenient, simulate=lambda program: "another C, seed 3")
    assert len(wrong.missed) == len(wrong.outcomes)
    assert "accepted, and simulated: another C, seed 3" in report_text(wrong)
    right = run(by_hand(), operators=lenient, simulate=lambda program: RIGHT)
    assert not right.missed and "accepted, simulated: right" in report_text(right)


def test_the_simulator_judges():
    kernel = gemm("nk").compile()
    simulate = trial(kernel, 2)
    assert simulate(kernel.roles) == RIGHT
    broken = next(x for x in mutants(kernel.roles, [operator("no-wait")]))
    assert simulate(broken.program).startswith("WG08")


# The sample.


def test_a_sample_has_one_of_each_operator():
    every = list(mutants(by_hand()))
    kinds = {x.operator.name for x in every}
    least = sampled(every, 1, 0)
    assert len(least) == len(kinds) == len({x.operator.name for x in least})
    more = sampled(every, 40, 0)
    assert len(more) == 40 and {x.operator.name for x in more} == kinds
    assert [x.number for x in more] == sorted(x.number for x in more)
    assert sampled(every, 1000, 0) == every


def test_a_seed_chooses():
    every = list(mutants(by_hand()))
    first, again, other = (sampled(every, 30, seed) for seed in (3, 3, 4))
    assert first == again != other


# The command.


def test_verify(wgdsl):
    code, out, _ = wgdsl(GEMM, "--schedule", "pipelined")
    said = r"schedule pipelined for gemm on sm_90a\n  kernel gemm_pipelined: all rules hold, for items of \d+ kinds .* states\n"
    assert code == 0 and re.fullmatch(said + r"  \d+\.\d\d s\n", out)


def test_verify_refuses(wgdsl, tmp_path):
    path = _explicit(tmp_path, "bytes 49152", "bytes 49168")
    code, out, err = wgdsl(str(path))
    assert code == 1 and not out and "WG0702" in err


def test_mutants_of_a_refused_schedule(wgdsl, tmp_path):
    path = _explicit(tmp_path, "bytes 49152", "bytes 49168")
    code, out, err = wgdsl(str(path), "--mutate")
    assert code == 1 and out == "the schedule itself is refused: no mutants were made\n" and "WG0702" in err


def test_verify_with_mutants(wgdsl, strict):
    code, out, _ = wgdsl(GEMM, "--schedule", "pipelined", "--mutate", "--sample", "5", "--seed", "2")
    kinds = {x.operator.name for x in mutants(gemm("nk").compile().forms.roles) if not x.exempt}
    assert code == 0 and f"{len(kinds)} of " in out.splitlines()[-1]


def test_missed_mutants_are_an_error(wgdsl, blind):
    code, out, _ = wgdsl(GEMM, "--schedule", "pipelined", "--mutate", "--sample", "1")
    assert code == 1
    assert out.split("\n\n")[1].startswith("missed: the verifier accepts what it must reject\n")


def test_the_report_goes_to_a_file(wgdsl, strict, tmp_path):
    code, out, _ = wgdsl(GEMM, "--schedule", "pipelined", "--mutate", "--sample", "1", "-o", str(tmp_path / "report.txt"))
    assert code == 0 and not out and "none was missed" in (tmp_path / "report.txt").read_text()


def test_an_explicit_form_of_ones_own(wgdsl, blind, tmp_path):
    path = _explicit(tmp_path, "", "")
    code, out, _ = wgdsl(str(path), "--mutate")
    assert code == 1 and "at schedules/hopper/gemm_pipelined.wg:23" in out


def _explicit(folder, old: str, new: str):
    path = folder / "explicit.wg"
    with pytest.raises(SystemExit):
        cli.main(["explain", GEMM, "--schedule", "pipelined", "-o", str(path)])
    path.write_text(path.read_text().replace(old, new))
    return path

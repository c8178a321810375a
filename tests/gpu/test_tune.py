"""A tuning on the GPU: what was measured is written; what is wrong, crashes or hangs is left out, and the rest goes on."""

from __future__ import annotations

import sys
import time

import pytest

from tests.gpu.sabotaged import BROKEN, broken
from wgdsl.cli import main
from wgdsl.driver import Settings
from wgdsl.foundation.resources import resource
from wgdsl.measured.table import read_table
from wgdsl.runtime import cuda
from wgdsl.tools.contest import Contest, Wrong, hold, times_of
from wgdsl.tools.gpu_stopwatch import gpu_stopwatch
from wgdsl.tools.halving import PLAN
from wgdsl.tools.progress import Silent
from wgdsl.tools.supervised import Journal, followed, read
from wgdsl.tools.track import on_gpu
from wgdsl.tools.trying import Trial
from wgdsl.tools.tune import Request, tune
from wgdsl.tools.tuning import tuned

pytestmark = pytest.mark.gpu

GEMM = resource("examples", "gemm", "gemm.wg")
ATTENTION = resource("examples", "attention", "attention.wg")
CALL = {"M": 520, "N": 512, "K": 256}
NAMES = ("warps", "warps {tile n 64}", "warps {tile k 32}")  # every GPU runs these


def contest() -> Contest:
    row = {"file": str(GEMM), "program": None, "target": "sm_80", "settings": Settings(), "dims": CALL}
    return Contest(trials={n: Trial(candidate=n, **row) for n in NAMES}, seed=1)


def faults(entries) -> dict[str, str]:
    return {e["fault"]: e["why"] for e in entries if "fault" in e}


def test_a_contest(card, tmp_path):
    with on_gpu(contest()) as track:
        hold(track.contest, Journal(tmp_path / "journal"), track)
    entries = read(tmp_path / "journal")
    assert faults(entries) == {}
    times = times_of(entries)
    assert set(times) == set(NAMES) and all(len(of) == len(PLAN) for of in times.values())
    assert all(0 < us < 1e5 for of in times.values() for each in of.values() for us in each)


def test_what_writes_nothing_is_wrong_in_either_call(card):
    one, other, _ = NAMES
    with on_gpu(contest()) as track:
        for name in NAMES:
            track.load(name)
            track.prove(name)
        track.fill()
        results = {name: track.result(name) for name in NAMES}
        assert track.same(one, results[one], other, results[other])
        track.kernels[other] = broken(track.kernels[other], "writes nothing")
        assert not track.same(one, results[one], other, track.result(other))
        with pytest.raises(Wrong, match="WRONG"):
            track.prove(other)


@pytest.mark.parametrize("how", BROKEN)
def test_the_others_go_on(card, tmp_path, how):
    contest().write(tmp_path / "contest.json")
    words = [str(tmp_path / "contest.json"), str(tmp_path / "journal"), NAMES[1], how]
    command = [sys.executable, "-m", "tests.gpu.sabotaged", *words]
    entries = list(followed(command, tmp_path / "journal", hang=8.0, until=time.monotonic() + 120))
    assert list(faults(entries)) == [NAMES[1]]
    times = times_of(entries)
    assert set(times) == {NAMES[0], NAMES[2]} and all(len(of) == len(PLAN) for of in times.values())


def test_times_are_written_and_found_again(card, tmp_path):
    table = tmp_path / "t.json"
    request = Request(file=GEMM, dims=("M=1024,N=1024,K=512",), target=_target(), jobs=4, into=table, most=4)
    lines: list[str] = []
    assert tuned(request, 20.0, lines.append) == 0
    (row,) = read_table(table).rows
    assert row.dims == {"M": 1024, "N": 1024, "K": 512} and row.microseconds
    assert all(1 < us < 1e4 for us in row.microseconds.values())
    assert read_table(table).card == card.name
    lines.clear()
    assert tuned(request, 20.0, lines.append) == 0
    assert any("measured before" in line for line in lines)


def test_dims_are_fixed_where_a_schedule_needs_them(card, tmp_path):
    dims = "B=1,G=4,R=1,M=1024,N=1024,D=64,E=64"
    settings, table = ("T=bf16", "causal=true"), tmp_path / "t.json"
    request = Request(file=ATTENTION, dims=(dims,), settings=settings, target=_target(), jobs=4, most=6, into=table)
    (found,) = tune(request, lambda target: gpu_stopwatch(target, 20.0), Silent())
    assert found.measured and not found.faults
    (row,) = read_table(table).rows
    assert row.dims["D"] == 64 and row.options["causal"] is True and row.types == {"T": "bf16"}


def test_the_command(card, tmp_path, capsys):
    table = tmp_path / "t.json"
    with pytest.raises(SystemExit) as e:
        main(["tune", str(GEMM), "--dims", "M=512,N=512,K=512", "--most", "2", "--into", str(table)])
    assert not e.value.code
    assert "to best" in capsys.readouterr().out and read_table(table).rows


def _target() -> str:
    """What this GPU runs best."""
    gpu = cuda.gpu()
    assert gpu is not None
    return gpu.best

"""`wgdsl tune` without a GPU: a stopwatch of the tests gives times, all else is as it runs."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from tests.lowering import GEMM, PIPELINED
from tests.programs.edits import edit
from tests.tools.courses import Watch
from wgdsl.cli import main
from wgdsl.diagnostics.model import WgError
from wgdsl.measured.table import read_table
from wgdsl.syntax.candidate import candidate
from wgdsl.tools.progress import Silent
from wgdsl.tools.tune import Request, tune
from wgdsl.tools.tuning import tuned

BLOCK = "option stages = 3  tune { tile n in {64, 128, 200, 256}; option stages in {2, 3, 9} }"
OWN = PIPELINED.removeprefix("wg 1\n")
FILE = GEMM + edit(OWN, ("ring 3", "ring stages"), ("  role load", f"  {BLOCK}\n  role load"))
LEGAL = [
    "pipelined",
    "pipelined {tile n 64, option stages 2}",
    "pipelined {tile n 64}",
    "pipelined {tile n 128, option stages 2}",
    "pipelined {tile n 128}",
    "pipelined {tile n 200, option stages 2}",
    "pipelined {tile n 200}",
    "pipelined {option stages 2}",
]
CALL = "M=512,N=512,K=256"
SPEED = {name: 10.0 + n for n, name in enumerate(LEGAL)}


@pytest.fixture
def request_of(tmp_path):
    """A request about the GEMM of this file."""
    (tmp_path / "g.wg").write_text(FILE)

    def of(*dims: str, **more) -> Request:
        return Request(
            file=tmp_path / "g.wg", dims=dims or (CALL,), **{"schedules": "pipelined", "target": "sm_90a", "jobs": 2, **more}
        )

    return of


@pytest.fixture
def watch(tmp_path):
    def of(during=lambda entry: None, **course) -> Watch:
        return Watch(tmp_path, lambda name: SPEED.get(name, 99.0), during, **course)

    return of


@pytest.fixture
def table(tmp_path):
    """What the table has, by the dim M."""

    def read() -> dict[int, dict[str, float]]:
        path = tmp_path / "g.sm_90a.json"
        return {r.dims["M"]: dict(r.microseconds) for r in read_table(path).rows} if path.exists() else {}

    return read


def outcomes(request: Request, stopwatch: Watch | None):
    return list(tune(request, lambda target: stopwatch, Silent()))


def test_what_is_legal_is_ranked_timed_and_written(request_of, watch, table, tmp_path):
    (found,) = outcomes(request_of(command="wgdsl tune g.wg"), watch())
    assert set(found.ranked) == set(LEGAL) == set(found.measured)
    seconds = [s for s in found.ranked.values() if s]
    assert len(seconds) == len(LEGAL) and seconds == sorted(seconds) and seconds[0] > 0
    assert table() == {512: SPEED}
    written = read_table(tmp_path / "g.sm_90a.json")
    assert (written.program, written.target, written.card) == ("gemm", "sm_90a", "a card")
    assert written.command == "wgdsl tune g.wg"
    (row,) = written.rows
    assert row.types == {"T": "f16"} and row.options["bias"] is False
    assert row.dims == {"M": 512, "N": 512, "K": 256}
    assert all(str(candidate(name)) == name for name in row.microseconds)


def test_what_is_illegal_is_counted_with_its_reason(request_of, watch):
    (found,) = outcomes(request_of(), watch())
    assert set(found.refused) == {
        f"pipelined {{{v}option stages 9}}" for v in ("", "tile n 64, ", "tile n 128, ", "tile n 200, ")
    }
    assert {r.code for r in found.refused.values()} == {"WG0708"}
    assert "bytes of shared memory are needed" in str(found.refused["pipelined {option stages 9}"])


def test_the_most_promising_are_taken(request_of, watch, table):
    stopwatch = watch()
    (found,) = outcomes(request_of(most=3), stopwatch)
    assert stopwatch.contests == [list(found.ranked)[:3]] == [found.taken]
    assert set(table()[512]) == set(found.taken)


def test_of_each_schedule_the_best_is_taken(request_of, watch, tmp_path):
    slow = "\nschedule slow extends pipelined { tile n 8, k 16  tune { tile n in {8}; option stages in {3} } }\n"
    (tmp_path / "g.wg").write_text(FILE + slow)
    (found,) = outcomes(request_of(most=4, schedules="pipelined,slow"), watch())
    best = next(n for n in found.ranked if n.startswith("slow"))
    assert list(found.ranked).index(best) >= 4 and best in found.taken and len(found.taken) == 4


def test_what_is_wrong_is_in_no_table(request_of, watch, table):
    wrong, other, fails = LEGAL[1], LEGAL[2], LEGAL[4]
    (found,) = outcomes(request_of(), watch(wrong=(wrong,), results={other: 2}, fails=(fails,)))
    assert set(found.faults) == {wrong, other, fails}
    assert set(table()[512]) == set(LEGAL) - {wrong, other, fails}


def interrupted(after: int, how):
    """Interrupts when so many rounds of candidates have been timed."""
    seen = []

    def during(entry):
        seen.extend([entry] if "times" in entry else [])
        if len(seen) > after:
            how()

    return during


def by_key():
    raise KeyboardInterrupt


def by_signal():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(1)  # the signal comes meanwhile


@pytest.mark.parametrize("how", [by_key, by_signal])
def test_interrupted_it_keeps_what_it_has(request_of, watch, table, how):
    stopwatch = watch(interrupted(3, how))
    found = outcomes(request_of(CALL, "M=1024"), stopwatch)
    assert len(found) == 1 and found[0].interrupted and len(stopwatch.contests) == 1
    first = stopwatch.contests[0][:3]
    assert table() == {512: {n: SPEED[n] for n in first}}

    again = watch()
    found = outcomes(request_of(CALL, "M=1024"), again)
    best = min(first, key=lambda n: SPEED[n])
    assert set(again.contests[0]) == {*LEGAL} - {*first} | {best}  # the rest, beside the best of those
    assert table() == {512: SPEED, 1024: SPEED} and not any(o.interrupted for o in found)


def test_interrupted_before_there_is_anything_it_writes_nothing(request_of, watch, table):
    (found,) = outcomes(request_of(), watch(interrupted(-1, by_key)))
    assert found.interrupted and not found.measured and table() == {}


def test_what_is_known_isnt_measured_again(request_of, watch, table):
    outcomes(request_of(), watch())
    stopwatch = watch()
    (found,) = outcomes(request_of(), stopwatch)
    assert stopwatch.contests == [] and found.known == SPEED == found.times
    stopwatch.speed = lambda name: 5.0
    (found,) = outcomes(request_of(again=True), stopwatch)
    assert set(stopwatch.contests[0]) == set(LEGAL) and set(table()[512].values()) == {5.0}


def test_other_rows_and_times_of_others_stay(request_of, watch, table, tmp_path):
    outcomes(request_of("M=1024,N=512,K=256"), watch())
    path = tmp_path / "g.sm_90a.json"
    data = json.loads(path.read_text())
    data["rows"][0]["microseconds"]["split"] = 3.0
    path.write_text(json.dumps(data))
    outcomes(request_of("M=1024,N=512,K=256", CALL, again=True), watch())
    assert table() == {1024: {**SPEED, "split": 3.0}, 512: SPEED}


def test_a_table_of_something_else_is_refused_before_anything_is_timed(request_of, watch, tmp_path):
    outcomes(request_of(), watch())
    other = watch()
    other.card = "another card"
    with pytest.raises(WgError, match="WG0660"):
        outcomes(request_of(), other)
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(WgError, match="WG0660"):
        outcomes(request_of(into=tmp_path / "broken.json"), watch())
    assert other.contests == []


def test_who_cant_keep_times_takes_none(request_of, watch, tmp_path):
    (tmp_path / "file").write_text("")
    stopwatch = watch()
    with pytest.raises(OSError, match="--into"):
        outcomes(request_of(into=tmp_path / "file" / "t.json"), stopwatch)
    assert stopwatch.contests == []


def test_times_go_where_they_are_asked_to(request_of, watch, table, tmp_path):
    outcomes(request_of(into=tmp_path / "out" / "t.json"), watch())
    assert table() == {} and read_table(tmp_path / "out" / "t.json").rows[0].microseconds == SPEED


def test_too_little_time_leaves_some(request_of, watch, table):
    (found,) = outcomes(request_of(seconds=0.01), watch())
    assert found.unranked == len(LEGAL) + 4 and not found.measured and table() == {}


def said(request: Request, stopwatch: Watch | None, timeout: float = 20.0) -> tuple[int, str]:
    lines: list[str] = []
    code = tuned(request, timeout, lines.append, lambda target: stopwatch)
    return code, "\n".join(lines)


def test_what_it_says(request_of, watch, tmp_path):
    code, text = said(request_of(), watch(wrong=(LEGAL[1],)))
    lines = text.splitlines()
    assert code == 0 and lines[0] == "M = 512, N = 512, K = 256"
    assert lines[1].split() == ["candidate", "predicted", "us", "measured", "us", "spread", "to", "best"]
    assert lines[2].startswith("  pipelined  ") and lines[2].split()[-5:] == [lines[2].split()[-5], "10.0", "0.0", "%", "1.000"]
    assert [line.split()[-1] for line in lines[2:9]] == [f"{SPEED[n] / 10:.3f}" for n in LEGAL if n != LEGAL[1]]
    assert "4 candidates refused, such as pipelined {" in text and "WG0708" in text
    assert f"left out: {LEGAL[1]}: O: WRONG" in text and f"written to {tmp_path / 'g.sm_90a.json'}" in text
    code, text = said(request_of(), watch())
    assert code == 0 and "measured before" in text


def test_without_a_gpu_it_ranks(request_of, table):
    code, text = said(request_of(), None)
    assert code == 69 and "nothing was timed, and no table was written" in text and table() == {}
    assert text.splitlines()[1].split() == ["candidate", "predicted", "us"] and all(n in text for n in LEGAL)


def test_interrupted_it_says_so(request_of, watch):
    code, text = said(request_of(), watch(interrupted(3, by_key)))
    assert code == 130 and "interrupted: 3 measured, kept in" in text


def test_nothing_legal_is_a_failure(request_of, watch):
    code, text = said(request_of(schedules="pipelined {option stages 9}"), watch())
    assert code == 1 and "nothing could be timed" in text and "1 candidate refused" in text


@pytest.mark.parametrize("limit", [{"most": 0}, {"seconds": 0.0}, {"jobs": 0}, {"timeout": -1.0}])
def test_limits_that_leave_nothing(request_of, watch, limit):
    timeout = limit.pop("timeout", 20.0)
    with pytest.raises(WgError, match="WG1015"):
        said(request_of(**limit), watch(), timeout)


@pytest.mark.parametrize("dims, code", [("M=512", "WG0655"), ("M=512,N=512,K=256,Q=2", "WG0654"), ("M", "WG0654")])
def test_dims_that_dont_fit(request_of, watch, dims, code):
    with pytest.raises(WgError, match=code):
        outcomes(request_of(dims), watch())


def test_the_command(tmp_path, capsys):
    """On this machine: with a GPU it would take one."""
    (tmp_path / "g.wg").write_text(FILE)
    words = ["tune", str(tmp_path / "g.wg"), "--schedule", "pipelined", "--target", "sm_90a"]
    with pytest.raises(SystemExit) as e:
        main([*words, "--list", "--dims", CALL])
    assert not e.value.code
    assert capsys.readouterr().out.splitlines()[-1] == "12 combinations"
    with pytest.raises(SystemExit) as e:
        main([*words, "--dims", CALL, "--most", "nothing"])
    assert e.value.code == 1 and "--most" in capsys.readouterr().err

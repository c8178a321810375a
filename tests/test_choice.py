"""No schedule named: which one is taken, for what is fixed and for each length, and that its results are right."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

import wgdsl
from wgdsl import driver
from wgdsl.cli import main
from wgdsl.driver import Settings, field_for, prepare
from wgdsl.foundation.resources import resource, table_files
from wgdsl.measured import places
from wgdsl.measured.table import Row, Table, read_table, write_table
from wgdsl.runtime import lowered
from wgdsl.runtime.choosing import Choosing
from wgdsl.sources import find_open
from wgdsl.syntax import ast
from wgdsl.syntax.candidate import candidate
from wgdsl.tools.golden import adopted, emitted

GEMM = resource("examples", "gemm", "gemm.wg").read_text()
ATTENTION = resource("examples", "attention", "attention.wg").read_text()
PIPELINED = resource("schedules", "hopper", "gemm_pipelined.wg").read_text()
TABLES = table_files()
AGAIN = 0.040  # seconds, of the processor: machines are shared
DEEP, SQUARE = {"M": 128, "N": 128, "K": 4096}, {"M": 1024, "N": 1024, "K": 1024}


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """A cache of its own, and no shipped tables."""
    monkeypatch.setenv("WGDSL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(lowered, "package_hash", lambda: "this package")
    for m in (driver, places):
        monkeypatch.setattr(m, "table_files", list)
    lowered.forget()
    yield
    lowered.forget()


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "my.wg").write_text(GEMM)
    return tmp_path / "my.wg"


def measure(path: Path, *rows: tuple[dict, dict], program="gemm", target="sm_90a", **parts) -> Path:
    """A table beside a file: dims and times of each row."""
    body = [Row(**{"types": {"T": "f16"}, "options": {"bias": False}, **parts}, dims=d, microseconds=t) for d, t in rows]
    file = path.with_suffix(f".{target}.json")
    write_table(file, Table(program=program, target=target, card="H", rows=tuple(body)))
    return file


def compile(path, **named) -> wgdsl.Kernel:
    return wgdsl.compile(path, **{"build": False, "target": "sm_90a", "types": {"T": "f16"}, **named})


def both(path) -> Path:
    return measure(path, (DEEP, {"split": 10, "pipelined": 40}), (SQUARE, {"split": 400, "pipelined": 200, "turns": 202}))


def test_lengths_decide_at_each_call(path):
    both(path)
    kernel = compile(path)
    assert isinstance(kernel, Choosing)
    rng = np.random.default_rng(0)
    for (m, n, k), name in {(70, 50, 2048): "split", (700, 600, 130): "pipelined", (64, 64, 1500): "split"}.items():
        a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((n, k)).astype(np.float16)
        got, want = kernel(a, b, device="sim"), a.astype(np.float64) @ b.astype(np.float64).T
        assert np.abs(got - want).max() <= 2e-3 * np.abs(want).max()
        assert kernel.pick(M=m, N=n, K=k).roles.schedule == name


def test_what_a_length_is_given_is_what_the_schedule_gives_by_its_name(path):
    both(path)
    assert compile(path).pick(**DEEP).cuda == compile(path, schedule="split").cuda
    assert compile(path).pick(**SQUARE).cuda == compile(path, schedule="pipelined").cuda


def test_rows_that_agree_need_no_lengths(path):
    measure(path, (DEEP, {"turns": 10, "pipelined": 40}), (SQUARE, {"turns": 1, "pipelined": 2}))
    kernel = compile(path)
    assert not isinstance(kernel, Choosing) and kernel.roles.schedule == "turns"
    assert "  chosen of 4 schedules: turns, the fastest on the whole of 2 rows of " in str(kernel.report)


def test_dims_that_are_fixed_need_no_lengths_either(path):
    both(path)
    for dims, name in ((DEEP, "split"), (SQUARE, "pipelined")):
        kernel = compile(path, dims=dims)
        assert not isinstance(kernel, Choosing) and kernel.roles.schedule == name


def test_the_report_of_a_pick_says_why(path):
    file = both(path)
    report = str(compile(path).pick(M=64, K=4096).report)
    assert f"chosen of 4 schedules: split, 10 us in row 2 of {file} (H)\n" in report
    assert "the nearest row there is: M = 128 for 64\n" in report


def test_a_schedule_that_is_named_is_taken(path):
    both(path)
    assert compile(path, schedule="turns").roles.schedule == "turns"
    assert "chosen" not in str(compile(path, schedule="turns").report)


def test_tuned_values_are_taken(path):
    tuned = "pipelined {ring As 2, ring Bs 2}"
    measure(path, (SQUARE, {"pipelined": 200, tuned: 190}))
    kernel = compile(path)
    assert f"4 schedules: {tuned}, 190 us" in str(kernel.report)
    assert kernel.cuda == compile(path, schedule=tuned).cuda != compile(path, schedule="pipelined").cuda


def test_tuned_values_of_the_only_schedule_are_taken(tmp_path):
    path = tmp_path / "one.wg"
    path.write_text(GEMM + PIPELINED.replace("wg 1", ""))
    as_written = compile(path).cuda
    measure(path, (SQUARE, {"pipelined": 200, "pipelined {ring As 2, ring Bs 2}": 190}))
    assert compile(path).cuda == compile(path, schedule="pipelined {ring As 2, ring Bs 2}").cuda != as_written


def test_what_there_no_longer_is_and_what_does_not_fit_is_passed_over(path):
    measure(path, (SQUARE, {"gone": 1, "pipelined {ring As 30}": 2, "pipelined {tile q 3}": 3, "turns": 4}))
    kernel = compile(path)
    assert kernel.roles.schedule == "turns"
    (line,) = [s for s in str(kernel.report).splitlines() if "passed over" in s]
    assert [word in line for word in ("gone (WG0651", "{ring As 30} (WG0", "{tile q 3} (WG0401")] == [True] * 3, line


def test_another_head_dim_takes_what_fits_it(tmp_path):
    path = tmp_path / "my.wg"
    path.write_text(ATTENTION)
    dims = {"B": 4, "G": 16, "R": 1, "M": 4096, "N": 4096, "D": 128, "E": 128}
    measure(path, (dims, {"three": 1, "four": 2, "two_80": 3}), program="attention", options={"causal": False, "lse": False})
    kernel = compile(path, dims={"D": 256, "E": 256}, options={"causal": True})
    assert kernel.roles.schedule == "two_80"
    report = str(kernel.report)
    assert "passed over: three (WG0707: " in report and "; four (WG0707: " in report
    assert "nearest row there is: causal = false for true, lse = false for true, D = 128 for 256, E = 128 for 256" in report


def test_types_and_options_choose_their_rows(path):
    file = measure(path, (SQUARE, {"turns": 1, "pipelined": 2}))
    table = json.loads(file.read_text())
    row = {**table["rows"][0], "options": {"bias": True}, "microseconds": {"turns": 2, "pipelined": 1}}
    half = {**table["rows"][0], "types": {"T": "bf16"}, "microseconds": {"split": 1}}
    file.write_text(json.dumps({**table, "rows": [*table["rows"], row, half]}))
    assert compile(path).roles.schedule == "turns"
    assert compile(path, options={"bias": True}).roles.schedule == "pipelined"
    assert compile(path, types={"T": "bf16"}).roles.schedule == "split"


# Nobody has measured.


def test_the_cycle_model_decides(path):
    kernel = compile(path)
    assert not isinstance(kernel, Choosing) and kernel.roles.schedule == "pipelined"
    assert "chosen of 4 schedules: pipelined, " in str(kernel.report) and "cycles by the model" in str(kernel.report)
    (path.parent / "near.wg").write_text(
        PIPELINED.replace("pipelined", "a_slow_one").replace("ring 3", "ring 2") + PIPELINED.replace("wg 1", "")
    )
    assert compile(path).roles.schedule == "pipelined", "not the first there is"


def test_a_target_without_a_model_takes_that_of_its_family(tmp_path):
    path = tmp_path / "my.wg"
    path.write_text(ATTENTION)
    kernel = compile(path, target="sm_86", dims={"D": 128, "E": 128})
    assert kernel.roles.schedule == compile(path, target="sm_80", dims={"D": 128, "E": 128}).roles.schedule
    assert "cycles by the model" in str(kernel.report)


def test_without_a_model_the_first_is_taken_that_can_be_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "MACHINES", {})
    path = tmp_path / "my.wg"
    path.write_text(ATTENTION)
    for size, name in ((64, "fa2"), (128, "fa2_narrow")):
        kernel = compile(path, target="sm_86", dims={"D": size, "E": size})
        assert kernel.roles.schedule == name
    assert "the first that can be compiled: nobody has measured it" in str(kernel.report)
    assert "passed over: fa2 (WG0707" in str(kernel.report)


def test_tables_of_a_shipped_program_count_for_schedules_beside_it(monkeypatch, tmp_path):
    """`wgdsl tune` writes them among the shipped ones."""
    program = resource("examples", "attention_bias", "attention_bias.wg")
    names = find_open(program, wanted=driver.wanted("sm_90a")).names
    table = tmp_path / "attention_bias.sm_90a.json"
    row = Row(dims={"M": 512}, microseconds={names[-1]: 1.0})
    write_table(table, Table(program="attention_bias", target="sm_90a", card="H", rows=(row,)))
    monkeypatch.setattr(places, "table_files", lambda: [table])
    assert field_for(program, target="sm_90a", settings=Settings()).rows
    copy = tmp_path / "own" / "attention_bias.wg"
    copy.parent.mkdir()
    copy.write_text(program.read_text())
    (copy.parent / "schedules.wg").write_text(program.with_name("schedules.wg").read_text())
    assert not field_for(copy, target="sm_90a", settings=Settings()).rows, "one's own schedules may only have the same names"


def test_a_single_schedule_is_taken_as_it_is(tmp_path):
    path = tmp_path / "one.wg"
    path.write_text(GEMM + PIPELINED.replace("wg 1", ""))
    assert str(compile(path).report).splitlines()[1].startswith("  fixed at compile time")
    with pytest.raises(wgdsl.WgError) as e:
        compile(path, options={"act": "tanh"})
    assert [p.code for p in e.value.problems] == ["WG0218"]


# Nothing can be taken.


def test_every_refusal_is_said(path):
    measure(path, (SQUARE, {"gone": 1, "pipelined {ring As 30}": 2}))
    (path.parent / "near.wg").write_text(PIPELINED.replace("ring 3", "ring 30"))
    with pytest.raises(wgdsl.WgError) as e:
        compile(path)
    (problem,) = e.value.problems
    assert problem.code == "WG0661" and [n.split(":")[0] for n in problem.notes()] == [
        "gone",
        "pipelined {ring As 30}",
        "pipelined",
    ]


def test_what_has_to_be_fixed_is_said_as_for_one_schedule(tmp_path):
    path = tmp_path / "my.wg"
    path.write_text(ATTENTION)
    with pytest.raises(wgdsl.WgError) as e:
        compile(path)
    assert [p.code for p in e.value.problems] == ["WG0657"]


@pytest.mark.parametrize(
    "given", [{"types": {"T": "f64"}}, {"options": {"layout": "x"}}, {"options": {"baes": True}}, {"dims": {"Z": 1}}]
)
def test_a_mistake_of_the_caller_is_said_once(path, given):
    with pytest.raises(wgdsl.WgError) as one:
        compile(path, schedule="pipelined", **given)
    with pytest.raises(wgdsl.WgError) as e:
        compile(path, **given)
    assert [p.title() for p in e.value.problems] == [p.title() for p in one.value.problems]


# What is remembered.


def test_a_table_that_changes_is_noticed(path):
    file = measure(path, (SQUARE, {"turns": 1, "pipelined": 2}))
    assert compile(path).roles.schedule == compile(path).roles.schedule == "turns"
    measure(path, (SQUARE, {"turns": 2, "pipelined": 1}))
    assert compile(path).roles.schedule == "pipelined"
    lowered.forget()
    assert compile(path).roles.schedule == "pipelined"
    measure(path, (SQUARE, {"split": 1}))
    assert compile(path).roles.schedule == "split"
    file.unlink()
    assert "cycles by the model" in str(compile(path).report)


def test_a_table_that_breaks_is_noticed_each_time(path):
    file = measure(path, (SQUARE, {"turns": 1}))
    compile(path)
    file.write_text("{")
    for _ in range(2):
        with pytest.raises(wgdsl.WgError, match="WG0660"):
            compile(path)
        assert wgdsl.supports(path, target="sm_90a").problems[0].code == "WG0660"
    assert compile(path, schedule="turns"), "a schedule that is named needs no table"


def test_the_same_again_parses_and_lowers_nothing(path, monkeypatch):
    both(path)
    first = compile(path)
    made = [first.pick(**dims).cuda for dims in (DEEP, SQUARE)]
    lowered.forget()
    for name in ("lower", "find_open", "rows_of"):
        monkeypatch.setattr(driver, name, None)
    again = compile(path)
    assert [again.pick(**dims).cuda for dims in (DEEP, SQUARE)] == made


def test_a_refusal_is_remembered_until_a_file_changes(path, monkeypatch):
    near, seen = path.parent / "near.wg", []
    near.write_text(PIPELINED.replace("ring 3", "ring 30") + PIPELINED.replace("wg 1", "").replace("pipelined", "other"))
    measure(path, (SQUARE, {"pipelined": 1, "other": 2}))
    lower = driver.lower
    monkeypatch.setattr(driver, "lower", lambda found, *rest: (seen.append(found.schedule.name), lower(found, *rest))[1])
    for _ in range(3):
        assert "passed over: pipelined (WG0708: " in str(compile(path).report)
        lowered.forget()
    assert seen == ["pipelined", "other"]
    near.write_text(near.read_text().replace("ring 30", "ring 2"))
    assert compile(path).roles.schedule == "pipelined"


def test_choosing_again_is_quick(path):
    """Also where a candidate was refused: nothing is lowered to find that out again."""
    measure(path, (DEEP, {"pipelined {ring As 30}": 1, "split": 2}), (SQUARE, {"pipelined": 1}))

    def once() -> float:
        start = time.process_time()
        assert isinstance(compile(path), Choosing)
        return time.process_time() - start

    once()
    best = min(once() for _ in range(5))
    assert best < AGAIN, f"{1e3 * best:.1f} ms"


# What is shipped.


@pytest.mark.parametrize("table", TABLES, ids=lambda p: p.name)
def test_shipped_tables_name_schedules_that_there_are(table):
    """And types, options and dims of the program."""
    times = read_table(table)
    (program,) = (p for p in resource("examples").glob("*/*.wg") if p.stem == times.program)
    there = find_open(program, program=times.program, wanted=driver.wanted(times.target))
    declared = {n for item in there.program.items for n in names_of(item)}
    for row in times.rows:
        assert {candidate(c).schedule for c in row.microseconds} <= {*there.names}
        assert {*row.types, *row.options, *row.dims} <= declared


def names_of(item) -> list[str]:
    if isinstance(item, ast.DimsDecl):
        return [name for name, _ in item.entries]
    return [item.name] if isinstance(item, ast.OptionDecl | ast.TypeDecl) else []


# The command line.


def test_prepared_for_lengths(path):
    both(path)
    for dims, name in ((DEEP, "split"), (SQUARE, "pipelined"), ({"K": 4096, "N": 100}, "split")):
        kernel, journal = prepare(path, target="sm_90a", settings=Settings(types={"T": "f16"}), lengths=dims)
        assert kernel.roles.schedule == journal.schedule == name and "chosen of" in kernel.forms.told[0]


def test_a_run_takes_the_schedule_for_its_dims(path, capsys, monkeypatch):
    both(path)
    seen = []
    plain = driver.prepare
    monkeypatch.setattr(driver, "prepare", lambda *a, **k: (seen.append(plain(*a, **k)), seen[-1])[1])
    with pytest.raises(SystemExit) as e:
        main(["run", str(path), "--target", "sm_90a", "--device", "sim", "--check", "--dims", "M=70,N=50,K=2000"])
    assert e.value.code == 0 and "C: right" in capsys.readouterr().out
    assert [kernel.roles.schedule for kernel, _ in seen] == ["split"]


def test_a_golden_holds_what_was_chosen(path):
    tuned = "pipelined {ring As 2, ring Bs 2}"
    measure(path, (SQUARE, {tuned: 190, "pipelined": 200}))
    folder, (golden,) = adopted(path, settings=["T=f16"])
    assert golden.schedule == tuned
    measure(path, (SQUARE, {"turns": 190}))
    assert emitted(folder, golden).roles.schedule == "pipelined", "a table that changes later is no matter"

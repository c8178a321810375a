"""The first candidate that can be compiled: refused ones are passed over, and tried once."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from tests.measured.test_nearest import SHAPE, row
from wgdsl.diagnostics.model import WgError
from wgdsl.diagnostics.runtime import TilesDontFit, UnknownSchedule
from wgdsl.measured.field import Field
from wgdsl.measured.nearest import Ranked, Shape
from wgdsl.measured.pick import NoneLegal, Picker, Refusal, told

FIXED = replace(SHAPE, lengths={})
ROWS = [row(1, M=512, times={"a": 1, "b": 2}), row(2, M=8192, times={"b": 3, "a": 4})]
REST = tuple(Ranked(candidate=n) for n in ("a", "b", "z"))


class Attempts:
    """Compiles all but some, and counts."""

    def __init__(self, *refused: str):
        self.refused, self.seen = refused, []

    def __call__(self, name: str) -> str:
        self.seen.append(name)
        if name in self.refused:
            raise WgError(TilesDontFit(why=f"{name} doesn't fit", cure=""))
        return f"made {name}"


def picker(*refused: str, rows=ROWS, rest=REST, shape=FIXED) -> tuple[Picker[str], Attempts]:
    attempts = Attempts(*refused)
    return Picker(rest, rows, shape, attempts), attempts


@pytest.mark.parametrize("length, taken", [(128, "a"), (512, "a"), (9999, "b")])
def test_lengths_decide(length, taken):
    found = picker()[0].pick({"M": length})
    assert (found.candidate, found.made, found.passed) == (taken, f"made {taken}", ())


def test_what_is_refused_is_passed_over_and_tried_once():
    chooser, attempts = picker("a")
    for length in (128, 512, 128):
        found = chooser.pick({"M": length})
        assert found.candidate == "b" and [str(r) for r in found.passed] == ["a (WG0659: a doesn't fit)"]
    assert attempts.seen == ["a", "b"]


def test_schedules_that_nobody_measured_come_last():
    assert picker("a", "b")[0].pick({}).candidate == "z"
    assert picker(rows=(), rest=REST[::-1])[0].pick({}).candidate == "z", "in their own order"


def test_nothing_legal():
    with pytest.raises(NoneLegal) as e:
        picker("a", "b", "z")[0].pick({"M": 1})
    assert [r.candidate for r in e.value.refusals] == ["a", "b", "z"]


def test_a_defect_is_no_refusal():
    def fails(name: str) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Picker(REST, ROWS, FIXED, fails).pick({})


def test_lengths_that_do_not_matter_settle_it():
    assert picker()[0].settled() is None
    same = [ROWS[0], row(2, M=8192, times={"a": 3, "z": 4})]
    found = picker(rows=same)[0].settled()
    assert found is not None and found.candidate == "a"
    other = [*same, row(3, causal=True, times={"z": 1})]
    assert picker(rows=other)[0].settled() is not None, "rows that are farther by what is fixed don't count"


def test_what_is_legal_settles_it_too():
    found = picker("a")[0].settled()
    assert found is not None and found.candidate == "b"
    assert picker(rows=())[0].settled() is not None


def test_threads_try_a_candidate_once():
    chooser, attempts = picker()
    threads = [threading.Thread(target=chooser.pick, args=({"M": 512},)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert attempts.seen == ["a"]


# What is said of it.


def lines(lengths, *refused, **given) -> list[str]:
    chooser, _ = picker(*refused, **given)
    return list(told(chooser.pick(lengths), replace(FIXED, lengths=lengths), 3))


def test_the_report_names_the_row_and_how_near_it_is():
    assert lines({"M": 512}) == ["chosen of 3 schedules: a, 1 us in row 1 of p.json (H)"]
    assert lines({"M": 500}) == [
        "chosen of 3 schedules: a, 1 us in row 1 of p.json (H)",
        "  the nearest row there is: M = 512 for 500",
    ]
    far = [row(4, T="f16", causal=True, D=64, times={"a": 2.5})]
    assert lines({}, rows=far)[1] == "  the nearest row there is: T = f16 for bf16, causal = true for false, D = 64 for 128"


def test_the_report_names_what_was_passed_over():
    assert lines({"M": 512}, "a")[-1] == "  passed over: a (WG0659: a doesn't fit)"
    many = tuple(Ranked(candidate=n) for n in "pqrst")
    assert lines({}, *"pqrs", rows=(), rest=many)[-1].endswith("; r (WG0659: r doesn't fit); 1 more")


def test_the_report_says_what_nobody_measured():
    assert lines({}, rows=()) == ["chosen of 3 schedules: a, the first that can be compiled: nobody has measured it"]
    model = (Ranked(candidate="b", cycles=12345.0),)
    assert lines({}, rows=(), rest=model) == [
        "chosen of 3 schedules: b, 1.23e+04 cycles by the model: nobody has measured this program"
    ]


def test_the_report_of_a_tie():
    (line,) = lines({})
    assert line == "chosen of 3 schedules: a, the fastest on the whole of 2 rows of p.json that are equally near"


# What is wrong if nothing can be compiled.

FIELD = Field(program="p", target="sm_90a", names=("a", "b"), texts=())


def refusal(name: str, why: str) -> Refusal:
    return Refusal(candidate=name, problems=(TilesDontFit(why=why, cure=""),))


def test_each_refusal_is_listed():
    error = FIELD.refused(
        (refusal("a", "too wide"), Refusal(candidate="b", problems=(UnknownSchedule(name="b", program="p", known=()),)))
    )
    (problem,) = error.problems
    assert problem.code == "WG0661" and [n.split(":")[0] for n in problem.notes()] == ["a", "b"]
    assert "too wide" in str(error) and "WG0651" in str(error)


def test_what_is_wrong_with_all_is_said_as_itself():
    (problem,) = FIELD.refused((refusal("a", "too wide"), refusal("b", "too wide"))).problems
    assert problem.code == "WG0659"


def test_a_field_with_one_schedule():
    alone = replace(FIELD, names=("a",))
    assert alone.alone and not FIELD.alone
    assert not replace(alone, rows=(ROWS[0],)).alone, "its tuned values may be measured"


def test_shapes_differ_by_what_both_have():
    assert lines({"B": 3}, shape=Shape(), rows=[ROWS[0]]) == ["chosen of 3 schedules: a, 1 us in row 1 of p.json (H)"]

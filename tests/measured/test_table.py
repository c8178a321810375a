"""Tables of measured times: what is written is read again, rows are joined, and nothing that is wrong passes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from wgdsl.diagnostics.model import WgError
from wgdsl.measured.table import Row, Table, add, merged, parsed, read_table, table_path, write_table

SHAPE = {"types": {"T": "bf16"}, "options": {"causal": False}, "dims": {"M": 512, "D": 128}}
ROW = Row(**SHAPE, microseconds={"three": 9.5, "two {tile j 96, ring Ks 3}": 10})
LONG = replace(ROW, dims={"M": 4096, "D": 128}, microseconds={"two": 80.25})
TABLE = Table(program="p", target="sm_90a", card="H", date="2026-11-30", command="wgdsl tune p.wg", rows=(ROW, LONG))


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "new" / "p.sm_90a.json"
    write_table(path, TABLE)
    assert {r.key: r for r in read_table(path).rows} == {r.key: r for r in TABLE.rows}
    assert replace(read_table(path), rows=()) == replace(TABLE, rows=())
    assert [p.name for p in path.parent.iterdir()] == [path.name], "nothing half-written is left"


def test_a_row_stands_on_one_line_wherever_it_came_from():
    lines = TABLE.text.splitlines()
    assert len([line for line in lines if "microseconds" in line]) == 2
    assert TABLE.text == replace(TABLE, rows=(LONG, ROW)).text
    assert parsed(TABLE.text, "p").rows == (ROW, LONG), "short before long"


def test_a_candidate_has_one_spelling():
    text = TABLE.text.replace("two {tile j 96, ring Ks 3}", "two { tile  j 96,ring Ks 3 }")
    assert text != TABLE.text and parsed(text, "p").text == TABLE.text


def test_merging_joins_the_times_of_what_was_measured_alike():
    again = replace(TABLE, date="2026-12-01", rows=(replace(ROW, microseconds={"three": 9.0, "four": 8.0}),))
    whole = merged(TABLE, again)
    assert whole.date == "2026-12-01"
    assert {r.key: r.microseconds for r in whole.rows} == {
        ROW.key: {"three": 9.0, "two {tile j 96, ring Ks 3}": 10, "four": 8.0},
        LONG.key: {"two": 80.25},
    }


@pytest.mark.parametrize("what", ["program", "target", "card"])
def test_tables_of_different_things_are_not_merged(what):
    with pytest.raises(WgError, match=f"WG0660.*{what}"):
        merged(TABLE, replace(TABLE, **{what: "other"}))


def test_adding_keeps_what_the_file_holds(tmp_path):
    path = tmp_path / "p.sm_90a.json"
    add(path, replace(TABLE, rows=(ROW,)))
    add(path, replace(TABLE, rows=(LONG,)))
    assert {r.key for r in read_table(path).rows} == {ROW.key, LONG.key}


def test_adding_leaves_a_broken_file_alone(tmp_path):
    path = tmp_path / "p.sm_90a.json"
    path.write_text("{")
    with pytest.raises(WgError, match="WG0660"):
        add(path, TABLE)
    assert path.read_text() == "{"


def test_nothing_is_written_that_could_not_be_read(tmp_path):
    path = tmp_path / "p.sm_90a.json"
    with pytest.raises(WgError, match="WG0660"):
        write_table(path, replace(TABLE, rows=(replace(ROW, microseconds={"three": float("nan")}),)))
    assert not path.exists()


def test_where_tables_are_written(tmp_path):
    source = tmp_path / "my.wg"
    assert table_path("p", "sm_80", source) == tmp_path / "my.sm_80.json"
    assert table_path("p", "sm_80", source, several=True) == tmp_path / "my.p.sm_80.json"
    assert table_path("p", "sm_80").parts[-3:] == ("schedules", "measured", "p.sm_80.json")


def changed(change) -> str:
    data = json.loads(TABLE.text)
    change(data)
    return json.dumps(data)


def row(**parts):
    return changed(lambda d: d["rows"][1].update(parts))


BROKEN = {
    "no JSON": ("{", None, "JSON"),
    "a list": ("[]", None, "object"),
    "no program": (changed(lambda d: d.pop("program")), None, "`program`"),
    "a card without a name": (changed(lambda d: d.update(card="")), None, "`card`"),
    "a date as a number": (changed(lambda d: d.update(date=3)), None, "`date`"),
    "no rows": (changed(lambda d: d.pop("rows")), None, "`rows`"),
    "another key": (changed(lambda d: d.update(row=[])), None, "did you mean `rows`"),
    "a row that is none": (changed(lambda d: d["rows"].append(3)), 3, "object"),
    "a row's other key": (row(microsecond={}), 2, "did you mean `microseconds`"),
    "a row without dims": (changed(lambda d: d["rows"][1].pop("dims")), 2, "`dims`"),
    "a type as a number": (row(types={"T": 16}), 2, "type `T`"),
    "an option as a list": (row(options={"causal": []}), 2, "option `causal`"),
    "half a dim": (row(dims={"M": 0.5}), 2, "dim `M`"),
    "a dim below 0": (row(dims={"M": -1}), 2, "dim `M`"),
    "a dim that is true": (row(dims={"M": True}), 2, "dim `M`"),
    "no times": (row(microseconds={}), 2, "no times"),
    "a time of 0": (row(microseconds={"three": 0}), 2, "time of `three`"),
    "an endless time": (row(microseconds={"three": float("inf")}), 2, "time of `three`"),
    "a time of too many digits": (TABLE.text.replace("9.5", "9" * 5000), None, "digits"),
    "a time without end": (TABLE.text.replace("9.5", "9" * 500), 1, "time of `three`"),
    "a time as a text": (row(microseconds={"three": "9"}), 2, "time of `three`"),
    "no candidate": (row(microseconds={"three {tile}": 9}), 2, "names no schedule"),
    "a candidate twice": (row(microseconds={"a {tile j 8}": 9, "a {tile  j 8}": 9}), 2, "two times"),
    "a row twice": (changed(lambda d: d["rows"].append(d["rows"][0])), 3, "row 1"),
    "too deep": ("[" * 100_000, None, ""),
}


@pytest.mark.parametrize("text, number, why", BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_is_said_with_its_place(text, number, why):
    with pytest.raises(WgError) as e:
        parsed(text, "my.sm_90a.json")
    (problem,) = e.value.problems
    assert (problem.code, problem.row) == ("WG0660", number)
    assert why in problem.title() and "my.sm_90a.json" in problem.title() and problem.help()


def test_a_file_that_is_no_text_is_an_error_too(tmp_path):
    (tmp_path / "my.sm_90a.json").write_bytes(b"\xff")
    with pytest.raises(WgError, match="WG0660"):
        read_table(tmp_path / "my.sm_90a.json")
    with pytest.raises(WgError, match="WG0660"):
        read_table(tmp_path / "none.json")

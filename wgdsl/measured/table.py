"""Tables of measured times: which schedule of a program took how long, on a card, for what.

In: a file, or times.  Out: a `Table`, and back. One file holds one program, target and card:

    {"program": "attention", "target": "sm_90a", "card": "NVIDIA H200", "date": "2026-11-30", "command": "wgdsl tune ...",
     "rows": [{"types": {"T": "bf16"}, "options": {"causal": false}, "dims": {"M": 4096, ...},
               "microseconds": {"three": 97.5, "two {tile j 96}": 101.2}}]}

A row says every type, every option of the program and every dim that a call is free to choose or that was fixed; what it has
times of are candidates (`syntax.candidate`). A file is data of somebody: whatever is wrong in it is an error that says where.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..diagnostics.hints import nearest
from ..diagnostics.model import WgError
from ..diagnostics.runtime import BadTable
from ..foundation.resources import MEASURED, resource
from ..runtime.store import write_file
from ..syntax.candidate import candidate
from ..syntax.options import OptionValue

HEAD = ("program", "target", "card", "date", "command")
PARTS = ("types", "options", "dims", "microseconds")
LONGEST = 1e12  # microseconds; no time is infinite

Key = tuple[tuple[tuple[str, Any], ...], ...]


@dataclass(frozen=True, kw_only=True)
class Row:
    """The times of some candidates for one shape of a program. microseconds: a time by the text of a candidate."""

    types: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    microseconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """What was measured, whatever came out."""
        return tuple(tuple(sorted(part.items())) for part in (self.types, self.options, self.dims))


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of one file, and where they come from. command: what makes them again."""

    program: str
    target: str
    card: str
    date: str = ""
    command: str = ""
    rows: tuple[Row, ...] = ()

    @property
    def text(self) -> str:
        """A row a line, in the order of what was measured, so that files of several runs can be compared."""
        head = "".join(f" {json.dumps(name)}: {json.dumps(getattr(self, name))},\n" for name in HEAD)
        rows = ",\n".join(f"  {_line(r)}" for r in sorted(self.rows, key=_order))
        return f'{{\n{head} "rows": [\n{rows}\n ]\n}}\n'


def _order(row: Row) -> tuple[Any, ...]:
    types, options, dims = row.key
    return (repr(types), repr(options), dims)


def _line(row: Row) -> str:
    return json.dumps({name: dict(sorted(getattr(row, name).items())) for name in PARTS}, ensure_ascii=False)


def table_path(program: str, target: str, source: Path | None = None, *, several: bool = False) -> Path:
    """Where the times of a program are written: beside its file, or among the shipped ones if it has none.

    several: the file holds other programs too.
    """
    if source is None:
        return resource("schedules") / MEASURED / f"{program}.{target}.json"
    stem = f"{source.stem}.{program}" if several else source.stem
    return source.with_name(f"{stem}.{target}.json")


def read_table(path: Path) -> Table:
    """The table of a file. Raises WgError (WG0660) for what is none."""
    return parsed_file(path, str(path))[1]


def parsed_file(path: Path, shown: str) -> tuple[str, Table]:
    """The text of a file and the table that it is. `shown`: what messages call it."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise WgError(BadTable(path=shown, why=f"it can't be read: {e}")) from e
    return text, parsed(text, shown)


def write_table(path: Path, table: Table) -> None:
    """Write it so that nobody ever sees half of it. Raises OSError, and WgError (WG0660) for what couldn't be read again."""
    text = table.text
    parsed(text, str(path))
    write_file(path, text.encode())
    path.chmod(0o644)


def add(path: Path, table: Table) -> Table:
    """The same, with what the file held before. Raises WgError (WG0660) if that is no table, or one of something else."""
    whole = merged(read_table(path), table, str(path)) if path.exists() else merged(replace(table, rows=()), table, str(path))
    write_table(path, whole)
    return whole


def merged(old: Table, new: Table, path: str = "the table") -> Table:
    """Both. Of what was measured alike the new times count, beside those that only the old row has.

    Raises WgError (WG0660) if they are of different programs, targets or cards.
    """
    for what in ("program", "target", "card"):
        before, now = getattr(old, what), getattr(new, what)
        if before != now:
            raise WgError(BadTable(path=path, why=f"it holds times of {what} {before}, not of {now}", cure="name another file"))
    rows = {r.key: r for r in old.rows}
    for row in new.rows:
        same = rows.get(row.key)
        rows[row.key] = row if same is None else replace(row, microseconds={**same.microseconds, **row.microseconds})
    return replace(new, rows=tuple(rows.values()))


# Reading.


def parsed(text: str, path: str) -> Table:
    """The table that a text is. Raises WgError (WG0660)."""
    try:
        return _table(json.loads(text))
    except ValueError as e:
        raise WgError(BadTable(path=path, why=f"it isn't JSON: {e}")) from e
    except (_Wrong, RecursionError) as e:
        raise WgError(BadTable(path=path, row=getattr(e, "row", None), why=str(e))) from e


class _Wrong(Exception):
    """What a table can't be. row: which, counted from 1."""

    row: int | None = None


def _table(data: Any) -> Table:
    _named(data, (*HEAD, "rows"), "the table")
    for name in HEAD:
        if not isinstance(data.get(name, ""), str) or (name in HEAD[:3] and not data.get(name)):
            raise _Wrong(f"`{name}` has to be a text")
    if not isinstance(data.get("rows"), list):
        raise _Wrong("`rows` has to be a list")
    rows = tuple(_rows(data["rows"]))
    return Table(**{name: data.get(name, "") for name in HEAD}, rows=rows)


def _rows(data: list[Any]) -> Iterator[Row]:
    seen: dict[Key, int] = {}
    for number, each in enumerate(data, 1):
        try:
            row = _row(each)
            first = seen.setdefault(row.key, number)
            if first != number:
                raise _Wrong(f"it is of the same types, options and dims as row {first}")
        except _Wrong as e:
            e.row = number
            raise
        yield row


def _row(data: Any) -> Row:
    _named(data, PARTS, "a row")
    for name in PARTS:
        if not isinstance(data.get(name), dict):
            raise _Wrong(f"`{name}` has to be an object")
    _each(data["types"], "type", lambda v: isinstance(v, str), "the name of an element type")
    _each(data["options"], "option", lambda v: isinstance(v, bool | int | float | str), "a text, a number or a truth value")
    _each(data["dims"], "dim", lambda v: _whole(v) and v >= 0, "a whole number of 0 or more")
    _each(data["microseconds"], "time of", _time, "a positive number")
    if not data["microseconds"]:
        raise _Wrong("it has no times")
    return Row(**{**{name: data[name] for name in PARTS}, "microseconds": _by_candidate(data["microseconds"])})


def _by_candidate(times: Mapping[str, float]) -> dict[str, float]:
    """The times, by candidates in the form in which they are always written."""
    out: dict[str, float] = {}
    for text, time in times.items():
        try:
            name = str(candidate(text))
        except WgError as e:
            raise _Wrong(e.problems[0].title()) from e
        if name in out:
            raise _Wrong(f"`{name}` has two times")
        out[name] = time
    return out


def _named(data: Any, known: tuple[str, ...], what: str) -> None:
    if not isinstance(data, dict):
        raise _Wrong(f"{what} has to be an object")
    for name in data:
        if name not in known:
            meant = nearest(name, known)
            raise _Wrong(f"{what} holds no `{name}`" + (f"; did you mean `{meant}`?" if meant else ""))


def _each(part: Mapping[str, Any], what: str, right: Any, rule: str) -> None:
    for name, value in part.items():
        if not right(value):
            raise _Wrong(f"{what} `{name}` is {json.dumps(value)}: it has to be {rule}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _time(value: Any) -> bool:
    return (_whole(value) or isinstance(value, float)) and 0 < value < LONGEST

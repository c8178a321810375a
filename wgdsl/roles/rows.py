"""The vocabulary of the explicit form: one row for each thing that a role program is made of.

A row is a class of the model with the pattern of its line. `text.py` prints by it, `grammar.py` makes the grammar's rules of
it, `read.py` reads by it, and the documentation lists it. In a pattern

    word                  stands for itself
    {fields:codec}        is made of those fields by a codec of `codecs.py`; `{field:a|b}` is one of these words
    (? ... {f:codec})     is left out where `f`, the first field in it, has its default
    (?flag= ...)          is there where the field `flag` is true

and spaces are printed as they stand. A row applies where its `fixed` fields have those values; the first that does is taken.
`absent` gives the default of a field whose dataclass has none; `context` names the fields that the surroundings tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from typing import Any

from ..program.expr import FALSE, TRUE
from ..program.poly import Poly
from . import model as m

_PIECE = re.compile(r"\{(?P<fields>[\w ]+):(?P<codec>[\w|]+)\}|\(\?(?:(?P<flag>\w+)=)?(?P<inner>(?:\{[^}]*\}|[^{}()])*)\)")
_WORDS = re.compile(r"[A-Za-z_]\w*|[0-9]+|\+:|\.\.|\+=|\S")
_UNWRITTEN = frozenset(("span", "note"))  # told by what stands behind the line


@dataclass(frozen=True)
class Words:
    """Literal text; `words` are what the lexer makes of it."""

    text: str

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(_WORDS.findall(self.text))


@dataclass(frozen=True)
class Slot:
    """Fields that one codec prints and reads together."""

    fields: tuple[str, ...]
    codec: str

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that `{field:a|b}` may be."""
        return tuple(self.codec.split("|")) if "|" in self.codec else ()


@dataclass(frozen=True)
class Maybe:
    """Pieces that are left out at the default of `field`; `flag`: `field` is a boolean that nothing else tells."""

    field: str
    flag: bool
    pieces: tuple[Piece, ...]


Piece = Words | Slot | Maybe


@dataclass(frozen=True, eq=False)
class Row:
    """`remark`: what follows from the rest, printed as a comment. `inside`, `after`: the integers that the row's block can
    name, and those that the lines after it can: a field that holds a name; "items", the indices of the grid; "next", those of
    the item that follows."""

    make: type
    pattern: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    absent: Mapping[str, Any] = field(default_factory=dict)
    context: tuple[str, ...] = ()
    inside: str = ""
    after: str = ""
    remark: Callable[[Any], str] | None = None

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple(_pieces(self.pattern))

    def applies(self, x: object) -> bool:
        """Whether this row tells all of `x`."""
        return all(getattr(x, name) == value for name, value in self.fixed.items())

    def default(self, name: str) -> Any:
        """The value of a field whose piece is left out."""
        if name in self.absent:
            return self.absent[name]
        found = next(f for f in fields(self.make) if f.name == name)
        assert found.default is not MISSING, f"{self.make.__name__}.{name} has no default: the row has to say `absent`"
        return found.default

    def told(self) -> frozenset[str]:
        """The fields that the line tells."""
        return frozenset(self.fixed) | frozenset(self.context) | frozenset(_fields(self.pieces))


def _pieces(pattern: str) -> Iterator[Piece]:
    at = 0
    for match in _PIECE.finditer(pattern):
        if match.start() > at:
            yield Words(pattern[at : match.start()])
        at = match.end()
        if match["fields"]:
            yield Slot(tuple(match["fields"].split()), match["codec"])
            continue
        inner = tuple(_pieces(match["inner"]))
        yield Maybe(match["flag"] or next(_fields(inner)), bool(match["flag"]), inner)
    if at < len(pattern):
        yield Words(pattern[at:])


def _fields(pieces: tuple[Piece, ...]) -> Iterator[str]:
    for p in pieces:
        if isinstance(p, Slot):
            yield from p.fields
        if isinstance(p, Maybe):
            yield p.field
            yield from _fields(p.pieces)


def untold(row: Row) -> frozenset[str]:
    """The fields of the row's class that its line leaves out: a row is whole if there are none."""
    return frozenset(f.name for f in fields(row.make)) - row.told() - _UNWRITTEN


# What a kernel declares beside dataclasses of the model.


@dataclass(frozen=True, kw_only=True)
class Rounding:
    what: str


@dataclass(frozen=True, kw_only=True)
class Computes:
    """What a kernel is part of, where that isn't its role program's own."""

    program: str
    schedule: str
    target: str


@dataclass(frozen=True, kw_only=True)
class Threads:
    count: int


@dataclass(frozen=True, kw_only=True)
class Resident:
    count: int


@dataclass(frozen=True, kw_only=True)
class InOrder:
    """Whose columns lie in the order v8."""

    index: str


@dataclass(frozen=True, kw_only=True)
class Shared:
    nbytes: int


@dataclass(frozen=True, kw_only=True)
class Extent:
    index: str
    extent: Poly


@dataclass(frozen=True, kw_only=True)
class Bars:
    use: str
    first: int
    count: int


def _plural(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def _buffer_bytes(b: m.Buffer) -> str:
    return f"{b.tile_bytes} bytes a tile, {b.total_bytes} in all"


def _value_registers(v: m.Value) -> str:
    return _plural(v.registers, "register")


def _value(kind: str, size: str, **fixed: Any) -> Row:
    pattern = "value {name:new}: " + kind + size + " {dtype:dtype}(?partial= partial)(? over {over:value})"
    return Row(m.Value, pattern, {"kind": kind, **fixed}, context=("role",), remark=_value_registers)


HEAD = (
    Row(Rounding, "rounds {what:text}"),
)  # fmt: skip
DECLARATIONS = (
    Row(Computes, "computes {program:name} by {schedule:name} on {target:name}"),
    Row(m.Grid, "grid(?persistent= persistent)(?dynamic= dynamic) over ({axes:grid_axes})(? section {order:order})"),
    Row(Threads, "threads {count:int}"),
    Row(Shared, "shared {nbytes:int}"),
    Row(Resident, "resident {count:int}"),
    Row(InOrder, "columns {index:name} permute v8"),
    Row(
        m.TensorArg,
        "tensor {name:new}: {dtype:dtype}[{shape:polys}](?written= written)(?temporary= temporary)",
        absent={"written": False},
    ),
    Row(Extent, "index {index:new} < {extent:poly}"),
    Row(
        m.Param,
        "param {kind:map|pointer|stride|dim|scalar|number|divisor|flag|counter} {name:name}"
        "(? of {tensor:tensor})(? axis {axis:int})(?: {dtype:dtype})(? = {value:expr})",
    ),
    Row(
        m.TensorMap,
        "map {name:new} of {tensor:tensor}: {dtype:dtype} dims ({dims:dims}) box ({box:ints}) swizzle {swizzle:int}",
    ),
    Row(
        m.Buffer,
        "smem {name:new} = {tensor:name}(?[{rows_index:name}, {cols_index:name}]): {dtype:dtype} {rows:int} x {cols:int} "
        "swizzle {swizzle:int} ring {ring:ring} parts {parts:int} stages {stages:int} at {offset:int}"
        "(? stride {part_stride:int})(? over {over:buffer})",
        absent={"rows_index": "", "cols_index": ""},
        remark=_buffer_bytes,
    ),
    Row(
        m.Ring,
        "ring {name:new} stages {stages:int} holds ({buffers:buffers})(? full {full:barrier})(? empty {empty:barrier})",
    ),
    Row(m.Barrier, "barrier {name:new} of {ring:ring} count {count:int} parts {parts:int} stages {stages:int} at {offset:int}"),
    Row(Bars, "bars {first:int} +: {count:int} for {use:text}"),
)
ROLE = Row(
    m.Role,
    "role {name:new} : warpgroups {first:int} +: {count:int}(? registers {registers:int})(?elected= one thread) {steps:role}",
    absent={"registers": None, "elected": False},
)
VALUES = (
    _value("row", "(? of {rows:int})", cols=1),
    _value("flag", "(? of {rows:int})", cols=1),
    _value("count", "(? of {rows:int})", cols=1),
    _value("tile", " {rows:int} x {cols:int}"),
    _value("operand", " {rows:int} x {cols:int}"),
    _value("elements", " {rows:int} x {cols:int}"),
)
STEPS = (
    Row(m.Items, "items(?joined= joined)(?counted= counted)(? from {source:counter|work}) {body:steps}", inside="items"),
    Row(m.Fetch, "fetch item", {"only": TRUE, "reads": ()}),
    Row(m.Fetch, "fetch item where {only:predicate} {reads:steps}"),
    Row(m.PutItem, "put item in {buffer slot:stage}", {"ahead": False}),
    Row(m.PutItem, "put next item in {buffer slot:stage}", {"ahead": True}),
    Row(m.TakeItem, "take item from {buffer slot:stage}", {"ahead": False}),
    Row(m.TakeItem, "take next item from {buffer slot:stage}", {"ahead": True}),
    Row(m.Leave, "leave if no item", after="items"),
    Row(m.NextItem, "next item", after="next"),
    Row(m.Begun, "begun {value:poly}"),
    Row(m.Let, "let {name:new} = {value:poly}", after="name"),
    Row(m.Read, "read {name:new} = {value:poly} from {low:poly} to {high:poly}", after="name"),
    Row(
        m.Loop,
        "loop {var:new} {start:poly} .. {stop:stop}(? by {step:int})(? mask {mask:mask}) {body:steps}",
        inside="var",
    ),
    Row(m.If, "if {cond:predicate} {then:steps}(? else {other:steps})"),
    Row(m.Elect, "one thread {body:steps}"),
    Row(m.Registers, "registers {direction:inc|dec} {count:int}"),
    Row(m.Wait, "wait {barrier part slot:event} parity p", {"flip": False}),
    Row(m.Wait, "wait {barrier part slot:event} parity not p", {"flip": True}),
    Row(m.Expect, "expect {barrier part slot:event} bytes {nbytes:int}"),
    Row(m.Arrive, "arrive {barrier part slot:event} by lane 0 of each warp(? times {count:int})", {"by": "warps"}),
    Row(m.Arrive, "arrive {barrier part slot:event} by one thread(? times {count:int})", {"by": "thread"}),
    Row(m.Advance, "advance {ring:ring}(? by {stages:poly})"),
    Row(
        m.Tma,
        "tma {buffer part slot:tile}(? panel {panel:int})(? of {parts:int} parts)(? part {rows_part:int}) = {map coords:box} "
        "signals {barrier barrier_part slot:event}",
    ),
    Row(
        m.Wgmma,
        "wgmma {acc:value} = {a:operand} * {b:operand} first shape 64 x {n:int} x {k:int} {dtype:dtype}",
        {"zero": TRUE},
    ),
    Row(
        m.Wgmma,
        "wgmma {acc:value} += {a:operand} * {b:operand}(? first if {zero:predicate}) "
        "shape 64 x {n:int} x {k:int} {dtype:dtype}",
        absent={"zero": FALSE},
    ),
    Row(
        m.Mma,
        "mma {acc:value} = {a:operand} * {b:operand} shape n {n:int} k {k:int} {dtype:dtype}",
        {"zero": TRUE},
    ),
    Row(
        m.Mma,
        "mma {acc:value} += {a:operand} * {b:operand}(? first if {zero:predicate}) shape n {n:int} k {k:int} {dtype:dtype}",
        absent={"zero": FALSE},
    ),
    Row(
        m.CopyAsync,
        "copy async {buffer part slot:tile} = {tensor:tensor}[{access:polys}] over {rows:axis}, {cols:axis}",
    ),
    Row(m.CommitCopies, "commit copies"),
    Row(m.WaitCopies, "wait copies {pending:int}"),
    Row(m.FenceWgmma, "fence wgmma"),
    Row(m.Commit, "commit"),
    Row(m.WaitGroup, "wait_group {pending:int}(? ready {values:values})"),
    Row(m.FenceAsync, "fence async"),
    Row(m.BarSync, "sync bar {id:poly} threads {threads:int}"),
    Row(m.BarArrive, "arrive bar {id:poly} threads {threads:int}"),
    Row(m.Classify, "classify {some:value}, {every:value} = {cond:predicate} over {rows:axis}, {cols:axis}"),
    Row(
        m.ListTile,
        "list {tile:poly} in {tensor:tensor}[{access:polys}] if {some:value} full {every:value} counted {count:value} "
        "bar {id:poly} threads {threads:int}",
    ),
    Row(m.Tally, "tally {tensor:tensor}[{access:polys}] = {count:value}"),
    Row(m.Compute, "compute {ops:ops}"),
    Row(m.Pack, "pack {dst:value} = {src:value}"),
    Row(m.Move, "move {dst:value} = {src:value}"),
    Row(m.Zero, "zero {value:value}"),
    Row(m.Forget, "forget {value:value}"),
    Row(m.StoreShared, "write {buffer part slot:tile} = {src:value}"),
    Row(m.ReadShared, "hold {dst:value} = {buffer part slot:tile}"),
    Row(m.Transpose, "transpose {buffer part slot:tile} = {origin origin_part origin_slot:tile}"),
    Row(m.TmaStore, "store {map coords:box} = {buffer part slot:tile}(? panel {panel:int})", {"add": False}),
    Row(m.TmaStore, "store {map coords:box} += {buffer part slot:tile}(? panel {panel:int})", {"add": True}),
    Row(m.CommitStore, "commit_store"),
    Row(m.WaitStore, "wait_read {pending:int}", {"read": True}),
    Row(m.WaitStore, "wait_store {pending:int}", {"read": False}),
    Row(
        m.CopyOut,
        "copy {tensor:tensor}[{access:polys}] = {buffer part slot:tile} over {rows:axis}, {cols:axis}"
        "(? below {limit:poly})(?wide= by 16 bytes)",
        {"add": False},
    ),
    Row(
        m.CopyOut,
        "copy {tensor:tensor}[{access:polys}] += {buffer part slot:tile} over {rows:axis}, {cols:axis}(? below {limit:poly})",
        {"add": True, "wide": False},
    ),
    Row(
        m.StoreGlobal,
        "put {tensor:tensor}[{access:polys}] = {value:expr} over {rows:axis}(?, {cols:axis})(? below {limit:poly})",
        {"add": False, "by": "sum"},
    ),
    Row(
        m.StoreGlobal,
        "put {tensor:tensor}[{access:polys}] += {value:expr} over {rows:axis}(?, {cols:axis})(? below {limit:poly})"
        "(? by {by:reduction})",
        {"add": True},
    ),
    Row(m.ClearRows, "clear {buffer part slot:tile} rows {start:poly} .. {stop:stop}"),
)
OPS = (
    Row(m.CompleteOp, "complete {value:value} by {op:reduction}(? when {when:value})"),
    Row(
        m.ReduceOp,
        "{dst:value}[{rows:axis}] = {op:reduction}[{cols:axis}] {src:expr}(? from {start:expr}) lanes {lanes:full|partial}",
        absent={"start": None},
    ),
    Row(m.MapOp, "{dst:value}[{rows:axis}(?, {cols:axis})] = {expr:expr}(? when {when:value})"),
    Row(
        m.RoomOp,
        "room {dst:value}[{rows:axis}] under {total:value} up to {limit:number}(? times {weight:number})"
        "(? far where {far:predicate})(? when {when:value})",
    ),
    Row(m.VoteOp, "vote {dst:value} = any[{rows:axis}] {cond:predicate}"),
)
TABLES = {"head": HEAD, "declaration": DECLARATIONS, "role": (ROLE,), "value": VALUES, "step": STEPS, "op": OPS}


def row_of(x: object) -> Row:
    """The row that tells `x`. Raises NotImplementedError if the vocabulary lacks one."""
    for row in _BY_CLASS.get(type(x), ()):
        if row.applies(x):
            return row
    raise NotImplementedError(f"no row of roles/rows.py tells {x!r}")


_BY_CLASS: dict[type, list[Row]] = {}
for _table in TABLES.values():
    for _row in _table:
        _BY_CLASS.setdefault(_row.make, []).append(_row)

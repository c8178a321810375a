"""The text of a role program: the explicit form, `--emit roles` and `wgdsl explain`.

In: a `RoleProgram`.  Out: a `roles` block, one line a declaration or step, by the rows of `rows.py`; nothing in the program is
left out, and `read.py` makes the same of it again. Comments (`#`) hold what follows from the rest: bytes, budgets.

Reading it: `(s, p)` is the role's position in the ring of the thing named, `s-1` the stage before it, and `parity p` the phase
of the stage that stands beside it (`not p` the other one). `[w, s]` is part and stage where there are several parts.
`i = 64 * wg +: 64` is an axis: index, first element, elements. A string behind a line is a remark on it; `@27 "..."` the line
of the schedule that it comes from and its words, said where they change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..foundation.source import NOWHERE, Place, Span
from . import model as m
from .codecs import show
from .model import Kernel, Op, Role, RoleProgram, Step
from .rows import Bars, Computes, Extent, InOrder, Maybe, Piece, Resident, Rounding, Row, Shared, Slot, Threads, Words, row_of

PLACE_COLUMN = 100  # where the schedule's line of a step stands
_BLOCKS = frozenset(("steps", "ops", "role"))  # codecs of nested lines


def roles_text(program: RoleProgram, *, lines: bool = True, settings: Mapping[str, object] | None = None) -> str:
    """The whole program, deterministic. `lines`: name the schedule's line where it changes. `settings`: what was fixed."""
    return "".join(line + "\n" for line in _Printer(program, lines).program_lines(settings or {}))


def step_text(kernel: Kernel, step: Step) -> str:
    """One step on one line, without what is nested in it: for diagnostics."""
    return _Shower(kernel).head(step)


def op_text(op: Op) -> str:
    """One operation of a `compute` on one line."""
    return _Shower(None).head(op)


def declarations(k: Kernel, whole: RoleProgram) -> Iterator[object]:
    """What a kernel declares, in the order of its text."""
    if (k.program, k.schedule, k.target) != (whole.program, whole.schedule, whole.target):
        yield Computes(program=k.program, schedule=k.schedule, target=k.target)
    yield k.grid
    yield Threads(count=k.threads)
    yield Shared(nbytes=k.shared_bytes)
    if k.resident > 1:
        yield Resident(count=k.resident)
    if k.v8 is not None:
        yield InOrder(index=k.v8)
    yield from k.tensors
    yield from (Extent(index=index, extent=extent) for index, extent in k.index_extents.items())
    yield from (*k.params, *k.maps, *k.buffers, *k.rings, *k.barriers)
    yield from (Bars(use=use, first=first, count=count) for use, first, count in k.named_barriers)


@dataclass
class _Shower:
    """Lines by their rows, without what is nested in them."""

    kernel: Kernel | None

    def head(self, x: object) -> str:
        row = row_of(x)
        return "".join(self.piece(row, x, p) for p in row.pieces).rstrip()

    def piece(self, row: Row, x: object, p: Piece) -> str:
        if isinstance(p, Words):
            return p.text
        if isinstance(p, Slot):
            return self.slot(x, p)
        value = getattr(x, p.field)
        left_out = not value if p.flag else value == row.default(p.field)
        return "" if left_out else "".join(self.piece(row, x, q) for q in p.pieces)

    def slot(self, x: object, p: Slot) -> str:
        if p.codec in _BLOCKS:
            return ""
        values = [getattr(x, name) for name in p.fields]
        return str(values[0]) if p.choices else show(p.codec, self.kernel, *values)


@dataclass
class _Printer(_Shower):
    """Whole lines, blocks and all."""

    whole: RoleProgram
    lines: bool
    kernel: Kernel | None = field(init=False, default=None)
    depth: int = field(init=False, default=0)
    last: Place = field(init=False, default=NOWHERE)

    def __init__(self, whole: RoleProgram, lines: bool):
        super().__init__(None)
        self.whole, self.lines, self.depth, self.last = whole, lines, 0, NOWHERE
        self.path = ""

    def program_lines(self, settings: Mapping[str, object]) -> Iterator[str]:
        p = self.whole
        fixed = ", ".join(f"{name} = {_setting(value)}" for name, value in settings.items())
        yield f"roles {p.schedule} for {p.program} on {p.target}{f' with {fixed}' if fixed else ''} {{"
        self.path = next(_paths(p), "") if self.lines else ""
        if self.path:
            yield f'  from "{_quoted(self.path)}"'
        yield from self.indented(Rounding(what=r) for r in p.roundings)
        for k in p.kernels:
            yield from ("", *self.kernel_lines(k))
        yield "}"

    def indented(self, items: Iterable[object]) -> Iterator[str]:
        self.depth += 1
        for x in items:
            yield from self.text(x)
        self.depth -= 1

    def kernel_lines(self, k: Kernel) -> Iterator[str]:
        self.kernel = k
        yield f"  kernel {k.name} {{"
        self.depth += 1
        yield from self.indented(declarations(k, self.whole))
        for role in k.roles:
            yield ""
            yield from self.indented([role])
        self.depth -= 1
        yield "  }"

    def text(self, x: object) -> Iterator[str]:
        """The lines of one thing. What stands behind a line stands behind the first brace that it opens."""
        row, line, trailer = row_of(x), "  " * self.depth, self.trailer(x)
        for p in self.opened(row, x):
            if not isinstance(p, Slot) or p.codec not in _BLOCKS:
                line += self.piece(row, x, p)
                continue
            yield _joined(line + "{", *trailer)
            trailer = ("", "")
            yield from self.nested(p, x)
            line = "  " * self.depth + "}"
        remark = f"  # {row.remark(x)}" if row.remark else ""
        yield _joined(line, *trailer) + remark

    def opened(self, row: Row, x: object) -> Iterator[Piece]:
        """The pieces of a line, with those that may be left out but aren't."""
        for p in row.pieces:
            if isinstance(p, Maybe) and getattr(x, p.field) != row.default(p.field) and not p.flag:
                yield from p.pieces
            else:
                yield p

    def nested(self, p: Slot, x: object) -> Iterator[str]:
        if isinstance(x, Role):
            assert self.kernel is not None
            values = [v for v in self.kernel.values if v.role == x.name]
            rows = [line.partition("  #") for line in self.indented(values)]
            width = max((len(text) for text, _, _ in rows), default=0)
            yield from (f"{text:<{width}}{sign}{remark}" for text, sign, remark in rows)
            if values:
                n = sum(v.registers for v in values)
                yield f"{'  ' * (self.depth + 1)}# {n} register{'' if n == 1 else 's'} of values a thread"
        yield from self.indented(getattr(x, p.fields[-1]))

    def trailer(self, x: object) -> tuple[str, str]:
        """The remark on a line, and where it comes from if that changes here."""
        if not isinstance(x, Step | m.Buffer | Role):
            return "", ""
        place = self.place(x.span) if self.lines else ""
        note = getattr(x, "note", "")
        # The words of a line say it already; those of a block aren't shown in the CUDA text.
        same = x.span is not None and x.span.place.words == note and not (isinstance(x, Step) and x.blocks())
        return ("" if same and self.lines else f'"{_quoted(note)}"' if note else ""), place

    def place(self, span: Span | None) -> str:
        now = span.place if span is not None else NOWHERE
        if now == self.last:
            return ""
        self.last = now
        if now == NOWHERE:
            return "@0"
        elsewhere = f' of "{_quoted(now.path)}"' if now.path != self.path else ""
        self.path = now.path
        words = _quoted(now.words)
        return f"@{now.line}" + (f' "{words}"' if words else "") + elsewhere


def _joined(text: str, note: str, place: str) -> str:
    text += f"  {note}" if note else ""
    return f"{text:<{PLACE_COLUMN}}  {place}" if place else text


def _quoted(text: str) -> str:
    """Text that a string of the language can hold."""
    return text.replace('"', "'").encode("ascii", "replace").decode().replace("\n", " ").replace("\r", " ")


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _paths(program: RoleProgram) -> Iterator[str]:
    for k in program.kernels:
        for x in (*k.buffers, *k.roles, *(s for r in k.roles for s in m.walk(r.steps))):
            if x.span is not None and x.span.place != NOWHERE:
                yield x.span.place.path

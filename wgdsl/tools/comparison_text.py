"""A comparison as text: a table for the terminal or for Markdown, or JSON.

In: `Comparison`.  Out: text. JSON holds the fields of `Comparison` and `Column` under their names, numbers unrounded; `format`
grows by one when a name or a meaning changes.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from io import StringIO
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.runtime import UnknownSetting
from ..program.text import spelled
from .comparing import Column, Comparison

FORMAT = 1
NONE = "-"


def comparison_text(c: Comparison, form: str, terminal: int | None = None) -> str:
    """The text in a format of FORMATS. terminal: the width of the one that it is for, if it is for one."""
    known(form)
    if form == "text" and terminal is not None:
        return _rich(c, terminal)
    return FORMATS[form](c)


def known(form: str) -> None:
    """Raises WgError for a format that isn't one."""
    if form not in FORMATS:
        raise WgError(UnknownSetting(text=form, known=tuple(FORMATS), why=f"there is no format `{form}`"))


def terminal() -> int | None:
    """The width of the terminal that standard output goes to; None if it goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _instruction(c: Column) -> str:
    return _by_products(c, [s.instruction for s in c.shapes])


def _by_products(c: Column, cells: list[str]) -> str:
    """A cell for each shape; with the products that have it, if there are several."""
    if len(c.shapes) < 2:
        return "".join(cells) or NONE
    return "; ".join(f"{cell} ({', '.join(s.products)})" for cell, s in zip(cells, c.shapes, strict=True))


def _issued(c: Column) -> str:
    if c.matrix_instructions is None:
        return NONE if c.role is None else "no loop"
    warps = next(s.warps for s in c.slots if s.role == c.role)
    count = warps // 4 if c.issuer == "warpgroup" else warps
    return f"{number(c.matrix_instructions)} by each of {count} {c.issuer}s"


def _slots(c: Column) -> str:
    return ", ".join(f"{s.role} {number(s.instructions)} x {s.warps}" for s in c.slots) or NONE


def _through(c: Column) -> str:
    if c.operands is None:
        return NONE
    parts = {"packed": c.operands.packed, "loaded": c.operands.loaded}
    return " + ".join(f"{number(n)} {how}" for how, n in parts.items() if n) or "0"


def _held(name: str) -> Callable[[Column], str]:
    return lambda c: NONE if c.held is None else str(getattr(c.held, name))


def _sum(c: Column) -> str:
    if c.held is None:
        return NONE
    return f"{c.held.sum} of {c.held.granted or c.assembled.registers}"


def _overlap(c: Column) -> str:
    if c.asynchronous is None or c.matrix_instructions is None:
        return NONE
    return ", ".join(f"{', '.join(o.products)} {o.instructions}".strip() for o in c.overlaps) or "0"


ROWS: dict[str, Callable[[Column], str]] = {
    "target": lambda c: c.target,
    "role that multiplies": lambda c: c.role or NONE,
    "a matrix instruction is issued by a": lambda c: c.issuer or NONE,
    "instruction": _instruction,
    "FLOPs an instruction": lambda c: _by_products(c, [str(s.flops) for s in c.shapes]),
    "matrix instructions a tile": _issued,
    "FLOPs a tile": lambda c: number(c.flops),
    "instructions a tile x warps": _slots,
    "issue slots a MFLOP": lambda c: NONE if c.slots_per_flop is None else f"{1e6 * c.slots_per_flop:.0f}",
    "operand bytes a tile through registers": _through,
    "operand bytes a tile from shared memory": lambda c: NONE if c.operands is None else number(c.operands.shared),
    "registers of accumulators": _held("accumulators"),
    "registers of operands": _held("operands"),
    "registers of rows and flags": _held("rows"),
    "registers of other tiles": _held("other"),
    "registers placed": _sum,
    "registers at launch (ptxas)": lambda c: str(c.assembled.registers),
    "bytes spilled": lambda c: str(c.assembled.spilled),
    "products are": lambda c: {True: "asynchronous", False: "synchronous", None: NONE}[c.asynchronous],
    "instructions from issue to wait": _overlap,
    "bytes of shared memory": lambda c: str(c.shared_bytes),
    "threads": lambda c: str(c.threads),
    "CTAs an SM": lambda c: str(c.resident),
    "time": lambda c: c.untimed if c.time is None else f"{1e6 * c.time.seconds:.1f} us",
    "TFLOP/s": lambda c: NONE if c.time is None else f"{c.time.tflops:.0f}",
}


def number(x: float | None) -> str:
    """Without a fraction if it has none."""
    if x is None:
        return NONE
    return str(round(x)) if x == round(x) else f"{x:.1f}"


def _heads(c: Comparison) -> list[str]:
    """The schedules; of one with several kernels each with its kernel."""
    names = [column.schedule for column in c.columns]
    return [n if names.count(n) == 1 else f"{n}: {x.kernel}" for n, x in zip(names, c.columns, strict=True)]


def _title(c: Comparison) -> str:
    fixed = ", ".join(f"{n} = {spelled(v)}" for n, v in c.settings.items())
    called = ", ".join(f"{n} = {v}" for n, v in c.dims.items())
    return f"program {c.program}" + (f", {fixed}" if fixed else "") + (f"; called with {called}" if called else "")


def _cells(c: Comparison) -> Iterable[list[str]]:
    return ([name, *(cell(column) for column in c.columns)] for name, cell in ROWS.items())


def _plain(c: Comparison) -> str:
    rows = [["", *_heads(c)], *_cells(c)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([_title(c), "", *lines]) + "\n"


def _markdown(c: Comparison) -> str:
    rows = [["", *_heads(c)], ["---"] * (1 + len(c.columns)), *_cells(c)]
    return "\n".join([_title(c), "", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _json(c: Comparison) -> str:
    return json.dumps({"format": FORMAT, **asdict(c)}, indent=2, default=str) + "\n"


def _rich(c: Comparison, width: int) -> str:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(_title(c)), title_justify="left")
    for head in ("", *_heads(c)):
        table.add_column(Text(head), overflow="fold")
    for row in _cells(c):
        table.add_row(*map(Text, row))
    out = StringIO()
    Console(file=out, force_terminal=True, width=width).print(table)
    return out.getvalue()


FORMATS: dict[str, Callable[[Comparison], Any]] = {"text": _plain, "json": _json, "md": _markdown}

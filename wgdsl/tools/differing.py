"""`wgdsl diff`: two schedules of one program beside each other.

In: two kernels.  Out: tables of what differs, and on demand the difference of their role texts. Deterministic.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import zip_longest

from ..diagnostics.model import EnvironmentFault
from ..driver import prepare
from ..forms import text_of
from ..roles.model import Kernel as RoleKernel
from ..runtime.kernel import Kernel
from ..settings import sort_settings
from .measures import Rows, Sections, instructions, measured, resources, together
from .pairing import Pair

TOTALS = ("in all", "of")  # rows that come last


def kernels(pair: Pair, settings: list[str]) -> tuple[Kernel, Kernel]:
    """Both kernels, not built. Raises WgError."""

    def one(schedule) -> Kernel:
        made, _ = prepare(pair.file, program=pair.program, schedule=schedule, settings=lambda f: sort_settings(f, settings))
        return made

    return one(pair.schedules[0]), one(pair.schedules[1])


def diff_text(a: Kernel, b: Kernel, *, every: bool = True, text: bool = False, sass: bool = False) -> str:
    """The comparison. `every`: rows that agree too; `text`: the role texts' difference; `sass`: what the assembler made."""
    names = _names(a, b)
    lines = [f"program {a.graph.name}: schedule {names[0]}, schedule {names[1]}"]
    several = max(len(a.roles.kernels), len(b.roles.kernels)) > 1
    for k, (x, y) in enumerate(zip_longest(a.roles.kernels, b.roles.kernels), 1):
        if several:
            lines += ["", f"kernel {k}"]
        lines += _tables(_measured(x), _measured(y), names, every)
    if sass:
        lines += _machine(a, b, names, every)
    if text:
        lines += ["", *_role_texts(a, b, names)]
    return "\n".join(lines) + "\n"


def _names(a: Kernel, b: Kernel) -> tuple[str, str]:
    one, two = a.roles.schedule, b.roles.schedule
    return (one, two) if one != two else (f"{one} (first)", f"{two} (second)")


def _measured(k: RoleKernel | None) -> Sections:
    return measured(k) if k is not None else {}


def _tables(a: Sections, b: Sections, names: tuple[str, str], every: bool) -> Iterator[str]:
    for section, left, right in together(a, b):
        rows = list(_rows(left, right, every))
        if rows:
            yield ""
            yield from _table((section, *names, ""), rows)


def _rows(a: Rows, b: Rows, every: bool) -> Iterator[tuple[str, str, str, str]]:
    named = [n for n in dict.fromkeys([*a, *b]) if n not in TOTALS]
    for name in (*named, *(t for t in TOTALS if t in a or t in b)):
        x, y = a.get(name), b.get(name)
        if every or x != y:
            change = f"{y - x:+}" if isinstance(x, int) and isinstance(y, int) and x != y else ""
            yield name, _cell(x), _cell(y), change


def _cell(x: int | str | None) -> str:
    return "-" if x is None else str(x)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(r[c]) for r in (head, *rows)) for c in range(len(head))]
    for row in (head, *(("  " + r[0], *r[1:]) for r in rows)):
        yield "  ".join(f"{cell:<{w + 2 * (c == 0)}}" for c, (cell, w) in enumerate(zip(row, widths, strict=True))).rstrip()


def _machine(a: Kernel, b: Kernel, names: tuple[str, str], every: bool) -> Iterator[str]:
    both = [_compiled(x) for x in (a, b)]
    yield from _tables(both[0], both[1], names, every)
    for x in both:
        if "instructions" not in x:
            yield from ("", "no instruction counts: nvdisasm is missing; pip install nvidia-cuda-nvdisasm")
            break


def _compiled(k: Kernel) -> Sections:
    k.build()
    found = [r for c in k.binaries.values() for r in c.kernels]
    out: Sections = {}
    for n, r in enumerate(found, 1):
        out["assembler" if len(found) == 1 else f"assembler, kernel {n}"] = resources(r)
    try:
        out["instructions"] = instructions(k.sass)
    except EnvironmentFault:
        return out
    return out


def _role_texts(a: Kernel, b: Kernel, names: tuple[str, str]) -> Iterator[str]:
    texts = [text_of("lower", k.roles).splitlines() for k in (a, b)]
    bare = [[line.split("  # ")[0].rstrip() for line in text] for text in texts]
    return difflib.unified_diff(*bare, fromfile=f"roles of {names[0]}", tofile=f"roles of {names[1]}", lineterm="")

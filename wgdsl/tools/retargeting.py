"""`wgdsl retarget`: a Hopper schedule as one for Ampere and what came after it.

In: the name of a schedule or its file, what is fixed, and a target.  Out: the text of the new schedule, and a table of what
became of every directive. It is lowered, checked and verified like any other before it is shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.retarget import NoRetarget
from ..diagnostics.runtime import UnknownSetting
from ..driver import Journal, Settings, guarded, pieces, placed, prepare
from ..resolve.settle import option_decls
from ..retarget.carried import Row, rows_of
from ..retarget.lines import Written
from ..retarget.search import Fit, search
from ..retarget.text import text
from ..runtime.kernel import Kernel
from ..settings import sort_settings
from ..sources import Found
from ..syntax import ast
from ..syntax.lines import Explicit
from ..targets.choice import TARGETS, resolve
from ..targets.sm_80 import AMPERE
from ..targets.sm_90a import HOPPER
from .pairing import placed_schedule


@dataclass(frozen=True, kw_only=True)
class Retargeted:
    """The new schedule. `fits`: of each kernel, in the order of the text; `file`: the program's."""

    name: str
    program: str
    file: Path
    source: ast.Schedule
    target: str
    settings: Settings
    fits: tuple[tuple[ast.KernelDecl | None, Fit], ...]

    def prepared(self) -> Kernel:
        """The kernel of the new schedule, from its text: lowered, verified, emitted, not built. Raises WgError."""
        return prepare(self.file, program=self.program, schedule=self.text, target=self.target, settings=self.settings)[0]

    @property
    def fixed(self) -> str:
        s = self.settings
        return ", ".join(f"{n} = {_word(v)}" for n, v in {**s.dims, **s.types, **s.options}.items())

    @property
    def text(self) -> str:
        """Of a `.wg` file."""
        about = f"`{self.source.name}` for {self.target}, by `wgdsl retarget`."
        about += f" Sizes are those that fit {self.fixed}." if self.fixed else ""
        head = f"schedule {self.name} for {self.program} on {self.target}"
        return text(head, about, [(decl, fit.carry) for decl, fit in self.fits])

    @property
    def rows(self) -> tuple[Row, ...]:
        """What became of each directive, in the order in which they are written; then what was added."""
        every = [r for _, fit in self.fits for c in (*fit.carry.lines, *fit.carry.body.every) for r in rows_of(c)]
        paths = list(dict.fromkeys(r.path for r in every if r.line))
        written = sorted((r for r in every if r.line), key=lambda r: (paths.index(r.path), r.line))
        return tuple(dict.fromkeys([*written, *(r for r in every if not r.line)]))


def retarget(words: list[str], to: str, settings: list[str], program: str | None = None) -> Retargeted:
    """The new schedule, verified. Raises WgError: what is wrong with the schedule as it is, WG102x for what can't be carried
    over."""
    file, name, schedule = placed_schedule(words, program)
    _, journal = prepare(file, program=name, schedule=schedule, settings=lambda found: sort_settings(found, settings))
    with guarded(journal):
        found = journal.forms["parse"]
        target = _between(found.schedule, to)
        made = Retargeted(
            name=f"{found.schedule.name}_{target}",
            program=found.program.name,
            file=Path(file),
            source=found.schedule,
            target=target,
            settings=_without(journal.settings, found.schedule),
            fits=tuple(_fits(found, journal, target)),
        )
    made.prepared()
    return made


def _without(settings: Settings, schedule: ast.Schedule) -> Settings:
    """What is fixed of the program alone: the new schedule has no options."""
    own = {d.name for d in option_decls(schedule.items)}
    return replace(settings, options={n: v for n, v in settings.options.items() if n not in own})


def _between(schedule: ast.Schedule | Explicit, to: str) -> str:
    """The target, if there are rules from the schedule's own to it."""
    target = resolve(to) or to
    known = tuple(t.name for t in TARGETS.values() if t.family == AMPERE)
    explicit = isinstance(schedule, Explicit)
    if not explicit and target in known and TARGETS[schedule.target].family == HOPPER:
        return target
    span, source = schedule.span, schedule.target
    raise WgError(NoRetarget(span=span, schedule=schedule.name, source=source, target=target, known=known, explicit=explicit))


def _fits(found: Found, journal: Journal, target: str) -> Iterator[tuple[ast.KernelDecl | None, Fit]]:
    """Each kernel in the order of the text."""
    outputs = {d.name for d in found.program.items if isinstance(d, ast.ParamDecl) and d.direction == "out"}
    by_name = {schedule.name: (schedule, streamed) for schedule, streamed in pieces(journal)}
    kernels = [i for i in found.schedule.items if isinstance(i, ast.KernelDecl)]
    for decl in kernels or [None]:
        name = found.schedule.name if decl is None else f"{found.schedule.name}_{decl.name}"
        if name in by_name:  # else all that it computes is absent
            schedule, streamed = by_name[name]
            made = outputs | (set(decl.computes) if decl is not None else set())
            written = Written(schedule=schedule, outputs=frozenset(made), target=TARGETS[target])
            yield decl, search(written, lambda s, streamed=streamed: placed(streamed, s))


# The report.


def retarget_texts(words: list[str], to: str, settings: list[str], program: str | None, form: str) -> tuple[str, str]:
    """The report in a form, and the text of the schedule. Raises WgError (WG0654) for a form that there isn't."""
    if form not in REPORTS:
        raise WgError(UnknownSetting(text=form, known=tuple(REPORTS), why=f"there is no report as `{form}`"))
    made = retarget(words, to, settings, program)
    return REPORTS[form](made), made.text


def report(r: Retargeted) -> str:
    """The table: each directive as it is written, what became of it, and why."""
    head = f"{r.source.name} on {r.source.target} -> {r.name} on {r.target}" + (f": {r.fixed}" if r.fixed else "")
    lines = [head, *(_taken(decl, fit) for decl, fit in r.fits), ""]
    paths = {row.path for row in r.rows if row.line}
    cells = [("line", "directive", "became", "why"), *(_cells(row, len(paths) > 1) for row in r.rows)]
    widths = [max(len(c[n]) for c in cells) for n in range(3)]
    for place, *rest in cells:
        columns = [place.rjust(widths[0]), *(c.ljust(w) for c, w in zip(rest, widths[1:], strict=False)), rest[-1]]
        lines.append("  ".join(columns).rstrip())
    return "\n".join(lines) + "\n"


def as_json(r: Retargeted) -> str:
    """The same, with the text of the schedule."""
    kernels = [{"kernel": decl.name if decl is not None else "", **_facts(fit)} for decl, fit in r.fits]
    data = {"schedule": r.name, "program": r.program, "from": r.source.target, "to": r.target, "kernels": kernels}
    return json.dumps({**data, "directives": [asdict(row) for row in r.rows], "text": r.text}, indent=1) + "\n"


def _cells(row: Row, several: bool) -> tuple[str, str, str, str]:
    place = f"{Path(row.path).name}:{row.line}" if several else str(row.line)
    became = "kept" if row.became == row.directive else row.became or "dropped"
    return (place if row.line else "", row.directive or "(added)", became, row.why)


def _facts(fit: Fit) -> dict[str, Any]:
    shape, k = fit.shape, fit.kernel
    return {
        "tiles": dict(shape.tiles), "warps": shape.warps, "ctas": fit.ctas, "registers": fit.wide, "shared": k.shared_bytes,
    }  # fmt: skip


def _taken(decl: ast.KernelDecl | None, fit: Fit) -> str:
    tiles = ", ".join(f"{i} {n}" for i, n in fit.shape.tiles.items())
    each = f"{fit.ctas} CTAs an SM" if fit.ctas > 1 else "one CTA an SM"
    of = f"kernel {decl.name}: " if decl is not None else ""
    memory = f"{fit.kernel.shared_bytes} bytes of shared memory"
    return f"{of}tile {tiles}; {fit.shape.warps} warps, {each}; {fit.wide} registers of accumulators and operands, {memory}"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


REPORTS = {"text": report, "json": as_json}

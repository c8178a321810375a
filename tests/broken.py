"""A shipped role program, broken in one place, for each fault that no schedule can have: its events would be derived right.

`BROKEN` gives, by code, the schedule and the change. Spans show the lines of the schedule.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from tests.lowering import FA3, PIPELINED, SIMPLE, attention, gemm, lowered
from tests.shipped import Shipped
from tests.shipped import attention as shipped_attention
from tests.shipped import gemm as shipped_gemm
from tests.sim.programs import Change, drop, edit
from tests.sim.test_shipped import inputs
from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.program.expr import FALSE
from wgdsl.program.poly import Poly
from wgdsl.roles import model as m
from wgdsl.roles.model import RoleProgram, Step, walk
from wgdsl.roles.text import roles_text
from wgdsl.sim import simulate_unchecked
from wgdsl.verify import check

SHIPPED: dict[str, tuple[str, Callable, Shipped]] = {
    "pipelined": (PIPELINED, gemm, shipped_gemm("nk")),
    "simple": (SIMPLE, attention, shipped_attention("simple", False, 128)),
    "fa3": (FA3, attention, shipped_attention("fa3", False, 128)),
}
SIZES = (200, 600)  # rows, and columns of a score or a little more than k


@cache
def right(schedule: str) -> RoleProgram:
    text, graph, _ = SHIPPED[schedule]
    return lowered(graph(), text)


def text(program: RoleProgram) -> str:
    """The steps, without the remarks on them."""
    return re.sub(r'  "[^"]*"$', "", roles_text(program, lines=False), flags=re.MULTILINE)


def none(s: Step) -> Step:
    return s


@dataclass(frozen=True, kw_only=True)
class Broken:
    """`change` sees every step; `declared` changes declarations and roles: name -> fields."""

    schedule: str = "pipelined"
    change: Change = none
    declared: dict[str, dict] = field(default_factory=dict)

    def program(self) -> RoleProgram:
        program = edit(right(self.schedule), self.change)
        kernel = program.kernels[0]
        parts = {f: self.redeclared(getattr(kernel, f)) for f in ("roles", "buffers", "barriers")}
        return replace(program, kernels=(replace(kernel, **parts),))

    def redeclared(self, parts: tuple) -> tuple:
        return tuple(replace(p, **self.declared.get(p.name, {})) for p in parts)

    def problems(self, code: str, program: RoleProgram) -> tuple[Problem, ...]:
        """What the structural checks say of it, or for WG08xx the simulator, which needs no check before."""
        try:
            if code < "WG08":
                check(program)
            else:
                simulate_unchecked(program, *inputs(SHIPPED[self.schedule][2], *SIZES))
        except WgError as e:
            return e.problems
        return ()


def chosen(kind: type[Step], which: int | None, **fields) -> Callable[[Step], bool]:
    """Steps of a kind in `pipelined`: all of them, the one of that number, or those with these fields."""
    every = [s for r in right("pipelined").kernels[0].roles for s in walk(r.steps) if isinstance(s, kind)]
    only = every if which is None else [every[which]]
    only = [s for s in only if all(getattr(s, name) == value for name, value in fields.items())]
    return lambda s: any(s is o for o in only)


def change(kind: type[Step], which: int | None = None, **fields) -> Change:
    match = chosen(kind, which)
    return lambda s: replace(s, **fields) if match(s) else s


def without(kind: type[Step], which: int | None = None, **fields) -> Change:
    return drop(chosen(kind, which, **fields))


def never_awaited(s: Step) -> Step | tuple[Step, ...]:
    """Nor may anything touch the accumulator then, or store what comes of it."""
    last = chosen(m.WaitGroup, 1)
    return () if last(s) or isinstance(s, m.StoreShared | m.Zero | m.TmaStore | m.CopyOut) else s


def without_completion(s: Step) -> Step | tuple[Step, ...]:
    return () if isinstance(s, m.Compute) and isinstance(s.ops[0], m.CompleteOp) else s


def same_rows(s: Step) -> Step:
    """Both warpgroups store to the rows of the first."""
    return replace(s, coords=(s.coords[0], Poly.of("i.lo"))) if isinstance(s, m.TmaStore) else s


def one_row_on(s: Step) -> Step:
    return replace(s, access=(*s.access[:-1], Poly.of("i") + 1)) if isinstance(s, m.StoreGlobal) else s


def every(kind: type[Step], **fields) -> Change:
    return lambda s: replace(s, **fields) if isinstance(s, kind) else s


BROKEN: dict[str, Broken] = {
    "WG0701": Broken(change=change(m.Arrive, 0, by="thread")),
    "WG0702": Broken(change=change(m.Expect, nbytes=32768)),
    "WG0703": Broken(declared={"As.empty": {"count": 4}}),
    "WG0704": Broken(change=without(m.Wait, barrier="As.empty")),
    "WG0705": Broken(change=change(m.Registers, 1, count=236), declared={"math": {"registers": 236}}),
    "WG0709": Broken(declared={"Bs": {"offset": 40960}}),
    "WG0710": Broken(change=change(m.BarSync, threads=256)),
    "WG0711": Broken(change=change(m.WaitGroup, 1, pending=1)),
    "WG0712": Broken(change=never_awaited),
    "WG0713": Broken(change=without(m.FenceWgmma, 0)),
    "WG0714": Broken(change=without(m.Wait, 1)),
    "WG0715": Broken(change=change(m.WaitGroup, 0, pending=2)),
    "WG0716": Broken(change=without(m.FenceAsync)),
    "WG0717": Broken(change=without(m.Arrive, 0)),
    "WG0718": Broken(change=change(m.Wait, 1, flip=True)),
    "WG0719": Broken(schedule="fa3", change=lambda s: (s, s) if isinstance(s, m.BarArrive) and s.id.symbols() else s),
    "WG0720": Broken(schedule="fa3", change=drop(lambda s: isinstance(s, m.BarArrive) and not s.id.symbols())),
    "WG0721": Broken(change=change(m.Wgmma, 0, zero=FALSE)),
    "WG0724": Broken(change=lambda s: replace(s, stop=99999999 * s.stop) if chosen(m.Loop, 0)(s) else s),
    "WG0801": Broken(change=without(m.Arrive, 0)),
    "WG0802": Broken(change=without(m.Wait, 1)),
    "WG0803": Broken(change=change(m.WaitGroup, 0, pending=2)),
    "WG0804": Broken(change=change(m.Expect, nbytes=32768)),
    "WG0805": Broken(change=without(m.Wait, barrier="As.empty")),
    "WG0806": Broken(change=lambda s: (s, s) if isinstance(s, m.Expect) else s),
    "WG0807": Broken(change=change(m.WaitGroup, 1, pending=1)),
    "WG0808": Broken(change=without(m.FenceAsync)),
    "WG0809": Broken(change=without(m.FenceWgmma, 0)),
    "WG0810": Broken(change=change(m.Wgmma, 0, zero=FALSE)),
    "WG0811": Broken(schedule="simple", change=without_completion),
    "WG0812": Broken(change=same_rows),
    "WG0813": Broken(schedule="simple", change=one_row_on),
    "WG0814": Broken(schedule="fa3", change=every(m.BarArrive, threads=384)),
    "WG0815": Broken(change=change(m.WaitStore, pending=1)),
    "WG0816": Broken(schedule="simple", change=every(m.StoreShared, src="P.sum")),
}

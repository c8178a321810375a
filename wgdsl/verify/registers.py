"""Registers: what setmaxnreg may be asked for, the pool that all warpgroups share, and what a role's values need."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics.model import Problem
from ..diagnostics.verify import RegisterCount, RegisterNeed, RegisterPool
from ..roles.model import FEW, Kernel, Registers, Role
from ..targets.registers import WARPGROUP, count_problem, launch_registers, pool_problem

CONSTANTS = 24  # addresses, ring positions, coordinates, and row values; measured on kernels of 64 to 256 columns
ROW_SHARE = 14  # of these for row values and flags
SPARE = 8  # left to the assembler; with fewer it spills, or serialises products


def register_problems(kernel: Kernel) -> Iterator[Problem]:
    """Counts that setmaxnreg cannot take, more than the pool holds, or less than the values of a role need."""
    launch = launch_registers(kernel.threads)
    counts = {r.name: launch if r.registers is None else r.registers for r in kernel.roles}
    wrong = list(_counts(kernel, launch))
    yield from wrong
    groups = kernel.threads // WARPGROUP
    if not wrong and pool_problem(counts[r.name] for r in kernel.roles for _ in range(r.count)) is not None:
        shares = tuple((r.name, r.count, counts[r.name]) for r in kernel.roles)
        widest = max(kernel.roles, key=lambda r: counts[r.name])
        yield RegisterPool(span=widest.span, shares=shares, launch=launch, warpgroups=groups)
    for r in kernel.roles:
        yield from _need(kernel, r, counts[r.name])


def _counts(kernel: Kernel, launch: int) -> Iterator[RegisterCount]:
    for r in kernel.roles:
        if r.registers is None:
            continue
        why = count_problem(r.registers)
        if why is not None:
            yield RegisterCount(span=r.span, role=r.name, count=r.registers, rule=why)
            continue
        step = r.steps[0]
        assert isinstance(step, Registers)
        if (r.registers < launch and step.direction != "dec") or (r.registers > launch and step.direction != "inc"):
            rule = f"the launch grants {launch}, so it can't `{step.direction}` to that"
            yield RegisterCount(span=step.span or r.span, role=r.name, count=r.registers, rule=rule)


def _need(kernel: Kernel, role: Role, registers: int) -> Iterator[RegisterNeed]:
    values = [v for v in kernel.values if v.role == role.name and v.over is None]
    wide = [(v.name, v.registers) for v in values if v.kind not in FEW]
    rows = sum(v.registers for v in values if v.kind in FEW)
    constants = CONSTANTS + max(0, rows - ROW_SHARE)
    need = sum(n for _, n in wide) + constants
    if wide and need > registers - SPARE:
        table = (*sorted(wide, key=lambda w: -w[1]), ("addresses, positions and row values", constants))
        yield RegisterNeed(span=role.span, role=role.name, need=need, registers=registers, values=table)

"""What the assembler's log means for a schedule: problems of the catalogue, tied to the schedule's line where that is known.

In: a kernel of the role program and what NVRTC made of it.  Out: WG05xx, none for a kernel as it should be.
"""

from __future__ import annotations

from ..diagnostics.emit import AssemblerNote, RegistersIgnored, Serialised, Spills, StackFrame
from ..diagnostics.model import Problem
from ..foundation.source import Span
from ..roles.model import Kernel, Role, Step, Wgmma, walk
from .log import Complaint, Resources
from .nvrtc import Compiled

SERIALISED = range(7510, 7520)
IGNORED = (7505, 7506, 7507, 7508)


def complaints_of(kernel: Kernel, binary: Compiled) -> list[Problem]:
    """Everything the assembler holds against a kernel."""
    return [p for r in binary.kernels for p in _problems(kernel, r)]


def _problems(kernel: Kernel, r: Resources) -> list[Problem]:
    role, found = heaviest(kernel), list[Problem]()
    if r.spill_stores or r.spill_loads:
        registers = role.registers or r.registers if role else r.registers
        name = role.name if role else ""
        span = role.span if role else None
        spill = Spills(
            kernel=kernel.name, role=name, stores=r.spill_stores, loads=r.spill_loads, registers=registers, span=span
        )
        found.append(spill)
    elif r.stack:
        found.append(StackFrame(kernel=kernel.name, nbytes=r.stack))
    return found + [_complaint(kernel, role, c) for c in r.complaints]


def _complaint(kernel: Kernel, role: Role | None, c: Complaint) -> Problem:
    number = int(c.number or 0)
    if number in SERIALISED:
        return Serialised(kernel=kernel.name, number=c.number, text=c.text, span=_product(role))
    if number in IGNORED:
        return RegistersIgnored(kernel=kernel.name, number=c.number, text=c.text, span=role.span if role else None)
    return AssemblerNote(kernel=kernel.name, number=c.number, text=c.text)


def heaviest(kernel: Kernel) -> Role | None:
    """The role whose values take the most registers."""
    need = {r.name: sum(v.registers for v in kernel.values if v.role == r.name) for r in kernel.roles}
    return max(kernel.roles, key=lambda r: need[r.name], default=None)


def _product(role: Role | None) -> Span | None:
    """Where the role issues its first product, else where it is declared."""
    if role is None:
        return None
    first: Step | None = next((s for s in walk(role.steps) if isinstance(s, Wgmma) and s.span), None)
    return first.span if first is not None else role.span

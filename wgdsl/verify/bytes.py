"""Expected bytes: each phase of a full barrier expects what the copies that signal it bring.

Counted line by line: an expect and its copies stand in the same list of steps, at the same ring position.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..diagnostics.verify import WrongExpectedBytes
from ..foundation.source import Span
from ..roles.model import Expect, Kernel, Tma
from ..roles.rules import box_elements
from .lines import events, lines, warpgroups


@dataclass
class _Phase:
    expected: int = 0
    copies: list[tuple[str, int]] = field(default_factory=list)
    span: Span | None = None


def byte_problems(kernel: Kernel) -> Iterator[WrongExpectedBytes]:
    """Phases that expect other bytes than their copies bring."""
    seen: set[tuple] = set()
    for role, wg in warpgroups(kernel.roles):
        for line in lines(role.steps, wg):
            for key, phase in _phases(kernel, line, wg).items():
                moved = sum(n for _, n in phase.copies)
                what = (key[0], str(key[1]), phase.expected, tuple(phase.copies), phase.span)
                if moved == phase.expected or what in seen:
                    continue
                seen.add(what)
                yield WrongExpectedBytes(
                    span=phase.span,
                    barrier=key[0],
                    part=str(key[1]),
                    expected=phase.expected,
                    moved=moved,
                    copies=tuple(phase.copies),
                )


def _phases(kernel: Kernel, line: tuple, wg: int) -> dict[tuple, _Phase]:
    out: dict[tuple, _Phase] = {}
    for e in events(line, wg):
        if not isinstance(e.event, Expect | Tma):
            continue
        phase = out.setdefault(e.key, _Phase(span=e.event.span))
        if isinstance(e.event, Expect):
            phase.expected += e.event.nbytes
            phase.span = e.event.span
        else:
            x = kernel.map(e.event.map)
            phase.copies.append((f"{e.event.buffer} from {x.tensor}", box_elements(x) * x.dtype.nbytes))
    return out

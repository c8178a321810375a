"""Arrival counts: a barrier is made for as many arrivals as each of its phases gets, and waits and arrivals come in pairs.

A role may arrive in several copies of its code; in each of them a phase must get the same number. That no copy lacks its
arrival is for the simulator and the closure to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics.verify import LonelyBarrier, WrongArrivalCount
from ..foundation.source import Span
from ..roles.model import Arrive, Barrier, Expect, Kernel, Wait, walk
from ..targets.registers import WARPS
from .lines import events, lines, rounds, warpgroups

# (role, warpgroup) -> arrivals a phase of one part gets from it in one straight line -> where
Counts = dict[tuple[str, int], dict[int, Span | None]]


def arrival_problems(kernel: Kernel) -> Iterator[LonelyBarrier | WrongArrivalCount]:
    """Barriers whose arrivals in a phase are not those that they are made for, or that nobody waits for or arrives on."""
    waits, arrives = _users(kernel, Wait), _users(kernel, Arrive | Expect)
    again = rounds(kernel.roles)
    # a CTA's first item may lack what the one before it owes
    counted = [_count(kernel, number) for number in range(again, 2 * again)]
    for b in kernel.barriers:
        if not waits[b.name] or not arrives[b.name]:
            spans = [s.span for r in kernel.roles for s in walk(r.steps) if getattr(s, "barrier", None) == b.name]
            span = spans[0] if spans else kernel.buffer(kernel.ring(b.ring).buffers[0]).span
            yield LonelyBarrier(span=span, barrier=b.name, waits=waits[b.name], arrives=arrives[b.name])
            continue
        for part in range(b.parts):
            found = (p for counts in counted for p in _part(b, part, counts.get((b.name, part), {})))
            yield from dict.fromkeys(found)


def _part(b: Barrier, part: int, counts: Counts) -> Iterator[WrongArrivalCount]:
    usual: dict[str, int] = {}
    for (role, _), found in counts.items():
        usual[role] = usual.get(role, 0) + max(found)
    places = [s for found in counts.values() for s in found.values() if s is not None]
    for (role, _), found in counts.items():
        for n in sorted(set(found) - {max(found)}):
            rest = usual | {role: usual[role] - max(found) + n}
            yield WrongArrivalCount(span=found[n], barrier=b.name, part=part, count=b.count, arrivals=tuple(rest.items()))
    if sum(usual.values()) != b.count:
        span = places[0] if places else None
        yield WrongArrivalCount(span=span, barrier=b.name, part=part, count=b.count, arrivals=tuple(usual.items()))


def _count(kernel: Kernel, number: int) -> dict[tuple[str, int], Counts]:
    """The arrivals on each part of each barrier for one item of a CTA."""
    out: dict[tuple[str, int], Counts] = {}
    for role, wg in warpgroups(kernel.roles):
        for line in lines(role.steps, wg, number):
            phases: dict[tuple, tuple[int, Span | None]] = {}
            for e in events(line, wg):
                if isinstance(e.event, Arrive | Expect):
                    n = _arrivals(e.event)
                    phases[e.key] = (phases.get(e.key, (0, None))[0] + n, e.event.span)
            for (barrier, part, _), (n, span) in phases.items():
                known = part.constant
                for p in range(kernel.barrier(barrier).parts) if known is None else (known,):
                    out.setdefault((barrier, p), {}).setdefault((role.name, wg), {}).setdefault(n, span)
    return out


def _arrivals(s: Arrive | Expect) -> int:
    if isinstance(s, Expect):
        return 1
    return WARPS if s.by == "warps" else s.count


def _users(kernel: Kernel, kind) -> dict[str, tuple[str, ...]]:
    """The roles that have such a step on each barrier."""
    used = {r.name: {getattr(s, "barrier", "") for s in walk(r.steps) if isinstance(s, kind)} for r in kernel.roles}
    return {b.name: tuple(r for r, names in used.items() if b.name in names) for b in kernel.barriers}

"""What a fault says of the rest of the CTA: where each agent stands, and what happened last.

Warps of one warpgroup that stand at the same place, or have done the same thing, share a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..diagnostics.sim import Event, Waiting
from ..roles.model import Step
from ..targets.registers import WARPS
from .agent import Agent

SHOWN = 12  # events
RAW_EVENTS = 8 * SHOWN  # that are kept: warps of a warpgroup do the same things


def names_of(agents: Iterable[Agent]) -> tuple[str, ...]:
    """`math 0`, `math 1 warps 0, 2`: agents by warpgroup."""
    groups: dict[str, list[Agent]] = {}
    for a in agents:
        groups.setdefault(a.group, []).append(a)
    return tuple(_name(members) for members in groups.values())


def _name(members: list[Agent]) -> str:
    """Agents of one warpgroup."""
    if members[0].warp is None or len(members) == WARPS:
        return members[0].group
    if len(members) == 1:
        return members[0].name
    return f"{members[0].group} warps {', '.join(str(w) for w in sorted(a.warp or 0 for a in members))}"


def standing(agents: Iterable[Agent]) -> tuple[Waiting, ...]:
    """Where these agents stand, and what those wait for that can't go on."""
    places: dict[tuple, list[Agent]] = {}
    for a in agents:
        item = a.item.number if a.item is not None else -1
        places.setdefault((a.group, id(a.step), item, _what(a)), []).append(a)
    return tuple(_waiting(members) for members in places.values())


def _what(a: Agent) -> str:
    return a.blocked.what() if a.blocked is not None and not a.blocked.ready() else ""


def _waiting(members: list[Agent]) -> Waiting:
    a = members[0]
    if a.step is None:
        return Waiting(agent=_name(members), what="", step="")
    return Waiting(agent=_name(members), what=_what(a), step=a.text(a.step), span=a.step.span)


def events_before(raw: Sequence[tuple[Agent, Step, str]]) -> tuple[Event, ...]:
    """The last of these events, the latest last. One that a warp has done again is another event."""
    lines: list[tuple[Agent, Step, str, list[Agent]]] = []
    for a, step, what in reversed(raw):
        for b, other, did, members in lines:
            if step is other and what == did and a.group == b.group and a not in members:
                members.append(a)
                break
        else:
            if len(lines) == SHOWN:
                break
            lines.append((a, step, what, [a]))
    return tuple(
        Event(agent=_name(members), step=a.text(step), what=what, span=step.span) for a, step, what, members in reversed(lines)
    )

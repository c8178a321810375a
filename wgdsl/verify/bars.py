"""Named barriers: ids, and that those who wait and arrive make up the number of threads that they name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..diagnostics.verify import NamedBarrier
from ..foundation.source import Span
from ..roles.model import BarArrive, BarSync, Kernel
from ..targets.choice import TARGETS
from ..targets.registers import WARPGROUP
from .lines import lines, warpgroups


@dataclass
class _Bar:
    """Who uses one id: warpgroups by (role, ordinal), and the counts that they name."""

    syncs: set[tuple[str, int]] = field(default_factory=set)
    arrives: set[tuple[str, int]] = field(default_factory=set)
    threads: dict[int, Span | None] = field(default_factory=dict)

    @property
    def span(self) -> Span | None:
        return next(iter(self.threads.values()))


def bar_problems(kernel: Kernel) -> Iterator[NamedBarrier]:
    """Named barriers with an id that does not exist, a count that nobody makes up, or two uses."""
    bars: dict[int, _Bar] = {}
    unknown: dict[tuple, NamedBarrier] = {}
    for role, wg in warpgroups(kernel.roles):
        for line in lines(role.steps, wg):
            for s in line:
                if not isinstance(s, BarSync | BarArrive):
                    continue
                number = s.id.substitute({"wg": wg}).constant
                if number is None:
                    why = "its id depends on more than the warpgroup"
                    unknown.setdefault((str(s.id), s.span), NamedBarrier(span=s.span, bar=str(s.id), why=why))
                else:
                    _use(bars.setdefault(number, _Bar()), s, (role.name, wg))
    yield from unknown.values()
    for number in sorted(bars):
        yield from _one(number, bars[number], TARGETS[kernel.target].named_barriers)
    yield from _reserved(kernel)


def _use(bar: _Bar, s: BarSync | BarArrive, who: tuple[str, int]) -> None:
    (bar.syncs if isinstance(s, BarSync) else bar.arrives).add(who)
    bar.threads.setdefault(s.threads, s.span)


def _one(number: int, bar: _Bar, limit: int) -> Iterator[NamedBarrier]:
    def problem(why: str, span: Span | None = None) -> NamedBarrier:
        return NamedBarrier(span=span or bar.span, bar=str(number), why=why)

    if not 1 <= number < limit:
        yield problem(f"ids are 1 to {limit - 1}")
        return
    if len(bar.threads) > 1:
        last = list(bar.threads.items())[-1]
        yield problem(f"its steps name {' and '.join(map(str, sorted(bar.threads)))} threads", last[1])
        return
    (threads,) = bar.threads
    if threads % 32:
        yield problem(f"{threads} threads are no multiple of 32")
    elif not bar.syncs:
        yield problem("warpgroups arrive, and none waits")
    else:
        least = WARPGROUP * (len(bar.syncs) + bool(bar.arrives))
        most = WARPGROUP * (len(bar.syncs) + len(bar.arrives))
        if not least <= threads <= most:
            got = f"{least}" if least == most else f"{least} to {most}"
            yield problem(f"its steps name {threads} threads, but {got} take part")


def _reserved(kernel: Kernel) -> Iterator[NamedBarrier]:
    taken: dict[int, str] = {}
    for use, first, count in kernel.named_barriers:
        for number in range(first, first + count):
            if number in taken:
                yield NamedBarrier(bar=str(number), why=f"it serves both {taken[number]} and {use}")
            taken.setdefault(number, use)

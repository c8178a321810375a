"""problem_of: a fault of the closure as an error for the user.

In: a fault.  Out: the problem of its rule, with the word, the two events that aren't ordered, and what leads there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..diagnostics import protocol as p
from ..diagnostics.model import Problem
from ..roles import model as m
from ..roles.model import Step
from ..roles.text import step_text
from .counter import Fault, Watch, replayed
from .layout import Unit
from .machine import Rule
from .progress import AHEAD, ENDED, State

ROWS = 14  # of the table of events
QUIET = (  # steps on a warpgroup's own registers
    m.Compute, m.Pack, m.Move, m.Zero, m.Forget, m.Registers, m.StoreGlobal, m.Classify, m.Tally,
)  # fmt: skip


def problem_of(fault: Fault) -> Problem:
    """The error to show."""
    kernel, found = fault.progress.kernel, fault.found
    if found.rule == Rule.STATES:
        return p.TooManyStates(
            span=kernel.roles[0].span,
            kernel=kernel.name,
            limit=int(found.name.split()[0]),
            unit=found.name.partition(" ")[2] or "states",
            widest=found.why,
        )
    watch = Watch()
    again = replayed(fault.progress, fault.word, watch)
    assert again is not None and watch.state is not None
    return _Report(again, watch, watch.state).problem()


@dataclass(eq=False)
class _Report:
    fault: Fault
    watch: Watch
    state: State

    def __post_init__(self) -> None:
        self.found, self.layout = self.fault.found, self.fault.progress.layout
        self.kernel = self.layout.kernel
        self.unit: Unit = self.layout.units[self.found.unit]
        self.events = self.watch.events
        self.at = self.watch.latest.get(self.found.unit, len(self.events) - 1)
        self.first = self._first()

    def problem(self) -> Problem:
        make, data = _RULES[self.found.rule]
        shown, gaps = self._before()
        other = shown.get(self.first) if self.first is not None else None
        if other is None and self.first is not None:
            other = self.event(self.first)
        more = data(self)
        span = more.pop("span", self.step.span)
        return make(
            span=span, event=more.pop("event", self.event(self.at)), other=other, before=tuple(shown.values()), gaps=gaps,
            word=tuple(_words(x.dims, x.indices) for x in self.fault.letters), witness=self.fault.witness, **more,
        )  # fmt: skip

    @property
    def step(self) -> Step:
        return self.events[self.at][2]

    def event(self, k: int) -> p.Event:
        unit, item, step = self.events[k]
        return p.Event(agent=self.layout.units[unit].name, step=step_text(self.kernel, step), item=item, span=step.span)

    def _first(self) -> int | None:
        """The event that the current one isn't ordered after."""
        bits = (k for k in range(self.found.bits.bit_length()) if self.found.bits >> k & 1)
        made = (self.watch.made[k] for k in bits if k in self.watch.made)
        return max((k for k in made if k != self.at), default=None)

    def _before(self) -> tuple[dict[int, p.Event], frozenset[int]]:
        """The last events of the protocol, and the first of the two that clash. Gaps: before which rows some are left out."""
        loud = [k for k in range(len(self.events)) if not isinstance(self.events[k][2], QUIET) and k != self.at]
        kept = loud[-ROWS:]
        if self.first is not None and self.first not in kept:
            kept = sorted({self.first, *kept[1:]})
        gaps = frozenset(n for n, k in enumerate(kept) if loud.index(k) != (loud.index(kept[n - 1]) + 1 if n else 0))
        return {k: self.event(k) for k in kept}, gaps

    # What belongs to the rules.
    @property
    def tile(self) -> str:
        names = [key for key, panels in self.layout.tiles.items() for atoms in panels if self.found.atom in atoms]
        used = [n for n in names if n[0] in _buffers(self.step)] or names
        buffer, part, stage = used[0]
        parts = self.kernel.buffer(buffer).parts
        return f"{buffer}[{f'{part}, ' if parts > 1 else ''}{stage}]"

    @property
    def barrier(self) -> str:
        b, part, stage = self.layout.mbarriers[self.found.mbarrier]
        return f"{b.name}[{f'{part}, ' if b.parts > 1 else ''}{stage}]"

    def early(self) -> int:
        """How far back a step reaches that stands before its ring's first position; 0 for others."""
        slot = getattr(self.step, "slot", None)
        if not isinstance(slot, m.Slot):
            return 0
        at = self.state.machine.position[self.found.unit * len(self.layout.rings) + self.layout.rings[slot.ring]]
        return slot.lag if at < slot.lag else 0

    def waiting(self) -> tuple[p.Waits, ...]:
        out = []
        for u, stage in enumerate(self.state.stage):
            if stage != ENDED and u in self.watch.latest:
                k = self.watch.latest[u]
                out.append(p.Waits(event=self.event(k), what=self._what(u, self.events[k][2])))
        return tuple(out)

    def _what(self, u: int, s: Step) -> str:
        x = self.state.machine
        if isinstance(s, m.Wait):
            ring = self.layout.rings[s.slot.ring]
            n = self.kernel.rings[ring].stages
            lap, stage = divmod(x.position[u * len(self.layout.rings) + ring] - s.slot.lag, n)
            part = s.part.substitute({"wg": self.layout.units[u].wg}).constant or 0
            k = self.layout.barriers[s.barrier] + part * n + stage
            count = self.layout.mbarriers[k][0].count
            missing = f"{x.pending[k]} of {count} arrivals" + (f" and {x.bytes[k]} bytes" if x.bytes[k] else "")
            end = f"the end of phase {lap - s.flip} of {s.barrier}[{stage}]"
            return f"{end}, which is in phase {x.phase[k]} and misses {missing}"
        if isinstance(s, m.BarSync):
            number = s.id.substitute({"wg": self.layout.units[u].wg}).constant
            arrived = x.arrived[list(self.layout.bars).index(number)] if number in self.layout.bars else 0
            return f"named barrier {number}, where {arrived} of {s.threads} threads have arrived"
        return "its turn"

    def held(self) -> str:
        tag = self.state.machine.tags[self.found.atom]
        return f"what was written to `{tag.buffer}` at another position of its ring" if tag is not None else "nothing"

    def product(self) -> str:
        """The product in flight that uses the registers: the last that the unit has issued on them."""
        for unit, _, s in reversed(self.events[: self.at]):
            if unit == self.found.unit and isinstance(s, m.Wgmma):
                names = {s.acc} | ({s.a.value} if isinstance(s.a, m.RegOperand) else set())
                if self._same(names):
                    return step_text(self.kernel, s)
        return "a product"

    def _same(self, names: set[str]) -> bool:
        file = self.fault.progress.tracers[self.found.unit].maker.file
        return any(file[n] == file[self.found.name] for n in names)

    def left(self) -> dict:
        kind = {"product": m.Wgmma, "bulk store": m.TmaStore, "copy": m.CopyAsync}[self.found.why]
        k = max(k for k, (u, _, s) in enumerate(self.events) if u == self.found.unit and isinstance(s, kind))
        x, n = self.state.machine, self.found.unit
        committed = not {m.Wgmma: x.open, m.TmaStore: x.stores, m.CopyAsync: x.copies}[kind][n]
        event = self.event(k)
        said = {"what": self.found.why, "text": event.step, "role": self.unit.role.name, "committed": committed}
        return {**said, "event": event, "span": event.span}


def _buffers(s: Step) -> set[str]:
    operands = [o.buffer for f in ("a", "b") if isinstance(o := getattr(s, f, None), m.SmemOperand)]
    return {*operands, getattr(s, "buffer", "")}


def _words(dims, indices) -> str:
    return ", ".join(f"{k} = {v}" for k, v in (*indices.items(), *dims.items()))


_RULES: dict[str, tuple[Callable[..., Problem], Callable[[_Report], dict]]] = {
    Rule.READ: (p.ReadBeforeArrival, lambda r: {"tile": r.tile}),
    Rule.OVERWRITE: (p.OverwrittenBeforeRead, lambda r: {"tile": r.tile}),
    Rule.PROXY: (p.ProxyFenceMissing, lambda r: {"tile": r.tile}),
    Rule.TILE: (p.ReadBeforeArrival, lambda r: {"tile": r.tile, "held": r.held()}),
    Rule.DEADLOCK: (p.NobodyRuns, lambda r: {"waiting": r.waiting()}),
    Rule.STAYS: (p.RoleStays, lambda r: {"waiting": r.waiting()}),
    Rule.PHASE: (p.AmbiguousPhase, lambda r: {"barrier": r.barrier, "why": r.found.why, "lag": r.early()}),
    Rule.BAR: (p.BarGeneration, lambda r: {"bar": r.found.name, "why": r.found.why}),
    Rule.FLIGHT: (p.TouchedInFlight, lambda r: {"value": r.found.name, "product": r.product()}),
    Rule.LEFT: (p.NeverAwaited, lambda r: r.left()),
    Rule.FENCE: (p.NoProductFence, lambda r: {"value": r.found.name}),
    Rule.POISON: (p.RegisterWithoutValue, lambda r: {"value": r.found.name}),
    Rule.RUNAWAY: (p.RunsAhead, lambda r: {"items": AHEAD}),
}

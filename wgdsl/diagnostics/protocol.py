"""WG0711 and on: a role program whose protocol can go wrong, for some word of items. Each shows the shortest word that was
found, and what happens in it, step by step.

Each `doc` is the rule, then under `fails:` and `works:` lines of the role program of a shipped schedule; tests check both.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..foundation.source import Span
from .model import Problem

SHOWN = 4  # items of a word that are written out


@dataclass(frozen=True, kw_only=True)
class Event:
    """What one agent does in one step. `item`: the number of the CTA's item, from 0; -1 outside of items."""

    agent: str
    step: str
    item: int = -1
    span: Span | None = None

    def cells(self) -> tuple[str, str, str, str]:
        place = str(self.span.line) if self.span else ""
        return self.agent, str(self.item) if self.item >= 0 else "", self.step, place

    def __str__(self) -> str:
        return f"`{self.step}` of {self.agent}"


@dataclass(frozen=True, kw_only=True)
class ProtocolFault(Problem):
    """`event` breaks a rule. `other`: what it isn't ordered after. `word`: the CTA's items, in words. `before`: the events that
    lead there, in an order in which they can happen; `gaps`: before which of them others are left out. `witness`: the word as a
    `roles.witness.Witness`, which the simulator replays."""

    event: Event
    other: Event | None = None
    word: tuple[str, ...] = ()
    before: tuple[Event, ...] = ()
    gaps: frozenset[int] = frozenset()
    witness: Any = field(default=None, compare=False, repr=False)

    def label(self) -> str:
        return f"{self.event}"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.other.span, f"{self.other}"),) if self.other is not None and self.other.span is not None else ()

    def notes(self) -> tuple[str, ...]:
        return (*self.facts(), *self._word(), *self._table())

    def facts(self) -> tuple[str, ...]:
        """What belongs to the rule."""
        return ()

    def _word(self) -> tuple[str, ...]:
        if not self.word:
            return ()
        shown = [f"item {k}: {x}" for k, x in enumerate(self.word[:SHOWN])]
        more = [f"and {len(self.word) - SHOWN} more"] if len(self.word) > SHOWN else []
        return ("for a CTA with " + "; ".join((*shown, *more)),)

    def _table(self) -> tuple[str, ...]:
        """A row an event: who, in which item, what, where. `1` and `2` mark the two that aren't ordered."""
        if not self.before:
            return ()
        rows = [("", "role", "item", "step", "line")]
        for k, e in enumerate(self.before):
            if k in self.gaps:
                rows.append(("", "", "", "...", ""))
            rows.append(("1" if e is self.other else "", *e.cells()))
        rows.append(("2" if self.other is not None else "!", *self.event.cells()))
        widths = [max(len(r[c]) for r in rows) for c in range(5)]
        return ("\n".join("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows),)


@dataclass(frozen=True, kw_only=True)
class TouchedInFlight(ProtocolFault):
    """`value` is touched while `product` may still run."""

    value: str
    product: str

    code: ClassVar[str] = "WG0711"
    doc: ClassVar[str] = """A product runs asynchronously: its accumulator may be touched, and its operand registers rewritten,
only after a wait_group that covers its committed group.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  wait_group 1 ready Acc
works:
  wait_group 0 ready Acc
"""

    def title(self) -> str:
        return f"`{self.value}` is touched while `{self.product}` may still be running"

    def help(self) -> str:
        return "commit the product, and wait for its group before this step"


# What is in flight -> the steps that end that.
_AWAITED = {
    "product": ("wait_group 0", "commit"),
    "bulk store": ("wait_read 0", "commit_store"),
    "copy": ("wait copies 0", "commit copies"),
}


@dataclass(frozen=True, kw_only=True)
class NeverAwaited(ProtocolFault):
    """`what`: a product, a bulk store, or a copy of threads; `text`: its step."""

    what: str
    text: str
    role: str
    committed: bool

    code: ClassVar[str] = "WG0712"
    doc: ClassVar[str] = """Products, bulk stores and copies of threads are committed, and waited for, before their role ends.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  }
  arrive As.empty[s] by lane 0 of each warp
works:
  }
  wait_group 0 ready Acc
  arrive As.empty[s] by lane 0 of each warp
"""

    def title(self) -> str:
        return f"`{self.text}` is never {'waited for' if self.committed else 'committed'} before `{self.role}` ends"

    def help(self) -> str:
        wait, commit = _AWAITED[self.what]
        return f"`{wait if self.committed else commit}` after it"


@dataclass(frozen=True, kw_only=True)
class NoProductFence(ProtocolFault):
    """`value` has been used since the last fence."""

    value: str

    code: ClassVar[str] = "WG0713"
    doc: ClassVar[str] = """wgmma.fence stands between the warpgroup's own use of registers and a product that reads or writes
them, also before the first product.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  wait As.full[s] parity p
  wgmma Acc = As[wg, s] k_major * Bs[s] k_major first shape 64 x 256 x 64 bf16
works:
  wait As.full[s] parity p
  fence wgmma
  wgmma Acc = As[wg, s] k_major * Bs[s] k_major first shape 64 x 256 x 64 bf16
"""

    def title(self) -> str:
        return f"no `fence wgmma` between the last use of `{self.value}` and `{self.event.step}`"

    def help(self) -> str:
        return "`fence wgmma` right before the product"


@dataclass(frozen=True, kw_only=True)
class ReadBeforeArrival(ProtocolFault):
    """`tile` is read while `other`, which fills or writes it, may still be at work; None: nothing has been written. `held`: it
    is complete, but holds this, which isn't what is meant."""

    tile: str
    held: str = ""

    code: ClassVar[str] = "WG0714"
    doc: ClassVar[str] = """A tile in shared memory is read only where it is known to be complete: a copy by those who
have waited on its full barrier, a store of registers by those whom a barrier orders after it.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  if k.n - 1 >= 0 {
    fence wgmma
    wgmma Acc = As[wg, s] k_major * Bs[s] k_major first shape 64 x 256 x 64 bf16
works:
  if k.n - 1 >= 0 {
    wait As.full[s] parity p
    fence wgmma
    wgmma Acc = As[wg, s] k_major * Bs[s] k_major first shape 64 x 256 x 64 bf16
"""

    def title(self) -> str:
        if self.held:
            return f"`{self.tile}` is read, and holds {self.held}"
        if self.other is None:
            return f"`{self.tile}` is read, and nothing has been written there"
        return f"`{self.tile}` is read before {self.other} is known to be complete"

    def help(self) -> str:
        if self.held:
            return "`advance` the ring once for each tile, in every role that uses it"
        return "wait for it between the two"


@dataclass(frozen=True, kw_only=True)
class OverwrittenBeforeRead(ProtocolFault):
    """`tile` is overwritten while `other` may still read or write it."""

    tile: str

    code: ClassVar[str] = "WG0715"
    doc: ClassVar[str] = """A tile in shared memory is overwritten only by those who know that all earlier readers and
writers are done: each has released it after its last use, and the release has been waited for.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  wait_group 2
  arrive As.empty[s-1] by lane 0 of each warp
works:
  wait_group 1
  arrive As.empty[s-1] by lane 0 of each warp
"""

    def title(self) -> str:
        return f"`{self.tile}` is overwritten while {self.other or 'an earlier step'} may still need it"

    def help(self) -> str:
        return "release the tile after its last use, and wait for that release here"


@dataclass(frozen=True, kw_only=True)
class ProxyFenceMissing(ProtocolFault):
    """`tile`: written by threads (`other`), then used by a copy engine or a product."""

    tile: str

    code: ClassVar[str] = "WG0716"
    doc: ClassVar[str] = """What threads write to shared memory, the asynchronous proxy (TMA, wgmma) sees only behind
`fence async` by those threads, and a barrier after it. The same holds where a bulk copy overwrites
what threads have written.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  write Cs[wg, s] = Acc
  if C.tma {
    sync bar wg + 1 threads 128
works:
  write Cs[wg, s] = Acc
  if C.tma {
    fence async
    sync bar wg + 1 threads 128
"""

    def title(self) -> str:
        written = self.other or "what threads have written"
        return f"the asynchronous proxy uses `{self.tile}`, and no `fence async` follows {written}"

    def help(self) -> str:
        return "`fence async` by the threads that write, before the barrier that orders the two"


@dataclass(frozen=True, kw_only=True)
class Waits:
    """What an agent waits for in the end."""

    event: Event
    what: str

    def __str__(self) -> str:
        place = f" (line {self.event.span.line})" if self.event.span else ""
        return f"{self.event.agent} waits for {self.what}: `{self.event.step}`{place}"


@dataclass(frozen=True, kw_only=True)
class NobodyRuns(ProtocolFault):
    """`waiting`: every agent, none of which can go on."""

    waiting: tuple[Waits, ...]

    code: ClassVar[str] = "WG0717"
    doc: ClassVar[str] = """Roles wait for each other, or for arrivals that never come: a deadlock.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  wait_group 1
  }
works:
  wait_group 1
  arrive As.empty[s-1] by lane 0 of each warp
  }
"""

    def title(self) -> str:
        return "deadlock: every role waits"

    def facts(self) -> tuple[str, ...]:
        return tuple(map(str, self.waiting))

    def help(self) -> str:
        return "each wait needs an arrival, in the same item or the one before, that doesn't itself come after the wait"


@dataclass(frozen=True, kw_only=True)
class AmbiguousPhase(ProtocolFault):
    """`barrier`: in its phases; `why`: what may meet the wrong one; `lag`: how far back the step reaches before the first."""

    barrier: str
    why: str
    lag: int = 0

    code: ClassVar[str] = "WG0718"
    doc: ClassVar[str] = """A wait knows only the parity of a phase. So who arrives has to know that the phase before is over,
who waits that it isn't two phases behind, and no phase may end before all who wait for the one
before have passed. Else the same step means another phase in another order of events.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  wait As.full[s] parity not p
works:
  wait As.full[s] parity p
"""

    def title(self) -> str:
        return f"`{self.barrier}`: {self.why}"

    def help(self) -> str:
        if self.lag:
            return f"the role has advanced less than {self.lag} times: put the step behind as many advances, or reach back less"
        moves = "a role's position in its ring moves by one for each phase"
        return f"{moves}, and each phase is waited for before the next is filled"


@dataclass(frozen=True, kw_only=True)
class BarGeneration(ProtocolFault):
    bar: str
    why: str

    code: ClassVar[str] = "WG0719"
    doc: ClassVar[str] = """A named barrier's generation takes the threads that its steps name, and one of them waits. Who
arrives for the next generation has to know that the one before is over.

In the role program of `fa3` for `attention` (`wgdsl explain`):

fails:
  arrive bar (wg + 1) % (2) + 1 threads 256
  arrive bar (wg + 1) % (2) + 1 threads 256
works:
  arrive bar (wg + 1) % (2) + 1 threads 256
"""

    def title(self) -> str:
        return f"named barrier {self.bar}: {self.why}"

    def help(self) -> str:
        told = "its own `sync`, or a barrier after it"
        return f"between two arrivals of a warpgroup, something tells it that the others have met: {told}"


@dataclass(frozen=True, kw_only=True)
class RoleStays(ProtocolFault):
    """`waiting`: those that never leave, though others have."""

    waiting: tuple[Waits, ...]

    code: ClassVar[str] = "WG0720"
    doc: ClassVar[str] = """Every role leaves: none waits for what a role that has left would have to do.

In the role program of `fa3` for `attention` (`wgdsl explain`):

fails:
  if -wg >= 0 {
  }
works:
  if -wg >= 0 {
    arrive bar 1 threads 256
  }
"""

    def title(self) -> str:
        stays = ", ".join(w.event.agent for w in self.waiting)
        return f"{stays} never leaves: what it waits for would come from a role that has left"

    def facts(self) -> tuple[str, ...]:
        return tuple(map(str, self.waiting))

    def help(self) -> str:
        return "roles that share a ring or a turn go through it as often as each other, whatever an item holds"


@dataclass(frozen=True, kw_only=True)
class RegisterWithoutValue(ProtocolFault):
    value: str

    code: ClassVar[str] = "WG0721"
    doc: ClassVar[str] = """A register value is written before it is read: a product adds to an accumulator only if that holds
something.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  wgmma Acc += As[wg, s] k_major * Bs[s] k_major shape 64 x 256 x 64 bf16
works:
  wgmma Acc = As[wg, s] k_major * Bs[s] k_major first shape 64 x 256 x 64 bf16
"""

    def title(self) -> str:
        return f"`{self.value}` is read, and nothing has been written to it"

    def help(self) -> str:
        return "write it first on every way that leads here; `first` lets a product begin anew"


@dataclass(frozen=True, kw_only=True)
class TooManyStates(Problem):
    """`limit`: states that the verifier goes into. `widest`: what takes most of their values."""

    kernel: str
    limit: int
    widest: str
    unit: str = "states"

    code: ClassVar[str] = "WG0722"
    doc: ClassVar[str] = """The verifier goes into a limited number of states of the protocol, and says so if that isn't enough,
instead of letting a schedule pass. Rings that go round in different rhythms multiply states, and so do
many kinds of items.
"""

    def title(self) -> str:
        return f"the protocol of `{self.kernel}` has more than {self.limit} {self.unit}"

    def notes(self) -> tuple[str, ...]:
        return (f"most differ in {self.widest}",) if self.widest else ()

    def help(self) -> str:
        return "fewer stages, or rings whose depths divide each other"


@dataclass(frozen=True, kw_only=True)
class RunsAhead(ProtocolFault):
    """A role goes on from item to item and waits for nobody."""

    items: int

    code: ClassVar[str] = "WG0723"
    doc: ClassVar[str] = """No role may be ahead of the others without bound: something in each item makes it wait.
"""

    def title(self) -> str:
        return f"{self.event.agent} can be more than {self.items} items ahead of the other roles"

    def help(self) -> str:
        return "let it wait for the slowest role once an item"

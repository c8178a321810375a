"""WG08xx: faults that the simulator meets while it runs a role program.

Each `doc` is the rule, then under `fails:` and `works:` lines of the role program of a shipped schedule; tests simulate both.
Each names the agent (a warp of a role, or the one thread of an elected role), the step in the explicit vocabulary, and what
it clashes with; then where all other agents stand, and what happened last. The span is the line of the schedule that the step
comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..foundation.source import Span
from .model import Problem


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Where one agent stands (or several of a warpgroup), and what it waits for, if anything. `step` empty: nowhere yet."""

    agent: str
    what: str
    step: str
    span: Span | None = None

    def __str__(self) -> str:
        several = "warps" in self.agent.split()
        if not self.step:
            return f"{self.agent} {'have' if several else 'has'} not begun"
        does = f"{'wait' if several else 'waits'} for {self.what}:" if self.what else "can go on at"
        return f"{self.agent} {does} `{self.step}`{_place(self.span)}"


@dataclass(frozen=True, kw_only=True)
class Event:
    """What one agent has done, or several of a warpgroup. `what`: `completes`, of what the step had put in flight."""

    agent: str
    step: str
    what: str = ""
    span: Span | None = None

    def __str__(self) -> str:
        return f"{self.agent}: `{self.step}`{f' {self.what}' if self.what else ''}{_place(self.span)}"


def _place(span: Span | None) -> str:
    return f" at {span}" if span else ""


@dataclass(frozen=True, kw_only=True)
class Fault(Problem):
    """`agent` runs `step` while it works on `item` (empty outside items).

    `waiting`: every other agent that hasn't ended; `ended`: those that have; `events`: what happened last, the latest last.
    """

    agent: str = ""
    step: str = ""
    item: str = ""
    waiting: tuple[Waiting, ...] = ()
    ended: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()

    def label(self) -> str:
        return f"`{self.step}`" if self.step else ""

    def notes(self) -> tuple[str, ...]:
        return (*self.where(), *self.situation())

    def where(self) -> tuple[str, ...]:
        """Who it is that meets the fault."""
        return (f"{self.agent}, {self.item}" if self.item else self.agent,) if self.agent else ()

    def situation(self) -> tuple[str, ...]:
        """The other agents, and what happened before."""
        ended = (f"ended: {', '.join(self.ended)}",) if self.ended else ()
        before = ("\n".join(("before it:", *map(str, self.events))),) if self.events else ()
        return (*map(str, self.waiting), *ended, *before)


@dataclass(frozen=True, kw_only=True)
class Deadlock(Fault):
    """`waiting`: every agent that hasn't ended."""

    code: ClassVar[str] = "WG0801"
    doc: ClassVar[str] = """No role can go on and nothing is in flight: a wait has no arrival, a barrier expects more arrivals
or bytes than it gets, or roles wait for each other. Each waiting role is listed with its barrier,
what that barrier still misses, and the line of its step.

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
        return "deadlock: nobody can run, and nothing is in flight"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return tuple((w.span, f"{w.agent} waits here") for w in self.waiting[1:] if w.span)

    def where(self) -> tuple[str, ...]:
        return (f"on {self.item}",) if self.item else ()


@dataclass(frozen=True, kw_only=True)
class ReadTooEarly(Fault):
    """`writer` is what fills or writes the tile, `lost` what has since been written over it; both empty: nothing has."""

    tile: str
    writer: str = ""
    lost: str = ""

    code: ClassVar[str] = "WG0802"
    doc: ClassVar[str] = """A tile in shared memory is read before the reader knows that it is complete. A copy is complete for
those who have waited on its full barrier, a store of registers for those whom a barrier orders
after it.

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
        if self.lost:
            return f"`{self.tile}` is read, but {self.lost} has overwritten it"
        if not self.writer:
            return f"`{self.tile}` is read, but nothing has been written there"
        return f"`{self.tile}` is read before {self.writer} is known to be complete"

    def help(self) -> str:
        return "wait for it between the two" if self.writer else "fill it first, or wait for the fill that is meant"


@dataclass(frozen=True, kw_only=True)
class OverwrittenTooEarly(Fault):
    """`other` still reads or writes the tile, as far as the agent knows."""

    tile: str
    other: str

    code: ClassVar[str] = "WG0803"
    doc: ClassVar[str] = """A tile in shared memory is overwritten while an earlier reader or writer may still be at work: its
release hasn't been waited for, was given too early, or the ring has too few stages for what is in
flight.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  wait_group 2
  arrive As.empty[s-1] by lane 0 of each warp
works:
  wait_group 1
  arrive As.empty[s-1] by lane 0 of each warp
"""

    def title(self) -> str:
        return f"`{self.tile}` is overwritten while {self.other} may still need it"

    def help(self) -> str:
        return "release the tile after the last use, and wait for that release here"


@dataclass(frozen=True, kw_only=True)
class WrongBytes(Fault):
    """A phase of `barrier` ends while `copy`, which signals it, is still on its way."""

    barrier: str
    copy: str
    missing: int

    code: ClassVar[str] = "WG0804"
    doc: ClassVar[str] = """A phase of a full barrier ends when it has its arrivals and the bytes it expects. Expecting fewer
bytes than its copies move ends it too early; a box counts in full, even where it is clipped.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  wait As.empty[s] parity not p
  expect As.full[s] bytes 32768
works:
  wait As.empty[s] parity not p
  expect As.full[s] bytes 49152
"""

    def title(self) -> str:
        return f"`{self.barrier}` completes {self.missing} bytes too early: {self.copy} is still in flight"

    def help(self) -> str:
        return "expect the bytes of all boxes that signal this phase"


@dataclass(frozen=True, kw_only=True)
class WrongPhase(Fault):
    """The event meant phase `meant` of `barrier` and met phase `found`."""

    barrier: str
    what: str
    meant: int
    found: int
    count: int

    code: ClassVar[str] = "WG0805"
    doc: ClassVar[str] = """An arrival lands in, or a wait passes on, another phase of its barrier than the ring position says.
Then the count of the barrier isn't the number of arrivals that a phase gets, or somebody is a whole
lap ahead.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  loop k.pos 0 .. k.n - 1 mask {} {
    expect As.full[s] bytes 49152
works:
  loop k.pos 0 .. k.n - 1 mask {} {
    wait As.empty[s] parity not p
    expect As.full[s] bytes 49152
"""

    def title(self) -> str:
        return f"{self.what} `{self.barrier}` means its phase {self.meant}, but meets phase {self.found}"

    def where(self) -> tuple[str, ...]:
        arrivals = "one arrival" if self.count == 1 else f"{self.count} arrivals"
        return (f"the barrier is made for {arrivals} a phase", *super().where())

    def help(self) -> str:
        return "wait for the phase before this one, or mend the barrier's count"


@dataclass(frozen=True, kw_only=True)
class TooManyArrivals(Fault):
    barrier: str
    count: int
    phase: int

    code: ClassVar[str] = "WG0806"
    doc: ClassVar[str] = """A phase of a barrier gets more arrivals than its count: undefined on the chip.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  wait As.empty[s] parity not p
  expect As.full[s] bytes 49152
  expect As.full[s] bytes 49152
works:
  wait As.empty[s] parity not p
  expect As.full[s] bytes 49152
"""

    def title(self) -> str:
        expected = "one arrival" if self.count == 1 else f"{self.count} arrivals"
        return f"phase {self.phase} of `{self.barrier}` gets more than its {expected}"

    def help(self) -> str:
        return "wait for the end of the phase before arriving again, or mend the barrier's count"


@dataclass(frozen=True, kw_only=True)
class RegisterInFlight(Fault):
    """`value` is touched while `product` may still use it."""

    value: str
    product: str

    code: ClassVar[str] = "WG0807"
    doc: ClassVar[str] = """A product runs asynchronously. Its accumulator may be touched, and its operand registers rewritten,
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


@dataclass(frozen=True, kw_only=True)
class NotFenced(Fault):
    """`writer` wrote the tile through the generic proxy; the step uses it through the asynchronous one."""

    tile: str
    writer: str

    code: ClassVar[str] = "WG0808"
    doc: ClassVar[str] = """What threads write to shared memory is visible to TMA and wgmma only after every writer's
fence.proxy.async and a barrier behind it.

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
        return f"`{self.tile}` is used by the asynchronous proxy, but {self.writer} isn't fenced"

    def help(self) -> str:
        return "`fence async` by all writers, then a barrier, before this step"


@dataclass(frozen=True, kw_only=True)
class NoProductFence(Fault):
    value: str

    code: ClassVar[str] = "WG0809"
    doc: ClassVar[str] = """wgmma.fence must stand between the warpgroup's own use of registers and a product that reads or
writes them.

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
        return f"no `fence wgmma` between the last use of `{self.value}` and this product"

    def help(self) -> str:
        return "`fence wgmma` right before it"


@dataclass(frozen=True, kw_only=True)
class Uninitialised(Fault):
    value: str

    code: ClassVar[str] = "WG0810"
    doc: ClassVar[str] = """A register value is read that nothing has written.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  wgmma Acc += As[wg, s] k_major * Bs[s] k_major shape 64 x 256 x 64 bf16
works:
  wgmma Acc = As[wg, s] k_major * Bs[s] k_major first shape 64 x 256 x 64 bf16
"""

    def title(self) -> str:
        return f"`{self.value}` is read, but nothing has written it"

    def help(self) -> str:
        return "write it first; the first product into an accumulator overwrites it (`first`)"


@dataclass(frozen=True, kw_only=True)
class LaneShares(Fault):
    value: str

    code: ClassVar[str] = "WG0811"
    doc: ClassVar[str] = """Each lane of a quad holds its own share of a partial row value. It must be completed before it is
used as a whole, and only other shares may be added to it.

In the role program of `simple` for `attention` (`wgdsl explain`):

fails:
  if -j.n >= 0 {
    zero O
  }
works:
  if -j.n >= 0 {
    zero O
  }
  compute {
    complete P.sum by sum
  }
"""

    def title(self) -> str:
        return f"`{self.value}` mixes lane shares with whole row values"

    def help(self) -> str:
        return f"`complete {self.value} by ...` before this step"


@dataclass(frozen=True, kw_only=True)
class WrittenTwice(Fault):
    tensor: str
    element: tuple[int, ...]
    before: str

    code: ClassVar[str] = "WG0812"
    doc: ClassVar[str] = """Every element of an output is written once by a kernel.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  store C[i.lo +: 64, n.lo +: 64] by Cs = Cs[wg, s]
works:
  store C[i.lo + 64 * wg +: 64, n.lo +: 64] by Cs = Cs[wg, s]
"""

    def title(self) -> str:
        return f"`{self.tensor}[{', '.join(map(str, self.element))}]` is written twice; first by {self.before}"


@dataclass(frozen=True, kw_only=True)
class OutsideTensor(Fault):
    tensor: str
    element: tuple[int, ...]
    shape: tuple[int, ...]

    code: ClassVar[str] = "WG0813"
    doc: ClassVar[str] = """A thread stores outside a tensor's shape. Only bulk stores are clipped.

In the role program of `simple` for `attention` (`wgdsl explain`):

fails:
  put L[b, g * R + r, i + 1] = ((P.max * scale) + (log2(P.sum) * 0.6931471805599453)) over i = i.lo + 64 * wg +: 64
works:
  put L[b, g * R + r, i] = ((P.max * scale) + (log2(P.sum) * 0.6931471805599453)) over i = i.lo + 64 * wg +: 64
"""

    def title(self) -> str:
        at = ", ".join(map(str, self.element))
        return f"`{self.tensor}[{at}]` is stored, outside its shape ({', '.join(map(str, self.shape))})"


@dataclass(frozen=True, kw_only=True)
class NamedBarrierMisuse(Fault):
    bar: int
    why: str

    code: ClassVar[str] = "WG0814"
    doc: ClassVar[str] = """All arrivals of one generation of a named barrier name the same number of threads, add up to it, and
at least one of them waits.

In the role program of `fa3` for `attention` (`wgdsl explain`):

fails:
  arrive bar (wg + 1) % (2) + 1 threads 384
works:
  arrive bar (wg + 1) % (2) + 1 threads 256
"""

    def title(self) -> str:
        return f"named barrier {self.bar}: {self.why}"


@dataclass(frozen=True, kw_only=True)
class Unfinished(Fault):
    """`what` is still in flight when its CTA, or the agent that started it, ends."""

    what: str

    code: ClassVar[str] = "WG0815"
    doc: ClassVar[str] = """Copies, products and bulk stores must be complete before the threads that own their memory exit.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  one thread {
    wait_read 1
  }
works:
  one thread {
    wait_read 0
  }
"""

    def title(self) -> str:
        return f"{self.what} may still be in flight at the end"

    def help(self) -> str:
        return "wait for it before the role ends"


@dataclass(frozen=True, kw_only=True)
class IllFormed(Fault):
    why: str

    code: ClassVar[str] = "WG0816"
    doc: ClassVar[str] = """A step of the role program doesn't fit the values, buffers or threads it names.

In the role program of `simple` for `attention` (`wgdsl explain`):

fails:
  write Os[wg, s] = P.sum
works:
  write Os[wg, s] = O
"""

    def title(self) -> str:
        return self.why


@dataclass(frozen=True, kw_only=True)
class Endless(Fault):
    steps: int

    code: ClassVar[str] = "WG0817"
    doc: ClassVar[str] = "The simulator gives up on a CTA after a number of steps that no sensible input needs."

    def title(self) -> str:
        return f"no end after {self.steps} steps"

    def help(self) -> str:
        return "simulate smaller sizes"

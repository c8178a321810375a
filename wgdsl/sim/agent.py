"""An agent: one warp of a role's warpgroup, or the one thread of an elected role. It runs the role's steps as a coroutine.

A warp has its own place in the program, ring positions, integers, knowledge, and its own 16 rows of every register value. The
warps of a warpgroup meet nowhere but where the hardware makes them: at mbarriers and named barriers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..diagnostics.model import WgError
from ..diagnostics.sim import Endless, Fault, IllFormed, Unfinished
from ..program.expr import Expr, indices_of
from ..program.poly import Poly
from ..roles import model as m
from ..roles.text import op_text, step_text
from ..targets.registers import WARPS, launch_registers
from .barriers import Knowledge, MBarrier
from .flight import Copy, Product, Store
from .integers import Integer, holds
from .memory import Access, Clear, Share, Tile
from .orders import Who
from .registers import BLOCK, RegisterFile

if TYPE_CHECKING:
    from .cta import Cta

# Steps that nobody else can see the effect of.
PRIVATE = frozenset((
    m.Items, m.Let, m.Read, m.Loop, m.If, m.Elect, m.Leave, m.NextItem, m.Begun, m.Advance, m.Compute, m.Pack, m.Move, m.Zero,
    m.Forget, m.FenceWgmma, m.Commit, m.CommitStore, m.CommitCopies, m.Fetch, m.Classify,
))  # fmt: skip
# Steps before which others need not come: nothing that they could do then differs from what they can do after it.
UNBROKEN = PRIVATE | {m.FenceAsync, m.Wgmma, m.StoreGlobal, m.Tally}


class Blocked:
    """Something an agent waits for."""

    def ready(self) -> bool:
        raise NotImplementedError

    def what(self) -> str:
        raise NotImplementedError


Run = Generator[Blocked | None, None, None]  # None: it could go on


@dataclass(frozen=True)
class Item:
    """One work item: its number in the word of its CTA or in the grid, the values of its grid indices, and the dims that its
    steps see where they aren't those of the launch."""

    number: int
    indices: Mapping[str, int]
    dims: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"item {self.number} ({', '.join(f'{k} = {v}' for k, v in {**self.indices, **self.dims}.items())})"


class Agent:
    """`group`: the name of its warpgroup. `warp` None: one thread. `elected`: one thread runs the current step. `row`: the
    first of its rows in a tile."""

    def __init__(self, cta: Cta, role: m.Role, ordinal: int, warp: int | None):
        self.cta, self.role, self.ordinal, self.warp = cta, role, ordinal, warp
        self.group = f"{role.name} {ordinal}" if role.count > 1 else role.name
        self.name = self.group if warp is None else f"{self.group} warp {warp}"
        self.rows = max((v.rows // WARPS for v in cta.world.values[role.name]), default=BLOCK)
        self.elected, self.row, self.v8 = warp is None, self.rows * (warp or 0), cta.world.kernel.v8
        self.warps = 1  # that it stands for
        self.weight = WARPS if warp is None else 1  # the warps that setmaxnreg is for
        self.env: dict[str, Integer] = {**cta.world.dims, "wg": ordinal}
        self.scalars, self.tensors = cta.world.scalars, cta.world.tensors
        self.registers = RegisterFile(self, cta.world.values[role.name])
        self.positions: dict[str, int] = dict.fromkeys(cta.world.rings, 0)
        self.knowledge = Knowledge()
        self.written = 0  # own generic writes
        self.products: list[Product] = []  # that haven't completed
        self.open_products: list[Product] = []
        self.groups: list[list[Product]] = []
        self.open_stores: list[Store] = []
        self.store_groups: list[list[Store]] = []
        self.filled: dict[
            tuple[str, int], tuple[int, int]
        ] = {}  # by buffer and part: how often it copied, to which position last
        self.open_copies: list[Copy] = []
        self.copy_groups: list[list[Copy]] = []
        self.held = launch_registers(cta.world.kernel.threads)
        self.item: Item | None = None
        self.leaving = False  # no item is left
        self.following: Item | None = None  # what the role knows of the item after this one, where items are joined
        self.dims_ahead: Mapping[str, int] = {}
        self.begun = 0  # whether this item has begun that one
        self.step: m.Step | None = None
        self.op: m.Op | None = None  # the operation within the step
        self.blocked: Blocked | None = None
        self.ended = False

    # What a scheduler asks.

    def is_one_of(self, who: Sequence[Who]) -> bool:
        return any(
            w.role == self.role.name and w.warpgroup == self.ordinal and (w.warp is None or w.warp == self.warp) for w in who
        )

    def can_go_on(self) -> bool:
        return self.blocked is None or self.blocked.ready()

    # Running.

    def run(self, steps: tuple[m.Step, ...]) -> Run:
        from .steps import MEANING

        cta, stepwise = self.cta, self.cta.scheduler.stepwise
        for s in steps:
            self.step = s
            cta.steps += 1
            if cta.steps > cta.world.limit:
                raise self.fault(Endless, steps=cta.world.limit)
            kind = type(s)
            if stepwise and kind not in UNBROKEN:
                yield None
            waits = MEANING[kind](self, s)
            if waits is not None:
                yield from waits
            if kind not in PRIVATE:
                cta.events.append((self, s, ""))
            if self.leaving:
                return

    def execute(self) -> Run:
        """The role's steps; at its end nothing may be in flight."""
        yield from self.run(self.role.steps)
        for products in (self.open_products, *self.groups):
            for p in products:
                raise self.fault(Unfinished, step=p.step, what="this product")
        for stores in (self.open_stores, *self.store_groups):
            for s in stores:
                raise self.fault(Unfinished, step=s.step, what="this bulk store")
        for copies in (self.open_copies, *self.copy_groups):
            for c in copies:
                raise self.fault(Unfinished, step=c.step, what="this copy")

    # Faults.

    def text(self, step: m.Step) -> str:
        return step_text(self.cta.world.kernel, step)

    def doing(self, step: m.Step) -> str:
        return f"`{self.text(step)}` of {self.name}"

    def fault(self, kind: type[Fault], *, step: m.Step | None = None, **data) -> WgError:
        """The error to raise for what went wrong in the current (or another) step."""
        at = step or self.step
        assert at is not None
        text = op_text(self.op) if self.op is not None and step is None else self.text(at)
        item = str(self.item) if self.item is not None else ""
        return WgError(kind(span=at.span, agent=self.name, step=text, item=item, **self.cta.situation(self), **data))

    def need_warp(self) -> None:
        if self.elected:
            raise self.fault(IllFormed, why="this step is executed by the whole warpgroup")

    def need_thread(self) -> None:
        if not self.elected:
            raise self.fault(IllFormed, why="this step is executed by one thread")

    # What names mean to it.

    def seen_by(self, e: Poly | Expr, ahead: bool = False) -> Mapping[str, Integer]:
        """What symbols mean. ahead: this is said of the item that follows, as is all that mentions it; it sees the dims of that
        one."""
        if self.dims_ahead and (ahead or any(s.startswith(m.NEXT) for s in _symbols(e))):
            return {**self.env, **self.dims_ahead}
        return self.env

    def integer(self, p: Poly, ahead: bool = False) -> int:
        try:
            return int(self.cta.world.function(p)(self.seen_by(p, ahead) if self.dims_ahead else self.env))
        except KeyError as e:
            raise self.fault(IllFormed, why=f"nothing binds the integer `{e.args[0]}`") from None

    def holds(self, cond: Expr) -> bool:
        """A uniform condition."""
        return holds(cond, self.seen_by(cond), self.scalars)

    def advances(self, ring: str) -> bool:
        """Whether its role moves on in a ring at all."""
        return any(isinstance(s, m.Advance) and s.ring == ring for s in m.walk(self.role.steps))

    def lap(self, slot: m.Slot) -> tuple[int, int]:
        """(stage, how many times the ring has gone round before it)."""
        lap, stage = divmod(self.positions[slot.ring] - slot.lag, self.cta.world.rings[slot.ring].stages)
        return stage, lap

    def mbarrier(self, name: str, part: Poly, slot: m.Slot) -> tuple[MBarrier, int]:
        """The barrier and the phase that the position means."""
        stage, lap = self.lap(slot)
        b, p = self.cta.world.barriers[name], self.integer(part)
        if not (0 <= p < b.parts and stage < b.stages):
            raise self.fault(IllFormed, why=f"`{name}` has {b.parts} parts and {b.stages} stages, no [{p}, {stage}]")
        return self.cta.mbarriers[name][p * b.stages + stage], lap

    def tile(self, buffer: str, part: Poly, slot: m.Slot) -> Tile:
        try:
            return self.cta.memory.tile(buffer, self.integer(part), self.lap(slot)[0])
        except IndexError as e:
            raise self.fault(IllFormed, why=str(e)) from None

    # What it knows.

    def access(self, *, asynchronous: bool, write: bool, clear: Clear | None = None, share: Share | None = None) -> Access:
        """A new access by the current step; the agent knows its own synchronous ones."""
        assert self.step is not None
        bit = 1 << next(self.cta.bits)
        if not asynchronous:
            self.knowledge.known |= bit
            if write:
                self.written |= bit
        return Access(bit=bit, owner=self, step=self.step, asynchronous=asynchronous, write=write, clear=clear, share=share)

    def finished(self, access: Access) -> None:
        """A wait has covered an asynchronous access."""
        self.knowledge.known |= access.bit
        if access.share is not None:
            self.written |= access.bit


def _symbols(e: Poly | Expr) -> Iterable[str]:
    return e.symbols() if isinstance(e, Poly) else indices_of(e)

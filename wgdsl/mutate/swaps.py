"""The operator on two steps: neighbours change places across a dependency.

Neighbours are a step and the first one behind it, in the same list, that depends on it; the steps between them commute with it.
A block for one thread counts as one step. `ORDERS` says which pairs depend on each other, by what the two do to a common
resource. Copies of the same pair change places together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from ..roles import model as m
from ..roles.model import Kernel, Step
from ..roles.text import step_text
from .domains import freed, harmless
from .effects import ACCESSES, GENERIC_WRITES, SIGNALS, Effects
from .events import event_key, place_of, told
from .flow import leafy
from .model import Change, Path, Variant
from .paths import UNFOLLOWED, followed
from .sites import changed, lists

Common = Callable[[Effects, Step, Step], bool]


@dataclass(frozen=True, kw_only=True)
class Order:
    """Why the first of two steps has to stand before the second. `common`: whether they meet in one resource. `rule`: what
    tells pairs that may change places all the same: `domains` asks whether any step sees less; `behind` whether something
    follows the barrier that the access moves across; empty: none may."""

    text: str
    first: tuple[type[Step], ...]
    second: tuple[type[Step], ...]
    common: Common
    rule: str = ""


def _always(e: Effects, a: Step, b: Step) -> bool:
    return True


def _same_slot(e: Effects, a: Step, b: Step) -> bool:
    """The stage that a wait is for, in the same part where both name one."""
    assert isinstance(a, m.Wait | m.Arrive)
    whole = e.kernel.barrier(a.barrier).parts == 1
    return any(slot == a.slot and (whole or part in (str(a.part), "")) for part, slot in e.slots(b))


def _release(e: Effects, a: Step, b: Step) -> bool:
    return _same_slot(e, b, a)


def _same_ring(e: Effects, a: Step, b: Step) -> bool:
    advance, user = (a, b) if isinstance(a, m.Advance) else (b, a)
    assert isinstance(advance, m.Advance)
    return any(slot.ring == advance.ring for _, slot in e.slots(user))


def _rendezvous(e: Effects, a: Step, b: Step) -> bool:
    return e.rendezvous(a) or e.rendezvous(b)


def _turns(e: Effects, a: Step, b: Step) -> bool:
    return not _rendezvous(e, a, b)


def _registers(e: Effects, a: Step, b: Step) -> bool:
    """Registers of some product of the role; which are in flight is what the domains know."""
    assert isinstance(a, m.WaitGroup)
    return any(e.registers(b))


def _fenced(e: Effects, a: Step, b: Step) -> bool:
    return any(e.registers(a))


def _freed(e: Effects, a: Step, b: Step) -> bool:
    return bool(freed(e, b))


SLOT_USERS = (
    m.Wait, m.Arrive, m.Expect, m.Tma, m.Wgmma, m.StoreShared, m.ClearRows, m.CopyOut, m.PutItem, m.TakeItem, m.TmaStore,
    m.CopyAsync, m.Mma, m.ReadShared, m.Transpose,
)  # fmt: skip
REGISTER_USERS = (m.Compute, m.Pack, m.Move, m.Zero, m.StoreShared, m.ReadShared, m.StoreGlobal, m.Mma)
ITEMS = (m.Leave, m.NextItem, m.Begun)  # nothing moves from one item to the next
USES = (m.Expect, m.Tma, m.PutItem, m.TakeItem, m.ReadShared, m.Wgmma, m.ClearRows)
ORDERS = (
    Order(text="a wait before what it waits for", first=(m.Wait,), second=USES, common=_same_slot),
    Order(text="an access before its release", first=(m.PutItem, m.ClearRows), second=(m.Arrive,), common=_release),
    Order(text="an access before its release", first=(m.TakeItem, m.ReadShared), second=(m.Arrive,), common=_release),
    Order(
        text="the use of a stage before the advance",
        first=(m.Wait,),
        second=(m.Advance,),
        common=_same_ring,
    ),
    Order(
        text="the advance before the use of a stage",
        first=(m.Advance,),
        second=(m.Wait,),
        common=_same_ring,
    ),
    Order(
        text="the use of a stage before the advance",
        first=SLOT_USERS,
        second=(m.Advance,),
        common=_same_ring,
        rule="domains",
    ),
    Order(
        text="the advance before the use of a stage",
        first=(m.Advance,),
        second=SLOT_USERS,
        common=_same_ring,
        rule="domains",
    ),
    Order(text="a product before its commit", first=(m.Wgmma,), second=(m.Commit,), common=_always, rule="domains"),
    Order(text="a commit before the next product", first=(m.Commit,), second=(m.Wgmma,), common=_always, rule="domains"),
    Order(text="a commit before the wait for it", first=(m.Commit,), second=(m.WaitGroup,), common=_always, rule="domains"),
    Order(
        text="a wait before what touches the product's registers",
        first=(m.WaitGroup,),
        second=REGISTER_USERS,
        common=_registers,
        rule="domains",
    ),
    Order(
        text="a wait before the release of what the product read",
        first=(m.WaitGroup,),
        second=(m.Arrive, m.BarSync),
        common=_freed,
        rule="domains",
    ),
    Order(
        text="an access to registers before the fence",
        first=REGISTER_USERS,
        second=(m.FenceWgmma,),
        common=_fenced,
        rule="domains",
    ),
    Order(text="the fence before the product", first=(m.FenceWgmma,), second=(m.Wgmma,), common=_always, rule="domains"),
    Order(text="a write before its proxy fence", first=GENERIC_WRITES, second=(m.FenceAsync,), common=_always, rule="domains"),
    Order(
        text="the proxy fence before what passes the write on",
        first=(m.FenceAsync,),
        second=(*SIGNALS, m.TmaStore, m.Wgmma),
        common=_always,
        rule="domains",
    ),
    Order(text="a store before its commit", first=(m.TmaStore,), second=(m.CommitStore,), common=_always, rule="domains"),
    Order(
        text="a commit before the wait for it",
        first=(m.CommitStore,),
        second=(m.WaitStore,),
        common=_always,
        rule="domains",
    ),
    Order(
        text="the wait for a store before its buffer is free",
        first=(m.WaitStore,),
        second=(*SIGNALS, *GENERIC_WRITES, m.Tma),
        common=_freed,
        rule="domains",
    ),
    Order(text="a copy before its commit", first=(m.CopyAsync,), second=(m.CommitCopies,), common=_always, rule="domains"),
    Order(text="a commit before the next copy", first=(m.CommitCopies,), second=(m.CopyAsync,), common=_always, rule="domains"),
    Order(
        text="a commit before the wait for it",
        first=(m.CommitCopies,),
        second=(m.WaitCopies,),
        common=_always,
        rule="domains",
    ),
    Order(
        text="a wait for copies before what reads them or tells of them",
        first=(m.WaitCopies,),
        second=(*SIGNALS, *ACCESSES),
        common=_always,
        rule="domains",
    ),
    Order(text="a rendezvous before an access", first=(m.BarSync,), second=ACCESSES, common=_rendezvous),
    Order(
        text="an access before the rendezvous",
        first=ACCESSES,
        second=(m.BarSync,),
        common=_rendezvous,
        rule="behind",
    ),
    Order(text="one turn before the next", first=(m.BarSync,), second=(m.BarArrive,), common=_turns),
    Order(text="one turn before the next", first=(m.BarArrive,), second=(m.BarSync,), common=_turns),
)


@dataclass(kw_only=True)
class _Pair:
    role: int
    order: Order
    first: Step
    second: Step
    changes: list[Change] = field(default_factory=list)


def swapped(kernel: Kernel) -> Iterator[Variant]:
    """Put each step behind the first one that depends on it."""
    for number, role in enumerate(kernel.roles):
        effects = Effects(kernel, number)
        pairs: dict[Hashable, _Pair] = {}
        for prefix, steps in lists(role.steps):
            for k, a in enumerate(steps):
                for order, length in _neighbour(effects, steps, k):
                    b = steps[k + length - 1]
                    key = order.text, _key(a), _key(b)
                    pair = pairs.setdefault(key, _Pair(role=number, order=order, first=a, second=b))
                    _add(pair, prefix, steps, k, length)
        yield from (_variant(kernel, p) for p in pairs.values())


def _neighbour(e: Effects, steps: tuple[Step, ...], k: int) -> Iterator[tuple[Order, int]]:
    """The order of a step and the first that depends on it, and how far that is. Nothing if that one needs its values, which is
    no matter of events, or if a block stands between them."""
    if not leafy(steps[k]):
        return
    for n in range(k + 1, len(steps)):
        if not leafy(steps[n]) or isinstance(steps[n], ITEMS) or e.clash(steps[k], steps[n]):
            return
        order = _order(e, steps[k], steps[n])
        if order is not None:
            yield order, n - k + 1
            return


def _order(e: Effects, a: Step, b: Step) -> Order | None:
    for x in _inside(a):
        for y in _inside(b):
            for order in ORDERS:
                if isinstance(x, order.first) and isinstance(y, order.second) and order.common(e, x, y):
                    return order
    return None


def _inside(s: Step) -> tuple[Step, ...]:
    return s.body if isinstance(s, m.Elect) else (s,)


def _key(s: Step) -> Hashable:
    return tuple(event_key(x) for x in _inside(s))


def _add(pair: _Pair, prefix: Path, steps: tuple[Step, ...], k: int, length: int) -> None:
    """One copy of the pair: the first step behind the second. Copies don't overlap."""
    last = pair.changes[-1] if pair.changes else None
    if last is not None and last.path[:-1] == prefix and last.path[-1] + last.length > k:
        return
    origins = (*range(1, length), 0)
    moved = tuple(steps[k + n] for n in origins)
    if moved != steps[k : k + length]:
        pair.changes.append(Change(path=(*prefix, k), steps=moved, origins=origins, length=length))


def _variant(kernel: Kernel, p: _Pair) -> Variant:
    first, second = _inside(p.first)[0], _inside(p.second)[0]
    return Variant(
        kernel=changed(kernel, p.role, p.changes),
        role=kernel.roles[p.role].name,
        event=told(kernel, first),
        place=place_of(first),
        what=f"behind `{step_text(kernel, second)}` ({p.order.text})",
        copies=len(p.changes),
        exempt=_exempt(kernel, p),
    )


def _exempt(kernel: Kernel, p: _Pair) -> str:
    if p.order.rule == "domains":
        return harmless(kernel, p.role, p.changes)
    if p.order.rule == "behind":
        ends = [(*c.path[:-1], c.path[-1] + c.length - 1) for c in p.changes]
        return "" if followed(kernel, p.role, ends) else UNFOLLOWED
    return ""

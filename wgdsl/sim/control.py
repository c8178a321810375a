"""What steps mean that steer a role: items, loops, branches, names, one thread of many, the registers of a role."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from ..program.poly import Poly, elements, elements_name
from ..roles import model as m
from .agent import Agent, Blocked, Item, Run
from .integers import holds
from .meaning import means

NO_ITEM = -1
FIRST = Poly()  # part of a buffer that has only one


@means(m.Items)
def items(a: Agent, s: m.Items) -> Run:
    outside, begun = a.env, 0
    for ordinal, item in enumerate(_given(a, s)):
        a.item, a.env = item, {**outside, "item.ordinal": ordinal}
        _bind(a, item)
        if s.joined:
            a.env["item.begun"], a.begun = begun, 0
        yield from a.run(s.body)
        begun = a.begun
        if a.leaving:
            break
    a.item, a.env, a.leaving = None, outside, False


def _bind(a: Agent, item: Item | None) -> None:
    if item is not None:
        a.env.update(item.dims)
        a.env.update(item.indices)


def _given(a: Agent, s: m.Items) -> Iterable[Item | None]:
    """The items that a role runs, one by one. None: there is no further one, or the role has still to learn of it."""
    if s.joined:
        return _joined(a, s.source)
    return a.cta.items if s.source == "stride" else _fetched(a, s) if s.source == "counter" else repeat(None)


def _fetched(a: Agent, s: m.Items) -> Iterable[Item | None]:
    """The first item, and of the others those that a role doesn't pass over."""
    fetch = next((x for x in s.body if isinstance(x, m.Fetch)), m.Fetch())
    for k, item in enumerate(a.cta.items):
        env: dict[str, Any] = {**a.env, **item.dims, **item.indices}
        for r in (r for r in fetch.reads if isinstance(r, m.Read) and r.name not in item.dims):
            env |= {elements_name(x.tensor): a.tensors[x.tensor].element for x in elements(r.value)}
            env[r.name] = max(r.low.evaluate(env), min(r.high.evaluate(env), r.value.evaluate(env)))
        if not k or holds(fetch.only, env, a.scalars):
            yield item
    yield None


def _joined(a: Agent, source: str) -> Iterator[Item]:
    """Each item says which one follows: by the grid's rule, or by what its steps read (`TakeItem`)."""
    item = a.cta.items[0] if a.cta.items else None
    while item is not None:
        a.following = None if source == "work" else next((i for i in a.cta.items if i.number > item.number), None)
        yield item
        item = a.following


@means(m.Fetch)
def fetch(a: Agent, s: m.Fetch) -> None:
    """A CTA's items are given to it beforehand: which ones a counter gives depends on times that aren't modelled."""
    a.need_thread()


@means(m.PutItem)
def put_item(a: Agent, s: m.PutItem) -> None:
    a.need_thread()
    tile = a.tile(s.buffer, FIRST, s.slot)
    a.cta.memory.write(a, tile.cells, asynchronous=False)
    item = a.following if s.ahead else a.item
    tile.data[...] = NO_ITEM if item is None else item.number


@means(m.TakeItem)
def take_item(a: Agent, s: m.TakeItem) -> None:
    a.need_warp()
    tile = a.tile(s.buffer, FIRST, s.slot)
    a.cta.memory.read(a, tile.cells, asynchronous=False)
    number = int(tile.data.flat[0])
    item = next((i for i in a.cta.items if i.number == number), None)
    if s.ahead:
        a.following = item
        return
    a.item = item
    _bind(a, item)


@means(m.Leave)
def leave(a: Agent, s: m.Leave) -> None:
    a.leaving = a.item is None


@means(m.NextItem)
def next_item(a: Agent, s: m.NextItem) -> None:
    seen = a.following or a.item
    a.env["item.follows"] = int(a.following is not None)
    if seen is not None:
        a.env.update({m.NEXT + name: value for name, value in seen.indices.items()})
        a.dims_ahead = seen.dims


@means(m.Begun)
def begun(a: Agent, s: m.Begun) -> None:
    a.begun = a.integer(s.value)


@means(m.Let)
def let(a: Agent, s: m.Let) -> None:
    a.env[s.name] = a.integer(s.value, ahead=s.name.startswith(m.NEXT))


@means(m.Read)
def read(a: Agent, s: m.Read) -> None:
    """An item of a witness says what is read."""
    if a.item is None or s.name not in a.item.dims:
        a.env.update({elements_name(x.tensor): a.tensors[x.tensor].element for x in elements(s.value)})
        a.env[s.name] = max(a.integer(s.low), min(a.integer(s.high), a.integer(s.value)))


@means(m.Loop)
def loop(a: Agent, s: m.Loop) -> Run:
    hidden = a.env.get(s.var)
    for k in range(a.integer(s.start), a.integer(s.stop), s.step):
        a.env[s.var] = k
        yield from a.run(s.body)
    a.env.pop(s.var, None)
    if hidden is not None:
        a.env[s.var] = hidden


@means(m.If)
def branch(a: Agent, s: m.If) -> Run | None:
    steps = s.then if a.holds(s.cond) else s.other
    return a.run(steps) if steps else None


@means(m.Elect)
def elect(a: Agent, s: m.Elect) -> Run | None:
    """Thread 0 of a warpgroup is in its warp 0."""
    return _elected(a, s) if not a.warp else None


def _elected(a: Agent, s: m.Elect) -> Run:
    before, a.elected = a.elected, True
    yield from a.run(s.body)
    a.elected = before


@dataclass(frozen=True, eq=False)
class NeedsRegisters(Blocked):
    agent: Agent
    more: int

    def ready(self) -> bool:
        return self.agent.cta.spare >= self.more * self.agent.weight

    def what(self) -> str:
        return f"{self.more} registers a thread more, of which {self.agent.cta.spare // self.agent.weight} are free"


@means(m.Registers)
def registers(a: Agent, s: m.Registers) -> Run:
    more = s.count - a.held
    need = NeedsRegisters(a, more)
    if not need.ready():
        yield need
    a.cta.spare -= more * a.weight
    a.held = s.count


@means(m.Advance)
def advance(a: Agent, s: m.Advance) -> None:
    a.positions[s.ring] += a.integer(s.stages)

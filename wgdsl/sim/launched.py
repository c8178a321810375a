"""A launch against the clock: how long each kind of item takes, and how the machine's SMs share them out.

In: a kernel and its dims.  Out: a timeline of one item, and cycles of an item and of the launch.

Items of one kind have the same bounds and branches. One SM runs an item of each kind, beside as many like it as it holds
CTAs; of many kinds it runs some, and those between get their cycles by interpolation along the grid's axes. A CTA that takes
item after item begins the next one's copies in this one: what an item takes there is what a second one adds to the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

from ..program.expr import indices_of
from ..program.poly import Poly, elements
from ..roles import model as m
from ..roles.timeline import Cost, Predicted, Timeline
from ..targets.cycles import ENGINES, MACHINES, Cycles
from .agent import Item
from .simulate import STEP_LIMIT, items_of
from .tensors import shape_of
from .timed import run_sm, tracks
from .world import World

SAMPLES = 9  # kinds of items along an axis that are run
LARGEST = 2**31 - 1
SHOWN = 2  # items of a persistent CTA in a timeline


@dataclass(frozen=True)
class Assumed:
    """An integer tensor that isn't there. Its elements are as large as what reads them allows; offsets, which increase along
    their axis, are `apart`."""

    apart: int | None

    def element(self, *place: int) -> int:
        return LARGEST if self.apart is None else self.apart * place[0]


def predict(kernel: m.Kernel, dims: Mapping[str, int], increasing: Collection[str] = ()) -> Predicted:
    """Of one kernel; its target has a machine. increasing: tensors of offsets."""
    cycles = MACHINES[kernel.target]
    items = items_of(kernel, dims)
    costs = _Costs(_world(kernel, dims, increasing), cycles, items)
    longest = max(items, key=lambda x: costs.of(x).first, default=None)
    on_sms, memory = _ends(costs, dims, items)
    return Predicted(
        timeline=_timeline(costs.world, cycles, longest),
        items=len(items),
        kinds=len(costs.kinds),
        resident=kernel.resident,
        item=costs.of(longest) if longest is not None else Cost(first=0, next=0),
        cycles=max(on_sms, memory),
        bound="SMs" if on_sms >= memory else "memory",
    )


def predict_cycles(kernel: m.Kernel, dims: Mapping[str, int], increasing: Collection[str] = ()) -> float:
    """Those of the launch alone."""
    items = items_of(kernel, dims)
    return max(_ends(_Costs(_world(kernel, dims, increasing), MACHINES[kernel.target], items), dims, items))


def _world(kernel: m.Kernel, dims: Mapping[str, int], increasing: Collection[str]) -> World:
    flags = {p.name: 1.0 for p in kernel.params if p.kind == "flag"}
    apart = max(dims.values(), default=0)
    integers = {t.name: Assumed(apart if t.name in increasing else None) for t in kernel.tensors if t.dtype.kind == "int"}
    return World(kernel=kernel, dims=dims, scalars=flags, tensors=integers, limit=STEP_LIMIT)  # pyright: ignore[reportArgumentType]


def _ends(costs: _Costs, dims: Mapping[str, int], items: Sequence[Item]) -> tuple[float, float]:
    """When the SMs are done, and when all tensors could have passed."""
    kernel, cycles = costs.world.kernel, costs.cycles
    nbytes = _bytes(kernel, dims) if items else 0.0
    return _launch(kernel, cycles, [costs.of(x) for x in items]), nbytes / cycles.bandwidth.value * cycles.clock.value * 1e9


def _timeline(world: World, cycles: Cycles, item: Item | None) -> Timeline:
    """Of an SM whose CTAs run this item; in a persistent grid the same again behind it."""
    k = world.kernel
    shown = SHOWN if k.grid.persistent else 1
    slices, ctas = run_sm(world, cycles, _beside(item, k.resident, shown) if item is not None else [[]])
    return Timeline(
        origin=f"predicted for {cycles.machine}",
        kernel=k.name,
        what=f"{item}{f', {shown} times' if shown > 1 else ''}" if item is not None else "no item",
        roles=tuple(tracks(ctas)),
        engines=ENGINES,
        slices=tuple(slices),
    )


def _beside(item: Item, ctas: int, times: int) -> list[list[Item]]:
    return [[Item(t, item.indices, item.dims) for t in range(times)] for _ in range(ctas)]


def _bytes(kernel: m.Kernel, dims: Mapping[str, int]) -> float:
    """Of all tensors, once."""
    total = 0.0
    for t in kernel.tensors:
        size = t.dtype.nbytes
        for n in shape_of(t, dims):
            size *= n
        total += size
    return total


# Kinds of items.


class _Costs:
    """By the values of those grid indices that a bound or a branch depends on."""

    def __init__(self, world: World, cycles: Cycles, items: Sequence[Item]):
        self.world, self.cycles = world, cycles
        steering = steering_indices(world.kernel)
        self.names = tuple(n for n in (items[0].indices if items else ()) if n in steering)
        self.kinds = {self.kind(x): x for x in reversed(items)}
        self.found: dict[tuple[int, ...], Cost] = {}
        self.known: dict[tuple[int, ...], list[int]] = {}
        for *outer, last in sorted(self.kinds):
            self.known.setdefault(tuple(outer), []).append(last)
        self.known = {outer: _some(lasts) for outer, lasts in self.known.items()}

    def kind(self, x: Item) -> tuple[int, ...]:
        return (0, *(x.indices[n] for n in self.names))

    def of(self, x: Item) -> Cost:
        kind = self.kind(x)
        if kind not in self.found:
            self.found[kind] = self._interpolated(kind)
        return self.found[kind]

    def _interpolated(self, kind: tuple[int, ...]) -> Cost:
        *outer, last = kind
        known = self.known[tuple(outer)]
        if last in known:
            return self._run(self.kinds[kind])
        low, high = max(k for k in known if k < last), min(k for k in known if k > last)
        a, b = (self.of(self.kinds[*outer, k]) for k in (low, high))
        part = (last - low) / (high - low)
        return Cost(first=a.first + part * (b.first - a.first), next=a.next + part * (b.next - a.next))

    def _run(self, x: Item) -> Cost:
        ends = [self._end(x, times) for times in ((1, 2) if self.world.kernel.grid.persistent else (1,))]
        return Cost(first=ends[0], next=ends[-1] - ends[0] if len(ends) > 1 else ends[0])

    def _end(self, x: Item, times: int) -> float:
        slices, _ = run_sm(self.world, self.cycles, _beside(x, self.world.kernel.resident, times))
        return max((s.stop for s in slices), default=0.0)


def _some(places: list[int]) -> list[int]:
    """Evenly from the first to the last."""
    if len(places) <= SAMPLES:
        return places
    return [places[round(k * (len(places) - 1) / (SAMPLES - 1))] for k in range(SAMPLES)]


def steering_indices(kernel: m.Kernel) -> frozenset[str]:
    """Grid indices that loop bounds, branches and ring positions depend on, through `let` too."""
    found: set[str] = set()
    for role in kernel.roles:
        wanted = {s for step in m.walk(role.steps) for s in _steers(step)}
        lets = [(s.name, s.value) for s in m.walk(role.steps) if isinstance(s, m.Let)]
        lets += [(s.name, p) for s in m.walk(role.steps) if isinstance(s, m.Read) for p in (s.high, *_places(s.value))]
        more = wanted
        while more:
            more = {x for name, value in lets if name in wanted for x in value.symbols()} - wanted
            wanted |= more
        found |= {w.removeprefix(m.NEXT) for w in wanted}
    return frozenset(found)


def _places(p: Poly) -> Iterator[Poly]:
    """Of the elements that a sum holds."""
    return (place for x in elements(p) for place in x.args)


def _steers(s: m.Step) -> Iterator[str]:
    polys: tuple[Poly, ...] = ()
    if isinstance(s, m.Loop):
        polys = (s.start, s.stop)
    elif isinstance(s, m.Advance):
        polys = (s.stages,)
    elif isinstance(s, m.ClearRows):
        polys = (s.start, s.stop)
    elif isinstance(s, m.If):
        yield from indices_of(s.cond)
    yield from (name for p in polys for name in p.symbols())


# The machine.


def _launch(kernel: m.Kernel, cycles: Cycles, costs: list[Cost]) -> float:
    """When the last SM is done. A CTA of a plain grid starts where one has ended; those of a persistent one take their items
    in turn, or from a counter as they become free."""
    slots = int(cycles.sms.value) * kernel.resident
    ctas = min(len(costs), slots)
    if not costs:
        return 0.0
    if kernel.grid.persistent and not kernel.grid.dynamic:
        return max(costs[c].first + sum(x.next for x in costs[c + ctas :: ctas]) for c in range(ctas))
    ends = [x.first for x in costs[:ctas]]
    heapify(ends)
    for x in costs[ctas:]:
        heapreplace(ends, ends[0] + (x.next if kernel.grid.persistent else x.first))
    return max(ends)

"""What each step of a role program does to the machine: the definition of its meaning.

One function a step type, in `MEANING`. A step that may have to wait is a generator of what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from ..diagnostics.sim import (
    IllFormed,
    LaneShares,
    NamedBarrierMisuse,
    OutsideTensor,
    RegisterInFlight,
    TooManyArrivals,
    WrittenTwice,
    WrongPhase,
)
from ..program.poly import Poly
from ..roles import model as m
from ..targets.registers import WARPGROUP
from ..targets.sm_90a import SM_90A
from .barriers import Knowledge, MBarrier, NamedBarrier
from .cta import THREAD, WHOLE, Agent, Blocked, Copy, Item, Run
from .elementwise import Scope, indices, run
from .integers import holds, value_of
from .registers import QUAD, ROWS, Product
from .tensors import Box, box_of, gather, rounded

NO_ITEM = -1
ONE_THREAD = 1 << 18  # multiplications up to which OpenBLAS uses one thread

MEANING: dict[type[m.Step], Callable[[Agent, m.Step], Run | None]] = {}


def means(kind: type[m.Step]):
    """Register the meaning of a step type."""

    def register(fn):
        if kind in MEANING:
            raise TypeError(f"{kind.__name__} has two meanings: {MEANING[kind].__name__} and {fn.__name__}")
        MEANING[kind] = fn
        return fn

    return register


# Control.


@means(m.Items)
def items(a: Agent, s: m.Items) -> Run:
    outside, begun = a.env, 0
    for ordinal, item in enumerate(_given(a, s)):
        a.item, a.env = item, {**outside, "item.ordinal": ordinal, **(item.indices if item is not None else {})}
        if s.joined:
            a.env["item.begun"], a.begun = begun, 0
        yield from a.run(s.body)
        begun = a.begun
        if a.leaving:
            break
    a.item, a.env, a.leaving = None, outside, False


def _given(a: Agent, s: m.Items) -> Iterable[Item | None]:
    """The items that a role runs, one by one. None: there is no further one, or the role has still to learn of it."""
    if s.joined:
        return _joined(a, s.source)
    return a.cta.items if s.source == "stride" else (*a.cta.items, None) if s.source == "counter" else repeat(None)


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
    a.need(THREAD)


@means(m.PutItem)
def put_item(a: Agent, s: m.PutItem) -> None:
    a.need(THREAD)
    tile = a.cells(s.buffer, Poly(), s.slot)
    a.cta.memory.write(a, tile.cells, asynchronous=False)
    item = a.following if s.ahead else a.item
    tile.data[...] = NO_ITEM if item is None else item.number


@means(m.TakeItem)
def take_item(a: Agent, s: m.TakeItem) -> None:
    a.need(WHOLE)
    tile = a.cells(s.buffer, Poly(), s.slot)
    a.cta.memory.read(a, tile.cells, asynchronous=False)
    number = int(tile.data.flat[0])
    item = next((i for i in a.cta.items if i.number == number), None)
    if s.ahead:
        a.following = item
        return
    a.item = item
    a.env.update(a.item.indices if a.item is not None else {})


@means(m.Leave)
def leave(a: Agent, s: m.Leave) -> None:
    a.leaving = a.item is None


@means(m.NextItem)
def next_item(a: Agent, s: m.NextItem) -> None:
    seen = a.following or a.item
    a.env["item.follows"] = int(a.following is not None)
    a.env.update({m.NEXT + name: value for name, value in seen.indices.items()} if seen is not None else {})


@means(m.Begun)
def begun(a: Agent, s: m.Begun) -> None:
    a.begun = a.integer(s.value)


@means(m.Let)
def let(a: Agent, s: m.Let) -> None:
    a.env[s.name] = a.integer(s.value)


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
def branch(a: Agent, s: m.If) -> Run:
    yield from a.run(s.then if holds(s.cond, a.env, a.scalars) else s.other)


@means(m.Elect)
def elect(a: Agent, s: m.Elect) -> Run:
    before, a.shares = a.shares, THREAD
    yield from a.run(s.body)
    a.shares = before


@dataclass(frozen=True, eq=False)
class NeedsRegisters(Blocked):
    agent: Agent
    more: int

    def ready(self) -> bool:
        return self.agent.cta.spare >= self.more

    def what(self) -> str:
        return f"{self.more} registers a thread more, of which {self.agent.cta.spare} are free"


@means(m.Registers)
def registers(a: Agent, s: m.Registers) -> Run:
    more = s.count - a.held
    need = NeedsRegisters(a, more)
    if not need.ready():
        yield need
    a.cta.spare -= more
    a.held = s.count


# Mbarriers.


@dataclass(frozen=True, eq=False)
class NeedsPhase(Blocked):
    barrier: MBarrier
    phase: int

    def ready(self) -> bool:
        return self.barrier.passes(self.phase % 2) or self.barrier.phase > self.phase + 1

    def what(self) -> str:
        return f"`{self.barrier.name}`, parity {self.phase % 2}; it is in {self.barrier.missing()}"


@means(m.Wait)
def wait(a: Agent, s: m.Wait) -> Run:
    b, lap = a.mbarrier(s.barrier, s.part, s.slot)
    need = NeedsPhase(b, lap - s.flip)
    if not need.ready():
        yield need
    if b.phase != need.phase + 1:
        raise _wrong_phase(a, b, "a wait on", need.phase, b.phase - 1)
    a.learn(b.last)


def _wrong_phase(a: Agent, b: MBarrier, what: str, meant: int, found: int):
    return a.fault(WrongPhase, barrier=b.name, what=what, meant=meant, found=found, count=b.count)


@means(m.Expect)
def expect(a: Agent, s: m.Expect) -> None:
    a.need(THREAD)
    b, lap = a.mbarrier(s.barrier, s.part, s.slot)
    _arrive(a, b, lap, 1, s.nbytes)


@means(m.Arrive)
def arrive(a: Agent, s: m.Arrive) -> None:
    a.need(WHOLE if s.by == "warps" else THREAD)
    b, lap = a.mbarrier(s.barrier, s.part, s.slot)
    _arrive(a, b, lap, 4 if s.by == "warps" else s.count, 0)


def _arrive(a: Agent, b: MBarrier, lap: int, arrivals: int, nbytes: int) -> None:
    if b.phase != lap:
        raise _wrong_phase(a, b, "an arrival on", lap, b.phase)
    if not b.arrive(arrivals, nbytes, *a.mine()):
        raise a.fault(TooManyArrivals, barrier=b.name, count=b.count, phase=b.phase)
    a.cta.turn(b)


@means(m.Advance)
def advance(a: Agent, s: m.Advance) -> None:
    a.positions[s.ring] += a.integer(s.stages)


# Bulk copies.


def _box(a: Agent, s: m.Tma | m.TmaStore) -> tuple[Box, int, m.Buffer]:
    """The elements of a copy, how many panels they fill, and the buffer."""
    world = a.cta.world
    tensor_map, buffer = world.maps[s.map], world.buffers[s.buffer]
    box = box_of(tensor_map, len(a.tensors[tensor_map.tensor].shape), [a.integer(c) for c in s.coords], world.dims)
    panels, rest = divmod(box.count, buffer.rows * buffer.panel_cols)
    fits = not rest and tensor_map.box[0] == buffer.panel_cols and s.panel + panels <= buffer.panels
    if not fits or tensor_map.swizzle != buffer.swizzle or tensor_map.dtype != buffer.dtype:
        raise a.fault(IllFormed, why=f"the box of map `{s.map}` doesn't fit the panels of `{s.buffer}`")
    return box, panels, buffer


@means(m.Tma)
def tma(a: Agent, s: m.Tma) -> None:
    a.need(THREAD)
    box, panels, buffer = _box(a, s)
    tile = a.cells(s.buffer, s.part, s.slot)
    barrier, lap = a.mbarrier(s.barrier, s.barrier_part, s.slot)
    cells = tile.cells[s.panel : s.panel + panels]
    (access,) = a.cta.memory.write(a, cells, asynchronous=True)
    source = a.tensors[a.cta.world.maps[s.map].tensor]
    values = gather(source, box).reshape(panels, buffer.rows, buffer.panel_cols)
    a.cta.copies.append(
        Copy(
            agent=a,
            step=s,
            access=access,
            cells=list(zip(cells, values, strict=True)),
            barrier=barrier,
            phase=lap,
            nbytes=box.count * buffer.dtype.nbytes,
        )
    )


@means(m.TmaStore)
def tma_store(a: Agent, s: m.TmaStore) -> None:
    a.need(THREAD)
    box, panels, _ = _box(a, s)
    tile = a.cells(s.buffer, s.part, s.slot)
    a.open_stores += a.cta.memory.read(a, tile.cells[s.panel : s.panel + panels], asynchronous=True)
    values = tile.data[s.panel : s.panel + panels].reshape(box.inside.shape)
    _store(a, a.cta.world.maps[s.map].tensor, box.access, values, box.inside, clipped=True, add=s.add)


@means(m.CommitStore)
def commit_store(a: Agent, s: m.CommitStore) -> None:
    a.need(THREAD)
    a.store_groups.append(a.open_stores)
    a.open_stores = []


@means(m.WaitStore)
def wait_store(a: Agent, s: m.WaitStore) -> None:
    a.need(THREAD)
    while len(a.store_groups) > s.pending:
        for access in a.store_groups.pop(0):
            a.knowledge[access.share].known |= access.bit


def _store(a: Agent, tensor: str, access: tuple, values: np.ndarray, where: np.ndarray, *, clipped: bool, add: bool) -> None:
    """Write to global memory; bulk stores are clipped to the shape, threads must stay inside."""
    t = a.tensors[tensor]
    where = np.broadcast_to(where, np.broadcast_shapes(np.shape(where), np.shape(values), *(np.shape(i) for i in access)))
    if not clipped and (at := t.outside(access, where)) is not None:
        raise a.fault(OutsideTensor, tensor=tensor, element=at, shape=t.shape)
    log = a.cta.world.log
    twice = t.store(access, values, where, len(log), add)
    if twice is not None:
        raise a.fault(WrittenTwice, tensor=tensor, element=twice[0], before=log[twice[1]])
    log.append(f"{a.name}{f' on {a.item}' if a.item is not None else ''}")


# Products.


@means(m.Wgmma)
def wgmma(a: Agent, s: m.Wgmma) -> None:
    a.need(WHOLE)
    fresh = holds(s.zero, a.env, a.scalars)
    acc = a.registers.accumulator(s.acc, fresh)
    reads = []
    if isinstance(s.a, m.RegOperand):
        operand = a.registers.operand(s.a.value)
        assert operand.data is not None
        left = operand.data
        _fits(a, s, s.a.value, operand.value.dtype, left.shape == (ROWS, s.k))
    else:
        operand = None
        left, accesses = _operand(a, s, s.a, ROWS)
        reads += accesses
    right, accesses = _operand(a, s, s.b, s.n)
    reads += accesses
    _fits(a, s, s.acc, s.dtype, acc.value.cols == s.n)
    product = multiply(left, right)
    acc.data = product if fresh else acc.data + product
    p = Product(step=s, acc=acc, operand=operand, reads=reads)
    a.registers.start(p)
    a.open_products.append(p)


def multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left [64, k] times right [n, k] transposed, in pieces small enough for BLAS to stay on one thread: it is faster so."""
    rows = ROWS
    while rows > 1 and rows * right.size > ONE_THREAD:
        rows //= 2
    return np.matmul(left.reshape(ROWS // rows, rows, -1), right.T).reshape(ROWS, -1)


def _fits(a: Agent, s: m.Wgmma, name: str, dtype, shape: bool) -> None:
    if not shape or dtype != s.dtype:
        raise a.fault(IllFormed, why=f"`{name}` doesn't fit a product of m {ROWS}, n {s.n}, k {s.k} of {s.dtype}")


def _operand(a: Agent, s: m.Wgmma, o: m.SmemOperand, rows: int):
    """[rows, k] from shared memory, and the accesses that read it."""
    tile = a.cells(o.buffer, o.part, o.slot)
    b = tile.buffer
    wanted = (rows, s.k) if o.major == "K" else (s.k, rows)
    _fits(a, s, o.buffer, b.dtype, wanted[0] <= b.rows and wanted[1] <= b.cols)
    cells = tile.cells[: -(-wanted[1] // b.panel_cols)]
    accesses = a.cta.memory.read(a, cells, asynchronous=True)
    matrix = tile.matrix[: wanted[0], : wanted[1]]
    return (matrix if o.major == "K" else matrix.T), accesses


@means(m.FenceWgmma)
def fence_wgmma(a: Agent, s: m.FenceWgmma) -> None:
    a.need(WHOLE)
    a.registers.fence()


@means(m.Commit)
def commit(a: Agent, s: m.Commit) -> None:
    a.need(WHOLE)
    a.groups.append(a.open_products)
    a.open_products = []


@means(m.WaitGroup)
def wait_group(a: Agent, s: m.WaitGroup) -> None:
    a.need(WHOLE)
    while len(a.groups) > s.pending:
        for p in a.groups.pop(0):
            a.registers.finish(p)
            for access in p.reads:
                a.knowledge[access.share].known |= access.bit
    for name in s.values:
        writers = a.registers.find(name, "tile").writers
        if writers:
            raise a.fault(RegisterInFlight, value=name, product=a.text(writers[0].step))


# Fences and named barriers.


@means(m.FenceAsync)
def fence_async(a: Agent, s: m.FenceAsync) -> None:
    """By one thread it covers that thread's writes; those of the steps that a whole warpgroup runs need all threads."""
    if a.shares == WHOLE:
        for share in WHOLE:
            a.knowledge[share].proxied |= a.written[share]


@dataclass(frozen=True, eq=False)
class NeedsGeneration(Blocked):
    bar: NamedBarrier
    generation: int

    def ready(self) -> bool:
        return self.bar.generation > self.generation

    def what(self) -> str:
        return f"named barrier {self.bar.id}, where {self.bar.arrived} of {self.bar.threads} threads have arrived"


@means(m.BarSync)
def bar_sync(a: Agent, s: m.BarSync) -> Run:
    need, knowledge = _bar(a, s, waits=True)
    if not need.ready():
        yield need
    a.learn(knowledge)


@means(m.BarArrive)
def bar_arrive(a: Agent, s: m.BarArrive) -> None:
    _bar(a, s, waits=False)


def _bar(a: Agent, s: m.BarSync | m.BarArrive, waits: bool) -> tuple[NeedsGeneration, Knowledge]:
    a.need(WHOLE)
    number = a.integer(s.id)
    bar = a.cta.named.setdefault(number, NamedBarrier(id=number))
    need, knowledge = NeedsGeneration(bar, bar.generation), bar.gathered
    last = SM_90A.named_barriers - 1
    why = bar.arrive(WARPGROUP, s.threads, waits, *a.mine()) if 0 <= number <= last else f"ids are 0 to {last}"
    if why:
        raise a.fault(NamedBarrierMisuse, bar=number, why=why)
    return need, knowledge


# Registers.


@means(m.Compute)
def compute(a: Agent, s: m.Compute) -> None:
    a.need(WHOLE)
    for op in s.ops:
        a.op = op
        run(a, op)
    a.op = None


@means(m.Pack)
def pack(a: Agent, s: m.Pack) -> None:
    a.need(WHOLE)
    dst = a.registers.find(s.dst, "operand").value
    src = a.registers.find(s.src, "tile").value
    if dst.cols != src.cols:
        raise a.fault(IllFormed, why=f"`{s.dst}` has {dst.cols} columns, `{s.src}` {src.cols}")
    a.registers.write(s.dst, rounded(a.registers.read(s.src), dst.dtype))


@means(m.Move)
def move(a: Agent, s: m.Move) -> None:
    a.need(WHOLE)
    kind = a.registers.find(s.dst, "tile", "row", "operand").value.kind
    a.registers.write(s.dst, a.registers.content(s.src, kind).copy())


@means(m.Forget)
def forget(a: Agent, s: m.Forget) -> None:
    a.need(WHOLE)
    a.registers.forget(s.value)


@means(m.Zero)
def zero(a: Agent, s: m.Zero) -> None:
    a.need(WHOLE)
    cols = a.registers.find(s.value, "tile").value.cols
    a.registers.write(s.value, np.zeros((ROWS, cols), dtype=np.float32))


# Results.


@means(m.StoreShared)
def store_shared(a: Agent, s: m.StoreShared) -> None:
    a.need(WHOLE)
    tile = a.cells(s.buffer, s.part, s.slot)
    b = tile.buffer
    values = a.registers.read(s.src)
    if values.shape != (b.rows, b.cols):
        raise a.fault(IllFormed, why=f"`{s.src}` doesn't fit a tile of `{s.buffer}`, {b.rows} x {b.cols}")
    a.cta.memory.write(a, tile.cells, asynchronous=False, rowwise=True)
    tile.put(rounded(values, b.dtype))


@means(m.CopyOut)
def copy_out(a: Agent, s: m.CopyOut) -> None:
    a.need(WHOLE)
    tile = a.cells(s.buffer, s.part, s.slot)
    a.cta.memory.read(a, tile.cells, asynchronous=False)
    _from_threads(a, s, tile.matrix)


@means(m.StoreGlobal)
def store_global(a: Agent, s: m.StoreGlobal) -> None:
    a.need(WHOLE)
    values = Scope(a, s.rows, s.cols).value(s.value)
    if s.cols is None and values.shape[1] == QUAD:
        raise a.fault(LaneShares, value=s.tensor)
    _from_threads(a, s, values)


def _from_threads(a: Agent, s: m.StoreGlobal | m.CopyOut, values: np.ndarray) -> None:
    """Store where row and column lie inside the extents of their indices."""
    env, extents = dict(a.env), a.cta.world.extents
    where = np.ones((), dtype=bool)
    for axis, along_rows in ((s.rows, True), (s.cols, False)):
        if axis is None:
            continue
        env[axis.index] = at = indices(axis, a.env, along_rows=along_rows)
        where = where & (at < extents.get(axis.index, at.max(initial=0) + 1)) & (at >= 0)
    access = tuple(value_of(p, env) for p in s.access)
    _store(a, s.tensor, access, values, where, clipped=False, add=s.add)


@means(m.ClearRows)
def clear_rows(a: Agent, s: m.ClearRows) -> None:
    a.need(WHOLE)
    tile = a.cells(s.buffer, s.part, s.slot)
    start, stop = max(a.integer(s.start), 0), min(a.integer(s.stop), tile.buffer.rows)
    if start >= stop:
        return
    a.cta.memory.write(a, tile.cells, asynchronous=False, clear=(start, stop))
    tile.data[:, start:stop, :] = 0

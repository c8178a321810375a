"""One SM against the clock: the CTAs that it holds run their role programs, and every step takes its time.

Control, barriers, rings and items are the simulator's own (`MEANING`); this module has what steps on data cost instead of what
they compute. An agent is a warpgroup, or the one thread of an elected role: its warps do the same at the same time. Products,
bulk copies and the copies of threads go on by themselves and occupy their engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..foundation.source import NOWHERE
from ..roles import model as m
from ..roles.timeline import ENGINE, STEP, WAIT, Slice, joined, short
from ..targets.cycles import ALU, ENGINES, ISSUE, MEMORY, PER_PRODUCT, PIPES, SHARED, STEPS, TENSOR, Cycles
from ..targets.registers import WARPS
from .agent import Agent, Blocked, Item
from .barriers import MBarrier
from .clock import Clock, Engine, Process
from .costs import THREADS, Stretch, elements, evaluate, stretches
from .cta import Cta
from .events import NeedsGeneration, NeedsPhase
from .world import World

CHUNK = 24  # instructions after which another warp may come first
STORED = 512  # bytes that a warp's instruction moves to or from shared memory: 16 of each lane
INSTRUCTION_BYTES = 32  # of k in a matrix instruction's operands
MMA_COLUMNS = 8  # of one warp's matrix instruction

Cost = Callable[["TimedAgent", m.Step], "Process | None"]
COSTS: dict[type[m.Step], Cost] = {}


def takes(*kinds: type[m.Step]):
    """Register what steps take. One without an entry does what it means, for the instructions of `targets.cycles.STEPS`."""

    def register(fn):
        for kind in kinds:
            if kind in COSTS:
                raise TypeError(f"{kind.__name__} has two costs: {COSTS[kind].__name__} and {fn.__name__}")
            COSTS[kind] = fn
        return fn

    return register


@dataclass(eq=False)
class Sm:
    """What the CTAs of an SM share. busy: what engines did, in no order."""

    cycles: Cycles
    clock: Clock = field(default_factory=Clock)
    engines: dict[str, Engine] = field(default_factory=lambda: {n: Engine(n) for n in ENGINES})
    slices: list[Slice] = field(default_factory=list)
    names: dict[int, tuple[str, int]] = field(default_factory=dict)

    def named(self, step: m.Step) -> tuple[str, int]:
        """Steps are found by identity: two that do the same may stand on different lines."""
        if id(step) not in self.names:
            self.names[id(step)] = _name(step)
        return self.names[id(step)]

    def serve(self, engine: str, cycles: float, name: tuple[str, int], by: str) -> float:
        """When an engine has done this, which is asked for now."""
        start, stop = self.engines[engine].serve(self.clock.now, cycles)
        if cycles:
            self.slices.append(Slice(track=engine, kind=ENGINE, name=name[0], line=name[1], start=start, stop=stop, by=by))
        return stop


@dataclass(eq=False)
class Flight:
    """Something asynchronous, until it is done."""

    done: bool = False


@dataclass(frozen=True, eq=False)
class NeedsDone(Blocked):
    flights: tuple[Flight, ...]
    text: str

    def ready(self) -> bool:
        return all(f.done for f in self.flights)

    def what(self) -> str:
        return self.text


def _name(step: m.Step) -> tuple[str, int]:
    """The words of the schedule that a step comes from, and their line."""
    place = step.span.place if step.span is not None else NOWHERE
    return short(place.words) or step.note or type(step).__name__, place.line


class TimedCta(Cta):
    """suffix: of the names of its tracks, where an SM holds several."""

    def __init__(self, world: World, items: list[Item], sm: Sm, number: int = 0, suffix: str = ""):
        self.sm, self.suffix = sm, suffix
        super().__init__(world, items, number)

    def hired(self) -> list[Agent]:
        return [TimedAgent(self, r, w) for r in self.world.kernel.roles for w in range(r.count)]


class TimedAgent(Agent):
    cta: TimedCta

    def __init__(self, cta: TimedCta, role: m.Role, ordinal: int):
        super().__init__(cta, role, ordinal, None if role.elected else 0)
        self.sm, self.track = cta.sm, self.group + cta.suffix
        self.warps = 1 if role.elected else WARPS
        self.weight = WARPS
        self.values = {v.name: v for v in cta.world.values[role.name]}
        self.loops: list[str] = []
        self.last: Flight | None = None  # of its products
        self.open: dict[type, list[Flight]] = {}  # by the step that closes their group
        self.closed: dict[type, list[list[Flight]]] = {}

    # Running.

    def run(self, steps: tuple[m.Step, ...]) -> Process:  # pyright: ignore[reportIncompatibleMethodOverride]
        for s in steps:
            self.step = s
            yield from self._timed(s)
            if self.leaving:
                return

    def _timed(self, s: m.Step) -> Process:
        kind, clock, start = type(s), self.sm.clock, self.sm.clock.now
        yield from self.work(Stretch(other=STEPS.get(kind.__name__, 0)))
        single = not s.blocks()
        for wanted in (COSTS.get(kind) or _meaning(kind))(self, s) or ():
            since = clock.now
            yield wanted
            if isinstance(wanted, Blocked) and single:
                self.note(s, WAIT, _waited(wanted), since)
        if single:
            self.note(s, STEP, self.sm.named(s)[0], start)

    def execute(self) -> Process:  # pyright: ignore[reportIncompatibleMethodOverride]
        yield from self.run(self.role.steps)

    def note(self, s: m.Step, kind: str, name: str, start: float) -> None:
        """A slice of this agent's track, which ends now."""
        now = self.sm.clock.now
        if now > start:
            words, line = self.sm.named(s)
            step = words if kind == WAIT else ""
            place = ", ".join(f"{v} = {self.env[v]}" for v in self.loops if v in self.env)
            told = {"name": name, "place": place, "step": step}
            self.sm.slices.append(Slice(track=self.track, kind=kind, line=line, start=start, stop=now, **told))

    # What engines do for it.

    def work(self, s: Stretch) -> Process:
        """Instructions, a few at a time: other warps of the partition come in between."""
        pieces = max(1, round(s.instructions / CHUNK))
        for _ in range(pieces if s.instructions else 0):
            yield self._piece(s, 1 / pieces)

    def _piece(self, s: Stretch, share: float) -> float:
        """When it is done: no sooner than the warp can issue it, nor than its pipes are done with it."""
        assert self.step is not None
        sm, name, n = self.sm, self.sm.named(self.step), s.instructions * share
        times = [sm.clock.now + n * sm.cycles.interval.value, sm.serve(ISSUE, n, name, self.track)]
        times += [sm.serve(p, sm.cycles.occupied(p, c * share), name, self.track) for p, c in s.pipes.items() if p in PIPES]
        return max(times)

    def moves(self, nbytes: float, instructions: float) -> Process:
        """Bytes between registers and shared memory."""
        assert self.step is not None
        yield from self.work(Stretch(other=instructions))
        yield self.sm.serve(SHARED, nbytes / self.sm.cycles.shared.value, self.sm.named(self.step), self.track)

    def fly(self, work: Process, group: type) -> Flight:
        """Start something that goes on by itself, and belongs to the group that a step of this kind closes."""
        flight = Flight()
        self.open.setdefault(group, []).append(flight)
        self.sm.clock.start(_landing(work, flight))
        return flight

    def close(self, group: type) -> None:
        self.closed.setdefault(group, []).append(self.open.pop(group, []))

    def wait_for(self, group: type, pending: int, text: str) -> Process:
        groups = self.closed.setdefault(group, [])
        done = groups[: max(len(groups) - pending, 0)]
        del groups[: len(done)]
        need = NeedsDone(tuple(f for g in done for f in g), text)
        if not need.ready():
            yield need


def _meaning(kind: type[m.Step]) -> Cost:
    from .steps import MEANING

    return MEANING[kind]  # pyright: ignore[reportReturnType]


def _landing(work: Process, flight: Flight) -> Process:
    yield from work
    flight.done = True


def _waited(what: Blocked) -> str:
    """What somebody waits for, without the numbers of the moment."""
    if isinstance(what, NeedsPhase):
        return what.barrier.name.partition("[")[0]
    if isinstance(what, NeedsGeneration):
        return "named barrier"
    return what.what() if isinstance(what, NeedsDone) else "registers"


# Control: what the simulator does, with a note of where in the loops we are.


@takes(m.Loop)
def loop(a: TimedAgent, s: m.Loop) -> Process:
    a.loops.append(s.var)
    yield from _meaning(m.Loop)(a, s) or ()
    a.loops.remove(s.var)


@takes(m.FenceWgmma, m.FenceAsync, m.Forget)
def nothing(a: TimedAgent, s: m.Step) -> None:
    """Orders accesses, which aren't modelled."""


# Barriers that only cost something beside what they mean.


@takes(m.Wait, m.BarSync)
def passes(a: TimedAgent, s: m.Step) -> Process:
    """Who passes has asked shared memory."""
    yield from _meaning(type(s))(a, s) or ()
    yield a.sm.clock.now + a.sm.cycles.shared_latency.value


@takes(m.Tally)
def tally(a: TimedAgent, s: m.Tally) -> None:
    """A number that isn't known here; storing it keeps nobody waiting."""


@takes(m.ListTile)
def list_tile(a: TimedAgent, s: m.ListTile) -> Process:
    """Two meetings."""
    for _ in range(2):
        yield from _meaning(m.BarSync)(a, s) or ()


# Registers.


@takes(m.Compute)
def compute(a: TimedAgent, s: m.Compute) -> Process:
    for x in stretches(s.ops, a.values):
        yield from a.work(x)
        wait = x.exchanges * a.sm.cycles.shared_latency.value
        if x.loaded:
            wait += _arrival(a, x.loaded) - a.sm.clock.now
        if wait:
            yield a.sm.clock.now + wait


def _arrival(a: TimedAgent, nbytes: float) -> float:
    """When bytes from global memory are in registers."""
    assert a.step is not None
    cycles = a.sm.cycles
    return a.sm.serve(MEMORY, nbytes / cycles.memory.value, a.sm.named(a.step), a.track) + cycles.memory_latency.value


@takes(m.Classify)
def classify(a: TimedAgent, s: m.Classify) -> Process:
    x = Stretch(exchanges=1)
    evaluate(x, s.cond, s.rows, s.cols, a.values)
    yield from a.work(x)
    if x.loaded:
        yield _arrival(a, x.loaded)


@takes(m.Pack)
def pack(a: TimedAgent, s: m.Pack) -> Process:
    """One conversion makes a register of two elements."""
    x = Stretch()
    x.pipes[ALU] += a.values[s.dst].length * a.values[s.dst].dtype.nbytes / 2
    yield from a.work(x)


@takes(m.Move, m.Zero)
def registers(a: TimedAgent, s: m.Move | m.Zero) -> Process:
    yield from a.work(Stretch(other=a.values[s.dst if isinstance(s, m.Move) else s.value].length))


# Products.


@takes(m.Wgmma)
def wgmma(a: TimedAgent, s: m.Wgmma) -> Process:
    count = s.k * s.dtype.nbytes // INSTRUCTION_BYTES
    yield from a.work(Stretch(other=count * PER_PRODUCT))
    a.last = a.fly(_product(a, s, count, a.last), m.Commit)


def _product(a: TimedAgent, s: m.Wgmma, count: int, before: Flight | None) -> Process:
    """Behind the warpgroup's earlier ones, instruction by instruction: another warpgroup's come in between."""
    if before is not None and not before.done:
        yield NeedsDone((before,), "")
    rows = a.values[s.acc].rows
    tensor = a.sm.cycles.product(rows, s.n, INSTRUCTION_BYTES // s.dtype.nbytes, s.dtype.nbytes)
    shared = INSTRUCTION_BYTES * (s.n + rows * isinstance(s.a, m.SmemOperand)) / a.sm.cycles.shared.value
    for _ in range(count):
        yield max(a.sm.serve(TENSOR, tensor, a.sm.named(s), a.track), a.sm.serve(SHARED, shared, a.sm.named(s), a.track))


@takes(m.Mma)
def mma(a: TimedAgent, s: m.Mma) -> Process:
    """The warps load what isn't in registers, the columns of B each for itself, and multiply at once: a step of k at a time."""
    rows, nbytes, cycles = a.values[s.acc].rows, s.dtype.nbytes, a.sm.cycles
    count = s.k * nbytes // INSTRUCTION_BYTES
    tensor = cycles.product(rows, s.n, INSTRUCTION_BYTES // nbytes, nbytes)
    shared = INSTRUCTION_BYTES * (WARPS * s.n + rows * isinstance(s.a, m.SmemOperand))
    instructions = rows * s.n / (WARPS * 16 * MMA_COLUMNS) + shared / WARPS / STORED
    for _ in range(count):
        loaded = a.sm.serve(SHARED, shared / cycles.shared.value, a.sm.named(s), a.track)
        issued = a.sm.serve(ISSUE, instructions, a.sm.named(s), a.track)
        yield max(a.sm.serve(TENSOR, tensor, a.sm.named(s), a.track), loaded, issued)


@takes(m.Commit, m.CommitCopies, m.CommitStore)
def commit(a: TimedAgent, s: m.Step) -> None:
    a.close(type(s))


@takes(m.WaitGroup)
def wait_group(a: TimedAgent, s: m.WaitGroup) -> Process:
    yield from a.wait_for(m.Commit, s.pending, "products")


@takes(m.WaitCopies)
def wait_copies(a: TimedAgent, s: m.WaitCopies) -> Process:
    yield from a.wait_for(m.CommitCopies, s.pending, "copies")


@takes(m.WaitStore)
def wait_store(a: TimedAgent, s: m.WaitStore) -> Process:
    yield from a.wait_for(m.CommitStore, s.pending, "bulk stores")


# Copies.


def _box_bytes(a: TimedAgent, s: m.Tma | m.TmaStore) -> int:
    count = 1
    for n in a.cta.world.maps[s.map].box:
        count *= n
    return count * a.cta.world.buffers[s.buffer].dtype.nbytes


@takes(m.Tma)
def tma(a: TimedAgent, s: m.Tma) -> None:
    barrier, _ = a.mbarrier(s.barrier, s.barrier_part, s.slot)
    nbytes = _box_bytes(a, s)
    a.sm.clock.start(_load(a, s, barrier, nbytes, _arrival(a, nbytes)))


def _load(a: TimedAgent, s: m.Tma, barrier: MBarrier, nbytes: int, arrives: float) -> Process:
    yield arrives
    a.sm.serve(SHARED, nbytes / a.sm.cycles.shared.value, a.sm.named(s), a.track)
    barrier.complete(nbytes, 0)
    if barrier.over:
        barrier.turn()


@takes(m.TmaStore)
def tma_store(a: TimedAgent, s: m.TmaStore) -> None:
    """Its buffer is free when shared memory has been read; the way to global memory isn't waited for."""
    nbytes = _box_bytes(a, s)
    a.sm.serve(MEMORY, nbytes / a.sm.cycles.memory.value, a.sm.named(s), a.track)
    read_ = a.sm.serve(SHARED, nbytes / a.sm.cycles.shared.value, a.sm.named(s), a.track)
    a.fly(_until(max(read_, a.sm.engines[MEMORY].free)), m.CommitStore)


def _until(time: float) -> Process:
    yield time


@takes(m.CopyAsync)
def copy_async(a: TimedAgent, s: m.CopyAsync) -> Process:
    """This warpgroup's share of a tile."""
    nbytes = a.cta.world.buffers[s.buffer].tile_bytes / a.role.count
    yield from a.work(Stretch(other=4 * nbytes / WARPS / STORED))  # two addresses, a predicate, the copy
    a.sm.serve(SHARED, nbytes / a.sm.cycles.shared.value, a.sm.named(s), a.track)
    a.fly(_until(_arrival(a, nbytes)), m.CommitCopies)


@takes(m.StoreShared, m.ReadShared)
def through_shared(a: TimedAgent, s: m.StoreShared | m.ReadShared) -> Process:
    value = a.values[s.src if isinstance(s, m.StoreShared) else s.dst]
    dtype = a.cta.world.buffers[s.buffer].dtype
    nbytes = value.rows * value.cols * dtype.nbytes
    rounding = value.rows * value.cols / THREADS / 2
    yield from a.moves(nbytes, rounding + 2 * nbytes / WARPS / STORED)


@takes(m.Transpose)
def transpose(a: TimedAgent, s: m.Transpose) -> Process:
    """What is read and written, and four permutations of bytes for each 512 of them."""
    nbytes = a.cta.world.buffers[s.buffer].tile_bytes
    yield from a.moves(2 * nbytes, nbytes / THREADS / 4 + 4 * nbytes / WARPS / STORED)


@takes(m.CopyOut)
def copy_out(a: TimedAgent, s: m.CopyOut) -> Process:
    """Each thread reads, tests its place and stores."""
    b = a.cta.world.buffers[s.buffer]
    times = b.tile_bytes / WARPS / STORED if s.wide else b.rows * b.cols / THREADS
    yield from a.moves(b.tile_bytes, 8 * times)
    a.sm.serve(MEMORY, b.tile_bytes / a.sm.cycles.memory.value, a.sm.named(s), a.track)


@takes(m.StoreGlobal)
def store_global(a: TimedAgent, s: m.StoreGlobal) -> Process:
    x = Stretch(other=4 * elements(s.rows, s.cols))
    evaluate(x, s.value, s.rows, s.cols, a.values)
    yield from a.work(x)
    dtype = a.cta.world.kernel.tensor(s.tensor).dtype
    nbytes = s.rows.count * (s.cols.count if s.cols is not None else 1) * dtype.nbytes
    a.sm.serve(MEMORY, nbytes / a.sm.cycles.memory.value, a.sm.named(s), a.track)


@takes(m.ClearRows)
def clear_rows(a: TimedAgent, s: m.ClearRows) -> Process:
    b = a.cta.world.buffers[s.buffer]
    rows = min(a.integer(s.stop), b.rows) - max(a.integer(s.start), 0)
    nbytes = max(rows, 0) * b.cols * b.dtype.nbytes
    yield from a.moves(nbytes, 6 * nbytes / WARPS / STORED)


def run_sm(world: World, cycles: Cycles, items: list[list[Item]]) -> tuple[list[Slice], list[TimedCta]]:
    """What one SM does that holds a CTA for each list of items: slices in the order of time."""
    sm = Sm(cycles)
    ctas = [TimedCta(world, own, sm, k, f" of CTA {k}" if len(items) > 1 else "") for k, own in enumerate(items)]
    for c in ctas:
        for a in c.agents:
            sm.clock.start(a.execute())  # pyright: ignore[reportArgumentType]
    if not sm.clock.run():
        stuck = next(c for c in ctas if any(not a.ended for a in c.agents))
        raise stuck.deadlock()
    order = sorted(enumerate(sm.slices), key=lambda x: (x[1].start, x[0]))
    return list(joined(s for _, s in order)), ctas


def tracks(ctas: list[TimedCta]) -> Iterator[str]:
    for c in ctas:
        yield from (a.track for a in c.agents if isinstance(a, TimedAgent))

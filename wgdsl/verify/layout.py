"""Layout: who takes part in a kernel, and one bit for everything that somebody may have to know of.

In: a kernel.  Out: its units, memory atoms, mbarriers, and the places of their bits.

A unit is one warpgroup of a role. What it knows is kept for two of its warps: warp 0, which holds the elected thread, and warp
1, since the others do what that one does. So a thing that each of the four warps does has three bits: what warp 0 did, what
warp 1 did, and what its fellows did. From warp 2 the same looks mirrored: the last two change places. A unit that is one thread
has one bit a thing.

An atom is a piece of shared memory that steps only ever touch as a whole.

Bits are grouped by ring and, within a ring, by stage, each stage alike, so that going round a ring is a rotation of bits. A
ring whose memory another one shares isn't rotated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import prod

from ..roles import model as m
from ..roles.model import Barrier, Buffer, Kernel, Role, Step
from .control import integer

# What a unit does to memory. Generic writes are what the asynchronous proxy sees only behind a fence.
FILL = "fill"  # by the copy engine; known to those who wait for its barrier
WRITE, CLEAR, PUT = "write", "clear", "put"
COPY = "copy"  # by threads, known to each when it has waited for its own
READ, PRODUCT, STORE = "read", "product", "store"
GENERIC = (WRITE, CLEAR, PUT, COPY)
BY_ONE = (PUT, STORE)  # threads


@dataclass(frozen=True, eq=False)
class Unit:
    """A warpgroup of a role. `number` counts units, `holders` are the places of what its warps know."""

    number: int
    role: Role
    wg: int
    holders: tuple[int, ...]

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """All of them."""
        return tuple(m.walk(self.role.steps))

    @property
    def single(self) -> bool:
        return self.role.elected

    @property
    def name(self) -> str:
        return f"{self.role.name} {self.wg}" if self.role.count > 1 else self.role.name


@dataclass(frozen=True, eq=False)
class Bits:
    """The bits of one thing that a unit does: each warp's own as its holder sees it, and all of them."""

    own: tuple[int, ...]
    all: int


@dataclass(frozen=True, eq=False)
class Spin:
    """A ring that is normalised: `width` bits a stage from bit `base`."""

    ring: int
    stages: int
    base: int
    width: int


@dataclass(eq=False)
class Layout:
    """`tiles`: (buffer, part, stage) -> by panel, its atoms; one entry where no step touches panels by themselves. `barriers`:
    name -> number of the mbarrier of part 0, stage 0. `cuts`: buffer -> parts of a panel's rows that are filled by themselves.
    `accesses`: (atom, unit, kind) -> bits; a fill's unit is -1. `passes`:
    (mbarrier, unit) -> bits of having passed a wait."""

    kernel: Kernel
    units: tuple[Unit, ...]
    rings: dict[str, int]
    tiles: dict[tuple[str, int, int], tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    cuts: dict[str, int] = field(default_factory=dict)
    atoms: int = 0
    atom_places: list[tuple[str, int]] = field(default_factory=list)  # ring and stage
    barriers: dict[str, int] = field(default_factory=dict)
    mbarriers: list[tuple[Barrier, int, int]] = field(default_factory=list)  # barrier, part, stage
    accesses: dict[tuple[int, int, str], Bits] = field(default_factory=dict)
    passes: dict[tuple[int, int], Bits] = field(default_factory=dict)
    arrivals: dict[tuple[int, int], Bits] = field(default_factory=dict)  # (mbarrier, unit) -> bits of its latest arrival
    over: list[tuple[int, int]] = field(default_factory=list)  # of an mbarrier: its last phase is over, the one before is
    bars: dict[int, int] = field(default_factory=dict)  # of a named barrier: its last generation is over
    spins: tuple[Spin, ...] = ()
    width: int = 0
    every: int = 0  # all bits, twice: masks without a sign are quicker
    generic: int = 0  # all bits of generic writes
    fellows: dict[int, tuple[int, int]] = field(default_factory=dict)  # unit -> bits of warp 1, of its fellows (one further up)
    touches: list[int] = field(default_factory=list)  # by atom: the bits of all that is done to it
    writes: list[int] = field(default_factory=list)  # by atom: those of writes
    copies: list[int] = field(default_factory=list)  # by atom: those of copies of threads
    arrived: list[int] = field(default_factory=list)  # by mbarrier without copies: all bits of arrivals
    control: int = 0  # bits of what happens to barriers
    waits: list[int] = field(default_factory=list)  # by mbarrier: all bits of having passed
    waiters: list[int] = field(default_factory=list)  # by mbarrier: those of them that come to pass
    takers: list[int] = field(default_factory=list)  # by mbarrier: its waiters as a set of holders
    bystanders: list[tuple[int, ...]] = field(default_factory=list)  # by mbarrier: holders that never wait for it
    generics: list[tuple[int, ...]] = field(default_factory=list)  # by unit and holder: its own generic writes

    @property
    def holders(self) -> int:
        return sum(len(u.holders) for u in self.units)

    def bit(self) -> int:
        self.width += 1
        return 1 << (self.width - 1)


def layout(kernel: Kernel) -> Layout:
    """The layout of a kernel whose names resolve."""
    units: list[Unit] = []
    holders = 0
    for role in kernel.roles:
        for wg in range(role.count):
            count = 1 if role.elected else 2
            units.append(Unit(len(units), role, wg, tuple(range(holders, holders + count))))
            holders += count
    out = Layout(kernel, tuple(units), {r.name: k for k, r in enumerate(kernel.rings)})
    used = {u.number: set(uses(u)) for u in units}
    _cut(out)
    _number(out)
    _bits(out, used)
    return out


Use = tuple[str, str]  # buffer, kind


def uses(u: Unit) -> Iterator[Use]:
    """What a unit does to buffers."""
    for s in u.steps:
        if isinstance(s, m.Wgmma):
            yield from ((o.buffer, PRODUCT) for o in (s.a, s.b) if isinstance(o, m.SmemOperand))
        elif isinstance(s, m.Mma):
            yield from ((o.buffer, READ) for o in (s.a, s.b) if isinstance(o, m.SmemOperand))
        elif isinstance(s, m.Transpose):
            yield s.origin, READ
            yield s.buffer, WRITE
        elif isinstance(s, TOUCHING):
            yield s.buffer, _KINDS[type(s)]


TOUCHING = m.Tma | m.TmaStore | m.StoreShared | m.ClearRows | m.PutItem | m.TakeItem | m.ReadShared | m.CopyOut | m.CopyAsync
_KINDS: dict[type[Step], str] = {
    m.Tma: FILL,
    m.TmaStore: STORE,
    m.StoreShared: WRITE,
    m.ClearRows: CLEAR,
    m.PutItem: PUT,
    m.TakeItem: READ,
    m.ReadShared: READ,
    m.CopyOut: READ,
    m.CopyAsync: COPY,
}


def panels_of(kernel: Kernel, s: m.Tma | m.TmaStore, cuts: int = 1) -> range:
    """The panels that a copy touches in its tile, or those of its parts if each is cut into so many along its rows."""
    b = kernel.buffer(s.buffer)
    if isinstance(s, m.Tma) and s.parts > 1:
        each = cuts // s.parts
        first = s.panel * cuts + s.rows_part * each
        return range(first, first + each)
    return range(s.panel * cuts, (s.panel + max(prod(kernel.map(s.map).box) // (b.rows * b.panel_cols), 1)) * cuts)


def _cut(out: Layout) -> None:
    """Atoms: stretches of memory between the ends of tiles and panels, those that go together taken as one."""
    kernel = out.kernel
    copies = [s for r in kernel.roles for s in m.walk(r.steps) if isinstance(s, m.Tma | m.TmaStore)]
    out.cuts = {s.buffer: s.parts for s in copies if isinstance(s, m.Tma) and s.parts > 1}
    split = {s.buffer for s in copies if len(panels_of(kernel, s)) < kernel.buffer(s.buffer).panels} | out.cuts.keys()
    pieces = [p for b in kernel.buffers for p in _pieces(b, b.name in split, out.cuts.get(b.name, 1))]
    edges = sorted({e for low, high, _ in pieces for e in (low, high)})
    atoms: dict[frozenset[Piece], int] = {}
    where: dict[Piece, list[int]] = {}
    for low, high in pairwise(edges):
        cover = frozenset(p for a, b, p in pieces if a <= low and high <= b)
        if cover and cover not in atoms:
            atoms[cover] = len(atoms)
            for p in cover:
                where.setdefault(p, []).append(atoms[cover])
    out.atoms = len(atoms)
    for piece in (p for _, _, p in pieces):
        tile = piece[:3]
        out.tiles[tile] = (*out.tiles.get(tile, ()), tuple(where[piece]))
    places = [{(kernel.buffer(p[0]).ring, p[2]) for p in cover} for cover in atoms]
    out.atom_places = [min(found) if len(found) == 1 else ("", 0) for found in places]


Piece = tuple[str, int, int, int]  # buffer, part, stage, panel


def _pieces(b: Buffer, split: bool, cuts: int) -> Iterator[tuple[int, int, Piece]]:
    """Where the tiles of a buffer lie, or their panels, or the parts of those: from, to."""
    size = b.panel_bytes // cuts if split else b.tile_bytes
    for stage in range(b.stages):
        for part in range(b.parts):
            start = b.offset + (stage * b.parts + part) * b.stride
            for p in range(b.panels * cuts) if split else (0,):
                yield start + p * size, start + (p + 1) * size, (b.name, part, stage, p)


def _number(out: Layout) -> None:
    for b in out.kernel.barriers:
        out.barriers[b.name] = len(out.mbarriers)
        out.mbarriers += [(b, part, stage) for part in range(b.parts) for stage in range(b.stages)]
    out.over = [(0, 0)] * len(out.mbarriers)


def _bits(out: Layout, uses: dict[int, set[Use]]) -> None:
    kernel = out.kernel
    fixed = [a for a in range(out.atoms) if out.atom_places[a][0] == ""]
    spins = []
    shared = {kernel.buffer(tile[0]).ring for tile, panels in out.tiles.items() if any(a in fixed for p in panels for a in p)}
    for r in kernel.rings:
        base = out.width
        widths = set()
        for stage in range(r.stages):
            before = out.width
            for a in (a for a in range(out.atoms) if out.atom_places[a] == (r.name, stage)):
                _atom_bits(out, a, uses)
            for k, (b, _, s) in enumerate(out.mbarriers):
                if b.ring == r.name and s == stage:
                    _barrier_bits(out, k)
            widths.add(out.width - before)
        if len(widths) == 1 and r.name not in shared and r.stages > 1:
            spins.append(Spin(out.rings[r.name], r.stages, base, widths.pop()))
    for a in fixed:
        _atom_bits(out, a, uses)
    for number in sorted(_bars(out)):
        out.bars[number] = out.bit()
    out.spins = tuple(spins)
    _masks(out)


def _masks(out: Layout) -> None:
    out.every = (1 << 2 * out.width) - 1
    out.touches, out.writes, out.copies = ([0] * out.atoms for _ in range(3))
    out.waits, out.waiters, out.takers, out.arrived = ([0] * len(out.mbarriers) for _ in range(4))
    out.generics = [(0,) * len(u.holders) for u in out.units]
    for (atom, unit, kind), bits in out.accesses.items():
        out.touches[atom] |= bits.all
        if kind == FILL or kind in GENERIC:
            out.writes[atom] |= bits.all
        if kind == COPY:
            out.copies[atom] |= bits.all
        if kind in GENERIC:
            out.generics[unit] = tuple(a | b for a, b in zip(out.generics[unit], bits.own, strict=True))
    for (k, unit), bits in out.passes.items():
        out.waits[k] |= bits.all
        u, (barrier, part, _) = out.units[unit], out.mbarriers[k]
        all_warps = _by_warps(u, barrier.name)
        out.waiters[k] |= bits.all if all_warps else bits.own[0]
        if _waits_for(u, barrier.name, part):
            out.takers[k] |= sum(1 << h for h in (u.holders if all_warps else u.holders[:1]))
    for (k, _), bits in out.arrivals.items():
        out.arrived[k] |= bits.all
    for bits in (*out.waits, *out.arrived, *(a | b for a, b in out.over), *out.bars.values()):
        out.control |= bits
    out.bystanders = [_bystanders(out, k) for k in range(len(out.mbarriers))]


def _bystanders(out: Layout, k: int) -> tuple[int, ...]:
    return tuple(h for u in out.units if (k, u.number) not in out.passes for h in u.holders)


def _by_warps(u: Unit, barrier: str) -> bool:
    """Whether a barrier is waited for outside of elected blocks."""
    return not u.single and any(_waits(s, barrier) for s in u.role.steps)


def _waits(s: Step, barrier: str) -> bool:
    if isinstance(s, m.Wait):
        return s.barrier == barrier
    return not isinstance(s, m.Elect) and any(_waits(x, barrier) for block in s.blocks() for x in block)


def _waits_for(u: Unit, barrier: str, part: int) -> bool:
    """Whether a unit may wait for that part of a barrier."""
    parts = (s.part for s in u.steps if isinstance(s, m.Wait) and s.barrier == barrier)
    return any(p.symbols() - {"wg"} or integer(p)({"wg": u.wg}) == part for p in parts)


def _three(out: Layout, u: Unit) -> Bits:
    if u.single:
        bit = out.bit()
        return Bits((bit,), bit)
    first, second, fellows = out.bit(), out.bit(), out.bit()
    near, far = out.fellows.get(u.number, (0, 0))
    out.fellows[u.number] = near | second, far | fellows
    return Bits((first, second), first | second | fellows)


def _atom_bits(out: Layout, atom: int, uses: dict[int, set[Use]]) -> None:
    buffers = {tile[0] for tile, panels in out.tiles.items() if any(atom in p for p in panels)}
    if any(buffer in buffers and kind == FILL for found in uses.values() for buffer, kind in found):
        bit = out.bit()
        out.accesses[atom, -1, FILL] = Bits((bit,), bit)
    for u in out.units:
        for kind in (*GENERIC, READ, PRODUCT, STORE):
            if any(buffer in buffers and k == kind for buffer, k in uses[u.number]):
                if kind in BY_ONE:
                    bit = out.bit()
                    bits = Bits((bit,) * len(u.holders), bit)
                else:
                    bits = _three(out, u)
                out.accesses[atom, u.number, kind] = bits
                out.generic |= bits.all if kind in GENERIC else 0


def _barrier_bits(out: Layout, k: int) -> None:
    name = out.mbarriers[k][0].name
    last, before = out.bit(), out.bit()
    out.over[k] = last, before
    for u in out.units:
        if any(isinstance(s, m.Wait) and s.barrier == name for s in u.steps):
            out.passes[k, u.number] = _three(out, u)
    if any(isinstance(s, m.Tma) and s.barrier == name for u in out.units for s in u.steps):
        return  # that its copies have arrived only those know who wait
    for u in out.units:
        if any(isinstance(s, m.Arrive | m.Expect) and s.barrier == name for s in u.steps):
            out.arrivals[k, u.number] = _three(out, u)


def _bars(out: Layout) -> set[int]:
    """The named barriers that are used."""
    found = set()
    for u in out.units:
        for s in u.steps:
            if isinstance(s, m.BarSync | m.BarArrive):
                found.add(integer(s.id)({"wg": u.wg}))
    return found

"""The role program: what the simulator runs and the emitter prints. Nothing in it is left to be derived.

Symbols in its `Poly`s: the program's free dims (`M`); the item's grid indices (`b`, `g`, `r`: their value; `i.lo`: first
element of a tiled one); `wg`, the warpgroup's ordinal within its role; names bound by `Let` and `Read`; loop variables. In the
expressions of a `MapOp`, an axis index (`i`, `j`) is the element's own index: the axis origin plus its place in the tile.
Elements of tensors stand in the value of a `Read` only.

A ring is one or more buffers that are filled together, `stages` deep, with one full barrier per (part, stage) and, if it
is ever refilled, one empty barrier. Every role that touches a ring has its own position (stage, phase) in it, which starts
at (0, 0) and is moved only by `Advance`: stage + 1, and at the wrap stage 0 and phase flipped. `Slot(lag=1)` is the stage
before the position. A part is the share of one warpgroup of a `split` role (a buffer that isn't split has one part).

Threads: a role's warpgroups run its steps in lock step with themselves only. `Elect` runs on one thread of each
warpgroup; a role with `elected` runs wholly on one thread. All else runs on all 128 threads. Where the target has no
instructions for a warpgroup, it is four warps that share out rows and copies.

Shared memory is filled by bulk copies (`Tma`), whose bytes a full barrier counts, or by the threads of a role themselves
(`CopyAsync`): each waits for its own (`WaitCopies`), and a named barrier tells the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cache

from ..foundation.dtypes import DType
from ..foundation.source import Span
from ..program.expr import TRUE, Expr, Reg, Scalar
from ..program.expr import walk as subexpressions
from ..program.poly import Poly

ONE = Poly.of(1)
ROWS = 64  # of a warpgroup's register tile, at least: 16 for each warp
PROBE = ".probe"  # ends the name of an array that a schedule's `probe` writes

# Placed things.


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """Shared memory: `stages` x `parts` tiles of `rows` x `cols` elements, each in panels of `swizzle` bytes of columns.

    A tile is [cols / panel_cols panels][rows][panel_cols], panel_cols = swizzle bytes / element size (16 bytes when
    swizzle is 0). Tile (stage, part) starts at byte `offset + (stage * parts + part) * stride`; `stride` is tile_bytes rounded
    up to 1024 unless `part_stride` says otherwise.
    `rows_index`, `cols_index`: the program indices; cols is the tensor's innermost axis. `over`: the buffer whose memory
    this one shares (same offset).
    """

    name: str
    tensor: str
    dtype: DType
    rows: int
    cols: int
    rows_index: str
    cols_index: str
    swizzle: int  # 128, 64, 32, or 0
    ring: str
    parts: int = 1
    stages: int = 1
    offset: int = 0
    over: str | None = None
    part_stride: int | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def stride(self) -> int:
        """Bytes from one (stage, part) tile to the next."""
        return self.part_stride or -(-self.tile_bytes // 1024) * 1024

    @property
    def panel_cols(self) -> int:
        return (self.swizzle or 16) // self.dtype.nbytes

    @property
    def panels(self) -> int:
        return self.cols // self.panel_cols

    @property
    def panel_bytes(self) -> int:
        return self.rows * (self.swizzle or 16)

    @property
    def tile_bytes(self) -> int:
        return self.rows * self.cols * self.dtype.nbytes

    @property
    def total_bytes(self) -> int:
        return self.stride * self.parts * self.stages


@dataclass(frozen=True, kw_only=True)
class Barrier:
    """An array of mbarriers, one per (part, stage), index `part * stages + stage`, each expecting `count` arrivals a phase.

    `name` is `Ks.full` or `Ks.empty`. `parts` is 1 when one barrier serves all parts of the ring's buffers.
    `offset`: byte offset in shared memory (8 bytes each).
    """

    name: str
    ring: str
    count: int
    parts: int
    stages: int
    offset: int = 0


@dataclass(frozen=True, kw_only=True)
class Ring:
    """Buffers with a common position. `full`/`empty`: names of barriers (empty None: never refilled; full None: not filled
    by asynchronous copies, e.g. a staging buffer)."""

    name: str
    stages: int
    buffers: tuple[str, ...]
    full: str | None = None
    empty: str | None = None


@dataclass(frozen=True, kw_only=True)
class MapDim:
    """One dimension of a tensor map: extent in elements, stride = `factor` x the tensor's stride along `axis`."""

    axis: int
    extent: Poly
    factor: int = 1


@dataclass(frozen=True, kw_only=True)
class TensorMap:
    """A TMA descriptor (cuTensorMapEncodeTiled). Dimensions fastest first; dim 0 has stride 1 element.

    One copy with this map moves `box` elements. Reads past an extent give zeros, writes past it are dropped.
    """

    name: str
    tensor: str
    dtype: DType
    dims: tuple[MapDim, ...]
    box: tuple[int, ...]
    swizzle: int


ONES = ("flag", "count")  # kinds of values of which a warp has one
FEW = ("row", *ONES)  # kinds of values that take the same registers whatever the columns


@dataclass(frozen=True, kw_only=True)
class Value:
    """A register value of one warpgroup of `role`.

    kind: `tile` = rows x cols f32 in accumulator layout (cols / 2 registers a thread for 64 rows); `operand` = rows x cols of
    `dtype` packed as A fragments (cols * bytes / 8 registers for 64 rows); `elements` = rows x cols of `dtype` as they stand in
    memory, in accumulator layout (as many registers); `row` = one f32 per row (2 registers for 64), `partial` when each of the
    4 lanes of a quad holds its own share; `flag` = one truth value per warp (1 register); `count` = one integer per warp (1
    register). `over`: this value lives in the registers of another one of the same kind and size (it is another name for them).
    """

    name: str
    role: str
    kind: str
    dtype: DType
    cols: int = 1
    partial: bool = False
    over: str | None = None
    rows: int = ROWS

    @property
    def halves(self) -> int:
        """Rows of which a thread holds elements: every eighth of its warp's."""
        return self.rows // 32

    @property
    def length(self) -> int:
        """Elements of a thread's register array, 32 bits each."""
        if self.kind in ONES:
            return 1
        if self.kind == "row":
            return self.halves
        nbytes = 4 if self.kind == "tile" else self.dtype.nbytes
        return self.halves * self.cols * nbytes // 16

    @property
    def registers(self) -> int:
        """Registers a thread that this value takes for itself."""
        return 0 if self.over is not None else self.length


@dataclass(frozen=True, kw_only=True)
class GridAxis:
    """One grid axis: `blocks` tiles of `tile` elements along index `index`."""

    index: str
    tile: int
    blocks: Poly


@dataclass(frozen=True, kw_only=True)
class Order:
    """Another order of the items. The combinations of the `inner` axes are cut into equal sections of `size` at most (None: one
    section of all), but the first may be smaller; in a section the `outer` axes run slower than the inner ones. Within each
    group the last axis is fastest. `reversed`: the outer axis that runs from its last block to its first."""

    inner: tuple[str, ...]
    outer: tuple[str, ...]
    size: Poly | None = None
    reversed: str | None = None


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Work items, last axis fastest, item number t in [0, total). Plain: CTA t runs item t. Persistent static: CTA c runs
    c, c + gridDim, ... Dynamic: it runs c, then what a counter in global memory gives it. A tiled index is bound as
    `<index>.lo` = block * tile, one of tile 1 as `<index>`."""

    axes: tuple[GridAxis, ...]
    persistent: bool = False
    dynamic: bool = False
    order: Order | None = None


@dataclass(frozen=True, kw_only=True)
class Param:
    """One kernel argument, in order. kind: map (name of a TensorMap), pointer (tensor), stride (tensor, axis; i64, in
    elements), dim (i32), scalar (f32), number (f32: `value`, an expression of scalars, which the launch rounds once), divisor
    (of item numbers, `items.divisors`, with what makes a division by it a multiplication, `items.multiplier`), flag (i32;
    `tensor` can be stored with its tensor map), counter (which of the module's `COUNTERS` pairs of i32 the launch uses: the
    items given out beyond one for each CTA, and the CTAs that have left. Both are 0 before and after it; launches that may
    overlap need different ones)."""

    kind: str
    name: str
    tensor: str | None = None
    axis: int | None = None
    dtype: DType | None = None
    value: Expr | None = None

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """Of the program: what the launch has to know for it."""
        if self.kind == "scalar":
            return (Scalar(name=self.name),)
        return () if self.value is None else tuple(x for x in subexpressions(self.value) if isinstance(x, Scalar))


COUNTERS = 4096  # of a module with a dynamic grid

# Steps.


@dataclass(frozen=True, kw_only=True)
class Step:
    """Base. `span` is the schedule text the step comes from; `note` a short comment."""

    span: Span | None = field(default=None, compare=False, repr=False)
    note: str = field(default="", compare=False)

    def blocks(self) -> tuple[tuple[Step, ...], ...]:
        """Nested step lists."""
        return tuple([getattr(self, name) for name in regions(type(self))])


@cache
def regions(kind: type[Step]) -> tuple[str, ...]:
    """The fields that hold nested steps."""
    return tuple(f.name for f in fields(kind) if f.metadata.get("region"))


def region():
    """A field that holds nested steps."""
    return field(default=(), metadata={"region": True})


@dataclass(frozen=True, kw_only=True)
class Items(Step):
    """Run the body once per work item of this CTA; binds the grid indices, and `item.ordinal` (0, 1, ...) if `counted`.

    source: `stride` = the items that the grid gives the CTA. `counter` = those that `Fetch` takes, until `Leave` finds none;
    then the last CTA to leave sets the counter back. `work` = those that `TakeItem` reads, until `Leave` finds none; the
    indices are bound behind `Leave`.

    joined: the role learns of each item in the one before it, by `NextItem`; the first is the CTA's own number, and `Leave`
    isn't needed. Binds `item.begun`, which is 0 for the first item and what `Begun` has said in the one before for others.
    """

    source: str = "stride"
    counted: bool = False
    joined: bool = False
    body: tuple[Step, ...] = region()


@dataclass(frozen=True, kw_only=True)
class Fetch(Step):
    """Take the number of the CTA's next item from the counter, which another CTA can then not get. By one thread. Items for
    which `only` doesn't hold, over what `reads` says of them as of this item, are passed over: nobody learns of them."""

    only: Expr = TRUE
    reads: tuple[Step, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PutItem(Step):
    """Write the number of this item to buffer[slot] for the other roles, or -1 if there is none. By one thread.

    ahead: of the item that follows, which `Fetch` has taken."""

    buffer: str
    slot: Slot
    ahead: bool = False


@dataclass(frozen=True, kw_only=True)
class TakeItem(Step):
    """Read the number of this item from buffer[slot]: lane 0 of each warp, for its warp. ahead: of the item that follows."""

    buffer: str
    slot: Slot
    ahead: bool = False


@dataclass(frozen=True, kw_only=True)
class Leave(Step):
    """Leave the items if there is none. Directly in the body of `Items`."""


NEXT = "next."  # prefix of what is bound for the item that follows


@dataclass(frozen=True, kw_only=True)
class NextItem(Step):
    """Bind what is known of the item that follows, in joined `Items`: `item.follows` is 1 if there is one, else 0, and
    `next.b`, `next.i.lo`, ... are its grid indices, or this item's own if there is none."""


@dataclass(frozen=True, kw_only=True)
class Begun(Step):
    """Whether the item that follows has been begun in this one, 0 or 1: its `item.begun`. The ring positions say the rest."""

    value: Poly


@dataclass(frozen=True, kw_only=True)
class Let(Step):
    """Bind an integer for the rest of the item."""

    name: str
    value: Poly


@dataclass(frozen=True, kw_only=True)
class Read(Step):
    """Bind an integer that elements of input tensors say, for the rest of the item: the largest of `low` and the lesser of
    `high` and `value`, the sum that holds them. It is the same for all roles, whatever it is: nothing else is known of it. What
    is read in a loop steers nothing."""

    name: str
    value: Poly
    low: Poly
    high: Poly


@dataclass(frozen=True, kw_only=True)
class Loop(Step):
    """for var in [start, stop) in steps of `step`. `mask` says which mask class the copy was made for (text only)."""

    var: str
    start: Poly
    stop: Poly
    mask: str = ""
    step: int = 1
    body: tuple[Step, ...] = region()


@dataclass(frozen=True, kw_only=True)
class If(Step):
    """Uniform branch. `cond` is an `Affine`, a conjunction of them, or `Scalar(flag)`."""

    cond: Expr
    then: tuple[Step, ...] = region()
    other: tuple[Step, ...] = region()


@dataclass(frozen=True, kw_only=True)
class Elect(Step):
    """One thread of the warpgroup (thread 0)."""

    body: tuple[Step, ...] = region()


@dataclass(frozen=True, kw_only=True)
class Registers(Step):
    """setmaxnreg: `inc` or `dec` to `count` registers a thread, by the whole warpgroup. First step of a role."""

    count: int
    direction: str


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A stage of a ring relative to this role's position: `lag` stages before it."""

    ring: str
    lag: int = 0


@dataclass(frozen=True, kw_only=True)
class Wait(Step):
    """Wait until the phase of `barrier[part, slot]` with this parity has completed: the position's phase, flipped if
    `flip` (a producer's wait for an empty slot, which passes at once on a fresh barrier)."""

    barrier: str
    part: Poly
    slot: Slot
    flip: bool = False


@dataclass(frozen=True, kw_only=True)
class Expect(Step):
    """One arrival on a full barrier that also adds `nbytes` to what its phase waits for. By one thread."""

    barrier: str
    part: Poly
    slot: Slot
    nbytes: int


@dataclass(frozen=True, kw_only=True)
class Arrive(Step):
    """Plain arrival. by: `warps` = lane 0 of each of the warpgroup's 4 warps; `thread` = the elected thread, `count` times."""

    barrier: str
    part: Poly
    slot: Slot
    by: str = "warps"
    count: int = 1


@dataclass(frozen=True, kw_only=True)
class Advance(Step):
    """Move this role's position in the ring to the next stage, or by several (0 or more)."""

    ring: str
    stages: Poly = ONE


@dataclass(frozen=True, kw_only=True)
class Tma(Step):
    """Asynchronous bulk copy global -> shared: box at `coords` (one per map dim) into the tile of `buffer[part, slot]`,
    starting at its panel `panel`; where boxes bring `parts` equal parts of a panel's rows, into those of part `rows_part`. On
    arrival it takes its whole box's bytes off `barrier[barrier_part, slot]`."""

    buffer: str
    part: Poly
    slot: Slot
    map: str
    coords: tuple[Poly, ...]
    barrier: str
    barrier_part: Poly
    panel: int = 0
    parts: int = 1
    rows_part: int = 0


@dataclass(frozen=True, kw_only=True)
class CopyAsync(Step):
    """Copies of all threads of the role, 16 bytes each: the tensor's elements at `access`, with rows.index and cols.index
    substituted, to buffer[part, slot]. They arrive any time until the thread waits for them. Elements outside the tensor's
    shape become 0."""

    buffer: str
    part: Poly
    slot: Slot
    tensor: str
    access: tuple[Poly, ...]
    rows: Axis
    cols: Axis


@dataclass(frozen=True, kw_only=True)
class CommitCopies(Step):
    """cp.async.commit_group: closes the group of copies that this thread has issued since the last one."""


@dataclass(frozen=True, kw_only=True)
class WaitCopies(Step):
    """cp.async.wait_group: at most `pending` groups of this thread's copies not yet arrived."""

    pending: int


@dataclass(frozen=True, kw_only=True)
class SmemOperand:
    """A tile in shared memory as a matrix operand. major: `K` (columns run along K) or `MN`."""

    buffer: str
    part: Poly
    slot: Slot
    major: str


@dataclass(frozen=True, kw_only=True)
class RegOperand:
    """An `operand` value as the A operand."""

    value: str


@dataclass(frozen=True, kw_only=True)
class Wgmma(Step):
    """acc[64, n] (+)= A[64, k] x B[k, n] of one warpgroup, asynchronously: k / 16 instructions (32 for 8-bit types).

    `zero`: where this holds, the old content of acc is ignored (scale-d false in the first instruction).
    """

    acc: str
    a: SmemOperand | RegOperand
    b: SmemOperand
    n: int
    k: int
    dtype: DType
    zero: Expr


@dataclass(frozen=True, kw_only=True)
class Mma(Step):
    """acc[rows, n] (+)= A[rows, k] x B[k, n], a quarter of the rows by each warp, at once: all 16-row blocks of the warp, n / 8
    and k / 16 instructions. `zero`: where this holds, the old content of acc is ignored."""

    acc: str
    a: SmemOperand | RegOperand
    b: SmemOperand
    n: int
    k: int
    dtype: DType
    zero: Expr


@dataclass(frozen=True, kw_only=True)
class FenceWgmma(Step):
    """wgmma.fence: registers written by the warpgroup are visible to the products that follow."""


@dataclass(frozen=True, kw_only=True)
class Commit(Step):
    """wgmma.commit_group: closes the group of products issued since the last one."""


@dataclass(frozen=True, kw_only=True)
class WaitGroup(Step):
    """wgmma.wait_group: at most `pending` groups of this warpgroup still in flight. `values` are accumulators now ready."""

    pending: int
    values: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FenceAsync(Step):
    """fence.proxy.async: this thread's writes to shared memory become visible to the async proxy (TMA, wgmma)."""


@dataclass(frozen=True, kw_only=True)
class BarSync(Step):
    """Named barrier: arrive and wait for `threads` in all."""

    id: Poly
    threads: int


@dataclass(frozen=True, kw_only=True)
class Classify(Step):
    """Whether a condition holds at `some` element of a tile, and at `every` one: two flags, which each warp sets by its own
    share of the rows. Rows beyond the extent of their index don't count. Leaves of `cond`: as those of a `MapOp`, but for
    registers."""

    some: str
    every: str
    cond: Expr
    rows: Axis
    cols: Axis


@dataclass(frozen=True, kw_only=True)
class ListTile(BarSync):
    """The warps of a role meet at a named barrier, twice, and agree on a tile: if the flag `some` holds in one of them, the
    tile is the next of a list: the count goes up by 1 in all warps, and one thread stores 2 * `tile` + 1 (+ 0 if the flag
    `every` doesn't hold in all of them) in the tensor, at `access` and the count."""

    some: str
    every: str
    count: str
    tensor: str
    access: tuple[Poly, ...]
    tile: Poly


@dataclass(frozen=True, kw_only=True)
class Tally(Step):
    """One thread of the role stores a count in the tensor at `access`."""

    tensor: str
    access: tuple[Poly, ...]
    count: str


@dataclass(frozen=True, kw_only=True)
class BarArrive(Step):
    """Named barrier: arrive without waiting."""

    id: Poly
    threads: int


@dataclass(frozen=True, kw_only=True)
class Axis:
    """An axis of a register tile: program index, its first element, and how many elements."""

    index: str
    origin: Poly
    count: int


@dataclass(frozen=True, kw_only=True)
class MapOp:
    """dst = expr, elementwise. `cols` None: dst is a row value. Leaves: Reg (tile, elements or row values), Scalar, IndexValue,
    Affine, Load (global memory at an access map; outside the tensor's shape it reads 0). dst may occur in expr.
    `when`: a flag; the warps in which it doesn't hold leave dst as it is."""

    dst: str
    expr: Expr
    rows: Axis
    cols: Axis | None = None
    when: str | None = None

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """What it reads."""
        return (self.expr, *((Reg(name=self.when),) if self.when else ()))


@dataclass(frozen=True, kw_only=True)
class ReduceOp:
    """Row value dst = op(start, op over cols of src). op: sum, max, min. `start` is a row expression or None (identity).

    lanes `full`: combined over the 4 lanes of the quad (dst isn't partial). lanes `partial`: each lane keeps the share of
    its own columns; then the `start` of a sum must be partial too, that of a maximum or minimum may count in every lane.
    """

    dst: str
    op: str
    src: Expr
    start: Expr | None
    rows: Axis
    cols: Axis
    lanes: str = "full"

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """What it reads."""
        return (self.src, *((self.start,) if self.start is not None else ()))


@dataclass(frozen=True, kw_only=True)
class VoteOp:
    """Flag dst = `cond`, an expression of row values, holds in a row of the warp at least (for partial values: in a lane)."""

    dst: str
    cond: Expr
    rows: Axis

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """What it reads."""
        return (self.cond,)


OUTWEIGHS = 2.0  # of a lane's share of a row's sum: one summand is half of the row so far, a third of it from then on
FAR = 1024.0  # of r * c: from where `(x - r) * c` subtracts before it scales. Below, r * c is rounded by 2^-14 at most


@dataclass(frozen=True, kw_only=True)
class RoomOp:
    """Row value dst = max(-limit, min(0, -log2(total * weight))), by each lane for its own share of `total`: how far, as a
    power of two, the reference that the sum `total` is scaled to may stay behind.

    A summand above the reference is rounded to its operand's type; one that is the maximum itself is 1, and exact. In a row
    that hangs on one summand the difference would show, so the reference moves before one can outweigh the sum so far. Beside
    it the second largest, which is rounded in any case, can have half of the row. Rows
    in which `far` holds have an infinite dst: there nothing stays as it is.
    """

    dst: str
    total: str
    limit: float
    rows: Axis
    far: Expr | None = None
    when: str | None = None
    weight: float = OUTWEIGHS

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """What it reads."""
        return (*(Reg(name=n) for n in (self.total, self.when) if n), *(e for e in (self.far,) if e is not None))


@dataclass(frozen=True, kw_only=True)
class CompleteOp:
    """Turn a partial row value into a full one: combine the quad's lanes. `when`: a flag; other warps leave it as it is."""

    value: str
    op: str
    when: str | None = None

    @property
    def dst(self) -> str:
        """What it writes."""
        return self.value

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """What it reads."""
        return tuple(Reg(name=n) for n in (self.value, self.when) if n)


Op = MapOp | ReduceOp | VoteOp | RoomOp | CompleteOp


@dataclass(frozen=True, kw_only=True)
class Compute(Step):
    """Elementwise maths and row reductions on registers, in order."""

    ops: tuple[Op, ...]


@dataclass(frozen=True, kw_only=True)
class Pack(Step):
    """Operand registers dst = src (a tile value) rounded to dst's dtype, as A fragments. One of 8 bits has its columns in
    order if its tile has them in the order v8, else in the order of `v8_operand`: no element goes to another thread."""

    dst: str
    src: str


@dataclass(frozen=True, kw_only=True)
class Move(Step):
    """Registers dst = src, two values of the same kind and size."""

    dst: str
    src: str


@dataclass(frozen=True, kw_only=True)
class Zero(Step):
    """Set a tile value or a count to 0."""

    value: str


@dataclass(frozen=True, kw_only=True)
class Forget(Step):
    """What a tile value holds is of no use any more: its registers are free until it is written again."""

    value: str


@dataclass(frozen=True, kw_only=True)
class StoreShared(Step):
    """Round a tile value to the buffer's dtype and write it to buffer[part, slot], swizzled (stmatrix)."""

    buffer: str
    part: Poly
    slot: Slot
    src: str


@dataclass(frozen=True, kw_only=True)
class ReadShared(Step):
    """An `elements` value dst = the tile buffer[part, slot], each thread those that lie where its accumulators do."""

    dst: str
    buffer: str
    part: Poly
    slot: Slot


@dataclass(frozen=True, kw_only=True)
class Transpose(Step):
    """buffer[part, slot] = the tile origin[origin_part, origin_slot] of 8-bit elements with its rows as columns, by all threads
    of the warpgroup: a warp writes 16 rows of each 64. The columns come in the order of `v8_operand` (`targets/wgmma.py`), in
    which an operand has them that is made of a result with its columns in order."""

    buffer: str
    part: Poly
    slot: Slot
    origin: str
    origin_part: Poly
    origin_slot: Slot

    @property
    def read(self) -> SmemOperand:
        """What it reads."""
        return SmemOperand(buffer=self.origin, part=self.origin_part, slot=self.origin_slot, major="MN")


@dataclass(frozen=True, kw_only=True)
class TmaStore(Step):
    """Asynchronous bulk copy shared -> global from buffer[part, slot], panel `panel`. By one thread (inside `Elect`). `add`:
    f32 elements are added to what is there, each in one piece, in no order."""

    buffer: str
    part: Poly
    slot: Slot
    map: str
    coords: tuple[Poly, ...]
    panel: int = 0
    add: bool = False


@dataclass(frozen=True, kw_only=True)
class CommitStore(Step):
    """cp.async.bulk.commit_group (inside `Elect`)."""


@dataclass(frozen=True, kw_only=True)
class WaitStore(Step):
    """cp.async.bulk.wait_group[.read]: at most `pending` groups of this thread unfinished (read: not yet read from smem)."""

    pending: int
    read: bool = True


@dataclass(frozen=True, kw_only=True)
class CopyOut(Step):
    """All 128 threads copy buffer[part, slot] to the tensor where rows and columns are in range: element (row, col) of the tile
    goes to `access` with rows.index and cols.index substituted. `wide`: 16 bytes at once, which the tensor's rows have to
    suit; else element by element. `add`: see `TmaStore`. `limit`: rows end before this one, and not where their index does."""

    buffer: str
    part: Poly
    slot: Slot
    tensor: str
    access: tuple[Poly, ...]
    rows: Axis
    cols: Axis
    add: bool = False
    wide: bool = False
    limit: Poly | None = None


@dataclass(frozen=True, kw_only=True)
class StoreGlobal(Step):
    """Round `value` (an expression of registers) to the tensor's dtype and store it at `access`, where the row (and
    column) index lies inside its extent. A row value is stored by one lane of each quad. `add`: see `TmaStore`; `by`: what is
    there and the value come together by their sum, or by the max or min of both. `limit`: see `CopyOut`."""

    tensor: str
    access: tuple[Poly, ...]
    value: Expr
    rows: Axis
    cols: Axis | None = None
    add: bool = False
    by: str = "sum"
    limit: Poly | None = None


@dataclass(frozen=True, kw_only=True)
class ClearRows(Step):
    """Generic-proxy write of zeros to rows [start, stop) of buffer[part, slot], clipped to the tile (all 128 threads)."""

    buffer: str
    part: Poly
    slot: Slot
    start: Poly
    stop: Poly


# Roles and kernels.


@dataclass(frozen=True, kw_only=True)
class Role:
    """`count` warpgroups from warpgroup `first` of the CTA on, all running `steps`."""

    name: str
    first: int
    count: int
    registers: int | None
    elected: bool
    steps: tuple[Step, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class TensorArg:
    """A global tensor: shape in elements (Polys of dims), dtype, whether it is written. `temporary`: the run time allocates it
    for the call, and it passes from one kernel to a later one."""

    name: str
    dtype: DType
    shape: tuple[Poly, ...]
    written: bool
    temporary: bool = False


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One kernel. `index_extents`: program index -> extent, for range guards. `resident`: how many of its CTAs an SM's
    registers are to hold at once. `v8`: the index along which columns of register tiles lie in the order v8
    (`targets/wgmma.py`), so that a tile is an 8-bit operand as it stands; None if there is none."""

    name: str
    program: str
    schedule: str
    target: str
    grid: Grid
    threads: int
    roles: tuple[Role, ...]
    rings: tuple[Ring, ...]
    buffers: tuple[Buffer, ...]
    barriers: tuple[Barrier, ...]
    values: tuple[Value, ...]
    maps: tuple[TensorMap, ...]
    tensors: tuple[TensorArg, ...]
    params: tuple[Param, ...]
    index_extents: dict[str, Poly]
    shared_bytes: int
    named_barriers: tuple[tuple[str, int, int], ...] = ()  # (what for, first id, count)
    resident: int = 1
    v8: str | None = None

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)

    def ring(self, name: str) -> Ring:
        return next(r for r in self.rings if r.name == name)

    def barrier(self, name: str) -> Barrier:
        return next(b for b in self.barriers if b.name == name)

    def value(self, name: str) -> Value:
        return next(v for v in self.values if v.name == name)

    def tensor(self, name: str) -> TensorArg:
        return next(t for t in self.tensors if t.name == name)

    def map(self, name: str) -> TensorMap:
        return next(m for m in self.maps if m.name == name)


@dataclass(frozen=True, kw_only=True)
class RoleProgram:
    """All kernels of one schedule, in launch order."""

    program: str
    schedule: str
    target: str
    kernels: tuple[Kernel, ...]
    roundings: tuple[str, ...] = ()  # every value that placement rounds, in words


def exprs(step: Step) -> list[Expr]:
    """The expressions that a step evaluates on elements."""
    if isinstance(step, Compute):
        return [e for op in step.ops for e in op.exprs]
    if isinstance(step, Classify):
        return [step.cond]
    return [step.value] if isinstance(step, StoreGlobal) else []


def walk(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Every step, parents first."""
    for s in steps:
        yield s
        for b in s.blocks():
            yield from walk(b)

"""Role programs for sm_80, step for step: a role whose warps copy, multiply at once, and store. Products of 64 x 16 tiles for
each group of four warps.

Without a chain C[i] = sum of A[i, t] B0[t]' over the item's tiles (Q[i] in place of A without `pair`); with one C[i] = sum of
f16(Q[i] B0[t]' / 2) B1[t]'. A group of copies is committed in every round, also where nothing is left to copy, so that waits
count the same in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.agreement.shapes import RingShape
from wgdsl.foundation.dtypes import F16, F32, I32
from wgdsl.program.expr import FALSE, TRUE, Affine, Apply, Const, Reg
from wgdsl.program.poly import Poly, ceildiv
from wgdsl.roles import model as m
from wgdsl.roles.model import Axis, Slot, Step

ROWS, COLS = 64, 16
ZERO, WG, T, N = Poly(), Poly.of("wg"), Poly.of("t"), Poly.of("k.n")
ELEMENT = Poly.of("i"), Poly.of("e")
ROLE, OWN = 1, 2  # named barriers: of the role, and of each group of four warps


@dataclass(frozen=True, kw_only=True)
class Copying:
    """`groups`: of four warps. `ahead`: tiles that are copied before the one that is read. `early`: a tile is copied in front
    of the wait for the one that is read, else behind it. `apart`: each operand's copies are a group of their own. `store`:
    from registers, staged in shared memory, or over Q."""

    groups: int = 1
    stages: int = 2
    ahead: int = 1
    early: bool = False
    apart: bool = False
    pair: bool = True
    chain: str = ""
    store: str = "registers"
    persistent: bool = False

    # What the oracle asks of shapes.
    trips = "dim"
    skip = ""

    @property
    def warpgroups(self) -> int:
        return self.groups

    @property
    def rings(self) -> tuple[RingShape, ...]:
        return (RingShape(stages=self.stages, pair=self.pair),) * (2 if self.chain else 1)

    @property
    def has_q(self) -> bool:
        return bool(self.chain) or not self.pair

    @property
    def split(self) -> bool:
        """Whether a round commits more than one group."""
        return self.apart and (bool(self.chain) or self.pair)

    @property
    def operands(self) -> tuple[tuple[str, str], ...]:
        """Tensors that are streamed, and their rings."""
        if self.chain:
            return ("B0", "R0"), ("B1", "R1")
        return (("A0", "R0"), ("B0", "R0")) if self.pair else (("B0", "R0"),)

    @property
    def together(self) -> m.BarSync:
        return m.BarSync(id=Poly.of(ROLE), threads=128 * self.groups)


def build(s: Copying) -> m.RoleProgram:
    """The program of a shape."""
    buffers, rings = declared(s)
    tensors = [arg(x, "M" if x in ("Q", "A0") else COLS, "K" if x in ("A0", "B0", "B1") else COLS) for x in named(s)]
    rows = ROWS * s.groups
    kernel = m.Kernel(
        name="copying", program="copying", schedule="by_hand", target="sm_80",
        grid=m.Grid(
            axes=(m.GridAxis(index="i", tile=rows, blocks=ceildiv(Poly.of("M"), rows)),), persistent=s.persistent
        ),
        threads=128 * s.groups,
        roles=(m.Role(name="math", first=0, count=s.groups, registers=None, elected=False, steps=(m.Items(body=body(s)),)),),
        rings=rings, buffers=buffers, barriers=(), values=tuple(values(s)), maps=(),
        tensors=(*tensors, m.TensorArg(name="C", dtype=F32, shape=(Poly.of("M"), Poly.of(COLS)), written=True)),
        params=(
            *(p for t in (*named(s), "C") for p in pointers(t)),
            *(m.Param(kind="dim", name=d, dtype=I32) for d in ("M", "K")),
        ),
        index_extents={"i": Poly.of("M"), "e": Poly.of(COLS), "k": Poly.of("K")},
        shared_bytes=max(b.offset + b.total_bytes for b in buffers),
    )  # fmt: skip
    return m.RoleProgram(program="copying", schedule="by_hand", target="sm_80", kernels=(kernel,))


# Declarations.


def named(s: Copying) -> tuple[str, ...]:
    """The tensors that are read."""
    return (*(("Q",) if s.has_q else ()), *(t for t, _ in s.operands))


def arg(name: str, rows: str | int, cols: str | int) -> m.TensorArg:
    return m.TensorArg(name=name, dtype=F16, shape=(Poly.of(rows), Poly.of(cols)), written=False)


def pointers(tensor: str) -> Iterator[m.Param]:
    yield m.Param(kind="pointer", name=tensor, tensor=tensor, dtype=F32 if tensor == "C" else F16)
    yield from (m.Param(kind="stride", name=f"{tensor}.stride{k}", tensor=tensor, axis=k) for k in range(2))


def declared(s: Copying) -> tuple[tuple[m.Buffer, ...], tuple[m.Ring, ...]]:
    buffers: list[m.Buffer] = []

    def buffer(name: str, ring: str, rows: int, stages: int, parts: int = 1, over: int | None = None) -> None:
        end = max((b.offset + b.total_bytes for b in buffers), default=0)
        buffers.append(
            m.Buffer(name=f"{name}s", tensor=name, dtype=F16, rows=rows, cols=COLS, rows_index="i", cols_index="k", swizzle=32,
                     ring=ring, parts=parts, stages=stages, offset=end if over is None else over,
                     over=None if over is None else "Qs")
        )  # fmt: skip

    if s.has_q:
        buffer("Q", "Q", ROWS, 1, s.groups)
    for tensor, ring in s.operands:
        left = tensor == "A0"
        buffer(tensor, ring, ROWS if left else COLS, s.stages, s.groups if left else 1)
    if s.store != "registers":
        buffer("C", "C", ROWS, 1, s.groups, 0 if s.store == "over" else None)
    names = dict.fromkeys(b.ring for b in buffers)
    of = {r: tuple(b for b in buffers if b.ring == r) for r in names}
    return tuple(buffers), tuple(m.Ring(name=r, stages=x[0].stages, buffers=tuple(b.name for b in x)) for r, x in of.items())


def values(s: Copying) -> Iterator[m.Value]:
    yield m.Value(name="O", role="math", kind="tile", dtype=F32, cols=COLS)
    if s.chain:
        yield m.Value(name="S", role="math", kind="tile", dtype=F32, cols=COLS)
        yield m.Value(name="P", role="math", kind="operand", dtype=F16, cols=COLS)


# Steps.


def body(s: Copying) -> tuple[Step, ...]:
    q = tuple(copy("Q", "Q", w, ZERO, ROWS) for w in range(s.groups)) if s.has_q else ()
    prologue = tuple(x for e in range(s.ahead) for x in fill(s, Poly.of(e)))
    end = (s.together,) if s.persistent else ()
    return (
        m.Let(name="k.n", value=ceildiv(Poly.of("K"), COLS)),
        *((*q, m.CommitCopies()) if q else ()),
        *prologue,
        m.Zero(value="O"),
        m.Loop(var="t", start=ZERO, stop=N, body=tuple(steady(s))),
        *stored(s),
        *end,
    )


def copy(tensor: str, ring: str, part: int, tile: Poly, rows: int) -> m.CopyAsync:
    """A tile of a tensor, 16 columns from `tile`'s first on."""
    origin = Poly.of("i.lo") + ROWS * part if rows == ROWS else ZERO
    return m.CopyAsync(
        buffer=f"{tensor}s", part=Poly.of(part), slot=Slot(ring=ring), tensor=tensor, access=(Poly.of("i"), Poly.of("k")),
        rows=Axis(index="i", origin=origin, count=rows), cols=Axis(index="k", origin=COLS * tile, count=COLS),
    )  # fmt: skip


def fill(s: Copying, t: Poly) -> Iterator[Step]:
    """Copy tile t, if there is one."""
    there = Affine(poly=N - 1 - t)
    for k, (tensor, ring) in enumerate(s.operands):
        left = tensor == "A0"
        parts = range(s.groups if left else 1)
        yield m.If(cond=there, then=tuple(copy(tensor, ring, p, t, ROWS if left else COLS) for p in parts))
        if s.split or k + 1 == len(s.operands):
            yield m.CommitCopies()
    yield from (m.Advance(ring=r) for r in dict.fromkeys(ring for _, ring in s.operands))


def steady(s: Copying) -> Iterator[Step]:
    """Round t."""
    each = len(s.operands) if s.split else 1
    if s.early:
        yield from (s.together,) if s.stages < s.ahead + 2 else ()
        yield from fill(s, T + s.ahead)
    yield m.WaitCopies(pending=each * (s.ahead if s.early else s.ahead - 1))
    yield s.together
    if not s.early:
        yield from fill(s, T + s.ahead)
    yield from chain(s) if s.chain else (product(s, "R0", "O"),)


def product(s: Copying, ring: str, acc: str, left: str = "") -> m.Mma:
    slot = Slot(ring=ring, lag=s.ahead + 1)
    own = ("A0s", slot) if s.pair and not s.chain else ("Qs", Slot(ring="Q"))
    a = m.RegOperand(value=left) if left else m.SmemOperand(buffer=own[0], part=WG, slot=own[1], major="K")
    b = m.SmemOperand(buffer=f"B{ring[1]}s", part=ZERO, slot=slot, major="K")
    return m.Mma(acc=acc, a=a, b=b, n=COLS, k=COLS, dtype=F16, zero=TRUE if acc == "S" else FALSE)


def chain(s: Copying) -> Iterator[Step]:
    """S = Q K', P = f16(S / 2), O += P V'."""
    half = Apply(fn="mul", args=(Reg(name="S"), Const(value=0.5)))
    yield product(s, "R0", "S")
    yield m.Compute(ops=(m.MapOp(dst="S", expr=half, rows=own_rows(), cols=columns()),))
    yield m.Pack(dst="P", src="S")
    yield product(s, "R1", "O", "P")


def own_rows() -> Axis:
    return Axis(index="i", origin=Poly.of("i.lo") + ROWS * WG, count=ROWS)


def columns() -> Axis:
    return Axis(index="e", origin=ZERO, count=COLS)


def stored(s: Copying) -> Iterator[Step]:
    yield m.WaitCopies(pending=0)
    if s.store == "registers":
        yield m.StoreGlobal(tensor="C", access=ELEMENT, value=Reg(name="O"), rows=own_rows(), cols=columns())
        return
    if s.store == "over":
        yield s.together
    slot, own = Slot(ring="C"), {"buffer": "Cs", "part": WG}
    yield m.StoreShared(**own, slot=slot, src="O")
    yield m.BarSync(id=OWN + WG, threads=128)
    yield m.CopyOut(**own, slot=slot, tensor="C", access=ELEMENT, rows=own_rows(), cols=columns())

"""Role programs of a shape, step for step: products of 64 x 16 tiles, one or two loaders, one to four warpgroups of consumers.

Without a chain C[i] = sum of A_r[i, t] B_r[t]' over the rings and the item's live tiles (Q[i] in place of A_r in a ring that
holds one operand); with one C[i] = sum of f16(Q[i] B_0[t]' / 2) B_1[t]'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.agreement.shapes import Shape
from wgdsl.foundation.dtypes import F16, F32, I32, DType
from wgdsl.program.expr import FALSE, TRUE, Affine, Apply, Const, Expr, Reg
from wgdsl.program.poly import Poly, ceildiv, floordiv, maximum, minimum, mod
from wgdsl.roles import model as m
from wgdsl.roles.model import Slot, Step

ROWS, COLS = 64, 16
ZERO, WG, T, N, LIVE = Poly(), Poly.of("wg"), Poly.of("t"), Poly.of("k.n"), Poly.of("k.live")
A_BYTES, B_BYTES = ROWS * COLS * 2, COLS * COLS * 2
TURNS, OWN, STAGING, ROLE = 1, 5, 9, 13  # named barriers: one for each warpgroup, or (the last) for each role


def at_least(p: Poly, least: int) -> Affine:
    return Affine(poly=p - least)


def build(s: Shape) -> m.RoleProgram:
    """The program of a shape."""
    buffers, rings, barriers = declared(s)
    end = max(b.offset + b.total_bytes for b in buffers)
    placed = []
    for b in barriers:
        placed.append(replace(b, offset=end))
        end += 8 * b.parts * b.stages
    pairs = list(tensors(s))
    roles = list(all_roles(s))
    direct = s.store == "registers"
    kernel = m.Kernel(
        name="random",
        program="random",
        schedule="by_chance",
        target="sm_90a",
        grid=m.Grid(
            axes=(m.GridAxis(index="i", tile=ROWS * s.warpgroups, blocks=ceildiv(Poly.of("M"), ROWS * s.warpgroups)),),
            persistent=s.persistent,
        ),
        threads=128 * sum(r.count for r in roles),
        roles=tuple(roles),
        rings=rings,
        buffers=buffers,
        barriers=tuple(placed),
        values=tuple(values(s)),
        maps=tuple(x for _, x in pairs if x is not None),
        tensors=tuple(t for t, _ in pairs),
        params=(
            *(m.Param(kind="map", name=x.name, tensor=x.tensor) for _, x in pairs if x is not None),
            *((m.Param(kind="pointer", name="C", tensor="C", dtype=F32),) if direct else ()),
            *(m.Param(kind="stride", name=f"C.stride{k}", tensor="C", axis=k) for k in range(2 if direct else 0)),
            *(m.Param(kind="dim", name=d, dtype=I32) for d in ("M", "K")),
        ),
        index_extents={"i": Poly.of("M"), "e": Poly.of(COLS), "k": Poly.of("K")},
        shared_bytes=end,
    )
    return m.RoleProgram(program="random", schedule="by_chance", target="sm_90a", kernels=(kernel,))


# Declarations.


def declared(s: Shape) -> tuple[tuple[m.Buffer, ...], tuple[m.Ring, ...], list[m.Barrier]]:
    buffers: list[m.Buffer] = []
    rings: list[m.Ring] = []
    barriers: list[m.Barrier] = []

    def buffer(name: str, tensor: str, rows: int, ring: str, stages: int, parts: int = 1) -> None:
        at = buffers[-1].offset + buffers[-1].total_bytes if buffers else 0
        buffers.append(
            m.Buffer(name=name, tensor=tensor, dtype=F16, rows=rows, cols=COLS, rows_index="i", cols_index="k", swizzle=32,
                     ring=ring, parts=parts, stages=stages, offset=at)
        )  # fmt: skip

    def ring(name: str, stages: int, names: tuple[str, ...], empty: int, parts: int = 1) -> None:
        for end, count in (("full", 1), ("empty", empty)):
            barriers.append(m.Barrier(name=f"{name}.{end}", ring=name, count=count, parts=parts, stages=stages))
        rings.append(m.Ring(name=name, stages=stages, buffers=names, full=f"{name}.full", empty=f"{name}.empty"))

    if s.has_q:
        buffer("Qs", "Q", ROWS, "Qs", s.q_stages, s.warpgroups)
        ring("Qs", s.q_stages, ("Qs",), 1 if s.store == "over" else 4, s.warpgroups)
    for r, x in enumerate(s.rings):
        if x.pair:
            buffer(f"A{r}s", f"A{r}", ROWS, f"R{r}", x.stages, s.warpgroups)
        buffer(f"B{r}s", f"B{r}", COLS, f"R{r}", x.stages)
        count = {"warps": 4 * s.warpgroups, "thread": s.warpgroups, "role": len(s.roles)}[s.release]
        ring(f"R{r}", x.stages, (*((f"A{r}s",) if x.pair else ()), f"B{r}s"), count)
    if s.store == "staged":
        buffer("Cs", "C", ROWS, "Cs", 1, s.warpgroups)
        rings.append(m.Ring(name="Cs", stages=1, buffers=("Cs",)))
    if s.store == "over":
        buffers.append(replace(buffers[0], name="Cs", tensor="C", ring="Cs", over="Qs"))
        rings.append(m.Ring(name="Cs", stages=s.q_stages, buffers=("Cs",)))
    return tuple(buffers), tuple(rings), barriers


def tensors(s: Shape) -> Iterator[tuple[m.TensorArg, m.TensorMap | None]]:
    if s.has_q:
        yield _matrix("Q", "M", COLS, ROWS)
    for r, x in enumerate(s.rings):
        if x.pair:
            yield _matrix(f"A{r}", "M", "K", ROWS)
        yield _matrix(f"B{r}", COLS, "K", COLS)
    c, c_map = _matrix("C", "M", COLS, ROWS, F32 if s.store == "registers" else F16)
    yield replace(c, written=True), None if s.store == "registers" else c_map


def _matrix(name: str, rows: str | int, cols: str | int, box_rows: int, dtype: DType = F16):
    shape = (Poly.of(rows), Poly.of(cols))
    dims = (m.MapDim(axis=1, extent=shape[1]), m.MapDim(axis=0, extent=shape[0]))
    arg = m.TensorArg(name=name, dtype=dtype, shape=shape, written=False)
    return arg, m.TensorMap(name=name, tensor=name, dtype=dtype, dims=dims, box=(COLS, box_rows), swizzle=32)


def values(s: Shape) -> Iterator[m.Value]:
    for k in range(len(s.roles)):
        yield m.Value(name="O", role=f"math{k}", kind="tile", dtype=F32, cols=COLS)
        if s.chain:
            yield m.Value(name="S", role=f"math{k}", kind="tile", dtype=F32, cols=COLS)
            yield m.Value(name="P", role=f"math{k}", kind="operand", dtype=F16, cols=COLS)


def all_roles(s: Shape) -> Iterator[m.Role]:
    first = 0

    def role(name: str, count: int, steps: tuple[Step, ...], elected: bool = False) -> m.Role:
        nonlocal first
        first += count
        return m.Role(name=name, first=first - count, count=count, registers=None, elected=elected, steps=steps)

    for k in range(s.producers):
        items = producer(s, k)
        inside = replace(items, body=(m.Elect(body=items.body),))
        steps = {"role": items, "inside": inside, "around": m.Elect(body=(items,))}[s.loader]
        yield role(f"load{k}", 1, (steps,), s.loader == "role")
    if s.idle:
        yield role("idle", 1, (m.FenceAsync(),))
    base = 0
    for k, count in enumerate(s.roles):
        yield role(f"math{k}", count, _Consumer(s, k, base).steps())
        base += count


def trips(s: Shape) -> tuple[Step, ...]:
    n = ceildiv(Poly.of("K"), COLS)
    if s.trips == "item":
        n = minimum(n, item_number(s) + 1)
    return (m.Let(name="k.n", value=n),)


# Who fills.


def producer(s: Shape, number: int) -> m.Items:
    """Loader `number`: Q and the first ring, the others, or (if it is alone) all."""
    mine = [r for r in range(len(s.rings)) if s.producers == 1 or min(r, 1) == number]
    q = fill_q(s) if s.has_q and number == 0 else ()
    ahead = [r for r in mine if s.rings[r].ahead]
    early = tuple(x for r in ahead for x in fill(s, r, ZERO))
    body: list[Step] = []
    for r in mine:
        more = at_least(N - T, 2)
        body += [m.If(cond=more, then=fill(s, r, T + 1))] if r in ahead else fill(s, r, T)
    begin = (m.If(cond=at_least(N, 1), then=early),) if early else ()
    start = (*begin, *q) if s.q_late else (*q, *begin)
    return m.Items(body=(*trips(s), *start, m.Loop(var="t", start=ZERO, stop=N, body=tuple(body))))


def fill(s: Shape, r: int, t: Poly) -> tuple[Step, ...]:
    full, slot = f"R{r}.full", Slot(ring=f"R{r}")

    def copy(name: str, part: Poly, row: Poly) -> m.Tma:
        return m.Tma(buffer=f"{name}s", part=part, slot=slot, map=name, coords=(COLS * t, row), barrier=full, barrier_part=ZERO)

    left = tuple(copy(f"A{r}", Poly.of(w), Poly.of("i.lo") + ROWS * w) for w in range(s.warpgroups if s.rings[r].pair else 0))
    return (
        m.Wait(barrier=f"R{r}.empty", part=ZERO, slot=slot, flip=True),
        m.Expect(barrier=full, part=ZERO, slot=slot, nbytes=len(left) * A_BYTES + B_BYTES),
        *left,
        copy(f"B{r}", ZERO, ZERO),
        m.Advance(ring=f"R{r}"),
    )


def fill_q(s: Shape) -> tuple[Step, ...]:
    slot = Slot(ring="Qs")
    out: list[Step] = []
    for w in range(s.warpgroups):
        part, row = Poly.of(w), Poly.of("i.lo") + ROWS * w
        out += [
            m.Wait(barrier="Qs.empty", part=part, slot=slot, flip=True),
            m.Expect(barrier="Qs.full", part=part, slot=slot, nbytes=A_BYTES),
            m.Tma(buffer="Qs", part=part, slot=slot, map="Q", coords=(ZERO, row), barrier="Qs.full", barrier_part=part),
        ]
    return (*out, m.Advance(ring="Qs"))


# Who multiplies.


def live_tiles(s: Shape, g: Poly) -> Poly:
    """Of the k.n tiles of an item those that warpgroup g of all reads, where it has loops of its own for the others."""
    if s.skip == "item":
        return minimum(N, item_number(s) + 1)
    return maximum(N - g, 0) if s.skip == "loops" else N


def item_number(s: Shape) -> Poly:
    return floordiv(Poly.of("i.lo"), ROWS * s.warpgroups)


class _Consumer:
    def __init__(self, s: Shape, role: int, base: int):
        self.s, self.role, self.count = s, role, s.roles[role]
        self.g = WG + base  # among all consumers
        self.base = base
        self.row = Poly.of("i.lo") + ROWS * self.g

    def steps(self) -> tuple[Step, ...]:
        s = self.s
        first_turn = m.If(cond=Affine(poly=-WG), then=(m.BarArrive(id=Poly.of(TURNS), threads=256),))
        live = m.Let(name="k.live", value=live_tiles(s, self.g))
        body = (
            *trips(s),
            live,
            *((self.wait("Qs", self.g),) if s.has_q else ()),
            *((m.Zero(value="O"),) if s.clear else ()),
            *(self.where_rows() if s.skip == "rows" else self.tiles()),
            *(self.empty_tiles(LIVE) if s.passes_over else ()),
            *((*self.release_q(),) if s.has_q and s.store != "over" else ()),
            *self.store(),
        )
        return (
            *((first_turn,) if s.turns and self.base == 0 else ()),
            m.Items(body=body),
            *((m.Elect(body=(m.WaitStore(pending=0),)),) if s.store == "staged" else ()),
        )

    def wait(self, ring: str, part: Poly = ZERO) -> Step:
        return m.Wait(barrier=f"{ring}.full", part=part, slot=Slot(ring=ring))

    def release(self, r: int, lag: int = 0) -> tuple[Step, ...]:
        """By the warps; or by one thread, once a barrier says that all are done."""
        event = {"barrier": f"R{r}.empty", "part": ZERO, "slot": Slot(ring=f"R{r}", lag=lag)}
        if self.s.release == "warps":
            return (m.Arrive(**event),)
        by_thread = m.Elect(body=(m.Arrive(**event, by="thread"),))
        if self.s.release == "thread":
            return m.BarSync(id=OWN + self.g, threads=128), by_thread
        leader = by_thread if self.count == 1 else m.If(cond=Affine(poly=-WG), then=(by_thread,))
        return m.BarSync(id=Poly.of(ROLE + self.role), threads=128 * self.count), leader

    def release_q(self) -> tuple[Step, ...]:
        return m.Arrive(barrier="Qs.empty", part=self.g, slot=Slot(ring="Qs")), m.Advance(ring="Qs")

    def turn(self) -> tuple[Step, ...]:
        return (m.BarSync(id=TURNS + self.g, threads=256),) if self.s.turns else ()

    def hand_over(self) -> tuple[Step, ...]:
        return (m.BarArrive(id=TURNS + mod(self.g + 1, self.s.warpgroups), threads=256),) if self.s.turns else ()

    def product(self, r: int, acc: str, zero: Expr, left: str = "") -> m.Wgmma:
        slot = Slot(ring=f"R{r}")
        own = m.SmemOperand(buffer=f"A{r}s", part=self.g, slot=slot, major="K")
        q = m.SmemOperand(buffer="Qs", part=self.g, slot=Slot(ring="Qs"), major="K")
        a = m.RegOperand(value=left) if left else own if self.s.rings[r].pair else q
        b = m.SmemOperand(buffer=f"B{r}s", part=ZERO, slot=slot, major="K")
        return m.Wgmma(acc=acc, a=a, b=b, n=COLS, k=COLS, dtype=F16, zero=zero)

    # The tiles of an item.
    def tiles(self) -> tuple[Step, ...]:
        if self.s.skip == "branch":
            return self.tested()
        main = getattr(self, self.s.chain or "products")()
        otherwise = () if self.s.clear else (m.Zero(value="O"),)
        return (m.If(cond=at_least(LIVE, 1), then=main, other=otherwise),)

    def loop(self, start: int, body: tuple[Step, ...], stop: Poly = LIVE) -> Step:
        return m.Loop(var="t", start=Poly.of(start), stop=stop, body=body)

    def first(self, t: Poly) -> Expr:
        """Whether the old accumulator counts."""
        return FALSE if self.s.clear else Affine(poly=-t)

    def tested(self) -> tuple[Step, ...]:
        """Warpgroup g has nothing to do with the first g tiles."""
        body: list[Step] = []
        for r in range(len(self.s.rings)):
            multiply = (m.FenceWgmma(), self.product(r, "O", FALSE), m.Commit(), m.WaitGroup(pending=0, values=("O",)))
            turn, over = (self.turn(), self.hand_over()) if r == 0 else ((), ())
            live = m.If(cond=Affine(poly=T - self.g), then=multiply)
            body += [self.wait(f"R{r}"), *turn, live, *over, *self.release(r), m.Advance(ring=f"R{r}")]
        return (self.loop(0, tuple(body), N),)

    def where_rows(self) -> tuple[Step, ...]:
        """A warpgroup whose rows all lie past the end frees the slots and does nothing else."""
        rest = (*(() if self.s.clear else (m.Zero(value="O"),)), *self.empty_tiles(ZERO))
        return (m.If(cond=at_least(Poly.of("M") - self.row, 1), then=self.tiles(), other=rest),)

    def empty_tiles(self, start: Poly) -> tuple[Step, ...]:
        body: list[Step] = [*self.turn(), *self.hand_over()]
        for r in range(len(self.s.rings)):
            body += [self.wait(f"R{r}"), *self.release(r), m.Advance(ring=f"R{r}")]
        return (m.Loop(var="t", start=start, stop=N, body=tuple(body)),)

    def products(self) -> tuple[Step, ...]:
        s = self.s
        peeled = self.round(ZERO, 0, last=0) if s.peel else ()
        drain: list[Step] = [m.WaitGroup(pending=0, values=("O",))]
        for e in range(s.depth, 0, -1):
            back = (e - 1) // len(s.rings)
            steps = self.release((-e) % len(s.rings), back + 1)
            drain += steps if back == 0 else (m.If(cond=at_least(LIVE, back + 1), then=steps),)
        return (*peeled, self.loop(1 if s.peel else 0, self.round(T, int(s.peel))), *drain)

    def round(self, t: Poly, before: int, last: int | None = None) -> tuple[Step, ...]:
        """Tile t: each ring's product, then the release of the one `depth` issues ago. `before` tiles have surely gone before,
        and if `last` is given none but these."""
        s, count = self.s, len(self.s.rings)
        out: list[Step] = []
        for r in range(count):
            turn, over = (self.turn(), self.hand_over()) if r == 0 else ((), ())
            product = self.product(r, "O", self.first(t) if r == 0 else FALSE)
            out += [self.wait(f"R{r}"), *turn, m.FenceWgmma(), product, m.Commit(), *over, m.WaitGroup(pending=s.depth)]
            old, back = (r - s.depth) % count, max(0, -((r - s.depth) // count))
            steps = self.release(old, back + (old < r))
            if back <= before:
                out += steps
            elif last is None:
                out.append(m.If(cond=at_least(t, back), then=steps))
            out.append(m.Advance(ring=f"R{r}"))
        return tuple(out)

    # Chains: S = Q K', P = f16(S / 2), O += P V'.
    def scores(self) -> tuple[Step, ...]:
        return self.wait("R0"), *self.turn(), m.FenceWgmma(), self.product(0, "S", TRUE), m.Commit()

    def scale(self) -> Step:
        half = Apply(fn="mul", args=(Reg(name="S"), Const(value=0.5)))
        axes = m.Axis(index="i", origin=self.row, count=ROWS), m.Axis(index="e", origin=ZERO, count=COLS)
        return m.Compute(ops=(m.MapOp(dst="S", expr=half, rows=axes[0], cols=axes[1]),))

    def pack(self) -> Step:
        return m.Pack(dst="P", src="S")

    def second(self, t: Poly) -> tuple[Step, ...]:
        return self.wait("R1"), m.FenceWgmma(), self.product(1, "O", self.first(t), "P"), m.Commit()

    def done(self, r: int, lag: int = 0) -> tuple[Step, ...]:
        return *self.release(r, lag), m.Advance(ring=f"R{r}")

    def plain(self) -> tuple[Step, ...]:
        ready = m.WaitGroup(pending=0, values=("S",)), m.WaitGroup(pending=0, values=("O",))
        first = (*self.scores(), ready[0], *self.done(0), self.scale(), self.pack())
        return (self.loop(0, (*first, *self.second(T), *self.hand_over(), ready[1], *self.done(1))),)

    def deferred(self) -> tuple[Step, ...]:
        """O is awaited under the next scores."""
        before = m.If(cond=at_least(T, 1), then=self.release(1, 1))
        ready = m.WaitGroup(pending=0, values=("S",))
        first = (*self.scores(), m.WaitGroup(pending=1), before, ready, *self.done(0), self.scale(), self.pack())
        body = (*first, *self.second(T), *self.hand_over(), m.Advance(ring="R1"))
        return self.loop(0, body), m.WaitGroup(pending=0, values=("O",)), *self.release(1, 1)

    def overlap(self) -> tuple[Step, ...]:
        """The next scores are issued before O."""
        alone = (
            *self.scores(),
            *self.hand_over(),
            m.WaitGroup(pending=0, values=("S",)),
            *self.done(0),
            self.scale(),
            self.pack(),
        )
        both = (*self.scores(), *self.second(T - 1), *self.hand_over(), m.WaitGroup(pending=1, values=("S",)))
        then = (self.scale(), m.WaitGroup(pending=0, values=("O",)), *self.done(1), self.pack())
        drain = (*self.second(LIVE - 1), m.WaitGroup(pending=0, values=("O",)), *self.done(1))
        return *alone, self.loop(1, (*both, *self.done(0), *then)), *drain

    # The result.
    def store(self) -> tuple[Step, ...]:
        s = self.s
        if s.store == "registers":
            rows, cols = m.Axis(index="i", origin=self.row, count=ROWS), m.Axis(index="e", origin=ZERO, count=COLS)
            return (m.StoreGlobal(tensor="C", access=(Poly.of("i"), Poly.of("e")), value=Reg(name="O"), rows=rows, cols=cols),)
        slot, sync = Slot(ring="Cs"), m.BarSync(id=STAGING + self.g, threads=128)
        write = (m.StoreShared(buffer="Cs", part=self.g, slot=slot, src="O"), m.FenceAsync(), sync)
        send = (m.TmaStore(buffer="Cs", part=self.g, slot=slot, map="C", coords=(ZERO, self.row)), m.CommitStore())
        wait = m.WaitStore(pending=0)
        if s.store == "over":
            free = m.Arrive(barrier="Qs.empty", part=self.g, slot=Slot(ring="Qs"), by="thread")
            return sync, *write, m.Elect(body=(*send, wait, free)), m.Advance(ring="Qs"), m.Advance(ring="Cs")
        if s.store_wait == "before":
            return m.Elect(body=(wait,)), sync, *write, m.Elect(body=send)
        return *write, m.Elect(body=(*send, wait)), sync

"""Role programs written by hand, step for step: a GEMM and an attention. And `edit`, which breaks them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.arithmetic import mul, sub
from wgdsl.foundation.dtypes import BF16, F16, F32, I32
from wgdsl.foundation.source import Source, Span
from wgdsl.program.expr import FALSE, TRUE, Affine, Const, Reg, Scalar, Select, apply, const
from wgdsl.program.poly import Poly, ceildiv, mod
from wgdsl.roles.model import (
    Advance,
    Arrive,
    Axis,
    BarArrive,
    Barrier,
    BarSync,
    Buffer,
    Commit,
    CommitStore,
    CompleteOp,
    Compute,
    Elect,
    Expect,
    FenceAsync,
    FenceWgmma,
    Grid,
    GridAxis,
    If,
    Items,
    Kernel,
    Let,
    Loop,
    MapDim,
    MapOp,
    Pack,
    Param,
    ReduceOp,
    Registers,
    RegOperand,
    Ring,
    Role,
    RoleProgram,
    Slot,
    SmemOperand,
    Step,
    StoreGlobal,
    StoreShared,
    TensorArg,
    TensorMap,
    Tma,
    TmaStore,
    Value,
    Wait,
    WaitGroup,
    WaitStore,
    Wgmma,
    Zero,
)

WG = Poly.of("wg")
ZERO = Poly.of(0)


def P(x: int | str) -> Poly:
    return Poly.of(x)


def positive(p: Poly) -> Affine:
    return Affine(poly=p - 1)


def span(line: int) -> Span:
    """Line `line` of a schedule that these programs pretend to come from."""
    source = Source("hand.wg", "\n" * 50)
    return Span(source, line - 1, line - 1)


def matrix(name: str, rows: str, cols: str, dtype, *, box_rows: int, written: bool = False) -> tuple[TensorArg, TensorMap]:
    """A two-dimensional tensor, and a map that moves one 64-column panel."""
    shape = (P(rows), P(cols))
    dims = (MapDim(axis=1, extent=shape[1]), MapDim(axis=0, extent=shape[0]))
    return (
        TensorArg(name=name, dtype=dtype, shape=shape, written=written),
        TensorMap(name=name, tensor=name, dtype=dtype, dims=dims, box=(64, box_rows), swizzle=128),
    )


# C = A B.


def gemm(*, stages: int = 2, persistent: bool = True) -> RoleProgram:
    """C[i, j] = sum[k] A[i, k] B[k, j], f16 in and out: tiles 128 x 128 x 64, two warpgroups, ring, staged bulk store."""
    n, ring = P("k.n"), Slot(ring="As")
    trips = Let(name="k.n", value=ceildiv(P("K"), 64))
    t = P("t")
    k0 = t * 64
    buffers = (
        Buffer(name="As", tensor="A", dtype=F16, rows=64, cols=64, rows_index="i", cols_index="k", swizzle=128, ring="As",
               parts=2, stages=stages),
        Buffer(name="Bs", tensor="B", dtype=F16, rows=64, cols=128, rows_index="k", cols_index="j", swizzle=128, ring="As",
               stages=stages, offset=16384 * stages),
        Buffer(name="Cs", tensor="C", dtype=F16, rows=64, cols=128, rows_index="i", cols_index="j", swizzle=128, ring="Cs",
               parts=2, offset=32768 * stages),
    )  # fmt: skip
    top = 32768 * (stages + 1)
    fill = (
        Wait(barrier="As.empty", part=ZERO, slot=ring, flip=True, span=span(10)),
        Expect(barrier="As.full", part=ZERO, slot=ring, nbytes=32768, span=span(10)),
        *(
            Tma(buffer="As", part=P(w), slot=ring, map="A", coords=(k0, P("i.lo") + 64 * w), barrier="As.full",
                barrier_part=ZERO, span=span(10))
            for w in range(2)
        ),
        *(
            Tma(buffer="Bs", part=ZERO, slot=ring, map="B", coords=(P("j.lo") + 64 * p, k0), barrier="As.full",
                barrier_part=ZERO, panel=p, span=span(10))
            for p in range(2)
        ),
        Advance(ring="As", span=span(10)),
    )  # fmt: skip
    load = (Registers(count=40, direction="dec"), Items(body=(trips, Loop(var="t", start=ZERO, stop=n, body=fill))))
    product = Wgmma(
        acc="Acc",
        a=SmemOperand(buffer="As", part=WG, slot=ring, major="K"),
        b=SmemOperand(buffer="Bs", part=ZERO, slot=ring, major="MN"),
        n=128,
        k=64,
        dtype=F16,
        zero=Affine(poly=-t),
        span=span(20),
    )
    before = Slot(ring="As", lag=1)
    steady = (
        Wait(barrier="As.full", part=ZERO, slot=ring, span=span(20)),
        FenceWgmma(span=span(20)),
        product,
        Commit(span=span(20)),
        WaitGroup(pending=1, span=span(21)),
        If(cond=positive(t), then=(Arrive(barrier="As.empty", part=ZERO, slot=before, span=span(21)),)),
        Advance(ring="As"),
    )
    drain = (
        WaitGroup(pending=0, values=("Acc",), span=span(22)),
        Arrive(barrier="As.empty", part=ZERO, slot=before, span=span(22)),
    )
    own = Slot(ring="Cs")
    finish = (
        Elect(body=(WaitStore(pending=0, span=span(25)),)),
        BarSync(id=WG + 8, threads=128, span=span(25)),
        StoreShared(buffer="Cs", part=WG, slot=own, src="Acc", span=span(25)),
        FenceAsync(span=span(25)),
        BarSync(id=WG + 8, threads=128, span=span(25)),
        Elect(
            body=(
                *(
                    TmaStore(buffer="Cs", part=WG, slot=own, map="C", coords=(P("j.lo") + 64 * p, P("i.lo") + WG * 64),
                             panel=p, span=span(25))
                    for p in range(2)
                ),
                CommitStore(span=span(25)),
            )
        ),
    )  # fmt: skip
    body = (
        trips,
        Loop(var="t", start=ZERO, stop=n, body=steady),
        If(cond=positive(n), then=drain, other=(Zero(value="Acc"),)),
        *finish,
    )
    math = (
        Registers(count=232, direction="inc"),
        Items(body=body),
        Elect(body=(WaitStore(pending=0, span=span(26)),)),
    )
    maps = (
        matrix("A", "M", "K", F16, box_rows=64),
        matrix("B", "K", "N", F16, box_rows=64),
        matrix("C", "M", "N", F16, box_rows=64, written=True),
    )
    kernel = Kernel(
        name="gemm",
        program="gemm",
        schedule="by_hand",
        target="sm_90a",
        grid=Grid(
            axes=(
                GridAxis(index="i", tile=128, blocks=ceildiv(P("M"), 128)),
                GridAxis(index="j", tile=128, blocks=ceildiv(P("N"), 128)),
            ),
            persistent=persistent,
        ),
        threads=384,
        roles=(
            Role(name="load", first=0, count=1, registers=40, elected=False, steps=(load[0], Elect(body=load[1:]))),
            Role(name="math", first=1, count=2, registers=232, elected=False, steps=math),
        ),
        rings=(
            Ring(name="As", stages=stages, buffers=("As", "Bs"), full="As.full", empty="As.empty"),
            Ring(name="Cs", stages=1, buffers=("Cs",)),
        ),
        buffers=buffers,
        barriers=(
            Barrier(name="As.full", ring="As", count=1, parts=1, stages=stages, offset=top),
            Barrier(name="As.empty", ring="As", count=8, parts=1, stages=stages, offset=top + 8 * stages),
        ),
        values=(Value(name="Acc", role="math", kind="tile", dtype=F32, cols=128),),
        maps=tuple(m for _, m in maps),
        tensors=tuple(t for t, _ in maps),
        params=tuple(Param(kind="map", name=m.name, tensor=m.tensor) for _, m in maps)
        + tuple(Param(kind="dim", name=d, dtype=I32) for d in ("M", "N", "K")),
        index_extents={"i": P("M"), "j": P("N"), "k": P("K")},
        shared_bytes=top + 16 * stages,
        named_barriers=(("Cs of one warpgroup", 8, 2),),
    )
    return RoleProgram(program="gemm", schedule="by_hand", target="sm_90a", kernels=(kernel,), roundings=("C to f16 (output)",))


# O = softmax(Q K^T) V.

INFINITY = const(float("inf"))


def _rows(index: str = "i") -> Axis:
    return Axis(index=index, origin=P("i.lo") + WG * 64, count=64)


def softmax(tile: Poly, *, first: bool) -> Compute:
    """Scores in S become exponentials in S (called P); m, l and the correction c move on."""
    rows, cols = _rows(), Axis(index="j", origin=tile * 64, count=64)
    masked = Select(
        cond=Affine(poly=P("N") - 1 - P("j")), then=mul(Reg(name="S"), Scalar(name="scale")), other=const(float("-inf"))
    )
    ops = [
        MapOp(dst="S", expr=masked, rows=rows, cols=cols),
        ReduceOp(dst="x", op="max", src=Reg(name="S"), start=None if first else Reg(name="m"), rows=rows, cols=cols),
        MapOp(dst="P", expr=apply("exp2", sub(Reg(name="S"), Reg(name="x"))), rows=rows, cols=cols),
    ]
    if not first:
        ops.append(MapOp(dst="c", expr=apply("exp2", sub(Reg(name="m"), Reg(name="x"))), rows=rows))
        ops.append(MapOp(dst="l", expr=mul(Reg(name="l"), Reg(name="c")), rows=rows))
    start = None if first else Reg(name="l")
    ops.append(ReduceOp(dst="l", op="sum", src=Reg(name="P"), start=start, rows=rows, cols=cols, lanes="partial"))
    ops.append(MapOp(dst="m", expr=Reg(name="x"), rows=rows))
    return Compute(ops=tuple(ops), span=span(30))


def attention() -> RoleProgram:
    """One head, D = 64: 128 x 64 tiles, two warpgroups that take turns, the next product under the softmax, O staged in Q.

    The scale is in base 2. Rows past M are clipped; with N = 0 O is 0 and L is -inf.
    """
    n, t = P("j.n"), P("t")
    trips = Let(name="j.n", value=ceildiv(P("N"), 64))
    q, k, v = Slot(ring="Qs"), Slot(ring="Ks"), Slot(ring="Vs")

    def fill(name: str, slot: Slot, part: Poly, row: Poly, line: int) -> tuple[Step, ...]:
        return (
            Wait(barrier=f"{name}.empty", part=part, slot=slot, flip=True, span=span(line)),
            Expect(barrier=f"{name}.full", part=part, slot=slot, nbytes=8192, span=span(line)),
            Tma(buffer=name, part=part, slot=slot, map=name[0], coords=(ZERO, row), barrier=f"{name}.full", barrier_part=part,
                span=span(line)),
        )  # fmt: skip

    load = Items(
        body=(
            trips,
            *fill("Qs", q, ZERO, P("i.lo"), 10),
            *fill("Qs", q, P(1), P("i.lo") + 64, 10),
            Advance(ring="Qs"),
            Loop(
                var="t",
                start=ZERO,
                stop=n,
                body=(
                    *fill("Ks", k, ZERO, t * 64, 11),
                    Advance(ring="Ks"),
                    *fill("Vs", v, ZERO, t * 64, 12),
                    Advance(ring="Vs"),
                ),
            ),
        )
    )

    def smem(name: str, part: Poly, slot: Slot, major: str) -> SmemOperand:
        return SmemOperand(buffer=name, part=part, slot=slot, major=major)

    qk = Wgmma(acc="S", a=smem("Qs", WG, q, "K"), b=smem("Ks", ZERO, k, "K"), n=64, k=64, dtype=BF16, zero=TRUE, span=span(20))
    pv = Wgmma(
        acc="O", a=RegOperand(value="Pr"), b=smem("Vs", ZERO, v, "MN"), n=64, k=64, dtype=BF16, zero=FALSE, span=span(21)
    )

    def wait(name: str, slot: Slot, part: Poly = ZERO) -> Wait:
        return Wait(barrier=f"{name}.full", part=part, slot=slot, span=span(22))

    def release(name: str, slot: Slot) -> tuple[Step, ...]:
        return Arrive(barrier=f"{name}.empty", part=ZERO, slot=slot, span=span(23)), Advance(ring=name, span=span(23))

    prologue = (
        wait("Ks", k),
        FenceWgmma(span=span(20)),
        qk,
        Commit(span=span(20)),
        WaitGroup(pending=0, values=("S",), span=span(24)),
        *release("Ks", k),
        softmax(ZERO, first=True),
        Pack(dst="Pr", src="P", span=span(31)),
    )
    turn = 1 + mod(WG + 1, 2)
    cols = Axis(index="e", origin=ZERO, count=64)
    scaled = MapOp(dst="O", expr=mul(Reg(name="O"), Reg(name="c")), rows=_rows(), cols=cols)
    rescale = Compute(ops=(scaled,), span=span(32))
    steady = (
        wait("Ks", k),
        BarSync(id=WG + 1, threads=256, span=span(19)),
        FenceWgmma(span=span(20)),
        qk,
        Commit(span=span(20)),
        wait("Vs", v),
        replace(pv, zero=Affine(poly=1 - t)),
        Commit(span=span(21)),
        BarArrive(id=turn, threads=256, span=span(19)),
        WaitGroup(pending=1, values=("S",), span=span(24)),
        *release("Ks", k),
        softmax(t, first=False),
        WaitGroup(pending=0, values=("O",), span=span(25)),
        *release("Vs", v),
        Pack(dst="Pr", src="P", span=span(31)),
        rescale,
    )
    drain = (
        wait("Vs", v),
        FenceWgmma(span=span(21)),
        replace(pv, zero=Affine(poly=1 - n)),
        Commit(span=span(21)),
        WaitGroup(pending=0, values=("O",), span=span(25)),
        *release("Vs", v),
        Compute(ops=(CompleteOp(value="l", op="sum"),), span=span(40)),
    )
    empty = (
        Zero(value="O"),
        Compute(ops=(MapOp(dst="l", expr=const(0.0), rows=_rows()), CompleteOp(value="l", op="sum"),
                     MapOp(dst="m", expr=const(float("-inf")), rows=_rows()))),
    )  # fmt: skip
    none = Affine(poly=-n)
    final = Select(cond=none, then=const(0.0), other=apply("div", Reg(name="O"), Reg(name="l")))
    logsum = mul(apply("add", Reg(name="m"), apply("log2", Reg(name="l"))), Const(value=0.6931471805599453))
    local = BarSync(id=WG + 8, threads=128, span=span(41))
    finish = (
        Compute(ops=(MapOp(dst="O", expr=final, rows=_rows(), cols=cols),), span=span(40)),
        StoreGlobal(tensor="L", access=(P("i"),), value=logsum, rows=_rows(), span=span(40)),
        local,
        StoreShared(buffer="Os", part=WG, slot=Slot(ring="Os"), src="O", span=span(41)),
        FenceAsync(span=span(41)),
        local,
        Elect(
            body=(
                TmaStore(
                    buffer="Os", part=WG, slot=Slot(ring="Os"), map="O", coords=(ZERO, P("i.lo") + WG * 64), span=span(41)
                ),
                CommitStore(span=span(41)),
                WaitStore(pending=0, span=span(41)),
                Arrive(barrier="Qs.empty", part=WG, slot=q, by="thread", span=span(42)),
            )
        ),
        Advance(ring="Qs"),
    )
    math = (
        Registers(count=240, direction="inc"),
        If(cond=Affine(poly=-WG), then=(BarArrive(id=P(1), threads=256),)),
        Items(
            body=(
                trips,
                wait("Qs", q, WG),
                If(cond=positive(n), then=(*prologue, Loop(var="t", start=P(1), stop=n, body=steady), *drain), other=empty),
                *finish,
            )
        ),
    )
    maps = (
        matrix("Q", "M", "D", BF16, box_rows=64),
        matrix("K", "N", "D", BF16, box_rows=64),
        matrix("V", "N", "D", BF16, box_rows=64),
        matrix("O", "M", "D", BF16, box_rows=64, written=True),
    )

    def buffer(name: str, rows: str, cols: str, offset: int, **more) -> Buffer:
        return Buffer(name=name, tensor=name[0], dtype=BF16, rows=64, cols=64, rows_index=rows, cols_index=cols, swizzle=128,
                      ring=name, offset=offset, **more)  # fmt: skip

    def ring(name: str, stages: int, parts: int, count: int, offset: int) -> tuple[Ring, tuple[Barrier, Barrier]]:
        full = Barrier(name=f"{name}.full", ring=name, count=1, parts=parts, stages=stages, offset=offset)
        empty = replace(full, name=f"{name}.empty", count=count, offset=offset + 8 * parts * stages)
        return Ring(name=name, stages=stages, buffers=(name,), full=full.name, empty=empty.name), (full, empty)

    rings = (ring("Qs", 1, 2, 1, 49152), ring("Ks", 2, 1, 8, 49184), ring("Vs", 2, 1, 8, 49216))
    row = {"role": "math", "kind": "row", "dtype": F32}
    kernel = Kernel(
        name="attention",
        program="attention",
        schedule="by_hand",
        target="sm_90a",
        grid=Grid(axes=(GridAxis(index="i", tile=128, blocks=ceildiv(P("M"), 128)),), persistent=True),
        threads=384,
        roles=(
            Role(name="load", first=0, count=1, registers=24, elected=False,
                 steps=(Registers(count=24, direction="dec"), Elect(body=(load,)))),
            Role(name="math", first=1, count=2, registers=240, elected=False, steps=math),
        ),
        rings=(*(r for r, _ in rings), Ring(name="Os", stages=1, buffers=("Os",))),
        buffers=(
            buffer("Qs", "i", "d", 0, parts=2),
            buffer("Ks", "j", "d", 16384, stages=2),
            buffer("Vs", "j", "e", 32768, stages=2),
            buffer("Os", "i", "e", 0, parts=2, over="Qs"),
        ),
        barriers=tuple(b for _, pair in rings for b in pair),
        values=(
            Value(name="S", role="math", kind="tile", dtype=F32, cols=64),
            Value(name="P", role="math", kind="tile", dtype=F32, cols=64, over="S"),
            Value(name="Pr", role="math", kind="operand", dtype=BF16, cols=64),
            Value(name="O", role="math", kind="tile", dtype=F32, cols=64),
            *(Value(name=x, **row) for x in ("m", "x", "c")),
            Value(name="l", partial=True, **row),
        ),
        maps=tuple(m for _, m in maps),
        tensors=(*(t for t, _ in maps), TensorArg(name="L", dtype=F32, shape=(P("M"),), written=True)),
        params=(
            *(Param(kind="map", name=m.name, tensor=m.tensor) for _, m in maps),
            Param(kind="pointer", name="L", tensor="L", dtype=F32),
            Param(kind="stride", name="L.stride0", tensor="L", axis=0),
            *(Param(kind="dim", name=d, dtype=I32) for d in ("M", "N", "D")),
            Param(kind="scalar", name="scale", dtype=F32),
        ),
        index_extents={"i": P("M"), "j": P("N"), "d": P("D"), "e": P("D")},
        shared_bytes=49248,
        named_barriers=(("turns", 1, 2), ("Os of one warpgroup", 8, 2)),
    )  # fmt: skip
    return RoleProgram(program="attention", schedule="by_hand", target="sm_90a", kernels=(kernel,),
                       roundings=("P to bf16 (operand)", "O to bf16 (output)"))  # fmt: skip


# Breaking them.

Change = Callable[[Step], "Step | tuple[Step, ...]"]


def edit(program: RoleProgram, change: Change, *, role: str = "", **kernel) -> RoleProgram:
    """`change` sees every step (of one role): it returns the step, others in its place (not looked into), or () to drop it.

    Further arguments replace fields of the kernel.
    """
    k = program.kernels[0]
    roles = tuple(r if role and r.name != role else replace(r, steps=_edited(r.steps, change)) for r in k.roles)
    return replace(program, kernels=(replace(k, roles=roles, **kernel),))


def _edited(steps: tuple[Step, ...], change: Change) -> tuple[Step, ...]:
    out: list[Step] = []
    for s in steps:
        new = change(s)
        if new is not s:
            out += new if isinstance(new, tuple) else (new,)
            continue
        regions = {f: _edited(getattr(s, f), change) for f in ("body", "then", "other") if hasattr(s, f)}
        out.append(replace(s, **regions) if regions else s)
    return tuple(out)


def drop(match: Callable[[Step], bool]) -> Change:
    return lambda s: () if match(s) else s

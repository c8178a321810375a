"""Role programs built by hand: a GEMM and an attention-like kernel, small but whole."""

from __future__ import annotations

from tests.arithmetic import add, mul, sub
from wgdsl.foundation.dtypes import BF16, F32, DType
from wgdsl.program.expr import Affine, Const, Expr, Reg, Scalar, Select, apply, conjunction
from wgdsl.program.poly import Poly, ceildiv
from wgdsl.roles.model import (
    Advance,
    Arrive,
    Axis,
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
    Slot,
    SmemOperand,
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
)

P = Poly.of
ZERO = P(0)
WG = P("wg")


def strides(tensor: str, rank: int) -> tuple[Param, ...]:
    return tuple(Param(kind="stride", name=f"{tensor}_stride{k}", tensor=tensor, axis=k) for k in range(rank))


def gemm(
    *,
    dtype: DType = BF16,
    b_major: str = "K",
    n: int = 128,
    k: int = 64,
    stages: int = 4,
    workers: int = 2,
    swizzle: int = 128,
    persistent: bool = False,
    epilogue: Expr | None = None,
) -> Kernel:
    """C[i, j] = sum over kk of A[i, kk] * B[j, kk] (or B[kk, j] for MN-major), 64 rows a warpgroup."""
    rows = 64 * workers
    wide = swizzle // dtype.nbytes or 16 // dtype.nbytes
    b_rows, b_cols = (n, k) if b_major == "K" else (k, n)
    a_bytes, b_bytes = 64 * k * dtype.nbytes, b_rows * b_cols * dtype.nbytes
    a = Buffer(name="As", tensor="A", dtype=dtype, rows=64, cols=k, rows_index="i", cols_index="kk", swizzle=swizzle,
               ring="AB", parts=workers, stages=stages, offset=0)  # fmt: skip
    b = Buffer(name="Bs", tensor="B", dtype=dtype, rows=b_rows, cols=b_cols, rows_index="j" if b_major == "K" else "kk",
               cols_index="kk" if b_major == "K" else "j", swizzle=swizzle, ring="AB", stages=stages,
               offset=a.total_bytes)  # fmt: skip
    c = Buffer(name="Cs", tensor="C", dtype=dtype, rows=64, cols=n, rows_index="i", cols_index="j", swizzle=128,
               ring="Cs", parts=workers, offset=a.total_bytes + b.total_bytes)  # fmt: skip
    end = c.offset + c.total_bytes
    full = Barrier(name="AB.full", ring="AB", count=1, parts=1, stages=stages, offset=end)
    empty = Barrier(name="AB.empty", ring="AB", count=4 * workers, parts=1, stages=stages, offset=end + 8 * stages)
    now = Slot(ring="AB")
    tiles = ceildiv(P("K"), k)

    def boxes(buffer: Buffer, tensor: str, part: Poly, row: Poly, col: Poly) -> list[Tma]:
        return [
            Tma(buffer=buffer.name, part=part, slot=now, map=f"{tensor}.map", coords=(col + p * wide, row),
                barrier="AB.full", barrier_part=ZERO, panel=p)
            for p in range(buffer.panels)
        ]  # fmt: skip

    fill = [t for w in range(workers) for t in boxes(a, "A", P(w), P("i.lo") + 64 * w, P("t") * k)] + boxes(
        b, "B", ZERO, *((P("j.lo"), P("t") * k) if b_major == "K" else (P("t") * k, P("j.lo")))
    )
    load = Role(name="load", first=0, count=1, registers=24, elected=True, steps=(
        Registers(count=24, direction="dec"),
        Items(body=(
            Loop(var="t", start=ZERO, stop=tiles, body=(
                Wait(barrier="AB.empty", part=ZERO, slot=now, flip=True),
                Expect(barrier="AB.full", part=ZERO, slot=now, nbytes=workers * a_bytes + b_bytes),
                *fill,
                Advance(ring="AB"),
            )),
        )),
    ))  # fmt: skip
    i = Axis(index="i", origin=P("i.lo") + 64 * WG, count=64)
    j = Axis(index="j", origin=P("j.lo"), count=n)
    after = (Compute(ops=(MapOp(dst="Acc", expr=epilogue, rows=i, cols=j),)),) if epilogue is not None else ()
    wide_c = 64
    store = tuple(
        TmaStore(buffer="Cs", part=WG, slot=Slot(ring="Cs"), map="C.map",
                 coords=(P("j.lo") + p * wide_c, P("i.lo") + 64 * WG), panel=p)
        for p in range(c.panels)
    )  # fmt: skip
    math = Role(name="math", first=1, count=workers, registers=240, elected=False, steps=(
        Registers(count=240, direction="inc"),
        Items(body=(
            Loop(var="t", start=ZERO, stop=tiles, body=(
                Wait(barrier="AB.full", part=ZERO, slot=now),
                FenceWgmma(),
                Wgmma(acc="Acc", a=SmemOperand(buffer="As", part=WG, slot=now, major="K"),
                      b=SmemOperand(buffer="Bs", part=ZERO, slot=now, major=b_major), n=n, k=k, dtype=dtype,
                      zero=Affine(poly=-P("t"))),
                Commit(),
                WaitGroup(pending=0, values=("Acc",)),
                Arrive(barrier="AB.empty", part=ZERO, slot=now),
                Advance(ring="AB"),
            )),
            *after,
            Elect(body=(WaitStore(pending=0),)),
            BarSync(id=WG + 1, threads=128),
            StoreShared(buffer="Cs", part=WG, slot=Slot(ring="Cs"), src="Acc"),
            FenceAsync(),
            BarSync(id=WG + 1, threads=128),
            Elect(body=(*store, CommitStore())),
        )),
        Elect(body=(WaitStore(pending=0),)),
    ))  # fmt: skip
    shape_b = (P("N"), P("K")) if b_major == "K" else (P("K"), P("N"))
    maps = (
        TensorMap(name="A.map", tensor="A", dtype=dtype, dims=(MapDim(axis=1, extent=P("K")), MapDim(axis=0, extent=P("M"))),
                  box=(wide, 64), swizzle=swizzle),
        TensorMap(name="B.map", tensor="B", dtype=dtype,
                  dims=(MapDim(axis=1, extent=shape_b[1]), MapDim(axis=0, extent=shape_b[0])), box=(wide, b_rows),
                  swizzle=swizzle),
        TensorMap(name="C.map", tensor="C", dtype=dtype, dims=(MapDim(axis=1, extent=P("N")), MapDim(axis=0, extent=P("M"))),
                  box=(wide_c, 64), swizzle=128),
    )  # fmt: skip
    return Kernel(
        name="gemm", program="gemm", schedule="hand", target="sm_90a",
        grid=Grid(axes=(GridAxis(index="i", tile=rows, blocks=ceildiv(P("M"), rows)),
                        GridAxis(index="j", tile=n, blocks=ceildiv(P("N"), n))), persistent=persistent),
        threads=128 * (workers + 1), roles=(load, math),
        rings=(Ring(name="AB", stages=stages, buffers=("As", "Bs"), full="AB.full", empty="AB.empty"),
               Ring(name="Cs", stages=1, buffers=("Cs",))),
        buffers=(a, b, c), barriers=(full, empty),
        values=(Value(name="Acc", role="math", kind="tile", dtype=F32, cols=n),),
        maps=maps,
        tensors=(TensorArg(name="A", dtype=dtype, shape=(P("M"), P("K")), written=False),
                 TensorArg(name="B", dtype=dtype, shape=shape_b, written=False),
                 TensorArg(name="C", dtype=dtype, shape=(P("M"), P("N")), written=True),
                 TensorArg(name="bias", dtype=dtype, shape=(P("N"),), written=False)),
        params=(*(Param(kind="map", name=m.name, tensor=m.tensor) for m in maps),
                Param(kind="pointer", name="bias", tensor="bias"), *strides("bias", 1),
                *(Param(kind="dim", name=d) for d in "MNK"), Param(kind="scalar", name="alpha", dtype=F32)),
        index_extents={"i": P("M"), "j": P("N"), "kk": P("K")},
        shared_bytes=end + 16 * stages,
    )  # fmt: skip


def attention(
    *, dtype: DType = BF16, d: int = 128, n: int = 128, workers: int = 2, causal: bool = False, stages: int = 2,
    registers: tuple[int, int] = (24, 240),
) -> Kernel:  # fmt: skip
    """Overlapped attention: the next S is computed under the last P V. O[b, i, h], L[b, h, i]; Q, K, V [b, i|j, h, e]."""
    heads, panels = d, d // 64
    q_bytes, k_bytes = 64 * d * 2, n * d * 2

    def buffer(name: str, tensor: str, rows: int, index: str, parts: int, count: int, offset: int, over: str | None = None):
        return Buffer(name=name, tensor=tensor, dtype=dtype, rows=rows, cols=heads, rows_index=index, cols_index="e",
                      swizzle=128, ring=name, parts=parts, stages=count, offset=offset, over=over)  # fmt: skip

    q = buffer("Qs", "Q", 64, "i", workers, 1, 0)
    k = buffer("Ks", "K", n, "j", 1, stages, q.total_bytes)
    v = buffer("Vs", "V", n, "j", 1, stages, k.offset + k.total_bytes)
    o = buffer("Os", "O", 64, "i", workers, 1, 0, over="Qs")
    end = v.offset + v.total_bytes
    barriers = (
        Barrier(name="Qs.full", ring="Qs", count=1, parts=workers, stages=1, offset=end),
        *(
            Barrier(name=f"{r}.{e}", ring=r, count=c, parts=1, stages=stages, offset=end + 64 * at)
            for at, (r, e, c) in enumerate(
                (("Ks", "full", 1), ("Ks", "empty", 4 * workers), ("Vs", "full", 1), ("Vs", "empty", 4 * workers)), 1
            )
        ),
    )
    tiles = ceildiv(P("N"), n)
    slot = {r: Slot(ring=r) for r in ("Qs", "Ks", "Vs", "Os")}
    col = (ZERO,)

    def load_tile(ring: str, tensor: str, tile: Poly) -> list:
        return [
            Wait(barrier=f"{ring}.empty", part=ZERO, slot=slot[ring], flip=True),
            Expect(barrier=f"{ring}.full", part=ZERO, slot=slot[ring], nbytes=k_bytes),
            Tma(buffer=ring, part=ZERO, slot=slot[ring], map=f"{tensor}.map", coords=(*col, tile * n, ZERO, P("h"), P("b")),
                barrier=f"{ring}.full", barrier_part=ZERO),
            Advance(ring=ring),
        ]  # fmt: skip

    fill_q = [
        s
        for w in range(workers)
        for s in (
            Expect(barrier="Qs.full", part=P(w), slot=slot["Qs"], nbytes=q_bytes),
            Tma(buffer="Qs", part=P(w), slot=slot["Qs"], map="Q.map",
                coords=(*col, P("i.lo") + 64 * w, ZERO, P("h"), P("b")), barrier="Qs.full", barrier_part=P(w)),
        )
    ]  # fmt: skip
    load = Role(name="load", first=0, count=1, registers=registers[0], elected=True, steps=(
        Registers(count=registers[0], direction="dec"),
        Items(body=(
            Let(name="n", value=tiles),
            *fill_q,
            Loop(var="t", start=ZERO, stop=P("n"), body=(
                *load_tile("Ks", "K", P("n") - 1 - P("t")), *load_tile("Vs", "V", P("n") - 1 - P("t"))),
            ),
        )),
    ))  # fmt: skip

    rows = Axis(index="i", origin=P("i.lo") + 64 * WG, count=64)
    c = mul(Scalar(name="scale"), Const(value=1.4426950408889634))

    def softmax(tile: Poly, first: bool, mask: bool) -> Compute:
        cols = Axis(index="j", origin=tile * n, count=n)
        inside = [Affine(poly=P("N") - 1 - P("j"))]
        if causal:
            inside.append(Affine(poly=P("i") + P("N") - P("M") - P("j")))
        ops = []
        if mask:
            keep = Select(cond=conjunction(*inside), then=Reg(name="S"), other=Const(value=float("-inf")))
            ops.append(MapOp(dst="S", expr=keep, rows=rows, cols=cols))
        start = None if first else Reg(name="m")
        ops.append(ReduceOp(dst="m_new", op="max", src=Reg(name="S"), start=start, rows=rows, cols=cols))
        if not first:
            ops.append(MapOp(dst="corr", expr=apply("exp2", mul(sub(Reg(name="m"), Reg(name="m_new")), c)), rows=rows))
        ops.append(MapOp(dst="m", expr=Reg(name="m_new"), rows=rows))
        ops.append(MapOp(dst="S", expr=apply("exp2", mul(sub(Reg(name="S"), Reg(name="m")), c)), rows=rows, cols=cols))
        if not first:
            ops.append(MapOp(dst="l", expr=mul(Reg(name="l"), Reg(name="corr")), rows=rows))
        ops.append(ReduceOp(dst="l", op="sum", src=Reg(name="S"), start=None if first else Reg(name="l"), rows=rows,
                            cols=cols, lanes="partial"))  # fmt: skip
        return Compute(ops=tuple(ops))

    def qk() -> list:
        return [
            Wait(barrier="Ks.full", part=ZERO, slot=slot["Ks"]),
            FenceWgmma(),
            Wgmma(acc="S", a=SmemOperand(buffer="Qs", part=WG, slot=slot["Qs"], major="K"),
                  b=SmemOperand(buffer="Ks", part=ZERO, slot=slot["Ks"], major="K"), n=n, k=d, dtype=dtype,
                  zero=Const(value=True)),
            Commit(),
        ]  # fmt: skip

    def pv(zero: Expr) -> list:
        return [
            Wait(barrier="Vs.full", part=ZERO, slot=slot["Vs"]),
            FenceWgmma(),
            Wgmma(acc="O", a=RegOperand(value="P"), b=SmemOperand(buffer="Vs", part=ZERO, slot=slot["Vs"], major="MN"),
                  n=d, k=n, dtype=dtype, zero=zero),
            Commit(),
        ]  # fmt: skip

    def release(ring: str) -> list:
        return [Arrive(barrier=f"{ring}.empty", part=ZERO, slot=slot[ring]), Advance(ring=ring)]

    cols_o = Axis(index="e", origin=ZERO, count=d)
    rescale = Compute(ops=(MapOp(dst="O", expr=mul(Reg(name="O"), Reg(name="corr")), rows=rows, cols=cols_o),))
    empty = Affine(poly=-P("t"))
    t_tile = P("n") - 2 - P("t")
    math = Role(name="math", first=1, count=workers, registers=registers[1], elected=False, steps=(
        Registers(count=registers[1], direction="inc"),
        Items(body=(
            Let(name="n", value=tiles),
            Wait(barrier="Qs.full", part=WG, slot=slot["Qs"]),
            *qk(), WaitGroup(pending=0, values=("S",)), *release("Ks"),
            softmax(P("n") - 1, True, True), Pack(dst="P", src="S"),
            Loop(var="t", start=ZERO, stop=P("n") - 1, mask="full", body=(
                *qk(), *pv(empty), WaitGroup(pending=1, values=("S",)), *release("Ks"),
                softmax(t_tile, False, causal), WaitGroup(pending=0, values=("O",)), *release("Vs"),
                Pack(dst="P", src="S"), rescale,
            )),
            *pv(Affine(poly=1 - P("n"))), WaitGroup(pending=0, values=("O",)), *release("Vs"),
            Compute(ops=(
                CompleteOp(value="l", op="sum"),
                MapOp(dst="inv", expr=apply("rcp", Reg(name="l")), rows=rows),
                MapOp(dst="O", expr=mul(Reg(name="O"), Reg(name="inv")), rows=rows, cols=cols_o),
            )),
            StoreGlobal(tensor="L", access=(P("b"), P("h"), P("i")),
                        value=add(mul(Reg(name="m"), Scalar(name="scale")), apply("log", Reg(name="l"))), rows=rows),
            BarSync(id=WG + 1, threads=128),
            StoreShared(buffer="Os", part=WG, slot=slot["Os"], src="O"),
            FenceAsync(), BarSync(id=WG + 1, threads=128),
            Elect(body=(
                TmaStore(buffer="Os", part=WG, slot=slot["Os"], map="O.map",
                         coords=(*col, P("i.lo") + 64 * WG, ZERO, P("h"), P("b"))),
                CommitStore(), WaitStore(pending=0))),
        )),
    ))  # fmt: skip

    def tensor_map(tensor: str, extent: str, box_rows: int) -> TensorMap:
        dims = (MapDim(axis=3, extent=P(64)), MapDim(axis=1, extent=P(extent)), MapDim(axis=3, extent=P(panels), factor=64),
                MapDim(axis=2, extent=P("H")), MapDim(axis=0, extent=P("B")))  # fmt: skip
        return TensorMap(
            name=f"{tensor}.map", tensor=tensor, dtype=dtype, dims=dims, box=(64, box_rows, panels, 1, 1), swizzle=128
        )

    maps = (tensor_map("Q", "M", 64), tensor_map("K", "N", n), tensor_map("V", "N", n), tensor_map("O", "M", 64))
    tile = {"role": "math", "kind": "tile", "dtype": F32}
    row = {"role": "math", "kind": "row", "dtype": F32}
    return Kernel(
        name="attention", program="attention", schedule="hand", target="sm_90a",
        grid=Grid(axes=(GridAxis(index="b", tile=1, blocks=P("B")), GridAxis(index="h", tile=1, blocks=P("H")),
                        GridAxis(index="i", tile=64 * workers, blocks=ceildiv(P("M"), 64 * workers)))),
        threads=128 * (workers + 1), roles=(load, math),
        rings=(Ring(name="Qs", stages=1, buffers=("Qs",), full="Qs.full"),
               Ring(name="Ks", stages=stages, buffers=("Ks",), full="Ks.full", empty="Ks.empty"),
               Ring(name="Vs", stages=stages, buffers=("Vs",), full="Vs.full", empty="Vs.empty"),
               Ring(name="Os", stages=1, buffers=("Os",))),
        buffers=(q, k, v, o), barriers=barriers,
        values=(Value(name="S", cols=n, **tile), Value(name="O", cols=d, **tile),
                Value(name="P", role="math", kind="operand", dtype=dtype, cols=n),
                *(Value(name=x, **row) for x in ("m", "m_new", "corr", "inv")), Value(name="l", partial=True, **row)),
        maps=maps,
        tensors=(*(TensorArg(name=t, dtype=dtype, shape=(P("B"), P(e), P("H"), P(d)), written=t == "O")
                   for t, e in (("Q", "M"), ("K", "N"), ("V", "N"), ("O", "M"))),
                 TensorArg(name="L", dtype=F32, shape=(P("B"), P("H"), P("M")), written=True)),
        params=(*(Param(kind="map", name=m.name, tensor=m.tensor) for m in maps),
                Param(kind="pointer", name="L", tensor="L"), *strides("L", 3),
                *(Param(kind="dim", name=x) for x in ("B", "H", "M", "N")), Param(kind="scalar", name="scale", dtype=F32)),
        index_extents={"i": P("M"), "j": P("N"), "e": P(d)},
        shared_bytes=end + 320,
    )  # fmt: skip

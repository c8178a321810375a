"""finish: the end of an item in a role that computes: final values, stores, and the release of what was filled once.

In: the `finish` step and what the role's walk knows.  Out: steps. A result goes through its staging buffer and a bulk store,
or straight from registers; `over` makes the store's completed read the release of the buffer underneath.
"""

from __future__ import annotations

from dataclasses import replace

from ..diagnostics.model import WgError
from ..diagnostics.schedule import NotFilled, NotYetSupported, StillInFlight, UnknownName
from ..program.expr import TRUE, Affine, Expr, Load, Reg, Scalar, Select, apply, conjunction, const, loads, rewrite
from ..program.graph import IDENTITY, Output, Reduce
from ..program.poly import Poly, minimum
from ..roles.model import (
    Advance,
    Arrive,
    Axis,
    BarSync,
    CommitStore,
    CompleteOp,
    Compute,
    CopyOut,
    Elect,
    FenceAsync,
    If,
    MapOp,
    Op,
    ReduceOp,
    Ring,
    Slot,
    Step,
    StoreGlobal,
    StoreShared,
    TmaStore,
    Wait,
    WaitStore,
)
from ..syntax import ast
from ..targets.registers import WARPGROUP, WARPS
from .combine import Combined, combined, final_value
from .items import opened
from .joined import JoinedSync
from .place import Placed, name_of
from .plan import steps_of
from .reads import limit
from .sync import SECOND

IDENTITIES = {op: float(IDENTITY[op]) for op in ("sum", "max", "min")}


class MathSync(JoinedSync):
    """A role that multiplies and computes."""

    def __init__(self, *args):
        super().__init__(*args)
        self.completed: set[str] = set()  # states whose lanes have been combined
        self.folded: set[str] = set()  # reductions of final values that stand in registers
        self.stored: set[str] = set()  # outputs
        self.finished = False  # the walk stands behind a `finish`
        self.combined = combined(self.plan)

    def finish(self, s: ast.FinishStep) -> None:
        if not self.products:
            cure = "`finish` in the role that multiplies"
            raise WgError(NotYetSupported(span=s.span, what="a `finish` in a role without products", cure=cure))
        if self.state.flight:
            g = self.state.flight[-1]
            where = "in the loop, for every tile"
            raise WgError(StillInFlight(span=s.span, product=g.product, touched=g.value, issued=g.span, where=where))
        outputs = [self.output(t) for t in s.targets if name_of(t) not in self.plan.graph.absent]
        staged = self.staged(s, outputs)
        self.finished = True
        states = {x.tensor for o in outputs for x in self.streamed.final(o.value)}
        ops: list[Op] = [c for n in self.streamed.order if n in states and (c := self.complete(n)) is not None]
        self.completed |= states
        if ops:
            self.emit(Compute(ops=tuple(ops), note="whole rows"))
        self.fold(outputs, s)
        for o in sorted(outputs, key=lambda o: o.tensor in staged):  # what needs the registers as they are comes first
            self.one(o, staged.get(o.tensor), s)

    def fold(self, outputs: list[Output], s: ast.FinishStep) -> None:
        """The reductions of final values that outputs read, from the item's tile of them."""
        wanted = {x.tensor for o in outputs for x in loads(o.value)}
        for f in reversed(self.streamed.folds):
            wanted |= {x.tensor for x in loads(f.body)} if f.name in wanted else set()
        for f in self.streamed.folds:
            if f.name not in wanted or f.name in self.folded:
                continue
            self.folded.add(f.name)
            self.emit(Compute(ops=(self.folding(f, s),), note=f"{f.name}, along the tile"))

    def folding(self, f: Reduce, s: ast.FinishStep) -> ReduceOp:
        (axis,) = f.axes
        rows, cols = self.axes_of((*f.indices, axis), f.name, s)
        if cols is None or cols.index != axis or any(self.turned(x) for x in loads(f.body)):
            cure = "reduce along the columns of the products' tile"
            raise WgError(NotYetSupported(span=f.span, what=f"`{f.name}`, reduced behind the loop along `{axis}`,", cure=cure))
        if f.op not in IDENTITIES:
            raise WgError(NotYetSupported(span=f.span, what=f"`{f.op}` of final values"))
        extent = self.plan.graph.extents[axis]
        whole = extent.constant is not None and extent.constant % self.plan.size(axis) == 0
        inside = TRUE if whole else Affine(poly=extent - Poly.of(axis) - 1)
        there = conjunction(self.streamed.program.domain_of(self.body_of(f.name)), inside)
        src = self.registers(f.body)
        if there != TRUE:
            src = Select(cond=there, then=src, other=const(IDENTITIES[f.op]))
        return ReduceOp(dst=self.computer.row(f.name), op=f.op, src=src, start=None, rows=rows, cols=cols)

    def body_of(self, name: str) -> Expr:
        """What a reduction reduces, as the program has it."""
        node = self.plan.graph.by_name[name]
        assert isinstance(node, Reduce)
        return node.body

    def turned(self, x: Load) -> bool:
        """Whether a final value is read elsewhere than where its registers are."""
        state, fold = self.streamed.state(x.tensor), self.streamed.fold(x.tensor)
        node = fold if state is None else state.node
        return node is not None and x.access != tuple(Poly.of(i) for i in node.indices)

    def output(self, target: ast.Name | ast.Index) -> Output:
        found = {o.tensor: o for o in self.streamed.outputs}
        name = name_of(target)
        if name not in found:
            raise WgError(UnknownName(span=target.span, what="output", name=name, known=tuple(found)))
        return found[name]

    def staged(self, s: ast.FinishStep, outputs: list[Output]) -> dict[str, Placed]:
        out: dict[str, Placed] = {}
        for via in s.via:
            placed = self.placement.placed.get(via)
            if placed is None or placed.home.tensor not in {o.tensor for o in outputs}:
                known = tuple(n for n, p in self.placement.placed.items() if p.home.output)
                raise WgError(UnknownName(span=s.span, what="staging buffer of these outputs", name=via, known=known))
            out[placed.home.tensor] = placed
        return out

    def complete(self, name: str) -> CompleteOp | None:
        state = self.streamed.state(name)
        if state is None or state.is_contract or not self.computer.is_partial(state) or name in self.completed:
            return None
        return CompleteOp(value=self.computer.state_value(state), op=state.node.op)

    def partials(self, c: Combined, s: ast.FinishStep) -> None:
        """Add the states of this part of the stream to those of the others."""
        self.stored.add(c.output.tensor)
        for r, to in c.partials:
            if to.name in self.stored:
                continue
            self.stored.add(to.name)
            rows, cols = self.axes_of(r.indices, r.name, s)
            access = tuple(Poly.of(i) for i in r.indices)
            value, state = Reg(name=self.held(r.name) or ""), self.streamed.state(r.name)
            add = StoreGlobal(
                tensor=to.name, access=access, value=value, rows=rows, cols=cols, add=True, by=c.op, span=self.span,
                limit=self.plan.end_of_part(rows.index),
            )  # fmt: skip
            note = f"finish {c.output.tensor}"
            if state is None:
                self.emit(replace(add, note=note))
            else:
                self.emit(If(cond=Affine(poly=self.trip.n - 1), then=(add,), note=note))

    def one(self, o: Output, staged: Placed | None, s: ast.FinishStep) -> None:
        c = self.combined.get(o.tensor)
        if c is not None and not c.direct:
            if staged is not None:
                cure = "drop `via`: sums go from registers to memory of f32, and a kernel of its own makes the output of them"
                raise WgError(NotYetSupported(span=s.span, what=f"staging of `{o.tensor}`, which is combined,", cure=cure))
            return self.partials(c, s)
        rows, cols = self.output_axes(o, s)
        value = self.final(o)
        text = f"finish {o.tensor}"
        rounding = f"{o.tensor} to {o.dtype} (output)"
        if o.dtype.bits < 32 and rounding not in self.roundings:
            self.roundings.append(rounding)
        if staged is None:
            add, by = c is not None, "sum" if c is None else c.op
            self.emit(
                StoreGlobal(
                    tensor=o.tensor, access=o.access, value=value, rows=rows, cols=cols, add=add, by=by, note=text,
                    limit=self.limit(o),
                )
            )  # fmt: skip
            self.stored.add(o.tensor)
            return
        if cols is None:
            raise WgError(NotYetSupported(span=s.span, what=f"staging `{o.tensor}`, which has one element a row"))
        if staged.buffer.rows_index != rows.index:
            what = f"staging `{o.tensor}`, of which elements along `{rows.index}` lie side by side,"
            cure = f"drop `via {staged.home.name}` and the line of `{staged.home.name}`: threads store registers in any layout"
            raise WgError(NotYetSupported(span=s.span, what=what, cure=cure))
        if c is not None and c.op != "sum":
            raise WgError(NotYetSupported(span=s.span, what=f"staging of `{o.tensor}`, which is combined by {c.op},"))
        dst = self.tile_of(o, value, s)
        if value != Reg(name=dst):
            self.emit(Compute(ops=(MapOp(dst=dst, expr=value, rows=rows, cols=cols),), note=text))
        self.store(o, staged, dst, rows, cols)

    def output_axes(self, o: Output, s: ast.FinishStep) -> tuple[Axis, Axis | None]:
        """Rows of the output's tile are those of the products; what else is wide are its columns."""
        return self.axes_of(o.indices, o.tensor, s)

    def axes_of(self, indices: tuple[str, ...], name: str, s: ast.FinishStep) -> tuple[Axis, Axis | None]:
        row = next(iter(self.products.values())).rows
        wide = [i for i in indices if i == row or self.plan.size(i, name, s.span) > 1]
        cols = [i for i in wide if i != row]
        if row not in wide or len(cols) > 1:
            raise WgError(NotYetSupported(span=s.span, what=f"the tile of `{name}` over ({', '.join(wide)})"))
        return self.plan.axis_of(row), self.plan.axis_of(cols[0]) if cols else None

    def tile_of(self, o: Output, value: Expr, s: ast.FinishStep) -> str:
        """The registers that take the final value: those of its accumulator, unless a later output reads that too."""
        found = [x.tensor for x in loads(o.value) if (t := self.streamed.state(x.tensor)) is not None and t.is_contract]
        if not found:
            raise WgError(NotYetSupported(span=s.span, what=f"`{o.tensor}`, which holds no product,"))
        held = self.computer.home[found[0]]
        self.stored.add(o.tensor)
        later = [x.tensor for t in self.streamed.outputs if t.tensor not in self.stored for x in self.streamed.final(t.value)]
        if value == Reg(name=held) or found[0] not in later:
            return held
        tile = replace(self.computer.values[held], name=f"{o.tensor}.out", over=None)
        return self.computer.declare(tile)

    def final(self, o: Output) -> Expr:
        """The output's value over registers; outside its domain the value it stores there."""
        return self.registers(final_value(self.streamed, o))

    def registers(self, e: Expr) -> Expr:
        """An expression behind the loop, over registers."""

        def one(x: Expr) -> Expr | None:
            name = self.held(x.tensor) if isinstance(x, Load) else None
            return None if name is None or not isinstance(x, Load) else self.lowered(x.tensor, Reg(name=name))

        return rewrite(e, one)

    def lowered(self, name: str, value: Expr) -> Expr:
        """A final value without the power of two by which what it is made of was larger."""
        state = self.streamed.state(name)
        raised = 0 if state is None else self.computer.raised_state(state)
        return apply("mul", value, const(2.0**-raised)) if raised else value

    def held(self, name: str) -> str | None:
        """The registers of a final value; None for what is none."""
        state, fold = self.streamed.state(name), self.streamed.fold(name)
        if state is None:
            return None if fold is None else self.computer.row(name)
        return self.computer.home[name] if state.is_contract else self.computer.state_value(state)

    def group_sync(self, note: str) -> BarSync:
        return BarSync(id=self.local, threads=WARPGROUP, note=note)

    def store(self, o: Output, p: Placed, src: str, rows: Axis, cols: Axis) -> None:
        if p.staged_parts:
            return self.in_ring(o, p, src, rows, cols)
        if p.home.over is not None:
            self.emit(self.group_sync(f"all warps have read {p.home.over}"))
        elif self.plan.persistent:
            if p.home.name not in self.deferred():
                self.emit(Elect(body=(WaitStore(pending=0, span=self.span),)))
            self.emit(self.group_sync(f"{p.buffer.name} is free"))
        self.stage(o, p, src, rows, cols)
        if p.home.over is not None and p.home.name not in self.deferred():
            self.release_under(p, 0)
        elif p.home.over is not None and self.under(p).empty is not None:
            self.emit(Advance(ring=self.under(p).name))

    def in_ring(self, o: Output, p: Placed, src: str, rows: Axis, cols: Axis) -> None:
        """Through slots of a ring, one for each warpgroup's part: each writes and stores its own, and frees all of them."""
        ring = self.placement.rings[p.buffer.ring]
        slot = Slot(ring=ring.name)
        assert ring.full is not None and ring.empty is not None
        outer = self.out
        for k in range(p.staged_parts):
            self.emit(Wait(barrier=ring.full, part=Poly(), slot=slot, note=f"lent to part {k} of {o.tensor}"))
            self.out = []
            self.stage(o, p, src, rows, cols)
            done = Arrive(barrier=ring.empty, part=Poly(), slot=slot, by="thread", count=WARPS, span=self.span)
            self.emit(Elect(body=(WaitStore(pending=0, span=self.span), done)))
            own, self.out = tuple(self.out), outer
            if p.staged_parts == 1:
                self.emit(*own)
            else:
                mine = conjunction(Affine(poly=Poly.of("wg") - k), Affine(poly=k - Poly.of("wg")))
                free = Arrive(barrier=ring.empty, part=Poly(), slot=slot, span=self.span)
                self.emit(If(cond=mine, then=own, other=(free,)))
            self.emit(Advance(ring=ring.name))

    def stage(self, o: Output, p: Placed, src: str, rows: Axis, cols: Axis) -> None:
        """Registers to the staging buffer, and from there to global memory."""
        b, add = p.buffer, o.tensor in self.combined
        part = Poly.of("wg") if b.parts > 1 else Poly.of(0)
        slot = Slot(ring=b.ring)
        assert p.map is not None
        self.emit(StoreShared(buffer=b.name, part=part, slot=slot, src=src))
        copies = [
            TmaStore(buffer=b.name, part=part, slot=slot, map=p.map.name, coords=coords, panel=panel, add=add, span=self.span)
            for panel, _, coords in p.copies(rows.origin, cols.origin)
        ]
        bulk: tuple[Step, ...] = (
            replace(FenceAsync(), span=self.span),
            replace(self.group_sync("written"), span=self.span),
            Elect(body=(*copies, CommitStore(span=self.span)), span=self.span),
        )
        end = limit(self.plan, self.trip.left, o)  # a box would reach into rows that aren't written
        if not p.needs_fallback and end is None:
            self.emit(*bulk)
        else:
            copy = CopyOut(
                buffer=b.name,
                part=part,
                slot=slot,
                tensor=o.tensor,
                access=o.access,
                rows=rows,
                cols=cols,
                add=add,
                wide=not p.needs_fallback and not add,
                limit=self.limit(o),
                span=self.span,
            )
            plain: tuple[Step, ...] = (self.group_sync("written"), copy)
            if self.lent(p):  # a bulk copy will overwrite what the threads have written here, once all have read it
                plain = (FenceAsync(), *plain, self.group_sync("copied"))
            other = tuple(replace(x, span=self.span) for x in plain)
            suits: Expr = Scalar(name=f"{o.tensor}.tma") if p.needs_fallback else TRUE
            if end is None:
                note = "a row pitch that suits the tensor map"
            else:
                suits, note = conjunction(Affine(poly=end - rows.origin - p.rows), suits), "all rows are written"
            self.emit(If(cond=suits, then=bulk, other=other, note=note))

    def limit(self, o: Output) -> Poly | None:
        """The row before which those of an output end: where tensors say so, or the next part begins before this one's rows
        end."""
        said, next_part = limit(self.plan, self.trip.left, o), self.plan.end_of_part(next(iter(self.products.values())).rows)
        return minimum(said, next_part) if said is not None and next_part is not None else said or next_part

    def lent(self, p: Placed) -> bool:
        """Whether a staging buffer lies where a fill follows."""
        return bool(p.staged_parts) or (p.home.over is not None and self.under(p).empty is not None)

    def under(self, p: Placed) -> Ring:
        """The ring of the buffer that a staging buffer lies over."""
        return self.placement.rings[self.placement.ring_of[p.home.over or ""]]

    def release_under(self, p: Placed, lag: int) -> None:
        """The store has read its buffer: the one underneath may be filled again. `lag` 1: it was the item before."""
        ring = self.under(p)
        if ring.empty is None:
            return
        slot = Slot(ring=ring.name, lag=lag)
        arrive = Arrive(barrier=ring.empty, part=self.barrier_part(ring.name), slot=slot, by="thread", span=self.span)
        self.emit(Elect(body=(WaitStore(pending=0, span=self.span), arrive)))
        if not lag:
            self.emit(Advance(ring=ring.name))

    def deferred(self) -> frozenset[str]:
        """Staging buffers whose store an `await` in the next item waits for."""
        steps = list(steps_of(self.role.steps))
        behind = max(k for k, s in enumerate(steps) if isinstance(s, ast.FinishStep))
        awaits = (s for s in steps[:behind] if isinstance(s, ast.AwaitStep))
        return frozenset(name_of(s.target) for s in awaits if self.is_staging(name_of(s.target)) and self.plan.persistent)

    def await_store(self, s: ast.AwaitStep, name: str) -> None:
        """The latest store has read its buffer; what lies underneath is released. Behind `finish` that is this item's store,
        which waits there by itself; before it the store of the item before, if there was one."""
        p = self.placement.placed[name]
        if p.staged_parts:
            cure = "remove this step: the slots are released where the result is stored"
            raise WgError(
                NotFilled(span=s.span, name=name, why="lies in slots of a ring, which can't be held longer", cure=cure)
            )
        if self.finished or not self.plan.persistent:
            if p.home.over is None and self.finished:
                self.emit(Elect(body=(WaitStore(pending=0, span=self.span),)))
            return
        if p.home.over is not None and self.under(p).stages < 2:
            under = self.plan.homes[p.home.over]
            cure = f"`smem {under.name} = ... ring 2`, or remove this step"
            why = f"keeps `{under.name}` from being filled until the next item has begun, which needs it"
            raise WgError(NotFilled(span=s.span, name=name, why=why, cure=cure))
        self.counted = True
        outer, self.out = self.out, []
        if p.home.over is not None:
            self.release_under(p, 1)
        else:
            self.emit(Elect(body=(WaitStore(pending=0, span=self.span),)))
        body, self.out = tuple(self.out), outer
        self.emit(If(cond=SECOND, then=body, note=f"the item before has stored {p.home.tensor}"))

    def loop_ended(self) -> None:
        """Release what was filled once an item and has no staging over it, before results are finished: where they are staged
        in a ring, its slots are lent only after the next item's first fill of this."""
        if self.state.flight:
            return  # `finish` refuses that
        placed = self.placement.placed.values()
        over = {self.placement.ring_of[p.home.over] for p in placed if p.home.over and not p.staged_parts}
        once: dict[str, None] = {}
        for p in self.products.values():
            for home in (p.a, p.b):
                if home is not None and self.plan.axis not in self.plan.homes[home].indices:
                    once[self.placement.ring_of[home]] = None
        for ring in once:
            empty = self.placement.rings[ring].empty
            if empty is not None and ring not in over:
                self.emit(Arrive(barrier=empty, part=self.barrier_part(ring), slot=Slot(ring=ring)), Advance(ring=ring))

    def in_flight(self, p: Placed) -> bool:
        """Whether an item leaves its store in flight: one that lends its buffer back has waited for it."""
        return not self.lent(p) or p.home.name in self.deferred()

    def leave(self) -> None:
        finishes = [s for s in opened(self.role.steps) if isinstance(s, ast.FinishStep) and s.via]
        last = [s for s in finishes if any(self.in_flight(self.placement.placed[name]) for name in s.via)]
        if last:
            self.span = last[-1].span
            self.emit(Elect(body=(WaitStore(pending=0, span=self.span),), note="the last store has read its buffer"))

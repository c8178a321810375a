"""copying: the steps of a role that copies for itself: its threads issue their shares, wait for them, and meet.

In: a role whose fills name an engine of threads, and whose products are done when they are issued.  Out: its steps. Each fill
is one group of copies. Before the first read of a tile the threads wait for their own copies of it, by how many groups have
been issued since, and meet at one barrier, which tells each of the others' copies. Before a slot is filled again they have met
since its last read. So one barrier often serves both: an `await` in front of a `fill` brings it there.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from ..diagnostics.model import WgError
from ..diagnostics.schedule import NotFilled, NotYetSupported, RingTooShallow
from ..program.expr import FALSE, Expr, Scalar
from ..program.graph import Output
from ..program.poly import Poly, element, with_elements
from ..roles.model import (
    Advance,
    Axis,
    BarSync,
    CommitCopies,
    CopyAsync,
    CopyOut,
    If,
    Items,
    Mma,
    Slot,
    Step,
    StoreShared,
    WaitCopies,
    Wgmma,
    Zero,
)
from ..syntax import ast
from ..targets.registers import WARPGROUP
from .boxes import on_one_page, paged
from .clears import Clear
from .finish import MathSync
from .flight import Group, State, tile_text
from .load import repeated
from .pipeline import Copy, Expansion, step_offset
from .place import Placed, name_of
from .plan import steps_of
from .products import Product


class CopySync(MathSync):
    """A role that multiplies, computes, and fills what it reads."""

    sets_registers = False

    # What the role may not say.

    def collect(self) -> None:
        super().collect()
        self.refuse()
        for h in self.plan.homes.values():
            streamed = self.plan.axis in h.indices
            if not h.output and not streamed and h.stages > 1:
                cure = "drop `ring`: threads that copy for themselves have read it before they fill it again"
                raise WgError(NotYetSupported(span=h.span, what="a ring for what is filled once an item", cure=cure))

        once = [s for s in self.fills() if name_of(s.targets[0]) in self.once_filled()]
        for s in repeated(self.role.steps, once):
            why = "is filled in every iteration, but holds one tile for all of them"
            raise WgError(NotFilled(span=s.span, name=name_of(s.targets[0]), why=why, cure="put it before the loop"))

    def refuse(self) -> None:
        """What belongs to engines that work beside the threads."""
        name = self.plan.target.name
        if self.role.by_item:
            cure = "split the rows, or give the role 4 warps"
            raise WgError(NotYetSupported(span=self.role.span, what=f"`split tiles` on {name}", cure=cure))
        cure = "products are done when they are issued here, so nobody's wait could be used"
        for s in self.turns:
            raise WgError(NotYetSupported(span=s.span, what="`in turn` in a role that copies for itself", cure=cure))
        if len(self.plan.roles) > 1:
            cure = "one role fills, multiplies and stores"
            raise WgError(NotYetSupported(span=self.plan.roles[1].span, what="a second role here", cure=cure))
        for s in (s for s in steps_of(self.role.steps) if isinstance(s, ast.OnceStep)):
            cure = "put its steps before the loop"
            raise WgError(NotYetSupported(span=s.span, what="`once` in a role that copies for itself", cure=cure))
        grid = next(i for i in self.plan.schedule.items if isinstance(i, ast.GridDecl))
        if self.plan.work is not None or self.plan.joined:
            what = f"`joined` items on {name}" if self.plan.joined else f"a `dynamic` grid on {name}"
            raise WgError(NotYetSupported(span=grid.span, what=what, cure="`grid persistent static over ...`, or a plain grid"))
        for skip in (i for i in self.plan.schedule.items if isinstance(i, ast.SkipDecl)):
            cure = "drop this line: the warps that copy for each other visit the same tiles"
            raise WgError(NotYetSupported(span=skip.span, what=f"`skip` on {name}", cure=cure))

    # Barriers.

    @property
    def together(self) -> BarSync:
        """The role's warps meet."""
        count = self.role.count
        first = self.ids.whole.get(self.role.name)
        return BarSync(id=self.local if first is None else Poly.of(first), threads=WARPGROUP * count)

    def meet(self, note: str) -> None:
        self.emit(replace(self.together, note=note))
        self.state.reading.clear()

    # Copies.

    def fill(self, s: ast.FillStep, position: Poly | None) -> None:
        homes = [name_of(t) for t in s.targets]
        if any("." in h for h in homes):
            cure = f"`fill {homes[0].split('.')[0]}`: the threads of a role fill it together"
            raise WgError(NotYetSupported(span=s.span, what=f"`fill {homes[0]}`", cure=cure))
        ring = self.placement.ring_of[homes[0]]
        streamed = self.plan.axis in self.plan.homes[homes[0]].indices
        if streamed and position is None:
            cure = f"put it into `for {self.plan.axis} {{ ... }}`"
            raise WgError(NotYetSupported(span=s.span, what=f"a fill of `{homes[0]}` outside the loop", cure=cure))
        rel = self.rel_of(s) if streamed else None
        self.free(homes[0], ring, rel, s)
        for home in homes:
            p = self.placement.placed[home]
            for part in range(p.buffer.parts):
                self.emit(self.copy_of(p, part, Slot(ring=ring), position))
        self.emit(CommitCopies())
        self.state.copies.append((ring, rel))
        if streamed:
            self.emit(Advance(ring=ring))
            self.state.position[ring] += 1

    def rel_of(self, s: ast.FillStep) -> int:
        """The tile that a fill in the loop is for, relative to the loop variable."""
        found = step_offset(s, self.plan.axis)
        assert found is not None
        return found

    def free(self, home: str, ring: str, rel: int | None, s: ast.FillStep) -> None:
        """The slot that a tile goes to holds nothing that anybody still reads."""
        stages = self.placement.rings[ring].stages
        if rel is None:
            if (ring, rel) in self.state.copies or (ring, rel) in self.state.waited:
                raise WgError(NotFilled(span=s.span, name=home, why="is filled twice for one tile", cure="remove one `fill`"))
        else:
            position = self.state.position.setdefault(ring, rel)
            if position != rel:
                tiles = f"`{home}{tile_text(self.plan.axis, position)}` comes first"
                raise WgError(NotFilled(span=s.span, name=home, why="isn't filled tile by tile", cure=tiles))
            held = sum(r == ring for r, _ in (*self.state.copies, *self.state.waited))
            if held >= stages:
                raise WgError(RingTooShallow(span=self.span, home=home, stages=stages, held=held))
        clash = [t for r, t in self.state.reading if r == ring and (rel is None or t is None or (t - rel) % stages == 0)]
        if clash:
            self.meet(f"all warps have read {home}")

    def copy_of(self, p: Placed, part: int, slot: Slot, position: Poly | None) -> CopyAsync:
        rows, cols = (
            Axis(index=i, origin=self.start(i, part, position), count=n)
            for i, n in ((p.buffer.rows_index, p.buffer.rows), (p.buffer.cols_index, p.buffer.cols))
        )
        home, at = p.home, {rows.index: rows.origin}
        if any(paged(x, rows.index) for x in home.access) and not on_one_page(
            home.access, rows.index, self.plan.size(rows.index)
        ):
            cure = "pages of whole tiles: `page[b, j / 64]` and `j % 64` with `tile j 64`, or 32"
            raise WgError(NotYetSupported(span=home.span, what=f"a tile of `{home.tensor}` on several pages", cure=cure))
        access = tuple(with_elements(x, lambda a: element(a.tensor, [y.substitute(at) for y in a.args])) for x in home.access)
        return CopyAsync(
            buffer=p.buffer.name, part=Poly.of(part), slot=slot, tensor=home.tensor, access=access, rows=rows, cols=cols
        )

    def start(self, index: str, part: int, position: Poly | None) -> Poly:
        """First element of a part's tile along an index."""
        if index == self.plan.axis:
            assert position is not None
            return self.trip.tile(position) * self.plan.size(index)
        return self.plan.origin(index) + (part * self.plan.used(index) if self.plan.is_split(index) else 0)

    # Waits.

    def before_loop(self, expansion: Expansion) -> None:
        """What is filled once an item is waited for by the product that reads it first, with its other operand."""

    def wait_full(self, home: str, rel: int | None) -> None:
        self.wait_all({home: rel})

    def wait_all(self, rels: dict[str, int | None]) -> None:
        """The youngest of the copies that are missing: with it all older ones have arrived, and one barrier tells of all."""
        missing = {(self.placement.ring_of[h], r): h for h, r in rels.items()}
        missing = {key: h for key, h in missing.items() if key not in self.state.waited}
        for key, home in missing.items():
            if key not in self.state.copies:
                tile = f"{home}{tile_text(self.plan.axis, key[1])}"
                cure = f"`fill {tile}` before this step"
                raise WgError(NotFilled(span=self.span, name=tile, why="isn't filled before it is read", cure=cure))
        if not missing:
            return
        last = max(self.state.copies.index(key) for key in missing)
        self.emit(WaitCopies(pending=len(self.state.copies) - last - 1))
        arrived, self.state.copies = self.state.copies[: last + 1], self.state.copies[last + 1 :]
        self.meet(", ".join(dict.fromkeys(missing.values())) + " has arrived for all")
        self.state.waited |= set(arrived)

    def settled(self, before: State) -> bool:
        """A copy that a loop begins with may be waited for early in each iteration, with a younger one: then so in front."""
        early = [c for c in before.copies if c[1] is not None and c in self.state.waited]
        if not early:
            return False
        self.state = deepcopy(before)
        self.wait_all({self.placement.rings[ring].buffers[0]: rel for ring, rel in early})
        return True

    def slot(self, ring: str, rel: int | None) -> Slot:
        return Slot(ring=ring) if rel is None else super().slot(ring, rel)

    def read_done(self, ring: str, rel: int | None) -> None:
        self.state.reading.add((ring, rel))
        key = (ring, rel)
        self.state.done[key] = self.state.done.get(key, 0) + 1
        if rel is not None and self.state.done[key] >= self.uses[ring]:
            del self.state.done[key]
            self.state.waited.discard(key)

    def clear_after_prologue(self, copy: Copy) -> None:
        """The first tile's copies may not have been issued yet: it is cleared before its product."""

    def clear(self, c: Clear) -> None:
        ring = self.placement.ring_of[c.home]
        self.wait_full(c.home, c.rel)
        self.emit(c.branch(self.part_of(c.home), self.slot(ring, c.rel), self.local, self.span, (), proxy=False))

    # Products.

    def begin_accumulating(self) -> None:
        """An accumulator starts from 0: a product that may ignore it would cost a branch in each iteration."""
        for p in self.products.values():
            if self.streamed.state(p.node.name) is not None:
                self.start_sum(p)

    def start_sum(self, p: Product) -> None:
        if p.value not in self.begun:
            self.emit(Zero(value=p.value))
        super().start_sum(p)

    def first_tile(self, position: Poly, rel: int) -> Expr:
        return FALSE

    def multiply(self, step: Wgmma | Mma, group: Group) -> None:
        self.emit(step)
        self.done(group)

    # The end of an item.

    def nothing_streamed(self) -> None:
        """What was filled for nothing arrives before its memory is used for something else."""
        filled = self.once_filled()
        if filled:
            self.emit(WaitCopies(pending=0))
        if any(p.home.over in filled for p in self.placement.placed.values()):
            self.emit(replace(self.together, note="what was filled once an item has arrived"))

    def once_filled(self) -> set[str]:
        """The homes that are filled outside the loop."""
        homes = {name_of(t).split(".")[0] for s in self.fills() for t in s.targets}
        return {h for h in homes if self.plan.axis not in self.plan.homes[h].indices}

    def fills(self) -> list[ast.FillStep]:
        """All of the role."""
        return [s for s in steps_of(self.role.steps) if isinstance(s, ast.FillStep)]

    def loop_ended(self) -> None:
        if self.state.copies:
            ring, rel = self.state.copies[-1]
            tile = f"{ring}{tile_text(self.plan.axis, rel)}"
            why, cure = "is filled and never read", f"issue the product that reads `{tile}`, or drop the fill"
            raise WgError(NotFilled(span=self.span, name=tile, why=why, cure=cure))

    def await_store(self, s: ast.AwaitStep, name: str) -> None:
        """Threads that store are done when they have."""

    def leave(self) -> None:
        """Nothing is in flight at the end."""

    def items(self, body: tuple[Step, ...]) -> Items:
        if self.plan.persistent:
            body = (*body, replace(self.together, note="the next item may fill what this one has read", span=self.role.span))
        return super().items(body)

    def store(self, o: Output, p: Placed, src: str, rows: Axis, cols: Axis) -> None:
        if p.staged_parts:
            cure = "stage it in memory of its own, or over what is filled once an item"
            raise WgError(NotYetSupported(span=p.home.span, what="a result staged over a ring by threads", cure=cure))
        if p.home.over is not None and (self.placement.ring_of[p.home.over], None) in self.state.reading:
            self.meet(f"all warps have read {p.home.over}")
        part, slot = Poly.of("wg") if p.buffer.parts > 1 else Poly.of(0), Slot(ring=p.buffer.ring)
        self.emit(StoreShared(buffer=p.buffer.name, part=part, slot=slot, src=src), self.group_sync("written"))
        add = o.tensor in self.combined
        copy = CopyOut(
            buffer=p.buffer.name, part=part, slot=slot, tensor=o.tensor, access=o.access, rows=rows, cols=cols, add=add,
            wide=not add, limit=self.limit(o), span=self.span,
        )  # fmt: skip
        if add or not p.needs_fallback:
            self.emit(copy)
            return
        note = "rows that suit stores of 16 bytes"
        plain = replace(copy, wide=False)
        self.emit(If(cond=Scalar(name=f"{o.tensor}.tma"), then=(copy,), other=(plain,), note=note))

"""load: the steps of a role that fills: one thread waits for an empty slot, announces the bytes and starts the copies.

A role that transposes beside it has all its threads for that, and one of them for the copies."""

from __future__ import annotations

from collections.abc import Iterator

from ..diagnostics.model import WgError
from ..diagnostics.schedule import CantShare, NotFilled, NotYetSupported, RingTooShallow, UnknownName
from ..program.expr import Affine, conjunction
from ..program.poly import Poly
from ..roles.model import Advance, Arrive, Elect, Expect, If, Slot, Step, Tma, Wait
from ..syntax import ast
from .flight import tile_text
from .items import opened
from .joined import JoinedSync
from .pipeline import Copy, ast_text, step_offset
from .place import Placed, name_of
from .plan import only_fills, steps_of
from .sync import SECOND


class LoadSync(JoinedSync):
    """A role whose steps are fills."""

    @property
    def elected(self) -> bool:
        """Whether one thread runs all of it. What also transposes is run by all, of which one fills."""
        return only_fills(self.role.steps)

    def collect(self) -> None:
        super().collect()
        work = self.plan.work
        if not self.elected and work is not None and work.role == self.role.name:
            what, cure = "a role that fills and transposes in a dynamic grid", "give the `pack` a role of its own"
            raise WgError(NotYetSupported(span=self.role.span, what=what, cure=cure))
        if self.role.count > 1:
            cure = "one thread fills: give the role 1 warpgroup"
            raise WgError(NotYetSupported(span=self.role.span, what="a role of several warpgroups that only fills", cure=cure))
        for home in self.plan.homes:
            if self.fills(home):
                self.once_each(home)
        self.lent_in_time()

    def lent_in_time(self) -> None:
        """The slots for a result are lent before the next item's first fill of their ring. What is filled ahead of that must
        find room, since nobody frees it while the result waits."""
        filled = [s for s in steps_of(self.role.steps) if isinstance(s, ast.FillStep)]
        for p in self.placement.placed.values() if self.plan.persistent else ():
            own = next((k for k, s in enumerate(filled) if p.staged_parts and p.home.over in self.names(s)), None)
            ahead = () if own is None else ((k, s) for k, s in enumerate(filled) if k != own)
            for k, s in ahead:
                ring = self.placement.rings[self.placement.ring_of[self.names(s)[0]]]
                offset = step_offset(s, self.plan.axis)
                first = step_offset(filled[own or 0], self.plan.axis) or 0
                times = 0 if offset is None else offset - first + (k < (own or 0))
                if times > ring.stages:
                    slots = "one slot" if ring.stages == 1 else f"{ring.stages} slots"
                    why = f"{times} tiles of `{ring.name}`, which has {slots}, are filled before the first of `{p.home.over}`"
                    raise WgError(CantShare(span=p.home.span, name=p.home.name, other=p.home.over or "", why=why))

    @staticmethod
    def names(s: ast.FillStep) -> list[str]:
        return [name_of(t).split(".")[0] for t in s.targets]

    def once_each(self, home: str) -> None:
        """Every part of a tile is filled, and none twice."""
        count = self.placement.placed[home].buffer.parts
        taken: list[int] = []
        if self.plan.axis not in self.plan.homes[home].indices:
            for s in repeated(self.role.steps, self.fills(home)):
                cure = f"`once {{ {ast_text(s)} }}`, or put it before the loop"
                why = "is filled in every iteration, but holds one tile for all of them"
                raise WgError(NotFilled(span=s.span, name=home, why=why, cure=cure))
            after = [s for s in self.after_loop() if s in self.fills(home)]
            if after:
                why, cure = "is filled after the loop that reads it", "put this step before the loop"
                raise WgError(NotFilled(span=after[0].span, name=home, why=why, cure=cure))
        for s in self.fills(home):
            for target in (name_of(t) for t in s.targets if name_of(t).split(".")[0] == home):
                parts = self.parts(target, s) if "." in target else range(count)
                if set(parts) & set(taken):
                    why, cure = "is filled twice for one tile", "remove one of its `fill`s"
                    raise WgError(NotFilled(span=s.span, name=target, why=why, cure=cure))
                taken += parts
        left = [k for k in range(count) if k not in taken]
        if left:
            span, part = self.fills(home)[-1].span, f"{home}.{left[0]}"
            raise WgError(NotFilled(span=span, name=part, why="is never filled", cure=f"`fill {part}` or `fill {home}.rest`"))

    def fill(self, s: ast.FillStep, position: Poly | None) -> None:
        homes = [name_of(t) for t in s.targets]
        names = [h.split(".")[0] for h in homes]
        ring = self.placement.ring_of[names[0]]
        if self.by_parts(names[0]):
            for part in self.parts(homes[0], s):
                self.one(ring, [(self.placement.placed[names[0]], [part])], part, position)
        elif homes != names:
            cure = "a streamed tile, or several filled together, has one barrier: fill it whole"
            raise WgError(NotYetSupported(span=s.span, what=f"`fill {homes[0]}`", cure=cure))
        else:
            every = [(self.placement.placed[n], list(range(self.placement.placed[n].buffer.parts))) for n in names]
            self.one(ring, every, 0, position)
        streamed = self.plan.axis in self.plan.homes[names[0]].indices
        if streamed and ring in self.uses:  # the position is that of fills, behind which the role reads
            offset = step_offset(s, self.plan.axis) or 0
            at = self.state.position.setdefault(ring, offset)
            if at != offset:
                tiles = f"`{names[0]}{tile_text(self.plan.axis, at)}` comes first"
                raise WgError(NotFilled(span=s.span, name=names[0], why="isn't filled tile by tile", cure=tiles))
            self.state.position[ring] = at + 1
        if streamed or (self.last_fill(s, names[0]) and self.placement.rings[ring].empty):
            self.emit(Advance(ring=ring))

    def wait_full(self, home: str, rel: int | None) -> None:
        """A tile that it transposes lies behind the fills; a slot is filled again only when that is done."""
        ring = self.placement.ring_of[home]
        stages = self.placement.rings[ring].stages
        if rel is not None and self.state.position.get(ring, rel) - rel > stages:
            raise WgError(RingTooShallow(span=self.span, home=home, stages=stages, held=stages))
        super().wait_full(home, rel)

    def after_loop(self) -> tuple[ast.Step, ...]:
        steps = tuple(opened(self.role.steps))
        loops = [k for k, s in enumerate(steps) if isinstance(s, ast.ForStep)]
        return steps[loops[-1] + 1 :] if loops else ()

    def by_parts(self, home: str) -> bool:
        """Whether parts of the home can be filled one by one: it is filled alone, once an item."""
        alone = len(self.placement.rings[self.placement.ring_of[home]].buffers) == 1
        return alone and self.plan.axis not in self.plan.homes[home].indices

    def parts(self, target: str, s: ast.FillStep) -> list[int]:
        """The parts that `Qs`, `Qs.0` or `Qs.rest` names; `rest` is what no other fill of the role names."""
        name, _, which = target.partition(".")
        count = self.placement.placed[name].buffer.parts
        if not which:
            return list(range(count))
        if which == "rest":
            return [k for k in range(count) if k not in self.named(name)]
        known = (*map(str, range(count)), "rest")
        if which not in known:
            raise WgError(UnknownName(span=s.span, what=f"part of `{name}`", name=which, known=known))
        return [int(which)]

    def named(self, home: str) -> set[int]:
        out = set()
        for s in self.fills(home):
            for t in s.targets:
                which = name_of(t).partition(".")[2]
                if which.isdigit():
                    out.add(int(which))
        return out

    def fills(self, home: str) -> list[ast.FillStep]:
        found = [s for s in steps_of(self.role.steps) if isinstance(s, ast.FillStep)]
        return [s for s in found if any(name_of(t).split(".")[0] == home for t in s.targets)]

    def last_fill(self, s: ast.FillStep, home: str) -> bool:
        return self.fills(home)[-1] is s

    def one(self, ring: str, tiles: list[tuple[Placed, list[int]]], part: int, position: Poly | None) -> None:
        """One slot of one barrier: wait until it is empty, expect all bytes, start all copies."""
        r, slot = self.placement.rings[ring], Slot(ring=ring)
        at = Poly.of(part if self.placement.per_part(ring) else 0)
        if position is not None:
            self.lend_before_first(ring, position)
        outer, self.out = self.out, []
        if r.empty is not None:
            self.emit(Wait(barrier=r.empty, part=at, slot=slot, flip=True))
        assert r.full is not None
        nbytes = sum(p.box_bytes * len(parts) for p, parts in tiles)
        self.emit(Expect(barrier=r.full, part=at, slot=slot, nbytes=nbytes))
        for p, parts in tiles:
            for k in parts:
                rows = self.origin(p, p.buffer.rows_index, k, position)
                cols = self.origin(p, p.buffer.cols_index, k, position)
                assert p.map is not None
                for panel, rows_part, coords in p.copies(rows, cols):
                    self.emit(
                        Tma(
                            buffer=p.buffer.name,
                            part=Poly.of(k),
                            slot=slot,
                            map=p.map.name,
                            coords=coords,
                            barrier=r.full,
                            barrier_part=at,
                            panel=panel,
                            parts=p.groups,
                            rows_part=rows_part,
                        )
                    )
        steps, self.out = tuple(self.out), outer
        self.emit(*(steps if self.elected else (Elect(body=steps, span=self.span),)))

    def staging(self) -> list[tuple[str, int]]:
        """(ring, slots) of each staging buffer over a ring that this role fills."""
        staged = (p for p in self.placement.placed.values() if p.staged_parts)
        return [(p.buffer.ring, p.staged_parts) for p in staged if self.fills(p.home.over or "")]

    def lend(self, ring: str, slots: int) -> tuple[Step, ...]:
        """The slots in which a result is staged, as if filled behind the item's last fill: empty, and full without bytes."""
        r, slot, out = self.placement.rings[ring], Slot(ring=ring), []
        assert r.full is not None and r.empty is not None
        for _ in range(slots):
            out += [
                Wait(barrier=r.empty, part=Poly(), slot=slot, flip=True, span=self.span, note="lent to a result"),
                Arrive(barrier=r.full, part=Poly(), slot=slot, by="thread", span=self.span),
                Advance(ring=ring, span=self.span),
            ]
        return tuple(out)

    def lend_before_first(self, ring: str, position: Poly) -> None:
        """The slots for the item before, as late as can be: when the first fill of the next item needs the ring."""
        copy = self.current
        at_start = position.constant == 0 or (copy is not None and copy.kind != "prologue" and self.starts(copy, position))
        if not self.plan.persistent or not at_start:
            return
        for name, slots in self.staging():
            if name == ring:
                self.counted = True
                cond = conjunction(*((Affine(poly=-position),) if position.constant != 0 else ()), SECOND)
                self.emit(If(cond=cond, then=self.lend(ring, slots)))

    @staticmethod
    def starts(copy: Copy, position: Poly) -> bool:
        """Whether a copy of the loop may hold the first position of the stream."""
        return copy.kind == "drain" or (position - copy.j).constant == copy.low

    def nothing_streamed(self) -> None:
        for ring, slots in self.staging() if self.plan.persistent else ():
            self.counted = True
            self.emit(If(cond=SECOND, then=self.lend(ring, slots)))

    def leave(self) -> None:
        for ring, slots in self.staging():
            self.emit(*self.lend(ring, slots))

    def origin(self, p: Placed, index: str, part: int, position: Poly | None) -> Poly:
        """First element of a part's tile along an index."""
        if index == self.plan.axis:
            if position is None:
                cure = f"put it into `for {index} {{ ... }}`"
                raise WgError(NotYetSupported(span=self.span, what=f"a fill of `{p.home.name}` outside the loop", cure=cure))
            return self.trip.tile(position) * self.plan.size(index)
        return self.plan.origin(index) + (part * self.plan.used(index) if self.plan.is_split(index) else 0)


def repeated(steps: tuple[ast.Step, ...], among: list[ast.FillStep], inside: bool = False) -> Iterator[ast.FillStep]:
    """Those of the fills that run in every iteration of a loop."""
    for s in steps:
        if inside and isinstance(s, ast.FillStep) and s in among:
            yield s
        if not isinstance(s, ast.OnceStep):
            yield from repeated(getattr(s, "body", ()), among, inside or isinstance(s, ast.ForStep))

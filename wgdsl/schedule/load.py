"""load: the steps of a role that only fills: one thread waits for an empty slot, announces the bytes and starts the copies."""

from __future__ import annotations

from ..diagnostics.model import WgError
from ..diagnostics.schedule import BadNumber, NotYetSupported
from ..program.poly import Poly
from ..roles.model import Advance, Expect, Slot, Tma, Wait
from ..syntax import ast
from .place import Placed, name_of, steps_of
from .sync import RoleSync


class LoadSync(RoleSync):
    """A role whose steps are fills."""

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
        if streamed or (self.last_fill(s, names[0]) and self.placement.rings[ring].empty):
            self.emit(Advance(ring=ring))

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
        k = int(which)
        if k >= count:
            raise WgError(BadNumber(span=s.span, what=f"the part of `{name}`", value=k, rule=f"it has parts 0 to {count - 1}"))
        return [k]

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
        if r.empty is not None:
            self.emit(Wait(barrier=r.empty, part=at, slot=slot, flip=True))
        assert r.full is not None
        nbytes = sum(p.box_bytes * len(parts) for p, parts in tiles)
        self.emit(Expect(barrier=r.full, part=at, slot=slot, nbytes=nbytes))
        for p, parts in tiles:
            for k in parts:
                rows = self.origin(p, p.buffer.rows_index, p.buffer.rows, k, position)
                cols = self.origin(p, p.buffer.cols_index, p.buffer.cols, k, position)
                for panel, coords in p.copies(rows, cols):
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
                        )
                    )

    def origin(self, p: Placed, index: str, share: int, part: int, position: Poly | None) -> Poly:
        """First element of a part's tile along an index; `share`: elements of a part along it."""
        if index == self.plan.axis:
            if position is None:
                raise WgError(NotYetSupported(span=self.span, what=f"a fill of `{p.home.name}` outside the loop"))
            return self.trip.tile(position) * self.plan.size(index)
        return self.plan.origin(index) + (part * share if self.plan.is_split(index) else 0)

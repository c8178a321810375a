"""States that differ only in how often rings have gone round are one: positions are counted from the slowest user of a ring,
and its stages are turned so that this one stands at the first.

In: a machine.  Out: what tells its state from others, hashable.
"""

from __future__ import annotations

from functools import lru_cache

from ..roles import model as m
from .layout import BY_ONE, FILL, GENERIC, PRODUCT, READ, STORE, Layout, Unit, uses
from .machine import Machine, Product

ASYNCHRONOUS = (FILL, PRODUCT, STORE)
ONE_HOLDER = (FILL, *BY_ONE)
IN_FLIGHT = (m.Wgmma | m.Commit, m.TmaStore | m.CommitStore, m.CopyAsync | m.CommitCopies)


class Normal:
    """How states of one layout are normalised."""

    def __init__(self, layout: Layout, apart: bool = False):
        self.layout, self.apart = layout, apart
        self.rings = len(layout.rings)
        self.stages = [r.stages for r in layout.kernel.rings]
        self.spins = {s.ring: s for s in layout.spins}
        names = list(layout.rings)
        self.users = [[u.number for u in layout.units if _uses(u, name)] for name in names]
        self.ring_of = [layout.rings[b.ring] for b, _, _ in layout.mbarriers]
        self.stage_of = [s for _, _, s in layout.mbarriers]
        self.turned = lru_cache(maxsize=None)(self._turned)
        self.befores = [0] * self.rings
        for k, (_, before) in enumerate(layout.over):
            self.befores[self.ring_of[k]] |= before
        self.takers = [self._takers(k) for k in range(len(layout.mbarriers))]
        self.folded = list(layout.fellows.values())
        self.atoms_of: dict[str, set[int]] = {}
        for (buffer, _, _), panels in layout.tiles.items():
            self.atoms_of.setdefault(buffer, set()).update(a for p in panels for a in p)
        self.lags = [0] * self.rings
        for s in (s for u in layout.units for s in u.steps):
            for slot in _slots(s):
                self.lags[layout.rings[slot.ring]] = max(self.lags[layout.rings[slot.ring]], slot.lag)
        self.overwriters = [self._users(a, (FILL, *GENERIC)) for a in range(layout.atoms)]
        self.readers = [self._users(a, (READ, PRODUCT, STORE)) for a in range(layout.atoms)]
        self.groups = {*self.overwriters, *self.readers}
        steps = [s for u in layout.units for s in u.steps]
        self.partial = any(isinstance(s, m.ClearRows | m.CopyAsync) for s in steps)  # some atoms are written bit by bit
        self.issuing = [[u.number for u in layout.units if any(isinstance(s, kind) for s in u.steps)] for kind in IN_FLIGHT]

    def bases(self, x: Machine, ended: list[bool]) -> list[int]:
        """Of each ring, the position of the slowest role that still uses it; of one that isn't turned, whole rounds."""
        out = []
        for ring, users in enumerate(self.users):
            at = [x.position[u * self.rings + ring] for u in users if not ended[u]]
            at = at or [x.position[u * self.rings + ring] for u in users] or [0]
            n = self.stages[ring]
            base = min(at)
            out.append(base if ring in self.spins or n == 1 else base // n * n)
        return out

    def _turned(self, turns: tuple[int, ...]) -> tuple[list, list[int], list[int], list[int]]:
        """Masks and shifts that turn bits, and the order of mbarriers, atoms, and of all that is known, for turns by so many
        stages."""
        w, steps = self.layout.width, []
        for ring, k in enumerate(turns):
            if not k:
                continue
            s = self.spins[ring]
            low = (1 << k * s.width) - 1 << s.base
            every = (1 << s.stages * s.width) - 1 << s.base
            high = every & ~low
            down, up = k * s.width, (s.stages - k) * s.width
            steps.append((self.layout.every ^ (every | every << w), high | high << w, down, low | low << w, up))
        barriers = [
            self.layout.barriers[b.name] + p * b.stages + (s + turns[self.ring_of[i]]) % b.stages
            for i, (b, p, s) in enumerate(self.layout.mbarriers)
        ]
        return steps, barriers, self._atoms(turns), self._order(barriers)

    def _atoms(self, turns: tuple[int, ...]) -> list[int]:
        places = self.layout.atom_places
        by_place: dict[tuple[str, int], list[int]] = {}
        for a, place in enumerate(places):
            by_place.setdefault(place, []).append(a)
        out = []
        for a, (ring, stage) in enumerate(places):
            turn = turns[self.layout.rings[ring]] if ring else 0
            there = (ring, (stage + turn) % self.stages[self.layout.rings[ring]]) if turn else (ring, stage)
            out.append(by_place[there][by_place[ring, stage].index(a)])
        return out

    def key(self, x: Machine, ended: list[bool]) -> tuple[tuple, tuple[int, ...]]:
        """The state of the protocol, and apart from it what is known: of two states alike, the one that knows more can do all
        that the other can."""
        bases = self.bases(x, ended)
        steps, barriers, atoms, order = self.turned(self._turns(bases))
        dead = [t is None or t.position < bases[t.ring] - self.lags[t.ring] for t in x.tags]
        known = self._known(x, bases, dead)
        bits = [known[i] for i in order]
        alive = [a for a in atoms if self.partial and not dead[a]]
        bits += [0 if dead[a] else x.covered[a] for a in atoms if self.partial]
        know = len(bits)
        bits += [x.clears[a] for a in alive] + [x.sharing[a] for a in alive]
        bits += [clears for a in alive for _, clears in x.cleared[a]]
        for off, high, down, low, up in steps:
            bits = [v & off | (v & high) >> down | (v & low) << up if v else 0 for v in bits]
        positions = [x.position[u * self.rings + r] - bases[r] for r, users in enumerate(self.users) for u in users]
        phases = [x.phase[b] * self.stages[self.ring_of[b]] + self.stage_of[b] - bases[self.ring_of[b]] for b in barriers]
        skeleton = (
            tuple(bits[know:]), tuple(positions), tuple(phases), tuple([x.pending[b] for b in barriers]),
            tuple([x.bytes[b] for b in barriers]), self._tags(x, ended, bases, dead, atoms),
            tuple([tuple([rows for rows, _ in x.cleared[a]]) for a in alive]), tuple(x.arrived),
            tuple(x.waiting), tuple(x.barred),
            *self._flying(x, steps), tuple([x.unseen[b] > 0 for b in barriers]) if self.apart else (),
        )  # fmt: skip
        return skeleton, (*bits[:know], *x.defined, *[~t for t in x.touched])

    def _known(self, x: Machine, bases: list[int], dead: list[bool]) -> list[int]:
        """What is known, as far as it matters."""
        settled = self._settled(x, dead)
        known = [v and v | settled for v in x.known]
        self._forget_old(x, bases, known)
        for k, (holders, use) in enumerate(self.takers):
            if not known[x.last + k]:
                continue
            seen = use if holders else 0
            for h in holders:
                seen &= known[h]
            known[x.last + k] = known[x.last + k] & use | seen
        return known

    def _tags(self, x: Machine, ended: list[bool], bases: list[int], dead: list[bool], atoms: list[int]) -> tuple:
        """What atoms hold, by its place from the slowest role in its ring, and from the slowest role's item."""
        least = min([i for i, e in zip(x.item, ended, strict=True) if not e], default=0)
        out: list[tuple | None] = []
        for a in atoms:
            if dead[a] or (t := x.tags[a]) is None:
                out.append(None)
            else:
                out.append((t.buffer, t.position - bases[t.ring], t.item - least if t.item >= 0 else -1))
        return tuple(out)

    def _flying(self, x: Machine, steps: list) -> tuple[tuple, ...]:
        """Products, stores and copies under way; those that aren't committed stand behind an empty group."""
        multiplying, storing, copying = self.issuing
        products = [tuple([tuple([_spun(p, steps) for p in g]) for g in (*x.groups[u], (), x.open[u])]) for u in multiplying]
        stores = [tuple([tuple([_spin(b, steps) for b in g]) for g in (*x.store_groups[u], (), x.stores[u])]) for u in storing]
        copies = [
            tuple([tuple([tuple([_spin(b, steps) for b in own]) for own in g]) for g in (*x.copy_groups[u], (), x.copies[u])])
            for u in copying
        ]
        return tuple(products), tuple(stores), tuple(copies)

    def near(self, skeleton: tuple) -> tuple:
        """The same for all positions that are far ahead of the slowest role in their ring."""
        far = [n + 1 for users, n in zip(self.users, self.stages, strict=True) for _ in users]
        return (*skeleton[:1], tuple([min(p, f) for p, f in zip(skeleton[1], far, strict=True)]), *skeleton[2:])

    def _turns(self, bases: list[int]) -> tuple[int, ...]:
        return tuple([b % n if r in self.spins else 0 for r, (b, n) in enumerate(zip(bases, self.stages, strict=True))])

    def _order(self, barriers: list[int]) -> list[int]:
        holders, n = self.layout.holders, len(barriers)
        order = [*range(holders), *[holders + b for b in barriers], *[holders + n + b for b in barriers]]
        return [*order, *range(len(order), len(order) + len(self.layout.bars))]

    def impose(self, x: Machine, ended: list[bool], known: tuple[int, ...]) -> None:
        """Let the machine know just this, which `key` has given for a state alike."""
        bases = self.bases(x, ended)
        turns = self._turns(bases)
        _, _, atoms, order = self.turned(turns)
        back, *_ = self.turned(tuple([-k % n for k, n in zip(turns, self.stages, strict=True)]))
        for place, bits in zip(order, known, strict=False):
            x.known[place] = _spin(bits, back)
        written = atoms if self.partial else []
        for a, bits in zip(written, known[len(order) :], strict=False):
            x.covered[a] = _spin(bits, back)
        rest = known[len(order) + len(written) :]
        units = len(x.defined)
        x.defined, x.touched = list(rest[:units]), [~t for t in rest[units:]]

    def _forget_old(self, x: Machine, bases: list[int], known: list[int]) -> None:
        """Who is more than a round of a ring ahead of the slowest needs to know of the end of phases to come, not of those
        past."""
        for ring, users in enumerate(self.users):
            for u in users:
                if x.position[u * self.rings + ring] - bases[ring] > self.stages[ring]:
                    for h in self.layout.units[u].holders:
                        known[h] &= self.layout.every ^ self.befores[ring]

    def _takers(self, mbarrier: int) -> tuple[list[int], int]:
        """Holders that take up what the phases of an mbarrier knew, and what of it is of use to them: not that phases are over
        which they never wait for."""
        units = [u for u in self.layout.units if (mbarrier, u.number) in self.layout.passes]
        useless = 0
        for k, (_, before) in enumerate(self.layout.over):
            if not any((k, u.number) in self.layout.passes for u in units):
                useless |= before
        return [h for u in units for h in u.holders], self.layout.every ^ useless

    def _settled(self, x: Machine, dead: list[bool]) -> int:
        """What has been done to atoms that all know of who may overwrite them, or read what was written: nothing hangs on it
        any more, so everybody may know."""
        w = self.layout.width
        plain = self.layout.generic ^ ((1 << w) - 1)
        seen = {False: x.known, True: [k & (k >> w | plain) for k in x.known[: self.layout.holders]]}
        common = {}
        for users in self.groups:
            both = -1
            for h, proxied in users:
                both &= seen[proxied][h]
            common[users] = both
        out = 0
        for a, (touches, writes) in enumerate(zip(self.layout.touches, self.layout.writes, strict=True)):
            known = touches & common[self.overwriters[a]]
            out |= known if dead[a] else known & (common[self.readers[a]] | ~writes)
        for near, far in self.folded:  # warps that are folded settle things together
            out &= ~(near | far) | (out & out >> 1) & near | (out & out << 1) & far
        return out | out << w

    def _users(self, atom: int, kinds: tuple[str, ...]) -> tuple[tuple[int, bool], ...]:
        """Holders of who may do such a thing to the atom, and whether by the asynchronous proxy."""
        out = {}
        for u in self.layout.units:
            for buffer, kind in uses(u):
                if kind in kinds and atom in self.atoms_of[buffer]:
                    for h in u.holders[:1] if kind in ONE_HOLDER else u.holders:
                        out[h, kind in ASYNCHRONOUS] = None
        return tuple(out)


def _slots(s: m.Step) -> list[m.Slot]:
    own = [getattr(s, "slot", None), *(getattr(getattr(s, f, None), "slot", None) for f in ("a", "b"))]
    return [x for x in own if x is not None]


def _spin(bits: int, steps: list) -> int:
    for off, high, down, low, up in steps:
        bits = bits & off | (bits & high) >> down | (bits & low) << up
    return bits


def _spun(p: Product, steps: list) -> tuple[int, ...]:
    return (p.acc, p.operand, *[_spin(b, steps) for b in p.own])


def _uses(u: Unit, ring: str) -> bool:
    steps = u.steps
    return any(s.ring == ring if isinstance(s, m.Advance) else any(x.ring == ring for x in _slots(s)) for s in steps)

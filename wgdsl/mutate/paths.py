"""What lies on the paths through a role: rules that tell mutants nobody could see from those that matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..roles import model as m
from ..roles.model import Kernel, Ring, Step
from .effects import ACCESSES, SIGNALS, Effects
from .flow import Seen, State, harmful
from .model import Path
from .sites import sites
from .trace import trace

Matters = Callable[[Step], bool]

UNFOLLOWED = "between the barrier and the next like it nothing touches the memory that it orders, or tells others"
UNSEEN = "the CTA has one item, and fills the slot no more"


class Watch:
    """A domain that looks on: nothing in it is harmful."""

    start: State = None

    def step(self, state: State, path: Path, s: Step) -> tuple[State, Seen]:
        """The state after a step."""
        raise NotImplementedError

    def end(self, state: State) -> Seen:
        """Nobody looks."""
        return None

    def harm(self, before: Seen, after: Seen) -> bool:
        """Nothing is."""
        return False


class _Followed(Watch):
    def __init__(self, paths: frozenset[Path], matters: Matters, ends: Matters):
        self.paths, self.matters, self.ends, self.found = paths, matters, ends, False

    def step(self, state: State, path: Path, s: Step) -> tuple[State, Seen]:
        if path in self.paths:
            return True, None
        if self.ends(s):
            return None, None
        self.found = self.found or (bool(state) and self.matters(s))
        return state, None


def followed(kernel: Kernel, role: int, paths: Iterable[Path]) -> bool:
    """Whether what a rendezvous at `paths` orders comes after it, on some path, before the next rendezvous of the same threads:
    an access to memory that the role's own threads have touched, or, if others touch that too, a signal."""
    effects, steps = Effects(kernel, role), dict(sites(kernel.roles[role].steps))
    own = frozenset(b for s in steps.values() if isinstance(s, ACCESSES) for b in effects.touched(s))
    signals = () if own <= effects.private else SIGNALS
    ids = {str(s.id) for s in map(steps.get, paths) if isinstance(s, m.BarSync)}
    again = lambda s: effects.rendezvous(s) and str(s.id) in ids  # noqa: E731
    watch = _Followed(frozenset(paths), lambda s: isinstance(s, signals) or bool(effects.touched(s) & own), again)
    harmful(kernel, role, (), watch)
    return watch.found


class _Later(Watch):
    def __init__(self, path: Path, ring: Ring, limit: int):
        self.path, self.ring, self.limit, self.most = path, ring.name, limit, 0

    def step(self, state: State, path: Path, s: Step) -> tuple[State, Seen]:
        if path == self.path:
            state = state or 0
        elif state is not None and isinstance(s, m.Advance) and s.ring == self.ring:
            assert isinstance(state, int)
            n = s.stages.constant
            state = min(self.limit, self.limit if n is None else state + n)
            self.most = max(self.most, state)
        return state, None


def observed(kernel: Kernel, role: int, path: Path, s: m.Arrive) -> bool:
    """Whether a later fill waits for the release at `path`: the role goes on, on some path, to the tile in the same slot."""
    ring = kernel.ring(kernel.barrier(s.barrier).ring)
    watch = _Later(path, ring, ring.stages - s.slot.lag + 1)
    harmful(kernel, role, (), watch)
    return watch.most >= watch.limit


def latest(kernel: Kernel, role: int, paths: Iterable[Path]) -> Path | None:
    """Which of the steps at `paths` a CTA comes to last, if to any."""
    ran = dict.fromkeys(paths)
    last = None
    for path, _ in trace(kernel, kernel.roles[role]):
        last = path if path in ran else last
    return last


def refilled(kernel: Kernel, ring: Ring) -> bool:
    """Whether a ring goes round: it has releases, or threads that copy advance in it."""
    every = [s for r in kernel.roles for s in m.walk(r.steps)]
    copied = any(isinstance(s, m.CopyAsync) and s.slot.ring == ring.name for s in every)
    return ring.empty is not None or (copied and any(isinstance(s, m.Advance) and s.ring == ring.name for s in every))


def held(kernel: Kernel, ring: Ring) -> int:
    """The tiles of a ring that a role holds at once, that it waits for included: with fewer stages it waits for ever. Of copies
    of threads those from the copy to the last use."""
    steps = [[s for _, s in trace(kernel, role)] for role in kernel.roles]
    return max(max(_held(own, ring), _copied(Effects(kernel, n), own, ring)) for n, own in enumerate(steps))


def _copied(effects: Effects, steps: Iterable[Step], ring: Ring) -> int:
    at = 0
    filled: dict[int, int] = {}  # tile -> the step that copies it first
    used: dict[int, int] = {}  # and the last one that names it
    for k, s in enumerate(steps):
        if isinstance(s, m.Advance) and s.ring == ring.name:
            at += s.stages.constant or 0
        for tile in {at - slot.lag for _, slot in effects.slots(s) if slot.ring == ring.name}:
            if isinstance(s, m.CopyAsync):
                filled.setdefault(tile, k)
            used[tile] = k
    spans = [(tile, filled[tile], used[tile]) for tile in filled]
    return max((sum(a <= start <= b and t <= tile for t, a, b in spans) for tile, start, _ in spans), default=1)


def _held(steps: Iterable[Step], ring: Ring) -> int:
    at, most = 0, 1
    tiles: set[int] = set()  # waited for and not released
    for s in steps:
        if isinstance(s, m.Advance) and s.ring == ring.name:
            at += s.stages.constant or 0
        elif isinstance(s, m.Wait) and s.barrier == ring.full:
            tiles.add(at - s.slot.lag)
            most = max(most, at - s.slot.lag - min(tiles) + 1)
        elif isinstance(s, m.Arrive) and s.barrier == ring.empty:
            tiles.discard(at - s.slot.lag)
    return most

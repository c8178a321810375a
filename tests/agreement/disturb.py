"""Random changes of a role program: a step deleted, doubled, moved, or a number changed. Most of them break it, some don't."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tests.agreement.shapes import Choose
from wgdsl.program.expr import FALSE, TRUE, Affine
from wgdsl.program.poly import Poly
from wgdsl.roles import model as m
from wgdsl.roles.model import RoleProgram, Step

Steps = tuple[Step, ...]
Way = tuple[tuple[int, str], ...]  # from a role's steps into nested ones: (which step, which of its blocks)

EVENTS = (
    m.Wait, m.Expect, m.Arrive, m.Advance, m.Tma, m.FenceWgmma, m.Commit, m.WaitGroup, m.FenceAsync, m.BarSync, m.BarArrive,
    m.StoreShared, m.CommitStore, m.WaitStore, m.Zero, m.Pack, m.Wgmma, m.CopyAsync, m.CommitCopies, m.WaitCopies, m.Mma,
)  # fmt: skip
FIXED = (m.Items, m.Let, m.StoreGlobal, m.TmaStore)  # what they do is no part of the protocol


@dataclass(frozen=True, kw_only=True)
class Change:
    """`kind` names an entry of `KINDS`; `at` chooses among the places that it applies to, `by` among its variants."""

    kind: str
    at: int
    by: int


def changes(choose: Choose, count: int) -> tuple[Change, ...]:
    return tuple(Change(kind=choose(tuple(KINDS)), at=choose(range(997)), by=choose(range(12))) for _ in range(count))


def disturbed(program: RoleProgram, wanted: tuple[Change, ...]) -> RoleProgram:
    for c in wanted:
        program = KINDS[c.kind](program, c.at, c.by)
    return program


# Places.


def lists(program: RoleProgram) -> Iterator[tuple[int, Way, Steps]]:
    """Every list of steps."""

    def inside(role: int, way: Way, steps: Steps) -> Iterator[tuple[int, Way, Steps]]:
        yield role, way, steps
        for k, s in enumerate(steps):
            for f in ("body", "then", "other"):
                if getattr(s, f, None):
                    yield from inside(role, (*way, (k, f)), getattr(s, f))

    for k, r in enumerate(program.kernels[0].roles):
        yield from inside(k, (), r.steps)


def put(program: RoleProgram, role: int, way: Way, new: Steps) -> RoleProgram:
    """The program with another list of steps at that place."""

    def inside(steps: Steps, way: Way) -> Steps:
        if not way:
            return new
        (k, f), *rest = way
        return (*steps[:k], replace(steps[k], **{f: inside(getattr(steps[k], f), tuple(rest))}), *steps[k + 1 :])

    kernel = program.kernels[0]
    roles = list(kernel.roles)
    roles[role] = replace(roles[role], steps=inside(roles[role].steps, way))
    return replace(program, kernels=(replace(kernel, roles=tuple(roles)),))


def places(program: RoleProgram, wanted: Callable[[Step], bool]) -> list[tuple[int, Way, Steps, int]]:
    return [(r, way, steps, k) for r, way, steps in lists(program) for k, s in enumerate(steps) if wanted(s)]


def _on_steps(wanted: Callable[[Step], bool], change: Callable[[Steps, int, int], Steps]):
    """A change of one list of steps, at one of the steps wanted."""

    def apply(program: RoleProgram, at: int, by: int) -> RoleProgram:
        found = places(program, wanted)
        if not found:
            return program
        role, way, steps, k = found[at % len(found)]
        return put(program, role, way, change(steps, k, by))

    return apply


# Changes.


def movable(s: Step) -> bool:
    return not isinstance(s, FIXED)


def event(s: Step) -> bool:
    return isinstance(s, EVENTS) or (isinstance(s, m.If | m.Elect) and all(map(event, (*s.blocks()[0],))))


def delete(steps: Steps, k: int, by: int) -> Steps:
    return (*steps[:k], *steps[k + 1 :])


def repeat(steps: Steps, k: int, by: int) -> Steps:
    return (*steps[:k], steps[k], *steps[k:])


def swap(steps: Steps, k: int, by: int) -> Steps:
    if k + 1 == len(steps) or not movable(steps[k + 1]):
        return steps
    return (*steps[:k], steps[k + 1], steps[k], *steps[k + 2 :])


def move(steps: Steps, k: int, by: int) -> Steps:
    """By two to four places, or to either end."""
    rest = delete(steps, k, by)
    first = next((n for n, s in enumerate(rest) if not isinstance(s, m.Let)), len(rest))
    to = (k - 4, k - 3, k - 2, k + 2, k + 3, k + 4, first, len(rest))[by % 8]
    to = max(first, min(to, len(rest)))
    return (*rest[:to], steps[k], *rest[to:])


def one_warpgroup(steps: Steps, k: int, by: int) -> Steps:
    """Only by the first, or by all others."""
    cond = Affine(poly=-Poly.of("wg") if by % 2 else Poly.of("wg") - 1)
    return (*steps[:k], m.If(cond=cond, then=(steps[k],)), *steps[k + 1 :])


def hoist(program: RoleProgram, at: int, by: int) -> RoleProgram:
    """A step leaves its loop or branch, in front or behind."""
    inner = [x for x in places(program, event) if x[1] and x[1][-1][1] != "other" and not _bound(x[2][x[3]])]
    inner = [x for x in inner if not isinstance(_at(program, x[0], x[1]), m.Items | m.Elect)]
    if not inner:
        return program
    role, way, steps, k = inner[at % len(inner)]
    program = put(program, role, way, delete(steps, k, 0))
    (n, _), outer = way[-1], way[:-1]
    around = next(s for r, w, s in lists(program) if (r, w) == (role, outer))
    to = n + by % 2
    return put(program, role, outer, (*around[:to], steps[k], *around[to:]))


def _at(program: RoleProgram, role: int, way: Way) -> Step:
    """The step whose block the way leads to."""
    (n, _), outer = way[-1], way[:-1]
    return next(s for r, w, s in lists(program) if (r, w) == (role, outer))[n]


def _bound(s: Step) -> bool:
    """Whether the step names the loop's variable."""
    return "Symbol(name='t')" in repr(s)


NUMBERS = (
    m.Wait,
    m.Expect,
    m.Arrive,
    m.Advance,
    m.WaitGroup,
    m.WaitStore,
    m.Wgmma,
    m.Loop,
    m.If,
    m.BarSync,
    m.BarArrive,
    m.Tma,
    m.CopyAsync,
    m.WaitCopies,
    m.Mma,
)


def number(steps: Steps, k: int, by: int) -> Steps:
    return (*steps[:k], *_other(steps[k], by), *steps[k + 1 :])


def _other(s: Step, by: int) -> Steps:
    sign = (1, -1)[by % 2]
    if isinstance(s, m.Wait):
        return (replace(s, flip=not s.flip) if by % 3 == 0 else replace(s, slot=_lag(s.slot, by)),)
    if isinstance(s, m.Expect):
        return (replace(s, nbytes=s.nbytes + sign * (512, 2048, 16)[by % 3]),)
    if isinstance(s, m.Arrive):
        return (replace(s, slot=_lag(s.slot, by)),) if by % 3 else _by_others(s)
    if isinstance(s, m.Advance):
        return (replace(s, stages=Poly.of((0, 2, 3)[by % 3])),)
    if isinstance(s, m.WaitGroup | m.WaitCopies):
        return (replace(s, pending=max(0, s.pending + (1, -1, 2)[by % 3])),)
    if isinstance(s, m.WaitStore):
        return (replace(s, pending=s.pending + 1) if by % 2 else replace(s, read=not s.read),)
    if isinstance(s, m.Wgmma | m.Mma):
        return (
            replace(s, zero=TRUE if by % 2 else FALSE) if by % 3 == 0 else replace(s, b=replace(s.b, slot=_lag(s.b.slot, by))),
        )
    if isinstance(s, m.Loop):
        return (replace(s, stop=s.stop + sign) if by % 3 else replace(s, start=s.start + 1),)
    if isinstance(s, m.If):
        return (replace(s, cond=Affine(poly=s.cond.poly + sign)),) if isinstance(s.cond, Affine) else (s,)
    if isinstance(s, m.BarSync | m.BarArrive):
        return _other_bar(s, by)
    if isinstance(s, m.Tma | m.CopyAsync):
        return (replace(s, slot=_lag(s.slot, by)),)
    return (s,)


def _lag(slot: m.Slot, by: int) -> m.Slot:
    return replace(slot, lag=slot.lag + (1, 2)[by // 3 % 2]) if slot.lag == 0 or by % 2 else replace(slot, lag=slot.lag - 1)


def _by_others(s: m.Arrive) -> Steps:
    """One thread for four warps, which it speaks for without having asked them."""
    if s.by == "thread":
        return (replace(s, count=s.count + 1),)
    return (m.Elect(body=(replace(s, by="thread", count=4),)),)


def _other_bar(s: m.BarSync | m.BarArrive, by: int) -> Steps:
    if by % 3 == 0:
        return (replace(s, id=s.id + 1),)
    if by % 3 == 1:
        return (replace(s, threads=s.threads + 128),)
    other = m.BarArrive if isinstance(s, m.BarSync) else m.BarSync
    return (other(id=s.id, threads=s.threads),)


def count(program: RoleProgram, at: int, by: int) -> RoleProgram:
    """Another count of one barrier."""
    kernel = program.kernels[0]
    if not kernel.barriers:
        return program
    k = at % len(kernel.barriers)
    b = kernel.barriers[k]
    wrong = replace(b, count=max(1, b.count + (1, -1, 4, -4)[by % 4]))
    barriers = (*kernel.barriers[:k], wrong, *kernel.barriers[k + 1 :])
    return replace(program, kernels=(replace(kernel, barriers=barriers),))


KINDS: dict[str, Callable[[RoleProgram, int, int], RoleProgram]] = {
    "swap": _on_steps(movable, swap),
    "move": _on_steps(movable, move),
    "delete": _on_steps(event, delete),
    "number": _on_steps(lambda s: isinstance(s, NUMBERS), number),
    "hoist": hoist,
    "repeat": _on_steps(event, repeat),
    "one warpgroup": _on_steps(event, one_warpgroup),
    "count": count,
}

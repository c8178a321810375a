"""Operators on one written event: it is deleted, doubled, or one of its numbers is changed, in all its copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..roles import model as m
from ..roles.model import Kernel, Step
from .domains import harmless
from .effects import Effects
from .events import Written, written
from .model import Change, Variant
from .paths import UNFOLLOWED, UNSEEN, followed, latest, observed
from .sites import changed

Rule = Callable[[Kernel, Written, tuple[Change, ...]], str]  # the rule by which changes of an event are none, or ""
Make = Callable[[Kernel], Iterator[Variant]]
Alter = Callable[[Any], Iterator[tuple[str, Step]]]


def variant(kernel: Kernel, e: Written, changes: tuple[Change, ...], what: str, exempt: str = "") -> Variant:
    """The kernel with changes of one event."""
    return Variant(
        kernel=changed(kernel, e.role, changes),
        role=kernel.roles[e.role].name,
        event=e.text(kernel),
        place=e.place,
        what=what,
        copies=len(changes),
        exempt=exempt,
    )


def always_needed(kernel: Kernel, e: Written, changes: tuple[Change, ...]) -> str:
    """No rule: every such event has to be there."""
    return ""


def as_before(kernel: Kernel, e: Written, changes: tuple[Change, ...]) -> str:
    """An event on whose account no step finds more in flight, less fenced, or another stage, isn't needed."""
    return harmless(kernel, e.role, changes)


def unfollowed(kernel: Kernel, e: Written, changes: tuple[Change, ...]) -> str:
    """A rendezvous orders what stands before it with what comes behind: if there is nothing, it isn't needed."""
    if not Effects(kernel, e.role).rendezvous(e.first):
        return ""
    return "" if followed(kernel, e.role, dict(e.copies)) else UNFOLLOWED


def deleted(*kinds: type[Step], rule: Rule = always_needed) -> Make:
    """Take away each written event of these kinds."""

    def make(kernel: Kernel) -> Iterator[Variant]:
        for e in written(kernel, *kinds):
            changes = tuple(Change(path=path) for path, _ in e.copies)
            yield variant(kernel, e, changes, "deleted", rule(kernel, e, changes))

    return make


def altered(kinds: tuple[type[Step], ...], alter: Alter, rule: Rule = always_needed) -> Make:
    """Change the numbers of each written event of these kinds. `alter` gives (what is changed, the changed step); copies that
    have no such change stay as they are."""

    def make(kernel: Kernel) -> Iterator[Variant]:
        for e in written(kernel, *kinds):
            found: dict[str, list[Change]] = {}
            for path, s in e.copies:
                for what, new in alter(s):
                    if new != s:
                        found.setdefault(what, []).append(Change(path=path, steps=(new,), origins=(0,)))
            for what, changes in found.items():
                yield variant(kernel, e, tuple(changes), what, rule(kernel, e, tuple(changes)))

    return make


def doubled(*kinds: type[Step]) -> Make:
    """Put each written event of these kinds twice."""
    return _beside(kinds, lambda s: (s, s), "twice")


def preceded(kinds: tuple[type[Step], ...], by: Step, what: str) -> Make:
    """Put a step before each written event of these kinds, in kernels whose target knows it for the engines that it has."""
    make = _beside(kinds, lambda s: (replace(by, span=s.span), s), what)
    return lambda kernel: make(kernel) if _engines(kernel) else iter(())


def _engines(kernel: Kernel) -> bool:
    """Whether others than threads touch memory, or registers: fences are for them."""
    return any(isinstance(s, m.Tma | m.TmaStore | m.Wgmma) for r in kernel.roles for s in m.walk(r.steps))


def _beside(kinds: tuple[type[Step], ...], steps: Callable[[Step], tuple[Step, ...]], what: str) -> Make:
    def make(kernel: Kernel) -> Iterator[Variant]:
        for e in written(kernel, *kinds):
            changes = tuple(Change(path=path, steps=(new := steps(s)), origins=(0,) * len(new)) for path, s in e.copies)
            yield variant(kernel, e, changes, what)

    return make


def last_release(kernel: Kernel) -> Iterator[Variant]:
    """Take away, of a release that has several copies, the one that a CTA comes to last."""
    empties = {r.empty for r in kernel.rings}
    for e in written(kernel, m.Arrive):
        copies = dict(e.copies)
        path = latest(kernel, e.role, copies)
        s = copies[path] if path is not None else None
        if path is not None and isinstance(s, m.Arrive) and s.barrier in empties and len(copies) > 1:
            exempt = "" if observed(kernel, e.role, path, s) else UNSEEN
            yield variant(kernel, e, (Change(path=path),), "its last copy deleted", exempt)


# What `altered` does to a step.


def deeper(by: int) -> Callable[[m.WaitGroup | m.WaitStore | m.WaitCopies], Iterator[tuple[str, Step]]]:
    """A wait leaves more or fewer groups in flight."""

    def alter(s: m.WaitGroup | m.WaitStore | m.WaitCopies) -> Iterator[tuple[str, Step]]:
        if s.pending + by >= 0:
            yield f"its depth {by:+d}", replace(s, pending=s.pending + by)

    return alter


def other_arrivals(s: m.Arrive) -> Iterator[tuple[str, Step]]:
    """One arrival more, one less."""
    for by in (1, -1):
        if s.count + by > 0:
            yield f"its arrivals {by:+d}", replace(s, count=s.count + by)


def other_threads(s: m.BarSync | m.BarArrive) -> Iterator[tuple[str, Step]]:
    """One warpgroup more, one less."""
    for by in (128, -128):
        if s.threads + by > 0:
            yield f"its threads {by:+d}", replace(s, threads=s.threads + by)


def other_bytes(s: m.Expect) -> Iterator[tuple[str, Step]]:
    """A little more or less than the copies bring, twice or half of it."""
    yield "its bytes + 16", replace(s, nbytes=s.nbytes + 16)
    yield "its bytes - 16", replace(s, nbytes=s.nbytes - 16)
    yield "its bytes doubled", replace(s, nbytes=2 * s.nbytes)
    yield "its bytes halved", replace(s, nbytes=s.nbytes // 2)


def other_parity(s: m.Wait) -> Iterator[tuple[str, Step]]:
    """The phase before the one that is meant, or the one after it."""
    yield "its parity flipped", replace(s, flip=not s.flip)

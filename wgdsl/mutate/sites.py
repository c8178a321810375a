"""Steps by their paths: every step of a role with where it stands, and the role with some of them changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace

from ..roles import model as m
from ..roles.model import Kernel, Step
from .model import Change, Path


def sites(steps: tuple[Step, ...], prefix: Path = ()) -> Iterator[tuple[Path, Step]]:
    """Every step that has no steps in it, in the order of the text."""
    for k, s in enumerate(steps):
        blocks = s.blocks()
        if not blocks:
            yield (*prefix, k), s
        for n, block in enumerate(blocks):
            yield from sites(block, (*prefix, k, n))


def lists(steps: tuple[Step, ...], prefix: Path = ()) -> Iterator[tuple[Path, tuple[Step, ...]]]:
    """Every list of steps, with the path in front of its members."""
    yield prefix, steps
    for k, s in enumerate(steps):
        for n, block in enumerate(s.blocks()):
            yield from lists(block, (*prefix, k, n))


def changed(kernel: Kernel, role: int, changes: Iterable[Change]) -> Kernel:
    """The kernel with changes of one role, which don't overlap."""
    r = kernel.roles[role]
    steps = _rebuilt(r.steps, (), {c.path: c for c in changes})
    return replace(kernel, roles=(*kernel.roles[:role], replace(r, steps=steps), *kernel.roles[role + 1 :]))


def _rebuilt(steps: tuple[Step, ...], prefix: Path, changes: Mapping[Path, Change]) -> tuple[Step, ...]:
    if not any(path[: len(prefix)] == prefix for path in changes):
        return steps
    out: list[Step] = []
    k = 0
    while k < len(steps):
        change = changes.get((*prefix, k))
        if change is not None:
            out += change.steps
            k += change.length
            continue
        out += _inside(steps[k], (*prefix, k), changes)
        k += 1
    return tuple(out)


def _inside(s: Step, path: Path, changes: Mapping[Path, Change]) -> tuple[Step, ...]:
    """A step with changes in its blocks; none if one thread has nothing left to do."""
    names = [f.name for f in fields(s) if f.metadata.get("region")]
    blocks = {name: _rebuilt(getattr(s, name), (*path, n), changes) for n, name in enumerate(names)}
    if all(blocks[name] is getattr(s, name) for name in names):
        return (s,)
    if isinstance(s, m.Elect) and not blocks["body"]:
        return ()
    return (replace(s, **blocks),)

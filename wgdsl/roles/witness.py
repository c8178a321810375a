"""A word: the items of one CTA that lead a role program to a fault. What the verifier shows and the simulator replays."""

from __future__ import annotations

from dataclasses import dataclass

Numbers = tuple[tuple[str, int], ...]


@dataclass(frozen=True, kw_only=True)
class WitnessItem:
    """One work item. `dims`: the free dims that its steps see; `indices`: its grid indices (`b`, `i.lo`), as `Items` binds
    them.

    Items of one word may differ in their dims: the verifier lets any two items follow each other.
    """

    dims: Numbers
    indices: Numbers

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in (*self.indices, *self.dims))


@dataclass(frozen=True, kw_only=True)
class Witness:
    """`kernel`: its name. `items`: those that the CTA runs, in order. `dims`: what steps outside of items see. `flags`: the
    kernel's flag parameters. `late`: agents (role, warpgroup) that fall behind all others as far as they can; empty if the
    fault shows in the canonical order."""

    kernel: str
    items: tuple[WitnessItem, ...]
    dims: Numbers = ()
    flags: tuple[tuple[str, bool], ...] = ()
    late: tuple[tuple[str, int], ...] = ()

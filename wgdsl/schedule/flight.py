"""flight: what a role's walk knows between two steps.

In: tiles counted relative to the loop variable.  Out: `State`, which `sync` moves from step to step, and how it looks from the
next iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..foundation.source import Span


@dataclass
class Group:
    """A committed product: its accumulator, tile relative to the loop variable, and what it reads."""

    product: str
    value: str
    rel: int | None
    operand: str | None
    reads: tuple[tuple[str, int | None], ...]
    span: Span | None

    def key(self) -> tuple:
        return (self.product, self.rel, self.operand, self.reads)


@dataclass
class State:
    """What is known between two steps. Tiles are relative to the loop variable."""

    flight: list[Group] = field(default_factory=list)
    position: dict[str, int] = field(default_factory=dict)  # ring -> tile that its position stands at
    waited: set[tuple[str, int | None]] = field(default_factory=set)
    done: dict[tuple[str, int | None], int] = field(default_factory=dict)  # reads completed, by (ring, tile)
    reference: dict[str, int] = field(default_factory=dict)  # accumulator -> tile whose state it is scaled to
    computed: dict[str, int] = field(default_factory=dict)  # node -> tile
    packed: dict[str, tuple[int, ...]] = field(default_factory=dict)  # operand -> tiles in its sets of registers
    scaled_to: int | None = None  # tile of the last compute that moved the states
    copies: list[tuple[str, int | None]] = field(default_factory=list)  # of threads, by group: tiles that may not have arrived
    reading: set[tuple[str, int | None]] = field(default_factory=set)  # tiles read since the role's warps last met

    def shift(self) -> State:
        """The same knowledge, seen from the next iteration."""

        def back(t: int | None) -> int | None:
            return None if t is None else t - 1

        return State(
            flight=[replace(g, rel=back(g.rel), reads=tuple((r, back(t)) for r, t in g.reads)) for g in self.flight],
            position={r: t - 1 for r, t in self.position.items()},
            waited={(r, back(t)) for r, t in self.waited},
            done={(r, back(t)): k for (r, t), k in self.done.items()},
            reference={a: t - 1 for a, t in self.reference.items()},
            computed={a: t - 1 for a, t in self.computed.items()},
            packed={a: tuple(t - 1 for t in tiles) for a, tiles in self.packed.items()},
            scaled_to=back(self.scaled_to),
            copies=[(r, back(t)) for r, t in self.copies],
            reading={(r, back(t)) for r, t in self.reading},
        )

    def in_flight(self, axis: str) -> str:
        return ", ".join(f"`{g.product}{tile_text(axis, g.rel)}`" for g in self.flight) or "nothing"

    def leads_to(self, later: State) -> bool:
        """Whether the first iteration finds the flight and the ring positions that later ones do."""
        same = all(later.position[r] == t for r, t in self.position.items())
        streamed = [c for c in self.copies if c[1] is not None]
        if streamed != later.copies or self.copies[len(self.copies) - len(streamed) :] != streamed:
            return False  # what is copied once an item arrives with the first tile that is waited for, if it comes before it
        return same and [g.key() for g in self.flight] == [g.key() for g in later.flight]

    def steady_key(self) -> tuple:
        return (tuple(g.key() for g in self.flight), tuple(sorted(self.position.items())), self.scaled_to, tuple(self.copies))


def tile_text(axis: str, rel: int | None) -> str:
    """The tile at an offset from the loop's: `[j+1]`."""
    return "" if rel is None else f"[{axis}{f'{rel:+d}' if rel else ''}]"

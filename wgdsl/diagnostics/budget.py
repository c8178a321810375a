"""What takes a budget, by name, and the nearest that fits: the part that every error of placement shares.

In: shares of registers or bytes.  Out: the lines of a note. A share is data; the table is made here alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .model import Problem


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one name takes. `detail`: how the amount comes about, `2 parts x 3 stages x 16384`."""

    name: str
    amount: int
    detail: str = ""


def table(head: str, shares: Iterable[Share], total: str) -> str:
    """A note of several lines: the shares with their amounts in one column, then what they come to."""
    rows = [(str(s.amount), f"{s.name}: {s.detail}" if s.detail else s.name) for s in shares]
    amount, _, rest = total.partition(" ")
    rows.append((amount, rest))
    width = max(len(a) for a, _ in rows)
    return "\n".join([head, *(f"{a:>{width}}  {text}" for a, text in rows)])


@dataclass(frozen=True, kw_only=True)
class Budgeted(Problem):
    """An error of placement. `nearest`: changes of the schedule with each of which it fits, the smallest of their kind; empty
    if no small change makes it fit; None where nobody has tried."""

    nearest: tuple[str, ...] | None = field(default=None)

    def cure(self) -> str:
        """What helps in general: said where no change was tried, or none was enough."""
        return ""

    def help(self) -> str:
        if self.nearest is None:
            return self.cure()
        if self.nearest:
            return "\n".join((f"what fits: {self.nearest[0]}", *(f"or: {each}" for each in self.nearest[1:])))
        return f"no change of one number makes it fit: {self.cure()}"

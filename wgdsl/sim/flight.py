"""What is in flight: bulk loads, products and bulk stores, and what they do when they complete.

Each takes effect at its completion, which a scheduler puts anywhere between its issue and the wait that covers it. A load's
destination is poison until then, as are that of a copy and a product's accumulator; a product and a store read shared memory
only then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..roles.model import Step
from .barriers import MBarrier
from .memory import Access, Cell
from .registers import Register

if TYPE_CHECKING:
    from .agent import Agent


@dataclass(eq=False, kw_only=True)
class Load:
    """A bulk load: the panels it fills with `values()`, [panels, rows, panel columns], and the phase that it signals. Rows
    behind those that it brings hold nothing."""

    agent: Agent
    step: Step
    access: Access
    cells: tuple[Cell, ...]
    values: Callable[[], np.ndarray]
    barrier: MBarrier
    phase: int
    nbytes: int
    row: int = 0  # the first of those that it brings
    bands: int = -1  # that it fills

    def land(self) -> None:
        for cell, values in zip(self.cells, self.values(), strict=True):
            cell.data[self.row : self.row + len(values)] = values
            cell.whole |= cell.bands & self.bands


@dataclass(eq=False, kw_only=True)
class Product:
    """A product of one warp: acc [16, n] (+)= left [16, k] times right [n, k] transposed. `left` None: it is in `operand`.

    left and right are views of shared memory. fresh: what the accumulator held is ignored.
    """

    agent: Agent
    step: Step
    access: Access
    acc: Register
    operand: Register | None
    left: np.ndarray | None
    right: np.ndarray
    fresh: bool
    done: bool = False

    def finish(self) -> None:
        left = self.left if self.operand is None else self.operand.data
        assert left is not None
        self.acc.add(np.matmul(left, self.right.T), self.fresh)
        self.done = True


@dataclass(eq=False, kw_only=True)
class Store:
    """A bulk store: `write` reads its panels and changes global memory."""

    agent: Agent
    step: Step
    access: Access
    write: Callable[[], None]
    done: bool = False

    def finish(self) -> None:
        self.write()
        self.done = True


@dataclass(eq=False, kw_only=True)
class Copy:
    """One warp's share of a copy of threads: `write` fills its elements."""

    agent: Agent
    step: Step
    access: Access
    write: Callable[[], None]
    done: bool = False

    def finish(self) -> None:
        self.write()
        self.done = True


InFlight = Load | Product | Store | Copy

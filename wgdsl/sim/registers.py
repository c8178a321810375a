"""The registers of one warpgroup: values, what is poison, and which products use them.

Arrays are [64, cols] for tiles and operands, [64, 1] for row values and flags, [64, 4] for lane shares of a row value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..diagnostics.sim import Fault, IllFormed, NoProductFence, RegisterInFlight, Uninitialised
from ..roles.model import Step, Value
from .memory import Access

ROWS = 64
QUAD = 4


class Owner(Protocol):
    def fault(self, kind: type[Fault], **data) -> Exception: ...

    def text(self, step: Step) -> str: ...


@dataclass(eq=False, kw_only=True)
class Product:
    """One asynchronous product: its registers and its reads of shared memory."""

    step: Step
    acc: Register
    operand: Register | None
    reads: list[Access]


@dataclass(eq=False, kw_only=True)
class Register:
    """data None: poison. `touched`: used by the warpgroup's own instructions since the last wgmma.fence."""

    value: Value
    data: np.ndarray | None = None
    touched: bool = True
    writers: list[Product] = field(default_factory=list)
    readers: list[Product] = field(default_factory=list)


class RegisterFile:
    def __init__(self, owner: Owner, values: tuple[Value, ...]):
        self.owner = owner
        self.values = {v.name: v for v in values}
        self.registers = {v.name: Register(value=v) for v in values if v.over is None}

    def find(self, name: str, *kinds: str) -> Register:
        """The registers behind a name. A fault if there is no such value, or one of another kind."""
        v = self.values.get(name)
        if v is None or v.kind not in kinds:
            raise self.owner.fault(IllFormed, why=f"`{name}` is no {' or '.join(kinds)} value of this role")
        while v.over is not None:
            v = self.values[v.over]
        return self.registers[v.name]

    def read(self, name: str) -> np.ndarray:
        """A tile or row value, for the warpgroup's own instructions."""
        r = self.find(name, "tile", "row")
        self._at_rest(name, r.writers)
        if r.data is None:
            raise self.owner.fault(Uninitialised, value=name)
        r.touched = True
        return r.data

    def content(self, name: str, kind: str) -> np.ndarray:
        """What a value of this kind holds, for the warpgroup's own instructions."""
        r = self.find(name, kind)
        self._at_rest(name, r.writers)
        if r.data is None:
            raise self.owner.fault(Uninitialised, value=name)
        return r.data

    def flag(self, name: str) -> np.ndarray:
        """A flag: [64, 1] bool."""
        r = self.find(name, "flag")
        if r.data is None:
            raise self.owner.fault(Uninitialised, value=name)
        return r.data

    def before(self, name: str, like: np.ndarray) -> np.ndarray:
        """What a value held: poison, where only some warps write it, is NaN in the others."""
        r = self.find(name, "tile", "row")
        return np.full_like(like, np.nan) if r.data is None else r.data

    def is_poison(self, name: str) -> bool:
        return self.find(name, "tile", "row", "operand").data is None

    def forget(self, name: str) -> None:
        """Poison from here on."""
        r = self.find(name, "tile")
        self._at_rest(name, r.writers)
        r.data = None

    def write(self, name: str, data: np.ndarray) -> None:
        r = self.find(name, "tile", "row", "operand", "flag")
        self._at_rest(name, r.writers)
        self._at_rest(name, r.readers)
        r.data, r.touched = data, True

    def _at_rest(self, name: str, users: list[Product]) -> None:
        if users:
            raise self.owner.fault(RegisterInFlight, value=name, product=self.owner.text(users[0].step))

    def operand(self, name: str) -> Register:
        r = self.find(name, "operand")
        if r.data is None:
            raise self.owner.fault(Uninitialised, value=name)
        self._fenced(name, r)
        return r

    def accumulator(self, name: str, fresh: bool) -> Register:
        r = self.find(name, "tile")
        if r.data is None and not fresh:
            raise self.owner.fault(Uninitialised, value=name)
        self._fenced(name, r)
        return r

    def _fenced(self, name: str, r: Register) -> None:
        if r.touched:
            raise self.owner.fault(NoProductFence, value=name)

    def fence(self) -> None:
        for r in self.registers.values():
            r.touched = False

    @staticmethod
    def start(p: Product) -> None:
        p.acc.writers.append(p)
        if p.operand is not None:
            p.operand.readers.append(p)

    @staticmethod
    def finish(p: Product) -> None:
        p.acc.writers.remove(p)
        if p.operand is not None:
            p.operand.readers.remove(p)

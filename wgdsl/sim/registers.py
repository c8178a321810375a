"""The registers of one warp: values, what is poison, and which products use them.

Arrays are [rows, cols] for tiles and operands, [rows, 1] for row values, [rows, 4] for lane shares of a row value, and [1, 1]
for flags and counts; `rows` are those of the warp, 16 of a tile of 64. They are replaced, never changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..diagnostics.sim import Fault, IllFormed, NoProductFence, RegisterInFlight, Uninitialised
from ..roles.model import Step, Value

BLOCK = 16  # rows of a tile of 64: those of one warp
QUAD = 4


class Owner(Protocol):
    def fault(self, kind: type[Fault], *, step: Step | None = None, **data) -> Exception: ...

    def text(self, step: Step) -> str: ...


class User(Protocol):
    """A product that is still to be waited for."""

    step: Step


@dataclass(eq=False, kw_only=True)
class Register:
    """data None: poison. `touched`: used by the warp's own instructions since the last wgmma.fence.

    writers, readers: products that no wait has covered. sums: of the writers, those that haven't completed; until they have,
    `sum` is the accumulator and `data` is poison.
    """

    value: Value
    data: np.ndarray | None = None
    touched: bool = True
    writers: list[User] = field(default_factory=list)
    readers: list[User] = field(default_factory=list)
    sums: int = 0
    sum: np.ndarray | None = None

    def begin(self) -> None:
        """A product into it is issued."""
        if not self.sums:
            self.sum, self.data = self.data, None
        self.sums += 1

    def add(self, product: np.ndarray, fresh: bool) -> None:
        """A product into it completes."""
        self.sum = product if fresh or self.sum is None else self.sum + product
        self.sums -= 1
        if not self.sums:
            self.data, self.sum = self.sum, None


class RegisterFile:
    def __init__(self, owner: Owner, values: tuple[Value, ...]):
        self.owner = owner
        self.values = {v.name: v for v in values}
        own = {v.name: Register(value=v) for v in values if v.over is None}
        self.registers = {v.name: own[self._home(v).name] for v in values}
        self.own = tuple(own.values())

    def _home(self, v: Value) -> Value:
        while v.over is not None:
            v = self.values[v.over]
        return v

    def find(self, name: str, *kinds: str) -> Register:
        """The registers behind a name. A fault if there is no such value, or one of another kind."""
        v = self.values.get(name)
        if v is None or v.kind not in kinds:
            raise self.owner.fault(IllFormed, why=f"`{name}` is no {' or '.join(kinds)} value of this role")
        return self.registers[name]

    def read(self, name: str) -> np.ndarray:
        """A tile or row value, for the warp's own instructions."""
        r = self.find(name, "tile", "elements", "row")
        r.touched = True
        return self._content(name, r)

    def content(self, name: str, kind: str) -> np.ndarray:
        """What a value of this kind holds, for the warp's own instructions."""
        return self._content(name, self.find(name, kind))

    def _content(self, name: str, r: Register) -> np.ndarray:
        self._at_rest(name, r.writers)
        if r.data is None:
            raise self.owner.fault(Uninitialised, value=name)
        return r.data

    def flag(self, name: str) -> bool:
        return bool(self.content(name, "flag"))

    def count(self, name: str) -> int:
        return int(self.content(name, "count").item())

    def is_poison(self, name: str) -> bool:
        r = self.find(name, "tile", "row", "operand")
        self._at_rest(name, r.writers)
        return r.data is None

    def forget(self, name: str) -> None:
        """Poison from here on."""
        r = self.find(name, "tile")
        self._at_rest(name, r.writers)
        r.data = None

    def write(self, name: str, data: np.ndarray) -> None:
        r = self.find(name, "tile", "elements", "row", "operand", "flag", "count")
        self._at_rest(name, r.writers)
        self._at_rest(name, r.readers)
        r.data, r.touched = data, True

    def _at_rest(self, name: str, users: list[User]) -> None:
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
        if r.data is None and not r.sums and not fresh:
            raise self.owner.fault(Uninitialised, value=name)
        self._fenced(name, r)
        return r

    def _fenced(self, name: str, r: Register) -> None:
        if r.touched:
            raise self.owner.fault(NoProductFence, value=name)

    def fence(self) -> None:
        for r in self.own:
            r.touched = False

    @staticmethod
    def start(p: User, acc: Register, operand: Register | None) -> None:
        acc.begin()
        acc.writers.append(p)
        if operand is not None:
            operand.readers.append(p)

    @staticmethod
    def finish(p: User, acc: Register, operand: Register | None) -> None:
        """A wait covers the product, which has completed."""
        acc.writers.remove(p)
        if operand is not None:
            operand.readers.remove(p)

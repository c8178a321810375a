"""SASS text, read: the instructions of one function, and the loops among them.

In: what nvdisasm prints of a cubin.  Out: `Code`. A loop is natural: its branch back goes to an instruction through which every
way into it leads. Waits that spin out of line jump back too, into the middle of what runs: they make no loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

_LABEL = re.compile(r"\s*(\.L_\w+):")
_LINE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_TARGET = re.compile(r"`\((\.L_\w+)\)")
_GONE = ("EXIT", "RET")  # nothing follows them


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """e.g. `@!P0 HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], RZ, !UPT`: guard `@!P0`, op with its modifiers, operands."""

    guard: str
    op: str
    operands: str

    @property
    def mnemonic(self) -> str:
        return self.op.split(".")[0]

    def named(self, *names: str) -> bool:
        """Whether this is one of the instructions of these names (`HGMMA`, `WARPGROUP.DEPBAR`), with any further modifiers."""
        return any(self.op == name or self.op.startswith(f"{name}.") for name in names)

    @property
    def target(self) -> str | None:
        """The label that a branch may go to."""
        found = _TARGET.search(self.operands) if self.mnemonic == "BRA" else None
        return found[1] if found else None

    @property
    def leaves(self) -> bool:
        """Whether the next instruction never follows. `BRA UP0, ...` and `BRA.DIV` may fall through without a guard."""
        if self.guard:
            return False
        return self.mnemonic in _GONE or (self.op == "BRA" and self.operands.startswith("`"))


@dataclass(frozen=True, kw_only=True)
class Loop:
    """The instructions from the head of a loop to its branch back, [start, stop). What stands out of line isn't in it."""

    start: int
    stop: int

    def holds(self, other: Loop) -> bool:
        return self != other and self.start <= other.start and other.stop <= self.stop


@dataclass(frozen=True)
class Code:
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]

    def __getitem__(self, loop: Loop) -> tuple[Instruction, ...]:
        return self.instructions[loop.start : loop.stop]

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """In the order of their branches. `BRA.U.ANY` goes back while the lanes of a warp disagree: no loop of the text."""
        return tuple(
            Loop(start=self.labels[i.target], stop=at + 1)
            for at, i in enumerate(self.instructions)
            if i.target and not i.named("BRA.U.ANY") and self._repeats(self.labels.get(i.target, at + 1), at)
        )

    def _repeats(self, head: int, branch: int) -> bool:
        """Whether the branch goes back, and can't be reached past its head."""
        return head <= branch and branch not in self._reached(without=head)

    def _reached(self, without: int) -> set[int]:
        seen, todo = {without}, [0]
        while todo:
            at = todo.pop()
            if at not in seen and at < len(self.instructions):
                seen.add(at)
                todo += self._next(at)
        return seen - {without}

    def _next(self, at: int) -> Iterator[int]:
        i = self.instructions[at]
        if not i.leaves:
            yield at + 1
        if i.target in self.labels:
            yield self.labels[i.target]


def read_code(sass: str) -> Code:
    """The code of one cubin's text."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in sass.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif found := _LINE.search(line):
            instructions.append(Instruction(guard=found[1] or "", op=found[2], operands=found[3]))
    return Code(tuple(instructions), labels)

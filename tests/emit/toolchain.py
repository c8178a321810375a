"""What NVRTC and the assembler make of a text: the log, and counts over the SASS."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property

from wgdsl.runtime import nvrtc
from wgdsl.runtime.machine_code import Code, read_code
from wgdsl.runtime.sass import disassemble


@dataclass(frozen=True)
class Compiled:
    cubin: bytes
    log: str

    @property
    def registers(self) -> int:
        return int(re.search(r"Used (\d+) registers", self.log)[1])

    @cached_property
    def sass(self) -> str:
        return disassemble(self.cubin)

    @cached_property
    def code(self) -> Code:
        return read_code(self.sass)

    @cached_property
    def counts(self) -> Counter[str]:
        """Opcode with modifiers -> how often."""
        return Counter(i.op for i in self.code.instructions)

    def count(self, prefix: str) -> int:
        return sum(n for op, n in self.counts.items() if op == prefix or op.startswith(prefix + "."))

    @cached_property
    def loops(self) -> list[list[str]]:
        """The instructions of each loop: from the target of a backward branch to the branch."""
        return [[f"{i.op} {i.operands}" for i in self.code[loop]] for loop in self.code.loops]

    @property
    def highest_register(self) -> int:
        return max(int(r) for r in re.findall(r"\bR(\d+)\b", self.sass))


@cache
def compile_text(text: str) -> Compiled:
    made = nvrtc.compile(text, "sm_90a")
    return Compiled(made.cubin, made.log)

"""What NVRTC and the assembler make of a text: the log, and counts over the SASS."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property

from wgdsl.runtime import nvrtc
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
    def counts(self) -> Counter[str]:
        """Opcode with modifiers -> how often."""
        return Counter(m[1] for m in re.finditer(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.a-z]+)", self.sass))

    def count(self, prefix: str) -> int:
        return sum(n for op, n in self.counts.items() if op == prefix or op.startswith(prefix + "."))

    @cached_property
    def loops(self) -> list[list[str]]:
        """The instructions of each loop: from the target of a backward branch to the branch."""
        labels, code, branches = {}, [], []
        for line in self.sass.splitlines():
            if m := re.match(r"\s*(\.L_x_\d+):", line):
                labels[m[1]] = len(code)
            elif m := re.search(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line):
                if b := re.search(r"\bBRA\b.*`\((\.L_x_\d+)\)", m[1]):
                    branches.append((len(code), b[1]))
                code.append(m[1])
        return [code[labels[to] : at + 1] for at, to in branches if labels.get(to, at + 1) <= at]

    @property
    def highest_register(self) -> int:
        return max(int(r) for r in re.findall(r"\bR(\d+)\b", self.sass))


@cache
def compile_text(text: str) -> Compiled:
    made = nvrtc.compile(text, "sm_90a")
    return Compiled(made.cubin, made.log)

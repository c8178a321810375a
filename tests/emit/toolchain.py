"""A scratch compiler for these tests: NVRTC to a cubin, its log, and the SASS."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import nvidia

OPTIONS = ("--gpu-architecture=sm_90a", "--std=c++17", "-default-device", "--ptxas-options=-v")


@dataclass(frozen=True)
class Compiled:
    cubin: bytes
    log: str

    @property
    def registers(self) -> int:
        return int(re.search(r"Used (\d+) registers", self.log)[1])

    @cached_property
    def sass(self) -> str:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as f:
            f.write(self.cubin)
            f.flush()
            tool = next(t for root in nvidia.__path__ if (t := Path(root) / "cu13" / "bin" / "nvdisasm").exists())
            return subprocess.run([tool, "-c", f.name], check=True, capture_output=True, text=True).stdout

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
    from cuda.bindings import nvrtc

    def value(result):
        code, *rest = result
        assert int(code) == 0, code
        return rest[0] if rest else None

    program = value(nvrtc.nvrtcCreateProgram(text.encode("ascii"), b"kernel.cu", 0, [], []))
    options = [o.encode() for o in OPTIONS]
    (code,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    size = value(nvrtc.nvrtcGetProgramLogSize(program))
    log = b" " * size
    value(nvrtc.nvrtcGetProgramLog(program, log))
    log = log.decode().strip("\0 \n")
    assert int(code) == 0, f"{log}\n{text}"
    size = value(nvrtc.nvrtcGetCUBINSize(program))
    cubin = b" " * size
    value(nvrtc.nvrtcGetCUBIN(program, cubin))
    return Compiled(cubin, log)

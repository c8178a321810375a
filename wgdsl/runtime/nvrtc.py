"""CUDA text -> cubin and PTX, by NVRTC, without a single header.

In: the text and the architecture.  Out: `Compiled`. A text that NVRTC refuses is a defect of the emitter (or of a text that
was edited by hand): `Refused` says where the text was saved and what NVRTC said. No NVRTC is an EnvironmentFault.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..diagnostics.model import EnvironmentFault, InternalError
from ..foundation.environment import crash_dir
from .log import Resources, read_log

OPTIONS = ("--std=c++17", "-default-device", "--ptxas-options=-v")
CURE = "pip install 'nvidia-cuda-nvrtc>=13.0' 'cuda-bindings>=13.0'"


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What NVRTC made of one text. `seconds` is how long it took when it was made; `cached` whether it was made before."""

    cubin: bytes
    ptx: str
    log: str
    nvrtc: str
    seconds: float
    cached: bool = False

    @property
    def kernels(self) -> tuple[Resources, ...]:
        return read_log(self.log)


class Refused(InternalError):
    """NVRTC refused a text. `log` is what it said, `path` where the text lies."""

    def __init__(self, log: str, path: Path):
        self.log, self.path = log, path
        head = "\n".join(line for line in log.splitlines() if "error" in line.lower())[:1500] or log[:1500]
        super().__init__(f"NVRTC refuses the emitted CUDA text, saved as {path}:\n{head}", str(path.parent))


@cache
def _bindings() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as e:
        raise EnvironmentFault(f"the CUDA bindings can't be imported: {e}", CURE) from e
    return nvrtc


@cache
def version() -> str:
    """NVRTC's version, e.g. 13.5. Raises EnvironmentFault if NVRTC can't be loaded."""
    try:
        code, major, minor = _bindings().nvrtcVersion()
    except RuntimeError as e:  # the loader lists the places that it searched
        raise EnvironmentFault(f"NVRTC can't be loaded: {e}", CURE) from e
    if int(code):
        raise EnvironmentFault(f"NVRTC doesn't answer: {code.name}", CURE)
    return f"{major}.{minor}"


def flags(arch: str) -> tuple[str, ...]:
    """The options of a compilation for `arch`."""
    return (f"--gpu-architecture={arch}", *OPTIONS)


def compile(text: str, arch: str, name: str = "kernel.cu") -> Compiled:
    """Compile `text` for `arch`. `name` stands in messages for what no `#line` covers."""
    n, release = _bindings(), version()
    start = time.perf_counter()
    program = _ok(n.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []), "nvrtcCreateProgram")
    try:
        options = [f.encode() for f in flags(arch)]
        code = n.nvrtcCompileProgram(program, len(options), options)[0]
        log = _text(n.nvrtcGetProgramLogSize, n.nvrtcGetProgramLog, program)
        if int(code):
            _known(arch)
            raise Refused(log or code.name, save(text, name))
        return Compiled(
            cubin=_bytes(n.nvrtcGetCUBINSize, n.nvrtcGetCUBIN, program),
            ptx=_text(n.nvrtcGetPTXSize, n.nvrtcGetPTX, program),
            log=log,
            nvrtc=release,
            seconds=time.perf_counter() - start,
        )
    finally:
        n.nvrtcDestroyProgram(program)


def _known(arch: str) -> None:
    """Raises EnvironmentFault for an architecture that came after this NVRTC, or that it has left out."""
    code, known = _bindings().nvrtcGetSupportedArchs()
    digits = int("".join(c for c in arch if c.isdigit()))
    if int(code) or digits in known:
        return
    names = ", ".join(f"sm_{n}" for n in sorted(known))
    cure = f"{CURE}, at least the release that came with the GPU" if digits > max(known) else "take another target"
    raise EnvironmentFault(f"NVRTC {version()} doesn't compile for {arch}; it has {names}", cure)


def save(text: str, name: str) -> Path:
    """Write a text that can't be compiled into a folder of its own."""
    above = crash_dir()
    above.mkdir(parents=True, exist_ok=True)
    path = Path(tempfile.mkdtemp(prefix="wgdsl-cuda-", dir=above)) / (Path(name).stem + ".cu")
    path.write_text(text, "utf-8")
    return path


def _ok(result: tuple, call: str) -> Any:
    code, *values = result
    if int(code):
        raise InternalError(f"{call} failed with {code.name}")
    return values[0] if values else None


def _bytes(size: Any, get: Any, program: Any) -> bytes:
    count = _ok(size(program), size.__name__)
    room = b" " * max(count, 2)  # filled in place; CPython shares one object for all bytes of length 1
    _ok(get(program, room), get.__name__)
    return room[:count]


def _text(size: Any, get: Any, program: Any) -> str:
    return _bytes(size, get, program).rstrip(b"\0").decode("utf-8", "replace")

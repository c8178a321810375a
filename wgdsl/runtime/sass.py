"""cubin -> SASS, by nvdisasm: from its wheel, from PATH, or from a CUDA toolkit."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from ..diagnostics.model import EnvironmentFault

CURE = "pip install nvidia-cuda-nvdisasm"


def nvdisasm() -> str:
    """The path of the disassembler. Raises EnvironmentFault."""
    sites = [Path(sysconfig.get_path(name)) / "nvidia" for name in ("purelib", "platlib")]
    for site in sites:
        for path in sorted(site.glob("*/bin/nvdisasm")):
            return str(path)
    found = shutil.which("nvdisasm") or shutil.which("nvdisasm", path="/usr/local/cuda/bin")
    if found is None:
        raise EnvironmentFault("nvdisasm is neither installed as a wheel nor on PATH", CURE)
    return found


def disassemble(cubin: bytes) -> str:
    """The SASS of a cubin, without addresses' encodings."""
    tool = nvdisasm()
    with tempfile.TemporaryDirectory(prefix="wgdsl-sass-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = subprocess.run([tool, "-c", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise EnvironmentFault(f"{tool} fails: {done.stderr.strip()}", CURE)
    return done.stdout

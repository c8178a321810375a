"""A command in a child process, with a time limit: a kernel that hangs must not hang its user.

In: a command.  Out: its exit code; `Hung` if it had to be killed. Killing the process frees the GPU.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from ..diagnostics.model import InternalError

MODULE = ["-m", "wgdsl"]


class Hung(InternalError):
    """The child was killed at its limit."""


def watched(arguments: Sequence[str], seconds: float) -> int:
    """Run `python -m wgdsl ARGUMENTS` for at most `seconds`; its output goes where ours does."""
    child = subprocess.Popen([sys.executable, *MODULE, *arguments])
    try:
        return child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Hung(
            f"the GPU run didn't end within {seconds:g} s, and was killed: the kernel hangs, or is very slow\n"
            "  help: run it with `--device sim`, which says who waits for what; `--timeout SECONDS` gives it longer",
            "",
        ) from None
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()

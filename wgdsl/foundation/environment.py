"""The only module that reads environment variables.

WGDSL_CACHE_DIR   where compiled kernels are kept, and the tables of the parser
XDG_CACHE_HOME    the folder above it, if that isn't set
WGDSL_CRASH_DIR   where crash bundles and refused CUDA texts go (default: the system's temporary folder)
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_dir() -> Path:
    """The folder of compiled kernels and parser tables. It needn't exist, and may not be writable."""
    own = os.environ.get("WGDSL_CACHE_DIR")
    if own:
        return Path(own).expanduser()
    above = os.environ.get("XDG_CACHE_HOME")
    return (Path(above) if above else _home() / ".cache") / "wgdsl"


def crash_dir() -> Path:
    """The folder in which crash bundles are made."""
    own = os.environ.get("WGDSL_CRASH_DIR")
    return Path(own).expanduser() if own else Path(tempfile.gettempdir())


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # no HOME and no passwd entry
        return Path(tempfile.gettempdir())

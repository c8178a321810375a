"""Crash bundles: what one needs to look into a defect of wgdsl.

In: the exception, and every source, form and text that there was.  Out: a folder, whose path goes into the message.
"""

from __future__ import annotations

import json
import platform
import tempfile
import traceback
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path

from .foundation.environment import crash_dir

PACKAGES = ("wgdsl", "lark", "numpy", "networkx", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc", "torch", "ml-dtypes")


def versions() -> dict[str, str]:
    """Python, the system, and the packages that matter."""
    out = {"python": platform.python_version(), "system": platform.platform()}
    for name in PACKAGES:
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            out[name] = "not installed"
    return out


def write_bundle(error: BaseException, files: Mapping[str, Callable[[], str] | str], facts: Mapping[str, object]) -> Path:
    """Write the bundle. A form whose text can't be made is replaced by the reason."""
    above = crash_dir()
    above.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="wgdsl-crash-", dir=above))
    for name, make in files.items():
        (folder / name).write_text(_text(make), "utf-8")
    (folder / "traceback.txt").write_text("".join(traceback.format_exception(error)), "utf-8")
    (folder / "facts.json").write_text(json.dumps({"versions": versions(), **facts}, indent=1, default=str), "utf-8")
    return folder


def _text(make: Callable[[], str] | str) -> str:
    if isinstance(make, str):
        return make
    try:
        return make()
    except Exception:
        return "this form has no text:\n" + traceback.format_exc()

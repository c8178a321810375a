"""Tensor programs and GPU schedules as two plain texts; readable CUDA C++ out of them.

kernel = wgdsl.compile("attention.wg", schedule="fa3", dims={"D": 128, "E": 128}, types={"T": "bf16"})
out = kernel(Q=q, K=k, V=v)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["CompilerWarning", "EnvironmentFault", "InternalError", "Kernel", "Support", "WgError", "compile", "supports"]

if TYPE_CHECKING:
    from .diagnostics.emit import CompilerWarning
    from .diagnostics.model import EnvironmentFault, InternalError, WgError
    from .driver import compile
    from .runtime.kernel import Kernel
    from .support import Support, supports

_HOMES = {
    "CompilerWarning": "diagnostics.emit",
    "EnvironmentFault": "diagnostics.model",
    "InternalError": "diagnostics.model",
    "WgError": "diagnostics.model",
    "Kernel": "runtime.kernel",
    "Support": "support",
    "compile": "driver",
    "supports": "support",
}


def __getattr__(name: str) -> Any:
    """Loaded when used: importing wgdsl alone costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'wgdsl' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

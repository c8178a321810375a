"""What each step of a role program does to the machine: the definition of its meaning, by step type."""

from __future__ import annotations

from . import control, copies, events, lists, products, results  # noqa: F401  (they register their meanings)
from .meaning import MEANING

__all__ = ["MEANING"]

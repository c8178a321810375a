"""The registry of what each step means: one function a step type. A step that may have to wait is a generator of what it
waits for."""

from __future__ import annotations

from collections.abc import Callable

from ..roles.model import Step
from .agent import Agent, Run

Meaning = Callable[[Agent, Step], Run | None]
MEANING: dict[type[Step], Meaning] = {}


def means(kind: type[Step]):
    """Register the meaning of a step type."""

    def register(fn):
        if kind in MEANING:
            raise TypeError(f"{kind.__name__} has two meanings: {MEANING[kind].__name__} and {fn.__name__}")
        MEANING[kind] = fn
        return fn

    return register

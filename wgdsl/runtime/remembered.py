"""What is made from keys that come again.

In: a function, and how many of its results are worth keeping.  Out: a mapping that calls it for keys it hasn't. To look a key up
costs half of what `lru_cache` takes; when it is full, it starts over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Key, Value = TypeVar("Key"), TypeVar("Value")


class Remembered(dict[Key, Value]):
    """Threads may share it: two may make the same value, and one of them stays."""

    def __init__(self, make: Callable[[Key], Value], most: int):
        super().__init__()
        self.make, self.most = make, most

    def __missing__(self, key: Key) -> Value:
        value = self.make(key)
        if len(self) >= self.most:
            self.clear()
        self[key] = value
        return value

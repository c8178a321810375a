"""Values made once a process, however many threads ask.

In: a key and what makes its value.  Out: the value; whoever asks while it is being made waits. The last `limit` are kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any


class Once:
    """See the module's docstring. What fails is tried again by the next one who asks."""

    def __init__(self, limit: int):
        self.limit = limit
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any], keep: Callable[[Any], bool] = lambda value: True) -> Any:
        """The value of a key; one that `keep` refuses is made again the next time. Raises what `make` raises."""
        found, mine = self._look(key)
        if mine is None:
            return found
        with mine:
            found, _ = self._look(key)
            if found is not None:
                return found
            try:
                value = make()
                if keep(value):
                    self._put(key, value)
                return value
            finally:
                with self._lock:
                    self._making.pop(key, None)

    def _look(self, key: Hashable) -> tuple[Any, threading.Lock | None]:
        """The value, or the lock under which to make it."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key], None
            return None, self._making.setdefault(key, threading.Lock())

    def _put(self, key: Hashable, value: Any) -> None:
        with self._lock:
            self._values[key] = value
            if len(self._values) > self.limit:
                self._values.popitem(last=False)

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._values.clear()

"""C++ identifiers of one kernel: the user's names where they are free, deterministic variants where they aren't."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..diagnostics.model import InternalError
from ..foundation.names import identifier

# What the emitted text itself uses. The PTX wrappers need no entry: they live in `namespace ptx`.
OWN = frozenset(
    """ptx TMap Divisor shared_raw smem threadIdx blockIdx gridDim thread lane warpgroup row at half col k q pair panel item
    total atomicAdd atomicExch acc min max fabsf fmaxf fminf fmaf logf log2f erff powf rsqrtf from to down main""".split()  # noqa: SIM905
)


class Scope:
    """Hands out identifiers. The same (kind, name) always gets the same one; two never share one."""

    def __init__(self):
        self._taken: set[str] = set(OWN)
        self._given: dict[tuple[str, str], str] = {}

    def declare(self, kind: str, name: str, wanted: str | None = None) -> str:
        """The identifier of a thing; `wanted` is its first choice, else its own name, then its name and kind."""
        key = (kind, name)
        if key not in self._given:
            base = identifier(wanted or name)
            other = f"{base.rstrip('_')}_{kind}"
            choices = [base, other, *(f"{other}{n}" for n in range(2, 1000))]
            self._given[key] = next(c for c in choices if c not in self._taken)
            self._taken.add(self._given[key])
        return self._given[key]

    def get(self, kind: str, name: str) -> str:
        if (kind, name) not in self._given:
            raise InternalError(f"the role program uses {kind} {name!r}, which nothing declares")
        return self._given[kind, name]

    def lasting(self) -> Temporaries:
        """Names that stay taken."""
        return Temporaries(self._taken)

    @contextmanager
    def temporaries(self) -> Iterator[Temporaries]:
        """Short-lived names; they are free again afterwards."""
        names = Temporaries(self._taken)
        yield names
        self._taken -= names.given


class Temporaries:
    def __init__(self, taken: set[str]):
        self._taken = taken
        self.given: set[str] = set()

    def fresh(self, base: str) -> str:
        name = next(n for n in (base, *(f"{base}{k}" for k in range(2, 1000))) if n not in self._taken)
        self._taken.add(name)
        self.given.add(name)
        return name

"""One point of a benchmark: what is computed, by whom, from which inputs.

A suite makes cases without a GPU; `Case.ground` makes the inputs of one, on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Call = Callable[[], Any]  # returns the result, a tensor
Filter = Mapping[str, str | int]


@dataclass(frozen=True, kw_only=True)
class Own:
    """What this project compiles for a case, whatever the schedule. program: a path or a text. lengths: the dims of the call,
    which a choice of the schedule depends on."""

    program: str
    target: str
    dims: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Ground:
    """The inputs of a case, on the GPU. work: floating-point operations. peers: what builds the call of each. own: the call of
    a kernel. check: the largest error of a call, of a peer or not; raises ArithmeticError for a wrong one."""

    work: float
    peers: Mapping[str, Callable[[], Call]]
    own: Callable[[Any], Call]
    check: Callable[[Call, bool], float]


@dataclass(frozen=True, kw_only=True)
class Case:
    """facts: what a case can be filtered by. peers: those that can do it; usual: those of them that are asked where nobody is
    named; otherwise: those that are asked where none of the usual ones is there. schedules: where the program has some of its
    own, which nobody need name. ground: the inputs, of a folder that holds FlashAttention-3 (None without one)."""

    suite: str
    name: str
    facts: Filter = field(default_factory=dict)
    own: Own
    peers: tuple[str, ...]
    usual: tuple[str, ...]
    otherwise: tuple[str, ...] = ()
    ground: Callable[[Path | None], Ground]
    schedules: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.suite}: {self.name}"

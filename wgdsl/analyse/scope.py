"""The place where an expression stands: which names it sees, and where its accesses and inner nodes go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from ..foundation.dtypes import DType
from ..foundation.source import Span
from ..program.expr import Expr, Load
from ..program.poly import Poly
from .context import Tensor
from .values import Value


@dataclass(frozen=True, kw_only=True)
class Env:
    """`indices` may be named; `order` has all that surround the place, outermost first (inside a `def` the two differ).

    `params` are a `def`'s arguments; `opening` is the chain of `let`s and `def`s being put in; `raw` keeps fixed dims by
    name (for the inference of extents).
    """

    indices: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    params: Mapping[str, Value] = field(default_factory=dict)
    opening: tuple[str, ...] = ()
    in_where: bool = False
    in_access: bool = False
    raw: bool = False

    def bind(self, axes: tuple[str, ...]) -> Env:
        fresh = tuple(a for a in axes if a not in self.order)
        return replace(self, indices=self.indices + axes, order=self.order + fresh)


@dataclass(frozen=True, kw_only=True)
class Use:
    """One access: of which tensor, where; `raw` keeps fixed dims by name."""

    tensor: Tensor
    access: tuple[Poly, ...]
    raw: tuple[Poly, ...]
    spans: tuple[Span | None, ...]


class Sink(Protocol):
    """Where an expression finds its tensors and leaves its accesses and inner nodes."""

    def tensor(self, name: str, span: Span | None) -> Tensor | None:
        """A tensor that may be read here, or None; refuses one that exists but may not be read."""
        ...

    def used(self, use: Use) -> None: ...

    def reduction(self, op: str, axes: tuple[str, ...], body: Expr, dtype: DType, order: tuple[str, ...]) -> Load: ...

    def part(self, suffix: str, body: Expr, order: tuple[str, ...]) -> Load: ...


class NoTensors:
    """The sink of declarations: shapes, defaults and conditions hold no tensors and no reductions."""

    def tensor(self, name: str, span: Span | None) -> Tensor | None:
        return None

    def used(self, use: Use) -> None:
        raise AssertionError(use)

    def reduction(self, op: str, axes: tuple[str, ...], body: Expr, dtype: DType, order: tuple[str, ...]) -> Load:
        raise AssertionError(op)

    def part(self, suffix: str, body: Expr, order: tuple[str, ...]) -> Load:
        raise AssertionError(suffix)

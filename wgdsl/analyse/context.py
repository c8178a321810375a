"""What a program declares, with the options, types and fixed dims chosen: the names that expressions may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..diagnostics.analyse import DuplicateName
from ..foundation.dtypes import DType
from ..foundation.source import Span
from ..program.expr import Expr
from ..program.graph import ScalarInput
from ..program.poly import Poly
from ..syntax import ast
from .problems import refuse


@dataclass(frozen=True, kw_only=True)
class Option:
    """`choices` are the value names of an enumeration; a number or truth value has none."""

    value: bool | int | float | str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """What an access may name. An argument has a `shape` (raw: fixed dims still by name); a node has `indices`."""

    name: str
    dtype: DType
    shape: tuple[Poly, ...] = ()
    indices: tuple[str, ...] | None = None
    span: Span | None = None

    @property
    def rank(self) -> int:
        return len(self.shape if self.indices is None else self.indices)

    @property
    def form(self) -> str:
        axes = self.shape if self.indices is None else self.indices
        return f"{self.name}[{', '.join(map(str, axes))}]"


@dataclass
class Context:
    """dims: name -> raw polynomial of free dims (itself, unless computed).  absent: what a false `when` removed."""

    fixed: Mapping[str, int] = field(default_factory=dict)
    options: dict[str, Option] = field(default_factory=dict)
    types: dict[str, DType] = field(default_factory=dict)
    dims: dict[str, Poly] = field(default_factory=dict)
    scalars: dict[str, ScalarInput] = field(default_factory=dict)
    inputs: dict[str, Tensor] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)
    absent: dict[str, Span | None] = field(default_factory=dict)
    lets: dict[str, ast.LetDecl] = field(default_factory=dict)
    defs: dict[str, ast.DefDecl] = field(default_factory=dict)
    extents: dict[str, tuple[Poly, Span | None]] = field(default_factory=dict)  # `index i < ...`, raw
    requires: list[Expr] = field(default_factory=list)
    increasing: set[str] = field(default_factory=set)  # arguments whose elements never fall, by `assume`
    positive: set[str] = field(default_factory=set)  # arguments whose elements are greater than 0, by `assume`
    names: dict[str, tuple[str, Span | None]] = field(default_factory=dict)  # every declared name -> what it is, where
    indices: dict[str, Span | None] = field(default_factory=dict)  # every index of every statement -> first place

    def declare(self, name: str, what: str, span: Span | None) -> None:
        """Enter a name; a second declaration is refused."""
        if name in self.names:
            first, first_span = self.names[name]
            refuse(DuplicateName(span=span, name=name, first=first, first_span=first_span))
        self.names[name] = (what, span)

    def settle(self, p: Poly) -> Poly:
        """A raw polynomial with the fixed dims put in."""
        return p.substitute(self.fixed)

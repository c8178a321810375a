"""The AST of the explicit form: lines of words and nodes. What a line means, its row in `roles/rows.py` says."""

from __future__ import annotations

from dataclasses import dataclass

from .ast import Expr, Name, Node, Schedule


@dataclass(frozen=True, kw_only=True)
class Text(Node):
    """A string, without its quotes."""

    text: str


@dataclass(frozen=True, kw_only=True)
class At(Node):
    """`@27 "issue S[j]" of "file.wg"`: the line that something comes from, 0 for none, its words and its file if told."""

    line: int
    words: str | None = None
    path: str | None = None


@dataclass(frozen=True, kw_only=True)
class Trail(Node):
    """What stands behind a line: a remark, and where the line comes from."""

    note: str = ""
    at: At | None = None


@dataclass(frozen=True, kw_only=True)
class Several(Node):
    """What stands between commas."""

    items: tuple[Node, ...]


@dataclass(frozen=True, kw_only=True)
class Extent(Node):
    """`i = 64 * wg +: 64`, `64 * wg +: 64`: a name, where it starts, how many. `i in 5 by 2` of a grid: how many, how large."""

    name: Name | None = None
    mark: str = "="
    start: Expr
    step: str = "+:"
    count: Expr | None = None


@dataclass(frozen=True, kw_only=True)
class Dim(Node):
    """`axis 3 x 64 < 2` of a tensor map."""

    axis: Expr
    factor: Expr | None = None
    extent: Expr


@dataclass(frozen=True, kw_only=True)
class Order(Node):
    """`(b, g) of 8 under (r, i reversed)`: the order of the items of a grid."""

    inner: tuple[Name, ...]
    size: Expr | None = None
    outer: tuple[Name, ...]
    reversed: tuple[Name, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Box(Node):
    """`K[b, 128 * t +: 128] by Ks at (0, 128 * t)`: elements of a tensor, the map that moves them, its coordinates if told."""

    tensor: Name
    extents: tuple[Extent, ...]
    map: Name
    coords: tuple[Expr, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Operand(Node):
    """`Ks[s] k_major`, or the name of a value. major: k_major, mn_major, or None."""

    of: Expr
    major: str | None = None


@dataclass(frozen=True, kw_only=True)
class Mask(Node):
    """`{where: partial}`, `{empty}`: predicates with what they are in the loop, or a word for all ("")."""

    classes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Block(Node):
    """Lines in braces, and what stands behind the first brace."""

    lines: tuple[Line, ...]
    trail: Trail | None = None


@dataclass(frozen=True, kw_only=True)
class Line(Node):
    """Words and nodes in their order. What stands behind a line that opens a block is that block's trail."""

    parts: tuple[str | Node, ...]
    trail: Trail | None = None


@dataclass(frozen=True, kw_only=True)
class Setting(Node):
    """`D = 128` of the head: a name of the program, and its value as text."""

    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class KernelLines(Node):
    """`kernel NAME { ... }`."""

    name: Name
    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class Explicit(Schedule):
    """`roles fa3 for attention on sm_90a with D = 128 { ... }`: a schedule whose every step is written out, in `lines`.

    `origin`: the file that the lines behind `@` are of.
    """

    settings: tuple[Setting, ...] = ()
    origin: Text | None = None
    lines: tuple[Line | KernelLines, ...] = ()

"""The AST of a `.wg` file: frozen dataclasses. Spans and comments don't take part in comparison.

One expression language serves programs and schedules; a schedule's steps are a second small family.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..foundation.source import Span


@dataclass(frozen=True, kw_only=True)
class Node:
    """Base: `span` is the whole text of the node."""

    span: Span | None = field(default=None, compare=False, repr=False)


# Expressions.


@dataclass(frozen=True, kw_only=True)
class Number(Node):
    value: int | float  # int for 3, 1_000; float for 0.5, 1e-3, inf, nan
    text: str = field(compare=False, default="")


@dataclass(frozen=True, kw_only=True)
class Bool(Node):
    value: bool


@dataclass(frozen=True, kw_only=True)
class Name(Node):
    """A name, with dots for parts: `Q`, `P.max`, `Ks.full`."""

    id: str


@dataclass(frozen=True, kw_only=True)
class Index(Node):
    """`base[a, b]`: an access of a tensor, or a tile in a schedule."""

    base: Name
    indices: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Call(Node):
    """`exp(x)`, `min(a, b)`, `select(c, a, b)`, or a cast `f16(x)`, or a `def`'d function."""

    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Unary(Node):
    """op: `-`, `not`."""

    op: str
    operand: Expr


@dataclass(frozen=True, kw_only=True)
class Binary(Node):
    """op: `+ - * / % **`, `and`, `or`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, kw_only=True)
class Compare(Node):
    """A chain as in Python: `a < b <= c` has ops ('<', '<=') and three operands. ops: `< <= > >= == !=`."""

    ops: tuple[str, ...]
    operands: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Reduce(Node):
    """`sum[j] e`. op: sum max min argmax argmin softmax logsumexp. Takes the product that follows."""

    op: str
    axes: tuple[str, ...]
    operand: Expr


Expr = Number | Bool | Name | Index | Call | Unary | Binary | Compare | Reduce


# Programs.


@dataclass(frozen=True, kw_only=True)
class OptionDecl(Node):
    """`option causal = false`, `option act in {none, relu}` (default: the first)."""

    name: str
    default: Expr | None = None
    choices: tuple[Expr, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DimsDecl(Node):
    """`dims B, G, H = G * R`: (name, expression or None) each."""

    entries: tuple[tuple[str, Expr | None], ...]


@dataclass(frozen=True, kw_only=True)
class TypeDecl(Node):
    """`type T in {f16, bf16}`: the first is the default."""

    name: str
    choices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ParamDecl(Node):
    """`in Q: T[B, M]`, `in scale: f32 = 1 / sqrt(D)`, `out L: f32[B] when lse`. A scalar has shape None."""

    direction: str  # in, out
    name: str
    dtype: str
    shape: tuple[Expr, ...] | None = None
    default: Expr | None = None
    when: Expr | None = None


@dataclass(frozen=True, kw_only=True)
class RequireDecl(Node):
    condition: Expr


@dataclass(frozen=True, kw_only=True)
class AssumeDecl(Node):
    """`assume cu_q increasing`, `assume distinct`: the words after `assume`."""

    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LetDecl(Node):
    name: str
    value: Expr


@dataclass(frozen=True, kw_only=True)
class DefDecl(Node):
    """`def softcap(x, c) = c * tanh(x / c)`."""

    name: str
    parameters: tuple[str, ...]
    body: Expr


@dataclass(frozen=True, kw_only=True)
class IndexDecl(Node):
    """`index i < MaxM, j < MaxN`."""

    entries: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, kw_only=True)
class Statement(Node):
    """`T[i, j] = value from start where domain else otherwise when condition`."""

    target: Index
    value: Expr
    start: Expr | None = None
    where: Expr | None = None
    otherwise: Expr | None = None
    when: Expr | None = None


ProgramItem = (
    OptionDecl | DimsDecl | TypeDecl | ParamDecl | RequireDecl | AssumeDecl | LetDecl | DefDecl | IndexDecl | Statement
)


@dataclass(frozen=True, kw_only=True)
class Program(Node):
    name: str
    items: tuple[ProgramItem, ...]


# Schedules.


@dataclass(frozen=True, kw_only=True)
class TileDecl(Node):
    """`tile i 128, j 128`; `tile i 64 * warpgroups` is an expression too."""

    entries: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, kw_only=True)
class FuseDecl(Node):
    """`fuse m = (r, i)`: the last named runs fastest."""

    name: str
    axes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class StreamDecl(Node):
    """`stream j descending`; `stream j split s in 8`: part `s` of 8 takes its share of the tiles. listed: tiles that aren't
    empty are listed beforehand."""

    axis: str
    descending: bool = False
    listed: bool = False
    split_index: str | None = None
    split_count: Expr | None = None


@dataclass(frozen=True, kw_only=True)
class GridDecl(Node):
    """`grid [persistent [static|dynamic]] [joined] over (b, h, i) [longest_first] [section (b, h) within 32 MB] [with Qs]`.

    `with_home`: the home on whose barrier the next work item travels.
    """

    axes: tuple[str, ...]
    persistent: str | None = None  # None, static, dynamic
    joined: bool = False
    longest_first: bool = False
    section: tuple[str, ...] = ()
    section_bytes: int | None = None
    with_home: str | None = None


@dataclass(frozen=True, kw_only=True)
class RoleDecl(Node):
    """`role math : 2 warpgroups, registers 240, split i`. unit: warpgroup, warp."""

    name: str
    count: Expr
    unit: str
    registers: Expr | None = None
    split: str | None = None


@dataclass(frozen=True, kw_only=True)
class HomeDecl(Node):
    """`smem Ks = K[j] by tma ring 2 over Qs`; `regs Pr = P as e4m3 times 16 permute v8`; `regs P ring 2`, which holds `P`.

    `kind`: smem, regs. `engine`: tma, store, copy, cp_async, atomic, transpose, or None.
    """

    kind: str
    name: str
    tensor: str
    indices: tuple[str, ...]
    engine: str | None = None
    ring: Expr | None = None
    over: str | None = None
    cast: str | None = None  # the element type that it is rounded to
    times: Expr | None = None  # a factor that the placement applies, and undoes in the end
    permute: str | None = None  # the order of the elements in the fragments


@dataclass(frozen=True, kw_only=True)
class CombineDecl(Node):
    """`combine O, L by merge`, `combine C by atomic_add`: several CTAs contribute to a result. how: merge, atomic_add."""

    targets: tuple[str, ...]
    how: str


@dataclass(frozen=True, kw_only=True)
class SkipDecl(Node):
    """`skip empty per warpgroup`: a warpgroup passes over the tiles that are empty for its own rows."""


@dataclass(frozen=True, kw_only=True)
class AccumulateDecl(Node):
    """`accumulate Acc promote every 128`: sums of so many products are added up by threads."""

    tensor: str
    every: Expr


@dataclass(frozen=True, kw_only=True)
class ApproximateDecl(Node):
    """`approximate tanh`: functions for which the chip's approximation will do."""

    functions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Tuning(Node):
    """`tile i in {128, 192}` in a `tune` block. what: tile, ring, registers, option, warpgroups."""

    what: str
    name: str
    values: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class TuneDecl(Node):
    """`tune { tile i in {128, 192}; ring Ks in {2, 3} }`: what a tuner may choose from."""

    entries: tuple[Tuning, ...]


@dataclass(frozen=True, kw_only=True)
class FillStep(Node):
    """`fill Ks[j+1]`, `fill Qs.0`, `fill Qs.rest`, `fill As[k], Bs[k]` (one barrier)."""

    targets: tuple[Name | Index, ...]


@dataclass(frozen=True, kw_only=True)
class AwaitStep(Node):
    """`await Qs`, `await S[j+1]`."""

    target: Name | Index


@dataclass(frozen=True, kw_only=True)
class IssueStep(Node):
    """`issue O += wgmma(P[j], Vs[j])`. op: `=`, `+=`; engine: wgmma, mma."""

    target: Name | Index
    op: str
    engine: str
    left: Name | Index
    right: Name | Index


@dataclass(frozen=True, kw_only=True)
class ComputeStep(Node):
    """`compute P[j+1]`, `compute P.exp[j]`."""

    target: Name | Index


@dataclass(frozen=True, kw_only=True)
class PackStep(Node):
    target: Name | Index


@dataclass(frozen=True, kw_only=True)
class RescaleStep(Node):
    """`rescale O`, `rescale O when grown by 8` (log2)."""

    target: Name | Index
    grown_by: Expr | None = None


@dataclass(frozen=True, kw_only=True)
class FinishStep(Node):
    """`finish O, L via Os`: `via` staging buffers, in any order."""

    targets: tuple[Name | Index, ...]
    via: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ProbeStep(Node):
    """`probe P[j]`: writes the tile out, to be looked at."""

    target: Name | Index


@dataclass(frozen=True, kw_only=True)
class ForStep(Node):
    """`for j { ... }` over the stream's positions."""

    axis: str
    body: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True)
class OnceStep(Node):
    """`once { ... }`: in the first iteration of the loop only."""

    body: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True)
class TurnStep(Node):
    """`in turn { ... }`."""

    body: tuple[Step, ...]


Step = (
    FillStep
    | AwaitStep
    | IssueStep
    | ComputeStep
    | PackStep
    | RescaleStep
    | FinishStep
    | ProbeStep
    | ForStep
    | OnceStep
    | TurnStep
)


@dataclass(frozen=True, kw_only=True)
class RoleBody(Node):
    """`math { ... }`: the list of steps of one role."""

    role: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True)
class KernelDecl(Node):
    """`kernel NAME computes T1, T2 { ... }`: a part of the program that is a kernel of its own, with its lines."""

    name: str
    computes: tuple[str, ...]
    items: tuple[ScheduleItem, ...]


ScheduleItem = (
    TileDecl
    | FuseDecl
    | StreamDecl
    | GridDecl
    | RoleDecl
    | HomeDecl
    | OptionDecl
    | RoleBody
    | CombineDecl
    | SkipDecl
    | ApproximateDecl
    | AccumulateDecl
    | TuneDecl
    | KernelDecl
)


@dataclass(frozen=True, kw_only=True)
class Renaming(Node):
    """`S = T1` after `with`: what the base's lines call `old` is `new` in this program."""

    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Schedule(Node):
    """`schedule fa3 for attention on sm_90a { ... }`; `schedule mine extends fa3 [for p] [on sm_90a] [with S = T] { ... }`.

    `program` and `target` are "" where a schedule that extends another leaves them to it.
    """

    name: str
    program: str
    target: str
    items: tuple[ScheduleItem, ...]
    extends: str | None = None
    renames: tuple[Renaming, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Import(Node):
    """`import "file.wg"`."""

    path: str


@dataclass(frozen=True, kw_only=True)
class File(Node):
    """A whole file: `wg 1`, then programs and schedules. `version` is None when the line is missing."""

    version: int | None
    programs: tuple[Program, ...]
    schedules: tuple[Schedule, ...]
    imports: tuple[Import, ...] = ()

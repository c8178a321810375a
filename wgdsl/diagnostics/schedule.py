"""WG04xx: a schedule that doesn't fit its program, its target or itself.

Each `doc` is the rule, then lines of a shipped schedule as they stand there, and others in their place: under `works:` and
`fails:`, whichever the shipped ones are. Tests lower both. A comment `# with dims D=64, E=128` in an example gives what the
caller fixes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..foundation.source import Span
from .budget import Budgeted, Share
from .hints import nearest
from .model import Problem

_FORMS = {
    "`stream` line": "`stream INDEX`, an index that the program reduces over",
    "`grid` line": "`grid over (INDEX, ...)`, the indices of the outputs that tell one CTA from another",
    "`role` line": "`role NAME : 1 warpgroup, registers 24` for each role, and its steps, `NAME { ... }`",
}


def _nearest(name: str, known: tuple[str, ...]) -> str:
    meant = nearest(name, known)
    if meant:
        return f"did you mean `{meant}`?"
    return "there are: " + ", ".join(f"`{k}`" for k in known) if known else ""


@dataclass(frozen=True, kw_only=True)
class UnknownName(Problem):
    code: ClassVar[str] = "WG0401"
    doc: ClassVar[str] = """A schedule names only indices and tensors of its program, its own homes and its own roles.

In schedule `simple` for `attention`:

fails:
  smem Ks = key[j] by tma ring 2
works:
  smem Ks = K[j] by tma ring 2
"""
    what: str
    name: str
    known: tuple[str, ...] = ()

    def title(self) -> str:
        return f"no {self.what} is called `{self.name}`"

    def help(self) -> str:
        return _nearest(self.name, self.known)


@dataclass(frozen=True, kw_only=True)
class MissingLine(Problem):
    """`where`: what has to have it. `form`: how it is written, unless that is known of the line."""

    code: ClassVar[str] = "WG0402"
    doc: ClassVar[str] = """A schedule has a `stream` line, a `grid` line, a tile size along the streamed index, at least one
role, and a list of steps for every role. A home of a tensor that runs along the streamed index
names its tile.

In schedule `simple` for `attention`:

fails:
  tile i 128
  stream j descending
works:
  tile i 128, j 128
  stream j descending
"""
    line: str
    where: str = "the schedule"
    form: str = ""

    def title(self) -> str:
        return f"{self.where} has no {self.line}"

    def help(self) -> str:
        return f"add {self.form or _FORMS[self.line]}"


@dataclass(frozen=True, kw_only=True)
class DeclaredTwice(Problem):
    code: ClassVar[str] = "WG0403"
    doc: ClassVar[str] = """Every line, role, home and tile size is declared once, and every role has one list of steps.

In schedule `simple` for `attention`:

fails:
  smem Ks = K[j] by tma ring 2
  smem Ks = V[j] by tma ring 2
works:
  smem Ks = K[j] by tma ring 2
  smem Vs = V[j] by tma ring 2
"""
    what: str
    name: str
    first: Span | None = None

    def title(self) -> str:
        return f"{self.what} `{self.name}` is declared twice"

    def others(self):
        return ((self.first, "first declared here"),) if self.first else ()

    def help(self) -> str:
        return "remove one of the two, or rename it"


@dataclass(frozen=True, kw_only=True)
class BadNumber(Problem):
    """`value`: None for what isn't a constant."""

    code: ClassVar[str] = "WG0404"
    doc: ClassVar[str] = """Tile sizes, ring depths, counts of warpgroups and of registers are whole numbers within limits,
known when the schedule is read.

In schedule `simple` for `attention`:

fails:
  role load : 1 warpgroup, registers 20
works:
  role load : 1 warpgroup, registers 24
"""
    what: str
    value: object
    rule: str

    def title(self) -> str:
        return f"{self.what} is {'not a constant' if self.value is None else self.value}"

    def label(self) -> str:
        return self.rule


@dataclass(frozen=True, kw_only=True)
class NotYetSupported(Problem):
    code: ClassVar[str] = "WG0405"
    doc: ClassVar[str] = """The construct is part of the language, but this version of the compiler doesn't lower it yet.

In schedule `simple` for `attention`:

fails:
  tile i 128, j 128  regs Qr = Q
works:
  tile i 128, j 128
"""
    what: str
    cure: str = ""

    def title(self) -> str:
        return f"{self.what} is not yet supported"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class AxisNotCovered(Problem):
    code: ClassVar[str] = "WG0406"
    doc: ClassVar[str] = """Every index of an output is a grid axis, or lies whole inside the tile: then it has no tile size,
and its extent is known at compile time.

In schedule `simple` for `attention`:

fails:
  grid over (b, g, i)
works:
  grid over (b, g, r, i)
"""
    index: str
    output: str

    def title(self) -> str:
        return f"index `{self.index}` of output `{self.output}` is neither a grid axis nor whole inside the tile"

    def help(self) -> str:
        return f"name `{self.index}` in `grid over (...)`, or fix its dim at compile time"


@dataclass(frozen=True, kw_only=True)
class ExtentNotFixed(Problem):
    code: ClassVar[str] = "WG0407"
    doc: ClassVar[str] = """An index without a tile size takes its whole extent, which must be known at compile time.

In schedule `simple` for `attention`:

fails:
  smem Qs = Q[i] by tma           # with dims E=128
works:
  smem Qs = Q[i] by tma           # with dims D=128, E=128
"""
    index: str
    extent: str
    tensor: str

    def title(self) -> str:
        return f"the extent `{self.extent}` of index `{self.index}` in `{self.tensor}` isn't known at compile time"

    def help(self) -> str:
        if self.extent.isidentifier():
            return f"fix it: `--set {self.extent}=128`, or dims={{'{self.extent}': 128}}"
        return f"fix the dims of `{self.extent}` at compile time"


@dataclass(frozen=True, kw_only=True)
class WrongProduct(Problem):
    """`statement`: the program's, which the product has to compute."""

    code: ClassVar[str] = "WG0408"
    doc: ClassVar[str] = """`issue X[j] = wgmma(A, B)` computes the product that the program says X is, from homes of its
operands. A product that is summed over the stream says `+=`, one that each tile has for itself `=`.

In schedule `simple` for `attention`:

fails:
  issue O = wgmma(P[j], Vs[j])
works:
  issue O += wgmma(P[j], Vs[j])
"""
    target: str
    why: str
    cure: str
    statement: Span | None = None

    def title(self) -> str:
        return f"this product isn't `{self.target}` of the program"

    def label(self) -> str:
        return self.why

    def others(self):
        return ((self.statement, f"`{self.target}` is defined here"),) if self.statement else ()

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class NoHome(Problem):
    code: ClassVar[str] = "WG0409"
    doc: ClassVar[str] = """A product reads tiles of homes in shared memory, and on its left also what `compute` has left in
registers. A tensor of the program needs a home: `smem Ks = K[j] by tma ring 2`.

In schedule `simple` for `attention`:

fails:
  issue S[j] = wgmma(Qs, K[j])
works:
  issue S[j] = wgmma(Qs, Ks[j])
"""
    name: str
    homes: tuple[str, ...]

    def title(self) -> str:
        return f"`{self.name}` has no home that a product can read"

    def help(self) -> str:
        return _nearest(self.name, self.homes)


@dataclass(frozen=True, kw_only=True)
class StillInFlight(Problem):
    code: ClassVar[str] = "WG0410"
    doc: ClassVar[str] = """A product is asynchronous: its accumulator and its register operands are touched only after its
`await`.

In schedule `simple` for `attention`:

fails:
  issue S[j] = wgmma(Qs, Ks[j])
  compute P[j]
works:
  issue S[j] = wgmma(Qs, Ks[j])
  await S[j]
  compute P[j]
"""
    product: str
    touched: str
    issued: Span | None = None
    where: str = "before this step"

    def title(self) -> str:
        return f"`{self.touched}` is touched while the product `{self.product}` may still be running"

    def others(self):
        return ((self.issued, "issued here"),) if self.issued else ()

    def help(self) -> str:
        return f"`await {self.product}` {self.where}"


@dataclass(frozen=True, kw_only=True)
class NeverComputed(Problem):
    """`name`: what is needed, with its tile: `P[j]`. `verb`: what produces it."""

    code: ClassVar[str] = "WG0411"
    doc: ClassVar[str] = """A step uses only what an earlier step of its role has produced for that tile.

In schedule `simple` for `attention`:

fails:
  await S[j]
  rescale O
  pack P[j]
works:
  await S[j]
  compute P[j]
  rescale O
  pack P[j]
"""
    name: str
    step: str
    verb: str = "compute"

    def title(self) -> str:
        return f"`{self.step}` needs `{self.name}`, which no earlier step has produced"

    def help(self) -> str:
        if self.verb == "issue":
            return f"`issue {self.name} = ...` and `await {self.name}` before this step"
        return f"`{self.verb} {self.name}` before this step"


@dataclass(frozen=True, kw_only=True)
class WrongReference(Problem):
    code: ClassVar[str] = "WG0412"
    doc: ClassVar[str] = """An accumulator is scaled to the state (such as the running maximum) of the last product's operand.
When `compute` has moved that state, the accumulator is rescaled before the next product is added to
it.

In schedule `simple` for `attention`:

fails:
  compute P[j]
  pack P[j]
works:
  compute P[j]
  rescale O
  pack P[j]
"""
    accumulator: str
    operand: str

    def title(self) -> str:
        return f"`{self.accumulator}` and `{self.operand}` are scaled to different states here"

    def help(self) -> str:
        return f"`rescale {self.accumulator}` between the `compute` and this product"


@dataclass(frozen=True, kw_only=True)
class LoopNotSteady(Problem):
    code: ClassVar[str] = "WG0413"
    doc: ClassVar[str] = """Each iteration of the loop leaves the same products in flight as it found.

In schedule `pipelined` for `gemm`:

fails:
  for k {
    issue Acc += wgmma(As[k], Bs[k])
  }
works:
  for k {
    issue Acc += wgmma(As[k], Bs[k])
    await Acc[k-1]
  }
"""
    before: str
    after: str
    axis: str = ""
    left: tuple[str, ...] = ()  # products of which ever more are in flight

    def title(self) -> str:
        return "the loop doesn't come back to the state that it began with"

    def notes(self) -> tuple[str, ...]:
        return (f"in flight before an iteration: {self.before}", f"after it: {self.after}")

    def help(self) -> str:
        if self.left:
            late = f"`await {self.left[0]}[{self.axis}-1]` to let it run an iteration longer"
            return f"`await {self.left[0]}[{self.axis}]` in the loop, or {late}"
        return "`await` in each iteration as many products as it issues"


@dataclass(frozen=True, kw_only=True)
class RowsPerWarpgroup(Problem):
    code: ClassVar[str] = "WG0414"
    doc: ClassVar[str] = """wgmma computes 64 rows for a warpgroup: a role of n warpgroups that splits an index owns 64 * n rows
of it. mma computes 16 rows for a warp, and a warp may own several such blocks: 4 * n warps own a multiple of 64 * n rows.

In schedule `simple` for `attention`:

fails:
  role math : 3 warpgroups, registers 160, split i
works:
  role math : 2 warpgroups, registers 240, split i
"""
    index: str
    tile: int
    warpgroups: int
    split: bool = True
    most: int = 1  # blocks of 64 rows for each
    unit: str = "warpgroup"

    @property
    def owners(self) -> str:
        n = self.warpgroups if self.unit == "warpgroup" else 4 * self.warpgroups
        return f"{n} {self.unit}{'s' * (n > 1)}"

    def title(self) -> str:
        if not self.split and self.warpgroups > 1:
            return f"{self.owners} would multiply the same rows of `{self.index}`"
        owners = f"{self.owners} own{'s' * (self.owners[:2] == '1 ')}"
        if self.most == 1:
            return f"{owners} {self.tile} rows of `{self.index}`, which must be 64 each"
        each = 64 * self.warpgroups
        return f"{owners} {self.tile} rows of `{self.index}`, which must be a multiple of {each}, {each * self.most} at most"

    def help(self) -> str:
        share = "" if self.split or self.warpgroups == 1 else f"`split {self.index}` at the role, and "
        return f"{share}`tile {self.index} {64 * self.warpgroups}`"


@dataclass(frozen=True, kw_only=True)
class TileShape(Budgeted):
    """`shares`: the bytes of the buffers that hold the tile."""

    code: ClassVar[str] = "WG0415"
    doc: ClassVar[str] = """Matrix instructions and copies fix the shapes of tiles. A wgmma of 16-bit types takes k in steps of
16, and n a multiple of 8 up to 256; a tile in shared memory has a multiple of 8 rows, at most 256,
and rows of whole 16 bytes.

In schedule `simple` for `attention`:

fails:
  tile i 128, j 100
works:
  tile i 128, j 128
"""
    what: str
    value: int
    rule: str
    index: str
    shares: tuple[Share, ...] = ()

    def title(self) -> str:
        return f"{self.what} is {self.value}: {self.rule}"

    def notes(self) -> tuple[str, ...]:
        return tuple(f"`{s.name}` takes {s.detail} = {s.amount} bytes" for s in self.shares)

    def cure(self) -> str:
        return f"choose another tile size of `{self.index}` (without one it is the whole extent)"


@dataclass(frozen=True, kw_only=True)
class CantShare(Budgeted):
    """`shares`: both buffers, the one that should lie over the other first."""

    code: ClassVar[str] = "WG0416"
    doc: ClassVar[str] = """`over` lays a staging buffer, part by part, over a buffer that is filled once and whose parts are at
least as large.

In schedule `simple` for `attention`:

fails:
  smem Os = O[i] by tma over Qs   # with dims D=64, E=128
works:
  smem Os = O[i] by tma           # with dims D=64, E=128
"""
    name: str
    other: str
    why: str
    shares: tuple[Share, ...] = ()

    def title(self) -> str:
        return f"`{self.name}` can't lie over `{self.other}`: {self.why}"

    def notes(self) -> tuple[str, ...]:
        return tuple(f"`{s.name}` takes {s.detail} = {s.amount} bytes" for s in self.shares)

    def cure(self) -> str:
        return f"drop `over {self.other}`, so that `{self.name}` has memory of its own"


@dataclass(frozen=True, kw_only=True)
class NotFilled(Problem):
    code: ClassVar[str] = "WG0417"
    doc: ClassVar[str] = """Every buffer that a product reads is filled by one role, once for each tile, and only buffers that
are read are filled.

In schedule `simple` for `attention`:

fails:
  for j {
    fill Ks[j]
  }
works:
  for j {
    fill Ks[j]
    fill Vs[j]
  }
"""
    name: str
    why: str
    cure: str

    def title(self) -> str:
        return f"`{self.name}` {self.why}"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class WrongTarget(Problem):
    code: ClassVar[str] = "WG0418"
    doc: ClassVar[str] = """A schedule is written for one target, and names engines that it has.

In schedule `simple` for `attention`:

fails:
  smem Ks = K[j] by cp_async ring 2
works:
  smem Ks = K[j] by tma ring 2
"""
    engine: str
    target: str
    has: tuple[str, ...]

    def title(self) -> str:
        return f"`{self.engine}` is not an engine of {self.target}"

    def help(self) -> str:
        return f"{self.target} has: " + ", ".join(f"`{h}`" for h in self.has)


@dataclass(frozen=True, kw_only=True)
class OutputNotFinished(Problem):
    code: ClassVar[str] = "WG0419"
    doc: ClassVar[str] = """Every output that the options leave is stored by one `finish`.

In schedule `simple` for `attention`:

fails:
  finish O via Os
works:
  finish O, L via Os
"""
    output: str
    times: int
    first: Span | None = None

    def title(self) -> str:
        return (
            f"output `{self.output}` is stored {self.times} times" if self.times else f"output `{self.output}` is never stored"
        )

    def others(self):
        return ((self.first, "first stored here"),) if self.first else ()

    def help(self) -> str:
        return "keep one of them" if self.times else f"`finish {self.output}` after the loop of one role"


@dataclass(frozen=True, kw_only=True)
class RingTooShallow(Problem):
    code: ClassVar[str] = "WG0420"
    doc: ClassVar[str] = """A ring is at least as deep as the tiles of it that a role holds at once, from first wait to release:
the tile that it waits for next needs a slot of its own.

In schedule `pipelined` for `gemm`:

fails:
  smem As = A[i, k] by tma ring 1
  smem Bs = B[n, k] by tma ring 1
works:
  smem As = A[i, k] by tma ring 3
  smem Bs = B[n, k] by tma ring 3
"""
    home: str
    stages: int
    held: int

    def title(self) -> str:
        return f"ring `{self.home}` of {self.stages} is full: its tiles are released later, so this step would wait for ever"

    def help(self) -> str:
        return f"`ring {self.held + 1}`, or `await` the product that reads the older tile before this step"


@dataclass(frozen=True, kw_only=True)
class TileNotNamed(Problem):
    code: ClassVar[str] = "WG0421"
    doc: ClassVar[str] = """A step inside the loop says which tile along the streamed index it means: `Ks[j]`, or `Ks[j+1]` for
the next one.

In schedule `simple` for `attention`:

fails:
  await S[i]
works:
  await S[j]
"""
    target: str
    axis: str

    def title(self) -> str:
        return f"`{self.target}` doesn't say which tile along `{self.axis}` it means"

    def help(self) -> str:
        name = self.target.partition("[")[0]
        return f"write `{name}[{self.axis}]`, or `{name}[{self.axis}+1]` for the next tile"


@dataclass(frozen=True, kw_only=True)
class DoneTwice(Problem):
    """`verb`: issued, computed."""

    code: ClassVar[str] = "WG0422"
    doc: ClassVar[str] = """A role issues each product, and computes each value, once for a tile.

In schedule `simple` for `attention`:

fails:
  issue S[j] = wgmma(Qs, Ks[j])
  await S[j]
  issue S[j] = wgmma(Qs, Ks[j])
  await S[j]
works:
  issue S[j] = wgmma(Qs, Ks[j])
  await S[j]
"""
    verb: str
    name: str
    first: Span | None = None

    def title(self) -> str:
        return f"`{self.name}` is {self.verb} twice for one tile"

    def others(self):
        return ((self.first, f"first {self.verb} here"),) if self.first else ()

    def help(self) -> str:
        return "remove one of the two"


@dataclass(frozen=True, kw_only=True)
class TileNotWhole(Problem):
    code: ClassVar[str] = "WG0423"
    doc: ClassVar[str] = """A tile size along an index that is neither streamed nor a grid axis is the whole extent, since
nothing steps from one tile to the next.

In schedule `simple` for `attention`:

fails:
  tile i 128, j 128, d 64         # with dims D=128, E=128
works:
  tile i 128, j 128               # with dims D=128, E=128
"""
    index: str
    tile: int
    extent: str

    def title(self) -> str:
        return f"nothing steps over `{self.index}`, so its tile of {self.tile} isn't the whole extent `{self.extent}`"

    def help(self) -> str:
        return f"leave out the tile size of `{self.index}`: it then lies whole inside the tile"


@dataclass(frozen=True, kw_only=True)
class FinishEarly(Problem):
    code: ClassVar[str] = "WG0424"
    doc: ClassVar[str] = """`finish` stands after the loop of its role, when the states are those of all tiles.

In schedule `simple` for `attention`:

fails:
    await O[j]
    finish O, L via Os
  }
works:
    await O[j]
  }
  finish O, L via Os
"""
    axis: str

    def title(self) -> str:
        return "this `finish` stands before the end of the loop"

    def label(self) -> str:
        return f"not all tiles along `{self.axis}` have been seen here"

    def help(self) -> str:
        return f"put it after `for {self.axis} {{ ... }}`"


@dataclass(frozen=True, kw_only=True)
class CantBeLazy(Problem):
    code: ClassVar[str] = "WG0425"
    doc: ClassVar[str] = """`rescale O when grown by 8` leaves an accumulator as it is until the running maximum has grown by 8
in log2. What is made of both comes out exact; the maximum itself doesn't, so no output may show it.

fails:
  program attention {
    dims M, N, D, E
    in   Q: bf16[M, D]
    in   K: bf16[N, D]
    in   V: bf16[N, E]
    out  O: bf16[M, E]
    out  X: f32[M]
    S[i,j] = sum[d] Q[i,d] * K[j,d]
    P[i,j] = softmax[j] S[i,j]
    O[i,e] = sum[j] P[i,j] * V[j,e]
    X[i]   = max[j] S[i,j]
  }
  schedule simple for attention on sm_90a {   # with dims D=64, E=64
    tile   i 64, j 64
    stream j
    grid   over (i)
    role load : 1 warpgroup, registers 24
    role math : 1 warpgroup, registers 240
    smem Qs = Q[i] by tma
    smem Ks = K[j] by tma ring 2
    smem Vs = V[j] by tma ring 2
    load { fill Qs  for j { fill Ks[j]  fill Vs[j] } }
    math {
      for j {
        issue S[j] = wgmma(Qs, Ks[j])
        await S[j]
        compute P[j]
        rescale O when grown by 8
        issue O += wgmma(P[j], Vs[j])
        await O[j]
      }
      finish O, X
    }
  }
works:
  program attention {
    dims M, N, D, E
    in   Q: bf16[M, D]
    in   K: bf16[N, D]
    in   V: bf16[N, E]
    out  O: bf16[M, E]
    S[i,j] = sum[d] Q[i,d] * K[j,d]
    P[i,j] = softmax[j] S[i,j]
    O[i,e] = sum[j] P[i,j] * V[j,e]
  }
  schedule simple for attention on sm_90a {   # with dims D=64, E=64
    tile   i 64, j 64
    stream j
    grid   over (i)
    role load : 1 warpgroup, registers 24
    role math : 1 warpgroup, registers 240
    smem Qs = Q[i] by tma
    smem Ks = K[j] by tma ring 2
    smem Vs = V[j] by tma ring 2
    load { fill Qs  for j { fill Ks[j]  fill Vs[j] } }
    math {
      for j {
        issue S[j] = wgmma(Qs, Ks[j])
        await S[j]
        compute P[j]
        rescale O when grown by 8
        issue O += wgmma(P[j], Vs[j])
        await O[j]
      }
      finish O
    }
  }
"""
    accumulator: str
    why: str
    cure: str

    def title(self) -> str:
        return f"`{self.accumulator}` can't wait for its maximum to grow: {self.why}"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class CantJoin(Problem):
    code: ClassVar[str] = "WG0427"
    doc: ClassVar[str] = """`joined` makes the last iteration of an item and the first of the next one a single
iteration. So a CTA has to run several items, the loop of the role that multiplies has steps one
tile ahead, and what the old item still uses is not what the new one fills: here `Qs` has one slot for
both.

In schedule `fa3` for `attention`:

fails:
  grid   persistent joined over (b, g, r, i)
works:
  grid   over (b, g, r, i)
"""
    why: str
    cure: str

    def title(self) -> str:
        return f"the items of this grid can't be joined: {self.why}"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class CantOrder(Problem):
    code: ClassVar[str] = "WG0426"
    doc: ClassVar[str] = """`longest_first` orders work items by falling trip count, which needs a grid axis along which trip
counts only rise or only fall, as under a causal mask.

fails:
  program window {
    dims M, N, D, E
    in   Q: bf16[M, D]
    in   K: bf16[N, D]
    in   V: bf16[N, E]
    out  O: bf16[M, E]
    S[i,j] = sum[d] Q[i,d] * K[j,d]
    X[i,j] = S[i,j] where j <= i and i - j < 100
    P[i,j] = softmax[j] X[i,j]
    O[i,e] = sum[j] P[i,j] * V[j,e]
  }
  schedule simple for window on sm_90a {   # with dims D=64, E=64
    tile   i 64, j 64
    stream j
    grid   over (i) longest_first
    role load : 1 warpgroup, registers 24
    role math : 1 warpgroup, registers 240
    smem Qs = Q[i] by tma
    smem Ks = K[j] by tma ring 2
    smem Vs = V[j] by tma ring 2
    load { fill Qs  for j { fill Ks[j]  fill Vs[j] } }
    math {
      for j {
        issue S[j] = wgmma(Qs, Ks[j])
        await S[j]
        compute P[j]
        rescale O
        issue O += wgmma(P[j], Vs[j])
        await O[j]
      }
      finish O
    }
  }
works:
  program window {
    dims M, N, D, E
    in   Q: bf16[M, D]
    in   K: bf16[N, D]
    in   V: bf16[N, E]
    out  O: bf16[M, E]
    S[i,j] = sum[d] Q[i,d] * K[j,d]
    X[i,j] = S[i,j] where j <= i and i - j < 100
    P[i,j] = softmax[j] X[i,j]
    O[i,e] = sum[j] P[i,j] * V[j,e]
  }
  schedule simple for window on sm_90a {   # with dims D=64, E=64
    tile   i 64, j 64
    stream j
    grid   over (i)
    role load : 1 warpgroup, registers 24
    role math : 1 warpgroup, registers 240
    smem Qs = Q[i] by tma
    smem Ks = K[j] by tma ring 2
    smem Vs = V[j] by tma ring 2
    load { fill Qs  for j { fill Ks[j]  fill Vs[j] } }
    math {
      for j {
        issue S[j] = wgmma(Qs, Ks[j])
        await S[j]
        compute P[j]
        rescale O
        issue O += wgmma(P[j], Vs[j])
        await O[j]
      }
      finish O
    }
  }
"""
    why: str
    cure: str

    def title(self) -> str:
        return f"the items of this grid can't go longest first: {self.why}"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class SeveralWriters(Problem):
    """`axis`: of the grid, which the output doesn't have; empty if there is none, and nothing to combine. `stream`: the
    streamed index if the axis is that of its parts."""

    code: ClassVar[str] = "WG0440"
    doc: ClassVar[str] = """Every element of an output is written by one CTA. A grid axis that an output doesn't have would let
several write it, unless each has a part of the stream and `combine` says how the parts come together.

In schedule `pipelined` for `gemm`:

fails:
  stream k split s in 4
  grid   over (s, i, n)
works:
  stream k
  grid   over (i, n)
"""
    output: str
    axis: str
    stream: str = ""
    how: str = ""  # it could be combined by

    def title(self) -> str:
        if not self.axis:
            return f"`{self.output}` is made by one CTA: there is nothing to combine"
        return f"several CTAs would store `{self.output}`, one for each `{self.axis}`"

    def help(self) -> str:
        if not self.axis:
            return f"`stream {self.stream} split s in 4` gives each CTA a part of the stream; or drop this line"
        if self.how:
            return f"`combine {self.output} by {self.how}`"
        return f"`combine {self.output} by atomic_add`" if self.stream else f"drop `{self.axis}` from the grid"


@dataclass(frozen=True, kw_only=True)
class KernelsDontFit(Problem):
    code: ClassVar[str] = "WG0442"
    doc: ClassVar[
        str
    ] = """A schedule of several kernels says for each which tensors it computes. Every output is computed by one
of them, and so is a tensor that one computes and another reads; none waits for another that waits for
it.

fails:
  program rows {
    dims M, N, D
    in   Q: bf16[M, D]
    in   K: bf16[N, D]
    out  L: f32[M]
    out  X: f32[M]
    S[i,j] = sum[d] Q[i,d] * K[j,d]
    L[i] = logsumexp[j] S[i,j]
    X[i] = max[j] S[i,j]
  }
  schedule two for rows on sm_90a {   # with dims D=64
    kernel first computes L {
      tile   i 64, j 64
      stream j
      grid   over (i)
      role load : 1 warpgroup, registers 24
      role math : 1 warpgroup, registers 240
      smem Qs = Q[i] by tma
      smem Ks = K[j] by tma ring 2
      load { fill Qs  for j { fill Ks[j] } }
      math { for j { issue S[j] = wgmma(Qs, Ks[j])  await S[j]  compute L[j] }  finish L }
    }
  }
works:
  program rows {
    dims M, N, D
    in   Q: bf16[M, D]
    in   K: bf16[N, D]
    out  L: f32[M]
    S[i,j] = sum[d] Q[i,d] * K[j,d]
    L[i] = logsumexp[j] S[i,j]
  }
  schedule one for rows on sm_90a {   # with dims D=64
    kernel first computes L {
      tile   i 64, j 64
      stream j
      grid   over (i)
      role load : 1 warpgroup, registers 24
      role math : 1 warpgroup, registers 240
      smem Qs = Q[i] by tma
      smem Ks = K[j] by tma ring 2
      load { fill Qs  for j { fill Ks[j] } }
      math { for j { issue S[j] = wgmma(Qs, Ks[j])  await S[j]  compute L[j] }  finish L }
    }
  }
"""
    why: str
    cure: str

    def title(self) -> str:
        return self.why

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class NotAddable(Problem):
    code: ClassVar[str] = "WG0441"
    doc: ClassVar[str] = """`combine ... by atomic_add` adds up what CTAs have made of their parts of the stream. That gives the
result only if it is made of plain sums along the streamed index.

In schedule `simple` for `attention`:

fails:
  stream j descending split s in 4
  grid   over (s, b, g, r, i)
  combine O, L by atomic_add
works:
  stream j descending
  grid   over (b, g, r, i)
"""
    output: str
    why: str
    folded: bool = False  # the parts are tiles along another axis than the streamed one

    def title(self) -> str:
        return f"the parts of `{self.output}` can't be added up: {self.why}"

    def help(self) -> str:
        if self.folded:
            whole = "give each CTA the whole axis: fix its dim, and name it in neither `tile` nor `grid`"
            return f"{whole}; or take a kernel of its own"
        return "let one CTA take the whole stream: drop `split` and `combine`"


@dataclass(frozen=True, kw_only=True)
class CantFuse(Problem):
    """`other`: the statement that has them otherwise."""

    code: ClassVar[str] = "WG0447"
    doc: ClassVar[str] = """`fuse m = (i, r)` makes one index of several, the last named fastest. All but the first have an
extent that is known at compile time; every output has all of them, and every reduction takes all or none.

In schedule `simple` for `attention`:

fails:
  tile i 128, j 128  fuse m = (r, i)
works:
  tile i 128, j 128
"""
    why: str
    cure: str
    other: Span | None = None

    def title(self) -> str:
        return f"these indices can't be fused: {self.why}"

    def others(self):
        return ((self.other, "here"),) if self.other else ()

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class NoBox(Problem):
    """`access`: where the index stands. `rows`: of a part of the home."""

    code: ClassVar[str] = "WG0448"
    doc: ClassVar[str] = """A tensor map moves boxes, which are the same wherever a tile starts. Where a tensor is read by
quotient and remainder of an index, as under `fuse`, a box has whole turns of the faster part, or lies within one:
of queries of 4 heads 64 rows are a box of 16 by 4. Of 96 heads they would sometimes lie in two turns.

fails:
  program scores {
    dims M, N, R, D
    in   Q: bf16[M, R, D]
    in   K: bf16[N, D]
    out  L: f32[M, R]
    S[i,r,j] = sum[d] Q[i,r,d] * K[j,d]
    L[i,r] = logsumexp[j] S[i,r,j]
  }
  schedule one for scores on sm_90a {   # with dims D=64, R=96
    fuse   m = (i, r)
    tile   m 64, j 64
    stream j
    grid   over (m)
    role load : 1 warpgroup, registers 24
    role math : 1 warpgroup, registers 240
    smem Qs = Q[m] by tma
    smem Ks = K[j] by tma ring 2
    load { fill Qs  for j { fill Ks[j] } }
    math { for j { issue S[j] = wgmma(Qs, Ks[j])  await S[j]  compute L[j] }  finish L }
  }
works:
  program scores {
    dims M, N, R, D
    in   Q: bf16[M, R, D]
    in   K: bf16[N, D]
    out  L: f32[M, R]
    S[i,r,j] = sum[d] Q[i,r,d] * K[j,d]
    L[i,r] = logsumexp[j] S[i,r,j]
  }
  schedule one for scores on sm_90a {   # with dims D=64, R=4
    fuse   m = (i, r)
    tile   m 64, j 64
    stream j
    grid   over (m)
    role load : 1 warpgroup, registers 24
    role math : 1 warpgroup, registers 240
    smem Qs = Q[m] by tma
    smem Ks = K[j] by tma ring 2
    load { fill Qs  for j { fill Ks[j] } }
    math { for j { issue S[j] = wgmma(Qs, Ks[j])  await S[j]  compute L[j] }  finish L }
  }
"""
    home: str
    tensor: str
    index: str
    access: str
    rows: int

    def title(self) -> str:
        return f"{self.rows} rows of `{self.home}` along `{self.index}` are no box of `{self.tensor}`"

    def label(self) -> str:
        return f"read at {self.access}"

    def help(self) -> str:
        return "take a tile that the faster index fills, or that divides it; or keep the indices as grid axes"


@dataclass(frozen=True, kw_only=True)
class NotAlongK(Problem):
    """`axis`: what is summed over. `free`: the other index of the tile, along which the rows of `tensor` lie."""

    code: ClassVar[str] = "WG0449"
    doc: ClassVar[str] = """The matrix engine takes operands of 8 bits only as they lie along the summed index: the elements
that are multiplied and added stand side by side in memory. Operands of 16 bits may lie the other way too.

fails:
  program product {
    dims M, N, K
    in   A: e4m3[M, K]
    in   B: e4m3[K, N]
    out  C: bf16[M, N]
    C[i,n] = sum[k] A[i,k] * B[k,n]
  }
  schedule eight for product on sm_90a {
    tile   i 64, n 128, k 128
    stream k
    grid   over (i, n)
    role load : 1 warpgroup, registers 24
    role math : 1 warpgroup, registers 240
    smem As = A[i, k] by tma ring 2
    smem Bs = B[k, n] by tma ring 2
    load { for k { fill As[k], Bs[k] } }
    math { for k { issue C += wgmma(As[k], Bs[k])  await C[k] }  finish C }
  }
works:
  program product {
    dims M, N, K
    in   A: e4m3[M, K]
    in   B: e4m3[N, K]
    out  C: bf16[M, N]
    C[i,n] = sum[k] A[i,k] * B[n,k]
  }
  schedule eight for product on sm_90a {
    tile   i 64, n 128, k 128
    stream k
    grid   over (i, n)
    role load : 1 warpgroup, registers 24
    role math : 1 warpgroup, registers 240
    smem As = A[i, k] by tma ring 2
    smem Bs = B[n, k] by tma ring 2
    load { for k { fill As[k], Bs[k] } }
    math { for k { issue C += wgmma(As[k], Bs[k])  await C[k] }  finish C }
  }
"""
    home: str
    tensor: str
    axis: str
    free: str
    dtype: str
    engine: str

    def title(self) -> str:
        return f"`{self.home}` doesn't lie along `{self.axis}`, as {self.engine} takes operands of {self.dtype}"

    def label(self) -> str:
        return f"`{self.tensor}` lies along `{self.free}`, and this product sums over `{self.axis}`"

    def help(self) -> str:
        form = f"`{self.tensor}[..., {self.free}, {self.axis}]`"
        return f"give the program a `{self.tensor}` whose last axis is `{self.axis}`: {form}"


@dataclass(frozen=True, kw_only=True)
class OperandTooLarge(Problem):
    """`grown`: in log2, by how much a maximum may lag behind. `most`: by how much it may so that the operand fits."""

    code: ClassVar[str] = "WG0450"
    doc: ClassVar[
        str
    ] = """What is scaled to a running maximum is at most 1, and larger by `when grown by` while the maximum lags
behind. Times its factor it has to stay within its type: e4m3 goes up to 448, and what is larger would be cut off.

fails:
  program weights {
    dims M, N, D, E
    in   Q: e4m3[M, D]
    in   K: e4m3[N, D]
    in   V: e4m3[E, N]
    out  O: bf16[M, E]
    S[i,j] = sum[d] Q[i,d] * K[j,d]
    P[i,j] = softmax[j] S[i,j]
    O[i,e] = sum[j] P[i,j] * V[e,j]
  }
  schedule eight for weights on sm_90a {   # with dims D=64, E=64
    tile   i 64, j 64
    stream j
    grid   over (i)
    role load : 1 warpgroup, registers 24
    role math : 1 warpgroup, registers 240
    smem Qs = Q[i] by tma
    smem Ks = K[j] by tma ring 2
    smem Vs = V[j] by tma ring 2
    regs Pr = P as e4m3 times 16 permute v8
    load { fill Qs  for j { fill Ks[j]  fill Vs[j] } }
    math {
      await Qs
      for j {
        issue S[j] = wgmma(Qs, Ks[j])
        await S[j]
        compute P[j]
        rescale O when grown by 8
        pack P[j]
        issue O += wgmma(Pr[j], Vs[j])
        await O[j]
      }
      finish O
    }
  }
works:
  program weights {
    dims M, N, D, E
    in   Q: e4m3[M, D]
    in   K: e4m3[N, D]
    in   V: e4m3[E, N]
    out  O: bf16[M, E]
    S[i,j] = sum[d] Q[i,d] * K[j,d]
    P[i,j] = softmax[j] S[i,j]
    O[i,e] = sum[j] P[i,j] * V[e,j]
  }
  schedule eight for weights on sm_90a {   # with dims D=64, E=64
    tile   i 64, j 64
    stream j
    grid   over (i)
    role load : 1 warpgroup, registers 24
    role math : 1 warpgroup, registers 240
    smem Qs = Q[i] by tma
    smem Ks = K[j] by tma ring 2
    smem Vs = V[j] by tma ring 2
    regs Pr = P as e4m3 times 16 permute v8
    load { fill Qs  for j { fill Ks[j]  fill Vs[j] } }
    math {
      await Qs
      for j {
        issue S[j] = wgmma(Qs, Ks[j])
        await S[j]
        compute P[j]
        rescale O when grown by 4
        pack P[j]
        issue O += wgmma(Pr[j], Vs[j])
        await O[j]
      }
      finish O
    }
  }
"""
    name: str
    dtype: str
    times: int
    grown: float
    largest: float
    most: int

    def title(self) -> str:
        return f"`{self.name}` doesn't fit {self.dtype}, whose largest number is {self.largest:g}"

    def label(self) -> str:
        grown = f", and 2^{self.grown:g} times that where its maximum lags behind" if self.grown else ""
        return f"up to {self.times}{grown}"

    def help(self) -> str:
        if self.most and self.grown:
            return f"`when grown by {self.most}`, or a smaller factor than `times {self.times}`"
        return f"a smaller factor than `times {self.times}`"

"""WG11xx: an explicit form that doesn't say a role program. What it says wrong of one is WG07xx and WG08xx.

Each `doc` is the rule, then under `fails:` and `works:` lines of the explicit form of a shipped schedule; tests check both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..foundation.source import Span
from .hints import nearest
from .model import Problem


@dataclass(frozen=True, kw_only=True)
class NothingOfThatName(Problem):
    """what: barrier, ring, buffer, map, tensor, value, integer, function, ...; cure: what would give the name a meaning."""

    what: str
    name: str
    known: tuple[str, ...] = ()
    cure: str = ""

    code: ClassVar[str] = "WG1101"
    doc: ClassVar[
        str
    ] = """Everything that a step names is declared: barriers, rings, buffers, maps, tensors and dims by the kernel,
values by the role, integers by `let`, `loop` and `items`.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  expect As.ful[s] bytes 49152
works:
  expect As.full[s] bytes 49152
"""

    def title(self) -> str:
        return f"there is no {self.what} `{self.name}` here"

    def help(self) -> str:
        if self.cure:
            return self.cure
        meant = nearest(self.name, self.known)
        if meant:
            return f"did you mean `{meant}`?"
        return (
            f"there {'is' if len(self.known) == 1 else 'are'} " + ", ".join(f"`{k}`" for k in self.known) if self.known else ""
        )


@dataclass(frozen=True, kw_only=True)
class NameInUse(Problem):
    what: str
    name: str
    first: Span | None = None

    code: ClassVar[str] = "WG1102"
    doc: ClassVar[
        str
    ] = """A name stands for one thing: two barriers have two names, and a value, a scalar and an integer that an expression
can mean aren't called alike.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  ring Cs stages 1 holds (Cs)
  ring Cs stages 1 holds (Cs)
works:
  ring Cs stages 1 holds (Cs)
"""

    def title(self) -> str:
        return f"`{self.name}` is the name of a {self.what} already"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.first, "here"),) if self.first is not None else ()


@dataclass(frozen=True, kw_only=True)
class WrongNumber(Problem):
    """`what` is `found` and has to be `wanted`."""

    what: str
    found: str
    wanted: str

    code: ClassVar[str] = "WG1103"
    doc: ClassVar[
        str
    ] = """Some numbers are given: a ring has at least one stage, a function its number of arguments, an access as many
indices as its tensor has axes. `[part, s]` names the part where a barrier or buffer has several.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  ring Cs stages 0 holds (Cs)
works:
  ring Cs stages 1 holds (Cs)
"""

    def title(self) -> str:
        return f"{self.what} is {self.found}, and has to be {self.wanted}"


@dataclass(frozen=True, kw_only=True)
class NotOfThisKind(Problem):
    """`found` stands where the form wants `wanted`; `hint` is what may help."""

    found: str
    wanted: str
    hint: str = ""

    code: ClassVar[str] = "WG1104"
    doc: ClassVar[
        str
    ] = """Integers (places, bounds, counts), numbers (what is computed) and conditions are kept apart. An integer that is
used as a number is written `int(i)`; `i >= 0` is a condition on integers.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  expect As.full[s] bytes 49152.0
works:
  expect As.full[s] bytes 49152
"""

    def title(self) -> str:
        return f"`{self.found}` is no {self.wanted}"

    def help(self) -> str:
        return self.hint


@dataclass(frozen=True, kw_only=True)
class BoxDiffers(Problem):
    """The elements that a copy names aren't those that its map moves."""

    map: str
    found: str
    wanted: str

    code: ClassVar[str] = "WG1105"
    doc: ClassVar[
        str
    ] = """A copy names the elements that it moves: where they start, and for each axis as many as the box of its map has.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  tma Bs[s] = B[n.lo +: 128, 64 * k.pos +: 64] by Bs signals As.full[s]
works:
  tma Bs[s] = B[n.lo +: 256, 64 * k.pos +: 64] by Bs signals As.full[s]
"""

    def title(self) -> str:
        return f"map `{self.map}` moves {self.wanted}, this names {self.found}"


@dataclass(frozen=True, kw_only=True)
class SlotsDiffer(Problem):
    first: str
    second: str

    code: ClassVar[str] = "WG1106"
    doc: ClassVar[str] = """A copy and the barrier that it signals stand at the same position of a ring.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  tma Bs[s] = B[n.lo +: 256, 64 * k.pos +: 64] by Bs signals As.full[s-1]
works:
  tma Bs[s] = B[n.lo +: 256, 64 * k.pos +: 64] by Bs signals As.full[s]
"""

    def title(self) -> str:
        return f"`{self.first}` and `{self.second}` stand at different positions"


@dataclass(frozen=True, kw_only=True)
class NotAsTheProgram(Problem):
    """`where` (the program, another kernel) has `wanted` in place of `told`."""

    where: str
    told: str
    wanted: str

    code: ClassVar[str] = "WG1107"
    doc: ClassVar[
        str
    ] = """Tensors are those of the program: names, types and shapes. What passes between kernels is the same in all.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  tensor C: f32[M, N] written
works:
  tensor C: bf16[M, N] written
"""

    def title(self) -> str:
        return f"{self.where} has {self.wanted}, not {self.told}"


@dataclass(frozen=True, kw_only=True)
class LineNotOnce(Problem):
    line: str
    where: str
    times: int
    first: Span | None = None

    code: ClassVar[str] = "WG1108"
    doc: ClassVar[
        str
    ] = """A kernel says once each what its grid is, and how many threads and bytes of shared memory it has; together the
kernels write every output.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  threads 384
  threads 384
works:
  threads 384
"""

    def title(self) -> str:
        return f"{self.where} has {self.times or 'no'} {self.line}{'s' if self.times > 1 else ''}: it has one"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.first, "the first"),) if self.first is not None else ()


@dataclass(frozen=True, kw_only=True)
class SettingFixed(Problem):
    name: str
    given: str
    fixed: str

    code: ClassVar[str] = "WG1109"
    doc: ClassVar[
        str
    ] = """An explicit form holds for the options, types and dims that its head names behind `with`. A caller may repeat
them, but not change them: for others the schedule has to be lowered anew.

fails:
  wgdsl compile explicit.wg --set D=64     # a form of `with D = 128`
works:
  wgdsl compile explicit.wg --set D=128
"""

    def title(self) -> str:
        return f"{self.name} is {self.fixed} in this explicit form, not {self.given}"

    def help(self) -> str:
        return f"print the form anew: `wgdsl explain ... --set {self.name}={self.given}`"


@dataclass(frozen=True, kw_only=True)
class NoOrigin(Problem):
    code: ClassVar[str] = "WG1110"
    doc: ClassVar[str] = """`@27` behind a line is a line of the file that `from "..."` names at the top.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  expect As.full[s] bytes 49152   @14
works:
  expect As.full[s] bytes 49152
"""

    def title(self) -> str:
        return "this is a line of no file"

    def help(self) -> str:
        return 'begin the block with `from "FILE"`, or leave `@` out: then the line is that of this text'

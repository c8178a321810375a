"""WG04xx: a schedule that doesn't fit its program, its target or itself."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar

from ..foundation.source import Span
from .model import Problem


def _nearest(name: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(name, known, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return "there are: " + ", ".join(f"`{k}`" for k in known) if known else ""


@dataclass(frozen=True, kw_only=True)
class UnknownName(Problem):
    code: ClassVar[str] = "WG0401"
    doc: ClassVar[str] = "A schedule may name only tensors of its program, its own homes and its own roles."
    what: str
    name: str
    known: tuple[str, ...] = ()

    def title(self) -> str:
        return f"no {self.what} is called `{self.name}`"

    def help(self) -> str:
        return _nearest(self.name, self.known)


@dataclass(frozen=True, kw_only=True)
class MissingLine(Problem):
    code: ClassVar[str] = "WG0402"
    doc: ClassVar[str] = "A schedule needs `stream`, `grid`, at least one role, and a list of steps for every role."
    line: str

    def title(self) -> str:
        return f"the schedule has no {self.line}"

    def help(self) -> str:
        return f"add {self.line}"


@dataclass(frozen=True, kw_only=True)
class DeclaredTwice(Problem):
    code: ClassVar[str] = "WG0403"
    doc: ClassVar[str] = "Every role, home and tile is declared once, and every role has one list of steps."
    what: str
    name: str
    first: Span | None = None

    def title(self) -> str:
        return f"{self.what} `{self.name}` is declared twice"

    def others(self):
        return ((self.first, "first declared here"),) if self.first else ()


@dataclass(frozen=True, kw_only=True)
class BadNumber(Problem):
    code: ClassVar[str] = "WG0404"
    doc: ClassVar[str] = "Tile sizes, ring depths, warpgroup and register counts are positive whole numbers within limits."
    what: str
    value: object
    rule: str

    def title(self) -> str:
        return f"{self.what} is {self.value}, but {self.rule}"


@dataclass(frozen=True, kw_only=True)
class NotYetSupported(Problem):
    code: ClassVar[str] = "WG0405"
    doc: ClassVar[str] = "The construct is part of the language, but this version can't lower it."
    what: str
    cure: str = ""

    def title(self) -> str:
        return f"{self.what} is not yet supported"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class AxisNotCovered(Problem):
    code: ClassVar[str] = "WG0406"
    doc: ClassVar[str] = "Every index of an output is a grid axis or lies whole inside the tile; its extent is then fixed."
    index: str
    output: str

    def title(self) -> str:
        return f"index `{self.index}` of output `{self.output}` is neither a grid axis nor whole inside the tile"

    def help(self) -> str:
        return f"name `{self.index}` in `grid over (...)`, or fix its dim at compile time"


@dataclass(frozen=True, kw_only=True)
class ExtentNotFixed(Problem):
    code: ClassVar[str] = "WG0407"
    doc: ClassVar[str] = "An index without a tile size takes its whole extent, which must be known at compile time."
    index: str
    extent: str
    tensor: str

    def title(self) -> str:
        return f"the extent `{self.extent}` of index `{self.index}` in `{self.tensor}` isn't known at compile time"

    def help(self) -> str:
        if self.extent.isidentifier():
            return f"fix it (`--set {self.extent}=128`, dims={{'{self.extent}': 128}}), or give it a tile: `tile {self.index} 64`"
        return f"give it a tile: `tile {self.index} 64`"


@dataclass(frozen=True, kw_only=True)
class WrongProduct(Problem):
    code: ClassVar[str] = "WG0408"
    doc: ClassVar[str] = "`issue X[j] = wgmma(A, B)` computes the product that the program says X is, from homes of its operands."
    target: str
    why: str

    def title(self) -> str:
        return f"this product isn't `{self.target}`: {self.why}"


@dataclass(frozen=True, kw_only=True)
class NoHome(Problem):
    code: ClassVar[str] = "WG0409"
    doc: ClassVar[str] = "An operand in memory needs a home: `smem Ks = K[j] by tma ring 2`."
    name: str
    homes: tuple[str, ...]

    def title(self) -> str:
        return f"`{self.name}` has no home that a product can read"

    def help(self) -> str:
        return _nearest(self.name, self.homes)


@dataclass(frozen=True, kw_only=True)
class StillInFlight(Problem):
    code: ClassVar[str] = "WG0410"
    doc: ClassVar[str] = "A product is asynchronous: its accumulator and its register operands may be touched only after its `await`."
    product: str
    touched: str
    issued: Span | None = None

    def title(self) -> str:
        return f"`{self.touched}` is touched while the product `{self.product}` may still be running"

    def others(self):
        return ((self.issued, "issued here"),) if self.issued else ()

    def help(self) -> str:
        return f"`await {self.product}` before this step"


@dataclass(frozen=True, kw_only=True)
class NeverComputed(Problem):
    code: ClassVar[str] = "WG0411"
    doc: ClassVar[str] = "A step may use only what an earlier step of its role has produced for that tile."
    name: str
    step: str

    def title(self) -> str:
        return f"`{self.step}` needs `{self.name}`, which no earlier step has produced"


@dataclass(frozen=True, kw_only=True)
class WrongReference(Problem):
    code: ClassVar[str] = "WG0412"
    doc: ClassVar[str] = (
        "An accumulator is scaled to the state of its last product's operand. Before the next product it must be rescaled to "
        "that of the new operand."
    )
    accumulator: str
    operand: str

    def title(self) -> str:
        return f"`{self.accumulator}` and `{self.operand}` are scaled to different states here"

    def help(self) -> str:
        return f"`rescale {self.accumulator}` between the `compute` and this product"


@dataclass(frozen=True, kw_only=True)
class LoopNotSteady(Problem):
    code: ClassVar[str] = "WG0413"
    doc: ClassVar[str] = "Each iteration of the loop must leave the same products in flight as it found."
    before: str
    after: str

    def title(self) -> str:
        return "the loop doesn't come back to the state that it began with"

    def notes(self) -> tuple[str, ...]:
        return (f"in flight before an iteration: {self.before}", f"after it: {self.after}")

    def help(self) -> str:
        return "`await` as many products in an iteration as it issues"


@dataclass(frozen=True, kw_only=True)
class RowsPerWarpgroup(Problem):
    code: ClassVar[str] = "WG0414"
    doc: ClassVar[str] = "wgmma computes 64 rows for a warpgroup."
    index: str
    tile: int
    warpgroups: int

    def title(self) -> str:
        return f"{self.warpgroups} warpgroups own {self.tile} rows of `{self.index}`, not 64 each"

    def help(self) -> str:
        return f"`tile {self.index} {64 * self.warpgroups}`"


@dataclass(frozen=True, kw_only=True)
class TileShape(Problem):
    code: ClassVar[str] = "WG0415"
    doc: ClassVar[str] = "Matrix instructions fix the shapes of tiles: 16-bit wgmma has k 16 and n a multiple of 8 up to 256."
    what: str
    value: int
    rule: str

    def title(self) -> str:
        return f"{self.what} is {self.value}: {self.rule}"


@dataclass(frozen=True, kw_only=True)
class CantShare(Problem):
    code: ClassVar[str] = "WG0416"
    doc: ClassVar[str] = "`over` lays a staging buffer part by part over a buffer whose parts are at least as large."
    name: str
    other: str
    why: str

    def title(self) -> str:
        return f"`{self.name}` can't lie over `{self.other}`: {self.why}"

    def help(self) -> str:
        return f"drop `over {self.other}`, so that `{self.name}` has memory of its own"


@dataclass(frozen=True, kw_only=True)
class NotFilled(Problem):
    code: ClassVar[str] = "WG0417"
    doc: ClassVar[str] = "Every buffer that a product reads is filled by exactly one role, and only buffers that are read are filled."
    name: str
    why: str

    def title(self) -> str:
        return f"`{self.name}` {self.why}"


@dataclass(frozen=True, kw_only=True)
class WrongTarget(Problem):
    code: ClassVar[str] = "WG0418"
    doc: ClassVar[str] = "A schedule is written for one target's engines."
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
    doc: ClassVar[str] = "Every output is stored by exactly one `finish`."
    output: str
    times: int

    def title(self) -> str:
        return f"output `{self.output}` is finished {self.times} times" if self.times else f"output `{self.output}` is never stored"

    def help(self) -> str:
        return f"`finish {self.output}` after the loop of one role"


@dataclass(frozen=True, kw_only=True)
class RingTooShallow(Problem):
    code: ClassVar[str] = "WG0420"
    doc: ClassVar[str] = "A ring is at least as deep as the tiles of it that a role holds at once, from first wait to release."
    home: str
    stages: int
    held: int

    def title(self) -> str:
        return f"this step waits for ever: all {self.stages} slots of `{self.home}` are held by tiles still to be released"

    def help(self) -> str:
        return f"`ring {self.held + 1}`, or `await` the product that reads the older tile before this step"

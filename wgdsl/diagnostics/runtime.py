"""WG06xx: a call whose arguments don't fit the kernel, or a request that names what isn't there.

Texts speak of arguments by their names in the program, and say what was given, what was expected and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import ClassVar

from ..foundation.source import Span
from .model import Problem

SHOWN = 4  # schedules that a message names


def _near(name: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(name, known, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return "there are: " + ", ".join(f"`{k}`" for k in known) if known else "there is none"


@dataclass(frozen=True, kw_only=True)
class WrongRank(Problem):
    code: ClassVar[str] = "WG0601"
    doc: ClassVar[str] = "An array has as many axes as its declaration: `in Q: T[B, M, H, D]` takes four."
    name: str
    declared: tuple[str, ...]
    got: tuple[int, ...]

    def title(self) -> str:
        return f"`{self.name}` has {len(self.got)} axes, but the program declares {len(self.declared)}"

    def notes(self) -> tuple[str, ...]:
        return (f"got shape {list(self.got)}", f"expected [{', '.join(self.declared)}]")


@dataclass(frozen=True, kw_only=True)
class WrongDType(Problem):
    code: ClassVar[str] = "WG0602"
    doc: ClassVar[str] = "Elements are never converted silently: an array has the type that the kernel was compiled for."
    name: str
    got: str
    expected: str
    type_name: str = ""  # the program's name for it, if it may be what was given

    def title(self) -> str:
        return f"`{self.name}` has elements of {self.got}, but the kernel takes {self.expected}"

    def help(self) -> str:
        if self.type_name:
            return f"convert it, or compile with types={{'{self.type_name}': '{self.got}'}}"
        return f"convert it to {self.expected}"


@dataclass(frozen=True, kw_only=True)
class WrongDevice(Problem):
    code: ClassVar[str] = "WG0603"
    doc: ClassVar[str] = "All arrays of a call lie on one device."
    name: str
    got: str
    other: str = ""
    expected: str = ""

    def title(self) -> str:
        if self.other:
            return f"`{self.name}` is on {self.got}, but `{self.other}` is on {self.expected}"
        return f"`{self.name}` is on {self.got}, but a launch takes arrays on a GPU"

    def help(self) -> str:
        if self.other:
            return f"move one of them: all arrays of a call lie on one device (`{self.name}.to('{self.expected}')`)"
        return f"move it (`{self.name}.cuda()`), or run in the simulator with device='sim'"


@dataclass(frozen=True, kw_only=True)
class DimsDisagree(Problem):
    code: ClassVar[str] = "WG0604"
    doc: ClassVar[str] = "A dim has one value in a call, wherever it occurs."
    dim: str
    value: int
    where: str
    other: int
    other_where: str

    def title(self) -> str:
        return f"{self.dim} is {self.value} from {self.where} but {self.other} from {self.other_where}"


@dataclass(frozen=True, kw_only=True)
class NoWholeRatio(Problem):
    code: ClassVar[str] = "WG0605"
    doc: ClassVar[str] = "Of `dims H = G * R` a call gives H and G: R = H / G must be a whole number."
    dim: str
    formula: str
    total: int
    where: str
    known: str
    by: int

    def title(self) -> str:
        return f"no whole {self.dim} makes {self.formula} = {self.total} ({self.where}) with {self.known}"

    def help(self) -> str:
        return f"{self.total} has to be a multiple of {self.by}"


@dataclass(frozen=True, kw_only=True)
class FixedDim(Problem):
    code: ClassVar[str] = "WG0606"
    doc: ClassVar[str] = "A dim that was fixed at compile time has that value in every call."
    dim: str
    value: int
    got: int
    where: str

    def title(self) -> str:
        return f"{self.dim} is {self.got} from {self.where}, but the kernel was compiled for {self.dim} = {self.value}"

    def help(self) -> str:
        return f"compile another one with dims={{'{self.dim}': {self.got}}}"


@dataclass(frozen=True, kw_only=True)
class FixedExtent(Problem):
    code: ClassVar[str] = "WG0624"
    doc: ClassVar[str] = "An extent that was fixed at compile time is the same in every call."
    where: str
    got: int
    expected: int
    dims: tuple[str, ...] = ()  # fixed dims with that value: one of them is meant

    def title(self) -> str:
        return f"{self.where} has {self.got} elements, but the kernel was compiled for {self.expected}"

    def help(self) -> str:
        if not self.dims:
            return ""
        return "compile another one with " + " or ".join(f"dims={{'{d}': {self.got}}}" for d in self.dims)


@dataclass(frozen=True, kw_only=True)
class InnerStride(Problem):
    code: ClassVar[str] = "WG0607"
    doc: ClassVar[str] = (
        "A bulk copy (TMA) moves neighbours: the elements along the innermost axis of its box lie side by side."
    )
    name: str
    axis: int
    stride: int

    def title(self) -> str:
        return f"`{self.name}` has stride {self.stride} along axis {self.axis}, which must be 1"

    def help(self) -> str:
        return f"pass a contiguous copy: `{self.name}.contiguous()` (torch) or `numpy.ascontiguousarray({self.name})`"


@dataclass(frozen=True, kw_only=True)
class StrideRule(Problem):
    code: ClassVar[str] = "WG0608"
    doc: ClassVar[str] = "A tensor map (TMA) takes strides that are multiples of 16 bytes, positive and below 2^40."
    name: str
    axis: int
    nbytes: int

    def title(self) -> str:
        why = "which must be a multiple of 16 bytes" if self.nbytes > 0 else "which must be positive"
        return f"the stride of `{self.name}` along axis {self.axis} is {self.nbytes} bytes, {why}"

    def notes(self) -> tuple[str, ...]:
        return ("the rule is that of the copy engine's tensor maps (TMA)",)

    def help(self) -> str:
        if self.nbytes <= 0:
            return f"pass a contiguous copy of `{self.name}`"
        up = -(-self.nbytes // 16) * 16
        return f"pad the rows to {up} bytes, or pass a view of a buffer that is padded so"


@dataclass(frozen=True, kw_only=True)
class WholeGroups(Problem):
    code: ClassVar[str] = "WG0626"
    doc: ClassVar[str] = (
        "Rows in the order `v8` come in fours: the copy engine would read on behind the last ones of an array whose\n"
        "length isn't a multiple of 4."
    )
    name: str
    axis: int
    length: int
    group: int

    def title(self) -> str:
        length = f"{self.length} elements along axis {self.axis}"
        return f"`{self.name}` has {length}, and this kernel reads them {self.group} at a time"

    def help(self) -> str:
        whole = -(-self.length // self.group) * self.group
        return f"pad axis {self.axis} to {whole} elements and mask the last ones, or take a schedule without `permute`"


@dataclass(frozen=True, kw_only=True)
class BaseRule(Problem):
    code: ClassVar[str] = "WG0609"
    doc: ClassVar[str] = (
        "A tensor map (TMA) starts at an address that is a multiple of 16 bytes; other accesses at one of the element."
    )
    name: str
    off: int
    multiple: int = 16

    def title(self) -> str:
        return f"`{self.name}` starts {self.off} bytes past a multiple of {self.multiple}, where it has to start"

    def help(self) -> str:
        return f"pass a copy (`{self.name}.clone()`), or cut the view at a multiple of {self.multiple} bytes"


@dataclass(frozen=True, kw_only=True)
class OverlappingOutput(Problem):
    code: ClassVar[str] = "WG0610"
    doc: ClassVar[str] = (
        "Every element of an output has a place of its own: along an axis of more than one element a stride steps over what\n"
        "lies within. Broadcast views (stride 0) and sliding windows don't keep this."
    )
    name: str
    axis: int
    stride: int = 0

    def title(self) -> str:
        return f"output `{self.name}` has stride {self.stride} along axis {self.axis}: its elements share memory"

    def help(self) -> str:
        return "pass an array that isn't a broadcast view" if not self.stride else "pass an array whose elements lie apart"


@dataclass(frozen=True, kw_only=True)
class SharedOutput(Problem):
    code: ClassVar[str] = "WG0625"
    doc: ClassVar[str] = (
        "An output shares no memory with another array of the call: a kernel may still read an input where it has begun to\n"
        "write. Slices of one buffer that don't overlap are fine."
    )
    name: str
    other: str

    def title(self) -> str:
        return f"output `{self.name}` shares memory with `{self.other}`"

    def help(self) -> str:
        return f"pass memory of its own for `{self.name}`, or leave it out: the call allocates and returns it"


@dataclass(frozen=True, kw_only=True)
class NeedsGrad(Problem):
    code: ClassVar[str] = "WG0611"
    doc: ClassVar[str] = "Kernels have no backward pass, and an output that silently left the autograd graph would be a trap."
    name: str

    def title(self) -> str:
        return f"`{self.name}` requires a gradient, which this kernel can't give"

    def help(self) -> str:
        return f"call it under `torch.no_grad()`, or pass `{self.name}.detach()`"


@dataclass(frozen=True, kw_only=True)
class MissingArgument(Problem):
    code: ClassVar[str] = "WG0612"
    doc: ClassVar[str] = "Every input without a default is given, by name or in the order of declaration."
    name: str
    signature: str

    def title(self) -> str:
        return f"argument `{self.name}` is missing"

    def help(self) -> str:
        return f"the call is {self.signature}"


@dataclass(frozen=True, kw_only=True)
class UnknownArgument(Problem):
    code: ClassVar[str] = "WG0613"
    doc: ClassVar[str] = (
        "Arguments are the program's inputs, its scalars, and the dims that are in no shape; outputs go into `out`."
    )
    name: str
    known: tuple[str, ...]

    def title(self) -> str:
        return f"the program has no argument `{self.name}`"

    def help(self) -> str:
        return _near(self.name, self.known)


@dataclass(frozen=True, kw_only=True)
class BadScalar(Problem):
    code: ClassVar[str] = "WG0614"
    doc: ClassVar[str] = "A scalar is a number (or an array of rank 0 on the host) in the range of its declared type."
    name: str
    got: str
    expected: str
    cure: str = ""

    def title(self) -> str:
        return f"`{self.name}` is {self.got}, but the kernel takes {self.expected}"

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class RequireFails(Problem):
    code: ClassVar[str] = "WG0615"
    doc: ClassVar[str] = "A call satisfies every `require` of the program."
    condition: str
    values: Mapping[str, object]

    def title(self) -> str:
        return f"the call breaks `require {self.condition}`"

    def notes(self) -> tuple[str, ...]:
        return tuple(f"{name} is {value}" for name, value in self.values.items())


@dataclass(frozen=True, kw_only=True)
class NegativeStride(Problem):
    code: ClassVar[str] = "WG0616"
    doc: ClassVar[str] = "Kernels walk forward: no stride is negative."
    name: str
    axis: int
    stride: int

    def title(self) -> str:
        return f"`{self.name}` has stride {self.stride} along axis {self.axis}: it runs backward"

    def help(self) -> str:
        return f"pass a copy: `numpy.ascontiguousarray({self.name})`"


@dataclass(frozen=True, kw_only=True)
class NotAnArray(Problem):
    code: ClassVar[str] = "WG0617"
    doc: ClassVar[str] = "Tensors come as torch, CuPy, JAX (DLPack) or NumPy arrays, dense and strided."
    name: str
    got: str

    def title(self) -> str:
        return f"`{self.name}` is {self.got}, not an array that a kernel can read"

    def help(self) -> str:
        return "pass a dense torch, CuPy, JAX or NumPy array"


@dataclass(frozen=True, kw_only=True)
class GridTooLarge(Problem):
    code: ClassVar[str] = "WG0618"
    doc: ClassVar[str] = "A grid has at most 2147483647 work items, 1073741823 if a schedule cuts it into sections."
    total: int
    axes: tuple[str, ...]
    limit: int

    def title(self) -> str:
        return f"the grid has {self.total} work items, more than {self.limit}"

    def notes(self) -> tuple[str, ...]:
        return ("its axes: " + ", ".join(self.axes),)

    def help(self) -> str:
        return "split the call along one of them"


@dataclass(frozen=True, kw_only=True)
class DimNotGiven(Problem):
    code: ClassVar[str] = "WG0619"
    doc: ClassVar[str] = "A dim that no shape determines is a parameter of the call."
    dim: str

    def title(self) -> str:
        return f"nothing in the call determines {self.dim}"

    def help(self) -> str:
        return f"pass it: `kernel(..., {self.dim}=...)`"


@dataclass(frozen=True, kw_only=True)
class DimTooLarge(Problem):
    code: ClassVar[str] = "WG0620"
    doc: ClassVar[str] = "Dims and indices are 32-bit; strides and offsets are 64-bit."
    dim: str
    value: int

    def title(self) -> str:
        return f"{self.dim} is {self.value}, which is outside 0 .. {2**31 - 1}"


@dataclass(frozen=True, kw_only=True)
class MapRefused(Problem):
    code: ClassVar[str] = "WG0621"
    doc: ClassVar[str] = "The driver refused a tensor map for which every known rule holds."
    name: str
    code_name: str
    what: str

    def title(self) -> str:
        return f"the driver refuses a tensor map of `{self.name}` ({self.code_name})"

    def notes(self) -> tuple[str, ...]:
        return (self.what,)

    def help(self) -> str:
        return f"pass a contiguous copy of `{self.name}`"


@dataclass(frozen=True, kw_only=True)
class WrongGpu(Problem):
    """`shared`, `limit`: bytes of shared memory, where that is what the GPU lacks. `instead`: the target that it runs best."""

    code: ClassVar[str] = "WG0622"
    doc: ClassVar[str] = (
        "A kernel runs on the architecture that it was compiled for, and on later GPUs if that has no instructions of its\n"
        "own: sm_90a code runs on compute capability 9.0 only, that of sm_80 on all since, if their shared memory is enough."
    )
    target: str
    device: str
    has: str
    shared: int = 0
    limit: int = 0
    instead: str = ""

    def title(self) -> str:
        if self.shared:
            return f"the kernel needs {self.shared} bytes of shared memory, {self.device} ({self.has}) has {self.limit}"
        return f"the kernel was compiled for {self.target}, but {self.device} is {self.has}"

    def help(self) -> str:
        sim = "run in the simulator with device='sim'"
        if self.shared and self.instead:
            return f"compile for {self.instead}, which says what fits; or {sim}"
        return f"choose a schedule for {self.instead}, which it runs, or {sim}" if self.instead else f"{sim}: it is too old"


@dataclass(frozen=True, kw_only=True)
class ReadOnlyOutput(Problem):
    code: ClassVar[str] = "WG0623"
    doc: ClassVar[str] = "An output is written in place."
    name: str

    def title(self) -> str:
        return f"output `{self.name}` is read-only"

    def help(self) -> str:
        return "leave it out: the call allocates and returns it"


@dataclass(frozen=True, kw_only=True)
class UnknownProgram(Problem):
    code: ClassVar[str] = "WG0650"
    doc: ClassVar[str] = "A file that holds several programs needs `program=`; a file without one can't be compiled."
    name: str
    known: tuple[str, ...]
    path: str = ""

    def title(self) -> str:
        if not self.known:
            return f"{self.path or 'the text'} holds no program"
        if not self.name:
            return f"{self.path or 'the text'} holds {len(self.known)} programs: say which"
        return f"no program is called `{self.name}`"

    def help(self) -> str:
        if self.known and not self.name:
            return "give program= one of " + ", ".join(f"`{k}`" for k in self.known) + " (`--program` on the command line)"
        return _near(self.name, self.known) if self.known else "a program begins with `program NAME {`"


@dataclass(frozen=True, kw_only=True)
class UnknownSchedule(Problem):
    code: ClassVar[str] = "WG0651"
    doc: ClassVar[str] = (
        "A schedule is one of the program's file, one of the shipped ones for that program, or a `.wg` file or text."
    )
    name: str
    program: str
    known: tuple[str, ...]

    def title(self) -> str:
        if not self.name:
            return f"there is no schedule for program `{self.program}`"
        return f"no schedule for program `{self.program}` is called `{self.name}`"

    def help(self) -> str:
        return _near(self.name, self.known) if self.known else f"write `schedule NAME for {self.program} on sm_90a {{ ... }}`"


@dataclass(frozen=True, kw_only=True)
class TargetMismatch(Problem):
    """`engines`: of both targets, by name. `gpu`: what `target` is, where the caller named none. `instead`: schedules for it.
    `retarget`: the target of another family for which a schedule can be made of this one."""

    code: ClassVar[str] = "WG0652"
    doc: ClassVar[str] = (
        "A schedule is written for one target, `on sm_90a`, and uses its engines. It is compiled for that one, or for a later\n"
        "one of the same family if `target` says so: `on sm_80` for sm_86, sm_89 and sm_120, each with its own limits. An\n"
        "explicit form holds for its own target alone. `auto` is the GPU of this machine."
    )
    target: str
    schedule: str
    needs: str
    gpu: str = ""
    same_family: bool = False
    explicit: bool = False
    engines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    instead: tuple[str, ...] = ()
    retarget: str = ""

    def title(self) -> str:
        return f"schedule `{self.schedule}` is written for {self.needs}, not {self.target}"

    def notes(self) -> tuple[str, ...]:
        gpu = (f"this GPU, {self.gpu}, is {self.target}",) if self.gpu else ()
        if self.explicit and self.same_family:
            return (*gpu, f"an explicit form holds for the target that it was made for, {self.needs}")
        if self.same_family:
            return (*gpu, f"{self.target} came before {self.needs}: a schedule serves its own target and later ones")
        return (*gpu, *(f"{target} has " + ", ".join(f"`{e}`" for e in has) for target, has in self.engines.items()))

    def help(self) -> str:
        return "\n".join(f"{'or ' * (n > 0)}{line}" for n, line in enumerate(self._cures()))

    def _cures(self) -> Iterator[str]:
        if self.instead:
            more = f" and {len(self.instead) - SHOWN} more" if len(self.instead) > SHOWN else ""
            yield f"choose a schedule for {self.target}: " + ", ".join(f"`{name}`" for name in self.instead[:SHOWN]) + more
        if self.explicit and self.same_family:
            yield f"print it again from its schedule: `wgdsl explain ... --target {self.target}`"
        elif self.same_family:
            yield f"write `on {self.target}` in it"
        elif self.retarget:
            yield f"make one of it: `wgdsl retarget {self.schedule} --to {self.retarget}`"
        yield f"compile for {self.needs} (`--target {self.needs}`)"


@dataclass(frozen=True, kw_only=True)
class UnknownTarget(Problem):
    """`own`: the target of the same number. `needs`: what only that one has. `before`: the one whose code runs there best."""

    code: ClassVar[str] = "WG0653"
    doc: ClassVar[str] = (
        "Targets are spelled as NVIDIA spells architectures, with the `a` where their own instructions are used: `sm_90a`.\n"
        "`wgdsl targets` lists those that wgdsl emits. A GPU that came later runs `on sm_80` schedules: their text is\n"
        "compiled again for it."
    )
    target: str
    known: tuple[str, ...]
    own: str = ""
    needs: tuple[str, ...] = ()
    before: str = ""
    first: str = ""

    def title(self) -> str:
        return f"`{self.target}` is not a target that wgdsl can emit"

    def notes(self) -> tuple[str, ...]:
        if self.needs:
            needs = " and ".join(f"`{n}`" for n in self.needs)
            return (f"schedules use {needs}: instructions of {self.own} alone, which code for {self.target} must not hold",)
        if self.first and not self.before:
            return (f"{self.first} is the first that has what schedules use",)
        return ()

    def help(self) -> str:
        there = "there are: " + ", ".join(f"`{k}`" for k in self.known)
        if self.own and self.needs:
            return f"compile for `{self.own}`\nor for `{self.before}`, with a schedule on it: that GPU runs its code too"
        if self.own:
            return f"compile for `{self.own}`"
        if self.before:
            return f"take `{self.before}`: a GPU of {self.target} runs its schedules, compiled again for it\n{there}"
        return there if self.first else _near(self.target, self.known)


@dataclass(frozen=True, kw_only=True)
class UnknownSetting(Problem):
    code: ClassVar[str] = "WG0654"
    doc: ClassVar[str] = "`--set` takes options, dims and types of the program, and options of the schedule, `NAME=VALUE` each."
    text: str
    known: tuple[str, ...] = ()
    why: str = ""

    def title(self) -> str:
        return self.why or f"program and schedule have no option, dim or type `{self.text}`"

    def help(self) -> str:
        return _near(self.text.partition("=")[0], self.known) if self.known else "write NAME=VALUE"


@dataclass(frozen=True, kw_only=True)
class DimsDontFit(Problem):
    code: ClassVar[str] = "WG0655"
    doc: ClassVar[str] = (
        "`wgdsl run` makes inputs of the shapes that `--dims` gives: every dim that isn't fixed follows from it."
    )
    why: str
    dims: tuple[str, ...]

    def title(self) -> str:
        return self.why

    def help(self) -> str:
        return "`--dims " + ",".join(f"{d}=..." for d in self.dims) + "`"


@dataclass(frozen=True, kw_only=True)
class EditedTextRefused(Problem):
    code: ClassVar[str] = "WG0656"
    doc: ClassVar[str] = (
        "`wgdsl run --cuda FILE` runs a text that you edited; NVRTC has to take it, and its kernel keeps its arguments."
    )
    path: str
    log: str

    def title(self) -> str:
        return f"NVRTC refuses {self.path}"

    def notes(self) -> tuple[str, ...]:
        return tuple(line for line in self.log.splitlines() if "error" in line)[:8]


@dataclass(frozen=True, kw_only=True)
class DimsToFix(Problem):
    code: ClassVar[str] = "WG0657"
    doc: ClassVar[str] = (
        "An index that a schedule neither tiles nor puts on the grid lies whole inside the tile: its dim has to be known at\n"
        "compile time. `--set D=128` fixes it, or `dims={'D': 128}` in Python; all other dims are read at each call."
    )
    schedule: str
    dims: Mapping[str, int]

    def title(self) -> str:
        return f"schedule `{self.schedule}` needs {' and '.join(self.dims)} fixed at compile time"

    def help(self) -> str:
        return f"for example `--set {' '.join(f'{n}={v}' for n, v in self.dims.items())}`; in Python `dims={dict(self.dims)}`"


@dataclass(frozen=True, kw_only=True)
class AmbiguousSchedule(Problem):
    code: ClassVar[str] = "WG0658"
    doc: ClassVar[str] = (
        "In each place where a schedule is looked up (the program's file, the files beside it, the shipped ones) its name is\n"
        "the only one for that program and target. The first place that has it decides."
    )
    name: str
    program: str
    paths: tuple[str, ...]
    first: Span | None = None

    def title(self) -> str:
        return f"several schedules for program `{self.program}` are called `{self.name}`: in {' and in '.join(self.paths)}"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.first, "the other one"),) if self.first else ()

    def help(self) -> str:
        if len(self.paths) == 1:
            return "rename one of them"
        return f"name the file: `--schedule {self.paths[0]}`, or rename one of them"


@dataclass(frozen=True, kw_only=True)
class TilesDontFit(Problem):
    code: ClassVar[str] = "WG0659"
    doc: ClassVar[str] = (
        "A kernel whose schedule says `stream j listed` makes lists of tiles: `tiles = kernel.list_tiles(...)` makes them\n"
        "alone, and `kernel(..., tiles=tiles)` uses them. They are for one kernel, and for arrays of the sizes that they\n"
        "were made for."
    )
    why: str
    cure: str

    def title(self) -> str:
        return self.why

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class BadTable(Problem):
    code: ClassVar[str] = "WG0660"
    doc: ClassVar[str] = (
        "A table of measured times is a JSON object: `program`, `target`, `card`, `date`, `command`, and `rows`, each with\n"
        "`types`, `options`, `dims` and `microseconds`, a time by the text of a candidate. `wgdsl tune` writes it. A file\n"
        "that is no such table is never passed over: what it was meant to say would be lost unseen."
    )
    path: str
    why: str
    row: int | None = None  # counted from 1
    cure: str = ""

    def title(self) -> str:
        where = f"row {self.row}: " if self.row is not None else ""
        return f"{self.path} is no table of measured times: {where}{self.why}"

    def help(self) -> str:
        return self.cure or "mend it, or remove the file: `wgdsl tune` writes a new one"


@dataclass(frozen=True, kw_only=True)
class NothingLegal(Problem):
    code: ClassVar[str] = "WG0661"
    doc: ClassVar[str] = (
        "Where no schedule is named, the first is taken that can be compiled for the types, options and dims that are given.\n"
        "Here none can. Name one with `--schedule` to see all that is wrong with it, and what would fit."
    )
    program: str
    target: str
    refused: tuple[tuple[str, str, str], ...]  # name, code, title

    def title(self) -> str:
        return (
            f"none of the {len(self.refused)} schedules for program `{self.program}` on {self.target} can be compiled for this"
        )

    def notes(self) -> tuple[str, ...]:
        return tuple(f"{name}: {code}: {title}" for name, code, title in self.refused)

    def help(self) -> str:
        return f"`--schedule {self.refused[0][0]}` shows what would fit, or write a schedule for these sizes"


@dataclass(frozen=True, kw_only=True)
class BadCandidate(Problem):
    code: ClassVar[str] = "WG0665"
    doc: ClassVar[str] = (
        "The name of a schedule may have values in braces behind it, as `wgdsl tune` writes them: of a `tile`, a `ring`,\n"
        "`registers`, `warpgroups` or an `option` of that schedule, in place of what its lines say."
    )
    text: str
    why: str

    def title(self) -> str:
        return f"`{self.text}` names no schedule: {self.why}"

    def help(self) -> str:
        return "for example `three {tile j 96, ring Ks 3}`: kind, name and value, between commas"

"""`wgdsl compare`: how schedules of one program use the matrix engine, number beside number.

In: a program's file and the schedules' names.  Out: `Column`s, one for each kernel of each schedule: what the placed role
program says, and what the assembler made of it. Floating-point operations are those of the placed products. A tile is one step
along the streamed axis, as all of the CTA's warps do it together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from ..diagnostics.model import WgError
from ..diagnostics.runtime import UnknownSchedule
from ..diagnostics.tools import NothingToCompare, OfAnotherProgram
from ..driver import Journal, guarded, prepare
from ..reading import read_unit
from ..roles import model as m
from ..roles.model import Kernel as RoleKernel
from ..runtime import cuda
from ..runtime.kernel import Kernel
from ..runtime.log import Resources
from ..runtime.machine_code import Code, read_code
from ..runtime.sass import disassemble
from ..settings import numbers, sort_settings
from ..sources import find_program, schedules_for
from ..targets.choice import TARGETS
from ..targets.machine import flops, loaded_bytes
from .pairing import programs_with
from .running import interleaved
from .steady import Product, Steady, groups, overlaps, products_of, steady
from .watch import watched
from .work import work

ROUNDS = 5
REPEATS = 10  # launches a round
NO_GPU = "no GPU here"
NO_DIMS = "not timed: give `--dims`"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A kind of matrix instruction, and the products that it makes."""

    instruction: str
    products: tuple[str, ...]
    flops: int


@dataclass(frozen=True, kw_only=True)
class Slots:
    """Instructions in the steady loop of a role, a tile, and how many warps issue each."""

    role: str
    instructions: float
    warps: int


@dataclass(frozen=True, kw_only=True)
class Operands:
    """Bytes of operands a tile. packed: made in registers; loaded: brought there from shared memory; shared: read from shared
    memory by the tensor core."""

    packed: float
    loaded: float
    shared: float


@dataclass(frozen=True, kw_only=True)
class Held:
    """Registers a thread that the role's placed values take; `granted` to the role, None if the launch's count holds."""

    accumulators: int
    operands: int
    rows: int
    other: int
    granted: int | None

    @property
    def sum(self) -> int:
        return self.accumulators + self.operands + self.rows + self.other


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """What ptxas says: registers a thread at launch, bytes spilled."""

    registers: int
    spilled: int


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Instructions between the last matrix instruction of a group of products and the wait that ends it."""

    products: tuple[str, ...]
    instructions: int


@dataclass(frozen=True, kw_only=True)
class Time:
    seconds: float
    tflops: float


@dataclass(frozen=True, kw_only=True)
class Column:
    """One kernel. None, or empty, is what it doesn't have: a product, or a loop with products. role: that issues them."""

    schedule: str
    kernel: str
    target: str
    role: str | None
    issuer: str | None
    shapes: tuple[Shape, ...]
    matrix_instructions: float | None
    flops: float | None
    slots: tuple[Slots, ...]
    slots_per_flop: float | None
    operands: Operands | None
    held: Held | None
    assembled: Assembled
    asynchronous: bool | None
    overlaps: tuple[Overlap, ...] = field(default=())
    shared_bytes: int
    threads: int
    resident: int
    time: Time | None = None
    untimed: str = ""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    program: str
    settings: dict[str, object]
    dims: dict[str, int]
    columns: tuple[Column, ...]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `wgdsl compare` was asked. dims: of the timed calls. timeout None: this is the watched process."""

    file: Path
    schedules: str
    settings: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    program: str | None = None
    timeout: float | None = None


def compare(request: Request, arguments: Sequence[str] = ()) -> Comparison | int:
    """The comparison; or, where it is timed on a GPU by a watched process of its own, which prints it, that one's exit code.

    Raises WgError for schedules that don't exist or are of another program, EnvironmentFault without NVRTC or nvdisasm.
    """
    dims = numbers(request.dims)
    words = named(request)
    kernels = [_kernel(request, word) for word in words]
    timed = bool(dims) and cuda.available()
    if timed and request.timeout is not None:
        return watched(arguments, request.timeout)
    columns = [c for label, k in zip(_labels(words, kernels), kernels, strict=True) for c in columns_of(label, k)]
    graph = kernels[0].graph
    chosen = {**graph.options, **{n: str(t) for n, t in graph.types.items()}, **graph.fixed}
    found = [replace(c, untimed=NO_DIMS if cuda.available() else NO_GPU) for c in columns]
    if timed:
        found = _timed(kernels, columns, dims)
    return Comparison(program=graph.name, settings=chosen, dims=dims, columns=tuple(found))


def named(request: Request) -> list[str]:
    """The schedules. Raises WgError for all of them that aren't for the program."""
    unit = read_unit(request.file)
    program = find_program(unit, request.program).name
    words = [w.strip() for w in request.schedules.split(",") if w.strip()]
    known = tuple(dict.fromkeys(w.schedule.name for place in schedules_for(program, unit) for w in place))
    if not words:
        raise WgError(NothingToCompare(text=request.schedules, known=known))
    problems = [p for w in words if w not in known for p in _misplaced(w, program, known)]
    if problems:
        raise WgError(problems)
    return words


def _misplaced(word: str, program: str, known: tuple[str, ...]) -> Iterator[OfAnotherProgram | UnknownSchedule]:
    """What is wrong with a word that is no schedule's name here: nothing, if it is a file with one for the program."""
    programs = tuple(programs_with(word))
    if programs and program not in programs:
        yield OfAnotherProgram(schedule=word, program=program, programs=programs)
    elif not programs and not word.endswith(".wg"):
        yield UnknownSchedule(name=word, program=program, known=known)


def _kernel(request: Request, schedule: str) -> Kernel:
    kernel, journal = prepare(
        request.file,
        program=request.program,
        schedule=schedule,
        settings=lambda found: sort_settings(found, request.settings),
    )
    with guarded(journal):
        return kernel.build()


def _labels(words: list[str], kernels: list[Kernel]) -> list[str]:
    """The schedules' names; where two are the same, the words that they were asked for by."""
    names = [k.roles.schedule for k in kernels]
    return [word if names.count(name) > 1 else name for word, name in zip(words, names, strict=True)]


def columns_of(schedule: str, kernel: Kernel) -> Iterator[Column]:
    """A column for each kernel of a schedule."""
    with guarded(Journal()):
        for k in kernel.roles.kernels:
            binary = kernel.binaries[k.name]
            yield column(schedule, k, read_code(disassemble(binary.cubin)), binary.kernels[0])


def column(schedule: str, k: RoleKernel, code: Code, made: Resources) -> Column:
    """What the placed kernel, its code and the assembler's log say."""
    loops = [s for r in k.roles if (s := steady(k, r, code)) is not None]
    main = max((s for s in loops if s.products), key=lambda s: s.flops, default=None)
    role = main.role if main is not None else next((r for r in k.roles if any(products_of(k, r.steps))), None)
    products = list(products_of(k, role.steps)) if role is not None else []
    target = TARGETS[k.target]
    shared = target.shared_bytes(k.shared_bytes)
    return Column(
        schedule=schedule,
        kernel=k.name,
        target=k.target,
        role=role.name if role is not None else None,
        issuer=products[0].engine.issuer if products else None,
        shapes=tuple(_shapes(products)),
        slots=tuple(Slots(role=s.role.name, instructions=s.slots, warps=s.warps) for s in loops),
        **_of_loop(main, loops),
        held=_held(k, role, products) if role is not None else None,
        assembled=Assembled(registers=made.registers, spilled=made.spill_stores + made.spill_loads),
        asynchronous=products[0].engine.asynchronous if products else None,
        shared_bytes=shared,
        threads=k.threads,
        resident=target.resident(threads=k.threads, registers=made.registers, shared=shared + made.shared),
    )


def _shapes(products: list[Product]) -> Iterator[Shape]:
    """The kinds of instruction, in the order of the products that first use them."""
    for shape in dict.fromkeys(p.shape for p in products):
        own = [p for p in products if p.shape == shape]
        m_, n, k = shape
        name = f"{own[0].engine.name} m{m_}n{n}k{k}"
        yield Shape(instruction=name, products=tuple(dict.fromkeys(p.step.acc for p in own)), flops=flops(shape))


def _of_loop(main: Steady | None, loops: list[Steady]) -> dict:
    """What is counted in the steady loop."""
    if main is None:
        return {"matrix_instructions": None, "flops": None, "slots_per_flop": None, "operands": None}
    issued = sum(i.mnemonic in main.products[0].engine.mnemonics for i in main.code)
    return {
        "matrix_instructions": issued / main.tiles,
        "flops": main.flops,
        "slots_per_flop": sum(s.slots * s.warps for s in loops) / main.flops,
        "operands": _operands(main),
        "overlaps": tuple(_overlaps(main)),
    }


def _operands(main: Steady) -> Operands:
    packed = shared = 0
    for p in main.products:
        size = p.step.dtype.nbytes
        a, b = p.rows * p.step.k * size, p.step.n * p.step.k * size
        packed += a if isinstance(p.step.a, m.RegOperand) else 0
        if p.engine.reads_shared:
            shared += b + (0 if isinstance(p.step.a, m.RegOperand) else a)
    loads = 0 if main.products[0].engine.reads_shared else sum(loaded_bytes(i.op) for i in main.code)
    each = main.role.count / main.loop.step
    return Operands(packed=packed * each, loaded=loads * main.warps / main.tiles, shared=shared * each)


def _held(k: RoleKernel, role: m.Role, products: list[Product]) -> Held:
    own = [v for v in k.values if v.role == role.name]
    sums = {p.step.acc for p in products}

    def taken(*kinds: str, acc: bool | None = None) -> int:
        return sum(v.registers for v in own if v.kind in kinds and acc in (None, v.name in sums))

    return Held(
        accumulators=taken("tile", acc=True),
        operands=taken("operand"),
        rows=taken("row", "flag"),
        other=taken("tile", acc=False),
        granted=role.registers,
    )


def _overlaps(main: Steady) -> Iterator[Overlap]:
    """By the names of the products, where the code has as many groups as the steps."""
    found, names = overlaps(main.products[0].engine, main.code), groups(main.loop.body)
    for at, count in enumerate(found):
        yield Overlap(products=names[at % len(names)] if names and len(found) % len(names) == 0 else (), instructions=count)


def _timed(kernels: list[Kernel], columns: list[Column], dims: dict[str, int]) -> list[Column]:
    """The columns with the times of their schedules; of one of several kernels, with that of all together."""
    with guarded(Journal()):
        sizes, seconds = interleaved(kernels, dims, rounds=ROUNDS, repeats=REPEATS)
    done = work(kernels[0].graph, {**kernels[0].graph.fixed, **sizes})
    times = [Time(seconds=median(t), tflops=done / median(t) / 1e12) for t in seconds]
    owners = [t for k, t in zip(kernels, times, strict=True) for _ in k.roles.kernels]
    return [replace(c, time=t) for c, t in zip(columns, owners, strict=True)]

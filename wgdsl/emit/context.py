"""What lowerings work on: the kernel's identifiers and wrappers, and one role's writer, integers and ring positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ..diagnostics.model import InternalError
from ..program.poly import Poly
from ..roles.items import divisors
from ..roles.marks import KEPT, Mark
from ..roles.model import Advance, Barrier, Buffer, Kernel, Ring, Role, Slot, Step, Value, Wait, walk
from ..targets.choice import TARGETS
from ..targets.mbarrier import MBARRIER_BYTES
from ..targets.registers import WARPGROUP
from ..targets.wgmma import M
from .integers import PRODUCT, SHIFT, SUM, Integers
from .lowering import lower
from .ptx import NEEDS, WRAPPERS, Function
from .scope import Scope, Temporaries
from .writer import Writer


class KernelContext:
    """Identifiers and PTX wrappers of one kernel."""

    def __init__(self, kernel: Kernel, marks: Mapping[int, Mark] | None = None):
        """marks: where the clock is noted."""
        self.kernel, self.marks = kernel, marks or {}
        self.scope = Scope()
        self.functions: dict[str, Function] = {}
        self._declare()
        if marks:
            self.scope.declare("marks", "marks", "timeline_marks")

    def ptx(self, name: str, *args) -> str:
        """The qualified name of a wrapper, whose definition the text will then hold."""
        for needed in NEEDS.get(name, ()):
            self.ptx(needed)
        function = WRAPPERS[name](*args)
        self.functions.setdefault(function.name, function)
        return f"ptx::{function.name}"

    def _declare(self) -> None:
        """Fix the identifiers in one order, so that a text doesn't depend on which step comes first."""
        declare, kernel = self.scope.declare, self.kernel
        declare("kernel", kernel.name)
        for p in kernel.params:
            if p.kind == "stride":
                declare("stride", stride_key(p.tensor, p.axis), p.name)
            elif p.kind == "pointer":
                declare("pointer", p.tensor or p.name, f"{p.tensor or p.name}_ptr")
            elif p.kind == "map":
                declare("map", p.name, f"{p.name.removesuffix('.map')}_map")
            else:
                declare({"dim": "int", "divisor": "divisor"}.get(p.kind, "scalar"), p.name)
            if p.kind == "counter":
                declare("counter", p.name, f"{p.name}_counters")
        for b in kernel.buffers:
            declare("buffer", b.name)
        for b in kernel.barriers:
            declare("barrier", b.name)
        for v in kernel.values:
            declare("value", v.name)
        for axis in kernel.grid.axes:
            name = grid_symbol(axis)
            declare("int", name)

    def integers(self) -> Integers:
        """The dims: what every role can name."""
        dims = [p.name for p in self.kernel.params if p.kind == "dim"]
        return Integers({d: self.scope.get("int", d) for d in dims}, frozenset(dims), self.ptx)


def stride_key(tensor: str | None, axis: int | None) -> str:
    """What a tensor's stride along an axis is declared under."""
    return f"{tensor}[{axis}]"


def grid_symbol(axis) -> str:
    """The symbol that an item binds for a grid axis."""
    return axis.index if axis.tile == 1 else f"{axis.index}.lo"


@dataclass
class Block:
    """One C++ block: names of its own, and the ring slots that it has computed."""

    names: Temporaries
    slots: dict[tuple[str, object], str]


class RoleContext:
    """State while one role is printed. Lowerings write to `out`; `head` lines go to the start of the role."""

    def __init__(self, shared: KernelContext, role: Role, lines: bool = True):
        self.shared, self.role, self.marks = shared, role, shared.marks
        self.kernel = shared.kernel
        self.target = TARGETS[self.kernel.target]
        self.rows = next((v.rows for v in self.kernel.values if v.role == role.name), M)  # of its register tiles
        self.halves = self.rows // 32  # rows of which a thread holds elements
        self.scope, self.ptx = shared.scope, shared.ptx
        self.out = Writer(lines=lines)
        self.head: dict[str, str] = {}
        self.used_buffers: set[str] = set()
        self.used_barriers: set[str] = set()
        self.elected = role.elected
        self.item_counts: dict[str, str] = {}  # blocks of each grid axis, as the role names them
        self.source = ""  # of the items, where they are joined
        self.ahead = ""  # what the number of the item that follows is called there
        self.ranges: dict[str, tuple[Poly, Poly]] = {}
        self.ints = shared.integers().binding("wg", "0" if role.count == 1 else self._own("wg"), True)
        self._blocks = [Block(self.scope.lasting(), {})]
        steps = tuple(walk(role.steps))
        self.moved = {s.ring for s in steps if isinstance(s, Advance)}
        self.waited = {s.slot.ring for s in steps if isinstance(s, Wait)}

    def _own(self, name: str) -> str:
        return self.scope.declare("own", name)

    def thread(self) -> str:
        self.head.setdefault("thread", "const int thread = threadIdx.x & 127;  // of the warpgroup")
        return "thread"

    def role_thread(self) -> str:
        self.head.setdefault("role_thread", f"const int role_thread = threadIdx.x - {128 * self.role.first};")
        return "role_thread"

    def lane(self) -> str:
        self.head.setdefault("lane", "const int lane = threadIdx.x & 31;")
        return "lane"

    def fragment_row(self) -> str:
        """The first of the rows of a thread's fragments; each of the others is 8 below."""
        self.thread()
        self.lane()
        others = ", ".join(["row", *(f"row + {8 * k}" for k in range(1, self.halves - 1))])
        what = f"{others} and row + {8 * (self.halves - 1)}"
        self.head.setdefault("row", f"const int row = thread / 32 * {8 * self.halves} + lane / 4;  // of its fragments: {what}")
        return "row"

    def fragment_col(self, v8: bool = False) -> str:
        """The first column of a thread's fragments. v8: where columns lie in that order."""
        self.lane()
        if v8:
            name = self._own("first_key")
            self.head.setdefault(name, f"const int {name} = lane % 4 * 4;  // of its fragments in the order v8")
            return name
        name = self._own("first_col")
        self.head.setdefault(name, f"const int {name} = lane % 4 * 2;  // of its fragments")
        return name

    def value(self, name: str) -> tuple[Value, str]:
        return self.kernel.value(name), self.scope.get("value", name)

    def home(self, name: str) -> str:
        """The value whose registers hold a value: itself, or the one that it lies over."""
        over = self.kernel.value(name).over
        return name if over is None else self.home(over)

    def text(self, p: Poly, tight: int = SHIFT) -> str:
        return self.ints.text(p, tight)

    def divisor(self, p: Poly) -> str | None:
        """The parameter for divisions by p, if the kernel has one."""
        given = {x.name for x in self.kernel.params if x.kind == "divisor"}
        names = (n for n, by in divisors(self.kernel.grid).items() if by == p and n in given)
        return next((self.scope.get("divisor", n) for n in names), None)

    def bind(self, symbol: str, natural: bool, low: Poly | None = None, high: Poly | None = None) -> str:
        """Give a symbol its C++ name from here on."""
        name = self.scope.declare("int", symbol)
        self.ints = self.ints.binding(symbol, name, natural)
        if low is not None and high is not None:
            self.ranges[symbol] = (low, high)
        return name

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """A C++ block. Bindings made in it end with it."""
        ints, ranges = self.ints, dict(self.ranges)
        with self.scope.temporaries() as names, self.out.block(head):
            self._blocks.append(Block(names, {}))
            yield
            self._blocks.pop()
        self.ints, self.ranges = ints, ranges

    def steps(self, steps: tuple[Step, ...]) -> None:
        for s in steps:
            # what holds other steps leaves it to them to name the schedule's words
            self.out.step(None if s.blocks() else s.span, s.note)
            if id(s) in self.marks:
                self.mark(self.marks[id(s)].number)
            lower(self, s)

    def mark(self, number: int) -> None:
        """Note the clock, in a kernel that is to be measured."""
        left, groups = self._own("marks_left"), self.kernel.threads // WARPGROUP
        first = f"blockIdx.x == 0 && threadIdx.x % {WARPGROUP} == 0 ? {KEPT * groups} + threadIdx.x / {WARPGROUP} : 0"
        self.head.setdefault(left, f"unsigned {left} = {first};  // where the next note goes; below {groups}: nowhere")
        call = self.ptx("note_clock", groups)
        self.out.line(f"{call}({left}, {self.scope.get('marks', 'marks')}, {number});")

    def ring_of(self, slot: Slot) -> Ring:
        return self.kernel.ring(slot.ring)

    def has_stage(self, ring: Ring) -> bool:
        return ring.name in self.moved and ring.stages > 1

    def has_phase(self, ring: Ring) -> bool:
        return ring.name in self.moved and ring.name in self.waited

    def stage_name(self, ring: str) -> str:
        return self.scope.declare("stage", ring, f"{ring}_stage")

    def phase_name(self, ring: str) -> str:
        return self.scope.declare("phase", ring, f"{ring}_phase")

    def stage(self, slot: Slot) -> str:
        """The stage as text; `0` where it cannot be another."""
        ring = self.ring_of(slot)
        back = slot.lag % ring.stages
        if not self.has_stage(ring):
            return str(-back % ring.stages)
        now = self.stage_name(ring.name)
        if back == 0:
            return now
        slots = self._blocks[-1].slots
        key = (ring.name, back)
        if key not in slots:
            slots[key] = self._blocks[-1].names.fresh(f"{ring.name}_back{back}")
            wrapped = f"{now} + {ring.stages - back}"
            where = f"{now} ^ 1" if ring.stages == 2 else f"{now} < {back} ? {wrapped} : {now} - {back}"
            self.out.line(f"const int {slots[key]} = {where};")
        return slots[key]

    def phase(self, slot: Slot, flip: bool) -> str:
        """The parity to wait for, as text."""
        ring = self.ring_of(slot)
        turns, back = divmod(slot.lag, ring.stages)
        constant = (turns + flip) % 2
        if ring.name not in self.moved:
            return str((constant + (back > 0)) % 2)
        parts = [self.phase_name(ring.name)]
        if back and self.has_stage(ring):
            parts.append(f"({self.stage_name(ring.name)} < {back})")
        elif back:
            constant ^= 1
        return " ^ ".join(parts + ["1"] * constant)

    def at_slot(self, slot: Slot, name: str, text: str) -> str:
        """A name for an address that holds until the ring moves."""
        slots = self._blocks[-1].slots
        key = (slot.ring, text)
        if key not in slots:
            slots[key] = self.names().fresh(name)
            self.out.line(f"const unsigned {slots[key]} = {text};")
        return slots[key]

    def forget_slots(self, ring: str) -> None:
        for b in self._blocks:
            b.slots = {k: v for k, v in b.slots.items() if k[0] != ring}

    def tile_offset(self, buffer: Buffer, part: Poly, slot: Slot, unit: int = 1) -> list[str]:
        """Terms of the distance from a buffer's start to one of its tiles, in `unit` bytes; none for the first."""
        size = buffer.stride // unit
        stage = self.stage(slot)
        terms = []
        if stage.isdigit():
            part = part + Poly.of(int(stage) * buffer.parts)
        else:
            terms.append(f"{stage} * {buffer.parts * size}")
        if part.constant != 0:
            terms.append(self.text(part * size, SUM + 1))
        return terms

    def tile_address(self, buffer: Buffer, part: Poly, slot: Slot, panel: int = 0) -> str:
        self.used_buffers.add(buffer.name)
        terms = [self.scope.get("buffer", buffer.name), *self.tile_offset(buffer, part, slot)]
        if panel:
            terms.append(str(panel * buffer.panel_bytes))
        return " + ".join(terms)

    def barrier_address(self, barrier: Barrier, part: Poly, slot: Slot) -> str:
        self.used_barriers.add(barrier.name)
        base = self.scope.get("barrier", barrier.name)
        stage = self.stage(slot)
        index = part * barrier.stages
        if stage.isdigit():
            index = index + int(stage)
            if index.constant is not None:
                return base + (f" + {index.constant * MBARRIER_BYTES}" if index.constant else "")
            return f"{base} + {MBARRIER_BYTES} * {self.text(index, PRODUCT)}"
        if index.constant == 0:
            return f"{base} + {MBARRIER_BYTES} * {stage}"
        return f"{base} + {MBARRIER_BYTES} * ({self.text(index, SUM)} + {stage})"

    def names(self) -> Temporaries:
        """Names of the innermost block."""
        return self._blocks[-1].names

    def need_all_threads(self, step: Step) -> None:
        if self.elected:
            raise InternalError(f"{type(step).__name__} runs on a whole warpgroup, but stands where one thread runs")

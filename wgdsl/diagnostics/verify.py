"""WG07xx: a role program whose structure can't be right, whatever its inputs. Found before anything is emitted.

Each `doc` is the rule, then under `fails:` and `works:` lines of a shipped schedule or of its role program; tests check both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .budget import Budgeted, Share, table
from .model import Problem


@dataclass(frozen=True, kw_only=True)
class IllFormedStep(Problem):
    """`rule` is the rule of `roles/rules.py` that is broken, `step` the text of the step (empty for a declaration)."""

    rule: str
    why: str
    step: str = ""
    cure: str = ""

    code: ClassVar[str] = "WG0701"
    doc: ClassVar[str] = """Steps name buffers, rings, barriers, maps and values that their kernel declares, fit their shapes,
and are executed by the threads that they are made for. `wgdsl/roles/rules.py` lists the rules.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  arrive As.empty[s-1] by one thread
works:
  arrive As.empty[s-1] by lane 0 of each warp
"""

    def title(self) -> str:
        return self.why

    def label(self) -> str:
        return f"`{self.step}`" if self.step else ""

    def notes(self) -> tuple[str, ...]:
        return (f"rule: {self.rule}",)

    def help(self) -> str:
        return self.cure


@dataclass(frozen=True, kw_only=True)
class WrongExpectedBytes(Problem):
    """A phase of `barrier` (part `part`) expects `expected` bytes and its copies move `moved`: (name, bytes) each."""

    barrier: str
    part: str
    expected: int
    moved: int
    copies: tuple[tuple[str, int], ...]

    code: ClassVar[str] = "WG0702"
    doc: ClassVar[str] = """A full barrier's phase expects exactly the bytes of the copies that signal it; a box counts in full,
even where it is clipped. Too many: nobody ever passes. Too few: readers pass before the last copy
has arrived.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  wait As.empty[s] parity not p
  expect As.full[s] bytes 32768
works:
  wait As.empty[s] parity not p
  expect As.full[s] bytes 49152
"""

    def title(self) -> str:
        return f"a phase of `{self.barrier}` (part {self.part}) expects {self.expected} bytes, its copies bring {self.moved}"

    def notes(self) -> tuple[str, ...]:
        return tuple(f"{name}: {n} bytes" for name, n in self.copies) or ("no copy signals it",)

    def help(self) -> str:
        return f"expect {self.moved} bytes" if self.moved else "signal this barrier from a copy, or arrive without bytes"


@dataclass(frozen=True, kw_only=True)
class WrongArrivalCount(Problem):
    """`arrivals`: (role, how many) that a phase of this part gets."""

    barrier: str
    part: int
    count: int
    arrivals: tuple[tuple[str, int], ...]

    code: ClassVar[str] = "WG0703"
    doc: ClassVar[str] = """A barrier's count is the number of arrivals that each of its phases gets: 1 for an expect or one
thread, 4 for a warpgroup of which lane 0 of each warp arrives.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  barrier As.empty of As count 4 parts 1 stages 3 at 213016
works:
  barrier As.empty of As count 8 parts 1 stages 3 at 213016
"""

    def title(self) -> str:
        got = sum(n for _, n in self.arrivals)
        return f"`{self.barrier}` (part {self.part}) is made for {self.count} arrivals a phase and gets {got}"

    def notes(self) -> tuple[str, ...]:
        return tuple(f"`{role}` arrives {'once' if n == 1 else f'{n} times'}" for role, n in self.arrivals)

    def help(self) -> str:
        return "the count is that of the arrivals in one phase: mend it, or who arrives"


@dataclass(frozen=True, kw_only=True)
class LonelyBarrier(Problem):
    """A barrier on which some only wait, or only arrive."""

    barrier: str
    waits: tuple[str, ...]
    arrives: tuple[str, ...]

    code: ClassVar[str] = "WG0704"
    doc: ClassVar[str] = """Every barrier that is waited for has an arrival somewhere, and every arrival somebody who waits.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  loop k.pos 0 .. k.n - 1 mask {} {
    expect As.full[s] bytes 49152
works:
  loop k.pos 0 .. k.n - 1 mask {} {
    wait As.empty[s] parity not p
    expect As.full[s] bytes 49152
"""

    def title(self) -> str:
        if self.waits:
            return f"`{self.barrier}` is waited for by {', '.join(self.waits)}, but nobody arrives on it"
        if self.arrives:
            return f"{', '.join(self.arrives)} arrives on `{self.barrier}`, but nobody waits for it"
        return f"`{self.barrier}` is never used"

    def help(self) -> str:
        if self.waits:
            return "who waits for it waits for ever: let somebody arrive, or remove the wait"
        return "a wait is missing, or the barrier and its arrivals are of no use"


@dataclass(frozen=True, kw_only=True)
class RegisterCount(Problem):
    role: str
    count: int
    rule: str

    code: ClassVar[str] = "WG0705"
    doc: ClassVar[str] = """setmaxnreg takes a multiple of 8 from 24 to 240 registers a thread.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  registers inc 236
works:
  registers inc 240
"""

    def title(self) -> str:
        return f"role `{self.role}` asks for {self.count} registers: {self.rule}"


@dataclass(frozen=True, kw_only=True)
class Pool:
    """`shares`: (role, warpgroups, registers); `launch`: what every thread has at the start, where an SM holds so many CTAs at
    once (`resident`)."""

    shares: tuple[tuple[str, int, int], ...]
    launch: int
    file: int
    resident: int = 1

    @property
    def warpgroups(self) -> int:
        return sum(n for _, n, _ in self.shares)

    @property
    def asked(self) -> int:
        return sum(n * r for _, n, r in self.shares)

    @property
    def granted(self) -> int:
        return self.launch * self.warpgroups

    def text(self) -> str:
        """The rule with its numbers: `load 1 x 24 + math 2 x 240 = 504, of 504`."""
        asked = " + ".join(f"{role} {n} x {r}" for role, n, r in self.shares)
        return f"{asked} = {self.asked}, of {self.granted}"

    def grant(self) -> str:
        """Where the pool comes from."""
        threads = f"{128 * self.warpgroups * self.resident} threads{f' of {self.resident} CTAs' if self.resident > 1 else ''}"
        return f"granted: {self.file} / {threads} = {self.launch} each (in eights), x {self.warpgroups} warpgroups"


@dataclass(frozen=True, kw_only=True)
class RegisterPool(Budgeted):
    pool: Pool

    code: ClassVar[str] = "WG0706"
    doc: ClassVar[str] = """The registers of all warpgroups come from the pool that the launch grants: 65536 / threads, rounded
down to a multiple of 8, for each warpgroup. A kernel that asks for more compiles without a word and
hangs.

In schedule `simple` for `attention`:

fails:
  role load : 1 warpgroup, registers 40
works:
  role load : 1 warpgroup, registers 24
"""

    def title(self) -> str:
        return f"the roles ask for {self.pool.asked} registers a lane, the launch grants {self.pool.granted}"

    def notes(self) -> tuple[str, ...]:
        shares = [Share(name=role, amount=n * r, detail=f"{n} x {r}") for role, n, r in self.pool.shares]
        over = self.pool.asked - self.pool.granted
        total = f"{self.pool.asked} in all, {over} more than {self.pool.granted}"
        return (
            table("registers of a lane of each warpgroup", shares, total),
            f"{self.pool.grant()}; each count is a multiple of 8 from 24 to 240",
        )

    def cure(self) -> str:
        return "give a role fewer registers"


@dataclass(frozen=True, kw_only=True)
class RegisterNeed(Budgeted):
    """`spare`: of `registers`, what is left to the assembler."""

    role: str
    registers: int
    spare: int
    values: tuple[Share, ...]
    pool: Pool

    code: ClassVar[str] = "WG0707"
    doc: ClassVar[str] = """A role's values, with 24 registers for addresses and row values, must leave 8 of its registers free:
above that the assembler spills and runs every product by itself. An operand takes none if it is packed
where its tile was, which no step uses while the operand lives.

In schedule `simple` for `attention`:

fails:
  role math : 2 warpgroups, registers 152, split i
works:
  role math : 2 warpgroups, registers 240, split i
"""

    @property
    def need(self) -> int:
        return sum(v.amount for v in self.values)

    def title(self) -> str:
        usable = self.registers - self.spare
        return f"role `{self.role}` needs about {self.need} registers a thread, but can use {usable} of its {self.registers}"

    def notes(self) -> tuple[str, ...]:
        usable = self.registers - self.spare
        total = f"{self.need} in all, {self.need - usable} more than {self.registers} less {self.spare} for the assembler"
        return (table("registers a thread", self.values, total), f"pool: {self.pool.text()} that the launch grants")

    def cure(self) -> str:
        return "smaller tiles, more warpgroups over which they are split, or more registers for this role"


@dataclass(frozen=True, kw_only=True)
class SharedMemory(Budgeted):
    """`shares`: buffers, those that lie over others with 0 bytes, then barriers and alignment."""

    limit: int
    shares: tuple[Share, ...]
    target: str

    code: ClassVar[str] = "WG0708"
    doc: ClassVar[str] = """A CTA's buffers and barriers, and what aligning their base may cost, fit the target's shared memory.

In schedule `simple` for `attention`:

fails:
  smem Ks = K[j] by tma ring 6
works:
  smem Ks = K[j] by tma ring 2
"""

    @property
    def total(self) -> int:
        return sum(s.amount for s in self.shares)

    def title(self) -> str:
        return f"{self.total} bytes of shared memory are needed, {self.target} has {self.limit}"

    def notes(self) -> tuple[str, ...]:
        total = f"{self.total} in all, {self.total - self.limit} more than the {self.limit} of {self.target}"
        return (table("bytes of shared memory, parts x stages x tile", self.shares, total),)

    def cure(self) -> str:
        most = max(self.shares, key=lambda s: s.amount)
        return f"smaller tiles or shorter rings: `{most.name}` takes most"


@dataclass(frozen=True, kw_only=True)
class SharedLayout(Problem):
    what: str
    why: str

    code: ClassVar[str] = "WG0709"
    doc: ClassVar[str] = """Tiles start on 1024 bytes, barriers on 8, and only buffers that are declared to may share memory.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  smem Bs = B[n, k]: bf16 256 x 64 swizzle 128 ring As parts 1 stages 3 at 40960
works:
  smem Bs = B[n, k]: bf16 256 x 64 swizzle 128 ring As parts 1 stages 3 at 49152
"""

    def title(self) -> str:
        return f"`{self.what}` {self.why}"


@dataclass(frozen=True, kw_only=True)
class NamedBarrier(Problem):
    bar: str
    why: str

    code: ClassVar[str] = "WG0710"
    doc: ClassVar[str] = """A CTA has named barriers 1 to 15 (0 is the whole CTA's). All steps on one agree on its threads, a
multiple of 32: those that wait and arrive in one generation.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  fence async
  sync bar wg + 1 threads 256
works:
  fence async
  sync bar wg + 1 threads 128
"""

    def title(self) -> str:
        return f"named barrier {self.bar}: {self.why}"


@dataclass(frozen=True, kw_only=True)
class IntegerRange(Problem):
    """`part`: of the integers of `step`, the one that is wrong; `why`: what it does."""

    step: str
    part: str
    why: str
    cure: str

    code: ClassVar[str] = "WG0724"
    doc: ClassVar[str] = """A kernel computes places, bounds and counts in 32 bits: where dims are 2^24 at most, none overflows,
on the way neither. None is divided by what can be 0, no ring moves back, and plain
numbers are small enough that what they decide can be looked into: loops on them have 65536 rounds at
most, nested ones multiplied; other steps and branches compare with, or move by, 262144 at most.

In the role program of `pipelined` for `gemm` (`wgdsl explain`):

fails:
  loop k.pos 0 .. 99999999 * k.n - 1 mask {} {
works:
  loop k.pos 0 .. k.n - 1 mask {} {
"""

    def title(self) -> str:
        return f"`{self.part}` {self.why}"

    def label(self) -> str:
        return f"`{self.step}`"

    def help(self) -> str:
        return self.cure

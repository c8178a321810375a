"""WG05xx: what the compiler below says of a kernel that we emitted. They reach the user as warnings of `CompilerWarning`.

The kernel is right but slow: a schedule asks for more than the registers hold, or moves an accumulator under a product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .model import Problem


class CompilerWarning(UserWarning):
    """A kernel that computes the right thing slowly. One for each kernel; filter by this category."""


@dataclass(frozen=True, kw_only=True)
class Spills(Problem):
    code: ClassVar[str] = "WG0501"
    doc: ClassVar[str] = (
        "The values of a role don't fit its registers, so that some live in memory: choose smaller tiles or fewer roles."
    )
    kernel: str
    role: str
    stores: int
    loads: int
    registers: int

    def title(self) -> str:
        return f"kernel `{self.kernel}` spills {self.stores} bytes of registers ({self.loads} read back)"

    def label(self) -> str:
        return "this role holds the most values" if self.role else ""

    def help(self) -> str:
        return "smaller tiles, more warpgroups over which they are split, or more registers for this role"


@dataclass(frozen=True, kw_only=True)
class StackFrame(Problem):
    code: ClassVar[str] = "WG0502"
    doc: ClassVar[str] = "A value that is indexed at run time, or a call that isn't inlined, lives on a stack in memory."
    kernel: str
    nbytes: int

    def title(self) -> str:
        return f"kernel `{self.kernel}` has a stack frame of {self.nbytes} bytes"


@dataclass(frozen=True, kw_only=True)
class Serialised(Problem):
    """C7510 .. C7519: products run one after the other instead of asynchronously."""

    code: ClassVar[str] = "WG0503"
    doc: ClassVar[str] = "The assembler gave up the asynchrony of wgmma: each product is waited for at once. Right, but slow."
    kernel: str
    number: str
    text: str

    def title(self) -> str:
        return f"the products of kernel `{self.kernel}` don't run asynchronously (C{self.number})"

    def notes(self) -> tuple[str, ...]:
        return (f"the assembler says: {self.text}",)

    def help(self) -> str:
        if self.number == "7512":
            return "the role needs more registers than it has: smaller tiles, or more warpgroups over which they are split"
        return "an accumulator is touched, or control flow parts, between `issue` and `await`"


@dataclass(frozen=True, kw_only=True)
class RegistersIgnored(Problem):
    code: ClassVar[str] = "WG0504"
    doc: ClassVar[str] = "The assembler ignored the registers that a role asks for (setmaxnreg)."
    kernel: str
    number: str
    text: str

    def title(self) -> str:
        return f"the register counts of the roles of kernel `{self.kernel}` are ignored (C{self.number})"

    def notes(self) -> tuple[str, ...]:
        return (f"the assembler says: {self.text}",)


@dataclass(frozen=True, kw_only=True)
class AssemblerNote(Problem):
    code: ClassVar[str] = "WG0505"
    doc: ClassVar[str] = "Another message of the assembler that isn't a mere fact."
    kernel: str
    number: str
    text: str

    def title(self) -> str:
        return f"the assembler says of kernel `{self.kernel}`: {self.text}" + (f" (C{self.number})" if self.number else "")

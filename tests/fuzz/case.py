"""A fuzzed case: the text of a program with a schedule, and what a run of it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.fuzz.choices import Choices

WORDS = ("tile", "ring", "in", "over", "smem", "program", "fill", "split", "where", "else", "when", "by", "wg")


@dataclass(frozen=True, kw_only=True)
class Case:
    """`kind` says what is computed. sizes: dims of the calls. fills: what an input holds, where it isn't standard normal
    (`tests.fuzz.inputs`). exact: inputs are small integers, and so is all that is compared."""

    kind: str
    text: str
    target: str
    schedule: str = "fuzzed"
    sizes: tuple[dict[str, int], ...]
    dims: dict[str, int] = field(default_factory=dict)
    options: dict[str, object] = field(default_factory=dict)
    dtype: str = "bf16"
    fills: dict[str, str] = field(default_factory=dict)
    exact: bool = False
    any_order: bool = False  # CTAs add to a result in any order

    def prepared(self, arrays: dict[str, np.ndarray], dims: Mapping[str, int]) -> dict[str, np.ndarray]:
        """The inputs, with what shouldn't matter made conspicuous."""
        return arrays

    def expected(self, arrays: Mapping[str, np.ndarray], dims: Mapping[str, int]) -> dict[str, np.ndarray]:
        """Right values that nothing of the compiler told, in float64; of the results that have such."""
        return {}


class Program:
    """The text of a program under construction: declarations and statements, in any order that the language takes."""

    def __init__(self, choices: Choices, name: str = "fuzzed"):
        self.c, self.name = choices, name
        self.declared: list[str] = []
        self.stated: list[str] = []
        self.options: dict[str, object] = {}
        self.fills: dict[str, str] = {}
        self._names = 0

    def new(self, stem: str) -> str:
        """A name that nothing has: now and then one that is a word elsewhere."""
        self._names += 1
        if self._names <= len(WORDS) and self.c.chance(5):
            return WORDS[self._names - 1]
        return f"{stem}{self._names}"

    def declare(self, *lines: str) -> None:
        self.declared += lines

    def state(self, *lines: str) -> None:
        self.stated += lines

    def tensor(self, name: str, dtype: str, shape: Sequence[str], fill: str = "") -> str:
        self.declare(f"in {name}: {dtype}[{', '.join(shape)}]")
        if fill:
            self.fills[name] = fill
        return name

    def number(self, value: float) -> str:
        """A constant: a literal, an option with this or another default, or a scalar argument."""
        how = self.c.index(6)
        if how <= 2:
            return f"{value}" if value >= 0 else f"({value})"
        name = self.new("c")
        if how == 3:
            self.declare(f"option {name} = {value}")
        elif how == 4:
            self.declare(f"option {name} = {value + 1}")
            self.options[name] = value
        else:
            self.declare(f"in {name}: f32 = {value}")
        return name

    def integer(self, value: int) -> str:
        """The same for an integer that bounds may depend on."""
        how = self.c.index(5)
        if how <= 2:
            return f"{value}" if value >= 0 else f"({value})"
        name = self.new("c")
        self.declare(f"option {name} = {value if how == 3 else value + 1}")
        if how == 4:
            self.options[name] = value
        return name

    def integer_name(self, value: str) -> str:
        """A name for an expression of indices."""
        name = self.new("u")
        self.declare(f"let {name} = {value}")
        return name

    def wrapped(self, value: str, make: Callable[[str], str]) -> str:
        """`make(value)`, as it stands or as a function of the program."""
        if not self.c.chance(15):
            return make(value)
        name = self.new("f")
        self.declare(f"def {name}(x) = {make('x')}")
        return f"{name}({value})"

    def statement(self, left: str, right: str) -> None:
        """`left = right`; now and then beside another one that an option turns off."""
        if not self.c.chance(8):
            self.state(f"{left} = {right}")
            return
        option = self.new("o")
        if self.c.chance(50):
            self.declare(f"option {option} = true")
            self.state(f"{left} = {right} when {option}", f"{left} = 1.0 when not {option}")
        else:
            self.declare(f"option {option} in {{one, two, three}}")
            self.options[option] = "two"
            self.state(f"{left} = 2.0 when {option} == one", f"{left} = {right} when {option} == two")

    def text(self) -> str:
        declared = self.c.order(self.declared) if self.c.chance(20) else self.declared
        lines = [f"program {self.name} {{", *declared, "type T in {bf16, f16}", *self.stated, "}"]
        return "\n".join(lines) + "\n"

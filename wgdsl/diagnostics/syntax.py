"""WG01xx: text that isn't a `.wg` file, or that no rule of the grammar takes.

Each `doc` is the rule, then files under `fails:` and `works:`; tests parse both.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import ClassVar

from ..foundation.source import Span
from .hints import nearest
from .model import Problem

_INSTEAD = {
    '"': "a text ends on its own line",
    "'": 'a file name stands in `"`',
    "!": "negation is `not`",
    "&": "conjunction is `and`",
    "|": "disjunction is `or`",
    "^": "a power is `**`",
    ".": "a part follows its name at once: `P.max`, `Qs.0`",
}


def _or(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


@dataclass(frozen=True, kw_only=True)
class Unreadable(Problem):
    """`why`: what the system said, or that it is a folder."""

    path: str
    why: str

    code: ClassVar[str] = "WG0101"
    doc: ClassVar[str] = "A `.wg` file is a plain file that can be read."

    def title(self) -> str:
        return f"can't read `{self.path}`: {self.why}"


@dataclass(frozen=True, kw_only=True)
class NotUtf8(Problem):
    byte: int

    code: ClassVar[str] = "WG0102"
    doc: ClassVar[str] = "A `.wg` file is UTF-8, with or without a byte order mark. What isn't ASCII belongs in comments."

    def title(self) -> str:
        return f"the file isn't UTF-8: byte 0x{self.byte:02x}"

    def label(self) -> str:
        return "no UTF-8 from here"

    def help(self) -> str:
        return "save it as UTF-8"


@dataclass(frozen=True, kw_only=True)
class BadCharacter(Problem):
    character: str
    in_comment: bool = False

    code: ClassVar[str] = "WG0103"
    doc: ClassVar[str] = """Outside comments a `.wg` file holds printable ASCII, spaces, tabs, form feeds and line ends.
Comments hold any text but control characters.

fails:
  program p {
    dims N
    in  µ: f32[N]
  }
works:
  program p {
    dims N
    in  mu: f32[N]   # µ
  }
"""

    def title(self) -> str:
        if self.character == '"':
            return "this text isn't closed"
        if " " < self.character < "\x7f":
            return f"`{self.character}` has no meaning here"
        name = unicodedata.name(self.character, "a control character" if ord(self.character) < 0xA0 else "unnamed")
        return f"character U+{ord(self.character):04X} ({name}) " + ("in a comment" if self.in_comment else "outside a comment")

    def help(self) -> str:
        if self.character in _INSTEAD:
            return _INSTEAD[self.character]
        if unicodedata.category(self.character) == "Nd":
            return f"write `{unicodedata.digit(self.character)}`"
        return "write a space" if unicodedata.category(self.character) == "Zs" else ""


@dataclass(frozen=True, kw_only=True)
class EmptyFile(Problem):
    code: ClassVar[str] = "WG0104"
    doc: ClassVar[str] = """A file holds at least one program, schedule or import.

fails:
  # later
works:
  program p {
    dims N
  }
"""

    def title(self) -> str:
        return "the file holds no program and no schedule"

    def help(self) -> str:
        return "begin with `wg 1` and `program NAME { ... }`"


@dataclass(frozen=True, kw_only=True)
class BadNumber(Problem):
    text: str

    code: ClassVar[str] = "WG0105"
    doc: ClassVar[str] = """Numbers are decimal, as in Python: `3`, `1_000`, `0.5`, `1e-3`, and `inf` and `nan`.

fails:
  program p {
    let x = 0x1p-3
  }
works:
  program p {
    let x = 0.125
  }
"""

    def title(self) -> str:
        return f"`{self.text}` is no number"

    def help(self) -> str:
        text = self.text.lower()
        if text.startswith(("0x", "0b", "0o")):
            return "numbers are decimal" + self._decimal()
        if text.replace("_", "").isdigit() and text.startswith("0"):
            return f"write `{text.replace('_', '').lstrip('0')}`"
        if text[-1] in "fhlu" and text[:-1].replace(".", "").isdigit():
            return f"a number has no type: write `{text[:-1]}`, or a cast, `f32({text[:-1]})`"
        if text[0].isdigit() and text[-1].isalpha():
            return "a name begins with a letter or `_`, and a product has its `*`"
        return ""

    def _decimal(self) -> str:
        try:
            value = float.fromhex(self.text) if self.text.lower().startswith("0x") else int(self.text, 0)
        except (ValueError, OverflowError):
            return ""
        return f": write `{int(value) if value == int(value) else value}`"


@dataclass(frozen=True, kw_only=True)
class NumberRange(Problem):
    text: str

    code: ClassVar[str] = "WG0106"
    doc: ClassVar[str] = """A whole number lies below 2**63, any other between 5e-324 and 1.8e308 (or is 0): nothing is rounded
to infinity or to 0 on the quiet.

fails:
  program p {
    let x = 1e400
  }
works:
  program p {
    let x = inf
  }
"""

    def title(self) -> str:
        return f"`{self.text if len(self.text) <= 40 else self.text[:37] + '...'}` is out of range"

    def label(self) -> str:
        if self.text.replace("_", "").isdigit():
            return "whole numbers lie below 2**63"
        return "no such float: the largest is 1.8e308, the smallest 5e-324"


@dataclass(frozen=True, kw_only=True)
class ReservedWord(Problem):
    """`use`: how the word is used, if it is a reduction's."""

    word: str
    use: str = ""

    code: ClassVar[str] = "WG0107"
    doc: ClassVar[str] = """`and or not true false inf nan` and the reductions `sum max min argmax argmin softmax logsumexp`
name nothing else. All other keywords are keywords only where one can stand, and may name anything.

fails:
  program p {
    dims N
    in   sum: f32[N]
  }
works:
  program p {
    dims N
    in   total: f32[N]
    out  in: f32[N]
    in[i] = total[i]
  }
"""

    def title(self) -> str:
        return f"`{self.word}` is a reserved word and can't be a name"

    def label(self) -> str:
        return "a name belongs here"

    def help(self) -> str:
        return f"a reduction is written `{self.use}`" if self.use else f"choose another name, such as `{self.word}_`"


@dataclass(frozen=True, kw_only=True)
class Unexpected(Problem):
    """`found`: the word in human terms; `expected`: what could stand there; `hint`: what was probably meant."""

    found: str
    expected: tuple[str, ...] = ()
    hint: str = ""

    code: ClassVar[str] = "WG0108"
    doc: ClassVar[str] = """The text doesn't follow the grammar (`grammar/wg.lark`): the message says what could stand there.

fails:
  program p {
    dims N
    out  X: f32[N]
    X[i] =
  }
works:
  program p {
    dims N
    out  X: f32[N]
    X[i] = 0.0
  }
"""

    def title(self) -> str:
        return f"unexpected {self.found}"

    def label(self) -> str:
        return f"expected {_or(self.expected)}" if self.expected else ""

    def help(self) -> str:
        return self.hint


@dataclass(frozen=True, kw_only=True)
class UnknownWord(Problem):
    """A word where an item has to begin: `item`, such as a step, with the keywords `known`. `home`: where the word does."""

    word: str
    item: str
    known: tuple[str, ...]
    home: str = ""

    code: ClassVar[str] = "WG0109"
    doc: ClassVar[str] = """Each declaration and each step begins with its keyword.

fails:
  program p {
    dim N
  }
works:
  program p {
    dims N
  }
"""

    def title(self) -> str:
        return f"`{self.word}` begins no {self.item}"

    def help(self) -> str:
        if self.home:
            return f"`{self.word}` belongs in {self.home}"
        meant = nearest(self.word, self.known)
        return f"did you mean `{meant}`?" if meant else f"there are: {', '.join(f'`{k}`' for k in self.known)}"


@dataclass(frozen=True, kw_only=True)
class Unclosed(Problem):
    """`at`: the first word that can't stand inside. `suspect`: a block whose `}` stands in another column."""

    bracket: str
    at: Span | None = None
    at_end: bool = False
    suspect: Span | None = None

    code: ClassVar[str] = "WG0110"
    doc: ClassVar[str] = """Each `(`, `[` and `{` is closed.

fails:
  program p {
    let x = (1 + 2
    let y = 3
  }
works:
  program p {
    let x = (1 + 2)
    let y = 3
  }
"""

    @property
    def _closer(self) -> str:
        return {"(": ")", "[": "]", "{": "}"}[self.bracket]

    def title(self) -> str:
        return f"this `{self.bracket}` is never closed"

    def label(self) -> str:
        return "opened here"

    def others(self) -> tuple[tuple[Span, str], ...]:
        found = []
        if self.suspect is not None:
            found.append((self.suspect, "the `}` of this block stands in another column: is one missing here?"))
        if self.at is not None:
            where = "the file ends here" if self.at_end else "this can't stand inside"
            found.append((self.at, f"{where}: `{self._closer}` was expected"))
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class StrayBracket(Problem):
    """A closing bracket that fits no opening one. `opened`: the innermost open bracket, if any."""

    bracket: str
    opened: Span | None = None

    code: ClassVar[str] = "WG0111"
    doc: ClassVar[str] = """Each `)`, `]` and `}` closes the innermost open bracket, and is of its kind.

fails:
  program p {
    let x = (1 + 2]
  }
works:
  program p {
    let x = (1 + 2)
  }
"""

    def title(self) -> str:
        if self.opened is None:
            return f"`{self.bracket}` closes nothing"
        return f"`{self.bracket}` can't close `{self.opened.text}`"

    def others(self) -> tuple[tuple[Span, str], ...]:
        return ((self.opened, "open since here"),) if self.opened is not None else ()


@dataclass(frozen=True, kw_only=True)
class TooDeep(Problem):
    limit: int
    what: str  # expression, block

    code: ClassVar[str] = "WG0112"
    doc: ClassVar[str] = """An expression is at most 100 operators deep, and so is the nesting of blocks. A sum is as deep as it
has terms, since `a + b + c` is `(a + b) + c`; parentheses don't count."""

    def title(self) -> str:
        return f"this {self.what} is more than {self.limit} levels deep"

    def help(self) -> str:
        return "name parts of it with `let` or statements of their own" if self.what == "expression" else ""


@dataclass(frozen=True, kw_only=True)
class WrongVersion(Problem):
    text: str
    known: int

    code: ClassVar[str] = "WG0113"
    doc: ClassVar[str] = """`wg 1` on the first line says which version of the language the file is written in.

fails:
  wg 2
  program p {
    dims N
  }
works:
  wg 1
  program p {
    dims N
  }
"""

    def title(self) -> str:
        return f"language version `{self.text}` is unknown"

    def label(self) -> str:
        return f"this compiler reads `wg {self.known}`"

"""The one writer of CUDA text: it owns indentation, comments and `#line`. Everything that it lets out is ASCII."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..foundation.source import NOWHERE, Place, Span

COMMENT_WIDTH = 100
WIDTH = 120
_WORD = re.compile(r"[A-Za-z_]\w*")


def ascii_text(text: str) -> str:
    """Text that is safe in a `//` comment: no escapes, no line ends, no other alphabets."""
    return text.replace("\\", "/").encode("ascii", "replace").decode().replace("\n", " ").replace("\r", " ")


def bare(text: str) -> str:
    """Text without the brackets that enclose all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1]


def folded(text: str, width: int) -> list[str]:
    """Lines of at most `width` characters where commas allow; what follows the first is indented by four."""
    rows = []
    while len(text) > width and not text.lstrip().startswith("//"):
        code = text.split("  // ")[0]
        cut = max(code.rfind(", ", 0, width - 1) + 1, code.rfind(" ? ", 0, width - 1), code.rfind(" && ", 0, width - 1))
        if cut <= 8 or len(code) <= width:
            break
        rows.append(text[:cut].rstrip())
        text = "    " + text[cut:].lstrip()
    return [*rows, text]


class Writer:
    """Collects lines. `lines`: whether steps get `#line`."""

    def __init__(self, depth: int = 0, lines: bool = True):
        self.rows: list[str] = []
        self.depth = depth
        self.lines = lines
        self._step: Span | Place | None = None
        self._names: dict[int, str] = {}  # row -> the name that it defines

    def line(self, text: str = "") -> None:
        """One statement; a long one is broken after commas or before operators."""
        indent = "  " * self.depth
        for row in folded(text, WIDTH - len(indent)):
            self.rows.append((indent + row) if row else "")

    def define(self, kind: str, name: str, value: str) -> None:
        """`kind name = value;`, to be left out if nothing below uses the name."""
        self._names[len(self.rows)] = name
        self.line(f"{kind} {name} = {value};")

    def declare(self, name: str, text: str) -> None:
        """A whole declaration of a name, to be left out if nothing below uses it."""
        self._names[len(self.rows)] = name
        self.line(text)

    def pruned(self) -> list[str]:
        """The rows without definitions that nothing uses."""
        used: set[str] = set()
        kept = []
        for k in range(len(self.rows) - 1, -1, -1):
            if k in self._names and self._names[k] not in used:
                continue
            used.update(_WORD.findall(self.rows[k].split("  // ")[0]))
            kept.append(self.rows[k])
        return kept[::-1]

    def comment(self, text: str) -> None:
        text = ascii_text(text)
        self.line("// " + (text if len(text) <= COMMENT_WIDTH else text[: COMMENT_WIDTH - 3] + "..."))

    def unroll(self, count: int | None = None) -> None:
        self.line("#pragma unroll" + ("" if count is None else f" {count}"))

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """`head {` ... `}` with the body one level deeper."""
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def loop(self, head: str, body: list[str], unroll: bool = True) -> None:
        """A loop with a short body; braces only where they are needed."""
        if unroll:
            self.unroll()
        if len(body) == 1:
            self.line(head)
            self.depth += 1
            self.line(body[0])
            self.depth -= 1
            return
        with self.block(head):
            for row in body:
                self.line(row)

    def step(self, span: Span | None, note: str = "") -> None:
        """Announce a step: `#line` and the schedule's own words, once for all steps that come from the same words."""
        place = span.place if span is not None else NOWHERE
        if span is not None and place != NOWHERE and (span.origin or span) != self._step:
            self._step = span.origin or span
            if self.lines:
                self.rows.append(f'#line {place.line} "{ascii_text(place.path).replace(chr(34), "?")}"')
            self.comment(place.words or note)
        if note and note != place.words:
            self.comment(note)

    def forget_step(self) -> None:
        """The next step announces itself even if it comes from the words of the last one."""
        self._step = None

    def take(self, other: Writer) -> None:
        self._names |= {k + len(self.rows): n for k, n in other._names.items()}
        self.rows.extend(other.rows)

    def text(self) -> str:
        return "\n".join(self.rows) + "\n"

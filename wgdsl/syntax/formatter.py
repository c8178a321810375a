"""The canonical layout of a source text.

In: a `Source` that parses. Out: its text with one item a line, two spaces of indentation a block, canonical spacing, every
comment, and single blank lines where there were any. Nothing is reordered, and neither parentheses nor the spelling of
numbers change. A block of steps that stands on one line stays there if it fits; a line break inside an item stays too.

Words are placed by their neighbours (`_gap`), not printed from the AST, so that comments can stand anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..diagnostics.model import InternalError
from ..foundation.source import Source, Span
from . import ast
from .brackets import Brackets
from .lexer import Word
from .lines import Block, Explicit, KernelLines, Line
from .parser import parse, parse_words

_WIDTH = 100  # of a one-line block
_NARROW = 60  # wider lines don't move the column of comments
_INDENT, _CONTINUED = 2, 4
_PADDED = frozenset(["OPTION", "DIMS", "TYPE", "IN", "OUT", "TILE", "FUSE", "STREAM", "GRID"])  # filled up to six characters
_SHAPES = frozenset(["IN", "OUT", "SMEM", "REGS"])  # items whose `[a, b]` keeps its spaces
_STEPS = frozenset(["FILL", "AWAIT", "ISSUE", "COMPUTE", "PACK", "RESCALE", "FINISH", "PROBE"])  # `Ks[j+1]`
_OPERATORS = frozenset(["+", "-", "*", "/", "%", "**", "<", "<=", ">", ">=", "==", "!="])
_BLOCKS = (ast.RoleBody, ast.ForStep, ast.OnceStep, ast.TurnStep, ast.TuneDecl)  # may stand on one line
_LONG = (ast.Program, ast.Schedule, ast.KernelDecl, KernelLines)
_PLACE = 102  # the column of the place that a line of the explicit form comes from


def fmt(source: Source) -> str:
    """The text in canonical layout. Raises WgError if it doesn't parse."""
    file, words, comments = parse_words(source)
    text = "".join(line + "\n" for line in _aligned(_Writer(_Layout(file, words, comments), comments).write()))
    if parse(Source(source.path, text)) != file:
        raise InternalError(f"formatting would change the meaning of {source.path}")
    return text


@dataclass
class _Line:
    """One line of output. `cells`: where a statement's `=` and its clause begin in `text`."""

    indent: int
    text: str = ""
    comment: str = ""
    blank: bool = False  # a blank line before it
    cells: list[int] = field(default_factory=list)
    whole: bool = True  # no item goes on from the line before or to the next
    column: int = 0  # of the comment

    @property
    def width(self) -> int:
        return self.indent + len(self.text)


class _Layout:
    """Where lines begin, and the space between words."""

    def __init__(self, file: ast.File, words: list[Word], comments: list[Span]):
        self.words = words
        self.comments = [c.start for c in comments]
        self.number = {w.span.start: n for n, w in enumerate(words)}
        self.brackets = Brackets(words)
        self.opener = {end: start for start, end in self.brackets.closed.items()}
        self.items = {n for n, w in enumerate(words) if w.type in ("WG", "IMPORT")}  # words that begin an item
        self.block: set[int] = set()  # braces of blocks
        self.tunings: set[int] = set()  # items of `tune` blocks
        self.explicit: set[int] = set()  # words of explicit forms
        self.trails: set[int] = set()  # words that begin what stands behind a line of theirs
        self.places: set[int] = set()  # those that begin a place
        for node in (*file.programs, *file.schedules):
            self._mark(node)
        self.lead = self._leads()
        self.tight = set(self._tight())
        self.fresh = {n for n in self.items if words[n].type in ("WG", "IMPORT")}  # words that begin a line
        self.split: set[int] = set()  # braces of blocks over several lines
        for node in (*file.programs, *file.schedules):
            self._split(node, 0)

    def begins_cell(self, n: int, known: int) -> bool:
        """The `=` of a statement, then its clause."""
        word = self.words[n]
        if self.words[self.lead[n]].type != "NAME":
            return False
        return (known == 0 and word.type == "EQUAL") or (known == 1 and word.type in ("WHERE", "WHEN"))

    def _mark(self, node: ast.Node) -> None:
        self.items.add(self.number[_span(node).start])
        if isinstance(node, ast.Tuning):
            self.tunings.add(self.number[_span(node).start])
        if isinstance(node, (*_LONG, *_BLOCKS)):
            end = self.number[_span(node).stop - 1]
            self.block |= {end, self.opener[end]}
            for child in _body(node):
                self._mark(child)
        if isinstance(node, Explicit):
            self.explicit |= set(range(self.number[_span(node).start], self.number[_span(node).stop - 1] + 1))
        if isinstance(node, Line):
            self._mark_line(node)

    def _mark_line(self, node: Line) -> None:
        if node.trail is not None and node.trail.span is not None:
            self.trails.add(self.number[node.trail.span.start])
        if node.trail is not None and node.trail.at is not None:
            self.places.add(self.number[_span(node.trail.at).start])
        for b in (p for p in node.parts if isinstance(p, Block)):
            end = self.number[_span(b).stop - 1]
            self.block |= {end, self.opener[end]}
            for child in b.lines:
                self._mark(child)

    def _leads(self) -> list[int]:
        """For each word the word that begins its item."""
        out, lead = [], 0
        for n in range(len(self.words)):
            lead = n if n in self.items else lead
            out.append(lead)
        return out

    def _tight(self) -> Iterator[int]:
        """Commas and operators without spaces: in `S[b,i,j]`, and in `Ks[j+1]` of a step."""
        for start, end in self.brackets.closed.items():
            lead = self.words[self.lead[start]].type
            inside = range(start + 1, end)
            if self.words[start].text != "[":
                continue
            if start in self.explicit:
                yield from (n for n in inside if self.words[n].text == "-" and self.words[n - 1].text == "s")
                continue
            if lead not in _SHAPES and all(self.words[n].type in ("NAME", "NUMBER", "COMMA") for n in inside):
                yield from (n for n in inside if self.words[n].type == "COMMA")
            if lead in _STEPS:
                yield from (n for n in inside if self.words[n].text in _OPERATORS)

    def _split(self, node: ast.Node, depth: int) -> None:
        """The node begins a line; find out whether its items do."""
        self.fresh.add(self.number[_span(node).start])
        for b in (p for p in node.parts if isinstance(p, Block)) if isinstance(node, Line) else ():
            end = self.number[_span(b).stop - 1]
            self.split |= {end, self.opener[end]}
            self.fresh.add(end)
            for child in b.lines:
                self._split(child, depth + 1)
        if not isinstance(node, (*_LONG, *_BLOCKS)):
            return
        start, end = self.number[_span(node).start], self.number[_span(node).stop - 1]
        if self._one_line(node, start, end, depth):
            return
        self.split |= {end, self.opener[end]}
        self.fresh.add(end)
        for child in _body(node):
            self._split(child, depth + 1)

    def _one_line(self, node: ast.Node, start: int, end: int, depth: int) -> bool:
        first, last = self.words[start].span, self.words[end].span
        if self.opener[end] == end - 1:
            return not any(self.words[end - 1].span.start < c < last.start for c in self.comments)
        return (
            isinstance(node, _BLOCKS) and first.line == last.line and depth * _INDENT + len(self.text(start, end + 1)) <= _WIDTH
        )

    def text(self, start: int, stop: int) -> str:
        return "".join(self.gap(n) * (n > start) + self.shown(n) for n in range(start, stop))

    def shown(self, n: int) -> str:
        word = self.words[n]
        turn = n + 1 < len(self.words) and self.words[n + 1].type == "TURN"
        padded = n in self.items and word.type in _PADDED and not turn and n not in self.tunings | self.explicit
        return word.text.ljust(6) if padded else word.text

    def gap(self, n: int) -> str:
        """The space between word n - 1 and word n of one line."""
        before, word = self.words[n - 1], self.words[n]
        if n in self.trails:
            return "  "
        if n in self.items:
            return " " if (n - 1 in self.block and before.text == "{") or before.text == ";" else "  "
        if before.text in ("(", "[", "@") or word.text in (")", "]", ",", "[", ";"):
            return ""
        if before.text == "{" or word.text == "}":
            return " " if n in self.block or n - 1 in self.block else ""
        if word.text == ":":
            return " " if self.words[self.lead[n]].type == "ROLE" else ""
        if word.text == "(" and before.type == "NAME":
            return " " if self.words[self.lead[n]].type == "TILE" else ""
        if n in self.tight or n - 1 in self.tight or (before.text == "-" and self._unary(n - 1)):
            return ""
        return " "

    def _unary(self, n: int) -> bool:
        before = self.words[n - 1]
        return not (before.type in ("NAME", "PART", "NUMBER", "INF", "NAN", "TRUE", "FALSE") or before.text in (")", "]"))


class _Writer:
    """Words and comments, in the order of the text, to lines."""

    def __init__(self, layout: _Layout, comments: list[Span]):
        self.layout, self.words = layout, layout.words
        self.comments = comments
        self.out: list[_Line] = []
        self.depth = 0
        self.opened = False  # the last line opens a block
        self.source_line = 0  # of the last entry

    def write(self) -> list[_Line]:
        pending = iter([*self.comments, None])
        comment = next(pending)
        for n, word in enumerate(self.words):
            while comment is not None and comment.start < word.span.start:
                self.comment(comment, n)
                comment = next(pending)
            self.word(n, word)
        while comment is not None:
            self.comment(comment, None)
            comment = next(pending)
        return self.out

    def comment(self, span: Span, following: int | None) -> None:
        text = span.text.rstrip()
        if self.out and span.line == self.source_line:
            self.out[-1].comment = text
            return
        inside = following is not None and following not in self.layout.fresh
        self.start(span, _CONTINUED if inside else 0, blank=not inside).comment = text

    def word(self, n: int, word: Word) -> None:
        layout = self.layout
        closes = n in layout.split and word.text == "}"
        self.depth -= closes
        if n in layout.fresh:
            self.start(word.span, 0, blank=not closes).text = layout.shown(n)
        elif (word.span.line > self.source_line and n not in layout.block) or self.out[-1].comment:
            self.out[-1].whole = False
            line = self.start(word.span, _CONTINUED, blank=False)
            line.text, line.whole = layout.shown(n), False
        else:
            line = self.out[-1]
            line.text += layout.gap(n)
            if n in layout.places:
                line.text = line.text.rstrip().ljust(_PLACE - 2 - line.indent) + "  "
            if layout.begins_cell(n, len(line.cells)):
                line.cells.append(len(line.text))
            line.text += layout.shown(n)
        self.source_line = word.span.line
        if n in layout.split and word.text == "{":
            self.depth += 1
            self.opened = True

    def start(self, span: Span, extra: int, blank: bool) -> _Line:
        gap = span.line > self.source_line + 1 and not self.opened and bool(self.out)
        self.out.append(_Line(self.depth * _INDENT + extra, blank=blank and gap))
        self.source_line, self.opened = span.line, False
        return self.out[-1]


def _aligned(lines: list[_Line]) -> Iterator[str]:
    """The finished lines. Neighbouring statements have their `=` and their clauses in one column, a paragraph its comments."""
    for cell in (0, 1):
        for run in _runs(lines, lambda line, last: line.whole and bool(line.cells) and line.indent == last.indent):
            _align_cell([line for line in run if len(line.cells) > cell], cell)
    for run in _runs(lines, lambda line, _: bool(line.text)):
        commented = [line for line in run if line.comment]
        column = max((line.width for line in commented if line.width <= _NARROW), default=0) + 2
        for line in commented:
            line.column = max(column, line.width + 2)
    for line in lines:
        if line.blank:
            yield ""
        text = " " * line.indent + line.text
        yield text.ljust(line.column) + line.comment if line.comment else text


def _align_cell(lines: list[_Line], cell: int) -> None:
    column = max((line.cells[cell] for line in lines), default=0)
    for line in lines:
        at, extra = line.cells[cell], column - line.cells[cell]
        line.text = line.text[:at] + " " * extra + line.text[at:]
        line.cells = [c + extra * (c >= at) for c in line.cells]


def _runs(lines: list[_Line], belongs: Callable[[_Line, _Line], bool]) -> Iterator[list[_Line]]:
    """The longest sequences of neighbouring lines that belong together: each is asked for with the line before it."""
    run: list[_Line] = []
    for line in lines:
        if run and not line.blank and belongs(line, run[-1]):
            run.append(line)
            continue
        if run:
            yield run
        run = [line] if belongs(line, line) else []
    if run:
        yield run


def _span(node: ast.Node) -> Span:
    assert node.span is not None
    return node.span


def _body(node: ast.Node) -> tuple[ast.Node, ...]:
    match node:
        case Explicit():
            return node.lines if node.origin is None else (node.origin, *node.lines)
        case KernelLines():
            return node.lines
        case ast.Program() | ast.Schedule() | ast.KernelDecl():
            return node.items
        case ast.TuneDecl():
            return node.entries
        case ast.RoleBody():
            return node.steps
        case ast.ForStep() | ast.OnceStep() | ast.TurnStep():
            return node.body
    return ()

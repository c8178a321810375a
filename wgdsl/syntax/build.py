"""What each rule of the grammar makes: AST nodes out of words and nodes, while the parser runs.

Every public function is the callback of the rule of its name. It gets the rule's words and nodes in order; a helper rule
gives a `Part`, which never leaves the parser.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ..foundation.source import Span
from . import ast
from .lexer import Word


@dataclass(slots=True)
class Part:
    """The value of a rule that is no node of its own."""

    span: Span
    value: Any


_UNITS = {"B": 1, "KB": 2**10, "MB": 2**20}
_CONSTANTS = {"inf": math.inf, "nan": math.nan}


def _span(parts: list) -> Span:
    first, last = parts[0].span, parts[-1].span
    return first if len(parts) == 1 else Span(first.source, first.start, last.stop)


def _names(parts: list) -> tuple[str, ...]:
    return tuple(p.text for p in parts if isinstance(p, Word) and p.type in ("NAME", "PART"))


def _nodes(parts: list) -> tuple:
    return tuple(p for p in parts if isinstance(p, ast.Node))


def _values(parts: list) -> tuple:
    return tuple(p.value for p in parts if isinstance(p, Part))


def _after(parts: list, word: str) -> Any:
    """What follows a keyword or mark, or None."""
    for at, part in enumerate(parts):
        if isinstance(part, Word) and part.type != "NAME" and part.text == word:
            return parts[at + 1]
    return None


def _name_after(parts: list, word: str) -> str | None:
    found = _after(parts, word)
    return None if found is None else found.text


def _has(parts: list, word: str) -> bool:
    return any(isinstance(p, Word) and p.type != "NAME" and p.text == word for p in parts)


# Files.


def start(parts):
    values = _values(parts)
    return ast.File(
        span=_span(parts),
        version=next((v for v in values if isinstance(v, int)), None),
        programs=tuple(p for p in parts if isinstance(p, ast.Program)),
        schedules=tuple(p for p in parts if isinstance(p, ast.Schedule)),
        imports=tuple(p for p in parts if isinstance(p, ast.Import)),
    )


def version(parts):
    return Part(_span(parts), parts[1].value)


def import_file(parts):
    return ast.Import(span=_span(parts), path=parts[1].text[1:-1])


# Programs.


def program(parts):
    return ast.Program(span=_span(parts), name=parts[1].text, items=_nodes(parts))


def option(parts):
    span, name, values = _span(parts), parts[1].text, _nodes(parts)
    if parts[2].text == "=":
        return ast.OptionDecl(span=span, name=name, default=values[0])
    return ast.OptionDecl(span=span, name=name, choices=values)


def dims(parts):
    return ast.DimsDecl(span=_span(parts), entries=_values(parts))


def dim(parts):
    return Part(_span(parts), (parts[0].text, _after(parts, "=")))


def type_choice(parts):
    name, *choices = _names(parts)
    return ast.TypeDecl(span=_span(parts), name=name, choices=tuple(choices))


def input_line(parts):
    return _param("in", parts)


def output_line(parts):
    return _param("out", parts)


def _param(direction, parts):
    return ast.ParamDecl(
        span=_span(parts),
        direction=direction,
        name=parts[1].text,
        dtype=parts[3].text,
        shape=next(iter(_values(parts)), None),
        default=_after(parts, "="),
        when=_after(parts, "when"),
    )


def shape(parts):
    return Part(_span(parts), _nodes(parts))


def require(parts):
    return ast.RequireDecl(span=_span(parts), condition=parts[1])


def assume(parts):
    return ast.AssumeDecl(span=_span(parts), words=tuple(p.text for p in parts[1:]))


def let(parts):
    return ast.LetDecl(span=_span(parts), name=parts[1].text, value=parts[3])


def define(parts):
    name, *parameters = _names(parts)
    return ast.DefDecl(span=_span(parts), name=name, parameters=tuple(parameters), body=parts[-1])


def index_range(parts):
    return ast.IndexDecl(span=_span(parts), entries=_values(parts))


def bound(parts):
    return Part(_span(parts), (parts[0].text, parts[2]))


def statement(parts):
    return ast.Statement(
        span=_span(parts),
        target=parts[0],
        value=parts[2],
        start=_after(parts, "from"),
        where=_after(parts, "where"),
        otherwise=_after(parts, "else"),
        when=_after(parts, "when"),
    )


def target(parts):
    base = ast.Name(span=parts[0].span, id=parts[0].text)
    return ast.Index(span=_span(parts), base=base, indices=_nodes(parts))


# Schedules.


def schedule(parts):
    return ast.Schedule(
        span=_span(parts),
        name=parts[1].text,
        program=_name_after(parts, "for") or "",
        target=_name_after(parts, "on") or "",
        items=tuple(n for n in _nodes(parts) if not isinstance(n, ast.Renaming)),
        extends=_name_after(parts, "extends"),
        renames=tuple(n for n in _nodes(parts) if isinstance(n, ast.Renaming)),
    )


def renaming(parts):
    return ast.Renaming(span=_span(parts), old=parts[0].text, new=parts[2].text)


def kernel(parts):
    name, *computes = _names(parts)
    return ast.KernelDecl(span=_span(parts), name=name, computes=tuple(computes), items=_nodes(parts))


def tile(parts):
    return ast.TileDecl(span=_span(parts), entries=_values(parts))


def extent(parts):
    return Part(_span(parts), (parts[0].text, parts[1]))


def fuse(parts):
    return ast.FuseDecl(span=_span(parts), name=parts[1].text, axes=parts[3].value)


def stream(parts):
    return ast.StreamDecl(
        span=_span(parts),
        axis=parts[1].text,
        descending=_has(parts, "descending"),
        listed=_has(parts, "listed"),
        split_index=_name_after(parts, "split"),
        split_count=_after(parts, "in"),
    )


def grid(parts):
    axes_, *rest = _values(parts)
    group, nbytes = rest[0] if rest else ((), None)
    return ast.GridDecl(
        span=_span(parts),
        axes=axes_,
        persistent=("dynamic" if _has(parts, "dynamic") else "static") if _has(parts, "persistent") else None,
        joined=_has(parts, "joined"),
        longest_first=_has(parts, "longest_first"),
        section=group,
        section_bytes=nbytes,
        with_home=_name_after(parts, "with"),
    )


def section(parts):
    return Part(_span(parts), (parts[1].value, int(parts[3].value * _UNITS[parts[4].text])))


def axes(parts):
    return Part(_span(parts), _names(parts))


def role(parts):
    return ast.RoleDecl(
        span=_span(parts),
        name=parts[1].text,
        count=parts[3],
        unit=parts[4].text.removesuffix("s"),
        registers=_after(parts, "registers"),
        split=_name_after(parts, "split"),
    )


def home(parts):
    held = _after(parts, "=")
    return ast.HomeDecl(
        span=_span(parts),
        kind=parts[0].text,
        name=parts[1].text,
        tensor=parts[1].text if held is None else held.id,
        indices=next(iter(_values(parts)), ()),
        engine=_name_after(parts, "by"),
        ring=_after(parts, "ring"),
        over=_name_after(parts, "over"),
        cast=_name_after(parts, "as"),
        times=_after(parts, "times"),
        permute=_name_after(parts, "permute"),
    )


def home_tile(parts):
    return Part(_span(parts), _names(parts))


def role_body(parts):
    return ast.RoleBody(span=_span(parts), role=parts[0].text, steps=_nodes(parts))


def combine(parts):
    how = _name_after(parts, "by")
    return ast.CombineDecl(span=_span(parts), targets=_names(parts), how=how or "")


def skip(parts):
    return ast.SkipDecl(span=_span(parts))


def approximate(parts):
    return ast.ApproximateDecl(span=_span(parts), functions=_names(parts))


def accumulate(parts):
    return ast.AccumulateDecl(span=_span(parts), tensor=_names(parts)[0], every=_nodes(parts)[-1])


def tune(parts):
    return ast.TuneDecl(span=_span(parts), entries=_nodes(parts))


def tuning(parts):
    return ast.Tuning(span=_span(parts), what=parts[0].text, name=parts[1].text, values=_nodes(parts))


def fill(parts):
    return ast.FillStep(span=_span(parts), targets=_nodes(parts))


def wait(parts):
    return ast.AwaitStep(span=_span(parts), target=parts[1])


def issue(parts):
    result, left, right = _nodes(parts)
    return ast.IssueStep(span=_span(parts), target=result, op=parts[2].text, engine=parts[3].text, left=left, right=right)


def compute(parts):
    return ast.ComputeStep(span=_span(parts), target=parts[1])


def pack(parts):
    return ast.PackStep(span=_span(parts), target=parts[1])


def rescale(parts):
    return ast.RescaleStep(span=_span(parts), target=parts[1], grown_by=_after(parts, "by"))


def finish(parts):
    return ast.FinishStep(span=_span(parts), targets=_nodes(parts), via=_names(parts))


def probe(parts):
    return ast.ProbeStep(span=_span(parts), target=parts[1])


def loop(parts):
    return ast.ForStep(span=_span(parts), axis=parts[1].text, body=_nodes(parts))


def once(parts):
    return ast.OnceStep(span=_span(parts), body=_nodes(parts))


def turn(parts):
    return ast.TurnStep(span=_span(parts), body=_nodes(parts))


# Expressions.


def number(parts):
    word: Word = parts[0]
    return ast.Number(span=word.span, value=_CONSTANTS.get(word.text, word.value), text=word.text)


def boolean(parts):
    return ast.Bool(span=parts[0].span, value=parts[0].text == "true")


def name(parts):
    return ast.Name(span=parts[0].span, id=parts[0].text)


def index(parts):
    return ast.Index(span=_span(parts), base=parts[0], indices=_nodes(parts[1:]))


def call(parts):
    return ast.Call(span=_span(parts), function=parts[0].text, arguments=_nodes(parts))


def paren(parts):
    return replace(parts[1], span=_span(parts))


def unary(parts):
    return ast.Unary(span=_span(parts), op=parts[0].text, operand=parts[1])


def binary(parts):
    return ast.Binary(span=_span(parts), op=parts[1].text, left=parts[0], right=parts[2])


def comparison(parts):
    return ast.Compare(span=_span(parts), ops=tuple(p.text for p in parts[1::2]), operands=tuple(parts[::2]))


def reduce(parts):
    return ast.Reduce(span=_span(parts), op=parts[0].text, axes=_names(parts), operand=parts[-1])

"""AST to text.

In: any node. Out: its text, with as few parentheses as the grammar allows, on one line unless it holds a block.
`parse` of a shown file gives the same AST. `fmt` (the formatter of source texts, comments included) is here too by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import singledispatch

from . import ast
from .formatter import fmt as fmt
from .lines import At, Block, Box, Dim, Explicit, Extent, KernelLines, Line, Mask, Operand, Order, Several, Text, Trail
from .show_lines import show_line

# How tightly a construct binds; what stands inside one that binds tighter gets parentheses.
_OR, _AND, _NOT, _COMPARE, _SUM, _TERM, _PRODUCT, _FACTOR, _POWER, _ATOM = range(10)
_BINARY = {  # op: own level, level of the left operand, level of the right one
    "or": (_OR, _OR, _AND),
    "and": (_AND, _AND, _NOT),
    "+": (_SUM, _SUM, _TERM),
    "-": (_SUM, _SUM, _TERM),
    "*": (_PRODUCT, _PRODUCT, _FACTOR),
    "/": (_PRODUCT, _PRODUCT, _FACTOR),
    "%": (_PRODUCT, _PRODUCT, _FACTOR),
    "**": (_POWER, _ATOM, _FACTOR),
}
_INDENT = "  "


def show(node: ast.Node) -> str:
    """The text of a node: an expression, an item, a step, or a whole file (which ends with a line end)."""
    return _show(node)


# Expressions.


def _expr(node: ast.Node, level: int = _OR, tight: bool = False) -> str:
    text, own = _expression(node, tight)
    return f"({text})" if own < level else text


def _sum(node: ast.Node) -> str:
    return _expr(node, _SUM)


def _expression(node: ast.Node, tight: bool) -> tuple[str, int]:
    match node:
        case ast.Number():
            return node.text or repr(node.value), _ATOM if node.text or node.value >= 0 or node.value != node.value else _FACTOR
        case ast.Bool():
            return "true" if node.value else "false", _ATOM
        case ast.Name():
            return node.id, _ATOM
        case ast.Index():
            return f"{node.base.id}[{_indices(node.indices, tight)}]", _ATOM
        case ast.Call():
            return f"{node.function}({_list(node.arguments, lambda a: _expr(a, tight=tight))})", _ATOM
        case ast.Unary(op="not"):
            return f"not {_expr(node.operand, _NOT, tight)}", _NOT
        case ast.Unary():
            return f"-{_expr(node.operand, _FACTOR, tight)}", _FACTOR
        case ast.Binary():
            own, left, right = _BINARY[node.op]
            gap = "" if tight and not node.op.isalpha() else " "
            return f"{_expr(node.left, left, tight)}{gap}{node.op}{gap}{_expr(node.right, right, tight)}", own
        case ast.Compare():
            first, *rest = (_expr(o, _SUM, tight) for o in node.operands)
            return " ".join([first, *(f"{op} {o}" for op, o in zip(node.ops, rest, strict=True))]), _COMPARE
        case ast.Reduce():
            return f"{node.op}[{','.join(node.axes)}] {_expr(node.operand, _TERM, tight)}", _TERM
    raise TypeError(f"{type(node).__name__} is no expression")


def _indices(indices: tuple[ast.Expr, ...], tight: bool) -> str:
    plain = all(isinstance(i, ast.Name | ast.Number) for i in indices)
    return ("," if plain else ", ").join(_expr(i, tight=tight) for i in indices)


def _tile(node: ast.Node) -> str:
    """A name or an access in a step: `Ks[j+1]`."""
    return _expr(node, tight=True)


def _list(items: Iterable, shown: Callable[..., str] = str) -> str:
    return ", ".join(shown(i) for i in items)


def _word(word: str, name: str | None) -> str:
    return f" {word} {name}" if name else ""


def _clause(word: str, node: ast.Node | None, level: int = _OR) -> str:
    return "" if node is None else f" {word} {_expr(node, level)}"


# Files, items, steps.


@singledispatch
def _show(node: ast.Node) -> str:
    return _expr(node)


@_show.register
def _(node: ast.File) -> str:
    lines = [] if node.version is None else [f"wg {node.version}"]
    return "\n".join([*lines, *map(_show, (*node.imports, *node.programs, *node.schedules))]) + "\n"


@_show.register
def _(node: ast.Import) -> str:
    return f'import "{node.path}"'


@_show.register(Explicit)
@_show.register(KernelLines)
@_show.register(Line)
@_show.register(Block)
@_show.register(Trail)
@_show.register(At)
@_show.register(Text)
@_show.register(Several)
@_show.register(Extent)
@_show.register(Dim)
@_show.register(Box)
@_show.register(Operand)
@_show.register(Mask)
@_show.register(Order)
def _(node: ast.Node) -> str:
    return show_line(node, _show)


def _block(head: str, body: tuple[ast.Node, ...]) -> str:
    inner = "\n".join(map(_show, body)).replace("\n", "\n" + _INDENT)
    return f"{head} {{\n{_INDENT}{inner}\n}}" if body else f"{head} {{ }}"


@_show.register
def _(node: ast.Program) -> str:
    return _block(f"program {node.name}", node.items)


@_show.register
def _(node: ast.OptionDecl) -> str:
    if node.default is not None:
        return f"option {node.name} = {_expr(node.default)}"
    return f"option {node.name} in {{{_list(node.choices, _expr)}}}"


@_show.register
def _(node: ast.DimsDecl) -> str:
    return f"dims {_list(node.entries, lambda e: e[0] + (f' = {_sum(e[1])}' if e[1] is not None else ''))}"


@_show.register
def _(node: ast.TypeDecl) -> str:
    return f"type {node.name} in {{{_list(node.choices)}}}"


@_show.register
def _(node: ast.ParamDecl) -> str:
    shape = "" if node.shape is None else f"[{_list(node.shape, _sum)}]"
    return f"{node.direction} {node.name}: {node.dtype}{shape}{_clause('=', node.default)}{_clause('when', node.when)}"


@_show.register
def _(node: ast.RequireDecl) -> str:
    return f"require {_expr(node.condition)}"


@_show.register
def _(node: ast.AssumeDecl) -> str:
    return f"assume {' '.join(node.words)}"


@_show.register
def _(node: ast.LetDecl) -> str:
    return f"let {node.name} = {_expr(node.value)}"


@_show.register
def _(node: ast.DefDecl) -> str:
    return f"def {node.name}({_list(node.parameters)}) = {_expr(node.body)}"


@_show.register
def _(node: ast.IndexDecl) -> str:
    return f"index {_list(node.entries, lambda e: f'{e[0]} < {_sum(e[1])}')}"


@_show.register
def _(node: ast.Statement) -> str:
    where = _clause("where", node.where) + _clause("else", node.otherwise)
    return f"{_expr(node.target)} = {_expr(node.value)}{_clause('from', node.start)}{where}{_clause('when', node.when)}"


@_show.register
def _(node: ast.Schedule) -> str:
    base = _word("extends", node.extends) + _word("for", node.program) + _word("on", node.target)
    renames = f" with {_list(node.renames, _show)}" if node.renames else ""
    return _block(f"schedule {node.name}{base}{renames}", node.items)


@_show.register
def _(node: ast.Renaming) -> str:
    return f"{node.old} = {node.new}"


@_show.register
def _(node: ast.KernelDecl) -> str:
    return _block(f"kernel {node.name} computes {_list(node.computes)}", node.items)


@_show.register
def _(node: ast.CombineDecl) -> str:
    return f"combine {_list(node.targets)} by {node.how}"


@_show.register
def _(node: ast.SkipDecl) -> str:
    return "skip empty per warpgroup"


@_show.register
def _(node: ast.AccumulateDecl) -> str:
    return f"accumulate {node.tensor} promote every {show(node.every)}"


@_show.register
def _(node: ast.ApproximateDecl) -> str:
    return f"approximate {_list(node.functions)}"


@_show.register
def _(node: ast.TuneDecl) -> str:
    return _block("tune", node.entries)


@_show.register
def _(node: ast.Tuning) -> str:
    return f"{node.what} {node.name} in {{{_list(node.values, _expr)}}}"


@_show.register
def _(node: ast.TileDecl) -> str:
    return f"tile {_list(node.entries, lambda e: f'{e[0]} {_sum(e[1])}')}"


@_show.register
def _(node: ast.FuseDecl) -> str:
    return f"fuse {node.name} = ({_list(node.axes)})"


@_show.register
def _(node: ast.StreamDecl) -> str:
    parts = "" if node.split_count is None else f" split {node.split_index} in {_sum(node.split_count)}"
    words = [w for w in ("descending", "listed") if getattr(node, w)]
    return f"{' '.join(['stream', node.axis, *words])}{parts}"


@_show.register
def _(node: ast.GridDecl) -> str:
    words = ["grid"]
    if node.persistent is not None:
        words.append("persistent" if node.persistent == "static" else f"persistent {node.persistent}")
    if node.joined:
        words.append("joined")
    words.append(f"over ({_list(node.axes)})")
    if node.longest_first:
        words.append("longest_first")
    if node.section:
        words.append(f"section ({_list(node.section)}) within {_bytes(node.section_bytes or 0)}")
    return " ".join(words) + _word("with", node.with_home)


def _bytes(count: int) -> str:
    for unit, size in (("MB", 2**20), ("KB", 2**10)):
        if count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} B"


@_show.register
def _(node: ast.RoleDecl) -> str:
    unit = node.unit if node.count == ast.Number(value=1) else node.unit + "s"
    registers = "" if node.registers is None else f", registers {_sum(node.registers)}"
    split = "" if node.split is None else f", split {node.split}"
    return f"role {node.name} : {_sum(node.count)} {unit}{registers}{split}"


@_show.register
def _(node: ast.HomeDecl) -> str:
    tile = f"[{_list(node.indices)}]" if node.indices else ""
    held = f" = {node.tensor}{tile}" if tile or node.tensor != node.name else ""
    form = _word("as", node.cast) + _clause("times", node.times, _SUM) + _word("permute", node.permute)
    how = _word("by", node.engine) + _clause("ring", node.ring, _SUM) + _word("over", node.over)
    return f"{node.kind} {node.name}{held}{form}{how}"


@_show.register
def _(node: ast.RoleBody) -> str:
    return _block(node.role, node.steps)


@_show.register
def _(node: ast.FillStep) -> str:
    return f"fill {_list(node.targets, _tile)}"


@_show.register
def _(node: ast.AwaitStep) -> str:
    return f"await {_tile(node.target)}"


@_show.register
def _(node: ast.IssueStep) -> str:
    return f"issue {_tile(node.target)} {node.op} {node.engine}({_tile(node.left)}, {_tile(node.right)})"


@_show.register
def _(node: ast.ComputeStep) -> str:
    return f"compute {_tile(node.target)}"


@_show.register
def _(node: ast.PackStep) -> str:
    return f"pack {_tile(node.target)}"


@_show.register
def _(node: ast.RescaleStep) -> str:
    return f"rescale {_tile(node.target)}{_clause('when grown by', node.grown_by, _SUM)}"


@_show.register
def _(node: ast.FinishStep) -> str:
    via = f" via {_list(node.via)}" if node.via else ""
    return f"finish {_list(node.targets, _tile)}{via}"


@_show.register
def _(node: ast.ProbeStep) -> str:
    return f"probe {_tile(node.target)}"


@_show.register
def _(node: ast.ForStep) -> str:
    return _block(f"for {node.axis}", node.body)


@_show.register
def _(node: ast.OnceStep) -> str:
    return _block("once", node.body)


@_show.register
def _(node: ast.TurnStep) -> str:
    return _block("in turn", node.body)

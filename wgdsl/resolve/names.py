"""Which names of a schedule's lines are its program's, and the lines with other ones.

In: lines of a schedule.  Out: names, or lines. A schedule names tensors, indices and dims of its program; homes, roles,
options and kernels are its own, and so are the names that `fuse` and `split` make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from ..syntax import ast

# The fields that hold names of the program as texts; every `Name` is one too.
_TENSORS: dict[type, tuple[str, ...]] = {
    ast.HomeDecl: ("tensor",),
    ast.CombineDecl: ("targets",),
    ast.AccumulateDecl: ("tensor",),
    ast.KernelDecl: ("computes",),
}
_INDICES: dict[type, tuple[str, ...]] = {
    ast.TileDecl: ("entries",),
    ast.FuseDecl: ("axes",),
    ast.StreamDecl: ("axis",),
    ast.GridDecl: ("axes", "section"),
    ast.RoleDecl: ("split",),
    ast.HomeDecl: ("indices",),
    ast.ForStep: ("axis",),
}
Items = Iterable[ast.ScheduleItem]


def tensor_names(items: Items) -> tuple[str, ...]:
    """The tensors that the lines name, without their parts, in order."""
    items = tuple(items)
    own = _own_names(items)
    found = (name.partition(".")[0] for item in items for name in _tensors(item))
    return tuple(dict.fromkeys(n for n in found if n not in own))


def shared_names(items: Items) -> tuple[str, ...]:
    """Every name of the lines that is the program's: tensors, indices, dims."""
    items = tuple(items)
    own = _own_names(items)
    found = (name.partition(".")[0] for item in items for name in _all(item))
    return tuple(dict.fromkeys(n for n in found if n not in own))


def program_words(program: ast.Program) -> tuple[str, ...]:
    """Every name that a program declares or uses, in order: tensors, indices, dims and the others."""
    found: list[str] = []
    pending: list[ast.Node] = [program]
    while pending:
        node = pending.pop(0)
        match node:
            case ast.Name():
                found.append(node.id)
            case ast.ParamDecl():
                found.append(node.name)
            case ast.DimsDecl():
                found += [name for name, _ in node.entries]
            case ast.Reduce():
                found += node.axes
        pending += _children(node)
    return tuple(dict.fromkeys(found))


def rename(items: tuple[ast.ScheduleItem, ...], names: Mapping[str, str]) -> tuple[ast.ScheduleItem, ...]:
    """The lines with the program's names replaced, parts included: `P.max` becomes `Q.max` with P -> Q."""
    own = _own_names(items)
    return tuple(_renamed(i, {old: new for old, new in names.items() if old not in own}) for i in items)


def _own_names(items: Iterable[ast.ScheduleItem]) -> frozenset[str]:
    """The names that the lines give. A home without `=` has the name of its tensor, which stays the program's."""
    found: set[str] = set()
    for item in items:
        match item:
            case ast.HomeDecl() if item.tensor != item.name or item.engine == "atomic":
                found.add(item.name)
            case ast.OptionDecl() | ast.FuseDecl():
                found.add(item.name)
            case ast.StreamDecl(split_index=str() as name):
                found.add(name)
            case ast.KernelDecl():
                found |= _own_names(item.items)
    return frozenset(found)


def _tensors(node: ast.Node) -> Iterator[str]:
    """The texts of a node that stand where a tensor can."""
    yield from _texts(node, _TENSORS)
    for f in fields(node):
        for child in _nodes(getattr(node, f.name)):
            if not isinstance(child, ast.Expr):
                yield from _tensors(child)
            elif isinstance(node, ast.Step) and f.name != "grown_by":
                yield child.base.id if isinstance(child, ast.Index) else getattr(child, "id", "")


def _all(node: ast.Node) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    yield from _texts(node, _TENSORS)
    yield from _texts(node, _INDICES)
    if isinstance(node, ast.Tuning) and node.what == "tile":
        yield node.name
    for child in _children(node):
        yield from _all(child)


def _texts(node: ast.Node, where: Mapping[type, tuple[str, ...]]) -> Iterator[str]:
    for field in where.get(type(node), ()):
        value = getattr(node, field)
        for x in value if isinstance(value, tuple) else (value,):
            if x is not None:
                yield x[0] if isinstance(x, tuple) else x


def _children(node: ast.Node) -> Iterator[ast.Node]:
    for f in fields(node):
        yield from _nodes(getattr(node, f.name))


def _nodes(value: Any) -> Iterator[ast.Node]:
    if isinstance(value, ast.Node):
        yield value
    elif isinstance(value, tuple):
        for x in value:
            yield from _nodes(x)


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    own = (*_TENSORS.get(type(node), ()), *_INDICES.get(type(node), ()))
    if isinstance(node, ast.Name):
        own = ("id",)
    if isinstance(node, ast.HomeDecl) and node.tensor == node.name and node.engine != "atomic":
        own = (*own, "name")
    if isinstance(node, ast.Tuning) and node.what == "tile":
        own = ("name",)
    changed = {f.name: _value(getattr(node, f.name), names, f.name in own) for f in fields(node) if f.name != "span"}
    return replace(node, **changed)


def _value(value: Any, names: Mapping[str, str], texts: bool) -> Any:
    """A field's value; `texts` says whether a text in it is a name of the program."""
    if isinstance(value, ast.Node):
        return _renamed(value, names)
    if isinstance(value, tuple):
        return tuple(_value(x, names, texts) for x in value)
    if isinstance(value, str) and texts:
        head, dot, rest = value.partition(".")
        return names.get(head, head) + dot + rest
    return value

"""How the fields of a line are written: a codec for each kind of slot of `rows.py`.

`show` makes the text of a slot, `read` the values of its fields out of its AST; `grammar.RULES` has its rule. The kernel is
looked up for what a slot leaves out: the part where a barrier or buffer has one only, the tensor that a copy moves. It is None
where there is no kernel at hand, which only a `compute`'s operations bear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..diagnostics.roles import BoxDiffers, NothingOfThatName, NotOfThisKind, WrongNumber
from ..foundation.dtypes import DTYPES
from ..program.poly import Poly
from ..syntax import ast, lines
from .expressions import expr_text, polys_text
from .model import Axis, Barrier, Buffer, GridAxis, Kernel, MapDim, Order, RegOperand, Slot, SmemOperand, TensorMap
from .scope import Scope, refuse
from .terms import constant, integer, number, predicate


def show(codec: str, kernel: Kernel | None, *values: Any) -> str:
    """The text of a slot."""
    return _SHOW[codec](kernel, *values)


def _plain(_, value: object) -> str:
    return str(value)


def _listed(_, values: tuple) -> str:
    return ", ".join(map(str, values))


def _text(_, value: str) -> str:
    return f'"{value}"'


def _stop(_, value: Poly) -> str:
    return str(value - 1)


def _at(name: str, part: Poly, slot: Slot, parts: int) -> str:
    stage = f"s-{slot.lag}" if slot.lag else "s"
    return f"{name}[{part}, {stage}]" if parts > 1 or part != Poly() else f"{name}[{stage}]"


def _event(kernel: Kernel, name: str, part: Poly, slot: Slot) -> str:
    return _at(name, part, slot, _parts(kernel.barriers, name))


def _tile(kernel: Kernel, name: str, part: Poly, slot: Slot) -> str:
    return _at(name, part, slot, _parts(kernel.buffers, name))


def _parts(declared: tuple[Barrier, ...] | tuple[Buffer, ...], name: str) -> int:
    """How many parts the thing has; unknown ones, which diagnostics show, might have several."""
    return next((x.parts for x in declared if x.name == name), 2)


def _stage(_, name: str, slot: Slot) -> str:
    return _at(name, Poly(), slot, 1)


def _operand(kernel: Kernel, o: SmemOperand | RegOperand) -> str:
    if isinstance(o, RegOperand):
        return o.value
    return f"{_tile(kernel, o.buffer, o.part, o.slot)} {'k_major' if o.major == 'K' else 'mn_major'}"


def _axis(_, a: Axis) -> str:
    return f"{a.index} = {a.origin} +: {a.count}"


def _grid_axes(_, axes: tuple[GridAxis, ...]) -> str:
    return ", ".join(f"{a.index} in {a.blocks}{f' by {a.tile}' if a.tile != 1 else ''}" for a in axes)


def _order(_, order: Order) -> str:
    outer = ", ".join(f"{a} reversed" if a == order.reversed else a for a in order.outer)
    size = f" of {order.size}" if order.size is not None else ""
    return f"({', '.join(order.inner)}){size} under ({outer})"


def _dims(_, dims: tuple[MapDim, ...]) -> str:
    return ", ".join(f"axis {d.axis}{f' x {d.factor}' if d.factor != 1 else ''} < {d.extent}" for d in dims)


def _box(kernel: Kernel, name: str, coords: tuple[Poly, ...]) -> str:
    """`K[b, 128 * t +: 128, g, 0 +: 128] by Ks`, and the map's own coordinates where the elements don't tell them."""
    x = next((x for x in kernel.maps if x.name == name), None)
    if x is None or not len(x.dims) == len(x.box) == len(coords):
        return f"{name} at ({polys_text(coords)})"
    start, extent = _starts(x, coords), _extents(x)
    own = "" if coords == _plain_coords(x.dims, start) else f" at ({polys_text(coords)})"
    return f"{x.tensor}[{_elements(start, extent)}] by {name}{own}"


def _elements(start: dict[int, Poly], extent: dict[int, int]) -> str:
    return ", ".join(f"{start[a]} +: {extent[a]}" if extent[a] > 1 else str(start[a]) for a in sorted(start))


def _starts(x: TensorMap, coords: tuple[Poly, ...]) -> dict[int, Poly]:
    """The first element along each axis."""
    out: dict[int, Poly] = {}
    for d, c in zip(x.dims, coords, strict=True):
        out[d.axis] = out.get(d.axis, Poly()) + c * d.factor
    return out


def _extents(x: TensorMap) -> dict[int, int]:
    """Elements of a box along each axis."""
    out: dict[int, int] = {}
    for d, n in zip(x.dims, x.box, strict=True):
        out[d.axis] = out.get(d.axis, 1) * n
    return out


def _plain_coords(dims: tuple[MapDim, ...], start: dict[int, Poly]) -> tuple[Poly, ...]:
    """A map's coordinates for a box that starts at these elements: the first dimension of an axis has it all."""
    left = dict(start)
    return tuple(left.pop(d.axis, Poly()) if d.factor == 1 else Poly() for d in dims)


# Reading. What a slot names has to be there.


def read(codec: str, scope: Scope, node: Any) -> tuple[Any, ...]:
    """The values of a slot's fields. Raises Skipped."""
    found = _READ[codec](scope, node)
    return found if codec in _SEVERAL else (found,)


def _name(_, node: ast.Name) -> str:
    return node.id


def _known(kind: str) -> Callable[[Scope, ast.Name], str]:
    return lambda scope, node: scope.name(kind, node, node.id)


def _names(kind: str) -> Callable[[Scope, lines.Several], tuple[str, ...]]:
    return lambda scope, node: tuple(_known(kind)(scope, n) for n in node.items)  # type: ignore[arg-type]


def _dtype(_, node: ast.Name):
    if node.id not in DTYPES:
        refuse(NothingOfThatName(span=node.span, what="element type", name=node.id, known=tuple(DTYPES)))
    return DTYPES[node.id]


def _placed(kind: str) -> Callable[[Scope, ast.Index], tuple[str, Poly, Slot]]:
    """`Ks[s]` or `Qs[wg, s-1]`, as (name, part, slot)."""

    def placed(scope: Scope, node: ast.Index) -> tuple[str, Poly, Slot]:
        name = node.base.id
        thing = scope.thing(kind, node.base, name)
        *part, slot = node.indices
        if len(part) > 1 or len(part) < (thing.parts > 1):
            wanted = "2, part and slot" if thing.parts > 1 else "1, the slot"
            refuse(
                WrongNumber(
                    span=node.span, what=f"the number of places of `{name}`", found=str(len(node.indices)), wanted=wanted
                )
            )
        return name, integer(scope, part[0]) if part else Poly(), Slot(ring=thing.ring, lag=_lag(slot))

    return placed


def _lag(e: ast.Expr) -> int:
    """`s`, the position itself, or `s-1`, the stage before it."""
    match e:
        case ast.Name(id="s"):
            return 0
        case ast.Binary(op="-", left=ast.Name(id="s"), right=ast.Number(value=int() as lag)):
            return lag
    refuse(NotOfThisKind(span=e.span, found=e.span.text if e.span else "", wanted="slot", hint="`s`, or `s-1` before it"))


def _read_operand(scope: Scope, node: lines.Operand) -> SmemOperand | RegOperand:
    of = node.of
    if isinstance(of, ast.Name) and node.major is None:
        return RegOperand(value=scope.name("value", of, of.id))
    if not isinstance(of, ast.Index) or node.major is None:
        hint = "`Ks[s] k_major` in shared memory, or the name of a value"
        refuse(NotOfThisKind(span=node.span, found=node.span.text if node.span else "", wanted="operand", hint=hint))
    buffer, part, slot = _placed("buffer")(scope, of)
    return SmemOperand(buffer=buffer, part=part, slot=slot, major="K" if node.major == "k_major" else "MN")


def _read_axis(scope: Scope, node: lines.Extent) -> Axis:
    assert node.name is not None and node.count is not None
    index = scope.name("index", node.name, node.name.id)
    return Axis(index=index, origin=integer(scope, node.start), count=constant(scope, node.count))


def _read_grid_axes(scope: Scope, node: lines.Several) -> tuple[GridAxis, ...]:
    return tuple(_grid_axis(scope, a) for a in node.items if isinstance(a, lines.Extent))


def _grid_axis(scope: Scope, a: lines.Extent) -> GridAxis:
    assert a.name is not None
    return GridAxis(index=a.name.id, tile=constant(scope, a.count) if a.count else 1, blocks=integer(scope, a.start))


def _read_order(scope: Scope, node: lines.Order) -> Order:
    if len(node.reversed) > 1:
        found = str(len(node.reversed))
        refuse(WrongNumber(span=node.span, what="the number of reversed axes", found=found, wanted="1 at most"))
    return Order(
        inner=tuple(n.id for n in node.inner),
        outer=tuple(n.id for n in node.outer),
        size=integer(scope, node.size) if node.size is not None else None,
        reversed=node.reversed[0].id if node.reversed else None,
    )


def _read_dims(scope: Scope, node: lines.Several) -> tuple[MapDim, ...]:
    return tuple(
        MapDim(
            axis=constant(scope, d.axis), extent=integer(scope, d.extent), factor=constant(scope, d.factor) if d.factor else 1
        )
        for d in node.items
        if isinstance(d, lines.Dim)
    )


def _read_box(scope: Scope, node: lines.Box) -> tuple[str, tuple[Poly, ...]]:
    """The map and its coordinates. The elements that are named have to be the map's."""
    x: TensorMap = scope.thing("map", node.map, node.map.id)
    starts = tuple(integer(scope, e.start) for e in node.extents)
    counts = tuple(constant(scope, e.count) if e.count else 1 for e in node.extents)
    extent = _extents(x)
    start = dict(zip(sorted(extent), starts, strict=False))
    if node.tensor.id != x.tensor or counts != tuple(extent[a] for a in sorted(extent)):
        found = f"{node.tensor.id}[{', '.join(f'+: {n}' for n in counts)}]"
        wanted = f"{x.tensor}[{', '.join(f'+: {extent[a]}' for a in sorted(extent))}]"
        refuse(BoxDiffers(span=node.span, map=x.name, found=found, wanted=wanted))
    coords = _plain_coords(x.dims, start)
    if node.coords is not None:
        coords = tuple(integer(scope, c) for c in node.coords)
    if len(coords) != len(x.dims):
        what = f"the number of coordinates of map `{x.name}`"
        refuse(WrongNumber(span=node.span, what=what, found=str(len(coords)), wanted=str(len(x.dims))))
    if _starts(x, coords) != start:
        found, wanted = _elements(start, extent), _elements(_starts(x, coords), extent)
        refuse(BoxDiffers(span=node.span, map=x.name, found=f"{x.tensor}[{found}]", wanted=f"{x.tensor}[{wanted}]"))
    return x.name, coords


def _read_stage(scope: Scope, node: ast.Index) -> tuple[str, Slot]:
    """`Work[s]`: a buffer of one part."""
    if len(node.indices) != 1:
        what = f"the number of places of `{node.base.id}`"
        refuse(WrongNumber(span=node.span, what=what, found=str(len(node.indices)), wanted="1, the slot"))
    return node.base.id, Slot(ring=scope.thing("buffer", node.base, node.base.id).ring, lag=_lag(node.indices[0]))


def _read_mask(_, node: lines.Mask) -> str:
    return "{" + ", ".join(f"{name}: {kind}" if kind else name for name, kind in node.classes) + "}"


def _reduction(_, node: ast.Name) -> str:
    if node.id not in ("sum", "max", "min"):
        refuse(NothingOfThatName(span=node.span, what="reduction of a row", name=node.id, known=("sum", "max", "min")))
    return node.id


_SEVERAL = frozenset(("event", "tile", "box", "stage"))
_READ: dict[str, Callable[[Scope, Any], Any]] = {
    "name": _name, "new": _name, **{kind: _known(kind) for kind in ("ring", "buffer", "barrier", "map", "tensor", "value")},
    "dtype": _dtype, "int": constant, "poly": integer, "stop": lambda scope, e: integer(scope, e) + 1,
    "polys": lambda scope, node: tuple(integer(scope, e) for e in node.items),
    "ints": lambda scope, node: tuple(constant(scope, e) for e in node.items),
    "values": _names("value"), "buffers": _names("buffer"), "text": lambda _, node: node.text,
    "event": _placed("barrier"), "tile": _placed("buffer"), "operand": _read_operand, "axis": _read_axis,
    "grid_axes": _read_grid_axes, "dims": _read_dims, "box": _read_box, "expr": number, "predicate": predicate,
    "mask": _read_mask, "reduction": _reduction, "order": _read_order, "stage": _read_stage, "number": lambda _, e: e.value,
}  # fmt: skip
_SHOW: dict[str, Callable[..., str]] = {
    **dict.fromkeys(("name", "new", "ring", "buffer", "barrier", "map", "tensor", "value", "dtype"), _plain),
    **dict.fromkeys(("int", "number", "poly", "mask", "reduction"), _plain),
    **dict.fromkeys(("values", "buffers", "ints", "polys"), _listed),
    **dict.fromkeys(("expr", "predicate"), lambda _, e: expr_text(e)),
    "text": _text, "stop": _stop, "event": _event, "tile": _tile, "operand": _operand, "axis": _axis, "grid_axes": _grid_axes,
    "dims": _dims, "box": _box, "order": _order, "stage": _stage,
}  # fmt: skip

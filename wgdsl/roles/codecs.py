"""How the fields of a line are written: a codec for each kind of slot of `rows.py`.

`show` makes the text of a slot. The kernel is looked up for what a slot leaves out: the part where a barrier or buffer has one
only, the tensor that a copy moves. It is None where there is no kernel at hand, which only a `compute`'s operations bear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..program.poly import Poly
from .expressions import expr_text, polys_text
from .model import Axis, Barrier, Buffer, GridAxis, Kernel, MapDim, Order, RegOperand, Slot, SmemOperand


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
    start: dict[int, Poly] = {}
    extent: dict[int, int] = {}
    for d, c, n in zip(x.dims, coords, x.box, strict=True):
        start[d.axis] = start.get(d.axis, Poly()) + c * d.factor
        extent[d.axis] = extent.get(d.axis, 1) * n
    axes = [f"{start[a]} +: {extent[a]}" if extent[a] > 1 else str(start[a]) for a in sorted(start)]
    own = "" if coords == plain_coords(x.dims, start) else f" at ({polys_text(coords)})"
    return f"{x.tensor}[{', '.join(axes)}] by {name}{own}"


def plain_coords(dims: tuple[MapDim, ...], start: dict[int, Poly]) -> tuple[Poly, ...]:
    """A map's coordinates for a box that starts at these elements: the first dimension of an axis has it all."""
    left = dict(start)
    return tuple(left.pop(d.axis, Poly()) if d.factor == 1 else Poly() for d in dims)


_SHOW: dict[str, Callable[..., str]] = {
    "name": _plain, "new": _plain, "ring": _plain, "buffer": _plain, "barrier": _plain, "tensor": _plain, "value": _plain,
    "dtype": _plain, "int": _plain, "number": _plain, "poly": _plain, "mask": _plain, "reduction": _plain,
    "values": _listed, "buffers": _listed, "ints": _listed, "polys": _listed,
    "text": _text, "stop": _stop, "event": _event, "tile": _tile, "stage": _stage, "operand": _operand, "axis": _axis,
    "grid_axes": _grid_axes, "order": _order, "dims": _dims, "box": _box,
    "expr": lambda _, e: expr_text(e), "predicate": lambda _, e: expr_text(e),
}  # fmt: skip

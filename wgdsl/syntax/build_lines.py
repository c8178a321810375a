"""What each rule of the explicit form makes: `lines.py` nodes. See `build.py`."""

from __future__ import annotations

from typing import Any

from . import ast
from .build import Part, _after, _has, _names, _nodes, _span, _values
from .lexer import Word
from .lines import At, Block, Box, Dim, Explicit, Extent, KernelLines, Line, Mask, Operand, Order, Setting, Several, Text, Trail


def _one(parts: list, kind: type) -> Any:
    return next((p for p in parts if isinstance(p, kind)), None)


def explicit(parts):
    name, of, chip = _names(parts)
    return Explicit(
        span=_span(parts),
        name=name,
        program=of,
        target=chip,
        settings=tuple(p for p in parts if isinstance(p, Setting)),
        origin=_one(parts, Text),
        items=(),
        lines=tuple(p for p in parts if isinstance(p, Line | KernelLines)),
    )


def x_setting(parts):
    return Setting(span=_span(parts), name=parts[0].text, value="".join(p.text for p in parts[2:]))


def x_from(parts):
    return Text(span=_span(parts), text=parts[1].text[1:-1])


def x_kernel(parts):
    return KernelLines(span=_span(parts), name=parts[1], lines=tuple(p for p in parts if isinstance(p, Line)))


def line(parts):
    """Words of the line as texts, apart from those that are nodes of their own."""
    written = [p for p in parts if p.span is not None]  # an empty trail or list has no text
    kept = tuple(_part(p) for p in parts if not isinstance(p, Trail))
    trail = next((p.trail for p in parts if isinstance(p, Block)), None) or _one(parts, Trail)
    return Line(span=_span(written), parts=kept, trail=trail)


def _part(p):
    if not isinstance(p, Word):
        return p
    return ast.Name(span=p.span, id=p.text) if p.type == "REDUCER" else p.text


def x_block(parts):
    lines = tuple(p for p in parts if isinstance(p, Line))
    return Block(span=_span(parts), lines=lines, trail=_one(parts, Trail))


def x_trail(parts):
    note = next((p.text[1:-1] for p in parts if isinstance(p, Word)), "")
    return Trail(span=_span(parts) if parts else None, note=note, at=_one(parts, At))


def x_at(parts):
    words, path = _one(parts, Text), _after(parts, "of")
    return At(
        span=_span(parts),
        line=int(parts[1].value),
        words=words.text if words is not None else None,
        path=path.text[1:-1] if path is not None else None,
    )


def x_text(parts):
    return Text(span=_span(parts), text=parts[0].text[1:-1])


def x_sums(parts):
    return Several(span=_span(parts) if parts else None, items=_nodes(parts))


x_names = x_axes = x_dims = x_sums


def x_axis(parts):
    return Extent(span=_span(parts), name=parts[0], start=parts[2], count=_after(parts, "+:"))


def x_grid_axis(parts):
    count = _after(parts, "by")
    return Extent(span=_span(parts), name=parts[0], mark="in", start=parts[2], step="by", count=count)


def x_extent(parts):
    return Extent(span=_span(parts), start=parts[0], count=_after(parts, "+:"))


def x_dim(parts):
    return Dim(span=_span(parts), axis=parts[1], factor=_after(parts, "x"), extent=_after(parts, "<"))


def x_box(parts):
    extents = tuple(p for p in parts if isinstance(p, Extent))
    coords = next(iter(_values(parts)), None)
    return Box(span=_span(parts), tensor=parts[0], extents=extents, map=_after(parts, "by"), coords=coords)


def x_order(parts):
    inner = tuple(p for p in parts if isinstance(p, ast.Name))
    outer = _values(parts)
    return Order(
        span=_span(parts),
        inner=inner,
        size=_after(parts, "of"),
        outer=tuple(name for name, _ in outer),
        reversed=tuple(name for name, back in outer if back),
    )


def x_outer(parts):
    return Part(_span(parts), (parts[0], len(parts) > 1))


def x_coords(parts):
    return Part(_span(parts), _nodes(parts))


def x_operand(parts):
    major = next((w for w in ("k_major", "mn_major") if _has(parts, w)), None)
    return Operand(span=_span(parts), of=parts[0], major=major)


def x_mask(parts):
    return Mask(span=_span(parts), classes=_values(parts))


def x_class(parts):
    return Part(_span(parts), (parts[0].id, parts[2].text if len(parts) > 1 else ""))

"""probe: a step that writes registers out, to be looked at.

In: a `probe` of a role, the tile that it means, and what the role has in registers by then.  Out: a store to an array of the
call's own, `P.probe`, which holds an element for each of the value's, of every tile: nothing is reused, nothing waited for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..diagnostics.model import WgError
from ..diagnostics.schedule import DoneTwice, NeverComputed, NotYetSupported, UnknownName
from ..diagnostics.tools import RegistersTaken
from ..foundation.dtypes import F32
from ..program.expr import Reg
from ..program.poly import Poly, ceildiv
from ..roles.model import PROBE, Axis, StoreGlobal, TensorArg
from ..syntax import ast
from .flight import tile_text
from .named import display, resolve
from .place import name_of
from .products import Product
from .registers import RegisterWriter


@dataclass(kw_only=True)
class Probes:
    """The probes of one role: their steps by name, and the arrays that they write."""

    steps: dict[str, ast.ProbeStep] = field(default_factory=dict)
    tensors: dict[str, TensorArg] = field(default_factory=dict)


def probe(writer: RegisterWriter, probes: Probes, s: ast.ProbeStep, rel: int, position: Poly) -> StoreGlobal:
    """The store of one tile. Raises WgError for what isn't in registers then, or is still being computed."""
    name, streamed = name_of(s.target), writer.streamed
    first = probes.steps.setdefault(name, s)
    if first is not s:
        raise WgError(DoneTwice(span=s.span, verb="probed", name=name, first=first.span))
    product = writer.products.get(name)
    node = product.node.name if product is not None else resolve(streamed, name)
    if not node:
        known = (*writer.products, *(display(streamed, n) for n in streamed.order))
        raise WgError(UnknownName(span=s.span, what="value in registers", name=name, known=tuple(dict.fromkeys(known))))
    value = _value(writer, product, node, s, rel)
    tile = writer.trip.tile(position)
    rows, cols = _axes(writer, product, node, tile, s)
    indices = _indices(writer, node, rows, cols, s)
    access, shape = [Poly.of(i) for i in indices], [writer.plan.graph.extents[i] for i in indices]
    if writer.plan.axis not in indices:  # a state: one for each tile
        access.append(tile)
        shape.append(ceildiv(writer.plan.graph.extents[writer.plan.axis], writer.plan.size(writer.plan.axis)))
    tensor = TensorArg(name=f"{name}{PROBE}", dtype=F32, shape=tuple(shape), written=True)
    probes.tensors[tensor.name] = tensor
    return StoreGlobal(
        tensor=tensor.name,
        access=tuple(access),
        value=Reg(name=value),
        rows=rows,
        cols=cols,
        span=s.span,
        note="to be looked at",
        limit=writer.plan.end_of_part(rows.index),
    )


def _value(writer: RegisterWriter, product: Product | None, node: str, s: ast.ProbeStep, rel: int) -> str:
    """The registers that hold the value for this tile."""
    name, state = name_of(s.target), writer.streamed.state(node)
    if state is not None and not state.is_contract:
        if writer.computer.is_partial(state):
            cure = "it is whole after `finish`; probe what it is summed of"
            raise WgError(
                NotYetSupported(span=s.span, what=f"a probe of `{name}`, of which each lane holds a share", cure=cure)
            )
        value = writer.computer.state_value(state)
    else:
        value = writer.computer.home.get(node, "")
    if value:
        writer.touch(value, name, s.span)
    if not value or writer.state.computed.get(node) != rel:
        tile = f"{name}{tile_text(writer.plan.axis, rel)}"
        verb = "issue" if product is not None else "compute"
        raise WgError(NeverComputed(span=s.span, name=tile, step=f"probe {tile}", verb=verb))
    taken = _taken(writer, node, value, rel)
    if taken:
        raise WgError(RegistersTaken(span=s.span, name=name, by=display(writer.streamed, taken)))
    return value


def _taken(writer: RegisterWriter, node: str, value: str, rel: int) -> str:
    """What has been computed since in the same registers."""
    values, homes, order = writer.computer.values, writer.computer.home, writer.streamed.order
    base = values[value].over or value
    later = [n for n in order[order.index(node) + 1 :] if n in homes and writer.state.computed.get(n) == rel]
    return next((n for n in reversed(later) if (values[homes[n]].over or homes[n]) == base), "")


def _axes(writer: RegisterWriter, product: Product | None, node: str, tile: Poly, s: ast.ProbeStep) -> tuple[Axis, Axis | None]:
    plan = writer.plan
    if product is not None:
        return plan.axis_of(product.rows), plan.axis_of(product.cols, tile)
    if writer.streamed.state(node) is not None:
        rows = writer.row_axis()
        assert rows is not None, "a state is advanced from a product's tile"
        return rows, None
    return writer.axes(tile, ast.ComputeStep(target=s.target, span=s.span))


def _indices(writer: RegisterWriter, node: str, rows: Axis, cols: Axis | None, s: ast.ProbeStep) -> tuple[str, ...]:
    """The value's indices; each is one of the item's, or runs along its tile."""
    found = writer.streamed.tile_node(node) or next(t.node for t in writer.streamed.states if t.name == node)
    known = {*writer.plan.grid, rows.index, *([cols.index] if cols is not None else [])}
    for i in found.indices:
        if i not in known:
            raise WgError(NotYetSupported(span=s.span, what=f"a probe of `{name_of(s.target)}`, which runs along `{i}`"))
    return found.indices

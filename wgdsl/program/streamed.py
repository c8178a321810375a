"""Form 3: the streamed graph, a program seen tile by tile along one axis.

Each reduction over the axis has become a `State` that is updated once a tile. In the expressions of tile nodes, states and
corrections, a load of an earlier state reads its *running* value, this tile included; `old(name)` reads the value before
this tile. In `outputs` a load of a state reads its final value.

`correction` is what the old content of a state is multiplied by when an earlier state moves: f(new) / f(old), where the
summand is f(earlier states) * g(this element). None: the summand depends on no earlier state.
"""

from __future__ import annotations

from dataclasses import dataclass

from .expr import Expr, Load, loads
from .graph import Domain, Map, Node, Output, ProgramGraph, Reduce

OLD_SUFFIX = ".old"


def old(name: str) -> str:
    """The name under which a correction reads the state `name` as it was before the tile."""
    return name + OLD_SUFFIX


@dataclass(frozen=True, kw_only=True)
class State:
    """A reduction along the streamed axis. `node.body` is the summand in terms of tile nodes and running states.

    kept: where the summand counts only elements equal to an earlier extreme, the condition under which that hasn't moved. The
    old content is nothing's where it has: the `correction` of a sum is then 0.
    """

    node: Reduce
    correction: Expr | None = None
    kept: Expr | None = None
    references: tuple[str, ...] = ()  # the earlier states that the correction reads
    start: Expr | None = None  # its first element, on nothing of the axis; None: the identity
    is_contract: bool = False  # a product with an input tensor: a matrix instruction accumulates it

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(frozen=True, kw_only=True)
class Streamed:
    """tile: nodes with an element for each position of the axis, and `states`, in one order (`order`: names).

    guarded: states (running maxima and minima) that exponents subtract: while nothing has been seen they are infinite and
    read as 0 there. unguarded_when_full: in a tile with no element outside the domain no guard is needed, because every
    score is a plain product.  fills: the value that a tile node's elements outside the domain have, chosen so that reductions
    ignore them; in the nodes of `masks` it is written by a select, in the others it follows. `masked_states` mask their own
    operand instead. folds: reductions of final values along another axis, in order; outputs and later folds load them.
    """

    program: ProgramGraph
    axis: str
    tile: tuple[Map | Domain | Reduce, ...]
    states: tuple[State, ...]
    order: tuple[str, ...]
    outputs: tuple[Output, ...]
    guarded: frozenset[str]
    unguarded_when_full: bool
    fills: dict[str, float]
    masks: frozenset[str]
    masked_states: frozenset[str]
    folds: tuple[Reduce, ...] = ()

    def state(self, name: str) -> State | None:
        return next((s for s in self.states if s.name == name), None)

    def fold(self, name: str) -> Reduce | None:
        return next((f for f in self.folds if f.name == name), None)

    def final(self, e: Expr) -> tuple[Load, ...]:
        """What an expression behind the loop reads of the streamed program: states, and those that its folds read."""
        return tuple(x for load in loads(e) for x in self._opened(load))

    def _opened(self, x: Load) -> tuple[Load, ...]:
        fold = self.fold(x.tensor)
        return (x,) if fold is None else self.final(fold.body)

    def tile_node(self, name: str) -> Node | None:
        return next((n for n in self.tile if n.name == name), None)


def streamed_text(s: Streamed) -> str:
    """Readable and deterministic: `--emit stream`."""
    lines = [f"streamed {s.program.name} along {s.axis}"]
    for name in s.order:
        node, state = s.tile_node(name), s.state(name)
        if node is not None:
            head = f"  tile  {name}[{', '.join(node.indices)}]"
            if isinstance(node, Reduce):
                lines.append(f"{head} = {node.op}[{', '.join(node.axes)}] {node.body}")
            else:
                where = f"  where {node.predicate}" if isinstance(node, Domain) else ""
                lines.append(f"{head} = {node.body}{where}")  # type: ignore[union-attr]
            if name in s.fills:
                lines.append(f"        outside: {s.fills[name]}{' (select)' if name in s.masks else ''}")
        if state is not None:
            n = state.node
            lines.append(f"  state {name}[{', '.join(n.indices)}] = {n.op}[{', '.join(n.axes)}] {n.body}")
            if state.start is not None:
                lines.append(f"        from: {state.start}")
            if state.correction is not None:
                lines.append(f"        correction: {state.correction}")
            elif state.kept is not None:
                lines.append(f"        kept where {state.kept}")
            if name in s.masked_states:
                lines.append("        masked at its operand")
            if name in s.guarded:
                lines.append("        read as 0 in exponents while nothing has been seen")
    for f in s.folds:
        lines.append(f"  fold  {f.name}[{', '.join(f.indices)}] = {f.op}[{', '.join(f.axes)}] {f.body}")
    for o in s.outputs:
        lines.append(f"  final {o.tensor}[{', '.join(map(str, o.access))}] = {o.value}")
    return "\n".join(lines) + "\n"

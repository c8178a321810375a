"""named: what the names of a program mean in its streamed graph, and back."""

from __future__ import annotations

from ..program.expr import loads
from ..program.graph import Reduce
from ..program.streamed import Streamed


def resolve(streamed: Streamed, name: str) -> str:
    """The tile node or state that a name of the program stands for."""
    known = (*(n.name for n in streamed.tile), *(s.name for s in streamed.states))
    found = name if name in known else streamed.program.aliases.get(name)
    return found if found in known else _extreme(streamed, name)


def _extreme(streamed: Streamed, name: str) -> str:
    """`P.max` of a program that has other words for a softmax's parts: the one running maximum that `P` hangs on."""
    whole, _, op = name.rpartition(".")
    node = resolve(streamed, whole) if op in ("max", "min") else ""
    hangs_on = closure(streamed, node) if node else ()
    found = [s.name for s in streamed.states if s.name in hangs_on and s.node.op == op]
    return found[0] if len(found) == 1 else ""


def display(streamed: Streamed, node: str) -> str:
    """The name that the user gave to a node: `P` for `P.exp`."""
    if "." not in node:
        return node
    plain = [a for a, n in streamed.program.aliases.items() if n == node and "." not in a]
    return plain[0] if plain else node


def closure(streamed: Streamed, name: str) -> set[str]:
    """A tile node or state with all that it hangs on, but for products."""
    seen: set[str] = set()
    stack = [name]
    while stack:
        n = stack.pop()
        if n in seen or n not in streamed.order:
            continue
        seen.add(n)
        node = streamed.tile_node(n)
        state = streamed.state(n)
        if node is not None and not isinstance(node, Reduce):
            stack += [x.tensor for e in node.exprs() for x in loads(e)]
        if state is not None:
            stack += [x.tensor for x in loads(state.node.body)] + list(state.references)
    return {n for n in seen if not isinstance(streamed.tile_node(n), Reduce)}

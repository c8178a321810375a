"""The right numbers in the plainest way: loops that pick what is visible, and an interpreter of one element at a time.

Shares no code with `wgdsl.reference`.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from wgdsl.program import expr as x
from wgdsl.program import graph as g


def visible_keys(i: int, queries: int, keys: int, causal: bool) -> list[int]:
    """Keys that query i sees; causal is aligned at the bottom right."""
    return [j for j in range(keys) if not causal or j - i <= keys - queries]


def attention(q, k, v, *, causal=False, scale=None, see=None):
    """Q[B,M,H,D], K[B,N,G,D], V[B,N,G,E] -> O[B,M,H,E], L[B,H,M]. `see(b, h, i)` gives the keys of a row."""
    q, k, v = (np.asarray(a, np.float64) for a in (q, k, v))
    (batch, queries, heads, depth), (_, keys, groups, _) = q.shape, k.shape
    scale = 1 / math.sqrt(depth) if scale is None else scale
    out, lse = np.zeros((*q.shape[:3], v.shape[3])), np.full((batch, heads, queries), -np.inf)
    for b, i, h in np.ndindex(batch, queries, heads):
        seen = see(b, h, i) if see else visible_keys(i, queries, keys, causal)
        own = h // (heads // groups)
        out[b, i, h], lse[b, h, i] = row(q[b, i, h], k[b, seen, own], v[b, seen, own], scale)
    return out, lse


def row(q, k, v, scale):
    """One query over the keys that it sees; none, or only scores of -inf: 0 and -inf."""
    with np.errstate(all="ignore"):
        scores = k @ q * scale
        if not scores.size or np.all(np.isneginf(scores)):
            return np.zeros(v.shape[-1]), -np.inf
        top = scores.max()
        weights = np.exp(scores - top)
        # one column after the other: a product with NaN in one column leaves the others alone
        return np.array([np.sum(weights * c) for c in v.T]) / weights.sum(), top + np.log(weights.sum())


ACTIVATIONS = {
    "none": lambda y: y,
    "relu": lambda y: max(y, 0.0),
    "gelu": lambda y: y * 0.5 * math.erfc(-y / math.sqrt(2)),
    "silu": lambda y: y / (1 + math.exp(-y)),
}


# One element at a time.

UNARY = {
    "neg": lambda a: -a,
    "exp": lambda a: math.inf if a > 700 else math.exp(a),
    "log": lambda a: -math.inf if a == 0 else math.log(a),
    "tanh": math.tanh,
    "sqrt": math.sqrt,
    "abs": abs,
    "relu": lambda a: a if a != a or a > 0 else 0.0,
}
BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b if b else math.nan if a == 0 or a != a else math.copysign(math.inf, a),
    "min": lambda a, b: math.nan if a != a or b != b else min(a, b),
    "max": lambda a, b: math.nan if a != a or b != b else max(a, b),
}
COMPARE = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


class Interpreter:
    """Elements of a graph's nodes. None stands for an element that doesn't exist."""

    def __init__(self, graph: g.ProgramGraph, arrays: dict, dims: dict, scalars: dict):
        self.graph, self.arrays, self.dims, self.scalars = graph, arrays, dims, scalars
        self.known: dict = {}

    def outputs(self) -> dict[str, np.ndarray]:
        """Only for outputs that cover their arrays."""
        out = {}
        for o in self.graph.outputs:
            out[o.tensor] = np.full([p.evaluate(self.dims) for p in o.shape], np.nan)
            for at in self.box(o.indices):
                value = self.value(o.value, at)
                value = 0.0 if value is None else value
                out[o.tensor][tuple(p.evaluate({**self.dims, **at}) for p in o.access)] = value
        return out

    def box(self, indices):
        sizes = [range(self.graph.extents[i].evaluate(self.dims)) for i in indices]
        return [dict(zip(indices, at, strict=True)) for at in itertools.product(*sizes)]

    def element(self, name: str, at: tuple[int, ...]):
        key = (name, at)
        if key not in self.known:
            self.known[key] = self._element(self.graph.by_name[name], at)
        return self.known[key]

    def _element(self, n: g.Node, at: tuple[int, ...]):
        if isinstance(n, g.Input):
            return self.arrays[n.name][at].item()
        here = dict(zip(n.indices, at, strict=True))
        if isinstance(n, g.Reduce):
            return self._reduced(n, here)
        if isinstance(n, g.Map):
            return self.value(n.body, here)
        assert isinstance(n, g.Domain)
        inside = self.value(n.predicate, here)
        body = self.value(n.body, here) if inside else None
        return self.value(n.otherwise, here) if body is None and n.otherwise is not None else body

    def _reduced(self, n: g.Reduce, here: dict):
        seen = [(self.value(n.body, {**here, **at}), at) for at in self.box(n.axes)]
        seen = [(v, at) for v, at in seen if v is not None]
        if n.op.startswith("arg"):
            numbers = [(v, at[n.axes[0]]) for v, at in seen if v == v] or [(0, at[n.axes[0]]) for _, at in seen]
            sign = 1 if n.op == "argmin" else -1
            return min(numbers, key=lambda e: (sign * e[0], e[1]))[1] if numbers else -1
        total = {"sum": 0.0, "max": -math.inf, "min": math.inf}[n.op]
        for v, _ in seen:
            total = BINARY["add" if n.op == "sum" else n.op](total, v)
        return total

    def value(self, e: x.Expr, at: dict):
        if isinstance(e, x.Load):
            return self.element(e.tensor, tuple(p.evaluate({**self.dims, **at}) for p in e.access))
        if isinstance(e, x.Const):
            return e.value
        if isinstance(e, x.Scalar):
            return self.scalars[e.name]
        if isinstance(e, x.IndexValue | x.Affine):
            number = e.poly.evaluate({**self.dims, **at})
            return number if isinstance(e, x.IndexValue) else number >= 0
        args = [self.value(c, at) for c in e.children()]
        return None if any(a is None for a in args) else self._combined(e, args)

    def _combined(self, e: x.Expr, args: list):
        if isinstance(e, x.Apply):
            return (UNARY if len(args) == 1 else BINARY)[e.fn](*args)
        if isinstance(e, x.Cmp):
            return COMPARE[e.op](*args)
        if isinstance(e, x.Select):
            return args[1] if args[0] else args[2]
        assert isinstance(e, x.Logic)
        return not args[0] if e.op == "not" else all(args) if e.op == "and" else any(args)

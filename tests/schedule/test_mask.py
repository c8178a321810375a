"""Interval analysis against brute force: what it calls empty is empty, what it calls full is full."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lowering import SIMPLE, graph, schedule
from wgdsl.program.expr import Affine, conjuncts
from wgdsl.program.poly import Poly
from wgdsl.schedule.lower import _domain
from wgdsl.schedule.mask import Trip, make_trip
from wgdsl.schedule.plan import Plan, make_plan
from wgdsl.transform.canonicalise import canonicalise
from wgdsl.transform.stream import stream

MASKED = """wg 1
program attention {{
  dims B, G, R, M, N, W, D, E
  dims H = G * R
  type T in {{f16, bf16}}
  in Q: T[B, M, H, D]
  in K: T[B, N, G, D]
  in V: T[B, N, G, E]
  out O: T[B, M, H, E]
  out L: f32[B, H, M]
  let h = g * R + r
  S[b,g,r,i,j] = sum[d] Q[b,i,h,d] * K[b,j,g,d]
  X[b,g,r,i,j] = S[b,g,r,i,j] {where}
  P[b,g,r,i,j] = softmax[j] X[b,g,r,i,j]
  O[b,i,h,e] = sum[j] P[b,g,r,i,j] * V[b,j,g,e]
  L[b,h,i] = logsumexp[j] X[b,g,r,i,j]
}}
"""
PREDICATES = {
    "none": "",
    "causal": "where j <= i + N - M",
    "window": "where j <= i + N - M and j >= i + N - M - W",
    "left": "where j + W >= i",
    "strided": "where 2 * j <= i + W",
    "anti": "where i + j <= N and j >= 3",
}


def plan_of(where: str, descending: bool) -> Plan:
    g = graph(MASKED.format(where=PREDICATES[where]), dims={"D": 64, "E": 64})
    text = SIMPLE if descending else SIMPLE.replace(" descending", "")
    return make_plan(stream(canonicalise(g), "j"), schedule(text))


PLANS = {(w, d): plan_of(w, d) for w in PREDICATES for d in (True, False)}


def bound(trip: Trip, values: dict[str, int]) -> dict[str, int]:
    for name, value in (*trip.lets, *trip.mask_lets):
        values[name] = value.evaluate(values)
    return values


def visible(plan: Plan, i: int, j: int, dims: dict[str, int]) -> bool:
    if not 0 <= j < dims["N"]:
        return False
    at = {**dims, "i": i, "j": j}
    domain = conjuncts(_domain(plan.streamed))
    return all(isinstance(p, Affine) and p.poly.evaluate(at) >= 0 for p in domain)


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from(sorted(PLANS)),
    st.integers(1, 300),
    st.integers(0, 300),
    st.integers(0, 200),
    st.integers(0, 2),
    st.integers(0, 1),
)
def test_trip_against_brute_force(key, m, n, w, block, wg):
    plan = PLANS[key]
    dims = {"M": m, "N": n, "W": w}
    trip = make_trip(plan, _domain(plan.streamed))
    size, rows = plan.tiles["j"], plan.tiles["i"]
    first = block * rows
    if first >= m:
        return
    at = bound(trip, {**dims, "i.lo": first, "wg": wg})
    count = trip.n.evaluate(at)
    tiles = [trip.tile(Poly.of(p)).evaluate(at) for p in range(count)]
    cta = range(first, min(first + rows, m))
    seen = {j for i in cta for j in range(-size, n + size) if visible(plan, i, j, dims)}
    assert all(j // size in tiles for j in seen), "a tile with visible elements isn't visited"
    mine = [i for i in cta if first + 64 * wg <= i < first + 64 * (wg + 1)]
    for p, tile in enumerate(tiles):
        masked = [q for q in trip.partials if q.start.evaluate(at) <= p and (q.stop is None or p < q.stop.evaluate(at))]
        if not masked:
            assert all(visible(plan, i, j, dims) for i in mine for j in range(tile * size, tile * size + size))
    for j in (j for t in tiles for j in range(t * size, min(t * size + size, n))):
        outside = (trip.seen_stop is not None and j >= trip.seen_stop.evaluate(at)) or (
            trip.seen_start is not None and j < trip.seen_start.evaluate(at)
        )
        assert not (outside and j in seen), "an element that some row sees would be cleared"


@pytest.mark.parametrize("where", ["causal", "window"])
def test_loops_split_where_classes_change(where):
    trip = make_trip(PLANS[where, True], _domain(PLANS[where, True].streamed))
    assert {p.name for p in trip.partials} == {"end", "where"} | ({"where1"} if where == "window" else set())

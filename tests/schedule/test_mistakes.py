"""A step left out, doubled or moved, everywhere: refused at a place in the schedule, or else the numbers are right.

What passes is simulated, so that a schedule which the checks take neither waits for ever nor gives other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.lowering import FA3, PIPELINED, SIMPLE, attention, gemm, schedule
from tests.shipped import attention as shipped_attention
from tests.shipped import gemm as shipped_gemm
from tests.sim.test_shipped import close, inputs
from wgdsl.diagnostics.model import WgError
from wgdsl.reference.evaluate import evaluate
from wgdsl.schedule import lower, stream_axis
from wgdsl.sim import simulate
from wgdsl.syntax import ast
from wgdsl.transform.canonicalise import canonicalise
from wgdsl.transform.stream import stream
from wgdsl.verify import check

CASES = {
    "simple": (SIMPLE, lambda: attention(True, 64), shipped_attention("simple", True, 64)),
    "fa3": (FA3, lambda: attention(True, 64), shipped_attention("fa3", True, 64)),
    "pipelined": (PIPELINED, gemm, shipped_gemm("nk")),
}
OURS = {"WG0701", "WG0702", "WG0703", "WG0704", "WG0709", "WG0710", "WG0711", "WG0712", "WG0713"}
Steps = tuple[ast.Step, ...]
Place = tuple[int, ...]


def places(steps: Steps, at: Place = ()) -> Iterator[Place]:
    """Where a step may stand, inside others too."""
    for k, s in enumerate(steps):
        yield (*at, k)
        if hasattr(s, "body"):
            yield from places(s.body, (*at, k))
    yield (*at, len(steps))


def step_at(steps: Steps, at: Place) -> ast.Step | None:
    k, *rest = at
    if k == len(steps):
        return None
    return step_at(steps[k].body, tuple(rest)) if rest else steps[k]  # type: ignore[attr-defined]


def spliced(steps: Steps, at: Place, new: Steps, gone: int) -> Steps:
    """`new` in place of `gone` steps."""
    k, *rest = at
    if rest:
        inner = replace(steps[k], body=spliced(steps[k].body, tuple(rest), new, gone))  # type: ignore
        return (*steps[:k], inner, *steps[k + 1 :])
    return (*steps[:k], *new, *steps[k + gone :])


def mistakes(steps: Steps) -> Iterator[tuple[str, Steps]]:
    for at in places(steps):
        s = step_at(steps, at)
        if s is None:
            continue
        name = s.span.text.partition("{")[0].strip() if s.span else ""
        left = spliced(steps, at, (), 1)
        yield f"no {name}", left
        yield f"{name} twice", spliced(steps, at, (s,), 0)
        for to in places(left):
            if to != at:
                yield f"{name} at {to}", spliced(left, to, (s,), 0)


@cache
def expected(name: str, sizes: tuple[int, int]):
    _, graph, shipped = CASES[name]
    call = inputs(shipped, *sizes)
    return call, evaluate(graph(), *call), evaluate(graph(), *call, round_operands=True)


def refused(streamed, s: ast.Schedule, name: str) -> set[str]:
    try:
        checked = check(lower(streamed, s))
    except WgError as e:
        assert all(p.span is not None for p in e.problems)
        return {p.code for p in e.problems}
    for sizes in ((150, 300), (70, 0)):
        call, exact, rounded = expected(name, sizes)
        got = simulate(checked, *call)
        for tensor, value in exact.items():
            close(tensor, np.asarray(got[tensor], dtype=np.float64), value, rounded[tensor])
    return set()


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_refused_or_harmless(name):
    text, graph, _ = CASES[name]
    s = schedule(text)
    streamed = stream(canonicalise(graph()), *stream_axis(s))
    codes: set[str] = set()
    for k, body in enumerate(s.items):
        if isinstance(body, ast.RoleBody):
            for what, steps in mistakes(body.steps):
                changed = replace(s, items=(*s.items[:k], replace(body, steps=steps), *s.items[k + 1 :]))
                found = refused(streamed, changed, name)
                assert not found & OURS, f"{what}: events are derived, so these are our defect"
                codes |= found
    assert {"WG0417", "WG0419", "WG0422", "WG0424"} <= codes

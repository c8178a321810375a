"""`joined`: what the role program of an item holds, and what `joined` excludes."""

from __future__ import annotations

import pytest

from tests.lowering import FA3, attention, lowered
from wgdsl.diagnostics.model import WgError
from wgdsl.roles.model import Compute, If, Items, MapOp, NextItem, ReduceOp, Role, Tma, Wgmma, walk
from wgdsl.verify import check


def edited(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


JOINED = edited(
    FA3,
    ("grid   over", "grid persistent joined over"),
    ("smem Qs = Q[i] by tma", "smem Qs = Q[i] by tma ring 2"),
    (" over Qs ", " "),
)


def role(name: str) -> tuple[Role, Items, If]:
    """A role, its items, and the branch that is taken where two items are joined."""
    program = lowered(attention(), JOINED)
    check(program)
    found = next(r for r in program.kernels[0].roles if r.name == name)
    items = next(s for s in found.steps if isinstance(s, Items))
    at = next(k for k, s in enumerate(items.body) if isinstance(s, NextItem))
    return found, items, next(s for s in items.body[at:] if isinstance(s, If))


def test_one_iteration_of_two_items():
    _, items, joint = role("math")
    assert items.joined and items.source == "stride"
    assert [s.acc for s in walk(joint.then) if isinstance(s, Wgmma)] == ["S", "O"]
    (new,) = (s for s in walk(joint.then) if isinstance(s, Compute))
    assert [op.dst for op in new.ops if isinstance(op, ReduceOp)] == ["P.max.next", "P.sum.next"]
    assert all("next.i.lo" in op.rows.origin.symbols() for op in new.ops if isinstance(op, MapOp | ReduceOp))
    (alone,) = joint.other
    assert isinstance(alone, If) and [s.acc for s in walk(alone.then) if isinstance(s, Wgmma)] == ["O"]


def test_the_loader_goes_ahead_too():
    *_, joint = role("load")
    copies = [
        (s.buffer, bool({"next.b"} & frozenset().union(*(c.symbols() for c in s.coords))))
        for s in joint.then
        if isinstance(s, Tma)
    ]
    assert copies == [("Qs", True), ("Ks", True), ("Qs", True), ("Vs", False)]


REFUSED = {
    "no further item": (("persistent joined", "joined"), "WG0427", "joined"),
    "a tile's slot for two items": (("Q[i] by tma ring 2", "Q[i] by tma"), "WG0427", "Qs"),
    "a result over what the next item fills": (("O[i] by tma", "O[i] by tma over Qs"), "WG0427", "Os"),
    "an awaited store": (("finish O, L via Os", "finish O, L via Os\n    await Os"), "WG0405", "await Os"),
    "several sets of an operand": (("  role load", "  regs P ring 2\n  role load"), "WG0405", "pack P"),
    "skipped tiles": (("  role load", "  skip empty per warpgroup\n  role load"), "WG0405", "skip"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    edit, code, place = REFUSED[name]
    with pytest.raises(WgError) as caught:
        lowered(attention(), edited(JOINED, edit))
    (problem,) = caught.value.problems
    assert problem.code == code and problem.span is not None and place in problem.span.text
    assert problem.help()


LOOP = JOINED[JOINED.index("in turn {") : JOINED.index("    finish O")]


def with_loop(steps: str) -> str:
    return JOINED.replace(LOOP, steps + " }\n")


SYNCHRONOUS = "issue S[j] = wgmma(Qs, Ks[j]) await S[j] compute P[j] rescale O issue O += wgmma(P[j], Vs[j]) await O[j]"
HELD = "await S[j] compute P[j] rescale O issue O += wgmma(P[j], Vs[j]) issue S[j+1] = wgmma(Qs, Ks[j+1]) await O[j]"
LOOPS = {
    "no step ahead": (SYNCHRONOUS, "WG0427", "no step one tile ahead"),
    "a product across iterations": (HELD, "WG0405", "`S[j]` in flight from one iteration to the next"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_refused_loops(name):
    steps, code, words = LOOPS[name]
    with pytest.raises(WgError) as caught:
        lowered(attention(), with_loop(steps))
    (problem,) = caught.value.problems
    assert problem.code == code and words in problem.title() and problem.span is not None


INSIDE = "in turn {" + LOOP.removeprefix("in turn {").replace("}", "", 1)
ONE = edited(
    JOINED, ("2 warpgroups", "1 warpgroup"), ("i 128", "i 64"), ("fill Qs.0", "fill Qs"), ("once { fill Qs.rest }", "")
)
AROUND = edited(ONE, ("for j {\n      " + LOOP, "in turn { for j { " + INSIDE.removeprefix("in turn {") + " }\n"))
WHOLE = {
    "a turn around the loop": (AROUND, "a turn around the loop"),
    "whole items": (
        edited(AROUND, ("math : 1 warpgroup", "math : 2 warpgroups"), ("split i ", "split tiles ")),
        "`split tiles`",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_refused_items(name):
    text, words = WHOLE[name]
    with pytest.raises(WgError) as caught:
        lowered(attention(), text)
    (problem,) = caught.value.problems
    assert problem.code == "WG0405" and words in problem.title() and "joined" in problem.title()

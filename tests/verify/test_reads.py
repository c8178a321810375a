"""Integers that tensors say: whatever they are the protocol holds; what an item does hangs on what is read for the item."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.examples.test_varlen import kernel as packed
from tests.schedule.test_reads import compiled
from tests.sim.programs import edit
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import verified
from wgdsl.program.expr import Affine
from wgdsl.program.poly import Poly, element
from wgdsl.roles import model as m
from wgdsl.roles.model import RoleProgram
from wgdsl.verify.letters import letters
from wgdsl.verify.structural import structural_problems


@pytest.fixture(scope="module")
def program() -> RoleProgram:
    return compiled("length", "fa3").roles


def problems(program: RoleProgram) -> list[str]:
    return [p.title() for p in structural_problems(program.kernels[0])]


def test_lengths_are_tried_as_dims_are(program):
    found = letters(program.kernels[0], 5)
    assert {0, 1} <= {x.dims["len.b"] for x in found}
    assert max(x.trips for x in found) == 5
    assert all(x.dims["N"] == 1 for x in found), "what is read says all that the extent could"


def test_roles_that_differ_by_what_is_read_are_rejected(program):
    """A loader that goes by the extent while the others go by the length: their tiles don't match."""
    with pytest.raises(WgError) as caught:
        verified(edit(program, by_extent, role="load"))
    assert caught.value.problems[0].code == "WG0720"  # a role stays
    verified(edit(program, by_extent))  # all alike


def by_extent(s: m.Step) -> m.Step:
    return replace(s, value=s.value.substitute({"len.b": Poly.of("N")})) if isinstance(s, m.Let) else s


def test_rules(program):
    one = next(s for r in program.kernels[0].roles for s in m.walk(r.steps) if isinstance(s, m.Read))
    b = Poly.of("b")
    other = replace(one, value=element("len", [b + 1]))
    first = [True]

    def once(s: m.Step) -> m.Step:
        if isinstance(s, m.Read) and first:
            first.pop()
            return other
        return s

    assert problems(edit(program, once)) == ["`len.b` is another integer elsewhere"]
    written = edit(program, lambda s: replace(s, value=element("L", [b, 0 * b, 0 * b])) if isinstance(s, m.Read) else s)
    assert "integers are read from inputs of i32" in problems(written)[0]
    let = edit(program, lambda s: replace(s, value=one.value) if isinstance(s, m.Let) and s.name == "j.hi" else s)
    assert "elements of tensors stand in `read` only" in problems(let)
    inner = edit(program, lambda s: m.If(cond=Affine(poly=Poly.of("N")), then=(s,)) if isinstance(s, m.Read) else s)
    assert problems(inner)[0] == "`len.b` steers the role, and isn't read once for the whole item"


def test_items_are_passed_over_by_what_is_read_of_each():
    program = packed("varlen", "sm_90a", True).roles
    assert not problems(program)
    other = edit(program, lambda s: replace(s, reads=(replace(s.reads[0], high=Poly.of(5)),)) if isinstance(s, m.Fetch) else s)
    assert set(problems(other)) == {
        "what items are passed over by is read of each item first",
        "`i.left` is another item's there: it isn't read of the item that may be passed over",
    }

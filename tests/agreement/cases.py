"""Random cases: a shape and up to three changes. By hypothesis, or from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from random import Random

from hypothesis import strategies as st

from tests.agreement.disturb import Change, changes, disturbed
from tests.agreement.programs import build
from tests.agreement.shapes import Choose, Shape, shape
from wgdsl.roles.model import RoleProgram

HOW_MANY = (0, 1, 0, 1, 2, 1, 2, 0, 3)  # changes


@dataclass(frozen=True, kw_only=True)
class Case:
    shape: Shape
    changes: tuple[Change, ...] = ()

    @cached_property
    def program(self) -> RoleProgram:
        return disturbed(build(self.shape), self.changes)

    @property
    def warpgroups(self) -> int:
        return self.shape.warpgroups


def case(choose: Choose, how_many: tuple[int, ...] = HOW_MANY) -> Case:
    return Case(shape=shape(choose), changes=changes(choose, choose(how_many)))


@st.composite
def cases(draw, how_many: tuple[int, ...] = HOW_MANY) -> Case:
    return case(lambda options: draw(st.sampled_from(options)), how_many)


def seeded(seed: int) -> Case:
    """The same on every machine."""
    return case(Random(seed).choice)

"""Random cases: a shape and up to three changes. By hypothesis, or from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from random import Random

from hypothesis import strategies as st

from tests.agreement.copying import copying
from tests.agreement.disturb import Change, changes, disturbed
from tests.agreement.programs import build
from tests.agreement.shapes import Choose, Shape, shape
from tests.sim import copying as threads
from tests.sim.copying import Copying
from wgdsl.roles.model import RoleProgram

HOW_MANY = (0, 1, 0, 1, 2, 1, 2, 0, 3)  # changes


@dataclass(frozen=True, kw_only=True)
class Case:
    shape: Shape | Copying
    changes: tuple[Change, ...] = ()

    @cached_property
    def program(self) -> RoleProgram:
        right = threads.build(self.shape) if isinstance(self.shape, Copying) else build(self.shape)
        return disturbed(right, self.changes)

    @property
    def warpgroups(self) -> int:
        return self.shape.warpgroups


KINDS: dict[str, Callable[[Choose], Shape | Copying]] = {"sm_90a": shape, "sm_80": copying}  # shapes by the target they are for


def case(choose: Choose, how_many: tuple[int, ...] = HOW_MANY, kind: str = "sm_90a") -> Case:
    return Case(shape=KINDS[kind](choose), changes=changes(choose, choose(how_many)))


@st.composite
def cases(draw, how_many: tuple[int, ...] = HOW_MANY, kind: str = "sm_90a") -> Case:
    return case(lambda options: draw(st.sampled_from(options)), how_many, kind)


def seeded(seed: int, kind: str = "sm_90a") -> Case:
    """The same on every machine."""
    return case(Random(seed).choice, kind=kind)

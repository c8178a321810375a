"""The explicit form is read back: whole kernels, single lines, expressions, and the places that lines come from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wgdsl.driver
from tests.roles.random import Pieces, polys
from tests.shipped import KERNELS, ROOT, Shipped, attention, field_ids
from wgdsl.driver import prepare
from wgdsl.forms import explained
from wgdsl.foundation.resources import schedule_files
from wgdsl.foundation.source import Source
from wgdsl.program.poly import Poly
from wgdsl.roles import model as m
from wgdsl.roles.expressions import expr_text
from wgdsl.roles.read import read_roles
from wgdsl.roles.rows import OPS, STEPS, Row
from wgdsl.roles.scope import Names, Scope
from wgdsl.roles.terms import integer, number, predicate
from wgdsl.roles.text import roles_text
from wgdsl.syntax.formatter import fmt
from wgdsl.syntax.lines import Explicit
from wgdsl.syntax.parser import parse, read
from wgdsl.syntax.printer import show

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")  # strategies over a whole kernel

BASE = attention("fa3_persistent", True, 64)
EXAMPLES = settings.default.max_examples // 5  # of each row
SYMBOLS = ("M", "N", "wg", "b", "i.lo", "G")


@cache
def text_of(shipped: Shipped) -> str:
    """What `wgdsl explain` prints."""
    settings = wgdsl.driver.Settings(options=dict(shipped.options), dims=dict(shipped.dims), types=shipped.types)
    _, journal = prepare(ROOT / shipped.program, schedule=shipped.schedule, target=shipped.target, settings=settings)
    return explained(journal.forms)


def block_of(text: str) -> Explicit:
    (block,) = (s for s in parse(Source("explicit.wg", text)).schedules if isinstance(s, Explicit))
    return block


def steps_with_places(program: m.RoleProgram) -> list[tuple]:
    steps = [s for k in program.kernels for r in k.roles for s in m.walk(r.steps)]
    return [(s.note, s.span.place if s.span is not None else None) for s in steps]


def every_schedule() -> tuple[Shipped, ...]:
    """The kernels of the goldens, and every schedule that is shipped."""
    files = [parse(read(path)).schedules for path in schedule_files() if path.stem.startswith("attention")]
    named = [s for schedules in files if schedules[0].program == "attention" for s in schedules]
    more = [attention(s.name, True, 64, lse=False) for s in named]
    return (*KERNELS, *(replace(s, target=None) for s in more if s not in KERNELS))


def params() -> list:
    """Those that only differ in a head dim or an output from others are for the thorough run."""
    return [pytest.param(s, marks=() if s in KERNELS else pytest.mark.slow) for s in every_schedule()]


@pytest.mark.parametrize("shipped", params(), ids=field_ids(every_schedule()))
def test_every_shipped_schedule_is_read_back(shipped: Shipped):
    kernel, text = shipped.compile(), text_of(shipped)
    again = wgdsl.driver.compile(text, build=False)
    assert again.roles == kernel.roles
    assert again.forms.texts == kernel.forms.texts, "another CUDA text"
    assert fmt(Source("explicit.wg", text)) == text
    file = parse(Source("explicit.wg", text))
    assert parse(Source("shown.wg", show(file))) == file


def test_notes_and_places_come_back():
    kernel = BASE.compile()
    again = read_roles(block_of(text_of(BASE)), kernel.graph)
    for (note, place), (told, origin) in zip(steps_with_places(kernel.roles), steps_with_places(again), strict=True):
        assert told == note or (place is not None and note == place.words and told == "")
        assert (origin.path, origin.line, origin.words) == ((place.path, place.line, place.words) if place else ("", 0, ""))


# Lines, by their rows.


@cache
def pieces() -> Pieces:
    return Pieces(BASE.compile().roles.kernels[0], "math", SYMBOLS, ("scale",))


def reread(steps: tuple[m.Step, ...]) -> tuple[m.Step, ...]:
    """The steps, printed and read back inside the items of the role `math`."""
    program = BASE.compile().roles
    kernel = program.kernels[0]
    roles = tuple(replace(r, steps=(m.Items(body=steps),)) for r in kernel.roles if r.name == "math")
    text = "wg 1\n" + roles_text(replace(program, kernels=(replace(kernel, roles=roles),)))
    again = read_roles(block_of(text), BASE.compile().graph)
    (items,) = again.kernels[0].roles[0].steps
    assert isinstance(items, m.Items)
    return items.body


@pytest.mark.parametrize("row", STEPS, ids=lambda r: r.pattern)
def test_any_step_is_read_back(row: Row):
    @settings(max_examples=EXAMPLES)
    @given(pieces().row(row))
    def same(step: m.Step):
        assert reread((step,)) == (step,)

    same()


@pytest.mark.parametrize("row", OPS, ids=lambda r: r.pattern)
def test_any_operation_is_read_back(row: Row):
    @settings(max_examples=EXAMPLES)
    @given(pieces().row(row), pieces().row(OPS[-2]))
    def same(op: m.Op, other: m.Op):
        step = m.Compute(ops=(op, other, op))
        assert reread((step,)) == (step,)

    same()


# Expressions.


def scope() -> Scope:
    kernel = BASE.compile().roles.kernels[0]
    names = Names({"tensor": {t.name: t for t in kernel.tensors}, "value": {v.name: v for v in kernel.values}})
    return Scope(names=names, integers=frozenset(SYMBOLS), scalars=frozenset(("scale",)))


def parsed(text: str):
    """The AST of an expression, as it stands in the condition of a program."""
    (program,) = parse(Source("e.wg", f"program p {{ require {text} }}")).programs
    return program.items[0].condition  # type: ignore[union-attr]


@given(polys(SYMBOLS, 12))
def test_integers_are_read_back(p: Poly):
    assert integer(scope(), parsed(str(p))) == p


@given(st.data())
def test_numbers_are_read_back(data):
    e = data.draw(pieces().numbers(12))
    again = number(scope(), parsed(expr_text(e)))
    assert again == e and expr_text(again) == expr_text(e)  # 1 and 1.0 and true are equal, and not the same


@given(st.data())
def test_conditions_are_read_back(data):
    e = data.draw(pieces().conditions())
    assert predicate(scope(), parsed(expr_text(e))) == e


@pytest.mark.parametrize(
    "text, poly",
    [
        ("i.lo < N", Poly.of("N") - Poly.of("i.lo") - 1),
        ("i.lo <= N", Poly.of("N") - Poly.of("i.lo")),
        ("i.lo > N", Poly.of("i.lo") - Poly.of("N") - 1),
        ("(M >= N)", Poly.of("M") - Poly.of("N")),
        ("M - 2 * 3 >= N / 1", Poly.of("M") - 6 - Poly.of("N")),
    ],
)
def test_a_hand_writes_comparisons_as_they_come(text: str, poly: Poly):
    assert predicate(scope(), parsed(text)).poly == poly  # type: ignore[attr-defined]

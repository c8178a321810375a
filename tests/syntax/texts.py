"""Short ways to parse pieces of the language."""

from __future__ import annotations

from pathlib import Path

from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.foundation.source import Source
from wgdsl.syntax import ast
from wgdsl.syntax.parser import parse

ROOT = Path(__file__).parents[2]
SHIPPED = sorted([*ROOT.glob("examples/*/*.wg"), *ROOT.glob("schedules/*/*.wg")])


def parsed(text: str) -> ast.File:
    return parse(Source("t.wg", text))


def problems(text: str) -> tuple[Problem, ...]:
    """What the parser says about a text, () if it takes it."""
    try:
        parsed(text)
    except WgError as e:
        return e.problems
    return ()


def codes(text: str) -> list[str]:
    return [p.code for p in problems(text)]


def items(lines: str) -> tuple[ast.ProgramItem, ...]:
    """The items of a program that holds the lines."""
    return parsed(f"program p {{\n{lines}\n}}\n").programs[0].items


def plan(lines: str) -> tuple[ast.ScheduleItem, ...]:
    """The items of a schedule that holds the lines."""
    return parsed(f"schedule s for p on sm_90a {{\n{lines}\n}}\n").schedules[0].items


def steps(text: str) -> tuple[ast.Step, ...]:
    (body,) = plan(f"math {{\n{text}\n}}")
    assert isinstance(body, ast.RoleBody)
    return body.steps


def expression(text: str) -> ast.Expr:
    (item,) = items(f"let x = {text}")
    assert isinstance(item, ast.LetDecl)
    return item.value

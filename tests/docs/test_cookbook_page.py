"""Each recipe of the cookbook is a change of the attention program that runs, on both targets."""

from __future__ import annotations

import re

import pytest

import wgdsl
from tests.docs.pages import ROOT, blocks
from tests.programs.edits import ATTENTION, plain
from wgdsl.tools.running import run

PAGE = ROOT / "docs" / "cookbook.md"
RECIPES = [(kind, text) for kind, text in blocks(PAGE) if kind.startswith("recipe")]
EXAMPLES = [(kind, text) for kind, text in blocks(PAGE) if kind.startswith("example")]
SCHEDULES = {s: plain(f"schedules/{s}.wg") for s in ("hopper/attention_three", "ampere/attention_fa2")}
STATEMENT = re.compile(r"(\w+)\[.*?\] +=")
ARGUMENT = re.compile(r"(?:in|out) +(\w+):")


def changed(recipe: str) -> str:
    """The attention program with the lines of a recipe: statements stand where the first of them did that they replace, and
    arguments in the place of those of their name."""
    own = {m[1] for line in recipe.splitlines() if (m := ARGUMENT.match(line))}
    replaced = [line for line in ATTENTION.splitlines() if (m := ARGUMENT.match(line)) and m[1] in own]
    lines, old = recipe.splitlines(), [line for line in ATTENTION.splitlines() if line not in replaced]
    added = [line for line in lines if not STATEMENT.match(line)]
    new = {m[1]: line for line in lines if (m := STATEMENT.match(line))}
    known = {m[1] for line in old if (m := STATEMENT.match(line))}
    out: list[str] = []
    for line in old:
        found = STATEMENT.match(line)
        if line.startswith("let h"):
            out += added
        if found and found[1] in new:
            while (name := next(iter(new))) != found[1]:
                assert name not in known
                out.append(new.pop(name))
            out.append(new.pop(name))
        else:
            out.append(line)
    assert not new
    return "\n".join(out) + "\n"


@pytest.mark.parametrize("settings, schedule", EXAMPLES)
def test_schedule(settings, schedule):
    dims = {"D": 64, "E": 64, **{d: int(n) for d, n in re.findall(r"(\w)=(\d+)", settings)}}
    program = next(changed(r) for _, r in RECIPES if "here[" in r) if "documents" in settings else ATTENTION
    kernel = wgdsl.compile(program, schedule=f"wg 1\n{schedule}", dims=dims, build=False)
    more = {"R": 2} if "R" not in dims else {}
    for m, n in ((1, 200), (70, 130)):
        assert run(kernel, {"B": 2, "M": m, "N": n, "G": 2, **more}, device="sim", check=True).right, (m, n)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("settings, recipe", RECIPES)
def test_recipe(settings, recipe, schedule):
    dims = {"D": 64, "E": 64, **{d: int(n) for d, n in re.findall(r"(\w)=(\d+)", settings)}}
    kernel = wgdsl.compile(changed(recipe), schedule=SCHEDULES[schedule], dims=dims, build=False)
    more = {"W": 50} if "dims W" in recipe else {}
    for m, n in ((70, 200), (200, 130)):
        assert run(kernel, {"B": 2, "M": m, "N": n, "G": 1, "R": 2, **more}, device="sim", check=True).right, (m, n)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("recipe", [r for _, r in RECIPES if "here[" in r or "keep[" in r])
def test_a_recipe_that_tensors_say_listed(recipe, schedule):
    base = re.findall(r"^schedule (\w+)", SCHEDULES[schedule], re.M)[0]
    listed = f"{SCHEDULES[schedule].removeprefix('wg 1')}schedule listed extends {base} {{ stream j descending listed }}\n"
    kernel = wgdsl.compile(changed(recipe) + listed, schedule="listed", dims={"D": 64, "E": 64}, build=False)
    for m, n in ((70, 200), (200, 130)):
        assert run(kernel, {"B": 2, "M": m, "N": n, "G": 1, "R": 2}, device="sim", check=True).right, (m, n)


def test_every_example_is_pointed_to():
    page = PAGE.read_text("utf-8")
    folders = {p.parent.name for p in ROOT.glob("examples/*/run.py")} - {"attention"}
    assert {f for f in folders if f"`{f}`" not in page and f"`examples/{f}`" not in page} == set()

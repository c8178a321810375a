"""What the documents show is what the compiler takes: every `wg` block is read, and those that make a kernel are compiled."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import wgdsl
from tests.docs.pages import PAGES, ROOT, blocks
from tests.programs.test_language import SCHEDULE
from wgdsl.cli import ENVIRONMENT, OK, app, main
from wgdsl.forms import COMPILED, EMITS, PASSES
from wgdsl.foundation.source import Source
from wgdsl.roles.matching import Match, matched
from wgdsl.roles.rows import TABLES
from wgdsl.roles.text import roles_text
from wgdsl.runtime.cuda import available
from wgdsl.syntax.lines import Line
from wgdsl.syntax.parser import parse
from wgdsl.tools.running import run

FRAMES = {
    "": "{}",
    "explicit": "wg 1\nroles s for p on sm_90a {{ kernel k {{\n{}\n}} }}\n",
    "explicit role": "wg 1\nroles s for p on sm_90a {{ kernel k {{ role r : warpgroups 0 +: 1 {{\n{}\n}} }} }}\n",
    "explicit ops": "wg 1\nroles s for p on sm_90a {{ kernel k {{ role r : warpgroups 0 +: 1 {{ compute {{\n{}\n}} }} }} }}\n",
    "example": "wg 1\n{}",
    "added": "wg 1\n{}",
    "unbuilt": "wg 1\n{}",
    "steps": "wg 1\nschedule s for p on sm_90a {{ math {{\n{}\n}} }}\n",
    "recipe": "wg 1\nprogram p {{\n{}\n}}\n",
    "items": "wg 1\nprogram p {{\n{}\n}}\n",
    "refused": "wg 1\nprogram p {{\n{}\n}}\n",
}
LOADS = {
    "S[j]": "fill Qs  for j { fill Ks[j]  fill Vs[j] }",
    "S[j+1]": "fill Qs.0  for j { fill Ks[j+1]  once { fill Qs.rest }  fill Vs[j] }",
}


EVERY = [(page.name, kind, text) for page in PAGES for kind, text in blocks(page)]


@pytest.mark.parametrize("page, kind, text", EVERY)
def test_every_block_is_read(page, kind, text):
    parse(Source(page, FRAMES.get(kind, FRAMES.get(kind.partition(" ")[0], "{}")).format(text)))


def test_the_vocabulary_of_the_explicit_form_is_whole():
    """Every row of the vocabulary has a line in the documentation."""
    shown = [parse(Source(p, FRAMES[kind].format(text))) for p, kind, text in EVERY if kind.startswith("explicit")]
    found = {id(m.row): m for file in shown for m in _lines(file.schedules)}
    missing = [r.pattern for name, table in TABLES.items() if name != "head" for r in table if id(r) not in found]
    assert missing == []


def _lines(node) -> Iterator[Match]:
    """Every line in a tree, with its row."""
    if isinstance(node, Line):
        yield matched(node)
    parts = node if isinstance(node, tuple) else [getattr(node, f.name) for f in fields(node)] if is_dataclass(node) else []
    for part in parts:
        yield from _lines(part)


def test_the_program_of_one_page_runs_under_the_schedule_of_the_other():
    program, schedule = (blocks(ROOT / "docs" / name)[0][1] for name in ("language.md", "schedule.md"))
    kernel = wgdsl.compile(program, schedule=schedule, dims={"D": 64}, options={"causal": True}, build=False)
    assert run(kernel, {"M": 70, "N": 150}, device="sim", check=True).right


@pytest.mark.parametrize("steps", [text for _, kind, text in EVERY if kind == "steps"])
def test_each_list_of_steps_makes_a_kernel(steps):
    shipped = (ROOT / "schedules" / "hopper" / "attention_fa3.wg").read_text("utf-8")
    load = LOADS["S[j+1]" if "S[j+1]" in steps else "S[j]"]
    schedule = f"{shipped[: shipped.index('  load {')]}  load {{ {load} }}\n  math {{\n{steps}  }}\n}}\n"
    kernel = wgdsl.compile(
        ROOT / "examples" / "attention" / "attention.wg",
        schedule=schedule,
        dims={"D": 64, "E": 64},
        options={"lse": False, "causal": True},
        build=False,
    )
    assert run(kernel, {"B": 1, "G": 1, "R": 1, "M": 130, "N": 200}, device="sim", check=True).right


@pytest.mark.parametrize("items", [text for _, kind, text in EVERY if kind == "items"])
def test_each_list_of_declarations_makes_a_program(items):
    """The lines follow those that the page shows as the beginning of them all."""
    frame = next(text for page, kind, text in EVERY if kind == "" and "program example" in text)
    program = frame.replace("program example", "program gemm").rstrip().removesuffix("}") + items + "}\n"
    kernel = wgdsl.compile(program, schedule=SCHEDULE, build=False)
    for sizes in ({"M": 5, "N": 9, "K": 16}, {"M": 130, "N": 70, "K": 40}):
        assert run(kernel, sizes, device="sim", check=True).right


FILES = {kind.removeprefix("file "): text for _, kind, text in EVERY if kind.startswith("file ")}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files of the language page, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text, "utf-8")


@pytest.mark.parametrize(
    "file, schedule", [(f, s) for f, text in FILES.items() for s in re.findall(r"^schedule (\w+)", text, re.M)]
)
def test_each_schedule_of_the_files_makes_a_kernel(files, file, schedule):
    """Under the name that the file gives it, and right in the simulator."""
    program = "pairs" if file == "pairs.wg" else "product"
    kernel = wgdsl.compile(Path(file), schedule=schedule, program=program, build=False)
    assert kernel.roles.schedule == schedule
    sizes = {"B": 2, "M": 130, "N": 70, "K": 40, "D": 40}
    assert run(kernel, {d: sizes[d] for d in kernel.graph.dims}, device="sim", check=True).right


def test_what_the_files_say_becomes_of_the_schedule(files):
    def shown(name: str, schedule: str, **options) -> str:
        kernel = wgdsl.compile(Path(name), schedule=schedule, program="product", options=options, build=False)
        return roles_text(kernel.roles)

    assert "by 256" in shown("main.wg", "wide")
    assert "stages 4" in shown("mine.wg", "deep") and "stages 3" in shown("mine.wg", "persistent")
    assert "stages 4" in shown("options.wg", "sized", stages=4) and "by 256" in shown("options.wg", "sized", width="wide")


def test_the_files_can_be_tuned(files, capsys):
    with pytest.raises(SystemExit):
        main(["tune", "tuned.wg", "--schedule", "tuned"])
    assert capsys.readouterr().out.splitlines()[-1] == "8 combinations"


@pytest.mark.parametrize("path", ["examples/attention/attention.wg", "schedules/hopper/attention_fa3.wg"])
def test_the_readme_shows_the_files_as_they_are(path):
    shown = [text for _, text in blocks(ROOT / "README.md")]
    assert (ROOT / path).read_text("utf-8") in shown


@pytest.fixture
def console(tmp_path, monkeypatch, capsys):
    """Runs the README's command of that name over its `linear.wg`: exit code, what it prints, what the README shows."""
    linear = next(text for _, text in blocks(ROOT / "README.md") if "program linear" in text)
    monkeypatch.chdir(tmp_path)

    def run_command(name: str, mistake: str = ""):
        Path("linear.wg").write_text(linear.replace(mistake, "") if mistake else linear, "utf-8")
        text = next(t for _, t in blocks(ROOT / "README.md", "") if t.startswith(f"$ .venv/bin/wgdsl {name} "))
        command, shown = text.split("\n", 1)
        with pytest.raises(SystemExit) as exit:
            main([*shlex.split(command)[2:], *(["--device", "sim"] if name == "run" else [])])
        seen = capsys.readouterr()
        return exit.value.code, seen.out + seen.err, shown

    return run_command


def test_the_readme_runs_its_first_kernel(console):
    code, seen, shown = console("run")
    assert code == 0
    assert seen.splitlines()[0] == shown.splitlines()[0]
    assert "Y: right" in seen and "Y: right" in shown


def test_the_readme_shows_what_a_mistake_gives(console):
    code, seen, shown = console("check", mistake="      await A[k]\n")
    assert code == 1
    assert seen.strip() == shown.strip()


def test_the_commands_of_the_readme(tmp_path, monkeypatch, capsys):
    """In their order, as they stand there. Those that need a GPU say so where there is none."""
    commands = [c for _, text in blocks(ROOT / "README.md", "sh") for c in text.splitlines() if c]
    linear = next(text for _, text in blocks(ROOT / "README.md") if "program linear" in text)
    (tmp_path / "linear.wg").write_text(linear, "utf-8")
    monkeypatch.chdir(tmp_path)
    assert len(commands) > 10
    for command in commands:
        program, *given = shlex.split(command, comments=True)
        assert program == "wgdsl"
        needs_gpu = "on a GPU:" in command
        if needs_gpu and available():
            continue  # it would start this process again, to watch over it
        with pytest.raises(SystemExit) as exit:
            main(given)
        seen = capsys.readouterr()
        assert exit.value.code == (ENVIRONMENT if needs_gpu else OK), (command, seen.out + seen.err)


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    found = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", page.read_text("utf-8")):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in headings(target), f"{path}#{anchor}"


def test_the_two_commands_of_the_readme_are_targets():
    (shown,) = (text for _, text in blocks(ROOT / "README.md", "") if text.startswith("make demo"))
    made = re.findall(r"^make (\w+)", shown, re.MULTILINE)
    assert made == ["demo", "test"]
    assert set(made) <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize(
    "command, shown", [text.split("\n", 1) for _, text in blocks(ROOT / "docs" / "usage.md", "") if text.startswith("$ ")]
)
def test_the_commands_of_the_usage_page(command, shown, tmp_path, monkeypatch, capsys):
    linear = next(text for _, text in blocks(ROOT / "README.md") if "program linear" in text)
    (tmp_path / "linear.wg").write_text(linear, "utf-8")
    monkeypatch.chdir(ROOT if "examples/" in command else tmp_path)
    with pytest.raises(SystemExit):
        main(shlex.split(command)[2:])
    seen = capsys.readouterr()
    assert set(shown.splitlines()) - {"..."} <= set((seen.out + seen.err).splitlines())


def test_the_usage_page_names_every_command_and_form():
    page = (ROOT / "docs" / "usage.md").read_text("utf-8")
    commands = [c.name or c.callback.__name__ for c in app.registered_commands if c.callback and not c.hidden]
    assert all(f"wgdsl {name}" in page for name in commands)
    assert all(f"`{form}`" in page for form in (*EMITS, *COMPILED, *PASSES))

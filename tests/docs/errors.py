"""The page of errors, made of the catalogue: `python -m tests.docs.errors` writes docs/errors.md.

Each error has what `wgdsl help` says of it: the rule, a failing and a mended example. Where the mistake stands in no text (a
call, a setting, the compiler below) the page shows what is printed instead, from the snapshots of tests/diagnostics.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

from tests.docs.pages import ROOT
from wgdsl.diagnostics.catalogue import all_problems, name_of
from wgdsl.diagnostics.model import Problem

PAGE = ROOT / "docs" / "errors.md"
SNAPSHOTS = ROOT / "tests" / "diagnostics" / "__snapshots__"
STAGES = {  # first digits of a code -> when
    "01": "reading a file",
    "02": "what a program says",
    "03": "bringing a program into streamed form",
    "04": "what a schedule says",
    "05": "warnings of the assembler",
    "06": "a call, or what a caller chooses",
    "07": "the verifier",
    "08": "faults in the simulator",
    "09": "imports, extended schedules, options, tuning",
    "10": "commands",
    "11": "the explicit form",
}
HEAD = """# Errors

Every error has a code. A message shows the place, what was expected, and as `help` what to do about it. `wgdsl help WG0203` \
prints what this page has for all of them: the rule, a failing and a mended example. Where the mistake stands in no text, the \
page shows what is printed instead. An example that is no whole text has lines of the schedule, or of the explicit form, that \
is named above it; `# with dims H=7` is what the caller fixes.
"""


def page() -> str:
    """The whole page."""
    known = all_problems()
    assert {code[2:4] for code in known} == set(STAGES)
    parts = [HEAD, _contents(known)]
    for stage, about in STAGES.items():
        parts.append(f"## WG{stage}xx: {about}\n")
        parts += [_entry(problem) for code, problem in known.items() if code[2:4] == stage]
    return "\n".join(parts)


def _contents(known: dict[str, type[Problem]]) -> str:
    """Every error by its name, with a link."""
    lines = []
    for stage, about in STAGES.items():
        links = [_link(problem) for code, problem in known.items() if code[2:4] == stage]
        lines.append(f"- WG{stage}xx, {about}: {', '.join(links)}")
    return "\n".join(lines) + "\n"


def _link(problem: type[Problem]) -> str:
    anchor = f"{problem.code} {name_of(problem)}".lower().replace(" ", "-")
    return f"[{problem.code[-2:]} {name_of(problem)}](#{anchor})"


def _entry(problem: type[Problem]) -> str:
    rule, _, examples = problem.doc.partition("\nfails:\n")
    shown = _examples(examples) if examples else _printed(problem.code)
    return "\n".join([f"### {problem.code}: {name_of(problem)}\n", *_prose(rule), *shown])


def _prose(rule: str) -> Iterator[str]:
    """Paragraphs, each in one line."""
    for paragraph in rule.strip().split("\n\n"):
        yield " ".join(paragraph.split()) + "\n"


def _examples(text: str) -> list[str]:
    fails, works = text.split("works:\n")
    return ["Refused:\n", _fenced(dedent(fails)), "Right:\n", _fenced(dedent(works))]


def _printed(code: str) -> list[str]:
    """What is printed, from the first snapshot of that code."""
    found = sorted(p for p in SNAPSHOTS.rglob("*.txt") if code in p.name)
    assert found, f"no snapshot shows {code}"
    return ["Printed:\n", _fenced(found[0].read_text("utf-8"))]


def _fenced(text: str) -> str:
    return f"```text\n{text.strip()}\n```\n"


def write(path: Path = PAGE) -> None:
    path.write_text(page(), "utf-8")


if __name__ == "__main__":
    write()

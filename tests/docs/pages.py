"""The pages of the documentation: their code blocks, and the sections of the schedule page with the form that each has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FORM = ("Purpose", "Syntax", "Before -> after", "Refusals")
CLAUSE = r"(.+?) \((WG\d{4})\)"
CLAUSES = re.compile(rf"{CLAUSE}(?:[;,] (?:or )?{CLAUSE})*\.")


def blocks(page: Path, language: str = "wg") -> list[tuple[str, str]]:
    """(words after the language, text) of every fenced block of a page."""
    return re.findall(rf"^```{language} ?(.*)\n((?:.*\n)*?)```$", page.read_text("utf-8"), re.MULTILINE)


@dataclass(frozen=True)
class Section:
    """A line or a lever. bullets: (label, text).  examples: (settings, text)."""

    title: str
    bullets: tuple[tuple[str, str], ...]
    examples: tuple[tuple[str, str], ...]

    @property
    def refusals(self) -> tuple[tuple[str, str], ...]:
        """(clause, code) of what it refuses."""
        text = dict(self.bullets)["Refusals"]
        if text.startswith("none."):
            return ()
        assert CLAUSES.fullmatch(text), f"{self.title}: each refusal ends with its code, as in `a size of 0 (WG0404)`: {text}"
        return tuple(re.findall(rf"(?:^|[;,] (?:or )?){CLAUSE}", text))


def sections() -> list[Section]:
    """Those of the schedule page that describe a line or a lever."""
    page = (ROOT / "docs" / "schedule.md").read_text("utf-8")
    parts = re.findall(r"^## (Placement|Levers)\n((?:(?!## ).*\n)*)", page, re.MULTILINE)
    return [_section(text) for _, part in parts for text in part.split("\n### ")[1:]]


def _section(text: str) -> Section:
    return Section(
        title=text.partition("\n")[0].strip("`"),
        bullets=tuple(re.findall(r"^- \*(.+?)\*: (.*)$", text, re.MULTILINE)),
        examples=tuple(re.findall(r"^```wg example ?(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE)),
    )

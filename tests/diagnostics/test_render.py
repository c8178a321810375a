"""Source lines, carets and labels, in plain text and in colour."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from rich.console import Console

from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.diagnostics.render import render_all, render_plain, render_rich
from wgdsl.foundation.source import Source, Span


@dataclass(frozen=True, kw_only=True)
class Said(Problem):
    text: str = "something is wrong"
    under: str = ""
    more: tuple = ()
    noted: tuple[str, ...] = ()
    cure: str = ""

    code = "WG9999"

    def title(self):
        return self.text

    def label(self):
        return self.under

    def others(self):
        return self.more

    def notes(self):
        return self.noted

    def help(self):
        return self.cure


def span(text: str, part: str, path: str = "a.wg") -> Span:
    return Span(Source(path, text), text.index(part), text.index(part) + len(part))


def test_everything():
    text = "one two\nthree\nfour\nfive six\n"
    source = Source("a.wg", text)
    first, second = Span(source, 4, 7), Span(source, text.index("six"), text.index("six") + 3)
    problem = Said(span=first, under="here", more=((second, "and there"),), noted=("n1", "n2"), cure="do\nthis")
    assert render_plain(problem) == (
        "error[WG9999]: something is wrong\n"
        "  --> a.wg:1:5\n"
        "   |\n"
        " 1 | one two\n"
        "   |     ^^^ here\n"
        "...\n"
        " 4 | five six\n"
        "   |      --- and there\n"
        "   |\n"
        "   = note: n1\n"
        "   = note: n2\n"
        "   = help: do\n"
        "           this"
    )


def test_one_line_between_two_places_is_shown():
    source = Source("a.wg", "one\ntwo\nthree\n")
    text = render_plain(Said(span=Span(source, 0, 3), more=((Span(source, 8, 13), "x"),)))
    assert " 2 | two\n" in text and "..." not in text


def test_two_places_on_one_line():
    source = Source("a.wg", "f(a, b]")
    text = render_plain(Said(span=Span(source, 6, 7), under="this", more=((Span(source, 1, 2), "that"),)))
    assert text.splitlines()[3:6] == [" 1 | f(a, b]", "   |       ^ this", "   |  - that"]


def test_another_file_has_its_own_arrow():
    other = span("x y", "y", "b.wg")
    text = render_plain(Said(span=span("a b", "b"), more=((other, "there"),)))
    assert "  --> a.wg:1:3\n" in text and "  ::: b.wg:1:3\n" in text and text.endswith("   |   - there\n   |")


def test_texts_of_one_name_are_shown_apart():
    """A program and a schedule that both come from no file."""
    program, schedule = span("one\ntwo\n", "two", "<text>"), span("a\nb\nlast\n", "last", "<text>")
    lines = render_plain(Said(span=schedule, more=((program, "of that"),))).splitlines()
    assert lines[1:4] == ["  --> <text>:3:1", "   |", " 3 | last"] and lines[5:8] == ["  ::: <text>:2:1", "   |", " 2 | two"]


def test_no_place_and_no_help():
    assert render_plain(Said()) == "error[WG9999]: something is wrong"


@pytest.mark.parametrize("text", ["\tlet\tx", "  let x", "# \u4e2d\u6587 x", "a\u0301 x", "\f x"])
def test_carets_stand_under_their_text(text):
    line, carets = render_plain(Said(span=span(text, "x"))).splitlines()[3:5]
    assert cells(line[: line.index("x")]) == carets.index("^")


def cells(text: str) -> int:
    return Console(file=None, width=1000).measure(text).maximum if text.strip() else len(text)


def test_a_tab_is_one_column_in_the_place():
    assert "a.wg:1:6\n" in render_plain(Said(span=span("\tlet\tx", "x")))


@pytest.mark.parametrize("at", [0, 150, 5000, 9998])
def test_a_long_line_is_cut_around_the_place(at):
    text = "y" * at + "x" + "y" * (10_000 - at)
    lines = render_plain(Said(span=span(text, "x"), under="this")).splitlines()
    assert all(len(line) < 140 for line in lines)
    assert lines[3].index("x") == lines[4].index("^")


def test_a_span_over_several_lines_marks_the_first():
    lines = render_plain(Said(span=span("for {\n a\n}", "{\n a\n}"))).splitlines()
    assert lines[3:5] == [" 1 | for {", "   |     ^"]


def test_what_would_steer_a_terminal_is_not_printed():
    problem = Said(span=span("# \x1b[31m \u202e x", "x", "\x1b.wg"), text="\x1b[2J", under="a\nb", cure="\x07")
    assert not {c for c in render_plain(problem) if not c.isprintable()} - {"\n"}


def test_the_end_of_a_text_without_a_line_end():
    source = Source("a.wg", "ab")
    assert "   |   ^" in render_plain(Said(span=Span(source, 2, 2))).splitlines()


def test_the_coloured_text_is_the_same_text():
    problem = Said(span=span("one two", "two"), under="here", cure="[bold]x[/bold]")
    console = Console(width=200, force_terminal=True, color_system="truecolor")
    with console.capture() as shown:
        console.print(render_rich(problem))
    assert [line.rstrip() for line in render_rich(problem).plain.split("\n")] == render_plain(problem).split("\n")
    assert "\x1b[" in shown.get() and "[bold]x[/bold]" in shown.get()


def test_many_problems_fit_in_forty_lines():
    problems = [Said(text=f"problem {n}", span=span("one two", "two")) for n in range(100)]
    text = str(WgError(problems))
    assert text.count("\n") < 40 and "problem 0" in text and text.endswith(f"and {100 - text.count('error[')} more")
    assert render_all(problems[:1]) == render_plain(problems[0])
    assert len(WgError(problems).problems) == 100

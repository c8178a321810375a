"""A page that is worked through from top to bottom: files are written as it shows them, commands run, their output compared.

`wg in FILE` is a whole file, `wg added FILE` is put behind what the file holds. A block that begins with `$` has commands and
what each prints; a line `...` stands for any lines, also none. `python` blocks are run.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wgdsl.cli import main

FENCED = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)


@dataclass(frozen=True)
class Ran:
    """A command, what it printed and what the page shows."""

    command: str
    printed: str
    shown: str


def walk(page: Path, capsys) -> Iterator[Ran]:
    """Works through a page in the current folder."""
    for kind, text in FENCED.findall(page.read_text("utf-8")):
        language, _, words = kind.partition(" ")
        how, _, name = words.partition(" ")
        if language == "wg" and how == "in":
            Path(name).write_text(text, "utf-8")
        elif language == "wg" and how == "added":
            Path(name).write_text(Path(name).read_text("utf-8") + "\n" + text, "utf-8")
        elif language == "python":
            exec(compile(text, str(page), "exec"), {})
        elif text.startswith("$ "):
            for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
                yield Ran(command, _output(command, capsys), shown)


def _output(command: str, capsys) -> str:
    program, *given = shlex.split(command)
    if program != "wgdsl":
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
        return done.stdout + done.stderr
    capsys.readouterr()
    with suppress(SystemExit):
        main(given)
    seen = capsys.readouterr()
    return seen.out + seen.err


def differs(ran: Ran) -> str:
    """What a page shows that a command didn't print there; empty if they agree. Blank lines don't count."""
    printed, at = _lines(ran.printed), 0
    runs = [_lines(run) for run in re.split(r"^\.\.\.\n", "\n" + ran.shown, flags=re.MULTILINE)]
    for k, run in enumerate(runs):
        last = k == len(runs) - 1
        places = range(at, len(printed) - len(run) + 1) if k else range(1)
        found = [n for n in places if printed[n : n + len(run)] == run and (not last or n + len(run) == len(printed))]
        if not found:
            return f"$ {ran.command}\n" + "\n".join(run) + "\n--- not in:\n" + "\n".join(printed[at:])
        at = found[0] + len(run)
    return ""


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]

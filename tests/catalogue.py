"""The examples of the error catalogue, run: what the compiler says of the `fails:` and the `works:` of a `doc`.

An example is a whole text, or lines of a shipped schedule that its `doc` names ("In schedule `simple` for `attention`:"). Of
the two one stands in that schedule, and the other is put in its place. `# with dims D=64, E=128` gives what the caller fixes.
"""

from __future__ import annotations

import re
from textwrap import dedent

from tests.lowering import ATTENTION, FA3, GEMM, PIPELINED, SIMPLE
from wgdsl.analyse.analyse import analyse
from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.foundation.source import Source
from wgdsl.schedule import lower, stream_axis
from wgdsl.syntax.parser import parse
from wgdsl.transform.canonicalise import canonicalise
from wgdsl.transform.stream import stream
from wgdsl.verify import check

SCHEDULES = {
    ("simple", "attention"): (ATTENTION, SIMPLE),
    ("fa3", "attention"): (ATTENTION, FA3),
    ("pipelined", "gemm"): (GEMM, PIPELINED),
}
DIMS = {"attention": {"D": 128, "E": 128}}
PASSES = ("parse", "analyse", "stream", "lower", "verify")  # WG01xx comes from the first, and so on
LAST = {"01": "parse", "02": "analyse", "03": "stream", "04": "lower", "07": "verify"}


def examples(problem: type[Problem]) -> tuple[str, str]:
    """The `fails:` and the `works:` of its documentation. Raises ValueError if it lacks one."""
    fails, works = problem.doc.split("\nfails:\n")[1].split("works:\n")
    if not fails.strip() or not works.strip():
        raise ValueError(f"{problem.code} has an empty example")
    return dedent(fails), dedent(works)


def chosen(text: str) -> dict[str, dict]:
    """`# with dims H=7, R=2` in an example."""
    out: dict[str, dict] = {}
    for kind, pairs in re.findall(r"# with (\w+) ([^\n]*)", text):
        entries = dict(p.strip().split("=") for p in pairs.split(","))
        out[kind] = {k: int(v) for k, v in entries.items()} if kind == "dims" else entries
    return out


def problems_of(problem: type[Problem], which: str) -> tuple[Problem, ...]:
    """What the passes up to the one that raises such problems say of the example `which`: fails or works."""
    fails, works = examples(problem)
    text, other = (fails, works) if which == "fails" else (works, fails)
    shipped = re.search(r"^In schedule `(\w+)` for `(\w+)`:$", problem.doc, re.M)
    try:
        if shipped is None:
            compiled(text, text, LAST[problem.code[2:4]], **chosen(text))
        else:
            program, schedule = SCHEDULES[shipped.groups()]
            fixed = {"dims": DIMS.get(shipped[2], {})} | chosen(text)
            compiled(program, with_lines(schedule, text, other), LAST[problem.code[2:4]], **fixed)
    except WgError as e:
        return e.problems
    return ()


def compiled(program: str, schedule: str, last: str, *, options=None, types=None, dims=None) -> None:
    """Run the passes up to `last`. One text may hold both, and then a program is analysed without a schedule too."""
    found = parse(Source("program.wg", program))
    if last == "parse":
        return
    graph = analyse(found.programs[0], options=options or {}, types=types or {}, dims=dims or {})
    if last == "analyse":
        return
    s = (found if schedule == program else parse(Source("schedule.wg", schedule))).schedules[0]
    streamed = stream(canonicalise(graph), *stream_axis(s))
    if last == "stream":
        return
    roles = lower(streamed, s)
    if last == "verify":
        check(roles)


def with_lines(base: str, lines: str, other: str) -> str:
    """The text with these lines in it: in place of the `other` ones, unless it has them already."""
    if _places(base, lines):
        old = lines
    else:
        old = other
    (at,) = _places(base, old)
    rows = base.splitlines()
    indent = rows[at][: len(rows[at]) - len(rows[at].lstrip())]
    new = [indent + line for line in lines.splitlines()]
    return "\n".join([*rows[:at], *new, *rows[at + len(old.splitlines()) :]]) + "\n"


def _places(base: str, lines: str) -> list[int]:
    """Where the lines stand in a text, whatever their spaces and comments."""
    rows, wanted = [bare(r) for r in base.splitlines()], [bare(r) for r in lines.splitlines()]
    return [k for k in range(len(rows)) if rows[k : k + len(wanted)] == wanted]


def bare(line: str) -> str:
    return " ".join(line.partition("#")[0].split())

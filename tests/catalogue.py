"""The examples of the error catalogue, run: what the compiler says of the `fails:` and the `works:` of a `doc`.

An example is a whole text, or lines of a shipped schedule that its `doc` names ("In schedule `simple` for `attention`:"). Of
the two one stands in that schedule, and the other is put in its place. `# with dims D=64, E=128` gives what the caller fixes.
Of lines of a role program ("In the role program of ...") `tests/broken.py` has the fault, and the lines are looked up in what
is printed of both programs; those of WG11xx are put in the explicit form, which is read.
"""

from __future__ import annotations

import re
from textwrap import dedent

from tests import broken
from tests.lowering import ATTENTION, FA3, GEMM, PIPELINED, SIMPLE
from wgdsl import driver
from wgdsl.analyse.analyse import analyse
from wgdsl.diagnostics.model import Problem, WgError
from wgdsl.foundation.source import Source
from wgdsl.roles.read import read_roles
from wgdsl.schedule import lower, stream_axis
from wgdsl.syntax.parser import parse
from wgdsl.transform.canonicalise import canonicalise
from wgdsl.transform.cut import cut
from wgdsl.transform.fuse import fuse
from wgdsl.transform.stream import stream
from wgdsl.verify import check

PROGRAMS = {"attention": ATTENTION, "gemm": GEMM}
SCHEDULES = {"simple": SIMPLE, "fa3": FA3, "pipelined": PIPELINED}
DIMS = {"attention": {"D": 128, "E": 128}, "gemm": {}}
# The pass that raises WG01xx, ...
LAST = {"01": "parse", "02": "analyse", "03": "stream", "04": "lower", "07": "verify", "09": "resolve"}


def examples(problem: type[Problem]) -> tuple[str, str]:
    """The `fails:` and the `works:` of its documentation. An AssertionError says what it lacks."""
    for heading in ("\nfails:\n", "\nworks:\n"):
        assert heading in problem.doc, f"`wgdsl help {problem.code}` has no{heading.rstrip()}".replace("\n", " ")
    fails, works = problem.doc.split("\nfails:\n")[1].split("works:\n")
    assert fails.strip() and works.strip(), f"an example of {problem.code} is empty"
    return dedent(fails), dedent(works)


def chosen(text: str) -> dict[str, dict]:
    """`# with dims H=7, R=2` in an example."""
    out: dict[str, dict] = {}
    for kind, pairs in re.findall(r"# with (\w+) ([^\n]*)", text):
        entries = dict(p.strip().split("=") for p in pairs.split(","))
        out[kind] = {k: int(v) for k, v in entries.items()} if kind == "dims" else entries
    return out


def both(problem: type[Problem]) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """What is said of the failing and of the mended example."""
    fails, works = examples(problem)
    named = re.search(r"^In (schedule|the role program of) `(\w+)` for `(\w+)`", problem.doc, re.M)
    last = LAST.get(problem.code[2:4], "")
    if named is None:
        return said(fails, fails, last, fails), said(works, works, last, works)
    kind, schedule, program = named.groups()
    if kind != "schedule":
        return in_role_program(problem.code, schedule, fails, works)
    text, base, dims = PROGRAMS[program], SCHEDULES[schedule], DIMS[program]
    return tuple(said(text, with_lines(base, a, b), last, a, dims) for a, b in ((fails, works), (works, fails)))  # type: ignore


def said(program: str, schedule: str, last: str, example: str, dims: dict | None = None) -> tuple[Problem, ...]:
    """What the passes up to `last` say. One text may hold program and schedule."""
    try:
        compiled(program, schedule, last, **({"dims": dims} | chosen(example)))
    except WgError as e:
        return e.problems
    return ()


def compiled(program: str, schedule: str, last: str, *, options=None, types=None, dims=None) -> None:
    if last == "resolve":
        settings = driver.Settings(options=options or {}, types=types or {}, dims=dims or {})
        driver.space(program, settings=lambda found: settings)
        return
    found = parse(Source("program.wg", program))
    if last == "parse":
        return
    graph = analyse(found.programs[0], options=options or {}, types=types or {}, dims=dims or {})
    if last == "analyse":
        return
    s = (found if schedule == program else parse(Source("schedule.wg", schedule))).schedules[0]
    for piece in cut(graph, s):
        fused = fuse(piece.graph, piece.schedule)
        streamed = stream(canonicalise(fused), *stream_axis(piece.schedule))
        if last == "stream":
            continue
        roles = lower(streamed, piece.schedule)
        if last == "verify":
            check(roles)


def in_role_program(code: str, schedule: str, fails: str, works: str) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    if code.startswith("WG11"):
        base = broken.text(broken.right(schedule))
        return tuple(read(schedule, with_lines(base, a, b)) for a, b in ((fails, works), (works, fails)))  # type: ignore
    fault = broken.BROKEN[code]
    assert fault.schedule == schedule
    wrong, right = fault.program(), broken.right(schedule)
    for lines, program in ((fails, wrong), (works, right)):
        assert places(broken.text(program), lines), f"`wgdsl explain` doesn't show these lines of {code}:\n{lines}"
    return fault.problems(code, wrong), fault.problems(code, right)


def read(schedule: str, text: str) -> tuple[Problem, ...]:
    """What is said of an explicit form of a shipped schedule."""
    _, graph, _ = broken.SHIPPED[schedule]
    try:
        (block,) = parse(Source("explicit.wg", f"wg 1\n\n{text}")).schedules
        check(read_roles(block, graph()))  # type: ignore[arg-type]
    except WgError as e:
        return e.problems
    return ()


def with_lines(base: str, lines: str, other: str) -> str:
    """The text with these lines in it: in place of the `other` ones, unless it has them already."""
    old = lines if places(base, lines) else other
    (at,) = places(base, old)
    rows = base.splitlines()
    indent = rows[at][: len(rows[at]) - len(rows[at].lstrip())]
    new = [indent + line for line in lines.splitlines()]
    return "\n".join([*rows[:at], *new, *rows[at + len(old.splitlines()) :]]) + "\n"


def places(text: str, lines: str) -> list[int]:
    """Where the lines stand in a text, whatever their spaces and comments."""
    rows, wanted = [bare(r) for r in text.splitlines()], [bare(r) for r in lines.splitlines()]
    return [k for k in range(len(rows)) if rows[k : k + len(wanted)] == wanted]


def bare(line: str) -> str:
    return " ".join(line.partition("#")[0].split())

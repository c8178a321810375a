"""A timeline as lines: the share of each engine, and where each role waits."""

from __future__ import annotations

from collections.abc import Iterator

from ..roles.timeline import Timeline

SHOWN = 4  # waits of a role


def timeline_lines(t: Timeline) -> Iterator[str]:
    """Of all its cycles."""
    yield f"  {t.origin}, {t.what}: {t.cycles:.0f} cycles"
    shares = sorted(((t.share(e), e) for e in t.engines), key=lambda x: -x[0])
    if shares:
        yield "  engines of an SM: " + ", ".join(f"{e} {100 * x:.0f} %" for x, e in shares if x)
    for role in t.roles:
        yield f"  {role}: waits {100 * (1 - t.share(role)):.0f} % of the time"
        for name, line, cycles in t.waits(role)[:SHOWN]:
            yield f"    {100 * cycles / t.cycles:3.0f} %  line {line}  {name}"

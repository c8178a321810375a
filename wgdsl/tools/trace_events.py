"""Timelines as trace events: JSON that ui.perfetto.dev and chrome://tracing show, and that can be read again.

A kernel is a process, a track a thread, a slice a complete event (`"ph": "X"`) whose `ts` and `dur` are cycles, though viewers
call them microseconds. `otherData` has what no event says. The same timelines give the same text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..diagnostics.model import WgError
from ..diagnostics.tools import NoTimeline
from ..roles.timeline import Slice, Timeline

ARGS = ("line", "place", "by", "step")
WORDS = ("origin", "kernel", "what")
DIGITS = 3


def trace_text(timelines: Sequence[Timeline]) -> str:
    events = [e for pid, t in enumerate(timelines, 1) for e in _events(pid, t)]
    about = {
        "unit": "cycles",
        "timelines": [{name: getattr(t, name) for name in (*WORDS, "roles", "engines")} for t in timelines],
    }
    lines = ",\n".join(json.dumps(e) for e in events)
    return f'{{"otherData": {json.dumps(about)},\n"traceEvents": [\n{lines}\n]}}\n'


def _events(pid: int, t: Timeline) -> Iterator[dict[str, Any]]:
    yield _named("process_name", pid, 0, f"{t.kernel}, {t.origin}: {t.what}")
    tracks = {name: tid for tid, name in enumerate((*t.roles, *t.engines), 1)}
    for name, tid in tracks.items():
        yield _named("thread_name", pid, tid, name)
        yield {"name": "thread_sort_index", "ph": "M", "pid": pid, "tid": tid, "args": {"sort_index": tid}}
        for s in t.on(name):
            start, stop = round(s.start, DIGITS), round(s.stop, DIGITS)
            args = {a: getattr(s, a) for a in ARGS if getattr(s, a)}
            times = {"ts": start, "dur": round(stop - start, DIGITS)}
            yield {"name": s.name, "cat": s.kind, "ph": "X", **times, "pid": pid, "tid": tid, "args": args}


def _named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def read_trace(path: Path) -> list[Timeline]:
    """The timelines of a file. Raises WgError (WG1013) for another one."""
    try:
        found = json.loads(path.read_text("utf-8"))
        heads, events = found["otherData"]["timelines"], found["traceEvents"]
        return [_timeline(head, [e for e in events if e["pid"] == pid]) for pid, head in enumerate(heads, 1)]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise WgError(NoTimeline(path=str(path), why=_why(e))) from None


def _why(e: Exception) -> str:
    if isinstance(e, OSError):
        return e.strerror or str(e)
    return "it isn't JSON" if isinstance(e, ValueError) else "it isn't of that form"


def _timeline(head: dict[str, Any], events: list[dict[str, Any]]) -> Timeline:
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [_slice(names[e["tid"]], e) for e in events if e["ph"] == "X"]
    roles, engines = tuple(head["roles"]), tuple(head["engines"])
    return Timeline(**{n: head[n] for n in WORDS}, roles=roles, engines=engines, slices=tuple(slices))


def _slice(track: str, e: dict[str, Any]) -> Slice:
    start, stop = e["ts"], round(e["ts"] + e["dur"], DIGITS)
    return Slice(track=track, kind=e["cat"], name=e["name"], start=start, stop=stop, **e["args"])

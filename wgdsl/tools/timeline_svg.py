"""Timelines as one picture (SVG): each a panel, all over the same cycles.

A panel has a row for each warpgroup and each engine that works: slices with the schedule's words, waits in grey with what is
waited for, at the end of a row its share of all the timeline's cycles, and below the waits that cost most. An engine's slices
have the colour of the square before the warpgroup that they are for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from ..roles.timeline import ENGINE, STEP, WAIT, Slice, Timeline

LEFT, RIGHT, WIDTH = 150, 70, 1400  # pixels: names of rows, their shares, all
ROW, GAP, HEAD, LINE = 22, 4, 46, 15
TICKS = 8
LETTER = 6.2  # the width of one
SHOWN = 4  # waits of a role
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#e15759", "#76b7b2", "#9c755f", "#edc948")
GREY = "#d9d9d9"
STYLE = (
    "text { font: 11px sans-serif; fill: #222 } .in { font-size: 10px; fill: white } .w { fill: #666 } "
    ".t { font-size: 13px; font-weight: bold }"
)


def picture(timelines: Sequence[Timeline], window: tuple[float, float]) -> str:
    """window: the cycles that it shows."""
    panels, y = [], GAP
    for t in timelines:
        lines, height = _panel(t, window, y)
        panels += lines
        y += height + LINE
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}">'
    white = f'<rect width="{WIDTH}" height="{y}" fill="white"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", white, *panels, "</svg>"]) + "\n"


def _panel(t: Timeline, window: tuple[float, float], top: int) -> tuple[list[str], int]:
    """Its lines, and how high it is."""
    rows = [*t.roles, *(e for e in t.engines if t.on(e))]
    colours = _colours(t)
    out = [_text(GAP, top + LINE, f"{t.kernel}, {t.origin}: {t.what}; {t.cycles:.0f} cycles", "t")]
    y = top + HEAD
    out += _axis(window, y, len(rows) * (ROW + GAP))
    for name in rows:
        if name in t.roles:
            out.append(f'<rect x="{GAP}" y="{y + 6}" width="10" height="10" fill="{colours[f"by {name}"]}"/>')
        out.append(_text(4 * GAP, y + LINE, name))
        out.append(_text(WIDTH - RIGHT + GAP, y + LINE, f"{100 * t.share(name):.0f} %"))
        out += [line for s in t.on(name) if s.stop > window[0] and s.start < window[1] for line in _box(s, window, y, colours)]
        y += ROW + GAP
    for line in _waits(t):
        out.append(_text(GAP, y + LINE, line, "w"))
        y += LINE
    return out, y + LINE - top


def _colours(t: Timeline) -> dict[str, str]:
    """Of steps by their words, and of engines' work by the role that it is for."""
    names = dict.fromkeys(s.name for r in t.roles for s in t.on(r, STEP))
    found = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(names)}
    return found | {f"by {r}": COLOURS[k % len(COLOURS)] for k, r in enumerate(t.roles)}


def _x(at: float, window: tuple[float, float]) -> float:
    start, stop = window
    inside = min(max(at, start), stop)
    return LEFT + (inside - start) / max(stop - start, 1) * (WIDTH - LEFT - RIGHT)


def _axis(window: tuple[float, float], y: int, height: int) -> Iterator[str]:
    for k in range(TICKS + 1):
        at = window[0] + k * (window[1] - window[0]) / TICKS
        x = _x(at, window)
        yield f'<line x1="{x:.1f}" y1="{y - GAP}" x2="{x:.1f}" y2="{y + height}" stroke="#eee"/>'
        yield _text(x - LETTER, y - 2 * GAP, f"{at:.0f}")


def _box(s: Slice, window: tuple[float, float], y: int, colours: dict[str, str]) -> Iterator[str]:
    left, right = _x(s.start, window), _x(s.stop, window)
    colour = GREY if s.kind == WAIT else colours.get(f"by {s.by}" if s.kind == ENGINE else s.name, COLOURS[0])
    shape = f'x="{left:.2f}" y="{y}" width="{right - left:.2f}" height="{ROW}" fill="{colour}"'
    yield f"<rect {shape}><title>{_told(s)}</title></rect>"
    room = int((right - left) / LETTER)
    if room >= min(len(s.name), 6):
        yield _text(left + 2, y + LINE, s.name[:room], "w" if s.kind == WAIT else "in")


def _told(s: Slice) -> str:
    """What a pointer on it sees."""
    where = [f"line {s.line}" if s.line else "", s.place, f"for {s.by}" if s.by else ""]
    return escape(", ".join([s.name, *(w for w in where if w), f"{s.start:.0f} to {s.stop:.0f}"]))


def _waits(t: Timeline) -> Iterator[str]:
    for role in t.roles:
        found = t.waits(role)[:SHOWN]
        words = "; ".join(f"{100 * c / t.cycles:.0f} % {name} (line {line})" for name, line, c in found)
        yield f"{role} waits: {words or 'for nothing'}"


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(text)}</text>'

"""A picture of results: for a suite with lengths TFLOP/s over these, a panel for each dtype, head dim and mask, a line for each
contestant; for any other the ratios, a bar for each point and peer, with the least round and the most.

In: results.  Out: an SVG file, or whatever matplotlib makes of another suffix. Equal results make equal SVG files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import count
from math import ceil
from pathlib import Path
from typing import Any

from ..diagnostics.model import EnvironmentFault
from .ratios import BAR, Row
from .results import Results

LENGTH = "length"  # the fact that a line runs over
COLUMNS = 4  # panels beside each other
WIDE, HIGH, MOST = 3.2, 2.6, 3.6  # inches: of a panel; how high one of bars is
SALT = "wgdsl"  # in place of the random numbers from which matplotlib makes the names in an SVG file
SMALL = 6  # points

Panels = Mapping[str, Sequence[Row]]


def needs_matplotlib() -> None:
    """Raises EnvironmentFault without it."""
    if find_spec("matplotlib") is None:
        raise EnvironmentFault("a plot needs matplotlib, which isn't installed", "`pip install 'wgdsl[plot]'`")


def plot(results: Results, path: Path) -> None:
    """Draw what there is."""
    needs_matplotlib()
    from matplotlib import rc_context

    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": SALT}):
        undated = {"Date": None} if path.suffix == ".svg" else None
        _figure(results).savefig(path, metadata=undated)


def _figure(results: Results) -> Any:
    from matplotlib.figure import Figure

    suites = by_suite(results.rows)
    heights = [_height(panels) for panels in suites.values()] or [MOST]
    figure = Figure(figsize=(COLUMNS * WIDE, sum(heights) + 0.4), layout="constrained")
    figure.suptitle(f"{results.about.get('card', '')} {results.about.get('date', '')}", fontsize=9)
    if suites:
        parts = figure.subfigures(len(suites), 1, squeeze=False, height_ratios=heights)
        for part, (suite, panels) in zip(parts[:, 0], suites.items(), strict=True):
            _suite(part, suite, panels)
    return figure


def by_suite(rows: Sequence[Row]) -> dict[str, Panels]:
    """Suite -> panel -> its points, without those in which nobody was timed. A panel has the name of the facts that its points
    share, but for their length; a suite without lengths has one, without a name."""
    suites: dict[str, list[Row]] = {}
    for row in (r for r in rows if r["contestants"]):
        suites.setdefault(row["suite"], []).append(row)
    return {suite: _panels(of) for suite, of in suites.items()}


def _panels(rows: Sequence[Row]) -> Panels:
    if any(LENGTH not in row.get("facts", {}) for row in rows):
        return {"": rows}
    panels: dict[str, list[Row]] = {}
    for row in rows:
        shared = {fact: value for fact, value in row["facts"].items() if fact != LENGTH}
        panels.setdefault(", ".join(f"{f} {v}" if isinstance(v, int) else v for f, v in shared.items()), []).append(row)
    return panels


def _height(panels: Panels) -> float:
    return MOST if "" in panels else HIGH * ceil(len(panels) / COLUMNS)


def _suite(part: Any, suite: str, panels: Panels) -> None:
    part.suptitle(suite, fontsize=8)
    if "" in panels:
        _bars(part.add_subplot(), panels[""])
        return
    colours: dict[str, str] = {}  # those of contestants in all panels
    fresh = (f"C{n}" for n in count())
    for number, (name, rows) in enumerate(panels.items(), 1):
        axes = part.add_subplot(ceil(len(panels) / COLUMNS), min(COLUMNS, len(panels)), number)
        for who in (w for row in rows for w in row["contestants"] if w not in colours):
            colours[who] = next(fresh)
        _lines(axes, name, rows, colours)


def _lines(axes: Any, name: str, rows: Sequence[Row], colours: Mapping[str, str]) -> None:
    """Of rows with contestants."""
    rows = sorted(rows, key=lambda row: row["facts"][LENGTH])
    for who in dict.fromkeys(w for row in rows for w in row["contestants"]):
        there = [(row["facts"][LENGTH], row["contestants"][who]["tflops"]) for row in rows if who in row["contestants"]]
        axes.plot(*zip(*there, strict=True), marker="o", markersize=3, linewidth=1, color=colours[who], label=who)
    lengths = list(dict.fromkeys(row["facts"][LENGTH] for row in rows))
    axes.set_xscale("log", base=2)
    axes.set_xticks(lengths, [str(n) for n in lengths], fontsize=SMALL, rotation=45)
    axes.minorticks_off()
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.set_ylim(0, 1.08 * max(one["tflops"] for row in rows for one in row["contestants"].values()))
    axes.set_ylabel("TFLOP/s", fontsize=SMALL)
    axes.set_title(name, fontsize=7)
    axes.legend(fontsize=5)
    axes.grid(linewidth=0.3)


def _bars(axes: Any, rows: Sequence[Row]) -> None:
    pairs = list(dict.fromkeys((me, p) for row in rows for me, of in row["ratios"].items() for p in of))
    width = 0.8 / max(1, len(pairs))
    for number, (me, peer) in enumerate(pairs):
        there = [(x, row["ratios"][me][peer]) for x, row in enumerate(rows) if peer in row["ratios"].get(me, {})]
        places = [x + width * (number - (len(pairs) - 1) / 2) for x, _ in there]
        errors = [[r["ratio"] - r["least"] for _, r in there], [r["most"] - r["ratio"] for _, r in there]]
        drawn = {"yerr": errors, "error_kw": {"linewidth": 0.6}, "label": f"{me} / {peer}"}
        axes.bar(places, [r["ratio"] for _, r in there], width, **drawn)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.axhline(BAR, color="grey", linewidth=0.6, linestyle=":")
    axes.set_xticks(range(len(rows)), [row["case"] for row in rows], rotation=45, fontsize=SMALL, ha="right")
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.set_ylabel("times as fast as the peer", fontsize=SMALL)
    if pairs:
        axes.legend(fontsize=SMALL)
    axes.grid(axis="y", linewidth=0.3)

"""A picture of ratios: a panel for each suite, a mark for each point and peer, a bar from the least round to the most.

In: results.  Out: an SVG file, or whatever matplotlib makes of another suffix.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..diagnostics.model import EnvironmentFault
from .ratios import BAR, Row
from .results import Results

WIDE, HIGH = 0.2, 3.2  # inches: of a point, of a panel


def needs_matplotlib() -> None:
    """Raises EnvironmentFault without it."""
    if find_spec("matplotlib") is None:
        raise EnvironmentFault("a plot needs matplotlib, which isn't installed", "`pip install 'wgdsl[plot]'`")


def plot(results: Results, path: Path) -> None:
    """Draw what there is."""
    needs_matplotlib()
    from matplotlib.figure import Figure

    suites: dict[str, list[Row]] = {}
    for row in results.rows:
        if any(row["ratios"].values()):
            suites.setdefault(row["suite"], []).append(row)
    longest = max(map(len, suites.values()), default=0)
    figure = Figure(figsize=(max(6.0, WIDE * longest + 1.5), HIGH * max(1, len(suites)) + 0.4), layout="constrained")
    figure.suptitle(f"{results.about.get('card', '')} {results.about.get('date', '')}: times as fast as the peer", fontsize=9)
    for number, (suite, rows) in enumerate(suites.items(), 1):
        _panel(figure.add_subplot(len(suites), 1, number), suite, rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _panel(axes: Any, suite: str, rows: Sequence[Row]) -> None:
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.axhline(BAR, color="grey", linewidth=0.6, linestyle=":")
    pairs = dict.fromkeys((me, p) for row in rows for me, of in row["ratios"].items() for p in of)
    for me, peer in pairs:
        there = [(x, row["ratios"][me][peer]) for x, row in enumerate(rows) if peer in row["ratios"].get(me, {})]
        middle = [r["ratio"] for _, r in there]
        errors = [[r["ratio"] - r["least"] for _, r in there], [r["most"] - r["ratio"] for _, r in there]]
        label = f"{me} / {peer}"
        axes.errorbar([x for x, _ in there], middle, yerr=errors, fmt="o", markersize=3, linewidth=0.8, label=label)
    axes.set_xticks(range(len(rows)), [row["case"] for row in rows], rotation=90, fontsize=6)
    axes.set_title(suite, fontsize=8, loc="left")
    axes.legend(fontsize=6)
    axes.grid(axis="y", linewidth=0.3)

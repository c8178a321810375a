"""The benchmarks' supervisor goes on without whoever crashes or hangs, and keeps what was measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"
SCRIPT = """
import argparse, os, time
import measure

given = measure.arguments(argparse.ArgumentParser())
journal = measure.Journal.read(given.journal)
if not given.child:
    measure.report(measure.supervise(given), ["peer", "ours", "crashes", "hangs"], ["peer"], given.json)
    raise SystemExit
for case in ("one", "two", "three"):
    if case in {row["case"] for row in journal.rows}:
        continue
    times = {"peer": 2.0, "ours": 1.0}
    for who in ("crashes", "hangs"):
        if not journal.leaves_out(case, who):
            journal.add({"begin": [case, who]})
            os._exit(9) if who == "crashes" else time.sleep(60)
    who = {w: {"milliseconds": t, "rounds": [t, 2 * t], "tflops": 1 / t} for w, t in times.items()}
    journal.add({"row": {"case": case, "work": 1.0, "contestants": who}})
"""


def test_the_run_goes_on_without_what_crashes_or_hangs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"import sys; sys.path.insert(0, {str(BENCH)!r})\n{SCRIPT}")
    out = tmp_path / "result.json"

    run = subprocess.run(
        [sys.executable, script, "--json", out, "--hang", "3"], capture_output=True, text=True, timeout=100, check=True
    )

    result = json.loads(out.read_text())
    assert [row["case"] for row in result["rows"]] == ["one", "two", "three"]
    assert all(row["ratios"]["ours"] == {"peer": [2.0, 2.0, 2.0]} for row in result["rows"])
    # Two deaths are enough: the third case is run without either.
    assert [(f["case"], f["contestant"]) for f in result["faults"]] == [
        ("one", "crashes"),
        ("one", "hangs"),
        ("two", "crashes"),
        ("two", "hangs"),
    ]
    assert "1 (2.000)" in run.stdout and "two: hangs: hangs" in run.stdout

"""Fair times of several contestants on one GPU, and survival of those that fail, crash or hang.

A benchmark is a list of cases; each case has contestants (name -> a call without arguments). All contestants of a case take
turns, round after round, so that they meet the same clocks and temperature. Every call is timed alone by CUDA events, after
a write that empties the L2 cache.

The work happens in a child process that keeps a journal (JSON lines). When the child dies, or its journal stands still, the
supervisor notes who was at work, and starts another child that goes on without that contestant.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, median

FLUSH_BYTES = 256 << 20  # the H200's L2 holds 50 MB
DEATHS_ALLOWED = 2  # a contestant that killed so many children is left out of the rest


@dataclass
class Journal:
    """What has been begun, finished and failed, in a file that outlives the process."""

    path: Path
    about: dict[str, object] = field(default_factory=dict)
    rows: list[dict] = field(default_factory=list)
    faults: dict[tuple[str, str], str] = field(default_factory=dict)
    deaths: Counter = field(default_factory=Counter)
    open: tuple[str, str] | None = None

    @classmethod
    def read(cls, path: Path) -> Journal:
        journal = cls(path)
        for line in path.read_text("utf-8").splitlines() if path.exists() else ():
            journal._take(json.loads(line))
        return journal

    def _take(self, entry: dict) -> None:
        match entry:
            case {"about": about}:
                self.about = about
            case {"begin": [case, who]}:
                self.open = (case, who)
            case {"row": row}:
                self.rows.append(row)
                self.open = None
            case {"fault": [case, who], "error": error, "death": death}:
                self.faults[case, who] = error
                self.deaths[who] += death
                self.open = None

    def add(self, entry: dict) -> None:
        self._take(entry)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def fault(self, case: str, who: str, error: str, death: bool = False) -> None:
        print(f"{case}: {who}: {error}", flush=True)
        self.add({"fault": [case, who], "error": error, "death": int(death)})

    def leaves_out(self, case: str, who: str) -> bool:
        return (case, who) in self.faults or self.deaths[who] >= DEATHS_ALLOWED


def begin(given: argparse.Namespace) -> Journal:
    """A child's first step: the journal so far, which says on what machine and with which inputs."""
    import torch

    journal = Journal.read(given.journal)
    if not journal.about:
        card, cuda = torch.cuda.get_device_name(), torch.version.cuda
        journal.add({"about": {"card": card, "torch": torch.__version__, "CUDA": cuda, "seed": given.seed}})
    return journal


class Stopwatch:
    """Times single calls on the current stream of the current device, in milliseconds."""

    def __init__(self):
        import torch

        self.torch = torch
        self.scratch = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")

    def calls(self, run: Callable[[], object], count: int) -> list[float]:
        """`count` calls, each with cold L2. The device idles first, so that the host is ahead of it throughout."""
        cuda = self.torch.cuda
        for _ in range(2):
            run()
        events = [(cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)) for _ in range(count)]
        cuda._sleep(2_000_000)
        for start, stop in events:
            self.scratch.zero_()
            start.record()
            run()
            stop.record()
        cuda.synchronize()
        return [start.elapsed_time(stop) for start, stop in events]


def run_case(
    journal: Journal,
    case: str,
    contestants: Mapping[str, Callable[[], Callable[[], object]]],
    check: Callable[[str, Callable[[], object]], float],
    given: argparse.Namespace,
    work: float,
) -> None:
    """Build, check and time every contestant of one case, and journal a row.

    A contestant is a builder that returns its call. `check(name, call)` returns its error, or raises. `given` has the
    rounds and the milliseconds for each; `work` in floating-point operations.
    """
    watch = Stopwatch()
    ready: dict[str, Callable[[], object]] = {}
    errors: dict[str, float] = {}
    for who, build in contestants.items():
        if journal.leaves_out(case, who):
            continue
        with _guard(journal, case, who):
            call = build()
            errors[who] = check(who, call)
            ready[who] = call
    times = _rounds(journal, case, ready, watch, given)
    rows = {who: {**_summary(each, work), "max_error": errors[who]} for who, each in times.items()}
    journal.add({"row": {"case": case, "work": work, "contestants": rows}})


def _rounds(
    journal: Journal, case: str, ready: dict[str, Callable[[], object]], watch: Stopwatch, given: argparse.Namespace
) -> dict[str, list[list[float]]]:
    """The times of each contestant, a list for each round; another one begins each round. Who fails is left out."""
    counts: dict[str, int] = {}
    times: dict[str, list[list[float]]] = {who: [] for who in ready}
    names = list(ready)
    for turn in range(given.rounds):
        first = turn % max(1, len(names))
        for who in names[first:] + names[:first]:
            if who not in times:
                continue
            with _guard(journal, case, who):
                if who not in counts:
                    counts[who] = max(3, min(100, int(given.ms / median(watch.calls(ready[who], 3)))))
                times[who].append(watch.calls(ready[who], counts[who]))
            if (case, who) in journal.faults:
                del times[who]
    return times


def _summary(each: list[list[float]], work: float) -> dict:
    middle = median(ms for one in each for ms in one)
    return {"milliseconds": middle, "rounds": [median(one) for one in each], "tflops": work / middle * 1e-9}


class _guard:
    """Journals an exception and goes on, unless the device is lost: then the process ends and the supervisor goes on."""

    def __init__(self, journal: Journal, case: str, who: str):
        self.journal, self.case, self.who = journal, case, who

    def __enter__(self) -> None:
        self.journal.add({"begin": [self.case, self.who]})

    def __exit__(self, kind, error, trace) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        import torch

        lost = False
        try:
            torch.cuda.synchronize()
        except Exception:
            lost = True
        text = " ".join(f"{kind.__name__}: {error}".split())[:600]
        self.journal.fault(self.case, self.who, text, death=lost)
        if lost:
            os._exit(3)
        return True


def supervise(given: argparse.Namespace) -> Journal:
    """Run this script again with `--child` until it is through, or the budget is spent. Returns the whole journal."""
    journal_path: Path = given.journal
    journal_path.parent.mkdir(parents=True, exist_ok=True)
    journal_path.unlink(missing_ok=True)
    end = time.monotonic() + given.budget
    while True:
        child = subprocess.Popen([sys.executable, *sys.argv, "--child", "--seed", str(given.seed)])
        verdict = _watch(child, journal_path, given.hang, end)
        journal = Journal.read(journal_path)
        if child.returncode == 0 or verdict == "the time is up":
            return journal
        if journal.open is not None:
            journal.fault(*journal.open, verdict or f"ended its process with {child.returncode}", death=True)
        elif child.returncode != 3:
            raise SystemExit(f"the benchmark failed outside any contestant ({verdict or child.returncode})")


def _watch(child: subprocess.Popen, journal_path: Path, hang_seconds: float, end: float) -> str:
    """Wait for the child; end it when its journal stands still for `hang_seconds`, or at `end`. Says why, or nothing."""
    size, since = -1, time.monotonic()
    while child.poll() is None:
        time.sleep(0.2)
        now = time.monotonic()
        seen = journal_path.stat().st_size if journal_path.exists() else 0
        if seen != size:
            size, since = seen, now
        reason = "hangs" if now - since > hang_seconds else "the time is up" if now > end else ""
        if reason:
            child.kill()
            child.wait()
            return reason
    return ""


def ratio(row: Mapping[str, dict], who: str, peer: str) -> tuple[float, float, float] | None:
    """How much faster `who` is than `peer`: the median, the least and the most of the rounds."""
    if who not in row or peer not in row:
        return None
    mine, theirs = row[who], row[peer]
    each = [b / a for a, b in zip(mine["rounds"], theirs["rounds"], strict=False)]
    return median(each), min(each), max(each)


def best(row: Mapping[str, dict], who: str, peers: list[str]) -> tuple[float, str] | None:
    """The same beside the fastest of the peers, and which that is."""
    found = [(r[0], p) for p in peers if (r := ratio(row, who, p)) is not None]
    return min(found, default=None)


def summary(journal: Journal, names: list[str], peers: list[str]) -> list[str]:
    """A line for each contestant that isn't a peer: geometric means of its ratios, and where it stands worst."""
    out = []
    for who in (n for n in names if n not in peers):
        means = []
        for peer in peers:
            rs = [r[0] for row in journal.rows if (r := ratio(row["contestants"], who, peer)) is not None]
            means += [f"{geometric_mean(rs):.3f} of {peer} ({len(rs)})"] if rs else []
        found = [(b[0], row["case"], b[1]) for row in journal.rows if (b := best(row["contestants"], who, peers)) is not None]
        if found:
            least = min(found)
            means.append(f"{geometric_mean([f[0] for f in found]):.3f} of the best ({len(found)})")
            means.append(f"least {least[0]:.3f}, of {least[2]} at {least[1]}")
        out += [f"{who}: {'; '.join(means)}"] if means else []
    return out


def table(journal: Journal, names: list[str], peers: list[str]) -> str:
    """One line a case: TFLOP/s of every contestant, and behind each that isn't a peer its ratio to every peer."""
    lines = [["case", *(f"{n} (x {', x '.join(peers)})" if n not in peers and peers else n for n in names)]]
    for row in journal.rows:
        cells = [row["case"]]
        for name in names:
            one = row["contestants"].get(name)
            if one is None:
                cells.append("-")
                continue
            ratios = [ratio(row["contestants"], name, p) for p in peers] if name not in peers else []
            inside = ", ".join(f"{r[0]:.3f}" if r else "-" for r in ratios)
            cells.append(f"{one['tflops']:.0f}" + (f" ({inside})" if inside else ""))
        lines.append(cells)
    widths = [max(len(line[c]) for line in lines) for c in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def report(journal: Journal, names: list[str], peers: list[str], path: Path | None) -> None:
    """Print the table and the faults (TFLOP/s; ratios above 1: faster than the peer), and write everything as JSON."""
    print(", ".join(f"{key} {value}" for key, value in journal.about.items()))
    print(table(journal, names, peers))
    print("\n".join(summary(journal, names, peers)))
    for (case, who), error in journal.faults.items():
        print(f"left out: {case}: {who}: {error}")
    if path is None:
        return
    for row in journal.rows:
        ours = [n for n in names if n not in peers]
        row["ratios"] = {n: {p: ratio(row["contestants"], n, p) for p in peers} for n in ours}
        row["ratio_best"] = {n: best(row["contestants"], n, peers) for n in ours}
    faults = [{"case": c, "contestant": w, "error": e} for (c, w), e in journal.faults.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"about": journal.about, "rows": journal.rows, "faults": faults}, indent=1) + "\n", "utf-8")


def proven(call: Callable[[], object], parts: list[tuple[object, object, float]], factor: float) -> float:
    """The largest absolute error of a call's result (a tensor); raises if it is wrong, partial or not repeatable.

    parts: (index into the result, float64 reference of that part, error that rounding to the dtype alone makes there). The
    bar of each is `factor` times that error, and 1e-5 of the largest reference. Whoever writes in place fills the result
    with NaN before.
    """
    import torch

    first = call().clone()  # type: ignore[attr-defined]
    second = call()
    torch.cuda.synchronize()
    if missing := int((~torch.isfinite(first)).sum()):
        raise ArithmeticError(f"{missing} elements are not finite")
    if not torch.equal(first, second):
        raise ArithmeticError("two runs differ")
    worst = 0.0
    for index, reference, rounding in parts:
        error = float((first[index].double() - reference).abs().max())
        bar = factor * rounding + 1e-5 * float(reference.abs().max())  # type: ignore[attr-defined]
        if not error <= bar:
            raise ArithmeticError(f"error {error:.3g} is above {bar:.3g}")
        worst = max(worst, error)
    return worst


def arguments(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse what every benchmark takes beside its own options."""
    parser.add_argument("--schedule", action="append", help="a shipped schedule or a file; repeat it to compare several")
    parser.add_argument("--target", default="auto", help="of the schedules (default: the GPU's own, or an earlier one)")
    parser.add_argument("--json", type=Path, default=Path("out") / f"{Path(sys.argv[0]).stem}.json", help="the results")
    parser.add_argument("--rounds", type=int, default=4, help="turns of every contestant (default 4)")
    parser.add_argument("--ms", type=float, default=40, help="milliseconds of calls for each turn (default 40)")
    parser.add_argument("--seed", type=int, help="of the inputs (default: a new one)")
    parser.add_argument("--hang", type=float, default=60, help="seconds without progress that count as a hang (default 60)")
    parser.add_argument("--budget", type=float, default=3600, help="seconds after which the table is printed as it is")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.journal = given.json.with_suffix(".lines")
    if given.seed is None:
        given.seed = random.SystemRandom().randrange(2**31)
    return given

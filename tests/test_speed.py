"""Bars on our own time: text to CUDA, the verifier, text to cubin, and importing.

CPU time of one thread, so that other processes don't count, and the best of a few runs; the bars are those of the machine that
they were set on, whose pace `slowness` compares with this one's.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import TypeVar

import pytest

from tests.examples.test_programs import EXAMPLES
from tests.shipped import KERNELS, ROOT
from wgdsl import reading
from wgdsl.driver import Settings, explored, prepare
from wgdsl.runtime import nvrtc

TEXT_BAR = 0.3  # the passes without the verifier
VERIFY_BAR = 1.0
CUBIN_BAR = 2.5  # all passes and NVRTC
MEDIAN_BAR = 1.2  # the same, of all schedules
IMPORT_BAR = 0.3
RUNS = 3
PACE = 0.016  # seconds that the yardstick takes on the machine of the bars
MARGIN = 1.2  # caches and memory are shared with whatever else runs, which costs CPU time too

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Timed:
    """A schedule with what is fixed at compile time."""

    program: str
    schedule: str
    target: str | None
    settings: Settings

    @property
    def name(self) -> str:
        options = "-".join(f"{k}={v}" for k, v in self.settings.options.items())
        return "-".join(filter(None, (self.program.split("/")[1], self.schedule, options)))


def timed(
    program: str, schedule: str, target: str | None, dims: dict, options: dict, types: dict[str, str] | None = None
) -> Timed:
    return Timed(program, schedule, target, Settings(dims=dims, options=options, types=types or {"T": "bf16"}))


def every_schedule() -> list[Timed]:
    """Each shipped schedule, and each of the examples, with the options that take longest: a causal mask, an epilogue."""
    shipped = sorted(KERNELS, key=lambda k: (dict(k.options).get("causal", False), len(k.options)))
    last = {(k.program, k.schedule): k for k in shipped}.values()
    out = [timed(k.program, k.schedule, k.target, dict(k.dims), dict(k.options), k.types) for k in last]
    for name, x in EXAMPLES.items():
        options = {"causal": True} if x.options else {}
        fixed = {**x.fixed, **({"D": 128, "E": 128} if name == "attention_varlen" else {})}
        out += [timed(f"examples/{name}/{name}.wg", s, target, fixed, options) for s, target in x.schedules]
    packed = "examples/attention_packed/attention_packed.wg"
    return out + [timed(packed, s, None, {"D": 128}, {"causal": True}) for s in ("packed", "packed_warps")]


SCHEDULES = every_schedule()


@dataclass(frozen=True)
class Took:
    """Seconds of CPU time, as on the machine of the bars: `text` is all passes without `verify`."""

    text: float
    verify: float
    cubin: float

    @property
    def all(self) -> float:
        return self.text + self.verify + self.cubin

    def keeps_its_bars(self) -> bool:
        return self.text < TEXT_BAR and self.verify < VERIFY_BAR and self.all < CUBIN_BAR


def took(x: Timed) -> Took:
    """One compilation: nothing is taken from the caches, but modules are imported and the grammar's tables are read."""
    reading._parsed.cache_clear()
    every, (kernel, _) = spent(lambda: prepare(ROOT / x.program, schedule=x.schedule, target=x.target, settings=x.settings))
    verify, _ = spent(lambda: explored(kernel.roles))
    cubin, _ = spent(lambda: [nvrtc.compile(text, kernel.target) for text in kernel.forms.texts.values()])
    return Took(*(seconds / slowness() for seconds in (every - verify, verify, cubin)))


first = cache(took)


def spent(work: Callable[[], T]) -> tuple[float, T]:
    start = time.process_time()
    made = work()
    return time.process_time() - start, made


@cache
def slowness() -> float:
    """How many times as long this machine may take as that of the bars, which one that is quicker doesn't sharpen."""
    return MARGIN * max(1.0, min(spent(yardstick)[0] for _ in range(RUNS)) / PACE)


def yardstick() -> int:
    """What the passes do most: small objects, dicts, tuples and large integers."""
    seen: dict[tuple[int, ...], int] = {}
    for k in range(2000):
        row = tuple([(n << 600 | k) & ~n for n in range(40)])
        seen[row] = seen.get(row[::-1], k)
    return len(seen)


@pytest.mark.parametrize("x", SCHEDULES, ids=lambda x: x.name)
def test_text_to_cubin(x: Timed):
    runs = [first(x)]
    while not runs[-1].keeps_its_bars() and len(runs) < RUNS:
        runs.append(took(x))
    assert runs[-1].keeps_its_bars(), runs


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)], ids=["every third", "all"])
def test_most_schedules_take_much_less(step: int):
    assert median(first(x).all for x in SCHEDULES[::step]) < MEDIAN_BAR


def test_import():
    def once() -> float:
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "import wgdsl"], check=True, cwd=ROOT)
        after = getrusage(RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(once() for _ in range(RUNS)) / slowness() < IMPORT_BAR

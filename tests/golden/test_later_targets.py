"""Every shipped schedule for sm_80 on the later targets of its family: compiled for that architecture, or refused with the
limit and with what fits."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

import wgdsl
from wgdsl.diagnostics.verify import SharedMemory
from wgdsl.foundation.resources import resource
from wgdsl.targets.choice import TARGETS, serves

WRITTEN = "sm_80"
LATER = tuple(t for t in TARGETS if t != WRITTEN and serves(WRITTEN, t))
DTYPES = ("bf16", "f16")
HEADS = {"fa2_narrow": 128, "fa2_wide": 256}  # what a schedule is for; 64 for the rest
MAY_SPILL = ("sm_120",)  # the schedules are sized for sm_80: `fa2_narrow` is some registers short there, and says so
BEYOND = ("fa2_wide", "fa2_wide_longest")  # what the later targets haven't the memory for


def written() -> list[tuple[str, str]]:
    """(program, schedule) of all that is shipped for sm_80."""
    texts = [p.read_text("utf-8") for p in sorted(resource("schedules", "ampere").glob("*.wg"))]
    heads = [h for text in texts for h in re.findall(r"^schedule (\w+) (?:for (\w+)|extends (\w+))", text, re.M)]
    programs = {name: program for name, program, _ in heads if program}
    return [(program or programs[base], name) for name, program, base in heads]


@dataclass(frozen=True)
class Case:
    program: str
    schedule: str
    target: str
    dtype: str

    @property
    def given(self) -> tuple[Path, str, str, dict[str, int], dict[str, str]]:
        file = resource("examples", self.program, f"{self.program}.wg")
        return file, self.schedule, self.target, self.dims, {"T": self.dtype}

    @property
    def dims(self) -> dict[str, int]:
        head = HEADS.get(self.schedule.removesuffix("_longest"), 64)
        return {"attention": {"D": head, "E": head}, "row_softmax": {"K": 128}}.get(self.program, {})


EVERY = [Case(*s, t, d) for s, t, d in product(written(), LATER, DTYPES)]
# Each schedule on one of the targets and in one of the types; each of these with several.
SAMPLE = [Case(*s, LATER[n % len(LATER)], DTYPES[n % len(DTYPES)]) for n, s in enumerate(written())]


def ids(cases: list[Case]) -> list[str]:
    return [f"{c.schedule}-{c.target}-{c.dtype}" for c in cases]


def compiled_or_refused(case: Case) -> None:
    answer = wgdsl.supports(*case.given)
    assert bool(answer) == (case.schedule not in BEYOND), answer.reason
    if not answer:
        (problem,) = answer.problems
        assert isinstance(problem, SharedMemory) and problem.limit == TARGETS[case.target].shared_limit and problem.nearest
        return
    nbytes = spilled(case)
    assert case.target in MAY_SPILL or not nbytes


def spilled(case: Case) -> int:
    """Bytes that the binary of a case spills; it is for its target."""
    kernel = wgdsl.compile(*case.given, build=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wgdsl.CompilerWarning)
        binaries = kernel.binaries.values()
    for binary in binaries:
        assert f".target {case.target}" in binary.ptx and binary.cubin[:4] == b"\x7fELF"
        assert all(r.target == case.target for r in binary.kernels)
    return sum(r.spill_stores + r.spill_loads for b in binaries for r in b.kernels)


@pytest.mark.parametrize("case", SAMPLE, ids=ids(SAMPLE))
def test_a_sample(case):
    compiled_or_refused(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", EVERY, ids=ids(EVERY))
def test_every_one(case):
    compiled_or_refused(case)


def test_the_sample_has_every_target_and_type():
    assert {c.target for c in SAMPLE} == set(LATER) and {c.dtype for c in SAMPLE} == set(DTYPES)
    assert {c.schedule for c in SAMPLE} >= {"fa2", "warps", "two_pass_warps", *BEYOND}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program, schedule", written(), ids=[s for _, s in written()])
def test_what_sm_80_takes(program, schedule, dtype):
    case = Case(program, schedule, WRITTEN, dtype)
    assert wgdsl.supports(*case.given) and not spilled(case)

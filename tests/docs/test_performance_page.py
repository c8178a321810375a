"""The page of timelines: its table holds the numbers of the cycle model."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT
from wgdsl.targets.cycles import A100, ALU, FMA, H200, MUFU, SHUFFLE, Cycles

PAGE = (ROOT / "docs" / "performance.md").read_text("utf-8")


def numbers(c: Cycles) -> dict[str, float]:
    return {
        "SMs": c.sms.value,
        "clock, GHz": c.clock.value,
        "16-bit FLOP of an SM a cycle": c.products.value,
        "FP32 add, multiply, both: results of an SM": c.lanes[FMA].value,
        "compare, min, max, conversions": c.lanes[ALU].value,
        "exp2, log2, reciprocal, tanh (MUFU)": c.lanes[MUFU].value,
        "shuffles": c.lanes[SHUFFLE].value,
        "instructions of a partition": 1,
        "cycles between two instructions of a warp": c.interval.value,
        "shared memory, bytes of an SM": c.shared.value,
        "its latency, cycles: also of a barrier that is passed, and of an exchange of lanes": c.shared_latency.value,
        "L2 cache, bytes of an SM": c.memory.value,
        "its latency, cycles": c.memory_latency.value,
        "memory, TB/s": c.bandwidth.value / 1e12,
    }


@pytest.mark.parametrize("column, machine", [(1, H200), (2, A100)], ids=["H200", "A100"])
def test_the_table_of_the_model(column, machine):
    table = PAGE.partition("| | sm_90a: an H200")[2].partition("\n\n")[0]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert {r[0]: float(r[column]) for r in rows} == pytest.approx(numbers(machine))


def test_ratios_follow_from_their_rows():
    rows = re.findall(r"\| (\d+) \| (\d+) \| (\d\.\d\d) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 15
    for measured, predicted, ratio in rows:
        assert float(ratio) == pytest.approx(int(predicted) / int(measured), abs=0.006)

"""Computations of the examples, each a program of its own over its own schedules, in the simulator against float64.

Odd sizes, none at all, outputs that begin as NaN, and several orders of the events.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import pytest

from wgdsl.driver import Settings, compile, prepare
from wgdsl.forms import explained
from wgdsl.foundation.resources import resource
from wgdsl.runtime.kernel import Kernel
from wgdsl.tools.running import run

ORDERS = (None, 1, 2)  # of the simulator's events; None is the canonical one


@dataclass(frozen=True)
class Example:
    """schedules: (name, target). options: every combination is compiled. sizes: of the dims that `fixed` leaves open."""

    schedules: tuple[tuple[str, str], ...]
    fixed: dict[str, int]
    sizes: tuple[dict[str, int], ...]
    options: dict[str, tuple] | None = None


HEADS = tuple(
    {"B": b, "M": m, "N": n, "H": h} for b, m, n, h in ((2, 70, 150, 1), (1, 1, 1, 2), (1, 140, 0, 1), (1, 200, 70, 1))
)
ROWS = tuple({"M": m, "N": n} for m, n in ((70, 300), (1, 1), (200, 0), (129, 129)))
OVER_KEYS = (("simple", "sm_90a"), ("overlapped", "sm_90a"), ("warps", "sm_80"))
OVER_ROWS = (("rows", "sm_90a"), ("warps", "sm_80"))


def over_keys(**fixed: int) -> Example:
    return Example(OVER_KEYS, fixed or {"D": 64, "E": 64}, HEADS, {"causal": (False, True)})


def over_rows() -> Example:
    return Example(OVER_ROWS, {"K": 64}, ROWS)


EXAMPLES = {
    "sigmoid_attention": over_keys(),
    "relu2_attention": over_keys(),
    "entropy": over_keys(),
    "two_values": over_keys(D=64, E=64, F=32),
    "normaliser": over_rows(),
    "cross_entropy": over_rows(),
    "kernel_density": over_rows(),
    "nearest": over_rows(),
    "chained": Example((("simple", "sm_90a"), ("warps", "sm_80")), {"K": 64, "E": 96}, ROWS),
}
EXAMPLES["retention"] = Example(
    OVER_KEYS,
    {"D": 64, "E": 64},
    tuple({"B": b, "N": n, "H": h} for b, n, h in ((2, 150, 1), (1, 1, 2), (1, 0, 1), (1, 200, 1))),
)
EXAMPLES["gemm_statistics"] = Example(
    (("pipelined", "sm_90a"), ("warps", "sm_80")),
    {},
    tuple({"M": m, "N": n, "K": k} for m, n, k in ((70, 300, 72), (1, 1, 8), (200, 0, 64), (129, 257, 200), (130, 260, 0))),
)
EXAMPLES["attention_bias"] = Example(
    (("biased", "sm_90a"), ("biased_warps", "sm_80")),
    {"D": 64, "E": 64},
    tuple({"B": b, "M": m, "N": n, "H": h} for b, m, n, h in ((2, 70, 152, 1), (1, 1, 8, 2), (1, 140, 0, 1), (1, 200, 72, 1))),
    {"causal": (False, True)},
)
EXAMPLES["attention_varlen"] = Example(
    (("varlen", "sm_90a"), ("varlen_longest", "sm_90a"), ("varlen_warps", "sm_80")),
    {"D": 64, "E": 64},
    tuple(
        {"B": b, "RowsQ": m, "RowsK": n, "LongestQ": m, "LongestK": n, "G": 1, "R": 2}
        for b, m, n in ((5, 300, 400), (1, 1, 1), (1, 130, 0), (3, 0, 70), (7, 200, 129))
    ),
    {"causal": (False, True)},
)
CASES = [
    (name, schedule, target, dtype, dict(zip(x.options or {}, values, strict=True)))
    for name, x in EXAMPLES.items()
    for schedule, target in x.schedules
    for dtype, values in zip(("bf16", "f16"), product(*(x.options or {}).values()), strict=False)
]


@cache
def _compiled(name: str, schedule: str, target: str, dtype: str, options: tuple[tuple[str, object], ...]) -> Kernel:
    path = resource("examples", name, f"{name}.wg")
    fixed = EXAMPLES[name].fixed
    return compile(path, schedule=schedule, target=target, dims=fixed, types={"T": dtype}, options=dict(options), build=False)


@pytest.mark.parametrize(("name", "schedule", "target", "dtype", "options"), CASES)
def test_right(name, schedule, target, dtype, options):
    kernel = _compiled(name, schedule, target, dtype, tuple(options.items()))
    for seed, dims in enumerate(EXAMPLES[name].sizes):
        for order in ORDERS:
            done = run(kernel, dims, device="sim", seed=seed, order=order, check=True)
            assert done.right, (dims, order, [str(v) for v in done.verdicts])


def test_every_example_has_a_program_a_schedule_and_a_script():
    for name in EXAMPLES:
        files = {p.name for p in resource("examples", name).iterdir()}
        assert {f"{name}.wg", "schedules.wg", "run.py"} <= files


@pytest.mark.parametrize(("name", "schedule", "target"), [(n, *s) for n, x in EXAMPLES.items() for s in x.schedules])
def test_the_explicit_form_gives_the_same_text(name, schedule, target):
    settings = Settings(dims=EXAMPLES[name].fixed, types={"T": "bf16"})
    path = resource("examples", name, f"{name}.wg")
    kernel, journal = prepare(path, schedule=schedule, target=target, settings=settings)
    again = compile(explained(journal.forms), build=False)
    assert again.roles == kernel.roles and again.forms.texts == kernel.forms.texts

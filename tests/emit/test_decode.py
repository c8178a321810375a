"""The grid's indices from an item's number: the emitted lines, run as Python, give every combination once and in order."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wgdsl
from tests.shipped import ROOT
from wgdsl.program.poly import Poly
from wgdsl.roles.items import Sections, divisors, multiplier, sections
from wgdsl.roles.model import Grid

LINE = re.compile(r"\s*const (?:int|Divisor) (\w+) = (.*);")


@given(st.integers(1, 2**31), st.integers(0, 2**31 - 1))
def test_a_division_is_a_multiplication(divisor: int, x: int):
    m, shift = multiplier(divisor)
    assert m < 2**32 and (2 * x * m >> 32) >> shift == x // divisor


@pytest.mark.parametrize("divisor", [1, 2, 3, 5, 7, 2**16 - 1, 2**16, 2**16 + 1, 2**30 + 1, 2**31 - 1, 2**31])
def test_around_multiples(divisor: int):
    m, shift = multiplier(divisor)
    for k in (0, 1, 2, (2**31 - 1) // divisor):
        for x in (k * divisor - 1, k * divisor, k * divisor + 1):
            if 0 <= x < 2**31:
                assert (2 * x * m >> 32) >> shift == x // divisor


def compiled(schedule: str, d: int, causal: bool) -> wgdsl.Kernel:
    program, sizes = ROOT / "examples" / "attention" / "attention.wg", {"D": d, "E": d}
    return wgdsl.compile(program, schedule, "sm_90a", dims=sizes, types={"T": "bf16"}, options={"causal": causal}, build=False)


def lines(text: str, first: str, last: str) -> list[str]:
    """The decoding lines of the role that computes."""
    rows = text.splitlines()
    start = next(k for k, row in enumerate(rows) if "// role math" in row)
    begin = next(k for k in range(start, len(rows)) if rows[k].strip().startswith(f"const int {first} "))
    end = next(k for k in range(begin, len(rows)) if re.match(rf"\s*const int {last} = ", rows[k]))
    return rows[begin : end + 1]


def python(expression: str) -> str:
    choice = re.fullmatch(r"(.*) \? (\w+) : (\w+)", expression)
    return f"{choice[2]} if {choice[1]} else {choice[3]}" if choice else expression.replace("ptx::", "").replace(" / ", " // ")


def indices(rows: list[str], grid: Grid, dims: dict[str, int]) -> list[dict[str, int]]:
    """What every item binds."""
    known = {n: p.evaluate(dims) for n, p in divisors(grid).items()}
    given = {n.replace(".", "_"): SimpleNamespace(value=v, magic=multiplier(v)) for n, v in known.items()}
    divided = lambda x, d: (2 * x * d.magic[0] >> 32) >> d.magic[1]  # noqa: E731
    blocks = {f"{a.index}_blocks": a.blocks.evaluate(dims) for a in grid.axes}
    total = 1
    for n in blocks.values():
        total *= n
    out = []
    for item in range(total):
        names = {**dims, **given, **blocks, "divided": divided, "max": max, "item": item}
        for row in rows:
            found = LINE.match(row)
            assert found, row
            names[found[1]] = eval(python(found[2]), {"__builtins__": {}}, names)
        out.append({n: names[n] for n in ("b", "g", "r", "i_lo")})
    return out


DIMS = [
    {"B": 1, "G": 1, "R": 1, "M": 1, "N": 1},
    {"B": 3, "G": 5, "R": 2, "M": 700, "N": 9999},
    {"B": 1, "G": 8, "R": 1, "M": 400, "N": 9999},
    {"B": 2, "G": 3, "R": 3, "M": 130, "N": 50000},
    {"B": 1, "G": 7, "R": 1, "M": 300, "N": 40000},
]


@pytest.mark.parametrize("dims", DIMS, ids=lambda d: "-".join(map(str, d.values())))
@pytest.mark.parametrize(
    ("schedule", "d", "causal"), [("three", 128, False), ("three_longest", 128, True), ("four_static", 64, True)]
)
def test_every_item_once(schedule: str, d: int, causal: bool, dims: dict[str, int]):
    kernel = compiled(schedule, d, causal)
    grid, cut = kernel.roles.kernels[0].grid, sections(kernel.roles.kernels[0].grid)
    found = indices(lines(kernel.cuda, "missing" if cut else "rest", "b"), grid, dims)
    tile = next(a.tile for a in grid.axes if a.index == "i")
    every = product(range(dims["B"]), range(dims["G"]), range(dims["R"]), range(0, dims["M"], tile))
    assert sorted(tuple(x.values()) for x in found) == sorted(every)
    if cut:
        in_order(found, cut, dims, -(-dims["M"] // tile))


def in_order(found: list[dict[str, int]], cut: Sections, dims: dict[str, int], rows: int) -> None:
    """Equal sections, but for the first, each by falling row and rising combination."""
    width, first = cut.width.evaluate(dims), cut.first.evaluate(dims)
    heads = [(x["b"] * dims["G"] + x["g"]) * dims["R"] + x["r"] for x in found]
    assert 1 <= first <= width
    start, at = 0, 0
    while at < len(found):
        wide = width if start else first
        part = range(at, at + wide * rows)
        assert [(-found[k]["i_lo"], heads[k]) for k in part] == sorted((-found[k]["i_lo"], heads[k]) for k in part)
        assert {heads[k] for k in part} == set(range(start, start + wide))
        start, at = start + wide, at + wide * rows


@given(st.integers(1, 500), st.integers(1, 60))
def test_sections_are_as_large_as_each_other(heads: int, most: int):
    grid = compiled("four_static", 64, True).roles.kernels[0].grid
    dims = {"B": 1, "G": heads, "R": 1, "M": 256, "N": 32 * 2**20 // (64 * 2 * 2) // most}
    cut = sections(grid)
    assert cut
    width, first = cut.width.evaluate(dims), cut.first.evaluate(dims)
    fits = max(1, 32 * 2**20 // (64 * 4) // max(dims["N"], 1))
    assert width <= fits and (heads - first) % width == 0 and 1 <= first <= width
    assert (heads - first) // width + 1 <= -(-heads // fits)  # no more sections than it takes


def test_a_section_of_nothing_is_one_of_one():
    kernel = compiled("four_static", 64, True).roles.kernels[0]
    assert kernel.grid.order
    cut = sections(replace(kernel.grid, order=replace(kernel.grid.order, size=Poly.of("N"))))
    dims = {"B": 2, "G": 3, "R": 1, "M": 100, "N": 0}
    assert cut and (cut.width.evaluate(dims), cut.first.evaluate(dims)) == (1, 1)


def test_a_divisor_and_a_scalar_of_one_name():
    text = (ROOT / "examples" / "attention" / "attention.wg").read_text().replace("scale", "combinations")
    longest = "schedule longest extends three { grid persistent over (b, g, r, i) longest_first }"
    kernel = wgdsl.compile(
        text + longest, "longest", "sm_90a", dims={"D": 64, "E": 64}, types={"T": "bf16"}, options={"causal": True}, build=True
    )
    assert "float combinations" in kernel.cuda and "Divisor combinations" in kernel.cuda

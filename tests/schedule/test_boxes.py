"""boxes: where the rows of a tile lie, against their places one by one."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from wgdsl.foundation.dtypes import F32
from wgdsl.program.poly import Poly, floordiv, mod
from wgdsl.roles.model import TensorMap
from wgdsl.schedule.boxes import sides
from wgdsl.sim.tensors import box_of

M, G = Poly.of("m"), Poly.of("g")
QUERIES = Poly.of("M")


def packed(heads: int) -> tuple[Poly, ...]:
    """Q[i, g * R + r] with m = (i, r)."""
    return floordiv(M, heads), heads * G + mod(M, heads)


def turned(queries: int, heads: int) -> tuple[Poly, ...]:
    """The same with m = (r, i)."""
    return mod(M, queries), heads * G + floordiv(M, queries)


def places(access, shape, extent, rows, start, at) -> list[tuple[int, ...] | None]:
    """Where a map's box has each row, None where it is clipped."""
    found = sides(access, shape, "m", extent, rows, rows)
    assert found is not None
    dims, boxes = [d for s in found for d in s.dims(shape)], [n for s in found for n in s.boxes]
    coords = [c.evaluate(at) for s in found for c in s.coords(Poly.of(start))]
    x = TensorMap(name="x", tensor="x", dtype=F32, dims=tuple(dims), box=tuple(boxes), swizzle=0)
    assert prod(boxes) == rows
    box = box_of(x, len(shape), coords, [d.extent.evaluate(at) for d in dims])
    elements = [np.broadcast_to(a, box.inside.shape).reshape(-1) for a in box.access]
    inside = box.inside.reshape(-1)
    return [tuple(int(e[k]) for e in elements) if inside[k] else None for k in range(rows)]


CASES = {
    "whole turns": (packed(8), (QUERIES, 8 * G + 8), 8 * QUERIES, 64),
    "two heads": (packed(2), (QUERIES, 2 * G + 2), 2 * QUERIES, 64),
    "more heads than rows": (packed(128), (QUERIES, 128 * G + 128), 128 * QUERIES, 64),
    "heads slow": (turned(16, 8), (Poly.of(16), 8 * G + 8), Poly.of(128), 64),
    "long heads slow": (turned(128, 3), (Poly.of(128), 3 * G + 3), Poly.of(384), 64),
    "clipped at the last head": (turned(2, 8), (Poly.of(2), 8 * G + 8), Poly.of(16), 64),
    "an index by itself": ((M,), (QUERIES,), QUERIES, 64),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_lie_where_the_program_reads_them(case):
    access, shape, extent, rows = CASES[case]
    at = {"g": 1, "M": 21}
    length = extent.evaluate(at)
    for start in range(0, length, rows):
        found = places(access, shape, extent, rows, start, at)
        for k in range(rows):
            own = tuple(p.evaluate({**at, "m": start + k}) for p in access)
            assert found[k] == (own if start + k < length else None)


@pytest.mark.parametrize(
    "access, extent",
    [
        (packed(3), 3 * QUERIES),  # a tile starts within a turn
        (turned(48, 2), Poly.of(96)),  # 64 rows are more than a turn, and no number of them
        ((floordiv(M, 8), mod(M, 4)), 8 * QUERIES),  # a part is missing
        ((2 * M,), QUERIES),
        ((floordiv(M, 8) + 1, mod(M, 8)), 8 * QUERIES),  # the next query would be read past the end
        ((M, M), QUERIES),  # a diagonal
        ((M, mod(M, 8)), QUERIES),
    ],
)
def test_no_box(access, extent):
    assert sides(access, (QUERIES, 8 * G), "m", extent, 64, 128) is None

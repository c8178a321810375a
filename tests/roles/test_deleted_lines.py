"""An explicit form without one of its lines is refused: by the reader, the structural checks or the simulator, or its results
differ. The lines that may go are listed, each with the reason."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.roles.test_read import text_of
from tests.shipped import Shipped, attention, gemm
from tests.sim.test_shipped import inputs, values
from wgdsl.diagnostics.model import WgError
from wgdsl.driver import prepare
from wgdsl.roles.checked import Checked
from wgdsl.sim import simulate

LINES = (
    "wait", "expect", "arrive", "advance", "tma", "commit", "fence", "sync", "wait_group", "wait_read", "commit_store", "pack",
    "store", "write", "put", "zero", "registers", "clear", "complete", "let", "wgmma",
)  # fmt: skip
CASES = {
    "simple": (attention("simple", True, 64), ((300, 600), (70, 0), (128, 200))),
    "fa3": (attention("fa3", True, 64), ((300, 600), (70, 0), (200, 128), (128, 200))),
    "fa3_persistent": (attention("fa3_persistent", True, 64), ((300, 600), (300, 0), (200, 128), (128, 200))),
    "gemm": (gemm("nk"), ((600, 600), (200, 0), (200, 201))),
}
FENCED = "no register has been written since the fence of the product before"
OVER = "nobody uses the ring after that"
# By schedule: a line, which of those alike (from 0), and why it may go.
NOT_NEEDED: dict[str, list[tuple[str, int, str]]] = {
    "simple": [("fence wgmma", 2, FENCED)],
    "fa3": [
        ("wait Ks.empty[s] parity not p", 0, "the first fill of a fresh ring"),
        ("advance Vs", 1, OVER),
        ("fence wgmma", 2, FENCED),
        ("fence wgmma", 4, FENCED),
        ("arrive Vs.empty[s] by lane 0 of each warp", 2, OVER),
        ("advance Vs", 4, OVER),
    ],
    "fa3_persistent": [
        ("fence wgmma", 2, FENCED),
        ("fence wgmma", 4, FENCED),
    ],
    "gemm": [
        ("fence wgmma", 1, FENCED),
        ("arrive As.empty[s] by lane 0 of each warp", 0, OVER),
        ("advance As", 2, OVER),
    ],
}


def outputs(text: str, case: Shipped, sizes) -> list[dict[str, np.ndarray]]:
    """The results of a form, with NaN in V at a key that some rows of its tile see. Raises WgError."""
    kernel, _ = prepare(text, target="sm_90a")
    out = []
    for size in sizes:
        arrays, scalars, dims = inputs(case, *size)
        if "B" in arrays and size[1] % 8:  # a result whose rows the copy engine can't store
            arrays, dims = odd_product(case, size[1], arrays, dims)
        if "V" in arrays and size[1] > 500:
            arrays["V"][:, 450] = np.nan
        out.append(simulate(Checked(kernel.roles), arrays, scalars, dims, sms=2))
    return out


def odd_product(case: Shipped, n: int, arrays: dict[str, np.ndarray], dims: dict[str, int]):
    return {**arrays, "B": values(2, case.dtype, n, dims["K"])}, {**dims, "N": n}


@cache
def right(name: str) -> list[dict[str, np.ndarray]]:
    case, sizes = CASES[name]
    return outputs(text_of(case), case, sizes)


def caught(name: str, text: str) -> WgError | str:
    """The refusal, or the output that differs; '' if nothing does."""
    case, sizes = CASES[name]
    try:
        found = outputs(text, case, sizes)
    except WgError as e:
        return e
    for a, b in zip(found, right(name), strict=True):
        for output, x in b.items():
            if not np.array_equal(a[output].astype(np.float64), x.astype(np.float64), equal_nan=True):
                return output
    return ""


def lines_of(name: str) -> list[int]:
    rows = text_of(CASES[name][0]).splitlines()
    first = next(n for n, row in enumerate(rows) if row.startswith("  kernel"))
    return [n for n in range(first, len(rows)) if (rows[n].split() or [""])[0] in LINES and rows[n].startswith(" " * 6)]


def told(row: str) -> str:
    """A line without what stands behind it."""
    return row.split("  @")[0].split('  "')[0].strip()


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n == "fa3_persistent" else ()) for n in CASES])
def test_every_line_is_needed(name: str):
    rows = text_of(CASES[name][0]).splitlines()
    seen: dict[str, int] = {}
    unneeded = []
    for n in lines_of(name):
        line = told(rows[n])
        found = caught(name, "\n".join([*rows[:n], *rows[n + 1 :]]) + "\n")
        if not found:
            unneeded.append((line, seen.get(line, 0)))
        elif isinstance(found, WgError):
            assert all(p.span is None or p.span.source.path == "<text>" for p in found.problems), "a place of another text"
        seen[line] = seen.get(line, 0) + 1
    assert unneeded == [(line, which) for line, which, _ in NOT_NEEDED[name]]

"""The CUDA text of every shipped kernel, whole, one file each.

`pytest tests/golden --snapshot-update` rewrites them; `wgdsl golden status` then lists those that no GPU has run yet.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shipped import KERNELS, Shipped, field_ids
from tests.snapshots import CudaFile


@pytest.mark.parametrize("shipped", KERNELS, ids=field_ids())
def test_golden(shipped: Shipped, snapshot):
    kernel = shipped.compile()
    assert kernel.cuda == snapshot(extension_class=CudaFile, name=shipped.name)


def test_no_golden_is_left_over():
    files = (Path(__file__).parent / "__snapshots__" / "test_golden").iterdir()
    assert {f.name for f in files} == {f"{name}.cu" for name in field_ids()}

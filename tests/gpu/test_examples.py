"""The examples' computations on a GPU: right at odd sizes and at none, the same bits twice unless CTAs add in any order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.examples.test_programs import CASES, EXAMPLES
from wgdsl.driver import compile
from wgdsl.foundation.resources import resource
from wgdsl.tools.running import run

pytestmark = pytest.mark.gpu
IN_ANY_ORDER = ("gemm_statistics",)


@pytest.mark.parametrize(("name", "schedule", "target", "dtype", "options"), CASES)
def test_right(name, schedule, target, dtype, options):
    path, x = resource("examples", name, f"{name}.wg"), EXAMPLES[name]
    kernel = compile(path, schedule=schedule, target=target, dims=x.fixed, types={"T": dtype}, options=options)
    for seed, dims in enumerate(x.sizes):
        first, second = (run(kernel, dims, device="gpu", seed=seed, check=True) for _ in range(2))
        for done in (first, second):
            assert done.right, (dims, [str(v) for v in done.verdicts])
        if name not in IN_ANY_ORDER:
            for output, values in first.results.items():
                assert np.array_equal(values.view(np.uint8), second.results[output].view(np.uint8)), (dims, output)

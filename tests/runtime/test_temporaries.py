"""Memory that passes between the kernels of a call: where each tensor lies, one block a stream, and that it is given back."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from tests.runtime.driver import Driver
from tests.shipped import ROOT
from wgdsl.driver import compile
from wgdsl.foundation.dtypes import BF16, F32
from wgdsl.program.poly import Poly
from wgdsl.roles.model import TensorArg
from wgdsl.runtime import cuda, temporaries
from wgdsl.runtime.arrays import ArrayView
from wgdsl.runtime.bind import Bound
from wgdsl.runtime.launch import refusals
from wgdsl.runtime.plan import Plan
from wgdsl.runtime.temporaries import Blocks, Passing

P = Poly.of
BOUND = Bound(dims={"M": 5, "N": 13}, scalars={})


GLOBAL, RELAXED, UNSUPPORTED = "global", "CU_STREAM_CAPTURE_MODE_RELAXED", 900


class Memory(Driver):
    """Device memory that counts what is taken and freed, both while a stream is being captured, as torch does it: whoever
    hasn't asked for the relaxed mode is refused."""

    def __post_init__(self):
        super().__post_init__()
        self.mode, self.taken, self.freed = GLOBAL, [], []

    def _cuThreadExchangeStreamCaptureMode(self, mode):
        before, self.mode = self.mode, mode
        return 0, before

    def _cuMemAlloc(self, count):
        if self.mode != RELAXED:
            return UNSUPPORTED, 0
        self.taken.append(count)
        return 0, 4096 * len(self.taken)

    def _cuMemFree(self, pointer):
        if self.mode != RELAXED:
            return (UNSUPPORTED,)
        self.freed.append(pointer)
        return (0,)


@pytest.fixture
def driver(monkeypatch):
    fake = Memory()
    for module in (temporaries, cuda):
        monkeypatch.setattr(module, "driver", lambda: fake)
    monkeypatch.setattr(temporaries, "on_device", lambda ordinal: nullcontext())
    yield fake
    assert fake.mode == GLOBAL, "the mode is that of the caller again"


def arg(name: str, dtype, *shape: str) -> TensorArg:
    return TensorArg(name=name, dtype=dtype, shape=tuple(map(P, shape)), written=True, temporary=True)


ARGS = (arg("H", BF16, "M", "N"), arg("Z", F32, "N"))


def test_rows_are_multiples_of_16_bytes():
    p = Passing(ARGS, BOUND, 3, Blocks())
    assert p.views["H"].shape == (5, 13) and p.views["H"].strides == (16, 1)
    assert p.views["Z"].shape == (13,) and p.views["Z"].strides == (1,)
    assert [v.pointer for v in p.views.values()] == [0, 256] and p.nbytes == 512
    assert {v.device for v in p.views.values()} == {3}


def test_one_block_for_each_stream(driver):
    blocks = Blocks()
    p = Passing(ARGS, BOUND, 0, blocks)
    for stream in (7, 7, 8):
        with p.held(stream) as addresses:
            base = {7: 4096, 8: 8192}[stream]
            assert addresses == (base, base + 256)
    assert driver.taken == [512, 512]


def test_a_block_grows_and_is_freed_with_its_kernel(driver):
    blocks = Blocks()
    with blocks.held(0, 7, 100), blocks.held(0, 8, 100):
        pass
    with blocks.held(0, 7, 5000) as pointer:
        assert pointer == 3 * 4096
    with blocks.held(0, 7, 200) as pointer:
        assert pointer == 3 * 4096, "the larger one serves smaller calls"
    assert driver.taken == [100, 100, 5000] and driver.freed == [], "a captured graph may still write to the old one"
    del blocks
    gc.collect()
    assert sorted(driver.freed) == [4096, 8192, 3 * 4096]


def test_the_run_time_lays_out_what_passes():
    """No odd length of a temporary tensor stands in the way of a launch."""
    kernel = compile(ROOT / "examples/gemm/gemm.wg", target="sm_90a", schedule="split", build=False)
    shapes = {"A": (5, 8), "B": (13, 8), "C": (5, 13)}
    assert [p for k in kernel.roles.kernels for p in refusals(k, shapes)] == []


def test_a_plan_launches_with_the_addresses_of_its_stream(driver):
    """The caller's arrays come first, what passes between the kernels behind them."""
    driver._cuCtxGetCurrent = lambda: (0, 0)
    device = cuda.Device(ordinal=0, name="H200", capability=(9, 0), multiprocessors=132, shared_limit=232448, context=0)
    seen = []

    class Recorded:
        def at(self, pointers):
            return SimpleNamespace(run=lambda stream: seen.append((stream, pointers)))

    views = {"A": ArrayView(0, (4,), (1,), "f32", 0, "torch")}
    passing = Passing(ARGS, BOUND, 0, Blocks())
    plan = Plan(device, views, frozenset(), lambda views: (Recorded(),), passing)
    for stream in (7, 8, 7):
        plan.run((64,), stream)
    assert seen == [(7, (64, 4096, 4352)), (8, (64, 8192, 8448)), (7, (64, 4096, 4352))]
    assert [*plan.views] == ["A", "H", "Z"]

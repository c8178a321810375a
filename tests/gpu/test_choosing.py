"""A kernel that chooses by lengths, on a GPU: right results of every pick, also inside a graph, and no slower for the host."""

from __future__ import annotations

import time

import pytest

import wgdsl
from wgdsl.foundation.resources import resource
from wgdsl.measured.table import Row, Table, write_table
from wgdsl.runtime.choosing import Choosing

torch = pytest.importorskip("torch")

from tests.gpu.support import captured, randn  # noqa: E402

pytestmark = pytest.mark.gpu
DEEP, SQUARE = {"M": 128, "N": 128, "K": 8192}, {"M": 1024, "N": 1024, "K": 1024}
SMALL = {"M": 256, "N": 256, "K": 256}  # nearer to the square: one kernel, quick enough for the host to be what counts
COMPILED = {"types": {"T": "bf16"}, "options": {"act": "none", "bias": False, "layout": "nk", "residual": False}}


@pytest.fixture
def path(tmp_path):
    """GEMM with a table of its own: parts of the stream for long K, whole tiles for squares. Its rows say all that is fixed,
    as those of the shipped table do: what a row leaves open would put it behind them."""
    times = [(DEEP, {"split": 1, "pipelined": 2}), (SQUARE, {"turns": 1, "split": 2})]
    rows = [Row(dims=dims, microseconds=us, **COMPILED) for dims, us in times]
    write_table(tmp_path / "my.sm_90a.json", Table(program="gemm", target="sm_90a", card="H", rows=tuple(rows)))
    (tmp_path / "my.wg").write_text(resource("examples", "gemm", "gemm.wg").read_text())
    return tmp_path / "my.wg"


@pytest.fixture
def kernel(path):
    made = wgdsl.compile(path, target="sm_90a", types={"T": "bf16"})
    assert isinstance(made, Choosing)
    return made


def inputs(m: int, n: int, k: int):
    return [randn(rows, k, dtype="bf16", seed=rows + side) for side, rows in enumerate((m, n))]


def empty(m: int, n: int):
    return torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)


def right(got, a, b) -> bool:
    want = a.double() @ b.double().T
    return bool((got - want).abs().max() <= 0.01 * want.abs().max())


def test_each_length_is_right_under_its_schedule(kernel):
    for (m, n, k), name in {(128, 128, 8192): "split", (1000, 1024, 904): "turns", (64, 100, 6000): "split"}.items():
        a, b = inputs(m, n, k)
        assert kernel.pick(M=m, N=n, K=k).roles.schedule == name
        for _ in range(3):
            assert right(kernel(A=a, B=b), a, b)
        out = empty(m, n)
        assert kernel(a, b, out=out) is out and right(out, a, b)


@pytest.mark.parametrize("dims, name", [(SQUARE, "turns"), (DEEP, "split")], ids=["one kernel", "several"])
def test_the_first_call_of_a_pick_can_be_captured(kernel, dims, name):
    assert kernel.pick(**dims).roles.schedule == name
    a, b = inputs(**{d.lower(): size for d, size in dims.items()})
    out = empty(dims["M"], dims["N"])
    with captured() as graph:
        kernel(A=a, B=b, out=out)
    for seed in (3, 4):
        a.copy_(randn(*a.shape, dtype="bf16", seed=seed))
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        assert right(out, a, b)


def test_the_host_time_is_that_of_a_plain_kernel(kernel):
    a, b = inputs(**{d.lower(): size for d, size in SMALL.items()})
    out, plain = empty(SMALL["M"], SMALL["N"]), kernel.pick(**SMALL)
    assert plain.roles.schedule == "turns"

    def once(call) -> float:
        start = time.perf_counter()
        for _ in range(2000):
            call(A=a, B=b, out=out)
        seconds = time.perf_counter() - start
        torch.cuda.synchronize()
        return seconds

    once(kernel), once(plain)
    times = [(once(kernel), once(plain)) for _ in range(7)]
    ours, theirs = (1e6 * min(t[k] for t in times) / 2000 for k in (0, 1))
    assert ours < 1.15 * theirs, f"{ours:.2f} us a call, {theirs:.2f} us of the plain kernel"

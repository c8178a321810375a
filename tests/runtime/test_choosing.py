"""Calls of a program under several schedules: the right one for each length, found once, and as quick as a plain kernel's."""

from __future__ import annotations

import inspect
import time
from dataclasses import replace

import numpy as np
import pytest

from tests.runtime.copying import callable_copy, pretended
from tests.runtime.fake_torch import Tensor, installed
from tests.runtime.graphs import SHAPES, kernel_of, zeros
from wgdsl.diagnostics.model import WgError
from wgdsl.runtime import cache, caller, nvrtc, tensor_map, torch_call
from wgdsl.runtime.arrays import view
from wgdsl.runtime.call import Interface
from wgdsl.runtime.choosing import Choosing, Switch
from wgdsl.runtime.kernel import Kernel

X, Y = 1 << 34, 1 << 35
BORDER = 1000  # rows from which the second kernel is taken


@pytest.fixture
def torch(monkeypatch):
    with installed(monkeypatch) as fake:
        yield fake


@pytest.fixture
def driver(monkeypatch):
    for m in (nvrtc, cache.nvrtc):
        monkeypatch.setattr(m, "version", lambda: "13.0")
    yield pretended(monkeypatch)
    tensor_map.forget()


class Two:
    """Two kernels, and how often one of them was asked for."""

    def __init__(self, short: Kernel, long: Kernel):
        self.short, self.long, self.asked = short, long, []
        self.kernel = Choosing(short.interface, self.chosen, lambda dims: (f"told of {dims}",))

    def chosen(self, dims) -> Kernel:
        self.asked.append(dict(dims))
        return self.long if dims.get("M", 0) >= BORDER else self.short


@pytest.fixture
def two(torch, driver, tmp_path) -> Two:
    short, long = callable_copy(tmp_path / "short"), callable_copy(tmp_path / "long")
    roles = replace(long.forms.roles, schedule="long")
    return Two(short, Kernel(replace(long.forms, roles=roles), long.cache))


def tensor(pointer=X, rows=100, **more) -> Tensor:
    return Tensor(pointer, (rows, 64), **more)


def test_each_length_goes_to_its_kernel(two, driver):
    for rows in (100, 2000, 100, 3000):
        x, y = tensor(rows=rows), tensor(Y, rows)
        assert two.kernel(X=x, out=y) is y
    assert [launch["values"][4] for launch in driver.launches] == [100, 2000, 100, 3000]
    assert driver.loads == 2 and [d["M"] for d in two.asked] == [100, 2000, 3000]


def test_a_call_that_comes_again_asks_nobody(two, driver, monkeypatch):
    x, y, long_x, long_y = tensor(), tensor(Y), tensor(rows=2000), tensor(Y, 2000)
    ways = [lambda a, b: {"X": a, "out": b}, lambda a, b: {"X": a, "out": {"Y": b}}, lambda a, b: {"X": a, "x": 2.0, "out": b}]
    for way in ways:
        two.kernel(**way(x, y))
        two.kernel(**way(long_x, long_y))

    def refuse(*_):
        raise AssertionError("this call was looked at in full")

    for cls in (caller.Caller, Switch):
        monkeypatch.setattr(cls, "first", refuse)
    before = len(driver.launches)
    for _ in range(2 * torch_call.OFTEN):
        for way in ways:
            assert two.kernel(**way(x, y)) is y and two.kernel(**way(long_x, long_y)) is long_y
    assert len(driver.launches) == before + 4 * torch_call.OFTEN * len(ways) and len(two.asked) == 2


def test_the_same_numbers_by_every_way_in(two, driver):
    x, y = tensor(rows=2000), tensor(Y, 2000)
    calls = [
        lambda: two.kernel(x, out=y),
        lambda: two.kernel(x, 1.0, out=y),
        lambda: two.kernel(X=x, M=2000, out=y),
        lambda: two.kernel(X=x, out={"Y": y}, device="gpu"),
    ]
    assert [call() for call in calls for _ in range(3)] == [y] * 12
    assert all(launch == driver.launches[0] for launch in driver.launches)


def test_results_that_are_not_given(two, torch):
    made = [two.kernel(X=tensor(rows=n)) for n in (100, 2000, 100)]
    assert [y.shape for y in made] == [(100, 64), (2000, 64), (100, 64)] and made == torch.made


REFUSED = [
    (lambda k: k(), "WG0612"),
    (lambda k: k(X=tensor(), Z=tensor()), "`Z`"),
    (lambda k: k(X=tensor(), x="1"), "WG0614"),
    (lambda k: k(X=tensor(), out=tensor(Y, 101)), "WG0604"),
    (lambda k: k(X=tensor(dtype="torch.float32")), "WG0602"),
]


@pytest.mark.parametrize("call, said", REFUSED)
def test_what_is_wrong_is_said_as_a_plain_kernel_says_it(two, call, said):
    for kernel in (two.kernel, two.short):
        for _ in range(2):
            with pytest.raises(WgError, match=said):
                call(kernel)


def test_it_is_a_kernel_and_says_so(two):
    assert isinstance(two.kernel, Kernel) and "by the lengths" in repr(two.kernel)
    assert [*inspect.signature(two.kernel).parameters] == ["args", "X", "x", "out", "device", "others"]


def test_its_forms_are_those_where_no_length_is_known(two):
    assert two.kernel.roles.schedule == two.short.roles.schedule == two.kernel.pick().roles.schedule
    assert two.kernel.cuda == two.short.cuda and two.kernel.binaries and two.kernel.cubin == two.short.cubin
    assert two.kernel.target == "sm_90a" and two.kernel.graph == two.short.graph


def test_the_kernel_for_some_dims(two):
    pick = two.kernel.pick(M=2000)
    assert type(pick) is not type(two.kernel) and pick.roles.schedule == "long" and pick.forms.told == ("told of {'M': 2000}",)
    assert two.kernel.pick(M=2000) is pick and two.kernel.pick(N=64, M=2000) is not pick
    assert two.short.pick(M=2000) is two.short, "a plain kernel is its own"


@pytest.mark.parametrize("dims, said", [({"Z": 3}, "WG0613"), ({"M": -1}, "WG0620"), ({"M": "3"}, "WG0614")])
def test_dims_that_can_not_be(two, dims, said):
    for kernel in (two.kernel, two.short):
        with pytest.raises(WgError, match=said):
            kernel.pick(**dims)


def test_the_launches_of_a_timer(two):
    arrays = {"X": tensor(rows=2000), "Y": tensor(Y, 2000)}
    given = two.kernel.interface.sort((), {"X": arrays["X"]}, {"Y": arrays["Y"]})
    assert len(two.kernel.launches(given, {n: view(n, a) for n, a in arrays.items()})) == 1
    assert two.asked == [{"M": 2000, "N": 64}]


def test_other_backends_take_the_same_pick():
    (short, seen), (long, noted) = kernel_of(), kernel_of()
    kernel = Choosing(Interface(short.graph), lambda dims: long if dims["M"] > 80 else short, lambda dims: ())
    for m, expected, other in ((77, seen, noted), (99, noted, seen)):
        expected.dims = other.dims = None
        q = zeros((2, m, 8, 16))
        assert kernel(Q=q, K=zeros(SHAPES["K"]), W=1, device="sim").O.shape == q.shape
        assert expected.dims["M"] == m and other.dims is None
    out = np.ones((2, 77, 8, 16), zeros(1).dtype)
    assert kernel.simulate(zeros(SHAPES["Q"]), zeros(SHAPES["K"]), W=1, out={"O": out}, seed=3).O is out and not out.any()


def test_the_host_time_is_that_of_a_plain_kernel(two):
    x, y = tensor(), tensor(Y)

    def once(kernel) -> float:
        start = time.process_time()
        for _ in range(2000):
            kernel(X=x, out=y)
        return time.process_time() - start

    once(two.kernel), once(two.short)
    times = [(once(two.kernel), once(two.short)) for _ in range(7)]
    ratio = min(t[0] for t in times) / min(t[1] for t in times)
    assert ratio < 1.15, f"{ratio:.2f} times as long"

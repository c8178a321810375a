"""Calls that come again: what is recognised, and that nothing a first look would refuse slips through afterwards.

A torch and a driver made of Python: the launches are compared with what the tensors say.
"""

from __future__ import annotations

import ctypes
import threading
from dataclasses import replace

import numpy as np
import pytest

from tests.runtime.copying import callable_copy, pretended
from tests.runtime.fake_torch import SPARSE, Parameter, Place, Tensor, installed
from wgdsl.diagnostics.model import WgError
from wgdsl.runtime import cache, caller, nvrtc, tensor_map, torch_call
from wgdsl.runtime import kernel as kernel_module
from wgdsl.runtime.arrays import view
from wgdsl.runtime.torch_guard import check_of

X, Y = 1 << 34, 1 << 35


@pytest.fixture
def torch(monkeypatch):
    with installed(monkeypatch) as fake:
        yield fake


@pytest.fixture
def driver(monkeypatch):
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    monkeypatch.setattr(cache.nvrtc, "version", lambda: "13.0")
    yield pretended(monkeypatch)
    tensor_map.forget()


@pytest.fixture
def kernel(torch, driver, tmp_path):
    return callable_copy(tmp_path)


def tensor(pointer=X, shape=(100, 64), **more) -> Tensor:
    return Tensor(pointer, shape, **more)


def codes(e) -> list[str]:
    return [p.code for p in e.value.problems]


@pytest.fixture
def blind(monkeypatch):
    """From when it is called, no call is looked at in full."""

    def go():
        def refuse(*_):
            raise AssertionError("this call was looked at in full")

        monkeypatch.setattr(caller.Caller, "first", refuse)

    return go


def test_a_call_that_comes_again_is_launched_at_once(kernel, driver, blind):
    x, y = tensor(), tensor(Y)
    assert kernel(X=x, out=y) is y
    blind()
    for k in range(2 * torch_call.OFTEN):
        assert kernel(X=x, out=y) is y, k
    assert len(driver.launches) == 1 + 2 * torch_call.OFTEN and len(driver.maps) == 2 and driver.loads == 1
    first, *others = driver.launches
    assert all(other == first for other in others)
    assert (first["blocks"], first["values"][2:]) == (2, [Y, 64, 100, 1.0, 1])


def test_every_form_of_a_call(kernel, blind):
    x, y = tensor(), tensor(Y)
    forms = [
        lambda: kernel(x, out=y),
        lambda: kernel(X=x, out=y),
        lambda: kernel(x, 0.5, out=y),
        lambda: kernel(X=x, x=0.5, out=y),
        lambda: kernel(x=0.5, X=x, out={"Y": y}),
        lambda: kernel(x, M=100, out={"Y": y}),
    ]
    for call in forms:
        assert call() is y
    blind()
    for call in forms:
        assert call() is y


def test_outputs_are_allocated_anew_each_time(kernel, torch, driver, blind):
    results = [kernel(tensor())]
    blind()
    results += [kernel(tensor()) for _ in range(3)]
    assert results == torch.made and len({y.pointer for y in results}) == 4
    for y, done in zip(results, driver.launches, strict=True):
        assert (y.shape, y.strides, y.dtype, y.device) == ((100, 64), (64, 1), "torch.float16", Place("cuda", 0))
        assert done["values"][2] == y.pointer


def test_new_addresses_take_new_maps_of_what_has_moved(kernel, driver, blind):
    kernel(tensor(), out=tensor(Y))
    blind()
    kernel(tensor(X + 4096), out=tensor(Y))
    assert [m[2] for m in driver.maps] == [X, Y, X + 4096]
    kernel(tensor(X), out=tensor(Y + 4096))
    assert [m[2] for m in driver.maps] == [X, Y, X + 4096, Y + 4096]
    assert [done["values"][:3] for done in driver.launches] == [[1, 2, Y], [3, 2, Y], [1, 4, Y + 4096]]


CHANGES = {
    "element type": (lambda x: replace(x, dtype="torch.bfloat16"), "WG0602"),
    "rank": (lambda x: replace(x, shape=(1, 100, 64), strides=()), "WG0601"),
    "innermost stride": (lambda x: replace(x, strides=(128, 2)), "WG0607"),
    "row pitch": (lambda x: replace(x, strides=(65, 1)), "WG0608"),
    "base address": (lambda x: replace(x, pointer=X + 2), "WG0609"),
    "half an element": (lambda x: replace(x, pointer=X + 1), "WG0609"),
    "host": (lambda x: replace(x, device=Place("cpu")), "WG0603"),
    "another device": (lambda x: replace(x, device=Place("cuda", 1)), "WG0603"),
    "a device of another kind": (lambda x: replace(x, device=Place("xpu", 0)), "WG0617"),
    "gradient": (lambda x: replace(x, requires_grad=True), "WG0611"),
    "layout": (lambda x: replace(x, layout=SPARSE), "WG0617"),
    "a sign to come": (lambda x: replace(x, negative=True), "WG0617"),
    "no memory": (lambda x: replace(x, pointer=0), "WG0617"),
    "not an array": (lambda x: [1.0], "WG0617"),
    "nothing": (lambda x: None, "WG0612"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_the_first_look_refuses_is_refused_later(kernel, driver, name):
    change, code = CHANGES[name]
    x, y = tensor(), tensor(Y)
    for _ in range(3):
        kernel(x, out=y)
    for _ in range(2):
        with pytest.raises(WgError) as e:
            kernel(change(x), out=y)
        assert codes(e) == [code] and len(driver.launches) == 3
    kernel(x, out=y)
    assert driver.launches[-1] == driver.launches[0], "and the next call is as before"


OUTPUTS = {
    "other rows": (replace(tensor(Y), shape=(99, 64)), "WG0604"),
    "element type": (tensor(Y, dtype="torch.float32"), "WG0602"),
    "broadcast": (tensor(Y, strides=(0, 1)), "WG0610"),
    "a sliding window": (tensor(Y, strides=(1, 1)), "WG0610"),
    "the input": (tensor(X), "WG0625"),
    "part of the input": (tensor(X + 128), "WG0625"),
    "gradient": (tensor(Y, requires_grad=True), "WG0611"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_that_are_refused(kernel, driver, name):
    wrong, code = OUTPUTS[name]
    for _ in range(3):
        kernel(tensor(), out=tensor(Y))
    with pytest.raises(WgError) as e:
        kernel(tensor(), out=wrong)
    assert codes(e) == [code] and len(driver.launches) == 3


def test_gradients_are_no_matter_without_grad_mode(kernel, torch):
    x, y = Parameter(X, (100, 64), requires_grad=True), tensor(Y)
    torch.grad = False
    for _ in range(3):
        kernel(x, out=y)
    torch.grad = True
    with pytest.raises(WgError, match="requires a gradient"):
        kernel(x, out=y)


def test_slices_of_one_buffer(kernel, driver):
    """Interleaved columns: the bytes of one lie between those of the other, and none is shared."""
    kernel(tensor(X, strides=(128, 1)), out=tensor(X + 128, strides=(128, 1)))
    with pytest.raises(WgError, match="`Y` shares memory with `X`"):
        kernel(tensor(X, strides=(128, 1)), out=tensor(X + 112, strides=(128, 1)))
    assert len(driver.launches) == 1


def test_new_lengths_are_read(kernel, driver):
    for m in (1, 64, 65, 1000):
        kernel(tensor(shape=(m, 64)), out=tensor(Y, shape=(m, 64)))
    assert [done["values"][4] for done in driver.launches] == [1, 64, 65, 1000]
    assert [done["blocks"] for done in driver.launches] == [1, 1, 2, 16]


def test_nothing_to_do(kernel, driver):
    for _ in range(3):
        kernel(tensor(0, shape=(0, 64)), out=tensor(0, shape=(0, 64)))
    assert not driver.launches and not driver.loads


def test_a_store_by_hand_where_the_engine_cannot(kernel, driver):
    for pointer in (Y, Y + 2, Y + 16, Y + 34):
        kernel(tensor(), out=tensor(pointer))
    assert [(done["values"][2], done["values"][6]) for done in driver.launches] == [
        (Y, 1),
        (Y + 2, 0),
        (Y + 16, 1),
        (Y + 34, 0),
    ]


def test_numbers(kernel, driver):
    given = [0.5, 0.0, -0.0, 2, 2.0, True, float("nan"), float("nan"), np.float32(0.25), np.array(3.0), 0.1, 0.5]
    for value in given:
        kernel(tensor(), value, out=tensor(Y))
    got = [done["values"][5] for done in driver.launches]
    assert [str(v) for v in got] == [str(ctypes.c_float(float(v)).value) for v in given]
    with pytest.raises(WgError, match="WG0614"):
        kernel(tensor(), "2.0", out=tensor(Y))


def test_a_number_in_an_array_is_read_at_each_call(kernel, driver):
    scale = np.array(1.0)
    for value in (1.0, 2.0, 3.0):
        scale[...] = value
        kernel(tensor(), scale, out=tensor(Y))
    assert [done["values"][5] for done in driver.launches] == [1.0, 2.0, 3.0]


def test_dims_by_name_are_compared_by_type(kernel):
    x, y = tensor(), tensor(Y)
    for _ in range(3):
        kernel(x, M=100, out=y)
    with pytest.raises(WgError, match="a whole number"):
        kernel(x, M=100.0, out=y)
    with pytest.raises(WgError, match="M is 100"):
        kernel(x, M=99, out=y)


def test_the_current_stream_of_each_call(kernel, torch, driver):
    for stream in (0, 5, 5, 9, 0):
        torch.streams[0] = stream
        kernel(tensor(), out=tensor(Y))
    assert [done["stream"] for done in driver.launches] == [0, 5, 5, 9, 0]


def test_the_device_of_the_arrays(kernel, torch, driver):
    """Its context is current during the launch, and what was current is so again; one cubin serves both."""
    torch.streams[1] = 11
    contexts = []
    launch = driver._cuLaunchKernel
    driver._cuLaunchKernel = lambda *args: (contexts.append(driver.context), launch(*args))[1]
    there = Place("cuda", 1)
    for _ in range(3):
        kernel(tensor(), out=tensor(Y))
        kernel(tensor(device=there), out=tensor(Y, device=there))
        assert driver.context == 0
    assert contexts == [77, 78] * 3 and [done["stream"] for done in driver.launches] == [0, 11] * 3
    assert driver.loads == 1
    with pytest.raises(WgError, match="`Y` is on cuda:1, but `X` is on cuda:0"):
        kernel(tensor(), out=tensor(Y, device=there))


def test_a_context_that_is_current_stays_so(kernel, driver):
    driver.context = 77
    kernel(tensor(), out=tensor(Y))
    assert driver.context == 77


def test_a_launch_that_fails_is_no_result(kernel, driver):
    kernel(tensor(), out=tensor(Y))
    driver.refuse["cuLaunchKernel"] = 701
    with pytest.raises(RuntimeError, match="cuLaunchKernel failed with 701"):
        kernel(tensor(), out=tensor(Y))


def test_subclasses_are_looked_at_in_full(kernel, monkeypatch):
    class Wrapped(Tensor):
        pass

    seen = []
    first = caller.Caller.first
    monkeypatch.setattr(caller.Caller, "first", lambda *args: (seen.append(1), first(*args))[1])
    for _ in range(3):
        kernel(Wrapped(X, (100, 64)), out=tensor(Y))
    assert len(seen) == 3


def test_threads_have_buffers_of_their_own(kernel, driver):
    """Eight threads, each with arrays of its own: what the driver reads while it copies arguments is never another's."""
    wrong = []

    def work(n: int):
        x, y = tensor(X + (n << 20)), tensor(Y + (n << 20))
        for m in range(1, 60):
            x.shape = y.shape = (m, 64)
            kernel(x, float(n), out=y)
        if kernel(x, float(n), out=y) is not y:
            wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and len(driver.launches) == 8 * 60 and driver.loads == 1
    for done in driver.launches:
        x_map, y_map, pointer, _, m, scale, _ = done["values"]
        n = (pointer - Y) >> 20
        assert scale == n and driver.maps[x_map - 1][2:4] == (X + (n << 20), (64, m)) and driver.maps[y_map - 1][2] == pointer


def test_what_is_remembered_is_bounded(kernel):
    for m in range(1, 600):
        kernel(tensor(shape=(m, 64)), out=tensor(Y, shape=(m, 64)))
        kernel(tensor(X + 4096 * m), out=tensor(Y))
    c = kernel._caller
    form = c._forms((1, torch_call.ALONE))
    kernel(tensor(), M=100, out=tensor(Y))
    for m in range(1, 600):
        form.find(tensor(shape=(m, 64)), tensor(Y, shape=(m, 64)))
    assert form.cells.cache_info().currsize <= torch_call.PLANS and c._plans.cache_info().currsize <= caller.PLANS
    plan = c.plan(c.interface.sort((tensor(),), {}, tensor(Y)), {"X": view("X", tensor()), "Y": view("Y", tensor(Y))})
    for m in range(600):
        plan.run((X + 16 * m, Y + 2 * m), 0)
    assert len(plan.launches) <= 128 and len(plan._templates) <= 16
    for n in range(200):
        with pytest.raises(WgError):
            kernel(tensor(), **{f"unknown{n}": 1})
    assert c._forms.cache_info().currsize <= caller.FORMS


def test_other_kernels_share_nothing(torch, driver, tmp_path):
    first, second = callable_copy(tmp_path), callable_copy(tmp_path)
    first(tensor(), out=tensor(Y))
    second(tensor(), 2.0, out=tensor(Y))
    assert [done["values"][5] for done in driver.launches] == [1.0, 2.0] and driver.loads == 2
    assert isinstance(first, kernel_module.Kernel)


def test_without_torchs_own_check(torch):
    assert check_of([tensor()]) is None

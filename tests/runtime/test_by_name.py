"""Calls by name: the same as any other call, whatever is given in which way."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from dataclasses import replace
from typing import Any

import pytest

from tests.runtime.copying import callable_copy, pretended
from tests.runtime.fake_torch import Place, Tensor, installed
from tests.runtime.graphs import kernel_of, zeros
from wgdsl.diagnostics.model import WgError
from wgdsl.runtime import cache, nvrtc, tensor_map
from wgdsl.runtime.kernel import Kernel

X, Y = 1 << 34, 1 << 35


@pytest.fixture(params=["quick allocation", "torch's own"])
def torch(monkeypatch, request):
    with installed(monkeypatch, quick=request.param == "quick allocation") as fake:
        yield fake


@pytest.fixture
def driver(monkeypatch):
    for m in (nvrtc, cache.nvrtc):
        monkeypatch.setattr(m, "version", lambda: "13.0")
    yield pretended(monkeypatch)
    tensor_map.forget()


@pytest.fixture
def kernel(torch, driver, tmp_path):
    return callable_copy(tmp_path)


def tensor(pointer=X, shape=(100, 64), **more) -> Tensor:
    return Tensor(pointer, shape, **more)


def test_every_way_in_turn(kernel, driver):
    x, y = tensor(), tensor(Y)
    ways = [
        lambda: kernel(X=x, out=y),
        lambda: kernel(X=x, x=None, out=y),
        lambda: kernel(x=1.0, X=x, out={"Y": y}),
        lambda: kernel(x, out=OrderedDict(Y=y)),
        lambda: kernel(x, x=1.0, out=y, device="gpu"),
        lambda: kernel(x, 1.0, out=y),
        lambda: kernel(X=x, M=100, out={"Y": y}),
    ]
    for _ in range(4):
        for way in ways:
            assert way() is y
    assert len(driver.launches) == 4 * len(ways) and all(done == driver.launches[0] for done in driver.launches)


def test_results_that_are_not_given(kernel, torch):
    for out in (None, {}, {"Y": None}):
        assert [kernel(X=tensor(), out=out) for _ in range(3)] == torch.made[-3:]
    assert len(torch.made) == 9 and len({y.pointer for y in torch.made}) == 9


def test_results_lie_with_the_inputs(kernel, torch):
    """Whatever torch holds for the current device."""
    for current in (0, 1, 0):
        torch.current = current
        assert all(kernel(X=tensor()).device == Place("cuda", 0) for _ in range(3))


REFUSED = [
    (lambda k: k(), "WG0612"),
    (lambda k: k(X=None), "WG0612"),
    (lambda k: k(tensor(), X=tensor()), "a second time"),
    (lambda k: k(tensor(), 1.0, 2.0), "number 3"),
    (lambda k: k(X=tensor(), Z=tensor()), "`Z`"),
    (lambda k: k(X=tensor(), out={"Z": tensor(Y)}), "`Z`"),
    (lambda k: k(X=tensor(), out={"Y": tensor(Y), "Z": tensor(Y)}), "`Z`"),
    (lambda k: k(X=tensor(), x="1"), "WG0614"),
]


@pytest.mark.parametrize("call, said", REFUSED)
def test_refusals_come_again(kernel, call, said):
    for _ in range(3):
        with pytest.raises(WgError, match=said):
            call(kernel)
    assert kernel(X=tensor(), out=tensor(Y))


def test_the_signature_is_the_programs(kernel):
    assert [*inspect.signature(kernel).parameters] == ["args", "X", "x", "out", "device", "others"]
    assert (
        isinstance(kernel, Kernel) and type(kernel).__name__ == "Kernel" and "Arrays by name" in (kernel.__call__.__doc__ or "")
    )


def test_a_copy_calls_its_own_kernel(kernel, driver, tmp_path):
    """Made by the class of another one."""
    kernel(X=tensor(), out=tensor(Y))
    own = type(kernel)(replace(kernel.forms, texts={"copy": "another"}), kernel.cache)
    own(X=tensor(), out=tensor(Y))
    own(tensor(), 2.0, out=tensor(Y))
    assert driver.loads == 2 and type(own) is type(kernel)
    assert [k._caller._forms.cache_info().currsize for k in (own, kernel)] == [1, 0]
    with pytest.raises(TypeError, match="derive from Kernel"):
        type("Mine", (type(kernel),), {})


def test_classes_of_ones_own(kernel, driver):
    seen = []

    class Noting(Kernel):
        def __call__(self, *args, **named):
            seen.append(named)
            return super().__call__(*args, **named)

    mine, x, y = Noting(kernel.forms, kernel.cache), tensor(), tensor(Y)
    assert mine(X=x, out=y) is y and mine(X=x, out=y) is y and len(seen) == 2


def test_names_that_python_keeps_for_itself():
    graph, _ = kernel_of()
    nodes = [replace(n, name="lambda") if n.name == "Q" else n for n in graph.graph.nodes]
    kernel, noted = kernel_of(replace(graph.graph, nodes=tuple(nodes)))
    assert type(kernel) is Kernel
    arrays: dict[str, Any] = {"lambda": zeros((2, 77, 8, 16)), "K": zeros((2, 90, 2, 16))}
    kernel.simulate(**arrays, W=1)
    assert noted.dims["R"] == 4

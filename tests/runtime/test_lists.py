"""Lists of tiles between calls, on a torch and a driver made of Python: which kernels are launched, and what is refused."""

from __future__ import annotations

import pytest

from tests.programs.test_listed import PROGRAMS, listed
from tests.runtime.copying import pretended
from tests.runtime.fake_torch import Place, Tensor, installed
from wgdsl.diagnostics.model import WgError
from wgdsl.runtime import cache, caller, nvrtc, temporaries, tensor_map
from wgdsl.runtime.cache import Cache
from wgdsl.runtime.kernel import Kernel
from wgdsl.runtime.nvrtc import Compiled

LISTING, MAIN = (6, 256), (12, 384)  # thread blocks, threads


@pytest.fixture
def torch(monkeypatch):
    with installed(monkeypatch) as fake:
        yield fake


@pytest.fixture
def driver(monkeypatch):
    monkeypatch.setattr(nvrtc, "version", lambda: "13.0")
    monkeypatch.setattr(cache.nvrtc, "version", lambda: "13.0")
    fake = pretended(monkeypatch)
    fake.kinds = ()
    monkeypatch.setattr(temporaries, "driver", lambda: fake)
    monkeypatch.setattr(temporaries, "_free_all", lambda blocks: None)
    monkeypatch.setattr(type(fake), "_cuMemAlloc", lambda self, count: (0, 1 << 41), raising=False)
    yield fake
    tensor_map.forget()


@pytest.fixture
def kernel(torch, driver, tmp_path):
    made = Compiled(cubin=b"\x7fELF", ptx="", log="", nvrtc="13.0", seconds=0.0)
    return Kernel(listed(PROGRAMS["documents"], "fa3").forms, Cache(tmp_path, lambda text, arch, name: made))


def arguments(n: int = 700, device: int = 0) -> dict[str, Tensor]:
    """Two batches of 300 queries and n keys, two heads for one key head."""
    shapes = {"Q": (2, 300, 2, 64), "K": (2, n, 1, 64), "V": (2, n, 1, 64), "doc": (2, 300), "other": (2, n)}
    kinds = {"doc": "torch.int32", "other": "torch.int32"}
    place = Place("cuda", device)
    return {
        name: Tensor((k + 1) << 34, shape, dtype=kinds.get(name, "torch.bfloat16"), device=place)
        for k, (name, shape) in enumerate(shapes.items())
    }


def launched(driver) -> list[tuple[int, int]]:
    found = [(x["blocks"], x["threads"]) for x in driver.launches]
    driver.launches.clear()
    return found


def test_lists_that_are_kept_cost_no_launch(kernel, driver):
    given = arguments()
    kernel(**given)
    assert launched(driver) == [LISTING, MAIN]
    made = kernel.list_tiles(doc=given["doc"], other=given["other"])
    assert launched(driver) == [LISTING]
    assert (made.array.shape, made.array.dtype, made.dims) == ((2, 3, 7), "torch.int32", {"B": 2, "M": 300, "N": 700})
    for _ in range(3):
        kernel(**given, tiles=made)
    assert launched(driver) == [MAIN] * 3
    kernel.list_tiles(**given)
    assert launched(driver) == [LISTING]


def test_a_call_on_lists_is_recognised(kernel, driver, monkeypatch):
    given = arguments()
    made = kernel.list_tiles(**given)
    kernel(**given, tiles=made)

    def refuse(*_):
        raise AssertionError("this call was looked at in full")

    monkeypatch.setattr(caller.Caller, "first", refuse)
    for _ in range(3):
        kernel(**given, tiles=made)


def test_lists_for_other_arrays_are_refused_again_and_again(kernel, driver):
    made = kernel.list_tiles(**arguments())
    for _ in range(3):
        kernel(**arguments(), tiles=made)
        with pytest.raises(WgError, match=r"WG0659.*N = 700, and N is 699"):
            kernel(**arguments(699), tiles=made)
        with pytest.raises(WgError, match=r"WG0603"):
            kernel(**arguments(device=1), tiles=made)


def test_lists_without_keys_have_room_for_their_length(kernel, driver):
    assert kernel.list_tiles(**arguments(0)).array.shape == (2, 3, 1)

"""Launches, with a driver made of Python: what arguments the kernel gets, what grid, and what a failing call becomes."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import pytest

from tests.runtime.copying import H200, KINDS, pretended, scaled_copy
from wgdsl.diagnostics.model import EnvironmentFault, WgError
from wgdsl.program.poly import Poly
from wgdsl.roles.items import multiplier
from wgdsl.roles.model import Order, Param
from wgdsl.runtime import cuda, module, tensor_map
from wgdsl.runtime.arrays import ArrayView, contiguous
from wgdsl.runtime.bind import Bound
from wgdsl.runtime.launch import Launcher
from wgdsl.runtime.module import Module
from wgdsl.runtime.nvrtc import Compiled


@pytest.fixture
def driver(monkeypatch):
    yield pretended(monkeypatch)
    tensor_map.forget()


def view(shape, strides=None, pointer=1 << 34):
    return ArrayView(pointer, shape, strides or contiguous(shape), "f16", 0, "torch")


def ready(m=100, n=64, x=None, y=None, persistent=False, target="sm_90a") -> Any:
    """The launch of one call; None if there is nothing to do."""
    kernel = scaled_copy(persistent)
    views = {"X": x or view((m, n)), "Y": y or view((m, n), pointer=1 << 35)}
    cubin = Module(cubin=b"\x7fELF", entry="copy", target=target, shared=kernel.shared_bytes + 1024)
    made = Launcher(kernel).template(cubin, views, Bound(dims={"M": m, "N": n}, scalars={"x": 0.1}), H200)
    return made and made.at([v.pointer for v in views.values()])


def test_arguments_in_order(driver):
    ready().run(stream=5)
    (done,) = driver.launches
    assert done["values"] == [1, 2, 1 << 35, 64, 100, ctypes.c_float(0.1).value, 1]
    assert (done["blocks"], done["threads"], done["shared"], done["stream"]) == (2, 256, 5120, 5) and driver.shared == 5120
    kind, rank, pointer, extents, strides, box, steps, swizzle, l2, fill = driver.maps[0]
    assert (kind, rank, pointer) == ("CU_TENSOR_MAP_DATA_TYPE_FLOAT16", 2, 1 << 34)
    assert (extents, strides, box, steps) == ((64, 100), (128,), (64, 64), (1, 1))
    assert (swizzle, l2) == ("CU_TENSOR_MAP_SWIZZLE_128B", "CU_TENSOR_MAP_L2_PROMOTION_L2_256B") and fill.endswith("NONE")


def test_a_store_that_the_engine_cannot_make_is_flagged(driver):
    odd = view((100, 63), (65, 1), pointer=(1 << 35) + 2)
    ready(n=63, x=view((100, 63), (64, 1)), y=odd).run(0)
    assert driver.launches[0]["values"][2:] == [odd.pointer, 65, 100, ctypes.c_float(0.1).value, 0]
    assert driver.maps[1][2] % 16 == 0 and driver.maps[1][3] == (1, 1), "the map it gets is a legal one all the same"


def test_a_load_that_the_engine_cannot_make_is_refused(driver):
    with pytest.raises(WgError, match="the stride of `X` along axis 0 is 126 bytes"):
        ready(n=63)


def test_maps_are_made_once(driver):
    for _ in range(3):
        ready()
    assert len(driver.maps) == 2


def test_inputs_without_elements(driver):
    """The work items exist, the input doesn't: its map stands for one element somewhere else."""
    empty = view((0, 64), pointer=0)
    ready(x=empty).run(0)
    assert driver.maps[0][2:4] == (1 << 35, (1, 1)) and driver.launches


def test_a_probe_that_the_call_has_no_room_for(driver):
    """Refused before any argument is made; with an array for it, it is launched."""
    plain = scaled_copy()
    x = plain.tensors[0]
    probe = replace(x, name="P.probe", written=True)
    kernel = replace(
        plain, tensors=(*plain.tensors, probe), params=(*plain.params, Param(name="P.probe", kind="pointer", tensor="P.probe"))
    )
    cubin = Module(cubin=b"\x7fELF", entry="copy", target="sm_90a", shared=kernel.shared_bytes + 1024)
    views, bound = {"X": view((100, 64)), "Y": view((100, 64))}, Bound(dims={"M": 100, "N": 64}, scalars={"x": 0.1})
    with pytest.raises(WgError, match=r"WG1008.*probes `P`"):
        Launcher(kernel).template(cubin, views, bound, H200)
    assert not driver.maps and not driver.loads
    assert Launcher(kernel).template(cubin, {**views, "P.probe": view((100, 64), pointer=1 << 36)}, bound, H200) is not None


def test_nothing_to_do(driver):
    assert ready(m=0, x=view((0, 64), pointer=0), y=view((0, 64), pointer=0)) is None
    assert not driver.maps and not driver.loads


@pytest.mark.parametrize("m, blocks", [(1, 1), (64 * 132, 132), (64 * 5000, 132)])
def test_persistent_grids_have_at_most_one_cta_an_sm(driver, m, blocks):
    ready(m=m, persistent=True).run(0)
    assert driver.launches[0]["blocks"] == blocks


def test_too_many_work_items(driver):
    big = view((2**31 - 1, 4096))
    with pytest.raises(WgError) as e:
        ready(m=2**31 - 1, n=4096, x=big, y=big)
    assert e.value.problems[0].code == "WG0618" and "i: 33554432, j: 64" in str(e.value)


class Divisor(ctypes.Structure):
    _fields_ = (("value", ctypes.c_int32), ("multiplier", ctypes.c_uint32), ("shift", ctypes.c_uint32))


def launcher(order: Order | None, *names: str) -> Launcher:
    """Of a grid in another order, whose parameters give these divisors."""
    kernel = scaled_copy()
    extra = tuple(Param(kind="divisor", name=n) for n in names)
    return Launcher(replace(kernel, grid=replace(kernel.grid, order=order), params=(*kernel.params, *extra)))


IN_EIGHTS = Order(inner=("j",), outer=("i",), size=Poly.of(8))


def test_divisors_are_given_with_their_multipliers(driver):
    made = launcher(IN_EIGHTS, "section.items", "section.width", "section.first")
    driver.kinds = (*KINDS, Divisor, Divisor, Divisor)
    views = {"X": view((200, 1000)), "Y": view((200, 1000), pointer=1 << 35)}
    cubin = Module(cubin=b"\x7fELF", entry="copy", target="sm_90a", shared=5120)
    for m in (200, 100):  # 16 columns of blocks: two sections of 8
        template = made.template(cubin, views, Bound(dims={"M": m, "N": 1000}, scalars={"x": 0.1}), H200)
        assert template
        template.at([v.pointer for v in views.values()]).run(0)
        rows = -(-m // 64)
        given = [(d.value, (d.multiplier, d.shift)) for d in driver.launches[-1]["values"][-3:]]
        assert given == [(n, multiplier(n)) for n in (8 * rows, 8, 8)]


@pytest.mark.parametrize("order, most", [(None, 2**31 - 1), (IN_EIGHTS, 2**30 - 1)])
def test_as_many_items_as_their_numbers_can_stand_for(order, most):
    grid = launcher(order)
    columns = 2**16
    for rows, fits in ((most // columns, True), (most // columns + 1, False)):
        bound = Bound(dims={"M": 64 * rows, "N": 64 * columns}, scalars={})
        if fits:
            assert grid._grid(bound, H200) == rows * columns
            continue
        with pytest.raises(WgError, match=f"more than {most}"):
            grid._grid(bound, H200)


def test_a_failing_launch_raises(driver):
    ready()
    driver.refuse["cuLaunchKernel"] = 701
    with pytest.raises(cuda.CudaError, match=r"cuLaunchKernel failed with 701 \(copy: 2 x 256 threads, 5120 bytes\)"):
        ready().run(0)


def test_a_refused_map_names_the_tensor(driver):
    driver.refuse["cuTensorMapEncodeTiled"] = 1
    with pytest.raises(WgError) as e:
        ready()
    assert e.value.problems[0].code == "WG0621" and "tensor map of `X`" in str(e.value) and "extents [64, 100]" in str(e.value)


def test_a_refused_broadcast_axis_is_named(driver):
    driver.refuse["cuTensorMapEncodeTiled"] = 1
    with pytest.raises(WgError, match="the stride of `X` along axis 0 is 0 bytes"):
        ready(x=view((100, 64), (0, 1)))


def test_another_architecture_is_refused_before_loading(driver):
    with pytest.raises(WgError) as e:
        ready(target="sm_100a")
    assert e.value.problems[0].code == "WG0622" and "sm_100a" in str(e.value) and "sm_90a" in str(e.value) and not driver.loads


def test_a_driver_that_is_too_old_for_the_cubin(driver):
    driver.refuse["cuLibraryLoadData"] = 222
    with pytest.raises(EnvironmentFault, match=r"the driver \(CUDA 13.0\) can't load kernel copy on H200.*222"):
        ready()


def loading(monkeypatch, driver: str, compiler: str, code: str, arch: str = "sm_90a") -> EnvironmentFault:
    """What is said when a driver refuses a cubin."""
    monkeypatch.setattr(module, "driver_version", lambda: driver)
    made = Module(cubin=b"\x7fELF", entry="copy", target=arch, shared=0, compiler=compiler)
    return EnvironmentFault(*made._not_loaded(cuda.CudaError("cuLibraryLoadData", code), "kernel copy on H200", arch))


def test_a_driver_of_an_earlier_major_version(monkeypatch):
    said = str(loading(monkeypatch, "12.9", "13.0", "CUDA_ERROR_INVALID_IMAGE"))
    assert "the driver (CUDA 12.9) can't load kernel copy on H200, compiled by NVRTC 13.0 for sm_90a" in said
    assert "the driver is older than the compiler: CUDA 12.9 before CUDA 13.0" in said
    assert "help: update the NVIDIA driver to one of CUDA 13.0" in said and "pip install" not in said


def test_a_driver_of_an_earlier_minor_version(monkeypatch):
    said = str(loading(monkeypatch, "13.2", "13.10", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"))
    assert "CUDA 13.2 before CUDA 13.10" in said, "as numbers, not as texts"
    assert "pip install 'nvidia-cuda-nvrtc==13.2.*'" in said


def test_a_driver_that_is_new_enough_isn_t_blamed(monkeypatch):
    assert "older" not in str(loading(monkeypatch, "13.5", "13.0", "CUDA_ERROR_INVALID_IMAGE"))
    assert "help" not in str(loading(monkeypatch, "12.0", "13.0", "CUDA_ERROR_OUT_OF_MEMORY")), "that is no matter of versions"


def test_a_text_of_an_earlier_family_is_compiled_again(driver):
    asked = []

    def again(arch: str) -> Compiled:
        asked.append(arch)
        return Compiled(cubin=b"\x7fELF", ptx="", log="", nvrtc="13.0", seconds=0.0)

    made = Module(cubin=b"", entry="copy", target="sm_80", shared=4096, again=again)
    made.function(0), made.function(1)
    assert asked == ["sm_90"] and driver.loads == 1, "once for each architecture"


def test_more_shared_memory_than_the_gpu_has(driver):
    made = Module(cubin=b"\x7fELF", entry="copy", target="sm_90a", shared=H200.shared_limit + 16)
    with pytest.raises(WgError) as e:
        made.function(0)
    assert "the kernel needs 232464 bytes of shared memory, H200 (sm_90a) has 232448" in str(e.value) and not driver.loads
    assert "compile for sm_90a, which says what fits" in str(e.value)


def test_context_is_restored(driver):
    ready()
    assert driver.context == 0 and driver.loads == 1


RUNS = [("sm_80", (8, 0)), ("sm_80", (8, 9)), ("sm_90", (9, 0)), ("sm_100", (10, 3))]
DOES_NOT = [("sm_80", (9, 0)), ("sm_90a", (10, 0)), ("sm_89", (10, 0)), ("sm_89", (8, 6))]


@pytest.mark.parametrize("target, capability, runs", [(*r, True) for r in RUNS] + [(*r, False) for r in DOES_NOT])
def test_which_device_runs_what(target, capability, runs):
    assert module._runs(target, capability) is runs

"""Calls without a GPU: names, arrays, outputs; and what a machine without one says."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.runtime.graphs import GROUPED, SHAPES, kernel_of, zeros
from wgdsl.diagnostics.model import EnvironmentFault, WgError
from wgdsl.runtime import cuda
from wgdsl.runtime.arrays import view
from wgdsl.runtime.call import Interface

Q, K = (zeros(SHAPES[n]) for n in "QK")


def refusal(*args, **named) -> str:
    kernel, _ = kernel_of()
    with pytest.raises(WgError) as e:
        kernel(*args, W=1, device="sim", **named)
    return f"{e.value.problems[0].code} {e.value.problems[0].title()}"


def test_by_name_and_by_position():
    kernel, noted = kernel_of()
    out = kernel(Q, K, 0.5, W=3, device="sim")
    assert out._fields == ("O", "L") and out.O.shape == (2, 77, 8, 16) and out.L.shape == (2, 8, 77)
    assert noted.scalars == {"scale": 0.5, "window": 90} and noted.dims["W"] == 3
    kernel.simulate(K=K, Q=Q, W=4)
    assert noted.dims["W"] == 4 and noted.scalars["scale"] == 0.25 and noted.arrays["Q"] is Q


def test_a_type_is_proposed_only_if_the_program_has_it():
    given = view("Q", Q.astype(np.float32))
    for choices, said in [
        (("f16", "bf16"), "convert it to bf16"),
        (("f32", "bf16"), "convert it, or compile with types={'T': 'f32'}"),
    ]:
        with pytest.raises(WgError) as e:
            Interface(GROUPED, {"T": choices}).check({"Q": given})
        assert e.value.problems[0].help() == said


def test_given_outputs_are_written_and_returned():
    kernel, _ = kernel_of()
    mine = np.full((2, 8, 77), np.nan, np.float32)
    out = kernel(Q, K, W=1, device="sim", out={"L": mine})
    assert out.L is mine and (mine == 0).all()


@pytest.mark.parametrize(
    "args, named, said",
    [
        ((Q,), {}, "WG0612 argument `K` is missing"),
        ((Q, None), {}, "WG0612 argument `K` is missing"),
        ((Q, K), {"scal": 1.0}, "WG0613 the program has no argument `scal`"),
        ((Q, K, 1.0, 2, 3), {}, "WG0613 the program has no argument `number 5 (without a name)`"),
        ((Q, K), {"K": K}, "WG0613"),
        ((Q, K), {"out": {"P": Q}}, "WG0613 the program has no argument `P`"),
        ((Q, K), {"out": Q}, "WG0612 argument `out` is missing"),
        ((Q, []), {}, "WG0617 `K` is of type list"),
        ((Q, "K"), {}, "WG0617"),
        ((Q.astype(np.float32), K), {}, "WG0602 `Q` has elements of f32, but the kernel takes bf16"),
        ((Q.astype(np.complex64), K), {}, "WG0602 `Q` has elements of c64"),
        ((Q.astype(np.int8), K), {}, "WG0602 `Q` has elements of i8"),
        ((Q.astype(object), K), {}, "WG0617"),
        ((Q[0], K), {}, "WG0601"),
        ((Q.swapaxes(1, 2), K), {}, "WG0605"),
        ((Q, K), {"out": {"L": np.broadcast_to(np.float32(0), (2, 8, 77))}}, "WG0623 output `L` is read-only"),
        ((Q, K), {"out": {"L": np.zeros((2, 8, 77))}}, "WG0602 `L` has elements of f64"),
        ((Q, K), {"out": {"L": np.zeros((2, 8, 7), np.float32)}}, "WG0604 M is 7 from L axis 2 but 77 from Q axis 1"),
    ],
)
def test_refusals(args, named, said):
    assert refusal(*args, **named).startswith(said)


def test_an_output_that_shares_memory_with_itself():
    shared = np.lib.stride_tricks.as_strided(np.zeros(77, np.float32), (2, 8, 77), (0, 0, 4))
    assert refusal(Q, K, out={"L": shared}).startswith("WG0610 output `L` has stride 0 along axis 0")


def test_views_of_numpy_arrays_are_read_as_they_are():
    kernel, noted = kernel_of()
    back = K[:, ::-1]
    kernel(Q, back, W=1, device="sim")
    assert noted.arrays["K"] is back


def test_dlpack_objects():
    class Exported:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **named):
            return self.array.__dlpack__(**named)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    from wgdsl.runtime.arrays import view

    array = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
    seen = view("x", Exported(array))
    assert (seen.shape, seen.strides, seen.dtype, seen.device) == ((3, 2), (4, 2), "f32", -1)
    assert seen.pointer == array.ctypes.data


@pytest.mark.skipif(cuda.available(), reason="there is a GPU")
def test_a_launch_without_a_gpu_says_what_to_do():
    kernel, _ = kernel_of()
    with pytest.raises(EnvironmentFault, match="simulator"):
        kernel(Q, K, W=1)


def test_unknown_device():
    kernel, _ = kernel_of()
    with pytest.raises(ValueError, match="there are gpu, sim"):
        kernel(Q, K, W=1, device="tpu")


def test_element_types_by_name():
    from wgdsl.runtime.arrays import dtype_name

    named = {"torch.bfloat16": "bf16", "float16": "f16", "torch.float8_e4m3fn": "e4m3", "int32": "i32", "strange": "strange"}
    assert {n: dtype_name(n) for n in named} == named
    assert dtype_name(np.dtype(ml_dtypes.float8_e5m2).name) == "e5m2"

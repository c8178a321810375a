"""What the driver is told about an array, and what is refused before it is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wgdsl.foundation.dtypes import F16
from wgdsl.program.poly import Poly, ceildiv, floordiv
from wgdsl.roles.model import MapDim, TensorMap
from wgdsl.runtime.arrays import ArrayView, contiguous
from wgdsl.runtime.tensor_map import geometry, map_problem, reach_problem

P = Poly.of
# Q[B, M, H, D] in panels of 64 columns: {64, M, D / 64, H, B}
MAP = TensorMap(
    name="Qs.map",
    tensor="Q",
    dtype=F16,
    dims=(
        MapDim(axis=3, extent=P(64)),
        MapDim(axis=1, extent=P("M")),
        MapDim(axis=3, extent=floordiv(P(128), 64), factor=64),
        MapDim(axis=2, extent=P("H")),
        MapDim(axis=0, extent=P("B")),
    ),
    box=(64, 64, 2, 1, 1),
    swizzle=128,
)
SHAPE = (2, 100, 4, 128)
DIMS = {"B": 2, "M": 100, "H": 4}


def view(shape=SHAPE, strides=None, pointer=1 << 20):
    return ArrayView(pointer, shape, strides or contiguous(shape), "f16", 0, "torch")


def extents(**dims):
    return tuple(d.extent.evaluate({**DIMS, **dims}) for d in MAP.dims)


def test_real_strides():
    g = geometry(MAP, view(), extents())
    assert g.extents == (64, 100, 2, 4, 2)
    assert g.strides == (2 * 4 * 128, 2 * 64, 2 * 128, 2 * 100 * 4 * 128)
    heads_first = (4 * 100 * 128, 128, 100 * 128, 1)
    assert geometry(MAP, view(strides=heads_first), extents()).strides == (256, 128, 25600, 102400)


def test_rows_by_fours_end_with_the_array():
    """Dimensions that share an axis are clipped one by one: only a multiple of 4 ends where the last four do."""
    fours = (MapDim(axis=3, extent=P(128)), MapDim(axis=1, extent=P(4)), MapDim(axis=1, extent=ceildiv(P("M"), 4), factor=4))
    m = replace(MAP, dims=fours, box=(64, 2, 16))
    for rows, wrong in ((100, False), (98, True), (3, True)):
        found = reach_problem(m, view((2, rows, 4, 128)), tuple(d.extent.evaluate({"M": rows}) for d in fours))
        assert (found is not None) == wrong
    assert found is not None and (found.axis, found.length, found.group) == (1, 3, 4)
    assert reach_problem(MAP, view(), extents()) is None


def test_an_extent_of_one_may_have_any_stride():
    odd = view((1, 100, 4, 128), (7, 512, 128, 1))
    assert map_problem(MAP, odd) is None
    assert geometry(MAP, odd, extents(B=1)).strides[-1] == 128, "replaced by one that is legal"


@pytest.mark.parametrize(
    "array, code, said",
    [
        (view(strides=(102400, 1024, 256, 2)), "WG0607", "`Q` has stride 2 along axis 3"),
        (view(pointer=(1 << 20) + 2), "WG0609", "`Q` starts 2 bytes past a multiple of 16"),
        (view(strides=(51200, 513, 128, 1)), "WG0608", "the stride of `Q` along axis 1 is 1026 bytes"),
        (view(strides=(51200, -512, 128, 1)), "WG0608", "along axis 1 is -1024 bytes"),
    ],
)
def test_refusals_name_the_tensor_the_axis_and_the_rule(array, code, said):
    found = map_problem(MAP, array)
    assert found is not None and found.code == code and said in found.title() and found.help()


def test_shifted_by_eight_elements_is_fine():
    assert map_problem(MAP, view(pointer=(1 << 20) + 16)) is None


def test_nothing_is_asked_of_an_array_without_elements():
    assert map_problem(MAP, view((2, 0, 4, 128), (0, 1, 1, 3), pointer=0)) is None


def test_offsets_past_2_to_31():
    """K stored [S, B, D], viewed [B, S, 1, D]: strides are 64-bit."""
    far = view((700, 24000, 1, 128), (128, 700 * 128, 128, 1))
    assert map_problem(MAP, far) is None
    assert geometry(MAP, far, extents(B=700, M=24000, H=1)).strides[0] == 2 * 700 * 128

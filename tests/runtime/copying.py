"""A kernel by hand, Y[M, N] = x X[M, N], and one H200 of 132 SMs (or two of them) made of Python to launch it on."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest

from tests.runtime.driver import Driver
from wgdsl.foundation.dtypes import F16, F32, I32
from wgdsl.program.expr import const
from wgdsl.program.graph import Input, Output, ProgramGraph, ScalarInput
from wgdsl.program.poly import Poly, ceildiv
from wgdsl.roles.model import Grid, GridAxis, Kernel, MapDim, Param, RoleProgram, TensorArg, TensorMap
from wgdsl.runtime import cuda, launch, module, tensor_map
from wgdsl.runtime.cache import Cache
from wgdsl.runtime.kernel import Forms
from wgdsl.runtime.kernel import Kernel as Callable
from wgdsl.runtime.nvrtc import Compiled

P = Poly.of
SHAPE = (P("M"), P("N"))
KINDS = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64, ctypes.c_int32, ctypes.c_float, ctypes.c_int32)
H200 = cuda.Device(ordinal=0, name="H200", capability=(9, 0), multiprocessors=132, shared_limit=232448, context=77)
SECOND = replace(H200, ordinal=1, context=78)
GRAPH = ProgramGraph(
    name="copy",
    dims=("M", "N"),
    derived={},
    fixed={},
    types={"T": F16},
    scalars=(ScalarInput(name="x", default=const(1.0)),),
    requires=(),
    nodes=(
        Input(name="X", indices=(), dtype=F16, shape=SHAPE),
        Output(name="Y.out", indices=(), dtype=F16, tensor="Y", shape=SHAPE, access=(), value=const(0.0)),
    ),
)


def pretended(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The fake in place of the real driver."""
    fake = Driver(kinds=KINDS)
    for m in (cuda, launch, module, tensor_map):
        monkeypatch.setattr(m, "driver", lambda: fake)
    monkeypatch.setattr(cuda, "device", lambda ordinal: (H200, SECOND)[ordinal])
    tensor_map.forget()
    return fake


def scaled_copy(persistent: bool = False) -> Kernel:
    """X by a tensor map, Y by one or by hand."""

    def by_map(name: str) -> TensorMap:
        dims = (MapDim(axis=1, extent=P("N")), MapDim(axis=0, extent=P("M")))
        return TensorMap(name=f"{name}s", tensor=name, dtype=F16, dims=dims, box=(64, 64), swizzle=128)

    axes = (GridAxis(index="i", tile=64, blocks=ceildiv(P("M"), 64)), GridAxis(index="j", tile=64, blocks=ceildiv(P("N"), 64)))
    return Kernel(
        name="copy",
        program="copy",
        schedule="s",
        target="sm_90a",
        threads=256,
        roles=(),
        rings=(),
        buffers=(),
        barriers=(),
        values=(),
        index_extents={},
        shared_bytes=4096,
        maps=(by_map("X"), by_map("Y")),
        grid=Grid(axes=axes, persistent=persistent),
        tensors=tuple(TensorArg(name=n, dtype=F16, shape=SHAPE, written=n == "Y") for n in "XY"),
        params=(
            Param(kind="map", name="Xs", tensor="X"),
            Param(kind="map", name="Ys", tensor="Y"),
            Param(kind="pointer", name="Y", tensor="Y", dtype=F16),
            Param(kind="stride", name="Y.stride0", tensor="Y", axis=0),
            Param(kind="dim", name="M", dtype=I32),
            Param(kind="scalar", name="x", dtype=F32),
            Param(kind="flag", name="Y.tma", tensor="Y"),
        ),
    )


def callable_copy(folder) -> Callable:
    """What `wgdsl.compile` would return, its cubin a few bytes."""
    roles = RoleProgram(program="copy", schedule="s", target="sm_90a", kernels=(scaled_copy(),))
    forms = Forms(
        graph=GRAPH, stream=None, roles=roles, texts={"copy": "text"}, entries={"copy": "copy"}, backends={}, seconds={}
    )
    made = Compiled(cubin=b"\x7fELF", ptx="", log="", nvrtc="13.0", seconds=0.0)
    return Callable(forms, Cache(folder, lambda text, arch, name: made))

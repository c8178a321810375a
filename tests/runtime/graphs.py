"""A program graph shaped like grouped attention, by hand, and a kernel object whose backend only notes its arguments."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from wgdsl.foundation.dtypes import BF16, F32, I32
from wgdsl.program.expr import Cmp, IndexValue, Scalar, apply, const
from wgdsl.program.graph import Input, Output, ProgramGraph, ScalarInput
from wgdsl.program.poly import Poly
from wgdsl.roles.model import RoleProgram
from wgdsl.runtime.kernel import Forms, Kernel

P = Poly.of
HEADS = P("G") * P("R")

GROUPED = ProgramGraph(
    name="grouped",
    dims=("B", "G", "R", "M", "N", "W"),
    derived={"H": HEADS},
    fixed={"D": 16},
    types={"T": BF16},
    scalars=(
        ScalarInput(name="scale", default=apply("div", const(1.0), apply("sqrt", IndexValue(poly=P("D"))))),
        ScalarInput(name="window", dtype=I32, default=IndexValue(poly=P("N"))),
    ),
    requires=(Cmp(op="gt", left=Scalar(name="scale"), right=const(0.0)),),
    nodes=(
        Input(name="Q", indices=(), dtype=BF16, shape=(P("B"), P("M"), HEADS, P(16))),
        Input(name="K", indices=(), dtype=BF16, shape=(P("B"), P("N"), P("G"), P(16))),
        Output(
            name="O.out", indices=(), dtype=BF16, tensor="O", shape=(P("B"), P("M"), HEADS, P(16)), access=(), value=const(0.0)
        ),
        Output(name="L.out", indices=(), dtype=F32, tensor="L", shape=(P("B"), HEADS, P("M")), access=(), value=const(0.0)),
    ),
)
SHAPES = {"Q": (2, 77, 8, 16), "K": (2, 90, 2, 16)}


class Noted:
    """A backend that keeps what it is called with and returns zeros."""

    def __call__(self, arrays, scalars, dims, **_):
        self.arrays, self.scalars, self.dims = arrays, scalars, dims
        b, m, h = (dims[n] for n in "BMH")
        return {"O": np.zeros((b, m, h, 16), ml_dtypes.bfloat16), "L": np.zeros((b, h, m), np.float32)}


def kernel_of(graph: ProgramGraph = GROUPED) -> tuple[Kernel, Noted]:
    noted = Noted()
    roles = RoleProgram(program=graph.name, schedule="none", target="sm_90a", kernels=())
    forms = Forms(graph=graph, stream=None, roles=roles, texts={}, entries={}, backends={"sim": noted}, seconds={})
    return Kernel(forms), noted


def zeros(shape, dtype=ml_dtypes.bfloat16):
    return np.zeros(shape, dtype)

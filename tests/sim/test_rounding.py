"""Shared memory and operands hold what the real types hold: rounded to nearest, ties to even."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from wgdsl.foundation.dtypes import DTYPES, F32
from wgdsl.program.expr import Load
from wgdsl.program.poly import Poly
from wgdsl.roles import model as m
from wgdsl.sim.agent import Item
from wgdsl.sim.cta import Cta
from wgdsl.sim.tensors import make_tensor, rounded
from wgdsl.sim.world import World
from wgdsl.targets.wgmma import v8

# mantissa bits (without the hidden one), the exponent of the smallest normal number, the largest finite number
FORMATS = {
    "f16": (10, -14, 65504.0),
    "bf16": (7, -126, 3.3895313892515355e38),
    "e4m3": (3, -6, 448.0),
    "e5m2": (2, -14, 57344.0),
}


def nearest(x: float, name: str) -> float:
    """By exact arithmetic, for what stays finite."""
    mantissa, lowest, _ = FORMATS[name]
    if x == 0:
        return x
    exponent = max(int(np.floor(np.log2(abs(x)))), lowest)
    unit = Fraction(2) ** (exponent - mantissa)
    steps = Fraction(x) / unit
    down = steps.numerator // steps.denominator
    rest = steps - down
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and down % 2)
    return float((down + up) * unit)


def samples(name: str) -> np.ndarray:
    """float32 values over the type's whole range, ties among them."""
    mantissa, lowest, largest = FORMATS[name]
    random = np.random.default_rng(3)
    scale = 2.0 ** random.integers(lowest - mantissa - 1, int(np.log2(largest)), 3000)
    halves = random.integers(-(2 ** (mantissa + 2)), 2 ** (mantissa + 2), 3000) / 2.0 ** (mantissa + 2)
    values = np.concatenate([scale * random.uniform(-1, 1, 3000), scale * halves]).astype(np.float32)
    return values[np.abs(values) < largest]


@pytest.mark.parametrize("name", FORMATS)
def test_to_nearest_even(name):
    x = samples(name)
    want = np.array([nearest(float(v), name) for v in x], dtype=np.float32)
    np.testing.assert_array_equal(rounded(x, DTYPES[name]), want)


@pytest.mark.parametrize("name", FORMATS)
def test_special_values(name):
    largest = np.float32(FORMATS[name][2])
    got = rounded(np.array([largest, -largest, 0.0, -0.0, np.nan], dtype=np.float32), DTYPES[name])
    np.testing.assert_array_equal(got[:4], [largest, -largest, 0.0, 0.0])
    assert np.isnan(got[4]) and np.signbit(got[3])
    with np.errstate(over="ignore"):
        over = rounded(np.array([np.inf, 4 * float(largest)]), DTYPES[name])
    assert (over == largest).all() if name in ("e4m3", "e5m2") else np.isinf(over).all()


def kernel(name: str) -> m.Kernel:
    """X, f32 [64, 64], goes through registers to shared memory of a type, and to operand registers of the type."""
    i, j = (m.Axis(index=x, origin=Poly(), count=64) for x in "ij")
    load = Load(tensor="X", access=(Poly.of("i"), Poly.of("j")))
    steps = (
        m.Compute(ops=(m.MapOp(dst="T", expr=load, rows=i, cols=j),)),
        m.StoreShared(buffer="Ts", part=Poly(), slot=m.Slot(ring="Ts"), src="T"),
        m.Pack(dst="P", src="T"),
    )
    dtype = DTYPES[name]
    return m.Kernel(
        name="rounds", program="rounds", schedule="by_hand", target="sm_90a", grid=m.Grid(axes=()), threads=128,
        roles=(m.Role(name="math", first=0, count=1, registers=None, elected=False, steps=steps),),
        rings=(m.Ring(name="Ts", stages=1, buffers=("Ts",)),),
        buffers=(m.Buffer(name="Ts", tensor="X", dtype=dtype, rows=64, cols=64, rows_index="i", cols_index="j", swizzle=0,
                          ring="Ts"),),
        barriers=(),
        values=(m.Value(name="T", role="math", kind="tile", dtype=F32, cols=64),
                m.Value(name="P", role="math", kind="operand", dtype=dtype, cols=64)),
        maps=(), tensors=(m.TensorArg(name="X", dtype=F32, shape=(Poly.of(64), Poly.of(64)), written=False),), params=(),
        index_extents={}, shared_bytes=64 * 64 * 4, v8="j" if dtype.nbytes == 1 else None,
    )  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_in_shared_memory_and_in_operands(name):
    x = np.resize(samples(name), (64, 64))
    k = kernel(name)
    tensors = {"X": make_tensor(k.tensors[0], (64, 64), x)}
    cta = Cta(World(kernel=k, dims={}, scalars={}, tensors=tensors, limit=1000), [Item(0, {})], 0)
    cta.run()
    want = np.vectorize(lambda v: nearest(float(v), name))(x).astype(np.float32)
    order = [v8(c, 64) for c in range(64)] if k.v8 else range(64)  # of the columns in registers
    np.testing.assert_array_equal(cta.memory.tile("Ts", 0, 0).data, want[:, order])
    np.testing.assert_array_equal(np.concatenate([a.registers.content("P", "operand") for a in cta.agents]), want)

"""The meaning of domains, reductions, functions and left sides, and many programs against the element interpreter."""

from __future__ import annotations

import math
import re
import sys

import ml_dtypes
import numpy as np
import pytest

from tests.analyse.programs import ATTENTION, GEMM, graph_of, wrapped
from tests.reference.plain import Interpreter
from wgdsl.foundation.dtypes import DTYPES
from wgdsl.program.expr import Load
from wgdsl.program.functions import FUNCTIONS
from wgdsl.program.graph import Map, ProgramGraph
from wgdsl.program.poly import Poly
from wgdsl.reference import evaluate, random_inputs, solve_dims
from wgdsl.reference.stored import rounded


def run(body: str, M=4, N=3, seed=0, **arrays):
    graph = graph_of(wrapped(body))
    inputs = {**random_inputs(graph, {"M": M, "N": N}, seed), **arrays}
    return evaluate(graph, inputs), inputs


# Domains.


def test_outside_the_domain_a_stored_element_is_zero_or_else():
    out, a = run("Y[i] = Z[i] where i >= 2")
    np.testing.assert_array_equal(out["Y"], [0, 0, *a["Z"][2:].astype(float)])
    out, a = run("Y[i] = Z[i] where i >= 2 else i + 10")
    np.testing.assert_array_equal(out["Y"], [10, 11, *a["Z"][2:].astype(float)])


def test_domains_intersect_and_else_ends_them():
    out, a = run("U[i] = Z[i] where i >= 1\n  W[i] = Z[i] where i <= 2\n  Y[i] = U[i] + W[i]")
    np.testing.assert_allclose(out["Y"], [0, *(2 * a["Z"][1:3].astype(float)), 0])
    out, a = run("U[i] = Z[i] where i >= 1 else 5.0\n  W[i] = Z[i] where i <= 2\n  Y[i] = U[i] + W[i]")
    np.testing.assert_allclose(out["Y"], [5 + a["Z"][0], *(2 * a["Z"][1:3].astype(float)), 0])


@pytest.mark.parametrize("op, identity", [("sum", 0), ("max", -math.inf), ("min", math.inf)])
def test_a_reduction_over_nothing_is_its_identity(op, identity):
    out, a = run(f"W[i,j] = X[i,j] where j < i\n  Y[i] = {op}[j] W[i,j]")
    assert out["Y"][0] == identity
    expected = getattr(np, op)(a["X"][2, :2].astype(float))
    np.testing.assert_allclose(out["Y"][2], expected)
    out, _ = run(f"Y[i] = {op}[j] X[i,j]", N=0)
    assert (out["Y"] == identity).all()


@pytest.mark.parametrize("op", ["sum", "max", "min"])
def test_nan_is_seen_where_it_is_visible_and_only_there(op):
    x = np.ones((4, 3), np.float32)
    x[:, 2] = np.nan
    out, _ = run(f"W[i,j] = X[i,j] where j < i\n  Y[i] = {op}[j] W[i,j]", X=x)
    assert np.isnan(out["Y"]).tolist() == [False, False, False, True]


@pytest.mark.parametrize(
    "row, op, position",
    [
        ([1.0, 3.0, 3.0], "argmax", 1),
        ([3.0, 1.0, 1.0], "argmin", 1),
        ([math.nan, 2.0, 1.0], "argmax", 1),
        ([math.nan, math.nan, math.nan], "argmax", 0),
        ([-math.inf, -math.inf, -math.inf], "argmax", 0),
        ([math.nan, -math.inf, math.nan], "argmax", 1),
        ([], "argmax", -1),
        ([], "argmin", -1),
    ],
)
def test_positions(row, op, position):
    text = f"program p {{ dims M, N\n in X: f32[M, N]\n out Y: i32[M]\n Y[i] = {op}[j] X[i,j] }}"
    x = np.array(row, np.float32).reshape(1, -1)
    assert evaluate(graph_of(text), {"X": x})["Y"] == [position]


def test_positions_in_a_domain():
    text = "program p { dims M, N\n in X: f32[M, N]\n out Y: i32[M]\n W[i,j] = X[i,j] where j > i\n Y[i] = argmin[j] W[i,j] }"
    x = np.array([[0, 5, 4, 4], [0, 0, 7, 3], [0, 0, 0, 1], [0, 0, 0, 0]], np.float32)
    assert evaluate(graph_of(text), {"X": x})["Y"].tolist() == [2, 3, 3, -1]


def test_a_dense_mask_hides_what_it_hides():
    text = """program p { dims M, N, E
      in X: f32[M, N]  in V: f32[N, E]  in see: bool[M, N]  out Y: f32[M, E]
      W[i,j] = X[i,j] where see[i,j]
      P[i,j] = softmax[j] W[i,j]
      Y[i,e] = sum[j] P[i,j] * V[j,e] }"""
    graph = graph_of(text)
    see = np.array([[1, 0, 1], [0, 0, 0], [0, 0, 1]], bool)
    x, v = np.ones((3, 3)), np.arange(6.0).reshape(3, 2)
    v[1] = np.nan
    np.testing.assert_allclose(evaluate(graph, {"X": x, "V": v, "see": see})["Y"], [[2, 3], [0, 0], [4, 5]])


# Left sides.


def test_a_left_side_that_is_not_the_whole_array_writes_only_its_elements():
    text = "program p { dims M\n in Z: f32[M]\n out Y: f32[2 * M + 1]\n Y[2 * i + 1] = Z[i] where i > 0 }"
    z = np.array([1.0, 2.0, 3.0])
    assert evaluate(graph_of(text), {"Z": z})["Y"].tolist() == [0, 0, 0, 2, 0, 3, 0]
    assert evaluate(graph_of(text), {"Z": z, "Y": np.full(7, 9.0)})["Y"].tolist() == [9, 9, 9, 2, 9, 3, 9]


def test_a_mixed_radix_left_side_is_the_whole_array():
    text = "program p { dims G, R\n in X: f32[G, R]\n out Y: f32[R * G]\n Y[r * G + g] = X[g, r] where r > 0 }"
    x = np.arange(1.0, 7).reshape(2, 3)
    assert evaluate(graph_of(text), {"X": x, "Y": np.full(6, 9.0)})["Y"].tolist() == [0, 0, 2, 5, 3, 6]


def test_a_read_outside_a_tensor_is_an_error_not_a_number():
    at = (Poly.of("i") + 1,)
    nodes = graph_of(wrapped("W[i] = Z[i]\n  Y[i] = W[i]")).nodes
    moved = tuple(Map(name="W", indices=("i",), body=Load(tensor="Z", access=at)) if n.name == "W" else n for n in nodes)
    graph = ProgramGraph(name="p", dims=("M", "N"), extents={"i": Poly.of("M")}, nodes=moved)
    with pytest.raises(IndexError, match="W reads outside"):
        evaluate(graph, {"X": np.zeros((2, 2)), "Z": np.zeros(2)})


# Dims and scalars.


def test_dims_that_are_in_no_shape_are_given():
    graph = graph_of(wrapped("dims W\n  Y[i] = Z[i] where i >= W"))
    arrays = random_inputs(graph, {"M": 4, "N": 3, "W": 2})
    with pytest.raises(ValueError, match="dim `W`"):
        evaluate(graph, arrays)
    assert (evaluate(graph, arrays, dims={"W": 3})["Y"] != 0).tolist() == [False, False, False, True]


def test_dims_are_solved_in_any_order():
    graph = graph_of("program p { dims A, B, C = A * B + 1\n in X: f32[C]\n in Y: f32[B]\n out Z: f32[B]\n Z[i] = Y[i] }")
    assert solve_dims(graph, {"X": (13,), "Y": (4,)}) == {"B": 4, "A": 3, "C": 13}
    assert solve_dims(graph, {}, {"C": 13, "A": 3})["B"] == 4
    with pytest.raises(ValueError, match="no whole `A`"):
        solve_dims(graph, {"X": (14,), "Y": (4,)})
    with pytest.raises(ValueError, match="no dim `K`"):
        solve_dims(graph, {"X": (13,), "Y": (4,)}, {"K": 1})


def test_scalars_have_defaults_of_earlier_scalars_and_dims():
    graph = graph_of(wrapped("in a: f32\n  in b: f32 = a * M + 1 / 2\n  Y[i] = Z[i] * 0.0 + b"))
    z = {"X": np.zeros((4, 1)), "Z": np.zeros(4)}
    assert evaluate(graph, z, {"a": 3.0})["Y"].tolist() == [12.0] * 4
    assert evaluate(graph, z, {"a": 3.0, "b": 0.5})["Y"].tolist() == [0.5] * 4
    with pytest.raises(ValueError, match="needs scalar `a`"):
        evaluate(graph, z)
    with pytest.raises(ValueError, match="no scalar c"):
        evaluate(graph, z, {"a": 1.0, "c": 1.0})


def test_random_inputs_are_seeded_and_typed():
    graph = graph_of(ATTENTION, types={"T": "bf16"})
    size = {"B": 2, "G": 2, "H": 6, "M": 4, "N": 5, "D": 8, "E": 3}
    one, again, other = (random_inputs(graph, size, seed) for seed in (1, 1, 2))
    assert {n: a.shape for n, a in one.items()} == {"Q": (2, 4, 6, 8), "K": (2, 5, 2, 8), "V": (2, 5, 2, 3)}
    assert all(a.dtype == ml_dtypes.bfloat16 for a in one.values())
    assert all((one[n] == again[n]).all() and (one[n] != other[n]).any() for n in one)


# Functions.


@pytest.mark.parametrize("x", [-2.5, -0.3, 0.0, 0.7, 3.0])
def test_functions(x):
    erf = math.erf
    expected = {
        "neg": -x, "exp": math.exp(x), "exp2": 2.0**x, "tanh": math.tanh(x), "sigmoid": 1 / (1 + math.exp(-x)),
        "abs": abs(x), "erf": erf(x), "relu": max(x, 0), "silu": x / (1 + math.exp(-x)),
        "gelu": x * (1 + erf(x / math.sqrt(2))) / 2,
        "gelu_tanh": x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    }  # fmt: skip
    if x > 0:
        expected |= {"log": math.log(x), "log2": math.log2(x), "sqrt": x**0.5, "rsqrt": x**-0.5, "rcp": 1 / x}
    for name, value in expected.items():
        np.testing.assert_allclose(FUNCTIONS[name](np.array(x)), value, rtol=1e-14, atol=1e-16, err_msg=name)


def test_minima_and_maxima_of_numbers_keep_nan():
    for name in ("min", "max", "relu"):
        args = [np.array(math.nan)] + [np.array(1.0)] * (name != "relu")
        assert np.isnan(FUNCTIONS[name](*args))


def test_rounding_to_stored_types():
    x = np.array([1 + 2**-11, 1 + 3 * 2**-12, 70000.0, -0.0, math.nan])
    np.testing.assert_array_equal(rounded(x, DTYPES["f16"]), [1.0, 1 + 2**-10, math.inf, 0.0, math.nan])
    assert rounded(np.array([1000.0, -1000.0]), DTYPES["e4m3"]).tolist() == [448.0, -448.0]
    assert rounded(np.array([2.7, -2.7]), DTYPES["i32"]).tolist() == [2.0, -2.0]


def test_a_cast_is_a_rounding():
    out, a = run("Y[i] = f16(Z[i] * 1.0) * 4096.0")
    np.testing.assert_array_equal(out["Y"], a["Z"].astype(np.float16).astype(float) * 4096)


# Any program, element by element.

PROGRAMS = {
    "window": "W[i,j] = X[i,j] where i - 1 <= j <= i + 1\n  P[i,j] = softmax[j] W[i,j]\n  Y[i] = max[j] P[i,j] * Z[i]",
    "alibi": "W[i,j] = X[i,j] - 0.5 * abs(i - j)\n  Y[i] = logsumexp[j] W[i,j]",
    "nested": "Y[i] = Z[i] - (sum[j] X[i,j] * (max[k] X[i,k])) / (1.0 + abs(min[j] X[i,j]))",
    "global": "W[j] = max[i] X[i,j]\n  Y[i] = sum[j] tanh(X[i,j] - W[j]) * Z[i]",
    "hidden": "W[i] = Z[i] where Z[i] > 0.0\n  Y[i] = sum[j] W[i] * X[i,j]",
    "two domains": "A[i,j] = X[i,j] where j != i\n  C[i,j] = X[i,j] where i + j >= 2\n  Y[i] = sum[j] A[i,j] * C[i,j]",
    "domain of a domain": "A[i] = Z[i] where i >= 1\n  C[i] = A[i] where i <= 2\n  Y[i] = sum[k] C[k] * Z[i]",
    "else of a domain": "A[i] = Z[i] where i >= 1\n  Y[i] = A[i] where i <= 2 else 5.0",
    "transposed": "S[i,k] = Z[i] - 2.0 * Z[k]\n  U[i,k] = S[k,i] * Z[i]\n  Y[i] = sum[k] U[i,k]",
    "else": "A[i,j] = X[i,j] where j != i else 3.0\n  Y[i] = min[j] A[i,j] - Z[i]",
    "shifted": "index j < N\n  Y[i] = sum[j] X[i, N - 1 - j] * select(j % 2 == 0, Z[i], -Z[i])",
    "both reduced": "S[i,k] = sum[j] X[i,j] * X[k,j]\n  Y[i] = sum[k] S[i,k] * relu(S[k,i]) * Z[k]",
    "outer sum": "Y[i] = sum[k] sum[j] X[k,j] * Z[i]",
    "sum of one": "Y[i] = sum[j, k] X[i,j] * Z[k]",
    "previous": "W[i] = Z[i - 1] where i >= 1\n  Y[i] = W[i] + Z[i]",
    "half": "Y[i] = Z[i / 2] + X[i - i / 2 * 2 + i / 2 * 0, 0] where N > 1 and M > 1",
}  # fmt: skip


@pytest.mark.parametrize("size", [(4, 3), (3, 5), (1, 1), (2, 0), (0, 2)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("budget", [None, 4], ids=["whole", "cut"])
def test_against_the_interpreter(name, size, budget, monkeypatch):
    for module in ("evaluate", "passes") if budget else ():
        monkeypatch.setattr(sys.modules[f"wgdsl.reference.{module}"], "BUDGET", budget)
    against_interpreter(wrapped(PROGRAMS[name]), {"M": size[0], "N": size[1]})


@pytest.mark.parametrize("causal", [False, True])
def test_attention_against_the_interpreter(causal):
    size = {"B": 2, "G": 2, "R": 2, "M": 3, "N": 2, "D": 3, "E": 2}
    against_interpreter(ATTENTION, size, options={"causal": causal})


def test_gemm_against_the_interpreter():
    against_interpreter(GEMM, {"M": 3, "N": 2, "K": 4}, options={"with_bias": True, "act": "relu"})


def against_interpreter(text: str, size: dict[str, int], **chosen):
    graph = graph_of(text, **chosen)
    arrays = random_inputs(graph, size, seed=5)
    spoilt = {n: a.astype(np.float64) for n, a in arrays.items()}
    for a in spoilt.values():
        a.flat[::5] = np.nan
    dims = solve_dims(graph, {n: a.shape for n, a in arrays.items()}, size)
    scalars = {"scale": dims["D"] ** -0.5} if graph.scalars else {}
    for values in (arrays, spoilt):
        got = evaluate(graph, values)
        for tensor, expected in Interpreter(graph, values, dims, scalars).outputs().items():
            np.testing.assert_allclose(got[tensor], expected, rtol=1e-11, atol=1e-13)
            assert got[tensor].dtype == np.float64


def test_names_do_not_matter():
    """Renaming every name of the program gives the same numbers, bit for bit."""
    names = {"attention": "p", "causal": "aa", "lse": "zz", "scale": "q0", "h": "hh"}
    names |= dict(zip("BGRMNDEHTQKVOLSXPgrijdeb", "JzLmWfKxSaOcUtGsFkEhyQuv", strict=True))
    renamed = re.sub(r"[A-Za-z]\w*", lambda m: names.get(m[0], m[0]), ATTENTION)
    one, other = graph_of(ATTENTION, options={"causal": True}), graph_of(renamed, options={"aa": True})
    size = {"B": 2, "G": 2, "R": 2, "M": 3, "N": 4, "D": 5, "E": 6}
    arrays = random_inputs(one, size)
    got = evaluate(other, {names[n]: a for n, a in arrays.items()})
    for tensor, value in evaluate(one, arrays).items():
        np.testing.assert_array_equal(got[names[tensor]], value)

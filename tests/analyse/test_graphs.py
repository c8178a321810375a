"""What attention and GEMM become: the whole graph, through its text form."""

from __future__ import annotations

import pytest

from tests.analyse.programs import ATTENTION, GEMM, file_check, graph_of, wrapped
from wgdsl.program.expr import Affine, Load, loads
from wgdsl.program.graph import Domain, Input, Map, Output, Reduce
from wgdsl.program.poly import Poly
from wgdsl.program.rules import covers, violations
from wgdsl.program.text import graph_text


def test_causal_attention_is_opened_into_named_parts():
    graph = graph_of(ATTENTION, options={"causal": True}, types={"T": "bf16"}, dims={"D": 128, "E": 64})
    file_check(
        graph_text(graph),
        """
        CHECK: program attention
        CHECK-NEXT: options causal=true lse=true
        CHECK-NEXT: types T=bf16
        CHECK-NEXT: dims B, G, R, M, N{{$}}
        CHECK-NEXT: fixed D=128 E=64
        CHECK-NEXT: derived H = G * R
        CHECK-NEXT: scalar scale: f32 = (1.0 / sqrt(128.0))
        CHECK-NEXT: require scale > 0.0
        CHECK-NEXT: input Q[B, M, G * R, 128]: bf16
        CHECK-NEXT: input K[B, N, G, 128]: bf16
        CHECK-NEXT: input V[B, N, G, 64]: bf16
        CHECK-NEXT: contract S[b < B, g < G, r < R, i < M, j < N]: f32 = sum[d < 128] (Q[b, i, g * R + r, d] * K[b, j, g, d])
        CHECK-NEXT: domain X[b < B, g < G, r < R, i < M, j < N]: f32 = (S[b, g, r, i, j] * scale) where {{.*}}j{{.*}} >= 0
        CHECK-NEXT: reduce P.max[b < B, g < G, r < R, i < M]: f32 = max[j < N] X[b, g, r, i, j] on {{.*}}j{{.*}} >= 0
        CHECK-NEXT: map P.exp[{{.*}}]: f32 = exp((X[b, g, r, i, j] - select(P.max[b, g, r, i] == -inf, 0.0, P.max[b, g, r, i])))
        CHECK-NEXT: reduce P.sum[b < B, g < G, r < R, i < M]: f32 = sum[j < N] P.exp[b, g, r, i, j]
        CHECK-NEXT: map P[{{.*}}]: f32 = select(P.sum[b, g, r, i] == 0.0, 0.0, (P.exp[b, g, r, i, j] / P.sum[b, g, r, i]))
        CHECK-NEXT: contract O[b < B, i < M, g < G, r < R, e < 64]: f32 = sum[j < N] (P[b, g, r, i, j] * V[b, j, g, e])
        CHECK-NEXT: output O.out[{{.*}}]: bf16 -> O[b, i, g * R + r, e] of [B, M, G * R, 64] = O[b, i, g, r, e]{{$}}
        CHECK-NEXT: reduce L.max
        CHECK-NEXT: map L.exp
        CHECK-NEXT: reduce L.sum
        CHECK-NEXT: output L.out[{{.*}}]: f32 -> L[b, g * R + r, i] of [B, G * R, M] = select(L.sum[b, g, r, i] == 0.0, -inf,
        CHECK-NOT: {{(map|reduce|output|domain)}}
        """,
    )


def test_causal_is_one_affine_predicate():
    x = graph_of(ATTENTION, options={"causal": True}).by_name["X"]
    b, n, m, i, j = (Poly.of(s) for s in ("b", "N", "M", "i", "j"))
    assert isinstance(x, Domain) and x.predicate == Affine(poly=i + n - m - j) != Affine(poly=i + n - m - b)


def test_options_drop_outputs_and_predicates():
    graph = graph_of(ATTENTION, options={"lse": False})
    assert [o.tensor for o in graph.outputs] == ["O"]
    assert not any(isinstance(n, Domain) for n in graph.nodes), "`where` true is no restriction"
    assert "L.max" not in graph.by_name


def test_the_text_is_the_same_on_every_run():
    assert graph_text(graph_of(ATTENTION)) == graph_text(graph_of(ATTENTION))


@pytest.mark.parametrize("dims", [{}, {"R": 1}, {"R": 4}, {"G": 2, "H": 6}, {"D": 64, "E": 64, "M": 1}, {"N": 0}])
def test_grouped_heads_are_inferred_whatever_is_fixed(dims):
    graph = graph_of(ATTENTION, options={"causal": True}, dims=dims)
    expected = {"r": "R", "g": "G", "i": "M", "j": "N", "d": "D", "e": "E", "b": "B"}
    fixed = dict(graph.fixed)
    assert {i: str(p) for i, p in graph.extents.items()} == {i: str(fixed.get(d, d)) for i, d in expected.items()}
    assert violations(graph) == ()
    assert all(covers(graph, o) for o in graph.outputs)


def test_a_computed_dim_fixes_the_ratio():
    graph = graph_of(ATTENTION, dims={"G": 2, "H": 6})
    assert (graph.fixed["R"], graph.derived["H"], graph.dims) == (3, Poly.of(6), ("B", "M", "N", "D", "E"))


@pytest.mark.parametrize("act, text", [("none", "(Acc[m, n] + bias[n])"), ("gelu", "gelu((Acc[m, n] + bias[n]))")])
def test_gemm_stores_its_activation(act, text):
    graph = graph_of(GEMM, options={"with_bias": True, "act": act}, dims={"K": 512})
    file_check(
        graph_text(graph),
        f"""
        CHECK: options with_bias=true act={act} b_rows=true
        CHECK: input A[M, 512]: f16
        CHECK-NEXT: input B[N, 512]: f16
        CHECK-NEXT: input bias[N]: f32
        CHECK-NEXT: contract Acc[m < M, n < N]: f32 = sum[k < 512] (A[m, k] * B[n, k])
        CHECK-NEXT: output C.out[m < M, n < N]: f16 -> C[m, n] of [M, N] = {text}{{{{$}}}}
        """,
    )


def test_gemm_without_bias_adds_the_literal():
    graph = graph_of(GEMM, options={"b_rows": False})
    assert "Bt" in graph.by_name and "B" not in graph.by_name and "bias" not in graph.by_name
    assert str(graph.by_name["C.out"].value) == "(Acc[m, n] + 0.0)"


@pytest.mark.parametrize("rows, access", [(True, "X[i, 0]"), (False, "X[0, i]")])
def test_an_input_may_be_declared_in_several_ways(rows, access):
    text = """program p { option rows = true  dims M
      in X: f32[M, 1] when rows
      in X: f32[1, M] when not rows
      out Y: f32[M]
      Y[i] = X[i, 0] when rows
      Y[i] = X[0, i] when not rows }"""
    graph = graph_of(text, options={"rows": rows}, dims={"M": 3})
    assert str(graph.by_name["Y.out"].value) == access


def test_the_digraph_has_the_access_maps():
    g = graph_of(GEMM).digraph()
    (access,) = g.edges["B", "Acc"]["accesses"]
    assert tuple(map(str, access)) == ("n", "k")
    assert [g.nodes[n]["kind"] for n in ("A", "Acc", "C.out")] == ["input", "contract", "output"]


# The shapes that statements take.


def kinds(body: str, **chosen) -> dict[str, str]:
    return {n.name: n.kind for n in graph_of(wrapped(body), **chosen).nodes if not isinstance(n, Input)}


@pytest.mark.parametrize(
    "body, expected",
    [
        ("Y[i] = sum[j] X[i,j]", {"Y": "reduce", "Y.out": "output"}),
        ("Y[i] = Z[i] * 2.0", {"Y.out": "output"}),
        ("Y[i] = Z[i] where i > 1", {"Y": "domain", "Y.out": "output"}),
        ("Y[i] = sum[j] X[i,j] where i > 1", {"Y.sum": "reduce", "Y": "domain", "Y.out": "output"}),
        ("Y[i] = Z[i] - sum[j] X[i,j]", {"Y.sum": "reduce", "Y.out": "output"}),
        ("Y[i] = sum[j] X[i,j] + sum[j] X[i,j] * Z[i]", {"Y.sum": "reduce", "Y.sum2": "contract", "Y.out": "output"}),
        ("Y[i] = max[j] X[i,j] - sum[k] X[i,k]", {"Y.max": "reduce", "Y.sum": "reduce", "Y.out": "output"}),
        ("Y[i] = sum[j] max[k] X[i,k] * X[i,j]", {"Y.max": "reduce", "Y": "reduce", "Y.out": "output"}),
        ("W[i] = Z[i] * 2.0\n  Y[i] = W[i]", {"W": "map", "Y.out": "output"}),
        ("Y[i] = logsumexp[j] (X[i,j] + 1.0)", dict.fromkeys(["Y.arg", "Y.exp"], "map") | {"Y.out": "output"}),
    ],
)
def test_statements_become_nodes(body, expected):
    found = kinds(body)
    assert {n: k for n, k in found.items() if n in expected} == expected
    if "logsumexp" not in body:
        assert found == expected


def test_an_output_that_is_read_again_keeps_a_node():
    text = wrapped("out U: f32[M]\n  Y[i] = Z[i] * 2.0\n  U[i] = Y[i] + 1.0")
    graph = graph_of(text)
    assert isinstance(graph.by_name["Y"], Map)
    assert [str(x) for x in loads(graph.by_name["U.out"].value)] == ["Y[i]"]


def test_nested_reductions_have_the_indices_that_they_mention():
    graph = graph_of(wrapped("Y[i] = Z[i] * (sum[k] sum[j] X[k,j])"))
    inner, outer = graph.by_name["Y.sum"], graph.by_name["Y.sum2"]
    assert isinstance(inner, Reduce) and isinstance(outer, Reduce)
    assert (inner.indices, inner.axes, outer.indices, outer.axes) == (("k",), ("j",), (), ("k",))


def test_softmax_by_hand_is_softmax():
    by_hand = wrapped(
        "m[i] = max[j] X[i,j]\n  p[i,j] = exp(X[i,j] - select(m[i] == -inf, 0.0, m[i]))\n  l[i] = sum[j] p[i,j]\n"
        "  P[i,j] = select(l[i] == 0.0, 0.0, p[i,j] / l[i])\n  Y[i] = sum[j] P[i,j] * Z[i]"
    )
    sugar = wrapped("P[i,j] = softmax[j] X[i,j]\n  Y[i] = sum[j] P[i,j] * Z[i]")
    renamed = graph_text(graph_of(sugar)).replace("P.max", "m").replace("P.exp", "p").replace("P.sum", "l")
    assert renamed == graph_text(graph_of(by_hand))


def test_a_left_side_expression_becomes_the_outputs_access():
    text = "program p { dims G, R\n in X: f32[G, R]\n out Y: f32[R * G]\n Y[r * G + g] = X[g, r] }"
    out = graph_of(text).outputs[0]
    assert isinstance(out, Output) and [str(p) for p in out.access] == ["r * G + g"]
    assert out.indices == ("r", "g") and covers(graph_of(text), out)


@pytest.mark.parametrize(
    "left, shape, whole",
    [("i", "M", True), ("M - 1 - i", "M", True), ("2 * i", "2 * M", False), ("i + 1", "M + 1", False), ("i", "M + 1", False)],
)
def test_whether_a_left_side_covers_its_array(left, shape, whole):
    graph = graph_of(f"program p {{ dims M\n index i < M\n in Z: f32[M]\n out Y: f32[{shape}]\n Y[{left}] = Z[i] }}")
    assert covers(graph, graph.outputs[0]) is whole


def test_def_is_put_in_by_value_and_sees_no_index_of_its_caller():
    graph = graph_of(wrapped("def softcap(x, c) = c * tanh(x / c)\n  Y[i] = softcap(Z[i], 30.0)"))
    assert str(graph.by_name["Y.out"].value) == "(30.0 * tanh((Z[i] / 30.0)))"


def test_index_declares_an_extent():
    text = "program p { dims M, E\n index e < 512\n in C: f32[M, 576]\n out O: f32[M, 512]\n O[i,e] = C[i,e] }"
    assert str(graph_of(text).extents["e"]) == "512"


# Predicates and literals.


def predicate(condition: str, **chosen):
    return graph_of(wrapped(f"Y[i] = Z[i] where {condition}"), **chosen).by_name["Y"].predicate


@pytest.mark.parametrize(
    "condition, expected",
    [
        ("i < 5", "-i + 4 >= 0"),
        ("0 < i < 5", "i - 1 >= 0 and -i + 4 >= 0"),
        ("i == 3", "i - 3 >= 0 and -i + 3 >= 0"),
        ("i != 3", "i - 4 >= 0 or -i + 2 >= 0"),
        ("not i == 3", "-i + 2 >= 0 or i - 4 >= 0"),
        ("not (i < 5)", "i - 5 >= 0"),
        ("i < 2 and i > 0 or i == N", "(-i + 1 >= 0 and i - 1 >= 0) or (i - N >= 0 and N - i >= 0)"),
        ("i / 4 < N % 3", "(N) % (3) - (i) / (4) - 1 >= 0"),
        ("abs(i - N) <= 2", "-max(i - N, N - i) + 2 >= 0"),
        ("-i**2 > -9", "-i * i + 8 >= 0"),
        ("Z[i] > 1", "Z[i] > 1.0"),
        ("not Z[i] > 1", "not (Z[i] > 1.0)"),
        ("Z[i] == inf", "Z[i] == inf"),
    ],
)
def test_integer_comparisons_are_canonical(condition, expected):
    assert str(predicate(condition)) == expected


def test_a_predicate_takes_the_domain_of_what_it_reads():
    graph = graph_of(wrapped("W[i] = Z[i] where i > 2\n  Y[i] = Z[i] where W[i] > 0.0"))
    assert Affine(poly=Poly.of("i") - 3) in graph.by_name["Y"].predicate.args


@pytest.mark.parametrize(
    "value, expected",
    [
        ("1 / 3", "0.0"),
        ("-7 / 2", "-4.0"),
        ("-7 % 4", "1.0"),
        ("1.0 / 4", "0.25"),
        ("2 ** -1", "0.5"),
        ("2 ** 10", "1024.0"),
        ("1_000", "1000.0"),
        ("-inf", "-inf"),
        ("1e-45", "1e-45"),
        ("min(3, 4, 2) + max(1, 5)", "7.0"),
        ("i / 2", "(i) / (2)"),
        ("1 / sqrt(4)", "(1.0 / sqrt(4.0))"),
        ("f16(Z[i])", "f16(Z[i])"),
        ("T(Z[i])", "bf16(Z[i])"),
        ("select(i < 3, 1, Z[i])", "select(-i + 2 >= 0, 1.0, Z[i])"),
    ],
)
def test_integers_floor_and_reals_do_not(value, expected):
    graph = graph_of(wrapped(f"type T in {{bf16, f16}}\n  Y[i] = {value}"))
    assert str(graph.by_name["Y.out"].value) == expected


def test_integer_elements_stay_integers():
    text = "program p { dims M, N\n in X: f32[M, N]\n in s: i32[M]\n out A: i32[M]\n A[i] = argmax[j] X[i,j] + s[i] * 2 }"
    graph = graph_of(text)
    assert graph.by_name["A.argmax"].dtype.name == "i32"
    assert str(graph.by_name["A.out"].value) == "(A.argmax[i] + (s[i] * 2))"


@pytest.mark.parametrize(
    "given, value",
    [({}, 3), ({"w": 5}, 5), ({"w": "5"}, 5)],
)
def test_integer_options_are_integers(given, value):
    graph = graph_of(wrapped("option w = 3\n  Y[i] = Z[i] where i >= w"), options=given)
    assert graph.options == {"w": value}
    assert str(graph.by_name["Y"].predicate) == f"i - {value} >= 0"


def test_fixed_dims_decide_when_and_select():
    text = wrapped("Y[i] = select(N > 100, Z[i], 0.0) when M == 4\n  Y[i] = Z[i] when M != 4")
    assert str(graph_of(text, dims={"M": 5}).by_name["Y.out"].value) == "Z[i]"
    assert str(graph_of(text, dims={"M": 4, "N": 7}).by_name["Y.out"].value) == "0.0"


def test_every_load_names_an_earlier_node():
    graph = graph_of(ATTENTION, options={"causal": True})
    seen: set[str] = set()
    for n in graph.nodes:
        assert all(isinstance(x, Load) and x.tensor in seen for e in n.exprs() for x in loads(e))
        seen.add(n.name)

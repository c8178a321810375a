"""The legality rules of the program graph: what analyse gives is legal, and each rule catches its breach."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.analyse.programs import ATTENTION, GEMM, graph_of
from wgdsl.diagnostics.model import InternalError
from wgdsl.program.expr import TRUE, Affine, Const, IndexValue, Load, Select, apply
from wgdsl.program.graph import Domain, Map, Output, ProgramGraph, Reduce
from wgdsl.program.poly import Poly
from wgdsl.program.rules import RULES, check, violations

GRAPH = graph_of(ATTENTION, options={"causal": True})
i, j = Poly.of("i"), Poly.of("j")


def with_node(node) -> ProgramGraph:
    return replace(GRAPH, nodes=(*GRAPH.nodes, node))


def changed(name: str, **fields) -> ProgramGraph:
    return replace(GRAPH, nodes=tuple(replace(n, **fields) if n.name == name else n for n in GRAPH.nodes))


@pytest.mark.parametrize("graph", [GRAPH, graph_of(ATTENTION), graph_of(GEMM), graph_of(ATTENTION, dims={"R": 1, "N": 0})])
def test_analysed_programs_are_legal(graph):
    assert violations(graph) == ()
    check(graph)


BREACHES = {
    "G1": with_node(Map(name="S", indices=("i",), body=Const(value=0.0))),
    "G1 scalar": with_node(Map(name="scale", indices=("i",), body=Const(value=0.0))),
    "G2 later": with_node(Map(name="A", indices=("i",), body=Load(tensor="Z", access=(i,)))),
    "G2 rank": with_node(Map(name="A", indices=("i",), body=Load(tensor="L.sum", access=(i,)))),
    "G2 output": with_node(Map(name="A", indices=("i",), body=Load(tensor="L.out", access=(i, i, i, i)))),
    "G3 load": with_node(Map(name="A", indices=("g", "r", "i"), body=Load(tensor="P.max", access=(j, i, i, i)))),
    "G3 value": with_node(Map(name="A", indices=("i",), body=IndexValue(poly=j))),
    "G3 output": changed("L.out", access=(i, i, Poly.of("d"))),
    "G4 twice": with_node(Reduce(name="A", indices=("i",), op="sum", axes=("i",), body=IndexValue(poly=i))),
    "G4 none": with_node(Reduce(name="A", indices=("i",), op="sum", axes=(), body=IndexValue(poly=i))),
    "G5 unknown": with_node(Map(name="A", indices=("q",), body=Const(value=0.0))),
    "G5 fixed": replace(GRAPH, dims=tuple(d for d in GRAPH.dims if d != "N")),
    "G6 op": changed("P.max", op="softmax"),
    "G6 axes": with_node(Reduce(name="A", indices=(), op="argmax", axes=("i", "j"), body=IndexValue(poly=i + j))),
    "G7 predicate": with_node(Domain(name="A", indices=("i",), body=Const(value=0.0), predicate=Const(value=1))),
    "G7 number": with_node(Map(name="A", indices=("i",), body=apply("exp", Affine(poly=i)))),
    "G7 select": with_node(Map(name="A", indices=("i",), body=Select(cond=IndexValue(poly=i), then=TRUE, other=TRUE))),
    "G8 axes": changed("L.out", access=(i, i)),
    "G8 twice": with_node(replace(GRAPH.by_name["L.out"], name="again")),
}


@pytest.mark.parametrize("name", BREACHES)
def test_each_rule_catches_its_breach(name):
    found = violations(BREACHES[name])
    assert any(v.startswith(name[:2]) for v in found), found
    with pytest.raises(InternalError, match=name[:2]):
        check(BREACHES[name])


def test_every_rule_has_a_breach():
    written = {line[:2] for line in RULES.splitlines() if line}
    assert written == {name[:2] for name in BREACHES}


def test_outputs_are_in_the_graph():
    assert {o.tensor for o in GRAPH.outputs if isinstance(o, Output)} == {"O", "L"}

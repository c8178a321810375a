"""Helpers of the tests of transform and schedule: text to forms, without the driver."""

from __future__ import annotations

from pathlib import Path

from wgdsl.analyse.analyse import analyse
from wgdsl.foundation.source import Source
from wgdsl.program.graph import ProgramGraph
from wgdsl.roles.model import RoleProgram
from wgdsl.schedule import lower, stream_axis
from wgdsl.syntax import ast
from wgdsl.syntax.parser import parse
from wgdsl.transform.canonicalise import canonicalise
from wgdsl.transform.fuse import fuse
from wgdsl.transform.stream import stream

ROOT = Path(__file__).parent.parent


def shipped(path: str) -> str:
    return (ROOT / path).read_text()


ATTENTION = shipped("examples/attention/attention.wg")
GEMM = shipped("examples/gemm/gemm.wg")
FA3 = shipped("schedules/hopper/attention_fa3.wg")
SIMPLE = shipped("schedules/hopper/attention_simple.wg")
PIPELINED = shipped("schedules/hopper/gemm_pipelined.wg")


def graph(text: str, options=None, types=None, dims=None) -> ProgramGraph:
    """The analysed graph of the text's one program."""
    program = parse(Source("program.wg", text)).programs[0]
    return analyse(program, options=options or {}, types=types or {}, dims=dims or {})


def attention(causal: bool = False, d: int = 128, e: int | None = None, **options) -> ProgramGraph:
    return graph(ATTENTION, {"causal": causal, **options}, {"T": "bf16"}, {"D": d, "E": e or d})


def gemm(layout: str = "nk", bias: bool = False) -> ProgramGraph:
    return graph(GEMM, {"layout": layout, "bias": bias}, {"T": "bf16"})


def schedule(text: str) -> ast.Schedule:
    return parse(Source("schedule.wg", text)).schedules[0]


def lowered(g: ProgramGraph, text: str) -> RoleProgram:
    s = schedule(text)
    return lower(stream(canonicalise(fuse(g, s)), *stream_axis(s)), s)

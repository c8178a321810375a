"""User names as C++ identifiers. The emitter's use of them is tested with the emitter."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wgdsl.foundation.names import MADE, RESERVED, Names, identifier

AWKWARD = """double int new template half float4 min exp threadIdx smem tid bar lse acc tma_q
__x _X EOF NULL inf w_x w_ P.max Qs.0 µ x² 1a"""


def test_a_name_that_c_allows_is_unchanged():
    names = Names()
    plain = ["Q", "Ks", "acc", "tid", "smem", "x_1", "scale", "O", "expf_", "inf"]
    assert [names.cpp(n) for n in plain] == plain


@pytest.mark.parametrize(
    "name, out",
    [
        ("double", "double_"),
        ("float4", "float4_"),
        ("exp", "exp_"),
        ("NULL", "NULL_"),
        ("P.max", "P_max"),
        ("Qs.0", "Qs_0"),
        ("__x", "x"),
        ("a__b", "a_b"),
        ("_", "name"),
        ("w_x", "n_w_x"),
        ("1a", "n_1a"),
        ("µ", "xb5_"),
    ],
)
def test_mangled(name, out):
    assert Names().cpp(name) == identifier(name) == out


def test_first_come_first_served():
    names = Names(taken=["busy"])
    assert [names.cpp(n) for n in ("a.b", "a_b", "a__b", "double", "double_", "busy")] == [
        *("a_b", "a_b_2", "a_b_3", "double_", "double_2", "busy_2")
    ]
    assert names.cpp("a_b") == "a_b_2" and names.cpp("double") == "double_"


def test_what_the_emitter_makes_has_a_form_of_its_own():
    names = Names()
    assert names.cpp("w_row") == "n_w_row"
    assert [names.made("row"), names.made("row"), names.cpp("row")] == ["w_row", "w_row_2", "row"]


@given(st.lists(st.text(min_size=1) | st.sampled_from(AWKWARD.split()) | st.sampled_from(sorted(RESERVED))))
def test_always_distinct_ascii_identifiers_that_mean_nothing_else(given_names):
    names = Names()
    out = [names.cpp(n) for n in given_names]
    assert len(set(out)) == len(set(given_names))
    for name in out:
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and "__" not in name and len(name) < 120
        assert name not in RESERVED and not name.startswith(MADE)
    assert out == [Names.cpp(again, n) for again in [Names()] for n in given_names]


def test_nvrtc_takes_every_one_of_them():
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    names = Names()
    out = [names.cpp(n) for n in dict.fromkeys((*AWKWARD.split(), *sorted(RESERVED)))]
    body = "\n".join(
        f"__device__ float g{i}(float *{n}, int i) {{ float y = expf({n}[i]); {{ int {n} = i; y += {n}; }} return y; }}"
        for i, n in enumerate(out)
    )
    functions = "\n".join(f'extern "C" __global__ void {n}() {{ }}' for n in out)
    for text in (body, functions):
        _, program = nvrtc.nvrtcCreateProgram(text.encode("ascii"), b"names.cu", 0, [], [])
        (result,) = nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=sm_90a"])
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        assert int(result) == 0, log.decode()

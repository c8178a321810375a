"""The identifiers of one kernel: distinct, lasting, and taken by NVRTC whatever the user's names are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.emit.toolchain import compile_text
from wgdsl.emit.scope import OWN, Scope
from wgdsl.foundation.names import RESERVED

AWKWARD = """double int new template half float4 min exp threadIdx smem tid bar lse acc tma_q
__x _X EOF NULL inf w_x w_ P.max Qs.0 µ x² 1a"""
NAMES = st.text(min_size=1) | st.sampled_from(AWKWARD.split()) | st.sampled_from(sorted(RESERVED))


def test_first_come_first_served():
    scope = Scope()
    wanted = ["a.b", "a_b", "a__b", "double", "double_", "item"]
    assert [scope.declare("int", n) for n in wanted] == ["a_b", "a_b_int", "a_b_int2", "double_", "double_int", "item_int"]
    assert scope.declare("int", "a_b") == scope.get("int", "a_b") == "a_b_int"
    assert scope.declare("value", "a_b") == "a_b_value", "another kind of thing"


@given(st.lists(NAMES))
def test_always_distinct(names):
    scope = Scope()
    out = {n: scope.declare("int", n) for n in names}
    assert len(set(out.values())) == len(out)
    for name in out.values():
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and "__" not in name
        assert name not in RESERVED and name not in OWN


def test_temporaries_are_free_again():
    scope = Scope()
    with scope.temporaries() as names:
        first, second = names.fresh("f"), names.fresh("f")
        assert (first, second) == ("f", "f2") and scope.declare("int", "f") == "f_int"
    assert scope.lasting().fresh("f") == "f"


def test_nvrtc_takes_every_one_of_them():
    scope = Scope()
    out = [scope.declare("int", n) for n in dict.fromkeys((*AWKWARD.split(), *sorted(RESERVED)))]
    body = (
        f"__device__ float g{k}(float *{n}, int k) {{ float y = expf({n}[k]); {{ int {n} = k; y += {n}; }} return y; }}"
        for k, n in enumerate(out)
    )
    compile_text("\n".join(body))
    compile_text("\n".join(f'extern "C" __global__ void {n}() {{ }}' for n in out))

"""No name means anything: a file with every user name replaced gives the same CUDA text up to names."""

from __future__ import annotations

import random
import re

import pytest

from tests.lowering import ATTENTION, FA3, GEMM, PIPELINED, SIMPLE
from wgdsl.driver import compile

# names that C++ reserves, or that emitted text might use itself
KEYWORDS = "double new template int half float4 threadIdx smem_ tid bar lse_ acc mask P2"
RESERVED = """
wg program option dims type in out when require let where else not and or sum max min softmax logsumexp exp log sqrt true
false schedule for on tile stream descending grid persistent over role warpgroup warpgroups registers split by tma ring
smem once fill await issue wgmma compute pack rescale finish via turn if rest f16 bf16 f32 sm_90a 1
"""
CASES = {
    "attention fa3": (ATTENTION, FA3, {"D": 64, "E": 64}, {"causal": True}),
    "attention simple": (ATTENTION, SIMPLE, {"D": 64, "E": 64}, {}),
    "gemm": (GEMM, PIPELINED, {}, {"bias": True}),
}


def names_of(text: str) -> list[str]:
    words = re.findall(r"(?<![.\w])[A-Za-z_]\w*", re.sub(r"#.*", "", text))
    return [w for w in dict.fromkeys(words) if w not in RESERVED.split()]


def renamed(text: str, seed: int) -> tuple[str, dict[str, str]]:
    """The text with every user name replaced at random, some by words of C++."""
    rng = random.Random(seed)
    names = names_of(text)
    fresh = [f"{rng.choice('abcxyzQWK')}{rng.choice('_uvw')}{k}{rng.randrange(1000)}" for k in range(len(names))]
    keywords = KEYWORDS.split()
    for k, word in zip(rng.sample(range(len(names)), len(keywords)), keywords, strict=True):
        fresh[k] = word
    table = dict(zip(names, fresh, strict=True))
    plain = re.sub(r"#.*", "", text)
    return re.sub(r"(?<![.\w])[A-Za-z_]\w*", lambda m: table.get(m.group(), m.group()), plain), table


def tokens(cuda: str) -> list[str]:
    """The kernel's tokens; the PTX wrappers before it are a scope of their own."""
    code = re.sub(r"//.*|#line.*", "", cuda.partition('extern "C"')[2])
    return re.findall(r"[A-Za-z_]\w*|\d[\w.]*|\S", code)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_same_text_up_to_names(case, seed):
    program, schedule, dims, options = CASES[case]
    plain = re.sub(r"#.*", "", program + schedule.replace("wg 1", ""))
    text, table = renamed(plain, seed)
    before = compile(plain, dims=dims, options=options, build=False).cuda
    new_dims = {table[k]: v for k, v in dims.items()}
    new_options = {table[k]: v for k, v in options.items()}
    after = compile(text, dims=new_dims, options=new_options, build=False).cuda
    assert before.partition("extern")[0].partition("namespace")[2] == after.partition("extern")[0].partition("namespace")[2]
    one, two = tokens(before), tokens(after)
    assert one and len(one) == len(two)
    there: dict[str, str] = {}
    back: dict[str, str] = {}
    for a, b in zip(one, two, strict=True):
        assert there.setdefault(a, b) == b and back.setdefault(b, a) == a, f"{a} became {there[a]} and {b}"
        if not re.match(r"[A-Za-z_]", a):
            assert a == b

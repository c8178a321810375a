"""No name means anything: a file with every user name replaced gives the same CUDA text up to names."""

from __future__ import annotations

import random
import re

import pytest

from tests.lowering import ATTENTION, FA3, GEMM, PIPELINED, SIMPLE, shipped
from wgdsl.driver import compile

# names that C++ reserves, or that emitted text might use itself
KEYWORDS = "double new template int half float4 threadIdx smem_ tid bar lse_ acc mask P2"
RESERVED = """
wg program option dims type in out when require let where else not and or sum max min softmax logsumexp exp log sqrt true
false schedule for on tile stream descending grid persistent over role warpgroup warpgroups registers split by tma ring
smem once fill await issue wgmma compute pack rescale finish via turn if rest f16 bf16 f32 sm_90a 1
index tiles fuse combine atomic_add kernel computes relu gelu gelu_tanh silu tune extends section within MB
assume positive regs as times permute v8 transpose grown e4m3 e5m2
"""
PACKED = re.split(r"^(?=schedule )", shipped("examples/attention_packed/attention_packed.wg"), flags=re.M)
EIGHT = shipped("examples/attention_eight_bits/attention_eight_bits.wg")
OF_EIGHT = re.split(r"^(?=schedule )", shipped("schedules/hopper/attention_eight_bits.wg"), flags=re.M)
CASES = {
    "attention fa3": (ATTENTION, FA3, {"D": 64, "E": 64}, {"causal": True}),
    "attention simple": (ATTENTION, SIMPLE, {"D": 64, "E": 64}, {}),
    "gemm": (GEMM, PIPELINED, {}, {"bias": True}),
    "items in turn": (GEMM, shipped("schedules/hopper/gemm_turns.wg"), {}, {}),
    "parts of the stream": (GEMM, shipped("schedules/hopper/gemm_split.wg"), {}, {"bias": True}),
    "dual gemm": (shipped("examples/dual_gemm/dual_gemm.wg"), shipped("schedules/hopper/dual_gemm_three.wg"), {}, {}),
    "several homes of one tensor": (*PACKED[:2], {"D": 64}, {}),
    "rows of several heads": (
        ATTENTION,
        FA3.replace("[i]", "[m]")
        .replace("tile   i", "fuse   m = (i, r)\n  tile   m")
        .replace("g, r, i)", "g, m)")
        .replace("split i", "split m"),
        {"D": 64, "E": 64, "R": 8},
        {},
    ),
    "operands of 8 bits": (EIGHT, OF_EIGHT[1], {"D": 64, "E": 64}, {}),
    "a tile made of another": (
        EIGHT.replace("{turned, plain}", "{plain, turned}"),
        next(s for s in OF_EIGHT if s.startswith("schedule turning for")),
        {"D": 64, "E": 64},
        {},
    ),
    "two kernels": (
        shipped("examples/row_softmax/row_softmax.wg"),
        shipped("schedules/hopper/row_softmax_two_pass.wg"),
        {"K": 64},
        {},
    ),
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
    return put_in(text, table), table


def put_in(text: str, table: dict[str, str]) -> str:
    """The text with other names."""
    plain = re.sub(r"#.*", "", text)
    return re.sub(r"(?<![.\w])[A-Za-z_]\w*", lambda m: table.get(m.group(), m.group()), plain)


def tokens(cuda: str) -> list[str]:
    """The kernel's tokens; the PTX wrappers before it are a scope of their own, and `ptx::prefetch` is one token."""
    code = re.sub(r"//.*|#(line|pragma).*", "", cuda.partition('extern "C"')[2])
    return re.findall(r"(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*|\d[\w.]*|\S", code)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_same_text_up_to_names(case, seed):
    program, schedule, dims, options = CASES[case]
    plain = re.sub(r"#.*", "", program + schedule.replace("wg 1", ""))
    same_up_to_names(plain, *renamed(plain, seed), dims, options)


def same_up_to_names(plain: str, text: str, table: dict[str, str], dims: dict, options: dict) -> None:
    before = compile(plain, dims=dims, options=options, build=False).cuda
    new_dims = {table.get(k, k): v for k, v in dims.items()}
    new_options = {table.get(k, k): v for k, v in options.items()}
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


def test_names_that_the_emitted_text_has_itself():
    """The emitter's own identifiers, all of them in turn, as names of the user: none shadows another."""
    program, schedule, dims, options = CASES["gemm"]
    plain = re.sub(r"#.*", "", program + schedule.replace("wg 1", ""))
    names = [n for n in names_of(plain) if n not in options and n not in ("gemm", "pipelined", "nk", "kn", "layout")]
    cuda = compile(plain, options=options, build=False).cuda
    words = dict.fromkeys(w.rpartition("::")[2] for w in tokens(cuda) if re.match(r"[A-Za-z_]", w))
    own = [w for w in words if w not in RESERVED.split() and w not in names_of(plain)]
    assert len(own) > 50
    for at in range(0, len(own), len(names)):
        table = dict(zip(names, own[at : at + len(names)], strict=False))
        same_up_to_names(plain, put_in(plain, table), table, dims, options)

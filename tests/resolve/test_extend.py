"""`extends`: the same kernel as the text with the lines of both; nothing is matched by name; errors keep their lines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

import wgdsl
from tests.lowering import ATTENTION, FA3, GEMM, PIPELINED, parse, shipped
from tests.programs.edits import edit
from tests.syntax import trees
from wgdsl.driver import prepare
from wgdsl.foundation.source import Source
from wgdsl.resolve.extend import extend, key, merge, split
from wgdsl.resolve.names import rename, shared_names, tensor_names
from wgdsl.sources import find
from wgdsl.syntax import ast
from wgdsl.syntax.printer import show
from wgdsl.tools.running import run

SCHEDULE = PIPELINED.removeprefix("wg 1\n")
A, B = "A[i, k] by tma", "B[n, k] by tma"


def schedule(text: str) -> ast.Schedule:
    return parse(Source("t.wg", text)).schedules[0]


def merged(own: str, base: str) -> str:
    """The lines of a schedule that extends another, one a line of text."""
    text = f"schedule b for p on sm_90a {{ {base} }}\nschedule s extends b {{ {own} }}"
    b, s = parse(Source("t.wg", text)).schedules
    return " | ".join(" ".join(show(i).split()) for i in extend(s, b).items)


@pytest.mark.parametrize(
    "own, base, lines",
    [
        ("", "tile i 1, j 2", "tile i 1 | tile j 2"),
        ("tile j 3", "tile i 1, j 2 stream j", "tile i 1 | tile j 3 | stream j"),
        ("tile k 3", "tile i 1 stream j", "tile i 1 | stream j | tile k 3"),
        ("stream j", "stream j descending grid over (i)", "stream j | grid over (i)"),
        ("grid persistent over (i)", "stream j grid over (i, j)", "stream j | grid persistent over (i)"),
        ("role m : 3 warpgroups", "role l : 1 warpgroup role m : 2 warpgroups role n : 1 warp",
         "role l : 1 warpgroup | role m : 3 warpgroups | role n : 1 warp"),
        ("smem B = Y by tma", "smem A = X by tma smem B = X by tma ring 2", "smem A = X by tma | smem B = Y by tma"),
        ("m { pack P }", "m { } n { }", "m { pack P } | n { }"),
        ("combine L by atomic_add", "combine O, L by merge", "combine O by merge | combine L by atomic_add"),
        ("skip empty per warpgroup", "skip empty per warpgroup", "skip empty per warpgroup"),
        ("option a = 2", "option a = 1 option b = 1", "option a = 2 | option b = 1"),
        ("fuse m = (i, r)", "fuse m = (r, i)", "fuse m = (i, r)"),
        ("tune { ring A in {3} tile i in {1} }", "tune { tile i in {2, 3}; tile j in {4} }",
         "tune { tile i in {1} } | tune { tile j in {4} } | tune { ring A in {3} }"),
        ("kernel k computes A { tile i 2 }", "kernel k computes A, B { tile i 1, j 1 } kernel l computes C { }",
         "kernel k computes A { tile i 2 tile j 1 } | kernel l computes C { }"),
        ("stream i stream j", "stream k", "stream i | stream j"),
    ],
)  # fmt: skip
def test_what_a_line_replaces(own, base, lines):
    assert merged(own, base) == lines


@given(trees.schedule_items, trees.schedule_items)
def test_every_key_comes_from_the_schedule_that_says_it(base, own):
    base, own = tuple(split(base)), tuple(split(own))
    found = merge(base, own)
    mine = {key(i) for i in own}
    assert {key(i) for i in found} == {key(i) for i in base} | mine
    assert [i for i in found if key(i) not in mine] == [i for i in base if key(i) not in mine]
    assert sorted(map(show, own)) == sorted(show(i) for i in found if key(i) in mine) or any(
        isinstance(i, ast.KernelDecl) for i in own
    )
    assert merge(found, ()) == found


@given(trees.schedule_items)
def test_names_go_there_and_back(items):
    there = {n: f"other_{n}" for n in shared_names(items)}
    changed = rename(items, there)
    assert rename(changed, {new: old for old, new in there.items()}) == items
    assert set(tensor_names(items)) <= set(shared_names(items))
    assert set(shared_names(changed)) == set(there.values())


def test_which_names_are_the_programs():
    lines = schedule(
        """schedule s for p on t {
  option stages = 2
  tile i 64 * w, m 2  fuse m = (r, h)  stream j split part in D
  role math : 2 warpgroups, split i
  smem Ks = K[j] by tma ring stages
  smem work by atomic ring 2
  smem Vt = Ks by transpose
  regs P ring 2
  math { for j { await Ks issue S[j+1] = wgmma(Q, Ks[j]) compute P.exp[j] rescale O when grown by c } finish O, L via Ks }
  combine O by merge
}"""
    ).items
    assert tensor_names(lines) == ("K", "P", "S", "Q", "O", "L")
    assert set(shared_names(lines)) - set(tensor_names(lines)) == {"i", "w", "r", "h", "j", "D", "c"}
    text = " ".join(" ".join(show(i).split()) for i in rename(lines, {"P": "Z", "K": "W", "i": "q", "Ks": "no", "m": "no"}))
    assert "regs Z ring 2" in text and "compute Z.exp[j]" in text and "smem Ks = W[j]" in text
    assert "tile q 64 * w, m 2" in text and "split q" in text and "no" not in text


# Whole schedules.


def bare(cuda: str) -> str:
    return re.sub(r"^\s*#line.*\n|\s*//.*", "", cuda, flags=re.M)


def same_kernel(extending: str, written: str, **chosen) -> None:
    program = chosen.pop("program_text", GEMM)
    one = wgdsl.compile(program, schedule=extending, build=False, **chosen)
    two = wgdsl.compile(program, schedule=written, build=False, **chosen)
    assert bare(one.cuda) == bare(two.cuda)


@pytest.mark.parametrize(
    "lines, edits",
    [
        ("", ()),
        ("tile n 128", [("n 256", "n 128")]),
        ("grid persistent over (n, i)", [("over (i, n)", "persistent over (n, i)")]),
        (
            "smem As = A[i, k] by tma ring 4  smem Bs = B[n, k] by tma ring 4  tile n 64",
            [("n 256", "n 64"), (f"{A} ring 3", f"{A} ring 4"), (f"{B} ring 3", f"{B} ring 4")],
        ),
        ("tile i 64  role math : 1 warpgroup, split i", [("i 128", "i 64"), ("2 warpgroups, registers 240", "1 warpgroup")]),
        (
            "math { for k { issue Acc += wgmma(As[k], Bs[k])  await Acc[k] }  finish C via Cs }",
            [("await Acc[k-1]", "await Acc[k]")],
        ),
    ],
)  # fmt: skip
def test_the_kernel_is_that_of_the_edited_text(lines, edits):
    written = edit(PIPELINED, ("pipelined", "mine"), *edits)
    same_kernel(f"wg 1\nschedule mine extends pipelined {{ {lines} }}", written)


def test_a_chain_and_a_base_in_the_same_text():
    own = f"""{GEMM}{SCHEDULE.replace("pipelined", "first")}
schedule second extends first {{ tile n 128 }}
schedule third extends second {{ tile i 64  role math : 1 warpgroup, split i }}
"""
    written = edit(
        PIPELINED, ("pipelined", "third"), ("n 256", "n 128"), ("i 128", "i 64"), ("2 warpgroups, registers 240", "1 warpgroup")
    )
    found = find(own, schedule="third")
    assert (found.schedule.program, found.schedule.target, found.schedule.extends) == ("gemm", "sm_90a", None)
    assert bare(wgdsl.compile(own, schedule="third", build=False).cuda) == bare(
        wgdsl.compile(GEMM, schedule=written, build=False).cuda
    )


def test_where_a_base_is_found(tmp_path):
    """In the file itself, in an import, beside the file, among the shipped ones: the first that has one decides."""
    two, three = edit(PIPELINED, ("n 256", "n 128")), edit(PIPELINED, ("n 256", "n 64"))
    (tmp_path / "lib").mkdir()
    (tmp_path / "p.wg").write_text(GEMM + "schedule mine extends pipelined { tile k 32 }\n")

    def width() -> int:
        tiles = find(tmp_path / "p.wg", schedule="mine").schedule.items
        return next(e.value for i in tiles if isinstance(i, ast.TileDecl) for n, e in i.entries if n == "n")  # type: ignore

    assert width() == 256
    (tmp_path / "beside.wg").write_text(two)
    assert width() == 128
    (tmp_path / "lib" / "q.wg").write_text(three)
    (tmp_path / "p.wg").write_text('import "lib/q.wg"\n' + (tmp_path / "p.wg").read_text().removeprefix("wg 1\n"))
    assert width() == 64
    paths = [s.path for s in find(tmp_path / "p.wg", schedule="mine").sources]
    assert paths == [str(tmp_path / "p.wg"), str(tmp_path / "lib" / "q.wg")]


def test_an_own_schedule_may_have_the_name_of_the_shipped_one_that_it_extends():
    text = GEMM + "schedule pipelined extends pipelined { tile n 128 }\n"
    assert bare(wgdsl.compile(text, build=False).cuda) == bare(
        wgdsl.compile(GEMM, schedule=edit(PIPELINED, ("n 256", "n 128")), build=False).cuda
    )


def test_the_only_schedule_of_a_text_may_be_one_that_names_no_program():
    assert find(GEMM + "schedule mine extends pipelined { tile n 128 }\n").schedule.name == "mine"


@pytest.mark.parametrize(
    "text, code, said",
    [
        ("schedule mine extends mine for gemm { }", "WG0906", "`mine` extends `mine`"),
        ("schedule a extends b for gemm { }\nschedule b extends c { }\nschedule c extends b { }",
         "WG0906", "`b` extends `c` extends `b`"),
        ("schedule mine extends simpel { }", "WG0904", "did you mean `simple`?"),
        ("schedule mine extends pipelined with Acc = X, Acc = Y { }", "WG0908", "renamed twice"),
        ("schedule mine extends pipelined with A = Aa { }", "WG0908", "program `gemm` has no `Aa`"),
        ("schedule mine extends pipelined with As = X { }", "WG0908", "names no `As`"),
        ("schedule mine extends pipelined with math = X { }", "WG0908", "names no `math`"),
    ],
)  # fmt: skip
def test_refused(text, code, said):
    with pytest.raises(wgdsl.WgError) as e:
        wgdsl.compile(f"{GEMM}{text}\n", build=False)
    assert {p.code for p in e.value.problems} == {code} and said in str(e.value)


def test_errors_show_the_line_that_they_come_from(tmp_path):
    (tmp_path / "base.wg").write_text(edit(PIPELINED, ("registers 24\n", "registers 20\n")))
    (tmp_path / "p.wg").write_text(GEMM + "schedule mine extends pipelined {\n  tile n 7\n  grid over (i, m)\n}\n")
    with pytest.raises(wgdsl.WgError) as e:
        wgdsl.compile(tmp_path / "p.wg", schedule="mine", build=False)
    places = {(p.span.source.path.rpartition("/")[2], p.span.source.line_text(p.span.line).strip()) for p in e.value.problems}
    assert ("base.wg", "role load : 1 warpgroup, registers 20") in places and ("p.wg", "grid over (i, m)") in places


# Across programs.

PRODUCT = """wg 1
program pairs {
  dims B, M, N, L
  in   X: bf16[B, M, L]
  in   Y: bf16[B, N, L]
  out  Z: f32[B, M, N]
  Dot[b,u,v] = sum[l] X[b,u,l] * Y[b,v,l]
  Z[b,u,v]   = exp(Dot[b,u,v] * 0.01)
}
"""
ACROSS = (
    "schedule mine extends pipelined for pairs with A = X, B = Y, Acc = Dot, i = u, n = v, k = l {\n"
    "  tile n 64\n  math { for l { issue Dot += wgmma(As[l], Bs[l])  await Dot[l] }  finish Z }\n"
)


def test_a_schedule_for_another_program():
    text = PRODUCT + ACROSS.replace("tile n 64", "tile v 64  grid over (b, u, v)") + "}\n"
    with pytest.raises(wgdsl.WgError) as e:
        wgdsl.compile(text, build=False)
    assert [(p.code, p.tensors) for p in e.value.problems] == [("WG0907", ("C",))]  # the line of Cs still stands
    text = text.replace("}\n}\n", "}\n  smem Cs = X[u, l] by tma\n}\n")
    with pytest.raises(wgdsl.WgError, match="Cs"):
        wgdsl.compile(text, build=False)
    kernel = wgdsl.compile(
        text.replace("smem Cs = X[u, l] by tma", "smem Cs = Z[u, v] by tma").replace("finish Z", "finish Z via Cs"), build=False
    )
    assert run(kernel, {"B": 2, "M": 70, "N": 130, "L": 40}, device="sim", check=True).right


def test_renaming_renames_parts_and_indices_of_attention():
    """Every name of the program renamed, and the shipped schedule with it: the same kernel up to names."""
    names = {"S": "Score", "X": "Masked", "P": "Prob", "Q": "Qq", "K": "Kk", "V": "Vv", "O": "Out", "j": "key", "i": "row"}

    def renamed(text: str) -> str:
        return re.sub(r"\b[A-Za-z]\w*", lambda m: names.get(m[0], m[0]), text)

    program = (
        renamed(ATTENTION)
        .replace("program attention", "program other")
        .replace("L[", "Lse[")
        .replace("out    L:", "out    Lse:")
    )
    both = ", ".join(f"{old} = {new}" for old, new in {**names, "L": "Lse"}.items() if old != "X")
    own = f"schedule fa3 extends fa3 for other with {both} {{ }}\n"
    prepare(program + own, settings=lambda _: wgdsl.driver.Settings(dims={"D": 64, "E": 64}))
    found = find(program + own).schedule
    written = schedule(renamed(FA3).replace("attention", "other").replace("finish Out, L", "finish Out, Lse"))
    assert [show(i) for i in found.items] == [show(i) for i in split(written.items)]


def test_shipped_schedules_extend_each_other_within_a_text():
    text = shipped("examples/attention/attention.wg") + "schedule mine extends fa3 { grid persistent over (b, g, r, i) }\n"
    kernel = wgdsl.compile(text, schedule="mine", dims={"D": 64, "E": 64}, options={"causal": True}, build=False)
    assert run(kernel, {"B": 1, "G": 1, "R": 2, "M": 130, "N": 200}, device="sim", check=True).right
